//! Slowing writers down to the speed of flushing and folding, smoothly and long before they must
//! stop.
//!
//! *Pressure* is what waits against what may wait: bytes of memtables, the active one among them,
//! against those with which writers stop, and bytes of runs beyond their share of their trees
//! against that share. A commit is to take a time in proportion to its bytes, to the pressure, and
//! to the time that a flush takes for a byte, so that at some pressure below the limit writing is
//! exactly as fast as the work behind it. There the pressure stays, however many threads write:
//! their times stand in one line. The commit's own time counts: the delay comes at its end, for the
//! time that is left, so that no writer waits for both a slow sync and a delay.
//!
//! Writers stop only while [`SEALED_COUNT_MAX`] (three) memtables are sealed and unflushed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use frond_store::io::steady_now;

/// The number of sealed memtables with which writers stop until one is flushed.
pub(crate) const SEALED_COUNT_MAX: usize = 3;
/// The share of the allowance from which commits are delayed, in thousandths: a memtable that fills
/// while another is flushed is as it should be.
const PRESSURE_FREE: u64 = 600;
/// From these pressures on the work in the background is urgent (`throttle`): before commits are
/// delayed by the one, and when they are as long as a flush takes by the other.
pub(crate) const PRESSURE_URGENT: u64 = 500;
pub(crate) const FOLD_PRESSURE_URGENT: u64 = 100;
const _: () = assert!(PRESSURE_URGENT < PRESSURE_FREE);
/// At full pressure by memtables a byte is to take so many times as long as its flush, in
/// thousandths: the work's own time would do, the rest makes up for bad measurements.
const FLUSH_TIMES_MAX: u64 = 5_000;
/// The same for runs: folding a byte takes several times as long as flushing it, since it rewrites
/// what lies around it.
const FOLD_TIMES_MAX: u64 = 10_000;
/// The longest delay of a commit by pressure.
const DELAY_MAX: Duration = Duration::from_millis(40);
/// The time that is assumed before the first flush was measured: 100 MB a second.
const FLUSH_NANOS_A_MEGABYTE: u64 = 10_000_000;

/// Computes the delays of writers.
pub(crate) struct Backpressure {
    /// Nanoseconds that flushing takes for a megabyte of memtables.
    flush_nanos: AtomicU64,
    /// Bytes of runs beyond their share, in thousandths of that share.
    fold_pressure: AtomicU64,
    /// The time until which the delays of commits so far last.
    line: Mutex<Option<Instant>>,
}

impl Default for Backpressure {
    fn default() -> Backpressure {
        Backpressure {
            flush_nanos: AtomicU64::new(FLUSH_NANOS_A_MEGABYTE),
            fold_pressure: AtomicU64::new(0),
            line: Mutex::new(None),
        }
    }
}

impl Backpressure {
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

    /// Bytes of runs beyond their share, in thousandths of that share.
    pub fn fold_pressure(&self) -> u64 {
        self.fold_pressure.load(Ordering::Relaxed)
    }

    /// Returns how long a commit of `bytes` is to be delayed, `waiting` being the pressure by
    /// memtables.
    pub fn delay(&self, bytes: u64, waiting: u64) -> Duration {
        let folding = self.fold_pressure();
        let above = waiting.min(1000).saturating_sub(PRESSURE_FREE);
        let by_flush = above * FLUSH_TIMES_MAX / (1000 - PRESSURE_FREE);
        let times = by_flush.max(folding * FOLD_TIMES_MAX / 1000);
        let nanos_a_kilobyte = self.flush_nanos.load(Ordering::Relaxed) >> 10;
        let nanos = (bytes >> 10).saturating_add(1).saturating_mul(nanos_a_kilobyte);
        Duration::from_nanos(nanos.saturating_mul(times) / 1000).min(DELAY_MAX)
    }

    /// Takes a place in the line; returns when it ends.
    pub fn reserve_turn(&self, delay: Duration) -> Instant {
        let now = steady_now();
        let mut line = self.line.lock().expect("no panic while the lock is held");
        let start = line.filter(|end| now < *end).unwrap_or(now);
        let end = (start + delay).min(now + DELAY_MAX);
        *line = Some(end);
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_with_bytes_and_pressure_and_end_at_the_most() {
        const HALF: u64 = (1000 + PRESSURE_FREE) / 2;
        let backpressure = Backpressure::default();
        let megabyte = 1 << 20;
        for waiting in [0, 100, PRESSURE_FREE] {
            assert_eq!(backpressure.delay(megabyte, waiting), Duration::ZERO);
        }
        let half = backpressure.delay(megabyte / 8, HALF);
        assert!(half > Duration::from_millis(3) && half < Duration::from_millis(4), "{half:?}");
        assert!(backpressure.delay(megabyte / 4, HALF) > half.mul_f64(1.9));
        assert!(backpressure.delay(megabyte / 8, 1000) > half.mul_f64(1.9));
        assert_eq!(backpressure.delay(64 * megabyte, 1000), DELAY_MAX);
        backpressure.note_folding(500, 1000);
        assert_eq!(backpressure.fold_pressure(), 500, "thousandths of the share");
        assert!(backpressure.delay(megabyte / 8, 0) > half, "runs alone delay too");
        backpressure.note_folding(0, 1000);
        assert_eq!(backpressure.delay(megabyte, 0), Duration::ZERO);
        backpressure.note_flush(100 * megabyte, 9_000_000);
        assert!(
            backpressure.delay(megabyte / 8, HALF) > half.mul_f64(2.0),
            "a slower disk slows writers"
        );
    }

    #[test]
    fn many_writers_stand_in_one_line() {
        let backpressure = Backpressure::default();
        let (delay, begun) = (Duration::from_millis(2), Instant::now());
        let ends: Vec<Instant> = (0..4).map(|_| backpressure.reserve_turn(delay)).collect();
        assert!(ends.is_sorted() && begun + delay * 4 <= ends[3], "{ends:?}");
        let most = backpressure.reserve_turn(DELAY_MAX * 9);
        assert!(most <= Instant::now() + DELAY_MAX);
    }
}
