//! Field paths of expressions: `"$a.b"`.
//!
//! Other than a filter's, they give one value: through an array on the way, the array of what the
//! elements that are documents have there (arrays directly in arrays are not entered). A number is
//! a field's name, never a position. Their results may be a reference, or hold some: only values on
//! the way are opened.

use frond_doc::{Document, ElementType, Reference, Value};

use super::evaluated::{Elements, Evaluated};
use super::failure;
use super::node::Answer;
use super::scope::Variables;
use crate::error::QueryError;
use crate::sort_field::REFERENCE_NAMES;

/// The value at `parts` in a document.
pub(crate) fn in_document<'a>(
    document: Document<'a>,
    parts: &[String],
    variables: &Variables,
) -> Answer<'a> {
    let Some((first, rest)) = parts.split_first() else {
        return Ok(Evaluated::Borrowed(Value::Document(document)));
    };
    from_first(document.get(first), rest, variables)
}

/// The value at `rest` in that of a path's first part.
#[inline]
pub(crate) fn from_first<'a>(
    first: Option<Value<'a>>,
    rest: &[String],
    variables: &Variables,
) -> Answer<'a> {
    let mut value = first;
    for (position, part) in rest.iter().enumerate() {
        match value {
            Some(Value::Document(inner)) => value = inner.get(part),
            Some(Value::Array(_)) => return in_array(value, &rest[position..], variables),
            Some(Value::Reference(reference)) if has_parts(reference) => {
                let opened = variables.charged(variables.large().open(reference)?)?;
                return in_value(opened, &rest[position..], variables);
            }
            _ => return Ok(Evaluated::Missing),
        }
    }
    Ok(value.map_or(Evaluated::Missing, Evaluated::Borrowed))
}

/// The value at `parts` in a variable's value.
pub(crate) fn in_value<'a>(
    value: Evaluated<'a>,
    parts: &[String],
    variables: &Variables,
) -> Answer<'a> {
    if parts.is_empty() {
        return Ok(value);
    }
    match value {
        Evaluated::Borrowed(Value::Document(document)) => in_document(document, parts, variables),
        Evaluated::Borrowed(array @ Value::Array(_)) => in_array(Some(array), parts, variables),
        Evaluated::Borrowed(Value::Reference(reference)) if has_parts(reference) => {
            let opened = variables.charged(variables.large().open(reference)?)?;
            in_value(opened, parts, variables)
        }
        Evaluated::Owned(owned) => match owned.as_value() {
            Value::Document(document) => {
                in_document(document, parts, variables)?.detach(variables.memory())
            }
            array @ Value::Array(_) => {
                in_array(Some(array), parts, variables)?.detach(variables.memory())
            }
            Value::Reference(reference) if has_parts(reference) => {
                let opened = variables.charged(variables.large().open(reference)?)?;
                in_value(opened, parts, variables)
            }
            _ => Ok(Evaluated::Missing),
        },
        _ => Ok(Evaluated::Missing),
    }
}

fn in_array<'a>(value: Option<Value<'_>>, parts: &[String], variables: &Variables) -> Answer<'a> {
    let mut elements = Elements::new(variables.memory());
    if let Some(Value::Array(array)) = value {
        for element in array.iter() {
            let found = match element {
                Value::Document(document) => in_document(document, parts, variables)?,
                Value::Reference(reference) if reference.kind() == ElementType::Document => {
                    in_value(Evaluated::Borrowed(element), parts, variables)?
                }
                _ => continue,
            };
            if let Some(found) = found.value() {
                elements.push(found)?;
            }
        }
    }
    elements.finish()
}

/// Whether there may be something on a path: not in what is neither document nor array.
fn has_parts(reference: Reference<'_>) -> bool {
    matches!(reference.kind(), ElementType::Document | ElementType::Array)
}

/// Cuts a path at its dots and checks it.
pub(crate) fn parse(dotted: &str) -> Result<Vec<String>, QueryError> {
    if dotted.is_empty() {
        return Err(failure(40352, "FieldPath cannot be constructed with empty string"));
    }
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
