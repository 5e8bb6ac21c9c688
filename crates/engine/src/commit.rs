//! Committing: one order for all transactions, one sync for many.
//!
//! 1. Under the queue's lock, which is held for microseconds: validate (the first committer wins,
//!    and no transaction writes what another has claimed), take the next Sequence, line up for the
//!    log, join the group that forms (`group`).
//! 2. Without it, all members at once: insert into the memtable, and let go of key locks. The next
//!    holder of one sees what is in line (`ahead`).
//! 3. A member that finds no leader becomes the leader: it takes all that waits, writes it with one
//!    write and syncs once, with no lock held. What lines up meanwhile is the next group.
//! 4. The leader inserts for members that haven't begun to (most have, during the sync; one that
//!    got no processor must not hold up the others), waits until all are done, makes the group
//!    visible, in the order of Sequences, and wakes it. It leads some of the groups that formed
//!    meanwhile itself: where all processors are busy, another thread would be scheduled late, and
//!    nothing is written until it is. Then it finds the next group a leader.
//!
//! *Invariants*
//! 1. The visible Sequence never passes a transaction that may still be refused, or whose entries
//!    aren't in the memtable: a synced one becomes visible once durable, a relaxed one at once if
//!    everything before it is visible.
//! 2. A refused transaction (full disk) was never visible; its entries and generations are taken
//!    out of the State before anybody else gets a Sequence. Its fingerprints stay, and may cost a
//!    retry. What of it was written is cut off, and the cut is synced, before anybody is told: no
//!    crash brings it back. Whatever had read it ahead of its being visible is refused with it, or
//!    finds that it has read what never was ([`crate::queue::line`]).
//! 3. After any other failure of a write or sync the engine is closed: reads go on, no write is
//!    taken, and nothing that was not visible becomes so. Whatever had its Sequence by then is told
//!    that its outcome is unknown, whatever had none that nothing was written.
//! 4. Where the writer is in the queue and a group has members, one of them was called to lead.
//!
//! *In a set* ([`crate::order`]) a group is agreed on before it is written, and not synced then: it
//! is durable once a majority holds it. No transaction is relaxed, and none refused once it has its
//! place: what follows it is in others' logs.

mod ahead;
mod growth;
mod stall;
mod terms;

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use bytes::Bytes;
use frond_store::{Chunk, ChunkHash, StoreError};

use crate::error::EngineError;
use crate::horizon::DurableEnd;
use crate::ids::{Sequence, TreeId};
use crate::log::format::SegmentNumber;
use crate::log::record::Record;
use crate::log::writer::{PendingRecord, WriteError, Writer};
use crate::order::{ENTRY_BYTES_MAX, entries_of, foreign_chunks};
use crate::overlay::memtable::Memtable;
use crate::overlay::pending::NewChunks;
use crate::overlay::recycled::Recycler;
use crate::queue::conflicts::{ConflictSet, TransactionStart};
use crate::queue::group::{Call, Group, Insertion, Outcome};
use crate::queue::line::Ahead;
use crate::queue::{InHand, Queue, Refusal};
use crate::shared::{Counters, Shared};
use crate::slow::{Stage, Stopwatch};
use crate::state::{Sealed, TreeGeneration};
use crate::transaction::Durability;
use crate::transaction::held_locks::HeldLocks;
use crate::transaction::write_set::WriteSet;

/// Relaxed transactions are written (not synced) once so many bytes wait.
const PENDING_BYTES_MAX: usize = 1 << 20;
/// A leader leads so many groups before it calls another. Its own commit waits meanwhile: with 8
/// those are the slowest hundredth, with 1 some hundredths fewer are led in a second.
const GROUPS_LED_MAX: u32 = 4;
/// What a data directory says that was at the end of its Sequences for very long.
const NO_SEQUENCES: &str = "no Sequence is left: its clock was wrong for long; what it holds can be read, and moved to \
                            a new directory by frond clone, or frond export and import";

