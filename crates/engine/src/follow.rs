//! Followers: an engine that doesn't lead its replica set applies committed entries
//! ([`crate::order`]) as a recovery applies the log, while readers go on.
//!
//! 1. Of an entry, transactions that the log holds already are passed over: after a crash some of
//!    an entry may have been kept.
//! 2. Chunks that it carries are put and made durable before the log names them.
//! 3. Its transactions are decoded in their order, each over what those before it left, and put
//!    into the memtable, where no reader sees them.
//! 4. They are written to the log with one write, not synced: what a crash takes comes from the
//!    set's log again. Before trees are published the log is ([`Shared::sync_own_log`]).
//! 5. All of them become visible at once.
//!
//! *Leading* begins where everything is applied that was committed before: Sequences go on far
//! behind the last, as after an opening, and a transaction that was begun before is run again,
//! since what was applied is in no table of conflicts. It ends for good: what had been proposed may
//! be anywhere, so the engine is closed, and opened again from a log that holds nothing of it.
//!
//! *Invariants*
//! 1. While it follows, nothing is pending, and between two entries the queue's Sequences are all
//!    the same. While one is applied the writer is absent: no thread takes it for a leader's.

use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;
use frond_store::io::steady_now;
use frond_store::{Chunk, ChunkHash, StoreError};

use crate::commit::PoisonOnPanic;
use crate::durable_horizon::DurableEnd;
use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::log::decode::{DecodeError, Decoded, PriorValues};
use crate::log::format::SegmentNumber;
use crate::log::writer::{PendingRecord, WriteError, Writer};
use crate::order::SetEntry;
use crate::overlay::memtable::Memtable;
use crate::overlay::pending::NewChunks;
use crate::queue::Queue;
use crate::queue::group::{Group, Outcome};
use crate::shared::Shared;
use crate::slow_commits::Stopwatch;

/// The time that a reader waits for a moment that others know of.
const APPLIED_WAIT_MAX: Duration = Duration::from_secs(30);

impl Shared {
    /// Applies an entry.
    ///
    /// # Errors
    /// As [`Engine::apply`](crate::Engine::apply).
    pub fn apply(&self, entry: SetEntry) -> Result<(), EngineError> {
        let SetEntry { mut records, chunks } = entry;
        let applied = self.queue().last_live;
        records.retain(|(sequence, _)| applied < *sequence);
        let Some((last, _)) = records.last() else { return Ok(()) };
        let _panics = PoisonOnPanic(self);
        let last = *last;
        self.apply_new(records, &chunks, last).inspect_err(|error| {
            self.poison(&format!("what the set agreed on could not be applied: {error}"));
        })
    }

    fn apply_new(
        &self,
        records: Vec<(Sequence, Bytes)>,
        chunks: &[Chunk],
        last: Sequence,
    ) -> Result<(), EngineError> {
        let _session = self.store.session();
        if !chunks.is_empty() {
            self.store.put_many(chunks)?;
            self.store.sync()?;
        }
        let bytes = records.iter().map(|(_, payload)| payload.len() as u64).sum();
        let mut watch = Stopwatch::start();
        let turn = self.stall(bytes, &mut watch, &|| true)?;
        let mut at_work = self.begin_to_apply(last)?;
        for (sequence, payload) in &records {
            self.insert_applied(&at_work.memtable, *sequence, payload)?;
        }
        let pending = |(sequence, payload)| PendingRecord {
            sequence,
            segment: at_work.segment,
            ..PendingRecord::new(payload)
        };
        let pending: Vec<PendingRecord> = records.into_iter().map(pending).collect();
        at_work.writer.write(&pending).map_err(|error| match error {
            WriteError::Refused { error, .. } | WriteError::Unknown(error) => error,
        })?;
        self.end_applied(at_work.writer, last, &pending);
        self.delay(turn, &mut watch);
        Ok(())
    }

    /// Lines up what is to be applied, up to `last`: what is sealed from now on has it.
    fn begin_to_apply(&self, last: Sequence) -> Result<ApplyContext, EngineError> {
        let (mut queue, writer) = self.take_writer()?;
        if queue.leads_from.is_some() {
            queue.writer = Some(writer);
            return Err(EngineError::Closed("this engine leads its set".to_owned()));
        }
        queue.last = last;
        queue.last_live = last;
        Ok(ApplyContext { writer, memtable: Arc::clone(&queue.active), segment: queue.segment })
    }

    fn insert_applied(
        &self,
        memtable: &Memtable,
        sequence: Sequence,
        payload: &Bytes,
    ) -> Result<(), EngineError> {
        let mut before = AppliedValues { shared: self, sequence, origins: Vec::new() };
        let decoded = Decoded::new(payload, &mut before).map_err(|error| match error {
            DecodeError::Wrong(what) => {
                StoreError::damaged("an entry of the set's log", 0, what).into()
            }
            DecodeError::Before(error) => error,
        })?;
        let Decoded { mut record, for_memtable } = decoded;
        // A cache that keeps one of them would keep the entry, and what came with it.
        record.chunks.iter_mut().for_each(|chunk| *chunk = chunk.apart());
        let new_chunks = NewChunks::of(&record, before.origins, &*self.store)?;
        self.tree_ids.advance_to(record.next_tree_id);
        if !record.bases.is_empty() {
            self.begin_generations(&record, sequence);
        }
        memtable.add_new_chunks(&new_chunks);
        memtable.insert(sequence, &for_memtable);
        Ok(())
    }

