//! The facts that keys leave out: which number type, string or symbol, what an array's elements are
//! called.
//!
//! One code byte per number, text and array, in the order in which the key has them, nested ones
//! included; some are followed by more. `00` is what is usual, and a reader past the end reads
//! `00`: zeros at the end may be cut ([`trim_type_bits`]), and nearly always nothing is left.

use crate::builder::position_name;
use crate::decimal::{self, Parts};
use crate::document::value::{Decimal128, Value};
use crate::document::{Array, Document};

/// Codes of numbers. Stored: never renumber.
pub(super) const INT32: u8 = 0;
pub(super) const DOUBLE: u8 = 1;
pub(super) const INT64: u8 = 2;
/// Its stored exponent follows, two bytes, little-endian.
pub(super) const DECIMAL: u8 = 3;
pub(super) const DOUBLE_NEGATIVE_ZERO: u8 = 4;
/// As `DECIMAL`.
pub(super) const DECIMAL_NEGATIVE_ZERO: u8 = 5;
/// A NaN of another kind: its eight bytes follow.
pub(super) const DOUBLE_RAW: u8 = 6;
/// No number, or not the canonical form: its sixteen bytes follow.
pub(super) const DECIMAL_RAW: u8 = 7;

/// Codes of text. Stored: never renumber.
pub(super) const STRING: u8 = 0;
pub(super) const SYMBOL: u8 = 1;

/// Codes of arrays. Stored: never renumber.
pub(super) const NAMED_BY_POSITION: u8 = 0;
/// The names follow, each with its final zero, before the type bits of the elements.
pub(super) const NAMED: u8 = 1;

/// Appends the facts about a value that its key leaves out (number types, symbols, ...), so that
/// `decode` can give the value back exactly. Nothing for most types; one zero byte for most of the
/// others, which [`trim_type_bits`] cuts at the end.
pub fn append_type_bits(bits: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Int32(_) => bits.push(INT32),
        Value::Int64(_) => bits.push(INT64),
        Value::Double(number) => append_double(bits, number),
        Value::Decimal128(number) => append_decimal(bits, number),
        Value::String(_) => bits.push(STRING),
        Value::Symbol(_) => bits.push(SYMBOL),
        Value::Array(array) => append_array(bits, array),
        Value::Document(document) | Value::JavaScriptWithScope { scope: document, .. } => {
            append_document(bits, document);
        }
        _ => {}
    }
}

/// Cuts the zeros at the end, once all values of a key have been appended.
pub fn trim_type_bits(bits: &mut Vec<u8>) {
    let count = bits.iter().rposition(|byte| *byte != 0).map_or(0, |position| position + 1);
    bits.truncate(count);
}

fn append_document(bits: &mut Vec<u8>, document: Document<'_>) {
    for element in document.elements() {
        let Some(value) = element.decode() else { break };
        append_type_bits(bits, value);
    }
}

fn append_array(bits: &mut Vec<u8>, array: Array<'_>) {
    let mut digits = [0; 20];
    let is_usual = array
        .elements()
        .enumerate()
        .all(|(position, it)| it.name == position_name(position, &mut digits).as_bytes());
    if is_usual {
        bits.push(NAMED_BY_POSITION);
    } else {
        bits.push(NAMED);
        for element in array.elements() {
            bits.extend_from_slice(element.name);
            bits.push(0);
        }
    }
    append_document(bits, array.as_document());
}

fn append_double(bits: &mut Vec<u8>, number: f64) {
    if number.is_nan() && number.to_bits() != f64::NAN.to_bits() {
        bits.push(DOUBLE_RAW);
        bits.extend_from_slice(&number.to_le_bytes());
    } else if number == 0.0 && number.is_sign_negative() {
        bits.push(DOUBLE_NEGATIVE_ZERO);
    } else {
        bits.push(DOUBLE);
    }
}

fn append_decimal(bits: &mut Vec<u8>, number: Decimal128) {
    match decimal::parts(number) {
        Parts::Finite { negative, coefficient, exponent }
            if decimal::from_parts(negative, coefficient, exponent) == number =>
        {
            let is_negative_zero = negative && coefficient == 0;
            bits.push(if is_negative_zero { DECIMAL_NEGATIVE_ZERO } else { DECIMAL });
            let biased = (exponent + decimal::EXPONENT_BIAS) as u16;
            bits.extend_from_slice(&biased.to_le_bytes());
        }
        _ => {
            bits.push(DECIMAL_RAW);
            bits.extend_from_slice(&number.0);
        }
    }
}