impl Shared {
    /// Commits the writes of a transaction that was begun at `beginning`. Its key locks are let go
    /// once it is in line and its entries are in the memtable: the next holders see these.
    ///
    /// # Errors
    /// As [`Transaction::commit`](crate::Transaction::commit).
    pub fn commit(
        &self,
        beginning: TransactionStart<'_>,
        own: WriteSet,
        durability: Durability,
        held_locks: &mut HeldLocks,
    ) -> Result<Sequence, EngineError> {
        let bytes = own.bytes();
        let mut watch = Stopwatch::start();
        let durability = if self.order.is_some() { Durability::Synced } else { durability };
        match beginning.gives_back {
            true => self.admit_giving_back(bytes)?,
            false => self.admit_growth(bytes)?,
        }
        let turn = self.stall(bytes, &mut watch)?;
        let validated: Vec<(TreeId, Vec<u8>)> =
            own.validated().map(|(tree, key)| (tree, key.to_vec())).collect();
        let validated_trees: Vec<TreeId> = own.validated_trees().collect();
        let has_unsynced_base = own.has_unsynced_base();
        let next_tree_id = self.next_tree_id.load(Ordering::Relaxed);
        let record = own.into_record(next_tree_id);
        let new_chunks = NewChunks::of(&record, record.origins(), &*self.store)?;
        if has_unsynced_base {
            self.store_synced(self.store.sync())?;
        }
        let mut payloads = Payloads::of(&record, new_chunks, &self.recycler);
        if self.order.is_some() {
            let foreign = foreign_chunks(&record, &*self.store)?;
            // As on the members that get them by the entry: the log must not name what a power cut
            // may take.
            let is_own = |hash| record.chunks.binary_search_by_key(&hash, Chunk::hash).is_ok();
            let names = foreign.iter().map(Chunk::hash).filter(|hash| !is_own(*hash));
            let names: Vec<ChunkHash> = names.collect();
            if !names.is_empty() {
                self.store_synced(self.store.sync_these(&names))?;
            }
            payloads.logged.foreign_chunks = foreign;
            if ENTRY_BYTES_MAX < payloads.logged.carried_bytes() {
                return Err(EngineError::TooLargeForSet { max: ENTRY_BYTES_MAX as u64 });
            }
        }
        let conflict_set =
            ConflictSet::new(self.conflict_seed, &record, validated, validated_trees);
        watch.lap(Stage::Prepare);

        let mut queue = self.queue();
        queue.check_open()?;
        queue.check_leads(beginning.sequence)?;
        let is_untold = beginning.term != self.kept.term() && self.kept.is_on();
        if is_untold || beginning.ahead.is_some_and(Ahead::is_refused) {
            return Err(EngineError::Withdrawn);
        }
        if let Some((tree, key)) = queue.conflicts.conflict(beginning, &record, &conflict_set) {
            Counters::count(&self.counters.conflicts);
            return Err(EngineError::Conflict { tree, key: key.to_vec() });
        }
        if let Some(owner) = beginning.without_claims {
            let is_foreign = |fingerprint| self.key_locks.is_foreign(owner, fingerprint);
            if let Some((tree, key)) = conflict_set.written_key(&record, is_foreign) {
                Counters::count(&self.counters.conflicts);
                return Err(EngineError::Conflict { tree, key: key.to_vec() });
            }
        }
        let now_micros = self.machine.clock.now_micros();
        let Some(sequence) = queue.last.following(now_micros) else {
            return Err(EngineError::Closed(NO_SEQUENCES.to_owned()));
        };
        // From here on a panic leaves open what becomes of the transaction.
        let _panics = PoisonOnPanic(self);
        let member =
            self.line_up(&mut queue, &record, &conflict_set, payloads, (sequence, durability));
        if let Some(member) = member {
            let writer = queue.writer.take();
            drop(queue);
            drop(record);
            watch.lap(Stage::Queue);
            self.insert(&member.group, &member.insertion);
            watch.lap(Stage::Insert);
            held_locks.release(self);
            self.go_with_group(member, writer, sequence, durability, &mut watch)?;
        } else {
            let many = queue.pending_bytes >= PENDING_BYTES_MAX;
            let writer = queue.writer.take_if(|_| many);
            drop(queue);
            watch.lap(Stage::Queue);
            held_locks.release(self);
            if let Some(writer) = writer {
                self.lead(writer, Durability::Relaxed, &mut watch);
            }
            self.want_sync();
        }
        self.delay(turn, &mut watch);
        self.slowest.note(&watch, bytes);
        Counters::count(&self.counters.commits);
        self.counters.bytes_given.fetch_add(bytes, Ordering::Relaxed);
        Ok(sequence)
    }

