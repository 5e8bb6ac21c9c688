//! From the intervals of an index's fields to bounds of its compound keys.
//!
//! Fields whose intervals are single values are fixed, in all combinations; the first field with a
//! real range ends the bounds; fields behind it are left to the filter.

use bytes::Bytes;
use frond_doc::key::Bounds;

use super::IndexFacts;
use super::conditions::{self, Demand, Rules};
use super::interval::{Cut, Interval, Intervals};
use crate::filter::tree::Node;
use crate::index::partial;
use crate::sort::{SortField, SortPattern};

/// More bounds than this are not made: the scan takes in what lies between them.
const BOUNDS_COUNT_MAX: usize = 10_000;

/// How an index can be scanned for a filter.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    /// Disjoint, ascending.
    pub(super) bounds: Vec<Bounds>,
    /// Whether the filter limits the scan at all.
    pub(super) is_bounded: bool,
    /// Whether all fields are fixed to one value.
    pub(super) is_point: bool,
    /// How many of the first fields have one value in the whole scan.
    fixed_count: usize,
}

/// How `facts`'s index can be scanned for `root`; `None` if the index may lack documents that pass.
pub(super) fn scan(root: &Node, facts: &IndexFacts) -> Option<Scan> {
    let shape = &facts.shape;
    if !shape.is_of_values() {
        return None;
    }
    if shape.partial().is_some_and(|partial| !partial::node_implies(root, partial.root())) {
        return None;
    }
    let fields = shape.sort_fields();
    let demand = |(place, field): (usize, &SortField)| {
        let rules = Rules::new(&field.path, facts.is_multikey(place), shape.collation());
        conditions::of_node(root, &field.path, rules)
    };
    let demands: Vec<Option<Demand>> = fields.iter().enumerate().map(demand).collect();
    if shape.is_sparse() && !demands.iter().flatten().any(|demand| demand.is_present) {
        return None;
    }
    let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
    let mut fixed_count = 0;
    for (place, (field, demand)) in fields.iter().zip(&demands).enumerate() {
        let demand = demand.as_ref().filter(|demand| !demand.intervals.is_all());
        let may_go_on = !facts.is_multikey(place) || !shares_array(facts, place);
        let Some(demand) = demand.filter(|_| may_go_on) else {
            return Some(finish(prefixes, place, fixed_count, false));
        };
        let intervals = demand.intervals.as_slice();
        let is_small = intervals.len().saturating_mul(prefixes.len()) <= BOUNDS_COUNT_MAX;
        if !demand.intervals.are_points() || !is_small {
            let bounds = ranges(&prefixes, field, &demand.intervals, is_small);
            let bounds = ascending(bounds);
            return Some(Scan { bounds, is_bounded: true, is_point: false, fixed_count });
        }
        if intervals.len() == 1 && fixed_count == place {
            fixed_count += 1;
        }
        prefixes = extended(&prefixes, field, intervals);
    }
    let is_whole = fixed_count == fields.len();
    Some(finish(prefixes, fields.len(), fixed_count, is_whole))
}

/// Whether an earlier field lies below the same top-level field, and so perhaps in the same array:
/// the two conditions may be fulfilled by different elements, which have different keys.
fn shares_array(facts: &IndexFacts, place: usize) -> bool {
    let top = |field: &SortField| field.path.split('.').next().map(str::to_owned);
    let fields = facts.shape.sort_fields();
    let this = top(&fields[place]);
    fields[..place].iter().any(|earlier| top(earlier) == this)
}

/// Bounds of fixed fields alone.
fn finish(prefixes: Vec<Vec<u8>>, count: usize, fixed_count: usize, is_point: bool) -> Scan {
    let bounds = match count {
        0 => vec![Bounds::all()],
        _ => prefixes.iter().map(|prefix| Bounds::prefix(prefix)).collect(),
    };
    Scan { bounds: ascending(bounds), is_bounded: count > 0, is_point, fixed_count }
}

fn extended(prefixes: &[Vec<u8>], field: &SortField, points: &[Interval]) -> Vec<Vec<u8>> {
    let mut longer = Vec::with_capacity(prefixes.len() * points.len());
    for prefix in prefixes {
        for point in points.iter().filter_map(Interval::as_point) {
            let mut key = prefix.clone();
            key.extend(point.iter().map(|byte| if field.descending { !byte } else { *byte }));
            longer.push(key);
        }
    }
    longer
}

/// Bounds that end with intervals of `field`; if there are too many, with what they span.
fn ranges(
    prefixes: &[Vec<u8>],
    field: &SortField,
    intervals: &Intervals,
    is_small: bool,
) -> Vec<Bounds> {
    let intervals = intervals.as_slice();
    let spanned = match intervals {
        [first, .., last] if !is_small => {
            vec![Interval { start: first.start.clone(), end: last.end.clone() }]
        }
        _ => intervals.to_vec(),
    };
    let mut bounds = Vec::with_capacity(prefixes.len() * spanned.len());
    for prefix in prefixes {
        for interval in &spanned {
            let (start, end) = match field.descending {
                false => (interval.start.clone(), interval.end.clone()),
                true => (interval.end.inverted(), interval.start.inverted()),
            };
            bounds.push(Bounds {
                start: position_after(prefix, &start),
                end: position_after(prefix, &end),
            });
        }
    }
    bounds
}

/// The first key behind a cut among the keys that begin with `prefix`.
fn position_after(prefix: &[u8], cut: &Cut) -> Option<Bytes> {
    match cut.position() {
        Some(position) => Some([prefix, &position].concat().into()),
        None => Bounds::prefix(prefix).end,
    }
}

fn ascending(mut bounds: Vec<Bounds>) -> Vec<Bounds> {
    bounds.sort_by(|left, right| left.start.cmp(&right.start));
    bounds
}

impl Scan {
    /// Whether the scan gives the order of `sort`, forwards (`Some(false)`) or backwards.
    pub(super) fn direction_for(&self, sort: &SortPattern, facts: &IndexFacts) -> Option<bool> {
        // Of an array the least element counts in a sort, and a scan may meet another one first.
        if facts.flags != 0 || sort.fields.is_empty() || sort.collation != *facts.shape.collation()
        {
            return None;
        }
        let (fixed, rest) = facts.shape.sort_fields().split_at(self.fixed_count);
        let is_fixed = |path: &str| fixed.iter().any(|field| field.path == path);
        let mut wanted = sort.fields.iter().filter(|field| !is_fixed(&field.path));
        let mut given = rest.iter();
        let mut direction = None;
        for wanted in &mut wanted {
            let given = given.next().filter(|given| given.path == wanted.path)?;
            let backwards = given.descending != wanted.descending;
            if *direction.get_or_insert(backwards) != backwards {
                return None;
            }
        }
        Some(direction.unwrap_or(false))
    }
}
