//! Passing over the first documents without reading them.
//!
//! Where each entry within the ranges of one tree is a document that is found, counts show which
//! entry is the first that is wanted, or one shortly before it: O(log n), however many are passed
//! over. Entries over the tree are searched for the place by a few counts.

use frond_doc::key::CUT_PREFIX_BYTES;
use frond_tree::{Bounds, Direction, Tree};

use crate::collection::plan::{Access, Source};
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::{Collection, TreeRef};

/// The number of entries up to which they are read where something lies over the tree: a count may
/// have to look up what that is.
const READ_COUNT_MAX: u64 = 256;

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
    // The place of an erased document has an entry.
    let is_natural = path.source == Source::Natural;
    if skip == 0 || !is_exact || is_natural || !path.is_counted_by_ranges() {
        return Ok(skip);
    }
    let tree = path.tree(collection);
    if skip <= READ_COUNT_MAX && reader.settled(tree)?.is_none() {
        return Ok(skip);
    }
    let (mut left, mut passed) = (skip, 0);
    for range in &mut path.ranges {
        let count = reader.count_range(tree, range)?;
        if left < count {
            let (rest, cut) = without_first(reader, tree, range, path.direction, left)?;
            (*range, left) = (rest, left - cut);
            break;
        }
        passed += 1;
        left -= count;
    }
    path.ranges.drain(..passed);
    // Nothing is left to be found where some were left to be passed over.
    Ok(left)
}

/// Returns the items behind the first `count`. Errors are never skipped: one of them may be that
/// the request is to stop.
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

/// A range without the first of the `count` entries that are found in it, which has more, and how
/// many these are. The rest doesn't begin within a run of keys that may have been cut, which isn't
/// in order.
fn without_first(
    reader: &Reader<'_>,
    tree: TreeRef,
    range: &Bounds,
    direction: Direction,
    count: u64,
) -> Result<(Bounds, u64), Error> {
    let whole = || (range.clone(), 0);
    if count == 0 {
        return Ok(whole());
    }
    let (rest, cut) = match reader.settled(tree)? {
        Some(tree) => (without_first_of(reader, tree, range, direction, count)?, count),
        None => reader.without_first(tree, range, direction, count)?.unwrap_or_else(whole),
    };
    let first = match direction {
        Direction::Ascending => &rest.start,
        Direction::Descending => &rest.end,
    };
    let is_in_order = first.as_ref().is_none_or(|key| key.len() <= CUT_PREFIX_BYTES);
    Ok(if is_in_order { (rest, cut) } else { whole() })
}

/// A range of a tree without the first `count` entries that are found in it, which has more.
fn without_first_of(
    reader: &Reader<'_>,
    tree: Tree,
    range: &Bounds,
    direction: Direction,
    count: u64,
) -> Result<Bounds, Error> {
    let store = &**reader.store();
    let ranks = tree.ranks(store, range)?;
    let position = match direction {
        Direction::Ascending => ranks.start.saturating_add(count),
        Direction::Descending => ranks.end.saturating_sub(count),
    };
    let entry = tree.select(store, position)?;
    let key = entry.ok_or_else(|| Error::damaged("a tree has fewer entries than it counts"))?.key;
    Ok(match direction {
        Direction::Ascending => Bounds { start: Some(key), end: range.end.clone() },
        Direction::Descending => Bounds { start: range.start.clone(), end: Some(key) },
    })
}
