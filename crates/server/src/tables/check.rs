//! The check at the door: a command against its table.
//!
//! In MongoDB's order: field by field as they were sent (an unknown name, a wrong type, a number
//! out of range, and the same inside documents that have fields of their own), and then what is
//! missing.

use std::borrow::Cow;
use std::cmp::Ordering;

use frond_db::Error;
use frond_doc::{Array, Decimal128, Document, ElementType, Value, decimal};
use frond_query::Code;

use super::field::Field;
use super::kind::Kind;
use super::table::{Table, UnknownFields};
use crate::wire::DocumentSequence;

const FIELD_MISSING: Code = Code::Location(40414);
const FIELD_UNKNOWN: Code = Code::Location(40415);

/// Checks a command against its table, and documents that came beside it.
///
/// # Errors
/// 40415, 40414, `TypeMismatch`, `BadValue`, `FailedToParse`, or what the field's words say.
pub fn check(
    table: &Table,
    body: Document<'_>,
    sequences: &[DocumentSequence],
) -> Result<(), Error> {
    let path = table.path;
    let mut values = body.iter();
    if let Some((_, own)) = values.next() {
        if !table.own.has(own) {
            let expected = table.own.expected();
            return Err(wrong_type(&format!("{path}.{}", table.command), own, &expected));
        }
        check_value(path, &Field::new(table.command, table.own), own)?;
    }
    for (name, value) in values {
        let Some(field) = table.field(name) else {
            match table.others {
                UnknownFields::Ignored | UnknownFields::Read => continue,
                UnknownFields::Refused => return Err(unknown(path, name)),
            }
        };
        check_value(path, field, value)?;
    }
    for sequence in sequences {
        let Some(field) = table.field(&sequence.name) else { continue };
        let inner = inner_path(path, field);
        for document in &sequence.documents {
            check_element(&inner, field.kind, document.view())?;
        }
    }
    let is_there = |name: &str| {
        body.get(name).is_some_and(|value| !is_nothing(value))
            || sequences.iter().any(|sequence| sequence.name == name)
    };
    // A value that its field's words refuse was refused before: null is one that is there.
    let missing = |field: &&Field| field.is_required && !is_there(field.name);
    match table.fields.iter().find(missing) {
        Some(field) => Err(match field.missing_words {
            Some((code, message)) => Error::invalid(code, message),
            None => missing_field(path, field.name),
        }),
        None => Ok(()),
    }
}

/// Checks a document against the fields that it may have.
///
/// # Errors
/// As [`check`].
pub fn check_part(path: &str, fields: &[Field], document: Document<'_>) -> Result<(), Error> {
    for (name, value) in document.iter() {
        let field = fields.iter().find(|field| field.name == name);
        check_value(path, field.ok_or_else(|| unknown(path, name))?, value)?;
    }
    for field in fields.iter().filter(|field| field.is_required) {
        let value = document.get(field.name);
        // A field of any type may be null, where one of a type counts as absent.
        let is_missing = match field.kind {
            Kind::Any => value.is_none(),
            _ => value.is_none_or(is_nothing),
        };
        if is_missing {
            return Err(missing_field(path, field.name));
        }
    }
    Ok(())
}

fn is_nothing(value: Value<'_>) -> bool {
    matches!(value, Value::Null | Value::Undefined)
}

/// Returns the prefix of the names inside a field, for messages.
pub fn inner_path(path: &str, field: &Field) -> Cow<'static, str> {
    let joined = || Cow::Owned(format!("{path}.{}", field.name));
    field.path.map_or_else(joined, Cow::Borrowed)
}

