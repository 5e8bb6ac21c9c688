//! The thread that sends packs to the disk's tier, so that no write waits for a request.
//!
//! 1. While one runs ([`LocalStore::run_sender`]), a put notifies it that packs are due and goes
//!    on. Without one (simulations, commands) a put sends them itself.
//! 2. A put that finds the disk's part full ([`Due::Now`]) waits for the attempt that is under way,
//!    and fails where that failed, or the last one did. Its chunks aren't put: so the disk keeps to
//!    its part however long the tier is away.
//! 3. A failed attempt is repeated after a pause that grows. Since when and why is kept until an
//!    attempt succeeds.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use super::LocalStore;
use crate::chunk_store::SendFailure;
use crate::error::StoreError;
use crate::io::{Due, Tier, steady_now};

/// The pause after the first failure before sending is tried again; it doubles.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(30);
const NO_PANIC: &str = "no panic while the lock is held";

/// The state of the thread.
#[derive(Default)]
pub(super) struct TierSender {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    has_thread: bool,
    is_stopped: bool,
    is_wanted: bool,
    failure: Option<SendFailure>,
}

impl TierSender {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(NO_PANIC)
    }

    /// Has the thread end.
    pub(super) fn stop(&self) {
        self.state().is_stopped = true;
        self.changed.notify_all();
    }

    /// Has packs sent soon; false where there is no thread that does.
    pub(super) fn want(&self) -> bool {
        let mut state = self.state();
        state.is_wanted = true;
        self.changed.notify_all();
        state.has_thread
    }

    fn failure(&self) -> Option<SendFailure> {
        self.state().failure.clone()
    }

    /// Waits for `pause`, and until sending is wanted; false if the thread is to end.
    fn wait_until_wanted(&self, pause: Duration) -> bool {
        let begun = steady_now();
        let mut state = self.state();
        while !state.is_stopped {
            let left = pause.saturating_sub(begun.elapsed());
            state = match (state.is_wanted, left.is_zero()) {
                (true, true) => {
                    state.is_wanted = false;
                    return true;
                }
                (true, false) => self.changed.wait_timeout(state, left).expect(NO_PANIC).0,
                (false, _) => self.changed.wait(state).expect(NO_PANIC),
            };
        }
        false
    }

    /// Notes what an attempt came to.
    fn note(&self, sent: &Result<(), StoreError>, now_micros: i64) {
        let mut state = self.state();
        state.failure = sent.as_ref().err().map(|error| SendFailure {
            since_micros: state.failure.as_ref().map_or(now_micros, |before| before.since_micros),
            message: match error {
                StoreError::Io { source, .. } => source.to_string(),
                other => other.to_string(),
            },
            is_full: false,
        });
        state.is_wanted |= sent.is_err();
        self.changed.notify_all();
    }

    /// Waits until `is_full` no longer holds.
    ///
    /// # Errors
    /// Why it goes on to hold.
    fn await_room(&self, is_full: impl Fn() -> bool) -> Result<(), StoreError> {
        let mut state = self.state();
        state.is_wanted = true;
        self.changed.notify_all();
        while state.has_thread && is_full() {
            let stopped = state.is_stopped.then(|| "the store was closed".to_owned());
            let failed = state.failure.as_ref().map(|failure| failure.message.clone());
            if let Some(why) = stopped.or(failed) {
                let what = format!("as many new packs are on the disk as may be: {why}");
                return Err(StoreError::io("the bucket", io::Error::other(what)));
            }
            state = self.changed.wait(state).expect(NO_PANIC);
        }
        Ok(())
    }
}

impl LocalStore {
    /// Sends packs whenever that is due, until [`LocalStore::stop_sender`]; calls `on_attempt` with
    /// each attempt's outcome.
    pub(super) fn run_sender(&self, on_attempt: &mut dyn FnMut(&Result<(), StoreError>)) {
        self.sending.state().has_thread = true;
        let _ends = Ending(&self.sending);
        let mut pause = Duration::ZERO;
        while self.sending.wait_until_wanted(pause) {
            let sent = self.send_sealed();
            self.sending.note(&sent, self.clock.now_micros());
            pause = match sent {
                Ok(()) => Duration::ZERO,
                Err(_) => (pause * 2).clamp(PAUSE_MIN, PAUSE_MAX),
            };
            on_attempt(&sent);
        }
    }

    /// Has the thread that sends end: what is on its way to the tier is given up.
    pub(super) fn stop_sender(&self) {
        self.sending.stop();
        if let Some(tier) = self.disk.tier() {
            tier.hang_up();
        }
    }

    /// Waits, where a thread sends, until there is room for new packs on the disk.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the tier takes none.
    pub(super) fn await_room(&self) -> Result<(), StoreError> {
        match self.is_full() {
            true => self.sending.await_room(|| self.is_full()),
            false => Ok(()),
        }
    }

    /// Returns since when and why packs can't be sent, if that is so.
    pub(super) fn failure_to_send(&self) -> Option<SendFailure> {
        let failure = self.sending.failure()?;
        Some(SendFailure { is_full: self.is_full(), ..failure })
    }

    fn is_full(&self) -> bool {
        self.disk.tier().map_or(Due::No, Tier::due) == Due::Now
    }
}

/// Ends the thread, also where it panics.
struct Ending<'a>(&'a TierSender);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if let Ok(mut state) = self.0.state.lock() {
            state.has_thread = false;
        }
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else a thread would send again and again, and each attempt asks the tier.
    #[test]
    fn one_request_is_one_attempt() {
        let sending = TierSender::default();
        assert!(!sending.want(), "there is no thread");
        assert!(sending.wait_until_wanted(Duration::ZERO));
        assert!(!sending.state().is_wanted);
        sending.stop();
        assert!(!sending.wait_until_wanted(Duration::ZERO));
    }
}
