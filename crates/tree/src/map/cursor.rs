//! Walks a range of a map, up or down, O(1) amortised for an entry.
//!
//! The cursor holds the path from the root to its leaf: at each interior node the children still to
//! come, at the leaf the entries still to come, both already cut to the bounds, so that no key is
//! compared while it walks. It reads nothing before the first step, and ends after an error.
//!
//! A caller that only looks at entries steps and borrows ([`Cursor::step`], [`Cursor::entry_ref`]):
//! an owned [`Entry`] shares two parts of its leaf, which counts up and down four times, and that
//! is two thirds of a scan.
//!
//! *Reading ahead*: a range asks for its next leaves at once, for more and more of them, but never
//! beyond the bounds or the parent's last child.
//!
//! *Damage* ends a cursor, unless the store says that it is passed over
//! ([`ChunkStore::skip_unreadable`]): then the next child is gone on with.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use frond_store::{ChunkHash, ChunkStore, Prefetched, ReadOptions, StoreError, UnreadableRange};

use crate::error::TreeError;
use crate::map::node::{EntryRef, MapNode};
use crate::map::{Bounds, Direction, Entry, Tree};

/// The number of leaves that are asked for at once at first, and at most: a cursor that waits keeps
/// them in memory.
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
    /// The number of leaves that were asked for the last time.
    ahead_count: usize,
}

struct Step {
    node: MapNode,
    /// Positions still to come.
    positions: Range<usize>,
    /// The first of them that have been read already.
    ahead: VecDeque<Prefetched>,
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
            match MapNode::load(&*self.store, root) {
                Ok(node) => self.enter(node),
                Err(error) => self.skip_unreadable(Some(root), None, error)?,
            }
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
                let read = step.prefetch(&*self.store, self.ahead_count, self.direction);
                // Each is read alone then, and reported if it is the damaged one.
                read.or_else(|error| if is_damage(&error) { Ok(()) } else { Err(error) })?;
            }
            let Some(position) = next_of(&mut step.positions, self.direction) else {
                self.path.pop();
                continue;
            };
            let child = match step.ahead.pop_front() {
                Some(ahead) => {
                    let opened = self
                        .store
                        .open_prefetched(ahead, ReadOptions::default())
                        .map_err(TreeError::from);
                    opened.and_then(|chunk| step.node.open_child(chunk))
                }
                None => step.node.load_child(&*self.store, position),
            };
            match child {
                Ok(child) => self.enter(child),
                Err(error) => {
                    let chunk = step.node.child_hash(position);
                    self.skip_unreadable(Some(chunk), Some(position), error)?;
                }
            }
        }
    }

    /// Goes on behind the child at `position` of the last interior node, or the root, if the store
    /// says so.
    fn skip_unreadable(
        &self,
        chunk: Option<ChunkHash>,
        position: Option<usize>,
        error: TreeError,
    ) -> Result<(), TreeError> {
        let parent = self.path.last().zip(position);
        let child = parent.map(|(step, position)| step.node.child(position));
        let lost = UnreadableRange {
            chunk,
            after: parent.and_then(|(_, position)| self.key_before(position)),
            up_to: child.as_ref().map(|child| child.key.clone()),
            count: child.map(|child| child.summary.count),
            why: error.to_string(),
        };
        if is_damage(&error) && self.store.skip_unreadable(lost) { Ok(()) } else { Err(error) }
    }

    /// The last key before the child at `position` of the last interior node.
    fn key_before(&self, mut position: usize) -> Option<Bytes> {
        for (depth, step) in self.path.iter().enumerate().rev() {
            if position > 0 {
                return Some(step.node.key_bytes(position - 1));
            }
            // The position of the parent: at the child that this node is.
            let above = &self.path.get(depth.checked_sub(1)?)?.positions;
            position = match self.direction {
                Direction::Ascending => above.start.checked_sub(1)?,
                Direction::Descending => above.end,
            };
        }
        None
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
    fn prefetch(
        &mut self,
        store: &dyn ChunkStore,
        count: usize,
        direction: Direction,
    ) -> Result<(), TreeError> {
        let mut positions = self.positions.clone();
        let next = std::iter::from_fn(|| next_of(&mut positions, direction)).take(count);
        let hashes: Vec<ChunkHash> = next.map(|position| self.node.child_hash(position)).collect();
        if !hashes.is_empty() {
            self.ahead = store.prefetch(&hashes)?.into();
        }
        Ok(())
    }
}

fn is_damage(error: &TreeError) -> bool {
    use StoreError::{Damaged, Missing};
    matches!(error, TreeError::Damaged { .. } | TreeError::Store(Damaged { .. } | Missing(_)))
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
