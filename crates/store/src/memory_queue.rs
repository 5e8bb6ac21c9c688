//! A memory budget with a queue for requests that have to wait, for what is large and comes by the
//! connection or the write.
//!
//! One connection may hold a message or an answer of 48 MB, a write several times its document, and
//! two thousand connections may be open. So whatever is large takes a [`MemoryShare`] of a budget
//! before it is read or made, and waits where it gets none: the client is held up, not cut off.
//! (What is refused instead is in [`crate::budget`].)
//!
//! A server has one budget for messages that come in and one for answers, an engine one for what is
//! written. A command may hold a share of an earlier one of these and wait for a later one, in the
//! order messages, answers, writes; and a command that waits for a budget holds nothing of it: so
//! no commands wait in a circle.
//!
//! *Invariants*
//! 1. Free bytes and all shares add up to what the budget began with.
//! 2. Shares are given in the order in which they were asked for: a large one is never passed by
//!    small ones for ever.
//! 3. Withheld bytes ([`MemoryQueue::withhold`]) aren't given out; but where nothing is held, the
//!    first waiter gets a share all the same: all get on, if only one by one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

/// The interval at which a waiter checks whether to go on waiting.
const WAIT_STEP: Duration = Duration::from_millis(100);

/// Bytes that are given out in shares. Clones are of the same budget.
///
/// *Thread safety*: everything may be called from any number of threads at once.
#[derive(Clone)]
pub struct MemoryQueue(Arc<Inner>);

struct Inner {
    bytes: usize,
    queue: Mutex<Queue>,
    /// The queue's length, for callers that only want to know whether it is empty.
    waiting: AtomicUsize,
}

struct Queue {
    free: usize,
    /// The part of what is free that isn't given out.
    withheld: usize,
    waiting: VecDeque<Arc<Waiter>>,
}

struct Waiter {
    bytes: usize,
    is_served: AtomicBool,
    thread: Thread,
}

/// A part of a budget, given back when it is dropped.
pub struct MemoryShare {
    budget: MemoryQueue,
    bytes: usize,
}

impl MemoryQueue {
    /// A budget of so many bytes, all of them free.
    pub fn new(bytes: usize) -> MemoryQueue {
        let queue = Mutex::new(Queue { free: bytes, withheld: 0, waiting: VecDeque::new() });
        MemoryQueue(Arc::new(Inner { bytes, queue, waiting: AtomicUsize::new(0) }))
    }

    /// Takes a share if it is free and no thread waits.
    pub fn try_take(&self, bytes: usize) -> Option<MemoryShare> {
        let mut queue = self.lock();
        if !queue.waiting.is_empty() || !self.has_free(&queue, bytes) {
            return None;
        }
        queue.free -= bytes;
        Some(MemoryShare { budget: self.clone(), bytes })
    }

    /// Takes a share, and waits for it if it must; one that is larger than the budget gets all of
    /// it. `check` is asked now and then whether to go on waiting. The caller holds no other share
    /// of this budget.
    ///
    /// # Errors
    /// The error of `check`.
    pub fn take<E>(
        &self,
        bytes: usize,
        check: impl Fn() -> Result<(), E>,
    ) -> Result<MemoryShare, E> {
        let bytes = bytes.min(self.0.bytes);
        let waiter = {
            let mut queue = self.lock();
            if queue.waiting.is_empty() && self.has_free(&queue, bytes) {
                queue.free -= bytes;
                return Ok(MemoryShare { budget: self.clone(), bytes });
            }
            let (is_served, thread) = (AtomicBool::new(false), std::thread::current());
            let waiter = Arc::new(Waiter { bytes, is_served, thread });
            queue.waiting.push_back(Arc::clone(&waiter));
            self.0.waiting.store(queue.waiting.len(), Ordering::Relaxed);
            waiter
        };
        // Whatever ends the wait, the share is this one's from here on, or its place is given up.
        let place = QueueSlot { budget: self, waiter: &waiter };
        while !waiter.is_served.load(Ordering::Acquire) {
            check()?;
            std::thread::park_timeout(WAIT_STEP);
        }
        std::mem::forget(place);
        Ok(MemoryShare { budget: self.clone(), bytes })
    }

    /// Whether a thread waits for a share.
    pub fn is_waited_for(&self) -> bool {
        self.0.waiting.load(Ordering::Relaxed) > 0
    }

    /// Returns how many threads wait for a share.
    pub fn waiting_count(&self) -> usize {
        self.0.waiting.load(Ordering::Relaxed)
    }

    /// Returns the bytes it began with.
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// Bytes that are held now.
    pub fn held(&self) -> usize {
        self.0.bytes - self.lock().free
    }

    /// Gives out so much less than there is, until another number is set: what was given stays.
    pub fn withhold(&self, bytes: usize) {
        let mut queue = self.lock();
        if queue.withheld != bytes {
            queue.withheld = bytes;
            self.serve(&mut queue);
        }
    }

    fn has_free(&self, queue: &Queue, bytes: usize) -> bool {
        bytes <= queue.free
            && (bytes.saturating_add(queue.withheld) <= queue.free || queue.free == self.0.bytes)
    }

