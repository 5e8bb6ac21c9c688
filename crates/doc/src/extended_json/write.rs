//! Documents as JSON text. The text is compact, as mongoexport writes it.
//!
//! Text is appended as bytes, and names and strings are copied as they lie in the document: shown
//! to be UTF-8 again only where the caller wants a `String`.

use std::io::Write;

use data_encoding::HEXLOWER;

use super::{EPOCH, Form, base64};
use crate::decimal;
use crate::document::decode_value;
use crate::document::value::{Binary, ObjectId, Value};
use crate::document::{Array, Document};
use crate::element_type::ElementType;
use crate::raw::{RawElements, array_at};

/// 9999-12-31T23:59:59.999Z: relaxed dates lie between 1970 and here.
const RELAXED_DATE_MAX: i64 = 253_402_300_799_999;

/// Appends a document as one line of JSON.
pub fn write(document: Document<'_>, form: Form, out: &mut String) {
    as_text(out, |text| append(document, form, text));
}

/// Appends one value.
pub fn write_value(value: Value<'_>, form: Form, out: &mut String) {
    as_text(out, |text| append_value(value, form, text));
}

fn as_text(out: &mut String, append: impl FnOnce(&mut Vec<u8>)) {
    let mut text = Vec::new();
    append(&mut text);
    match std::str::from_utf8(&text) {
        Ok(text) => out.push_str(text),
        Err(_) => out.push_str(&String::from_utf8_lossy(&text)),
    }
}

/// As [`write()`], for text that is handed on as bytes: twice as fast.
pub fn append(document: Document<'_>, form: Form, out: &mut Vec<u8>) {
    append_fields(document.elements(), form, out);
}

fn append_fields(elements: RawElements<'_>, form: Form, out: &mut Vec<u8>) {
    out.push(b'{');
    for (position, element) in elements.enumerate() {
        if position > 0 {
            out.push(b',');
        }
        append_text(element.name, out);
        out.push(b':');
        if append_raw(element.kind, element.value, form, out).is_none() {
            break; // No valid document has that; like a decoder, this ends here.
        }
    }
    out.push(b'}');
}

fn append_array(array: Array<'_>, form: Form, out: &mut Vec<u8>) {
    out.push(b'[');
    for (position, element) in array.elements().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        if append_raw(element.kind, element.value, form, out).is_none() {
            break;
        }
    }
    out.push(b']');
}

/// Appends a value as it lies in a document; `None` if the bytes aren't what the type wants.
pub(crate) fn append_raw(
    kind: ElementType,
    bytes: &[u8],
    form: Form,
    out: &mut Vec<u8>,
) -> Option<()> {
    match kind {
        ElementType::String => append_text(bytes.get(4..bytes.len().checked_sub(1)?)?, out),
        ElementType::Document => append_fields(RawElements::new(bytes), form, out),
        ElementType::Array => append_array(Array::from_validated(bytes), form, out),
        _ => append_value(decode_value(kind, bytes)?, form, out),
    }
    Some(())
}

