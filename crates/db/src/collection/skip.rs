//! Passing over the first documents without reading them.
//!
//! Where each entry within the ranges of one tree is a document that is found, and nothing lies
//! over the tree, the tree's counts tell which entry is the first that is wanted: O(log n), however
//! many are passed over.

use frond_doc::key::CUT_PREFIX_BYTES;
use frond_tree::{Bounds, Direction, Tree};

use crate::collection::plan::Access;
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::Collection;

/// Cuts as many of the first `skip` documents off `access` as can be counted; answers how many are
/// left to be passed over.
pub(crate) fn pass_over(
    reader: &Reader<'_>,
    collection: &Collection,
    access: &mut Access,
    skip: u64,
) -> Result<u64, Error> {
    let is_exact = access.is_exact;
    let [path] = &mut access.paths[..] else { return Ok(skip) };
    if skip == 0 || !is_exact || !path.is_counted_by_ranges() {
        return Ok(skip);
    }
    let Some(tree) = reader.settled(path.tree(collection))? else { return Ok(skip) };
    let (mut left, mut passed) = (skip, 0);
    for range in &mut path.ranges {
        let count = tree.count_range(&**reader.store(), range)?;
        if left < count {
            if 0 < left {
                match without_first(reader, tree, range, path.direction, left)? {
                    Some(rest) => (*range, left) = (rest, 0),
                    None => return Ok(skip),
                }
            }
            break;
        }
        passed += 1;
        left -= count;
    }
    path.ranges.drain(..passed);
    // Nothing is left to be found where some were left to be passed over.
    Ok(left)
}

/// What follows the first `count` that are found. Errors are passed over never: one of them may be
/// that the request is to stop.
pub(crate) fn behind<T, E>(
    found: impl Iterator<Item = Result<T, E>>,
    count: usize,
) -> impl Iterator<Item = Result<T, E>> {
    let mut left = count;
    found.filter(move |item| {
        let is_passed = 0 < left && item.is_ok();
        left -= usize::from(is_passed);
        !is_passed
    })
}

/// A range without the first `count` entries that are met in it, which has more; `None` if those
/// that are left begin within a run of keys that may have been cut, which isn't in order.
fn without_first(
    reader: &Reader<'_>,
    tree: Tree,
    range: &Bounds,
    direction: Direction,
    count: u64,
) -> Result<Option<Bounds>, Error> {
    let store = &**reader.store();
    let position = match (direction, &range.start, &range.end) {
        (Direction::Ascending, Some(start), _) => tree.rank(store, start)?.saturating_add(count),
        (Direction::Ascending, None, _) => count,
        (Direction::Descending, _, Some(end)) => tree.rank(store, end)?.saturating_sub(count),
        (Direction::Descending, _, None) => tree.count(store)?.saturating_sub(count),
    };
    let entry = tree.select(store, position)?;
    let key = entry.ok_or_else(|| Error::damaged("a tree has fewer entries than it counts"))?.key;
    if key.len() > CUT_PREFIX_BYTES {
        return Ok(None);
    }
    Ok(Some(match direction {
        Direction::Ascending => Bounds { start: Some(key), end: range.end.clone() },
        Direction::Descending => Bounds { start: range.start.clone(), end: Some(key) },
    }))
}
