//! Walks a whole sequence and checks every invariant of `sequence` (see there).

use frond_store::ChunkStore;
use frond_store::chunk::HASH_BYTES;

use crate::boundary::BoundaryRule;
use crate::error::TreeError;
use crate::format::TreeFormat;
use crate::sequence::Sequence;
use crate::sequence::node::{SequenceNode, Sums};
use crate::sequence::window::Window;
use crate::sequence::writer::entry_bytes;

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
        // A leaf's references, of which each item that refers to a chunk ends with the next.
        let mut reference_count = 0;
        for entry in 0..node.entry_count() {
            let is_end = entry + 1 == node.entry_count();
            let content = node.entry_content(entry);
            if node.is_leaf() {
                if content.len() > self.format.item_bytes_max() {
                    return damaged(format!("item {entry} has {} bytes", content.len()));
                }
            } else {
                let child = node.load_child(self.store, entry)?;
                if child.entry_count() == 0 {
                    return damaged(format!("child {entry} is empty"));
                }
                self.node(&child, is_last && is_end)?;
            }
            sums.add(&node.entry_sums(entry));
            let hash = self.windows[usize::from(node.level())].push(content, true);
            let before = bytes;
            bytes += entry_bytes(node.level(), content.len());
            if node.is_leaf()
                && reference_count < node.chunk().reference_count()
                && content.ends_with(&node.chunk().reference(reference_count).0)
            {
                reference_count += 1;
                bytes += HASH_BYTES as u64;
            }
            let ends = rule.ends_node(entry + 1, hash, before, bytes);
            if ends && !is_end || is_end && !ends && !is_last {
                return damaged(format!("entry {entry} is on the wrong side of a boundary"));
            }
        }
        if node.is_leaf() && reference_count != node.chunk().reference_count() {
            return damaged("a reference that no item ends with".to_owned());
        }
        if sums != node.sums() {
            return damaged(format!("sums are {:?}, expected {sums:?}", node.sums()));
        }
        Ok(())
    }
}
