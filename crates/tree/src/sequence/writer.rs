//! Writes the nodes of a sequence, level by level.

use frond_store::chunk::HASH_BYTES;
use frond_store::{Chunk, ChunkHash, ChunkKind, ChunkStore};

use crate::boundary::BoundaryRule;
use crate::error::TreeError;
use crate::format::TreeFormat;
use crate::levels::{Levels, NodeWriter};
use crate::sequence::Refers;
use crate::sequence::node::{self, SequenceChild, SequenceNode, Sums};
use crate::sequence::window::Window;

/// A node that grows entry by entry.
pub(super) struct SequenceWriter {
    rule: BoundaryRule,
    level: u8,
    pub(super) window: Window,
    /// Of so many entries that come next it is known that they don't end the node: they are as they were.
    pub(super) kept_count: usize,
    /// A leaf's items, and where each ends.
    items: Vec<u8>,
    ends: Vec<u32>,
    /// An interior node's children.
    children: Vec<Sums>,
    /// The children's names, or those that a leaf's items end with.
    references: Vec<ChunkHash>,
    sums: Sums,
    /// What the boundary rule takes for the node's size: its entries, without the header.
    bytes: u64,
}

impl SequenceWriter {
    /// Adds an item to a leaf and tells whether it ends it.
    fn push_item(&mut self, item: &[u8], reference: Option<ChunkHash>, old: bool) -> bool {
        self.items.extend_from_slice(item);
        self.ends.push(u32::try_from(self.items.len()).expect("a node is far smaller than 4 GB"));
        self.sums.add(&Sums { count: 1, bytes: item.len() as u64 });
        let hash = self.window.push(item, old);
        self.references.extend(reference);
        self.grow(hash, entry_bytes(0, item.len()) + reference_bytes(reference.as_ref()))
    }

    /// Makes room for a node that is about like `node`.
    pub(super) fn reserve(&mut self, node: &SequenceNode) {
        let count = node.entry_count() + 1;
        self.references.reserve(node.chunk().reference_count() + 1);
        match node.is_leaf() {
            true => {
                self.items.reserve(node.chunk().payload().len());
                self.ends.reserve(count);
            }
            false => self.children.reserve(count),
        }
    }

    fn grow(&mut self, hash: u64, bytes: u64) -> bool {
        let before = self.bytes;
        self.bytes += bytes;
        if 0 < self.kept_count {
            self.kept_count -= 1;
            return false;
        }
        let entry_count = self.ends.len() + self.children.len();
        self.rule.ends_node(entry_count, hash, before, self.bytes)
    }
}

/// The chunk that an item refers to.
pub(super) fn reference_of(item: &[u8], refers: Refers) -> Option<ChunkHash> {
    refers(item).then(|| item.last_chunk().copied().map(ChunkHash)).flatten()
}

/// How large the boundary rule takes an entry to be, beside its reference.
pub(super) fn entry_bytes(level: u8, item_bytes: usize) -> u64 {
    let bytes = match level {
        0 => node::ITEM_END_BYTES + item_bytes,
        _ => node::CHILD_ENTRY_BYTES + HASH_BYTES,
    };
    bytes as u64
}

/// How large it takes that to be.
pub(super) fn reference_bytes(reference: Option<&ChunkHash>) -> u64 {
    reference.map_or(0, |_| HASH_BYTES as u64)
}

impl NodeWriter for SequenceWriter {
    type Child = SequenceChild;

    fn new(format: &TreeFormat, level: u8) -> SequenceWriter {
        SequenceWriter {
            rule: BoundaryRule::new(format, level),
            level,
            window: Window::new(format, level),
            kept_count: 0,
            items: Vec::new(),
            ends: Vec::new(),
            children: Vec::new(),
            references: Vec::new(),
            sums: Sums::default(),
            bytes: 0,
        }
    }

    fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.children.is_empty()
    }

    fn is_in_step(&self) -> bool {
        self.is_empty() && self.window.is_in_step()
    }

    fn push_child(&mut self, child: &SequenceChild, old: bool) -> Result<bool, TreeError> {
        self.children.push(child.sums);
        self.references.push(child.hash);
        self.sums.add(&child.sums);
        let hash = self.window.push(&child.hash.0, old);
        Ok(self.grow(hash, entry_bytes(self.level, 0)))
    }

    fn finish(&mut self) -> (Chunk, SequenceChild) {
        let payload = match self.level {
            0 => node::encode_leaf(&self.ends, &self.items),
            level => node::encode_interior(level, &self.sums, &self.children),
        };
        let chunk = Chunk::new(ChunkKind::SequenceNode, &self.references, &payload);
        let child = SequenceChild { hash: chunk.hash(), sums: self.sums };
        self.items.clear();
        self.ends.clear();
        self.children.clear();
        self.references.clear();
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
        self.push_item(item, false)
    }

    /// Adds an item that stood after the one before it in the old sequence.
    pub(super) fn push_old(&mut self, item: &[u8]) -> Result<(), TreeError> {
        self.push_item(item, true)
    }

    fn push_item(&mut self, item: &[u8], old: bool) -> Result<(), TreeError> {
        let reference = reference_of(item, self.refers);
        let is_end = self.levels.writer(0).push_item(item, reference, old);
        if is_end { self.levels.finish_node(0) } else { Ok(()) }
    }

    pub(super) fn finish(self) -> Result<ChunkHash, TreeError> {
        self.levels.finish()
    }
}
