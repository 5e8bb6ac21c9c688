//! 2dsphere and 2d indexes: places are filed by the cells of the sphere that cover them, or by the
//! square of the plane in which they lie.
//!
//! 1. At each such field's path are a place, several (an array of them, or a path through an
//!    array), or none; the field's values are the numbers of all their cells, or null. A 2d index
//!    takes legacy pairs only.
//! 2. Fields of other kinds are filed by their values; each cell of each place is combined with
//!    each of their keys.
//! 3. A document without any place is not filed: these indexes are sparse, always.

use frond_doc::path::Path;
use frond_doc::{Document, Value};

use super::{FieldKind, IndexField};
use crate::code::Code;
use crate::error::QueryError;
use crate::geometry::grid::Grid;
use crate::geometry::planar::Position;
use crate::geometry::{Geometry, cells, parse};
use crate::keys;
use crate::number::any_type::Number;
use crate::sort_field::SortField;
use crate::text;

/// Keys of one document at most.
const KEYS_MAX: usize = 100_000;

/// The reason why a 2d index refuses a place, and its code.
type FlatFault = (i32, String);

/// Calls `emit` with the values of each key, and returns which fields had several values: a bit for
/// each, by its place.
///
/// # Errors
/// 16755 for what should be a place and isn't; 16804, 13026, 13027, 13067 and 13068 for one that is
/// no pair within the grid; those of [`keys::for_each`].
pub(super) fn for_each(
    fields: &[IndexField],
    grid: &Grid,
    document: Document<'_>,
    emit: &mut dyn FnMut(&[Option<Value<'_>>]),
) -> Result<u64, QueryError> {
    let mut cells: Vec<(usize, Vec<i64>)> = Vec::new();
    let mut plain: Vec<SortField> = Vec::new();
    let mut plain_places: Vec<usize> = Vec::new();
    for (place, field) in fields.iter().enumerate() {
        match field.kind {
            FieldKind::Sphere => cells.push((place, cells_at(document, &field.path)?)),
            FieldKind::Plane => cells.push((place, squares_at(document, &field.path, grid)?)),
            _ => {
                plain.push(SortField { path: field.path.clone(), descending: field.descending });
                plain_places.push(place);
            }
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
    let plain_arrays = keys::for_each(&plain, document, &mut |found| {
        for (place, value) in plain_places.iter().zip(found) {
            values[*place] = *value;
        }
        combine(&cells, &mut values, emit);
    })?;
    for (number, place) in plain_places.iter().enumerate() {
        if plain_arrays & 1 << number.min(63) != 0 {
            arrays = several(arrays, *place);
        }
    }
    Ok(arrays)
}

/// Combines each cell of the first field with each of the others. Recursion is as deep as an index
/// has fields.
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

/// The squares of the legacy pairs at a path.
fn squares_at(document: Document<'_>, path: &str, grid: &Grid) -> Result<Vec<i64>, QueryError> {
    let mut found = Vec::new();
    let mut failure: Option<FlatFault> = None;
    Path::new(path).visit(document, &mut |value| {
        let inner = match value {
            Some(Value::Array(array)) => array.as_document(),
            Some(Value::Document(inner)) => inner,
            _ => return false,
        };
        let squares = squares_of(inner, grid).map(|squares| found.extend(squares));
        failure = failure.take().or(squares.err());
        false
    });
    if let Some((code, fault)) = failure {
        let shown = text::value(Value::Document(document));
        let message = format!("{fault} :: caused by :: {shown}");
        return Err(QueryError::new(Code::Location(code), message));
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// The squares of a pair of numbers, or of pairs; what is empty is no place.
fn squares_of(inner: Document<'_>, grid: &Grid) -> Result<Vec<i64>, FlatFault> {
    let Some((_, first)) = inner.iter().next() else { return Ok(Vec::new()) };
    if first.is_number() {
        return square(inner, grid).map(|square| vec![square]);
    }
    let mut squares = Vec::new();
    for (_, value) in inner.iter() {
        let pair = match value {
            Value::Array(array) => array.as_document(),
            Value::Document(pair) => pair,
            _ => {
                let fault = "location object expected, location array not in correct format";
                return Err((16804, fault.to_owned()));
            }
        };
        if !pair.is_empty() {
            squares.push(square(pair, grid)?);
        }
    }
    Ok(squares)
}

fn square(pair: Document<'_>, grid: &Grid) -> Result<i64, FlatFault> {
    let mut values = pair.iter().map(|(_, value)| Number::of(value).map(Number::double));
    match (values.next(), values.next()) {
        (None, _) => Err((13067, "geo field is empty".to_owned())),
        (_, None) => Err((13068, "geo field only has 1 element".to_owned())),
        (Some(Some(x)), Some(Some(y))) => grid.number(Position { x, y }).ok_or_else(|| {
            let (min, max) = grid.limits();
            (13027, format!("point not in interval of [ {min}, {max} ]"))
        }),
        _ => {
            let fault = "geo values must be 'legacy coordinate pairs' for 2d indexes";
            Err((13026, fault.to_owned()))
        }
    }
}
