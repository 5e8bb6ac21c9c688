//! The planner: which index answers a filter and a sort, and between which keys.
//!
//! 1. For each index, the conditions that every passing document must fulfil on the index's parts
//!    become sets of intervals ([`conditions`], [`interval`], [`parts`]).
//! 2. Intervals of the parts become ranges of the compound key, and checks of parts behind
//!    ([`compound`]).
//! 3. The exact number of entries within the ranges gives the cost; the cheapest wins. An index
//!    whose order is the sort's saves the sort; where only each of its ranges is in order, they are
//!    merged.
//! 4. The branches of an `$or` may each have an index of their own ([`Plan::Union`]).
//!
//! With a limit, a scan that needn't sort ends early: after as many entries as hold so many
//! documents, if those that pass are spread evenly; the least range that any index has bounds how
//! many may pass.
//!
//! *Invariants*
//! 1. Every document that passes the filter has at least one key within the ranges that all checks
//!    let through. There may be more: each document is filtered again, unless the scan is exact.
//! 2. Where a path may lie in arrays, two conditions on it may be fulfilled by two different
//!    elements, so that only one of them gives intervals; and of fields below one array only one is
//!    bounded, unless one `$elemMatch` asks for several: one element, and one key, fulfils them
//!    all.
//! 3. A sparse index is used only if the filter demands one of its fields, a partial one if the
//!    filter implies its own, a wildcard for a path that must be there.

mod bounds_text;
mod compound;
mod conditions;
mod defect;
#[cfg(test)]
mod differential;
mod ids;
mod interval;
mod leaves;
mod parts;
mod places;
mod terms;

use std::sync::Arc;

use bytes::Bytes;
use frond_doc::key::Bounds;

use crate::filter::Filter;
use crate::filter::tree::Node;
use crate::index::{self, IndexShape};
use crate::sort::SortPattern;
use compound::Scan;
use ids::{ID_FACTS, id_scan};
use interval::Intervals;

pub use ids::{only_id, only_ids};
pub use terms::fixes_fields_before_terms;

/// An index, as the planner sees it.
#[derive(Clone, Debug)]
pub struct IndexFacts {
    /// Its name.
    pub name: String,
    /// The keys it files.
    pub shape: Arc<IndexShape>,
    /// The flags of all its entries: which fields have an array somewhere. Bounds of two conditions
    /// on such a path must not be intersected.
    pub flags: u8,
    /// Whether its entries hold all that is asked for, so that documents needn't be fetched.
    pub covers: bool,
    /// Whether it is the documents' own tree: scanning all of it costs no more than that.
    pub is_documents: bool,
}

impl IndexFacts {
    /// Whether each element of an array on a path has one value there, not an array of its own. An
    /// index that doesn't file by values says nothing of that.
    fn has_single_elements(&self) -> bool {
        self.flags & index::FLAG_NESTED == 0 && self.shape.is_of_values()
    }

    /// Whether the field at a place has an array in some document.
    fn is_multikey(&self, place: usize) -> bool {
        self.flags & index::field_flag(place) != 0
    }
}

/// A query plan.
#[derive(Clone, Debug)]
pub enum Plan {
    /// All documents, in the order of `_id`'s key.
    CollectionScan,
    /// Ranges of the documents' own tree, by `_id`.
    IdScan(IndexScan),
    /// Ranges of an index.
    IndexScan(IndexScan),
    /// The documents that any of several scans finds, each once.
    Union {
        /// Index scans and scans by `_id`.
        branches: Vec<Plan>,
        /// Whether each is in the order of the sort, so that they can be merged.
        is_merged: bool,
    },
}

