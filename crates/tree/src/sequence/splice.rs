//! Replaces runs of a sequence's items: rewrites what they touch, reuses the rest by name.
//!
//! One walk over the old sequence:
//! 1. Children before a run are reused. Then the walk goes down to the leaf that holds it; at each
//!    level the window is filled with the items that stand before the first one that may end
//!    otherwise than it did: those before it in its node, or if they are too few, in the nodes
//!    before.
//! 2. Children that lie in the removed run as a whole are left out unread.
//! 3. Children behind it are copied until, at their level and below, nothing is begun and the
//!    window is the one that they saw before: there new boundaries fall in step with the old ones.
//!    From there on they are reused, up to the next run.
//!
//! One item in the place of another mostly moves no boundary: then there is a shorter way
//! (`exchange`).
//!
//! Constant data may never fall in step, since each old boundary lies a whole number of equal nodes
//! after the edit's place: the walk then goes on to the end, and writes nodes that the store has.

use bytes::Bytes;
use frond_store::ChunkStore;

use crate::error::TreeError;
use crate::sequence::neighbours;
use crate::sequence::node::SequenceNode;
use crate::sequence::writer::SequenceBuilder;
use crate::sequence::{Refers, Sequence};

/// Items in the place of others.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// The position in the sequence before all replacements.
    pub position: u64,
    /// The number of items that go from there on.
    pub removed: u64,
    /// The new items.
    pub items: Vec<Bytes>,
}

impl Replacement {
    fn end(&self) -> u64 {
        self.position.saturating_add(self.removed)
    }
}

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
        let replacement = Replacement { position, removed, items: items.to_vec() };
        self.replace_referring(store, &[replacement], |_| false)
    }

    /// As [`Sequence::splice`], many at once, for a sequence that was built with `refers`: nodes
    /// that several touch are written once. `replacements` ascend and don't overlap (asserted).
    ///
    /// # Errors
    /// As [`Sequence::splice`].
    pub fn replace_referring(
        &self,
        store: &dyn ChunkStore,
        replacements: &[Replacement],
        refers: Refers,
    ) -> Result<Sequence, TreeError> {
        let root = SequenceNode::load(store, self.root)?;
        let count = root.sums().count;
        let position = replacements.last().map_or(0, Replacement::end);
        if position > count {
            return Err(TreeError::OutOfRange { position, count });
        }
        assert!(replacements.is_sorted_by(|left, right| left.end() <= right.position));
        if replacements.iter().all(|it| it.removed == 0 && it.items.is_empty()) {
            return Ok(*self);
        }
        if let [Replacement { position, removed: 1, items }] = replacements
            && let [item] = &items[..]
            && let Some(root) = self.exchange(store, &root, *position, item, refers)?
        {
            return Ok(Sequence { root, format: self.format });
        }
        let builder = SequenceBuilder::new(store, self.format, refers);
        let mut splice = Splice { store, replacements, is_in: false, path: Vec::new(), builder };
        splice.node(&root, 0, true)?;
        Ok(Sequence { root: splice.builder.finish()?, format: self.format })
    }
}

struct Splice<'a> {
    store: &'a dyn ChunkStore,
    /// Those that aren't done.
    replacements: &'a [Replacement],
    /// Whether the items of the first of them are in, so that what it removes follows.
    is_in: bool,
    /// The nodes above the walk, and the entry where it went down.
    path: Vec<(SequenceNode, usize)>,
    builder: SequenceBuilder<'a>,
}

impl Splice<'_> {
    /// Walks a node whose first item is at `start`; `is_last` if nothing lies behind it in its
    /// level. Recursion goes down one level a step.
    fn node(&mut self, node: &SequenceNode, start: u64, is_last: bool) -> Result<(), TreeError> {
        if self.builder.levels.is_aligned(usize::from(node.level())) {
            self.begin_as_before(node, start)?;
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
            let first = self.replacements.first();
            // Behind what is removed at the very end more may come.
            let is_end_wanted = is_last && 1 < self.replacements.len();
            let is_removed = self.is_in && first.is_some_and(|first| child_end <= first.end());
            if is_removed && !is_end_wanted {
                self.leave_out(child_level, child_end);
                continue;
            }
            let is_touched =
                first.is_some_and(|first| self.is_in || is_last || first.position < child_end);
            if !is_touched && self.builder.levels.is_aligned(child_level) {
                self.builder.levels.reuse(child_level, &child)?;
            } else {
                self.path.push((node.clone(), entry));
                self.node(&node.load_child(self.store, entry)?, child_start, is_last)?;
                self.path.pop();
            }
        }
        Ok(())
    }

    fn leaf(&mut self, node: &SequenceNode, start: u64, is_last: bool) -> Result<(), TreeError> {
        let mut position = start;
        for item in node.entries(0) {
            self.insert_at(position)?;
            position += 1;
            if self.is_in {
                self.leave_out(0, position);
            } else {
                self.builder.push_old(&item)?;
            }
        }
        if is_last { self.insert_at(position) } else { Ok(()) }
    }

    /// Puts the items in that come at `position`.
    fn insert_at(&mut self, position: u64) -> Result<(), TreeError> {
        while let Some(first) = self.replacements.first()
            && !self.is_in
            && first.position == position
        {
            for item in &first.items {
                self.builder.push(item)?;
            }
            self.is_in = true;
            self.end_at(position);
        }
        Ok(())
    }

    /// Notes that an item of `level`, which ends before `position`, is not in the new sequence, nor
    /// what lies below it.
    fn leave_out(&mut self, level: usize, position: u64) {
        for level in 0..=level {
            self.builder.levels.writer(level).window.note_gap();
        }
        self.end_at(position);
    }

    /// Goes on to the next replacement if what the first one removes ends at `position`.
    fn end_at(&mut self, position: u64) {
        if let Some((first, rest)) = self.replacements.split_first()
            && first.end() == position
        {
            self.replacements = rest;
            self.is_in = false;
        }
    }

    /// Readies the writer for a node that begins where it did before, with other content from
    /// somewhere in it on.
    fn begin_as_before(&mut self, node: &SequenceNode, start: u64) -> Result<(), TreeError> {
        let changed = self.replacements.first().map_or(start, |first| first.position);
        // The last node may go on where its level ended before.
        let kept_max = node.entry_count().saturating_sub(1);
        let (mut kept_count, mut kept_bytes, mut end) = (0, 0, start);
        for (entry, content) in node.entries(0).enumerate().take(kept_max) {
            end = end.saturating_add(node.entry_sums(entry).count);
            if changed < end {
                break;
            }
            kept_bytes += content.bytes() as u64;
            kept_count += 1;
        }
        let writer = self.builder.levels.writer(usize::from(node.level()));
        writer.reserve(node);
        writer.kept_count = kept_count;
        writer.window.clear();
        match writer.window.is_filled_by(kept_count, kept_bytes) {
            true => Ok(()),
            false => {
                neighbours::fill_window(self.store, &self.path, node.level(), &mut writer.window)
            }
        }
    }
}
