//! Three members that run in one process, on disks of their own, while one after the other is
//! stopped: what was acknowledged is applied by all, once, in one order.

use std::collections::HashMap;

use frond_store::io::steady_now;
use frond_testkit::SimDisk;

use super::*;
use crate::configuration::Configuration;
use crate::entry::Content;
use crate::ids::SetId;
use crate::log::FileLog;
use crate::member::Lack;

const TICK: Duration = Duration::from_millis(20);
/// Only a test that fails waits for so long.
const LONG: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Net {
    members: Mutex<HashMap<MemberId, Arc<Running>>>,
}

/// The way of one member to the others.
struct Way(MemberId, Arc<Net>);

impl Peers for Way {
    fn send(&self, to: MemberId, frame: Bytes) {
        let running = self.1.members.lock().unwrap().get(&to).cloned();
        if let Some(running) = running {
            running.receive(self.0, frame);
        }
    }
}

#[derive(Clone, Default)]
struct Applied(Arc<(Mutex<Vec<Entry>>, Condvar)>);

impl Applied {
    /// Waits until so many entries are applied, and returns them.
    fn first(&self, count: usize) -> Vec<Entry> {
        let all = self.0.0.lock().unwrap();
        let waited = self.0.1.wait_timeout_while(all, LONG, |all| all.len() < count);
        waited.unwrap().0[..count].to_vec()
    }
}

impl Applier for Applied {
    fn apply(&mut self, entry: Entry) {
        let mut all = self.0.0.lock().unwrap();
        assert_eq!(entry.index.0, all.len() as u64 + 1);
        all.push(entry);
        self.0.1.notify_all();
    }
}

struct Set {
    net: Arc<Net>,
    disks: HashMap<MemberId, SimDisk>,
    applied: HashMap<MemberId, Applied>,
}

impl Set {
    fn new() -> Set {
        let beginning = Configuration::of((1..=3).map(MemberId));
        let mut set = Set { net: Arc::default(), disks: HashMap::new(), applied: HashMap::new() };
        for id in beginning.voters.iter().copied() {
            let disk = SimDisk::new(id.0);
            FileLog::create(&disk.machine(), id, SetId(9), &beginning).unwrap();
            set.disks.insert(id, disk);
            set.start(id);
        }
        set
    }

    fn start(&mut self, id: MemberId) {
        let (log, recovered) = FileLog::open(&self.disks[&id].machine()).unwrap();
        let log: Arc<dyn Log> = Arc::new(log);
        let member = Member::new(recovered, Arc::clone(&log), EntryIndex::ZERO, id.0).unwrap();
        let (peers, applied) = (Way(id, Arc::clone(&self.net)), Applied::default());
        self.applied.insert(id, applied.clone());
        let running =
            Running::start(member, log, EntryIndex::ZERO, Arc::new(peers), Box::new(applied), TICK);
        self.net.members.lock().unwrap().insert(id, Arc::new(running.unwrap()));
    }

    /// Ends a process as a kill does.
    fn kill(&mut self, id: MemberId) {
        let running = self.net.members.lock().unwrap().remove(&id).unwrap();
        running.stop();
        let disk = self.disks[&id].kill();
        self.disks.insert(id, disk);
    }

    fn running(&self, id: MemberId) -> Arc<Running> {
        Arc::clone(&self.net.members.lock().unwrap()[&id])
    }

    /// One that leads and has committed in its term, as it says itself.
    fn leader(&self) -> MemberId {
        let ids: Vec<MemberId> = self.net.members.lock().unwrap().keys().copied().collect();
        loop {
            let seen = self.running(ids[0]).await_status(LONG, |status| status.leader.is_some());
            let leader = seen.leader.expect("a majority runs, and elects");
            if ids.contains(&leader) && self.running(leader).read().is_ok() {
                return leader;
            }
            // It has stepped down, or was killed: the next one comes.
            let known = seen.term;
            self.running(ids[0]).await_status(TICK * 4, |status| known < status.term);
        }
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        let members = std::mem::take(&mut *self.net.members.lock().unwrap());
        members.values().for_each(|running| running.stop());
    }
}