/// Ranges of an index, each entry's document fetched and filtered again.
#[derive(Clone, Debug)]
pub struct IndexScan {
    /// Position of the index among those given to `plan`; of no meaning in a scan by `_id`.
    pub index: usize,
    /// Disjoint, in the order in which they are scanned.
    pub ranges: Vec<Bounds>,
    /// The conditions on parts of the keys.
    pub checks: Vec<PartCheck>,
    /// Whether from the greatest key down.
    pub descending: bool,
    /// Whether the scan's order is the sort's, so that no sort is needed.
    pub sorted: bool,
    /// Whether each range is in the sort's order, so that they must be merged.
    pub is_merged: bool,
    /// Whether every document that has a key within passes the filter.
    pub is_exact: bool,
    /// Whether one document may have several keys within.
    pub may_repeat: bool,
    /// The bounds of each part of a key, for `explain`.
    pub fields: Vec<FieldBounds>,
}

/// The bounds of a part of an index's key, for `explain`.
#[derive(Clone, Debug)]
pub struct FieldBounds {
    /// The field.
    pub name: String,
    descending: bool,
    intervals: Intervals,
}

/// A condition on a part of an index's key.
#[derive(Clone, PartialEq, Debug)]
pub struct PartCheck {
    /// The part's position in the key, counted from 0.
    pub place: usize,
    /// The ranges in which its bytes must lie, as they are stored: disjoint, ascending.
    allowed: Vec<Bounds>,
}

/// The position of a part of a key relative to its bounds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyPlacement {
    /// In what is allowed.
    Within,
    /// Not: forwards, what is allowed next begins here (`None`: nothing more); backwards, it ends
    /// here.
    Outside(Option<Bytes>),
}

impl PartCheck {
    fn new(place: usize, mut allowed: Vec<Bounds>) -> PartCheck {
        allowed.sort_by(|left, right| left.start.cmp(&right.start));
        PartCheck { place, allowed }
    }

    /// Returns where `part` lies, for a scan that goes forwards or backwards.
    pub fn standing(&self, part: &[u8], backwards: bool) -> KeyPlacement {
        let is_behind = |range: &Bounds| range.end.as_deref().is_some_and(|end| end <= part);
        let next = self.allowed.partition_point(is_behind);
        let begins = |range: &Bounds| range.start.clone().unwrap_or_default();
        match self.allowed.get(next) {
            Some(range) if range.start.as_deref().is_none_or(|start| start <= part) => {
                KeyPlacement::Within
            }
            range if !backwards => KeyPlacement::Outside(range.map(begins)),
            _ => match next.checked_sub(1).and_then(|before| self.allowed.get(before)) {
                Some(before) => KeyPlacement::Outside(before.end.clone()),
                None => KeyPlacement::Outside(None),
            },
        }
    }
}

/// The cost of reading one document of a scan, in the order of `_id`.
const COST_SCAN: u64 = 1;
/// The cost of reading an entry of an index that holds all fields that are needed.
const COST_COVERED: u64 = 1;
/// The cost of fetching the document of an index entry.
const COST_FETCH: u64 = 2;
/// The cost of sorting for each document, and for the first one coming last.
const COST_SORT: u64 = 2;
/// The number of ranges above which they are not merged.
const MERGED_COUNT_MAX: usize = 200;

/// The number of documents up to which they are never all read where an index bounds what is asked
/// for: MongoDB takes the index then, and `explain` of a test's documents says so.
const FEW_COUNT_MAX: u64 = 100;

/// A request to the planner.
#[derive(Clone, Copy, Debug)]
pub struct PlanRequest<'q> {
    /// The filter of the documents.
    pub filter: &'q Filter,
    /// The order.
    pub sort: Option<&'q SortPattern>,
    /// The greatest number, those that are passed over counted.
    pub limit: Option<u64>,
    /// The number of documents that are passed over first: an index may count them.
    pub skip: u64,
    /// The field whose distinct values alone are wanted: an index that begins with it may be
    /// scanned whole.
    pub distinct: Option<&'q str>,
    /// The indexes that may be used.
    pub indexes: &'q [IndexFacts],
    /// Whether documents lie by `_id`.
    pub is_by_id: bool,
}

