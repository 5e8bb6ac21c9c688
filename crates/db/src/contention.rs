//! Latches: what replaces whole trees, or removes them, against what writes to them.
//!
//! A transaction that replaces whole trees (an index build, a drop, `$out`) conflicts with every
//! write to the collection and would lose for ever to busy writers. From its second attempt on it
//! closes the collection's latch, which each writer passes: writers of that collection wait until
//! it is done.
//!
//! A merge or a reset replaces trees of many collections, and closes the latches of all of them.
//!
//! An index build has nothing left to do but a few hundred entries when it closes the latch
//! ([`LatchMode::Finisher`]), so writers wait for milliseconds. If they write faster than it
//! catches up, it *slows* them before ([`Throttle`]): each waits once it has committed, with no
//! lock held, the longer the more it wrote. No write waits for more than 15 ms at once, unless the
//! build would never end so.
//!
//! A transaction that removes a whole branch or database has a set of records to remove, and
//! optimism can't see that another transaction adds one to the set: it would stay behind, and come
//! back with the next database of that name. So every transaction passes its database's latch, and
//! a removal closes it from its first attempt on.
//!
//! *Lock order*: the database's latch, then the collections' latches, these by rising stripe (a
//! transaction of several requests, which passes the latches of all that it wrote when it commits,
//! takes those of databases by rising stripe too). A transaction that holds a latch waits for
//! nothing else: for what another has locked it waits outside, and keeps what it has locked
//! itself. Latches guard no data, so a panic while one is held leaves nothing half done. They are
//! the only locks held across a sync: a transaction that waits for one would otherwise only find
//! out later that it has lost.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use foldhash::fast::FixedState;
use frond_query::examined::{self, Latches};
use frond_store::io::pause;

/// Collections share latches by chance: this many make it rare.
const STRIPES: usize = 64;
/// The wait of a writer for each key that it wrote, beside an index build that can't catch up: at
/// first, as long as that is *gentle*, and at most.
const KEY_MICROS_MIN: u64 = 8;
const KEY_MICROS_GENTLE: u64 = 256;
const KEY_MICROS_MAX: u64 = 16_384;
/// The time that it waits at once at most, as long as that is gentle; else in proportion.
const WAIT_MICROS_GENTLE: u64 = 15_000;

/// The object that a transaction contends for: a collection on a branch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Scope {
    /// The stripe of the collection.
    pub collection: usize,
    /// The stripe of its database.
    pub database: usize,
}

impl Scope {
    /// The scope of writes to a collection.
    pub fn collection(database: &str, branch: &str, collection: &str) -> Scope {
        Scope { collection: stripe((database, branch, collection)), database: stripe(database) }
    }

    /// The scope of what concerns a branch or a database as a whole.
    pub fn branch(database: &str, branch: &str) -> Scope {
        Scope::collection(database, branch, "")
    }
}

fn stripe(name: impl Hash) -> usize {
    (FixedState::default().hash_one(name) % STRIPES as u64) as usize
}

/// The effect of a transaction on the trees of its scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LatchMode {
    /// Writes keys.
    Writer,
    /// Replaces or removes whole trees.
    Replacer,
    /// Replaces whole trees, has all but a moment's work behind it, and closes latches at once.
    Finisher,
    /// Removes all that a branch or a database has.
    Remover,
}

/// The latches of a data directory.
pub(crate) struct Contention {
    collections: Vec<RwLock<()>>,
    databases: Vec<RwLock<()>>,
    /// The microseconds that writers of a collection wait for each key that they wrote.
    delays: Vec<AtomicU64>,
    /// Transactions of several requests that may have written to a collection, and are open.
    open: Vec<AtomicU64>,
}

/// Slows the writers of a collection, until it is dropped.
pub(crate) struct Throttle<'a> {
    delay: &'a AtomicU64,
    /// Its part of the delay.
    micros: u64,
}

