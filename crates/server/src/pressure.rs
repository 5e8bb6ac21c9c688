//! How much memory the messages of all connections hold, and so how patient the server may be.
//!
//! One connection may hold a message or an answer of 48 MB, and two thousand may be open: clients
//! that send half a message, or ask and never read, could hold far more than the machine has. So
//! what they hold is added up. While the sum is below [`MESSAGE_MEMORY_MAX`], a connection may
//! stall for [`STALL_MAX`]; above it, only for [`STALL_STEP`]: whoever makes progress stays, and
//! whoever doesn't gives the memory back.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::limits::{MESSAGE_MEMORY_MAX, STALL_MAX, STALL_STEP};

/// The bytes that all messages hold which are being read or written.
#[derive(Default)]
pub struct Pressure(AtomicUsize);

impl Pressure {
    /// Counts `bytes` until the result is dropped.
    pub fn hold(&self, bytes: usize) -> Held<'_> {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Held { pressure: self, bytes }
    }

    /// Whether a connection that has made no progress for `stalled` has to be closed.
    pub fn is_too_long(&self, stalled: Duration) -> bool {
        let held = self.0.load(Ordering::Relaxed);
        stalled >= if held > MESSAGE_MEMORY_MAX { STALL_STEP } else { STALL_MAX }
    }
}

/// Bytes that are counted while this lives.
pub struct Held<'a> {
    pressure: &'a Pressure,
    bytes: usize,
}

impl Held<'_> {
    /// Counts `bytes` instead.
    pub fn resize(&mut self, bytes: usize) {
        self.pressure.0.fetch_add(bytes, Ordering::Relaxed);
        self.pressure.0.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.pressure.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_when_memory_is_short() {
        let pressure = Pressure::default();
        assert!(!pressure.is_too_long(STALL_STEP));
        assert!(pressure.is_too_long(STALL_MAX));
        let mut held = pressure.hold(MESSAGE_MEMORY_MAX);
        assert!(!pressure.is_too_long(STALL_STEP));
        let more = pressure.hold(1);
        assert!(pressure.is_too_long(STALL_STEP));
        held.resize(10);
        assert!(!pressure.is_too_long(STALL_STEP));
        drop((held, more));
        assert_eq!(pressure.0.load(Ordering::Relaxed), 0);
    }
}
