//! The life of a member of a set: it meets the others, follows, leads, and starts again. See
//! [`crate::replica`].

pub mod compaction;
pub mod copying;
pub mod follow;
pub mod full;
pub mod gate;
pub mod preferring;
pub mod purging;
pub mod replacing;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use frond_quorum::{Configuration, FileLog, Lack, Log, Member, MemberId, Role as QuorumRole};
use frond_quorum::{Peers, Refused, RequestError, Running, Status};
use frond_store::StoreError;
use frond_store::io::Machine;

use crate::log;
use crate::replica::identity::Identity;
use crate::replica::status::MemberStatus;
use crate::replica::{MemberView, Replica, Role, links, lock};
use crate::shared::Shared;
use copying::AfterCopy;
use follow::{Follower, applied};
use full::FullDisk;
use preferring::Preference;

/// What a member lacks that has to begin anew.
const LOST_END: &str = "its end, which was acknowledged, is lost";
const REPLACED: &str = "the other members have replaced entries that this one knows to be committed, \
     as they do if they are started on older copies of their directories: it takes no part any \
     more, and keeps its own, for frond salvage";
const TICK: Duration = Duration::from_millis(100);
/// The interval at which it checks whether the engine, or the quorum's log, has failed.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A leader that has only begun doesn't know yet what a member holds.
const LACKS_WAIT: Duration = Duration::from_secs(2);
/// The time for answers that wait for agreement, before the process starts again.
const ANSWERS_WAIT: Duration = Duration::from_millis(200);
/// The wait after a fault that may stay.
const FAULT_WAIT: Duration = Duration::from_secs(1);
const MEETING_WAIT: Duration = Duration::from_millis(500);
const HAND_OVER_WAIT_MAX: Duration = Duration::from_secs(3);
const HAND_OVER_STEP: Duration = Duration::from_millis(20);

/// Starts a member's threads; those that call others end soon after [`Replica::stop`].
///
/// # Errors
/// If the system gives no thread.
pub fn start(replica: &Arc<Replica>, server: &Arc<Shared>) -> io::Result<JoinHandle<()>> {
    let _ = replica.log.set(Arc::clone(&server.log));
    copying::offer_to_others(replica, server);
    announce(replica, server);
    replica.call_others()?;
    let (replica, server) = (Arc::clone(replica), Arc::clone(server));
    std::thread::Builder::new().name("frond-set".to_owned()).spawn(move || {
        if let Err(error) = replica.run(&server) {
            replica.log_line(&format!("the log of the set: {error}"));
            match error {
                // It would find the same again, and doesn't know what it had acknowledged.
                StoreError::Damaged { .. } => {
                    copying::copy_until_stopped(&replica, &server, AfterCopy::Another);
                }
                _ => replica.begin_anew(FAULT_WAIT),
            }
        }
    })
}

/// Has this member's streams say what it is.
fn announce(replica: &Arc<Replica>, server: &Arc<Shared>) {
    let (of, from) = (Arc::downgrade(replica), Arc::downgrade(server));
    let _ = replica.own_status.set(Box::new(move || {
        let (replica, server) = (of.upgrade()?, from.upgrade()?);
        Some(MemberStatus {
            state: replica.state(),
            moment: server.operation_time(),
            uptime_seconds: server.started.elapsed().as_secs(),
            configuration: 0,
            has_receiver: false,
            is_full: full::is_full(&server),
            purged: replica.purges().done,
        })
    }));
}

