//! Hashed indexes: one field is filed by the hash of its value.
//!
//! No path of such an index may meet an array: a hash couldn't be found by one of the elements.

use frond_doc::{Document, Value};

use super::{FieldKind, IndexField};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::hashed_key;

/// The values of the document's one key, and whether any of the fields is there.
///
/// # Errors
/// 16766 if a path meets an array.
pub(super) fn values<'d>(
    fields: &[IndexField],
    document: Document<'d>,
) -> Result<(Vec<Option<Value<'d>>>, bool), QueryError> {
    let mut values = Vec::with_capacity(fields.len());
    let mut any_present = false;
    for field in fields {
        let value = value_at(document, &field.path)?;
        any_present |= value.is_some();
        values.push(match field.kind {
            FieldKind::Hashed => Some(Value::Int64(hashed_key(value.unwrap_or(Value::Null)))),
            _ => value,
        });
    }
    Ok((values, any_present))
}

fn value_at<'d>(document: Document<'d>, path: &str) -> Result<Option<Value<'d>>, QueryError> {
    let mut at = Value::Document(document);
    for part in path.split('.') {
        at = match at {
            Value::Document(document) => match document.get(part) {
                Some(value) => value,
                None => return Ok(None),
            },
            Value::Array(_) => return Err(no_arrays(path)),
            _ => return Ok(None),
        };
    }
    match at {
        Value::Array(_) => Err(no_arrays(path)),
        value => Ok(Some(value)),
    }
}

fn no_arrays(path: &str) -> QueryError {
    let message = format!(
        "hashed indexes do not currently support array values. Found array at path: {path}"
    );
    QueryError::new(Code::Location(16766), message)
}
