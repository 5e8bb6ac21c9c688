//! A member that may have lost the end of its log: something was cut off there when it was opened,
//! and what a crash left of a write looks like an end that was acknowledged and is damaged.
//!
//! Raft counts on it that a member has what it acknowledged: a member that is elected lacks nothing
//! that was committed, since of its voters one would have it and refuse. This member knows its own
//! vote (it is in a file of its own), and with it the newest term in which it may have acknowledged
//! entries: that of its doubt. So:
//!
//! 1. It says of each frame that it doubts. Its vote counts as one only for a member whose last
//!    entry is of a later term than the doubt's, so that it has all that is in question; or where
//!    *all* members vote for that candidate: then no other has more, and what this one may have
//!    lost is on no disk of a member. So a set of whose members all doubt begins by itself. Of two
//!    voters, all are those too to whom an entry in the candidate's log gives a vote: that may be
//!    committed, and the candidate not know it.
//! 2. It takes and acknowledges entries as ever: what it says that it holds it holds. It doesn't
//!    believe a heartbeat's committed index, as that rests on its own earlier acknowledgements.
//! 3. The doubt is over once it holds an entry of a later term, and so all that its leader had. Or
//!    once it holds all that the leader of its own term can have sent it before it began: it asks
//!    with a number that it has drawn, and the leader answers with its own last entry.
//! 4. A leader that hears of a doubt forgets what that member held, and sends what it lacks.
//!
//! Where the leader of the doubt's term doesn't come back, no other member was elected since, and
//! not all members vote, an operator decides: docs/replica-sets.md.

use std::collections::{BTreeMap, BTreeSet};

use raft::StateRole;
use raft::eraftpb::{Message, MessageType};

use super::{Member, Role};
use crate::configuration::Change;
use crate::frame::Sent;
use crate::ids::{EntryIndex, MemberId, Term};

/// The doubt of a member.
pub(super) struct Doubt {
    /// The term of the doubt: lost entries, if any, were acknowledged in this term or an earlier
    /// one.
    pub term: Term,
    /// Drawn when it began, not 0: what answers this was said since.
    pub number: u64,
}

/// The members whose doubt a leader knows.
#[derive(Default)]
pub(super) struct Doubters {
    /// The leader's term.
    term: u64,
    /// The number that each has drawn, and what it must hold.
    goals: BTreeMap<u64, (u64, EntryIndex)>,
}

impl Doubters {
    /// Returns the number that a member in doubt has drawn, and the index up to which it must hold
    /// entries.
    pub fn goal_of(&self, member: u64, term: u64) -> Option<(u64, EntryIndex)> {
        self.goals.get(&member).copied().filter(|_| self.term == term)
    }

    /// Notes what a member must hold, unless that is known. Returns it, and whether it is new.
    fn note(&mut self, message: &Message, number: u64, last: EntryIndex) -> (EntryIndex, bool) {
        if self.term != message.term {
            *self = Doubters { term: message.term, goals: BTreeMap::new() };
        }
        let known = self.goals.get(&message.from).filter(|(known, _)| *known == number);
        if let Some((_, goal)) = known {
            return (*goal, false);
        }
        self.goals.insert(message.from, (number, last));
        (last, true)
    }
}

/// Votes that a candidate got, and that don't count yet.
#[derive(Default)]
pub(super) struct Grants {
    term: u64,
    certain: BTreeSet<MemberId>,
    held: BTreeMap<MemberId, Message>,
}

impl Grants {
    fn note(&mut self, message: Message, is_certain: bool) {
        if self.term != message.term {
            *self = Grants { term: message.term, ..Grants::default() };
        }
        let from = MemberId(message.from);
        if is_certain {
            self.certain.insert(from);
        }
        self.held.insert(from, message);
    }

    /// Checks whether the grants elect `own`, whose vote for itself is certain or not. `promoted`
    /// are members that may be voters as well.
    fn elect(
        &self,
        voters: &BTreeSet<MemberId>,
        promoted: &[MemberId],
        own: MemberId,
        is_certain: bool,
    ) -> bool {
        let is_sure = |id: &&MemberId| match **id == own {
            true => is_certain,
            false => self.certain.contains(id),
        };
        let sure = voters.iter().filter(is_sure).count();
        let mut all = voters.iter().chain(promoted);
        voters.len() / 2 < sure || all.all(|id| *id == own || self.held.contains_key(id))
    }
}

/// Whether a message of this kind is a vote, or the promise of one.
pub(super) fn is_vote(kind: MessageType) -> bool {
    kind == MessageType::MsgRequestVoteResponse || kind == MessageType::MsgRequestPreVoteResponse
}

/// Whether a message of this kind asks for a vote, or for the promise of one.
fn is_vote_request(kind: MessageType) -> bool {
    kind == MessageType::MsgRequestVote || kind == MessageType::MsgRequestPreVote
}

impl Member {
    /// A message that this member has just made.
    pub(super) fn sent(&self, message: Message) -> Sent {
        let is_certain =
            is_vote(message.get_msg_type()) && self.certain == Some((message.to, message.term));
        Sent { doubts: self.doubt.is_some() && !is_certain, message }
    }

    /// Messages that this member has just made, and that a member is asked for its vote, too, whose
    /// vote may count.
    pub(super) fn all_sent(&self, mut messages: Vec<Message>) -> Vec<Sent> {
        let request = messages.iter().find(|message| is_vote_request(message.get_msg_type()));
        if let Some(request) = request.cloned() {
            let promoted = self.promoted().into_iter();
            messages.extend(promoted.map(|to| Message { to: to.0, ..request.clone() }));
        }
        messages.into_iter().map(|message| self.sent(message)).collect()
    }

