//! Commits that no thread waits for: what becomes of one is handed on by the leader of its group.
//!
//! 1. Its thread leaves a [`Follower`] in the group, and leads if no other thread does: until no
//!    commit waits, since its own is followed up with its group.
//! 2. A leader that has a commit of its own to return from leads some groups only. Where the next
//!    has no thread that waits, and so none to call, the engine's thread `frond-lead` leads it.
//!
//! *Why*: a thread that is woken runs late where all processors are busy, and an update waited for
//! three of them: to be called to lead, for the sync, and to answer. At 8,000 operations a second
//! over 500 connections reads took 4 ms and updates 16 (the 95th percentiles).

use crate::queue::group::{Follower, Group};
use crate::shared::Shared;
use crate::slow_commits::Stopwatch;
use crate::transaction::Durability;

impl Shared {
    /// Has `follower` called once it is known what became of the group: now, if it is. Leads
    /// meanwhile, unless another thread does.
    pub(crate) fn hand_on(&self, group: &Group, follower: Follower) {
        if let Some((follower, outcome)) = group.follow(follower) {
            return follower(outcome);
        }
        let mut queue = self.queue();
        let lead = if 0 < queue.handed_on { queue.take_lead() } else { None };
        drop(queue);
        if let Some(lead) = lead {
            let terms = (Durability::Synced, u32::MAX);
            self.lead_as(lead, terms, &mut Stopwatch::start());
        }
    }

    /// Calls the thread that leads where no other waits.
    pub(crate) fn call_for_handed_on(&self) {
        if self.queue().lacks_leader() {
            self.commits.call_for_handed_on();
        }
    }

    /// Leads groups for which no thread waits, until the engine is closed.
    pub(crate) fn lead_handed_on_until_closed(&self) {
        let mut queue = self.queue();
        while queue.closed.is_none() {
            let lead = if queue.lacks_leader() { queue.take_lead() } else { None };
            let Some(lead) = lead else {
                queue = self.commits.wait_for_handed_on(queue);
                continue;
            };
            drop(queue);
            let terms = (Durability::Synced, u32::MAX);
            self.lead_as(lead, terms, &mut Stopwatch::start());
            queue = self.queue();
        }
    }
}
