//! Finding and reading commits.

use frond_engine::TreeId;
use frond_query::Code;
use frond_store::{ChunkHash, ChunkStore};
use frond_tree::{Bounds, Direction};

use crate::commit_id::{self, CommitId, PREFIX_LETTERS_MIN};
use crate::error::Error;
use crate::reader::Reader;
use crate::refs::format::{self, Commit};
use crate::refs::past_position::past_position;
use crate::refs::revision::{Revision, Step};
use crate::refs::{self, erased, revision, shallow, tag};
use crate::schema::TreeRef;
use crate::system;

/// The word for the commit that a version stands on.
pub const HEAD: &str = "HEAD";
/// The word for the version before all: without collections.
pub const NOTHING: &str = "NOTHING";
/// The word for a branch's working state.
pub const WORKING: &str = "WORKING";

/// The version that `HEAD` stands for.
#[derive(Clone, Copy)]
pub enum Head<'a> {
    /// A branch's.
    Branch(&'a str),
    /// A commit.
    Commit(ChunkHash),
}

/// Reads the commit in the chunk `hash`. Parents that a shallow clone lacks are left out.
///
/// # Errors
/// `Damaged` if the chunk is absent or no commit; `Unavailable` if the store doesn't answer.
pub fn load(store: &dyn ChunkStore, hash: ChunkHash) -> Result<Commit, Error> {
    let mut commit = Commit::decode(&store.get(hash)?)?;
    let absent = shallow::absent(store, &commit.parents)?;
    commit.parents.retain(|parent| !absent.contains(parent));
    Ok(commit)
}

/// The chunk of the commit that `branch` stands on: `None` before the first one.
///
/// # Errors
/// `NamespaceNotFound` if there is no such branch.
pub fn branch_head(
    reader: &Reader<'_>,
    repository: &str,
    branch: &str,
) -> Result<Option<ChunkHash>, Error> {
    let Some(head) = refs::branch_ref(reader, repository, branch)? else {
        return Err(no_branch(repository, branch));
    };
    let Some(id) = head.commit else {
        return Ok(None);
    };
    let chunk = refs::commit_chunk(reader, repository, &id)?;
    chunk.map(Some).ok_or_else(|| Error::damaged(format!("HEAD of {branch} is not known")))
}

/// Says that there is no such branch.
pub fn no_branch(repository: &str, branch: &str) -> Error {
    let message = format!("no branch {branch} in {repository}");
    Error::invalid(Code::NamespaceNotFound, message)
}

/// The commit that a version of a database names, as it stands in the database's name, with `HEAD`
/// the default branch's; `None` if there is none.
///
/// # Errors
/// `BadValue` if `version` is no revision, or abbreviates more than one id.
pub(crate) fn resolve(
    reader: &Reader<'_>,
    repository: &str,
    version: &str,
    now_millis: impl FnOnce() -> i64,
) -> Result<Option<(CommitId, ChunkHash)>, Error> {
    let Some(record) = refs::repository(reader, repository)? else {
        return Ok(None);
    };
    let head = Head::Branch(&record.default_branch);
    resolve_from(reader, repository, &revision::of_version(version), head, now_millis)
}

/// The commit that a revision names, with the version that `HEAD` stands for; words for dates count
/// from what `now_millis` says.
///
/// # Errors
/// As [`resolve`]; as [`branch_head`].
pub fn resolve_from(
    reader: &Reader<'_>,
    repository: &str,
    text: &str,
    head: Head<'_>,
    now_millis: impl FnOnce() -> i64,
) -> Result<Option<(CommitId, ChunkHash)>, Error> {
    let revision = Revision::parse(text, now_millis)?;
    let (branch, start) = match (revision.start.as_str(), head) {
        (HEAD | "", Head::Commit(chunk)) => (None, Some(chunk)),
        // A database that doesn't exist yet has no commits.
        (HEAD | "", _) if refs::repository(reader, repository)?.is_none() => (None, None),
        (HEAD | "", Head::Branch(branch)) => {
            (Some(branch), branch_head(reader, repository, branch)?)
        }
        (branch, _) if refs::branch_ref(reader, repository, branch)?.is_some() => {
            (Some(branch), branch_head(reader, repository, branch)?)
        }
        (start, _) => (None, find_start(reader, repository, start)?),
    };
    let Some(mut start) = start else { return Ok(None) };
    if let Some(by_millis) = revision.by_millis {
        let branch = branch.filter(|_| !revision.goes_by_commits);
        let Some(then) = at(reader, repository, (branch, start), by_millis)? else {
            return Ok(None);
        };
        start = then;
    }
    walk(reader, start, &revision.steps)
}