fn append_value(value: Value<'_>, form: Form, out: &mut Vec<u8>) {
    let is_relaxed = form == Form::Relaxed;
    match value {
        Value::Double(number) if is_relaxed && number.is_finite() => append_double(number, out),
        Value::Double(number) => quoted("$numberDouble", out, |out| append_double(number, out)),
        Value::Int32(number) if is_relaxed => append_integer(number, out),
        Value::Int32(number) => quoted("$numberInt", out, |out| append_integer(number, out)),
        Value::Int64(number) if is_relaxed => append_integer(number, out),
        Value::Int64(number) => quoted("$numberLong", out, |out| append_integer(number, out)),
        Value::Decimal128(number) => quoted("$numberDecimal", out, |out| {
            out.extend_from_slice(decimal::to_string(number).as_bytes());
        }),
        Value::String(text) => append_text(text.as_bytes(), out),
        Value::Symbol(text) => append_wrapped("$symbol", text, out),
        Value::JavaScript(text) => append_wrapped("$code", text, out),
        Value::Document(document) => append(document, form, out),
        Value::Array(array) => append_array(array, form, out),
        Value::Binary(binary) => append_binary(binary, out),
        Value::Undefined => put(out, r#"{"$undefined":true}"#),
        Value::ObjectId(id) => append_object_id(id, out),
        Value::Boolean(boolean) => put(out, if boolean { "true" } else { "false" }),
        Value::DateTime(millis) => append_date(millis, is_relaxed, out),
        Value::Null => put(out, "null"),
        Value::Regex(regex) => {
            put(out, r#"{"$regularExpression":{"pattern":"#);
            append_text(regex.pattern.as_bytes(), out);
            put(out, r#","options":"#);
            append_text(regex.options.as_bytes(), out);
            put(out, "}}");
        }
        Value::DbPointer { namespace, id } => {
            put(out, r#"{"$dbPointer":{"$ref":"#);
            append_text(namespace.as_bytes(), out);
            put(out, r#","$id":"#);
            append_object_id(id, out);
            put(out, "}}");
        }
        Value::JavaScriptWithScope { code, scope } => {
            put(out, r#"{"$code":"#);
            append_text(code.as_bytes(), out);
            put(out, r#","$scope":"#);
            append(scope, form, out);
            out.push(b'}');
        }
        Value::Timestamp(timestamp) => {
            put(out, r#"{"$timestamp":{"t":"#);
            append_integer(timestamp.0 >> 32, out);
            put(out, r#","i":"#);
            append_integer(timestamp.0 as u32, out);
            put(out, "}}");
        }
        Value::MinKey => put(out, r#"{"$minKey":1}"#),
        Value::MaxKey => put(out, r#"{"$maxKey":1}"#),
        Value::Reference(_) => unreachable!("what is written was read"),
    }
}

fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Appends `{"wrapper":"..."}` around what needs no escapes.
fn quoted(wrapper: &str, out: &mut Vec<u8>, inner: impl FnOnce(&mut Vec<u8>)) {
    put(out, "{\"");
    put(out, wrapper);
    put(out, "\":\"");
    inner(out);
    put(out, "\"}");
}

fn append_wrapped(wrapper: &str, text: &str, out: &mut Vec<u8>) {
    put(out, "{\"");
    put(out, wrapper);
    put(out, "\":");
    append_text(text.as_bytes(), out);
    out.push(b'}');
}

fn append_object_id(id: ObjectId, out: &mut Vec<u8>) {
    let mut digits = [0; 24];
    HEXLOWER.encode_mut(&id.0, &mut digits);
    quoted("$oid", out, |out| out.extend_from_slice(&digits));
}

/// The old subtype 2 has a length inside its bytes, which JSON doesn't show.
fn append_binary(binary: Binary<'_>, out: &mut Vec<u8>) {
    let bytes = if binary.subtype == 2 { binary.bytes.get(4..) } else { Some(binary.bytes) };
    put(out, r#"{"$binary":{"base64":""#);
    base64::append(bytes.unwrap_or(&[]), out);
    put(out, r#"","subType":""#);
    let mut digits = [0; 2];
    HEXLOWER.encode_mut(&[binary.subtype], &mut digits);
    out.extend_from_slice(&digits);
    put(out, r#""}}"#);
}

/// A date as text if people would read it, with milliseconds only if there are any.
fn append_date(millis: i64, is_relaxed: bool, out: &mut Vec<u8>) {
    let is_readable = is_relaxed && (0..=RELAXED_DATE_MAX).contains(&millis);
    let since = jiff::SignedDuration::from_millis(millis);
    let Some(date) = EPOCH.checked_add(since).ok().filter(|_| is_readable) else {
        put(out, r#"{"$date":"#);
        quoted("$numberLong", out, |out| append_integer(millis, out));
        return out.push(b'}');
    };
    quoted("$date", out, |out| {
        let written = match millis % 1000 {
            0 => write!(out, "{date}Z"),
            _ => write!(out, "{date:.3}Z"),
        };
        written.expect("a vector takes everything");
    });
}

fn append_integer(number: impl itoa::Integer, out: &mut Vec<u8>) {
    put(out, itoa::Buffer::new().format(number));
}

/// The shortest digits that give the double back: 1.0, 0.1, 1e300.
fn append_double(number: f64, out: &mut Vec<u8>) {
    match number {
        _ if number.is_nan() => put(out, "NaN"),
        f64::INFINITY => put(out, "Infinity"),
        f64::NEG_INFINITY => put(out, "-Infinity"),
        // Without an exponent here, as the standard library writes them, if slowly.
        _ if number == 0.0 || (1e-4..1e15).contains(&number.abs()) => {
            put(out, zmij::Buffer::new().format_finite(number));
        }
        _ => write!(out, "{number:?}").expect("a vector takes everything"),
    }
}

/// Appends text in quotes, with what JSON can't hold escaped.
pub(crate) fn append_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text;
    loop {
        let plain = plain_bytes(rest);
        out.extend_from_slice(&rest[..plain]);
        let Some(special) = rest.get(plain) else { break };
        match special {
            b'"' => put(out, "\\\""),
            b'\\' => put(out, "\\\\"),
            b'\n' => put(out, "\\n"),
            b'\r' => put(out, "\\r"),
            b'\t' => put(out, "\\t"),
            other => write!(out, "\\u{other:04x}").expect("a vector takes everything"),
        }
        rest = &rest[plain + 1..];
    }
    out.push(b'"');
}

/// How many bytes of JSON text come before one that isn't itself in a string: a quote, a
/// backslash, a control character. Eight at a time.
#[inline(always)]
pub(super) fn plain_bytes(text: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let mut at = 0;
    while let Some(word) = array_at(text, at) {
        let word = u64::from_le_bytes(word);
        let zero = |word: u64| word.wrapping_sub(ONES) & !word;
        let quote = zero(word ^ (ONES * u64::from(b'"')));
        let backslash = zero(word ^ (ONES * u64::from(b'\\')));
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        // The lowest of these bits is at the first such byte (Mycroft's test).
        let special = (quote | backslash | control) & HIGHS;
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += size_of::<u64>();
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    text[at..].iter().position(is_special).map_or(text.len(), |count| at + count)
}
