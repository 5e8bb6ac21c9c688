//! The reflog: each change of a branch's ref is remembered, so that it can be undone.
//!
//! A record is `{from, to, why, time}`; `from` is absent before the first commit, `to` when the
//! branch was deleted. Its key ends with the Sequence of its transaction's snapshot. Two changes of
//! one ref never share that: the second would not have seen the first, and conflicts.

use bytes::Bytes;
use frond_doc::{DocumentBuilder, Value};
use frond_engine::{Transaction, TreeId};
use frond_tree::Value as TreeValue;

use crate::error::Error;
use crate::system;
use crate::version::CommitId;

/// A change of a ref.
pub(crate) struct RefChange<'a> {
    pub from: Option<CommitId>,
    pub to: Option<CommitId>,
    /// `commit: first`, in git's words.
    pub why: &'a str,
    pub time_millis: i64,
}

impl RefChange<'_> {
    /// Remembers the change with the transaction that makes it.
    pub fn log(
        &self,
        transaction: &mut Transaction,
        database: &str,
        branch: &str,
    ) -> Result<(), Error> {
        let sequence = transaction.snapshot().sequence().0;
        let key = system::reflog_key(database, branch, sequence);
        Ok(transaction.put(TreeId::SYSTEM, key, TreeValue::inline(self.encode()))?)
    }

    fn encode(&self) -> Bytes {
        let mut builder = DocumentBuilder::new();
        for (name, id) in [("from", self.from), ("to", self.to)] {
            if let Some(id) = id {
                system::append_bytes(&mut builder, name, system::SUBTYPE_GENERIC, &id.0);
            }
        }
        builder.append("why", Value::String(self.why));
        builder.append("time", Value::DateTime(self.time_millis));
        builder.build().into_bytes()
    }
}
