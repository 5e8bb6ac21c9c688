//! `WORKING@{TIME}`: the working state of a branch as it was, where versions are named.
//!
//! Revisions name commits: `main@{TIME}` is the last commit by then, as in git. The working state
//! of that time has all acknowledged writes, committed or not; a diff, a restore, a new branch and
//! a reset take `WORKING@{TIME}` for it. It is folded into trees as a commit would fold it, so that
//! all that can be done with a commit's trees can be done with it; that costs what was written
//! around that moment.

use frond_db::inside::refs::{self, format, moment};
use frond_db::inside::{Error, Reader};
use frond_query::Code;
use frond_store::ChunkHash;
use frond_tree::Tree;

use crate::history;
use crate::repository::Repository;
use crate::state::BranchState;

/// The state of a branch at a moment.
pub(crate) struct WorkingPast {
    /// The commit that it stood on; `None` before its first.
    head: Option<ChunkHash>,
    /// Its working state.
    pub catalog: Tree,
}

impl WorkingPast {
    /// The commit that it stood on, to stand on it again.
    ///
    /// # Errors
    /// `BadValue` if a collection has removed it since.
    pub fn head(&self, reader: &Reader<'_>, name: &str) -> Result<Option<ChunkHash>, Error> {
        let Some(chunk) = self.head else { return Ok(None) };
        if refs::commit_chunk(reader, name, &format::id_of(chunk))?.is_some() {
            return Ok(Some(chunk));
        }
        let message = "the commit that the branch stood on then is gone: restore collections of \
                       that moment instead";
        Err(Error::invalid(Code::BadValue, message))
    }
}

/// Whether a version's name is that of a working state which has gone by.
pub(crate) fn is_working_past(text: &str) -> bool {
    text.strip_prefix(history::WORKING).is_some_and(|rest| rest.starts_with("@{"))
}

impl Repository {
    /// Returns this branch's state at the moment that `text` names; `None` if that is no
    /// `WORKING@{TIME}`. The caller holds a session of the store, as a transaction does, until
    /// something lasting refers to it.
    ///
    /// # Errors
    /// `BadValue` if the moment is none; `SnapshotTooOld` if it isn't kept; `NamespaceNotFound` if
    /// there was no such branch then; `IllegalOperation` if this is a commit.
    pub(crate) fn working_past(&self, text: &str) -> Result<Option<WorkingPast>, Error> {
        if !is_working_past(text) {
            return Ok(None);
        }
        let (name, branch) = (self.repository_name(), self.working_branch()?);
        let found = moment::working_at(self.frond(), (name, branch), text, self.interrupt())?;
        let Some(snapshot) = found else { return Ok(None) };
        self.frond().check_used_at(name, &snapshot)?;
        let reader = Reader::at(snapshot.clone());
        let state = BranchState::read(&reader, name, branch)?;
        let catalog =
            state.working_catalog_while(self.frond().engine(), snapshot, self.interrupt())?;
        // It was put while all that it refers to was kept: the session keeps it from now on.
        refs::repository(&reader, name)?;
        Ok(Some(WorkingPast { head: state.head_chunk(), catalog }))
    }
}
