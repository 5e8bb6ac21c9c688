//! The time for which a moment at which a client has read can be read again: MongoDB's
//! `minSnapshotHistoryWindowInSeconds`, which can be set while the server runs. It holds for
//! moments that are leased from then on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::limits::SNAPSHOT_WINDOW;

/// The setting.
pub struct SnapshotWindow(AtomicU64);

impl Default for SnapshotWindow {
    fn default() -> SnapshotWindow {
        SnapshotWindow(AtomicU64::new(SNAPSHOT_WINDOW.as_secs()))
    }
}

impl SnapshotWindow {
    /// Returns the time.
    pub fn get(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Relaxed))
    }

    /// Sets it.
    pub fn set_seconds(&self, seconds: u64) {
        self.0.store(seconds, Ordering::Relaxed);
    }
}
