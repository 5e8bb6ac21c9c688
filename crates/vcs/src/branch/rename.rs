//! Renaming a branch, as `git branch -m` does.
//!
//! All that has the branch's name in its key moves to the new name in one transaction: the ref, the
//! working entries (whose trees stay as they are), the policy and the reflog. So what was done
//! before can be undone under the new name. What was done to an earlier branch of the old name,
//! which was deleted, stays under that. A commit policy that lists the branch lists its new name.
//!
//! What may surprise: change streams on the old name end, as if the branch had been deleted. A
//! remote keeps its branch under the old name.

use frond_db::inside::refs::past_position::RENAMED;
use frond_db::inside::{BranchRef, Error, EventKind, LatchMode, Outcome, Reader, Scope};
use frond_db::inside::{refs, system};
use frond_engine::{Durability, Transaction, TreeId};
use frond_query::Code;
use frond_tree::Value;

use crate::branch::check_is_free;
use crate::policy::commit_policy;
use crate::refs::ref_name;
use crate::refs::reflog::{self, RefChange, RefWhy};
use crate::repository::Repository;
use crate::state::BranchState;
use crate::{BranchInfo, history};

impl Repository {
    /// Gives the branch `old` the name `new`: its commits, uncommitted changes, policy and reflog
    /// go with it. The cost follows the number of its collections and reflog records.
    ///
    /// # Errors
    /// `BadValue` if `new` is not allowed; `NamespaceExists` if something has that name;
    /// `NamespaceNotFound` if there is no branch `old`; `IllegalOperation` if it is the default
    /// branch or protected, or a merge into it waits.
    pub fn rename_branch(&self, old: &str, new: &str) -> Result<BranchInfo, Error> {
        ref_name::check_name(new)?;
        let repository = self.repository_name();
        let scope = Scope::branch(repository, old);
        // A write that began under the old name is over before, as with a deletion.
        let mode = LatchMode::Remover;
        let number = self.frond().begin_to_end();
        let renamed = self.transact_alone(scope, mode, Durability::Synced, |transaction| {
            let engine = self.frond().engine();
            {
                let reader = Reader::within(engine, transaction);
                if refs::repository(&reader, repository)?.is_none() {
                    return Err(history::no_branch(repository, old));
                }
                check_is_free(&reader, repository, new)?;
            }
            let mut state = BranchState::validated(self.frond(), transaction, repository, old)?;
            if old == state.repository.default_branch {
                let message = format!("{old} is the default branch: it keeps its name");
                return Err(Error::invalid(Code::IllegalOperation, message));
            }
            state.refuse_protected(transaction, self, "renaming it")?;
            state.refuse_while_merging("renaming the branch")?;
            transaction.validate(TreeId::SYSTEM, system::repository_key(repository));
            transaction.validate(TreeId::SYSTEM, system::tag_key(repository, new));
            state.record_unread(engine, transaction, EventKind::DropDatabase);
            self.check_named(transaction, (Some(old), new), state.head_chunk())?;
            self.move_policy(transaction, old, new)?;
            commit_policy::rename_branch(engine, transaction, repository, (old, new))?;
            reflog::rename(engine, transaction, repository, (old, new))?;

            for (collection, _) in &state.entries {
                state.delete_entry(transaction, collection)?;
            }
            transaction.delete(TreeId::SYSTEM, system::branch_key(repository, old))?;
            new.clone_into(&mut state.branch);
            for (collection, entry) in &state.entries {
                state.put_entry(transaction, collection, entry)?;
            }
            let record = Value::inline(BranchRef { commit: state.at }.encode());
            transaction.put(TreeId::SYSTEM, system::branch_key(repository, new), record)?;
            let why = format!("{RENAMED}{old} to {new}");
            let why = RefWhy::plain(&why, self.frond().time_millis());
            // Without `from` it is passed over by an undo: there is nothing to take back.
            RefChange { from: None, to: state.at, why }.log(transaction, repository, new)?;
            Ok(Outcome::Commit(BranchInfo { name: new.to_owned(), head: state.at }))
        })?;
        self.frond().end_cursors(repository, old, None, number);
        self.frond().written().rename(repository, old, new);
        Ok(renamed)
    }

    fn move_policy(
        &self,
        transaction: &mut Transaction,
        old: &str,
        new: &str,
    ) -> Result<(), Error> {
        let repository = self.repository_name();
        let policy_key = system::policy_key(repository, old);
        if let Some(policy) = transaction.get(TreeId::SYSTEM, &policy_key)? {
            transaction.put(TreeId::SYSTEM, system::policy_key(repository, new), policy)?;
            transaction.delete(TreeId::SYSTEM, policy_key)?;
        }
        Ok(())
    }
}
