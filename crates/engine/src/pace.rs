//! Slowing writers down to the speed of flushing and folding, smoothly and long before they must stop.
//!
//! *Pressure* is what waits against what may wait: bytes of memtables, the active one among them,
//! against those with which writers stop, and bytes of runs beyond their share of their trees against that share. A commit is to take
//! a time in proportion to its bytes, to the pressure, and to the time that a flush takes for a byte, so that
//! at some pressure below the limit writing is exactly as fast as the work behind it. There the
//! pressure stays, however many threads write: their times stand in one line. What the commit takes by
//! itself counts: it waits at its end, for what is left, so that nobody waits for a slow sync and a delay.
//!
//! Only when so many memtables are sealed that memory is at its limit, writers stop.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::EngineError;
use crate::shared::Shared;
use crate::slow::{Stage, Stopwatch};

/// With so many sealed memtables writers stop until one is flushed.
pub(crate) const SEALED_COUNT_MAX: usize = 3;
/// The share of the allowance from which commits are delayed, in thousandths: a memtable that fills
/// while another is flushed is as it should be.
const PRESSURE_FREE: u64 = 600;
/// From these pressures on the work in the background is urgent (`courtesy`): before commits are delayed by the
/// one, and when they are as long as a flush takes by the other.
const PRESSURE_URGENT: u64 = 500;
const FOLD_PRESSURE_URGENT: u64 = 100;
const _: () = assert!(PRESSURE_URGENT < PRESSURE_FREE);
/// At full pressure by memtables a byte is to take so many times as long as its flush, in
/// thousandths: the work's own time would do, the rest makes up for bad measurements.
const FLUSH_TIMES_MAX: u64 = 5_000;
/// The same for runs: folding a byte takes several times as long as flushing it, since it rewrites
/// what lies around it.
const FOLD_TIMES_MAX: u64 = 10_000;
/// No commit is delayed longer than this by pressure.
const DELAY_MAX: Duration = Duration::from_millis(40);
/// Less is not slept: the next commit's turn begins where this one's ends.
const DELAY_MIN: Duration = Duration::from_micros(300);
/// How often a writer that was stopped looks again.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Before the first flush was measured: 100 MB a second.
const FLUSH_NANOS_A_MEGABYTE: u64 = 10_000_000;

/// What decides about delays.
pub(crate) struct Pace {
    /// Nanoseconds that flushing takes for a megabyte of memtables.
    flush_nanos: AtomicU64,
    /// Bytes of runs beyond their share, in thousandths of that share.
    fold_pressure: AtomicU64,
    /// Until when the delays of commits so far last.
    line: Mutex<Option<Instant>>,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            flush_nanos: AtomicU64::new(FLUSH_NANOS_A_MEGABYTE),
            fold_pressure: AtomicU64::new(0),
            line: Mutex::new(None),
        }
    }
}

impl Pace {
    /// Notes how long a flush took.
    pub fn note_flush(&self, bytes: u64, micros: u64) {
        if bytes >= 1 << 20 {
            let measured = micros.saturating_mul(1000) / (bytes >> 20);
            let before = self.flush_nanos.load(Ordering::Relaxed);
            self.flush_nanos.store((before * 3).saturating_add(measured) / 4, Ordering::Relaxed);
        }
    }

    /// Notes how many bytes of runs are there beyond their share, and that share.
    pub fn note_folding(&self, excess: u64, share: u64) {
        let pressure = excess.saturating_mul(1000) / share.max(1);
        self.fold_pressure.store(pressure.min(1000), Ordering::Relaxed);
    }

    fn fold_pressure(&self) -> u64 {
        self.fold_pressure.load(Ordering::Relaxed)
    }

    /// How long a commit of `bytes` is to be delayed, `waiting` being the pressure by memtables.
    fn delay(&self, bytes: u64, waiting: u64) -> Duration {
        let folding = self.fold_pressure();
        let above = waiting.min(1000).saturating_sub(PRESSURE_FREE);
        let by_flush = above * FLUSH_TIMES_MAX / (1000 - PRESSURE_FREE);
        let times = by_flush.max(folding * FOLD_TIMES_MAX / 1000);
        let nanos_a_kilobyte = self.flush_nanos.load(Ordering::Relaxed) >> 10;
        let nanos = (bytes >> 10).saturating_add(1).saturating_mul(nanos_a_kilobyte);
        Duration::from_nanos(nanos.saturating_mul(times) / 1000).min(DELAY_MAX)
    }

    /// Takes a place in the line; returns when it ends.
    fn line_up(&self, delay: Duration) -> Instant {
        let now = Instant::now();
        let mut line = self.line.lock().expect("no panic while the lock is held");
        let start = line.filter(|end| now < *end).unwrap_or(now);
        let end = (start + delay).min(now + DELAY_MAX);
        *line = Some(end);
        end
    }
}

