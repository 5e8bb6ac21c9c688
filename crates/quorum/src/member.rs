//! A member of a set as a state machine: ticks, frames and proposals go in, [`Work`] comes out.
//!
//! The algorithm is Raft (Ongaro and Ousterhout, 2014) as the crate `raft` has it, with votes
//! before votes (`pre_vote`) and a leader that steps down when it hears from no majority
//! (`check_quorum`). It knows no disk, socket, clock or thread, so one seed replays a whole set.
//!
//! *How it is driven*: after each call, [`Member::take`] until there is no more work; of each:
//! 1. its frames are sent (they may be lost);
//! 2. its batch is appended to the log and synced, in the order of batches, and only then
//!    [`Member::synced`] is called with its number;
//! 3. its committed entries are applied, in their order.
//!
//! *Invariants*
//! 1. A frame that says that something is kept (an entry, a vote) leaves only once the batch with
//!    it, and all before it, are synced. Only a leader's entries leave before its own sync.
//! 2. No time, and no chance but that of the seed, decides anything. The library draws election
//!    timeouts from its own: [`Member::draw_timeout`] replaces what it drew before it counts.
//! 3. An entry of an earlier term is committed only together with one of the leader's own: it
//!    begins with an empty one.
//! 4. A vote of a member that may not have all that it acknowledged doesn't elect ([`doubt`]).
//! 5. A change of the voters is committed only once a majority of the members who stay hold it, and
//!    is over only once they know that ([`transition`]).

mod doubt;
mod frames;
mod outbox;
#[cfg(test)]
mod planted;
mod transition;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use frond_store::StoreError;
use raft::eraftpb::{self, Message, MessageType};
use raft::{Config, RawNode, ReadOnlyOption, StateRole};

use crate::configuration::{Change, Configuration};
use crate::convert;
use crate::entry::{Content, ENTRY_BYTES_MAX, Entry};
use crate::frame::Sent;
use crate::ids::{EntryIndex, MemberId, SetId, Term};
use crate::log::{Ballot, Batch, Log, Recovered};
use crate::log_view::LogView;
use doubt::{Doubt, Doubters, Grants};
use transition::Transition;

pub use outbox::{BatchNumber, Lack, ReadId, Refused, Role, Status, Work};

/// A leader is silent for at most so many ticks.
const HEARTBEAT_TICKS: usize = 2;
/// A follower that hears nothing for as many ticks as it drew from these stands for election.
const ELECTION_TICKS: std::ops::Range<usize> = 15..25;
/// The ticks for which a follower whose leader's process has ended waits before it stands, and for
/// which the next waits longer: two that stood at once would have to wait for a whole timeout.
const LOST_TICKS: usize = 1;
const LOST_TICKS_APART: usize = 2;
/// How often it then asks again for promises that it didn't get: the others may have noticed the
/// loss a moment later, or not be connected yet.
const LOST_ROUNDS: usize = 4;
/// A member that stands late has heard of no leader for so many ticks. By then others have stood
/// twice, in vain: it has an entry that they lack.
const LATE_TICKS: usize = 2 * ELECTION_TICKS.end;
/// Two messages with entries are under way to a follower: on a local network more gain nothing.
const MESSAGES_IN_FLIGHT: usize = 2;
/// A message holds several entries up to so many bytes.
const MESSAGE_BYTES: u64 = 4 << 20;
/// A leader takes no more once so many bytes are not committed.
const UNCOMMITTED_BYTES_MAX: u64 = 64 << 20;
/// The number of bytes of committed entries that are handed out at once.
const COMMITTED_BYTES: u64 = 16 << 20;

/// The least number of voters that stay: the library has one that is alone lead before its log is
/// synced.
const VOTERS_MIN: usize = 2;

/// A member of a set.
pub struct Member {
    raw: RawNode<LogView>,
    id: MemberId,
    set: SetId,
    configuration: Configuration,
    /// The ballot that was handed out last.
    ballot: Ballot,
    /// The index up to which all members hold the log, as a leader has reported it to a follower.
    reported_held: EntryIndex,
    lacks: Option<Lack>,
    doubt: Option<Doubt>,
    /// The candidate, and its term, that has all that is in doubt.
    certain: Option<(u64, u64)>,
    grants: Grants,
    promises: Grants,
    doubters: Doubters,
    /// The changes in its log that aren't applied, ascending.
    unapplied_changes: VecDeque<(EntryIndex, Change)>,
    /// A leader's change that hasn't settled.
    transition: Option<Transition>,
    /// Frames and marks of persistence that wait for batches to be synced.
    unsynced: VecDeque<Unsynced>,
    /// Those that may leave now.
    released: Vec<Sent>,
    seed: u64,
    /// Whether it leads only where no other member can.
    stands_late: bool,
    /// The ticks since it has heard from a leader, or has voted.
    silent_ticks: usize,
    /// How often it still asks for promises soon, because a leader's process has ended.
    lost_rounds: usize,
    #[cfg(test)]
    pub(crate) defect: Option<crate::defect::Defect>,
}

