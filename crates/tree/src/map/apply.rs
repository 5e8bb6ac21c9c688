//! Applies sorted edits to a map: rewrites what they touch, reuses the rest by name.
//!
//! One walk over the old tree, in key order:
//! 1. An edit belongs to the first child whose last key is not less than the edit's; what lies
//!    behind the last key of all belongs to the last child.
//! 2. A child without edits is reused whole if the writers of its level and below have nothing
//!    begun, so that rewriting would give the same node. Otherwise its content is copied until they
//!    have: that is where new boundaries fall in step with the old ones.
//! 3. A child with edits is walked in turn; in a leaf, entries and edits are interleaved.
//!
//! *Reading ahead*: leaves that are walked one after the other are read some at once, more and more
//! of them, since they lie together. Where edits are few and far between, each is read alone.
//!
//! The last node of a level ended because nothing came after it, not by the rule; it is reused only
//! untouched, and by 1 nothing comes after it then either.

use std::collections::VecDeque;

use bytes::Bytes;
use frond_store::{Chunk, ChunkHash, ChunkStore, Prefetched, ReadOptions};

use crate::error::TreeError;
use crate::map::build::MapBuilder;
use crate::map::node::MapNode;
use crate::map::{Edit, Tree};

/// The greatest number of leaves that are read at once.
const AHEAD_COUNT_MAX: usize = 8;

impl Tree {
    /// Applies `edits`, whose keys ascend strictly, and returns the new tree: the same
    /// root as `build` gives for the same content. Rewrites only what the edits touch: about one
    /// node a level for an edit. Chunks are put, not synced.
    ///
    /// # Errors
    /// As the store and `edits`; [`TreeError::KeyTooLong`], [`TreeError::Damaged`],
    /// [`TreeError::OutOfOrder`].
    pub fn apply(
        &self,
        store: &dyn ChunkStore,
        edits: &mut dyn Iterator<Item = Result<(Bytes, Edit), TreeError>>,
    ) -> Result<Tree, TreeError> {
        let edits = EditQueue::new(edits)?;
        if edits.next.is_none() {
            return Ok(*self);
        }
        let root = MapNode::load(store, self.root)?;
        let builder = MapBuilder::new(store, self.format);
        let mut rewrite = Rewrite { store, edits, builder, ahead_count: 0 };
        rewrite.node(&root, true)?;
        Ok(Tree { root: rewrite.builder.finish()?, format: self.format })
    }
}

/// The edits, with the next one in sight.
struct EditQueue<'a> {
    edits: &'a mut dyn Iterator<Item = Result<(Bytes, Edit), TreeError>>,
    next: Option<(Bytes, Edit)>,
}

impl<'a> EditQueue<'a> {
    fn new(
        edits: &'a mut dyn Iterator<Item = Result<(Bytes, Edit), TreeError>>,
    ) -> Result<EditQueue<'a>, TreeError> {
        let next = edits.next().transpose()?;
        Ok(EditQueue { edits, next })
    }

    /// The next edit's key.
    fn key(&self) -> Option<&[u8]> {
        self.next.as_ref().map(|(key, _)| &key[..])
    }

    fn take(&mut self) -> Result<Option<(Bytes, Edit)>, TreeError> {
        let following = self.edits.next().transpose()?;
        if let (Some((key, _)), Some((following, _))) = (&self.next, &following)
            && following <= key
        {
            return Err(TreeError::OutOfOrder);
        }
        Ok(std::mem::replace(&mut self.next, following))
    }
}

struct Rewrite<'a> {
    store: &'a dyn ChunkStore,
    edits: EditQueue<'a>,
    builder: MapBuilder<'a>,
    /// The number of leaves that were read at once the last time; zero where the one before was
    /// reused.
    ahead_count: usize,
}

impl Rewrite<'_> {
    /// Rewrites a node; `is_last` if nothing lies behind it in its level. Recursion goes down one
    /// level a step.
    fn node(&mut self, node: &MapNode, is_last: bool) -> Result<(), TreeError> {
        if node.is_leaf() {
            return self.leaf(node, is_last);
        }
        let child_level = usize::from(node.level()) - 1;
        let last_position = node.entry_count() - 1;
        let mut ahead = VecDeque::new();
        for position in 0..=last_position {
            let is_last = is_last && position == last_position;
            let has_edits =
                self.edits.key().is_some_and(|key| is_last || key <= node.key(position));
            if !has_edits && self.builder.levels.is_aligned(child_level) {
                self.builder.levels.reuse(child_level, &node.child(position))?;
                ahead.pop_front();
                self.ahead_count = 0;
            } else {
                // A leaf that is rewritten is hardly read again. Interior nodes are few, and are
                // kept.
                let chunk = match child_level {
                    0 => self.read_leaf(node, position, &mut ahead)?,
                    _ => self.store.get(node.child_hash(position))?,
                };
                self.node(&node.open_child(chunk)?, is_last)?;
            }
        }
        Ok(())
    }

    /// Reads the leaf at `position` below `node`; `ahead` holds the next ones, as far as they have
    /// been read.
    fn read_leaf(
        &mut self,
        node: &MapNode,
        position: usize,
        ahead: &mut VecDeque<Prefetched>,
    ) -> Result<Chunk, TreeError> {
        if ahead.is_empty() {
            self.ahead_count = (self.ahead_count * 2).clamp(1, AHEAD_COUNT_MAX);
            let end = node.entry_count().min(position + self.ahead_count);
            let hashes: Vec<ChunkHash> =
                (position..end).map(|position| node.child_hash(position)).collect();
            if hashes.len() > 1 {
                *ahead = self.store.prefetch(&hashes)?.into();
            }
        }
        match ahead.pop_front() {
            Some(leaf) => Ok(self.store.open_prefetched(leaf, ReadOptions::TO_REPLACE)?),
            None => Ok(self.store.read(node.child_hash(position), ReadOptions::TO_REPLACE)?),
        }
    }

    /// Entries between two edits are copied in one piece.
    fn leaf(&mut self, leaf: &MapNode, is_last: bool) -> Result<(), TreeError> {
        let mut position = 0;
        while position < leaf.entry_count() {
            let Some(key) = self.edits.key() else {
                break;
            };
            let next = leaf.lower_bound_from(position, key);
            if next == leaf.entry_count() && !is_last {
                break; // The edit belongs to a later leaf.
            }
            let is_there = next < leaf.entry_count() && leaf.key(next) == key;
            self.builder.push_run(leaf, position..next)?;
            self.insert_next()?;
            position = next + usize::from(is_there);
        }
        self.builder.push_run(leaf, position..leaf.entry_count())?;
        while is_last && self.edits.next.is_some() {
            self.insert_next()?;
        }
        Ok(())
    }

    /// Takes the next edit, and adds its entry if it leaves one.
    fn insert_next(&mut self) -> Result<(), TreeError> {
        match self.edits.take()? {
            Some((key, Edit::Put(value))) => self.builder.push(&key, &value),
            Some((_, Edit::Delete)) | None => Ok(()),
        }
    }
}
