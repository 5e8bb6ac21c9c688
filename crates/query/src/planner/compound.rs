//! From the intervals of an index's parts to bounds of its compound keys.
//!
//! 1. Parts whose intervals are single values are fixed, in all combinations.
//! 2. The first part with a real range ends the *ranges* of keys that are scanned.
//! 3. Parts behind it are *checked* in each key: a key that has another value there is passed over
//!    without its document being read, and the scan goes on behind what can't fit
//!    ([`super::PartCheck`]).

use bytes::Bytes;
use frond_doc::key::Bounds;

use super::conditions::{self, PathBounds};
use super::defect::{Defect, is_planted};
use super::interval::{Cut, Interval, Intervals};
use super::parts::{self, Part};
use super::{FieldBounds, IndexFacts, PartCheck};
use crate::filter::Filter;
use crate::filter::tree::Node;
use crate::index::partial;
use crate::sort::SortPattern;

/// The number of bounds above which no more are made: the scan takes in what lies between them.
const BOUNDS_COUNT_MAX: usize = 10_000;

/// A scan of an index for a filter.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    /// Disjoint, ascending.
    pub(super) ranges: Vec<Bounds>,
    /// The conditions on parts behind those of the ranges.
    pub(super) checks: Vec<PartCheck>,
    /// The bounds of each part.
    pub(super) fields: Vec<FieldBounds>,
    /// Whether the filter limits the ranges at all.
    pub(super) is_bounded: bool,
    /// Whether all parts are fixed to one value.
    pub(super) is_point: bool,
    /// Whether each document that has a key within passes. (Checks are part of it.)
    pub(super) is_exact: bool,
    /// Whether one document may have several keys within.
    pub(super) may_repeat: bool,
    parts: Vec<Part>,
    /// The number of the first parts that have one value in the whole scan.
    fixed_count: usize,
    /// The number of the first parts that have one value in each range.
    pointed_count: usize,
}

/// The direction of a scan that gives an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Direction {
    /// Whether it goes from the greatest key to the least.
    pub(super) is_backwards: bool,
    /// Whether only each range is in order, so that they have to be merged.
    pub(super) is_merged: bool,
}

/// The ways in which `facts`'s index can be scanned for `root`; none if it may lack documents that
/// pass.
pub(super) fn scans(root: &Node, facts: &IndexFacts) -> Vec<Scan> {
    let lacks = |partial: &Filter| !partial::node_implies(root, partial.root());
    if facts.shape.partial().is_some_and(lacks) && !is_planted(Defect::PartialForAll) {
        return Vec::new();
    }
    let variants = parts::variants(root, facts);
    variants.into_iter().filter_map(|parts| scan(root, facts, parts)).collect()
}

fn scan(root: &Node, facts: &IndexFacts, parts: Vec<Part>) -> Option<Scan> {
    let mut demands: Vec<Option<PathBounds>> = parts.iter().map(|part| part.demand(root)).collect();
    let is_answered =
        parts.iter().zip(&demands).all(|(part, demand)| part.is_answered(demand.as_ref()));
    let is_there = |demand: &PathBounds| demand.is_present;
    let lacks = facts.shape.is_sparse() && !demands.iter().flatten().any(is_there);
    if !is_answered || lacks && !is_planted(Defect::SparseForAll) {
        return None;
    }
    let is_joint = join(root, &parts, &mut demands);
    let used = usable(&parts, &demands, &is_joint);
    let is_exact = is_exact(root, &parts, &demands, &used);
    let is_used: Vec<bool> = used.iter().map(Option::is_some).collect();
    let taken = |(demand, is_used): (Option<PathBounds>, bool)| match demand {
        Some(demand) if is_used => demand.intervals,
        _ => Intervals::all(),
    };
    let intervals: Vec<Intervals> = demands.into_iter().zip(is_used).map(taken).collect();
    let mut made = ranges_of(&parts, &intervals);
    let field = |(part, intervals): (&Part, Intervals)| FieldBounds {
        name: part.name.clone(),
        descending: part.descending,
        intervals,
    };
    let fields = parts.iter().zip(intervals).map(field).collect();
    made.ranges.sort_by(|left, right| left.start.cmp(&right.start));
    let is_point = made.fixed_count == parts.len();
    Some(Scan {
        ranges: made.ranges,
        checks: made.checks,
        fields,
        is_bounded: made.is_bounded,
        is_point,
        is_exact,
        may_repeat: parts[made.fixed_count..].iter().any(Part::may_repeat)
            && !is_planted(Defect::OnceEach),
        fixed_count: made.fixed_count,
        pointed_count: made.pointed_count,
        parts,
    })
}