impl Replica {
    fn run(self: &Arc<Self>, server: &Arc<Shared>) -> Result<(), StoreError> {
        let machine = self.machine.get().expect("it was opened");
        let joins = self.meet_all(machine, server)?;
        if self.is_stopped() {
            return Ok(());
        }
        let identity = self.identity();
        let owner = FileLog::owner(machine)?;
        if owner.is_none() && !joins {
            return Err(StoreError::damaged("quorum-log", 0, "it isn't there, or has no head"));
        }
        if owner != Some((identity.id, identity.set_id())) {
            copying::copy_until_stopped(self, server, AfterCopy::Same);
            return Ok(());
        }
        let (log, recovered) = FileLog::open(machine)?;
        let log: Arc<dyn Log> = Arc::new(log);
        let applied = applied(&*log, recovered.last(), server.frond.operation_time())?;
        let applied = recovered.applied_at_least(applied);
        let mut seed = [0; size_of::<u64>()];
        machine.chance.fill(&mut seed);
        let member = Member::new(recovered, Arc::clone(&log), applied, u64::from_le_bytes(seed))?;
        let follower = Follower { replica: Arc::clone(self), server: Arc::clone(server) };
        let peers = Arc::clone(self) as Arc<dyn Peers>;
        let kept = Arc::clone(&log);
        let _ = self.quorum_log.set(Arc::clone(&log));
        let running = Running::start(member, log, applied, peers, Box::new(follower), TICK)?;
        let _ = self.running.set(running);
        self.note_priority();
        let (replica, cutting) = (Arc::clone(self), Arc::clone(server));
        std::thread::Builder::new()
            .name("frond-set-cut".to_owned())
            .spawn(move || compaction::compact_until_stopped(&replica, &cutting, &*kept))
            .map_err(|error| StoreError::io("thread frond-set-cut", error))?;
        self.follow_and_lead(server)
    }

    /// Calls the members that it didn't know before.
    fn call_others(self: &Arc<Self>) -> io::Result<()> {
        for address in self.to_call() {
            let caller = Arc::clone(self);
            std::thread::Builder::new()
                .name("frond-member".to_owned())
                .spawn(move || links::call_until_stopped(&caller, &address))?;
        }
        Ok(())
    }

    /// Waits until the members of the set are known; makes the log before that is noted. Returns
    /// whether the set has begun without this directory, which is new.
    fn meet_all(&self, machine: &Machine, server: &Shared) -> Result<bool, StoreError> {
        while !self.is_stopped() {
            let identity = self.identity();
            if !identity.members.is_empty() {
                return Ok(false);
            }
            let known_peers = lock(&self.known_peers).clone();
            match self.members_by(&identity, &known_peers) {
                Some(members) => {
                    let joins = !members.contains(&(identity.address.clone(), identity.id));
                    let identity = Identity { members, ..identity };
                    if !joins && !FileLog::exists(machine)? {
                        let ids = identity.members.iter().map(|(_, id)| *id);
                        let beginning = Configuration::of(ids);
                        FileLog::create(machine, identity.id, identity.set_id(), &beginning)?;
                    }
                    identity.write(machine)?;
                    self.name_set(&server.frond, &identity);
                    *lock(&self.identity) = identity;
                    self.note_members(server);
                    return Ok(joins);
                }
                None => {
                    let known_peers = lock(&self.known_peers);
                    let waited = self.meeting.wait_timeout(known_peers, MEETING_WAIT);
                    drop(waited);
                }
            }
        }
        Ok(false)
    }

    /// Returns the members of the set, once all have been met, or one of them knows the set.
    fn members_by(
        &self,
        own: &Identity,
        known_peers: &HashMap<String, Identity>,
    ) -> Option<Vec<(String, MemberId)>> {
        if let Some(informed) = known_peers.values().find(|other| !other.members.is_empty()) {
            return Some(informed.members.clone());
        }
        if known_peers.len() + 1 < self.options.members.len() {
            return None;
        }
        let mut members: Vec<(String, MemberId)> =
            known_peers.values().chain([own]).map(|it| (it.address.clone(), it.id)).collect();
        members.sort();
        Some(members)
    }

