//! Transactions: private writes over a snapshot.

pub(crate) mod difference;
mod free_range;
pub(crate) mod held_locks;
mod read;
mod statements;
mod write;
pub(crate) mod write_set;

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use frond_store::{Chunk, ChunkHash, Session};
use frond_tree::Tree;

use crate::change_event::ChangeEvent;
use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
pub use crate::log::TRANSACTION_BYTES_MAX;
use crate::log::retained::RetentionTerm;
use crate::queue::commit_wait::{CommitWait, DurabilityWait};
use crate::queue::conflicts::TransactionStart;
use crate::queue::group::{Group, Outcome};
use crate::shared::Shared;
use crate::snapshot::open_transactions::OpenTransaction;
use crate::snapshot::read_set::{ReadSet, ReadSetMark};
use crate::snapshot::{KeepGoing, Snapshot};
use crate::transaction::free_range::FreeRange;
use crate::transaction::held_locks::{HeldLocks, LockMode};
use crate::transaction::write_set::WriteSet;
use crate::write_memory::WriteReservation;

/// The point at which a commit returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// Once it is on the disk. Concurrent commits share one sync.
    #[default]
    Synced,
    /// At once, unless synced ones that came before are still waiting; synced at an interval
    /// ([`EngineOptions::relaxed_sync_millis`](crate::EngineOptions::relaxed_sync_millis)), or with
    /// the next synced one. A crash may lose it, never half of it, and never one that came before
    /// another that is kept.
    Relaxed,
}

/// A private set of writes over a snapshot, visible all at once when it commits, or never.
///
/// Reads see the transaction's own writes. Dropping it aborts it.
///
/// *Blind writes*: as long as nothing was read (own writes aside), nothing that the transaction
/// writes can depend on what others wrote. It is then as if it began when it commits: its puts and
/// deletes are no conflict with earlier ones of the same keys, and share a sync with them.
///
/// *Others in the way*: a write of a key that another transaction has locked ([`LockMode`]) fails
/// with [`EngineError::Conflict`], and this one stands in the key's queue
/// ([`Transaction::blocked`]). A caller that has waited undoes the statement
/// ([`Transaction::undo_statement`]), moves the snapshot if need be and if that is possible
/// ([`Transaction::refresh_snapshot`]), and runs the statement again. If the client was shown
/// nothing yet, all of the transaction can run again ([`Transaction::restart`]).
pub struct Transaction {
    shared: Arc<Shared>,
    open: OpenTransaction,
    own: WriteSet,
    /// The memory that it takes, if it is large.
    room: Mutex<WriteReservation>,
    held_locks: HeldLocks,
    /// Whether the caller may know something of the snapshot.
    has_read: AtomicBool,
    /// The reads that its client may rely on, if the transaction is interactive.
    reads: Option<Mutex<ReadSet>>,
    /// Keys without a value in the snapshot.
    free_range: FreeRange,
    /// Whether it gives space back; see `space`.
    gives_back: bool,
    /// The term of keeping the log in which it began.
    term: RetentionTerm,
    /// See [`Transaction::require`].
    requires: Option<Sequence>,
    /// Protects from collection what is put for this transaction. Held until it is committed.
    _session: Session,
}

/// A point within a transaction to which it can go back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Savepoint(pub usize);

/// The start of a statement in a transaction: its savepoint, and what had been read by then.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    savepoint: Savepoint,
    reads: Option<ReadSetMark>,
    /// The number of keys that had to be unchanged.
    validated: usize,
}

impl Statement {
    /// Its savepoint.
    pub fn savepoint(&self) -> Savepoint {
        self.savepoint
    }
}

impl Transaction {
    /// Begins a transaction at what is visible now.
    pub(crate) fn begin(shared: Arc<Shared>, lock_mode: LockMode) -> Transaction {
        let open = shared.transactions.begin(&shared.current);
        Transaction::begin_at(shared, open, lock_mode)
    }

    /// Begins a transaction that sees queued commits too, and locks what it writes.
    pub(crate) fn begin_ahead(shared: Arc<Shared>) -> Transaction {
        let open = shared.begin_ahead();
        Transaction::begin_at(shared, open, LockMode::Locking)
    }

