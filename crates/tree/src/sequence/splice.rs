//! Replaces a run of a sequence's items: rewrites what it touches, reuses the rest by name.
//!
//! One walk over the old sequence:
//! 1. Children before the edited place are reused. Then the walk goes down to the leaf that holds
//!    it; at each level the window is filled with the items that stand before the node.
//! 2. Children that lie in the removed run as a whole are left out unread.
//! 3. Children behind it are copied until, at their level and below, nothing is begun and the
//!    window is the one that they saw before: there new boundaries fall in step with the old ones.
//!    From there on they are reused.
//!
//! Constant data may never fall in step, since each old boundary lies a whole number of equal nodes
//! after the edit's place: the walk then goes on to the end, and writes nodes that the store has.

use bytes::Bytes;
use frond_store::ChunkStore;

use crate::error::TreeError;
use crate::sequence::node::SequenceNode;
use crate::sequence::window::Window;
use crate::sequence::writer::SequenceBuilder;
use crate::sequence::{Refers, Sequence};

impl Sequence {
    /// Removes `removed` items at `position` and puts `items` in their place. The same root as
    /// `build` gives for the same items. Chunks are put, not synced.
    ///
    /// # Errors
    /// [`TreeError::OutOfRange`] if the removed run exceeds the sequence;
    /// [`TreeError::ItemTooLong`]; [`TreeError::Damaged`]; as the store.
    pub fn splice(
        &self,
        store: &dyn ChunkStore,
        position: u64,
        removed: u64,
        items: &[Bytes],
    ) -> Result<Sequence, TreeError> {
        self.splice_referring(store, position, removed, items, |_| false)
    }

    /// As [`Sequence::splice`], for a sequence that was built with `refers`.
    ///
    /// # Errors
    /// As [`Sequence::splice`].
    pub fn splice_referring(
        &self,
        store: &dyn ChunkStore,
        position: u64,
        removed: u64,
        items: &[Bytes],
        refers: Refers,
    ) -> Result<Sequence, TreeError> {
        let root = SequenceNode::load(store, self.root)?;
        let count = root.sums().count;
        let removed_end = position.saturating_add(removed);
        if removed_end > count {
            return Err(TreeError::OutOfRange { position: removed_end, count });
        }
        if removed == 0 && items.is_empty() {
            return Ok(*self);
        }
        let mut splice = Splice {
            store,
            position,
            removed_end,
            items: Some(items),
            path: Vec::new(),
            builder: SequenceBuilder::new(store, self.format, refers),
        };
        splice.node(&root, 0, true)?;
        Ok(Sequence { root: splice.builder.finish()?, format: self.format })
    }
}

struct Splice<'a> {
    store: &'a dyn ChunkStore,
    position: u64,
    removed_end: u64,
    /// What goes in at `position`, until it is in.
    items: Option<&'a [Bytes]>,
    /// While `items` are not in: the nodes above the walk, and the entry where it went down.
    path: Vec<(SequenceNode, usize)>,
    builder: SequenceBuilder<'a>,
}

impl Splice<'_> {
    /// Walks a node whose first item is at `start`; `is_last` if nothing lies behind it in its
    /// level. Recursion goes down one level a step.
    fn node(&mut self, node: &SequenceNode, start: u64, is_last: bool) -> Result<(), TreeError> {
        if self.items.is_some() {
            self.fill_window(node.level())?;
        }
        if node.is_leaf() {
            return self.leaf(node, start, is_last);
        }
        let child_level = usize::from(node.level()) - 1;
        let mut child_end = start;
        for entry in 0..node.entry_count() {
            let child = node.child(entry);
            let child_start = child_end;
            child_end = child_start.saturating_add(child.sums.count);
            let is_last = is_last && entry + 1 == node.entry_count();
            let before = self.items.is_some() && child_end <= self.position && !is_last;
            let behind = self.items.is_none() && child_start >= self.removed_end;
            if self.items.is_none() && child_end <= self.removed_end {
                self.leave_out(child_level);
            } else if (before || behind) && self.builder.levels.is_aligned(child_level) {
                self.builder.levels.reuse(child_level, &child)?;
            } else {
                let is_path = self.items.is_some();
                if is_path {
                    self.path.push((node.clone(), entry));
                }
                self.node(&node.load_child(self.store, entry)?, child_start, is_last)?;
                if is_path {
                    self.path.pop();
                }
            }
        }
        Ok(())
    }

    fn leaf(&mut self, node: &SequenceNode, start: u64, is_last: bool) -> Result<(), TreeError> {
        for (entry, position) in (0..node.entry_count()).zip(start..) {
            if position == self.position {
                self.insert()?;
            }
            if self.position <= position && position < self.removed_end {
                self.leave_out(0);
            } else {
                self.builder.push_old(node.item(entry))?;
            }
        }
        if is_last { self.insert() } else { Ok(()) }
    }

    /// Puts the items in, once.
    fn insert(&mut self) -> Result<(), TreeError> {
        for item in self.items.take().unwrap_or_default() {
            self.builder.push(item)?;
        }
        Ok(())
    }

    /// Notes that an item of `level` is not in the new sequence, nor what lies below it.
    fn leave_out(&mut self, level: usize) {
        for level in 0..=level {
            self.builder.levels.writer(level).window.note_gap();
        }
    }

    /// Fills the window of `level` with the items before the node that the walk goes into.
    fn fill_window(&mut self, level: u8) -> Result<(), TreeError> {
        let window = &mut self.builder.levels.writer(usize::from(level)).window;
        let mut before = Before { store: self.store, level, window, items: Vec::new(), bytes: 0 };
        for (node, entry) in self.path.iter().rev() {
            before.collect(node, *entry)?;
        }
        for item in before.items.iter().rev() {
            before.window.push(item, true);
        }
        Ok(())
    }
}

/// The items of a level that stand before a node, the last one first: those that a window needs beside its
/// newest item.
struct Before<'a> {
    store: &'a dyn ChunkStore,
    level: u8,
    window: &'a mut Window,
    items: Vec<Bytes>,
    bytes: u64,
}

impl Before<'_> {
    /// Collects those under the entries of `node` before `end`.
    fn collect(&mut self, node: &SequenceNode, end: usize) -> Result<(), TreeError> {
        for entry in (0..end).rev() {
            if self.window.is_filled_by(self.items.len(), self.bytes) {
                break;
            }
            if node.level() == self.level {
                let item = node.entry_content(entry);
                self.bytes += item.len() as u64;
                self.items.push(item);
            } else {
                let child = node.load_child(self.store, entry)?;
                self.collect(&child, child.entry_count())?;
            }
        }
        Ok(())
    }
}
