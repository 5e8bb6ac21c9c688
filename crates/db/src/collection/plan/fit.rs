//! Ranges of keys as trees have them: keys that are too long are cut there ([`key::cut`]).
//!
//! A bound of up to [`key::CUT_PREFIX_BYTES`] parts cut keys as it parts whole ones. A longer one
//! is put where all keys with its first bytes are within: what is read besides is filtered again.
//! The one key of a document or of a unique index is looked up as it was cut.

use frond_doc::key;
use frond_tree::{Bounds, Direction};

/// Puts ranges, which are disjoint and in the order of `direction`, where entries are. Answers
/// whether they are wider than they were. `is_whole` says which keys may be looked up.
pub(super) fn fit(
    ranges: &mut Vec<Bounds>,
    direction: Direction,
    is_whole: &dyn Fn(&[u8]) -> bool,
) -> bool {
    if ranges.iter().all(|range| !is_long(range)) {
        return false;
    }
    let point = |range: &Bounds| {
        let start = range.start.as_ref().filter(|start| is_whole(start))?;
        range.is_of_prefix().then(|| Bounds::prefix(&key::cut(start.to_vec())))
    };
    let points: Option<Vec<Bounds>> = ranges
        .iter()
        .map(|range| if is_long(range) { point(range) } else { Some(range.clone()) })
        .collect();
    if let Some(points) = points {
        *ranges = points;
        return false;
    }
    let mut fitted: Vec<Bounds> = Vec::with_capacity(ranges.len());
    for range in ranges.drain(..) {
        let range = widened(range);
        match fitted.last_mut() {
            Some(before) if overlap(before, &range, direction) => match direction {
                Direction::Ascending => before.end = range.end,
                Direction::Descending => before.start = range.start,
            },
            _ => fitted.push(range),
        }
    }
    *ranges = fitted;
    true
}

/// Whether a bound lies within what cut keys have lost.
fn is_long(range: &Bounds) -> bool {
    let bounds = [&range.start, &range.end];
    bounds.into_iter().flatten().any(|bound| bound.len() > key::CUT_PREFIX_BYTES)
}

fn widened(range: Bounds) -> Bounds {
    let most = key::CUT_PREFIX_BYTES;
    Bounds {
        start: range.start.map(|start| start.slice(..start.len().min(most))),
        end: match range.end {
            Some(end) if end.len() > most => Bounds::prefix(&end[..most]).end,
            end => end,
        },
    }
}

/// Whether two ranges, the second of which is reached later, have keys in common.
fn overlap(first: &Bounds, second: &Bounds, direction: Direction) -> bool {
    let (lower, upper) = match direction {
        Direction::Ascending => (first, second),
        Direction::Descending => (second, first),
    };
    match (&lower.end, &upper.start) {
        (Some(end), Some(start)) => start < end,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: &[u8], end: &[u8]) -> Bounds {
        Bounds { start: Some(start.to_vec().into()), end: Some(end.to_vec().into()) }
    }

    #[test]
    fn long_bounds_are_put_where_all_that_begins_so_is_within() {
        let long = |end: u8| [&vec![7; 9_000][..], &[end]].concat();
        let (cut, behind) = (vec![7; key::CUT_PREFIX_BYTES], Bounds::prefix(&[7; 8_128]).end);
        let behind = behind.expect("there is one");
        let check = |mut ranges: Vec<Bounds>, direction, expected: Vec<Bounds>| {
            let is_wider = fit(&mut ranges, direction, &|_| false);
            assert_eq!((ranges, is_wider), (expected, true));
        };
        use Direction::{Ascending, Descending};
        let all = || range(&cut, &behind);
        check(vec![range(&long(1), &long(2))], Ascending, vec![all()]);
        // All but one key.
        let except = [range(&[1], &long(1)), range(&long(2), &[9])];
        check(except.to_vec(), Ascending, vec![range(&[1], &[9])]);
        check(except.into_iter().rev().collect(), Descending, vec![range(&[1], &[9])]);
        let apart = vec![range(&[1], &[2]), range(&long(1), &long(2)), range(&[8], &[9])];
        check(apart, Ascending, vec![range(&[1], &[2]), all(), range(&[8], &[9])]);
        let mut short = vec![range(&[1], &[2])];
        assert!(!fit(&mut short, Ascending, &|_| true));
        assert_eq!(short, [range(&[1], &[2])]);
        let mut whole = vec![Bounds::prefix(&long(1))];
        assert!(!fit(&mut whole, Ascending, &|_| true));
        assert_eq!(whole, [Bounds::prefix(&key::cut(long(1)))]);
    }
}
