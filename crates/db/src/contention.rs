//! Transactions that run again by themselves when another was in the way.
//!
//! 1. A request's transaction runs optimistically. If its commit conflicts, it is run again from the start, at a new
//!    snapshot, and claims from then on what it writes (`frond_engine::LockMode`): whoever else wants to write that waits
//!    until it is done, so that a hundred updaters of one counter take turns instead of all losing to one.
//! 2. What somebody else has claimed, another such transaction or one of several requests, it waits for, as long as its
//!    caller does ([`Interrupt`]), and has its turn in the order in which it came.
//! 3. A conflict over whole trees, or over what it was found by, has no queue: it runs again after a short wait that grows.
//! 4. After [`ATTEMPTS_MAX`] the conflict is the caller's.
//!
//! *Gates*: what replaces whole trees (an index build, a drop, `$out`) conflicts with every write to
//! the collection and would lose for ever to busy writers. From its second attempt on it closes the
//! collection's latch, which each writer passes: writers of that collection wait until it is done.
//!
//! A merge or a reset replaces trees of many collections, and closes the latches of them all.
//!
//! An index build has nothing left to do but a few hundred entries when it closes the latch ([`LatchMode::Finisher`]), so writers
//! wait for milliseconds. If they write faster than it catches up, it *slows* them before ([`Throttle`]): each waits
//! a little before it begins, with no lock held.
//!
//! What removes a whole branch or database has a set of records to remove, and optimism can't see
//! that another transaction adds one to the set: it would stay behind, and come back with the next
//! database of that name. So every transaction passes its database's latch, and a removal closes it
//! from its first attempt on.
//!
//! *Lock order*: the database's latch, then the collections' latches, these by rising stripe (a transaction of several requests,
//! which passes the latches of all that it wrote when it commits, takes those of databases by rising stripe too). Whoever holds a
//! latch waits for nothing else: for what somebody has claimed it waits outside, and keeps what it has claimed itself. Gates
//! guard no data, so a panic while one is held leaves nothing by half. They are the only locks held across a sync: whoever waits
//! for one would otherwise only find out later that it has lost.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use frond_engine::{Durability, LockMode, Transaction, Wait};

use crate::catalog::cache::CatalogEpoch;
use crate::error::{Error, ErrorKind};
use crate::frond::Frond;
use crate::interrupt::Interrupt;
use crate::system;

const ATTEMPTS_MAX: u32 = 2_000;
const WAIT_MICROS_MIN: u64 = 20;
const WAIT_MICROS_MAX: u64 = 2_000;
/// How often one that waits asks whether it still may: who is told to end notices it so late. Asking costs a switch of
/// threads; with hundreds that wait, asking each 10 ms took as much processor time as what they waited to do.
const WAIT_STEP: Duration = Duration::from_millis(100);
/// How long a request waits for what another transaction has claimed, if nobody ends the wait before.
const WAIT_MILLIS_MAX: u64 = 300_000;
/// Collections share latches by chance: this many make it rare.
const STRIPES: usize = 64;
/// The least and the most that a writer waits for an index build that can't catch up.
const DELAY_MICROS_MIN: u64 = 250;
const DELAY_MICROS_MAX: u64 = 1_000_000;

/// What a transaction contends for: a collection on a branch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Scope {
    /// The stripe of the collection.
    collection: usize,
    /// The stripe of its database.
    database: usize,
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
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    (hasher.finish() % STRIPES as u64) as usize
}

/// What a transaction does to the trees of its scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LatchMode {
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

/// The collections to which an open transaction of several requests writes: who publishes an index waits for its end.
pub(crate) struct OpenWriter {
    frond: Frond,
    stripes: BTreeSet<usize>,
}

impl OpenWriter {
    /// Of no collection yet.
    pub fn new(frond: &Frond) -> OpenWriter {
        OpenWriter { frond: frond.clone(), stripes: BTreeSet::new() }
    }

