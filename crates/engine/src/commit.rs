//! Committing: one order for all transactions, one sync for many.
//!
//! 1. Under the queue's lock, which is held for microseconds: validate (the first committer wins),
//!    take the next Sequence, insert into the memtable, line up for the log.
//! 2. Whoever finds no leader becomes the leader: takes all that waits, writes it with one write and
//!    syncs once, with no lock held. What lines up meanwhile is the next group.
//! 3. The leader makes its group visible, in the order of Sequences, and wakes everybody.
//!
//! *Invariants*
//! 1. The visible Sequence never passes a transaction that may still be refused: a synced one becomes
//!    visible once durable, a relaxed one at once if everything before it is visible.
//! 2. A refused transaction (full disk) was never visible; its entries and eras are taken out of the
//!    State before anybody else gets a Sequence. Its fingerprints stay: they only cost a retry.
//! 3. After any other failure of a write or sync the engine is closed: reads go on, no write
//!    is taken, and nothing that was not visible becomes so.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use frond_store::StoreError;

use crate::conflict::{ConflictTable, Subject};
use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::log::format::SegmentNumber;
use crate::log::record::Record;
use crate::log::writer::{PendingRecord, WriteError, Writer, WriterCounters};
use crate::overlay::memtable::{Memtable, Window};
use crate::own_writes::OwnWrites;
use crate::shared::{Counters, Shared};
use crate::state::{Base, Era, Sealed};
use crate::transaction::Durability;

/// Relaxed transactions are written (not synced) once so many bytes wait.
const PENDING_BYTES_MAX: usize = 1 << 20;

/// From so many sealed memtables on each commit waits a little, and from so many until one is
/// folded.
const SEALED_COUNT_SLOW: usize = 2;
const SEALED_COUNT_MAX: usize = 4;
const SLOW_COMMIT: Duration = Duration::from_millis(1);

/// Where transactions line up.
pub(crate) struct Queue {
    pub conflicts: ConflictTable,
    /// The memtable of the State's that takes writes.
    pub active: Arc<Memtable>,
    /// The segment that takes records, and how much it took.
    pub segment: SegmentNumber,
    pub segment_bytes: u64,
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
            last,
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

    /// Fails if the engine is closed.
    pub fn check_open(&self) -> Result<(), EngineError> {
        self.closed.as_ref().map_or(Ok(()), |reason| Err(EngineError::Closed(reason.clone())))
    }

