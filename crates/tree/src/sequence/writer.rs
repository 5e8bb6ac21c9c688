//! Writes the nodes of a sequence, level by level.

use frond_store::{Chunk, ChunkHash, ChunkKind, ChunkStore};

use crate::boundary::BoundaryRule;
use crate::error::TreeError;
use crate::format::TreeFormat;
use crate::levels::{Levels, NodeWriter};
use crate::sequence::Refers;
use crate::sequence::entry::Entry;
use crate::sequence::node::{self, Leaf, SequenceChild, SequenceNode, Sums};
use crate::sequence::window::Window;

/// A node that grows entry by entry.
pub(super) struct SequenceWriter {
    rule: BoundaryRule,
    level: u8,
    pub(super) window: Window,
    /// The number of entries that come next of which it is known that they don't end the node: they
    /// are as they were.
    pub(super) kept_count: usize,
    leaf: Leaf,
    /// An interior node's children, and their names.
    children: Vec<Sums>,
    names: Vec<ChunkHash>,
    sums: Sums,
    /// The node's size for the boundary rule: its entries, without the header.
    bytes: u64,
}

impl SequenceWriter {
    /// Adds an item to a leaf and returns whether it ends it.
    fn push_item(&mut self, item: &Entry<'_>, old: bool) -> bool {
        self.leaf.push(item);
        self.sums.add(&Sums { count: 1, bytes: item.front.len() as u64 });
        let hash = self.window.push(item, old);
        self.grow(hash, item.bytes_in_node(0))
    }

    /// Makes room for a node that is about like `node`.
    pub(super) fn reserve(&mut self, node: &SequenceNode) {
        if node.is_leaf() {
            return self.leaf.reserve(node);
        }
        self.children.reserve(node.entry_count() + 1);
        self.names.reserve(node.entry_count() + 1);
    }

    fn grow(&mut self, hash: u64, bytes: u64) -> bool {
        let before = self.bytes;
        self.bytes += bytes;
        if 0 < self.kept_count {
            self.kept_count -= 1;
            return false;
        }
        let entry_count = self.leaf.item_count() + self.children.len();
        self.rule.ends_node(entry_count, hash, before, self.bytes)
    }
}

impl NodeWriter for SequenceWriter {
    type Child = SequenceChild;

    fn new(format: &TreeFormat, level: u8) -> SequenceWriter {
        SequenceWriter {
            rule: BoundaryRule::new(format, level),
            level,
            window: Window::new(format, level),
            kept_count: 0,
            leaf: Leaf::default(),
            children: Vec::new(),
            names: Vec::new(),
            sums: Sums::default(),
            bytes: 0,
        }
    }

    fn is_empty(&self) -> bool {
        self.leaf.item_count() == 0 && self.children.is_empty()
    }

    fn is_in_step(&self) -> bool {
        self.is_empty() && self.window.is_in_step()
    }

    fn push_child(&mut self, child: &SequenceChild, old: bool) -> Result<bool, TreeError> {
        self.children.push(child.sums);
        self.names.push(child.hash);
        self.sums.add(&child.sums);
        let entry = child.entry();
        let hash = self.window.push(&entry, old);
        Ok(self.grow(hash, entry.bytes_in_node(self.level)))
    }

    fn finish(&mut self) -> (Chunk, SequenceChild) {
        let (references, payload) = match self.level {
            0 => (&self.leaf.references, self.leaf.payload()),
            level => (&self.names, node::encode_interior(level, &self.sums, &self.children)),
        };
        let chunk = Chunk::new(ChunkKind::SequenceNode, references, &payload);
        let child = SequenceChild { hash: chunk.hash(), sums: self.sums };
        self.leaf.clear();
        self.children.clear();
        self.names.clear();
        self.sums = Sums::default();
        self.bytes = 0;
        (chunk, child)
    }

    fn child_hash(child: &SequenceChild) -> ChunkHash {
        child.hash
    }

    fn only_child(chunk: Chunk) -> Result<Option<ChunkHash>, TreeError> {
        let node = SequenceNode::open(chunk)?;
        let only = !node.is_leaf() && node.entry_count() == 1;
        Ok(only.then(|| node.child(0).hash))
    }
}

/// A sequence that grows at its end.
pub(super) struct SequenceBuilder<'a> {
    pub(super) levels: Levels<'a, SequenceWriter>,
    refers: Refers,
}

impl<'a> SequenceBuilder<'a> {
    pub(super) fn new(
        store: &'a dyn ChunkStore,
        format: TreeFormat,
        refers: Refers,
    ) -> SequenceBuilder<'a> {
        SequenceBuilder { levels: Levels::new(store, format), refers }
    }

    /// Adds an item from outside.
    pub(super) fn push(&mut self, item: &[u8]) -> Result<(), TreeError> {
        let max = self.levels.format().item_bytes_max();
        if item.len() > max {
            return Err(TreeError::ItemTooLong { bytes: item.len(), max });
        }
        self.push_item(&Entry::of_item(item, self.refers), false)
    }

    /// Adds an item that stood after the one before it in the old sequence.
    pub(super) fn push_old(&mut self, item: &Entry<'_>) -> Result<(), TreeError> {
        self.push_item(item, true)
    }

    fn push_item(&mut self, item: &Entry<'_>, old: bool) -> Result<(), TreeError> {
        let is_end = self.levels.writer(0).push_item(item, old);
        if is_end { self.levels.finish_node(0) } else { Ok(()) }
    }

    pub(super) fn finish(self) -> Result<ChunkHash, TreeError> {
        self.levels.finish()
    }
}
