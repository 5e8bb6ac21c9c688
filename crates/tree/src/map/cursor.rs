//! Walks a range of a map, up or down, O(1) amortised for an entry.
//!
//! The cursor holds the path from the root to its leaf: at each interior node the children still to
//! come, at the leaf the entries still to come, both already cut to the bounds, so that no key is
//! compared while it walks. It reads nothing before the first `next`, and ends after an error.

use std::ops::Range;
use std::sync::Arc;

use frond_store::{ChunkHash, ChunkStore};

use crate::error::TreeError;
use crate::map::node::MapNode;
use crate::map::{Bounds, Direction, Entry, Tree};

/// An iterator over a range of a tree.
pub struct Cursor {
    store: Arc<dyn ChunkStore>,
    bounds: Bounds,
    direction: Direction,
    /// The root, until it has been read.
    unread_root: Option<ChunkHash>,
    /// From the root down; the last one is a leaf whenever entries are left.
    path: Vec<Step>,
}

struct Step {
    node: MapNode,
    /// Positions still to come.
    positions: Range<usize>,
}

impl Tree {
    /// Returns the entries within `bounds`, in `direction`.
    pub fn range(
        &self,
        store: &Arc<dyn ChunkStore>,
        bounds: Bounds,
        direction: Direction,
    ) -> Cursor {
        let unread_root = Some(self.root);
        Cursor { store: store.clone(), bounds, direction, unread_root, path: Vec::new() }
    }
}

impl Cursor {
    /// Moves to the next entry: its leaf is the last step's.
    fn advance(&mut self) -> Result<Option<Entry>, TreeError> {
        if let Some(root) = self.unread_root.take() {
            let node = MapNode::load(&*self.store, root)?;
            self.enter(node);
        }
        while let Some(step) = self.path.last_mut() {
            let position = match self.direction {
                Direction::Ascending => step.positions.next(),
                Direction::Descending => step.positions.next_back(),
            };
            let Some(position) = position else {
                self.path.pop();
                continue;
            };
            if step.node.is_leaf() {
                return Ok(Some(step.node.owned_entry(position)));
            }
            let child = step.node.load_child(&*self.store, position)?;
            self.enter(child);
        }
        Ok(None)
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
        self.path.push(Step { node, positions: start..end });
    }
}

impl Iterator for Cursor {
    type Item = Result<Entry, TreeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.advance();
        if entry.is_err() {
            self.path.clear();
        }
        entry.transpose()
    }
}
