//! The threads that talk to clients, and whose turn it is where there are fewer of them than
//! clients.
//!
//! A thread that runs commands takes some 190 KB: its stack, and what the allocator keeps for it.
//! Five hundred of them are more than all else that a server of 128 MB has, and two processors
//! don't get more done by them than by thirty.
//!
//! 1. A client that has said something is given to a thread that is idle, or to a new one while
//!    there are fewer than the memory allows. The others wait, and have their turns in the order in
//!    which they came.
//! 2. While others wait, a client's turn ends with an answer, unless it has said more already, and
//!    a silent client is waited for only briefly.
//! 3. Clients that have a thread may wait for one that has none (for what a transaction has
//!    locked, say). So no client waits for a thread while a transaction of several requests is
//!    open: there are as many more threads as are needed. And where no turn has ended for a while,
//!    there is one more: each takes a [`STALLED`] longer than the one before it, so that a slow
//!    disk, for which all of them wait, doesn't make hundreds.
//! 4. A thread beyond their number ends after a turn: when no client waits, or [`EXTRA`] after the
//!    number last changed. One that is idle for [`IDLE`] ends, and its memory is freed.
//!
//! A surprise: the runtime's own pool would have more threads than there are turns. A thread that
//! ends a turn there isn't idle yet when the next client is given one, so under load half of the
//! clients are given a new one.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The memory for each thread, of all that the server has.
const BYTES_OF_THREAD: u64 = 4 << 20;
const THREADS_MIN: usize = 32;
/// Within this time some turn ends, if any thread gets on. So often [`Workers::look`] is to be
/// called.
pub const STALLED: Duration = Duration::from_millis(50);
/// The wait after a change of the number of threads before it may fall.
const EXTRA: Duration = Duration::from_millis(200);
/// A thread is kept so long for the next client.
const IDLE: Duration = Duration::from_secs(5);

/// The work of a thread for a client, from a request to the next pause.
type Talk = Box<dyn FnOnce() + Send>;

/// The threads. Clones are of the same.
///
/// *Thread safety*: everything may be called from any number of threads at once.
#[derive(Clone)]
pub struct Workers(Arc<Inner>);

struct Inner {
    /// The number of threads there are, unless there must be more.
    count: usize,
    /// The number of threads that are withheld for now.
    withheld: AtomicUsize,
    state: Mutex<State>,
    /// There is something to do, or a thread has ended.
    changed: Condvar,
    /// The number of clients that wait for a thread, to be read without the lock.
    waiting: AtomicUsize,
}

struct State {
    waiting: VecDeque<Talk>,
    threads: usize,
    /// Those that wait for something to do.
    idle: usize,
    /// The end of the last turn, or the time when there was one thread more.
    moved: Instant,
    /// The time when there was one more, or one less.
    changed: Instant,
    stops: bool,
}

impl Workers {
    /// Makes a pool of so many threads at most, none of which is there yet.
    pub fn new(count: usize) -> Workers {
        let now = Instant::now();
        let state = State {
            waiting: VecDeque::new(),
            threads: 0,
            idle: 0,
            moved: now,
            changed: now,
            stops: false,
        };
        Workers(Arc::new(Inner {
            count: count.max(1),
            withheld: AtomicUsize::new(0),
            state: Mutex::new(state),
            changed: Condvar::new(),
            waiting: AtomicUsize::new(0),
        }))
    }

    /// Returns how many threads a server has that may take `bytes`.
    pub fn count_for(bytes: u64) -> usize {
        usize::try_from(bytes / BYTES_OF_THREAD).unwrap_or(usize::MAX).max(THREADS_MIN)
    }

    /// Returns how many there are where no more must be.
    pub fn count(&self) -> usize {
        self.0.count
    }

    /// Has so many fewer threads, one at least, until the next call: some end with their turns.
    pub fn withhold(&self, threads: usize) {
        let before = self.0.withheld.swap(threads, Ordering::Relaxed);
        if threads < before && self.is_waited_for() {
            let mut state = self.0.lock();
            let wanted = state.waiting.len().saturating_sub(state.idle);
            for _ in 0..wanted.min(self.0.count_now().saturating_sub(state.threads)) {
                // Without another thread they wait until one has time.
                if self.begin(&mut state).is_err() {
                    return;
                }
            }
        }
    }

