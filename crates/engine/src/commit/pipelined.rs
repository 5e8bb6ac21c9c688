//! Group commit where the log lies in a bucket: several groups are on their way at once.
//!
//! Threads of the engine's own lead, so that a client that is interrupted can leave while the
//! bucket is silent.
//!
//! 1. One thread at a time gathers. While others are on their way it lingers a moment, so that the
//!    group is worth its request; then the group gets its place, and the next leader is called.
//! 2. The group's slots are put, with no lock held, and are agreed on once all before them are.
//! 3. In the order of their places, groups are written to the engine's own log and become visible.
//!
//! *Invariants*
//! 1. A group is written only as the first of those in hand, and all before it are written.
//! 2. Once one can't be agreed on, the engine is closed: none behind it is written, and what
//!    becomes of them is unknown, wherever their slots are.

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use frond_store::StoreError;
use frond_store::io::steady_now;

use super::Member;
use super::closing::PoisonOnPanic;
use super::lead::{Taken, take_group, write_agreed};
use crate::error::EngineError;
use crate::ids::Sequence;
use crate::log::writer::Writer;
use crate::order::{SlotOrder, entries_of};
use crate::queue::Queue;
use crate::queue::group::{Group, Outcome};
use crate::shared::Shared;
use crate::slow_commits::{Stage, Stopwatch};
use crate::transaction::Durability;

/// A close waits so long for a bucket that has the log: what it hasn't acknowledged then may be
/// kept or not.
const CLOSE_WAIT_MAX: Duration = Duration::from_secs(3);
const CLOSE_STEP: Duration = Duration::from_millis(100);

impl Shared {
    /// Calls a leader if one may lead, where groups are led beside each other by threads for that.
    /// Returns whether they are.
    pub(super) fn call_leader(&self, queue: &Queue) -> bool {
        if queue.closed.is_some() || queue.beside_max.is_none() {
            return false;
        }
        if queue.is_worth_leading() {
            self.commits.call_leader();
        }
        true
    }

    /// Leads groups until the engine is closed.
    pub(crate) fn lead_until_closed(&self) {
        let mut queue = self.queue();
        while queue.closed.is_none() {
            if queue.is_worth_leading() && queue.take_lead().is_some() {
                drop(queue);
                self.lead_beside(&mut Stopwatch::start());
                queue = self.queue();
            } else {
                queue = self.commits.wait_for_call(queue);
            }
        }
    }

    /// Waits until a member's group is as durable as asked, or `keep_going` says no.
    ///
    /// # Errors
    /// [`EngineError::Unawaited`] then; what else becomes of it.
    pub(super) fn await_outcome(
        &self,
        member: Member,
        sequence: Sequence,
        durability: Durability,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Sequence, EngineError> {
        let Member { insertion, group } = member;
        drop(insertion);
        match group.wait_while(keep_going) {
            Some(Outcome::Durable) => Ok(sequence),
            Some(Outcome::Recheck) => self.recheck(sequence, durability).map(|()| sequence),
            None => Err(EngineError::Unawaited),
        }
    }

    /// Hangs up while the engine is being closed, once a group is on its way for long.
    pub(crate) fn give_up_when_silent(&self) {
        let Some(slots) = self.order.as_ref().and_then(|order| order.slots()) else { return };
        let mut queue = self.queue();
        while queue.closed.is_none() {
            let first = queue.in_hand.front();
            if first.is_some_and(|first| CLOSE_WAIT_MAX <= first.since.elapsed()) {
                drop(queue);
                return slots.give_up();
            }
            queue = self.commits.wait_at_most(queue, CLOSE_STEP);
        }
    }

    /// Leads the group that forms, which the caller has the right to.
    pub(super) fn lead_beside(&self, watch: &mut Stopwatch) {
        let _panics = PoisonOnPanic(self);
        let order = self.order.as_ref().and_then(|order| order.slots());
        let order = order.expect("groups are led beside each other where there are slots");
        let mut queue = self.linger(order.linger());
        if queue.closed.is_some() {
            queue.is_gathering = false;
            return self.hand_over(queue, &Group::default(), Outcome::Recheck);
        }
        let begun = steady_now();
        let taken = take_group(&mut queue);
        drop(queue);
        watch.lap(Stage::Wake);
        let agreed = self.agree_beside(order, &taken);
        watch.lap(Stage::Sync);
        taken.members.iter().for_each(|member| self.insert(&taken.group, member));
        taken.group.await_members(taken.members.len() as u64);
        let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.counters.sync_micros.add(micros);
        self.counters.group_sizes.add(taken.records.len() as u64);
        self.end_beside(taken, agreed);
        watch.lap(Stage::Write);
    }

    /// Waits as long as the last group hasn't been on its way for so long.
    fn linger(&self, time: Duration) -> MutexGuard<'_, Queue> {
        let mut queue = self.queue();
        while queue.closed.is_none()
            && let Some(last) = queue.in_hand.back()
        {
            let left = time.saturating_sub(last.since.elapsed());
            if left.is_zero() {
                break;
            }
            queue = self.commits.wait_at_most(queue, left);
        }
        queue
    }

    /// Gives the group its place, has another thread lead the next, and puts it there.
    fn agree_beside(&self, order: &SlotOrder, taken: &Taken) -> Result<(), StoreError> {
        let placed = order.place(entries_of(&taken.records));
        let mut queue = self.queue();
        queue.is_gathering = false;
        self.hand_over(queue, &Group::default(), Outcome::Recheck);
        let placed = placed?;
        self.reporting_delays(|report_delay| order.put(placed, report_delay))
    }

    /// Writes a group once all before it are written, and notifies it of what became of it.
    fn end_beside(&self, taken: Taken, agreed: Result<(), StoreError>) {
        let Taken { records, up_to, wanted, group, .. } = taken;
        if let Err(error) = &agreed {
            self.fail(&mut self.queue(), &format!("the log could not be written: {error}"));
        }
        let (mut queue, writer) = self.await_turn(&group);
        let Some(mut writer) = writer else {
            queue.in_hand.retain(|in_hand| !Arc::ptr_eq(&in_hand.group, &group));
            return self.hand_over(queue, &group, Outcome::Recheck);
        };
        drop(queue);
        let written = write_agreed(&mut writer, &records).and_then(|()| writer.begin(wanted));
        let mut queue = self.queue();
        queue.in_hand.pop_front();
        let outcome = self.judge(&mut queue, up_to, records, (written, Ok(())));
        let is_durable = self.note_written(&mut queue, &writer, true);
        queue.writer = Some(writer);
        self.hand_over(queue, &group, if is_durable { outcome } else { Outcome::Recheck });
    }

    /// Waits until a group is the first of those in hand, and takes the writer for it; none, if the
    /// engine is closed.
    fn await_turn(&self, group: &Arc<Group>) -> (MutexGuard<'_, Queue>, Option<Writer>) {
        let mut queue = self.queue();
        loop {
            if queue.closed.is_some() {
                return (queue, None);
            }
            let is_first =
                queue.in_hand.front().is_some_and(|first| Arc::ptr_eq(&first.group, group));
            if is_first && let Some(writer) = queue.writer.take() {
                return (queue, Some(writer));
            }
            queue = self.commits.wait(queue);
        }
    }
}
