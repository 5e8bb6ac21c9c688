//! The threads that talk to clients, and whose turn it is where there are fewer of them than
//! clients.
//!
//! A client has a thread from when it has said something until it is answered; a silent one has
//! none. So as many threads are busy as commands run or wait at one time, mostly one or two, and
//! these keep in the processors' caches what a command touches of a thread's own: its stack, and
//! what the allocator keeps for it, some 190 KB. With a thread for each of five hundred clients all
//! of that came from memory for each command.
//!
//! 1. A client that has spoken is taken by a thread that waits: the one that has begun to wait last
//!    ([`watch`]). When no other waits, a thread begins one before it goes on, while there are
//!    fewer than the memory allows. Clients have their turns in the order in which they spoke.
//! 2. A client's turn ends with an answer, unless it has said more already.
//! 3. Clients that have a thread may wait for one that has none (for what a transaction has
//!    locked, say). So no client waits for a thread while a transaction of several requests is
//!    open: there are as many more threads as are needed. And where no turn has ended for a while,
//!    there is one more: each takes a [`STALLED`] longer than the one before it, so that a slow
//!    disk, for which all of them wait, doesn't make hundreds.
//! 4. A thread beyond their number ends after a turn, or when it finds nothing to do: when no
//!    client waits, or [`EXTRA`] after the number last changed. One that is idle for [`IDLE`] ends,
//!    and its memory is freed, if others wait for the next client.
//!
//! Two surprises where the processors are busy. A thread has begun long before it waits: meanwhile
//! no other is begun for the same reason, or each turn would begin one. And a client that has its
//! answer speaks again before the thread that sent it has come to wait: such a thread counts as one
//! that waits, or one client after the other, each of which waits for its answer, made hundreds.

#[cfg(target_os = "linux")]
mod silent_clients;
mod talk;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::talk::Work;
pub use self::talk::{Talk, Thread};
use self::watch::{Watch, Woken};
use crate::limits::SCRATCH_BYTES;

/// The memory for each thread, of all that the server has.
const BYTES_OF_THREAD: u64 = 4 << 20;
const THREADS_MIN: usize = 32;
/// Within this time some turn ends, if any thread gets on. So often [`Workers::look`] is to be
/// called.
pub const STALLED: Duration = Duration::from_millis(50);
/// As [`STALLED`], where a thread has only an answer to send, which its client may not take.
const STALLED_ENDING: Duration = Duration::from_secs(1);
/// The wait after a change of the number of threads before it may fall.
const EXTRA: Duration = Duration::from_millis(200);
/// A thread is kept so long for the next client.
const IDLE: Duration = Duration::from_secs(5);
/// So many wait for the next client however long it takes: one to take it, and one that then
/// waits.
const IDLE_MIN: usize = 2;

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
    /// The threads that there are. Changed with the state locked.
    threads: AtomicUsize,
    /// Those of them that have not come so far as to wait or to work.
    beginning: AtomicUsize,
    /// Those that wait for something to do.
    idle: AtomicUsize,
    /// Those that will soon.
    ending: AtomicUsize,
    /// The length of the queue, to be read without the lock.
    queued: AtomicUsize,
    /// The turns that have ended.
    turns: AtomicU64,
    stops: AtomicBool,
    watch: Watch,
    state: Mutex<State>,
    /// A thread has ended.
    ended: Condvar,
}

struct State {
    /// The work that no client's voice brings.
    queue: VecDeque<Work>,
    /// The turns that had ended when it was last looked, and when that number was first seen, or
    /// there was one thread more.
    seen: (u64, Instant),
    /// The time when there was one thread more, or one less, than there should be.
    changed: Instant,
}

impl Workers {
    /// Makes a pool of so many threads at most, none of which is there yet.
    pub fn new(count: usize) -> Workers {
        Workers::on(Watch::new(), count)
    }

