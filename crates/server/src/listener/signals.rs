//! Stopping on a signal, and other files for the logs.

use std::io;
use std::sync::Arc;

use super::stopper::Stopper;
#[cfg(unix)]
use crate::log;
use crate::shared::Shared;

/// Has signals stop the server, and rotate its logs.
#[cfg(unix)]
pub(super) fn stop_on_signals(stopper: Stopper, shared: Arc<Shared>) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // As mongod: begins other files of the logs.
    let mut rotate = signal(SignalKind::user_defined1())?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => break,
                _ = terminate.recv() => break,
                _ = rotate.recv() => rotate_logs(&shared),
            }
        }
        stopper.stop();
    });
    Ok(())
}

#[cfg(unix)]
fn rotate_logs(shared: &Shared) {
    // Failures are logged.
    let _ = log::rotate(&shared.log, || shared.log.rotate());
    if shared.audit_log.is_on() {
        let _ = log::rotate(&shared.log, || shared.audit_log.rotate(shared.frond.wall_clock()()));
    }
}

#[cfg(not(unix))]
pub(super) fn stop_on_signals(stopper: Stopper, _: Arc<Shared>) -> io::Result<()> {
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stopper.stop();
        }
    });
    Ok(())
}
