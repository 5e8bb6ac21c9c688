//! Snapshots and transactions.

use bytes::Bytes;
use frond_store::Chunk;
use frond_tree::{Bounds, Direction, Entry, Tree, TreeFormat, Value};

use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};

/// When a commit returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// Once it is on the disk. Concurrent commits share one sync.
    #[default]
    Synced,
    /// At once; synced at an interval. A crash may lose it, never half of it.
    Relaxed,
}

/// All trees as they were at one moment. Cloning is cheap; writers and folds never disturb it.
#[derive(Clone)]
pub struct Snapshot {}

impl Snapshot {
    /// The moment.
    pub fn sequence(&self) -> Sequence {
        todo!()
    }

    /// Whether the tree exists.
    pub fn has_tree(&self, _tree: TreeId) -> bool {
        todo!()
    }

    /// The format of a tree.
    pub fn format(&self, _tree: TreeId) -> Result<TreeFormat, EngineError> {
        todo!()
    }

    /// Returns the value of `key`.
    pub fn get(&self, _tree: TreeId, _key: &[u8]) -> Result<Option<Value>, EngineError> {
        todo!()
    }

    /// Returns the entries within `bounds`, in `direction`. The cursor owns what it needs.
    pub fn range(
        &self,
        _tree: TreeId,
        _bounds: Bounds,
        _direction: Direction,
    ) -> Result<EntryCursor, EngineError> {
        todo!()
    }

    /// How many entries: O(log n) plus the overlay's entries of this tree.
    pub fn count(&self, _tree: TreeId) -> Result<u64, EngineError> {
        todo!()
    }

    /// How many entries lie in `bounds`: O(log n) plus the overlay's entries in it.
    pub fn count_range(&self, _tree: TreeId, _bounds: &Bounds) -> Result<u64, EngineError> {
        todo!()
    }

    /// The OR of all entries' flags; may include those of entries deleted since the last fold.
    pub fn flags(&self, _tree: TreeId) -> Result<u8, EngineError> {
        todo!()
    }

    /// Reads a value's bytes, wherever they lie.
    pub fn read(&self, _value: &Value) -> Result<Bytes, EngineError> {
        todo!()
    }

    /// Returns the tree's base if the overlay holds nothing for it in this snapshot.
    pub fn clean_base(&self, _tree: TreeId) -> Result<Option<Tree>, EngineError> {
        todo!()
    }
}

/// A private set of writes over a snapshot, visible all at once when it commits, or never.
///
/// Reads see the transaction's own writes. Dropping it aborts it.
pub struct Transaction {}

/// A point within a transaction to which it can go back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Savepoint(pub usize);

impl Transaction {
    /// What the transaction was begun at, without its own writes.
    pub fn snapshot(&self) -> &Snapshot {
        todo!()
    }

    /// Returns the value of `key`, own writes included.
    pub fn get(&self, _tree: TreeId, _key: &[u8]) -> Result<Option<Value>, EngineError> {
        todo!()
    }

    /// Returns the entries within `bounds`, own writes included as they are now.
    pub fn range(
        &self,
        _tree: TreeId,
        _bounds: Bounds,
        _direction: Direction,
    ) -> Result<EntryCursor, EngineError> {
        todo!()
    }

    /// Reads a value's bytes, wherever they lie (chunks put by this transaction included).
    pub fn read(&self, _value: &Value) -> Result<Bytes, EngineError> {
        todo!()
    }

    /// Gives `key` a value.
    pub fn put(&mut self, _tree: TreeId, _key: Bytes, _value: Value) -> Result<(), EngineError> {
        todo!()
    }

    /// Removes `key`.
    pub fn delete(&mut self, _tree: TreeId, _key: Bytes) -> Result<(), EngineError> {
        todo!()
    }

    /// Asks that `key` be unchanged since the snapshot when this commits: else
    /// [`EngineError::Conflict`].
    pub fn validate(&mut self, _tree: TreeId, _key: Bytes) {
        todo!()
    }

    /// Makes `base` the whole content of `tree`, which begins to exist if it didn't. The base's
    /// chunks must have been put in the store; the commit syncs them. Conflicts with every
    /// concurrent write to the tree. Own writes to it made before are gone.
    pub fn set_base(&mut self, _tree: TreeId, _base: Tree) -> Result<(), EngineError> {
        todo!()
    }

    /// Removes a tree with all its content. Conflicts with every concurrent write to it.
    pub fn drop_tree(&mut self, _tree: TreeId) -> Result<(), EngineError> {
        todo!()
    }

    /// Takes chunks that values of this transaction refer to: they travel in its log record and
    /// reach packs by folding.
    pub fn put_chunks(&mut self, _chunks: &[Chunk]) {
        todo!()
    }

    /// Attaches an opaque event, kept in the log with the transaction.
    pub fn set_event(&mut self, _event: Bytes) {
        todo!()
    }

    /// Marks this point.
    pub fn savepoint(&mut self) -> Savepoint {
        todo!()
    }

    /// Undoes every write since `savepoint`, which stays valid.
    pub fn rollback_to(&mut self, _savepoint: Savepoint) {
        todo!()
    }

    /// Makes all writes visible and, if `durability` says so, durable. A transaction without
    /// writes costs nothing and returns its snapshot's Sequence.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] if another transaction that wrote one of these keys committed
    /// since the snapshot: nothing was written.
    pub fn commit(self, _durability: Durability) -> Result<Sequence, EngineError> {
        todo!()
    }
}

/// An iterator over a range of a tree in a snapshot or transaction.
pub struct EntryCursor {}

impl Iterator for EntryCursor {
    type Item = Result<Entry, EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}
