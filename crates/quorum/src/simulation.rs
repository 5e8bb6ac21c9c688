//! Simulates whole sets of members on one thread, from one seed.
//!
//! *What happens*: clients propose, read, and change the members; packets are lost, doubled, late
//! and overtaken; connections are cut one way; members are paused, killed, or lose their power at
//! any write or sync, with all that wasn't synced; disks are slow, syncs fail, and of one log at a
//! time the end is lost that was synced. Clocks go at different speeds. Some members notice that a
//! process has ended, or believe it of one that runs. Logs are cut though members lack what goes:
//! these copy what another has. One member may lead only where no other can. Members that were
//! removed are switched off for ever once that has
//! settled. Then all others are well again, and the set must come to rest.
//!
//! *What must hold*
//! 1. All members get the same entry at the same place, without a gap.
//! 2. Every acknowledged entry is there at the end, once, at the place that was acknowledged.
//! 3. No two members lead in one term.
//! 4. A read sees everything that was acknowledged before it was asked for.
//! 5. A set that is well again commits, and its members' logs are equal.
//!
//! [`Defect`]s are planted one at a time, and must break one of these.

mod node;
mod observer;
mod tests;

use std::collections::BTreeMap;

use bytes::Bytes;
use frond_testkit::Random;
use frond_testkit::net::{Packet, Quality, SimNet};

use crate::configuration::{Change, Configuration};
use crate::defect::Defect;
use crate::entry::Content;
use crate::ids::{MemberId, SetId};
use crate::member::{Lack, Role, Work};
use node::Node;
use observer::{Observer, Violation};

const SET: SetId = SetId(1);
/// Milliseconds that go by at once.
const STEP: u64 = 5;
/// A leader announces what is committed once in so many of these.
const PAUSE_STEPS: u64 = 3;
/// The time for which things go wrong.
const FAULTS_MILLIS: u64 = 4_000;
/// The time that a set may take to come to rest when all is well again.
const REST_MILLIS: u64 = 20_000;
const NODES_MAX: usize = 8;
const WELL: Quality =
    Quality { delay: 1..3, late_one_in: 1 << 30, lost_one_in: 1 << 30, doubled_one_in: 1 << 30 };

/// A set, and all that is around it.
struct World {
    random: Random,
    now: u64,
    net: SimNet,
    nodes: BTreeMap<MemberId, Node>,
    observer: Observer,
    beginning: Configuration,
    defect: Option<Defect>,
    next_member: u64,
    next_proposal: u64,
    /// The clients' requests: the member that took each, and its content.
    next_read: u64,
    is_well: bool,
    /// Logs are cut.
    cuts: bool,
    /// Their ends are lost.
    loses_ends: bool,
    /// Members that were removed are switched off.
    retires: bool,
    /// Members notice that the process of another has ended, or believe it of one that runs.
    losses: Option<Random>,
    /// One that leads only where no other can.
    late: Option<MemberId>,
}

/// What a life ends with whose set doesn't go on by itself.
const STANDS_STILL: &str = "a set that is well commits nothing";

impl World {
    fn new(seed: u64, defect: Option<Defect>) -> World {
        let mut random = Random::new(seed);
        let voters = [3, 3, 4, 5][random.below(4)];
        let beginning = Configuration::of((1..=voters).map(MemberId));
        let quality = Quality {
            delay: 1..2 + random.below(30) as u64,
            late_one_in: 2 + random.below(40),
            lost_one_in: 4 + random.below(60),
            doubled_one_in: 4 + random.below(60),
        };
        let mut world = World {
            net: SimNet::new(random.next(), quality),
            random,
            now: 0,
            nodes: BTreeMap::new(),
            observer: Observer::default(),
            beginning,
            defect,
            next_member: 1,
            next_proposal: 1,
            next_read: 1,
            is_well: false,
            cuts: seed.is_multiple_of(2),
            loses_ends: (seed / 2).is_multiple_of(2),
            retires: (seed / 4).is_multiple_of(2),
            // What is planted is found sooner without them.
            late: (defect.is_none() && (seed / 16).is_multiple_of(2)).then_some(MemberId(1)),
            losses: (defect.is_none() && (seed / 8).is_multiple_of(2)).then(|| Random::new(!seed)),
        };
        for _ in 0..voters {
            world.add_node();
        }
        world
    }

