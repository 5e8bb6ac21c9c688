//! Which index answers a filter and a sort, and between which keys.
//!
//! 1. For each index, the conditions that every passing document must fulfil on the index's fields
//!    become sets of intervals ([`conditions`], [`interval`]).
//! 2. Intervals of the fields become bounds of the compound key ([`compound`]): equalities go on to
//!    the next field, a range is the last.
//! 3. The exact number of entries within the bounds gives the cost; the cheapest wins. An index whose
//!    order is the sort's saves the sort.
//!
//! *Invariants*
//! 1. Every document that passes the filter has at least one key within the bounds. Bounds may hold
//!    more: each document is filtered again.
//! 2. On a multikey index, two conditions on one path may be fulfilled by two different elements, so
//!    that only one of them gives bounds; and fields below one array are bounded one at a time.
//! 3. An index's keys of strings are ordered by its collation: a filter or sort by another one has
//!    no bounds of strings, and no order.
//! 4. A sparse index is used only if the filter demands one of its fields.

mod compound;
mod conditions;
mod interval;

use std::sync::Arc;

use frond_doc::key::Bounds;

use crate::filter::Filter;
use crate::index::{self, IndexShape};
use crate::sort::{SortField, SortPattern};
use compound::Scan;

/// What the planner knows of an index.
#[derive(Clone, Debug)]
pub struct IndexFacts {
    /// Its name.
    pub name: String,
    /// What it files.
    pub shape: Arc<IndexShape>,
    /// The flags of all its entries: which fields have an array somewhere. Bounds of two conditions on
    /// such a path must not be intersected.
    pub flags: u8,
}

impl IndexFacts {
    /// Whether the field at a place has an array in some document.
    fn is_multikey(&self, place: usize) -> bool {
        self.flags & index::field_flag(place) != 0
    }
}

/// How documents are found.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// All documents, in the order of `_id`'s key.
    CollectionScan,
    /// Ranges of the documents' own tree, by `_id`.
    IdScan {
        /// Disjoint, ascending.
        bounds: Vec<Bounds>,
    },
    /// Ranges of an index, each entry's document fetched and filtered again.
    IndexScan {
        /// Position of the index among those given to `plan`.
        index: usize,
        /// Disjoint, in the order in which they are scanned.
        bounds: Vec<Bounds>,
        /// Whether from the greatest key down.
        descending: bool,
        /// Whether the scan's order is the sort's, so that no sort is needed.
        sorted: bool,
    },
}

impl Plan {
    /// Whether documents come in the order of `sort`.
    pub fn is_sorted(&self, sort: &SortPattern) -> bool {
        match self {
            Plan::CollectionScan | Plan::IdScan { .. } => is_id_order(sort),
            Plan::IndexScan { sorted, .. } => *sorted || sort.fields.is_empty(),
        }
    }
}

/// What reading one document of a scan costs, in the order of `_id`.
const COST_SCAN: u64 = 1;
/// What fetching the document of an index entry costs.
const COST_FETCH: u64 = 2;
/// What sorting costs for each document, and that the first one comes last.
const COST_SORT: u64 = 2;

/// Whether the sort is the order in which documents lie.
fn is_id_order(sort: &SortPattern) -> bool {
    // `_id` is unique, so that what follows it changes nothing. Documents lie in the simple order.
    sort.collation.is_simple()
        && sort.fields.first().is_none_or(|field| field.path == "_id" && !field.descending)
}

/// Chooses a plan. `range_count` tells how many entries of index `i` (`None`: the documents by
/// `_id`) lie in the bounds; it may be asked a few times per index.
pub fn plan(
    filter: &Filter,
    sort: Option<&SortPattern>,
    indexes: &[IndexFacts],
    range_count: &mut dyn FnMut(Option<usize>, &[Bounds]) -> u64,
) -> Plan {
    let id_sort_cost = if sort.is_none_or(is_id_order) { 0 } else { COST_SORT };
    let by_id = compound::scan(filter.root(), &id_facts());
    if let Some(scan) = &by_id
        && scan.is_point
    {
        return Plan::IdScan { bounds: scan.bounds.clone() };
    }
    let candidates: Vec<(usize, Option<Scan>)> = indexes
        .iter()
        .enumerate()
        .map(|(index, facts)| (index, compound::scan(filter.root(), facts)))
        .collect();
    let mut best: Option<(u64, Plan)> = None;
    let mut offer = |cost: u64, plan: Plan| {
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, plan));
        }
    };
    for (index, scan) in candidates {
        let Some(scan) = scan else { continue };
        let direction = sort.and_then(|sort| scan.direction_for(sort, &indexes[index]));
        if !scan.is_bounded && direction.is_none() {
            continue;
        }
        let sort_cost = match sort {
            Some(sort) if direction.is_none() && !sort.fields.is_empty() => COST_SORT,
            _ => 0,
        };
        let count = range_count(Some(index), &scan.bounds);
        let descending = direction.unwrap_or(false);
        let mut bounds = scan.bounds;
        if descending {
            bounds.reverse();
        }
        let plan = Plan::IndexScan { index, bounds, descending, sorted: direction.is_some() };
        offer(count.saturating_mul(COST_FETCH + sort_cost), plan);
    }
    if let Some(scan) = by_id
        && scan.is_bounded
    {
        let count = range_count(None, &scan.bounds);
        let cost = count.saturating_mul(COST_SCAN + id_sort_cost);
        offer(cost, Plan::IdScan { bounds: scan.bounds });
    }
    match best {
        None => Plan::CollectionScan,
        Some((cost, plan)) => {
            let count = range_count(None, &[Bounds::all()]);
            let scan_cost = count.saturating_mul(COST_SCAN + id_sort_cost);
            if cost <= scan_cost { plan } else { Plan::CollectionScan }
        }
    }
}

/// The documents' own tree seen as an index.
fn id_facts() -> IndexFacts {
    let fields = [SortField { path: "_id".to_owned(), descending: false }];
    let shape = Arc::new(IndexShape::of_values(&fields, false));
    IndexFacts { name: "_id_".to_owned(), shape, flags: 0 }
}

#[cfg(test)]
mod tests;
