//! Text indexes: a document is filed under each of its terms, with what the term counts in it.
//!
//! 1. The key is the values of the fields before, the term, its score, and the values of the fields
//!    behind.
//! 2. The fields before and behind are filed by their value as a whole, absent ones as null: an
//!    array before the terms is refused, one behind isn't expanded. A path doesn't lead through
//!    arrays but by position.
//! 3. A document without any term is not filed: the index is sparse, always.

use frond_doc::{Document, Value};

use super::{FieldKind, IndexField};
use crate::code::Code;
use crate::error::QueryError;
use crate::search::{self, TextSpec};

/// Calls `emit` with the values of each key, and returns which fields had several values or met an
/// array: a bit for each, by its place.
///
/// # Errors
/// 16675 for an array before the terms; those of the terms.
pub(super) fn for_each(
    fields: &[IndexField],
    spec: &TextSpec,
    document: Document<'_>,
    emit: &mut dyn FnMut(&[Option<Value<'_>>]),
) -> Result<u64, QueryError> {
    let mut arrays = 0;
    let mut values: Vec<Option<Value<'_>>> = Vec::with_capacity(fields.len() + 1);
    let (mut term_part, mut term_place) = (0, 0);
    for (place, field) in fields.iter().enumerate() {
        if field.kind == FieldKind::Text {
            (term_part, term_place) = (values.len(), place);
            values.extend([None, None]);
            continue;
        }
        let (value, has_array) = value_at(document, &field.path);
        if has_array {
            arrays |= 1 << place.min(63);
        }
        values.push(value);
    }
    if values[..term_part].iter().any(|value| matches!(value, Some(Value::Array(_)))) {
        let message = "cannot have a multi-key as a prefix to a text index";
        return Err(QueryError::new(Code::Location(16675), message));
    }
    let terms = search::terms(spec, document)?;
    if terms.len() > 1 {
        arrays |= 1 << term_place.min(63);
    }
    for (term, score) in &terms {
        values[term_part] = Some(Value::String(term));
        values[term_part + 1] = Some(Value::Double(*score));
        emit(&values);
    }
    Ok(arrays)
}

/// The value at a path, and whether there was an array on the way or at its end.
fn value_at<'d>(document: Document<'d>, path: &str) -> (Option<Value<'d>>, bool) {
    let mut at = Value::Document(document);
    let mut has_array = false;
    for name in path.split('.') {
        let inner = match at {
            Value::Document(inner) => inner,
            Value::Array(array) => {
                has_array = true;
                array.as_document()
            }
            _ => return (None, has_array),
        };
        match inner.get(name) {
            Some(value) => at = value,
            None => return (None, has_array),
        }
    }
    (Some(at), has_array || matches!(at, Value::Array(_)))
}
