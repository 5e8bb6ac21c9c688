//! The time: the reading of the machine's clock, and how far it is believed.
//!
//! A clock that is wrong must not delete anything. So there are three questions:
//!
//! - [`Frond::now_millis`]: what does the clock say? For what clients see of it and write by it
//!   (`$$NOW`, `$currentDate`, ObjectIds), as with MongoDB.
//! - [`Frond::time_millis`]: what time is it most likely? For what is recorded: commits, reflog,
//!   retry records, and (by way of the engine) Sequences. A clock that leaps isn't followed: time
//!   goes on from what was believed last.
//! - [`Frond::expiry_millis`]: may things expire, and by what time? `None` while the clock is
//!   doubted.
//!
//! The believed time is recorded in the system tree, once in [`RECORD_MILLIS`] and when the
//! directory is closed, so that an opening knows it; [`crate::clock`] decides what is believed. A
//! record names the last Sequence, too: one that lies later by its second was given out later, by a
//! clock that was believed. So a process that was killed leaves off where it wrote last.

use std::sync::PoisonError;

use frond_doc::extended_json::{self, Form};
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_engine::{Durability, TreeId};
use frond_query::Code;
use frond_tree::Value as TreeValue;

use crate::clock::Known;
use crate::error::Error;
use crate::frond::{Frond, Notice};
use crate::interrupt::Interrupt;
use crate::reader::Reader;
use crate::schema::TreeRef;
use crate::system;

/// The age that a record may have, compared with the believed time.
const RECORD_MILLIS: i64 = 3_600_000;
/// A Sequence is later than the record beside it where it is by so many seconds: openings skip
/// some, too.
const LATER_SECONDS: u64 = 60;
const MICROS_PER_MILLI: i64 = 1_000;
const MILLIS_PER_SECOND: i64 = 1_000;

/// The clock's reading and the believed time, in milliseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClockState {
    /// The reading of the machine's clock.
    pub clock_millis: i64,
    /// The believed time: commits record it.
    pub believed_millis: i64,
    /// Whether the clock is doubted: nothing expires.
    pub is_doubted: bool,
}

impl ClockState {
    /// A line for an operator.
    pub fn describe(&self) -> String {
        let clock = date(self.clock_millis);
        if !self.is_doubted {
            return format!("{clock}, believed");
        }
        let believed = date(self.believed_millis);
        let off = self.clock_millis.saturating_sub(self.believed_millis);
        let direction = if off < 0 { "behind" } else { "ahead of" };
        let days = off.unsigned_abs() / (24 * 3600 * 1_000);
        format!(
            "the clock says {clock}, {days} days {direction} what it was by all that is known \
             ({believed}): nothing expires until it is right again, or accepted by frond doctor --accept-clock"
        )
    }
}

/// A date as ISO 8601 has it; the number where it has none.
fn date(millis: i64) -> String {
    let mut text = String::new();
    extended_json::write_value(Value::DateTime(millis), Form::Relaxed, &mut text);
    text.trim_start_matches("{\"$date\":").trim_end_matches('}').to_owned()
}

impl Frond {
    /// Now, by the machine's clock: milliseconds since 1970. Any number.
    pub fn now_millis(&self) -> i64 {
        self.clock().wall_micros().div_euclid(MICROS_PER_MILLI)
    }

    /// Returns the clock that [`Frond::now_millis`] reads, for owners that outlive this or that it
    /// owns: a server's log.
    pub fn wall_clock(&self) -> impl Fn() -> i64 + Send + Sync + use<> {
        let clock = self.shared_clock();
        move || clock.wall_micros().div_euclid(MICROS_PER_MILLI)
    }

    /// Returns the time to record: that of the clock, unless it is doubted. Milliseconds since
    /// 1970.
    pub fn time_millis(&self) -> i64 {
        self.clock().look().believed_micros.div_euclid(MICROS_PER_MILLI)
    }

    /// Returns the time before which documents may expire; `None` while the clock is doubted:
    /// nothing may.
    pub fn expiry_millis(&self) -> Option<i64> {
        let belief = self.clock().look();
        let millis = belief.believed_micros.div_euclid(MICROS_PER_MILLI);
        (!belief.is_doubted).then_some(millis)
    }

    /// Milliseconds since some moment: for how long things take.
    pub fn steady_millis(&self) -> i64 {
        self.clock().steady().div_euclid(MICROS_PER_MILLI)
    }

    /// Returns the clock's reading and the believed time.
    pub fn clock_state(&self) -> ClockState {
        let belief = self.clock().look();
        ClockState {
            clock_millis: belief.wall_micros.div_euclid(MICROS_PER_MILLI),
            believed_millis: belief.believed_micros.div_euclid(MICROS_PER_MILLI),
            is_doubted: belief.is_doubted,
        }
    }

