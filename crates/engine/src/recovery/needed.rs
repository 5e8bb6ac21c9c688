//! The chunks of packs that a replayed log needs, for a store that can't distinguish damage from a
//! crash ([`frond_store::Maintenance::has_doubts`]): the bases that the log gave to trees, and the
//! chunks of the newest values in the memtable. Older values aren't read any more.
//!
//! Chunks that the log brought are followed here; packs needn't have these.

use std::collections::{BTreeSet, HashSet};

use frond_store::ChunkHash;
use frond_tree::{Bounds, Content, Direction};

use crate::ids::{Sequence, TreeId};
use crate::overlay::interleave::MemtableCursor;
use crate::overlay::memtable::Window;
use crate::overlay::pending::PendingChunks;
use crate::state::State;

/// Returns the chunks that `state`, for which the log goes up to `last`, needs of the packs besides
/// those that are published. The log gave bases to the trees in `logged`.
pub(super) fn needed(
    state: &State,
    pending: &PendingChunks,
    logged: &BTreeSet<TreeId>,
    last: Sequence,
) -> Vec<ChunkHash> {
    let mut open: Vec<ChunkHash> = Vec::new();
    for (tree, generations) in state.trees.iter() {
        let newest = generations.last().and_then(|generation| generation.base.as_ref());
        let Some(base) = newest else { continue };
        if logged.contains(&tree) {
            open.extend(base.roots());
        }
        let window = Window { after: base.folded_to, up_to: last };
        let (all, ascending) = (Bounds::all(), Direction::Ascending);
        let mut entries = MemtableCursor::new(state.active.clone(), tree, all, ascending, window);
        while let Some((_, value)) = entries.next() {
            match value.map(|value| value.content) {
                None | Some(Content::Inline(_)) => {}
                Some(Content::Chunk { hash, .. } | Content::Sequence { root: hash, .. }) => {
                    open.push(hash);
                }
            }
        }
    }
    let (mut seen, mut needed) = (HashSet::new(), Vec::new());
    while let Some(hash) = open.pop() {
        if !seen.insert(hash) {
            continue;
        }
        match pending.get(hash) {
            Some(chunk) => open.extend(chunk.references()),
            None => needed.push(hash),
        }
    }
    needed
}
