//! The background threads that are at work, each with the State with which it began.

use std::sync::{PoisonError, RwLock};

/// The background threads that flush and fold.
#[derive(Default)]
pub(crate) struct Workers {
    /// Read while a thread works.
    at_work: RwLock<()>,
}

impl Workers {
    /// Does a piece of work, which may hold a State.
    pub fn run<T>(&self, piece: impl FnOnce() -> T) -> T {
        let _at_work = self.at_work.read().unwrap_or_else(PoisonError::into_inner);
        piece()
    }

    /// Waits until no background thread has a State that is older than this call.
    pub fn await_present(&self) {
        drop(self.at_work.write().unwrap_or_else(PoisonError::into_inner));
    }
}
