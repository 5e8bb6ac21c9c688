//! Commits transactions: one order for all, one sync for many.
//!
//! First a transaction is admitted (`admission`): it is refused where the disk is short, and waits
//! while memory is at its limit (`stall`), which is where writers are slowed. Then:
//!
//! 1. Under the queue's lock, which is held for microseconds: validate (the first committer wins,
//!    and no transaction writes what another has locked), take the next Sequence, join the queue
//!    for the log, join the group that forms (`queue/group`).
//! 2. Without it, all members at once: insert into the memtable, and let go of key locks. The next
//!    holder of one sees queued commits (`ahead`).
//! 3. A member that finds no leader becomes the leader (`lead`): it takes all that waits, writes it
//!    with one write and syncs once, with no lock held. The records queued meanwhile are the next
//!    group.
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
//! 2. A refused transaction (full disk, `refusal`) was never visible; its entries and generations
//!    are taken out of the State before another gets a Sequence. Its fingerprints stay, and may
//!    cost a retry. The part of it that was written is cut off, and the cut is synced, before its
//!    committer gets the answer: no crash brings it back. Whatever had read it ahead of its being
//!    visible is refused with it, or finds that it has read what never was
//!    ([`crate::queue::queued_reads`]).
//! 3. After any other failure of a write or sync the engine is closed (`closing`): reads go on, no
//!    write is taken, and nothing that was not visible becomes so. Whatever had its Sequence by
//!    then gets the error that its outcome is unknown, whatever had none that nothing was written.
//! 4. Where a thread may lead and a group has members, one of them was called to.
//!
//! *In a set* ([`crate::order`]) a group is agreed on before it is written, and not synced then: it
//! is durable once a majority holds it. No transaction is relaxed, and none refused once it has its
//! place: what follows it is in others' logs. Where the log lies in a bucket it is the same, but
//! that transactions may be relaxed: no other machine sees them before, and that several groups are
//! led beside each other (`beside`).

mod admission;
mod closing;
mod handed_on;
mod lead;
mod pipelined;
mod prepare;
mod read_queued;
mod refusal;
mod retention;
mod staging;
mod stall;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::EngineError;
use crate::ids::Sequence;
use crate::log::record::Record;
use crate::log::writer::PendingRecord;
use crate::overlay::memtable::Memtable;
use crate::queue::commit_wait::{CommitWait, DurabilityWait};
use crate::queue::conflicts::{ConflictSet, TransactionStart};
use crate::queue::group::{Call, Group, Insertion, Outcome};
use crate::queue::queued_reads::QueuedReads;
use crate::queue::{Lead, Queue};
use crate::shared::Shared;
use crate::slow_commits::{Stage, Stopwatch};
use crate::state::{Sealed, TreeGeneration};
use crate::statistics::counters::Counters;
use crate::transaction::Durability;
use crate::transaction::held_locks::HeldLocks;
use crate::transaction::write_set::WriteSet;
pub(crate) use closing::PoisonOnPanic;
use lead::GROUPS_LED_MAX;
use prepare::{Payloads, Prepared};

/// Relaxed transactions are written (not synced) once so many bytes wait.
const PENDING_BYTES_MAX: usize = 1 << 20;
/// The error of a data directory that was at the end of its Sequences for very long.
const NO_SEQUENCES: &str = "no Sequence is left: its clock was wrong for long; what it holds can be read, and moved to \
                            a new directory by frond clone, or frond export and import";