/// A plan, and how many entries its ranges hold.
#[derive(Clone)]
struct CandidatePlan {
    plan: Plan,
    count: u64,
    /// The cost of each entry, a sort apart.
    entry_cost: u64,
    is_sorted: bool,
}

impl PlanRequest<'_> {
    /// The scan of documents by `_id` for a filter, if they lie so.
    fn by_id(&self, root: &Node) -> Option<Scan> {
        if self.is_by_id { compound::scans(root, &ID_FACTS).pop() } else { None }
    }

    /// Whether a sort is the order in which documents lie, or its opposite.
    fn is_order(&self, sort: &SortPattern) -> bool {
        let is_none = sort.fields.is_empty() && sort.collation.is_simple();
        is_none || self.is_by_id && sort.id_field().is_some()
    }
}

/// Chooses a plan. `range_count` returns how many entries of index `i` (`None`: the documents by
/// `_id`) lie in the bounds; it may be asked a few times per index.
pub fn plan(
    question: PlanRequest<'_>,
    range_count: &mut dyn FnMut(Option<usize>, &[Bounds]) -> u64,
) -> Plan {
    let by_id = question.by_id(question.filter.root());
    if let Some(scan) = &by_id
        && scan.is_point
        && scan.is_bounded
    {
        return by_id
            .map_or(Plan::CollectionScan, |scan| Plan::IdScan(id_scan(scan, question.sort)));
    }
    let offers = all_offers(question, by_id, range_count);
    let passing = offers.iter().map(|offer| offer.count).min().unwrap_or(0);
    let best = offers.into_iter().min_by_key(|offer| cost(offer, question, passing));
    best.map_or(Plan::CollectionScan, |offer| offer.plan)
}

/// The plans by indexes that [`plan`] considered and didn't choose, the best first; none where
/// nothing was compared. Arguments are those of [`plan`].
pub fn rejected(
    question: PlanRequest<'_>,
    range_count: &mut dyn FnMut(Option<usize>, &[Bounds]) -> u64,
) -> Vec<Plan> {
    let by_id = question.by_id(question.filter.root());
    if by_id.as_ref().is_some_and(|scan| scan.is_point && scan.is_bounded) {
        return Vec::new();
    }
    let mut offers = all_offers(question, by_id, range_count);
    let passing = offers.iter().map(|offer| offer.count).min().unwrap_or(0);
    offers.sort_by_key(|offer| cost(offer, question, passing));
    let plans = offers.into_iter().skip(1).map(|offer| offer.plan);
    plans.filter(|plan| !matches!(plan, Plan::CollectionScan)).collect()
}

/// Returns the candidates of all indexes, and the scan of all documents unless places are wanted;
/// none if no index helps.
fn all_offers(
    question: PlanRequest<'_>,
    by_id: Option<Scan>,
    range_count: &mut dyn FnMut(Option<usize>, &[Bounds]) -> u64,
) -> Vec<CandidatePlan> {
    let root = question.filter.root();
    let mut offers = offers(root, question, by_id);
    let union = union(root, question, range_count);
    // Beside a part of the documents by `_id` reading all of them is no choice, so nothing is
    // counted.
    if matches!((&offers[..], &union), ([CandidatePlan { plan: Plan::IdScan(_), .. }], None)) {
        return offers;
    }
    offers.iter_mut().for_each(|offer| offer.measure(range_count));
    offers.extend(union);
    // Nearest documents are always found by an index: it is read outward.
    if !offers.is_empty() && question.filter.near().is_none() {
        let count = range_count(None, &[Bounds::all()]);
        // It doesn't matter for a few documents, and an index is what is expected.
        if count <= FEW_COUNT_MAX && offers.iter().any(is_bounded) {
            return offers;
        }
        offers.push(CandidatePlan {
            plan: Plan::CollectionScan,
            count,
            entry_cost: COST_SCAN,
            is_sorted: question.sort.is_none_or(|sort| question.is_order(sort)),
        });
    }
    offers
}

