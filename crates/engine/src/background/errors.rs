//! Errors of background work, where no caller waits for an answer.
//!
//! 1. A failure is counted, and the last one is kept for callers that ask.
//! 2. It is reported to the sink, if there is one: once, until that work succeeds again.
//! 3. Failed work is repeated after a [`Backoff`], which doubles each time: the disk may have room
//!    by then, and a damaged chunk is found anew only after all that lies before it was read and
//!    written.
//!
//! *Locks*: its own is held for a few operations on strings, never while the sink is called.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use frond_store::io::steady_now;

use crate::error::EngineError;

/// The pause after which work is tried again after its first failure.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// The number of different lines that are reported; with more of them some are reported again.
const REPORTED_COUNT_MAX: usize = 100;

/// Takes a line for the log.
type Sink = Box<dyn Fn(&str) + Send + Sync>;

/// Something that failed in the background.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The work that failed: a flush, a fold, a merge, a sync or a collection.
    pub work: &'static str,
    /// The error's message.
    pub message: String,
    /// The time, by the machine's clock: microseconds since 1970.
    pub at_micros: i64,
}

/// The failures so far.
#[derive(Default)]
pub(crate) struct BackgroundErrors {
    count: AtomicU64,
    known: Mutex<Known>,
    sink: OnceLock<Sink>,
}

#[derive(Default)]
struct Known {
    last: Option<Failure>,
    reported: BTreeSet<(&'static str, String)>,
}

impl BackgroundErrors {
    /// Calls `sink` from now on, unless there is another already.
    pub fn report_to(&self, sink: impl Fn(&str) + Send + Sync + 'static) {
        drop(self.sink.set(Box::new(sink)));
    }

    /// Whether there is a sink.
    pub fn has_sink(&self) -> bool {
        self.sink.get().is_some()
    }

    /// Reports a line that is no failure of work.
    pub fn report_line(&self, line: &str) {
        if let Some(sink) = self.sink.get() {
            sink(line);
        }
    }

    /// Returns how many failures there were.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// The last of them.
    pub fn last(&self) -> Option<Failure> {
        self.known().last.clone()
    }

    /// Notes that `compaction` failed. That the engine was closed is no failure.
    pub fn note(&self, work: &'static str, error: &EngineError, at_micros: i64) {
        if matches!(error, EngineError::Closed(_) | EngineError::Unknown(_)) {
            return;
        }
        let message = error.to_string();
        self.count_failure(work, message.clone(), at_micros);
        let mut known = self.known();
        let Some(sink) = self.sink.get() else { return };
        if REPORTED_COUNT_MAX <= known.reported.len() {
            known.reported.clear();
        }
        let is_new = known.reported.insert((work, message.clone()));
        drop(known);
        if is_new {
            sink(&format!("a {work} in the background failed, and is tried again: {message}"));
        }
    }

    /// Counts a failure that is reported to the sink otherwise.
    pub fn count_failure(&self, work: &'static str, message: String, at_micros: i64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.known().last = Some(Failure { work, message, at_micros });
    }

    /// Notes that no `compaction` fails any more.
    pub fn end(&self, work: &'static str) {
        let was_reported = {
            let mut known = self.known();
            let before = known.reported.len();
            known.reported.retain(|(reported, _)| *reported != work);
            known.reported.len() < before
        };
        if was_reported && let Some(sink) = self.sink.get() {
            sink(&format!("no {work} in the background fails any more"));
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("no panic while the lock is held")
    }
}

/// The wait before a failed task is tried again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    length: Duration,
    end: Instant,
}

impl Backoff {
    /// Returns the pause after a failure, where `before` is the pause before it: twice as long,
    /// `at_most` though.
    pub fn after(before: Option<Backoff>, at_most: Duration) -> Backoff {
        let length = before.map_or(PAUSE_MIN, |before| (before.length * 2).min(at_most));
        Backoff { length, end: steady_now() + length }
    }

    /// Returns the time that is left; nothing once it is over.
    pub fn left(&self) -> Option<Duration> {
        let left = self.end.saturating_duration_since(steady_now());
        (!left.is_zero()).then_some(left)
    }

    /// Returns how long it is.
    pub fn length(&self) -> Duration {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use frond_store::StoreError;

    use super::*;

    #[test]
    fn pauses_double_up_to_the_most() {
        let most = Duration::from_secs(1);
        let mut pause = None;
        let mut lengths = Vec::new();
        for _ in 0..6 {
            let next = Backoff::after(pause, most);
            lengths.push(next.length().as_millis());
            assert!(next.left().is_some_and(|left| left <= next.length()));
            pause = Some(next);
        }
        assert_eq!(lengths, [100, 200, 400, 800, 1000, 1000]);
    }

    #[test]
    fn a_failure_is_reported_once_until_its_work_succeeds() {
        let background_errors = BackgroundErrors::default();
        let error = |offset| EngineError::Store(StoreError::damaged("pack", offset, "gone"));
        background_errors.note("fold", &error(1), 5);
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let reported = Arc::clone(&lines);
        background_errors.report_to(move |line| reported.lock().unwrap().push(line.to_owned()));
        let check = |expected: usize| assert_eq!(lines.lock().unwrap().len(), expected);
        background_errors.end("fold");
        check(0);
        for (work, offset, expected) in
            [("fold", 1, 1), ("fold", 2, 2), ("fold", 1, 2), ("flush", 1, 3), ("fold", 2, 3)]
        {
            background_errors.note(work, &error(offset), 7);
            check(expected);
        }
        background_errors.end("merge");
        check(3);
        background_errors.end("fold");
        check(4);
        background_errors.note("fold", &error(1), 9);
        check(5);
        background_errors.note("fold", &EngineError::Closed("done".to_owned()), 9);
        check(5);
        assert_eq!(background_errors.count(), 7);
        let last = background_errors.last().unwrap();
        assert_eq!((last.work, last.at_micros), ("fold", 9));
        assert!(last.message.contains("gone") && lines.lock().unwrap()[0].contains("gone"));
    }
}
