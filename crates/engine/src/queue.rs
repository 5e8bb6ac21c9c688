//! The commit queue: everything that the commit lock guards.
//!
//! *Invariants*
//! 1. `visible <= last_live <= last` and `durable <= written <= last_live`.
//! 2. `pending` ascends by Sequence; what is in it is not written.
//! 3. Every Sequence above `visible` and up to `last_live` is pending, or in the hands of a
//!    leader, or written and waits for a sync. Its entries are in the memtable, or on their way
//!    there by a member of `forming` or `in_hand`.
//! 4. `in_hand` has one group at most, while `writer` is absent; where the log lies in a bucket,
//!    as many as may be on their way there, in the order of their places (`commit::pipelined`).

pub(crate) mod commit_wait;
pub(crate) mod commits;
pub(crate) mod conflicts;
pub(crate) mod group;
pub(crate) mod key_locks;
pub(crate) mod queued_reads;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Instant;

use frond_store::StoreError;

use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::log::format::SegmentNumber;
use crate::log::writer::{PendingRecord, Writer, WriterCounters};
use crate::overlay::memtable::Memtable;
use crate::queue::commit_wait::DurabilityWait;
use crate::queue::conflicts::ConflictTable;
use crate::queue::group::{Group, Insertion};
use crate::queue::queued_reads::QueuedCommits;

/// An opening skips so many Sequences: relaxed transactions that a crash took had greater ones than
/// the last that is found, and theirs must not be given out again. So that this holds over several
/// openings too, the first transaction of each is synced before it becomes visible.
const SEQUENCES_SKIPPED: u64 = 1 << 20;

const FOLLOWS: &str = "this member of the replica set doesn't lead it";

/// The queue of commits.
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
    /// The group that forms, and its members: every record in `pending` is a member's, or is
    /// visible already.
    pub forming: Arc<Group>,
    pub members: Vec<Arc<Insertion>>,
    /// The number of its members for which no thread waits ([`group::Follower`]).
    pub handed_on: usize,
    /// The number of those for which one does.
    pub waiting: usize,
    /// Groups that were notified with the queue locked: their followers aren't called yet.
    pub uncalled: Vec<Arc<Group>>,
    /// The groups that leaders have in hand.
    pub in_hand: VecDeque<InHand>,
    /// The greatest number of groups that are led beside each other.
    pub beside_max: Option<usize>,
    /// A leader gathers the next of these.
    pub is_gathering: bool,
    /// The queued commits, on which transactions that read ahead depend.
    pub queued: Arc<QueuedCommits>,
    /// The number of threads that wait for a change, see [`commits::CommitQueue`].
    pub watchers: u64,
    /// Records that wait for a leader.
    pub pending: Vec<PendingRecord>,
    pub pending_bytes: usize,
    /// Absent while a leader uses it.
    pub writer: Option<Writer>,
    /// Segments below this one are on the disk, until they are given up.
    pub segments_end: SegmentNumber,
    /// The segment up to which they should be.
    pub segment_wanted: SegmentNumber,
    pub writer_counters: WriterCounters,
    /// The reason why transactions were refused; each is returned once.
    pub refused: HashMap<Sequence, Refusal>,
    /// The error of the disk when it was full, until it takes writes again.
    pub disk_full: Option<Refusal>,
    /// The reason why no more writes are taken.
    pub closed: Option<String>,
    /// The moment from which on transactions may begin that write; `None`: this engine follows, and
    /// takes none.
    pub leads_from: Option<Sequence>,
}

/// A group that a leader is writing, its members, and since when.
pub(crate) struct InHand {
    pub group: Arc<Group>,
    pub members: Arc<[Arc<Insertion>]>,
    pub since: Instant,
}

/// The right to lead the group that forms: one thread has it.
#[expect(clippy::large_enum_variant, reason = "it is moved once for each group, and never kept")]
pub(crate) enum Lead {
    /// Until the group has its end.
    Alone(Writer),
    /// Until it has its place in the bucket; `is_gathering` is set.
    Beside,
}