    /// Has relaxed transactions synced when the interval is over.
    fn want_sync(&self) {
        let mut signals = self.signals();
        if !std::mem::replace(&mut signals.sync_wanted, true) {
            drop(signals);
            self.signalled.notify_all();
        }
    }

    /// Gives a valid transaction its place in the log. It is visible then, unless it is returned as
    /// a member of the group that forms.
    fn line_up(
        &self,
        queue: &mut Queue,
        record: &Record,
        conflict_set: &ConflictSet,
        payloads: Payloads,
        (sequence, durability): (Sequence, Durability),
    ) -> Option<Member> {
        let Payloads { logged, for_memtable, new_chunks } = payloads;
        if queue.conflicts.is_forgetting_due() {
            queue.conflicts.forget(self.oldest_transaction());
        }
        queue.conflicts.note(record, conflict_set, sequence);
        if !record.bases.is_empty() {
            self.begin_eras(record, sequence);
        }
        let all_visible = queue.found < queue.durable && queue.visible == queue.last_live;
        let member = if durability == Durability::Relaxed && all_visible {
            queue.active.add_new_chunks(&new_chunks);
            queue.active.insert(sequence, &for_memtable);
            queue.visible = sequence;
            self.make_visible(sequence);
            None
        } else {
            let memtable = Arc::clone(&queue.active);
            let insertion = Arc::new(Insertion::new(memtable, sequence, for_memtable, new_chunks));
            let group = queue.join(&insertion);
            Some(Member { insertion, group })
        };
        queue.last = sequence;
        queue.last_live = sequence;
        queue.pending_bytes += logged.payload.len();
        queue.segment_bytes += logged.payload.len() as u64;
        queue.pending.push(PendingRecord { sequence, segment: queue.segment, ..logged });
        if queue.active.bytes().max(queue.segment_bytes) >= self.options.memtable_bytes_max {
            self.seal(queue);
        }
        member
    }

    pub(crate) fn begin_eras(&self, record: &Record, sequence: Sequence) {
        self.change_state(|state, visible| {
            for (tree, base) in &record.bases {
                state.begin_generation(*tree, TreeGeneration::begun(sequence, *base), visible);
            }
        });
        let roots = record.bases.iter().filter_map(|(_, base)| Some((sequence, (*base)?.root)));
        self.logged_bases().extend(roots);
        // After the State: a flush that takes the tree from the list finds the generation.
        self.unpublished().extend(record.bases.iter().map(|(tree, _)| *tree));
    }

    /// Closes the active memtable and its log segment, and has them flushed.
    pub fn seal(&self, queue: &mut Queue) {
        let active = Arc::new(Memtable::new(&self.recycler, self.pending.all()));
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

    /// Waits until a member's group is as durable as asked; leads it, if it brought the writer or
    /// is called to.
    fn go_with_group(
        &self,
        member: Member,
        writer: Option<Writer>,
        sequence: Sequence,
        durability: Durability,
        watch: &mut Stopwatch,
    ) -> Result<(), EngineError> {
        let Member { insertion, group } = member;
        // Before the group ends, so that only its leader is left to free it.
        drop(insertion);
        if let Some(writer) = writer {
            self.lead(writer, Durability::Synced, watch);
        }
        loop {
            let call = group.wait();
            watch.lap(Stage::Group);
            match call {
                Call::End(Outcome::Durable) => return Ok(()),
                Call::End(Outcome::Look) => return self.look(sequence, durability),
                Call::Lead => {
                    let writer = self.queue().writer.take();
                    if let Some(writer) = writer {
                        self.lead(writer, Durability::Synced, watch);
                    }
                }
            }
        }
    }

    /// Inserts a member's entries, unless another thread has begun to, and arrives for it.
    fn insert(&self, group: &Group, insertion: &Insertion) {
        if insertion.begin() {
            let _arrival = Arrival { shared: self, group, insertion };
            insertion.insert();
        }
    }

    /// Finds out in the queue what became of `sequence`, and waits until it is as durable as asked.
    fn look(&self, sequence: Sequence, durability: Durability) -> Result<(), EngineError> {
        let mut queue = self.queue();
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
            queue.check_known()?;
            queue = self.lead_or_wait(queue);
        }
    }

