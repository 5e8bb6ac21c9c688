//! Snapshots of recent moments, which are still in memory.
//!
//! 1. A snapshot can be *leased* for some time: so long its moment can be read again, by its
//!    Sequence alone, and shows the same ([`crate::readable_states`] says how).
//! 2. Any moment that some State shows can be read, leased or not: so all since the last flush or
//!    fold, and those whose State snapshots or leases keep.
//! 3. A moment that nothing has reached yet is *settled* first: no transaction is given its
//!    Sequence, or one below it, any more. Then everything with a place before it becomes visible,
//!    and it shows what it will always show.
//! 4. Moments are known to this process. Of those before its opening only the last can be read. The
//!    writes of a relaxed transaction that a crash took are gone, though they were shown; its
//!    Sequence lies within those that the opening skipped, and none of these is ever read.

use std::time::Duration;

use crate::error::EngineError;
use crate::ids::Sequence;
use crate::shared::Shared;
use crate::snapshot::Snapshot;

impl Shared {
    /// Returns a snapshot of the visible state, which can be read again for `time`.
    pub fn lease(&self, time: Duration) -> Snapshot {
        let (view, visible) = self.current.lease(time);
        Snapshot::new(view, visible)
    }

    /// Returns a snapshot of the state that was visible at `moment`.
    ///
    /// # Errors
    /// [`EngineError::SnapshotTooOld`] if nothing shows it any more; errors of waiting for commits
    /// before it.
    pub fn snapshot_at(&self, moment: Sequence) -> Result<Snapshot, EngineError> {
        let (first, skipped) = self.skipped;
        if first < moment && moment <= skipped {
            return Err(EngineError::SnapshotTooOld);
        }
        self.await_settled(moment)?;
        let view = self.current.view_at(moment).ok_or(EngineError::SnapshotTooOld)?;
        Ok(Snapshot::new(view, moment))
    }

    /// Has nothing become visible at `moment` or before it any more, and waits until what has its
    /// place there is. The caller sees to it that clocks have come to that moment: later
    /// transactions begin behind it.
    ///
    /// # Errors
    /// As [`Shared::await_visible`].
    pub fn await_settled(&self, moment: Sequence) -> Result<(), EngineError> {
        if moment <= self.current.visible() {
            return Ok(());
        }
        {
            let mut queue = self.queue();
            if queue.leads_from.is_none() {
                return self.await_applied(queue, moment);
            }
            queue.last = queue.last.max(moment.min(Sequence::LAST));
        }
        self.await_visible(moment)
    }
}
