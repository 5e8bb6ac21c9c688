//! Keys: bytes that sort as MongoDB orders values.
//!
//! The authority on the bytes is docs/format/key.md. In short: a tag for the type, tags in the
//! order of the types; then the value so that bytes order as values do; every value ends by itself.
//! Text ends with `00` and escapes `00` and `01`; documents and arrays are their fields' keys and
//! end with `00`; all four number types share one encoding (`number`), so that equal numbers give
//! equal bytes. The *type bits* hold the facts that keys leave out, one code per number, text and
//! array.
//!
//! Surprising: a descending key is the ascending one with every byte inverted, its end included.

mod cut;
mod decode;
mod number;
mod type_bits;

use bytes::Bytes;
pub use cut::{CUT_PREFIX_BYTES, cut, id_bytes, is_cut, is_id_cut, known, of_id};
pub use decode::{decode, skip};
pub use frond_tree::Bounds;
pub use type_bits::{append_type_bits, trim_type_bits};

use crate::document::value::Value;
use crate::document::{Array, Document};
use crate::element_type::ElementType;

/// Tags. Stored: never renumber. `00` is no tag: it ends documents and arrays.
mod tag {
    pub const MIN_KEY: u8 = 0x08;
    pub const UNDEFINED: u8 = 0x10;
    pub const NULL: u8 = 0x18;
    pub const NUMBER_FIRST: u8 = 0x20;
    pub const NUMBER_LAST: u8 = 0x27;
    pub const STRING: u8 = 0x30;
    pub const DOCUMENT: u8 = 0x38;
    pub const ARRAY: u8 = 0x40;
    pub const BINARY: u8 = 0x48;
    pub const OBJECT_ID: u8 = 0x50;
    pub const FALSE: u8 = 0x58;
    pub const TRUE: u8 = 0x59;
    pub const DATE_TIME: u8 = 0x60;
    pub const TIMESTAMP: u8 = 0x68;
    pub const REGEX: u8 = 0x70;
    pub const DB_POINTER: u8 = 0x78;
    pub const JAVASCRIPT: u8 = 0x80;
    pub const JAVASCRIPT_WITH_SCOPE: u8 = 0x88;
    pub const MAX_KEY: u8 = 0xf0;
}

/// Ends text, documents and arrays.
const END: u8 = 0x00;
/// Stands before `00 + 1` and `01 + 1` for a `00` or `01` in text.
const ESCAPE: u8 = 0x01;
/// Added to a date, so that dates before 1970 sort before those after.
const SIGN: u64 = 1 << 63;

/// Appends `value` to `key` so that keys compare as bytes just as values compare under
/// [`crate::order`]; values that are equal give equal bytes (1, 1.0 and Decimal128 1 alike).
/// Self-delimiting: several values one after the other make a compound key. With `descending`
/// every byte is inverted, so that the order is reversed.
pub fn append(key: &mut Vec<u8>, value: Value<'_>, descending: bool) {
    let start = key.len();
    append_value(key, value);
    if descending {
        invert(&mut key[start..]);
    }
}

/// The key of one value, however long it is.
pub fn of_value(value: Value<'_>) -> Bytes {
    let mut key = Vec::with_capacity(16);
    append(&mut key, value, false);
    key.into()
}

/// The first key of the type bracket in which `value` lies, and the first key after it: what range
/// comparisons of MongoDB don't leave. Numbers share a bracket, so do strings and symbols. Both are
/// ascending keys of one byte.
pub fn bracket(value: Value<'_>) -> (Bytes, Bytes) {
    let (first, last) = tags(value.element_type());
    (Bytes::copy_from_slice(&[first]), Bytes::copy_from_slice(&[last + 1]))
}

/// As [`bracket`], for descending keys.
pub fn bracket_descending(value: Value<'_>) -> (Bytes, Bytes) {
    let (first, last) = tags(value.element_type());
    (Bytes::copy_from_slice(&[!last]), Bytes::copy_from_slice(&[!first + 1]))
}

