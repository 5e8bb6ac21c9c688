//! Walks a range of a map, up or down, O(1) amortised for an entry.
//!
//! The cursor holds the path from the root to its leaf: at each interior node the children still to
//! come, at the leaf the entries still to come, both already cut to the bounds, so that no key is
//! compared while it walks. It reads nothing before the first step, and ends after an error.
//!
//! Whoever only looks at entries steps and borrows ([`Cursor::step`], [`Cursor::entry_ref`]): an
//! owned [`Entry`] shares two parts of its leaf, which counts up and down four times, and that is two
//! thirds of a scan.
//!
//! *Reading ahead*: a range asks for its next leaves at once, for more and more of them, but never beyond the bounds or
//! the parent's last child.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use frond_store::{Ahead, ChunkHash, ChunkStore};

use crate::error::TreeError;
use crate::map::node::{EntryRef, MapNode};
use crate::map::{Bounds, Direction, Entry, Tree};

/// How many leaves are asked for at once at first, and at most: a cursor that waits keeps them in memory.
const AHEAD_COUNT_MIN: usize = 2;
const AHEAD_COUNT_MAX: usize = 8;

/// An iterator over a range of a tree.
pub struct Cursor {
    store: Arc<dyn ChunkStore>,
    bounds: Bounds,
    direction: Direction,
    /// The root, until it has been read.
    unread_root: Option<ChunkHash>,
    /// Interior nodes, from the root down.
    path: Vec<Step>,
    /// The leaf below them, and where in it the cursor stands.
    leaf: Option<Step>,
    position: usize,
    /// How many leaves were asked for the last time.
    ahead_count: usize,
}

struct Step {
    node: MapNode,
    /// Positions still to come.
    positions: Range<usize>,
    /// The first of them that have been read already.
    ahead: VecDeque<Ahead>,
}

impl Tree {
    /// Returns the entries within `bounds`, in `direction`.
    pub fn range(
        &self,
        store: &Arc<dyn ChunkStore>,
        bounds: Bounds,
        direction: Direction,
    ) -> Cursor {
        Cursor {
            store: store.clone(),
            bounds,
            direction,
            unread_root: Some(self.root),
            path: Vec::new(),
            leaf: None,
            position: 0,
            ahead_count: 0,
        }
    }
}

impl Cursor {
    /// Moves to the next entry; false if there is none. Nothing follows an error.
    ///
    /// # Errors
    /// As the store; [`TreeError::Damaged`].
    pub fn step(&mut self) -> Result<bool, TreeError> {
        if let Some(leaf) = &mut self.leaf
            && let Some(position) = next_of(&mut leaf.positions, self.direction)
        {
            self.position = position;
            return Ok(true);
        }
        let moved = self.step_to_leaf();
        if moved.is_err() {
            self.path.clear();
            self.leaf = None;
        }
        moved
    }

    /// The entry that `step` moved to: borrowed, where [`Cursor::entry`] shares the leaf's bytes.
    /// `None` before the first step and after the last.
    pub fn entry_ref(&self) -> Option<EntryRef<'_>> {
        self.leaf.as_ref().map(|leaf| leaf.node.entry(self.position))
    }

    /// The entry that `step` moved to. `None` before the first step and after the last.
    pub fn entry(&self) -> Option<Entry> {
        self.leaf.as_ref().map(|leaf| leaf.node.owned_entry(self.position))
    }

    /// Goes on to the next leaf that has an entry within the bounds.
    fn step_to_leaf(&mut self) -> Result<bool, TreeError> {
        self.leaf = None;
        if let Some(root) = self.unread_root.take() {
            let node = MapNode::load(&*self.store, root)?;
            self.enter(node);
        }
        loop {
            if let Some(leaf) = &mut self.leaf {
                if let Some(position) = next_of(&mut leaf.positions, self.direction) {
                    self.position = position;
                    return Ok(true);
                }
                self.leaf = None;
            }
            let Some(step) = self.path.last_mut() else {
                return Ok(false);
            };
            if step.ahead.is_empty() && step.node.level() == 1 {
                self.ahead_count = (self.ahead_count * 2).clamp(AHEAD_COUNT_MIN, AHEAD_COUNT_MAX);
                step.read_ahead(&*self.store, self.ahead_count, self.direction)?;
            }
            let Some(position) = next_of(&mut step.positions, self.direction) else {
                self.path.pop();
                continue;
            };
            let child = match step.ahead.pop_front() {
                Some(ahead) => step.node.open_child(self.store.open_ahead(ahead)?)?,
                None => step.node.load_child(&*self.store, position)?,
            };
            self.enter(child);
        }
    }

    /// Cuts a node to the bounds and makes it the end of the path.
    fn enter(&mut self, node: MapNode) {
        let start = self.bounds.start.as_ref().map_or(0, |key| node.lower_bound(key));
        let end = match &self.bounds.end {
            None => node.entry_count(),
            // The child with the first key not below the end may begin within the bounds.
            Some(key) if !node.is_leaf() => node.entry_count().min(node.lower_bound(key) + 1),
            Some(key) => node.lower_bound(key),
        };
        let is_leaf = node.is_leaf();
        let step = Step { node, positions: start..end, ahead: VecDeque::new() };
        if is_leaf { self.leaf = Some(step) } else { self.path.push(step) }
    }
}

impl Step {
    /// Reads `count` of the next children, which are leaves, or some of these.
    fn read_ahead(
        &mut self,
        store: &dyn ChunkStore,
        count: usize,
        direction: Direction,
    ) -> Result<(), TreeError> {
        let mut positions = self.positions.clone();
        let next = std::iter::from_fn(|| next_of(&mut positions, direction)).take(count);
        let hashes: Vec<ChunkHash> = next.map(|position| self.node.child_hash(position)).collect();
        if !hashes.is_empty() {
            self.ahead = store.read_ahead(&hashes)?.into();
        }
        Ok(())
    }
}

fn next_of(positions: &mut Range<usize>, direction: Direction) -> Option<usize> {
    match direction {
        Direction::Ascending => positions.next(),
        Direction::Descending => positions.next_back(),
    }
}

impl Iterator for Cursor {
    type Item = Result<Entry, TreeError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.step() {
            Ok(true) => self.entry().map(Ok),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}
