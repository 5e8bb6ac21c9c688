//! A leader hands over to a member that the configuration prefers (by `priority`), once that one
//! has been able to take over for some time.

use std::time::{Duration, Instant};

use frond_quorum::{EntryIndex, MemberId, Status};

use crate::replica::Replica;
use crate::replica::status::State;

/// The time for which the other must have been able to: as long as `rs.stepDown()` keeps a member
/// from leading again.
const ABLE_FOR: Duration = Duration::from_secs(60);
/// The time after which it tries again.
const AGAIN_AFTER: Duration = Duration::from_secs(10);
/// A member that hasn't reported for so long may be gone.
const REPORT_AGE_MAX: Duration = Duration::from_secs(3);
/// A member that lacks more entries than this would hold up writes.
const NEAR_ENTRIES: u64 = 256;

/// A leader's view of members that are preferred to it.
#[derive(Default)]
pub struct Preference {
    /// The time since when there has always been one that could take over.
    since: Option<Instant>,
    tried: Option<Instant>,
}

impl Preference {
    /// Hands over if it is time to. Returns soon, or once the other leads.
    pub fn hand_over(&mut self, replica: &Replica, status: &Status) {
        let is_preferred = |id| is_preferred(replica, status, id);
        if !status.configuration.voters.iter().copied().any(is_preferred) {
            self.since = None;
            return;
        }
        let able_for = self.since.get_or_insert_with(Instant::now).elapsed();
        if able_for < ABLE_FOR || self.tried.is_some_and(|at| at.elapsed() < AGAIN_AFTER) {
            return;
        }
        self.tried = Some(Instant::now());
        replica.log_line("it hands over to a member of greater priority");
        if let Err(why) = replica.step_down_for(is_preferred) {
            replica.log_line(&format!("a member of greater priority doesn't lead: {why}"));
        }
    }
}

/// Whether the configuration has a member lead rather than this one, and it can.
fn is_preferred(replica: &Replica, status: &Status, id: MemberId) -> bool {
    let members = replica.members();
    let Some(address) = replica.address_of(id) else { return false };
    let (Some(own), Some(other)) = (members.at(&replica.options.own), members.at(&address)) else {
        return false;
    };
    if other.priority <= own.priority {
        return false;
    }
    let is_well = replica.last_status_of(&address).is_some_and(|(ago, status)| {
        ago < REPORT_AGE_MAX && status.state == State::Secondary && !status.is_full
    });
    let held = status.held.iter().find(|(of, _)| *of == id);
    is_well && held.is_some_and(|(_, held)| status.committed <= EntryIndex(held.0 + NEAR_ENTRIES))
}
