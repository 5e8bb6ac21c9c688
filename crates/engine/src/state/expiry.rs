//! Marks a State as expired: see [`crate::gc::expiry`].

use std::sync::atomic::{AtomicBool, Ordering};

/// The mark of a State; a changed copy of the State has its own.
#[derive(Default)]
pub(crate) struct Expiry(AtomicBool);

impl Clone for Expiry {
    fn clone(&self) -> Expiry {
        Expiry::default()
    }
}

impl Expiry {
    /// Sets the mark. Data that go afterwards are found missing only by readers that see the mark.
    pub fn expire(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether the mark is set; to be asked after reading.
    pub fn is_expired(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