impl Throttle<'_> {
    /// Returns how long a writer of so many keys waits because of it.
    #[cfg(test)]
    pub fn delay(&self, key_count: usize) -> Duration {
        delay(self.micros, key_count)
    }

    /// Slows them more: twice as much.
    pub fn tighten(&mut self) {
        let more = self.micros.max(KEY_MICROS_MIN).min(KEY_MICROS_MAX - self.micros);
        self.delay.fetch_add(more, Ordering::Relaxed);
        self.micros += more;
    }

    /// As `tighten`, as long as no write waits for more than 15 ms at once.
    pub fn tighten_gently(&mut self) {
        if self.micros < KEY_MICROS_GENTLE {
            self.tighten();
        }
    }
}

/// Returns how long a writer of so many keys waits, at so many microseconds a key.
fn delay(key_micros: u64, key_count: usize) -> Duration {
    let most = WAIT_MICROS_GENTLE * (key_micros / KEY_MICROS_GENTLE).max(1);
    Duration::from_micros(key_micros.saturating_mul(key_count as u64).min(most))
}

impl Drop for Throttle<'_> {
    fn drop(&mut self) {
        self.delay.fetch_sub(self.micros, Ordering::Relaxed);
    }
}

/// The collections to which an open transaction of several requests writes: a build that publishes
/// an index waits for its end.
pub(crate) struct OpenWriter {
    contention: Arc<Contention>,
    stripes: BTreeSet<usize>,
}

impl OpenWriter {
    /// A writer of no collection yet.
    pub fn new(contention: &Arc<Contention>) -> OpenWriter {
        OpenWriter { contention: Arc::clone(contention), stripes: BTreeSet::new() }
    }

    /// Writes to a collection from now on; returns whether it is the first time. Waits for an index
    /// that is published now.
    pub fn enter(&mut self, scope: Scope) -> bool {
        let contention = &*self.contention;
        let _gate = latch(&contention.collections[scope.collection], false);
        let is_new = self.stripes.insert(scope.collection);
        if is_new {
            contention.open[scope.collection].fetch_add(1, Ordering::SeqCst);
        }
        is_new
    }
}

