//! Arrays: sizes, positions, parts. Operators that run an expression for each element are in
//! `iterate`.

use frond_doc::{Array, ElementType, Reference, Value};

use super::evaluated::{Elements, Evaluated, check_bytes, elements};
use super::failure;
use super::node::{Answer, Node};
use super::parse::{Parser, check_count};
use super::scope::Variables;
use super::substring::position;
use crate::code::Code;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::number::any_type::as_i32;

/// A 32-bit integer; the codes are for what is no number, and for a number that is none.
fn integer(
    value: &Evaluated<'_>,
    (code_type, code_range): (i32, i32),
    (words_type, words_range): (&str, &str),
) -> Result<i32, QueryError> {
    if !value.or_null().is_number() {
        return Err(failure(code_type, format!("{words_type} {}", value.type_name())));
    }
    as_i32(value.or_null())
        .ok_or_else(|| failure(code_range, format!("{words_range} {}", value.text())))
}

/// An array of which an operator reads a part.
enum Parted<'v> {
    Here(Array<'v>),
    /// In the store.
    Elsewhere(Reference<'v>),
}

impl<'v> Parted<'v> {
    /// The array that `value` is, or the error that `describe` makes of another type.
    fn of(
        value: &'v Evaluated<'_>,
        code: i32,
        describe: impl FnOnce(&'static str) -> String,
    ) -> Result<Parted<'v>, QueryError> {
        match value.value() {
            Some(Value::Reference(reference)) if reference.kind() == ElementType::Array => {
                Ok(Parted::Elsewhere(reference))
            }
            _ => elements(value, code, describe).map(Parted::Here),
        }
    }

    fn count(&self, variables: &Variables) -> Result<usize, QueryError> {
        match self {
            Parted::Here(array) => Ok(array.elements().count()),
            Parted::Elsewhere(reference) => {
                let count = variables.large().element_count(*reference)?;
                Ok(usize::try_from(count).unwrap_or(usize::MAX))
            }
        }
    }
}

/// `$size`
pub(super) fn size<'a>(argument: Evaluated<'a>, variables: &Variables) -> Answer<'a> {
    let array = Parted::of(&argument, 17124, |name| {
        format!("The argument to $size must be an array, but was of type: {name}")
    })?;
    Ok(i32::try_from(array.count(variables)?).unwrap_or(i32::MAX).into())
}

/// `$isArray`
pub(super) fn is_array(argument: Evaluated<'_>) -> Answer<'_> {
    let is_array = |value: Value<'_>| value.element_type() == ElementType::Array;
    Ok(argument.value().is_some_and(is_array).into())
}

/// `$arrayElemAt`
pub(super) fn element_at<'a>(
    array: Evaluated<'a>,
    position: Evaluated<'a>,
    variables: &Variables,
) -> Answer<'a> {
    if array.is_nullish() || position.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    Parted::of(&array, 28689, |name| {
        format!("$arrayElemAt's first argument must be an array, but is {name}")
    })?;
    let position = integer(
        &position,
        (28690, 28691),
        (
            "$arrayElemAt's second argument must be a numeric value, but is",
            "$arrayElemAt's second argument must be representable as a 32-bit integer:",
        ),
    )?;
    at(array, position, variables)
}

/// The element of an array at a position, counted from the end where negative.
fn at<'a>(array: Evaluated<'a>, position: i32, variables: &Variables) -> Answer<'a> {
    let parted = Parted::of(&array, 28689, |name| format!("no array, but {name}"))?;
    let place = match usize::try_from(position) {
        Ok(position) => Some(position),
        Err(_) => parted.count(variables)?.checked_sub(position.unsigned_abs() as usize),
    };
    let Some(place) = place else { return Ok(Evaluated::Missing) };
    if let Parted::Elsewhere(reference) = parted {
        let found = variables.large().elements_at(reference, place as u64..place as u64 + 1)?;
        return variables.charged(found)?.part(|value| value.as_array()?.get(0));
    }
    array.part(|value| value.as_array()?.get(place))
}

/// `$first`
pub(super) fn first<'a>(argument: Evaluated<'a>, variables: &Variables) -> Answer<'a> {
    end("$first", argument, 0, variables)
}

/// `$last`
pub(super) fn last<'a>(argument: Evaluated<'a>, variables: &Variables) -> Answer<'a> {
    end("$last", argument, -1, variables)
}

fn end<'a>(
    operator: &str,
    argument: Evaluated<'a>,
    position: i32,
    variables: &Variables,
) -> Answer<'a> {
    if argument.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    Parted::of(&argument, 28689, |name| {
        format!("{operator}'s argument must be an array, but is {name}")
    })?;
    at(argument, position, variables)
}

/// `$slice`
pub(super) fn slice<'a>(arguments: Vec<Evaluated<'a>>, variables: &Variables) -> Answer<'a> {
    if arguments.iter().take(2).any(Evaluated::is_nullish) {
        return Ok(Evaluated::NULL);
    }
    let mut arguments = arguments.iter();
    let missing = Evaluated::Missing;
    let array = Parted::of(arguments.next().unwrap_or(&missing), 28724, |name| {
        format!("First argument to $slice must be an array, but is of type: {name}")
    })?;
    let second = integer(
        arguments.next().unwrap_or(&missing),
        (28725, 28726),
        (
            "Second argument to $slice must be a numeric value, but is of type:",
            "Second argument to $slice can't be represented as a 32-bit integer:",
        ),
    )?;
    let size = array.count(variables)?;
    let from_end = |position: i32| size.saturating_sub(position.unsigned_abs() as usize);
    let (start, count) = match arguments.next() {
        None if second < 0 => (from_end(second), size),
        None => (0, second as usize),
        Some(third) if third.is_nullish() => return Ok(Evaluated::NULL),
        Some(third) => {
            let third = integer(
                third,
                (28727, 28728),
                (
                    "Third argument to $slice must be numeric, but is of type:",
                    "Third argument to $slice can't be represented as a 32-bit integer:",
                ),
            )?;
            if third <= 0 {
                let message = format!("Third argument to $slice must be positive: {third}");
                return Err(failure(28729, message));
            }
            (if second < 0 { from_end(second) } else { second as usize }, third as usize)
        }
    };
    match array {
        Parted::Here(array) => {
            Elements::collect(array.iter().skip(start).take(count), variables.memory())
        }
        Parted::Elsewhere(reference) => {
            let end = start.saturating_add(count).min(size);
            let found = variables.large().elements_at(reference, start as u64..end as u64)?;
            variables.charged(found)
        }
    }
}

