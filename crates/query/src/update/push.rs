//! `$push` (with `$each`, `$position`, `$slice`, `$sort`) and `$addToSet` (with `$each`).
//! [`OrderedPush`]: a `$push` with `$sort`, for a caller that has an array's elements one by one.

use std::cmp::Ordering;

use frond_doc::path::Path;
use frond_doc::{Array, Value, ValueBuf};

use super::modifier::Modifier;
use super::scope::{Scope, Slot, Trail};
use super::value_set::{Missing, ValueSet};
use crate::code::Code;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::expression::Variables;
use crate::memory::{self, RequestMemory};
use crate::{number, text};

/// A parsed `$push`.
#[derive(Clone, Debug)]
pub(super) struct Push {
    values: Vec<ValueBuf>,
    /// The position of the values; negative: counted from the end. `None`: at the end.
    position: Option<i64>,
    /// The number of elements that stay: the first ones, or, negative, the last ones.
    slice: Option<i64>,
    sort: Option<PushSort>,
}

/// The order of a `$push`.
#[derive(Clone, Debug)]
enum PushSort {
    /// Elements as a whole.
    Elements { descending: bool },
    /// Documents by their fields.
    Fields(Vec<(Path, bool)>),
}

/// A `$push` with `$sort` into an array that is in that order: where the values go.
#[derive(Clone, Debug)]
pub struct OrderedPush {
    /// Its values are in order.
    push: Push,
    sort: PushSort,
    collation: Collation,
}

impl OrderedPush {
    /// Parses the operand of a `$push`; `None` if it sorts nothing, or is wrong.
    pub fn parse(operand: Value<'_>, collation: &Collation) -> Option<OrderedPush> {
        let Modifier::Push(mut push) = self::push("", operand).ok()? else { return None };
        let sort = push.sort.take()?;
        let by = |left: &ValueBuf, right: &ValueBuf| {
            sort.compare(left.as_value(), right.as_value(), collation)
        };
        push.values.sort_by(by);
        Some(OrderedPush { push: *push, sort, collation: collation.clone() })
    }

    /// Returns the pushed values, in order; equal values as they came.
    pub fn values(&self) -> impl Iterator<Item = Value<'_>> {
        self.push.values.iter().map(ValueBuf::as_value)
    }

    /// Returns how many elements stay, as in the operator.
    pub fn slice(&self) -> Option<i64> {
        self.push.slice
    }

    /// Returns how two elements are sorted. Of documents they may have those fields only that
    /// [`OrderedPush::names_in_documents`] returns.
    pub fn compare(&self, left: Value<'_>, right: Value<'_>) -> Ordering {
        self.sort.compare(left, right, &self.collation)
    }

    /// Checks whether the element at `position`, of `count`, comes before a value that is pushed:
    /// of equal ones those do that lie before the place where values are pushed.
    pub fn is_before(
        &self,
        element: Value<'_>,
        position: u64,
        count: u64,
        pushed: Value<'_>,
    ) -> bool {
        let is_before_place = || (position as usize) < self.push.place(count as usize);
        self.compare(element, pushed).then_with(|| match is_before_place() {
            true => Ordering::Less,
            false => Ordering::Greater,
        }) == Ordering::Less
    }

    /// The outermost fields that decide of two documents; `None`: all of them do.
    pub fn names_in_documents(&self) -> Option<Vec<&[u8]>> {
        let PushSort::Fields(fields) = &self.sort else { return None };
        Some(fields.iter().map(|(path, _)| path.parts()[0].as_bytes()).collect())
    }
}

/// A `$addToSet`, for a caller that has an array's elements one by one.
#[derive(Clone, Debug)]
pub struct AddToSet {
    values: ValueSet,
    memory: RequestMemory,
}

impl AddToSet {
    /// Parses the operand of a `$addToSet`; `None` if it is wrong.
    pub fn parse(operand: Value<'_>, variables: &Variables) -> Option<AddToSet> {
        let Modifier::AddToSet(mut values) = add_to_set("", operand).ok()? else { return None };
        values.collate(variables.collation());
        Some(AddToSet { values, memory: variables.memory().clone() })
    }

