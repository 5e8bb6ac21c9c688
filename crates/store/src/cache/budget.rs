//! A memory budget from which parts are reserved, and which gets them back when they are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A memory budget of several holders.
#[derive(Debug)]
pub struct CacheBudget {
    bytes_max: u64,
    left: AtomicU64,
    /// The part of what is taken that a cache has, too.
    shared: AtomicU64,
    was_refused: AtomicBool,
    is_closed: AtomicBool,
}

/// Bytes that were taken; dropped, they are back.
#[derive(Debug)]
pub struct CacheReservation {
    budget: Arc<CacheBudget>,
    bytes: AtomicU64,
    shared: AtomicU64,
}

impl CacheBudget {
    /// Room for so many bytes.
    pub fn new(bytes: u64) -> Arc<CacheBudget> {
        let left = AtomicU64::new(bytes);
        Arc::new(CacheBudget {
            bytes_max: bytes,
            left,
            shared: AtomicU64::new(0),
            was_refused: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        })
    }

    /// Takes `bytes`, if so many are left.
    pub fn take(self: &Arc<CacheBudget>, bytes: u64) -> Option<CacheReservation> {
        let (budget, nothing) = (Arc::clone(self), || AtomicU64::new(0));
        let taken = CacheReservation { budget, bytes: nothing(), shared: nothing() };
        taken.more(bytes).then_some(taken)
    }

    /// Returns how many bytes are taken now that the store's cache doesn't count.
    pub(crate) fn own_bytes(&self) -> u64 {
        // A count that changes meanwhile may be half counted.
        self.bytes().saturating_sub(self.shared.load(Ordering::Relaxed))
    }

    /// Returns how many bytes are taken now.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_max.saturating_sub(self.left.load(Ordering::Relaxed))
    }

    /// Gives nothing more while it is closed. A holder of some finds that
    /// [refused](CacheBudget::take_refused) once, so that it is let go.
    pub(crate) fn set_closed(&self, is_closed: bool) {
        // Looked at first: it hardly ever changes.
        if self.is_closed.load(Ordering::Relaxed) != is_closed {
            self.is_closed.store(is_closed, Ordering::Relaxed);
            self.was_refused.fetch_or(is_closed && self.own_bytes() > 0, Ordering::Relaxed);
        }
    }

    /// Whether a caller wanted more than was left, since this was asked last.
    pub fn take_refused(&self) -> bool {
        self.was_refused.swap(false, Ordering::Relaxed)
    }
}

impl CacheReservation {
    /// Takes `bytes` more, if so many are left.
    pub fn more(&self, bytes: u64) -> bool {
        let CacheBudget { left, was_refused, is_closed, .. } = &*self.budget;
        if is_closed.load(Ordering::Relaxed) && bytes > 0 {
            return false;
        }
        let subtract = |left: u64| left.checked_sub(bytes);
        if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract).is_err() {
            // Looked at first: where it is refused it is so again and again, by all threads.
            if !was_refused.load(Ordering::Relaxed) {
                was_refused.store(true, Ordering::Relaxed);
            }
            return false;
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        true
    }

    /// As `more`, for bytes of an interior node that the store's cache has, too: it counts them,
    /// and keeps them as long as a reader does.
    pub fn share(&self, bytes: u64) -> bool {
        let is_taken = self.more(bytes);
        if is_taken {
            self.shared.fetch_add(bytes, Ordering::Relaxed);
            self.budget.shared.fetch_add(bytes, Ordering::Relaxed);
        }
        is_taken
    }
}

impl Drop for CacheReservation {
    fn drop(&mut self) {
        self.budget.shared.fetch_sub(*self.shared.get_mut(), Ordering::Relaxed);
        self.budget.left.fetch_add(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_memory_comes_back() {
        let budget = CacheBudget::new(100);
        let taken = budget.take(60).unwrap();
        assert_eq!(budget.own_bytes(), 60);
        assert!(!budget.take_refused());
        assert!(budget.take(41).is_none());
        assert!(budget.take_refused() && !budget.take_refused());
        assert!(taken.more(30) && !taken.more(11) && taken.more(5));
        assert!(taken.share(5) && !taken.share(1));
        assert_eq!(budget.own_bytes(), 95);
        assert!(budget.take_refused());
        budget.set_closed(true);
        assert!(budget.take(1).is_none() && budget.take(0).is_some());
        assert!(
            budget.take_refused() && !budget.take_refused(),
            "that it was closed, nothing more"
        );
        budget.set_closed(false);
        drop(taken);
        assert_eq!(budget.own_bytes(), 0);
        let all = budget.take(100);
        assert!(all.is_some());
        assert_eq!(budget.own_bytes(), 100, "the cache shares nothing of it");
    }
}
