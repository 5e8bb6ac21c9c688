//! A change of the voters, from its entry until it is final for the whole set.
//!
//! A change counts from its commitment on, and what a set has committed until then the majority of
//! *before* holds. Where two of three stay, one of these two may have been left out of that: what
//! the other one has lost with the end of its log would be on no member of the set any more. And
//! that an entry is committed is known at first to the leader alone: members that start again would
//! wait for votes of one that was removed long ago. So a leader counts what others acknowledge like
//! this:
//!
//! 1. The change, and what is behind it, only once a majority of those who *stay* hold the change.
//! 2. Entries behind the change only once the change is applied, and together with an entry that
//!    the leader has proposed since: the *confirmation*, which is empty. A member that holds it
//!    knows for good that the change is committed: what a leader knows of that travels with its
//!    entries.
//! 3. Once that is committed the change has settled: a member that was removed isn't needed any
//!    more, and the next change may come.
//!
//! A leader that finds a change of an earlier leader in its log, and doesn't know yet that it is
//! committed, does the same from its own first entry on: before that nothing is committed. One that
//! knew it when it was elected need not: its first entry is a confirmation.

use std::collections::{BTreeMap, BTreeSet};

use raft::ProgressState;
use raft::eraftpb::{self, Message, MessageType};

use super::{Member, Role};
use crate::configuration::Change;
use crate::entry::{Content, Entry};
use crate::ids::{EntryIndex, MemberId};

/// A change that hasn't settled, as its leader sees it.
pub(super) struct Transition {
    /// The leader's term.
    term: u64,
    /// The index of the change.
    index: EntryIndex,
    /// The index of the first entry of this term that commits it: itself, or the leader's first
    /// one.
    commits: EntryIndex,
    /// The members that are voters both before and after it.
    stay: BTreeSet<MemberId>,
    is_applied: bool,
    /// The index of the confirmation.
    confirmation: Option<EntryIndex>,
    /// The newest acknowledgement of each other member: the library knows what counts of it.
    acknowledged: BTreeMap<u64, Message>,
}

impl Transition {
    /// Returns how much of an acknowledgement up to `held` counts; `own` is the index that the
    /// leader itself holds.
    fn counted(&self, held: EntryIndex, leader: MemberId, own: EntryIndex) -> EntryIndex {
        if held < self.commits {
            return held;
        }
        let holds = |id: &&MemberId| match **id == leader {
            true => self.commits <= own,
            false => self.acknowledged.get(&id.0).is_some_and(|ack| self.commits.0 <= ack.index),
        };
        if self.stay.iter().filter(holds).count() <= self.stay.len() / 2 {
            return EntryIndex(self.commits.0 - 1);
        }
        match self.confirmation {
            Some(confirmation) if confirmation <= held => held,
            _ => self.commits,
        }
    }
}

impl Member {
    /// Takes what another says to hold.
    pub(super) fn take_acknowledgement(&mut self, message: Message) {
        self.look_for_transition();
        let Some(transition) = self.transition.as_mut().filter(|it| it.term == message.term) else {
            let _ = self.raw.step(message);
            return;
        };
        let newest = transition.acknowledged.entry(message.from).or_insert_with(|| message.clone());
        if newest.index <= message.index {
            *newest = message.clone();
        }
        // At once, whether it says something new or not: its sender is alive.
        self.count(message);
        self.count_again();
    }

    fn count(&mut self, mut message: Message) {
        let own = EntryIndex(self.raw.raft.raft_log.persisted);
        let (from, held) = (message.from, message.index);
        if let Some(transition) = &self.transition {
            message.index = transition.counted(EntryIndex(held), self.id, own).0;
        }
        let is_withheld = message.index < held;
        let _ = self.raw.step(message);
        if is_withheld {
            self.send_on(from, held);
        }
    }

    /// Sends a member the entries behind those that it holds, not all of which the library knows:
    /// it would wait for the member to acknowledge them.
    fn send_on(&mut self, to: u64, held: u64) {
        let last = self.raw.raft.raft_log.last_index();
        let Some(progress) = self.raw.raft.mut_prs().get_mut(to) else { return };
        match progress.state {
            ProgressState::Snapshot => return,
            ProgressState::Probe => progress.become_replicate(),
            ProgressState::Replicate => progress.ins.free_to(held),
        }
        progress.next_idx = progress.next_idx.max(held + 1);
        if progress.next_idx <= last && !progress.is_paused() {
            self.raw.raft.send_append(to);
        }
    }