    /// Whether a client waits for a thread.
    pub fn is_waited_for(&self) -> bool {
        0 < self.0.waiting.load(Ordering::Relaxed)
    }

    /// Has a thread do this, once it is its turn; at once if `must_go_on` says that others may wait
    /// for it.
    ///
    /// # Errors
    /// The system has no thread for it, and there is none that could do it later.
    pub fn run(&self, talk: impl FnOnce() + Send + 'static, must_go_on: bool) -> io::Result<()> {
        let mut state = self.0.lock();
        state.waiting.push_back(Box::new(talk));
        if state.waiting.len() <= state.idle {
            drop(state);
            self.0.changed.notify_one();
            return Ok(());
        }
        if state.threads < self.0.count_now() || must_go_on {
            let begun = self.begin(&mut state);
            if begun.is_err() && state.threads == 0 {
                state.waiting.pop_back();
                return begun;
            }
        }
        self.0.note_waiting(&state);
        Ok(())
    }

    /// Checks whether any thread gets on; `must_go_on`: clients that wait may be waited for by
    /// those that don't. To be called each [`STALLED`].
    pub fn look(&self, must_go_on: bool) {
        if !self.is_waited_for() {
            return;
        }
        let mut state = self.0.lock();
        let extra = state.threads.saturating_sub(self.0.count_now());
        let patience = STALLED.saturating_mul(u32::try_from(extra + 1).unwrap_or(u32::MAX));
        let mut wanted = state.waiting.len().saturating_sub(state.idle);
        if !must_go_on {
            wanted = wanted.min(usize::from(patience <= state.moved.elapsed()));
        }
        for _ in 0..wanted {
            // Without another thread they wait until one has time.
            if self.begin(&mut state).is_err() {
                return;
            }
        }
    }

    /// Begins a thread.
    fn begin(&self, state: &mut State) -> io::Result<()> {
        let workers = self.clone();
        let named = std::thread::Builder::new().name("frond-client".to_owned());
        named.spawn(move || workers.0.work())?;
        state.threads += 1;
        if self.0.count_now() < state.threads {
            (state.moved, state.changed) = (Instant::now(), Instant::now());
        }
        Ok(())
    }

    /// Has all threads end that do nothing, and waits until all have ended, for so long at most.
    pub fn stop(&self, at_most: Duration) {
        let (mut state, begun) = (self.0.lock(), Instant::now());
        state.stops = true;
        self.0.changed.notify_all();
        while 0 < state.threads && begun.elapsed() < at_most {
            let left = at_most.saturating_sub(begun.elapsed());
            let waited = self.0.changed.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Threads now, and clients that wait for one.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.0.lock();
        (state.threads, state.waiting.len())
    }
}

impl Inner {
    /// Returns how many threads there are to be now.
    fn count_now(&self) -> usize {
        self.count.saturating_sub(self.withheld.load(Ordering::Relaxed)).max(1)
    }

    /// Runs a thread until it ends.
    fn work(&self) {
        let mut state = self.lock();
        let mut idle_until = Instant::now() + IDLE;
        loop {
            if let Some(talk) = state.waiting.pop_front() {
                self.note_waiting(&state);
                drop(state);
                // It ends this client's connection, and nothing else.
                let _ = catch_unwind(AssertUnwindSafe(talk));
                state = self.lock();
                state.moved = Instant::now();
                if self.is_one_too_many(&mut state) {
                    break;
                }
                idle_until = Instant::now() + IDLE;
                continue;
            }
            if state.stops {
                break;
            }
            state.idle += 1;
            // Woken for work that another has taken, it is idle for no longer.
            let left = idle_until.saturating_duration_since(Instant::now());
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.idle -= 1;
            if idle_until <= Instant::now() && state.waiting.is_empty() {
                break;
            }
        }
        state.threads -= 1;
        let stops = state.stops;
        drop(state);
        // Others wait for work, and the thread that stops them for all to end.
        if stops {
            self.changed.notify_all();
        }
    }