/// The commit on which a branch stood by then, as far as its reflog reaches; otherwise the last one
/// by then of `start` and those before it, through first parents.
fn at(
    reader: &Reader<'_>,
    repository: &str,
    (branch, start): (Option<&str>, ChunkHash),
    by_millis: i64,
) -> Result<Option<ChunkHash>, Error> {
    if let Some(branch) = branch
        && let Some(id) = past_position(reader, repository, branch, by_millis)?
        && let Some(chunk) = refs::commit_chunk(reader, repository, &id)?
    {
        return Ok(Some(chunk));
    }
    let mut chunk = start;
    // No commit is older than its parents.
    loop {
        let commit = load(&**reader.store(), chunk)?;
        if commit.timestamp_millis <= by_millis {
            return Ok(Some(chunk));
        }
        let Some(parent) = commit.parents.first() else { return Ok(None) };
        chunk = *parent;
    }
}

/// Finds the commit that a revision begins at where that isn't a branch's: a tag's, that of a
/// remote's branch, or one by its id.
fn find_start(
    reader: &Reader<'_>,
    repository: &str,
    start: &str,
) -> Result<Option<ChunkHash>, Error> {
    if let Some(id) = tag::target(reader, repository, start)? {
        let chunk = refs::commit_chunk(reader, repository, &id)?;
        let unknown = || Error::damaged(format!("the commit of the tag {start} is not known"));
        return chunk.map(Some).ok_or_else(unknown);
    }
    let Some((first, last)) = ids_begun_by(start) else { return Ok(None) };
    let mut found = None;
    for commit in commits_between(reader, repository, (&first, &last))? {
        let commit = commit?;
        if found.is_some() {
            let message = format!("'{start}' begins the ids of more than one commit");
            return Err(Error::invalid(Code::BadValue, message));
        }
        found = Some(commit);
    }
    if found.is_some() {
        return Ok(found);
    }
    replaced(reader, repository, (&first, &last))
}

/// The least and the greatest id that begin so, where enough of them is there to name a commit.
fn ids_begun_by(start: &str) -> Option<(CommitId, CommitId)> {
    let is_enough = PREFIX_LETTERS_MIN <= start.len();
    commit_id::prefix_range(start).filter(|_| is_enough)
}

/// Whether a text is the beginning of a commit's id, by which the commit can be named.
///
/// # Errors
/// Errors of reading.
pub fn begins_commit_id(reader: &Reader<'_>, repository: &str, text: &str) -> Result<bool, Error> {
    let Some((first, last)) = ids_begun_by(text) else { return Ok(false) };
    let mut commits = commits_between(reader, repository, (&first, &last))?;
    if commits.next().transpose()?.is_some() {
        return Ok(true);
    }
    Ok(replaced(reader, repository, (&first, &last))?.is_some())
}

/// The commits whose ids lie between two, these included.
fn commits_between(
    reader: &Reader<'_>,
    repository: &str,
    (first, last): (&CommitId, &CommitId),
) -> Result<impl Iterator<Item = Result<ChunkHash, Error>>, Error> {
    let prefix = system::commit_key(repository, &[]);
    let bounds = Bounds {
        start: Some(system::commit_key(repository, &first.0)),
        end: Bounds::prefix(&prefix).end,
    };
    let end = system::commit_key(repository, &last.0);
    let entries = reader.range(TreeRef::Live(TreeId::SYSTEM), bounds, Direction::Ascending)?;
    let within = entries
        .take_while(move |entry| entry.as_ref().map_or(true, |entry| entry.key <= end))
        .map(|entry| system::commit_chunk(&entry?.value));
    Ok(within)
}

/// The commit that took the place of the erased one whose id lies between two.
fn replaced(
    reader: &Reader<'_>,
    repository: &str,
    (first, last): (&CommitId, &CommitId),
) -> Result<Option<ChunkHash>, Error> {
    let mut end = system::erased_key(repository, &last.0).to_vec();
    end.push(0);
    let bounds =
        Bounds { start: Some(system::erased_key(repository, &first.0)), end: Some(end.into()) };
    match &erased::in_range(reader, repository, bounds)?[..] {
        [only] => refs::commit_chunk(reader, repository, &only.new),
        _ => Ok(None),
    }
}

/// Takes a revision's steps.
fn walk(
    reader: &Reader<'_>,
    mut chunk: ChunkHash,
    steps: &[Step],
) -> Result<Option<(CommitId, ChunkHash)>, Error> {
    let store = &**reader.store();
    for step in steps {
        let (times, parent) = match *step {
            Step::Ancestor(generations) => (generations, 0),
            Step::Parent(0) => continue,
            Step::Parent(number) => (1, number as usize - 1),
        };
        for _ in 0..times {
            match load(store, chunk)?.parents.get(parent) {
                Some(found) => chunk = *found,
                None => return Ok(None),
            }
        }
    }
    Ok(Some((format::id_of(chunk), chunk)))
}
