//! `$pull`, `$pullAll` and `$pop`: what leaves an array. [`Pull`]: the same for a caller that has
//! an array's elements one by one.

use frond_doc::{Value, ValueBuf, order};

use super::modifier::Modifier;
use super::push::write_array;
use super::scope::{Slot, Trail};
use super::value_set::{ValueSet, count_lookup};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::Variables;
use crate::filter::{Filter, ValueFilter};
use crate::memory::RequestMemory;
use crate::text;

/// The condition of a `$pull`.
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
    /// Compares strings as `variables` say, and takes what they allow.
    pub(super) fn bind(&mut self, variables: &Variables) {
        match self {
            PullCondition::Documents(filter) => {
                *filter = filter.clone().with_variables(variables.clone());
            }
            PullCondition::Values(filter) => filter.bind(variables),
            PullCondition::Equal(_) => {}
        }
    }

    /// Whether an element leaves.
    pub(super) fn matches(
        &self,
        element: Value<'_>,
        variables: &Variables,
    ) -> Result<bool, QueryError> {
        count_lookup(element, variables.memory())?;
        match (self, element) {
            (PullCondition::Documents(filter), Value::Document(document)) => {
                filter.try_matches(document)
            }
            (PullCondition::Documents(_), _) => Ok(false),
            (PullCondition::Values(filter), _) => filter.matches(element),
            (PullCondition::Equal(value), _) => {
                Ok(variables.collation().equal(value.as_value(), element))
            }
        }
    }
}

/// A `$pull` or `$pullAll`, applied to one element at a time.
#[derive(Clone, Debug)]
pub struct Pull {
    condition: Unwanted,
    variables: Variables,
}

#[derive(Clone, Debug)]
enum Unwanted {
    By(PullCondition),
    AnyOf(ValueSet),
}

impl Pull {
    /// Parses the operand of such an operator; `None` if it is another, or wrong.
    pub fn parse(operator: &str, operand: Value<'_>, variables: &Variables) -> Option<Pull> {
        let mut modifier = match operator {
            "$pull" => pull("", operand),
            "$pullAll" => pull_all("", operand),
            _ => return None,
        }
        .ok()?;
        modifier.bind(variables);
        let condition = match modifier {
            Modifier::Pull(condition) => Unwanted::By(*condition),
            Modifier::PullAll(values) => Unwanted::AnyOf(values),
            _ => return None,
        };
        Some(Pull { condition, variables: variables.clone() })
    }

    /// Whether an element leaves. Of a document it may be given those fields only that
    /// [`Pull::names_in_documents`] returns.
    ///
    /// # Errors
    /// An error of evaluating the condition; the request's own error, if it must stop.
    pub fn removes(&self, element: Value<'_>) -> Result<bool, QueryError> {
        match &self.condition {
            Unwanted::By(condition) => condition.matches(element, &self.variables),
            Unwanted::AnyOf(values) => {
                count_lookup(element, self.variables.memory())?;
                Ok(values.contains(element))
            }
        }
    }

    /// The outermost fields that decide, if only documents leave, and others of their fields don't
    /// matter.
    pub fn names_in_documents(&self) -> Option<Vec<&[u8]>> {
        match &self.condition {
            Unwanted::By(PullCondition::Documents(filter)) => {
                Some(filter.outermost_names()?.collect())
            }
            _ => None,
        }
    }

    /// Whether no document or array leaves.
    pub fn leaves_containers(&self) -> bool {
        let is_container = |value| matches!(value, Value::Document(_) | Value::Array(_));
        match &self.condition {
            Unwanted::By(PullCondition::Equal(value)) => !is_container(value.as_value()),
            Unwanted::By(_) => false,
            Unwanted::AnyOf(values) => !values.values().any(is_container),
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
    Ok(Modifier::Pull(Box::new(condition)))
}

/// `$pullAll`
pub(super) fn pull_all(_path: &str, operand: Value<'_>) -> Result<Modifier, QueryError> {
    match operand {
        Value::Array(array) => {
            let values = array.iter().map(|value| value.to_buf()).collect();
            Ok(Modifier::PullAll(ValueSet::of(values)))
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
    memory: &RequestMemory,
    is_unwanted: &dyn Fn(Value<'_>) -> Result<bool, QueryError>,
) -> Result<(), QueryError> {
    match slot.current {
        None => {}
        Some(Value::Array(array)) => {
            let count = array.as_document().elements().count();
            let _charge = memory.charge_of(count * size_of::<Value<'_>>())?;
            let mut kept = Vec::with_capacity(count);
            for element in array.iter() {
                if !is_unwanted(element)? {
                    kept.push(element);
                }
            }
            if kept.len() == count {
                slot.keep();
            } else {
                write_array(slot, kept.into_iter(), memory)?;
            }
        }
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
pub(super) fn apply_pop(
    slot: Slot<'_, '_>,
    end: End,
    memory: &RequestMemory,
    trail: &Trail,
) -> Result<(), QueryError> {
    match slot.current {
        None => {}
        Some(Value::Array(array)) => {
            let skip = usize::from(end == End::First);
            let take = array.iter().count().saturating_sub(1);
            write_array(slot, array.iter().skip(skip).take(take), memory)?;
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
