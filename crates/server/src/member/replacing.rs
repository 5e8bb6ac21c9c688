//! A leader brings the members of its set to those that its configuration has, one step at a time.
//! So it does where a data directory was lost: the new one at an address takes the old one's place.
//!
//! 1. A member whose address the configuration doesn't have ceases to be one.
//! 2. A new directory becomes a member without a vote, and gets the log.
//! 3. Once it has come near, the one that was at its address before ceases to be a member: it isn't
//!    there any more.
//! 4. The new one gets the vote, if the configuration gives it one. A member that is to have none
//!    any more ceases to be a member, and becomes one without a vote.
//!
//! A member whose directory is lost doesn't know what it had acknowledged, so it never counts as
//! the one that it was. Where it isn't known which id was the old one's, as while another member is
//! away, nothing is done until it is. A leader that the configuration doesn't have hands over.
//!
//! A member that was removed isn't needed any more once the change has *settled*: the members who
//! stay have all, and know that the removed one isn't among them.

use std::collections::BTreeMap;
use std::time::Duration;

use frond_quorum::{Change, EntryIndex, MemberId, Refused, RequestError, Role, Running, Status};

use crate::replica::members::Host;
use crate::replica::{Replica, lock};

/// A member that lacks so many entries at most is near.
const NEAR_ENTRIES: u64 = 256;
/// A change that hasn't settled by then is reported all the same: its leader may have no majority.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);

/// Takes the next step, if there is one to be taken. Returns once it is committed, or never will be
/// as far as is known.
pub fn step_to_configuration(replica: &Replica, status: &Status) {
    if !replica.is_member() {
        // It tries again if none takes over.
        let _ = replica.step_down();
        return;
    }
    let addresses = known_addresses(replica, status);
    let next = gone(replica, &addresses, status).map(Change::Remove);
    let Some(change) = next.or_else(|| next_change(&addresses, status)) else { return };
    let Some(running) = replica.running() else { return };
    match running.change(change) {
        Ok(_) => {
            let settled = await_settled(running, |_| true);
            replica.log_line(&match change {
                Change::AddLearner(id) => format!("{id} is new in the set"),
                Change::Promote(id) => format!("{id} has a vote"),
                Change::Remove(id) if !settled => {
                    format!("{id} has no vote any more, and is needed until the others know that")
                }
                Change::Remove(id) => format!("{id} is no longer in the set"),
            });
        }
        // It looks again.
        Err(RequestError::Refused(Refused::NotReady | Refused::ChangeUnderWay)) => {}
        Err(error) => replica.log_line(&format!("the set's members can't change: {error}")),
    }
}

/// Waits until the last change has settled in a set as it is `wanted`; returns whether it has in
/// time.
pub fn await_settled(running: &Running, wanted: impl Fn(&Status) -> bool) -> bool {
    let is_settled = |status: &Status| status.settled && wanted(status);
    let ends = |status: &Status| is_settled(status) || status.role != Role::Leader;
    is_settled(&running.await_status(SETTLES_WITHIN, ends))
}

/// A member that the configuration has.
#[derive(Clone, Copy)]
struct Wanted {
    /// Who is at its address, as far as is known.
    id: Option<MemberId>,
    votes: bool,
}

/// The members that the configuration has, by their addresses.
fn known_addresses(replica: &Replica, status: &Status) -> BTreeMap<String, Wanted> {
    let (own, peers) = (replica.identity(), lock(&replica.known_peers).clone());
    let at = |address: &String| {
        if *address == own.address {
            return Some(own.id);
        }
        if let Some(other) = peers.get(address) {
            return Some(other.id);
        }
        let first = own.members.iter().find(|(of, _)| of == address);
        first.map(|(_, id)| *id).filter(|id| status.configuration.voters.contains(id))
    };
    let members = replica.members();
    let wanted = |host: &Host| Wanted { id: at(&host.address), votes: host.votes };
    members.all.iter().map(|host| (host.address.clone(), wanted(host))).collect()
}

/// A member that is known to be at an address that the configuration doesn't have.
fn gone(
    replica: &Replica,
    addresses: &BTreeMap<String, Wanted>,
    status: &Status,
) -> Option<MemberId> {
    let set = &status.configuration;
    let mut all = set.voters.iter().chain(&set.learners).copied();
    all.find(|id| replica.address_of(*id).is_some_and(|address| !addresses.contains_key(&address)))
}

fn next_change(addresses: &BTreeMap<String, Wanted>, status: &Status) -> Option<Change> {
    let set = &status.configuration;
    let known: Vec<(MemberId, bool)> =
        addresses.values().filter_map(|wanted| Some((wanted.id?, wanted.votes))).collect();
    let is_known = |id: &MemberId| known.iter().any(|(known, _)| known == id);
    let has_vote = |id: &MemberId| known.contains(&(*id, true));
    let voter_count = addresses.values().filter(|wanted| wanted.votes).count();
    let is_near = |id: MemberId| {
        let held = status.held.iter().find(|(of, _)| *of == id);
        held.is_some_and(|(_, held)| status.committed <= EntryIndex(held.0 + NEAR_ENTRIES))
    };
    let all_known = known.len() == addresses.len();
    if all_known && voter_count < set.voters.len() {
        // It was at an address that isn't a member's any more, and hasn't called since; or it is to
        // have no vote.
        let left = set.voters.iter().find(|id| !has_vote(id));
        return left.map(|id| Change::Remove(*id));
    }
    for (id, votes) in known.iter().copied() {
        if set.voters.contains(&id) {
            continue;
        }
        if !set.learners.contains(&id) {
            return Some(Change::AddLearner(id));
        }
        if !votes || !is_near(id) {
            continue;
        }
        if set.voters.len() < voter_count {
            return Some(Change::Promote(id));
        }
        let lost: Vec<&MemberId> = set.voters.iter().filter(|id| !has_vote(id)).collect();
        if let [lost] = lost[..] {
            return Some(Change::Remove(*lost));
        }
    }
    let left = set.learners.iter().find(|id| all_known && !is_known(id));
    left.map(|id| Change::Remove(*id))
}