/// Until when a commit is to last, if it is to be delayed.
#[must_use]
pub(crate) struct Turn(Option<Instant>);

impl Shared {
    /// Lets a commit of `bytes` begin as soon as there is room for it; tells how long it is to take, as the pressure
    /// demands.
    pub fn wait_for_room(&self, bytes: u64, watch: &mut Stopwatch) -> Result<Turn, EngineError> {
        if self.options.fold_threads == 0 {
            while self.flush_sealed()? {}
            while self.work_once()? {}
            return Ok(Turn(None));
        }
        let (view, _) = self.current.view();
        let waiting: u64 = view.state.memtables().map(|memtable| memtable.bytes()).sum();
        let allowed = self.options.memtable_bytes_max.max(1) * SEALED_COUNT_MAX as u64;
        drop(view);
        let pressure = waiting.saturating_mul(1000) / allowed;
        let is_urgent =
            PRESSURE_URGENT <= pressure || FOLD_PRESSURE_URGENT <= self.pace.fold_pressure();
        self.courtesy.set_urgent(is_urgent);
        let delay = self.pace.delay(bytes, pressure);
        let turn = (!delay.is_zero()).then(|| self.pace.line_up(delay));
        if SEALED_COUNT_MAX <= self.sealed_count() {
            self.wait_for_flush()?;
            self.counters.delay_micros.add(micros(watch.lap(Stage::Stop)));
        }
        Ok(Turn(turn))
    }

    /// Waits for the end of a commit's turn, which it has come to by itself.
    pub fn wait_for_turn(&self, turn: Turn, watch: &mut Stopwatch) {
        let Turn(Some(end)) = turn else { return };
        let left = end.saturating_duration_since(Instant::now());
        if DELAY_MIN <= left {
            std::thread::sleep(left);
        }
        self.counters.delay_micros.add(micros(watch.lap(Stage::Delay)));
    }

    fn sealed_count(&self) -> usize {
        self.current.view().0.state.sealed.len()
    }

    /// Waits until fewer memtables are sealed than may be.
    fn wait_for_flush(&self) -> Result<(), EngineError> {
        let failures_before = self.signals().flush_failure_count;
        while SEALED_COUNT_MAX <= self.sealed_count() {
            let signals = self.signals();
            // One that failed before, or was under way then, may be out of date: there may be room by now.
            let is_new = failures_before + 1 < signals.flush_failure_count;
            let refusal = signals.flush_failure.clone().filter(|_| is_new);
            drop(self.signalled.wait_timeout(signals, LOOK_EVERY));
            self.queue().check_open()?;
            if let Some(refusal) = refusal
                && SEALED_COUNT_MAX <= self.sealed_count()
            {
                return Err(refusal.error());
            }
        }
        Ok(())
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_with_bytes_and_pressure_and_end_at_the_most() {
        const HALF: u64 = (1000 + PRESSURE_FREE) / 2;
        let pace = Pace::default();
        let megabyte = 1 << 20;
        for waiting in [0, 100, PRESSURE_FREE] {
            assert_eq!(pace.delay(megabyte, waiting), Duration::ZERO);
        }
        let half = pace.delay(megabyte / 8, HALF);
        assert!(half > Duration::from_millis(3) && half < Duration::from_millis(4), "{half:?}");
        assert!(pace.delay(megabyte / 4, HALF) > half.mul_f64(1.9));
        assert!(pace.delay(megabyte / 8, 1000) > half.mul_f64(1.9));
        assert_eq!(pace.delay(64 * megabyte, 1000), DELAY_MAX);
        pace.note_folding(500, 1000);
        assert!(pace.delay(megabyte / 8, 0) > half, "runs alone delay too");
        pace.note_folding(0, 1000);
        assert_eq!(pace.delay(megabyte, 0), Duration::ZERO);
        pace.note_flush(100 * megabyte, 9_000_000);
        assert!(pace.delay(megabyte / 8, HALF) > half.mul_f64(2.0), "a slower disk slows writers");
    }

    #[test]
    fn many_writers_stand_in_one_line() {
        let pace = Pace::default();
        let (delay, begun) = (Duration::from_millis(2), Instant::now());
        let ends: Vec<Instant> = (0..4).map(|_| pace.line_up(delay)).collect();
        assert!(ends.is_sorted() && begun + delay * 4 <= ends[3], "{ends:?}");
        let most = pace.line_up(DELAY_MAX * 9);
        assert!(most <= Instant::now() + DELAY_MAX);
    }
}
