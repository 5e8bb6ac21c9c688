//! Limits of time that can be set while the server runs: MongoDB's
//! `transactionLifetimeLimitSeconds` and `cursorTimeoutMillis`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::limits::{CURSOR_IDLE_MAX, TRANSACTION_LIFETIME_MAX};

/// The limits.
pub struct TimeLimits {
    transaction_seconds: AtomicU64,
    cursor_millis: AtomicU64,
}

impl Default for TimeLimits {
    fn default() -> TimeLimits {
        let cursor_millis = u64::try_from(CURSOR_IDLE_MAX.as_millis()).unwrap_or(u64::MAX);
        TimeLimits {
            transaction_seconds: AtomicU64::new(TRANSACTION_LIFETIME_MAX.as_secs()),
            cursor_millis: AtomicU64::new(cursor_millis),
        }
    }
}

impl TimeLimits {
    /// The time after which an open transaction is aborted.
    pub fn transaction(&self) -> Duration {
        Duration::from_secs(self.transaction_seconds.load(Ordering::Relaxed))
    }

    /// Sets it.
    pub fn set_transaction_seconds(&self, seconds: u64) {
        self.transaction_seconds.store(seconds, Ordering::Relaxed);
    }

    /// The time after which a cursor that no client uses is closed.
    pub fn cursor(&self) -> Duration {
        Duration::from_millis(self.cursor_millis.load(Ordering::Relaxed))
    }

    /// Sets it.
    pub fn set_cursor_millis(&self, millis: u64) {
        self.cursor_millis.store(millis, Ordering::Relaxed);
    }
}
