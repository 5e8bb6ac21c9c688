//! Transactions that read queued commits, which aren't visible yet: see
//! [`crate::queue::queued_reads`].

use std::sync::Arc;

use crate::error::EngineError;
use crate::queue::group::CHECK_EVERY;
use crate::queue::queued_reads::QueuedReads;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::snapshot::open_transactions::OpenTransaction;

impl Shared {
    /// Begins a transaction that sees all that has its place in the log now. Where nothing is
    /// queued, that is what is visible; so it is in a closed engine, where nothing queued becomes
    /// visible any more.
    pub fn begin_ahead(&self) -> OpenTransaction {
        let (open, unfinished) = {
            let queue = self.queue();
            if queue.is_all_visible() {
                return self.transactions.begin(&self.current);
            }
            let ahead =
                QueuedReads { sequence: queue.last_live, queued: Arc::clone(&queue.queued) };
            let snapshot = Snapshot::ahead(&self.current.view().0, ahead);
            // With the queue locked: what it may conflict with isn't forgotten before it is known.
            (self.transactions.begin_at(snapshot), queue.unfinished())
        };
        // The caller may be let in before another transaction, whose Sequence is less, has its
        // entries in the memtable.
        for (group, insertion) in &unfinished {
            self.insert(group, insertion);
            group.await_insertion(insertion);
        }
        open
    }

    /// Waits until all that `snapshot` shows is visible, if it was taken ahead: what was read there
    /// may be passed on then.
    ///
    /// # Errors
    /// [`EngineError::Withdrawn`] if some of it was refused; [`EngineError::Closed`] if it never
    /// becomes visible in this process; [`EngineError::Interrupted`] where the log lies in a
    /// bucket, and `keep_going` says no.
    pub fn await_shown(
        &self,
        snapshot: &Snapshot,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<(), EngineError> {
        let Some(ahead) = snapshot.as_ahead() else { return Ok(()) };
        // The mark after what is visible, which passes what was refused.
        if ahead.sequence <= self.current.visible() && !ahead.is_refused() {
            return Ok(());
        }
        let mut queue = self.queue();
        loop {
            if ahead.is_refused() {
                return Err(EngineError::Withdrawn);
            }
            if ahead.sequence <= queue.visible {
                return Ok(());
            }
            queue.check_open()?;
            if queue.beside_max.is_none() {
                queue = self.lead_or_wait(queue);
                continue;
            }
            queue = self.commits.wait_at_most(queue, CHECK_EVERY);
            if !keep_going() {
                return Err(EngineError::Interrupted);
            }
        }
    }
}

#[cfg(test)]
mod tests;
