//! Closes an engine for writing, after a fault or because its owner closes it.

use std::sync::Arc;

use crate::queue::Queue;
use crate::queue::group::Outcome;
use crate::shared::Shared;

impl Shared {
    /// Refuses all writes from now on: something failed, and what it left is unknown.
    pub fn poison(&self, reason: &str) {
        self.fail(&mut self.queue(), reason);
        self.fault.report();
        self.end(reason);
    }

    /// Closes the queue for a fault; to be reported when the lock is let go. Once the owner has
    /// closed it, it is none.
    pub(crate) fn fail(&self, queue: &mut Queue, reason: &str) {
        if queue.closed.is_none() {
            self.fault.set(reason, self.machine.clock.now_micros());
            queue.closed = Some(reason.to_owned());
        }
    }

    /// Refuses all writes from now on.
    pub fn end(&self, reason: &str) {
        let mut queue = self.queue();
        queue.closed.get_or_insert(reason.to_owned());
        let (forming, _) = queue.close_group();
        forming.notify(Outcome::Recheck);
        queue.in_hand.iter().for_each(|in_hand| in_hand.group.notify(Outcome::Recheck));
        let in_hand: Vec<_> =
            queue.in_hand.iter().map(|in_hand| Arc::clone(&in_hand.group)).collect();
        drop(queue);
        forming.call_followers();
        in_hand.iter().for_each(|group| group.call_followers());
        self.commits.end();
        self.signals.wake();
        self.horizon.close();
    }
}

/// Closes the engine if the thread panics: what is on the disk is unknown then.
pub(crate) struct PoisonOnPanic<'a>(pub &'a Shared);

impl Drop for PoisonOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.poison("a panic while the log was written or folded");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use frond_store::io::steady_now;
    use frond_store::local::{LocalOptions, LocalStore};
    use frond_testkit::SimDisk;

    use super::*;
    use crate::error::EngineError;
    use crate::ids::Sequence;
    use crate::options::EngineOptions;
    use crate::recovery;

    fn open() -> Shared {
        let machine = SimDisk::new(1).machine();
        let store = LocalStore::open(&machine, LocalOptions::default()).expect("the disk opens");
        recovery::open(&machine, store, EngineOptions::default()).expect("an empty directory")
    }

    /// A member that waits for an entry would wait for half a minute else.
    #[test]
    fn an_end_wakes_who_waits_for_what_comes() {
        let shared = open();
        let begun = steady_now();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| shared.await_applied(shared.queue(), Sequence::LAST));
            while shared.queue().watchers == 0 {
                thread::yield_now();
            }
            shared.end("the test ends");
            let outcome = waiter.join().expect("no panic");
            assert!(matches!(outcome, Err(EngineError::Closed(_))), "{outcome:?}");
        });
        assert!(begun.elapsed() < Duration::from_secs(15));
    }

    #[test]
    fn a_panic_closes_and_an_end_does_not() {
        let shared = open();
        drop(PoisonOnPanic(&shared));
        assert!(shared.queue().closed.is_none());
        thread::scope(|scope| {
            let panics = || {
                let _poisons = PoisonOnPanic(&shared);
                panic!("as this test wants");
            };
            assert!(scope.spawn(panics).join().is_err());
        });
        let closed = shared.queue().closed.clone();
        assert!(closed.is_some_and(|reason| reason.contains("panic")));
    }
}
