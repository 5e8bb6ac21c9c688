//! The end of the durable part of the log, up to which it may be followed.
//!
//! It moves after each sync, under the queue's lock, and names the place in the log too: up to it a
//! follower finds every record whole, or the log is damaged.
//!
//! *Waking*: where no follower waits, none is woken, and no system call is made.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use frond_store::io::steady_now;

use crate::ids::Sequence;
use crate::log::format::{LogOffset, SegmentNumber};

const NO_PANIC: &str = "no panic while the lock is held";

/// A place in the log, up to which it is durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DurableEnd {
    /// The last durable Sequence: whatever has its place up to it is durable, or never will be.
    pub sequence: Sequence,
    /// The segment in which the log ends; it may not be there yet.
    pub segment: SegmentNumber,
    /// The offset in it.
    pub offset: LogOffset,
}

/// The durable end of the log, which followers wait for.
pub(crate) struct DurableHorizon {
    state: Mutex<State>,
    moved: Condvar,
}

struct State {
    end: DurableEnd,
    waiting: usize,
    /// The number of times all waits were ended.
    ended: u64,
    /// Whether nothing will move any more.
    is_closed: bool,
}

impl DurableHorizon {
    pub fn new(end: DurableEnd) -> DurableHorizon {
        let state = State { end, waiting: 0, ended: 0, is_closed: false };
        DurableHorizon { state: Mutex::new(state), moved: Condvar::new() }
    }

    /// Returns where it is.
    pub fn end(&self) -> DurableEnd {
        self.state().end
    }

    /// Moves on to `end`.
    pub fn move_to(&self, end: DurableEnd) {
        let mut state = self.state();
        debug_assert!(state.end.sequence <= end.sequence);
        state.end = end;
        if state.waiting > 0 {
            drop(state);
            self.moved.notify_all();
        }
    }

    /// Ends all waits; no follower waits any more.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.moved.notify_all();
    }

    /// Ends the waits of callers that have asked how often that was before.
    pub fn end_waits(&self) {
        self.state().ended += 1;
        self.moved.notify_all();
    }

    /// Returns how often waits were ended.
    pub fn waits_ended(&self) -> u64 {
        self.state().ended
    }

    /// Waits until it lies behind `after`, for so long at most, and until waits were ended more
    /// often than `ended` says; returns whether it does.
    pub fn wait(&self, after: Sequence, at_most: Duration, ended: u64) -> bool {
        let until: Instant = steady_now() + at_most;
        let mut state = self.state();
        loop {
            if after < state.end.sequence {
                return true;
            }
            let left = until.saturating_duration_since(steady_now());
            if left.is_zero() || state.is_closed || state.ended != ended {
                return false;
            }
            state.waiting += 1;
            state = self.moved.wait_timeout(state, left).expect(NO_PANIC).0;
            state.waiting -= 1;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(NO_PANIC)
    }
}