    fn add_node(&mut self) -> MemberId {
        let id = MemberId(self.next_member);
        self.next_member += 1;
        self.nodes.insert(id, Node::new(id, &self.beginning, &mut self.random));
        id
    }

    /// Runs the whole life of a set.
    fn run(mut self) -> Result<Observer, Violation> {
        while self.now < FAULTS_MILLIS {
            self.break_something();
            self.step()?;
        }
        self.heal();
        self.is_well = true;
        let end = self.now + REST_MILLIS;
        let mut last_proposed = false;
        while !self.is_at_rest() || !last_proposed {
            if end < self.now {
                return Err(Violation(format!(
                    "{STANDS_STILL}: {:?}",
                    self.nodes.values().map(Node::reported).collect::<Vec<_>>()
                )));
            }
            self.step()?;
            if !last_proposed && self.is_at_rest() {
                last_proposed = self.leader().is_some_and(|leader| self.propose(leader, None));
            }
        }
        self.check_logs()?;
        self.observer.check_end()?;
        Ok(self.observer)
    }

    fn step(&mut self) -> Result<(), Violation> {
        self.now += STEP;
        while let Some(packet) = self.net.receive(self.now) {
            if let Some(node) = self.nodes.get_mut(&MemberId(packet.to)) {
                node.arrived.push_back(packet);
            }
        }
        self.notice_losses();
        for id in self.nodes.keys().copied().collect::<Vec<_>>() {
            self.step_node(id)?;
        }
        if !self.is_well {
            self.be_a_client();
        }
        if self.retires && self.random.one_in(10) {
            self.retire_removed();
        }
        Ok(())
    }

    /// Some members notice that a process isn't there; a few are wrong.
    fn notice_losses(&mut self) {
        let Some(random) = &mut self.losses else { return };
        let ended: Vec<MemberId> = self
            .nodes
            .values()
            .filter(|node| node.up.is_none() || !self.is_well && random.one_in(500))
            .map(|node| node.id)
            .collect();
        for lost in ended {
            for node in self.nodes.values_mut() {
                if let Some(up) = node.up.as_mut().filter(|_| random.one_in(4)) {
                    up.member.lost(lost);
                }
            }
        }
    }

    /// Switches off, for ever, members that were removed, as operators do once the leader says that
    /// they may.
    fn retire_removed(&mut self) {
        let Some(leader) = self.leader() else { return };
        let status = self.nodes[&leader].up.as_ref().expect("a leader runs").member.status();
        if !status.settled {
            return;
        }
        let committed = self.observer.chosen.iter().take(status.committed.0 as usize);
        let removed: Vec<MemberId> = committed
            .filter_map(|entry| match entry.content {
                Content::Change(Change::Remove(id)) => Some(id),
                _ => None,
            })
            .collect();
        for id in removed {
            self.nodes.get_mut(&id).expect("it was a member").retire();
        }
    }

    /// A member's time, packets and disk.
    fn step_node(&mut self, id: MemberId) -> Result<(), Violation> {
        let may_lose =
            self.loses_ends && !self.is_well && self.nodes.values().all(|node| !node.has_lost);
        let node = self.nodes.get_mut(&id).expect("it is one of them");
        if node.is_retired {
            node.arrived.clear();
            return Ok(());
        }
        if self.now < node.paused_until {
            return Ok(());
        }
        if node.up.is_none() {
            node.arrived.clear();
            if self.now < node.starts_at {
                return Ok(());
            }
            node.start(self.defect, may_lose, &mut self.random)?;
            if let Some(up) = node.up.as_mut().filter(|_| self.late == Some(id)) {
                up.member.stand_late(true);
            }
        }
        while let Some(up) = &mut node.up
            && let Some(packet) = node.arrived.pop_front()
        {
            let taken = up.member.receive(MemberId(packet.from), &packet.bytes);
            taken.map_err(|error| Violation(format!("a frame isn't understood: {error}")))?;
        }
        if let Some(up) = &mut node.up
            && node.ticks_at <= self.now
        {
            node.ticks_at = self.now + node.tick_millis;
            up.member.tick();
        }
        node.has_lost &= node.up.as_ref().is_none_or(|up| up.member.status().doubts);
        node.use_disk(self.now, self.defect, &mut self.observer, &mut self.random);
        if self.cuts && self.random.one_in(20) {
            let held_by_all = self.is_well || self.random.one_in(2);
            node.compact(self.now, held_by_all);
        }
        if let Some(up) = self.nodes.get_mut(&id).and_then(|node| node.up.as_mut())
            && (self.now / STEP).is_multiple_of(PAUSE_STEPS)
        {
            up.member.announce();
        }
        self.pump(id)?;
        self.copy_to(id);
        Ok(())
    }

