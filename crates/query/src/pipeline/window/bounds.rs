//! The documents in the window of each document: so many before and after it, or those whose sort
//! value is near enough.

use frond_doc::path::Path;
use frond_doc::{Document, DocumentBuf, Value, ValueBuf, order};

use super::Partition;
use crate::error::QueryError;
use crate::expression::failure;
use crate::number;
use crate::number::any_type::{Number, as_i32};
use crate::pipeline::parse::failed_to_parse;
use crate::pipeline::time_unit::TimeUnit;
use crate::sort::SortPattern;

/// An end of a window.
#[derive(Clone, Debug)]
enum Bound<T> {
    Unbounded,
    /// The document itself is no distance away.
    Distance(T),
}

/// Both ends of a window.
#[derive(Clone, Debug)]
enum Ends {
    Documents(Bound<i64>, Bound<i64>),
    /// `None` is the document itself and its peers.
    Range(Bound<Option<ValueBuf>>, Bound<Option<ValueBuf>>, Option<TimeUnit>),
}

/// The window of each document.
#[derive(Clone, Debug)]
pub(super) struct Bounds(Ends);

impl Bounds {
    /// All documents of the partition.
    pub(super) const ALL: Bounds = Bounds(Ends::Documents(Bound::Unbounded, Bound::Unbounded));

    /// Parses `{documents: [low, high]}` or `{range: [low, high], unit}`.
    pub(super) fn parse(
        window: Document<'_>,
        sort: Option<&SortPattern>,
    ) -> Result<Bounds, QueryError> {
        if let Some((name, _)) =
            window.iter().find(|(name, _)| !["documents", "range", "unit"].contains(name))
        {
            let message = format!(
                "'window' field can only contain 'documents' as the only \
                                   argument or 'range' with an optional 'unit' field, found {name}"
            );
            return Err(failed_to_parse(message));
        }
        match (window.get("documents"), window.get("range"), window.get("unit")) {
            (Some(documents), None, None) => documents_bounds(documents, sort),
            (None, Some(range), unit) => range_bounds(range, unit, sort),
            (None, None, _) => Ok(Bounds::ALL),
            _ => Err(failed_to_parse(
                "'window' field can only contain 'documents' as the only argument or 'range' with \
                 an optional 'unit' field",
            )),
        }
    }

    /// Returns for each document the positions from the first in its window to after the last.
    pub(super) fn ranges(
        &self,
        partition: &Partition<'_>,
    ) -> Result<Vec<(usize, usize)>, QueryError> {
        let count = partition.documents.len();
        let mut values = vec![Value::Null; count];
        if let Ends::Range(_, _, unit) = &self.0 {
            for (value, found) in values.iter_mut().zip(partition.sort_values()) {
                *value = checked(found, *unit)?;
            }
        }
        // Sort values ascend, so both ends only move on.
        let (mut from, mut to) = (0, 0);
        let mut ranges = Vec::with_capacity(count);
        for (position, value) in values.iter().enumerate() {
            let window = self.window_of(position, count, *value)?;
            while from < count && window.is_behind(from, values[from]) {
                from += 1;
            }
            while to < count && window.reaches(to, values[to]) {
                to += 1;
            }
            ranges.push((from, to.max(from)));
        }
        Ok(ranges)
    }

    /// The sort value of a document, if windows are bounded by it; else null.
    ///
    /// # Errors
    /// 5429513 or 5429414 for one that is no date or number, 5429413 for a date without a unit.
    pub(super) fn sort_value<'d>(
        &self,
        path: &Path,
        document: &'d DocumentBuf,
    ) -> Result<Value<'d>, QueryError> {
        match &self.0 {
            Ends::Documents(..) => Ok(Value::Null),
            Ends::Range(_, _, unit) => checked(path.get(document.view()), *unit),
        }
    }

    /// The window of the document at `position` of `count`, whose sort value is `value`.
    pub(super) fn window_of(
        &self,
        position: usize,
        count: usize,
        value: Value<'_>,
    ) -> Result<Window, QueryError> {
        match &self.0 {
            Ends::Documents(low, high) => {
                let (from, to) = places(low, high, position, count);
                Ok(Window::Places(from, to))
            }
            Ends::Range(low, high, unit) => {
                let end = |bound: &Bound<Option<ValueBuf>>| match bound {
                    Bound::Unbounded => Ok(None),
                    Bound::Distance(distance) => moved(value, distance.as_ref(), *unit).map(Some),
                };
                Ok(Window::Values { least: end(low)?, greatest: end(high)? })
            }
        }
    }
}

/// The window of one document.
#[derive(Clone, Debug)]
pub(super) enum Window {
    /// From the first place to after the last.
    Places(usize, usize),
    /// Those whose sort values lie between.
    Values { least: Option<ValueBuf>, greatest: Option<ValueBuf> },
}

impl Window {
    /// Whether a document lies before the window.
    pub(super) fn is_behind(&self, position: usize, value: Value<'_>) -> bool {
        match self {
            Window::Places(from, _) => position < *from,
            Window::Values { least, .. } => {
                let is_less = |least: &ValueBuf| order::compare(value, least.as_value()).is_lt();
                least.as_ref().is_some_and(is_less)
            }
        }
    }

    /// Whether a document lies before the window's end.
    pub(super) fn reaches(&self, position: usize, value: Value<'_>) -> bool {
        match self {
            Window::Places(_, to) => position < *to,
            Window::Values { greatest, .. } => greatest
                .as_ref()
                .is_none_or(|greatest| order::compare(value, greatest.as_value()).is_le()),
        }
    }
}

