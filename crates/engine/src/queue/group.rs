//! A group: the transactions that one write and one sync of the log make durable together.
//!
//! Its members join the queue, put their entries into the memtable, and then sleep here, not
//! on the queue's lock: one call wakes all of them, and none needs the queue again to learn that it
//! is durable. A group has a leader only from when it is written; a leader that is done with its
//! own group asks a member of the one that formed meanwhile to lead it.
//!
//! A member need not sleep: it may leave a [`Follower`], which the leader calls once the group is
//! notified. So a server's thread need not be woken to send an answer.
//!
//! *Thread safety*: all methods may be called at once. The lock inside is taken after the queue's,
//! or without it, and is held for a few instructions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;

use crate::ids::Sequence;
use crate::overlay::before::Befores;
use crate::overlay::memtable::Memtable;
use crate::overlay::pending::NewChunks;

/// A committer that waits notices within this time that it is to stop.
pub(crate) const CHECK_EVERY: Duration = Duration::from_millis(50);

/// What follows once it is known what became of a group. The leader calls it, with no lock held but
/// with the right to lead: it must not wait for a commit, nor for a thread that may wait for one.
pub(crate) type Follower = Box<dyn FnOnce(Outcome) + Send>;

/// A group of transactions.
#[derive(Default)]
pub(crate) struct Group {
    state: Mutex<GroupState>,
    /// The group was notified, or wants a leader.
    notified: Condvar,
    /// The last member that the leader waits for has arrived.
    complete: Condvar,
}

#[derive(Default)]
struct GroupState {
    /// The number of members that have put their entries into the memtable.
    arrived: u64,
    /// The number of arrivals the leader waits for.
    awaited: Option<u64>,
    /// The number of threads that wait for the entries of one member.
    watching: u64,
    /// The number of members that wait to be called: where none does, none need be woken.
    waiting: u64,
    leader_wanted: bool,
    outcome: Option<Outcome>,
    /// Those that weren't called yet.
    followers: Vec<Follower>,
}

/// The outcome of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// All of it is durable and visible.
    Durable,
    /// Something else: each member must look into the queue.
    Recheck,
}

/// The reason why a member is woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    /// To lead, if no other thread does.
    Lead,
    /// To go on.
    End(Outcome),
}

/// A member's entries, on their way into the memtable.
pub(crate) struct Insertion {
    memtable: Arc<Memtable>,
    sequence: Sequence,
    payload: Bytes,
    befores: Befores,
    new_chunks: NewChunks,
    begun: AtomicBool,
    done: AtomicBool,
}

impl Insertion {
    pub fn new(
        memtable: Arc<Memtable>,
        sequence: Sequence,
        (payload, befores): (Bytes, Befores),
        new_chunks: NewChunks,
    ) -> Insertion {
        let (begun, done) = (AtomicBool::new(false), AtomicBool::new(false));
        Insertion { memtable, sequence, payload, befores, new_chunks, begun, done }
    }

    /// Whether the caller is the first to call this: it inserts then, and arrives.
    pub fn begin(&self) -> bool {
        !self.begun.swap(true, Ordering::AcqRel)
    }

    pub fn insert(&self) {
        self.memtable.add_new_chunks(&self.new_chunks);
        self.memtable.insert_knowing(self.sequence, &self.payload, &self.befores);
    }

    /// Notes that `insert` has ended; before its group is notified that a member has arrived.
    pub fn end(&self) {
        self.done.store(true, Ordering::Release);
    }

    /// Whether `insert` has ended.
    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }
}

impl Group {
    /// A member has put its entries into the memtable.
    pub fn arrive(&self) {
        let mut state = self.state();
        state.arrived += 1;
        if state.watching > 0 || state.awaited == Some(state.arrived) {
            self.complete.notify_all();
        }
    }

    /// Whether `count` members have arrived.
    pub fn have_arrived(&self, count: usize) -> bool {
        count as u64 <= self.state().arrived
    }

    /// Waits until one member's entries are in the memtable.
    pub fn await_insertion(&self, insertion: &Insertion) {
        let mut state = self.state();
        while !insertion.is_done() {
            state.watching += 1;
            state = self.complete.wait(state).expect(NO_PANIC);
            state.watching -= 1;
        }
    }

    /// Waits until `count` members have arrived.
    pub fn await_members(&self, count: u64) {
        let mut state = self.state();
        while state.arrived < count {
            state.awaited = Some(count);
            state = self.complete.wait(state).expect(NO_PANIC);
        }
    }

    /// Waits to be called.
    pub fn wait(&self) -> Call {
        let mut state = self.state();
        loop {
            if let Some(outcome) = state.outcome {
                return Call::End(outcome);
            }
            if std::mem::take(&mut state.leader_wanted) {
                return Call::Lead;
            }
            state.waiting += 1;
            state = self.notified.wait(state).expect(NO_PANIC);
            state.waiting -= 1;
        }
    }

