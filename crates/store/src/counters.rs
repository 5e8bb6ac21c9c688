//! What a store has done, counted by any number of threads.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::StoreCounters;
use crate::lane::{LANE_COUNT, Lane, lane};

/// A number that grows, or (of what is stored) shrinks: the sum of the lanes', which may wrap.
#[derive(Default)]
pub(crate) struct Counter([Lane<AtomicU64>; LANE_COUNT]);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0[lane()].0.fetch_add(count, Ordering::Relaxed);
    }

    /// For the one that can fall.
    pub(crate) fn subtract(&self, count: u64) {
        self.0[lane()].0.fetch_sub(count, Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        let lanes = self.0.iter().map(|lane| lane.0.load(Ordering::Relaxed));
        lanes.fold(0, u64::wrapping_add)
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
            bytes_stored: self.bytes_stored.now(),
        }
    }
}
