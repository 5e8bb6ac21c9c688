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
//!
//! *What comes of parts* is taken in their order, by whichever thread made the next one, while the
//! others go on. No part is begun that is too far behind the next one ([`AHEAD_A_WORKER`]): a
//! thread that has lost its core in the middle of a part gets it before others fill the memory with
//! what can't be taken yet.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use frond_store::io::steady_now;

use super::{
    Cores, LentCore, PART_ENTRIES_MAX, PART_ENTRIES_MIN, PARTS_A_WORKER, PIECES_A_WORKER, SLICE,
};
use crate::code::Code;
use crate::error::QueryError;
use crate::examined::{self, Examined};

/// The interval at which a thread that waits for a core asks for one.
const CHECK_EVERY: Duration = Duration::from_millis(2);
/// As a client's thread has it, at least: expressions and documents are nested.
const STACK_BYTES: usize = 4 << 20;
/// The number of parts for each worker that are begun before the first of them is taken.
const AHEAD_A_WORKER: usize = 4;

/// The threads of one request.
pub struct Workers {
    cores: Arc<Cores>,
    /// The number of workers, the request's own thread included.
    count: usize,
    /// The most parts there may be, unless parts are wanted small.
    parts_max: usize,
    /// Whether no part is to have more than [`PART_ENTRIES_MAX`].
    are_small: bool,
    /// For each part that is worked on, its thread's core. They are made when parts are run.
    slots: OnceLock<Vec<Mutex<Slot>>>,
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
        Workers::of_parts(cores, false)
    }

    /// As [`find`](Self::find), for parts whose results grow with their entries and shrink when
    /// they are taken: no part is large.
    pub fn find_for_small_parts(cores: &Arc<Cores>) -> Option<Arc<Workers>> {
        Workers::of_parts(cores, true)
    }

    fn of_parts(cores: &Arc<Cores>, are_small: bool) -> Option<Arc<Workers>> {
        let count = 1 + cores.spare_count();
        if count < 2 {
            return None;
        }
        Some(Arc::new(Workers {
            cores: Arc::clone(cores),
            count,
            parts_max: cores.parts().unwrap_or(count * PARTS_A_WORKER),
            are_small,
            slots: OnceLock::new(),
            is_own_core_used: Mutex::new(false),
            freed: Condvar::new(),
            has_failed: AtomicBool::new(false),
        }))
    }

    /// Returns how many parts something that has about so many entries is to have; 1 where parts
    /// aren't worth it.
    pub fn part_count(&self, entries: u64) -> usize {
        let whole = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        if self.cores.parts().is_some() {
            return whole(entries).clamp(1, self.parts_max);
        }
        let small = if self.are_small { whole(entries / PART_ENTRIES_MAX) } else { 0 };
        whole(entries / PART_ENTRIES_MIN).clamp(1, self.parts_max.max(small))
    }

    /// Returns how many threads work at a time, the request's own included.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns how many parts there may be at most, unless they are wanted small.
    pub fn parts_max(&self) -> usize {
        self.parts_max
    }

    /// Returns how many pieces may be read in a round.
    pub fn round_max(&self) -> usize {
        self.cores.parts().unwrap_or(self.count * PIECES_A_WORKER)
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
        let Some(slot) = self.slots.get().and_then(|slots| slots.get(position)) else {
            return Ok(());
        };
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
        let mut made = Vec::with_capacity(parts.len());
        self.run_in_order(parts, work, |next| {
            made.push(next);
            Ok::<_, E>(())
        })?;
        Some(made)
    }

    /// Runs `work` on each of the parts, and `take` on the results, one after the other and in
    /// their order; `None` if either failed for one of them.
    ///
    /// # Panics
    /// If one of them does, or the parts of these workers were run before.
    pub fn run_in_order<P: Send, T: Send, E, F>(
        &self,
        parts: Vec<P>,
        work: impl Fn(P) -> Result<T, E> + Sync,
        take: impl FnMut(T) -> Result<(), F> + Send,
    ) -> Option<()> {
        let slot = |_| Mutex::new(Slot { core: None, checked_at: steady_now() });
        let slots: Vec<_> = (0..parts.len()).map(slot).collect();
        assert!(self.slots.set(slots).is_ok(), "workers run parts once");
        let thread_count = self.count.min(parts.len());
        let queue = Mutex::new(Queue {
            left: parts.into_iter(),
            begun: 0,
            made: BTreeMap::new(),
            taken: 0,
            take: Some(take),
        });
        let by_others = Mutex::new(Examined::default());
        let worker = || self.work(&queue, &work);
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
        let counted = *lock(&by_others);
        examined::add(counted);
        examined::report(counted.keys, counted.documents);
        if self.has_failed.load(Ordering::Relaxed) {
            return None;
        }
        self.cores.divided.fetch_add(1, Ordering::Relaxed);
        Some(())
    }

    /// One thread's work: part after part, as long as there are any.
    fn work<P, T, E, F>(
        &self,
        queue: &Mutex<Queue<P, T, impl FnMut(T) -> Result<(), F>>>,
        work: &impl Fn(P) -> Result<T, E>,
    ) {
        let slots = self.slots.get().map_or(&[][..], Vec::as_slice);
        while let Some(core) = self.core(|| lock(queue).left.len() == 0) {
            let next = lock(queue).next(self.count * AHEAD_A_WORKER);
            let (position, part) = match next {
                Next::Part(position, part) => (position, part),
                Next::Nothing => return self.free(core),
                Next::Later => {
                    self.free(core);
                    self.wait_for_others();
                    continue;
                }
            };
            let at_work = AtWork { workers: self, position, has_done: false };
            *lock(&slots[position]) = Slot { core: Some(core), checked_at: steady_now() };
            let done = work(part).ok().is_some_and(|made| {
                lock(queue).made.insert(position, made);
                self.take_made(queue)
            });
            at_work.end(done);
        }
    }

    /// Takes what was made next, as long as there is any and no other thread does; whether that
    /// went well.
    fn take_made<P, T, F>(
        &self,
        queue: &Mutex<Queue<P, T, impl FnMut(T) -> Result<(), F>>>,
    ) -> bool {
        let mut take = None;
        loop {
            let mut locked = lock(queue);
            let Some(mut taking) = take.take().or_else(|| locked.take.take()) else { return true };
            let position = locked.taken;
            let Some(made) = locked.made.remove(&position) else {
                locked.take = Some(taking);
                return true;
            };
            drop(locked);
            if taking(made).is_err() {
                return false;
            }
            take = Some(taking);
            lock(queue).taken += 1;
            self.freed.notify_all();
        }
    }

    /// Waits for what others do, for a while.
    fn wait_for_others(&self) {
        let is_used = lock(&self.is_own_core_used);
        let waited = self.freed.wait_timeout(is_used, CHECK_EVERY);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
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
                // One of those that wait may wait for something else.
                self.freed.notify_all();
            }
            Core::Lent(lent) => drop(lent),
        }
    }
}

