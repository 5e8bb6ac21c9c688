//! Decides how many further cores a request may use.
//!
//! 1. A [`Cores`] counts the requests that run. The cores that they leave of the machine are lent,
//!    one by one, to requests whose work can be divided ([`workers`]).
//! 2. A worker on a core that was lent asks every [`SLICE`] whether it is wanted back: as soon as
//!    more requests run than there are cores for. As many as ran at once lately ([`LATELY`]) count
//!    as running, so that a client that asks one thing after the other isn't in the way of a worker
//!    between two of its requests, nor a worker in its.
//!
//! *Surprise*: what other processes do isn't known here, and workers don't yield to them: where
//! more threads want to run than there are cores, each yield costs a turn of all of them, and a
//! group took ten times as long as by one thread.

mod workers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use frond_store::io::steady_now;

pub use workers::Workers;

/// The time that a core is kept before the worker asks whether it is wanted back. Less costs
/// throughput, more costs the requests that wait.
const SLICE: Duration = Duration::from_micros(250);
/// The time that a request counts after it has ended.
const LATELY: Duration = Duration::from_millis(20);
/// The least number of entries of a part: fewer are read in some 4 ms, and a thread takes 50 µs.
const PART_ENTRIES_MIN: u64 = 16 << 10;
/// The most entries of a part whose result grows with them, where there are many.
const PART_ENTRIES_MAX: u64 = 128 << 10;
/// The least number of entries of a piece, of which each thread of a round reads some: all but one
/// wait for the last of a round for half a piece.
const PIECE_ENTRIES_MIN: u64 = 4 << 10;
/// Finding the ends of pieces takes some two microseconds each, before anything is read: that many
/// there may be of any length.
const SHORT_PIECES_MAX: u64 = 64;
const PIECES_MAX: usize = 4096;
/// The number of parts for each worker. At the end one works on the last part while the others are
/// done, so that half a part is lost: with four for each of two workers that was a sixteenth.
const PARTS_A_WORKER: usize = 8;
/// The number of pieces for each worker that a round has at most.
const PIECES_A_WORKER: usize = 32;

/// The machine's cores.
///
/// *Thread safety*: any number of threads may call anything at once. No answer depends on what they
/// are told, only the worker.
#[derive(Debug)]
pub struct Cores {
    count: usize,
    /// Requests that run.
    running: AtomicUsize,
    /// Cores that are lent.
    lent: AtomicUsize,
    /// The number of requests that ran at once lately.
    peak: AtomicUsize,
    /// The time of the peak, in microseconds since `began`.
    peak_at: AtomicU64,
    began: Instant,
    /// Requests that were divided.
    divided: AtomicU64,
    /// The number of parts that are made in any case; 0: as many as are worth it.
    parts: AtomicUsize,
}

impl Cores {
    /// Those that the process may use.
    pub fn of_machine() -> Arc<Cores> {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        Cores::of_count(count)
    }

    /// Makes cores of this count, whatever the machine has.
    pub fn of_count(count: usize) -> Arc<Cores> {
        let (running, lent, peak, parts) = Default::default();
        let (peak_at, divided, began) = (AtomicU64::new(0), AtomicU64::new(0), steady_now());
        Arc::new(Cores { count, running, lent, peak, peak_at, began, divided, parts })
    }

    /// Has work divided from now on into so many parts wherever it can be, however little it is and
    /// whatever else runs, and into none if that is 1: for tests.
    pub fn divide_into(&self, parts: usize) {
        self.parts.store(parts, Ordering::Relaxed);
    }

    /// Returns how many pieces something that has about so many entries is cut into where some of
    /// them are read at a time, by as many threads as there are cores for by then; 1 where that
    /// isn't worth it.
    pub fn piece_count(&self, entries: u64) -> usize {
        let worth = match self.parts() {
            Some(parts) => entries.min(parts as u64),
            None if self.count < 2 => 1,
            None if entries < 2 * PART_ENTRIES_MIN => 1,
            None => {
                let short = SHORT_PIECES_MAX.min(entries / PIECE_ENTRIES_MIN);
                short.max(entries / PART_ENTRIES_MIN)
            }
        };
        usize::try_from(worth).unwrap_or(usize::MAX).clamp(1, PIECES_MAX)
    }

