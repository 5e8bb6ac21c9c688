//! Moving a branch to another commit.
//!
//! *Hard*: the working state becomes the commit's, and a merge that waits is given up. *Soft*: the
//! working state stays as it is, and is then a change against another HEAD.

use frond_db::inside::refs::{self, format};
use frond_db::inside::{CommitId, Error, Outcome, Reader};
use frond_query::Code;
use frond_store::ChunkHash;

use crate::adopt::Adoption;
use crate::history::base;
use crate::merge::waiting::{self, CarriedState};
use crate::past::is_working_past;
use crate::refs::branch_move::BranchMove;
use crate::refs::reflog::{Lost, RefChange, RefWhy};
use crate::repository::Repository;
use crate::state::BranchState;
use crate::{conflict, history};

impl Repository {
    /// Moves the branch to `target` (default HEAD). Hard: the working state becomes the target's;
    /// soft: the working state stays as it is. `WORKING@{TIME}` is the branch as it was then, HEAD
    /// and working state; answered is its HEAD, if it has one.
    ///
    /// # Errors
    /// `BadValue` if `target` names no commit, or the reset is soft and it names a moment;
    /// `SnapshotTooOld` if that isn't kept; `UserWritesBlocked` if this version is a commit;
    /// `IllegalOperation` if the reset is soft and a merge waits, or the branch is protected and
    /// would go back; `DocumentValidationFailure` if what the branch doesn't have breaks a rule.
    pub fn reset(&self, target: Option<&str>, hard: bool) -> Result<Option<CommitId>, Error> {
        let branch = self.writable_branch()?;
        let name = self.repository_name();
        let engine = self.frond().engine();
        let store = engine.store();
        let target = target.unwrap_or(history::HEAD);
        if is_working_past(target) {
            return self.reset_to_past(branch, target, hard);
        }
        self.replace_working_state(branch, |transaction| {
            if refs::repository(&self.reader(), name)?.is_none() {
                let message = format!("no branch or revision {target} in {name}");
                return Err(Error::invalid(Code::BadValue, message));
            }
            let state = BranchState::validated(self.frond(), transaction, name, branch)?;
            let chunk = self.revision(&Reader::within(engine, transaction), target)?;
            let commit = history::load(&**store, chunk)?;
            if !self.is_forward(&state, chunk)? {
                state.refuse_protected(transaction, self, "a reset to what is not ahead")?;
            }
            if !self.was_passed(&state, chunk)? {
                let head = state.head_catalog(&**store)?;
                let act = (branch, BranchMove::Reset);
                self.check_move(transaction, act, (&head, &commit.catalog))?;
            }
            let merge = waiting::remember(engine, transaction, &state)?;
            let why = format!("reset: moving to {target}");
            let mut why = RefWhy::plain(&why, self.frond().time_millis());
            if hard {
                let before = state.working_catalog(engine, transaction.snapshot())?;
                let adoption = Adoption { head: commit.catalog, before, after: commit.catalog };
                state.adopt(engine, transaction, &adoption)?;
                conflict::clear(engine, transaction, name, branch)?;
                why.lost = Lost::working(before, merge.as_ref());
            } else {
                state.refuse_while_merging("a soft reset")?;
                state.keep(engine, transaction, &commit.catalog)?;
            }
            state.move_ref(transaction, chunk, why)?;
            Ok(Outcome::Commit(Some(format::id_of(chunk))))
        })
    }

