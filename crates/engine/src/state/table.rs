//! The generations of all trees, in a table that is cheap to copy: idle trees cost nothing when
//! another changes.
//!
//! Two levels: blocks of [`BLOCK_TREES`] consecutive ids behind one pointer each. A copy shares all
//! blocks; a change copies one block and the list of blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::TreeGeneration;
use crate::ids::TreeId;

/// The number of trees of a block: with 100,000 trees, a change then copies 400 pointers and 256
/// short lists.
const BLOCK_TREES: u64 = 256;

type Block = BTreeMap<TreeId, Vec<TreeGeneration>>;

/// The generations of each tree, by id. Cloning shares.
#[derive(Clone, Default)]
pub(crate) struct TreeTable {
    blocks: BTreeMap<u64, Arc<Block>>,
}

impl TreeTable {
    /// The generations of `tree`, the oldest first; none if there is no such tree.
    pub fn get(&self, tree: TreeId) -> &[TreeGeneration] {
        let block = self.blocks.get(&(tree.0 / BLOCK_TREES));
        block.and_then(|block| block.get(&tree)).map_or(&[], |generations| generations)
    }

    /// Changes the generations of `tree`; a tree without any is gone.
    pub fn modify(&mut self, tree: TreeId, change: impl FnOnce(&mut Vec<TreeGeneration>)) {
        let block = Arc::make_mut(self.blocks.entry(tree.0 / BLOCK_TREES).or_default());
        let generations = block.entry(tree).or_default();
        change(generations);
        if generations.is_empty() {
            block.remove(&tree);
        }
    }

    /// All trees in order of their ids, with their generations.
    pub fn iter(&self) -> impl Iterator<Item = (TreeId, &[TreeGeneration])> {
        let blocks = self.blocks.values();
        blocks.flat_map(|block| block.iter()).map(|(tree, generations)| (*tree, &generations[..]))
    }
}
