//! The signals that background threads wait for: new work, and the end.
//!
//! A flush that is wanted is taken by the one thread that flushes. Work on runs is counted instead,
//! so that each of several threads sees for itself whether there is more than when it last found
//! none.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use frond_store::io::steady_now;

use crate::queue::Refusal;

const NO_PANIC: &str = "no panic while the lock is held";

/// The signals of an engine.
///
/// *Thread safety*: any thread may call any method. The lock is held for moments; only that of
/// `background::errors` is taken behind it.
#[derive(Default)]
pub(crate) struct Signals {
    raised: Mutex<Raised>,
    changed: Condvar,
}

#[derive(Default)]
struct Raised {
    /// The threads are to end.
    stop: bool,
    /// A memtable was sealed, or may be freed.
    flush_wanted: bool,
    /// Rises whenever there may be something to fold or merge.
    work_generation: u64,
    /// A relaxed transaction waits to be synced.
    sync_wanted: bool,
    /// The reason why the last flush failed, until one succeeds.
    flush_failure: Option<Refusal>,
    /// The number of flushes that have failed.
    flush_failure_count: u64,
}

impl Signals {
    /// Has sealed memtables flushed, and flushed ones freed.
    pub fn want_flush(&self) {
        self.raise(|raised| raised.flush_wanted = true);
    }

    /// Has relaxed transactions synced when the interval is over.
    pub fn want_sync(&self) {
        let was_wanted = std::mem::replace(&mut self.raised().sync_wanted, true);
        if !was_wanted {
            self.wake();
        }
    }

    /// Signals that there may be something to fold or merge.
    pub fn note_work(&self) {
        self.raise(|raised| raised.work_generation += 1);
    }

    /// Has the threads end.
    pub fn stop(&self) {
        self.raise(|raised| raised.stop = true);
    }

    /// Wakes all that wait, to look at what changed elsewhere.
    pub fn wake(&self) {
        self.changed.notify_all();
    }

    /// Passes on to writers why a flush failed, and has it tried again.
    pub fn flush_failed(&self, why: Refusal) {
        self.raise(|raised| {
            raised.flush_failure = Some(why);
            raised.flush_failure_count += 1;
            raised.flush_wanted = true;
        });
    }

    /// Signals that a flush succeeded.
    pub fn flush_succeeded(&self) {
        self.raised().flush_failure = None;
    }

    /// Whether the last flush failed.
    pub fn is_flush_failing(&self) -> bool {
        self.raised().flush_failure.is_some()
    }

    /// Returns how many flushes have failed.
    pub fn flush_failure_count(&self) -> u64 {
        self.raised().flush_failure_count
    }

    /// Waits until something changes, or for `at_most`. Returns why flushes failed, if more than
    /// one did since there were `failures_before`: one that failed before, or was under way then,
    /// may be out of date.
    pub fn await_flush(&self, failures_before: u64, at_most: Duration) -> Option<Refusal> {
        let raised = self.raised();
        let is_new = failures_before + 1 < raised.flush_failure_count;
        let failure = raised.flush_failure.clone().filter(|_| is_new);
        drop(self.changed.wait_timeout(raised, at_most));
        failure
    }

    /// Rises whenever there may be something to fold or merge.
    pub fn work_generation(&self) -> u64 {
        self.raised().work_generation
    }

    /// Waits until a flush is wanted, which is taken, or for `at_most`; false if the threads are to
    /// end.
    pub fn wait_for_flush(&self, at_most: Option<Duration>) -> bool {
        self.wait(at_most, |raised| std::mem::take(&mut raised.flush_wanted))
    }

    /// Waits until the generation of work isn't `idle_since`, or for `at_most`; false if the
    /// threads are to end.
    pub fn wait_for_work(&self, idle_since: Option<u64>, at_most: Option<Duration>) -> bool {
        self.wait(at_most, |raised| idle_since != Some(raised.work_generation))
    }

    /// Waits until a sync is wanted, or for `at_most`; false if the threads are to end.
    pub fn wait_for_sync(&self, at_most: Duration) -> bool {
        self.wait(Some(at_most), |raised| raised.sync_wanted)
    }

    /// Whether a sync is wanted, which is taken.
    pub fn take_sync(&self) -> bool {
        std::mem::take(&mut self.raised().sync_wanted)
    }

    /// Waits for so long; false if the threads are to end.
    pub fn pause(&self, length: Duration) -> bool {
        self.wait(Some(length), |_| false)
    }

    fn wait(&self, at_most: Option<Duration>, wanted: impl Fn(&mut Raised) -> bool) -> bool {
        let end = at_most.map(|at_most| steady_now() + at_most);
        let mut raised = self.raised();
        loop {
            if raised.stop {
                return false;
            }
            if wanted(&mut raised) {
                return true;
            }
            raised = match end.map(|end| end.saturating_duration_since(steady_now())) {
                None => self.changed.wait(raised).expect(NO_PANIC),
                Some(Duration::ZERO) => return true,
                Some(left) => self.changed.wait_timeout(raised, left).expect(NO_PANIC).0,
            };
        }
    }

    fn raise(&self, change: impl FnOnce(&mut Raised)) {
        change(&mut self.raised());
        self.wake();
    }

    fn raised(&self) -> MutexGuard<'_, Raised> {
        self.raised.lock().expect(NO_PANIC)
    }
}