    /// Writes to a collection from now on; tells whether it is the first time. Waits for an index that is published now.
    pub fn enter(&mut self, scope: Scope) -> bool {
        let contention = self.frond.contention();
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
        let contention = self.frond.contention();
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

    /// Passes or closes the latches of a database and of collections, whose stripes ascend strictly.
    fn latches(
        &self,
        database: usize,
        collections: &[usize],
        mode: LatchMode,
        attempt: u32,
    ) -> Vec<Latch<'_>> {
        debug_assert!(collections.is_sorted_by(|left, right| left < right));
        let mut latches = vec![latch(&self.databases[database], mode == LatchMode::Remover)];
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
    fn slow_down(&self, stripes: impl Iterator<Item = usize>) {
        let micros = stripes.map(|stripe| self.delays[stripe].load(Ordering::Relaxed)).max();
        if let Some(micros) = micros.filter(|micros| *micros > 0) {
            std::thread::sleep(Duration::from_micros(micros));
        }
    }

    /// Passes the latches of all that a transaction of several requests wrote.
    pub fn pass(&self, scopes: &BTreeSet<Scope>) -> Vec<Latch<'_>> {
        self.slow_down(scopes.iter().map(|scope| scope.collection));
        let databases: BTreeSet<usize> = scopes.iter().map(|scope| scope.database).collect();
        let collections: BTreeSet<usize> = scopes.iter().map(|scope| scope.collection).collect();
        let databases = databases.iter().map(|stripe| latch(&self.databases[*stripe], false));
        let collections = collections.iter().map(|stripe| latch(&self.collections[*stripe], false));
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

/// Waits until a claim's turn has come, for so long at most; tells whether it has.
///
/// # Errors
/// What `interrupt` says.
pub(crate) fn wait(wait: &Wait, millis_max: u64, interrupt: &Interrupt) -> Result<bool, Error> {
    let (begun, most) = (Instant::now(), Duration::from_millis(millis_max));
    loop {
        let left = most.saturating_sub(begun.elapsed());
        if wait.wait(WAIT_STEP.min(left)) {
            return Ok(true);
        }
        interrupt.check()?;
        if left.is_zero() {
            return Ok(false);
        }
    }
}

/// What the body of a transaction wants done with it.
pub(crate) enum Outcome<T> {
    /// Commit, then answer.
    Commit(T),
    /// Nothing was changed: answer without a commit.
    Discard(T),
}

impl<T> Outcome<T> {
    /// `Commit` if something was `changed`.
    pub fn commit_if(changed: bool, answer: T) -> Outcome<T> {
        if changed { Outcome::Commit(answer) } else { Outcome::Discard(answer) }
    }
}

/// Whether a transaction that met a conflict has what it wanted, after a wait perhaps, and need only begin again.
fn has_its_turn(transaction: &mut Transaction, interrupt: &Interrupt) -> Result<bool, Error> {
    if let Some(blocked) = transaction.blocked() {
        return Ok(wait(&blocked, WAIT_MILLIS_MAX, interrupt)? && transaction.unblock());
    }
    Ok(transaction.is_stale())
}

impl Frond {
    /// Runs `body` in a transaction and commits it; both again while commits conflict. `body` must
    /// be harmless to run again: all it changes is the transaction.
    ///
    /// # Errors
    /// What `body` says; `Conflict` after many attempts; what the commit says.
    pub(crate) fn transact<T>(
        &self,
        scope: Scope,
        mode: LatchMode,
        durability: Durability,
        body: impl FnMut(&mut Transaction) -> Result<Outcome<T>, Error>,
    ) -> Result<T, Error> {
        self.transact_over(scope, &[], mode, durability, body)
    }

    /// As `transact`, for what concerns the trees of the scopes `more`, of the same database, too.
    pub(crate) fn transact_over<T>(
        &self,
        scope: Scope,
        more: &[Scope],
        mode: LatchMode,
        durability: Durability,
        mut body: impl FnMut(&mut Transaction) -> Result<Outcome<T>, Error>,
    ) -> Result<T, Error> {
        let never = Interrupt::default();
        self.attempt(scope, more, mode, durability, &never, |transaction, _| body(transaction))
    }

    /// As `transact`, for whom `interrupt` ends the wait for others, and where `body` is told the moment of the catalog
    /// that was noted before the transaction began: what was known of the catalog at that moment is right in it.
    pub(crate) fn transact_noted<T>(
        &self,
        scope: Scope,
        mode: LatchMode,
        durability: Durability,
        interrupt: &Interrupt,
        body: impl FnMut(&mut Transaction, Option<CatalogEpoch>) -> Result<Outcome<T>, Error>,
    ) -> Result<T, Error> {
        self.attempt(scope, &[], mode, durability, interrupt, body)
    }

    fn attempt<T>(
        &self,
        scope: Scope,
        more: &[Scope],
        mode: LatchMode,
        durability: Durability,
        interrupt: &Interrupt,
        mut body: impl FnMut(&mut Transaction, Option<CatalogEpoch>) -> Result<Outcome<T>, Error>,
    ) -> Result<T, Error> {
        let contention = self.contention();
        let mut stripes: Vec<usize> =
            more.iter().chain([&scope]).map(|scope| scope.collection).collect();
        stripes.sort_unstable();
        stripes.dedup();
        let mut kept: Option<Transaction> = None;
        if mode == LatchMode::Writer {
            contention.slow_down(stripes.iter().copied());
        }
        for attempt in 0..ATTEMPTS_MAX {
            let latches = contention.latches(scope.database, &stripes, mode, attempt);
            let moment = self.catalog_cache().moment();
            let mut transaction = self.begin_attempt(kept.take(), attempt)?;
            let result = match body(&mut transaction, moment) {
                Ok(Outcome::Commit(answer)) => {
                    self.commit(transaction, durability).map(|()| answer)
                }
                Ok(Outcome::Discard(answer)) => Ok(answer),
                Err(error) if error.kind == ErrorKind::Conflict => {
                    drop(latches);
                    if has_its_turn(&mut transaction, interrupt)? {
                        kept = Some(transaction);
                        continue;
                    }
                    drop(transaction);
                    std::thread::sleep(self.wait(attempt));
                    continue;
                }
                Err(error) => Err(error),
            };
            match result {
                Err(error) if error.kind == ErrorKind::Conflict => {
                    drop(latches);
                    // Whoever was first may have to be synced yet: what is claimed now waits for that.
                    if attempt > 0 {
                        std::thread::sleep(self.wait(attempt));
                    }
                }
                result => return result,
            }
        }
        Err(Error::write_conflict())
    }

    /// The transaction of an attempt: the one of the last, with what it has claimed, or a new one.
    fn begin_attempt(&self, kept: Option<Transaction>, attempt: u32) -> Result<Transaction, Error> {
        let lock_mode = if attempt == 0 { LockMode::Optimistic } else { LockMode::Locking };
        match kept {
            Some(mut transaction) => {
                transaction.restart()?;
                Ok(transaction)
            }
            None => Ok(self.engine().begin_as(lock_mode)),
        }
    }

    /// Commits a transaction: the one place where that happens.
    pub(crate) fn commit(
        &self,
        transaction: Transaction,
        durability: Durability,
    ) -> Result<(), Error> {
        let _change =
            system::changes_catalog(&transaction).then(|| self.catalog_cache().begin_change());
        transaction.commit(durability)?;
        Ok(())
    }

    /// How long to wait after a lost attempt: the winner becomes visible once its sync is done, and
    /// an attempt before that is lost too.
    fn wait(&self, attempt: u32) -> Duration {
        let most = (WAIT_MICROS_MIN << attempt.min(10)).min(WAIT_MICROS_MAX);
        let mut dice = [0; 8];
        self.chance().fill(&mut dice);
        Duration::from_micros(most / 2 + u64::from_le_bytes(dice) % most)
    }
}