    /// Makes durable what has a Sequence up to `upto`.
    ///
    /// # Errors
    /// [`EngineError::Closed`] if the engine was closed or poisoned before it was durable;
    /// [`EngineError::Store`] if the disk is full.
    pub fn make_durable(&self, upto: Sequence) -> Result<(), EngineError> {
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

    /// Waits until what has a Sequence up to `upto` is visible, or was refused.
    ///
    /// # Errors
    /// [`EngineError::Closed`] if the engine was closed or poisoned before.
    pub fn await_visible(&self, upto: Sequence) -> Result<(), EngineError> {
        let mut queue = self.queue();
        while queue.visible < upto.min(queue.last_live) {
            queue.check_open()?;
            queue = self.lead_or_wait(queue);
        }
        Ok(())
    }

    /// Has segment `number` on the disk before any record needs it, all before which are written.
    /// Returns whether it is: a full disk has no room for it.
    ///
    /// # Errors
    /// [`EngineError::Closed`] if the engine was closed or poisoned before.
    pub fn begin_segment(&self, number: SegmentNumber) -> Result<bool, EngineError> {
        let mut queue = self.queue();
        queue.segment_wanted = queue.segment_wanted.max(number);
        loop {
            queue.check_open()?;
            let is_free = queue.writer.is_some();
            if number < queue.segments_end {
                return Ok(true);
            }
            queue = self.lead_or_wait(queue);
            if is_free {
                return Ok(number < queue.segments_end);
            }
        }
    }

    fn lead_or_wait<'a>(&'a self, mut queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        if let Some(writer) = queue.writer.take() {
            drop(queue);
            self.lead(writer, Durability::Synced, &mut Stopwatch::start());
            return self.queue();
        }
        queue.watchers += 1;
        let mut queue = self.queue_changed.wait(queue).expect("no panic while the lock is held");
        queue.watchers -= 1;
        queue
    }

    /// Leads the group that forms, and some of those that form meanwhile.
    fn lead(&self, mut writer: Writer, durability: Durability, watch: &mut Stopwatch) {
        let _panics = PoisonOnPanic(self);
        let mut queue = self.queue();
        for led_count in 1.. {
            if queue.closed.is_some() {
                queue.writer = Some(writer);
                let (group, _) = queue.close_group();
                return self.hand_over(queue, &group, Outcome::Look);
            }
            let (after, group, outcome) = self.lead_one(queue, &mut writer, durability, watch);
            queue = after;
            let goes_on = led_count < GROUPS_LED_MAX
                && outcome == Outcome::Durable
                && !queue.members.is_empty();
            if !goes_on {
                queue.writer = Some(writer);
                self.hand_over(queue, &group, outcome);
                watch.lap(Stage::Wake);
                return;
            }
            self.tell(queue, None, &group, outcome);
            watch.lap(Stage::Wake);
            queue = self.queue();
        }
    }

