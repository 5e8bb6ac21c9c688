//! Walks a whole sequence and checks every invariant of `sequence` (see there).

use frond_store::ChunkStore;

use crate::boundary::BoundaryRule;
use crate::error::TreeError;
use crate::format::TreeFormat;
use crate::sequence::Sequence;
use crate::sequence::node::{SequenceNode, Sums};
use crate::sequence::window::Window;

impl Sequence {
    /// Walks the whole sequence and checks every invariant: boundaries, sums, sizes.
    ///
    /// # Errors
    /// [`TreeError::Damaged`] for the first node that breaks one; as the store.
    pub fn check(&self, store: &dyn ChunkStore) -> Result<(), TreeError> {
        let root = SequenceNode::load(store, self.root)?;
        if !root.is_leaf() && root.entry_count() < 2 {
            return Err(TreeError::damaged(self.root, "a root with a single child"));
        }
        let windows = (0..=root.level()).map(|level| Window::new(&self.format, level)).collect();
        Check { store, format: self.format, windows }.node(&root, true)
    }
}

struct Check<'a> {
    store: &'a dyn ChunkStore,
    format: TreeFormat,
    /// One a level.
    windows: Vec<Window>,
}

impl Check<'_> {
    /// Checks a node and all below it; recursion goes down one level a step.
    fn node(&mut self, node: &SequenceNode, is_last: bool) -> Result<(), TreeError> {
        let damaged = |what: String| Err(TreeError::damaged(node.hash(), what));
        if node.chunk().encoded().len() as u64 > self.format.chunk_bytes_max() {
            return damaged(format!("a node of {} bytes", node.chunk().encoded().len()));
        }
        let rule = BoundaryRule::new(&self.format, node.level());
        let (mut bytes, mut sums) = (0, Sums::default());
        for (entry, content) in node.entries(0).enumerate() {
            let is_end = entry + 1 == node.entry_count();
            if node.is_leaf() {
                if content.bytes() > self.format.item_bytes_max() {
                    return damaged(format!("item {entry} has {} bytes", content.bytes()));
                }
            } else {
                let child = node.load_child(self.store, entry)?;
                if child.entry_count() == 0 {
                    return damaged(format!("child {entry} is empty"));
                }
                self.node(&child, is_last && is_end)?;
            }
            sums.add(&node.entry_sums(entry));
            let hash = self.windows[usize::from(node.level())].push(&content, true);
            let before = bytes;
            bytes += content.bytes_in_node(node.level());
            let ends = rule.ends_node(entry + 1, hash, before, bytes);
            if ends && !is_end || is_end && !ends && !is_last {
                return damaged(format!("entry {entry} is on the wrong side of a boundary"));
            }
        }
        if sums != node.sums() {
            return damaged(format!("sums are {:?}, expected {sums:?}", node.sums()));
        }
        Ok(())
    }
}