/// A full disk's error, which each waiting committer gets.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    file: String,
    /// The system's number of the error, if it has one.
    code: Option<i32>,
    kind: io::ErrorKind,
    message: String,
}

impl Refusal {
    /// Keeps what an error says.
    pub fn new(error: &StoreError) -> Refusal {
        match error {
            StoreError::Io { file, source } => Refusal {
                file: file.clone(),
                code: source.raw_os_error(),
                kind: source.kind(),
                message: source.to_string(),
            },
            other => Refusal {
                file: "the store".to_owned(),
                code: None,
                kind: io::ErrorKind::Other,
                message: other.to_string(),
            },
        }
    }

    /// The error again.
    pub fn error(&self) -> EngineError {
        let made = || io::Error::new(self.kind, self.message.clone());
        let source = self.code.map_or_else(made, io::Error::from_raw_os_error);
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
    ) -> Queue {
        Queue {
            conflicts: ConflictTable::default(),
            active,
            segment,
            segment_bytes: 0,
            found: last,
            last: skipped(last),
            last_live: last,
            visible: last,
            written: last,
            durable: last,
            forming: Arc::default(),
            members: Vec::new(),
            handed_on: 0,
            waiting: 0,
            uncalled: Vec::new(),
            in_hand: VecDeque::new(),
            beside_max: None,
            is_gathering: false,
            queued: Arc::default(),
            watchers: 0,
            pending: Vec::new(),
            pending_bytes: 0,
            writer: Some(writer),
            segments_end: segment,
            segment_wanted: SegmentNumber(0),
            writer_counters: WriterCounters::default(),
            refused: HashMap::new(),
            disk_full: None,
            closed: None,
            leads_from: Some(Sequence::ZERO),
        }
    }

    /// Whether there is nothing queued that becomes visible by a commit of this process.
    pub fn is_all_visible(&self) -> bool {
        self.closed.is_some() || self.visible == self.last_live || self.leads_from.is_none()
    }

    /// Goes on behind Sequences that others may know of, and that nothing here has.
    pub fn skip_sequences(&mut self) {
        self.last = skipped(self.last);
    }

    /// Checks invariants 1 and 2.
    ///
    /// # Errors
    /// Says which of them doesn't hold.
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

    /// As `check_open`, for what has its place in the log: what became of it is unknown.
    ///
    /// # Errors
    /// [`EngineError::Unknown`] if the engine is closed.
    pub fn check_known(&self) -> Result<(), EngineError> {
        self.closed.as_ref().map_or(Ok(()), |reason| Err(EngineError::Unknown(reason.clone())))
    }

    /// Fails unless this engine leads, and did when a transaction of the moment `begun` was begun:
    /// what was applied until then was noted as no conflict.
    ///
    /// # Errors
    /// [`EngineError::Closed`] if it follows; [`EngineError::Conflict`] if the transaction is
    /// older.
    pub fn check_leads(&self, begun: Sequence) -> Result<(), EngineError> {
        match self.leads_from {
            Some(from) if from <= begun => Ok(()),
            Some(_) => Err(EngineError::Conflict { tree: TreeId::SYSTEM, key: Vec::new() }),
            None => Err(EngineError::Closed(FOLLOWS.to_owned())),
        }
    }

    /// Fails if the engine is closed.
    ///
    /// # Errors
    /// [`EngineError::Closed`] then, with the reason.
    pub fn check_open(&self) -> Result<(), EngineError> {
        self.closed.as_ref().map_or(Ok(()), |reason| Err(EngineError::Closed(reason.clone())))
    }

    /// A transaction whose outcome can't be known at once joins the group that forms.
    pub fn join(&mut self, insertion: &Arc<Insertion>) -> Arc<Group> {
        self.members.push(Arc::clone(insertion));
        Arc::clone(&self.forming)
    }

