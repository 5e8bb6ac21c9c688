//! What may be done to a branch: protection, and a time after which it goes.
//!
//! - A *protected* branch only moves forward: no reset to what isn't ahead, no amending, no rebase, no
//!   deletion, no push by force. Its documents can be written, and committed.
//! - A branch with a time to live can be removed by [`Database::remove_expired_branches`] once it is over.
//!
//! The policy is one record, `{protected, expires}`, local to the data directory as refs are.

use bytes::Bytes;
use frond_doc::{DocumentBuilder, Value};
use frond_engine::{Durability, Transaction, TreeId};
use frond_query::Code;
use frond_tree::Value as TreeValue;

use crate::contention::{Outcome, Role, Scope};
use crate::database::{self, Database};
use crate::error::Error;
use crate::reader::{Reader, TreePlace};
use crate::system;
use crate::version::history;
use crate::version::state::BranchState;

/// What may be done to a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BranchPolicy {
    /// It only moves forward, and isn't deleted.
    pub protected: bool,
    /// When it may be removed: milliseconds since 1970.
    pub expires_millis: Option<i64>,
}

impl BranchPolicy {
    fn encode(&self) -> Bytes {
        let mut builder = DocumentBuilder::new();
        builder.append("protected", Value::Boolean(self.protected));
        if let Some(expires) = self.expires_millis {
            builder.append("expires", Value::DateTime(expires));
        }
        builder.build().into_bytes()
    }

    fn decode(bytes: Bytes) -> Result<BranchPolicy, Error> {
        let record = system::record(bytes)?;
        let flag = |value: Value<'_>| match value {
            Value::Boolean(flag) => Some(flag),
            _ => None,
        };
        let expires_millis = match record.get("expires") {
            Some(Value::DateTime(millis)) => Some(millis),
            _ => None,
        };
        Ok(BranchPolicy { protected: system::field(&record, "protected", flag)?, expires_millis })
    }
}

/// The policy of a branch.
pub(crate) fn read(
    reader: &Reader<'_>,
    database: &str,
    branch: &str,
) -> Result<BranchPolicy, Error> {
    let key = system::policy_key(database, branch);
    let record = reader.get_bytes(TreePlace::Live(TreeId::SYSTEM), &key)?;
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
    /// The policy of a branch.
    ///
    /// # Errors
    /// `NamespaceNotFound` if there is no such branch.
    pub fn branch_policy(&self, branch: &str) -> Result<BranchPolicy, Error> {
        let reader = self.reader();
        let name = self.repository_name();
        if database::branch_ref(&reader, name, branch)?.is_none() {
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
        self.frond().transact(scope, Role::Writer, Durability::Synced, |transaction| {
            let is_there = {
                let reader = Reader::within(self.frond().engine(), transaction);
                database::branch_ref(&reader, name, branch)?.is_some()
            };
            if !is_there {
                return Err(history::no_branch(name, branch));
            }
            transaction.validate(TreeId::SYSTEM, system::branch_key(name, branch));
            let key = system::policy_key(name, branch);
            transaction.put(TreeId::SYSTEM, key, TreeValue::inline(policy.encode()))?;
            Ok(Outcome::Commit(()))
        })
    }

    /// Deletes the branches whose time to live is over, with what they have not committed: the
    /// reflog still has it. Returns their names.
    pub fn remove_expired_branches(&self) -> Result<Vec<String>, Error> {
        let now = self.frond().now_millis();
        let mut removed = Vec::new();
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
