//! Sessions' records: what a client's last write or transaction did, stored in the transaction that
//! did it.
//!
//! Only the record and its place: when a write is answered from it, [`crate::retry`] decides.

mod record;

use frond_engine::{Transaction, TreeId};
use frond_tree::Value;

use crate::error::Error;
use crate::system;

pub use record::FindAndModifyReport;
pub use record::{Record, Remembered, StatementDone};

/// The part of what is remembered that is the session's record.
pub(crate) const SESSION_PART: i32 = 0;

/// Names a write, or a transaction, of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetryKey {
    /// The session: sixteen bytes that the client made.
    pub session: [u8; 16],
    /// Rises from one write or transaction of the session to the next.
    pub number: i64,
}

/// Remembers, with the transaction, that it was committed.
pub(crate) fn put_committed(
    transaction: &mut Transaction,
    key: RetryKey,
    now_millis: i64,
) -> Result<(), Error> {
    let record = Record::new(key.number, now_millis);
    put(transaction, key, SESSION_PART, &Record { what: Remembered::Committed, ..record })
}

/// Stores a part of what is remembered.
pub(crate) fn put(
    transaction: &mut Transaction,
    key: RetryKey,
    part: i32,
    record: &Record,
) -> Result<(), Error> {
    let value = Value::inline(record.encode());
    Ok(transaction.put(TreeId::SYSTEM, system::session_key(key.session, part), value)?)
}
