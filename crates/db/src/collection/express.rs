//! Searches that MongoDB 8.0 answers beside its planner.
//!
//! 1. `{_id: value}`, with whatever sort and limit: by the index of `_id`.
//! 2. One field that equals a value, with no sort and no projection, by an index that has at most
//!    one document of it: a unique one of that field, or any that begins with it for a `limit` of
//!    1.
//!
//! Neither may have a hint, bounds, a `skip`, or show keys, and a projection names whole outermost
//! fields (query_utils.h). Here they go the usual way; they are only shown so.

use frond_doc::{Document, DocumentBuf, Value};
use frond_query::index::FieldKind;

use crate::collection::plan::{Access, AccessPath, Source};
use crate::collection::{FindRequest, Purpose};
use crate::schema::{Collection, Index};

/// The way in which such a search finds its documents.
pub(crate) enum Express<'a> {
    /// By the index of `_id`.
    Id,
    /// By another index.
    Index(&'a Index),
}

/// Returns how a search finds its documents, if MongoDB answers it beside its planner.
pub(crate) fn of<'a>(
    collection: &'a Collection,
    access: &Access,
    request: &FindRequest,
    purpose: Purpose,
) -> Option<Express<'a>> {
    let (Purpose::Find | Purpose::Stages | Purpose::DividedStages, [path]) =
        (purpose, &access.paths[..])
    else {
        return None;
    };
    let projection = request.projection.as_ref().filter(|_| purpose == Purpose::Find);
    let is_plain = request.hint.is_none()
        && request.min.is_none()
        && request.max.is_none()
        && request.skip == 0
        && !(request.shows_record_id || request.gives_keys)
        && request.placed.is_none();
    if !is_plain || projection.is_some_and(|projection| !is_simple(projection)) {
        return None;
    }
    match path.source {
        source if is_of_id(collection, source) && is_id_equality(request.filter.as_ref()) => {
            Some(Express::Id)
        }
        Source::Index(position) if projection.is_none() && request.sort.is_none() => {
            let index = &collection.indexes[position];
            is_of_one(index, path, request).then_some(Express::Index(index))
        }
        _ => None,
    }
}

/// Whether a tree is scanned that is the index of `_id`.
pub(crate) fn is_of_id(collection: &Collection, source: Source) -> bool {
    match source {
        Source::Id => true,
        Source::Index(position) => collection.collated_id() == Some(position),
        _ => false,
    }
}

/// Whether at most one of the index's documents passes.
fn is_of_one(index: &Index, path: &AccessPath, request: &FindRequest) -> bool {
    let filter = request.filter.as_ref().map_or(Document::empty(), DocumentBuf::view);
    let mut conditions = filter.iter();
    let (Some((name, value)), None) = (conditions.next(), conditions.next()) else { return false };
    let fields = index.shape.fields();
    let Some(first) = fields.first() else { return false };
    let is_unique = index.spec.unique && fields.len() == 1;
    equals(value).is_some()
        && first.path == name
        && fields.iter().all(|field| field.kind == FieldKind::Value)
        && path.flags == 0
        && index.spec.partial.is_none()
        && (is_unique || request.limit == Some(1))
}

/// Whether the filter is `{_id: value}` or `{_id: {$eq: value}}`, nothing else.
pub(crate) fn is_id_equality(filter: Option<&DocumentBuf>) -> bool {
    filter.is_some_and(|filter| {
        filter.iter().count() == 1 && filter.get("_id").and_then(equals).is_some()
    })
}

/// Whether a projection names whole outermost fields alone.
pub(crate) fn is_simple(projection: &DocumentBuf) -> bool {
    projection.iter().all(|(name, value)| {
        !name.contains('.') && (value.is_number() || matches!(value, Value::Boolean(_)))
    })
}

/// The value that a condition asks to be equal to, if the keys of indexes decide that exactly.
fn equals(condition: Value<'_>) -> Option<Value<'_>> {
    let value = match condition {
        Value::Document(operators) => match operators.iter().next() {
            Some(("$eq", value)) if operators.iter().count() == 1 => value,
            Some((name, _)) if name.starts_with('$') => return None,
            _ => condition,
        },
        _ => condition,
    };
    let is_inexact = matches!(
        value,
        Value::Array(_)
            | Value::Null
            | Value::Undefined
            | Value::Regex(_)
            | Value::MinKey
            | Value::MaxKey
    );
    (!is_inexact).then_some(value)
}