fn check_value(path: &str, field: &Field, value: Value<'_>) -> Result<(), Error> {
    let name = field.name;
    if is_nothing(value) {
        return match field.worded {
            Some(worded) if worded.refuses_null => {
                let message = (worded.message)(name, value.element_type().alias());
                Err(Error::invalid(worded.code, message))
            }
            _ => Ok(()),
        };
    }
    if !field.kind.has(value) {
        return Err(match field.worded {
            Some(worded) => {
                let message = (worded.message)(name, value.element_type().alias());
                Error::invalid(worded.code, message)
            }
            None => wrong_type(&format!("{path}.{name}"), value, &field.kind.expected()),
        });
    }
    match (field.kind, value) {
        (Kind::Whole, value) => check_whole(name, value)?,
        (Kind::Share, value) => check_share(name, value)?,
        (Kind::Word(words), Value::String(word)) if !words.contains(&word) => {
            let message = format!(
                "Enumeration value '{word}' for field '{path}.{name}' is not a valid value."
            );
            return Err(Error::invalid(Code::BadValue, message));
        }
        (Kind::Part(fields), Value::Document(document)) => {
            check_part(&inner_path(path, field), fields, document)?;
        }
        (kind @ (Kind::Each(_) | Kind::EachOf(_) | Kind::EachKind(_)), Value::Array(array)) => {
            check_elements(&inner_path(path, field), kind, array)?;
        }
        _ => {}
    }
    check_range(field, value)
}

fn check_elements(path: &str, kind: Kind, array: Array<'_>) -> Result<(), Error> {
    for (position, element) in array.iter().enumerate() {
        let wanted = match kind {
            Kind::EachOf(wanted) => wanted,
            _ => ElementType::Document,
        };
        if element.element_type() != wanted {
            let expected = format!("type '{}'", wanted.alias());
            return Err(wrong_type(&format!("{path}.{position}"), element, &expected));
        }
        if let Value::Document(document) = element {
            check_element(path, kind, document)?;
        }
    }
    Ok(())
}

fn check_element(path: &str, kind: Kind, document: Document<'_>) -> Result<(), Error> {
    match kind {
        Kind::Each(fields) => check_part(path, fields, document),
        Kind::EachKind(kinds) => {
            let (first, _) = document.iter().next().unwrap_or(("", Value::Null));
            let found = kinds.iter().find(|(kind, _)| *kind == first);
            let (_, fields) = found.ok_or_else(|| unknown(path, first))?;
            check_part(path, fields, document)
        }
        _ => Ok(()),
    }
}

/// Checks that a number has no fraction, and that 64 bits hold it.
fn check_whole(name: &str, value: Value<'_>) -> Result<(), Error> {
    let message = match value {
        Value::Double(number) if number.is_nan() => {
            format!("Expected an integer, but found NaN in: {name}: nan")
        }
        // 2^63, the first that is too large.
        Value::Double(number) if number.abs() >= 9_223_372_036_854_775_808.0 => {
            format!("Cannot represent as a 64-bit integer: {name}: {number}")
        }
        Value::Double(number) if number.fract() != 0.0 => {
            format!("Expected an integer: {name}: {number}")
        }
        Value::Decimal128(number) if !is_whole(number) => {
            let number = decimal::to_string(number);
            format!("Cannot represent as a 64-bit integer: {name}: {number}")
        }
        _ => return Ok(()),
    };
    Err(Error::invalid(Code::FailedToParse, message))
}

/// Checks that a number is one from 0 to 1.
fn check_share(name: &str, value: Value<'_>) -> Result<(), Error> {
    if double(value).is_some_and(|number| (0.0..=1.0).contains(&number)) {
        return Ok(());
    }
    let message = format!("'{name}' must be between 0.0 and 1.0 inclusive");
    Err(Error::invalid(Code::BadValue, message))
}

/// Whether 64 bits hold a decimal, without loss.
fn is_whole(number: Decimal128) -> bool {
    let integer = decimal::to_i64(number).map(decimal::from_i64);
    integer.is_some_and(|integer| decimal::compare(integer, number).is_eq())
}

fn check_range(field: &Field, value: Value<'_>) -> Result<(), Error> {
    let Some(number) = integer(value) else { return Ok(()) };
    let error = match (field.min, field.max) {
        (Some(min), _) if number < min => out_of_range(field.name, ">=", min, number),
        (_, Some(max)) if max < number => out_of_range(field.name, "<=", max, number),
        _ => return Ok(()),
    };
    match field.range_words {
        Some((code, message)) => Err(Error::invalid(code, message)),
        None => Err(error),
    }
}

