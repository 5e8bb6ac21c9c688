//! 2dsphere indexes: places are filed by the cells of the sphere that cover them.
//!
//! 1. At each such field's path are a place, several (an array of them, or a path through an array), or
//!    none; the field's values are the cells of all of them, or null.
//! 2. Fields of other kinds are filed by their values; each cell of each place is combined with each
//!    of their keys.
//! 3. A document without any place is not filed: the index is sparse, always.

use frond_doc::path::Path;
use frond_doc::{Document, Value};

use super::{FieldKind, IndexField};
use crate::code::Code;
use crate::error::QueryError;
use crate::geometry::{Geometry, cells, parse};
use crate::keys;
use crate::sort::SortField;
use crate::text;

/// Keys of one document at most.
const KEYS_MAX: usize = 100_000;

/// Calls `emit` with the values of each key, and returns which fields had several values: a bit for each,
/// by its place.
///
/// # Errors
/// 16755 for what should be a place and isn't; those of [`keys::for_each`].
pub(super) fn for_each(
    fields: &[IndexField],
    document: Document<'_>,
    emit: &mut dyn FnMut(&[Option<Value<'_>>]),
) -> Result<u64, QueryError> {
    let mut cells: Vec<(usize, Vec<i64>)> = Vec::new();
    let mut plain: Vec<SortField> = Vec::new();
    let mut plain_places: Vec<usize> = Vec::new();
    for (place, field) in fields.iter().enumerate() {
        if field.kind == FieldKind::Sphere {
            cells.push((place, cells_at(document, &field.path)?));
        } else {
            plain.push(SortField { path: field.path.clone(), descending: field.descending });
            plain_places.push(place);
        }
    }
    if cells.iter().all(|(_, cells)| cells.is_empty()) {
        return Ok(0);
    }
    let several = |arrays: u64, place: usize| arrays | 1 << place.min(63);
    let mut arrays = 0;
    let mut count: usize = 1;
    for (place, cells) in &cells {
        count = count.saturating_mul(cells.len().max(1));
        if cells.len() > 1 {
            arrays = several(arrays, *place);
        }
    }
    if KEYS_MAX < count {
        let message = format!("Too many geo keys: {count}, at most {KEYS_MAX} are allowed");
        return Err(QueryError::new(Code::Location(16755), message));
    }
    let mut values: Vec<Option<Value<'_>>> = vec![None; fields.len()];
    let met = keys::for_each(&plain, document, &mut |found| {
        for (place, value) in plain_places.iter().zip(found) {
            values[*place] = *value;
        }
        combine(&cells, &mut values, emit);
    })?;
    for (number, place) in plain_places.iter().enumerate() {
        if met & 1 << number.min(63) != 0 {
            arrays = several(arrays, *place);
        }
    }
    Ok(arrays)
}

/// Each cell of the first field with each of the others. Recursion is as deep as an index has fields.
fn combine<'v>(
    cells: &[(usize, Vec<i64>)],
    values: &mut [Option<Value<'v>>],
    emit: &mut dyn FnMut(&[Option<Value<'_>>]),
) {
    let Some(((place, first), rest)) = cells.split_first() else {
        emit(values);
        return;
    };
    if first.is_empty() {
        values[*place] = None;
        combine(rest, values, emit);
    }
    for cell in first {
        values[*place] = Some(Value::Int64(*cell));
        combine(rest, values, emit);
    }
}

fn cells_at(document: Document<'_>, path: &str) -> Result<Vec<i64>, QueryError> {
    let mut found = Vec::new();
    let mut failure = None;
    let mut add = |value: Value<'_>| match file(value) {
        Ok(cells) => found.extend(cells),
        Err(fault) => {
            failure.get_or_insert(fault);
        }
    };
    Path::new(path).visit(document, &mut |value| {
        match value {
            None | Some(Value::Null | Value::Undefined) => {}
            Some(Value::Array(array)) => {
                let is_pair = array.iter().next().is_some_and(|first| first.is_number());
                match is_pair {
                    true => add(Value::Array(array)),
                    false => array.iter().for_each(&mut add),
                }
            }
            Some(value) => add(value),
        }
        false
    });
    if let Some(fault) = failure {
        let shown = text::value(Value::Document(document));
        let message = format!("Can't extract geo keys: {shown}  {fault}");
        return Err(QueryError::new(Code::Location(16755), message));
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn file(value: Value<'_>) -> Result<Vec<i64>, String> {
    let geometry = parse::stored(value)?;
    if let Geometry::Flat(at) = &geometry
        && !at.is_on_earth()
    {
        return Err(format!("longitude/latitude is out of bounds, lng: {} lat: {}", at.x, at.y));
    }
    let parts = geometry.on_sphere().unwrap_or_default();
    cells::filed(&parts).ok_or_else(|| "it has too many parts".to_owned())
}