    /// Makes visible what was applied.
    fn end_applied(&self, writer: Writer, last: Sequence, records: &[PendingRecord]) {
        let (segment, offset) = writer.end();
        let mut queue = self.queue();
        queue.writer_counters = writer.counters();
        queue.segments_end = writer.next();
        queue.writer = Some(writer);
        if queue.closed.is_some() {
            return;
        }
        queue.segment_bytes += records.iter().map(|it| it.payload.len() as u64).sum::<u64>();
        queue.written = last;
        queue.durable = last;
        queue.visible = last;
        self.make_visible(last);
        self.horizon.move_to(DurableEnd { sequence: last, segment, offset });
        if queue.active.bytes().max(queue.segment_bytes) >= self.options.memtable_bytes_max {
            self.seal(&mut queue);
        }
        let is_watched = queue.watchers > 0;
        drop(queue);
        if is_watched {
            self.commits.wake();
        }
    }

    /// Takes the writer, once no other thread has it.
    fn take_writer(&self) -> Result<(MutexGuard<'_, Queue>, Writer), EngineError> {
        let mut queue = self.queue();
        loop {
            queue.check_open()?;
            if let Some(writer) = queue.writer.take() {
                return Ok((queue, writer));
            }
            queue = self.commits.wait(queue);
        }
    }

    /// Makes the engine's own log durable, in a set: what is published has trees at moments up to
    /// the newest, so by a crash that took what was agreed on until then from the log it would seem
    /// to have that of other trees too.
    ///
    /// # Errors
    /// [`EngineError::Closed`] if the engine is, or the sync fails.
    pub fn sync_own_log(&self) -> Result<(), EngineError> {
        if self.order.is_none() {
            return Ok(());
        }
        let (queue, mut writer) = self.take_writer()?;
        drop(queue);
        let synced = writer.sync();
        let mut queue = self.queue();
        queue.writer_counters = writer.counters();
        queue.writer = Some(writer);
        if let Err(WriteError::Refused { error, .. } | WriteError::Unknown(error)) = synced {
            self.fail(&mut queue, &format!("the log could not be synced: {error}"));
        }
        let closed = queue.check_open();
        self.hand_over(queue, &Group::default(), Outcome::Recheck);
        closed
    }

    /// Takes transactions from now on.
    pub fn take_lead(&self) {
        let mut queue = self.queue();
        queue.leads_from = Some(queue.visible);
        queue.found = queue.last_live;
        queue.skip_sequences();
    }

    /// Waits until an entry at or behind `moment` is applied.
    ///
    /// # Errors
    /// [`EngineError::Store`] that says so if that takes too long; [`EngineError::Closed`] if the
    /// engine is closed.
    pub fn await_applied(
        &self,
        mut queue: MutexGuard<'_, Queue>,
        moment: Sequence,
    ) -> Result<(), EngineError> {
        let until: Instant = steady_now() + APPLIED_WAIT_MAX;
        while queue.visible < moment {
            queue.check_open()?;
            let left = until.saturating_duration_since(steady_now());
            if left.is_zero() {
                let late = "a moment that this member of the set has not come to";
                let source = std::io::Error::new(std::io::ErrorKind::TimedOut, late);
                return Err(StoreError::io("the set's log", source).into());
            }
            queue = self.commits.wait_at_most(queue, left);
        }
        Ok(())
    }
}

/// The writer and memtable with which entries are applied.
struct ApplyContext {
    writer: Writer,
    memtable: Arc<Memtable>,
    segment: SegmentNumber,
}

/// The values before the transaction that is being applied.
struct AppliedValues<'a> {
    shared: &'a Shared,
    sequence: Sequence,
    /// The chunks from which its own are made.
    origins: Vec<ChunkHash>,
}

impl AppliedValues<'_> {
    fn read(&self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let (state, _) = self.shared.current();
        let before = self.sequence.preceding();
        let generation = state.generation(tree, before);
        let Some(base) = generation.and_then(|generation| generation.base.as_ref()) else {
            return Ok(None);
        };
        let store = &*self.shared.store;
        let value = match state.find_recent((tree, base), key, before) {
            Some(written) => written,
            None => base.get(store, key)?,
        };
        let Some(value) = value else { return Ok(Some(Bytes::new())) };
        Ok(Some(value.read(store)?))
    }
}

impl PriorValues for AppliedValues<'_> {
    fn value(&mut self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>, DecodeError> {
        self.read(tree, key).map_err(DecodeError::Before)
    }

    fn chunk(&mut self, old: ChunkHash) -> Result<Chunk, DecodeError> {
        self.origins.push(old);
        self.shared.store.get(old).map_err(|error| DecodeError::Before(error.into()))
    }
}