    /// Gives a member that lacks what was cut what another has come to.
    fn copy_to(&mut self, id: MemberId) {
        let lacks = |node: &Node| node.up.as_ref().and_then(|up| up.member.status().lacks);
        if lacks(&self.nodes[&id]) != Some(Lack::Compacted) || !self.random.one_in(10) {
            return;
        }
        let others = self.nodes.values().filter(|node| node.id != id && node.up.is_some());
        let others: Vec<MemberId> = others.map(|node| node.id).collect();
        if others.is_empty() {
            return;
        }
        let from = self.nodes[self.random.choose(&others)].up.as_ref().expect("it runs");
        let up_to = match self.defect {
            Some(Defect::CopyAhead) => from.written,
            _ => from.applied,
        };
        let own = self.nodes[&id].up.as_ref().expect("it lacks something").applied;
        let Ok(beginning) = crate::Log::behind(&*from.log, up_to) else { return };
        if own < up_to {
            let node = self.nodes.get_mut(&id).expect("it is one of them");
            node.incoming = Some(beginning);
            node.stop(self.now + 20, false);
        }
    }

    /// Does the work of a member until there is no more.
    fn pump(&mut self, id: MemberId) -> Result<(), Violation> {
        let node = self.nodes.get_mut(&id).expect("it is one of them");
        while let Some(up) = &mut node.up
            && let Some(work) = up.member.take()
        {
            let Work { frames, batch, committed, reads } = work;
            let status = up.member.status();
            if status.role == Role::Leader {
                self.observer.leads(id, status.term)?;
            }
            up.batches.extend(batch);
            for (to, bytes) in frames {
                self.net.send(self.now, Packet { from: id.0, to: to.0, bytes });
            }
            for entry in committed {
                if entry.index != up.applied.next() {
                    return Err(Violation(format!(
                        "{id} got {:?} after {:?}",
                        entry.index, up.applied
                    )));
                }
                up.applied = entry.index;
                self.observer.commits(id, entry)?;
            }
            for (read, index) in reads {
                self.observer.reads(id, read, index)?;
            }
        }
        Ok(())
    }

    fn leader(&mut self) -> Option<MemberId> {
        let leaders: Vec<MemberId> = self
            .nodes
            .values()
            .filter(|node| node.paused_until <= self.now)
            .filter(|node| node.up.as_ref().is_some_and(|up| up.member.role() == Role::Leader))
            .map(|node| node.id)
            .collect();
        (!leaders.is_empty()).then(|| *self.random.choose(&leaders))
    }

    fn be_a_client(&mut self) {
        if !self.random.one_in(4) {
            return;
        }
        let Some(leader) = self.leader() else { return };
        match self.random.below(20) {
            0 => self.change(leader),
            1 => self.hand_over(leader),
            2..5 => self.read(leader),
            5 if self.defect == Some(Defect::ProposedAgain) => {
                let again = self.observer.unanswered(&mut self.random);
                self.propose(leader, again);
            }
            _ => drop(self.propose(leader, None)),
        }
    }

    /// Proposes a number that was never proposed, or `again`.
    fn propose(&mut self, leader: MemberId, again: Option<u64>) -> bool {
        let number = again.unwrap_or(self.next_proposal);
        let mut bytes = number.to_le_bytes().to_vec();
        bytes.resize(8 + self.random.below(100), 7);
        let up = self.nodes.get_mut(&leader).and_then(|node| node.up.as_mut());
        let up = up.expect("a leader runs");
        let Ok((index, term)) = up.member.propose(Bytes::from(bytes)) else { return false };
        self.next_proposal += 1;
        self.observer.proposed(leader, index, term, number);
        true
    }