/// The demands that may be used together: of two parts that met arrays below one field only the
/// first, since different elements, which have different keys, may fulfil them. Of joint parts all:
/// one element does.
fn usable<'d>(
    parts: &[Part],
    demands: &'d [Option<PathBounds>],
    is_joint: &[bool],
) -> Vec<Option<&'d PathBounds>> {
    let mut used: Vec<Option<&PathBounds>> = Vec::with_capacity(parts.len());
    for (place, (part, demand)) in parts.iter().zip(demands).enumerate() {
        let demand = demand.as_ref().filter(|demand| !demand.intervals.is_all());
        let shares = |(earlier, used): (usize, &Option<&PathBounds>)| {
            let are_joint = is_joint[earlier] && is_joint[place];
            used.is_some() && parts[earlier].shares_arrays(part) && !are_joint
        };
        let is_shared = used.iter().enumerate().any(shares);
        used.push(demand.filter(|_| !is_shared || is_planted(Defect::TwoElements)));
    }
    used
}

/// Finds the `$elemMatch` that demands most of parts below one array, and puts its demands in their
/// places: one element fulfils all of them, and so does one key. Answers which parts these are.
fn join(root: &Node, parts: &[Part], demands: &mut [Option<PathBounds>]) -> Vec<bool> {
    let mut elements = Vec::new();
    conditions::elements_of(root, &mut elements);
    let bounded = |outer: &str, inner: &Node| {
        let mut bounded: Vec<(usize, PathBounds)> = Vec::new();
        let mut fields: Vec<&str> = Vec::new();
        for (place, part) in parts.iter().enumerate() {
            let Some((below, demand)) = part.demand_of_elements(outer, inner) else { continue };
            // Each of two parts below one field of the element may be another's, if that is an
            // array too.
            let field = below.split('.').next().unwrap_or_default();
            let is_another = fields.contains(&field) && !part.has_single_elements();
            if !demand.intervals.is_all() && !is_another {
                fields.push(field);
                bounded.push((place, demand));
            }
        }
        bounded
    };
    let found = elements.into_iter().map(|(outer, inner)| bounded(outer, inner));
    // The first of those that demand as much, as `max_by_key` would give the last.
    let most = found.reduce(|most, other| if most.len() < other.len() { other } else { most });
    let mut is_joint = vec![false; parts.len()];
    for (place, demand) in most.filter(|most| most.len() > 1).into_iter().flatten() {
        // A condition on the whole document makes sure that the field is there.
        let is_present = demands[place].as_ref().is_some_and(|demand| demand.is_present);
        demands[place] = Some(PathBounds { is_present: is_present || demand.is_present, ..demand });
        is_joint[place] = true;
    }
    // A part that shares an array with these, and isn't among them, may be another element's.
    let of_another = |place: usize, is_joint: &[bool]| {
        let shares =
            |(other, joint): (usize, &bool)| *joint && parts[other].shares_arrays(&parts[place]);
        !is_joint[place] && is_joint.iter().enumerate().any(shares)
    };
    for (place, demand) in demands.iter_mut().enumerate() {
        if let Some(demand) = demand.as_mut().filter(|_| of_another(place, &is_joint)) {
            demand.intervals = Intervals::all();
            demand.is_exact = false;
        }
    }
    is_joint
}

/// Checks whether a document passes if one of its keys lies within, checks included.
fn is_exact(
    root: &Node,
    parts: &[Part],
    demands: &[Option<PathBounds>],
    used: &[Option<&PathBounds>],
) -> bool {
    let mut paths = Vec::new();
    for ((part, demand), used) in parts.iter().zip(demands).zip(used) {
        match (demand, used) {
            (None, _) => {}
            (Some(demand), Some(_)) if demand.is_exact => paths.push(part.path.as_str()),
            (Some(_), _) => return false,
        }
    }
    conditions::tests_only(root, &paths) || is_planted(Defect::ExactByOne) && !paths.is_empty()
}

/// The result of combining the intervals.
struct Made {
    ranges: Vec<Bounds>,
    checks: Vec<PartCheck>,
    is_bounded: bool,
    fixed_count: usize,
    pointed_count: usize,
}