    /// Fails if the transaction conflicts with one that was committed since `since`.
    fn check_conflicts(
        &self,
        since: Sequence,
        record: &Record,
        validated: &[(TreeId, Vec<u8>)],
    ) -> Result<(), EngineError> {
        let conflicts = &self.conflicts;
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
            if conflicts.changed(Subject::Key(tree, key), since)
                || conflicts.changed(Subject::Whole(tree), since)
            {
                return conflict(tree, key);
            }
        }
        Ok(())
    }

    fn note_conflicts(&mut self, record: &Record, sequence: Sequence) {
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

impl Shared {
    /// Commits the writes of a transaction that was begun at `since`.
    pub fn commit(
        &self,
        since: Sequence,
        own: OwnWrites,
        durability: Durability,
    ) -> Result<Sequence, EngineError> {
        self.wait_for_room()?;
        let validated: Vec<(TreeId, Vec<u8>)> =
            own.validated().map(|(tree, key)| (tree, key.to_vec())).collect();
        let next_tree_id = self.next_tree_id.load(std::sync::atomic::Ordering::Relaxed);
        let record = own.into_record(next_tree_id);
        if !record.chunks.is_empty() {
            self.store.put_many(&record.chunks)?;
        }
        if record.bases.iter().any(|(_, base)| base.is_some()) {
            self.store_synced(self.store.sync())?;
        }
        let pending = PendingRecord::new(record.encode());

        let mut queue = self.queue();
        queue.check_open()?;
        if let Err(conflict) = queue.check_conflicts(since, &record, &validated) {
            Counters::count(&self.counters.conflicts);
            return Err(conflict);
        }
        let sequence = self.line_up(&mut queue, &record, pending, durability);
        if durability == Durability::Relaxed && sequence <= queue.visible {
            if queue.pending_bytes >= PENDING_BYTES_MAX && queue.writer.is_some() {
                drop(self.lead(queue, Durability::Relaxed));
            } else {
                drop(queue);
            }
            self.signal(|signals| signals.sync_wanted = true);
        } else {
            self.wait_for(queue, sequence, durability)?;
        }
        Counters::count(&self.counters.commits);
        Ok(sequence)
    }

    /// Gives a valid transaction its Sequence and its place in memtable and log.
    fn line_up(
        &self,
        queue: &mut Queue,
        record: &Record,
        pending: PendingRecord,
        durability: Durability,
    ) -> Sequence {
        let sequence = queue.last.following(self.machine.clock.now_micros());
        queue.conflicts.forget(self.oldest_transaction());
        queue.note_conflicts(record, sequence);
        for (tree, entries) in &record.writes {
            queue.active.insert(*tree, sequence, entries);
        }
        if !record.bases.is_empty() {
            self.begin_eras(record, sequence);
        }
        if durability == Durability::Relaxed && queue.visible == queue.last_live {
            queue.visible = sequence;
            self.make_visible(sequence);
        }
        queue.last = sequence;
        queue.last_live = sequence;
        queue.pending_bytes += pending.payload.len();
        queue.segment_bytes += pending.payload.len() as u64;
        queue.pending.push(PendingRecord { sequence, segment: queue.segment, ..pending });
        if queue.active.bytes().max(queue.segment_bytes) >= self.options.memtable_bytes_max {
            self.seal(queue);
        }
        sequence
    }

    fn begin_eras(&self, record: &Record, sequence: Sequence) {
        self.unpublished().extend(record.bases.iter().map(|(tree, _)| *tree));
        self.change_state(|state, visible| {
            for (tree, base) in &record.bases {
                // The transaction's own writes lie over the base: they have its Sequence.
                let folded_to = sequence.preceding();
                let base = base.map(|tree| Base { tree, folded_to });
                state.begin_era(*tree, Era { from: sequence, base }, visible);
            }
        });
    }

    /// Closes the active memtable and its log segment, and has them folded.
    pub fn seal(&self, queue: &mut Queue) {
        let active = Arc::new(Memtable::default());
        let memtable = std::mem::replace(&mut queue.active, Arc::clone(&active));
        queue.segment = queue.segment.next();
        queue.segment_bytes = 0;
        let sealed = Sealed { memtable, last: queue.last, segment_end: queue.segment };
        self.change_state(|state, _| {
            state.sealed.push(sealed);
            state.active = active;
        });
        self.signal(|signals| signals.fold_wanted = true);
    }

    /// Waits until `sequence` is as durable as asked, leading a group when nobody does.
    fn wait_for<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queue>,
        sequence: Sequence,
        durability: Durability,
    ) -> Result<(), EngineError> {
        loop {
            if let Some(refusal) = queue.refused.remove(&sequence) {
                return Err(refusal.error());
            }
            let reached = match durability {
                Durability::Synced => queue.durable,
                Durability::Relaxed => queue.visible,
            };
            if sequence <= reached {
                return Ok(());
            }
            queue.check_open()?;
            queue = self.lead_or_wait(queue);
        }
    }

    /// Makes durable what has a Sequence up to `upto`.
    pub fn settle(&self, upto: Sequence) -> Result<(), EngineError> {
        let mut queue = self.queue();
        while queue.durable < upto.min(queue.last_live) {
            queue.check_open()?;
            queue = self.lead_or_wait(queue);
            if let Some(refusal) = &queue.disk_full
                && queue.durable < upto.min(queue.last_live)
            {
                return Err(refusal.error());
            }
        }
        Ok(())
    }

    fn lead_or_wait<'a>(&'a self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        if queue.writer.is_some() {
            return self.lead(queue, Durability::Synced);
        }
        self.queue_changed.wait(queue).expect("no panic while the lock is held")
    }

    /// Writes what is pending and, if asked, syncs; with the lock released meanwhile.
    fn lead<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queue>,
        durability: Durability,
    ) -> MutexGuard<'a, Queue> {
        let Some(mut writer) = queue.writer.take() else { return queue };
        let records = std::mem::take(&mut queue.pending);
        queue.pending_bytes = 0;
        let upto = records.last().map_or(queue.written, |record| record.sequence);
        drop(queue);
        let panics = PoisonOnPanic(self);
        let written = writer.write(&records);
        let unknown = matches!(written, Err(WriteError::Unknown(_)));
        let synced = match durability {
            Durability::Synced if !unknown => writer.sync(),
            _ => Ok(()),
        };
        std::mem::forget(panics);

        let mut queue = self.queue();
        queue.writer_counters = writer.counters();
        queue.writer = Some(writer);
        match written {
            Ok(()) => {
                queue.written = upto;
                queue.disk_full = None;
            }
            Err(WriteError::Refused { written, error }) => {
                self.refuse(&mut queue, records, written, Refusal::new(&error));
            }
            Err(WriteError::Unknown(error)) => {
                queue.closed.get_or_insert(error.to_string());
            }
        }
        if let Err(WriteError::Refused { error, .. } | WriteError::Unknown(error)) = synced {
            queue.closed.get_or_insert(error.to_string());
        }
        if queue.closed.is_none() && durability == Durability::Synced {
            queue.durable = queue.written;
            queue.visible = queue.visible.max(queue.written);
            self.make_visible(queue.visible);
        }
        self.queue_changed.notify_all();
        queue
    }

    /// Takes back what could not be written because the disk is full, and what lined up behind it.
    /// What is visible already stays pending: it is written when there is room again.
    fn refuse(
        &self,
        queue: &mut Queue,
        mut records: Vec<PendingRecord>,
        written: usize,
        refusal: Refusal,
    ) {
        let unwritten = records.split_off(written);
        if let Some(last) = records.last() {
            queue.written = last.sequence;
        }
        let waiting = std::mem::take(&mut queue.pending);
        queue.pending_bytes = 0;
        queue.last_live = queue.visible.max(queue.written);
        for pending in unwritten.into_iter().chain(waiting) {
            if pending.sequence <= queue.visible {
                queue.pending_bytes += pending.payload.len();
                queue.pending.push(pending);
            } else {
                self.take_back(&pending);
                queue.refused.insert(pending.sequence, refusal.clone());
            }
        }
        queue.disk_full = Some(refusal);
    }

    fn take_back(&self, pending: &PendingRecord) {
        let sequence = pending.sequence;
        let record = Record::decode(pending.payload.clone())
            .expect("the record was encoded by this process and not changed since");
        let (state, _) = self.current();
        for (tree, entries) in &record.writes {
            let window = Window { after: sequence.preceding(), upto: sequence };
            for memtable in state.memtables().filter(|memtable| memtable.touches(*tree, window)) {
                memtable.remove(*tree, sequence, entries);
            }
        }
        if !record.bases.is_empty() {
            self.change_state(|state, _| {
                record.bases.iter().for_each(|(tree, _)| state.end_era(*tree, sequence));
            });
        }
    }

    /// Refuses all writes from now on.
    pub fn poison(&self, reason: &str) {
        self.queue().closed.get_or_insert(reason.to_owned());
        self.queue_changed.notify_all();
        self.signalled.notify_all();
    }

    /// Slows writers down while folding lags behind.
    fn wait_for_room(&self) -> Result<(), EngineError> {
        let sealed_count = || self.current().0.sealed.len();
        if sealed_count() < SEALED_COUNT_SLOW {
            return Ok(());
        }
        let mut signals = self.signals();
        let waited = self.signalled.wait_timeout(signals, SLOW_COMMIT);
        signals = waited.expect("no panic while the lock is held").0;
        while sealed_count() >= SEALED_COUNT_MAX && !signals.stop {
            if let Some(refusal) = &signals.fold_failure {
                return Err(refusal.error());
            }
            let waited = self.signalled.wait_timeout(signals, SLOW_COMMIT);
            signals = waited.expect("no panic while the lock is held").0;
        }
        Ok(())
    }
}

/// Nobody knows what is on the disk if the leader panics.
struct PoisonOnPanic<'a>(&'a Shared);

impl Drop for PoisonOnPanic<'_> {
    fn drop(&mut self) {
        self.0.poison("a panic while the log was written");
    }
}
