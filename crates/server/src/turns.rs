//! How many clients have a thread at once, where there is little memory.
//!
//! A thread that runs commands takes some 190 KB: its stack, and what the allocator keeps for it. Five hundred of them are
//! more than all else that a server of 128 MB has, and two processors don't get more done by them than by thirty.
//!
//! 1. Who wants a thread takes a turn first, in the order in which they came. Turns are as many as the memory says.
//! 2. While somebody waits, a client gives its turn back after each answer, unless it has said more already, and a
//!    silent one is waited for a little only.
//! 3. Those who have a turn may wait for one who hasn't (for what a transaction has claimed, say). So nobody waits
//!    while a transaction of several requests is open, and where no turn was given back for [`STALLED`], there is one
//!    more. Such turns go again, one by one, when nobody waits, or after [`EXTRA`].

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So much memory for a thread, of all that the server has.
const BYTES_OF_THREAD: u64 = 4 << 20;
const THREADS_MIN: usize = 32;
/// Within this time somebody gives a turn back, if any of them is getting on.
const STALLED: Duration = Duration::from_millis(50);
/// For so long there is one turn more, or again one of them.
const EXTRA: Duration = Duration::from_secs(1);

/// The turns.
///
/// *Thread safety*: everything may be called from any number of threads at once.
pub struct Turns {
    count: usize,
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
    began: Instant,
    /// Turns that there are beyond `count`.
    extra: AtomicUsize,
    /// When a turn was given back, or there was one more, in milliseconds since `began`.
    moved: AtomicU64,
    /// When there was one more, or one less.
    changed: AtomicU64,
}

/// A turn, or the leave to go on without; given back when it is dropped.
pub struct Turn {
    turns: Arc<Turns>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let now = self.turns.now();
        self.turns.moved.store(now, Ordering::Relaxed);
        if let Some(permit) = self.permit.take()
            && self.turns.is_one_too_many(now)
        {
            permit.forget();
        }
    }
}

impl Turns {
    /// So many turns.
    pub fn new(count: usize) -> Arc<Turns> {
        Arc::new(Turns {
            count,
            free: Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS))),
            waiting: AtomicUsize::new(0),
            began: Instant::now(),
            extra: AtomicUsize::new(0),
            moved: AtomicU64::new(0),
            changed: AtomicU64::new(0),
        })
    }

    /// How many turns a server has that may take `bytes`.
    pub fn count_for(bytes: u64) -> usize {
        usize::try_from(bytes / BYTES_OF_THREAD).unwrap_or(usize::MAX).max(THREADS_MIN)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether somebody waits.
    pub fn is_waited_for(&self) -> bool {
        0 < self.waiting.load(Ordering::Relaxed)
    }

    /// Takes a turn; waits for one, unless `must_go_on` says that others may wait for this client.
    pub async fn take(self: &Arc<Self>, must_go_on: impl Fn() -> bool) -> Turn {
        let turn = |permit| Turn { turns: Arc::clone(self), permit };
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return turn(Some(permit));
        }
        if must_go_on() {
            return turn(None);
        }
        let _waiting = Waiting::enter(&self.waiting);
        let mut permit = pin!(Arc::clone(&self.free).acquire_owned());
        loop {
            tokio::select! {
                biased;
                // It fails only if it were closed.
                permit = &mut permit => return turn(permit.ok()),
                () = tokio::time::sleep(STALLED) => match must_go_on() {
                    true => return turn(None),
                    false => self.add_if_stalled(),
                },
            }
        }
    }

    /// Has one turn more if nobody got on for a while.
    fn add_if_stalled(&self) {
        let (now, moved) = (self.now(), self.moved.load(Ordering::Relaxed));
        let is_stalled = moved + millis(STALLED) <= now;
        // One of those who find it so.
        let is_first =
            || self.moved.compare_exchange(moved, now, Ordering::Relaxed, Ordering::Relaxed);
        if is_stalled && is_first().is_ok() {
            self.changed.store(now, Ordering::Relaxed);
            self.extra.fetch_add(1, Ordering::Relaxed);
            self.free.add_permits(1);
        }
    }

    /// Whether a turn that is given back is to go.
    fn is_one_too_many(&self, now: u64) -> bool {
        let changed = self.changed.load(Ordering::Relaxed);
        if self.extra.load(Ordering::Relaxed) == 0
            || self.is_waited_for() && now < changed + millis(EXTRA)
        {
            return false;
        }
        self.changed.store(now, Ordering::Relaxed);
        let less = |extra: usize| extra.checked_sub(1);
        self.extra.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn now(&self) -> u64 {
        millis(self.began.elapsed())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// One who waits.
struct Waiting<'a>(&'a AtomicUsize);

impl Waiting<'_> {
    fn enter(waiting: &AtomicUsize) -> Waiting<'_> {
        waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_runtime<F: Future>(work: F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(work)
    }

    #[test]
    fn turns_go_round_in_their_order() {
        on_runtime(async {
            let turns = Turns::new(1);
            let first = turns.take(|| false).await;
            let mut second = pin!(turns.take(|| false));
            assert!(tokio::time::timeout(Duration::ZERO, &mut second).await.is_err());
            assert!(turns.is_waited_for());
            let free = turns.take(|| true).await;
            assert!(free.permit.is_none(), "others may wait for it");
            drop(first);
            assert!(second.await.permit.is_some());
            assert!(!turns.is_waited_for());
        });
    }

    #[test]
    fn where_nobody_gets_on_there_is_one_more_for_a_while() {
        on_runtime(async {
            let turns = Turns::new(1);
            let kept = turns.take(|| false).await;
            let begun = Instant::now();
            let late = turns.take(|| false).await;
            assert!(late.permit.is_some() && STALLED <= begun.elapsed());
            drop(late);
            assert_eq!(turns.free.available_permits(), 0, "nobody waits: it is gone");
            drop(kept);
            assert_eq!(turns.free.available_permits(), 1);
        });
    }

    #[test]
    fn memory_says_how_many() {
        let found = [0, 64 << 20, 600 << 20, u64::MAX].map(Turns::count_for);
        assert_eq!(found[..3], [32, 32, 150]);
        assert!(2_000 < found[3]);
    }
}