    /// Whether a thread whose turn has ended is to end, too.
    fn is_one_too_many(&self, state: &mut State) -> bool {
        if state.threads <= self.count_now()
            || !state.waiting.is_empty() && state.changed.elapsed() < EXTRA
        {
            return false;
        }
        state.changed = Instant::now();
        true
    }

    fn note_waiting(&self, state: &State) {
        let waiting = state.waiting.len().saturating_sub(state.idle);
        self.waiting.store(waiting, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // It is whole after each statement, so a panic elsewhere can't have broken it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A client's talk, which ends when it is asked to.
    fn talk(workers: &Workers, name: usize, begun: &Sender<usize>, must_go_on: bool) -> Sender<()> {
        let (end, ended) = channel();
        let begun = begun.clone();
        let talk = move || {
            begun.send(name).expect("the test waits for it");
            let _ = ended.recv();
        };
        workers.run(talk, must_go_on).expect("there are threads");
        end
    }

    fn pool(count: usize) -> (Workers, Sender<usize>, Receiver<usize>) {
        let (begun, begins) = channel();
        (Workers::new(count), begun, begins)
    }

    #[test]
    fn there_are_no_more_threads_than_turns_and_turns_go_round_in_their_order() {
        for count in [1, 3] {
            let (workers, begun, begins) = pool(count);
            let ends: Vec<_> = (0..50).map(|name| talk(&workers, name, &begun, false)).collect();
            for (name, end) in ends.into_iter().enumerate() {
                let begins = begins.recv().expect("all have their turn");
                assert!(begins == name || 1 < count && begins < name + count);
                assert!(workers.counts().0 <= count);
                drop(end);
            }
            workers.stop(Duration::from_secs(60));
            assert_eq!(workers.counts(), (0, 0));
        }
    }

    #[test]
    fn urgent_requests_do_not_wait() {
        let (workers, begun, begins) = pool(1);
        let first = talk(&workers, 0, &begun, false);
        assert_eq!(begins.recv(), Ok(0));
        let second = talk(&workers, 1, &begun, false);
        assert!(workers.is_waited_for());
        workers.look(true);
        assert_eq!(begins.recv(), Ok(1));
        let third = talk(&workers, 2, &begun, true);
        assert_eq!(begins.recv(), Ok(2));
        assert_eq!(workers.counts(), (3, 0));
        drop((first, second, third));
        workers.stop(Duration::from_secs(60));
        assert_eq!(workers.counts(), (0, 0));
    }

    #[test]
    fn a_blocked_pool_gets_one_more_thread_which_ends_again() {
        let (workers, begun, begins) = pool(1);
        let stuck = talk(&workers, 0, &begun, false);
        assert_eq!(begins.recv(), Ok(0));
        let late = talk(&workers, 1, &begun, false);
        while workers.counts().1 > 0 {
            workers.look(false);
            std::thread::yield_now();
        }
        assert_eq!(begins.recv(), Ok(1));
        assert_eq!(workers.counts(), (2, 0));
        drop(late);
        while 1 < workers.counts().0 {
            std::thread::yield_now();
        }
        drop(stuck);
        workers.stop(Duration::from_secs(60));
    }

    #[test]
    fn a_panic_ends_a_turn_and_no_thread() {
        let workers = Workers::new(1);
        let (done, finished) = channel();
        workers.run(|| panic!("of a handler"), false).expect("there are threads");
        workers.run(move || done.send(()).expect("it is waited for"), false).expect("as before");
        assert_eq!(finished.recv(), Ok(()));
        assert_eq!(workers.counts().0, 1);
    }

    #[test]
    fn memory_says_how_many() {
        let found = [0, 64 << 20, 600 << 20, u64::MAX].map(Workers::count_for);
        assert_eq!(found[..3], [32, 32, 150]);
        assert!(2_000 < found[3]);
    }
}