    /// Its values, to be shown what is there already.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`.
    pub fn missing(&self) -> Result<Missing<'_>, QueryError> {
        self.values.missing(&self.memory)
    }
}

impl Push {
    /// Returns the memory it takes.
    pub(super) fn bytes(&self) -> usize {
        bytes_of_all(self.values.iter().map(ValueBuf::as_value))
    }

    /// Returns the position among `count` elements before which the values go.
    fn place(&self, count: usize) -> usize {
        match self.position {
            None => count,
            Some(position) if position >= 0 => count.min(position as usize),
            Some(position) => count.saturating_sub(position.unsigned_abs() as usize),
        }
    }
}

fn bad_value(message: String) -> QueryError {
    QueryError::new(Code::BadValue, message)
}

/// `$push`
pub(super) fn push(_path: &str, operand: Value<'_>) -> Result<Modifier, QueryError> {
    let mut push = Push { values: Vec::new(), position: None, slice: None, sort: None };
    let clauses = operand.as_document().filter(|document| document.get("$each").is_some());
    let Some(clauses) = clauses else {
        push.values.push(operand.to_buf());
        return Ok(Modifier::Push(Box::new(push)));
    };
    for (name, value) in clauses.iter() {
        match name {
            "$each" => push.values = each("$push", value)?,
            "$position" => {
                push.position = Some(number::whole(value).ok_or_else(|| {
                    bad_value(format!(
                        "The value for $position must be an integer value, not of type: {}",
                        value.element_type().alias()
                    ))
                })?);
            }
            "$slice" => {
                push.slice = Some(number::whole(value).ok_or_else(|| {
                    bad_value(format!(
                        "The value for $slice must be an integer value but was given type: {}",
                        value.element_type().alias()
                    ))
                })?);
            }
            "$sort" => push.sort = Some(PushSort::parse(value)?),
            _ => return Err(bad_value(format!("Unrecognized clause in $push: {name}"))),
        }
    }
    Ok(Modifier::Push(Box::new(push)))
}

fn each(operator: &str, value: Value<'_>) -> Result<Vec<ValueBuf>, QueryError> {
    match value {
        Value::Array(array) => Ok(array.iter().map(|value| value.to_buf()).collect()),
        _ => {
            // MongoDB's two operators say the same with different codes.
            let code = if operator == "$push" { Code::BadValue } else { Code::TypeMismatch };
            let found = value.element_type().alias();
            let message = format!(
                "The argument to $each in {operator} must be an array but it was of type: {found}"
            );
            Err(QueryError::new(code, message))
        }
    }
}

/// `$addToSet`
pub(super) fn add_to_set(_path: &str, operand: Value<'_>) -> Result<Modifier, QueryError> {
    let document = operand.as_document();
    let mut fields = document.iter().flat_map(|document| document.iter());
    let values = match fields.next() {
        Some(("$each", values)) => {
            let values = each("$addToSet", values)?;
            if fields.next().is_some() {
                let shown = text::value(operand);
                return Err(bad_value(format!(
                    "Found unexpected fields after $each in $addToSet: {shown}"
                )));
            }
            values
        }
        _ => vec![operand.to_buf()],
    };
    Ok(Modifier::AddToSet(ValueSet::of(values)))
}

impl PushSort {
    fn parse(value: Value<'_>) -> Result<PushSort, QueryError> {
        let refuse = || {
            bad_value(
                "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to \
                 sort embedded fields"
                    .to_owned(),
            )
        };
        let direction = |value: Value<'_>| match number::whole(value) {
            Some(1) => Ok(false),
            Some(-1) => Ok(true),
            _ => Err(refuse()),
        };
        match value {
            Value::Document(fields) if !fields.is_empty() => {
                let mut parsed = Vec::new();
                for (name, value) in fields.iter() {
                    if name.is_empty() || name.split('.').any(str::is_empty) {
                        return Err(bad_value(
                            "The $sort field is a dotted field but has an empty part".to_owned(),
                        ));
                    }
                    parsed.push((Path::new(name), direction(value)?));
                }
                Ok(PushSort::Fields(parsed))
            }
            Value::Document(_) => Err(refuse()),
            _ => Ok(PushSort::Elements { descending: direction(value)? }),
        }
    }

    fn compare(&self, left: Value<'_>, right: Value<'_>, by: &Collation) -> Ordering {
        match self {
            PushSort::Fields(fields) => compare_fields(fields, left, right, by),
            PushSort::Elements { descending: true } => by.compare(right, left),
            PushSort::Elements { descending: false } => by.compare(left, right),
        }
    }
}