/// The parts that are left, and what was made of others.
struct Queue<P, T, F> {
    left: std::vec::IntoIter<P>,
    /// The number of parts that were begun.
    begun: usize,
    /// What wasn't taken yet, by the parts' positions.
    made: BTreeMap<usize, T>,
    /// The number of parts whose results were taken.
    taken: usize,
    /// What takes them; `None` while a thread does.
    take: Option<F>,
}

/// What a worker may do.
enum Next<P> {
    Part(usize, P),
    /// Others have to be done before.
    Later,
    Nothing,
}

impl<P, T, F> Queue<P, T, F> {
    /// The next part, unless more than `ahead` are begun.
    fn next(&mut self, ahead: usize) -> Next<P> {
        if self.taken + ahead <= self.begun && 0 < self.left.len() {
            return Next::Later;
        }
        let Some(part) = self.left.next() else { return Next::Nothing };
        self.begun += 1;
        Next::Part(self.begun - 1, part)
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
        let slot = self.workers.slots.get().and_then(|slots| slots.get(self.position));
        let core = slot.and_then(|slot| lock(slot).core.take());
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
    fn results_are_taken_in_order_and_no_part_runs_far_ahead() {
        for count in [2, 3, 40] {
            let workers = dividing(count);
            let (taken, ahead) = (Mutex::new(0), count * AHEAD_A_WORKER);
            let parts: Vec<usize> = (0..count * 9).collect();
            let work = |part: usize| {
                assert!(part < *lock(&taken) + ahead, "{part}");
                // The first lets the others come as far as they may.
                let from = steady_now();
                while part == 0 && from.elapsed() < CHECK_EVERY * 4 {
                    std::thread::yield_now();
                }
                Ok::<_, ()>(part)
            };
            let done = workers.run_in_order(parts, work, |part| {
                let mut taken = lock(&taken);
                assert_eq!(part, *taken);
                *taken += 1;
                Ok::<_, ()>(())
            });
            assert_eq!((done, *lock(&taken)), (Some(()), count * 9));
        }
        let mut taken = 0;
        let done = dividing(3).run_in_order(vec![(); 5], Ok::<_, ()>, |()| {
            taken += 1;
            if taken < 3 { Ok(()) } else { Err(()) }
        });
        assert_eq!((done, taken), (None, 3));
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