    /// Gives the library the acknowledgements that count by now.
    pub(super) fn count_again(&mut self) {
        let own = EntryIndex(self.raw.raft.raft_log.persisted);
        let Some(transition) = &self.transition else { return };
        let mut counts = Vec::new();
        for ack in transition.acknowledged.values() {
            let counted = transition.counted(EntryIndex(ack.index), self.id, own);
            let progress = self.raw.raft.prs().get(ack.from);
            if progress.is_some_and(|progress| progress.matched < counted.0) {
                counts.push(ack.clone());
            }
        }
        for ack in counts {
            self.count(ack);
        }
    }

    /// This member doesn't hold what it has acknowledged.
    pub(super) fn forget_acknowledgement(&mut self, from: u64) {
        if let Some(transition) = &mut self.transition {
            transition.acknowledged.remove(&from);
        }
    }

    /// Begins a transition if this member leads and its log has a change of the voters, and ends
    /// the one that has settled, or that another leader has to see through.
    pub(super) fn look_for_transition(&mut self) {
        let (term, leads) = (self.raw.raft.term, self.role() == Role::Leader);
        let committed = EntryIndex(self.raw.raft.raft_log.committed);
        let is_over = |it: &Transition| {
            let settled = it.confirmation.is_some_and(|confirmation| confirmation <= committed);
            !leads || it.term != term || settled
        };
        self.transition.take_if(|it| is_over(it));
        if !leads || self.transition.is_some() {
            return;
        }
        let Some((index, change)) = self.unapplied_changes.front().copied() else { return };
        let voters = &self.configuration.voters;
        let stay = match change {
            Change::Promote(_) => voters.clone(),
            Change::Remove(id) if voters.contains(&id) => {
                voters.iter().copied().filter(|voter| *voter != id).collect()
            }
            Change::Remove(_) | Change::AddLearner(_) => return,
        };
        #[cfg(test)]
        if self.defect == Some(crate::defect::Defect::RemovedCounted) {
            return;
        }
        self.transition = Some(Transition {
            term,
            index,
            commits: self.commits(index, term),
            stay,
            is_applied: false,
            confirmation: None,
            acknowledged: BTreeMap::new(),
        });
    }

    /// The first entry of a leader's own term that isn't before `index`.
    fn commits(&self, index: EntryIndex, term: u64) -> EntryIndex {
        let log = &self.raw.raft.raft_log;
        let mut first = index.0;
        while first < log.last_index() && log.term(first).is_ok_and(|of| of < term) {
            first += 1;
        }
        EntryIndex(first)
    }

    /// Notes the changes among entries that take their places in the log.
    pub(super) fn note_changes(&mut self, entries: &[Entry]) {
        let Some(first) = entries.first() else { return };
        self.unapplied_changes.retain(|(index, _)| *index < first.index);
        for entry in entries {
            if let Content::Change(change) = entry.content {
                self.unapplied_changes.push_back((entry.index, change));
            }
        }
    }

    /// Notes that the change in this place is applied.
    pub(super) fn note_applied_change(&mut self, index: EntryIndex) {
        self.unapplied_changes.retain(|(other, _)| index < *other);
        #[cfg(test)]
        if self.defect == Some(crate::defect::Defect::Unconfirmed) {
            self.transition = None;
        }
        if let Some(transition) = self.transition.as_mut().filter(|it| it.index == index) {
            transition.is_applied = true;
        }
    }

    /// Confirms a change that is applied, once.
    pub(super) fn confirm(&mut self) {
        self.look_for_transition();
        let waits = |it: &Transition| it.is_applied && it.confirmation.is_none();
        if !self.transition.as_ref().is_some_and(waits) {
            return;
        }
        let mut message = Message { from: self.id.0, ..Message::default() };
        message.set_msg_type(MessageType::MsgPropose);
        message.mut_entries().push(eraftpb::Entry::default());
        // While it hands over it takes none: it tries again.
        if self.raw.raft.step(message).is_ok()
            && let Some(transition) = &mut self.transition
        {
            transition.confirmation = Some(EntryIndex(self.raw.raft.raft_log.last_index()));
        }
    }
}