    fn follow_and_lead(self: &Arc<Self>, server: &Shared) -> Result<(), StoreError> {
        let running = self.running().expect("it was started");
        let mut seen: Option<Status> = None;
        let mut doubts = false;
        let mut lacks_since: Option<Instant> = None;
        let mut reasons = (FullDisk::default(), Preference::default());
        while !self.is_stopped() {
            let status = running.await_status(LOOK_EVERY, |status| {
                seen.as_ref().is_none_or(|seen| is_other(seen, status))
            });
            self.call_others().map_err(|error| StoreError::io("thread frond-member", error))?;
            if let Some(fault) = running.fault() {
                self.log_line(&format!("the set's log: {fault}"));
                self.begin_anew(FAULT_WAIT);
                return Ok(());
            }
            if std::mem::replace(&mut doubts, status.doubts) != status.doubts {
                self.log_line(match status.doubts {
                    true => "the end of its log may be lost: it decides no election until it knows",
                    false => "it has the end of its log again",
                });
            }
            if status.lacks.is_some_and(Lack::is_final) {
                running.stop();
                return self.take_no_part(server, &status);
            }
            lacks_since = status.lacks.map(|_| lacks_since.unwrap_or_else(Instant::now));
            if lacks_since.is_some_and(|since| LACKS_WAIT < since.elapsed()) {
                copying::copy_until_stopped(self, server, AfterCopy::Same);
                return Ok(());
            }
            let led_term = self.led_term.load(Ordering::Acquire);
            let leads = status.role == QuorumRole::Leader;
            if led_term != 0 && !(leads && status.term.0 == led_term) {
                self.change(server, Role::Deposed, &status);
                server.frond.depose();
                self.log_line("it no longer leads, and restarts");
                self.begin_anew(ANSWERS_WAIT);
                return Ok(());
            }
            if server.frond.fault().is_some() {
                self.change(server, Role::Deposed, &status);
                self.begin_anew(FAULT_WAIT);
                return Ok(());
            }
            match leads {
                true if led_term == 0 && !self.is_electable(self.identity().id) => {
                    self.lead_for_others(server, &status);
                }
                true if led_term == 0 => {
                    self.begin_to_lead(server, &status);
                    continue; // It may have to try again at once.
                }
                true => self.lead_on(server, &status, &mut reasons),
                false => self.change(server, Role::Secondary, &status),
            }
            seen = Some(status);
        }
        Ok(())
    }

    /// Ends a member that lacks what the set has, or has what the set lacks.
    fn take_no_part(&self, server: &Shared, status: &Status) -> Result<(), StoreError> {
        if status.lacks == Some(Lack::Acknowledged) {
            return Err(StoreError::damaged("quorum-log", 0, LOST_END));
        }
        // A copy would take the place of what only this directory has.
        self.change(server, Role::Recovering, status);
        self.log_line(REPLACED);
        Ok(())
    }

    /// Leads, once all is applied that was committed before.
    fn begin_to_lead(&self, server: &Shared, status: &Status) {
        let running = self.running().expect("it was started");
        if running.read().is_err() {
            // It isn't ready, or leads no more: it looks again.
            std::thread::sleep(HAND_OVER_STEP);
            return;
        }
        self.led_term.store(status.term.0, Ordering::Release);
        server.accounts.forget();
        match frond_vcs::lead(&server.frond) {
            Ok(()) => self.change(server, Role::Primary, status),
            Err(error) => {
                self.log_line(&format!("it can't lead: {error}"));
                server.frond.depose();
            }
        }
    }

    fn lead_on(
        &self,
        server: &Shared,
        status: &Status,
        (full_disk, preference): &mut (FullDisk, Preference),
    ) {
        self.change(server, Role::Primary, status);
        replacing::step_to_configuration(self, status);
        full_disk.hand_over(self, server, status);
        preference.hand_over(self, status);
    }

    /// Brings others up to what this member has, without being the primary, and hands over to one
    /// that may be.
    fn lead_for_others(&self, server: &Shared, status: &Status) {
        self.change(server, Role::Secondary, status);
        replacing::step_to_configuration(self, status);
        // It tries again if none takes over.
        let _ = self.step_down();
    }

