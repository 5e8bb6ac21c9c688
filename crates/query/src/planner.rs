//! Which index answers a filter and a sort, and between which keys.

use frond_doc::Document;
use frond_doc::key::Bounds;

use crate::filter::Filter;
use crate::sort::{SortField, SortPattern};

/// What the planner knows of an index.
#[derive(Clone, Debug)]
pub struct IndexFacts {
    /// Its name.
    pub name: String,
    /// Its fields: dotted paths and directions.
    pub fields: Vec<SortField>,
    /// Whether some indexed document has an array on one of the paths: bounds of two conditions on
    /// one path must not be intersected then.
    pub multikey: bool,
    /// Whether documents without any of the fields are left out.
    pub sparse: bool,
    /// Whether keys are unique.
    pub unique: bool,
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

/// Chooses a plan. `range_count` tells how many entries of index `i` (`None`: the documents by
/// `_id`) lie in the bounds; it may be asked a few times per index.
pub fn plan(
    _filter: &Filter,
    _sort: Option<&SortPattern>,
    _indexes: &[IndexFacts],
    _range_count: &mut dyn FnMut(Option<usize>, &[Bounds]) -> u64,
) -> Plan {
    todo!()
}

/// The keys under which an index with `fields` files `document`: every combination where an array
/// lies on a path (two arrays in parallel are an error that names them), each key the concatenation
/// of its fields' keys; and whether an array was met.
pub fn index_keys(
    _fields: &[SortField],
    _sparse: bool,
    _document: Document<'_>,
) -> Result<(Vec<Vec<u8>>, bool), crate::error::QueryError> {
    todo!()
}
