//! Builds a map from its entries in order.

use std::ops::Range;

use bytes::Bytes;
use frond_store::{ChunkHash, ChunkStore};

use crate::error::TreeError;
use crate::format::{KEY_BYTES_MAX, TreeFormat};
use crate::levels::Levels;
use crate::map::node::{EntryRef, MapNode};
use crate::map::writer::MapWriter;
use crate::map::{Entry, Tree};
use crate::value::{Content, Value, move_out};

/// A map that grows at its end; moves long values out of line.
pub(crate) struct MapBuilder<'a> {
    pub(crate) levels: Levels<'a, MapWriter>,
}

impl<'a> MapBuilder<'a> {
    pub(crate) fn new(store: &'a dyn ChunkStore, format: TreeFormat) -> MapBuilder<'a> {
        MapBuilder { levels: Levels::new(store, format) }
    }

    /// Adds an entry from outside.
    pub(crate) fn push(&mut self, key: &Bytes, value: &Value) -> Result<(), TreeError> {
        if self.add(key, value)? { self.levels.finish_node(0) } else { Ok(()) }
    }

    /// As `push`, but returns whether the entry ends the leaf, and leaves that to the caller.
    pub(crate) fn add(&mut self, key: &Bytes, value: &Value) -> Result<bool, TreeError> {
        if key.len() > KEY_BYTES_MAX {
            return Err(TreeError::KeyTooLong { bytes: key.len(), max: KEY_BYTES_MAX });
        }
        let format = *self.levels.format();
        let moved;
        let content = match &value.content {
            Content::Inline(bytes) if bytes.len() > format.inline_bytes_max() as usize => {
                moved = move_out(&mut self.levels.batch, &format, bytes)?;
                &moved
            }
            content => content,
        };
        let entry = EntryRef { key, flags: value.flags, content: content.borrowed() };
        self.levels.writer(0).push_entry(&entry)
    }

    /// Adds an entry that has been in a node before.
    pub(crate) fn push_entry(&mut self, entry: &EntryRef<'_>) -> Result<(), TreeError> {
        if self.levels.writer(0).push_entry(entry)? { self.levels.finish_node(0) } else { Ok(()) }
    }

    /// Adds entries that have been in `leaf` before.
    pub(crate) fn push_run(
        &mut self,
        leaf: &MapNode,
        positions: Range<usize>,
    ) -> Result<(), TreeError> {
        if !leaf.is_movable() {
            for position in positions {
                self.push_entry(&leaf.entry(position))?;
            }
            return Ok(());
        }
        let mut rest = positions;
        while !rest.is_empty() {
            let (count, ended) = self.levels.writer(0).push_run(leaf, rest.clone())?;
            rest.start += count;
            if ended {
                self.levels.finish_node(0)?;
            }
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<ChunkHash, TreeError> {
        self.levels.finish()
    }
}

impl Tree {
    /// Puts the empty leaf and returns the empty tree.
    ///
    /// # Errors
    /// [`TreeError::Store`] if the store takes no chunks.
    pub fn empty(store: &dyn ChunkStore, format: TreeFormat) -> Result<Tree, TreeError> {
        Tree::build(store, format, &mut std::iter::empty())
    }

    /// Builds a tree from `entries`, whose keys ascend strictly: each node is written
    /// once. Chunks are put, not synced.
    ///
    /// # Errors
    /// As the store and `entries`; [`TreeError::KeyTooLong`], [`TreeError::OutOfOrder`].
    pub fn build(
        store: &dyn ChunkStore,
        format: TreeFormat,
        entries: &mut dyn Iterator<Item = Result<Entry, TreeError>>,
    ) -> Result<Tree, TreeError> {
        let mut builder = MapBuilder::new(store, format);
        for entry in entries {
            let Entry { key, value } = entry?;
            builder.push(&key, &value)?;
        }
        Ok(Tree { root: builder.finish()?, format })
    }
}