    fn give_back(&self, bytes: usize) {
        let mut queue = self.lock();
        queue.free += bytes;
        self.serve(&mut queue);
    }

    /// Gives those that wait longest what is free.
    fn serve(&self, queue: &mut Queue) {
        while let Some(first) =
            queue.waiting.front().filter(|first| self.has_free(queue, first.bytes))
        {
            let first = Arc::clone(first);
            queue.waiting.pop_front();
            queue.free -= first.bytes;
            first.is_served.store(true, Ordering::Release);
            first.thread.unpark();
        }
        self.0.waiting.store(queue.waiting.len(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // The queue is whole after each statement, so a panic elsewhere can't have broken it.
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A waiter's place. Dropping it gives the place up, or the share that it was given.
struct QueueSlot<'a> {
    budget: &'a MemoryQueue,
    waiter: &'a Arc<Waiter>,
}

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        let mut queue = self.budget.lock();
        if self.waiter.is_served.load(Ordering::Acquire) {
            queue.free += self.waiter.bytes;
        }
        queue.waiting.retain(|other| !Arc::ptr_eq(other, self.waiter));
        self.budget.serve(&mut queue);
    }
}

impl MemoryShare {
    /// Returns how much it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes it larger if that is free and no thread waits; returns whether it is so large now.
    pub fn try_grow(&mut self, bytes: usize) -> bool {
        let Some(mut more) = self.budget.try_take(bytes.saturating_sub(self.bytes)) else {
            return false;
        };
        self.bytes += std::mem::take(&mut more.bytes);
        true
    }

    /// Makes it smaller.
    pub fn shrink(&mut self, bytes: usize) {
        let more = self.bytes.saturating_sub(bytes);
        self.bytes -= more;
        self.budget.give_back(more);
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.give_back(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(budget: &MemoryQueue, bytes: usize) -> MemoryShare {
        budget.take(bytes, || Ok::<(), ()>(())).expect("nothing ends the wait")
    }

    #[test]
    fn shares_come_back_and_grow() {
        let budget = MemoryQueue::new(100);
        assert!(!budget.is_waited_for());
        let mut share = budget.try_take(40).expect("all is free");
        assert!(budget.try_take(61).is_none());
        assert!(share.try_grow(100) && !share.try_grow(101));
        assert_eq!(budget.held(), 100);
        share.shrink(200);
        share.shrink(30);
        assert_eq!((share.bytes(), budget.held()), (30, 30));
        drop(share);
        assert_eq!(take(&budget, 1_000).bytes(), 100);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn the_first_waiter_is_served_first() {
        let budget = MemoryQueue::new(100);
        let all = take(&budget, 100);
        let served = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for (place, bytes) in [90, 20, 10].into_iter().enumerate() {
                while budget.lock().waiting.len() < place {
                    std::thread::yield_now();
                }
                let (budget, served) = (&budget, &served);
                scope.spawn(move || {
                    let _share = take(budget, bytes);
                    served.lock().expect("no thread panics").push(bytes);
                });
            }
            while budget.lock().waiting.len() < 3 {
                std::thread::yield_now();
            }
            assert!(budget.is_waited_for() && budget.try_take(0).is_none());
            assert_eq!(budget.waiting_count(), 3);
            drop(all);
        });
        assert_eq!(served.lock().expect("no thread panics")[0], 90);
        assert_eq!((budget.held(), budget.is_waited_for()), (0, false));
    }

    #[test]
    fn withheld_memory_goes_only_to_a_single_request() {
        let budget = MemoryQueue::new(100);
        budget.withhold(70);
        let first = take(&budget, 30);
        assert!(budget.try_take(1).is_none());
        drop(first);
        budget.withhold(1_000);
        let only = take(&budget, 90);
        assert!(budget.try_take(1).is_none());
        std::thread::scope(|scope| {
            let next = scope.spawn(|| take(&budget, 10).bytes());
            while !budget.is_waited_for() {
                std::thread::yield_now();
            }
            budget.withhold(0);
            assert_eq!(next.join().expect("it doesn't panic"), 10);
        });
        drop(only);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn a_waiter_that_gives_up_holds_up_no_others() {
        let budget = MemoryQueue::new(100);
        let half = take(&budget, 50);
        std::thread::scope(|scope| {
            let (large, is_over) = (budget.clone(), Arc::new(AtomicBool::new(false)));
            let ends = Arc::clone(&is_over);
            let first = scope.spawn(move || {
                large.take(80, || if ends.load(Ordering::Relaxed) { Err(()) } else { Ok(()) }).err()
            });
            while !budget.is_waited_for() {
                std::thread::yield_now();
            }
            let second = scope.spawn(|| take(&budget, 30).bytes());
            while budget.lock().waiting.len() < 2 {
                std::thread::yield_now();
            }
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(first.join().expect("it doesn't panic"), Some(()));
            assert_eq!(second.join().expect("it doesn't panic"), 30);
        });
        drop(half);
        assert_eq!(budget.held(), 0);
    }
}
