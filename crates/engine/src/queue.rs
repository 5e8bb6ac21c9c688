//! Where transactions line up: what the commit lock guards.
//!
//! *Invariants*
//! 1. `visible <= last_live <= last` and `durable <= written <= last_live`.
//! 2. `pending` ascends by Sequence; what is in it is not written.
//! 3. Every Sequence above `visible` and up to `last_live` is pending, or in the hands of the
//!    leader (`writer` is absent then), or written and waits for a sync.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use frond_store::StoreError;

use crate::conflict::{Beginning, ConflictTable, Subject};
use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::log::format::SegmentNumber;
use crate::log::record::Record;
use crate::log::writer::{PendingRecord, Writer, WriterCounters};
use crate::overlay::memtable::Memtable;

/// An opening skips so many Sequences: relaxed transactions that a crash took had greater ones than
/// the last that is found, and theirs must not be given out again. So that this holds over several
/// openings too, the first transaction of each is synced before it becomes visible.
const SEQUENCES_SKIPPED: u64 = 1 << 20;

/// Where transactions line up.
pub(crate) struct Queue {
    pub conflicts: ConflictTable,
    /// The memtable of the State's that takes writes.
    pub active: Arc<Memtable>,
    /// The segment that takes records, and how much it took.
    pub segment: SegmentNumber,
    pub segment_bytes: u64,
    /// The last Sequence found by the opening.
    pub found: Sequence,
    /// The last Sequence given out.
    pub last: Sequence,
    /// The last one given out and not refused.
    pub last_live: Sequence,
    /// The last one that is visible.
    pub visible: Sequence,
    /// The last one that is written.
    pub written: Sequence,
    /// The last one that is durable.
    pub durable: Sequence,
    /// Records that wait for a leader.
    pub pending: Vec<PendingRecord>,
    pub pending_bytes: usize,
    /// Absent while a leader uses it.
    pub writer: Option<Writer>,
    pub writer_counters: WriterCounters,
    /// Why transactions were refused; each is told once.
    pub refused: HashMap<Sequence, Refusal>,
    /// What the disk said when it was full, until it takes writes again.
    pub disk_full: Option<Refusal>,
    /// Why no more writes are taken.
    pub closed: Option<String>,
}

/// What a full disk said; told to everyone who waited for it.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    file: String,
    kind: io::ErrorKind,
    message: String,
}

impl Refusal {
    /// Keeps what an error says.
    pub fn new(error: &StoreError) -> Refusal {
        let (file, kind, message) = match error {
            StoreError::Io { file, source } => (file.clone(), source.kind(), source.to_string()),
            other => ("the store".to_owned(), io::ErrorKind::Other, other.to_string()),
        };
        Refusal { file, kind, message }
    }

    /// The error again.
    pub fn error(&self) -> EngineError {
        let source = io::Error::new(self.kind, self.message.clone());
        StoreError::io(self.file.clone(), source).into()
    }
}

impl Queue {
    /// A queue behind a log that ends with the transaction `last`.
    pub fn new(
        writer: Writer,
        segment: SegmentNumber,
        active: Arc<Memtable>,
        last: Sequence,
        conflict_seed: u64,
    ) -> Queue {
        Queue {
            conflicts: ConflictTable::new(conflict_seed),
            active,
            segment,
            segment_bytes: 0,
            found: last,
            last: Sequence(last.0.saturating_add(SEQUENCES_SKIPPED)),
            last_live: last,
            visible: last,
            written: last,
            durable: last,
            pending: Vec::new(),
            pending_bytes: 0,
            writer: Some(writer),
            writer_counters: WriterCounters::default(),
            refused: HashMap::new(),
            disk_full: None,
            closed: None,
        }
    }

    /// Checks invariants 1 and 2.
    pub fn check(&self) -> Result<(), String> {
        let in_order = self.visible <= self.last_live
            && self.last_live <= self.last
            && self.durable <= self.written
            && self.written <= self.last_live;
        if !in_order {
            return Err("the queue's Sequences are not in order".to_owned());
        }
        if !self.pending.is_sorted_by(|left, right| left.sequence < right.sequence)
            || self.pending.last().is_some_and(|last| self.last_live < last.sequence)
        {
            return Err("the pending records are not in order".to_owned());
        }
        Ok(())
    }

    /// Fails if the engine is closed.
    pub fn check_open(&self) -> Result<(), EngineError> {
        self.closed.as_ref().map_or(Ok(()), |reason| Err(EngineError::Closed(reason.clone())))
    }

    /// Fails if the transaction conflicts with one that was committed since its beginning. Where a
    /// tree got another base, or was dropped, the transaction may have meant the one before: even
    /// one that has read nothing conflicts with that.
    pub fn check_conflicts(
        &self,
        beginning: Beginning,
        record: &Record,
        validated: &[(TreeId, Vec<u8>)],
    ) -> Result<(), EngineError> {
        let conflicts = &self.conflicts;
        let since = beginning.sequence;
        let conflict = |tree, key: &[u8]| Err(EngineError::Conflict { tree, key: key.to_vec() });
        for (tree, _) in &record.bases {
            if conflicts.changed(Subject::Whole(*tree), since)
                || conflicts.changed(Subject::AnyKey(*tree), since)
            {
                return conflict(*tree, &[]);
            }
        }
        let written = record
            .writes
            .iter()
            .flat_map(|(tree, entries)| entries.iter().map(|(key, _)| (*tree, &key[..])));
        let validated = validated.iter().map(|(tree, key)| (*tree, &key[..]));
        for (tree, key) in written.chain(validated) {
            if conflicts.changed(Subject::Whole(tree), since)
                || (beginning.has_read && conflicts.changed(Subject::Key(tree, key), since))
            {
                return conflict(tree, key);
            }
        }
        Ok(())
    }

    /// Notes what the transaction `sequence` writes.
    pub fn note_conflicts(&mut self, record: &Record, sequence: Sequence) {
        for (tree, _) in &record.bases {
            self.conflicts.note(Subject::Whole(*tree), sequence);
        }
        for (tree, entries) in &record.writes {
            self.conflicts.note(Subject::AnyKey(*tree), sequence);
            for (key, _) in entries {
                self.conflicts.note(Subject::Key(*tree, key), sequence);
            }
        }
    }
}
