//! Field paths of expressions: `"$a.b"`.
//!
//! Other than a filter's, they give one value: through an array on the way, the array of what the
//! elements that are documents have there (arrays directly in arrays are not entered). A number is
//! a field's name, never a position.

use frond_doc::{Document, Value};

use super::evaluated::{Elements, Evaluated};
use super::failure;
use super::node::Answer;
use crate::error::QueryError;
use crate::memory::RequestMemory;
use crate::sort_field::REFERENCE_NAMES;

/// The value at `parts` in a document.
pub(crate) fn in_document<'a>(
    document: Document<'a>,
    parts: &[String],
    memory: &RequestMemory,
) -> Answer<'a> {
    let Some((first, rest)) = parts.split_first() else {
        return Ok(Evaluated::Borrowed(Value::Document(document)));
    };
    from_first(document.get(first), rest, memory)
}

/// The value at `rest` in that of a path's first part.
#[inline]
pub(crate) fn from_first<'a>(
    first: Option<Value<'a>>,
    rest: &[String],
    memory: &RequestMemory,
) -> Answer<'a> {
    let mut value = first;
    for (position, part) in rest.iter().enumerate() {
        match value {
            Some(Value::Document(inner)) => value = inner.get(part),
            Some(Value::Array(_)) => return in_array(value, &rest[position..], memory),
            _ => return Ok(Evaluated::Missing),
        }
    }
    Ok(value.map_or(Evaluated::Missing, Evaluated::Borrowed))
}

/// The value at `parts` in a variable's value.
pub(crate) fn in_value<'a>(
    value: Evaluated<'a>,
    parts: &[String],
    memory: &RequestMemory,
) -> Answer<'a> {
    if parts.is_empty() {
        return Ok(value);
    }
    match value {
        Evaluated::Borrowed(Value::Document(document)) => in_document(document, parts, memory),
        Evaluated::Borrowed(array @ Value::Array(_)) => in_array(Some(array), parts, memory),
        Evaluated::Owned(owned) => match owned.as_value() {
            Value::Document(document) => in_document(document, parts, memory)?.detach(memory),
            array @ Value::Array(_) => in_array(Some(array), parts, memory)?.detach(memory),
            _ => Ok(Evaluated::Missing),
        },
        _ => Ok(Evaluated::Missing),
    }
}

fn in_array<'a>(value: Option<Value<'_>>, parts: &[String], memory: &RequestMemory) -> Answer<'a> {
    let mut elements = Elements::new(memory);
    if let Some(Value::Array(array)) = value {
        for element in array.iter() {
            let Value::Document(document) = element else { continue };
            if let Some(found) = in_document(document, parts, memory)?.value() {
                elements.push(found)?;
            }
        }
    }
    elements.finish()
}

/// Cuts a path at its dots and checks it.
pub(crate) fn parse(dotted: &str) -> Result<Vec<String>, QueryError> {
    if dotted.ends_with('.') {
        return Err(failure(40353, "FieldPath must not end with a '.'."));
    }
    let parts: Vec<String> = dotted.split('.').map(str::to_owned).collect();
    for part in &parts {
        check_name(part)?;
    }
    if parts.len() > PATH_PARTS_MAX {
        let message = "FieldPath is too long";
        return Err(QueryError::new(crate::code::Code::Overflow, message));
    }
    Ok(parts)
}

/// A path has as many parts as documents have levels.
const PATH_PARTS_MAX: usize = 200;

/// Checks one name of a path.
pub(crate) fn check_name(name: &str) -> Result<(), QueryError> {
    if name.is_empty() {
        return Err(failure(15998, "FieldPath field names may not be empty strings."));
    }
    if name.starts_with('$') && !REFERENCE_NAMES.contains(&name) {
        let message = "FieldPath field names may not start with '$'. \
                       Consider using $getField or $setField.";
        return Err(failure(16410, message));
    }
    if name.contains('\0') {
        return Err(failure(16411, "FieldPath field names may not contain '\0'."));
    }
    Ok(())
}