impl Shared {
    /// Commits the writes of a transaction that was begun at `beginning`. Its key locks are let go
    /// once it is queued and its entries are in the memtable: the next holders see these.
    ///
    /// # Errors
    /// As [`Transaction::commit`](crate::Transaction::commit).
    pub fn commit(
        &self,
        beginning: TransactionStart<'_>,
        own: WriteSet,
        durability: Durability,
        held_locks: &mut HeldLocks,
        patience: CommitWait<'_>,
    ) -> Result<Sequence, EngineError> {
        let bytes = own.bytes();
        let mut watch = Stopwatch::start();
        let durability = if self.is_in_set() { Durability::Synced } else { durability };
        let patience = self.commit_wait(patience);
        let turn = self.admit(bytes, beginning.gives_back, &mut watch, patience.for_room)?;
        let mut prepared = self.prepare(own)?;
        watch.lap(Stage::Prepare);
        let staged = std::mem::take(&mut prepared.staged);
        let terms = (durability, patience.for_log);
        let committed = self.commit_prepared(beginning, prepared, terms, held_locks, &mut watch);
        self.unstage(staged);
        let sequence = committed?;
        self.delay(turn, &mut watch);
        self.slowest.note(&watch, bytes);
        Counters::count(&self.counters.commits);
        self.counters.bytes_given.fetch_add(bytes, Ordering::Relaxed);
        Ok(sequence)
    }