    /// Makes a branch what it was at a moment.
    fn reset_to_past(
        &self,
        branch: &str,
        target: &str,
        hard: bool,
    ) -> Result<Option<CommitId>, Error> {
        if !hard {
            let message = format!("{target} is a working state, which a soft reset doesn't change");
            return Err(Error::invalid(Code::BadValue, message));
        }
        let name = self.repository_name();
        let engine = self.frond().engine();
        let store = &**engine.store();
        self.replace_working_state(branch, |transaction| {
            let Some(past) = self.working_past(target)? else {
                let message = format!("{target} names no working state");
                return Err(Error::invalid(Code::BadValue, message));
            };
            let state = BranchState::validated(self.frond(), transaction, name, branch)?;
            let head = past.head(&Reader::within(engine, transaction), name)?;
            let (chunk, head) = match head {
                Some(chunk) => (Some(chunk), history::load(store, chunk)?.catalog),
                // Without a commit then, the commits since stay.
                None => (state.head_chunk(), state.head_catalog(store)?),
            };
            if let Some(chunk) = chunk
                && !self.is_forward(&state, chunk)?
            {
                state.refuse_protected(transaction, self, "a reset to what is not ahead")?;
            }
            let act = (branch, BranchMove::Reset);
            self.check_move(transaction, act, (&head, &past.catalog))?;
            let merge = waiting::remember(engine, transaction, &state)?;
            let before = state.working_catalog(engine, transaction.snapshot())?;
            let after = past.catalog;
            state.adopt(engine, transaction, &Adoption { head, before, after })?;
            conflict::clear(engine, transaction, name, branch)?;
            let why = format!("reset: moving to {target}");
            let why = RefWhy {
                lost: Lost::working(before, merge.as_ref()),
                left: Some(after),
                ..RefWhy::plain(&why, self.frond().time_millis())
            };
            let to = chunk.map(format::id_of);
            state.move_ref_to(transaction, to, why)?;
            Ok(Outcome::Commit(to))
        })
    }

    /// Whether a branch's HEAD is `chunk` or one of its ancestors.
    pub(crate) fn is_forward(&self, state: &BranchState, chunk: ChunkHash) -> Result<bool, Error> {
        let Some(head) = state.head_chunk() else { return Ok(true) };
        let store = self.frond().engine().store();
        base::is_ancestor(head, chunk, &mut |hash| history::load(&**store, hash))
    }

    /// Whether `chunk` is a branch's HEAD or one of its ancestors.
    fn was_passed(&self, state: &BranchState, chunk: ChunkHash) -> Result<bool, Error> {
        let Some(head) = state.head_chunk() else { return Ok(false) };
        let store = self.frond().engine().store();
        base::is_ancestor(chunk, head, &mut |hash| history::load(&**store, hash))
    }

    /// Gives a merge up: what it did is taken back, what was written since stays. Where that
    /// changed the same fields it is set aside: answered are the collections. It can be undone.
    ///
    /// # Errors
    /// `IllegalOperation` if no merge waits.
    pub fn merge_abort(&self) -> Result<Vec<String>, Error> {
        let branch = self.writable_branch()?;
        let name = self.repository_name();
        let engine = self.frond().engine();
        self.replace_working_state(branch, |transaction| {
            let state = BranchState::validated(self.frond(), transaction, name, branch)?;
            let Some(merge) = &state.merging else {
                return Err(conflict::no_merge(branch));
            };
            let head = state.head_catalog(&**engine.store())?;
            let before = state.working_catalog(engine, transaction.snapshot())?;
            let CarriedState { catalog: after, set_aside } = self.without_merge(merge, before)?;
            if after.root != before.root {
                state.adopt(engine, transaction, &Adoption { head, before, after })?;
            }
            // Where all was in conflict too: what was resolved is remembered, and undoing takes
            // back nothing else.
            let remembered = waiting::remember(engine, transaction, &state)?;
            let lost = Lost::working(before, remembered.as_ref());
            let why = format!("{}: aborted", merge.kind.verb());
            let why = RefWhy { lost, ..RefWhy::plain(&why, self.frond().time_millis()) };
            let (from, to) = (state.head_id(), state.head_id());
            RefChange { from, to, why }.log(transaction, name, branch)?;
            conflict::clear(engine, transaction, name, branch)?;
            Ok(Outcome::Commit(set_aside))
        })
    }
}
