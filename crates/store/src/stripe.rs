//! Stripes: copies of what all threads touch, so that processors don't wait for each other's writes
//! to one cache line. A thread always takes the same stripe; threads may share one.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of stripes: more than processors that we expect to be busy in one store.
pub const STRIPE_COUNT: usize = 8;

/// Keeps stripes on different cache lines, and on different pairs of them.
#[derive(Default)]
#[repr(align(128))]
pub struct Stripe<T>(pub T);

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static LANE: usize = THREADS.fetch_add(1, Ordering::Relaxed) % STRIPE_COUNT;
}

/// The calling thread's stripe.
pub fn stripe() -> usize {
    // While a thread ends its number may be gone: any stripe will do.
    LANE.try_with(|stripe| *stripe).unwrap_or(0)
}
