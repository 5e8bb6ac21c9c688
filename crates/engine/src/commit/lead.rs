//! The leader of a group: writes its records with one write, syncs once, and wakes its members.

use std::cell::Cell;
use std::sync::{Arc, MutexGuard};

use frond_store::StoreError;
use frond_store::io::steady_now;

use super::closing::PoisonOnPanic;
use crate::durable_horizon::DurableEnd;
use crate::ids::Sequence;
use crate::log::format::SegmentNumber;
use crate::log::writer::{PendingRecord, WriteError, Writer};
use crate::order::entries_of;
use crate::queue::group::{Group, Insertion, Outcome};
use crate::queue::{InHand, Lead, Queue, Refusal};
use crate::shared::Shared;
use crate::slow_commits::{Stage, Stopwatch};
use crate::transaction::Durability;

/// A leader leads so many groups before it calls another. Its own commit waits meanwhile: with 8
/// those are the slowest hundredth, with 1 some hundredths fewer are led in a second.
pub(super) const GROUPS_LED_MAX: u32 = 4;

/// The name of agreement when it fails.
const AGREEING: &str = "log";

impl Shared {
    /// Leads by the right that a thread has: so many groups at most, with this durability.
    pub(super) fn lead_as(
        &self,
        lead: Lead,
        (durability, groups_max): (Durability, u32),
        watch: &mut Stopwatch,
    ) {
        match lead {
            Lead::Alone(writer) => self.lead(writer, (durability, groups_max), watch),
            Lead::Beside => self.lead_beside(watch),
        }
    }

    /// Leads the group that forms, and some of those that form meanwhile.
    pub(super) fn lead(
        &self,
        mut writer: Writer,
        (durability, groups_max): (Durability, u32),
        watch: &mut Stopwatch,
    ) {
        let _panics = PoisonOnPanic(self);
        let mut queue = self.queue();
        let mut led_count: u32 = 0;
        loop {
            led_count = led_count.saturating_add(1);
            if queue.closed.is_some() {
                queue.writer = Some(writer);
                let (group, _) = queue.close_group();
                return self.hand_over(queue, &group, Outcome::Recheck);
            }
            let (after, group, outcome) = self.lead_one(queue, &mut writer, durability, watch);
            queue = after;
            let keep_going =
                led_count < groups_max && outcome == Outcome::Durable && !queue.members.is_empty();
            if !keep_going {
                queue.writer = Some(writer);
                self.hand_over(queue, &group, outcome);
                self.pause_order();
                watch.lap(Stage::Wake);
                return;
            }
            self.notify(queue, None, &group, outcome);
            watch.lap(Stage::Wake);
            queue = self.queue();
        }
    }

    /// Notifies the order of a pause, if there is one: a group that forms, or is led, ends it.
    fn pause_order(&self) {
        let Some(order) = &self.order else { return };
        let queue = self.queue();
        let is_pause = queue.members.is_empty() && queue.in_hand.is_empty();
        drop(queue);
        if is_pause {
            order.pause();
        }
    }