/// An element that is no document has no fields.
fn compare_fields(
    fields: &[(Path, bool)],
    left: Value<'_>,
    right: Value<'_>,
    by: &Collation,
) -> Ordering {
    for (path, descending) in fields {
        let [left, right] = [left, right].map(|element| match element {
            Value::Document(document) => path.get(document).unwrap_or(Value::Null),
            _ => Value::Null,
        });
        let ordering = by.compare(left, right);
        if ordering.is_ne() {
            return if *descending { ordering.reverse() } else { ordering };
        }
    }
    Ordering::Equal
}

/// Writes the array with the new elements.
pub(super) fn apply_push(
    slot: Slot<'_, '_>,
    push: &Push,
    scope: &Scope<'_>,
    trail: &Trail,
) -> Result<(), QueryError> {
    let mut elements: Vec<Value<'_>> = match slot.current {
        None => Vec::new(),
        Some(Value::Array(array)) => array.iter().collect(),
        Some(other) => {
            return Err(bad_value(format!(
                "The field '{}' must be an array but is of type {} in document {}",
                trail.dotted(),
                other.element_type().alias(),
                text::id(scope.document)
            )));
        }
    };
    let memory = scope.variables.memory();
    let count = elements.len() + push.values.len();
    // Sorting takes as much again.
    let copies = if push.sort.is_some() { 2 } else { 1 };
    let _charge = memory.charge_of(count * size_of::<Value<'_>>() * copies)?;
    let place = push.place(elements.len());
    elements.splice(place..place, push.values.iter().map(|value| value.as_value()));
    if let Some(sort) = &push.sort {
        let collation = scope.variables.collation();
        memory::sort_by(&mut elements, memory, |left, right| {
            sort.compare(*left, *right, collation)
        })?;
    }
    match push.slice {
        Some(slice) if slice >= 0 => elements.truncate(slice as usize),
        Some(slice) => {
            let surplus = elements.len().saturating_sub(slice.unsigned_abs() as usize);
            elements.drain(..surplus);
        }
        None => {}
    }
    write_array(slot, elements.into_iter(), memory)
}

/// Writes an array of the values.
pub(super) fn write_array<'a>(
    slot: Slot<'_, '_>,
    elements: impl Iterator<Item = Value<'a>>,
    memory: &RequestMemory,
) -> Result<(), QueryError> {
    slot.out.begin_array(slot.name);
    for element in elements {
        memory.work(1)?;
        memory.read(memory::bytes_of(element))?;
        slot.out.push(element);
    }
    slot.out.end();
    Ok(())
}

/// Returns the memory of values that are kept one by one.
pub(super) fn bytes_of_all<'v>(values: impl Iterator<Item = Value<'v>>) -> usize {
    /// A value's own document, and its place in a list.
    const VALUE_BYTES: usize = 64;
    values.map(|value| VALUE_BYTES + memory::bytes_of(value)).sum()
}

/// Writes the array with those of `values` that it lacks.
pub(super) fn apply_add_to_set(
    slot: Slot<'_, '_>,
    values: &ValueSet,
    memory: &RequestMemory,
) -> Result<(), QueryError> {
    let array = match slot.current {
        None => Array::from_validated(&frond_doc::document::EMPTY),
        Some(Value::Array(array)) => array,
        Some(other) => {
            return Err(bad_value(format!(
                "Cannot apply $addToSet to non-array field. Field named '{}' has non-array type {}",
                slot.name,
                other.element_type().alias()
            )));
        }
    };
    let mut missing = values.missing(memory)?;
    for element in array.iter() {
        if missing.strike_out(element)? && slot.current.is_some() {
            slot.keep();
            return Ok(());
        }
    }
    write_array(slot, array.iter().chain(missing.into_values()), memory)
}