    /// Members whose entries aren't all in the memtable yet. Complete as long as the queue is open.
    pub fn unfinished(&self) -> Vec<(Arc<Group>, Arc<Insertion>)> {
        let in_hand = self.in_hand.iter().map(|in_hand| (&in_hand.group, &*in_hand.members));
        let groups = in_hand.chain([(&self.forming, &self.members[..])]);
        let mut unfinished = Vec::new();
        for (group, members) in groups.filter(|(group, all)| !group.have_arrived(all.len())) {
            let left = members.iter().filter(|member| !member.is_done());
            unfinished.extend(left.map(|member| (Arc::clone(group), Arc::clone(member))));
        }
        unfinished
    }

    /// Whether a thread may lead the group that forms. Where others are led beside it, one without
    /// records waits until they have their end.
    pub fn may_lead(&self) -> bool {
        let Some(most) = self.beside_max else { return self.writer.is_some() };
        let is_worth_it = self.in_hand.is_empty() || !self.pending.is_empty();
        !self.is_gathering && self.in_hand.len() < most && is_worth_it
    }

    /// Whether a thread that waits may lead, and no thread that leads for others will.
    pub fn may_lead_itself(&self) -> bool {
        self.may_lead() && (self.beside_max.is_none() || self.members.is_empty())
    }

    /// Whether a thread that leads for others should.
    pub fn is_worth_leading(&self) -> bool {
        self.may_lead() && !self.members.is_empty()
    }

    /// Counts a member of the group that forms, by how it waits.
    pub fn count_member(&mut self, waits: DurabilityWait<'_>) {
        match waits {
            DurabilityWait::While(_) => self.waiting += 1,
            DurabilityWait::HandedOn(_) => self.handed_on += 1,
            DurabilityWait::Never => {}
        }
    }

    /// Whether the group that forms has members, and none of them has a thread that could lead it.
    pub fn lacks_leader(&self) -> bool {
        0 < self.handed_on && self.waiting == 0
    }

    /// The right to lead the group that forms, if no other thread has it.
    pub fn take_lead(&mut self) -> Option<Lead> {
        if !self.may_lead() {
            return None;
        }
        if self.beside_max.is_some() {
            self.is_gathering = true;
            return Some(Lead::Beside);
        }
        self.writer.take().map(Lead::Alone)
    }

    /// Closes the group that forms; returns it with its members.
    pub fn close_group(&mut self) -> (Arc<Group>, Vec<Arc<Insertion>>) {
        (self.handed_on, self.waiting) = (0, 0);
        (std::mem::take(&mut self.forming), std::mem::take(&mut self.members))
    }
}

fn skipped(last: Sequence) -> Sequence {
    Sequence(last.0.saturating_add(SEQUENCES_SKIPPED)).min(Sequence::LAST.max(last))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use frond_testkit::SimDisk;
    use frond_tree::Value;

    use super::*;
    use crate::{Durability, Engine, EngineOptions, TreeId};

    /// A wrong clock and very many openings may use up all Sequences: nothing is lost, and writes
    /// are refused.
    #[test]
    fn where_no_sequence_is_left_writes_are_refused_and_reads_go_on() {
        let disk = SimDisk::new(1);
        let open = || Engine::open(&disk.machine(), EngineOptions::default()).expect("it opens");
        let put = |engine: &Engine| {
            let mut transaction = engine.begin();
            transaction.put(TreeId::SYSTEM, Bytes::from("q"), Value::inline("q")).expect("put");
            transaction.commit(Durability::Synced)
        };
        let engine = open();
        engine.shared().queue().last = Sequence(Sequence::LAST.0 - 1);
        assert_eq!(put(&engine).expect("one is left"), Sequence::LAST);
        assert!(matches!(put(&engine), Err(EngineError::Closed(_))));
        engine.checkpoint().expect("nothing is given out for that");
        engine.close().expect("closed");
        drop(engine);
        for _ in 0..2 {
            let engine = open();
            let found = engine.snapshot().get(TreeId::SYSTEM, b"q").expect("read");
            assert_eq!(found, Some(Value::inline("q")));
            assert!(matches!(put(&engine), Err(EngineError::Closed(_))));
            engine.close().expect("closed");
        }
    }
}
