//! Searches that MongoDB 8.0 answers beside its planner, and tells so: one stage without inputs.
//!
//! 1. `{_id: value}`, with whatever sort and limit: by the index of `_id`.
//! 2. One field that equals a value, with no sort and no projection, by an index that has at most
//!    one document of it: a unique one of that field, or any that begins with it for a `limit` of
//!    1.
//!
//! Neither may have a hint, bounds, a `skip`, or tell keys, and a projection names whole outermost
//! fields (query_utils.h).
//!
//! *Surprise*: the key's pattern is told as a string, as 8.0 does.

use frond_doc::{Document, DocumentBuf, Value};
use frond_query::index::FieldKind;

use super::stage::Stage;
use super::{Done, details, is_id_equality, is_simple};
use crate::collection::plan::{Access, AccessPath, Source};
use crate::collection::{FindRequest, Purpose};
use crate::definition::IndexSpec;
use crate::schema::{Collection, Index};

/// The one stage of a search that goes so.
pub(super) fn stage(
    collection: &Collection,
    access: &Access,
    request: &FindRequest,
    purpose: Purpose,
    done: &[Done],
) -> Option<Stage> {
    let (Purpose::Find | Purpose::Stages | Purpose::DividedStages, [path], [done]) =
        (purpose, &access.paths[..], done)
    else {
        return None;
    };
    let projection = request.projection.as_ref().filter(|_| purpose == Purpose::Find);
    let is_plain = request.hint.is_none()
        && request.min.is_none()
        && request.max.is_none()
        && request.skip == 0
        && !(request.tells_key || request.gives_keys)
        && request.placed.is_none();
    if !is_plain || projection.is_some_and(|projection| !is_simple(projection)) {
        return None;
    }
    let id = IndexSpec::of_id();
    let (spec, keys) = match path.source {
        Source::Id if is_id_equality(request.filter.as_ref()) => (&id, done.documents),
        Source::Index(position) if projection.is_none() && request.sort.is_none() => {
            let index = &collection.indexes[position];
            let is_one = is_of_one(index, path, request);
            (is_one.then_some(&index.spec)?, done.keys)
        }
        _ => return None,
    };
    let pattern = told_pattern(spec.key.view());
    let mut fields =
        vec![("keyPattern", Value::String(&pattern)), ("indexName", Value::String(&spec.name))];
    if let Some(projection) = projection {
        fields.push(("projection", Value::from(projection)));
        fields.push(("projectionCovered", Value::Boolean(false)));
    }
    let stage = Stage::express("EXPRESS_IXSCAN", details(&fields), done.returned);
    Some(stage.counting("keysExamined", keys).counting("docsExamined", done.documents))
}

/// Whether the index has at most one document of what is asked for.
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

/// The value that a condition asks to be equal to, if the keys of indexes tell that exactly.
pub(super) fn equals(condition: Value<'_>) -> Option<Value<'_>> {
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

/// A key's pattern as MongoDB writes it: `{ a: 1, b: -1 }`.
fn told_pattern(pattern: Document<'_>) -> String {
    let told = |value: Value<'_>| match value {
        Value::String(kind) => format!("\"{kind}\""),
        Value::Double(number) => format!("{number:?}"),
        other => other.as_integer().map_or_else(|| "1".to_owned(), |number| number.to_string()),
    };
    let fields: Vec<String> =
        pattern.iter().map(|(name, value)| format!("{name}: {}", told(value))).collect();
    format!("{{ {} }}", fields.join(", "))
}
