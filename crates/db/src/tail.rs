//! The last records of transactions' events, decoded once for all streams that read at the log's
//! end.
//!
//! 1. The *tail* has everything that was recorded in a row of Sequences, `from` to `to`. A stream
//!    in it takes its next record from here; one behind it reads the log by itself until it has
//!    caught up; one ahead of it, where no stream has read for a while, begins a new tail.
//! 2. The stream that comes to its end first reads on, for all.
//! 3. A stream passes over what doesn't concern it while it has the lock: a thousand streams that
//!    watch one collection pass over what is written to others when they are woken, each of them.
//! 4. It takes so many bytes at most, and none where there is no stream.
//!
//! *Thread safety*: one lock, held while the log is read: the others need the same record.

pub(crate) mod record;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use frond_engine::{Changes, ChangesError, Engine, Sequence};

use crate::error::Error;
use record::Record;

/// The number of transactions, without events or with others than are wanted, after which a caller
/// may have to look at something else.
const SILENT_MAX: usize = 1_000;
/// The same in bytes that were read for it.
const SILENT_BYTES_MAX: u64 = 1 << 20;

/// The bytes it takes unless there is less memory.
pub(crate) const TAIL_BYTES: u64 = 32 << 20;

/// See the module.
pub(crate) struct Tail {
    bytes_max: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    from: Sequence,
    to: Sequence,
    records: VecDeque<Arc<Record>>,
    bytes: u64,
    /// Reads on behind `to`; `None`: nothing was read yet.
    changes: Option<Changes>,
    readers: usize,
}

/// The records behind a Sequence.
pub(crate) enum Next {
    /// The record of a transaction's events.
    Record(Arc<Record>),
    /// Nothing that is wanted, up to this Sequence.
    Nothing(Sequence),
    /// It isn't here any more: the log may have it.
    Behind,
}

/// The reason why the log can't be read.
pub(crate) enum TailError {
    /// The next record isn't kept any more.
    Log(ChangesError),
    /// It can't be decoded.
    Record(Error),
}

impl From<ChangesError> for TailError {
    fn from(error: ChangesError) -> TailError {
        TailError::Log(error)
    }
}

/// A stream that may read the tail, until it is dropped.
pub(crate) struct TailReader(Arc<Tail>);

impl Tail {
    /// An empty one, of at most so many bytes.
    pub fn new(bytes_max: u64) -> Arc<Tail> {
        Arc::new(Tail { bytes_max, state: Mutex::default() })
    }

    /// Returns a reader for one more stream.
    pub fn reader(self: &Arc<Tail>) -> TailReader {
        self.state().readers += 1;
        TailReader(Arc::clone(self))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while a record is decoded leaves the tail as it was before.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TailReader {
    /// Returns the next record behind `after`.
    ///
    /// # Errors
    /// The reason why the log can't be read.
    pub fn next(&self, engine: &Engine, after: Sequence) -> Result<Next, TailError> {
        self.next_wanted(engine, after, |_| true)
    }

    /// Returns the next record behind `after` that `is_wanted`; `Nothing` also where it passed over
    /// many others.
    ///
    /// # Errors
    /// The reason why the log can't be read.
    pub fn next_wanted(
        &self,
        engine: &Engine,
        after: Sequence,
        is_wanted: impl Fn(&Record) -> bool,
    ) -> Result<Next, TailError> {
        // Records that were erased, or given up to free the disk, aren't returned from memory
        // either.
        engine.changes(after).check()?;
        let mut state = self.0.state();
        if state.changes.is_none() || state.to < after {
            state.begin(engine.changes(after), after);
        }
        if after < state.from {
            return Ok(Next::Behind);
        }
        let place = state.records.partition_point(|record| record.sequence <= after);
        for (passed, record) in state.records.range(place..).enumerate() {
            if is_wanted(record) {
                return Ok(Next::Record(Arc::clone(record)));
            }
            if passed == SILENT_MAX {
                return Ok(Next::Nothing(record.sequence));
            }
        }
        let read = state.read_on(self.0.bytes_max, is_wanted);
        if read.is_err() {
            state.clear();
        }
        read
    }
}

impl Drop for TailReader {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.readers -= 1;
        if state.readers == 0 {
            state.clear();
        }
    }
}

impl State {
    fn begin(&mut self, changes: Changes, after: Sequence) {
        self.clear();
        (self.from, self.to, self.changes) = (after, after, Some(changes));
    }

    fn clear(&mut self) {
        self.records = VecDeque::new();
        (self.bytes, self.changes) = (0, None);
    }

    /// Reads the next record that is wanted behind the end.
    fn read_on(
        &mut self,
        bytes_max: u64,
        is_wanted: impl Fn(&Record) -> bool,
    ) -> Result<Next, TailError> {
        let Some(changes) = &mut self.changes else { return Ok(Next::Nothing(self.to)) };
        let mut bytes = 0;
        for _ in 0..SILENT_MAX {
            let Some(logged) = changes.next_record()? else {
                self.to = changes.position();
                break;
            };
            self.to = logged.sequence;
            if logged.events.is_empty() {
                continue;
            }
            let record = Arc::new(Record::decode(&logged).map_err(TailError::Record)?);
            self.records.push_back(Arc::clone(&record));
            self.bytes += record.bytes;
            while bytes_max < self.bytes
                && let Some(oldest) = self.records.pop_front()
            {
                self.bytes -= oldest.bytes;
                self.from = oldest.sequence;
            }
            if is_wanted(&record) {
                return Ok(Next::Record(record));
            }
            bytes += record.bytes;
            if SILENT_BYTES_MAX <= bytes {
                break;
            }
        }
        Ok(Next::Nothing(self.to))
    }
}
