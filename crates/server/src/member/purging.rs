//! A member removes from its disk what the set has erased ([`crate::replica::purges`]): from its
//! packs, its engine's log, what it keeps for change streams, and the set's log.
//!
//! The entries that brought it lie before the one that wants the purge. They are cut off the set's
//! log even if a member is away that lacks them: it gets a copy. To those that are only behind some
//! time is given.

use std::time::{Duration, Instant};

use frond_db::Error;
use frond_quorum::{EntryIndex, Log, Running};
use frond_store::io::Machine;

use super::follow::applied;
use crate::replica::{Replica, lock};
use crate::shared::Shared;

/// The time that members have at most to get the entries that are about to be cut.
const HELD_WAIT_MAX: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(50);

/// Does the purge that the set wants, if this member hasn't done it. To be called by the thread
/// that cuts the log.
pub fn purge_if_due(replica: &Replica, running: &Running, server: &Shared, log: &dyn Log) {
    let purges = replica.purges();
    if purges.wanted <= purges.done {
        return;
    }
    let begun = Instant::now();
    match purge(replica, running, server, log, purges.wanted) {
        Ok(()) => {
            let seconds = begun.elapsed().as_secs_f32();
            replica.log_line(&format!("what was erased is gone from this member ({seconds:.1} s)"));
        }
        Err(error) => {
            replica.log_line(&format!("what was erased is still on this member: {error}"))
        }
    }
}

fn purge(
    replica: &Replica,
    running: &Running,
    server: &Shared,
    log: &dyn Log,
    number: u64,
) -> Result<(), Error> {
    let committed = running.status().committed;
    server.frond.purge()?;
    while running.handed_out() < committed && !replica.is_stopped() {
        std::thread::sleep(STEP);
    }
    let _cutting = lock(&replica.cutting);
    let durable = server.frond.sync_log()?;
    let applied = applied(log, running.handed_out(), durable)?;
    await_held(running, applied);
    running.compact_to(applied)?;
    let machine: &Machine = replica.machine.get().expect("it was opened");
    Ok(replica.note_purged(machine, number)?)
}

fn await_held(running: &Running, up_to: EntryIndex) {
    let until = Instant::now() + HELD_WAIT_MAX;
    while running.status().held_by_all < up_to && Instant::now() < until {
        std::thread::sleep(STEP);
    }
}
