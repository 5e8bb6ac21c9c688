//! Counts of what a store has done, by any number of threads.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::stripe::{STRIPE_COUNT, Stripe, stripe};

/// Counts of what a store has done since it was opened; for tests, benchmarks and `serverStatus`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCounters {
    /// Chunks asked for by `get` and `get_many`; not those that a reader still had.
    pub chunks_read: u64,
    /// The number of these chunks that had to be read from the disk.
    pub chunks_fetched: u64,
    /// Chunks written (new ones, not those already present).
    pub chunks_written: u64,
    /// Uncompressed bytes of the chunks written.
    pub bytes_put: u64,
    /// Bytes written to files, headers and indexes included.
    pub bytes_written: u64,
    /// The number of these bytes that were written for brief: a write-optimised overlay's.
    pub bytes_brief: u64,
    /// The number of these bytes that collections moved or packed.
    pub bytes_moved: u64,
    /// Calls of `sync` on any file.
    pub syncs: u64,
    /// Chunks that were found damaged; some of them may have been put again since.
    pub damages_found: u64,
    /// Bytes of all pack files now.
    pub bytes_stored: u64,
    /// Bytes that the cache has now, with what readers keep of it.
    pub cache_bytes: u64,
    /// As many bytes as it may have.
    pub cache_bytes_max: u64,
}

/// A number that grows, or (of what is stored) shrinks: the sum of the stripes', which may wrap.
#[derive(Default)]
pub(crate) struct Counter([Stripe<AtomicU64>; STRIPE_COUNT]);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0[stripe()].0.fetch_add(count, Ordering::Relaxed);
    }

    /// Subtracts, for the one that can fall.
    pub(crate) fn subtract(&self, count: u64) {
        self.0[stripe()].0.fetch_sub(count, Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        let stripes = self.0.iter().map(|stripe| stripe.0.load(Ordering::Relaxed));
        stripes.fold(0, u64::wrapping_add)
    }
}

/// The running form of [`StoreCounters`].
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) chunks_read: Counter,
    pub(crate) chunks_fetched: Counter,
    pub(crate) chunks_written: Counter,
    pub(crate) bytes_put: Counter,
    pub(crate) bytes_written: Counter,
    pub(crate) bytes_brief: Counter,
    pub(crate) bytes_moved: Counter,
    pub(crate) syncs: Counter,
    pub(crate) damages_found: Counter,
    pub(crate) bytes_stored: Counter,
}

impl Counters {
    pub(crate) fn now(&self) -> StoreCounters {
        StoreCounters {
            chunks_read: self.chunks_read.now(),
            chunks_fetched: self.chunks_fetched.now(),
            chunks_written: self.chunks_written.now(),
            bytes_put: self.bytes_put.now(),
            bytes_written: self.bytes_written.now(),
            bytes_brief: self.bytes_brief.now(),
            bytes_moved: self.bytes_moved.now(),
            syncs: self.syncs.now(),
            damages_found: self.damages_found.now(),
            bytes_stored: self.bytes_stored.now(),
            ..StoreCounters::default()
        }
    }
}
