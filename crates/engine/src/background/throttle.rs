//! Lets background work yield to other threads, several times a millisecond.
//!
//! A thread that is woken waits, where all processors are busy, until one that runs has had its
//! slice: 4 ms with Linux as servers have it, whatever the priorities of both. A group's leader is
//! woken after each sync, and its members after that, so threads that flush and fold made groups
//! wait twenty times as long as for their sync. A background thread therefore gives its processor
//! up between two bits of work: a system call that does nothing where no other thread wants to run.
//!
//! A thread that does so gets less than its share where others always want to run. So it keeps
//! its processor while the work is *urgent*: when much waits to be flushed or folded, and writers
//! would be slowed down for it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use frond_store::io::steady_now;

/// A processor is kept for so long. Less costs throughput, more costs the threads that wait.
const KEPT_FOR: Duration = Duration::from_micros(250);
/// The number of entries after which a thread looks how late it is: some 50 µs where they are
/// simply copied.
const ENTRIES_A_LOOK: usize = 256;

/// Says whether an engine's background work is urgent.
#[derive(Default)]
pub(crate) struct Throttle {
    is_urgent: AtomicBool,
}

/// A background thread's own state.
struct Own {
    throttle: Arc<Throttle>,
    /// The time when it gave its processor up the last time.
    last: Instant,
}

thread_local! {
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
}

impl Throttle {
    /// Notes whether the work is urgent.
    pub fn set_urgent(&self, is_urgent: bool) {
        // That hardly ever changes: processors needn't write what all of them read.
        if self.is_urgent.load(Ordering::Relaxed) != is_urgent {
            self.is_urgent.store(is_urgent, Ordering::Relaxed);
        }
    }

    /// Makes the calling thread a background thread.
    pub fn begin(self: &Arc<Throttle>) {
        OWN.set(Some(Own { throttle: Arc::clone(self), last: steady_now() }));
    }
}

/// Whether this is a background thread whose work isn't urgent.
pub(crate) fn is_due() -> bool {
    let is_due = |own: &Own| !own.throttle.is_urgent.load(Ordering::Relaxed);
    OWN.with_borrow(|own| own.as_ref().is_some_and(is_due))
}

/// Gives the processor up if that `is_due` and it was kept for long: between two bits of work.
pub(crate) fn yield_now() {
    if !is_due() {
        return;
    }
    OWN.with_borrow_mut(|own| {
        if let Some(own) = own.as_mut().filter(|own| KEPT_FOR <= own.last.elapsed()) {
            thread::yield_now();
            own.last = steady_now();
        }
    });
}

/// The same `entries`; others may go first between them.
pub(crate) fn yielding<T>(entries: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    entries.enumerate().map(|(position, entry)| {
        if position.is_multiple_of(ENTRIES_A_LOOK) {
            yield_now();
        }
        entry
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns when this thread gave its processor up the last time.
    fn last() -> Option<Instant> {
        OWN.with_borrow(|own| own.as_ref().map(|own| own.last))
    }

    #[test]
    fn only_background_threads_without_urgent_work_yield() {
        yield_now();
        assert_eq!(last(), None);
        let throttle = Arc::new(Throttle::default());
        throttle.begin();
        let begun = last().unwrap();
        while begun.elapsed() <= KEPT_FOR {}
        throttle.set_urgent(true);
        assert!(!is_due());
        assert_eq!(yielding(0..1000).sum::<usize>(), 499_500);
        assert_eq!(last(), Some(begun));
        throttle.set_urgent(false);
        assert_eq!(yielding(0..1000).sum::<usize>(), 499_500);
        assert!(begun < last().unwrap());
    }
}
