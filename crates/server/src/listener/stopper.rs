//! A handle that stops a server.

use std::time::Duration;

use tokio::sync::watch;

use crate::limits::STOP_WAIT_MAX;

/// Stops a server, from any thread.
#[derive(Clone)]
pub struct Stopper(pub(super) watch::Sender<Option<Duration>>);

impl Stopper {
    /// Asks the server to stop; returns at once.
    pub fn stop(&self) {
        self.0.send_replace(Some(STOP_WAIT_MAX));
    }
}