struct Unsynced {
    number: u64,
    /// Whether it has a batch of its own.
    writes: bool,
    /// The last entry of its batch, and that one's term.
    last: Option<(EntryIndex, Term)>,
    messages: Vec<Sent>,
}

/// The settings of the library's node.
fn config(member: MemberId, applied: EntryIndex) -> Config {
    Config {
        id: member.0,
        election_tick: ELECTION_TICKS.start,
        min_election_tick: ELECTION_TICKS.start,
        max_election_tick: ELECTION_TICKS.end,
        heartbeat_tick: HEARTBEAT_TICKS,
        applied: applied.0,
        max_size_per_msg: MESSAGE_BYTES,
        max_inflight_msgs: MESSAGES_IN_FLIGHT,
        check_quorum: true,
        pre_vote: true,
        // It travels with the next entries, if they come soon: see `Member::announce`.
        skip_bcast_commit: true,
        read_only_option: ReadOnlyOption::Safe,
        max_uncommitted_size: UNCOMMITTED_BYTES_MAX,
        max_committed_size_per_ready: COMMITTED_BYTES,
        ..Config::default()
    }
}

impl Member {
    /// A member whose log was opened, and whose entries up to `applied` were applied.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the log has less than was applied, or changes that are none.
    pub fn new(
        recovered: Recovered,
        log: Arc<dyn Log>,
        applied: EntryIndex,
        seed: u64,
    ) -> Result<Member, StoreError> {
        let damaged = |what: &str| StoreError::damaged("quorum-log", 0, what);
        if recovered.last() < applied.max(recovered.ballot.committed) {
            return Err(damaged("entries that were committed are missing"));
        }
        if applied < recovered.before() {
            return Err(damaged("it was cut behind what was applied"));
        }
        let configuration = recovered.configuration(applied).map_err(damaged)?;
        // Applied entries were committed, even if the log doesn't say so yet.
        let committed = recovered.ballot.committed.max(applied);
        let ballot = Ballot { committed, ..recovered.ballot };
        let mut unapplied_changes = VecDeque::from(recovered.changes);
        unapplied_changes.retain(|(index, _)| applied < *index);
        let view = LogView::new(log, recovered.terms, ballot, configuration.clone());
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let raw = RawNode::new(&config(recovered.member, applied), view, &logger)
            .map_err(|error| StoreError::damaged("quorum-log", 0, &error.to_string()))?;
        let mut member = Member {
            raw,
            id: recovered.member,
            set: recovered.set,
            configuration,
            ballot: recovered.ballot,
            reported_held: EntryIndex::ZERO,
            lacks: None,
            doubt: recovered.ballot.doubt.map(|term| Doubt { term, number: seed | 1 }),
            certain: None,
            grants: Grants::default(),
            promises: Grants::default(),
            doubters: Doubters::default(),
            unapplied_changes,
            transition: None,
            unsynced: VecDeque::new(),
            released: Vec::new(),
            seed,
            stands_late: false,
            silent_ticks: 0,
            lost_rounds: 0,
            #[cfg(test)]
            defect: None,
        };
        member.compare_with_end();
        member.draw_timeout();
        Ok(member)
    }

    /// A tenth of a second went by.
    pub fn tick(&mut self) {
        if self.lacks.is_some_and(Lack::is_final) {
            return;
        }
        self.wait_for_others();
        self.ask_again();
        self.raw.tick();
        self.draw_timeout();
        self.confirm();
    }

    /// Has it stand for election only where no other member can: it may hold what is committed and
    /// they don't. Once elected it should hand over as soon as another one holds that.
    pub fn stand_late(&mut self, late: bool) {
        self.stands_late = late;
    }

    /// Puts a member that stands late off. It promises its vote to others as ever, since its time
    /// without a leader counts on.
    fn wait_for_others(&mut self) {
        let raft = &mut self.raw.raft;
        if raft.election_elapsed == 0 {
            self.silent_ticks = 0;
        }
        self.silent_ticks += 1;
        if self.stands_late && raft.state != StateRole::Leader && self.silent_ticks < LATE_TICKS {
            // The next tick counts up to what is drawn at the least, and never beyond.
            raft.set_randomized_election_timeout(ELECTION_TICKS.end - 1);
            raft.election_elapsed = raft.election_elapsed.min(ELECTION_TICKS.start);
        }
    }