    fn begin_at(shared: Arc<Shared>, open: OpenTransaction, lock_mode: LockMode) -> Transaction {
        let session = shared.store.session();
        let held_locks = HeldLocks::new(lock_mode, shared.key_locks.owner());
        let is_interactive = lock_mode == LockMode::Interactive;
        let term = shared.kept.term();
        Transaction {
            shared,
            open,
            own: WriteSet::default(),
            room: Mutex::default(),
            held_locks,
            has_read: AtomicBool::new(is_interactive),
            reads: is_interactive.then(Mutex::default),
            free_range: FreeRange::default(),
            gives_back: false,
            term,
            requires: None,
            _session: session,
        }
    }

    /// Lets it commit only if an earlier transaction of the same request isn't refused: the disk
    /// may be full for that one, and have room again for this one.
    pub fn require(&mut self, earlier: Option<Sequence>) {
        self.requires = earlier;
    }

    /// Says that the transaction gives disk space back, once something is collected: it deletes or
    /// drops. So it is not refused where the disk is as full as it may be.
    pub fn give_back(&mut self) {
        self.gives_back = true;
    }

    /// Whether what it writes goes elsewhere, with all that it refers to: to the members of a set,
    /// or to the log in a bucket.
    pub fn is_carried(&self) -> bool {
        self.shared.order.is_some()
    }

    /// Says that all members that apply it have the chunk `root` with all that it leads to, as what
    /// was read in this transaction says: where the transaction names it, it doesn't travel.
    pub fn note_shared(&mut self, root: ChunkHash) {
        self.own.members_have.roots.push(root);
    }

    /// Says the same of `old`, and that `new`, to which the transaction leads, is much like it.
    pub fn note_similar(&mut self, new: ChunkHash, old: ChunkHash) {
        self.own.members_have.alike.push((new, old));
    }

    /// Returns where the transaction reads, without its own writes. Asking for it counts as reading
    /// all of it: the snapshot can't move any more.
    pub fn snapshot(&self) -> &Snapshot {
        self.note_read();
        self.reading(ReadSet::anything);
        &self.open.snapshot
    }

    /// Has folds of what [`snapshot`](Self::snapshot) shows end with [`EngineError::Interrupted`]
    /// once `keep_going` says no, until the transaction begins anew.
    pub fn interrupt_folds_by(&mut self, keep_going: Arc<KeepGoing>) {
        self.open.snapshot = self.open.snapshot.clone().asking(keep_going);
    }

    /// Returns the Sequence since when no other transaction may have written what this one writes;
    /// `None`: one that has read nothing loses no update.
    fn since(&self) -> Option<Sequence> {
        self.has_read.load(Ordering::Relaxed).then(|| self.open.snapshot.sequence())
    }

    /// Asks that `key` be unchanged since the snapshot when this commits: else
    /// [`EngineError::Conflict`].
    pub fn validate(&mut self, tree: TreeId, key: Bytes) {
        self.note_read();
        self.own.validate(tree, key);
    }

    /// Asks that no key of `tree` be written between the snapshot and the commit: else
    /// [`EngineError::Conflict`].
    pub fn validate_tree(&mut self, tree: TreeId) {
        self.note_read();
        self.own.validate_tree(tree);
    }

    /// Fails as the commit would if what was asked to be unchanged since `statement` began has
    /// changed by now. [`Transaction::is_stale`] then; it is for one that can move its snapshot.
    ///
    /// # Errors
    /// [`EngineError::Conflict`].
    pub fn check_validated(&mut self, statement: Statement) -> Result<(), EngineError> {
        let since = self.open.snapshot.sequence();
        for (tree, key) in self.own.validated_since(statement.validated) {
            self.held_locks.check_unchanged(&self.shared, *tree, key, since)?;
        }
        Ok(())
    }

    /// As [`Transaction::set_base`], of a base whose chunks are durable: the commit syncs none.
    ///
    /// # Errors
    /// [`EngineError::NoTree`] if the id wasn't reserved.
    pub fn set_synced_base(&mut self, tree: TreeId, base: Tree) -> Result<(), EngineError> {
        if !self.shared.tree_ids.is_reserved(tree) {
            return Err(EngineError::NoTree(tree));
        }
        self.own.set_synced_base(tree, Some(base));
        Ok(())
    }

