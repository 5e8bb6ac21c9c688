//! What may be done to a branch: protection, and a time after which it goes.
//!
//! - A *protected* branch only moves forward: no reset to what isn't ahead, no amending, no rebase, no
//!   deletion, no push by force. Its documents can be written, and committed.
//! - A *closed* branch takes no direct writes: nothing inserts, updates or removes its documents, changes
//!   its collections, or makes commits of its own on it (pick, revert, restore). It changes by merges,
//!   with what resolves their conflicts, and by pulls.
//! - A branch with a time to live can be removed by [`Database::remove_expired_branches`] once it is over;
//!   a server does so by itself.
//!
//! The policy is one record, `{protected, closed, expires}`, local to the data directory as refs are.

use bytes::Bytes;
use frond_doc::{DocumentBuilder, Value};
use frond_engine::{Durability, Transaction, TreeId};
use frond_query::Code;
use frond_tree::Value as TreeValue;

use crate::contention::{LatchMode, Scope};
use crate::database::Database;
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::TreeRef;
use crate::transact::Outcome;
use crate::version::history;
use crate::version::state::BranchState;
use crate::{refs, system};

/// What may be done to a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BranchPolicy {
    /// It only moves forward, and isn't deleted.
    pub protected: bool,
    /// It takes no direct writes.
    pub closed: bool,
    /// When it may be removed: milliseconds since 1970.
    pub expires_millis: Option<i64>,
}

impl BranchPolicy {
    fn encode(&self) -> Bytes {
        let mut builder = DocumentBuilder::new();
        builder.append("protected", Value::Boolean(self.protected));
        if self.closed {
            builder.append("closed", Value::Boolean(true));
        }
        if let Some(expires) = self.expires_millis {
            builder.append("expires", Value::DateTime(expires));
        }
        builder.build().into_bytes()
    }

    /// Reads a stored record.
    pub(crate) fn decode(bytes: Bytes) -> Result<BranchPolicy, Error> {
        let record = system::record(bytes)?;
        let flag = |value: Value<'_>| match value {
            Value::Boolean(flag) => Some(flag),
            _ => None,
        };
        let expires_millis = match record.get("expires") {
            Some(Value::DateTime(millis)) => Some(millis),
            _ => None,
        };
        Ok(BranchPolicy {
            protected: system::field(&record, "protected", flag)?,
            closed: record.get("closed").and_then(flag).unwrap_or_default(),
            expires_millis,
        })
    }
}

/// The policy of a branch.
pub(crate) fn read(
    reader: &Reader<'_>,
    database: &str,
    branch: &str,
) -> Result<BranchPolicy, Error> {
    let key = system::policy_key(database, branch);
    let record = reader.get_bytes(TreeRef::Live(TreeId::SYSTEM), &key)?;
    record.map_or(Ok(BranchPolicy::default()), BranchPolicy::decode)
}

impl BranchState {
    /// Refuses what a protected branch must not suffer; conflicts with who protects it meanwhile.
    ///
    /// # Errors
    /// `IllegalOperation`.
    pub fn refuse_protected(
        &self,
        transaction: &mut Transaction,
        database: &Database,
        what: &str,
    ) -> Result<(), Error> {
        let policy = {
            let reader = Reader::within(database.frond().engine(), transaction);
            read(&reader, &self.database, &self.branch)?
        };
        let key = system::policy_key(&self.database, &self.branch);
        transaction.validate(TreeId::SYSTEM, key);
        if !policy.protected {
            return Ok(());
        }
        let message = format!(
            "{what} is not possible: branch {} is protected and only moves forward",
            self.branch
        );
        Err(Error::invalid(Code::IllegalOperation, message))
    }
}

impl Database {
    /// Refuses direct writes to a branch that takes none; conflicts with who closes it meanwhile.
    /// Costs nothing in a data directory without such branches.
    ///
    /// # Errors
    /// `UserWritesBlocked`.
    pub(crate) fn refuse_closed(&self, transaction: &mut Transaction) -> Result<(), Error> {
        let Some(branch) = self.branch().filter(|_| self.frond().written().some_closed()) else {
            return Ok(());
        };
        let policy = {
            let reader = Reader::within(self.frond().engine(), transaction);
            read(&reader, self.repository_name(), branch)?
        };
        transaction.validate(TreeId::SYSTEM, system::policy_key(self.repository_name(), branch));
        if !policy.closed {
            return Ok(());
        }
        let message = format!("branch {branch} takes no direct writes: merge into it");
        Err(Error::invalid(Code::UserWritesBlocked, message))
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

    /// Changes the policy of a branch.
    ///
    /// # Errors
    /// `NamespaceNotFound` if there is no such branch.
    pub fn set_branch_policy(&self, branch: &str, policy: BranchPolicy) -> Result<(), Error> {
        let name = self.repository_name();
        let scope = Scope::branch(name, branch);
        if policy.closed {
            // From now on every write looks; those that began before are of the time before.
            self.frond().written().note_closed();
        }
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
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