/// A number of any type as a double.
pub fn double(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(number),
        Value::Decimal128(number) => Some(decimal::to_f64(number)),
        value => value.as_integer().map(|number| number as f64),
    }
}

/// A number of any type as an integer, too large ones brought to the nearest: the fraction of a
/// double is cut off, a decimal is rounded, ties to the even.
pub fn integer(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Int32(number) => Some(i64::from(number)),
        Value::Int64(number) => Some(number),
        // `as` cuts fractions off, saturates, and takes NaN for 0, which is what is wanted.
        Value::Double(number) => Some(number as i64),
        Value::Decimal128(number) => Some(integer_of_decimal(number)),
        _ => None,
    }
}

fn integer_of_decimal(number: Decimal128) -> i64 {
    // Not by way of a double, which would lose digits.
    let (negative, magnitude) = match decimal::parts(number) {
        decimal::Parts::Finite { negative, coefficient, exponent } => {
            (negative, magnitude_of(coefficient, exponent))
        }
        decimal::Parts::Infinity { negative } => (negative, u128::MAX),
        decimal::Parts::NaN => return 0,
    };
    match (negative, i64::try_from(magnitude)) {
        (false, magnitude) => magnitude.unwrap_or(i64::MAX),
        (true, magnitude) => magnitude.map_or(i64::MIN, |magnitude| -magnitude),
    }
}

fn magnitude_of(coefficient: u128, exponent: i32) -> u128 {
    let unit = 10_u128.checked_pow(exponent.unsigned_abs());
    match unit {
        Some(unit) if exponent < 0 => {
            let (whole, rest) = (coefficient / unit, coefficient % unit);
            let is_up = match (rest * 2).cmp(&unit) {
                Ordering::Less => false,
                Ordering::Equal => whole % 2 == 1,
                Ordering::Greater => true,
            };
            whole + u128::from(is_up)
        }
        // A coefficient has at most 34 digits.
        None if exponent < 0 || coefficient == 0 => 0,
        Some(unit) => coefficient.saturating_mul(unit),
        None => u128::MAX,
    }
}

/// The error of a number that is too small or too large.
pub fn out_of_range(name: &str, comparison: &str, bound: i64, found: i64) -> Error {
    let message =
        format!("BSON field '{name}' value must be {comparison} {bound}, actual value '{found}'");
    Error::invalid(Code::BadValue, message)
}

/// The error of a field of the wrong type; `expected` is `type 'object'` or so.
pub fn wrong_type(path: &str, found: Value<'_>, expected: &str) -> Error {
    let found = found.element_type().alias();
    let message = format!("BSON field '{path}' is the wrong type '{found}', expected {expected}");
    Error::invalid(Code::TypeMismatch, message)
}

/// The error of a field that must be there.
pub fn missing_field(path: &str, name: &str) -> Error {
    let message = format!("BSON field '{path}.{name}' is missing but a required field");
    Error::invalid(FIELD_MISSING, message)
}

/// The error of an unknown field.
pub fn unknown(path: &str, name: &str) -> Error {
    let message = format!("BSON field '{path}.{name}' is an unknown field.");
    Error::invalid(FIELD_UNKNOWN, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_integers_too() {
        for (negative, coefficient, exponent, expected) in [
            (false, 12, 0, 12),
            (true, 125, -1, -12),
            (false, 15, -1, 2),
            (false, 25, -1, 2),
            (false, 251, -2, 3),
            (false, 5, -1, 0),
            (false, 9, -40, 0),
            (false, 3, 2, 300),
            (false, 1, 6000, i64::MAX),
            (true, u128::from(u64::MAX), 0, i64::MIN),
            (false, 0, 6000, 0),
        ] {
            let number = decimal::from_parts(negative, coefficient, exponent);
            assert_eq!(integer(Value::Decimal128(number)), Some(expected));
        }
    }
}