impl Drop for OpenWriter {
    fn drop(&mut self) {
        let contention = &*self.contention;
        for stripe in &self.stripes {
            contention.open[*stripe].fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// A latch that was passed, or closed for all others.
pub(crate) enum Latch<'a> {
    Passed { _guard: RwLockReadGuard<'a, ()> },
    Closed { _guard: RwLockWriteGuard<'a, ()> },
}

impl Contention {
    /// Everything open.
    pub fn new() -> Contention {
        Contention {
            collections: (0..STRIPES).map(|_| RwLock::default()).collect(),
            databases: (0..STRIPES).map(|_| RwLock::default()).collect(),
            delays: (0..STRIPES).map(|_| AtomicU64::new(0)).collect(),
            open: (0..STRIPES).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Passes or closes the latches of databases and of collections, whose stripes ascend strictly
    /// each.
    pub fn latches(
        &self,
        databases: &[usize],
        collections: &[usize],
        mode: LatchMode,
        attempt: u32,
    ) -> Vec<Latch<'_>> {
        debug_assert!(databases.is_sorted_by(|left, right| left < right));
        debug_assert!(collections.is_sorted_by(|left, right| left < right));
        let removes = mode == LatchMode::Remover;
        count((databases.len(), removes), (collections.len(), closes(mode, attempt)));
        let databases = databases.iter().map(|stripe| latch(&self.databases[*stripe], removes));
        let mut latches: Vec<Latch<'_>> = databases.collect();
        let closes = closes(mode, attempt);
        latches.extend(collections.iter().map(|stripe| latch(&self.collections[*stripe], closes)));
        latches
    }

    /// Returns a throttle for the writers of a collection; it doesn't slow them yet.
    pub fn throttle(&self, scope: Scope) -> Throttle<'_> {
        Throttle { delay: &self.delays[scope.collection], micros: 0 }
    }

    /// Whether a transaction of several requests that may have written to the collection is open.
    pub fn has_open_writers(&self, scope: Scope) -> bool {
        self.open[scope.collection].load(Ordering::SeqCst) > 0
    }

    /// Waits as long as a writer of so many keys of these collections has to, with no latch held.
    pub fn slow_down(&self, stripes: impl Iterator<Item = usize>, key_count: usize) {
        let micros = stripes.map(|stripe| self.delays[stripe].load(Ordering::Relaxed)).max();
        if let Some(micros) = micros.filter(|micros| *micros > 0) {
            pause(delay(micros, key_count));
        }
    }

    /// Passes the latches of all that a transaction of several requests wrote, so many keys, after
    /// the wait for these.
    pub fn pass(&self, scopes: &BTreeSet<Scope>, key_count: usize) -> Vec<Latch<'_>> {
        self.slow_down(scopes.iter().map(|scope| scope.collection), key_count);
        let in_order = |stripe: fn(&Scope) -> usize| {
            let mut stripes: Vec<usize> = scopes.iter().map(stripe).collect();
            stripes.sort_unstable();
            stripes.dedup();
            stripes
        };
        let databases = in_order(|scope| scope.database);
        let collections = in_order(|scope| scope.collection);
        count((databases.len(), false), (collections.len(), false));
        let databases = databases.into_iter().map(|stripe| latch(&self.databases[stripe], false));
        let collections =
            collections.into_iter().map(|stripe| latch(&self.collections[stripe], false));
        databases.chain(collections).collect()
    }
}

/// Whether an attempt holds the latches of its collections exclusively.
fn closes(mode: LatchMode, attempt: u32) -> bool {
    match mode {
        LatchMode::Writer => false,
        LatchMode::Finisher => true,
        LatchMode::Replacer | LatchMode::Remover => 0 < attempt,
    }
}

/// Counts, for the request, so many latches of databases and of collections, and whether they are
/// held exclusively.
fn count(databases: (usize, bool), collections: (usize, bool)) {
    let split = |(count, is_exclusive): (usize, bool)| match is_exclusive {
        true => (0, count as u64),
        false => (count as u64, 0),
    };
    let (databases_shared, databases_exclusive) = split(databases);
    let (collections_shared, collections_exclusive) = split(collections);
    examined::add_latches(Latches {
        databases_shared,
        databases_exclusive,
        collections_shared,
        collections_exclusive,
    });
}

fn latch(latch: &RwLock<()>, closes: bool) -> Latch<'_> {
    if closes {
        Latch::Closed { _guard: latch.write().unwrap_or_else(PoisonError::into_inner) }
    } else {
        Latch::Passed { _guard: latch.read().unwrap_or_else(PoisonError::into_inner) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_waits_in_proportion_to_what_it_wrote() {
        let contention = Contention::new();
        let scope = Scope::collection("shop", "main", "things");
        let mut throttle = contention.throttle(scope);
        assert_eq!(throttle.delay(1_000), Duration::ZERO);
        for _ in 0..20 {
            throttle.tighten_gently();
        }
        assert_eq!(throttle.delay(0), Duration::ZERO, "it changed nothing");
        assert_eq!(throttle.delay(4), Duration::from_micros(1_024));
        assert_eq!(throttle.delay(40), Duration::from_micros(10_240));
        assert_eq!(throttle.delay(100_000), Duration::from_millis(15));
        // The delays if that isn't enough.
        throttle.tighten();
        assert_eq!(throttle.delay(4), Duration::from_micros(2_048));
        assert_eq!(throttle.delay(100_000), Duration::from_millis(30));
        (0..20).for_each(|_| throttle.tighten());
        assert_eq!(throttle.delay(usize::MAX), Duration::from_millis(960));
        drop(throttle);
        assert_eq!(contention.delays[scope.collection].load(Ordering::Relaxed), 0);
    }
}