    /// Has what a bucket takes waited for by its own thread: that takes long, and may be
    /// interrupted.
    fn commit_wait<'a>(&self, patience: CommitWait<'a>) -> CommitWait<'a> {
        let has_slots = self.order.as_ref().is_some_and(|order| order.slots().is_some());
        match patience.for_log {
            DurabilityWait::HandedOn(_) if has_slots => {
                CommitWait { for_log: DurabilityWait::While(patience.for_room), ..patience }
            }
            _ => patience,
        }
    }

    fn commit_prepared(
        &self,
        beginning: TransactionStart<'_>,
        Prepared { record, conflict_set, payloads, .. }: Prepared,
        (durability, awaits): (Durability, DurabilityWait<'_>),
        held_locks: &mut HeldLocks,
        watch: &mut Stopwatch,
    ) -> Result<Sequence, EngineError> {
        let mut queue = self.queue();
        self.validate(&queue, beginning, &record, &conflict_set)?;
        let now_micros = self.machine.clock.now_micros();
        let Some(sequence) = queue.last.following(now_micros) else {
            return Err(EngineError::Closed(NO_SEQUENCES.to_owned()));
        };
        // From here on a panic leaves open what becomes of the transaction.
        let _panics = PoisonOnPanic(self);
        let member =
            self.enqueue(&mut queue, &record, &conflict_set, payloads, (sequence, durability));
        if let Some(member) = member {
            let is_led = self.call_leader(&queue);
            let is_left = !matches!(awaits, DurabilityWait::While(_));
            queue.count_member(awaits);
            let lead = if is_led || is_left { None } else { queue.take_lead() };
            drop(queue);
            drop(record);
            watch.lap(Stage::Queue);
            self.insert(&member.group, &member.insertion);
            watch.lap(Stage::Insert);
            held_locks.release(self);
            let keep_going = match awaits {
                DurabilityWait::While(keep_going) => keep_going,
                DurabilityWait::Never => {
                    // The next that waits leads, or else the thread that syncs now and then.
                    self.signals.want_sync();
                    return Ok(sequence);
                }
                DurabilityWait::HandedOn(group) => {
                    group.set(Some(member.group));
                    return Ok(sequence);
                }
            };
            if is_led {
                return self.await_outcome(member, sequence, durability, keep_going);
            }
            self.go_with_group(member, lead, sequence, durability, watch)?;
        } else {
            let many = queue.pending_bytes >= PENDING_BYTES_MAX && queue.beside_max.is_none();
            let lead = if many { queue.take_lead() } else { None };
            drop(queue);
            watch.lap(Stage::Queue);
            held_locks.release(self);
            if let Some(lead) = lead {
                self.lead_as(lead, (Durability::Relaxed, GROUPS_LED_MAX), watch);
            }
            self.signals.want_sync();
        }
        Ok(sequence)
    }

    /// Refuses a transaction with which something that was committed since it began conflicts, or
    /// that writes what another has locked.
    fn validate(
        &self,
        queue: &Queue,
        beginning: TransactionStart<'_>,
        record: &Record,
        conflict_set: &ConflictSet,
    ) -> Result<(), EngineError> {
        queue.check_open()?;
        queue.check_leads(beginning.sequence)?;
        if let Some(refusal) = beginning.requires.and_then(|earlier| queue.refused.get(&earlier)) {
            return Err(refusal.error());
        }
        let lacks_events = beginning.term != self.kept.term() && self.kept.is_on();
        if lacks_events || beginning.ahead.is_some_and(QueuedReads::is_refused) {
            return Err(EngineError::Withdrawn);
        }
        if let Some((tree, key)) = queue.conflicts.conflict(beginning, record, conflict_set) {
            Counters::count(&self.counters.conflicts);
            return Err(EngineError::Conflict { tree, key: key.to_vec() });
        }
        if let Some(owner) = beginning.without_claims {
            let is_foreign = |fingerprint| self.key_locks.is_foreign(owner, fingerprint);
            if let Some((tree, key)) = conflict_set.written_key(record, is_foreign) {
                Counters::count(&self.counters.conflicts);
                return Err(EngineError::Conflict { tree, key: key.to_vec() });
            }
        }
        Ok(())
    }

    /// Gives a valid transaction its place in the log. It is visible then, unless it is returned as
    /// a member of the group that forms.
    fn enqueue(
        &self,
        queue: &mut Queue,
        record: &Record,
        conflict_set: &ConflictSet,
        payloads: Payloads,
        (sequence, durability): (Sequence, Durability),
    ) -> Option<Member> {
        let Payloads { logged, for_memtable, befores, new_chunks } = payloads;
        if queue.conflicts.is_forgetting_due() {
            queue.conflicts.forget(self.oldest_transaction());
        }
        queue.conflicts.note(record, conflict_set, sequence);
        if !record.bases.is_empty() {
            self.begin_generations(record, sequence);
        }
        let all_visible = queue.found < queue.durable && queue.visible == queue.last_live;
        let member = if durability == Durability::Relaxed && all_visible {
            queue.active.add_new_chunks(&new_chunks);
            queue.active.insert_knowing(sequence, &for_memtable, &befores);
            queue.visible = sequence;
            self.make_visible(sequence);
            None
        } else {
            let memtable = Arc::clone(&queue.active);
            let entries = (for_memtable, befores);
            let insertion = Arc::new(Insertion::new(memtable, sequence, entries, new_chunks));
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

    pub(crate) fn begin_generations(&self, record: &Record, sequence: Sequence) {
        self.change_state(|state, visible| {
            for (tree, base) in &record.bases {
                state.begin_generation(*tree, TreeGeneration::begun(sequence, *base), visible);
            }
        });
        self.published.unpublished.note_logged(sequence, &record.bases);
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
        self.signals.want_flush();
    }

    /// Waits until a member's group is as durable as asked; leads it, if it has the right to or is
    /// called to.
    fn go_with_group(
        &self,
        member: Member,
        lead: Option<Lead>,
        sequence: Sequence,
        durability: Durability,
        watch: &mut Stopwatch,
    ) -> Result<(), EngineError> {
        let Member { insertion, group } = member;
        // Before the group ends, so that only its leader is left to free it.
        drop(insertion);
        if let Some(lead) = lead {
            self.lead_as(lead, (Durability::Synced, GROUPS_LED_MAX), watch);
        }
        loop {
            let call = group.wait();
            watch.lap(Stage::Group);
            match call {
                Call::End(Outcome::Durable) => return Ok(()),
                Call::End(Outcome::Recheck) => return self.recheck(sequence, durability),
                Call::Lead => {
                    let lead = self.queue().take_lead();
                    if let Some(lead) = lead {
                        self.lead_as(lead, (Durability::Synced, GROUPS_LED_MAX), watch);
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
}

/// A transaction that was queued.
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

#[cfg(test)]
mod tests;