/// `$concatArrays`
pub(super) fn concat_arrays<'a>(
    arguments: Vec<Evaluated<'a>>,
    variables: &Variables,
) -> Answer<'a> {
    let mut joined = Elements::new(variables.memory());
    for argument in &arguments {
        if argument.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let array = elements(argument, 28664, |name| {
            format!("$concatArrays only supports arrays, not {name}")
        })?;
        for element in array.iter() {
            joined.push(element)?;
        }
    }
    joined.finish()
}

/// `$in`
pub(super) fn is_in<'a>(wanted: Evaluated<'a>, array: Evaluated<'a>, by: &Collation) -> Answer<'a> {
    let array = elements(&array, 40081, |name| {
        format!("$in requires an array as a second argument, found: {name}")
    })?;
    let found = match wanted.value() {
        Some(wanted) => array.iter().any(|element| by.equal(element, wanted)),
        None => false,
    };
    Ok(found.into())
}

/// `$indexOfArray`: a constant in the place of the array that is none is an error of the request,
/// with a code of its own, if anything else isn't constant.
pub(super) fn index_of_array(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let nodes = parser.arguments(argument)?;
    check_count(operator, nodes.len(), 2, 4)?;
    match nodes.first().and_then(Node::constant) {
        None | Some(Value::Array(_) | Value::Null | Value::Undefined) => {}
        Some(other) if !nodes.iter().all(Node::is_constant) => {
            let name = other.element_type().alias();
            let message = format!(
                "First operand of {operator} must be an array. First argument is of type: {name}"
            );
            return Err(failure(50809, message));
        }
        Some(_) => {}
    }
    Ok(Node::ManyCollated(position_of, nodes))
}

fn position_of<'a>(arguments: Vec<Evaluated<'a>>, by: &Collation) -> Answer<'a> {
    let missing = Evaluated::Missing;
    let mut arguments = arguments.iter();
    let array = arguments.next().unwrap_or(&missing);
    if array.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let array = elements(array, 40090, |name| {
        format!("$indexOfArray requires an array as a first argument, found: {name}")
    })?;
    let wanted = arguments.next().unwrap_or(&missing);
    let operator = "$indexOfArray";
    let start = arguments.next().map(|start| position(operator, "starting", start)).transpose()?;
    let end = arguments.next().map(|end| position(operator, "ending", end)).transpose()?;
    let (start, end) = (start.unwrap_or(0), end.unwrap_or(usize::MAX));
    let found = wanted.value().and_then(|wanted| {
        let inside = array.iter().enumerate().skip(start).take(end.saturating_sub(start));
        let mut equal = inside.filter(|(_, element)| by.equal(*element, wanted));
        equal.next().and_then(|(position, _)| i32::try_from(position).ok())
    });
    Ok(found.unwrap_or(-1).into())
}

/// `$reverseArray`
pub(super) fn reverse<'a>(argument: Evaluated<'a>, variables: &Variables) -> Answer<'a> {
    if argument.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let array = elements(&argument, 34435, |name| {
        format!("The argument to $reverseArray must be an array, but was of type: {name}")
    })?;
    let memory = variables.memory();
    let _charge = memory.charge_of(array.elements().count() * size_of::<Value<'_>>())?;
    let values: Vec<Value<'_>> = array.iter().collect();
    Elements::collect(values.into_iter().rev(), memory)
}

/// `$range`
pub(super) fn range<'a>(arguments: Vec<Evaluated<'a>>, variables: &Variables) -> Answer<'a> {
    let words = [("starting", 34443), ("ending", 34445), ("step", 34447)];
    let mut bounds = [0, 0, 1];
    for ((bound, argument), (which, code)) in bounds.iter_mut().zip(&arguments).zip(words) {
        *bound = i64::from(integer(
            argument,
            (code, code + 1),
            (
                &format!("$range requires a numeric {which} value, found value of type:"),
                &format!(
                    "$range requires a {which} value that can be represented as a 32-bit integer, \
                     found value:"
                ),
            ),
        )?);
    }
    let [start, end, step] = bounds;
    if step == 0 {
        return Err(failure(34449, "$range requires a non-zero step value"));
    }
    // Twelve bytes is about what an element costs: refused before it is made.
    let count = usize::try_from((end - start) / step).unwrap_or(0);
    if check_bytes(count.saturating_mul(12)).is_err() {
        let message = format!("$range would use too much memory for {count} elements");
        return Err(QueryError::new(Code::ExceededMemoryLimit, message));
    }
    let mut numbers = Elements::new(variables.memory());
    let mut next = start;
    while (0 < step && next < end) || (step < 0 && end < next) {
        numbers.push(Value::Int32(i32::try_from(next).expect("the bounds are 32-bit integers")))?;
        next += step;
    }
    numbers.finish()
}
