//! Sets of values of one field, as intervals of their ascending keys.
//!
//! Keys end by themselves: no value's key begins with another value's key. So "up to and including
//! x" ends after everything that begins with x's key, whatever fields follow in a compound key, and
//! inverting all bytes turns an interval of an ascending field into one of a descending field.
//!
//! *Invariant* of [`Intervals`]: they ascend, are disjoint and not empty.

use std::cmp::Ordering;

use frond_doc::key;
use frond_doc::{Value, key::Bounds};

/// A place between keys: before or after everything that begins with some bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Cut {
    Before(Vec<u8>),
    After(Vec<u8>),
}

impl Cut {
    /// The first key behind the cut; `None` if nothing can be.
    pub(super) fn position(&self) -> Option<Vec<u8>> {
        match self {
            Cut::Before(bytes) => Some(bytes.clone()),
            Cut::After(bytes) => Bounds::prefix(bytes).end.map(|end| end.to_vec()),
        }
    }

    /// The position as bytes of the cut's own, and one behind them.
    fn parts_of_position(&self) -> Option<(&[u8], Option<u8>)> {
        match self {
            Cut::Before(bytes) => Some((bytes, None)),
            Cut::After(bytes) => {
                let last = bytes.iter().rposition(|byte| *byte != 0xff)?;
                Some((&bytes[..last], Some(bytes[last] + 1)))
            }
        }
    }

    /// The same place among inverted keys, whose order is the other way round.
    pub(super) fn inverted(&self) -> Cut {
        let invert = |bytes: &[u8]| bytes.iter().map(|byte| !byte).collect();
        match self {
            Cut::Before(bytes) => Cut::After(invert(bytes)),
            Cut::After(bytes) => Cut::Before(invert(bytes)),
        }
    }
}

/// Compares by positions, which aren't made for it: a list of values takes many comparisons.
impl Ord for Cut {
    fn cmp(&self, other: &Cut) -> Ordering {
        match (self.parts_of_position(), other.parts_of_position()) {
            (Some((left, left_last)), Some((right, right_last))) => {
                let (common, left_rest, right_rest) = split_common(left, right);
                common.then_with(|| {
                    let left = left_rest.iter().copied().chain(left_last);
                    left.cmp(right_rest.iter().copied().chain(right_last))
                })
            }
            (left, right) => left.is_none().cmp(&right.is_none()),
        }
    }
}

/// Returns how two keys compare as far as the shorter one goes, and what is left of each.
fn split_common<'k>(left: &'k [u8], right: &'k [u8]) -> (Ordering, &'k [u8], &'k [u8]) {
    let common = left.len().min(right.len());
    let ((left, left_rest), (right, right_rest)) = (left.split_at(common), right.split_at(common));
    (left.cmp(right), left_rest, right_rest)
}

impl PartialOrd for Cut {
    fn partial_cmp(&self, other: &Cut) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The keys from one cut to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Interval {
    pub(super) start: Cut,
    pub(super) end: Cut,
}

impl Interval {
    /// Everything.
    pub(super) fn all() -> Interval {
        Interval { start: Cut::Before(Vec::new()), end: Cut::After(Vec::new()) }
    }

    /// The one value.
    pub(super) fn point(value: Value<'_>) -> Interval {
        Interval::of_key(&key::of_value(value))
    }

    /// The one value of this key.
    pub(super) fn of_key(key: &[u8]) -> Interval {
        Interval { start: Cut::Before(key.to_vec()), end: Cut::After(key.to_vec()) }
    }

    /// All values whose keys begin with `bytes`, which are not a whole value's key. The end is
    /// given by what comes behind it, so that this is never taken for a point.
    pub(super) fn beginning_with(bytes: Vec<u8>) -> Interval {
        let end = match Bounds::prefix(&bytes).end {
            Some(end) => Cut::Before(end.to_vec()),
            None => Cut::After(Vec::new()),
        };
        Interval { start: Cut::Before(bytes), end }
    }

    /// All values of the type of `value`.
    pub(super) fn bracket(value: Value<'_>) -> Interval {
        let (first, after) = key::bracket(value);
        Interval { start: Cut::Before(first.to_vec()), end: Cut::Before(after.to_vec()) }
    }

