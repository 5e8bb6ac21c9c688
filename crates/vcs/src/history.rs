//! The commit that a version stands on, those that it names, and what is shown of one.

pub(crate) mod base;
pub(crate) mod blame;
pub(crate) mod log;
pub(crate) mod path_filter;
pub(crate) mod range;
pub(crate) mod walk;

pub use frond_db::inside::refs::history::NOTHING;
use frond_db::inside::refs::history::{self, Head};
pub(crate) use frond_db::inside::refs::history::{
    HEAD, WORKING, begins_commit_id, branch_head, load, no_branch,
};
use frond_db::inside::refs::{self, erased, format};
use frond_db::inside::{Commit, Error, Reader, Target, TreeRef, system};
use frond_engine::TreeId;
use frond_query::Code;
use frond_store::ChunkHash;
use frond_tree::{Bounds, Direction};

use crate::CommitInfo;
use crate::repository::Repository;

/// A commit as `frondLog` shows it.
pub(crate) fn info(hash: ChunkHash, commit: &Commit) -> CommitInfo {
    CommitInfo {
        id: format::id_of(hash),
        parents: commit.parents.iter().map(|parent| format::id_of(*parent)).collect(),
        author: commit.author.clone(),
        message: commit.message.clone(),
        timestamp_millis: commit.timestamp_millis,
        committer: commit.committer.clone().unwrap_or_else(|| commit.author.clone()),
        authored_millis: commit.authored_millis.unwrap_or(commit.timestamp_millis),
        automatic: commit.automatic,
        reverts: commit.reverts,
    }
}

/// All commits that a database refers to by their ids, also such as no branch reaches any more.
///
/// # Errors
/// `Damaged` if an id leads to no chunk; `Unavailable` if the disk doesn't answer.
pub(crate) fn recorded_commits(
    reader: &Reader<'_>,
    database: &str,
) -> Result<Vec<ChunkHash>, Error> {
    let (place, prefix) = (TreeRef::Live(TreeId::SYSTEM), system::commit_key(database, &[]));
    let records = reader.range(place, Bounds::prefix(&prefix), Direction::Ascending)?;
    records.map(|entry| system::commit_chunk(&entry?.value)).collect()
}

impl Repository {
    /// The chunk of the commit that this version stands on; `None` before the first one.
    pub(crate) fn head(&self, reader: &Reader<'_>) -> Result<Option<ChunkHash>, Error> {
        erased::refuse_gone(reader, self.repository_name(), self.target())?;
        match self.target() {
            Target::Commit(_, chunk) => Ok(Some(*chunk)),
            // A database that doesn't exist yet has no commits.
            Target::Branch(_) if refs::repository(reader, self.repository_name())?.is_none() => {
                Ok(None)
            }
            Target::Branch(branch) => branch_head(reader, self.repository_name(), branch),
        }
    }

    /// The commit that a revision names, with `HEAD` this version's.
    ///
    /// # Errors
    /// `BadValue` if there is no such commit.
    pub(crate) fn revision(&self, reader: &Reader<'_>, text: &str) -> Result<ChunkHash, Error> {
        let name = self.repository_name();
        let now_millis = || self.frond().time_millis();
        erased::refuse_gone(reader, name, self.target())?;
        let head = match self.target() {
            Target::Commit(_, chunk) => Head::Commit(*chunk),
            Target::Branch(branch) => Head::Branch(branch),
        };
        let found = history::resolve_from(reader, name, text, head, now_millis)?;
        if let Some((_, chunk)) = found {
            return Ok(chunk);
        }
        let started = match text.split_once("@{") {
            Some(("", _)) => Some(history::HEAD),
            Some((from, _)) => {
                let known = history::resolve_from(reader, name, from, head, now_millis)?;
                known.map(|_| from)
            }
            None => None,
        };
        let message = match (started, head) {
            (Some(from), _) => format!("{from} of {name} has no commit by then: {text}"),
            (None, Head::Branch(branch)) if text == history::HEAD => {
                format!("{branch} of {name} has no commit yet")
            }
            (None, _) => format!("no branch or revision {text} in {name}"),
        };
        Err(Error::invalid(Code::BadValue, message))
    }
}