    /// Writes what is pending and, if asked, syncs; with no lock held meanwhile. Returns the group,
    /// and what became of it: to be passed on to it. Unless the engine is closed.
    pub(super) fn lead_one<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queue>,
        writer: &mut Writer,
        durability: Durability,
        watch: &mut Stopwatch,
    ) -> (MutexGuard<'a, Queue>, Arc<Group>, Outcome) {
        let Taken { records, up_to, wanted, group, members } = take_group(&mut queue);
        drop(queue);
        watch.lap(Stage::Wake);
        let written = self.write(writer, &records).and_then(|()| writer.begin(wanted));
        let wrote = watch.lap(Stage::Write);
        let (is_synced, synced) = match written {
            Err(WriteError::Unknown(_)) => (false, Ok(())),
            // A refused group was cut off: a crash must not bring it back once the refusal was
            // reported.
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
        queue.in_hand.pop_front();
        let outcome = self.judge(&mut queue, up_to, records, (written, synced));
        let is_durable = self.note_written(&mut queue, writer, is_synced);
        (queue, group, if is_durable { outcome } else { Outcome::Recheck })
    }

    /// Notes how far the log is, and makes visible what is durable of it. Whether that is so.
    pub(super) fn note_written(&self, queue: &mut Queue, writer: &Writer, is_synced: bool) -> bool {
        queue.writer_counters = writer.counters();
        queue.segments_end = writer.next();
        let is_durable = queue.closed.is_none() && is_synced;
        if is_durable {
            queue.durable = queue.written;
            queue.visible = queue.visible.max(queue.written);
            self.make_visible(queue.visible);
            // A caller that learns of it looks for what it made.
            let (segment, offset) = writer.end();
            self.horizon.move_to(DurableEnd { sequence: queue.durable, segment, offset });
        }
        is_durable
    }

    /// Settles the records up to the one with the sequence `up_to`: their write and their sync
    /// ended so.
    pub(super) fn judge(
        &self,
        queue: &mut Queue,
        up_to: Sequence,
        records: Vec<PendingRecord>,
        done: (Result<(), WriteError>, Result<(), WriteError>),
    ) -> Outcome {
        match done {
            (Err(WriteError::Unknown(error)), _) => {
                self.fail(queue, &format!("the log could not be written: {error}"));
            }
            (_, Err(WriteError::Refused { error, .. } | WriteError::Unknown(error))) => {
                self.fail(queue, &format!("the log could not be synced: {error}"));
            }
            // Another thread has closed it: what is reported of this must not differ from what the
            // next opening finds.
            _ if queue.closed.is_some() => {}
            (Ok(()), Ok(())) => {
                queue.written = up_to;
                queue.disk_full = None;
                return Outcome::Durable;
            }
            (Err(WriteError::Refused { written, error }), Ok(())) => {
                self.refuse(queue, records, written, Refusal::new(&error));
                self.pass_refused(queue);
            }
        }
        Outcome::Recheck
    }

    /// Writes records, once others agree where there are others.
    fn write(&self, writer: &mut Writer, records: &[PendingRecord]) -> Result<(), WriteError> {
        let Some(order) = &self.order else { return writer.write(records) };
        if records.is_empty() {
            return Ok(());
        }
        let entries = entries_of(records);
        self.reporting_delays(|report_delay| order.agree(entries, report_delay))
            .map_err(WriteError::Unknown)?;
        write_agreed(writer, records)
    }

    /// Has what agreement says while it takes long noted as the engine's trouble.
    pub(super) fn reporting_delays<T>(
        &self,
        agree: impl FnOnce(&dyn Fn(StoreError)) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let is_delay_reported = Cell::new(false);
        let report_delay = |error: StoreError| {
            is_delay_reported.set(true);
            self.note_failure(AGREEING, &error.into());
        };
        let agreed = agree(&report_delay)?;
        if is_delay_reported.get() {
            self.background.errors.end(AGREEING);
        }
        Ok(agreed)
    }

    /// Finds the next group a leader, and notifies the one that was led of what became of it.
    pub(crate) fn hand_over(
        &self,
        mut queue: MutexGuard<'_, Queue>,
        group: &Group,
        outcome: Outcome,
    ) {
        let next = if self.call_leader(&queue) {
            None
        } else if queue.closed.is_some() {
            let (next, _) = queue.close_group();
            next.notify(Outcome::Recheck);
            queue.uncalled.push(next);
            None
        } else if queue.lacks_leader() && queue.may_lead() {
            self.commits.call_for_handed_on();
            None
        } else {
            let is_led = !queue.members.is_empty() && queue.may_lead();
            is_led.then(|| Arc::clone(&queue.forming))
        };
        self.notify(queue, next, group, outcome);
    }

    /// Notifies the group that was led of what became of it, and calls a leader for the `next`.
    fn notify(
        &self,
        mut queue: MutexGuard<'_, Queue>,
        next: Option<Arc<Group>>,
        group: &Group,
        outcome: Outcome,
    ) {
        let uncalled = std::mem::take(&mut queue.uncalled);
        let watched = queue.watchers > 0;
        let is_closed = queue.closed.is_some();
        drop(queue);
        // First: its sync takes longer than waking the others.
        if let Some(next) = next {
            next.want_leader();
        }
        if is_closed {
            // Before the members are notified: that may be the last that this process does.
            self.fault.report();
        }
        group.notify(outcome);
        if watched {
            self.commits.wake();
        }
        // Last: those that wait have the other processors meanwhile.
        group.call_followers();
        uncalled.iter().for_each(|group| group.call_followers());
    }
}

/// A group that no one joins any more, and what it writes.
pub(super) struct Taken {
    pub(super) records: Vec<PendingRecord>,
    /// The last Sequence of all that is queued.
    pub(super) up_to: Sequence,
    /// The segment that the log should have.
    pub(super) wanted: SegmentNumber,
    pub(super) group: Arc<Group>,
    pub(super) members: Arc<[Arc<Insertion>]>,
}

/// Takes the group that forms in hand, behind those that are.
pub(super) fn take_group(queue: &mut Queue) -> Taken {
    let records = std::mem::take(&mut queue.pending);
    queue.pending_bytes = 0;
    let (up_to, wanted) = (queue.last_live, queue.segment_wanted);
    let (group, members) = queue.close_group();
    let members: Arc<[Arc<Insertion>]> = members.into();
    let (of, among) = (Arc::clone(&group), Arc::clone(&members));
    queue.in_hand.push_back(InHand { group: of, members: among, since: steady_now() });
    Taken { records, up_to, wanted, group, members }
}

/// Writes what is agreed on, and so can't be refused.
pub(super) fn write_agreed(
    writer: &mut Writer,
    records: &[PendingRecord],
) -> Result<(), WriteError> {
    writer.write(records).map_err(|error| match error {
        WriteError::Refused { error, .. } => WriteError::Unknown(error),
        unknown => unknown,
    })
}
