//! Lanes: copies of what all threads touch, so that processors don't wait for each other's writes to
//! one cache line. A thread always takes the same lane; threads may share one.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many lanes: more than processors that we expect to be busy in one store.
pub const LANE_COUNT: usize = 8;

/// Keeps lanes on different cache lines, and on different pairs of them.
#[derive(Default)]
#[repr(align(128))]
pub struct Lane<T>(pub T);

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static LANE: usize = THREADS.fetch_add(1, Ordering::Relaxed) % LANE_COUNT;
}

/// The calling thread's lane.
pub fn lane() -> usize {
    // While a thread ends its number may be gone: any lane will do.
    LANE.try_with(|lane| *lane).unwrap_or(0)
}
