//! The ordered map.

use std::sync::Arc;

use bytes::Bytes;
use frond_store::{ChunkHash, ChunkStore};

use crate::error::TreeError;
use crate::format::TreeFormat;
use crate::value::Value;

/// An ordered map of bytes: a root hash and the format it was made with. The nodes lie in a store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tree {
    /// The top node. An empty tree has one too: the empty leaf.
    pub root: ChunkHash,
    /// Fixed for the tree's life.
    pub format: TreeFormat,
}

/// A key and its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The key.
    pub key: Bytes,
    /// Its value.
    pub value: Value,
}

/// What happens to a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Edit {
    /// The key gets this value, whether it was there or not.
    Put(Value),
    /// The key goes, if it was there.
    Delete,
}

/// A difference between two trees at one key; `from` and `to` differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The key.
    pub key: Bytes,
    /// The value on the left side.
    pub from: Option<Value>,
    /// The value on the right side.
    pub to: Option<Value>,
}

/// Which way a cursor goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the least key up.
    Ascending,
    /// From the greatest key down.
    Descending,
}

/// A half-open range of keys: `start <= key && key < end`; `None` is unbounded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bounds {
    /// The least key.
    pub start: Option<Bytes>,
    /// Greater than the greatest key.
    pub end: Option<Bytes>,
}

impl Bounds {
    /// Every key.
    pub fn all() -> Bounds {
        Bounds::default()
    }

    /// Every key that begins with `prefix`.
    pub fn prefix(prefix: &[u8]) -> Bounds {
        let end = prefix.iter().rposition(|byte| *byte != 0xff).map(|position| {
            let mut end = prefix[..=position].to_vec();
            end[position] += 1;
            end.into()
        });
        Bounds { start: Some(Bytes::copy_from_slice(prefix)), end }
    }
}

impl Tree {
    /// Puts the empty leaf and returns the empty tree.
    pub fn empty(_store: &dyn ChunkStore, _format: TreeFormat) -> Result<Tree, TreeError> {
        todo!()
    }

    /// Builds a tree from `entries`, whose keys ascend strictly: each node is written once.
    pub fn build(
        _store: &dyn ChunkStore,
        _format: TreeFormat,
        _entries: &mut dyn Iterator<Item = Result<Entry, TreeError>>,
    ) -> Result<Tree, TreeError> {
        todo!()
    }

    /// Returns the value of `key`. O(log n) chunks.
    pub fn get(&self, _store: &dyn ChunkStore, _key: &[u8]) -> Result<Option<Value>, TreeError> {
        todo!()
    }

    /// Returns the value of each of `keys`, which ascend strictly, in their order. Each node is
    /// read once however many keys fall into it.
    pub fn get_many(
        &self,
        _store: &dyn ChunkStore,
        _keys: &[&[u8]],
    ) -> Result<Vec<Option<Value>>, TreeError> {
        todo!()
    }

    /// Returns the entries within `bounds`, in `direction`.
    pub fn range(
        &self,
        _store: &Arc<dyn ChunkStore>,
        _bounds: Bounds,
        _direction: Direction,
    ) -> Cursor {
        todo!()
    }

    /// Applies `edits`, whose keys ascend strictly, and returns the new tree: the same root as
    /// `build` gives for the same content. Rewrites only what the edits touch. Chunks are put,
    /// not synced.
    pub fn apply(
        &self,
        _store: &dyn ChunkStore,
        _edits: &mut dyn Iterator<Item = Result<(Bytes, Edit), TreeError>>,
    ) -> Result<Tree, TreeError> {
        todo!()
    }

    /// How many entries. One chunk read.
    pub fn count(&self, _store: &dyn ChunkStore) -> Result<u64, TreeError> {
        todo!()
    }

    /// The OR of the flags of all values. One chunk read.
    pub fn flags(&self, _store: &dyn ChunkStore) -> Result<u8, TreeError> {
        todo!()
    }

    /// How many keys are less than `key`. O(log n) chunks.
    pub fn rank(&self, _store: &dyn ChunkStore, _key: &[u8]) -> Result<u64, TreeError> {
        todo!()
    }

    /// The entry at `position` in key order. O(log n) chunks.
    pub fn select(
        &self,
        _store: &dyn ChunkStore,
        _position: u64,
    ) -> Result<Option<Entry>, TreeError> {
        todo!()
    }

    /// Returns how `to` differs from `self`, in key order; equal subtrees are not read.
    pub fn diff(&self, _store: &Arc<dyn ChunkStore>, _to: &Tree) -> Diff {
        todo!()
    }

    /// Three-way merge: `ours` with the changes from `base` to `theirs`. `resolve` is asked for
    /// each key that both sides changed differently, and answers with the edit to `ours`, or
    /// `None` to leave it as it is. Returns the new tree. Cost follows the two differences.
    pub fn merge(
        _store: &Arc<dyn ChunkStore>,
        _base: &Tree,
        _ours: &Tree,
        _theirs: &Tree,
        _resolve: &mut dyn FnMut(MergeConflict) -> Result<Option<Edit>, TreeError>,
    ) -> Result<Tree, TreeError> {
        todo!()
    }

    /// Walks the whole tree and checks every invariant: order, boundaries, counts, flags, sizes.
    pub fn check(&self, _store: &dyn ChunkStore) -> Result<(), TreeError> {
        todo!()
    }
}

/// A key that both sides of a merge changed, and not to the same value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MergeConflict {
    /// The key.
    pub key: Bytes,
    /// What it was.
    pub base: Option<Value>,
    /// What we made of it.
    pub ours: Option<Value>,
    /// What they made of it.
    pub theirs: Option<Value>,
}

/// An iterator over a range of a tree.
pub struct Cursor {}

impl Iterator for Cursor {
    type Item = Result<Entry, TreeError>;

    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}

/// An iterator over the differences of two trees.
pub struct Diff {}

impl Iterator for Diff {
    type Item = Result<Change, TreeError>;

    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}
