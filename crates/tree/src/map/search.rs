//! A node as point reads use it.
//!
//! Checking all entries takes a whole chunk through the processor's cache, and a point read wants
//! eight keys of it. So a search checks the offset table alone, and then the one entry that it
//! finds (3.7 us a `get` before, 2.2 after, in a million entries of 100 bytes). A key that claims
//! to be longer than its entry can lead the search astray, but not beyond the chunk.

use frond_store::{Chunk, ChunkHash, ChunkStore};

use crate::error::TreeError;
use crate::map::entry::{FoundEntry, LeafLookup};
use crate::map::node::MapNode;
use crate::map::{Entry, Summary};
use crate::value::Value;

/// A node opened for a search: its offset table is checked, its entries aren't.
pub(crate) struct SearchNode(MapNode);

impl SearchNode {
    /// Reads the node named `hash`.
    pub(crate) fn load(store: &dyn ChunkStore, hash: ChunkHash) -> Result<SearchNode, TreeError> {
        SearchNode::open(store.get(hash)?)
    }

    /// Reads the child at `position`.
    pub(crate) fn load_child(
        &self,
        store: &dyn ChunkStore,
        position: usize,
    ) -> Result<SearchNode, TreeError> {
        self.open_child(store.get(self.0.child_hash(position))?)
    }

    /// Opens a chunk that is a child of this node.
    pub(crate) fn open_child(&self, chunk: Chunk) -> Result<SearchNode, TreeError> {
        SearchNode::open_under(&self.0, chunk)
    }

    /// Opens a chunk that is a child of `parent`.
    pub(super) fn open_under(parent: &MapNode, chunk: Chunk) -> Result<SearchNode, TreeError> {
        let child = SearchNode::open(chunk)?;
        parent.check_level_of(&child.0)?;
        Ok(child)
    }

    fn open(chunk: Chunk) -> Result<SearchNode, TreeError> {
        Ok(SearchNode(MapNode::open_unchecked_entries(chunk)?))
    }

    pub(crate) fn hash(&self) -> ChunkHash {
        self.0.hash()
    }

    pub(crate) fn is_leaf(&self) -> bool {
        self.0.is_leaf()
    }

    pub(crate) fn entry_count(&self) -> usize {
        self.0.entry_count()
    }

    pub(crate) fn summary(&self) -> Summary {
        self.0.summary()
    }

    pub(crate) fn key(&self, position: usize) -> &[u8] {
        self.0.key(position)
    }

    pub(crate) fn child_hash(&self, position: usize) -> ChunkHash {
        self.0.child_hash(position)
    }

    /// Returns how many entries lie under each child of an interior node, in order.
    pub(crate) fn child_counts(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.child_counts()
    }

    /// The position of the first key that is not less than `key`; `entry_count` if there is none.
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        self.0.lower_bound(key)
    }

    /// The value of `key` in the subtree.
    pub(crate) fn get(
        self,
        store: &dyn ChunkStore,
        key: &[u8],
    ) -> Result<Option<Value>, TreeError> {
        self.look(store, key, |found| found.value())
    }

    /// As `get`; `look` gets the place of the entry.
    pub(super) fn look<T>(
        self,
        store: &dyn ChunkStore,
        key: &[u8],
        look: impl FnOnce(FoundEntry<'_>) -> T,
    ) -> Result<Option<T>, TreeError> {
        let mut node = self;
        while !node.is_leaf() {
            let position = node.lower_bound(key);
            if position == node.entry_count() {
                return Ok(None);
            }
            if node.0.level() == 1 {
                return Ok(LeafLookup::load(store, &node.0, position, key)?.look(look));
            }
            node = node.load_child(store, position)?;
        }
        Ok(node.0.find_checked(key)?.map(|range| look(FoundEntry::InLeaf(&node.0, range))))
    }

    /// The node, of whose entries only those are checked that `entry` or `find` gave.
    pub(super) fn node(&self) -> &MapNode {
        &self.0
    }

    /// The value of `key` in a leaf.
    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<Value>, TreeError> {
        self.0.get(key)
    }

    /// The entry of a leaf at `position`, checked.
    pub(crate) fn entry(&self, position: usize) -> Result<Entry, TreeError> {
        self.0.check_entry(position)?;
        Ok(self.0.owned_entry(position))
    }
}
