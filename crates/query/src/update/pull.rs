//! `$pull`, `$pullAll` and `$pop`: what leaves an array.

use frond_doc::{Value, ValueBuf, order};

use super::modifier::{Modifier, Slot};
use super::push::write_array;
use super::walk::Trail;
use crate::code::Code;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::filter::{Filter, ValueFilter};
use crate::text;

/// Which elements a `$pull` removes.
#[derive(Clone, Debug)]
pub(super) enum PullCondition {
    /// Documents that pass a filter.
    Documents(Filter),
    /// Values that fulfil a condition.
    Values(ValueFilter),
    /// Values that are equal.
    Equal(ValueBuf),
}

impl PullCondition {
    /// Compares strings by `collation`.
    pub(super) fn collate(&mut self, collation: &Collation) {
        match self {
            PullCondition::Documents(filter) => *filter = filter.clone().with_collation(collation),
            PullCondition::Values(filter) => filter.collate(collation),
            PullCondition::Equal(_) => {}
        }
    }

    /// Whether an element leaves.
    pub(super) fn matches(&self, element: Value<'_>, collation: &Collation) -> bool {
        match (self, element) {
            (PullCondition::Documents(filter), Value::Document(document)) => {
                filter.matches(document)
            }
            (PullCondition::Documents(_), _) => false,
            (PullCondition::Values(filter), _) => filter.matches(element),
            (PullCondition::Equal(value), _) => collation.equal(value.as_value(), element),
        }
    }
}

/// `$pull`
pub(super) fn pull(_path: &str, operand: Value<'_>) -> Result<Modifier, QueryError> {
    let condition = match (ValueFilter::parse(operand)?, operand) {
        (Some(filter), _) => PullCondition::Values(filter),
        (None, Value::Document(document)) => {
            PullCondition::Documents(Filter::parse_inner(document)?)
        }
        (None, _) => PullCondition::Equal(operand.to_buf()),
    };
    Ok(Modifier::Pull(condition))
}

/// `$pullAll`
pub(super) fn pull_all(_path: &str, operand: Value<'_>) -> Result<Modifier, QueryError> {
    match operand {
        Value::Array(array) => {
            Ok(Modifier::PullAll(array.iter().map(|value| value.to_buf()).collect()))
        }
        _ => Err(QueryError::new(
            Code::BadValue,
            format!(
                "$pullAll requires an array argument but was given a {}",
                operand.element_type().alias()
            ),
        )),
    }
}

/// `$pop: 1 | -1`
pub(super) fn pop(_path: &str, operand: Value<'_>) -> Result<Modifier, QueryError> {
    let is = |number: i32| order::equal(operand, Value::Int32(number));
    if is(1) {
        return Ok(Modifier::PopLast);
    }
    if is(-1) {
        return Ok(Modifier::PopFirst);
    }
    let shown = text::value(operand);
    Err(QueryError::new(Code::FailedToParse, format!("$pop expects 1 or -1, found: {shown}")))
}

/// Writes the array without the elements that `is_unwanted`.
pub(super) fn apply_pull(
    slot: Slot<'_, '_>,
    operator: &str,
    is_unwanted: &dyn Fn(Value<'_>) -> bool,
) -> Result<(), QueryError> {
    match slot.current {
        None => {}
        Some(Value::Array(array)) if array.iter().any(is_unwanted) => {
            write_array(slot, array.iter().filter(|element| !is_unwanted(*element)));
        }
        Some(Value::Array(_)) => slot.keep(),
        Some(_) => {
            let message = format!("Cannot apply {operator} to a non-array value");
            return Err(QueryError::new(Code::BadValue, message));
        }
    }
    Ok(())
}

/// An end of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    First,
    Last,
}

/// Writes the array without its first or last element.
pub(super) fn apply_pop(slot: Slot<'_, '_>, end: End, trail: &Trail) -> Result<(), QueryError> {
    match slot.current {
        None => {}
        Some(Value::Array(array)) => {
            let skip = usize::from(end == End::First);
            let take = array.iter().count().saturating_sub(1);
            write_array(slot, array.iter().skip(skip).take(take));
        }
        Some(other) => {
            return Err(QueryError::new(
                Code::TypeMismatch,
                format!(
                    "Path '{}' contains an element of non-array type '{}'",
                    trail.dotted(),
                    other.element_type().alias()
                ),
            ));
        }
    }
    Ok(())
}