#[test]
fn one_after_the_other_is_killed_and_nothing_is_lost() {
    let mut set = Set::new();
    let mut acknowledged = Vec::new();
    for round in 0..4 {
        let leader = set.leader();
        let running = set.running(leader);
        // Several at once; those at the end of a leader's life may fail.
        let proposals: Vec<_> = (0..40)
            .map(|n| running.propose(Bytes::from(format!("{round}/{n}: {:40}", n))))
            .collect();
        for (number, proposal) in proposals.into_iter().enumerate() {
            match proposal.wait() {
                Ok(index) => acknowledged.push((index, format!("{round}/{number}: {number:40}"))),
                Err(RequestError::Unknown | RequestError::Refused(Refused::NotLeader)) => {}
                Err(other) => panic!("{other}"),
            }
        }
        drop(running);
        set.kill(leader);
        let next = set.leader();
        let index = set.running(next).propose(Bytes::from("alone")).wait();
        set.start(leader);
        if let Ok(index) = index {
            acknowledged.push((index, "alone".to_owned()));
        }
    }
    assert!(acknowledged.len() > 100);
    let last = acknowledged.iter().map(|(index, _)| *index).max().unwrap();
    let all: Vec<Vec<Entry>> =
        set.applied.values().map(|applied| applied.first(last.0 as usize)).collect();
    assert!(all.iter().all(|entries| *entries == all[0]));
    for (index, text) in acknowledged {
        let content = Content::Data(Bytes::from(text));
        assert_eq!(all[0][index.0 as usize - 1].content, content);
    }
}

/// As where a member's directory is restored from an older copy.
#[test]
fn a_member_takes_no_part_in_a_set_that_has_forgotten_what_it_knows() {
    let mut set = Set::new();
    let propose = |set: &Set, text: &'static str| {
        // With the second a follower knows that the first is committed.
        let mut committed = 0;
        while committed < 2 {
            let leader = set.running(set.leader());
            committed += usize::from(leader.propose(Bytes::from(text)).wait().is_ok());
        }
    };
    propose(&set, "by all");
    let first = set.leader();
    let others: Vec<MemberId> = set.disks.keys().copied().filter(|id| *id != first).collect();
    let [second, third] = others[..] else { panic!("three members") };
    set.kill(second);
    let [old, disk] = [(); 2].map(|()| set.disks[&second].kill());
    set.disks.insert(second, disk);
    set.start(second);
    set.kill(third);
    propose(&set, "by two");
    set.kill(first);
    set.kill(second);
    set.disks.insert(second, old);
    set.start(second);
    set.start(third);
    propose(&set, "by those that know less");
    set.start(first);
    let seen = set.running(first).await_status(LONG, |status| status.lacks.is_some());
    assert_eq!(seen.lacks, Some(Lack::Replaced));
    propose(&set, "they go on");
}

#[test]
fn a_follower_refuses_and_a_leader_hands_over() {
    let set = Set::new();
    let leader = set.leader();
    let other = set.disks.keys().copied().find(|id| *id != leader).unwrap();
    let follower = set.running(other);
    let refused = Err(RequestError::Refused(Refused::NotLeader));
    assert_eq!(follower.propose(Bytes::from("no")).wait(), refused);
    assert_eq!(follower.read(), refused);
    let nothing = set.running(leader).propose(Bytes::new()).wait();
    assert!(matches!(nothing, Err(RequestError::Refused(Refused::Invalid(_)))));
    if set.running(leader).hand_over(other).is_ok() {
        let seen = follower.await_status(LONG, |status| status.leader == Some(other));
        assert_eq!(seen.leader, Some(other));
    }
}

#[test]
fn a_member_stops_for_good_after_a_failed_sync() {
    let set = Set::new();
    let leader = set.leader();
    set.disks[&leader].fail_sync_after(0);
    let running = set.running(leader);
    // The others may commit it.
    let _ = running.propose(Bytes::from("lost or not")).wait();
    let begun = steady_now();
    while running.fault().is_none() {
        assert!(begun.elapsed() < LONG, "its sync failed");
        std::thread::yield_now();
    }
    assert!(running.fault().is_some_and(|fault| fault.contains("quorum-log")));
    assert_eq!(running.propose(Bytes::from("more")).wait(), Err(RequestError::Unknown));
}

#[test]
fn compacted_entries_are_in_no_file_and_all_members_go_on() {
    const MARKER: &[u8] = b"what is to be found by none";
    let set = Set::new();
    let leader = set.running(set.leader());
    let index = leader.propose(Bytes::from_static(MARKER)).wait().unwrap();
    for (id, disk) in &set.disks {
        let has_marker = || {
            let log = disk.contents("quorum-log").unwrap();
            log.windows(MARKER.len()).any(|window| window == MARKER)
        };
        let running = set.running(*id);
        while running.handed_out() < index {
            std::thread::yield_now();
        }
        assert!(has_marker());
        running.compact_to(index).unwrap();
        assert!(!has_marker());
    }
    let last = set.running(set.leader()).propose(Bytes::from("more")).wait().unwrap();
    for applied in set.applied.values() {
        let entries = applied.first(last.0 as usize);
        assert_eq!(entries[last.0 as usize - 1].content, Content::Data(Bytes::from("more")));
    }
}