fn ranges_of(parts: &[Part], intervals: &[Intervals]) -> Made {
    let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
    let (mut fixed_count, mut place) = (0, 0);
    let mut ranges = None;
    for (part, intervals) in parts.iter().zip(intervals) {
        if intervals.is_all() {
            break;
        }
        let count = intervals.as_slice().len();
        let is_small = count.saturating_mul(prefixes.len()) <= BOUNDS_COUNT_MAX;
        if !intervals.are_points() || !is_small {
            ranges = Some((behind(&prefixes, part, intervals, is_small), is_small));
            break;
        }
        if count == 1 && fixed_count == place {
            fixed_count += 1;
        }
        prefixes = extended(&prefixes, part, intervals.as_slice());
        place += 1;
    }
    let pointed_count = place;
    let (ranges, checked_from) = match ranges {
        Some((ranges, true)) => (ranges, place + 1),
        // The part is checked too: its ranges take in what lies between its intervals.
        Some((ranges, false)) => (ranges, place),
        None if place == 0 => (vec![Bounds::all()], 0),
        None => (prefixes.iter().map(|prefix| Bounds::prefix(prefix)).collect(), place),
    };
    let is_bounded = ranges != [Bounds::all()];
    let mut checks = Vec::new();
    for place in checked_from..parts.len() {
        if !intervals[place].is_all() {
            let allowed = behind(&[Vec::new()], &parts[place], &intervals[place], true);
            checks.push(PartCheck::new(place, allowed));
        }
    }
    Made { ranges, checks, is_bounded, fixed_count, pointed_count }
}

fn extended(prefixes: &[Vec<u8>], part: &Part, points: &[Interval]) -> Vec<Vec<u8>> {
    let mut longer = Vec::with_capacity(prefixes.len() * points.len());
    for prefix in prefixes {
        for point in points.iter().filter_map(Interval::as_point) {
            let mut key = prefix.clone();
            key.extend(point.iter().map(|byte| if part.descending { !byte } else { *byte }));
            longer.push(key);
        }
    }
    longer
}

/// Bounds that end with intervals of `part`; if there are too many, with what they span.
fn behind(prefixes: &[Vec<u8>], part: &Part, intervals: &Intervals, is_small: bool) -> Vec<Bounds> {
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
            let is_check = prefix.is_empty() && is_planted(Defect::AscendingChecks);
            let (start, end) = match part.descending && !is_check {
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

impl Scan {
    /// Returns how the scan gives the order of `sort`.
    pub(super) fn direction_for(&self, sort: &SortPattern) -> Option<Direction> {
        if sort.fields.is_empty() {
            return None;
        }
        if let Some(is_backwards) = self.matches(sort, self.fixed_count) {
            return Some(Direction { is_backwards, is_merged: false });
        }
        if self.pointed_count == self.fixed_count || self.ranges.len() > super::MERGED_COUNT_MAX {
            return None;
        }
        let is_backwards = self.matches(sort, self.pointed_count)?;
        Some(Direction { is_backwards, is_merged: !is_planted(Defect::RangesInOrder) })
    }

    /// Whether keys with the same first `fixed_count` parts come in the order of `sort`, and which
    /// way.
    ///
    /// Of an array the least element counts in a sort, and a scan may meet another one first: so
    /// parts that may be in arrays give no order.
    fn matches(&self, sort: &SortPattern, fixed_count: usize) -> Option<bool> {
        let (fixed, rest) = self.parts.split_at(fixed_count);
        // Only what is the same in the whole scan may be left out, also if ranges are merged.
        let is_fixed = |path: &str| {
            let is_it = |(place, part): (usize, &Part)| {
                part.path == path && part.is_ordered(&sort.collation) && place < self.fixed_count
            };
            fixed.iter().enumerate().any(is_it)
        };
        let mut given = rest.iter();
        let mut direction = None;
        for wanted in sort.fields.iter().filter(|field| !is_fixed(&field.path)) {
            let part = given
                .next()
                .filter(|part| part.path == wanted.path && part.is_ordered(&sort.collation))?;
            let backwards = part.descending != wanted.descending;
            if *direction.get_or_insert(backwards) != backwards {
                return None;
            }
        }
        Some(direction.unwrap_or(false))
    }
}
