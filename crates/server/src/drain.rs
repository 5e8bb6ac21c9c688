//! Stops a server: first it drains.
//!
//! While it drains, no client is let in, commands that run go on, and each new one is answered with
//! `ShutdownInProgress` and a newer topology: drivers choose another server, or wait for this one
//! to be started again. The drain is over when nothing runs any more, or when its time is up.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use frond_db::Error;
use frond_query::Code;
use tokio::sync::watch;

/// Lets all parts of the server know when it stops.
///
/// *Thread safety*: everything may be called from any number of threads at once.
pub struct Drain {
    /// How long the drain may take, once it was asked for.
    requested: watch::Sender<Option<Duration>>,
    /// When it is over, once it began.
    until: OnceLock<Instant>,
}

impl Default for Drain {
    fn default() -> Drain {
        Drain { requested: watch::Sender::new(None), until: OnceLock::new() }
    }
}

impl Drain {
    /// Returns the sender that asks the server to stop.
    pub fn asker(&self) -> watch::Sender<Option<Duration>> {
        self.requested.clone()
    }

    /// Asks for a drain that takes so long at most; returns whether a listener hears it.
    pub fn ask(&self, time_max: Duration) -> bool {
        self.requested.send_replace(Some(time_max));
        self.requested.receiver_count() > 0
    }

    /// Begins it; returns when it is over at the latest.
    pub fn begin(&self, time_max: Duration) -> Instant {
        *self.until.get_or_init(|| Instant::now() + time_max)
    }

    /// Whether it began.
    pub fn is_begun(&self) -> bool {
        self.until.get().is_some()
    }

    /// Returns how long it may still take, if it began.
    pub fn rest(&self) -> Option<Duration> {
        self.until.get().map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Refuses a command that comes too late.
    ///
    /// # Errors
    /// `ShutdownInProgress` (91).
    pub fn check(&self) -> Result<(), Error> {
        match self.is_begun() {
            true => Err(Error::invalid(Code::ShutdownInProgress, "the server is shutting down")),
            false => Ok(()),
        }
    }
}
