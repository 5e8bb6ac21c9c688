//! A leader whose disk has no room for what grows refuses what clients write. Where another member
//! has room, and can follow at once, that one leads instead; where none has, the leader stays: it
//! takes what gives space back.

use std::time::{Duration, Instant};

use frond_quorum::{EntryIndex, MemberId, Status};

use crate::replica::Replica;
use crate::replica::status::State;
use crate::shared::Shared;

/// The time that the disk must have been full: a flush or a collection may make room.
const FULL_FOR: Duration = Duration::from_secs(1);
/// The time after which it looks again when it has tried to hand over, or has found no other.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// A member that lacks more entries than this would hold up writes.
const NEAR_ENTRIES: u64 = 256;

/// Whether a server's disk has no room for what grows.
pub fn is_full(server: &Shared) -> bool {
    server.frond.engine().disk_status().is_some_and(|room| room.is_short())
}

/// The state of a leader's disk.
#[derive(Default)]
pub struct FullDisk {
    /// The time since when it is full.
    since: Option<Instant>,
    tried: Option<Instant>,
}

impl FullDisk {
    /// Hands over if the disk has been full for some time and another member has room. Returns
    /// soon, or once the other leads.
    pub fn hand_over(&mut self, replica: &Replica, server: &Shared, status: &Status) {
        if !is_full(server) {
            self.since = None;
            return;
        }
        let full_for = self.since.get_or_insert_with(Instant::now).elapsed();
        if full_for < FULL_FOR || self.tried.is_some_and(|at| at.elapsed() < AGAIN_AFTER) {
            return;
        }
        self.tried = Some(Instant::now());
        let has_room = |id| has_room(replica, status, id);
        if !status.configuration.voters.iter().copied().any(has_room) {
            return;
        }
        replica.log_line("its disk is full: it hands over to a member that has space");
        if let Err(why) = replica.step_down_for(has_room) {
            replica.log_line(&format!("its disk is full, but it goes on leading: {why}"));
        }
    }
}

/// Whether another member could take what clients write.
fn has_room(replica: &Replica, status: &Status, id: MemberId) -> bool {
    let peer_status = replica.address_of(id).and_then(|address| replica.last_status_of(&address));
    let held = status.held.iter().find(|(of, _)| *of == id);
    peer_status.is_some_and(|(_, peer_status)| {
        peer_status.state == State::Secondary && !peer_status.is_full
    }) && held.is_some_and(|(_, held)| status.committed <= EntryIndex(held.0 + NEAR_ENTRIES))
}