    /// Returns how many parts are made in any case.
    fn parts(&self) -> Option<usize> {
        Some(self.parts.load(Ordering::Relaxed)).filter(|parts| 0 < *parts)
    }

    /// Counts a request that runs, until what is returned is dropped.
    pub fn enter(self: &Arc<Cores>) -> RunningRequest {
        let running = self.running.fetch_add(1, Ordering::Relaxed) + 1;
        if self.peak.load(Ordering::Relaxed) <= running {
            self.peak.store(running, Ordering::Relaxed);
            self.peak_at.store(self.now_micros(), Ordering::Relaxed);
        }
        RunningRequest(Arc::clone(self))
    }

    /// Returns how many requests were answered by several threads.
    pub fn divided_count(&self) -> u64 {
        self.divided.load(Ordering::Relaxed)
    }

    /// Returns how many cores could be lent now.
    fn spare_count(&self) -> usize {
        if let Some(parts) = self.parts() {
            return parts.saturating_sub(1);
        }
        self.count.saturating_sub(self.busy_count() + self.lent.load(Ordering::Relaxed))
    }

    /// Lends a core, if one is idle.
    fn lend(self: &Arc<Cores>) -> Option<LentCore> {
        let may_be_lent =
            |lent: usize| self.parts().is_some() || self.busy_count() + lent < self.count;
        let more = |lent: usize| may_be_lent(lent).then(|| lent + 1);
        self.lent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(LentCore(Arc::clone(self)))
    }

    /// Whether more cores are lent than are idle.
    fn is_overdrawn(&self) -> bool {
        let lent = self.lent.load(Ordering::Relaxed);
        self.parts().is_none() && self.count < self.busy_count() + lent
    }

    /// Returns how many requests have a core of their own: at least the one that asks.
    fn busy_count(&self) -> usize {
        let running = self.running.load(Ordering::Relaxed);
        let now = self.now_micros();
        let age = now.saturating_sub(self.peak_at.load(Ordering::Relaxed));
        if LATELY.as_micros() < u128::from(age) {
            self.peak.store(running, Ordering::Relaxed);
            self.peak_at.store(now, Ordering::Relaxed);
        }
        self.peak.load(Ordering::Relaxed).max(running).max(1)
    }

    fn now_micros(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// A request that runs.
#[derive(Debug)]
pub struct RunningRequest(Arc<Cores>);

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A core that is lent until this is dropped.
#[derive(Debug)]
struct LentCore(Arc<Cores>);

impl LentCore {
    fn is_wanted_back(&self) -> bool {
        self.0.is_overdrawn()
    }
}

impl Drop for LentCore {
    fn drop(&mut self) {
        self.0.lent.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_cores_are_lent_and_reclaimed_when_more_requests_run() {
        let cores = Cores::of_count(3);
        let own = cores.enter();
        assert_eq!(cores.spare_count(), 2);
        let (first, second) = (cores.lend().unwrap(), cores.lend().unwrap());
        assert!(cores.lend().is_none());
        assert!(!first.is_wanted_back());
        let other = cores.enter();
        assert!(first.is_wanted_back());
        drop(second);
        assert!(!first.is_wanted_back());
        drop((other, first));
        assert_eq!(cores.spare_count(), 1, "what ran lately may come again");
        frond_store::io::pause(LATELY + Duration::from_millis(1));
        assert_eq!(cores.spare_count(), 2);
        drop(own);
        assert_eq!(cores.spare_count(), 2, "who asks has a core of its own");
    }

    #[test]
    fn nothing_is_lent_where_there_is_one_core_or_as_many_requests() {
        assert!(Cores::of_count(1).lend().is_none());
        let cores = Cores::of_count(2);
        let _running = [cores.enter(), cores.enter()];
        assert_eq!(cores.spare_count(), 0);
        assert!(cores.lend().is_none());
        cores.divide_into(3);
        assert_eq!(cores.spare_count(), 2);
        assert!(cores.lend().is_some());
    }
}
