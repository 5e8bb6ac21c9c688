//! Latches: what replaces whole trees, or removes them, against what writes to them.
//!
//! What replaces whole trees (an index build, a drop, `$out`) conflicts with every write to
//! the collection and would lose for ever to busy writers. From its second attempt on it closes the
//! collection's latch, which each writer passes: writers of that collection wait until it is done.
//!
//! A merge or a reset replaces trees of many collections, and closes the latches of them all.
//!
//! An index build has nothing left to do but a few hundred entries when it closes the latch
//! ([`LatchMode::Finisher`]), so writers wait for milliseconds. If they write faster than it
//! catches up, it *slows* them before ([`Throttle`]): each waits a little before it begins, with no
//! lock held.
//!
//! What removes a whole branch or database has a set of records to remove, and optimism can't see
//! that another transaction adds one to the set: it would stay behind, and come back with the next
//! database of that name. So every transaction passes its database's latch, and a removal closes it
//! from its first attempt on.
//!
//! *Lock order*: the database's latch, then the collections' latches, these by rising stripe (a
//! transaction of several requests, which passes the latches of all that it wrote when it commits,
//! takes those of databases by rising stripe too). A transaction that holds a latch waits for
//! nothing else: for what another has claimed it waits outside, and keeps what it has claimed
//! itself. Latches guard no data, so a panic while one is held leaves nothing half done. They are
//! the only locks held across a sync: a transaction that waits for one would otherwise only find
//! out later that it has lost.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use foldhash::fast::FixedState;
use frond_store::io::pause;

/// Collections share latches by chance: this many make it rare.
const STRIPES: usize = 64;
/// The least and the most that a writer waits for an index build that can't catch up.
const DELAY_MICROS_MIN: u64 = 250;
const DELAY_MICROS_MAX: u64 = 1_000_000;

/// What a transaction contends for: a collection on a branch.
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

/// What a transaction does to the trees of its scope.
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
    /// For so many microseconds writers of a collection wait before they begin.
    delays: Vec<AtomicU64>,
    /// Transactions of several requests that may have written to a collection, and are open.
    open: Vec<AtomicU64>,
}

/// What slows the writers of a collection, until it is dropped.
pub(crate) struct Throttle<'a> {
    delay: &'a AtomicU64,
    /// Its part of the delay.
    micros: u64,
}

impl Throttle<'_> {
    /// How long a writer waits because of it.
    pub fn delay(&self) -> Duration {
        Duration::from_micros(self.micros)
    }

    /// Slows them more: twice as much.
    pub fn tighten(&mut self) {
        let more = self.micros.max(DELAY_MICROS_MIN).min(DELAY_MICROS_MAX - self.micros);
        self.delay.fetch_add(more, Ordering::Relaxed);
        self.micros += more;
    }
}

impl Drop for Throttle<'_> {
    fn drop(&mut self) {
        self.delay.fetch_sub(self.micros, Ordering::Relaxed);
    }
}

/// The collections to which an open transaction of several requests writes: who publishes an index
/// waits for its end.
pub(crate) struct OpenWriter {
    contention: Arc<Contention>,
    stripes: BTreeSet<usize>,
}

impl OpenWriter {
    /// Of no collection yet.
    pub fn new(contention: &Arc<Contention>) -> OpenWriter {
        OpenWriter { contention: Arc::clone(contention), stripes: BTreeSet::new() }
    }

    /// Writes to a collection from now on; tells whether it is the first time. Waits for an index
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

/// A latch that was passed, or closed for everybody else.
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
        let databases = databases.iter().map(|stripe| latch(&self.databases[*stripe], removes));
        let mut latches: Vec<Latch<'_>> = databases.collect();
        let closes = match mode {
            LatchMode::Writer => false,
            LatchMode::Finisher => true,
            LatchMode::Replacer | LatchMode::Remover => attempt > 0,
        };
        latches.extend(collections.iter().map(|stripe| latch(&self.collections[*stripe], closes)));
        latches
    }

    /// What may slow the writers of a collection; nothing yet.
    pub fn throttle(&self, scope: Scope) -> Throttle<'_> {
        Throttle { delay: &self.delays[scope.collection], micros: 0 }
    }

    /// Whether a transaction of several requests that may have written to the collection is open.
    pub fn has_open_writers(&self, scope: Scope) -> bool {
        self.open[scope.collection].load(Ordering::SeqCst) > 0
    }

    /// Waits as long as a writer of these collections has to, before it takes a latch.
    pub fn slow_down(&self, stripes: impl Iterator<Item = usize>) {
        let micros = stripes.map(|stripe| self.delays[stripe].load(Ordering::Relaxed)).max();
        if let Some(micros) = micros.filter(|micros| *micros > 0) {
            pause(Duration::from_micros(micros));
        }
    }

    /// Passes the latches of all that a transaction of several requests wrote.
    pub fn pass(&self, scopes: &BTreeSet<Scope>) -> Vec<Latch<'_>> {
        self.slow_down(scopes.iter().map(|scope| scope.collection));
        let in_order = |stripe: fn(&Scope) -> usize| {
            let mut stripes: Vec<usize> = scopes.iter().map(stripe).collect();
            stripes.sort_unstable();
            stripes.dedup();
            stripes
        };
        let databases = in_order(|scope| scope.database).into_iter();
        let collections = in_order(|scope| scope.collection).into_iter();
        let databases = databases.map(|stripe| latch(&self.databases[stripe], false));
        let collections = collections.map(|stripe| latch(&self.collections[stripe], false));
        databases.chain(collections).collect()
    }
}

fn latch(latch: &RwLock<()>, closes: bool) -> Latch<'_> {
    if closes {
        Latch::Closed { _guard: latch.write().unwrap_or_else(PoisonError::into_inner) }
    } else {
        Latch::Passed { _guard: latch.read().unwrap_or_else(PoisonError::into_inner) }
    }
}