    /// Returns, in a set of two voters, those to whom an entry in the log gives a vote, as far as
    /// is known not yet. In a larger one a majority with the new one has two voters of before in
    /// it, of whom one at most has lost what they hold.
    fn promoted(&self) -> Vec<MemberId> {
        if self.configuration.voters.len() != 2 {
            return Vec::new();
        }
        let changes = self.unapplied_changes.iter();
        changes
            .filter_map(|(_, change)| match change {
                Change::Promote(id) => Some(*id),
                Change::AddLearner(_) | Change::Remove(_) => None,
            })
            .collect()
    }

    /// Notes whether a candidate has all that this member may have lost.
    pub(super) fn note_candidate(&mut self, message: &Message) {
        if self.doubt.as_ref().is_some_and(|doubt| doubt.term.0 < message.log_term) {
            self.certain = Some((message.from, message.term));
        }
    }

    /// Takes a vote for this member, or the promise of one: they count once they elect it. One that
    /// can't be elected so doesn't stand: with each election it would put off the next.
    pub(super) fn take_grant(&mut self, message: Message, doubts: bool) {
        let promoted = self.promoted();
        let raft = &self.raw.raft;
        let is_promise = message.get_msg_type() == MessageType::MsgRequestPreVoteResponse;
        let (state, term, grants) = match is_promise {
            true => (StateRole::PreCandidate, raft.term + 1, &mut self.promises),
            false => (StateRole::Candidate, raft.term, &mut self.grants),
        };
        if raft.state != state || message.term != term {
            let _ = self.raw.step(message);
            return;
        }
        #[cfg(test)]
        let doubts = doubts && self.defect != Some(crate::defect::Defect::DoubtCounted);
        grants.note(message, !doubts);
        if grants.elect(&self.configuration.voters, &promoted, self.id, self.doubt.is_none()) {
            for vote in std::mem::take(&mut grants.held).into_values() {
                let _ = self.raw.step(vote);
            }
        }
    }

    /// Takes out of a heartbeat's answer what a member says of its doubt.
    pub(super) fn note_doubter(&mut self, message: &mut Message, doubts: bool) {
        let number = std::mem::take(&mut message.index);
        let held = std::mem::take(&mut message.log_term);
        if self.role() != Role::Leader || message.term != self.raw.raft.term {
            return;
        }
        if !doubts || number == 0 {
            self.doubters.goals.remove(&message.from);
            return;
        }
        let last = self.raw.raft.raft_log.last_index();
        let (goal, is_new) = self.doubters.note(message, number, EntryIndex(last));
        let Some(progress) = self.raw.raft.mut_prs().get_mut(message.from) else { return };
        // An answer that was late may have said again what it held before.
        if is_new || goal.0 <= progress.matched || held < progress.matched {
            progress.become_probe();
            progress.matched = 0;
            progress.next_idx = held.min(last) + 1;
            self.forget_acknowledgement(message.from);
        }
    }

    /// The leader, of this term, says that the member with this number lacks nothing if it has its
    /// entry `goal`.
    pub(super) fn compare_with_goal(&mut self, number: u64, goal: EntryIndex) {
        let raft = &self.raw.raft;
        // An entry of this term is the leader's: so are all before it.
        let holds = goal.0 <= raft.raft_log.persisted
            && self.raw.store().term_of(goal) == Some(Term(raft.term));
        if holds && self.doubt.as_ref().is_some_and(|doubt| doubt.number == number) {
            self.doubt = None;
        }
    }

    /// The doubt is over where the last entry that is durable is of a later term.
    pub(super) fn compare_with_end(&mut self) {
        let end = self.raw.store().term_of(EntryIndex(self.raw.raft.raft_log.persisted));
        self.doubt.take_if(|doubt| end.is_some_and(|end| doubt.term < end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubtful_vote_counts_where_all_vote() {
        let voters: BTreeSet<MemberId> = (1..=3).map(MemberId).collect();
        let elected_with = |promoted: &[MemberId], own_certain, votes: &[(u64, bool)]| {
            let mut grants = Grants::default();
            for (from, is_certain) in votes {
                let message = Message { from: *from, term: 4, ..Message::default() };
                grants.note(message, *is_certain);
            }
            grants.elect(&voters, promoted, MemberId(1), own_certain)
        };
        let elected = |own_certain, votes: &[(u64, bool)]| elected_with(&[], own_certain, votes);
        assert!(elected(true, &[(2, true)]));
        assert!(!elected(true, &[(2, false)]));
        assert!(elected(true, &[(2, false), (3, true)]));
        assert!(elected(false, &[(2, true), (3, true)]));
        assert!(!elected(false, &[(2, true)]));
        assert!(elected(false, &[(2, false), (3, false)]));
        // One that may have got a vote.
        let promoted = [MemberId(4)];
        assert!(!elected_with(&promoted, false, &[(2, false), (3, false)]));
        assert!(elected_with(&promoted, false, &[(2, false), (3, false), (4, true)]));
        assert!(!elected_with(&promoted, true, &[(2, false), (4, true)]));
        assert!(elected_with(&promoted, true, &[(2, true)]));
        // One that has no vote any more.
        assert!(!elected(true, &[(9, true)]));
    }

    #[test]
    fn votes_of_an_earlier_term_are_forgotten() {
        let mut grants = Grants::default();
        for (from, term) in [(2, 4), (3, 5)] {
            grants.note(Message { from, term, ..Message::default() }, false);
        }
        assert!(!grants.elect(&(1..=3).map(MemberId).collect(), &[], MemberId(1), false));
    }
}
