//! The hashes by which MongoDB distinguishes the shapes of queries: what they ask, not for which
//! values.
//!
//! - *Shape*: the paths and operators of the filter, the sort, the names that a projection has, the
//!   collation.
//! - *Plan cache key*: the shape, and the indexes that the planner may choose from.
//!
//! Both have 32 bits, as MongoDB's, and are others than MongoDB's.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

use crate::collection::FindRequest;
use crate::schema::Collection;

/// The hashes of a query.
pub(super) struct Hashes {
    shape: u32,
    plan_cache_key: u32,
}

impl Hashes {
    /// Those of a request to a collection, if there is one.
    pub fn of(request: &FindRequest, collection: Option<&Collection>) -> Hashes {
        let mut shape = Vec::new();
        if let Some(filter) = &request.filter {
            append_filter(filter.view(), &mut shape);
        }
        shape.push(b'|');
        if let Some(sort) = &request.sort {
            shape.extend_from_slice(sort.as_bytes());
        }
        shape.push(b'|');
        for (name, _) in request.projection.iter().flat_map(DocumentBuf::iter) {
            append_name(name, &mut shape);
        }
        shape.push(b'|');
        if let Some(collation) = request.collation.as_ref().and_then(|it| it.specification()) {
            shape.extend_from_slice(collation.as_bytes());
        }
        let mut key = shape.clone();
        let indexes = collection.map_or(&[][..], |collection| &collection.indexes);
        for index in indexes.iter().filter(|index| !index.spec.hidden) {
            key.extend_from_slice(index.spec.to_document().as_bytes());
        }
        Hashes { shape: hash(&shape), plan_cache_key: hash(&key) }
    }

    /// The shape's and the plan cache's, as they are shown.
    pub fn texts(&self) -> [String; 2] {
        [self.shape, self.plan_cache_key].map(|hash| format!("{hash:08X}"))
    }

    /// Appends them as `queryPlanner` shows them.
    pub fn append_to(&self, planner: &mut DocumentBuilder) {
        let [shape, key] = self.texts();
        planner.append("queryHash", Value::String(&shape));
        planner.append("planCacheShapeHash", Value::String(&shape));
        planner.append("planCacheKey", Value::String(&key));
    }
}

/// Recursion follows the nesting, which validation has bounded.
fn append_filter(filter: Document<'_>, shape: &mut Vec<u8>) {
    for (name, value) in filter.iter() {
        append_name(name, shape);
        match value {
            Value::Document(inside) if is_of_operators(inside) => append_filter(inside, shape),
            Value::Array(branches) if ["$and", "$or", "$nor"].contains(&name) => {
                for branch in branches.iter().filter_map(|branch| branch.as_document()) {
                    append_filter(branch, shape);
                    shape.push(b',');
                }
            }
            _ => shape.push(b'?'),
        }
        shape.push(b';');
    }
}

fn is_of_operators(document: Document<'_>) -> bool {
    document.iter().next().is_some_and(|(name, _)| name.starts_with('$'))
}

fn append_name(name: &str, shape: &mut Vec<u8>) {
    shape.extend_from_slice(name.as_bytes());
    shape.push(0);
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
