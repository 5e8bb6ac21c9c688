//! The threads that work for one request, each on a part of what it reads.
//!
//! *Threads that may work*: one always, on the request's own core, and as many more as cores are
//! lent to it. A thread whose core is wanted back waits in the middle of its part, until the
//! request's own core is free or one is lent again. So a request goes on in any case, and parts
//! needn't be handed over.
//!
//! *Invariant*: what comes of the parts is what would come of one thread, or nothing. Where
//! anything fails in a part, the others stop and nothing is answered; the caller then does all the
//! work once more by one thread, which meets the error that comes first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use frond_store::io::steady_now;

use super::{Cores, LentCore, PART_ENTRIES_MIN, PARTS_A_WORKER, SLICE};
use crate::code::Code;
use crate::error::QueryError;
use crate::examined::{self, Examined};

/// The interval at which a thread that waits for a core asks for one.
const CHECK_EVERY: Duration = Duration::from_millis(2);
/// As a client's thread has it, at least: expressions and documents are nested.
const STACK_BYTES: usize = 4 << 20;

/// The threads of one request.
pub struct Workers {
    cores: Arc<Cores>,
    /// The number of workers, the request's own thread included.
    count: usize,
    /// For each part that is worked on, its thread's core.
    slots: Vec<Mutex<Slot>>,
    /// Whether a thread works on the request's own core.
    is_own_core_used: Mutex<bool>,
    freed: Condvar,
    has_failed: AtomicBool,
}

/// The state of a thread that works on a part.
struct Slot {
    core: Option<Core>,
    /// The time when it asked the last time whether it may go on.
    checked_at: Instant,
}

/// A core that a thread works on.
enum Core {
    Own,
    Lent(LentCore),
}

impl Workers {
    /// As many as there are cores for; `None` if that is one.
    pub fn find(cores: &Arc<Cores>) -> Option<Arc<Workers>> {
        let count = 1 + cores.spare_count();
        if count < 2 {
            return None;
        }
        let parts_max = cores.parts().unwrap_or(count * PARTS_A_WORKER);
        let slot = || Mutex::new(Slot { core: None, checked_at: steady_now() });
        Some(Arc::new(Workers {
            cores: Arc::clone(cores),
            count,
            slots: (0..parts_max).map(|_| slot()).collect(),
            is_own_core_used: Mutex::new(false),
            freed: Condvar::new(),
            has_failed: AtomicBool::new(false),
        }))
    }

    /// Returns how many parts something that has about so many entries is to have; 1 where parts
    /// aren't worth it.
    pub fn part_count(&self, entries: u64) -> usize {
        let worth = match self.cores.parts() {
            Some(_) => entries,
            None => entries / PART_ENTRIES_MIN,
        };
        usize::try_from(worth).unwrap_or(usize::MAX).clamp(1, self.slots.len())
    }

    /// Returns how many parts there may be at most.
    pub fn parts_max(&self) -> usize {
        self.slots.len()
    }

    /// Waits until the thread that works on the part at `position` may go on. It may wait for a
    /// core. It is called often: most calls do nothing.
    ///
    /// # Errors
    /// An error if the thread must stop, since another part has failed.
    pub fn go_on(&self, position: usize) -> Result<(), QueryError> {
        if self.has_failed.load(Ordering::Relaxed) {
            return Err(stopped());
        }
        let Some(slot) = self.slots.get(position) else { return Ok(()) };
        let mut slot = lock(slot);
        if slot.checked_at.elapsed() < SLICE {
            return Ok(());
        }
        if matches!(&slot.core, Some(Core::Lent(lent)) if lent.is_wanted_back()) {
            slot.core = None;
            slot.core = self.core(|| false);
        }
        slot.checked_at = steady_now();
        if slot.core.is_some() { Ok(()) } else { Err(stopped()) }
    }

