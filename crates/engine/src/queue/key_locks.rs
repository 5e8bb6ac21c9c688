//! Key locks: a transaction that has written a key owns it until it ends, or has its place in the
//! log.
//!
//! A transaction that writes a key that another one holds doesn't go on, only to find out when it
//! commits that it has lost: it is queued, and when its turn has come it gets the key, with what
//! the holder made of it. That may not be durable, nor visible, yet: the next holder sees queued
//! commits ([`crate::queue::queued_reads`]), or waits until that is visible.
//!
//! 1. Keys are named by the fingerprints of [`crate::queue::conflicts`]: two keys with one
//!    fingerprint would only cost a needless wait. They are spread over shards.
//! 2. A key's queue is first come, first served. A transaction that lets go of a key gives it to
//!    the first in the queue, so no latecomer gets ahead.
//! 3. A transaction waits for one key at a time, so the waits form a set of chains. A transaction
//!    that is queued follows its own chain, and if it comes back to itself the youngest in the
//!    circle has lost. Nothing else closes a circle: a transaction that is given a key doesn't
//!    wait.
//! 4. Most transactions of a single statement take no key locks and only ask whether there are any:
//!    `buckets` count key locks by the low bits of their fingerprints, so that the answer mostly
//!    costs one load.
//!
//! *Lock order*: `waiting`, then a shard; a shard's lock is also taken under the commit queue's.
//! Every change of a queue is made under both.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use frond_store::stripe::Stripe;

use crate::fingerprint::IdentityHasher;

const SHARD_COUNT: usize = 64;
const BUCKET_COUNT: usize = 4096;
const NO_PANIC: &str = "no panic while the lock is held";

/// A transaction that may hold key locks. The later it began, the greater.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Owner(u64);

/// The outcome of an attempt to take a key lock.
pub(crate) enum Acquired {
    /// No transaction had it.
    New,
    /// The transaction has it already.
    Held,
    /// Another has it; the transaction is queued.
    Queued(Arc<Waiter>),
    /// Another has it that waits, over others perhaps, for this one; and this one is the youngest
    /// of them.
    Deadlock,
}

/// The state of a waiter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaitState {
    /// It waits.
    Waiting,
    /// It has the key now.
    Granted,
    /// It was the youngest in a circle of those that wait for one another, and waits no more.
    Deadlock,
    /// It gave up.
    Ended,
}

/// A transaction in a key's queue.
pub(crate) struct Waiter {
    owner: Owner,
    fingerprint: u64,
    state: Mutex<WaitState>,
    changed: Condvar,
}

impl Waiter {
    /// Returns where it stands, after a while at most.
    pub fn wait(&self, at_most: Duration) -> WaitState {
        let state = self.state.lock().expect(NO_PANIC);
        let waits = |state: &mut WaitState| *state == WaitState::Waiting;
        let (state, _) = self.changed.wait_timeout_while(state, at_most, waits).expect(NO_PANIC);
        *state
    }

    /// The key that it wants.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn notify(&self, state: WaitState) {
        *self.state.lock().expect(NO_PANIC) = state;
        self.changed.notify_all();
    }
}

/// A key that a transaction holds.
struct KeyLock {
    owner: Owner,
    queue: VecDeque<Arc<Waiter>>,
}

type Holders = HashMap<u64, KeyLock, BuildHasherDefault<IdentityHasher>>;

/// The table of key locks.
pub(crate) struct KeyLocks {
    shards: [Stripe<Mutex<Holders>>; SHARD_COUNT],
    buckets: Box<[AtomicU32]>,
    waiting: Mutex<HashMap<Owner, Arc<Waiter>>>,
    owners: AtomicU64,
}

impl Default for KeyLocks {
    fn default() -> KeyLocks {
        KeyLocks {
            shards: std::array::from_fn(|_| Stripe(Mutex::default())),
            buckets: (0..BUCKET_COUNT).map(|_| AtomicU32::new(0)).collect(),
            waiting: Mutex::default(),
            owners: AtomicU64::new(1),
        }
    }
}