#[cfg(test)]
mod tests {
    use frond_quorum::{Configuration, Role, Term};

    use super::*;

    fn status(voters: &[u64], learners: &[u64], held: &[(u64, u64)]) -> Status {
        let mut configuration = Configuration::of(voters.iter().copied().map(MemberId));
        configuration.learners.extend(learners.iter().copied().map(MemberId));
        Status {
            role: Role::Leader,
            term: Term(2),
            leader: Some(MemberId(1)),
            committed: EntryIndex(1_000),
            last: EntryIndex(1_000),
            configuration,
            held: held.iter().map(|(id, held)| (MemberId(*id), EntryIndex(*held))).collect(),
            held_by_all: EntryIndex::ZERO,
            lacks: None,
            doubts: false,
            settled: true,
        }
    }

    fn next(at: [u64; 3], voters: &[u64], learners: &[u64], held: u64) -> Option<Change> {
        next_with(at.map(|id| (id, true)), voters, learners, held)
    }

    fn next_with(
        at: [(u64, bool); 3],
        voters: &[u64],
        learners: &[u64],
        held: u64,
    ) -> Option<Change> {
        let addresses = at.into_iter().zip(["a:1", "b:1", "c:1"]);
        let addresses = addresses.map(|((id, votes), address)| {
            let id = Some(MemberId(id)).filter(|id| *id != MemberId(0));
            (address.to_owned(), Wanted { id, votes })
        });
        next_change(&addresses.collect(), &status(voters, learners, &[(9, held)]))
    }

    #[test]
    fn votes_come_and_go_as_the_configuration_says() {
        let (reader, all) = (MemberId(9), [(1, true), (2, true), (9, false)]);
        // It comes without a vote, and gets none however near it is.
        assert_eq!(next_with(all, &[1, 2], &[], 0), Some(Change::AddLearner(reader)));
        assert_eq!(next_with(all, &[1, 2], &[9], 1_000), None);
        // It had one, and gets it back.
        assert_eq!(next_with(all, &[1, 2, 9], &[], 1_000), Some(Change::Remove(reader)));
        assert_eq!(next([1, 2, 9], &[1, 2], &[9], 1_000), Some(Change::Promote(reader)));
        // The vote goes from one to another.
        let other = [(1, true), (2, false), (9, true)];
        assert_eq!(next_with(other, &[1, 2], &[9], 1_000), Some(Change::Remove(MemberId(2))));
        // Where it isn't known who is somewhere, none loses a vote.
        assert_eq!(next_with([(1, true), (0, true), (9, false)], &[1, 2, 9], &[], 0), None);
    }

    #[test]
    fn a_lost_member_is_replaced_step_by_step() {
        let (old, new) = (MemberId(3), MemberId(9));
        assert_eq!(next([1, 2, 3], &[1, 2, 3], &[], 0), None);
        assert_eq!(next([1, 2, 9], &[1, 2, 3], &[], 0), Some(Change::AddLearner(new)));
        assert_eq!(next([1, 2, 9], &[1, 2, 3], &[9], 700), None);
        assert_eq!(next([1, 2, 9], &[1, 2, 3], &[9], 800), Some(Change::Remove(old)));
        assert_eq!(next([1, 2, 9], &[1, 2], &[9], 800), Some(Change::Promote(new)));
        assert_eq!(next([1, 2, 9], &[1, 2, 9], &[], 800), None);
    }

    #[test]
    fn members_come_and_go_as_the_configuration_says() {
        // A fourth one that was removed, and isn't heard of; one that joins.
        assert_eq!(next([1, 2, 3], &[1, 2, 3, 4], &[], 0), Some(Change::Remove(MemberId(4))));
        assert_eq!(next([1, 0, 3], &[1, 2, 3, 4], &[], 0), None);
        assert_eq!(next([1, 2, 9], &[1, 2], &[], 0), Some(Change::AddLearner(MemberId(9))));
        assert_eq!(next([1, 2, 9], &[1, 2], &[9], 1_000), Some(Change::Promote(MemberId(9))));
    }

    #[test]
    fn a_lost_member_must_be_named() {
        // The second is away, and not the one with which the set began: 2 or 3 was lost.
        assert_eq!(next([1, 0, 9], &[1, 2, 3], &[9], 1_000), None);
        // Two were lost: there is no majority without them, and none is given up.
        assert_eq!(next([1, 8, 9], &[1, 2, 3], &[8, 9], 1_000), None);
        // One that began to join and was lost again.
        assert_eq!(next([1, 2, 3], &[1, 2, 3], &[9], 0), Some(Change::Remove(MemberId(9))));
        assert_eq!(next([1, 0, 3], &[1, 2, 3], &[9], 0), None);
    }
}
