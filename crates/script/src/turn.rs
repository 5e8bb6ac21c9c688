//! Limits how many scripts run at once: to as many as the memory of requests has room for, by and
//! large.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The interval at which a request that waits asks whether to go on.
const CHECK_EVERY: Duration = Duration::from_millis(5);
/// The least number of turns, on a machine of few cores.
const TURNS_MIN: usize = 8;

static TAKEN: Mutex<usize> = Mutex::new(0);
static GIVEN_BACK: Condvar = Condvar::new();

/// A script's turn to run, until it is dropped.
#[derive(Debug)]
pub struct Turn(());

impl Turn {
    /// Waits for a turn, as long as `go_on` says so; then there is none.
    pub fn wait(go_on: impl Fn() -> bool) -> Option<Turn> {
        loop {
            {
                let mut taken = state();
                if *taken < turns() {
                    *taken += 1;
                    return Some(Turn(()));
                }
                let waited = GIVEN_BACK.wait_timeout(taken, CHECK_EVERY);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
            if !go_on() {
                return None;
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *state() -= 1;
        GIVEN_BACK.notify_one();
    }
}

fn state() -> MutexGuard<'static, usize> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn turns() -> usize {
    thread::available_parallelism().map_or(1, usize::from).max(TURNS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_turns_than_may_be() {
        let all: Vec<Turn> = (0..turns()).filter_map(|_| Turn::wait(|| true)).collect();
        assert_eq!(all.len(), turns());
        assert!(Turn::wait(|| false).is_none());
        drop(all);
        assert!(Turn::wait(|| false).is_some());
    }
}
