//! Compares values and documents as MongoDB does: across types, across number types.
//!
//! Numbers of all four types compare by mathematical value, never through a conversion that loses:
//! 2^53 + 1 as an int64 is greater than 2^53 as a double, and the double 0.1 is greater than the
//! Decimal128 0.1. Symbols compare as strings, timestamps without sign, binaries by length, subtype
//! and bytes. Documents compare field by field: type order, then name, then value; arrays in the
//! same way without names.

use std::cmp::Ordering;

use bigdecimal::num_bigint::BigUint;

use crate::decimal::{self, Parts};
use crate::document::value::{Binary, Decimal128, Value};
use crate::document::{Array, Document};
use crate::element_type::ElementType;
use crate::raw::RawElement;

/// The place of a type among all types. The numbers are MongoDB's, and leave room; only their
/// order matters.
pub fn type_order(kind: ElementType) -> u8 {
    use ElementType::*;
    match kind {
        MinKey => 0,
        Undefined => 1,
        Null => 5,
        Double | Int32 | Int64 | Decimal128 => 10,
        String | Symbol => 15,
        Document => 20,
        Array => 25,
        Binary => 30,
        ObjectId => 35,
        Boolean => 40,
        DateTime => 45,
        Timestamp => 47,
        Regex => 50,
        DbPointer => 55,
        JavaScript => 60,
        JavaScriptWithScope => 65,
        MaxKey => 127,
        Reference => unresolved(),
    }
}

/// Panics, since references cannot be compared before they are resolved.
#[cold]
fn unresolved() -> ! {
    panic!("an unresolved reference is compared")
}

/// Compares two values as MongoDB sorts them: first by the order of their types (MinKey; undefined;
/// null; numbers; strings and symbols; documents; arrays; binary; ObjectId; boolean; date;
/// timestamp; regex; DBPointer; code; code with scope; MaxKey), then by value. Numbers of all
/// four types compare exactly by mathematical value; NaN equals NaN and is the least number.
pub fn compare(left: Value<'_>, right: Value<'_>) -> Ordering {
    match (left, right) {
        (Value::Reference(_), _) | (_, Value::Reference(_)) => unresolved(),
        (
            Value::String(left) | Value::Symbol(left),
            Value::String(right) | Value::Symbol(right),
        ) => left.as_bytes().cmp(right.as_bytes()),
        (Value::Document(left), Value::Document(right)) => compare_documents(left, right),
        (Value::Array(left), Value::Array(right)) => compare_arrays(left, right),
        (Value::Binary(left), Value::Binary(right)) => compare_binaries(left, right),
        (Value::ObjectId(left), Value::ObjectId(right)) => left.cmp(&right),
        (Value::Boolean(left), Value::Boolean(right)) => left.cmp(&right),
        (Value::DateTime(left), Value::DateTime(right)) => left.cmp(&right),
        (Value::Timestamp(left), Value::Timestamp(right)) => left.cmp(&right),
        (Value::Regex(left), Value::Regex(right)) => {
            (left.pattern, left.options).cmp(&(right.pattern, right.options))
        }
        (
            Value::DbPointer { namespace: left, id: left_id },
            Value::DbPointer { namespace: right, id: right_id },
        ) => (left.len(), left, left_id).cmp(&(right.len(), right, right_id)),
        (Value::JavaScript(left), Value::JavaScript(right)) => left.cmp(right),
        (
            Value::JavaScriptWithScope { code: left, scope: left_scope },
            Value::JavaScriptWithScope { code: right, scope: right_scope },
        ) => left.cmp(right).then_with(|| compare_documents(left_scope, right_scope)),
        _ if left.is_number() && right.is_number() => compare_numbers(left, right),
        _ => type_order(left.element_type()).cmp(&type_order(right.element_type())),
    }
}

/// Compares two documents field by field: type order, then name, then value. A document that is the
/// beginning of another is the lesser one.
pub fn compare_documents(left: Document<'_>, right: Document<'_>) -> Ordering {
    if left.as_bytes() == right.as_bytes() {
        return Ordering::Equal; // True of NaN too.
    }
    let (mut left, mut right) = (left.elements(), right.elements());
    loop {
        let (left, right) = match (left.next(), right.next()) {
            (Some(left), Some(right)) => (left, right),
            (left, right) => return left.is_some().cmp(&right.is_some()),
        };
        let order = compare_types(&left, &right)
            .then_with(|| left.name.cmp(right.name))
            .then_with(|| compare_elements(&left, &right));
        if order.is_ne() {
            return order;
        }
    }
}

/// Compares two arrays element by element, without their names.
pub fn compare_arrays(left: Array<'_>, right: Array<'_>) -> Ordering {
    let (mut left, mut right) = (left.elements(), right.elements());
    loop {
        let (left, right) = match (left.next(), right.next()) {
            (Some(left), Some(right)) => (left, right),
            (left, right) => return left.is_some().cmp(&right.is_some()),
        };
        let order = compare_elements(&left, &right);
        if order.is_ne() {
            return order;
        }
    }
}

/// Whether two values are equal to a query: `compare` says `Equal`.
pub fn equal(left: Value<'_>, right: Value<'_>) -> bool {
    compare(left, right) == Ordering::Equal
}

