//! Limits how many lines of one sort the log takes. Clients who haven't logged in must not fill the
//! disk: a line more often than that is left out, and the next one says how many were.
//!
//! The generic cell rate algorithm (ITU-T I.371): each line moves the time at which the allowance
//! is whole again an interval further; a line that would move it further than all of the allowance
//! ahead is left out.

use std::sync::{Mutex, PoisonError};

/// See the module. Lines may come at once up to a number, and then one each interval.
///
/// *Thread safety*: any number of threads may ask at once; the lock is held for moments.
pub(crate) struct Allowance {
    interval_millis: i64,
    /// All of the allowance, as time.
    whole_millis: i64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The time when the allowance is whole again.
    whole_at: i64,
    left_out: u64,
}

impl Allowance {
    /// Allows so many lines at once, and then one each `interval_millis`.
    pub fn new(lines: u32, interval_millis: u32) -> Allowance {
        let interval_millis = i64::from(interval_millis);
        let whole_millis = i64::from(lines).saturating_mul(interval_millis);
        Allowance { interval_millis, whole_millis, state: Mutex::default() }
    }

    /// Takes a line, at a time in milliseconds: how many were left out before it, or `None` if this
    /// one is to be left out.
    pub fn take(&self, now_millis: i64) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = now_millis.saturating_add(self.whole_millis);
        // A clock that was set back must not silence it for as long.
        state.whole_at = state.whole_at.clamp(now_millis, latest);
        let whole_at = state.whole_at.saturating_add(self.interval_millis);
        if latest < whole_at {
            state.left_out += 1;
            return None;
        }
        state.whole_at = whole_at;
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_left_out_counted_and_let_in_again() {
        let allowance = Allowance::new(3, 1_000);
        let taken = |now: i64| allowance.take(now);
        assert_eq!([taken(0), taken(0), taken(10)], [Some(0); 3]);
        assert_eq!([taken(10), taken(900)], [None; 2]);
        assert_eq!(taken(1_000), Some(2));
        assert_eq!(taken(1_001), None);
        assert_eq!([taken(60_000), taken(60_000), taken(60_000)], [Some(1), Some(0), Some(0)]);
        assert_eq!(taken(60_000), None);
    }

    #[test]
    fn a_clock_that_was_set_back_silences_nothing_for_long() {
        let allowance = Allowance::new(1, 1_000);
        assert_eq!(allowance.take(1_000_000), Some(0));
        assert_eq!(allowance.take(0), None);
        assert_eq!(allowance.take(1_000), Some(1));
    }
}
