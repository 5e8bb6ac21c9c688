//! The keys under which an index files a document.
//!
//! 1. Each field's path is walked until it ends, or meets an array. A number names the element of
//!    an array, as in queries.
//! 2. If there is no array on the way, there is one key. An absent field gives null.
//! 3. If one array was met, by one or several fields, each of its elements gives keys: the walk
//!    goes on in it for the fields that met the array, the others keep their values. An empty array
//!    gives undefined where the path ends, and nothing where it goes on. Elements of elements are
//!    not expanded.
//! 4. Two different arrays are refused: their keys would be all pairs.
//!
//! *Invariant*: what a path reaches in a query (`Path::visit_leaves`) is among the field's values
//! here, with null for "absent"; the planner's bounds rest on that. An array as a whole is not: the
//! planner looks for one of its elements.

use frond_doc::{Array, Document, Value};

use crate::code::Code;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::sort_field::SortField;

/// A field on its way: where it is, and the part of its path that is left.
#[derive(Clone, Copy)]
struct Walk<'d, 'p> {
    field: usize,
    at: Value<'d>,
    rest: Option<&'p str>,
}

/// The position at which a walk has stopped.
enum Halt<'d, 'p> {
    Value(Option<Value<'d>>),
    Array(Array<'d>, Walk<'d, 'p>),
}

/// A bit that [`for_each`] returns besides the bits of fields: some field met an array within an
/// element of another.
pub(crate) const NESTED: u64 = 1 << 63;

/// Calls `emit` with the values of each key, `None` for an absent one, and returns which fields met
/// an array: a bit for each, by its place, and [`NESTED`]. A key may come twice.
///
/// # Errors
/// `CannotIndexParallelArrays`, and code 16746 where a number on a path names both an element and a
/// field.
pub(crate) fn for_each<'d>(
    fields: &[SortField],
    document: Document<'d>,
    emit: &mut dyn FnMut(&[Option<Value<'d>>]),
) -> Result<u64, QueryError> {
    let mut values = vec![None; fields.len()];
    let walks: Vec<Walk<'_, '_>> = fields
        .iter()
        .enumerate()
        .map(|(field, pattern)| Walk {
            field,
            at: Value::Document(document),
            rest: Some(pattern.path.as_str()),
        })
        .collect();
    expand(fields, &walks, &mut values, emit)
}

/// Appends the key of `values`.
pub(crate) fn append(
    key: &mut Vec<u8>,
    fields: &[SortField],
    values: &[Option<Value<'_>>],
    collation: &Collation,
) {
    for (field, value) in fields.iter().zip(values) {
        collation.append_key(key, value.unwrap_or(Value::Null), field.descending);
    }
}

/// Recursion follows the document's nesting, which validation has bounded.
fn expand<'d>(
    fields: &[SortField],
    walks: &[Walk<'d, '_>],
    values: &mut [Option<Value<'d>>],
    emit: &mut dyn FnMut(&[Option<Value<'d>>]),
) -> Result<u64, QueryError> {
    let mut expanded: Option<(Array<'d>, usize)> = None;
    let mut waiting = Vec::new();
    for walk in walks {
        match go(*walk)? {
            Halt::Value(value) => values[walk.field] = value,
            Halt::Array(array, walk) => {
                match expanded {
                    Some((other, by)) if !is_same(array, other) => {
                        return Err(parallel(&fields[walk.field].path, &fields[by].path));
                    }
                    _ => expanded = Some((array, walk.field)),
                }
                waiting.push(walk);
            }
        }
    }
    let Some((array, _)) = expanded else {
        emit(values);
        return Ok(0);
    };
    let mut arrays = waiting.iter().fold(0, |arrays, walk| arrays | 1 << walk.field.min(62));
    if array.is_empty() {
        for walk in &waiting {
            values[walk.field] = walk.rest.is_none().then_some(Value::Undefined);
        }
        emit(values);
        return Ok(arrays);
    }
    let mut inner = Vec::with_capacity(waiting.len());
    for element in array.iter() {
        inner.clear();
        for walk in &waiting {
            match (walk.rest, element) {
                (None, _) => values[walk.field] = Some(element),
                (Some(_), Value::Document(_)) => inner.push(Walk { at: element, ..*walk }),
                (Some(_), _) => values[walk.field] = None,
            }
        }
        let below = expand(fields, &inner, values, emit)?;
        arrays |= if below == 0 { 0 } else { below | NESTED };
    }
    Ok(arrays)
}

/// Whether the two are the very same array, not only equal.
fn is_same(left: Array<'_>, right: Array<'_>) -> bool {
    std::ptr::eq(left.as_bytes(), right.as_bytes())
}

/// Walks one field until its path ends or an array is reached.
fn go<'d, 'p>(mut walk: Walk<'d, 'p>) -> Result<Halt<'d, 'p>, QueryError> {
    while let Some(rest) = walk.rest {
        let (part, after) = match rest.split_once('.') {
            Some((part, after)) => (part, Some(after)),
            None => (rest, None),
        };
        walk.at = match walk.at {
            Value::Document(document) => match document.get(part) {
                Some(value) => value,
                None => return Ok(Halt::Value(None)),
            },
            Value::Array(array) => match named_element(array, part)? {
                Some(element) => element,
                None => return Ok(Halt::Array(array, walk)),
            },
            _ => return Ok(Halt::Value(None)),
        };
        walk.rest = after;
    }
    Ok(match walk.at {
        Value::Array(array) => Halt::Array(array, walk),
        value => Halt::Value(Some(value)),
    })
}

/// The element that a part of a path names, if it is a number.
fn named_element<'d>(array: Array<'d>, part: &str) -> Result<Option<Value<'d>>, QueryError> {
    if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    let Some(element) = array.as_document().get(part) else { return Ok(None) };
    let is_field_too = array
        .iter()
        .filter_map(|element| element.as_document())
        .any(|document| document.get(part).is_some());
    if is_field_too {
        return Err(QueryError::new(
            Code::Location(16746),
            format!(
                "Ambiguous field name found in array (do not use numeric field names in embedded \
                 elements in an array), field: '{part}'"
            ),
        ));
    }
    Ok(Some(element))
}

fn parallel(left: &str, right: &str) -> QueryError {
    QueryError::new(
        Code::CannotIndexParallelArrays,
        format!("cannot index parallel arrays [{left}] [{right}]"),
    )
}