    /// Makes `base` the whole content of `tree`, which begins to exist if it didn't. The base's
    /// chunks must have been put in the store; the commit syncs them. Conflicts with every
    /// concurrent write to the tree. Own writes to it made before are gone.
    ///
    /// # Errors
    /// [`EngineError::NoTree`] if the id wasn't reserved.
    pub fn set_base(&mut self, tree: TreeId, base: Tree) -> Result<(), EngineError> {
        if !self.shared.tree_ids.is_reserved(tree) {
            return Err(EngineError::NoTree(tree));
        }
        self.own.set_base(tree, Some(base));
        Ok(())
    }

    /// Removes a tree with all its content. Conflicts with every concurrent write to it.
    ///
    /// # Errors
    /// [`EngineError::NoTree`] if there is no such tree.
    ///
    /// # Panics
    /// If it is the system tree, which exists in every engine.
    pub fn drop_tree(&mut self, tree: TreeId) -> Result<(), EngineError> {
        assert!(tree != TreeId::SYSTEM);
        self.check_tree(tree)?;
        self.own.set_base(tree, None);
        Ok(())
    }

    /// Takes chunks that values of this transaction refer to: they travel in its log record and
    /// reach packs by folding.
    pub fn put_chunks(&mut self, chunks: &[Chunk]) {
        chunks.iter().for_each(|chunk| self.own.put_chunk(chunk));
    }

    /// Makes room in memory for `bytes` more that will be taken until this is committed: before
    /// they are. Where large writes take all that there is for them, this waits; `check` is asked
    /// now and then whether to go on. A transaction of several requests never waits: others would
    /// wait for its client.
    ///
    /// # Errors
    /// The error of `check`.
    pub fn make_room<E>(&self, bytes: u64, check: impl Fn() -> Result<(), E>) -> Result<(), E> {
        if self.held_locks.lock_mode == LockMode::Interactive {
            return Ok(());
        }
        self.shared.write_memory.grow(&mut lock(&self.room), bytes, check)
    }

    /// Forgets all that was written, and gives back what memory it took; what was locked stays.
    /// For one that is going to wait for others and to begin again then.
    pub fn give_up_writes(&mut self) {
        self.own = WriteSet::default();
        self.room = Mutex::default();
    }

    /// Records for followers of the log what this transaction changes: undone with its savepoints.
    /// Only where the engine keeps it ([`Engine::records_events`](crate::Engine::records_events)).
    pub fn record_event(&mut self, event: ChangeEvent) {
        if self.shared.kept.is_on() {
            self.own.record_event(event);
        }
    }

    /// The events so far.
    pub fn events(&self) -> &[ChangeEvent] {
        self.own.events()
    }

    /// Ends it without a commit. Returns once what it read may be passed on: at once unless it was
    /// begun ahead.
    ///
    /// # Errors
    /// [`EngineError::Withdrawn`] if some of what it could read was refused;
    /// [`EngineError::Closed`] if it will not be visible in this process.
    pub fn end(self) -> Result<(), EngineError> {
        self.end_while(&|| true)
    }

    /// As [`Transaction::end`], for a caller that may be interrupted while it waits.
    ///
    /// # Errors
    /// As `end`; [`EngineError::Interrupted`].
    pub fn end_while(mut self, keep_going: &dyn Fn() -> bool) -> Result<(), EngineError> {
        // Before the wait: nothing was written that others would have to see.
        self.held_locks.release(&self.shared);
        self.shared.await_shown(&self.open.snapshot, keep_going)
    }

    /// Makes all writes visible and, if `durability` says so, durable. A transaction without
    /// writes returns its snapshot's Sequence, once what it could read is as durable as asked.
    ///
    /// # Errors [`EngineError::Conflict`] if another transaction that wrote one of these keys
    /// committed since the snapshot, and this one has read something; or if another has locked one;
    /// or if a tree that it writes to was replaced or dropped since: nothing was written.
    /// [`EngineError::Store`] if the disk is full: nothing was written either.
    /// [`EngineError::Closed`] if a write or sync failed before: nothing was written.
    /// [`EngineError::Unknown`] if one failed now: only opening the directory again shows whether
    /// this transaction was kept. [`EngineError::Withdrawn`] if it was begun ahead, and what it
    /// could read was refused, or if the log began to be kept since it was begun: nothing was
    /// written.
    pub fn commit(self, durability: Durability) -> Result<Sequence, EngineError> {
        self.commit_while(durability, &|| true)
    }

