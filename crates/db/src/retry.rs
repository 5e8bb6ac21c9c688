//! Writes that a client sends again because it got no answer: done once, answered twice.
//!
//! A client numbers its writes within a session, and the statements of a write. The result of a
//! statement is stored in a record of the session, in the transaction of the write itself: so the
//! record is there exactly if the write is, after a crash too. A write whose number the record has
//! answers for each statement that is in it what it did the first time, and runs only the others.
//!
//! *Invariants*
//! 1. A session has one record, of its last number (and further parts of it, if the write has many
//!    statements). A client that uses a new number has the answers to all before it, so a lower one
//!    is refused, and the record of a new number replaces the old one.
//! 2. Only statements that changed something are remembered: any other may run again.
//! 3. The same write sent twice at once writes the same record, so one of the two conflicts, runs
//!    again and then finds the record.
//!
//! A transaction that was committed leaves a record too, so that its commit can be sent again.
//! Records that were not used for long are removed by [`Frond::forget_retries`]. Where documents
//! are erased, answers with parts of documents are forgotten ([`Frond::forget_answers`]), but not
//! that their writes were done: sent again, such a write is refused.

mod carried;
mod memory;

use bytes::Bytes;
use frond_doc::Value as BsonValue;
use frond_engine::{Durability, Transaction, TreeId};
use frond_query::Code;
use frond_tree::{Bounds, Direction, Value};

use crate::error::{Error, ErrorKind};
use crate::frond::Frond;
use crate::interrupt::Interrupt;
use crate::reader::Reader;
use crate::schema::TreeRef;
pub use crate::session::RetryKey;
pub(crate) use crate::session::{Record, Remembered, StatementDone};
use crate::session::{SESSION_PART, put};
use crate::system;
pub use carried::CarriedRecord;
pub(crate) use memory::Memory;

/// Old records are removed so many to a transaction.
const FORGET_BATCH: usize = 1_000;

/// A write that may be sent again.
#[derive(Clone, Debug)]
pub struct RetryableWrite {
    /// Names it.
    pub key: RetryKey,
    /// Names its statements.
    pub statements: StatementIds,
}

/// The ids of a write's statements.
#[derive(Clone, Debug)]
pub enum StatementIds {
    /// By this number and those after it.
    From(i32),
    /// One by one.
    Listed(Vec<i32>),
}

impl StatementIds {
    /// The name of the statement at `position`.
    pub fn at(&self, position: usize) -> i32 {
        let following =
            |first: i32| first.saturating_add(i32::try_from(position).unwrap_or(i32::MAX));
        match self {
            StatementIds::From(first) => following(*first),
            StatementIds::Listed(ids) => ids.get(position).copied().unwrap_or(following(0)),
        }
    }
}

impl RetryableWrite {
    /// Returns the record of this write: an empty one if it is new.
    ///
    /// # Errors
    /// `TransactionTooOld` if the session has gone on since.
    pub(crate) fn remembered(
        &self,
        frond: &Frond,
        transaction: &Transaction,
    ) -> Result<Record, Error> {
        let stored = self.stored(&Reader::within(frond.engine(), transaction))?;
        Ok(stored.unwrap_or_else(|| Record::new(self.key.number, frond.time_millis())))
    }

    /// The session's record, if it is of this write.
    fn stored(&self, reader: &Reader<'_>) -> Result<Option<Record>, Error> {
        let Some(stored) = read_bytes(reader, self.key, SESSION_PART)? else { return Ok(None) };
        // Mostly it is that of the number before: nothing else of it matters.
        if Record::number_of(&stored)? < self.key.number {
            return Ok(None);
        }
        let record = Record::decode(stored)?;
        check_not_too_old(&record, self.key)?;
        match record.what {
            Remembered::Committed => {
                let message = format!(
                    "number {} of this session was a transaction: autocommit must be false",
                    self.key.number
                );
                Err(Error::invalid(Code::InvalidOptions, message))
            }
            Remembered::Forgotten => Err(forgotten()),
            _ => Ok(Some(record)),
        }
    }

    /// Another part of the record, if it is of this write.
    fn stored_part(&self, reader: &Reader<'_>, part: i32) -> Result<Option<Record>, Error> {
        let Some(stored) = read_bytes(reader, self.key, part)? else { return Ok(None) };
        if Record::number_of(&stored)? != self.key.number {
            return Ok(None);
        }
        let record = Record::decode(stored)?;
        match record.what {
            Remembered::Forgotten => Err(forgotten()),
            _ => Ok(Some(record)),
        }
    }

    /// Remembers, with the transaction, what it did: all of it.
    pub(crate) fn remember(
        &self,
        transaction: &mut Transaction,
        record: &Record,
    ) -> Result<(), Error> {
        put(transaction, self.key, SESSION_PART, record)
    }
}

fn read(reader: &Reader<'_>, key: RetryKey) -> Result<Option<Record>, Error> {
    read_bytes(reader, key, SESSION_PART)?.map(Record::decode).transpose()
}

fn read_bytes(reader: &Reader<'_>, key: RetryKey, part: i32) -> Result<Option<Bytes>, Error> {
    let key = system::session_key(key.session, part);
    reader.get_bytes(TreeRef::Live(TreeId::SYSTEM), &key)
}