    /// Writes what is pending and, if asked, syncs; with no lock held meanwhile. Returns the group,
    /// and what became of it: to be told. Unless the engine is closed.
    fn lead_one<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queue>,
        writer: &mut Writer,
        durability: Durability,
        watch: &mut Stopwatch,
    ) -> (MutexGuard<'a, Queue>, Arc<Group>, Outcome) {
        let records = std::mem::take(&mut queue.pending);
        queue.pending_bytes = 0;
        let (upto, wanted) = (queue.last_live, queue.segment_wanted);
        let (group, members) = queue.close_group();
        let members: Arc<[Arc<Insertion>]> = members.into();
        queue.in_hand = Some(InHand { group: Arc::clone(&group), members: Arc::clone(&members) });
        drop(queue);
        watch.lap(Stage::Wake);
        let written = self.write(writer, &records).and_then(|()| writer.begin(wanted));
        let wrote = watch.lap(Stage::Write);
        let (is_synced, synced) = match written {
            Err(WriteError::Unknown(_)) => (false, Ok(())),
            // What is refused was cut off: a crash must not bring it back once that was told.
            Err(WriteError::Refused { .. }) => (true, writer.sync()),
            Ok(()) if self.order.is_some() => (true, Ok(())),
            Ok(()) if durability == Durability::Synced => (true, writer.sync()),
            Ok(()) => (false, Ok(())),
        };
        let took = wrote + watch.lap(Stage::Sync);
        members.iter().for_each(|member| self.insert(&group, member));
        group.await_members(members.len() as u64);
        if durability == Durability::Synced {
            self.counters.sync_micros.add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
            self.counters.group_sizes.add(records.len() as u64);
        }

        let mut queue = self.queue();
        queue.writer_counters = writer.counters();
        queue.segments_end = writer.next();
        queue.in_hand = None;
        let mut outcome = Outcome::Look;
        match (written, synced) {
            (Err(WriteError::Unknown(error)), _) => {
                self.fail(&mut queue, &format!("the log could not be written: {error}"));
            }
            (_, Err(WriteError::Refused { error, .. } | WriteError::Unknown(error))) => {
                self.fail(&mut queue, &format!("the log could not be synced: {error}"));
            }
            // Another thread has closed it: what is told of this must not differ from what the next
            // opening finds.
            _ if queue.closed.is_some() => {}
            (Ok(()), Ok(())) => {
                queue.written = upto;
                queue.disk_full = None;
                outcome = Outcome::Durable;
            }
            (Err(WriteError::Refused { written, error }), Ok(())) => {
                self.refuse(&mut queue, records, written, Refusal::new(&error));
                self.pass_refused(&mut queue);
            }
        }
        if queue.closed.is_none() && is_synced {
            queue.durable = queue.written;
            queue.visible = queue.visible.max(queue.written);
            self.make_visible(queue.visible);
            // Who is told of it looks for what it made.
            let (segment, offset) = writer.end();
            self.horizon.move_to(DurableEnd { sequence: queue.durable, segment, offset });
        } else {
            outcome = Outcome::Look;
        }
        (queue, group, outcome)
    }

    /// Writes records, once others agree where there are others.
    fn write(&self, writer: &mut Writer, records: &[PendingRecord]) -> Result<(), WriteError> {
        let Some(order) = &self.order else { return writer.write(records) };
        if records.is_empty() {
            return Ok(());
        }
        order.agree(entries_of(records)).map_err(|why| {
            WriteError::Unknown(StoreError::io("the set's log", io::Error::other(why)))
        })?;
        // What is agreed on can't be refused.
        writer.write(records).map_err(|error| match error {
            WriteError::Refused { error, .. } => WriteError::Unknown(error),
            unknown => unknown,
        })
    }

    /// Finds the next group a leader, and tells the one that was led what became of it.
    pub(crate) fn hand_over(
        &self,
        mut queue: MutexGuard<'_, Queue>,
        group: &Group,
        outcome: Outcome,
    ) {
        let next = if queue.closed.is_some() {
            let (next, _) = queue.close_group();
            next.tell(Outcome::Look);
            None
        } else {
            (!queue.members.is_empty()).then(|| Arc::clone(&queue.forming))
        };
        self.tell(queue, next, group, outcome);
    }

    /// Tells the group that was led what became of it, and calls a leader for the `next`.
    fn tell(
        &self,
        queue: MutexGuard<'_, Queue>,
        next: Option<Arc<Group>>,
        group: &Group,
        outcome: Outcome,
    ) {
        let watched = queue.watchers > 0;
        let is_closed = queue.closed.is_some();
        drop(queue);
        // First: its sync takes longer than waking the others.
        if let Some(next) = next {
            next.want_leader();
        }
        group.tell(outcome);
        if watched {
            self.queue_changed.notify_all();
        }
        if is_closed {
            self.fault.tell();
        }
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
        // Before anything is taken back: a transaction that reads ahead looks for it after reading.
        std::mem::take(&mut queue.line).refuse_above(queue.written.max(queue.visible));
        let waiting = std::mem::take(&mut queue.pending);
        queue.pending_bytes = 0;
        // Their entries must be there before they can be taken out; members need no lock for that.
        let (next, members) = queue.close_group();
        next.await_members(members.len() as u64);
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
        next.tell(Outcome::Look);
    }

    /// Goes on behind the Sequences that were refused: nothing lies there, and a transaction that
    /// begins now must not conflict with them for ever. All that is not refused is visible, or was
    /// written and synced by now: the leader syncs after a refusal, whatever it leads for.
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
        let based = Record::based_trees(&pending.payload);
        let (state, _) = self.current();
        state.memtables().for_each(|memtable| memtable.remove(sequence));
        if !based.is_empty() {
            self.change_state(|state, _| {
                based.iter().for_each(|tree| state.end_generation(*tree, sequence));
            });
        }
    }

    /// Refuses all writes from now on: something failed, and what it left is unknown.
    pub fn poison(&self, reason: &str) {
        self.fail(&mut self.queue(), reason);
        self.end(reason);
        self.fault.tell();
    }

    /// Closes the queue for a fault; to be told when the lock is let go. Once the owner has closed
    /// it, it is none.
    pub(crate) fn fail(&self, queue: &mut Queue, reason: &str) {
        if queue.closed.is_none() {
            self.fault.set(reason, self.machine.clock.now_micros());
            queue.closed = Some(reason.to_owned());
        }
    }

    /// Refuses all writes from now on.
    pub fn end(&self, reason: &str) {
        let mut queue = self.queue();
        queue.closed.get_or_insert(reason.to_owned());
        let (forming, _) = queue.close_group();
        forming.tell(Outcome::Look);
        if let Some(in_hand) = &queue.in_hand {
            in_hand.group.tell(Outcome::Look);
        }
        drop(queue);
        self.queue_changed.notify_all();
        self.signalled.notify_all();
        self.horizon.close();
    }
}