    fn change(&self, server: &Shared, role: Role, status: &Status) {
        let primary = match role {
            Role::Primary => Some(self.options.own.clone()),
            _ => status.leader.and_then(|leader| self.address_of(leader)),
        };
        let primary =
            primary.filter(|primary| role == Role::Primary || *primary != self.options.own);
        let is_member = self.is_member();
        let standing = MemberView { role, term: status.term.0, primary, is_member };
        let was = self.state();
        let before = std::mem::replace(&mut *lock(&self.standing), standing.clone());
        let now = self.state();
        if was != now {
            log::transition(&server.log, was.name(), now.name());
            self.report_state();
        }
        if before.role != Role::Primary && role == Role::Primary {
            log::leads(&server.log);
        }
        if before.is_member && !is_member {
            self.log_line("the replica set no longer has this member");
        }
        if before != standing {
            server.topology.send_modify(|counter| *counter += 1);
        }
    }

    /// Reads which members the set is to have, and notifies clients if that has changed.
    pub(crate) fn note_members(&self, server: &Shared) {
        match self.read_members(&server.frond) {
            Ok(true) => {
                self.note_priority();
                server.topology.send_modify(|counter| *counter += 1);
            }
            Ok(false) => {}
            Err(error) => self.log_line(&format!("the set's configuration: {error}")),
        }
    }

    /// Has this member's priority count in elections.
    fn note_priority(&self) {
        if let Some(running) = self.running() {
            running.stand_late(!self.is_electable(self.identity().id));
        }
    }

    /// Waits, for a while, until the set has at most so many members for good.
    pub(crate) fn await_members(&self, count: usize) {
        let Some(running) = self.running() else { return };
        replacing::await_settled(running, |status| {
            let set = &status.configuration;
            set.voters.len() + set.learners.len() <= count
        });
    }

    /// Shows nothing any more: what it has applied falls behind.
    fn show_nothing(&self, server: &Shared) {
        lock(&self.standing).role = Role::Recovering;
        self.report_state();
        server.topology.send_modify(|counter| *counter += 1);
    }

    fn begin_anew(&self, wait: Duration) {
        std::thread::sleep(wait);
        if !self.is_stopped() {
            (self.options.restart)();
        }
    }

    /// Hands over to the member that has most of the log, and waits until this one is deposed.
    ///
    /// # Errors
    /// Says why it still leads.
    pub fn step_down(&self) -> Result<(), String> {
        self.step_down_for(|_| true)
    }

    /// The same, for one of the members that are `wanted`.
    ///
    /// # Errors
    /// Says why it still leads.
    fn step_down_for(&self, wanted: impl Fn(MemberId) -> bool) -> Result<(), String> {
        let running = self.running().ok_or("the set hasn't begun")?;
        let until = Instant::now() + HAND_OVER_WAIT_MAX;
        loop {
            let status = running.status();
            let own = self.identity().id;
            let voters = &status.configuration.voters;
            let others = status
                .held
                .iter()
                .filter(|(id, _)| *id != own && voters.contains(id))
                .filter(|(id, _)| self.is_electable(*id) && wanted(*id));
            let Some((next, _)) = others.max_by_key(|(_, held)| *held) else {
                return Err("there is no other member that may be the primary".to_owned());
            };
            match running.hand_over(*next) {
                Ok(()) => {
                    let left = until.saturating_duration_since(Instant::now());
                    let led = status.term;
                    let after = running.await_status(left, |status| {
                        status.role != QuorumRole::Leader || status.term != led
                    });
                    return match after.role == QuorumRole::Leader && after.term == led {
                        true => Err("no other member could take over in time".to_owned()),
                        false => Ok(()),
                    };
                }
                Err(RequestError::Refused(Refused::NotReady)) if Instant::now() < until => {
                    std::thread::sleep(HAND_OVER_STEP);
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Ends it: another leads soon, if this one did.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.meeting.notify_all();
        if let Some(running) = self.running() {
            if self.is_primary() {
                // Without it the others notice in two seconds.
                let _ = self.step_down();
            }
            running.stop();
        }
    }
}

/// Whether there is news for this member, and not for the log alone.
fn is_other(seen: &Status, status: &Status) -> bool {
    let of = |status: &Status| (status.role, status.term, status.leader, status.lacks);
    of(seen) != of(status)
}
