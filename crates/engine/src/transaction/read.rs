//! Reads within a transaction: its own writes over its snapshot.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use frond_store::ChunkStore;
use frond_tree::{Bounds, Direction, Tree, TreeFormat, Value};

use super::{Transaction, lock};
use crate::error::EngineError;
use crate::ids::TreeId;
use crate::overlay::interleave::Interleave;
use crate::snapshot::cursor::EntryCursor;
use crate::snapshot::read_set::ReadSet;
use crate::transaction::write_set::StoreWithOwn;

impl Transaction {
    pub(super) fn note_read(&self) {
        // `commit` has the transaction to itself, and so sees what all threads noted.
        self.has_read.store(true, Ordering::Relaxed);
    }

    /// Notes what is read; nothing unless the snapshot may have to move.
    pub(super) fn reading<T>(&self, note: impl FnOnce(&mut ReadSet) -> T) -> Option<T> {
        self.reads.as_ref().map(|reads| note(&mut lock(reads)))
    }

    /// Whether the tree exists, as this transaction sees it.
    pub fn has_tree(&self, tree: TreeId) -> bool {
        if let Some(base) = self.own.base(tree) {
            return base.is_some();
        }
        self.note_read();
        self.reading(|reads| reads.tree(tree));
        self.open.snapshot.has_tree(tree)
    }

    /// The format of a tree.
    ///
    /// # Errors
    /// [`EngineError::NoTree`] if there is none in the snapshot, or this transaction dropped it.
    pub fn format(&self, tree: TreeId) -> Result<TreeFormat, EngineError> {
        match self.own.base(tree) {
            Some(base) => base.map(|base| base.format).ok_or(EngineError::NoTree(tree)),
            None => {
                self.note_read();
                self.reading(|reads| reads.tree(tree));
                self.open.snapshot.format(tree)
            }
        }
    }

    /// Fails if there is no such tree. That there is one isn't noted as read: a write to it is
    /// refused if it was replaced or dropped meanwhile, and what takes a write back notes a read.
    pub(super) fn check_tree(&self, tree: TreeId) -> Result<(), EngineError> {
        let in_snapshot = || self.open.snapshot.has_tree(tree);
        if self.own.base(tree).map_or_else(in_snapshot, |base| base.is_some()) {
            return Ok(());
        }
        self.note_read();
        self.reading(|reads| reads.tree(tree));
        Err(EngineError::NoTree(tree))
    }

    /// The base that this transaction gave the tree with [`Transaction::set_base`]; `None` if it
    /// gave none, or dropped the tree.
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

    /// Returns how many keys the transaction itself has written.
    pub fn written_count(&self) -> usize {
        self.own.written_count()
    }

    /// Whether this transaction has written `key`.
    pub fn has_written(&self, tree: TreeId, key: &[u8]) -> bool {
        self.own.get(tree, key).is_some()
    }

    /// Returns the value of `key`, own writes included.
    ///
    /// # Errors
    /// [`EngineError::NoTree`] if there is no such tree in the snapshot, or this transaction
    /// dropped it; [`EngineError::SnapshotTooOld`]; [`EngineError::Store`] and
    /// [`EngineError::Tree`] if a chunk can't be read or is damaged.
    pub fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Value>, EngineError> {
        if let Some(value) = self.own.get(tree, key) {
            return Ok(value);
        }
        match self.own.base(tree) {
            Some(Some(base)) => Ok(base.get(&**self.open.snapshot.store(), key)?),
            Some(None) => Err(EngineError::NoTree(tree)),
            None => {
                self.note_read();
                self.reading(|reads| reads.key(tree, key));
                self.open.snapshot.get(tree, key)
            }
        }
    }

    /// Returns the entries within `bounds`, own writes included as they are now.
    ///
    /// # Errors
    /// [`EngineError::NoTree`] as for [`Transaction::get`]. Chunks are read by the cursor.
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
            None => {
                self.note_read();
                let reach = self.reading(|reads| reads.range(tree, &bounds, direction)).flatten();
                let cursor = self.open.snapshot.range_under(tree, bounds, direction, own)?;
                Ok(cursor.noting(reach))
            }
        }
    }

    /// Returns how many entries a tree has, own writes included as they are now.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn count(&self, tree: TreeId) -> Result<u64, EngineError> {
        self.count_range(tree, &Bounds::all())
    }

    /// Returns how many entries lie within `bounds`, own writes included as they are now: each of
    /// these is looked up below.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn count_range(&self, tree: TreeId, bounds: &Bounds) -> Result<u64, EngineError> {
        let snapshot = &self.open.snapshot;
        let (below, change) = match self.own.base(tree) {
            Some(Some(base)) => {
                let store = &**snapshot.store();
                let had = |key: &[u8]| Ok(base.get(store, key)?.is_some());
                (base.count_range(store, bounds)?, self.own.change(tree, bounds, had)?)
            }
            Some(None) => return Err(EngineError::NoTree(tree)),
            None => {
                self.note_read();
                self.reading(|reads| reads.whole_range(tree, bounds));
                let had = |key: &[u8]| Ok(snapshot.get(tree, key)?.is_some());
                (snapshot.count_range(tree, bounds)?, self.own.change(tree, bounds, had)?)
            }
        };
        Ok(below.saturating_add_signed(change))
    }

    /// About how many entries lie within `bounds`, for choosing between ways to find them; own
    /// writes not counted. No answer may depend on it: it doesn't keep the snapshot from moving.
    ///
    /// # Errors
    /// As [`Snapshot::get`](crate::Snapshot::get).
    pub fn estimate_range(&self, tree: TreeId, bounds: &Bounds) -> Result<u64, EngineError> {
        self.note_read();
        self.open.snapshot.estimate_range(tree, bounds)
    }

    /// Bytes of a tree's keys and values, own writes not counted.
    ///
    /// # Errors
    /// As [`Snapshot::get`](crate::Snapshot::get).
    pub fn tree_bytes(&self, tree: TreeId) -> Result<u64, EngineError> {
        self.note_read();
        self.reading(|reads| reads.whole_range(tree, &Bounds::all()));
        self.open.snapshot.bytes(tree)
    }

    /// The OR of the flags of a tree's entries, own writes not counted.
    ///
    /// # Errors
    /// As [`Snapshot::get`](crate::Snapshot::get).
    pub fn flags(&self, tree: TreeId) -> Result<u8, EngineError> {
        self.note_read();
        let flags = self.open.snapshot.flags(tree)?;
        self.reading(|reads| reads.flags(tree, flags));
        Ok(flags)
    }

    /// Reads a value's bytes, wherever they lie (chunks put by this transaction included).
    ///
    /// # Errors
    /// [`EngineError::Store`] and [`EngineError::Tree`] if a chunk can't be read or is damaged.
    pub fn read(&self, value: &Value) -> Result<Bytes, EngineError> {
        // A transaction with a value that it didn't write has read already: the bytes follow.
        let store = &**self.open.snapshot.store();
        Ok(value.read(&StoreWithOwn::new(&self.own, store))?)
    }

    /// The store as this transaction sees it: with the chunks that it put.
    pub fn store(&self) -> impl ChunkStore + '_ {
        self.note_read();
        StoreWithOwn::new(&self.own, &**self.open.snapshot.store())
    }
}
