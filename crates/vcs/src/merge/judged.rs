//! A merge that is judged first, by a hook that may take seconds: what it was asked about is
//! merged, or nothing.
//!
//! 1. [`Repository::merge_to_judge`] notes the commit that comes in, and where the branch is: its
//!    HEAD, the merge that waits, and, of one that is to be continued, the working state that would
//!    become the commit.
//! 2. The transaction that merges compares. It merges the commit that was noted, wherever the
//!    branch that was named has moved to.
//!
//! What isn't committed when a merge begins is committed first, and no hook judges that: so it may
//! change meanwhile.

use frond_db::inside::refs::{self, format};
use frond_db::inside::{CommitId, Error};
use frond_query::Code;
use frond_store::ChunkHash;
use frond_tree::Tree;

use crate::conflict::MergeState;
use crate::repository::Repository;
use crate::state::BranchState;

/// What a merge is about, as it was when it was judged.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JudgedMerge {
    /// The branch's HEAD.
    at: Option<CommitId>,
    merging: Option<MergeState>,
    /// The working state of a merge that waits.
    working: Option<ChunkHash>,
    /// The commit that comes in, unless a merge waits.
    theirs: Option<CommitId>,
}

impl JudgedMerge {
    /// The commit that comes in; `None` for a merge that is continued.
    pub fn theirs(&self) -> Option<CommitId> {
        self.theirs
    }

    /// Refuses to merge into a branch that isn't where it was.
    ///
    /// # Errors
    /// `ConflictingOperationInProgress` (117).
    pub(super) fn check(&self, state: &BranchState) -> Result<(), Error> {
        match (state.at, &state.merging) == (self.at, &self.merging) {
            true => Ok(()),
            false => Err(moved(&state.branch)),
        }
    }

    /// Refuses to go on with a merge that isn't as it was, or has another working state.
    ///
    /// # Errors
    /// `ConflictingOperationInProgress` (117).
    pub(super) fn check_waiting(
        &self,
        state: &BranchState,
        merge: &MergeState,
        working: &Tree,
    ) -> Result<(), Error> {
        let is_it = (state.at, Some(merge)) == (self.at, self.merging.as_ref());
        match is_it && self.working.is_none_or(|judged| judged == working.root) {
            true => Ok(()),
            false => Err(moved(&state.branch)),
        }
    }
}

fn moved(branch: &str) -> Error {
    let message = format!("{branch} has changed while the merge was judged: try again");
    Error::invalid(Code::ConflictingOperationInProgress, message)
}

impl Repository {
    /// Notes what would be merged: the version `merge_in`, or without one the merge that waits.
    ///
    /// # Errors
    /// As [`Repository::merge`] and [`Repository::merge_continue`].
    pub fn merge_to_judge(&self, merge_in: Option<&str>) -> Result<JudgedMerge, Error> {
        let (name, branch) = (self.repository_name(), self.writable_branch()?);
        let reader = self.reader();
        let theirs = match merge_in {
            None => None,
            Some(version) if refs::repository(&reader, name)?.is_none() => {
                return Err(super::nothing_there(version, name));
            }
            Some(version) => Some(format::id_of(self.revision(&reader, version)?)),
        };
        if refs::branch_ref(&reader, name, branch)?.is_none() {
            // There is nothing to move, or to continue: the merge finds out.
            return Ok(JudgedMerge { theirs, ..JudgedMerge::default() });
        }
        let state = BranchState::read(&reader, name, branch)?;
        let working = match theirs {
            Some(_) => None,
            None => {
                let (engine, snapshot) = (self.frond().engine(), reader.snapshot()?);
                Some(state.working_catalog_while(engine, snapshot, self.interrupt())?.root)
            }
        };
        Ok(JudgedMerge { at: state.at, merging: state.merging, working, theirs })
    }
}
