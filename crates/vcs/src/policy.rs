//! The policies of a branch: protecting it, closing it to direct writes, giving it a time to live;
//! below, commits that are made, refused and thinned by rule.

pub(crate) mod automatic;
mod branch_pattern;
pub(crate) mod commit_policy;
mod policy_fields;
mod rule;
pub(crate) mod thinning;

pub use frond_db::inside::refs::policy::BranchPolicy;
pub(crate) use frond_db::inside::refs::policy::{read, refuse_protected};
use frond_db::inside::{Error, LatchMode, Outcome, Reader, Scope, refs, system};
use frond_engine::{Durability, Transaction, TreeId};
use frond_query::Code;
use frond_tree::Value as TreeValue;

use crate::history;
use crate::repository::Repository;
use crate::state::BranchState;

impl BranchState {
    /// Refuses what a protected branch must not suffer; conflicts with one that protects it
    /// meanwhile.
    ///
    /// # Errors
    /// `IllegalOperation`.
    pub fn refuse_protected(
        &self,
        transaction: &mut Transaction,
        database: &Repository,
        what: &str,
    ) -> Result<(), Error> {
        let policy = {
            let reader = Reader::within(database.frond().engine(), transaction);
            read(&reader, &self.database, &self.branch)?
        };
        let key = system::policy_key(&self.database, &self.branch);
        transaction.validate(TreeId::SYSTEM, key);
        refuse_protected(&policy, &self.branch, what)
    }

    /// Refuses a push into a branch that changes by merges only; conflicts with one that closes it
    /// meanwhile.
    ///
    /// # Errors
    /// `UserWritesBlocked` (371) then; `Damaged` if the branch's policy can't be read.
    pub fn refuse_push_to_closed(
        &self,
        transaction: &mut Transaction,
        database: &Repository,
    ) -> Result<(), Error> {
        let policy = {
            let reader = Reader::within(database.frond().engine(), transaction);
            read(&reader, &self.database, &self.branch)?
        };
        transaction.validate(TreeId::SYSTEM, system::policy_key(&self.database, &self.branch));
        if !policy.closed {
            return Ok(());
        }
        let message = format!(
            "branch {} of the remote is closed, it changes by merges only: push another branch, and merge it there",
            self.branch
        );
        Err(Error::invalid(Code::UserWritesBlocked, message))
    }
}

impl Repository {
    /// Gives a branch that comes back the policy that it had. A time to live that is over stays
    /// away: the branch would go at once.
    pub(crate) fn restore_policy(
        &self,
        transaction: &mut Transaction,
        branch: &str,
        mut policy: BranchPolicy,
    ) -> Result<(), Error> {
        let now = self.frond().expiry_millis();
        policy.expires_millis =
            policy.expires_millis.filter(|expires| now.is_none_or(|now| now < *expires));
        if policy == BranchPolicy::default() {
            return Ok(());
        }
        if policy.closed {
            self.frond().written().note_closed();
        }
        let key = system::policy_key(self.repository_name(), branch);
        Ok(transaction.put(TreeId::SYSTEM, key, TreeValue::inline(policy.encode()))?)
    }

    /// The policy of a branch.
    ///
    /// # Errors
    /// `NamespaceNotFound` if there is no such branch.
    pub fn branch_policy(&self, branch: &str) -> Result<BranchPolicy, Error> {
        let reader = self.reader();
        let name = self.repository_name();
        if refs::branch_ref(&reader, name, branch)?.is_none() {
            return Err(history::no_branch(name, branch));
        }
        read(&reader, name, branch)
    }

    /// Changes the policy of a branch. Once it is closed no direct write to it is under way, and a
    /// transaction of several requests that has written to it conflicts.
    ///
    /// # Errors
    /// `NamespaceNotFound` if there is no such branch.
    pub fn set_branch_policy(&self, branch: &str, policy: BranchPolicy) -> Result<(), Error> {
        let name = self.repository_name();
        let scope = Scope::branch(name, branch);
        if policy.closed {
            // From now on every write looks.
            self.frond().written().note_closed();
        }
        // A write that began before hasn't looked: this waits until it is over.
        let mode = if policy.closed { LatchMode::Remover } else { LatchMode::Writer };
        self.transact_alone(scope, mode, Durability::Synced, |transaction| {
            let is_there = {
                let reader = Reader::within(self.frond().engine(), transaction);
                refs::branch_ref(&reader, name, branch)?.is_some()
            };
            if !is_there {
                return Err(history::no_branch(name, branch));
            }
            let repository = {
                let reader = Reader::within(self.frond().engine(), transaction);
                refs::repository(&reader, name)?
            };
            let is_default = repository.is_some_and(|known| known.default_branch == branch);
            if policy.expires_millis.is_some() && is_default {
                let message = format!("{branch} is the default branch: it can't be removed");
                return Err(Error::invalid(Code::IllegalOperation, message));
            }
            transaction.validate(TreeId::SYSTEM, system::branch_key(name, branch));
            let key = system::policy_key(name, branch);
            transaction.put(TreeId::SYSTEM, key, TreeValue::inline(policy.encode()))?;
            Ok(Outcome::Commit(()))
        })
    }

    /// Deletes the branches whose time to live is over, with what they have not committed: the
    /// reflog still has it. Returns their names; none while the clock is doubted.
    ///
    /// # Errors
    /// As [`Repository::delete_branch`], of the first that can't be deleted: those before it are.
    pub fn remove_expired_branches(&self) -> Result<Vec<String>, Error> {
        let mut removed = Vec::new();
        let Some(now) = self.frond().expiry_millis() else { return Ok(removed) };
        for branch in self.list_branches()? {
            let policy = self.branch_policy(&branch.name)?;
            if policy.expires_millis.is_some_and(|expires| expires <= now) {
                self.delete_branch(&branch.name, true)?;
                removed.push(branch.name);
            }
        }
        Ok(removed)
    }
}
