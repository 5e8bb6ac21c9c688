//! Time that is only measured or waited for: nothing stored or answered depends on it, so it needs
//! no [`Clock`](super::Clock) that a test can set.
//!
//! The crates below the server measure and wait by these two. The linter refuses the standard
//! library's own there (`crates/clippy.toml`), so that no clock slips in unseen.

use std::time::{Duration, Instant};

/// Now, for measuring how long something takes.
pub fn steady_now() -> Instant {
    Instant::now()
}

/// Lets the calling thread wait.
pub fn pause(length: Duration) {
    std::thread::sleep(length);
}