    /// Runs `work` on each of the parts and returns the results, in their order; `None` if it
    /// failed for one of them.
    ///
    /// # Panics
    /// If `work` does.
    pub fn run<P: Send, T: Send, E>(
        &self,
        parts: Vec<P>,
        work: impl Fn(P) -> Result<T, E> + Sync,
    ) -> Option<Vec<T>> {
        assert!(parts.len() <= self.slots.len(), "as many parts as were asked for");
        let thread_count = self.count.min(parts.len());
        let mut made: Vec<Option<T>> = Vec::new();
        made.resize_with(parts.len(), || None);
        let left = Mutex::new(parts.into_iter().zip(made.iter_mut()).enumerate());
        let by_others = Mutex::new(Examined::default());
        let worker = || {
            while let Some(core) = self.core(|| lock(&left).len() == 0) {
                let Some((position, (part, made))) = lock(&left).next() else {
                    return self.free(core);
                };
                let at_work = AtWork { workers: self, position, has_done: false };
                *lock(&self.slots[position]) = Slot { core: Some(core), checked_at: steady_now() };
                let done = work(part).ok();
                at_work.end(done.is_some());
                *made = done;
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..thread_count {
                let thread = std::thread::Builder::new().name("frond-part".to_owned());
                let counted_worker = || {
                    worker();
                    let mut total = lock(&by_others);
                    *total = total.and(examined::take());
                };
                // The others do its work where the system gives no thread.
                let _ = thread.stack_size(STACK_BYTES).spawn_scoped(scope, counted_worker);
            }
            worker();
        });
        drop(left);
        let counted = *lock(&by_others);
        examined::add(counted);
        examined::report(counted.keys, counted.documents);
        let made: Option<Vec<T>> = made.into_iter().collect();
        let divided = u64::from(made.is_some());
        self.cores.divided.fetch_add(divided, Ordering::Relaxed);
        made
    }

    /// A core to work on, once there is one; `None` if nothing is left to do.
    fn core(&self, is_done: impl Fn() -> bool) -> Option<Core> {
        loop {
            if self.has_failed.load(Ordering::Relaxed) || is_done() {
                return None;
            }
            let mut is_used = lock(&self.is_own_core_used);
            if !*is_used {
                *is_used = true;
                return Some(Core::Own);
            }
            if let Some(lent) = self.cores.lend() {
                return Some(Core::Lent(lent));
            }
            let waited = self.freed.wait_timeout(is_used, CHECK_EVERY);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn free(&self, core: Core) {
        match core {
            Core::Own => {
                *lock(&self.is_own_core_used) = false;
                self.freed.notify_one();
            }
            Core::Lent(lent) => drop(lent),
        }
    }
}

/// A thread that works on a part.
struct AtWork<'w> {
    workers: &'w Workers,
    position: usize,
    has_done: bool,
}

impl AtWork<'_> {
    fn end(mut self, has_done: bool) {
        self.has_done = has_done;
    }
}

impl Drop for AtWork<'_> {
    // A panic, too, lets the others go.
    fn drop(&mut self) {
        if !self.has_done {
            self.workers.has_failed.store(true, Ordering::Relaxed);
        }
        let core = lock(&self.workers.slots[self.position]).core.take();
        core.into_iter().for_each(|core| self.workers.free(core));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shown to no client: the work is done once more by one thread.
fn stopped() -> QueryError {
    QueryError::new(Code::Interrupted, "another part of the request has failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dividing(parts: usize) -> Arc<Workers> {
        let cores = Cores::of_count(1);
        cores.divide_into(parts);
        Workers::find(&cores).unwrap()
    }

    #[test]
    fn parts_are_answered_in_their_order() {
        for count in 2..8 {
            let workers = dividing(count);
            let parts: Vec<usize> = (0..workers.part_count(u64::MAX)).collect();
            assert_eq!(parts.len(), count);
            let made = workers.run(parts, |part| Ok::<_, ()>(part * 10)).unwrap();
            assert!(made.into_iter().eq((0..count).map(|part| part * 10)));
        }
    }

    #[test]
    fn one_failure_ends_all() {
        let workers = dividing(4);
        let run = workers.run(vec![0, 1, 2, 3], |part| {
            if part == 2 {
                return Err(());
            }
            // Until it is told to stop.
            while workers.go_on(part).is_ok() {}
            Ok(())
        });
        assert_eq!(run, None);
    }

    #[test]
    fn a_part_goes_on_when_its_core_is_wanted_back() {
        let cores = Cores::of_count(2);
        let workers = Workers::find(&cores).unwrap();
        assert_eq!(workers.part_count(u64::MAX), 2 * PARTS_A_WORKER);
        assert_eq!(workers.part_count(PART_ENTRIES_MIN), 1);
        let begun = Mutex::new(0);
        let made = workers.run(vec![0, 1], |part| {
            *lock(&begun) += 1;
            while *lock(&begun) < 2 {
                std::thread::yield_now();
            }
            let _others = (part == 0).then(|| [cores.enter(), cores.enter()]);
            let from = steady_now();
            while from.elapsed() < SLICE * 4 {
                workers.go_on(part)?;
            }
            Ok::<_, QueryError>(())
        });
        assert_eq!(made.map(|made| made.len()), Some(2));
        assert_eq!(cores.lent.load(Ordering::Relaxed), 0);
        assert!(!*lock(&workers.is_own_core_used));
    }

    #[test]
    fn no_threads_are_had_where_all_cores_are_used() {
        let cores = Cores::of_count(2);
        let _others = [cores.enter(), cores.enter()];
        assert!(Workers::find(&cores).is_none());
    }
}
