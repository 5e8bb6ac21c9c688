//! The span at the beginning of a change stream that starts behind a commit: that commit, and the
//! branch now.

use frond_db::inside::refs::format::id_of;
use frond_db::inside::{CommitId, Error, Reader, Span};
use frond_query::Code;
use frond_store::ChunkHash;

use crate::history::{self, base};
use crate::repository::Repository;
use crate::state::BranchState;

impl Repository {
    /// The commit that a revision names, and the branch's working state, or its commit `to`. Both
    /// must be of the branch's history: a user who may read the branch may read them.
    ///
    /// # Errors
    /// `BadValue` if they aren't.
    pub(crate) fn span(
        &self,
        reader: &Reader<'_>,
        from: &str,
        to: Option<CommitId>,
    ) -> Result<Span, Error> {
        let state = BranchState::read(reader, self.repository_name(), self.working_branch()?)?;
        let store = &**reader.store();
        let of_history = |text: &str| -> Result<ChunkHash, Error> {
            let commit = self.revision(reader, text)?;
            let load = &mut |hash| history::load(store, hash);
            match state.head_chunk() {
                Some(head) if base::is_ancestor(commit, head, load)? => Ok(commit),
                _ => {
                    let message = format!("{text} isn't in the history of {}", state.branch);
                    Err(Error::invalid(Code::BadValue, message))
                }
            }
        };
        let from = of_history(from)?;
        let before = history::load(store, from)?.catalog;
        if let Some(to) = to {
            let after = history::load(store, of_history(&to.to_string())?)?.catalog;
            return Ok(Span { from: id_of(from), before, after, to: Some(to) });
        }
        let after = state.working_catalog_while(
            self.frond().engine(),
            reader.snapshot()?,
            self.interrupt(),
        )?;
        let is_clean = after.root == state.head_catalog(store)?.root;
        let to = state.head_id().filter(|_| is_clean);
        Ok(Span { from: id_of(from), before, after, to })
    }
}