/// Whether an offer reads a part of an index only.
fn is_bounded(offer: &CandidatePlan) -> bool {
    match &offer.plan {
        Plan::IndexScan(scan) | Plan::IdScan(scan) => scan.ranges != [Bounds::all()],
        Plan::Union { .. } => true,
        Plan::CollectionScan => false,
    }
}

/// Returns the cost of a candidate, where at least one reads no more than `passing` entries.
fn cost(offer: &CandidatePlan, question: PlanRequest<'_>, passing: u64) -> u64 {
    if !offer.is_sorted {
        return offer.count.saturating_mul(offer.entry_cost + COST_SORT);
    }
    let read = match question.limit {
        Some(limit) if limit < passing => {
            let share = u128::from(offer.count) * u128::from(limit) / u128::from(passing);
            u64::try_from(share).unwrap_or(u64::MAX).max(1)
        }
        _ => offer.count,
    };
    let passed = if offer.counts() { question.skip } else { 0 };
    read.saturating_sub(passed).max(1).saturating_mul(offer.entry_cost)
}

impl CandidatePlan {
    /// Whether each entry within its ranges is another document that passes, so that those that are
    /// passed over are counted.
    fn counts(&self) -> bool {
        match &self.plan {
            Plan::IndexScan(scan) => {
                scan.is_exact && !scan.may_repeat && !scan.is_merged && scan.checks.is_empty()
            }
            Plan::IdScan(_) | Plan::Union { .. } | Plan::CollectionScan => false,
        }
    }

    /// Finds out how much a scan of ranges reads.
    fn measure(&mut self, range_count: &mut dyn FnMut(Option<usize>, &[Bounds]) -> u64) {
        self.count = match &self.plan {
            Plan::IndexScan(scan) => range_count(Some(scan.index), &scan.ranges),
            Plan::IdScan(scan) => range_count(None, &scan.ranges),
            Plan::CollectionScan | Plan::Union { .. } => self.count,
        };
    }
}

/// Returns the candidates of each index that helps at all, not counted yet.
fn offers(root: &Node, question: PlanRequest<'_>, by_id: Option<Scan>) -> Vec<CandidatePlan> {
    let PlanRequest { sort, indexes, .. } = question;
    let sort = sort.filter(|sort| !sort.fields.is_empty());
    let mut offers = Vec::new();
    for (index, facts) in indexes.iter().enumerate() {
        for scan in compound::scans(root, facts) {
            let direction = sort.and_then(|sort| scan.direction_for(sort));
            let is_distinct = facts.covers
                && question.distinct.is_some_and(|path| {
                    facts.shape.sort_fields().first().is_some_and(|first| first.path == path)
                });
            let is_checked = facts.is_documents && !scan.checks.is_empty();
            if !scan.is_bounded && direction.is_none() && !is_distinct && !is_checked {
                continue;
            }
            let plan = Plan::IndexScan(index_scan(scan, index, direction));
            let entry_cost = if facts.covers { COST_COVERED } else { COST_FETCH };
            let is_sorted = sort.is_none() || direction.is_some();
            offers.push(CandidatePlan { plan, count: 0, entry_cost, is_sorted });
        }
    }
    if let Some(scan) = by_id.filter(|scan| scan.is_bounded) {
        offers.push(CandidatePlan {
            count: 0,
            plan: Plan::IdScan(id_scan(scan, sort)),
            entry_cost: COST_SCAN,
            is_sorted: sort.is_none_or(|sort| question.is_order(sort)),
        });
    }
    offers
}

