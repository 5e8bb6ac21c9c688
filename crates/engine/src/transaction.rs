//! Transactions: private writes over a snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use frond_store::{Chunk, ChunkStore, Session, StoreError};
use frond_tree::format::KEY_BYTES_MAX;
use frond_tree::{Bounds, Direction, Tree, TreeError, Value};

use crate::conflict::Beginning;
use crate::cursor::EntryCursor;
use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::open_transactions::OpenTransaction;
use crate::overlay::interleave::Interleave;
use crate::overlay::run::DELETION_FLAG;
use crate::own_writes::{OwnWrites, StoreWithOwn};
use crate::shared::Shared;
use crate::snapshot::Snapshot;

/// The most that a transaction may hold; what is larger replaces a tree's base.
pub const TRANSACTION_BYTES_MAX: u64 = 1 << 30;

/// When a commit returns.
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
pub struct Transaction {
    shared: Arc<Shared>,
    open: OpenTransaction,
    own: OwnWrites,
    /// Whether the caller may know something of the snapshot.
    has_read: AtomicBool,
    /// Protects from collection what is put for this transaction. Held until it is committed.
    _session: Session,
}

/// A point within a transaction to which it can go back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Savepoint(pub usize);

impl Transaction {
    /// Begins a transaction at what is visible now.
    pub(crate) fn begin(shared: Arc<Shared>) -> Transaction {
        let open = shared.transactions.begin(&shared.current);
        let session = shared.store.session();
        let (own, has_read) = (OwnWrites::default(), AtomicBool::new(false));
        Transaction { shared, open, own, has_read, _session: session }
    }

    /// What the transaction was begun at, without its own writes. Asking for it counts as reading.
    pub fn snapshot(&self) -> &Snapshot {
        self.note_read();
        &self.open.snapshot
    }

    fn note_read(&self) {
        // Whoever commits has the transaction for itself, and so sees what all threads noted.
        self.has_read.store(true, Ordering::Relaxed);
    }

    /// Whether the tree exists, as this transaction sees it.
    pub fn has_tree(&self, tree: TreeId) -> bool {
        self.own.base(tree).map_or_else(|| self.snapshot().has_tree(tree), |base| base.is_some())
    }

    /// Fails if there is no such tree. That there is one isn't noted as read: a write to it is
    /// refused if it was replaced or dropped meanwhile, and what takes a write back notes a read.
    fn check_tree(&self, tree: TreeId) -> Result<(), EngineError> {
        let in_snapshot = || self.open.snapshot.has_tree(tree);
        if self.own.base(tree).map_or_else(in_snapshot, |base| base.is_some()) {
            return Ok(());
        }
        self.note_read();
        Err(EngineError::NoTree(tree))
    }

    /// The base that this transaction gave the tree with [`Transaction::set_base`]; `None` if it gave
    /// none, or dropped the tree.
    pub fn own_base(&self, tree: TreeId) -> Option<Tree> {
        self.own.base(tree).flatten()
    }

    /// Whether the transaction itself wrote a key of `tree` within `bounds`.
    pub fn wrote(&self, tree: TreeId, bounds: &Bounds) -> bool {
        self.own.wrote(tree, bounds)
    }

    /// About how much memory the transaction's own writes take.
    pub fn bytes(&self) -> u64 {
        self.own.bytes()
    }

    /// Returns the value of `key`, own writes included.
    pub fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Value>, EngineError> {
        if let Some(value) = self.own.get(tree, key) {
            return Ok(value);
        }
        match self.own.base(tree) {
            Some(Some(base)) => Ok(base.get(&**self.open.snapshot.store(), key)?),
            Some(None) => Err(EngineError::NoTree(tree)),
            None => self.snapshot().get(tree, key),
        }
    }

    /// Returns the entries within `bounds`, own writes included as they are now.
    pub fn range(
        &self,
        tree: TreeId,
        bounds: Bounds,
        direction: Direction,
    ) -> Result<EntryCursor, EngineError> {
        let own = self.own.source(tree, &bounds, direction);
        match self.own.base(tree) {
            Some(Some(base)) => {
                let overlay = Interleave::new(own.into_iter().collect(), direction);
                let base = base.range(self.open.snapshot.store(), bounds, direction);
                Ok(EntryCursor::new(overlay, Some(base), direction, None))
            }
            Some(None) => Err(EngineError::NoTree(tree)),
            None => self.snapshot().range_under(tree, bounds, direction, own),
        }
    }