    /// The process of the member `lost` has ended, as closed connections show. If it leads, this
    /// member stands for election soon, and before the time is up in which it would have heard from
    /// it; if it leads still, because nothing but connections broke, a heartbeat takes that back.
    ///
    /// The voters take turns, by their ids and the term, so that one is elected before the next
    /// stands. It asks for promises first: members that hear from the leader refuse them.
    pub fn lost(&mut self, lost: MemberId) {
        let raft = &mut self.raw.raft;
        if raft.state != StateRole::Follower || raft.leader_id != lost.0 {
            return;
        }
        // Now it may promise its vote to another.
        raft.leader_id = raft::INVALID_ID;
        if self.stands_late {
            return;
        }
        let others = self.configuration.voters.iter().filter(|id| **id != lost);
        let Some(position) = others.clone().position(|id| *id == self.id) else { return };
        let count = others.count() as u64;
        let turn = ((position as u64 + raft.term) % count) as usize;
        let wait = LOST_TICKS + turn * LOST_TICKS_APART;
        let stands_at = raft.randomized_election_timeout().saturating_sub(wait);
        raft.election_elapsed = raft.election_elapsed.max(stands_at);
        self.lost_rounds = LOST_ROUNDS;
    }

    /// Has a member that lost its leader, and wasn't promised enough votes, ask again once all
    /// others have had their turn. It asks, and changes no term: so that is harmless.
    fn ask_again(&mut self) {
        let raft = &mut self.raw.raft;
        if raft.leader_id != raft::INVALID_ID {
            self.lost_rounds = 0;
        }
        let turns = LOST_TICKS_APART * self.configuration.voters.len().saturating_sub(1);
        if self.lost_rounds > 0
            && raft.state == StateRole::PreCandidate
            && turns <= raft.election_elapsed + 1
        {
            self.lost_rounds -= 1;
            raft.election_elapsed = raft.randomized_election_timeout();
        }
    }

    /// Proposes an entry. It is committed if an entry with this index and term is; if one with
    /// another term is committed at this index, it never will be.
    ///
    /// # Errors
    /// [`Refused`]: it isn't in the log.
    pub fn propose(&mut self, bytes: Bytes) -> Result<(EntryIndex, Term), Refused> {
        if bytes.is_empty() {
            return Err(Refused::Invalid("an entry has bytes"));
        }
        if ENTRY_BYTES_MAX < bytes.len() {
            return Err(Refused::Invalid("an entry has at most 64 MB"));
        }
        self.check_leads()?;
        let entry = eraftpb::Entry { data: bytes, ..eraftpb::Entry::default() };
        let mut message = Message { from: self.id.0, ..Message::default() };
        message.set_msg_type(MessageType::MsgPropose);
        message.mut_entries().push(entry);
        self.raw.raft.step(message).map_err(|_| self.why_dropped())?;
        Ok((EntryIndex(self.raw.raft.raft_log.last_index()), Term(self.raw.raft.term)))
    }

    /// Lets those others know at once what is committed that don't yet. Otherwise they learn it
    /// with the next entries, or by the second heartbeat from now.
    pub fn announce(&mut self) {
        if self.role() != Role::Leader {
            return;
        }
        let raft = &self.raw.raft;
        let (own, committed) = (raft.id, raft.raft_log.committed);
        let others = raft.prs().iter().filter(|(id, _)| **id != own);
        let ignorant = others.filter(|(_, progress)| progress.committed_index < committed);
        let ignorant: Vec<u64> = ignorant.map(|(id, _)| *id).collect();
        for id in ignorant {
            self.raw.raft.send_append(id);
        }
    }

    /// Proposes a change of the members, as [`Member::propose`] does an entry.
    ///
    /// # Errors
    /// [`Refused`]: it isn't in the log.
    pub fn change(&mut self, change: Change) -> Result<(EntryIndex, Term), Refused> {
        self.check_leads()?;
        if self.raw.raft.has_pending_conf() || self.transition.is_some() {
            return Err(Refused::ChangeUnderWay);
        }
        if !self.raw.raft.commit_to_current_term() {
            // Or two leaders might change the same configuration, each by one: see Ongaro's note
            // "bug in single-server membership changes" of 2015.
            return Err(Refused::NotReady);
        }
        if change == Change::Remove(self.id) {
            return Err(Refused::Invalid("a leader hands over before it is removed"));
        }
        let after = self.configuration.after(change).map_err(Refused::Invalid)?;
        if after.voters.len() < VOTERS_MIN.min(self.configuration.voters.len()) {
            return Err(Refused::Invalid("two members with a vote must stay"));
        }
        self.raw
            .propose_conf_change(change.encode().to_vec(), convert::raft_change(change))
            .map_err(|_| self.why_dropped())?;
        Ok((EntryIndex(self.raw.raft.raft_log.last_index()), Term(self.raw.raft.term)))
    }

