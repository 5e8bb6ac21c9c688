//! Where a range of keys is cut, so that its parts hold about equally many entries of several trees
//! together.
//!
//! 1. Each tree's entries in the range are cut into equal lengths, some [`LENGTHS_A_PART`] for each
//!    part that is wanted, divided among the trees by how many entries they have.
//! 2. The ends of these lengths, in the order of their keys, tell how many entries lie before each
//!    of them: a part ends at the first that has its share behind it.
//!
//! *Surprise*: one tree alone says little. Of documents written in the order of their keys, those
//! of one run lie side by side, and all others in one part.

use frond_store::ChunkStore;
use frond_tree::{Bounds, Tree, TreeError};

/// A part is off by the lengths that its ends lie in, one of each tree.
const LENGTHS_A_PART: u128 = 2;

/// Cuts `bounds` into at most `count` ranges by the entries of trees, which are counted.
pub(super) fn of_several(
    trees: &[(&Tree, u64)],
    store: &dyn ChunkStore,
    bounds: &Bounds,
    count: usize,
) -> Result<Vec<Bounds>, TreeError> {
    let total: u128 = trees.iter().map(|(_, entries)| u128::from(*entries)).sum();
    let count = count.max(1) as u128;
    let mut ends = Vec::new();
    for (tree, entries) in trees {
        let entries = u128::from(*entries);
        let lengths = (LENGTHS_A_PART * count * entries).div_ceil(total.max(1)) + 1;
        let pieces = tree.split(store, bounds, usize::try_from(lengths).unwrap_or(usize::MAX))?;
        let length = entries / pieces.len().max(1) as u128;
        ends.extend(pieces.into_iter().skip(1).filter_map(|it| Some((it.start?, length))));
    }
    ends.sort();
    // The last length of each tree has no end here.
    let counted: u128 = ends.iter().map(|(_, length)| *length).sum();
    let (mut parts, mut start) = (Vec::new(), bounds.start.clone());
    let mut before = 0;
    for (key, length) in ends {
        before += length;
        let share = counted * (parts.len() as u128 + 1) / count;
        if share <= before && start.as_ref() != Some(&key) && (parts.len() as u128) + 1 < count {
            parts.push(Bounds { start: start.replace(key.clone()), end: Some(key) });
        }
    }
    parts.push(Bounds { start, end: bounds.end.clone() });
    Ok(parts)
}