    fn on(watch: Watch, count: usize) -> Workers {
        let now = Instant::now();
        Workers(Arc::new(Inner {
            count: count.max(1),
            withheld: AtomicUsize::new(0),
            threads: AtomicUsize::new(0),
            beginning: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
            ending: AtomicUsize::new(0),
            queued: AtomicUsize::new(0),
            turns: AtomicU64::new(0),
            stops: AtomicBool::new(false),
            watch,
            state: Mutex::new(State { queue: VecDeque::new(), seen: (0, now), changed: now }),
            ended: Condvar::new(),
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

    /// Whether a client that falls silent is watched here, and keeps no thread.
    pub fn can_watch(&self) -> bool {
        self.0.watch.can_watch()
    }

    /// Has so many fewer threads, one at least, until the next call: some end with their turns.
    pub fn withhold(&self, threads: usize) {
        let before = self.0.withheld.swap(threads, Ordering::Relaxed);
        if threads < before && self.is_waited_for() {
            // It begins the next one. Without another thread they wait until one has time.
            let _ = self.begin_one(&mut self.0.lock(), false);
        }
    }

    /// Whether a client waits for a thread.
    pub fn is_waited_for(&self) -> bool {
        self.0.idle.load(Ordering::SeqCst) == 0
            && (0 < self.0.queued.load(Ordering::SeqCst) || self.0.watch.is_any_ready())
    }

    /// Has a thread do this, once it is its turn; at once if `must_go_on` says that others may wait
    /// for it.
    ///
    /// # Errors
    /// The system has no thread for it, and there is none that could do it later.
    pub fn run(&self, work: impl FnOnce() + Send + 'static, must_go_on: bool) -> io::Result<()> {
        self.queue(Work::Once(Box::new(work), must_go_on))
    }

    /// Has threads talk with a client: once it is its turn, and each time when it has spoken.
    ///
    /// # Errors
    /// As [`Workers::run`].
    pub fn talk(&self, talk: Box<dyn Talk>) -> io::Result<()> {
        self.queue(Work::Turn(talk))
    }

    /// Goes on with a client that has nothing to say, from any thread.
    pub fn watch(&self, talk: Box<dyn Talk>) {
        self.0.watch.put(talk);
    }

    fn queue(&self, work: Work) -> io::Result<()> {
        let must_go_on = work.must_go_on();
        let mut state = self.0.lock();
        state.queue.push_back(work);
        self.0.queued.fetch_add(1, Ordering::SeqCst);
        self.0.watch.ring();
        if self.0.is_one_free() {
            return Ok(());
        }
        let begun = self.begin_one(&mut state, must_go_on);
        if begun.is_err() && self.0.threads.load(Ordering::SeqCst) == 0 {
            state.queue.pop_back();
            self.0.queued.fetch_sub(1, Ordering::SeqCst);
            return begun;
        }
        Ok(())
    }

    /// Checks whether any thread gets on; `must_go_on`: clients that wait may be waited for by
    /// those that don't. To be called each [`STALLED`].
    pub fn look(&self, must_go_on: bool) {
        let mut state = self.0.lock();
        let turns = self.0.turns.load(Ordering::Relaxed);
        if turns != state.seen.0 {
            state.seen = (turns, Instant::now());
        }
        if !self.is_waited_for() {
            return;
        }
        let extra = self.0.threads.load(Ordering::SeqCst).saturating_sub(self.0.count_now());
        let patience = match self.0.ending.load(Ordering::SeqCst) {
            0 => STALLED.saturating_mul(u32::try_from(extra + 1).unwrap_or(u32::MAX)),
            // The processors are busy, mostly: one thread more would get none of them.
            _ => STALLED_ENDING,
        };
        if must_go_on || patience <= state.seen.1.elapsed() {
            // Without another thread they wait until one has time.
            let _ = self.begin_one(&mut state, true);
        }
    }

    /// Begins a thread, unless one begins already, or there are enough of them; `must`: however
    /// many there are.
    fn begin_one(&self, state: &mut State, must: bool) -> io::Result<()> {
        let inner = &self.0;
        let threads = inner.threads.load(Ordering::SeqCst);
        let has_enough = inner.count_now() <= threads;
        if 0 < inner.beginning.load(Ordering::SeqCst) || has_enough && !must {
            return Ok(());
        }
        inner.beginning.fetch_add(1, Ordering::SeqCst);
        let workers = self.clone();
        let named = std::thread::Builder::new().name("frond-client".to_owned());
        if let Err(error) = named.spawn(move || workers.work()) {
            inner.beginning.fetch_sub(1, Ordering::SeqCst);
            return Err(error);
        }
        inner.threads.store(threads + 1, Ordering::SeqCst);
        if has_enough {
            state.seen.1 = Instant::now();
            state.changed = Instant::now();
        }
        Ok(())
    }

    /// Has all threads end that do nothing, and waits until all have ended, for so long at most.
    pub fn stop(&self, at_most: Duration) {
        self.0.stops.store(true, Ordering::SeqCst);
        self.0.watch.ring();
        let (mut state, begun) = (self.0.lock(), Instant::now());
        while 0 < self.0.threads.load(Ordering::SeqCst) && begun.elapsed() < at_most {
            let left = at_most.saturating_sub(begun.elapsed());
            let waited = self.0.ended.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Threads now, and clients that wait for one.
    pub fn counts(&self) -> (usize, usize) {
        let threads = self.0.threads.load(Ordering::SeqCst);
        if 0 < self.0.idle.load(Ordering::SeqCst) {
            return (threads, 0);
        }
        (threads, self.0.queued.load(Ordering::SeqCst) + self.0.watch.ready())
    }

    /// Runs a thread until it ends.
    fn work(&self) {
        let inner = &self.0;
        let mut scratch = vec![0; SCRATCH_BYTES];
        let mut has_begun = false;
        loop {
            let next = match inner.pop() {
                None if inner.stops.load(Ordering::SeqCst) => break,
                None => inner.wait(&mut has_begun),
                work => Next::Work(work),
            };
            inner.note_begun(&mut has_begun);
            let work = match next {
                Next::Work(Some(work)) => work,
                Next::Work(None) if self.is_one_too_many() => break,
                Next::Work(None) => continue,
                Next::End => break,
            };
            self.leave_another_waiting(&work);
            // A panic ends this client's connection, and nothing else.
            let mut thread = Thread::new(&mut scratch, &inner.ending);
            let turn = AssertUnwindSafe(|| match work {
                Work::Turn(talk) => talk.turn(&mut thread),
                Work::Once(once, _) => {
                    once();
                    None
                }
            });
            if let Ok(Some(talk)) = catch_unwind(turn) {
                inner.watch.put(talk);
            }
            drop(thread);
            inner.turns.fetch_add(1, Ordering::Relaxed);
            if self.is_one_too_many() {
                break;
            }
        }
        inner.note_begun(&mut has_begun);
        let state = inner.lock();
        inner.threads.fetch_sub(1, Ordering::SeqCst);
        drop(state);
        inner.ended.notify_all();
        if inner.stops.load(Ordering::SeqCst) {
            // The next one.
            inner.watch.ring();
        }
    }

    /// Sees to it that another thread waits for the next client, or for what is queued, while this
    /// one works.
    fn leave_another_waiting(&self, work: &Work) {
        let inner = &self.0;
        if inner.is_one_free() {
            if 0 < inner.queued.load(Ordering::SeqCst) {
                inner.watch.ring();
            }
            return;
        }
        let has_enough = inner.count_now() <= inner.threads.load(Ordering::SeqCst);
        if 0 < inner.beginning.load(Ordering::SeqCst) || has_enough && !work.must_go_on() {
            return;
        }
        // Without another thread they wait until this one has time.
        let _ = self.begin_one(&mut inner.lock(), has_enough);
    }

    /// Whether a thread whose turn has ended is to end, too.
    fn is_one_too_many(&self) -> bool {
        let inner = &self.0;
        if inner.threads.load(Ordering::SeqCst) <= inner.count_now() {
            return false;
        }
        let is_waited_for = self.is_waited_for();
        let mut state = inner.lock();
        if inner.threads.load(Ordering::SeqCst) <= inner.count_now()
            || is_waited_for && state.changed.elapsed() < EXTRA
        {
            return false;
        }
        state.changed = Instant::now();
        true
    }
}

/// What a thread does after it has waited.
enum Next {
    /// This, or else it looks again.
    Work(Option<Work>),
    /// It ends.
    End,
}

impl Inner {
    /// Returns how many threads there are to be now.
    fn count_now(&self) -> usize {
        self.count.saturating_sub(self.withheld.load(Ordering::Relaxed)).max(1)
    }

    /// Whether a thread has nothing to do, or will have soon.
    fn is_one_free(&self) -> bool {
        0 < self.idle.load(Ordering::SeqCst) + self.ending.load(Ordering::SeqCst)
    }

    /// Waits for something to do.
    fn wait(&self, has_begun: &mut bool) -> Next {
        self.idle.fetch_add(1, Ordering::SeqCst);
        self.note_begun(has_begun);
        let woken = self.watch.wait(IDLE);
        let others = self.idle.fetch_sub(1, Ordering::SeqCst) - 1;
        match woken {
            Woken::ByClient(talk) => Next::Work(Some(Work::Turn(talk))),
            Woken::Late if IDLE_MIN <= others => Next::End,
            Woken::ByBell | Woken::Late => Next::Work(None),
        }
    }

    /// Notes that a thread has come so far as to wait or to work.
    fn note_begun(&self, has_begun: &mut bool) {
        if !std::mem::replace(has_begun, true) {
            self.beginning.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Takes what is queued.
    fn pop(&self) -> Option<Work> {
        if self.queued.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let work = self.lock().queue.pop_front();
        if work.is_some() {
            self.queued.fetch_sub(1, Ordering::SeqCst);
        }
        work
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // It is whole after each statement, so a panic elsewhere can't have broken it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
