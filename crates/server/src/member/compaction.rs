//! Compacts the set's log from time to time, where that gives back much: entries that all members
//! hold, and this one has applied durably, are no longer needed. Entries that an absent member
//! lacks are kept up to a limit: a member that lacks more gets a copy (`copying`).
//!
//! A leader also removes what earlier leaders left half-staged; and what the set has erased goes
//! here ([`super::purging`]), since that compacts the log, too.
//!
//! The engine's own log is synced before: until then only the set's held what was applied last.

use std::time::Duration;

use frond_db::Error;
use frond_quorum::{Log, Running};

use super::follow::applied;
use super::purging;
use crate::replica::{Replica, lock};
use crate::shared::Shared;

/// The interval of checks, and after how many a failed compaction is tried again.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
const CHECKS_AFTER_FAILURE: u32 = 30;

/// Compacts a member's log until the member stops.
pub fn compact_until_stopped(replica: &Replica, server: &Shared, log: &dyn Log) {
    let running = replica.running().expect("it was started");
    let mut checks_skipped = 0;
    let mut has_led = false;
    while !replica.is_stopped() && running.fault().is_none() {
        std::thread::sleep(CHECK_INTERVAL);
        if !has_led && replica.is_primary() {
            has_led = true;
            remove_left_staging(replica, server);
        }
        purging::purge_if_due(replica, running, server, log);
        if 0 < checks_skipped {
            checks_skipped -= 1;
        } else if running.is_long(replica.options.log_bytes_max)
            && let Err(error) = compact(replica, running, server, log)
        {
            replica.log_line(&format!("the set's log could not be cut: {error}"));
            checks_skipped = CHECKS_AFTER_FAILURE;
        }
    }
}

fn remove_left_staging(replica: &Replica, server: &Shared) {
    match server.frond.remove_left_staging() {
        Ok(0) => {}
        Ok(count) => replica
            .log_line(&format!("removed what a former leader left half-staged: {count} chunks")),
        Err(error) => {
            replica.log_line(&format!("what was left half-staged can't be removed: {error}"))
        }
    }
}

fn compact(
    replica: &Replica,
    running: &Running,
    server: &Shared,
    log: &dyn Log,
) -> Result<(), Error> {
    let _cutting = lock(&replica.cutting);
    let handed_out = running.handed_out();
    let durable = server.frond.sync_log()?;
    let applied = applied(log, handed_out, durable)?;
    Ok(running.compact(applied, replica.options.log_bytes_max)?)
}