    fn read(&mut self, leader: MemberId) {
        let read = crate::ReadId(self.next_read);
        self.next_read += 1;
        let up = self.nodes.get_mut(&leader).and_then(|node| node.up.as_mut());
        let up = up.expect("a leader runs");
        if self.defect == Some(Defect::StaleRead) {
            self.observer.begin_read(leader, read);
            let known = up.member.status().committed;
            self.observer.stale |= self.observer.reads(leader, read, known).is_err();
        } else if up.member.read(read).is_ok() {
            self.observer.begin_read(leader, read);
        }
    }

    fn hand_over(&mut self, leader: MemberId) {
        let up = self.nodes.get_mut(&leader).and_then(|node| node.up.as_mut());
        let up = up.expect("a leader runs");
        let voters: Vec<MemberId> = up.member.status().configuration.voters.into_iter().collect();
        let _ = up.member.hand_over(*self.random.choose(&voters));
    }

    fn change(&mut self, leader: MemberId) {
        let up = self.nodes[&leader].up.as_ref().expect("a leader runs");
        let set = up.member.status().configuration;
        let change = if let Some(learner) = set.learners.first()
            && !self.random.one_in(3)
        {
            Change::Promote(*learner)
        } else if set.voters.len() < 4 && self.nodes.len() < NODES_MAX {
            Change::AddLearner(self.add_node())
        } else {
            let voters: Vec<MemberId> = set.voters.into_iter().collect();
            Change::Remove(*self.random.choose(&voters))
        };
        let up = self.nodes.get_mut(&leader).and_then(|node| node.up.as_mut());
        let _ = up.expect("a leader runs").member.change(change);
    }

    fn break_something(&mut self) {
        if !self.random.one_in(20) {
            return;
        }
        let ids: Vec<MemberId> = self.nodes.keys().copied().collect();
        let (one, other) = (*self.random.choose(&ids), *self.random.choose(&ids));
        let lasts = 20 + self.random.below(600) as u64;
        let node = self.nodes.get_mut(&one).expect("it is one of them");
        match self.random.below(12) {
            0 | 1 => self.net.cut(one.0, other.0),
            2 => {
                for id in &ids {
                    self.net.cut(one.0, id.0);
                    self.net.cut(id.0, one.0);
                }
            }
            3 | 4 => self.net.heal(),
            5 => node.paused_until = self.now + lasts,
            6 => node.stop(self.now + lasts, true),
            7 => node.stop(self.now + lasts, false),
            8 | 9 => node.disk.crash_after(self.random.below(6) as u64),
            10 => node.disk.fail_sync_after(self.random.below(4) as u64),
            _ => node.sync_millis = [1, 1, 10, 40, 200][self.random.below(5)],
        }
    }

    fn heal(&mut self) {
        self.net.heal();
        self.net.set_quality(WELL);
        for node in self.nodes.values_mut() {
            (node.paused_until, node.starts_at, node.sync_millis) = (0, 0, 1);
            node.disk.crash_after(1 << 40);
            node.disk.fail_sync_after(1 << 40);
        }
    }

    /// Whether a leader's followers have all that it has.
    fn is_at_rest(&self) -> bool {
        let Some(leader) = self.nodes.values().find_map(|node| {
            let up = node.up.as_ref()?;
            let status = up.member.status();
            (status.role == Role::Leader && status.committed == status.last).then_some(status)
        }) else {
            return false;
        };
        let set = &leader.configuration;
        set.voters.iter().chain(&set.learners).all(|id| {
            let up = self.nodes[id].up.as_ref();
            up.is_some_and(|up| up.applied == leader.last && up.batches.is_empty())
        })
    }

    /// Each log says what was committed.
    fn check_logs(&self) -> Result<(), Violation> {
        for node in self.nodes.values() {
            let Some(up) = &node.up else { continue };
            let before = crate::Log::before(&*up.log);
            if up.applied == before {
                continue;
            }
            let entries = crate::Log::read(&*up.log, before.next(), up.applied.next(), u64::MAX);
            let entries = entries.map_err(|error| Violation(error.to_string()))?;
            if entries != self.observer.chosen[before.0 as usize..up.applied.0 as usize] {
                return Err(Violation(format!("the log of {} is another", node.id)));
            }
        }
        Ok(())
    }
}

/// The number that a proposal was made of.
fn number_of(content: &Content) -> Option<u64> {
    match content {
        Content::Data(bytes) => bytes.first_chunk().map(|number| u64::from_le_bytes(*number)),
        Content::Change(_) => None,
    }
}
