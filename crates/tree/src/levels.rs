//! Builds a tree's levels at once, for maps and sequences alike: each node is written once.
//!
//! 1. Items go to the writer of level 0. When an item ends a node, the node is put, and its
//!    parent's entry goes to the writer of the next level, which may end in turn.
//! 2. At the end each level's last node ends, from the bottom up; the first level that has one node
//!    only is the root's.
//! 3. A rewriter may hand in a whole old node (`reuse`) when nothing is begun at its level or
//!    below: its content would give the very same node.
//!
//! A surprise: where old nodes are reused, the counts of the levels below are not known, so the
//! root is looked for at the highest level of reuse, and a lone reused node with a single child is
//! replaced by that child (as a build from scratch would never have made it).

use frond_store::{Chunk, ChunkHash, ChunkStore};

use crate::error::TreeError;
use crate::format::TreeFormat;

/// Writes the nodes of one level.
pub(crate) trait NodeWriter {
    /// A parent's entry about a node.
    type Child;

    /// A writer with nothing begun.
    fn new(format: &TreeFormat, level: u8) -> Self;
    /// Returns whether nothing is begun.
    fn is_empty(&self) -> bool;
    /// Returns whether nothing is begun and the next old node would end where it ended before.
    fn is_in_step(&self) -> bool;
    /// Adds an entry about a node of the level below; `old` if it stood there before too. Returns
    /// whether it ends this node.
    ///
    /// # Errors
    /// [`TreeError::OutOfOrder`].
    fn push_child(&mut self, child: &Self::Child, old: bool) -> Result<bool, TreeError>;
    /// Ends the node.
    fn finish(&mut self) -> (Chunk, Self::Child);
    /// The name of a child.
    fn child_hash(child: &Self::Child) -> ChunkHash;
    /// The child of an interior node that has exactly one.
    ///
    /// # Errors
    /// [`TreeError::Damaged`] if the chunk is no node.
    fn only_child(chunk: Chunk) -> Result<Option<ChunkHash>, TreeError>;
}

/// Chunks on their way into the store.
pub(crate) struct Batch<'a> {
    store: &'a dyn ChunkStore,
    chunks: Vec<Chunk>,
    bytes: usize,
}

/// A batch is put when it has grown to this.
const BATCH_BYTES: usize = 1 << 20;

impl<'a> Batch<'a> {
    pub(crate) fn new(store: &'a dyn ChunkStore) -> Batch<'a> {
        Batch { store, chunks: Vec::new(), bytes: 0 }
    }

    pub(crate) fn store(&self) -> &'a dyn ChunkStore {
        self.store
    }

    pub(crate) fn put(&mut self, chunk: Chunk) -> Result<(), TreeError> {
        self.bytes += chunk.encoded().len();
        self.chunks.push(chunk);
        if self.bytes >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    pub(crate) fn flush(&mut self) -> Result<(), TreeError> {
        self.store.put_many(&self.chunks)?;
        self.chunks.clear();
        self.bytes = 0;
        Ok(())
    }
}

/// One level while it grows.
struct Level<W> {
    writer: W,
    /// Nodes of this level so far, and the last of them.
    node_count: u64,
    last_node: Option<ChunkHash>,
}

/// All levels of a tree while it grows.
pub(crate) struct Levels<'a, W> {
    pub(crate) batch: Batch<'a>,
    format: TreeFormat,
    levels: Vec<Level<W>>,
    /// The highest level at which an old node was reused.
    reused_level: Option<usize>,
}

impl<'a, W: NodeWriter> Levels<'a, W> {
    pub(crate) fn new(store: &'a dyn ChunkStore, format: TreeFormat) -> Levels<'a, W> {
        Levels { batch: Batch::new(store), format, levels: Vec::new(), reused_level: None }
    }

    pub(crate) fn format(&self) -> &TreeFormat {
        &self.format
    }

    /// The writer of `level`.
    pub(crate) fn writer(&mut self, level: usize) -> &mut W {
        &mut self.level(level).writer
    }

    fn level(&mut self, level: usize) -> &mut Level<W> {
        while self.levels.len() <= level {
            let number = u8::try_from(self.levels.len()).expect("a tree has at most 64 levels");
            let writer = W::new(&self.format, number);
            self.levels.push(Level { writer, node_count: 0, last_node: None });
        }
        &mut self.levels[level]
    }

    /// Ends the node of `level`, and those above that end with it.
    pub(crate) fn finish_node(&mut self, level: usize) -> Result<(), TreeError> {
        let (chunk, child) = self.level(level).writer.finish();
        self.batch.put(chunk)?;
        self.add_node(level, &child, false)
    }

    /// Returns whether an old node of `level` can be handed in by `reuse`.
    pub(crate) fn is_aligned(&self, level: usize) -> bool {
        self.levels.iter().take(level + 1).all(|level| level.writer.is_in_step())
    }

    /// Hands in an old node of `level` instead of its content; only when `is_aligned(level)`.
    pub(crate) fn reuse(&mut self, level: usize, child: &W::Child) -> Result<(), TreeError> {
        debug_assert!(self.is_aligned(level));
        self.reused_level = self.reused_level.max(Some(level));
        self.add_node(level, child, true)
    }

    /// Takes a node of `level` that is in the store, the next one there.
    pub(crate) fn add_put(&mut self, level: usize, child: &W::Child) -> Result<(), TreeError> {
        self.add_node(level, child, false)
    }

    fn add_node(&mut self, level: usize, child: &W::Child, old: bool) -> Result<(), TreeError> {
        let this = self.level(level);
        this.node_count += 1;
        this.last_node = Some(W::child_hash(child));
        // Recursion ends at the top: each step is a level higher, and interior nodes end only when
        // they have two entries.
        if self.writer(level + 1).push_child(child, old)? {
            self.finish_node(level + 1)
        } else {
            Ok(())
        }
    }

    /// Ends all nodes, puts what is left, and returns the root.
    pub(crate) fn finish(mut self) -> Result<ChunkHash, TreeError> {
        let lowest = self.reused_level.unwrap_or(0);
        let mut level = 0;
        let root = loop {
            let begun = !self.writer(level).is_empty();
            let nothing =
                level == 0 && self.level(0).node_count == 0 && self.reused_level.is_none();
            if begun || nothing {
                // A parent's writer that holds a single child is dropped unwritten below.
                self.finish_node(level)?;
            }
            let this = self.level(level);
            match this.last_node {
                Some(root) if level >= lowest && this.node_count == 1 => break root,
                _ => level += 1,
            }
        };
        self.batch.flush()?;
        if self.reused_level != Some(level) {
            return Ok(root);
        }
        let mut root = root;
        while let Some(child) = W::only_child(self.batch.store().get(root)?)? {
            root = child;
        }
        Ok(root)
    }
}