    /// Asks for a moment to read at: see [`Work::reads`]. It is never answered if this member
    /// ceases to lead first.
    ///
    /// # Errors
    /// [`Refused`] if it can't lead a read.
    pub fn read(&mut self, read: ReadId) -> Result<(), Refused> {
        self.check_leads()?;
        if !self.raw.raft.commit_to_current_term() {
            return Err(Refused::NotReady);
        }
        self.raw.read_index(read.0.to_le_bytes().to_vec());
        Ok(())
    }

    /// Has `to` lead, once it holds all entries. Until then, for an election's time at most, this
    /// member takes no proposals.
    ///
    /// # Errors
    /// [`Refused`] if it doesn't lead, or `to` has no vote.
    pub fn hand_over(&mut self, to: MemberId) -> Result<(), Refused> {
        self.check_leads()?;
        if to == self.id || !self.configuration.voters.contains(&to) {
            return Err(Refused::Invalid("another member with a vote can lead"));
        }
        self.raw.transfer_leader(to.0);
        Ok(())
    }

    /// Forgets the entries up to this one, which it has applied: they are about to be cut off the
    /// log. A member that doesn't hold them ([`Status::held_by_all`]) will lack them.
    pub fn compact(&mut self, up_to: EntryIndex) {
        self.raw.mut_store().compact(up_to);
    }

    /// All batches up to this one are durable.
    pub fn synced(&mut self, number: BatchNumber) {
        let mut messages = Vec::new();
        let mut last = None;
        while let Some(first) = self.unsynced.front() {
            // An entry without a batch only waited for the batches before it.
            if number.0 < first.number && first.writes {
                break;
            }
            let done = self.unsynced.pop_front().expect("one was found");
            messages.extend(done.messages);
            last = Some(done.number);
            if let Some((index, term)) = done.last
                && self.raw.store().term_of(index) == Some(term)
            {
                self.raw.mut_store().synced(index);
            }
        }
        if let Some(last) = last {
            self.raw.on_persist_ready(last);
            self.compare_with_end();
            self.count_again();
        }
        self.released.extend(messages);
    }

    /// The next work, if there is some.
    pub fn take(&mut self) -> Option<Work> {
        #[cfg(test)]
        self.act_on_defect();
        let mut work = Work::default();
        let mut messages = std::mem::take(&mut self.released);
        if self.raw.has_ready() {
            self.take_ready(&mut work, &mut messages);
        } else if messages.is_empty() {
            return None;
        }
        work.frames = self.frames(messages);
        Some(work)
    }

    fn take_ready(&mut self, work: &mut Work, messages: &mut Vec<Sent>) {
        let mut ready = self.raw.ready();
        messages.extend(self.all_sent(ready.take_messages()));
        let number = ready.number();
        let held = self.all_sent(ready.take_persisted_messages());
        let committed = ready.take_committed_entries();
        let reads = ready.take_read_states();
        let entries: Vec<Entry> = ready.take_entries().iter().map(convert::entry_of).collect();
        self.raw.mut_store().append(&entries);
        self.note_changes(&entries);
        self.raw.advance_append_async(ready);
        let ballot = self.next_ballot(!entries.is_empty());
        let last = entries.last().map(|entry| (entry.index, entry.term));
        let writes = ballot.is_some() || last.is_some();
        if writes {
            work.batch = Some((BatchNumber(number), Batch { ballot, entries }));
        }
        if writes || !self.unsynced.is_empty() {
            self.unsynced.push_back(Unsynced { number, writes, last, messages: held });
        } else {
            messages.extend(held);
            self.raw.on_persist_ready(number);
        }
        work.reads = reads
            .into_iter()
            .map(|read| (read_id(&read.request_ctx), EntryIndex(read.index)))
            .collect();
        work.committed = committed.iter().map(convert::entry_of).collect();
        for entry in &work.committed {
            if let Content::Change(change) = entry.content {
                self.apply_change(entry.index, change);
            }
        }
        if let Some(last) = work.committed.last() {
            self.raw.advance_apply_to(last.index.0);
        }
        self.confirm();
    }

