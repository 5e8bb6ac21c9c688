//! Documents as JSON text. The text is compact, as mongoexport writes it.
//!
//! Text is appended as bytes, and names and strings are copied as they lie in the document: shown
//! to be UTF-8 again only where the caller wants a `String`. What most documents consist of is made
//! text where it lies, without a [`Value`].

use std::io::Write;

use data_encoding::HEXLOWER;

use super::plain::{append_plain, append_plain_name};
use super::{Form, base64, date};
use crate::decimal;
use crate::document::Document;
use crate::document::decode_value;
use crate::document::value::{Binary, ObjectId, Value};
use crate::element_type::{ElementType, kind_of};
use crate::raw::{array_at, split_name, value_bytes};

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
    append_fields(document.as_bytes(), form, out);
}

fn append_fields(document: &[u8], form: Form, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut rest = document.get(size_of::<i32>()..).unwrap_or(&[]);
    let start = out.len();
    while let Some((kind, after)) = next_kind(rest) {
        if start < out.len() {
            out.push(b',');
        }
        let Some(name_bytes) = append_name(after, out) else { break };
        // No valid document ends here; like a decoder, this ends then.
        let Some(after) = append_first(kind, &after[name_bytes + 1..], form, out) else { break };
        rest = after;
    }
    out.push(b'}');
}

fn append_array(array: &[u8], form: Form, out: &mut Vec<u8>) {
    out.push(b'[');
    let mut rest = array.get(size_of::<i32>()..).unwrap_or(&[]);
    let start = out.len();
    while let Some((kind, after)) = next_kind(rest)
        && let Some((_, after)) = split_name(after)
    {
        if start < out.len() {
            out.push(b',');
        }
        let Some(after) = append_first(kind, after, form, out) else { break };
        rest = after;
    }
    out.push(b']');
}

/// The type of the next element, and what lies behind it.
#[inline(always)]
fn next_kind(rest: &[u8]) -> Option<(ElementType, &[u8])> {
    let (&kind, after) = rest.split_first()?;
    Some((kind_of(kind)?, after))
}

/// Appends the name that `bytes` begin with, and a colon; returns how long it is.
#[inline(always)]
fn append_name(bytes: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    append_plain_name(bytes, out).or_else(|| {
        let (name, _) = split_name(bytes)?;
        append_text(name, out);
        out.push(b':');
        Some(name.len())
    })
}

/// Appends the value that `bytes` begin with; gives what lies behind it.
#[inline(always)]
fn append_first<'b>(
    kind: ElementType,
    bytes: &'b [u8],
    form: Form,
    out: &mut Vec<u8>,
) -> Option<&'b [u8]> {
    let (value, rest) = bytes.split_at_checked(value_bytes(kind, bytes)?)?;
    append_raw(kind, value, form, out)?;
    Some(rest)
}

/// Appends a value as it lies in a document; `None` if the bytes aren't what the type wants.
pub(crate) fn append_raw(
    kind: ElementType,
    bytes: &[u8],
    form: Form,
    out: &mut Vec<u8>,
) -> Option<()> {
    let is_relaxed = form == Form::Relaxed;
    match kind {
        ElementType::String => append_text(bytes.get(4..bytes.len().checked_sub(1)?)?, out),
        ElementType::Document => append_fields(bytes, form, out),
        ElementType::Array => append_array(bytes, form, out),
        ElementType::Int32 if is_relaxed => {
            append_integer(i32::from_le_bytes(array_at(bytes, 0)?), out);
        }
        ElementType::DateTime => {
            append_date(i64::from_le_bytes(array_at(bytes, 0)?), is_relaxed, out);
        }
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
        Value::Array(array) => append_array(array.as_bytes(), form, out),
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
    put(out, r#"{"$date":"#);
    let start = out.len();
    out.push(b'"');
    if is_relaxed && date::append(millis, out) {
        out.push(b'"');
    } else {
        out.truncate(start);
        quoted("$numberLong", out, |out| append_integer(millis, out));
    }
    out.push(b'}');
}

fn append_integer(number: impl itoa::Integer, out: &mut Vec<u8>) {
    append_plain(itoa::Buffer::new().format(number).as_bytes(), out);
}

/// The shortest digits that give the double back: 1.0, 0.1, 1e300.
fn append_double(number: f64, out: &mut Vec<u8>) {
    match number {
        _ if number.is_nan() => put(out, "NaN"),
        f64::INFINITY => put(out, "Infinity"),
        f64::NEG_INFINITY => put(out, "-Infinity"),
        // Without an exponent here, as the standard library writes them, if slowly.
        _ if number == 0.0 || (1e-4..1e15).contains(&number.abs()) => {
            append_plain(zmij::Buffer::new().format_finite(number).as_bytes(), out);
        }
        _ => write!(out, "{number:?}").expect("a vector takes everything"),
    }
}

/// Appends text in quotes, with what JSON can't hold escaped.
pub(crate) fn append_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text;
    loop {
        let plain = append_plain(rest, out).bytes;
        let Some(special) = rest.get(plain) else { break };
        append_escaped(*special, out);
        rest = &rest[plain + 1..];
    }
    out.push(b'"');
}

#[cold]
fn append_escaped(special: u8, out: &mut Vec<u8>) {
    match special {
        b'"' => put(out, "\\\""),
        b'\\' => put(out, "\\\\"),
        b'\n' => put(out, "\\n"),
        b'\r' => put(out, "\\r"),
        b'\t' => put(out, "\\t"),
        other => write!(out, "\\u{other:04x}").expect("a vector takes everything"),
    }
}