impl KeyLocks {
    /// A name for a transaction that begins now.
    pub fn owner(&self) -> Owner {
        Owner(self.owners.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether a transaction may hold a key.
    pub fn may_be_held(&self, fingerprint: u64) -> bool {
        self.bucket(fingerprint).load(Ordering::Acquire) > 0
    }

    /// Whether another transaction than `owner` holds a key.
    pub fn is_foreign(&self, owner: Owner, fingerprint: u64) -> bool {
        self.may_be_held(fingerprint)
            && self.shard(fingerprint).get(&fingerprint).is_some_and(|held| held.owner != owner)
    }

    /// Takes a key, or is queued for it.
    pub fn take(&self, owner: Owner, fingerprint: u64) -> Acquired {
        let taken = self.take_if_free(&mut self.shard(fingerprint), owner, fingerprint);
        taken.unwrap_or_else(|| self.enqueue(owner, fingerprint))
    }

    fn take_if_free(
        &self,
        shard: &mut Holders,
        owner: Owner,
        fingerprint: u64,
    ) -> Option<Acquired> {
        match shard.entry(fingerprint) {
            Entry::Vacant(vacant) => {
                vacant.insert(KeyLock { owner, queue: VecDeque::new() });
                self.bucket(fingerprint).fetch_add(1, Ordering::AcqRel);
                Some(Acquired::New)
            }
            Entry::Occupied(held) => (held.get().owner == owner).then_some(Acquired::Held),
        }
    }

    fn enqueue(&self, owner: Owner, fingerprint: u64) -> Acquired {
        let mut waiting = self.waiting();
        let mut shard = self.shard(fingerprint);
        if let Some(taken) = self.take_if_free(&mut shard, owner, fingerprint) {
            return taken;
        }
        let (state, changed) = (Mutex::new(WaitState::Waiting), Condvar::new());
        let waiter = Arc::new(Waiter { owner, fingerprint, state, changed });
        let intent = shard.get_mut(&fingerprint).expect("what isn't free is held");
        intent.queue.push_back(Arc::clone(&waiter));
        drop(shard);
        waiting.insert(owner, Arc::clone(&waiter));
        match self.youngest_of_circle(&waiting, owner) {
            Some(victim) => {
                self.dismiss(&mut waiting, victim, WaitState::Deadlock);
                if victim == owner { Acquired::Deadlock } else { Acquired::Queued(waiter) }
            }
            None => Acquired::Queued(waiter),
        }
    }

    /// Follows the chain of those that wait from `owner` on; if it comes back, the youngest in it.
    fn youngest_of_circle(
        &self,
        waiting: &HashMap<Owner, Arc<Waiter>>,
        owner: Owner,
    ) -> Option<Owner> {
        let (mut at, mut youngest) = (owner, owner);
        // Each step is another one that waits: a circle that doesn't have `owner` would have been
        // broken before.
        for _ in 0..=waiting.len() {
            let fingerprint = waiting.get(&at)?.fingerprint;
            at = self.shard(fingerprint).get(&fingerprint)?.owner;
            youngest = youngest.max(at);
            if at == owner {
                return Some(youngest);
            }
        }
        None
    }

    /// Takes one that waits out of its queue; false if it waits no more.
    fn dismiss(
        &self,
        waiting: &mut HashMap<Owner, Arc<Waiter>>,
        owner: Owner,
        state: WaitState,
    ) -> bool {
        let Some(waiter) = waiting.remove(&owner) else { return false };
        if let Some(intent) = self.shard(waiter.fingerprint).get_mut(&waiter.fingerprint) {
            intent.queue.retain(|other| other.owner != owner);
        }
        waiter.notify(state);
        true
    }

    /// Waits no more; returns where it stood.
    pub fn leave(&self, waiter: &Waiter) -> WaitState {
        self.dismiss(&mut self.waiting(), waiter.owner, WaitState::Ended);
        *waiter.state.lock().expect(NO_PANIC)
    }

    /// Lets go of a key: the first in its queue has it then.
    pub fn release(&self, owner: Owner, fingerprint: u64) {
        let mut shard = self.shard(fingerprint);
        match shard.get(&fingerprint) {
            Some(held) if held.owner == owner && held.queue.is_empty() => {
                self.forget(&mut shard, fingerprint);
                return;
            }
            Some(held) if held.owner == owner => {}
            _ => return,
        }
        drop(shard);
        let mut waiting = self.waiting();
        let mut shard = self.shard(fingerprint);
        let Some(intent) = shard.get_mut(&fingerprint) else { return };
        match intent.queue.pop_front() {
            Some(next) => {
                intent.owner = next.owner;
                waiting.remove(&next.owner);
                drop((shard, waiting));
                next.notify(WaitState::Granted);
            }
            None => self.forget(&mut shard, fingerprint),
        }
    }

    fn forget(&self, shard: &mut Holders, fingerprint: u64) {
        shard.remove(&fingerprint);
        self.bucket(fingerprint).fetch_sub(1, Ordering::AcqRel);
    }

    /// Returns how many transactions wait now.
    pub fn waiting_count(&self) -> u64 {
        self.waiting().len() as u64
    }

    fn bucket(&self, fingerprint: u64) -> &AtomicU32 {
        &self.buckets[fingerprint as usize % BUCKET_COUNT]
    }

    fn shard(&self, fingerprint: u64) -> MutexGuard<'_, Holders> {
        // Other bits than the buckets' and the table's own.
        self.shards[(fingerprint >> 32) as usize % SHARD_COUNT].0.lock().expect(NO_PANIC)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<Owner, Arc<Waiter>>> {
        self.waiting.lock().expect(NO_PANIC)
    }
}

#[cfg(test)]
mod tests;
