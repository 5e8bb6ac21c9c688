//! The slowest commits since the engine was opened, and what each of them waited for.
//!
//! A histogram shows that one commit in ten thousand takes long, and not why. Here every commit has
//! a stopwatch with a hand for each [`Stage`]; that of a slow one is kept. The cost is reading the
//! clock some ten times a commit, and one comparison at its end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use frond_store::io::steady_now;

/// The number of commits that are kept.
const KEPT_COUNT: usize = 16;

/// A stage of a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// At its end it is delayed, because much waits to be flushed or folded.
    Delay,
    /// It waits for a flush, because no more memtables may wait.
    Stop,
    /// It is encoded, and its chunks are put into the store.
    Prepare,
    /// It waits for the queue, is validated and is queued.
    Queue,
    /// Its entries are inserted into the memtable.
    Insert,
    /// It waits for its group: for the group before it, and for its leader.
    Group,
    /// As the leader, it writes to the log, in a new segment where one begins.
    Write,
    /// As the leader, it syncs the log.
    Sync,
    /// As the leader, it waits for members that insert their entries yet, and wakes them.
    Wake,
}

impl Stage {
    /// All, in their order.
    pub const ALL: [Stage; 9] = [
        Stage::Delay,
        Stage::Stop,
        Stage::Prepare,
        Stage::Queue,
        Stage::Insert,
        Stage::Group,
        Stage::Write,
        Stage::Sync,
        Stage::Wake,
    ];

    /// Returns the name under which it is shown.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Delay => "delayed",
            Stage::Stop => "stopped",
            Stage::Prepare => "preparing",
            Stage::Queue => "queue",
            Stage::Insert => "inserting",
            Stage::Group => "group",
            Stage::Write => "writing the log",
            Stage::Sync => "syncing the log",
            Stage::Wake => "waking members",
        }
    }
}

/// A commit that took long.
#[derive(Clone, Copy, Debug)]
pub struct SlowCommit {
    /// The time from the opening to its beginning.
    pub begun: Duration,
    /// The time that it took.
    pub took: Duration,
    /// About how many bytes it wrote.
    pub bytes: u64,
    stages: [Duration; Stage::ALL.len()],
}

impl SlowCommit {
    /// Returns how long it was in `stage`.
    pub fn in_stage(&self, stage: Stage) -> Duration {
        self.stages[stage as usize]
    }
}

/// Takes the time of one commit.
pub(crate) struct Stopwatch {
    begun: Instant,
    last: Instant,
    stages: [Duration; Stage::ALL.len()],
}

impl Stopwatch {
    pub fn start() -> Stopwatch {
        let now = steady_now();
        Stopwatch { begun: now, last: now, stages: Default::default() }
    }

    /// Counts the time since the last call, or the start, for `stage`.
    pub fn lap(&mut self, stage: Stage) -> Duration {
        let now = steady_now();
        let lap = now - self.last;
        self.stages[stage as usize] += lap;
        self.last = now;
        lap
    }
}

/// The slowest commits.
pub(crate) struct Slowest {
    opened: Instant,
    /// Nanoseconds of the fastest that is kept; 0 while there is room.
    least: AtomicU64,
    kept: Mutex<Vec<SlowCommit>>,
}

impl Default for Slowest {
    fn default() -> Slowest {
        Slowest { opened: steady_now(), least: AtomicU64::new(0), kept: Mutex::default() }
    }
}

impl Slowest {
    /// Keeps a commit that has ended, if it was slow.
    pub fn note(&self, watch: &Stopwatch, bytes: u64) {
        let took = watch.last - watch.begun;
        if nanos(took) <= self.least.load(Ordering::Relaxed) {
            return;
        }
        let begun = watch.begun.saturating_duration_since(self.opened);
        let mut kept = self.kept();
        let position = kept.partition_point(|kept| took <= kept.took);
        kept.insert(position, SlowCommit { begun, took, bytes, stages: watch.stages });
        kept.truncate(KEPT_COUNT);
        if let Some(last) = kept.get(KEPT_COUNT - 1) {
            self.least.store(nanos(last.took), Ordering::Relaxed);
        }
    }

    /// The slowest, the slowest of all first.
    pub fn read(&self) -> Vec<SlowCommit> {
        self.kept().clone()
    }

    fn kept(&self) -> MutexGuard<'_, Vec<SlowCommit>> {
        self.kept.lock().expect("no panic while the lock is held")
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_are_kept_with_their_stages() {
        let slowest = Slowest::default();
        for millis in (1..=100).rev().chain(101..=200) {
            let mut watch = Stopwatch::start();
            watch.begun = watch.begun.checked_sub(Duration::from_millis(millis)).unwrap();
            watch.last = watch.begun;
            watch.lap(Stage::Sync);
            watch.lap(Stage::Wake);
            slowest.note(&watch, millis);
        }
        let kept = slowest.read();
        let bytes: Vec<u64> = kept.iter().map(|slow| slow.bytes).collect();
        assert_eq!(bytes, (185..=200).rev().collect::<Vec<u64>>());
        for slow in kept {
            assert!(slow.in_stage(Stage::Sync) >= Duration::from_millis(slow.bytes));
            let stages: Duration = Stage::ALL.iter().map(|stage| slow.in_stage(*stage)).sum();
            assert_eq!(stages, slow.took);
        }
    }
}
