//! Memory that the threads of one stage hold together: what one of them doesn't need, another may
//! have. A share of each thread's own would be too little for one whose documents need more.

use std::sync::{Arc, Mutex, PoisonError};

use frond_store::budget::{Exceeded, Reservation};

/// A share grows by so much.
const STEP_BYTES: usize = 64 << 10;

/// The memory of all.
///
/// *Thread safety*: any number of shares at once.
#[derive(Debug)]
pub(super) struct Together(Mutex<Held>);

#[derive(Debug)]
struct Held {
    reservation: Reservation,
    bytes: usize,
}

/// What one of them holds; it is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Share {
    together: Arc<Together>,
    /// The bytes that may be held without asking.
    granted: usize,
}

impl Together {
    /// Holds nothing, and then what `reservation` allows.
    pub(super) fn new(reservation: Reservation) -> Arc<Together> {
        Arc::new(Together(Mutex::new(Held { reservation, bytes: 0 })))
    }

    /// A share that holds nothing.
    pub(super) fn share(self: &Arc<Together>) -> Share {
        Share { together: Arc::clone(self), granted: 0 }
    }

    fn change(&self, before: usize, after: usize) -> Result<(), Exceeded> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = held.bytes - before + after;
        if before < after {
            held.reservation.hold(bytes)?;
        } else {
            held.reservation.shrink(bytes);
        }
        held.bytes = bytes;
        Ok(())
    }
}

impl Share {
    /// Says that `bytes` are held. What isn't needed any more is given back where it is much.
    pub(super) fn hold(&mut self, bytes: usize) -> Result<(), Exceeded> {
        let is_much = STEP_BYTES * 2 <= self.granted.saturating_sub(bytes);
        if bytes <= self.granted && !is_much {
            return Ok(());
        }
        let granted = bytes.next_multiple_of(STEP_BYTES);
        self.together.change(self.granted, granted)?;
        self.granted = granted;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // To hold less is never refused.
        let _ = self.together.change(self.granted, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_end_where_all_together_do() {
        let together = Together::new(Reservation::new(10 * STEP_BYTES, None));
        let (mut first, mut second) = (together.share(), together.share());
        assert_eq!(first.hold(7 * STEP_BYTES), Ok(()));
        assert_eq!(second.hold(3 * STEP_BYTES), Ok(()));
        assert_eq!(second.hold(3 * STEP_BYTES + 1), Err(Exceeded::Own(10 * STEP_BYTES)));
        assert_eq!(second.hold(3 * STEP_BYTES), Ok(()), "what it had it keeps");
        assert_eq!(first.hold(STEP_BYTES + 1), Ok(()));
        assert_eq!(second.hold(8 * STEP_BYTES), Ok(()), "the first has given five back");
        drop(first);
        assert_eq!(second.hold(10 * STEP_BYTES), Ok(()));
    }
}