/// What a transaction is to the log, and what to the memtable.
struct Payloads {
    logged: PendingRecord,
    for_memtable: Bytes,
    new_chunks: NewChunks,
}

impl Payloads {
    fn of(record: &Record, new_chunks: NewChunks, recycler: &Arc<Recycler>) -> Payloads {
        let payload = record.encode_into(|bytes| recycler.payload(bytes));
        let logged = PendingRecord::new(recycler.share(payload));
        let for_memtable = match record.is_for_memtable() {
            true => logged.payload.clone(),
            false => recycler.share(record.writes_alone(|bytes| recycler.payload(bytes))),
        };
        Payloads { logged, for_memtable, new_chunks }
    }
}

/// A transaction that lined up.
struct Member {
    insertion: Arc<Insertion>,
    group: Arc<Group>,
}

/// The thread that holds it owes the group an arrival: the leader waits for it.
struct Arrival<'a> {
    shared: &'a Shared,
    group: &'a Group,
    insertion: &'a Insertion,
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Its entries aren't all there: nothing may become visible any more.
            self.shared.poison("a panic while entries were inserted");
        }
        self.insertion.end();
        self.group.arrive();
    }
}

/// Closes the engine if the thread panics: what is on the disk is unknown then.
pub(crate) struct PoisonOnPanic<'a>(pub &'a Shared);

impl Drop for PoisonOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.poison("a panic while the log was written or folded");
        }
    }
}

#[cfg(test)]
mod tests;
