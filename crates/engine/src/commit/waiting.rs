//! Waits until a commit is durable, visible, or has its log segment. A waiting thread leads if no
//! other does.

use std::sync::MutexGuard;

use super::lead::GROUPS_LED_MAX;
use crate::error::EngineError;
use crate::ids::Sequence;
use crate::log::format::SegmentNumber;
use crate::queue::Queue;
use crate::queue::group::CHECK_EVERY;
use crate::shared::Shared;
use crate::slow_commits::Stopwatch;
use crate::transaction::Durability;

impl Shared {
    /// Finds out in the queue what became of `sequence`, and waits until it is as durable as asked.
    pub(super) fn recheck(
        &self,
        sequence: Sequence,
        durability: Durability,
    ) -> Result<(), EngineError> {
        self.recheck_while(sequence, durability, &|| true)
    }

    /// As `recheck`; where the log lies in a bucket, as long as `keep_going` says so.
    ///
    /// # Errors
    /// The commit's outcome; [`EngineError::Unawaited`] if `keep_going` says no before that is
    /// known.
    pub(crate) fn recheck_while(
        &self,
        sequence: Sequence,
        durability: Durability,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<(), EngineError> {
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
            if queue.beside_max.is_none() {
                queue = self.lead_or_wait(queue);
                continue;
            }
            queue = self.commits.wait_at_most(queue, CHECK_EVERY);
            if !keep_going() {
                return Err(EngineError::Unawaited);
            }
        }
    }

    /// Makes durable what has a Sequence up to `up_to`.
    ///
    /// # Errors
    /// [`EngineError::Closed`] if the engine was closed or poisoned before it was durable;
    /// [`EngineError::Store`] if the disk is full.
    pub fn make_durable(&self, up_to: Sequence) -> Result<(), EngineError> {
        let mut queue = self.queue();
        while queue.durable < up_to.min(queue.last_live) {
            queue.check_open()?;
            queue = self.lead_or_wait(queue);
            if let Some(refusal) = &queue.disk_full
                && queue.durable < up_to.min(queue.last_live)
            {
                return Err(refusal.error());
            }
        }
        Ok(())
    }

    /// Waits until what has a Sequence up to `up_to` is visible, or was refused.
    ///
    /// # Errors
    /// [`EngineError::Closed`] if the engine was closed or poisoned before.
    pub fn await_visible(&self, up_to: Sequence) -> Result<(), EngineError> {
        let mut queue = self.queue();
        while queue.visible < up_to.min(queue.last_live) {
            queue.check_open()?;
            queue = self.lead_or_wait(queue);
        }
        Ok(())
    }

    /// Marks the end of the log as durable, if it is and no leader writes to it.
    pub fn mark_log(&self) {
        let mut queue = self.queue();
        if queue.closed.is_none()
            && queue.pending.is_empty()
            && let Some(writer) = &mut queue.writer
        {
            writer.mark();
        }
    }

    /// Marks ahead of a log that is written to how far it is durable, unless a leader has it.
    pub fn mark_log_ahead(&self) {
        let mut queue = self.queue();
        if queue.closed.is_none()
            && let Some(writer) = &mut queue.writer
        {
            writer.mark_ahead();
        }
    }

    /// Makes segment `number`, whose predecessors are written, before any record needs it. Returns
    /// whether it is there: a full disk has no room for it.
    ///
    /// # Errors
    /// [`EngineError::Closed`] if the engine was closed or poisoned before.
    pub fn begin_segment(&self, number: SegmentNumber) -> Result<bool, EngineError> {
        let mut queue = self.queue();
        queue.segment_wanted = queue.segment_wanted.max(number);
        loop {
            queue.check_open()?;
            let is_free = queue.may_lead_itself();
            if number < queue.segments_end {
                return Ok(true);
            }
            queue = self.lead_or_wait(queue);
            if is_free {
                return Ok(number < queue.segments_end);
            }
        }
    }

    /// Leads, if no other thread does, or waits until something has changed.
    pub(super) fn lead_or_wait<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queue>,
    ) -> MutexGuard<'a, Queue> {
        if queue.may_lead_itself()
            && let Some(lead) = queue.take_lead()
        {
            drop(queue);
            let terms = (Durability::Synced, GROUPS_LED_MAX);
            self.lead_as(lead, terms, &mut Stopwatch::start());
            return self.queue();
        }
        self.commits.wait(queue)
    }
}