fn compare_types(left: &RawElement<'_>, right: &RawElement<'_>) -> Ordering {
    type_order(left.kind).cmp(&type_order(right.kind))
}

fn compare_elements(left: &RawElement<'_>, right: &RawElement<'_>) -> Ordering {
    match (left.decode(), right.decode()) {
        (Some(left), Some(right)) => compare(left, right),
        (left, right) => left.is_some().cmp(&right.is_some()), // Not BSON: never once validated.
    }
}

fn compare_binaries(left: Binary<'_>, right: Binary<'_>) -> Ordering {
    let key = |binary: Binary<'_>| (binary.bytes.len(), binary.subtype);
    key(left).cmp(&key(right)).then_with(|| left.bytes.cmp(right.bytes))
}

/// Compares two numbers. Integers and doubles, nearly all there are, take the first arms.
fn compare_numbers(left: Value<'_>, right: Value<'_>) -> Ordering {
    match (left, right) {
        (Value::Int32(left), Value::Int32(right)) => left.cmp(&right),
        (Value::Int32(left), Value::Int64(right)) => i64::from(left).cmp(&right),
        (Value::Int64(left), Value::Int32(right)) => left.cmp(&i64::from(right)),
        (Value::Int64(left), Value::Int64(right)) => left.cmp(&right),
        (Value::Double(left), Value::Double(right)) => compare_doubles(left, right),
        (Value::Int32(left), Value::Double(right)) => compare_doubles(f64::from(left), right),
        (Value::Double(left), Value::Int32(right)) => compare_doubles(left, f64::from(right)),
        (Value::Int64(left), Value::Double(right)) => compare_integer_double(left, right),
        (Value::Double(left), Value::Int64(right)) => compare_integer_double(right, left).reverse(),
        (Value::Decimal128(left), Value::Double(right)) => compare_decimal_double(left, right),
        (Value::Double(left), Value::Decimal128(right)) => {
            compare_decimal_double(right, left).reverse()
        }
        (Value::Decimal128(left), Value::Decimal128(right)) => decimal::compare(left, right),
        (Value::Decimal128(left), other) => decimal::compare(left, decimal_of_integer(other)),
        (other, Value::Decimal128(right)) => decimal::compare(decimal_of_integer(other), right),
        _ => Ordering::Equal, // The caller asked for numbers.
    }
}

fn decimal_of_integer(value: Value<'_>) -> Decimal128 {
    decimal::from_i64(value.as_integer().unwrap_or(0))
}

/// NaN equals NaN and is less than all others; the two zeros are equal.
fn compare_doubles(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| right.is_nan().cmp(&left.is_nan()))
}

fn compare_integer_double(left: i64, right: f64) -> Ordering {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    if right.is_nan() || right < -TWO_TO_63 {
        return Ordering::Greater;
    }
    if TWO_TO_63 <= right {
        return Ordering::Less;
    }
    // Truncation is exact in this range; what it cut decides between equal integers.
    let truncated = right.trunc();
    left.cmp(&(truncated as i64)).then_with(|| compare_doubles(truncated, right))
}

/// Compares c * 10^e with m * 2^k by multiplying out, once their magnitudes are close.
fn compare_decimal_double(left: Decimal128, right: f64) -> Ordering {
    let (negative, coefficient, exponent) = match decimal::parts(left) {
        Parts::NaN => return right.is_nan().cmp(&true),
        Parts::Infinity { negative } => {
            let left = if negative { f64::NEG_INFINITY } else { f64::INFINITY };
            return compare_doubles(left, right);
        }
        Parts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
    };
    if right.is_nan() {
        return Ordering::Greater;
    }
    let left_sign = if coefficient == 0 { 0 } else { 1 - 2 * i32::from(negative) };
    let right_sign = i32::from(0.0 < right) - i32::from(right < 0.0);
    if left_sign != right_sign || left_sign == 0 {
        return left_sign.cmp(&right_sign);
    }
    let magnitude = compare_magnitudes(coefficient, exponent, right.abs());
    if negative { magnitude.reverse() } else { magnitude }
}

/// Both numbers are greater than zero; `right` may be infinite.
fn compare_magnitudes(coefficient: u128, exponent: i32, right: f64) -> Ordering {
    // 10^309 is above every double, 10^-324 below every one.
    let digits_before_point = coefficient.ilog10() as i32 + 1 + exponent;
    if right.is_infinite() || digits_before_point < -324 {
        return Ordering::Less;
    }
    if 310 < digits_before_point {
        return Ordering::Greater;
    }
    let (mantissa, binary_exponent) = decompose(right);
    let scale = |number: BigUint, tens: i32, twos: i32| {
        (number * BigUint::from(10_u8).pow(tens.max(0) as u32)) << twos.max(0) as u32
    };
    let left = scale(BigUint::from(coefficient), exponent, -binary_exponent);
    let right = scale(BigUint::from(mantissa), -exponent, binary_exponent);
    left.cmp(&right)
}

/// The integer and the power of two whose product a finite double above zero is.
pub(crate) fn decompose(number: f64) -> (u64, i32) {
    let bits = number.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    match ((bits >> 52) & 0x7ff) as i32 {
        0 => (fraction, -1074),
        exponent => (fraction | (1 << 52), exponent - 1075),
    }
}

#[cfg(test)]
mod tests;
