//! Committing: one order for all transactions, one sync for many.
//!
//! 1. Under the queue's lock, which is held for microseconds: validate (the first committer wins),
//!    take the next Sequence, insert into the memtable, line up for the log.
//! 2. Whoever finds no leader becomes the leader: takes all that waits, writes it with one write
//!    and syncs once, with no lock held. What lines up meanwhile is the next group.
//! 3. The leader makes its group visible, in the order of Sequences, and wakes everybody.
//!
//! *Invariants*
//! 1. The visible Sequence never passes a transaction that may still be refused: a synced one
//!    becomes visible once durable, a relaxed one at once if everything before it is visible.
//! 2. A refused transaction (full disk) was never visible; its entries and eras are taken out of
//!    the State before anybody else gets a Sequence. Its fingerprints stay, and may cost a retry.
//! 3. After any other failure of a write or sync the engine is closed: reads go on, no write
//!    is taken, and nothing that was not visible becomes so.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use crate::conflict::Beginning;
use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::log::record::Record;
use crate::log::writer::{PendingRecord, WriteError};
use crate::overlay::memtable::{Memtable, Window};
use crate::own_writes::OwnWrites;
use crate::queue::{Queue, Refusal};
use crate::shared::{Counters, Shared};
use crate::state::{Base, Era, Sealed};
use crate::transaction::Durability;

/// Relaxed transactions are written (not synced) once so many bytes wait.
const PENDING_BYTES_MAX: usize = 1 << 20;

impl Shared {
    /// Commits the writes of a transaction that was begun at `beginning`.
    pub fn commit(
        &self,
        beginning: Beginning,
        own: OwnWrites,
        durability: Durability,
    ) -> Result<Sequence, EngineError> {
        let bytes = own.bytes();
        self.wait_for_room(bytes)?;
        let validated: Vec<(TreeId, Vec<u8>)> =
            own.validated().map(|(tree, key)| (tree, key.to_vec())).collect();
        let next_tree_id = self.next_tree_id.load(Ordering::Relaxed);
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
        if let Err(conflict) = queue.check_conflicts(beginning, &record, &validated) {
            Counters::count(&self.counters.conflicts);
            return Err(conflict);
        }
        let sequence = self.line_up(&mut queue, record, pending, durability);
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
        self.counters.bytes_given.fetch_add(bytes, Ordering::Relaxed);
        Ok(sequence)
    }

    /// Gives a valid transaction its Sequence and its place in memtable and log.
    fn line_up(
        &self,
        queue: &mut Queue,
        record: Record,
        pending: PendingRecord,
        durability: Durability,
    ) -> Sequence {
        let sequence = queue.last.following(self.machine.clock.now_micros());
        queue.conflicts.forget(self.oldest_transaction());
        queue.note_conflicts(&record, sequence);
        if !record.bases.is_empty() {
            self.begin_eras(&record, sequence);
        }
        for (tree, entries) in record.writes {
            queue.active.insert(tree, sequence, entries);
        }
        let all_visible = queue.found < queue.durable && queue.visible == queue.last_live;
        if durability == Durability::Relaxed && all_visible {
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
        self.change_state(|state, visible| {
            for (tree, base) in &record.bases {
                // The transaction's own writes lie over the base: they have its Sequence.
                let base = base.map(|tree| Base::whole(tree, sequence.preceding()));
                state.begin_era(*tree, Era { from: sequence, base }, visible);
            }
        });
        // After the State: a flush that takes the tree from the list finds the era.
        self.unpublished().extend(record.bases.iter().map(|(tree, _)| *tree));
    }

    /// Closes the active memtable and its log segment, and has them flushed.
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
        self.signal(|signals| signals.flush_wanted = true);
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
        let upto = queue.last_live;
        drop(queue);
        let panics = PoisonOnPanic(self);
        let begun = self.machine.clock.now_micros();
        let written = writer.write(&records);
        let unknown = matches!(written, Err(WriteError::Unknown(_)));
        let synced = match durability {
            Durability::Synced if !unknown => writer.sync(),
            _ => Ok(()),
        };
        drop(panics);
        if durability == Durability::Synced {
            self.counters.sync_micros.add(self.micros_since(begun));
            self.counters.group_sizes.add(records.len() as u64);
        }

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
        } else if queue.disk_full.is_some() && queue.closed.is_none() {
            self.pass_refused(&mut queue);
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

    /// Goes on behind the Sequences that were refused: nothing lies there, and a transaction that
    /// begins now must not conflict with them for ever. All that is not refused is visible, or was
    /// written and synced by now.
    fn pass_refused(&self, queue: &mut Queue) {
        if queue.pending.is_empty() {
            queue.written = queue.last;
        }
        queue.last_live = queue.last;
        queue.visible = queue.last;
        self.make_visible(queue.last);
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
}

/// Closes the engine if the thread panics: nobody knows what is on the disk then.
pub(crate) struct PoisonOnPanic<'a>(pub &'a Shared);

impl Drop for PoisonOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.poison("a panic while the log was written or folded");
        }
    }
}