    /// Believes the clock as it stands now, from now on.
    ///
    /// # Errors
    /// `BadValue` if it says no year from 1970 to 9999.
    pub fn accept_clock(&self) -> Result<ClockState, Error> {
        if !self.clock().accept() {
            let message = "the clock says no year from 1970 to 9999: set it first";
            return Err(Error::invalid(Code::BadValue, message));
        }
        self.record_clock()?;
        Ok(self.clock_state())
    }

    /// Records what is believed if that was long ago, and reports when doubts begin or end. Costs
    /// little when there is nothing to do; to be called from time to time.
    ///
    /// # Errors
    /// An error of writing.
    pub fn keep_clock(&self) -> Result<(), Error> {
        let state = self.clock_state();
        let mut recorded = self.clock_records().lock().unwrap_or_else(PoisonError::into_inner);
        let reported = std::mem::replace(&mut recorded.reported_doubt, state.is_doubted);
        let before = recorded.known;
        drop(recorded);
        if reported != state.is_doubted {
            self.notice(Notice::Warning, &format!("clock: {}", state.describe()));
        }
        let Some(known) = self.clock().known() else { return Ok(()) };
        let is_kept = before.is_some_and(|before| {
            let off = known.believed_micros.abs_diff(before.believed_micros);
            known.doubted_micros == before.doubted_micros
                && off < RECORD_MILLIS.unsigned_abs() * MICROS_PER_MILLI.unsigned_abs()
        });
        if is_kept { Ok(()) } else { self.record_clock() }
    }

    /// Records what is believed.
    fn record_clock(&self) -> Result<(), Error> {
        let Some(known) = self.clock().known() else { return Ok(()) };
        let mut record = DocumentBuilder::new();
        record
            .append("time", Value::DateTime(known.believed_micros.div_euclid(MICROS_PER_MILLI)))
            .append("sequence", Value::Int64(self.engine().visible().0.cast_signed()));
        if let Some(doubted) = known.doubted_micros {
            record.append("doubted", Value::DateTime(doubted.div_euclid(MICROS_PER_MILLI)));
        }
        let mut transaction = self.engine().begin();
        transaction.give_back(); // Some bytes an hour, by which things expire.
        let value = TreeValue::inline(record.build().into_bytes());
        transaction.put(TreeId::SYSTEM, system::clock_key(), value)?;
        self.commit(transaction, Durability::Synced, &Interrupt::default())?;
        let mut recorded = self.clock_records().lock().unwrap_or_else(PoisonError::into_inner);
        recorded.known = Some(known);
        Ok(())
    }

    /// Begins with what the processes before have recorded.
    pub(crate) fn begin_clock(&self) -> Result<(), Error> {
        let reader = Reader::now(self.engine());
        let visible = self.engine().visible();
        let stored = reader.get_bytes(TreeRef::Live(TreeId::SYSTEM), &system::clock_key())?;
        let by_sequence = i64::try_from(visible.seconds()).unwrap_or(i64::MAX);
        let by_sequence = by_sequence.saturating_mul(MILLIS_PER_SECOND * MICROS_PER_MILLI);
        let Some(stored) = stored else {
            let known = Known { believed_micros: by_sequence, doubted_micros: None };
            self.clock().begin((visible.seconds() > 0).then_some(known));
            return Ok(());
        };
        let record = system::record(stored)?;
        let (mut known, seconds) = decode(&record)?;
        if seconds.saturating_add(LATER_SECONDS) < visible.seconds() {
            known.believed_micros = known.believed_micros.max(by_sequence);
        }
        self.clock().begin(Some(known));
        let mut recorded = self.clock_records().lock().unwrap_or_else(PoisonError::into_inner);
        recorded.known = Some(known);
        Ok(())
    }
}

/// Decodes a record, and the second of its Sequence.
fn decode(record: &DocumentBuf) -> Result<(Known, u64), Error> {
    let micros = |value: Value<'_>| match value {
        Value::DateTime(millis) => Some(millis.saturating_mul(MICROS_PER_MILLI)),
        _ => None,
    };
    let number = |value: Value<'_>| match value {
        Value::Int64(number) => Some(number.cast_unsigned()),
        _ => None,
    };
    let known = Known {
        believed_micros: system::field(record, "time", micros)?,
        doubted_micros: record.get("doubted").and_then(micros),
    };
    let sequence = frond_engine::Sequence(system::field(record, "sequence", number)?);
    Ok((known, sequence.seconds()))
}
