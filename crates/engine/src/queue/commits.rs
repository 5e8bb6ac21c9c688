//! The lock of the commit queue, and its condition variables.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use super::Queue;

/// The queue's owner.
pub(crate) struct CommitQueue {
    queue: Mutex<Queue>,
    /// Something in the queue was written, refused or closed, and a thread that isn't waiting in a
    /// group waits for that.
    changed: Condvar,
    /// A group may be led, where threads of the engine's own do.
    leadable: Condvar,
    /// As `leadable`, of a group for which no thread waits.
    handed_on: Condvar,
}

const NO_PANIC: &str = "no panic while the lock is held";

impl CommitQueue {
    /// The owner of `queue`.
    pub fn new(queue: Queue) -> CommitQueue {
        let [changed, leadable, handed_on] = std::array::from_fn(|_| Condvar::new());
        CommitQueue { queue: Mutex::new(queue), changed, leadable, handed_on }
    }

    /// Locks the queue.
    pub fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect(NO_PANIC)
    }

    /// Wakes the threads that wait for a change, and those that lead.
    pub fn wake(&self) {
        self.changed.notify_all();
        self.leadable.notify_all();
    }

    /// Calls a thread that leads.
    pub fn call_leader(&self) {
        self.leadable.notify_one();
    }

    /// Waits for `call_leader`, or `wake`.
    pub fn wait_for_call<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.leadable.wait(queue).expect(NO_PANIC)
    }

    /// Calls the thread that leads where no other waits.
    pub fn call_for_handed_on(&self) {
        self.handed_on.notify_one();
    }

    /// Waits for that, or `end`.
    pub fn wait_for_handed_on<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.handed_on.wait(queue).expect(NO_PANIC)
    }

    /// Wakes all threads that wait: the queue is closed.
    pub fn end(&self) {
        self.wake();
        self.handed_on.notify_all();
    }

    /// Waits for `wake`.
    pub fn wait<'a>(&self, mut queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        queue.watchers += 1;
        let mut queue = self.changed.wait(queue).expect(NO_PANIC);
        queue.watchers -= 1;
        queue
    }

    /// As `wait`, but no longer than `left`.
    pub fn wait_at_most<'a>(
        &self,
        mut queue: MutexGuard<'a, Queue>,
        left: Duration,
    ) -> MutexGuard<'a, Queue> {
        queue.watchers += 1;
        let (mut queue, _) = self.changed.wait_timeout(queue, left).expect(NO_PANIC);
        queue.watchers -= 1;
        queue
    }
}