/// The first and the last tag of a type's bracket. The first one stands before a field's name in a
/// document, where types order before names.
fn tags(kind: ElementType) -> (u8, u8) {
    let only = match kind {
        ElementType::Double | ElementType::Int32 | ElementType::Int64 | ElementType::Decimal128 => {
            return (tag::NUMBER_FIRST, tag::NUMBER_LAST);
        }
        ElementType::Boolean => return (tag::FALSE, tag::TRUE),
        ElementType::String | ElementType::Symbol => tag::STRING,
        ElementType::Document => tag::DOCUMENT,
        ElementType::Array => tag::ARRAY,
        ElementType::Binary => tag::BINARY,
        ElementType::Undefined => tag::UNDEFINED,
        ElementType::ObjectId => tag::OBJECT_ID,
        ElementType::DateTime => tag::DATE_TIME,
        ElementType::Null => tag::NULL,
        ElementType::Regex => tag::REGEX,
        ElementType::DbPointer => tag::DB_POINTER,
        ElementType::JavaScript => tag::JAVASCRIPT,
        ElementType::JavaScriptWithScope => tag::JAVASCRIPT_WITH_SCOPE,
        ElementType::Timestamp => tag::TIMESTAMP,
        ElementType::MinKey => tag::MIN_KEY,
        ElementType::MaxKey => tag::MAX_KEY,
        ElementType::Reference => unreachable!("what has a key was read"),
    };
    (only, only)
}

/// Appends the ascending key. Recursion follows the nesting, which validation has bounded.
fn append_value(key: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Double(number) => return number::append_double(key, number),
        Value::Int32(number) => return number::append_integer(key, i64::from(number)),
        Value::Int64(number) => return number::append_integer(key, number),
        Value::Decimal128(number) => return number::append_decimal(key, number),
        Value::Boolean(boolean) => {
            return key.push(if boolean { tag::TRUE } else { tag::FALSE });
        }
        _ => key.push(tags(value.element_type()).0),
    }
    match value {
        Value::String(text) | Value::Symbol(text) | Value::JavaScript(text) => {
            append_text(key, text.as_bytes());
        }
        Value::Document(document) => append_fields(key, document),
        Value::Array(array) => append_elements(key, array),
        Value::Binary(binary) => {
            append_length(key, binary.bytes.len());
            key.push(binary.subtype);
            key.extend_from_slice(binary.bytes);
        }
        Value::ObjectId(id) => key.extend_from_slice(&id.0),
        Value::DateTime(millis) => {
            key.extend_from_slice(&(millis as u64 ^ SIGN).to_be_bytes());
        }
        Value::Timestamp(timestamp) => key.extend_from_slice(&timestamp.0.to_be_bytes()),
        Value::Regex(regex) => {
            append_text(key, regex.pattern.as_bytes());
            append_text(key, regex.options.as_bytes());
        }
        Value::DbPointer { namespace, id } => {
            append_length(key, namespace.len());
            key.extend_from_slice(namespace.as_bytes());
            key.extend_from_slice(&id.0);
        }
        Value::JavaScriptWithScope { code, scope } => {
            append_text(key, code.as_bytes());
            append_fields(key, scope);
        }
        _ => {} // The tag is all.
    }
}

/// A document's fields: the type's tag, the name, the value's key; then the end.
fn append_fields(key: &mut Vec<u8>, document: Document<'_>) {
    for element in document.elements() {
        let Some(value) = element.decode() else { break };
        key.push(tags(element.kind).0);
        append_text(key, element.name);
        append_value(key, value);
    }
    key.push(END);
}

/// An array's elements, without names; then the end.
fn append_elements(key: &mut Vec<u8>, array: Array<'_>) {
    for value in array.iter() {
        append_value(key, value);
    }
    key.push(END);
}

/// Text and its end. `00` becomes `01 01` and `01` becomes `01 02`, so that the end sorts first.
fn append_text(key: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    while let Some(position) = rest.iter().position(|byte| *byte <= ESCAPE) {
        key.extend_from_slice(&rest[..position]);
        key.extend_from_slice(&[ESCAPE, rest[position] + 1]);
        rest = &rest[position + 1..];
    }
    key.extend_from_slice(rest);
    key.push(END);
}

/// A length before what is ordered by length first.
fn append_length(key: &mut Vec<u8>, length: usize) {
    let length = u32::try_from(length).expect("a value stays below 2 GiB");
    key.extend_from_slice(&length.to_be_bytes());
}

fn invert(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = !*byte;
    }
}

#[cfg(test)]
mod tests;
