//! The policy of a branch: protection, and a time after which it is deleted.
//!
//! - A *protected* branch only moves forward: no reset to a commit that isn't ahead, no amending,
//!   no rebase, no deletion, also with its database, no push by force. Its documents can be
//!   written, and committed.
//! - A *closed* branch takes no direct writes: nothing inserts, updates or removes its documents,
//!   changes its collections, or makes commits of its own on it (pick, revert, restore). It changes
//!   by merges, with what resolves their conflicts, and by pulls.
//! - A branch with a time to live can be removed by `Database::remove_expired_branches` once it is
//!   over; a server does so by itself.
//!
//! The policy is one record, `{protected, closed, expires}`, local to the data directory as refs
//! are.

use bytes::Bytes;
use frond_doc::{DocumentBuilder, Value};
use frond_engine::TreeId;
use frond_query::Code;

use crate::error::Error;
use crate::reader::Reader;
use crate::schema::TreeRef;
use crate::system;

/// The policy of a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BranchPolicy {
    /// It only moves forward, and isn't deleted.
    pub protected: bool,
    /// It takes no direct writes.
    pub closed: bool,
    /// The time when it may be removed: milliseconds since 1970.
    pub expires_millis: Option<i64>,
}

impl BranchPolicy {
    /// The record to store.
    pub fn encode(&self) -> Bytes {
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
    ///
    /// # Errors
    /// `Damaged` if it is none.
    pub fn decode(bytes: Bytes) -> Result<BranchPolicy, Error> {
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

/// Refuses what a protected branch must not suffer.
///
/// # Errors
/// `IllegalOperation` if the branch is protected.
pub fn refuse_protected(policy: &BranchPolicy, branch: &str, what: &str) -> Result<(), Error> {
    if !policy.protected {
        return Ok(());
    }
    let message = format!(
        "{what} is not possible: branch {branch} is protected and only moves forward; take its \
         protection away first (frond branch --unprotect, frondBranch with protected: false)"
    );
    Err(Error::invalid(Code::IllegalOperation, message))
}

/// The policy of a branch.
///
/// # Errors
/// As [`BranchPolicy::decode`]; as [`Reader::get`].
pub fn read(reader: &Reader<'_>, database: &str, branch: &str) -> Result<BranchPolicy, Error> {
    let key = system::policy_key(database, branch);
    let record = reader.get_bytes(TreeRef::Live(TreeId::SYSTEM), &key)?;
    record.map_or(Ok(BranchPolicy::default()), BranchPolicy::decode)
}
