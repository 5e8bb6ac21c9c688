//! The record of the statements of one write, in parts.
//!
//! The statements whose numbers divided by [`PART_STATEMENTS`] are equal share a part, and each
//! part is a record of its own: so a write of a hundred thousand statements, which is done in many
//! transactions, stores each part once or twice instead of all it has done with each transaction.
//! The part that begins at zero is the session's record itself: it has the session's last number.
//! Another part counts only if its number is that one; one that was left by an earlier number is
//! written over, or forgotten once it is old, as all records are.

use std::collections::BTreeMap;
use std::ops::Range;

use frond_engine::Transaction;

use super::{Record, RetryableWrite, StatementDone};
use crate::error::Error;
use crate::frond::Frond;
use crate::reader::Reader;
use crate::session::SESSION_PART;

/// Statements of a part.
const PART_STATEMENTS: i32 = 1_000;

/// The parts that some statements of a write need.
pub(crate) struct Memory<'a> {
    write: &'a RetryableWrite,
    parts: BTreeMap<i32, Part>,
}

struct Part {
    record: Record,
    /// Whether there is more in it than is stored.
    changed: bool,
}

impl RetryableWrite {
    /// Returns the record of the statements at some positions.
    ///
    /// # Errors
    /// `TransactionTooOld` if the session has gone on since.
    pub(crate) fn memory(
        &self,
        frond: &Frond,
        transaction: &Transaction,
        positions: Range<usize>,
    ) -> Result<Memory<'_>, Error> {
        let reader = Reader::within(frond.engine(), transaction);
        let now_millis = frond.time_millis();
        let stored = self.stored(&reader)?;
        // The session's record must hold the number of the write, whatever part its statements are
        // in.
        let changed = stored.is_none();
        let record = stored.unwrap_or_else(|| Record::new(self.key.number, now_millis));
        let mut parts = BTreeMap::from([(SESSION_PART, Part { record, changed })]);
        for position in positions {
            let part = self.statements.at(position).div_euclid(PART_STATEMENTS);
            if parts.contains_key(&part) {
                continue;
            }
            let record = self.stored_part(&reader, part)?;
            let record = record.unwrap_or_else(|| Record::new(self.key.number, now_millis));
            parts.insert(part, Part { record, changed: false });
        }
        Ok(Memory { write: self, parts })
    }
}

impl Memory<'_> {
    /// Returns the result of the statement `id`, if it was run.
    pub fn statement(&self, id: i32) -> Option<&StatementDone> {
        self.parts.get(&id.div_euclid(PART_STATEMENTS))?.record.statement(id)
    }

    /// Adds what the statement `id`, which is one of those asked for, did.
    pub fn add(&mut self, id: i32, done: &StatementDone) {
        if let Some(part) = self.parts.get_mut(&id.div_euclid(PART_STATEMENTS)) {
            part.record.add(id, done);
            part.changed = true;
        }
    }

    /// Remembers, with the transaction, what was added.
    ///
    /// # Errors
    /// As the transaction's `put`.
    pub fn store(&self, transaction: &mut Transaction) -> Result<(), Error> {
        if self.parts.iter().all(|(part, of)| !of.changed || is_empty_session(*part, of)) {
            return Ok(());
        }
        for (part, of) in self.parts.iter().filter(|(_, of)| of.changed) {
            super::put(transaction, self.write.key, *part, &of.record)?;
        }
        Ok(())
    }
}

/// Whether a part is a new session's record without statements: not worth writing on its own.
fn is_empty_session(part: i32, of: &Part) -> bool {
    part == SESSION_PART && of.record.is_empty()
}