    /// Waits for the outcome as long as `keep_going` says so, which is asked now and then.
    pub fn wait_while(&self, keep_going: &dyn Fn() -> bool) -> Option<Outcome> {
        let mut state = self.state();
        while state.outcome.is_none() {
            state.waiting += 1;
            state = self.notified.wait_timeout(state, CHECK_EVERY).expect(NO_PANIC).0;
            state.waiting -= 1;
            if state.outcome.is_none() {
                drop(state);
                if !keep_going() {
                    return None;
                }
                state = self.state();
            }
        }
        state.outcome
    }

    /// Calls one member to lead: one that waits, or the next that would.
    pub fn want_leader(&self) {
        let mut state = self.state();
        state.leader_wanted = true;
        if state.waiting > 0 {
            drop(state);
            self.notified.notify_one();
        }
    }

    /// Notifies all members that wait of what became of the group; the first outcome counts. Those
    /// that don't are the caller's to call ([`Group::call_followers`]), unless a lock is held.
    pub fn notify(&self, outcome: Outcome) {
        let mut state = self.state();
        state.outcome.get_or_insert(outcome);
        if state.waiting > 0 {
            drop(state);
            self.notified.notify_all();
        }
    }

    /// Has `follower` called once the group is notified. Returns it, and the outcome, if that is
    /// known: its caller calls it then.
    pub fn follow(&self, follower: Follower) -> Option<(Follower, Outcome)> {
        let mut state = self.state();
        if let Some(outcome) = state.outcome {
            return Some((follower, outcome));
        }
        state.followers.push(follower);
        None
    }

    /// Calls the followers of a group that was notified, each once.
    pub fn call_followers(&self) {
        let mut state = self.state();
        let Some(outcome) = state.outcome else { return };
        let followers = std::mem::take(&mut state.followers);
        drop(state);
        for follower in followers {
            // It was reported. The log is whole, and the others are to be answered.
            let _ = catch_unwind(AssertUnwindSafe(|| follower(outcome)));
        }
    }

    fn state(&self) -> MutexGuard<'_, GroupState> {
        self.state.lock().expect(NO_PANIC)
    }
}

const NO_PANIC: &str = "no panic while the lock is held";

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;
    use crate::log::record::Record;

    #[test]
    fn members_wait_for_their_outcome_and_one_of_them_leads() {
        let group = Arc::new(Group::default());
        let members: Vec<_> = (0..4)
            .map(|_| {
                let group = Arc::clone(&group);
                thread::spawn(move || {
                    group.arrive();
                    let mut led = 0;
                    loop {
                        match group.wait() {
                            Call::Lead => {
                                led += 1;
                                group.await_members(4);
                                group.notify(Outcome::Durable);
                                group.notify(Outcome::Recheck);
                            }
                            Call::End(outcome) => return (led, outcome),
                        }
                    }
                })
            })
            .collect();
        group.want_leader();
        let ends: Vec<_> = members.into_iter().map(|member| member.join().unwrap()).collect();
        assert!(ends.iter().all(|(_, outcome)| *outcome == Outcome::Durable));
        assert_eq!(ends.iter().map(|(led, _)| led).sum::<u32>(), 1);
    }

    #[test]
    fn a_member_that_arrives_during_the_wake_up_does_not_sleep() {
        const MEMBERS: u64 = 4;
        for round in 0..500 {
            let group = Arc::new(Group::default());
            let members: Vec<_> = (0..MEMBERS)
                .map(|_| {
                    let group = Arc::clone(&group);
                    thread::spawn(move || {
                        group.arrive();
                        while group.wait() == Call::Lead {
                            group.await_members(MEMBERS);
                            group.notify(Outcome::Durable);
                        }
                    })
                })
                .collect();
            // Called before they come, while they come, and when they wait.
            group.await_members(round % (MEMBERS + 1));
            group.want_leader();
            members.into_iter().for_each(|member| member.join().unwrap());
        }
    }

    #[test]
    fn waiting_for_a_member_ends_with_its_arrival() {
        let memtable = Arc::new(Memtable::default());
        let entries = (Bytes::from(Record::default().encode()), Befores::default());
        let insertion = Insertion::new(memtable, Sequence(1), entries, NewChunks::default());
        let group = Group::default();
        thread::scope(|scope| {
            scope.spawn(|| group.await_insertion(&insertion));
            while group.state().watching == 0 {
                thread::yield_now();
            }
            insertion.end();
            group.arrive();
        });
        assert_eq!(group.state().watching, 0);
    }

    #[test]
    fn a_wanted_leader_is_the_next_that_would_wait() {
        let group = Group::default();
        group.want_leader();
        assert_eq!(group.wait(), Call::Lead);
        group.notify(Outcome::Recheck);
        assert_eq!(group.wait(), Call::End(Outcome::Recheck));
        group.await_members(0);
    }
}
