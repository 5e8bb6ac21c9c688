//! The ordered map: its types; the modules below do the work.
//!
//! Reading order: `node` (the bytes of a node), `search`, `part` and `read` (get, count, rank,
//! select), `cached levels` (get, again and again), `cursor` (range), `writer`, `build` and `load`,
//! `apply`, `diff`, `merge`, `check`.
//!
//! *Invariants*: 1. Keys ascend strictly through each level. 2. Each node but the last of its level
//! ends where the boundary rule says, given its own entries; the last one may end earlier. 3. A
//! level has one node only if it is the root's. 4. An interior entry has the last key, the sums and
//! the flags of its subtree. So the content alone decides every byte (`Tree::check` verifies this).

mod apply;
mod apply_many;
mod build;
mod cached_levels;
mod check;
mod cursor;
mod diff;
mod entry;
mod key_prefixes;
mod load;
mod merge;
mod node;
mod read;
mod search;
mod writer;

use bytes::Bytes;
use frond_store::{Chunk, ChunkHash};

use crate::error::TreeError;
use crate::format::TreeFormat;
use crate::map::node::MapNode;
use crate::value::Value;

pub use apply_many::Edits;
pub use cached_levels::CachedLevels;
pub use cursor::Cursor;
pub use diff::Diff;
pub use merge::MergeNote;
pub use node::EntryRef;

/// An ordered map of bytes: a root hash and the format it was made with. The nodes lie in a store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tree {
    /// The top node. An empty tree has one too: the empty leaf.
    pub root: ChunkHash,
    /// Fixed for the tree's life.
    pub format: TreeFormat,
}

impl Tree {
    /// The nodes directly below a node: none below a leaf, whose values may refer to other chunks.
    ///
    /// # Errors
    /// [`TreeError::Damaged`] if the chunk is no node.
    pub fn children(node: &Chunk) -> Result<Vec<ChunkHash>, TreeError> {
        let node = MapNode::open(node.clone())?;
        let count = if node.is_leaf() { 0 } else { node.entry_count() };
        Ok((0..count).map(|position| node.child_hash(position)).collect())
    }
}

/// A key and its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The key.
    pub key: Bytes,
    /// Its value.
    pub value: Value,
}

impl Entry {
    /// The entry, borrowed.
    pub fn borrowed(&self) -> EntryRef<'_> {
        let Value { flags, content } = &self.value;
        EntryRef { key: &self.key, flags: *flags, content: content.borrowed() }
    }
}

/// A change to one key.
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

/// The direction of a cursor.
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

    /// Whether these are all keys that begin with `start`.
    pub fn is_of_prefix(&self) -> bool {
        let Some(start) = &self.start else { return false };
        match (start.iter().rposition(|byte| *byte != 0xff), &self.end) {
            (None, end) => end.is_none(),
            (Some(_), None) => false,
            (Some(position), Some(end)) => {
                end.len() == position + 1
                    && end[..position] == start[..position]
                    && end[position] == start[position] + 1
            }
        }
    }
}

/// A key that both sides of a merge changed, and not to the same value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MergeConflict {
    /// The key.
    pub key: Bytes,
    /// The value in the base.
    pub base: Option<Value>,
    /// The value on our side.
    pub ours: Option<Value>,
    /// The value on their side.
    pub theirs: Option<Value>,
}

/// A node's summary of its whole subtree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Entries.
    pub count: u64,
    /// Bytes of all keys.
    pub key_bytes: u64,
    /// Bytes of all values, those out of line too.
    pub value_bytes: u64,
    /// The OR of all values' flags.
    pub flags: u8,
}

impl Summary {
    /// Adds another subtree. Sums of what is damaged or hostile stop at the largest number.
    pub(crate) fn add(&mut self, other: &Summary) {
        self.count = self.count.saturating_add(other.count);
        self.key_bytes = self.key_bytes.saturating_add(other.key_bytes);
        self.value_bytes = self.value_bytes.saturating_add(other.value_bytes);
        self.flags |= other.flags;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_a_prefix_are_known() {
        let keys: [&[u8]; 7] = [b"", b"a", b"ab", b"a\xff", b"b", b"\xff", b"\xff\xff"];
        for start in keys {
            for end in keys.into_iter().map(Some).chain([None]) {
                let end = end.map(Bytes::copy_from_slice);
                let bounds = Bounds { start: Some(Bytes::copy_from_slice(start)), end };
                let is_prefix = bounds == Bounds::prefix(start);
                assert_eq!(bounds.is_of_prefix(), is_prefix, "{bounds:?}");
            }
        }
        assert!(!Bounds::all().is_of_prefix(), "it has no start");
    }
}