/// The positions from the first in the window of the document at `position` to after the last.
fn places(low: &Bound<i64>, high: &Bound<i64>, position: usize, count: usize) -> (usize, usize) {
    let clamp = |position: i64| usize::try_from(position.max(0)).unwrap_or(count).min(count);
    let here = i64::try_from(position).unwrap_or(i64::MAX);
    let from = match low {
        Bound::Unbounded => 0,
        Bound::Distance(distance) => clamp(here.saturating_add(*distance)),
    };
    let to = match high {
        Bound::Unbounded => count,
        Bound::Distance(distance) => clamp(here.saturating_add(*distance).saturating_add(1)),
    };
    (from, to.max(from))
}

/// A sort value by which windows can be bounded.
fn checked<'v>(value: Option<Value<'v>>, unit: Option<TimeUnit>) -> Result<Value<'v>, QueryError> {
    let value = value.unwrap_or(Value::Null);
    let found = value.element_type().alias();
    let wrong = |code, wanted| {
        let message = format!(
            "Invalid range: Expected the sortBy field to be a {wanted}, but it was {found}"
        );
        Err(failure(code, message))
    };
    match (unit, value) {
        (Some(_), Value::DateTime(_)) => Ok(value),
        (Some(_), _) => wrong(5_429_513, "Date"),
        (None, value) if value.is_number() => Ok(value),
        (None, Value::DateTime(_)) => {
            let message = "Invalid range: For windows that involve date or time ranges, a unit \
                           must be provided.";
            Err(failure(5_429_413, message))
        }
        (None, _) => wrong(5_429_414, "number"),
    }
}

/// A sort value and a distance.
fn moved(
    value: Value<'_>,
    distance: Option<&ValueBuf>,
    unit: Option<TimeUnit>,
) -> Result<ValueBuf, QueryError> {
    let Some(distance) = distance else { return Ok(value.to_buf()) };
    let distance = distance.as_value();
    let moved = match (unit, value) {
        (Some(unit), Value::DateTime(date)) => {
            distance.as_integer().and_then(|count| unit.add(date, count)).map(Value::DateTime)
        }
        // Beyond what a long holds the distance goes on as a double.
        _ => number::add(value, distance).or_else(|| {
            let (value, distance) = (Number::of(value)?, Number::of(distance)?);
            Some(Value::Double(value.double() + distance.double()))
        }),
    };
    let moved = moved.ok_or_else(|| failure(5_166_406, "the window's bound is out of range"))?;
    Ok(ValueBuf::from(moved))
}

fn pair<'v>(name: &str, value: Value<'v>) -> Result<[Value<'v>; 2], QueryError> {
    let elements = value.as_array().map(|array| array.iter().collect::<Vec<_>>());
    elements
        .and_then(|elements| <[Value<'v>; 2]>::try_from(elements).ok())
        .ok_or_else(|| failed_to_parse(format!("Window bounds must be a 2-element array: {name}")))
}

fn documents_bounds(value: Value<'_>, sort: Option<&SortPattern>) -> Result<Bounds, QueryError> {
    let [low, high] = pair("documents", value)?;
    let bound = |value: Value<'_>| match value {
        Value::String("unbounded") => Ok(Bound::Unbounded),
        Value::String("current") => Ok(Bound::Distance(0)),
        value => as_i32(value)
            .map(|whole| Bound::Distance(i64::from(whole)))
            .ok_or_else(|| failed_to_parse("Numeric document-based bounds must be an integer")),
    };
    let (low, high) = (bound(low)?, bound(high)?);
    let is_bounded = !matches!((&low, &high), (Bound::Unbounded, Bound::Unbounded));
    if is_bounded && sort.is_none() {
        return Err(failure(5_339_901, "Document-based bounds require a sortBy"));
    }
    if let (Bound::Distance(low), Bound::Distance(high)) = (&low, &high)
        && high < low
    {
        let message = format!("Lower bound must not exceed upper bound: [{low}, {high}]");
        return Err(failure(5_339_900, message));
    }
    Ok(Bounds(Ends::Documents(low, high)))
}

fn range_bounds(
    value: Value<'_>,
    unit: Option<Value<'_>>,
    sort: Option<&SortPattern>,
) -> Result<Bounds, QueryError> {
    let [low, high] = pair("range", value)?;
    let unit = unit.map(TimeUnit::parse).transpose()?;
    let bound = |value: Value<'_>| match value {
        Value::String("unbounded") => Ok(Bound::Unbounded),
        Value::String("current") => Ok(Bound::Distance(None)),
        value if !value.is_number() => {
            Err(failed_to_parse("Range-based bounds expression must be a number"))
        }
        value if unit.is_some() && value.as_integer().is_none() => {
            Err(failed_to_parse("With 'unit', range-based bounds must be an integer"))
        }
        value => Ok(Bound::Distance(Some(value.to_buf()))),
    };
    let (low, high) = (bound(low)?, bound(high)?);
    let ascends_by_one =
        sort.is_some_and(|sort| matches!(sort.fields.as_slice(), [field] if !field.descending));
    if !ascends_by_one {
        let message = "Range-based window require sortBy a single ascending field";
        return Err(failure(5_339_902, message));
    }
    if let (Bound::Distance(low), Bound::Distance(high)) = (&low, &high) {
        let zero = ValueBuf::from(Value::Int32(0));
        let (low, high) = (low.as_ref().unwrap_or(&zero), high.as_ref().unwrap_or(&zero));
        if order::compare(high.as_value(), low.as_value()).is_lt() {
            return Err(failure(5_339_900, "Lower bound must not exceed upper bound"));
        }
    }
    Ok(Bounds(Ends::Range(low, high, unit)))
}
