//! A moving average of how many reads came from a disk.

use std::sync::atomic::{AtomicU32, Ordering};

/// An exponential moving average.
#[derive(Default)]
pub(crate) struct LatencyAverage(AtomicU32);

impl LatencyAverage {
    const ALL: u32 = 1 << 16;
    const PART: u32 = 64;

    /// Notes one; notes that come at once may be lost.
    pub(crate) fn note(&self, is_slow: bool) {
        let share = self.0.load(Ordering::Relaxed);
        let new = if is_slow { Self::ALL / Self::PART } else { 0 };
        self.0.store(share - share / Self::PART + new, Ordering::Relaxed);
    }

    /// Whether more than so many eighths did.
    pub(crate) fn exceeds(&self, eighths: u32) -> bool {
        Self::ALL / 8 * eighths < self.0.load(Ordering::Relaxed)
    }
}
