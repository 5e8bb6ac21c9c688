//! The facts that members send besides the library's messages, in fields of heartbeats that the
//! library leaves empty: docs/format/quorum-frames.md.

use bytes::Bytes;
use raft::eraftpb::{Message, MessageType};

use super::doubt::is_vote;
use super::{Lack, Member};
use crate::frame::{self, FrameError, Sent};
use crate::ids::{EntryIndex, MemberId, Term};

/// The additional fields of a leader's heartbeat.
struct Heartbeat {
    term: u64,
    /// The number that a member in doubt has drawn, or 0.
    number: u64,
    /// The index up to which that member must hold entries; without one, the index up to which all
    /// members do.
    index: EntryIndex,
    /// The index up to which entries were cut off, if the member may need them, or 0.
    compacted: EntryIndex,
    compacted_term: Term,
}

impl Heartbeat {
    fn take(message: &mut Message) -> Heartbeat {
        let mut field = |of: fn(&mut Message) -> &mut u64| std::mem::take(of(message));
        Heartbeat {
            number: field(|it| &mut it.commit_term),
            index: EntryIndex(field(|it| &mut it.index)),
            compacted: EntryIndex(field(|it| &mut it.reject_hint)),
            compacted_term: Term(field(|it| &mut it.log_term)),
            term: message.term,
        }
    }
}

impl Member {
    /// Takes a frame from the authenticated member `from`.
    ///
    /// # Errors
    /// The fault of the frame; then nothing of it is taken.
    pub fn receive(&mut self, from: MemberId, frame: &Bytes) -> Result<(), FrameError> {
        let Sent { mut message, doubts } = frame::decode(self.set, from, self.id, frame)?;
        let kind = message.get_msg_type();
        let is_heartbeat = kind == MessageType::MsgHeartbeat;
        let heartbeat = is_heartbeat.then(|| Heartbeat::take(&mut message));
        if let Some(heartbeat) = &heartbeat {
            self.take_held(heartbeat, &mut message);
        }
        if kind == MessageType::MsgAppend && self.is_contradicted(&message) {
            self.lacks = Some(Lack::Replaced);
        }
        if self.lacks.is_some_and(Lack::is_final) {
            return Ok(());
        }
        match kind {
            MessageType::MsgRequestVote | MessageType::MsgRequestPreVote => {
                self.note_candidate(&message);
            }
            MessageType::MsgHeartbeatResponse => self.note_doubter(&mut message, doubts),
            _ => {}
        }
        match kind {
            kind if is_vote(kind) && !message.reject => self.take_grant(message, doubts),
            MessageType::MsgAppendResponse if !message.reject => self.take_acknowledgement(message),
            // The library refuses messages of an old term or a former member: nothing needs to be
            // done.
            _ => drop(self.raw.step(message)),
        }
        self.draw_timeout();
        if let Some(heartbeat) = heartbeat
            && self.raw.raft.leader_id == from.0
        {
            self.compare_with_compacted(from, heartbeat.compacted, heartbeat.compacted_term);
            if heartbeat.term == self.raw.raft.term {
                self.compare_with_goal(heartbeat.number, heartbeat.index);
            }
        }
        Ok(())
    }

    /// Whether a leader has other entries where this member knows its own to be committed. The
    /// library would acknowledge them, and keep its own.
    fn is_contradicted(&self, append: &Message) -> bool {
        let raft = &self.raw.raft;
        // One that leads no more may have had other entries there.
        if append.term < raft.term {
            return false;
        }
        let sent = append.get_entries().iter().map(|entry| (entry.index, entry.term));
        let mut known = sent
            .chain([(append.index, append.log_term)])
            .filter(|(index, _)| *index <= raft.raft_log.committed);
        // What was cut off has the term 0.
        let is_other =
            |index, term| raft.raft_log.term(index).is_ok_and(|own| own != 0 && own != term);
        known.any(|(index, term)| is_other(index, term))
    }

    fn take_held(&mut self, heartbeat: &Heartbeat, message: &mut Message) {
        if heartbeat.number == 0 {
            self.reported_held = heartbeat.index;
        }
        let raft_log = &self.raw.raft.raft_log;
        if self.doubt.is_some() {
            message.commit = message.commit.min(raft_log.committed);
        } else if raft_log.last_index() < message.commit {
            // A leader announces as committed only entries that are reported as held.
            self.lacks = Some(Lack::Acknowledged);
        }
    }

    /// The leader has cut off all up to `compacted`, an entry of `compacted_term`, and what it
    /// would send next is among that; 0: it isn't. A member that has more than the leader knows, as
    /// after a copy, says so.
    fn compare_with_compacted(
        &mut self,
        leader: MemberId,
        compacted: EntryIndex,
        compacted_term: Term,
    ) {
        let raft_log = &self.raw.raft.raft_log;
        let mut held = raft_log.persisted.min(raft_log.committed);
        if compacted.0 <= raft_log.persisted
            && self.raw.store().term_of(compacted) == Some(compacted_term)
        {
            // So are all before it the leader's.
            held = held.max(compacted.0);
        }
        self.lacks = (held < compacted.0).then_some(Lack::Compacted);
        if compacted != EntryIndex::ZERO && compacted.0 <= held {
            let (to, from, term) = (leader.0, self.id.0, self.raw.raft.term);
            let mut held = Message { to, from, term, index: held, ..Message::default() };
            held.commit = raft_log.committed;
            held.set_msg_type(MessageType::MsgAppendResponse);
            let sent = self.sent(held);
            self.released.push(sent);
        }
    }

    /// The bytes of messages, each with its additional fields.
    pub(super) fn frames(&self, mut messages: Vec<Sent>) -> Vec<(MemberId, Bytes)> {
        let mut frames = Vec::with_capacity(messages.len());
        for sent in &mut messages {
            match sent.message.get_msg_type() {
                MessageType::MsgHeartbeat => self.report_beside(&mut sent.message),
                MessageType::MsgHeartbeatResponse => self.report_doubt(&mut sent.message),
                _ => {}
            }
            let to = MemberId(sent.message.to);
            frames.extend(frame::encode(self.set, sent).map(|frame| (to, frame)));
        }
        frames
    }

    fn report_beside(&self, message: &mut Message) {
        let raft = &self.raw.raft;
        match self.doubters.goal_of(message.to, raft.term) {
            Some((number, goal)) => (message.commit_term, message.index) = (number, goal.0),
            None => message.index = self.held_by_all().0,
        }
        let compacted = self.raw.store().before();
        let next = raft.prs().get(message.to).map(|progress| progress.next_idx);
        if next.is_some_and(|next| next <= compacted.0) {
            let term =
                self.raw.store().term_of(compacted).expect("the one before the first has one");
            (message.reject_hint, message.log_term) = (compacted.0, term.0);
        }
    }

    fn report_doubt(&self, message: &mut Message) {
        if let Some(doubt) = &self.doubt {
            (message.index, message.log_term) = (doubt.number, self.raw.raft.raft_log.persisted);
        }
    }
}