/// A scan for each branch of an `$or`, if each has an index.
fn union(
    root: &Node,
    question: PlanRequest<'_>,
    range_count: &mut dyn FnMut(Option<usize>, &[Bounds]) -> u64,
) -> Option<CandidatePlan> {
    let (branches, others): (&[Node], &[Node]) = match root {
        Node::Or(branches) => (branches, &[]),
        Node::And(nodes) => {
            let or = nodes.iter().find(|node| matches!(node, Node::Or(_)))?;
            let Node::Or(branches) = or else { return None };
            (branches, nodes)
        }
        _ => return None,
    };
    if branches.len() < 2 || branches.len() > MERGED_COUNT_MAX {
        return None;
    }
    let sort = question.sort.filter(|sort| !sort.fields.is_empty());
    let mut chosen = Vec::with_capacity(branches.len());
    for branch in branches {
        let mut nodes = vec![branch.clone()];
        nodes.extend(others.iter().filter(|other| !matches!(other, Node::Or(_))).cloned());
        let node = Node::And(nodes);
        let by_id = question.by_id(&node);
        let mut offers = offers(&node, question, by_id);
        offers.iter_mut().for_each(|offer| offer.measure(range_count));
        let is_bounded = |offer: &&CandidatePlan| match &offer.plan {
            Plan::IndexScan(scan) | Plan::IdScan(scan) => {
                scan.ranges != [Bounds::all()] && !scan.is_merged
            }
            _ => false,
        };
        let cost = |offer: &&CandidatePlan| {
            let sort_cost = if offer.is_sorted { 0 } else { COST_SORT };
            offer.count.saturating_mul(offer.entry_cost + sort_cost)
        };
        chosen.push(offers.iter().filter(is_bounded).min_by_key(cost)?.clone());
    }
    let is_sorted = chosen.iter().all(|offer| offer.is_sorted);
    let count = chosen.iter().fold(0, |count: u64, offer| count.saturating_add(offer.count));
    let mut branches: Vec<Plan> = chosen.into_iter().map(|offer| offer.plan).collect();
    for branch in &mut branches {
        // Exact for its branch, not for the whole.
        if let Plan::IndexScan(scan) | Plan::IdScan(scan) = branch {
            scan.is_exact = false;
        }
    }
    let is_merged = sort.is_some() && is_sorted;
    let plan = Plan::Union { branches, is_merged };
    Some(CandidatePlan { plan, count, entry_cost: COST_FETCH, is_sorted })
}

fn index_scan(scan: Scan, index: usize, direction: Option<compound::Direction>) -> IndexScan {
    let descending = direction.is_some_and(|direction| direction.is_backwards);
    let mut ranges = scan.ranges;
    if descending {
        ranges.reverse();
    }
    IndexScan {
        index,
        ranges,
        checks: scan.checks,
        descending,
        sorted: direction.is_some(),
        is_merged: direction.is_some_and(|direction| direction.is_merged),
        is_exact: scan.is_exact,
        may_repeat: scan.may_repeat,
        fields: scan.fields,
    }
}

/// A scan for each branch of an `$or`, if each has an index, whatever they cost: where documents
/// can't be found otherwise.
pub fn union_of_indexes(
    question: PlanRequest<'_>,
    range_count: &mut dyn FnMut(Option<usize>, &[Bounds]) -> u64,
) -> Option<Plan> {
    union(question.filter.root(), question, range_count).map(|offer| offer.plan)
}

/// The scan of all of an index, or of what its parts leave possible: for a hint, and for `min` and
/// `max`. `None` if the index may lack documents that pass.
pub fn whole_scan(
    filter: &Filter,
    sort: Option<&SortPattern>,
    facts: &IndexFacts,
) -> Option<IndexScan> {
    let scan = compound::scans(filter.root(), facts).into_iter().next()?;
    let sort = sort.filter(|sort| !sort.fields.is_empty());
    let direction = sort.and_then(|sort| scan.direction_for(sort));
    Some(index_scan(scan, 0, direction))
}

#[cfg(test)]
mod tests;