    /// As [`Transaction::commit`], for a caller that may be interrupted while it waits for room in
    /// memory: `keep_going` is asked each millisecond then.
    ///
    /// # Errors
    /// As `commit`; [`EngineError::Interrupted`].
    pub fn commit_while(
        self,
        durability: Durability,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Sequence, EngineError> {
        self.commit_as(durability, keep_going, DurabilityWait::While(&|| true))
    }

    /// As [`Transaction::commit_while`], for a caller that may also be interrupted while it waits
    /// for a bucket that has the log.
    ///
    /// # Errors
    /// As `commit_while`; [`EngineError::Unawaited`] if it may have been written, or may yet be.
    pub fn commit_unless_interrupted(
        self,
        durability: Durability,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Sequence, EngineError> {
        self.commit_as(durability, keep_going, DurabilityWait::While(keep_going))
    }

    /// Gives the transaction its place in the log, and leaves it to its caller to ask later what
    /// became of it ([`PendingCommit::wait`]): so that many, one after the other, share a sync.
    /// Until then nothing of it may be passed on, and only a transaction that begins ahead sees it.
    ///
    /// # Errors
    /// As [`Transaction::commit_while`] before it has its place.
    pub fn commit_pending(
        mut self,
        durability: Durability,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<PendingCommit, EngineError> {
        let is_empty = self.own.is_empty();
        let sequence = self.commit_in_place(durability, keep_going, DurabilityWait::Never)?;
        Ok(self.unawaited((!is_empty).then_some((sequence, durability))))
    }

    /// As [`Transaction::commit_pending`], for a caller that has what becomes of it handed on
    /// ([`PendingCommit::hand_on`]). Where the log lies in a bucket, it is awaited here.
    ///
    /// # Errors
    /// As [`Transaction::commit_unless_interrupted`].
    pub fn commit_handed_on(
        mut self,
        durability: Durability,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<PendingCommit, EngineError> {
        let is_empty = self.own.is_empty();
        let group = Cell::default();
        let sequence =
            self.commit_in_place(durability, keep_going, DurabilityWait::HandedOn(&group))?;
        let mut pending = self.unawaited((!is_empty).then_some((sequence, durability)));
        pending.group = group.into_inner().map(|group| {
            let shared = Arc::clone(&pending.transaction.shared);
            Unled { shared, group: Some(group) }
        });
        Ok(pending)
    }

    /// Ends a transaction that has written nothing, for a caller that waits later until what it
    /// could read may be passed on.
    pub fn end_pending(self) -> PendingCommit {
        self.unawaited(None)
    }

    fn unawaited(mut self, place: Option<(Sequence, Durability)>) -> PendingCommit {
        self.give_up_writes();
        self.held_locks.release(&self.shared);
        PendingCommit { group: None, transaction: self, place }
    }

    /// Commits; `keep_going` is asked before it has its place, and `for_log` says what then.
    fn commit_as(
        mut self,
        durability: Durability,
        keep_going: &dyn Fn() -> bool,
        for_log: DurabilityWait<'_>,
    ) -> Result<Sequence, EngineError> {
        self.commit_in_place(durability, keep_going, for_log)
    }

    fn commit_in_place(
        &mut self,
        durability: Durability,
        keep_going: &dyn Fn() -> bool,
        for_log: DurabilityWait<'_>,
    ) -> Result<Sequence, EngineError> {
        if let Err(error) = self.check_size() {
            // Its reads may have made it large.
            self.held_locks.release(&self.shared);
            let shown = self.shared.await_shown(&self.open.snapshot, &|| true);
            return Err(shown.err().unwrap_or(error));
        }
        if self.own.is_empty() {
            let seen = self.open.snapshot.sequence();
            self.held_locks.release(&self.shared);
            if !matches!(for_log, DurabilityWait::While(_)) {
                return Ok(seen);
            }
            self.shared.await_shown(&self.open.snapshot, keep_going)?;
            if durability == Durability::Synced {
                // A transaction that found nothing to change relies on what was there.
                self.shared.make_durable(seen)?;
            }
            return Ok(seen);
        }
        self.make_foreign_durable()?;
        let own = std::mem::take(&mut self.own);
        let has_read = self.has_read.load(Ordering::Relaxed);
        let beginning = TransactionStart {
            sequence: self.open.snapshot.sequence(),
            has_read,
            without_claims: (self.held_locks.lock_mode == LockMode::Optimistic)
                .then_some(self.held_locks.owner),
            gives_back: self.gives_back,
            ahead: self.open.snapshot.as_ahead(),
            term: self.term,
            requires: self.requires,
        };
        let patience = CommitWait { for_room: keep_going, for_log };
        self.shared.commit(beginning, own, durability, &mut self.held_locks, patience)
    }

    /// Makes sure that what the transaction refers to and didn't bring is in packs, and durable:
    /// the log must not name what a power cut may take. If another transaction brought it, the
    /// value that it comes from may be replaced before this one commits, and then nothing else
    /// holds it.
    fn make_foreign_durable(&self) -> Result<(), EngineError> {
        let foreign = self.own.foreign();
        if foreign.is_empty() {
            return Ok(());
        }
        let made_durable = self.shared.store.sync_these(&foreign);
        self.open.snapshot.check_age()?;
        self.shared.store_synced(made_durable)
    }

    fn check_size(&self) -> Result<(), EngineError> {
        let bytes = self.own.bytes();
        if bytes > TRANSACTION_BYTES_MAX {
            return Err(EngineError::TooLarge { bytes, max: TRANSACTION_BYTES_MAX });
        }
        Ok(())
    }
}

/// A transaction that is queued, or has written nothing, and whose outcome isn't known yet. Dropped
/// without a wait, it becomes durable with what is behind it.
#[must_use = "nothing of it may be told before it is awaited"]
pub struct PendingCommit {
    /// The group to which it belongs, where that is to hand on what becomes of it.
    group: Option<Unled>,
    /// Protects what was put for it.
    transaction: Transaction,
    /// Its place, and how durable it shall be.
    place: Option<(Sequence, Durability)>,
}

impl PendingCommit {
    /// Its place; `None` if it has written nothing.
    pub fn sequence(&self) -> Option<Sequence> {
        self.place.map(|(sequence, _)| sequence)
    }

    /// Waits until the transaction is visible and as durable as asked; or, if it has written
    /// nothing, until what it could read is visible.
    ///
    /// # Errors
    /// As [`Transaction::commit_unless_interrupted`] once it has its place, or as
    /// [`Transaction::end_while`].
    pub fn wait(self, keep_going: &dyn Fn() -> bool) -> Result<(), EngineError> {
        let PendingCommit { transaction, place, .. } = self;
        match place {
            Some((sequence, durability)) => {
                transaction.shared.recheck_while(sequence, durability, keep_going)
            }
            None => transaction.end_while(keep_going),
        }
    }
}

impl PendingCommit {
    /// Whether what becomes of it can be handed on: it isn't known yet, and no bucket has the log.
    pub fn can_hand_on(&self) -> bool {
        self.group.is_some()
    }

    /// Has `then` called with what [`PendingCommit::wait`] would return: by the thread that learns
    /// it first, which may be this one. It leads groups of commits meanwhile, unless another does,
    /// so it returns late. `then` must not wait for a commit, nor for anyone who may wait for one.
    pub fn hand_on(mut self, then: impl FnOnce(Result<(), EngineError>) + Send + 'static) {
        let Some(mut unled) = self.group.take() else { return then(self.wait(&|| true)) };
        let Some(group) = unled.group.take() else { return then(self.wait(&|| true)) };
        let shared = Arc::clone(&unled.shared);
        let follower = Box::new(move |outcome: Outcome| {
            let done = match outcome {
                Outcome::Durable => Ok(()),
                Outcome::Recheck => self.wait(&|| true),
            };
            then(done);
        });
        shared.hand_on(&group, follower);
    }
}

/// A member of a group, for which no thread leads or waits yet.
struct Unled {
    shared: Arc<Shared>,
    /// Taken by its end.
    group: Option<Arc<Group>>,
}

impl Drop for Unled {
    fn drop(&mut self) {
        if self.group.is_some() {
            // Others may wait behind it.
            self.shared.call_for_handed_on();
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.held_locks.release(&self.shared);
        self.shared.transactions.end(&self.open);
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().expect("no panic while the lock is held")
}