    /// The ballot, if it must be written. The committed index is only written along with entries,
    /// and always then: a member that forgets it knows at least as much as the leader of its last
    /// entry knew, and so its configuration is never older than by one change.
    fn next_ballot(&mut self, has_entries: bool) -> Option<Ballot> {
        let raft = &self.raw.raft;
        let ballot = Ballot {
            term: Term(raft.term),
            vote: (raft.vote != 0).then_some(MemberId(raft.vote)),
            committed: EntryIndex(raft.raft_log.committed),
            doubt: self.doubt.as_ref().map(|doubt| doubt.term),
        };
        let is_new = Ballot { committed: self.ballot.committed, ..ballot } != self.ballot;
        let is_reported = is_new || has_entries && ballot.committed != self.ballot.committed;
        is_reported.then(|| {
            self.ballot = ballot;
            ballot
        })
    }

    fn apply_change(&mut self, index: EntryIndex, change: Change) {
        let after = self.configuration.after(change);
        self.configuration = after.expect("it was proposed to this very configuration");
        if change == Change::Remove(self.id) && self.role() != Role::Follower {
            // A leader before this one proposed it. The library expects a leader, and a candidate
            // that gets votes, to be a member.
            let term = self.raw.raft.term;
            self.raw.raft.become_follower(term, raft::INVALID_ID);
            self.draw_timeout();
        }
        #[cfg(test)]
        let change = self.change_with_defect(change);
        let applied = self.raw.apply_conf_change(&convert::raft_change(change));
        applied.expect("one member at a time can change in any configuration");
        self.note_applied_change(index);
    }

    /// Returns the member's status.
    pub fn status(&self) -> Status {
        let raft = &self.raw.raft;
        let role = self.role();
        let mut held = Vec::new();
        if role == Role::Leader {
            let members = raft.prs().iter();
            held.extend(
                members.map(|(id, progress)| (MemberId(*id), EntryIndex(progress.matched))),
            );
            held.sort();
        }
        Status {
            role,
            term: Term(raft.term),
            leader: (raft.leader_id != 0).then_some(MemberId(raft.leader_id)),
            committed: EntryIndex(raft.raft_log.committed),
            last: EntryIndex(raft.raft_log.last_index()),
            configuration: self.configuration.clone(),
            held,
            held_by_all: self.held_by_all(),
            // A leader has all that is committed, whatever it seemed to lack before.
            lacks: self.lacks.filter(|lack| role != Role::Leader || *lack != Lack::Compacted),
            doubts: self.doubt.is_some(),
            settled: role == Role::Leader
                && self.transition.is_none()
                && !raft.has_pending_conf()
                && raft.commit_to_current_term(),
        }
    }

    /// As [`Status::held_by_all`]. Entries that all hold will never be replaced: a member without
    /// them is never elected.
    fn held_by_all(&self) -> EntryIndex {
        let raft = &self.raw.raft;
        let held = match self.role() {
            Role::Leader => raft.prs().iter().map(|(_, progress)| progress.matched).min(),
            Role::Follower | Role::Candidate => Some(self.reported_held.0),
        };
        EntryIndex(held.unwrap_or(0).min(raft.raft_log.committed))
    }

    /// Returns the present role.
    pub fn role(&self) -> Role {
        match self.raw.raft.state {
            StateRole::Follower => Role::Follower,
            StateRole::Candidate | StateRole::PreCandidate => Role::Candidate,
            StateRole::Leader => Role::Leader,
        }
    }

    /// Its id.
    pub fn id(&self) -> MemberId {
        self.id
    }

    fn check_leads(&self) -> Result<(), Refused> {
        if self.role() == Role::Leader { Ok(()) } else { Err(Refused::NotLeader) }
    }

    /// Returns why the library dropped a proposal of a leader.
    fn why_dropped(&self) -> Refused {
        match self.raw.raft.lead_transferee {
            Some(_) => Refused::NotReady,
            None => Refused::Full,
        }
    }

    /// Whenever the time to an election has begun anew: invariant 2.
    fn draw_timeout(&mut self) {
        if self.raw.raft.election_elapsed != 0 {
            return;
        }
        // SplitMix64.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut drawn = self.seed;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        drawn ^= drawn >> 31;
        let ticks = ELECTION_TICKS.start + (drawn % ELECTION_TICKS.len() as u64) as usize;
        self.raw.raft.set_randomized_election_timeout(ticks);
    }
}

fn read_id(context: &[u8]) -> ReadId {
    let id = context.try_into().expect("a read is asked for with eight bytes");
    ReadId(u64::from_le_bytes(id))
}