/// The error of a write that is sent again after its answer was erased.
fn forgotten() -> Error {
    let message = "this write was done, and its answer was erased since with other data \
                   (frondErase): read what it wrote instead of sending it again";
    Error::invalid(Code::IncompleteTransactionHistory, message)
}

fn check_not_too_old(record: &Record, key: RetryKey) -> Result<(), Error> {
    if key.number < record.number {
        let message = format!(
            "Retryable write with txnNumber {} is prohibited on this session because a newer \
             retryable write with txnNumber {} has already started on this session.",
            key.number, record.number
        );
        return Err(Error::invalid(Code::TransactionTooOld, message));
    }
    Ok(())
}

/// The state of a number of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumberState {
    /// Nothing: it is a new one.
    Unused,
    /// It was a write.
    Write,
    /// It was a transaction that was committed.
    Committed,
    /// The session has gone on to this one.
    Passed(i64),
}

impl Frond {
    /// Returns the state of a number of a session.
    ///
    /// # Errors
    /// `Damaged` if the session's record isn't one; as [`Reader::get`].
    pub fn number_state(&self, key: RetryKey) -> Result<NumberState, Error> {
        let Some(record) = read(&Reader::now(self.engine()), key)? else {
            return Ok(NumberState::Unused);
        };
        Ok(match record.what {
            _ if record.number < key.number => NumberState::Unused,
            _ if key.number < record.number => NumberState::Passed(record.number),
            Remembered::Committed => NumberState::Committed,
            _ => NumberState::Write,
        })
    }

    /// Removes what is remembered of sessions that were not used since `before_millis`; returns how
    /// many.
    ///
    /// # Errors
    /// `Damaged` if a record isn't one; as a commit, one for each batch: those before it stay
    /// removed.
    pub fn forget_retries(&self, before_millis: i64) -> Result<u64, Error> {
        let reader = Reader::now(self.engine());
        let place = TreeRef::Live(TreeId::SYSTEM);
        let bounds = Bounds::prefix(&system::sessions_prefix());
        let mut old: Vec<Bytes> = Vec::new();
        let mut count = 0;
        for entry in reader.range(place, bounds, Direction::Ascending)? {
            let entry = entry?;
            if last_use(reader.read(&entry.value)?)? < before_millis {
                old.push(entry.key);
            }
            if old.len() == FORGET_BATCH {
                count += self.forget(&mut old, before_millis)?;
            }
        }
        Ok(count + self.forget(&mut old, before_millis)?)
    }

    /// Forgets the answers to writes that have parts of documents; returns how many. That the
    /// writes were done stays known, and that transactions were committed.
    ///
    /// # Errors
    /// `Damaged` if a record isn't one; as a commit, one for each batch: those before it stay
    /// forgotten.
    pub fn forget_answers(&self) -> Result<u64, Error> {
        let reader = Reader::now(self.engine());
        let place = TreeRef::Live(TreeId::SYSTEM);
        let bounds = Bounds::prefix(&system::sessions_prefix());
        let mut answers: Vec<Bytes> = Vec::new();
        for entry in reader.range(place, bounds, Direction::Ascending)? {
            let entry = entry?;
            if Record::decode(reader.read(&entry.value)?)?.forget_answer() {
                answers.push(entry.key);
            }
        }
        let mut count = 0;
        for some in answers.chunks(FORGET_BATCH) {
            count += self.forget_answers_of(some)?;
        }
        Ok(count)
    }

    /// Forgets the answers in some records, as they are by now.
    fn forget_answers_of(&self, keys: &[Bytes]) -> Result<u64, Error> {
        loop {
            let mut transaction = self.engine().begin();
            transaction.give_back();
            let mut count = 0;
            for key in keys {
                let Some(value) = transaction.get(TreeId::SYSTEM, key)? else { continue };
                let mut record = Record::decode(transaction.read(&value)?)?;
                if record.forget_answer() {
                    let value = Value::inline(record.encode());
                    transaction.put(TreeId::SYSTEM, key.clone(), value)?;
                    count += 1;
                }
            }
            match self.commit(transaction, Durability::Synced, &Interrupt::default()) {
                Ok(()) => return Ok(count),
                // Their clients have gone on meanwhile.
                Err(error) if error.kind == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes records, but those that were used meanwhile. A conflict leaves them for the next
    /// time.
    fn forget(&self, keys: &mut Vec<Bytes>, before_millis: i64) -> Result<u64, Error> {
        let mut transaction = self.engine().begin();
        transaction.give_back();
        let mut count = 0;
        for key in keys.drain(..) {
            let Some(value) = transaction.get(TreeId::SYSTEM, &key)? else { continue };
            if last_use(transaction.read(&value)?)? < before_millis {
                transaction.delete(TreeId::SYSTEM, key)?;
                count += 1;
            }
        }
        match self.commit(transaction, Durability::Relaxed, &Interrupt::default()) {
            Ok(()) => Ok(count),
            Err(error) if error.kind == ErrorKind::Conflict => Ok(0),
            Err(error) => Err(error),
        }
    }
}

/// Returns when a record was used last, without reading the rest of it.
fn last_use(record: Bytes) -> Result<i64, Error> {
    let record = system::record(record)?;
    system::field(&record, "used", |value| match value {
        BsonValue::DateTime(millis) => Some(millis),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
