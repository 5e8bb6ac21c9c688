//! Histograms of the engine's stages, cheap enough to be always on.
//!
//! A bucket a power of two: good enough to distinguish 1 ms from 2 ms, and two such histograms
//! subtract to what happened between.

pub(crate) mod counters;

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of buckets a histogram has: 2^39 microseconds are six days.
pub const BUCKET_COUNT: usize = 40;

/// The number of times a quantity was in each range. Bucket 0 has zeros; bucket n has what is at
/// least 2^(n-1) and less than 2^n; the last one has everything above too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Histogram {
    /// The number of values that fell into each bucket.
    pub buckets: [u64; BUCKET_COUNT],
    /// The sum of all values.
    pub sum: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { buckets: [0; BUCKET_COUNT], sum: 0 }
    }
}

impl Histogram {
    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The upper end of the bucket in which the value lies that `share` (0 to 1) of all don't
    /// exceed; 0 if there are none.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = (share.clamp(0.0, 1.0) * self.count() as f64).ceil() as u64;
        let mut seen = 0;
        for (position, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted.max(1) {
                return (1 << position) - 1;
            }
        }
        0
    }
}

/// A histogram that any number of threads add to.
pub(crate) struct Recorder {
    buckets: [AtomicU64; BUCKET_COUNT],
    sum: AtomicU64,
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder { buckets: std::array::from_fn(|_| AtomicU64::new(0)), sum: AtomicU64::new(0) }
    }
}

impl Recorder {
    /// Adds a value.
    pub fn add(&self, value: u64) {
        let bits = u64::BITS - value.leading_zeros();
        let bucket = (bits as usize).min(BUCKET_COUNT - 1);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Returns the values added so far.
    pub fn read(&self) -> Histogram {
        Histogram {
            buckets: std::array::from_fn(|bucket| self.buckets[bucket].load(Ordering::Relaxed)),
            sum: self.sum.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_their_bucket_and_quantiles_bound_them() {
        let recorder = Recorder::default();
        assert_eq!((recorder.read().count(), recorder.read().quantile(0.5)), (0, 0));
        // (value, bucket)
        let cases =
            [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (1023, 10), (1024, 11), (u64::MAX, 39)];
        for (value, bucket) in cases {
            let before = recorder.read().buckets[bucket];
            recorder.add(value);
            assert_eq!(recorder.read().buckets[bucket], before + 1, "{value}");
        }
        let recorder = Recorder::default();
        (1..=100).for_each(|value| recorder.add(value));
        let found = recorder.read();
        assert_eq!((found.count(), found.sum), (100, 5050));
        assert_eq!((found.quantile(0.5), found.quantile(0.99), found.quantile(0.01)), (63, 127, 1));
    }
}
