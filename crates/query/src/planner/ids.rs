//! Filters that name `_id`s one by one and say nothing else: what is asked most often, and nothing
//! can be better than looking them up. So no index is asked about, and no set of intervals made
//! that others could narrow.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use frond_doc::key::{self, Bounds, CUT_PREFIX_BYTES};

use super::compound::{self, Scan};
use super::interval::{Interval, Intervals};
use super::{FieldBounds, IndexFacts, IndexScan, conditions, index_scan};
use crate::filter::Filter;
use crate::filter::tree::{Condition, Node};
use crate::index::IndexShape;
use crate::sort::SortPattern;
use crate::sort_field::SortField;

/// The documents' own tree seen as an index.
pub(super) static ID_FACTS: LazyLock<IndexFacts> = LazyLock::new(|| {
    let fields = [SortField { path: "_id".to_owned(), descending: false }];
    let shape = Arc::new(IndexShape::of_values(&fields, false));
    IndexFacts { name: "_id_".to_owned(), shape, flags: 0, covers: false, is_documents: false }
});

/// The key, in the documents' tree, of the only `_id` that a filter names, if it says nothing else.
pub fn only_id(filter: &Filter) -> Option<Bytes> {
    conditions::only_value(only_condition(filter)?).map(key::of_id)
}

/// The scan of the documents' tree for the `_id`s of a `$in`, in the order of `sort` if that is by
/// `_id`; `None` if the filter says anything else, or their keys aren't exact.
pub fn only_ids(filter: &Filter, sort: Option<&SortPattern>) -> Option<IndexScan> {
    let values = conditions::only_values(only_condition(filter)?)?;
    let mut keys: Vec<Bytes> = values.iter().map(|value| key::of_value(value.as_value())).collect();
    if keys.iter().any(|key| CUT_PREFIX_BYTES < key.len()) {
        return None;
    }
    keys.sort_unstable();
    keys.dedup();
    let direction = direction(sort);
    let descending = direction.is_some_and(|direction| direction.is_backwards);
    let mut ranges: Vec<Bounds> = keys.iter().map(|key| Bounds::prefix(key)).collect();
    if descending {
        ranges.reverse();
    }
    let intervals = Intervals::of_points(keys.iter().map(|key| Interval::of_key(key)));
    Some(IndexScan {
        index: 0,
        ranges,
        checks: Vec::new(),
        descending,
        sorted: direction.is_some(),
        is_merged: false,
        is_exact: true,
        may_repeat: false,
        fields: vec![FieldBounds { name: "_id".to_owned(), descending: false, intervals }],
    })
}

/// Returns the filter's condition on `_id`, if it has no other.
fn only_condition(filter: &Filter) -> Option<&Condition> {
    let mut node = filter.root();
    while let Node::And(nodes) = node {
        let [only] = &nodes[..] else { return None };
        node = only;
    }
    match node {
        Node::Field(field) if field.dotted == "_id" => Some(&field.condition),
        _ => None,
    }
}

/// A scan of documents by `_id`, in the order of `sort` if that is by `_id`.
pub(super) fn id_scan(scan: Scan, sort: Option<&SortPattern>) -> IndexScan {
    index_scan(scan, 0, direction(sort))
}

fn direction(sort: Option<&SortPattern>) -> Option<compound::Direction> {
    let field = sort.and_then(SortPattern::id_field);
    field.map(|field| compound::Direction { is_backwards: field.descending, is_merged: false })
}