    /// Reads a value's bytes, wherever they lie (chunks put by this transaction included).
    pub fn read(&self, value: &Value) -> Result<Bytes, EngineError> {
        // Whoever has a value that isn't its own has read already: the bytes follow from it.
        let store = &**self.open.snapshot.store();
        Ok(value.read(&StoreWithOwn { own: &self.own, store })?)
    }

    /// The store as this transaction sees it: with the chunks that it put.
    pub fn store(&self) -> impl ChunkStore + '_ {
        StoreWithOwn { own: &self.own, store: &**self.snapshot().store() }
    }

    /// Gives `key` a value. The highest of its flags is the engine's and must not be set.
    pub fn put(&mut self, tree: TreeId, key: Bytes, value: Value) -> Result<(), EngineError> {
        self.write(tree, key, Some(value))
    }

    /// Removes `key`.
    pub fn delete(&mut self, tree: TreeId, key: Bytes) -> Result<(), EngineError> {
        self.write(tree, key, None)
    }

    fn write(&mut self, tree: TreeId, key: Bytes, value: Option<Value>) -> Result<(), EngineError> {
        self.check_tree(tree)?;
        if let Some(flags) = value.as_ref().map(|value| value.flags)
            && flags & DELETION_FLAG != 0
        {
            // Only what came from elsewhere, as a clone, can have it.
            let what = format!("a value with flags {flags:02x}: the highest is reserved");
            let file = format!("tree {}", tree.0);
            return Err(StoreError::Damaged { file, offset: 0, what }.into());
        }
        if key.len() > KEY_BYTES_MAX {
            return Err(TreeError::KeyTooLong { bytes: key.len(), max: KEY_BYTES_MAX }.into());
        }
        self.own.write(tree, key, value);
        self.check_size()
    }

    /// Asks that `key` be unchanged since the snapshot when this commits: else
    /// [`EngineError::Conflict`].
    pub fn validate(&mut self, tree: TreeId, key: Bytes) {
        self.note_read();
        self.own.validate(tree, key);
    }

    /// Makes `base` the whole content of `tree`, which begins to exist if it didn't. The base's
    /// chunks must have been put in the store; the commit syncs them. Conflicts with every
    /// concurrent write to the tree. Own writes to it made before are gone.
    pub fn set_base(&mut self, tree: TreeId, base: Tree) -> Result<(), EngineError> {
        if !self.shared.is_reserved(tree) {
            return Err(EngineError::NoTree(tree));
        }
        self.own.set_base(tree, Some(base));
        Ok(())
    }

    /// Removes a tree with all its content. Conflicts with every concurrent write to it.
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

    /// Attaches an opaque event, kept in the log with the transaction.
    pub fn set_event(&mut self, event: Bytes) {
        self.own.set_event(event);
    }

    /// Marks this point.
    pub fn savepoint(&mut self) -> Savepoint {
        Savepoint(self.own.savepoint())
    }

    /// Forgets all savepoints, and with them what their writes replaced: it would take memory until
    /// the transaction ends.
    pub fn forget_savepoints(&mut self) {
        self.own.forget_savepoints();
    }

    /// Undoes every write since `savepoint`, which stays valid.
    pub fn rollback_to(&mut self, savepoint: Savepoint) {
        // That what is undone now was possible told that its tree existed.
        self.note_read();
        self.own.rollback_to(savepoint.0);
    }

    /// Makes all writes visible and, if `durability` says so, durable. A transaction without
    /// writes costs nothing and returns its snapshot's Sequence.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] if another transaction that wrote one of these keys committed
    /// since the snapshot, and this one has read something; or if a tree that it writes to was
    /// replaced or dropped since: nothing was written. [`EngineError::Store`] if the disk is full: nothing
    /// was written either. [`EngineError::Closed`] if a write or sync failed, now or before: only
    /// opening the directory again tells whether this transaction survived.
    pub fn commit(mut self, durability: Durability) -> Result<Sequence, EngineError> {
        self.check_size()?;
        if self.own.is_empty() {
            return Ok(self.open.snapshot.sequence());
        }
        let own = std::mem::take(&mut self.own);
        let has_read = self.has_read.load(Ordering::Relaxed);
        let beginning = Beginning { sequence: self.open.snapshot.sequence(), has_read };
        self.shared.commit(beginning, own, durability)
    }

    fn check_size(&self) -> Result<(), EngineError> {
        let bytes = self.own.bytes();
        if bytes > TRANSACTION_BYTES_MAX {
            return Err(EngineError::TooLarge { bytes, max: TRANSACTION_BYTES_MAX });
        }
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.shared.transactions.end(&self.open);
    }
}
