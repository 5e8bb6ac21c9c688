//! Counts of what the engine has done since it was opened.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Recorder;

/// Counts since the engine was opened.
#[derive(Default)]
pub(crate) struct Counters {
    pub commits: AtomicU64,
    pub conflicts: AtomicU64,
    /// Waits for a key that another transaction had locked, and those of them that were circles.
    pub key_lock_waits: AtomicU64,
    pub deadlocks: AtomicU64,
    /// Snapshots that moved, and those that could not.
    pub snapshots_refreshed: AtomicU64,
    pub snapshots_kept: AtomicU64,
    pub folds: AtomicU64,
    pub flushes: AtomicU64,
    pub runs_written: AtomicU64,
    pub steps: AtomicU64,
    pub merges: AtomicU64,
    /// Bytes of keys, values and chunks of committed transactions.
    pub bytes_given: AtomicU64,
    pub scrubbed_bytes: AtomicU64,
    pub log_bits_turned_back: AtomicU64,
    /// Bytes of runs that flushes wrote, and of those that merges wrote.
    pub bytes_flushed: AtomicU64,
    pub bytes_merged: AtomicU64,
    pub group_sizes: Recorder,
    pub sync_micros: Recorder,
    pub flush_micros: Recorder,
    pub work_micros: Recorder,
    pub delay_micros: Recorder,
}

impl Counters {
    /// Adds one.
    pub fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