    /// The key of the only value; `None` if there may be more.
    pub(super) fn as_point(&self) -> Option<&[u8]> {
        match (&self.start, &self.end) {
            (Cut::Before(start), Cut::After(end)) if start == end && !start.is_empty() => {
                Some(start)
            }
            _ => None,
        }
    }
}

/// A set of intervals.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Intervals(Vec<Interval>);

impl Intervals {
    /// Everything.
    pub(super) fn all() -> Intervals {
        Intervals(vec![Interval::all()])
    }

    /// The union of the intervals.
    pub(super) fn union_of(mut intervals: Vec<Interval>) -> Intervals {
        intervals.retain(|interval| interval.start < interval.end);
        intervals.sort_by(|left, right| left.start.cmp(&right.start));
        let mut merged: Vec<Interval> = Vec::with_capacity(intervals.len());
        for interval in intervals {
            match merged.last_mut() {
                Some(last) if interval.start < last.end => {
                    if interval.end > last.end {
                        last.end = interval.end;
                    }
                }
                _ => merged.push(interval),
            }
        }
        Intervals(merged)
    }

    /// Single values, ascending strictly.
    pub(super) fn of_points(points: impl Iterator<Item = Interval>) -> Intervals {
        Intervals(points.collect())
    }

    /// Returns the intersection of both.
    pub(super) fn intersection(&self, other: &Intervals) -> Intervals {
        let mut both = Vec::new();
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(first), Some(second)) = (left.peek(), right.peek()) {
            let start = (&first.start).max(&second.start);
            let end = (&first.end).min(&second.end);
            if start < end {
                both.push(Interval { start: start.clone(), end: end.clone() });
            }
            if first.end < second.end {
                left.next();
            } else {
                right.next();
            }
        }
        Intervals(both)
    }

    /// Returns the values outside all intervals.
    pub(super) fn complement(&self) -> Intervals {
        let mut outside = Vec::with_capacity(self.0.len() + 1);
        let all = Interval::all();
        let mut start = all.start;
        for interval in &self.0 {
            outside.push(Interval { start, end: interval.start.clone() });
            start = interval.end.clone();
        }
        outside.push(Interval { start, end: all.end });
        Intervals::union_of(outside)
    }

    /// Whether some value of the type of `value` lies within.
    pub(super) fn has_type(&self, value: Value<'_>) -> bool {
        let bracket = Intervals(vec![Interval::bracket(value)]);
        !self.intersection(&bracket).0.is_empty()
    }

    /// The intervals, ascending.
    pub(super) fn as_slice(&self) -> &[Interval] {
        &self.0
    }

    /// Takes the intervals.
    pub(super) fn into_vec(self) -> Vec<Interval> {
        self.0
    }

    /// Whether this is everything.
    pub(super) fn is_all(&self) -> bool {
        self.0 == [Interval::all()]
    }

    /// Whether there are only single values.
    pub(super) fn are_points(&self) -> bool {
        self.0.iter().all(|interval| interval.as_point().is_some())
    }

    /// A guess of which of two sets holds less, before anything is counted: single values, then
    /// what has two ends within a type, then the rest.
    pub(super) fn width(&self) -> (u8, usize) {
        let class = if self.are_points() {
            0
        } else if self.is_all() {
            3
        } else if self.0.iter().all(|interval| is_cut_in_type(&interval.start, &interval.end)) {
            1
        } else {
            2
        };
        (class, self.0.len())
    }
}

/// Whether both cuts lie within types, not at their borders (which are keys of one byte).
fn is_cut_in_type(start: &Cut, end: &Cut) -> bool {
    let is_within = |cut: &Cut| match cut {
        Cut::Before(bytes) | Cut::After(bytes) => bytes.len() > 1,
    };
    is_within(start) && is_within(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_ordered_by_their_positions() {
        let bytes = [0, 1, 0x7f, 0xfe, 0xff];
        let mut keys = vec![Vec::new()];
        for first in bytes {
            keys.push(vec![first]);
            for second in bytes {
                keys.push(vec![first, second]);
                keys.extend(bytes.map(|third| vec![first, second, third]));
            }
        }
        let cuts: Vec<Cut> =
            keys.into_iter().flat_map(|key| [Cut::Before(key.clone()), Cut::After(key)]).collect();
        for left in &cuts {
            for right in &cuts {
                let expected = match (left.position(), right.position()) {
                    (Some(left), Some(right)) => left.cmp(&right),
                    (left, right) => left.is_none().cmp(&right.is_none()),
                };
                assert_eq!(left.cmp(right), expected, "{left:?} {right:?}");
            }
        }
    }
}
