//! Documents as JSON text. The text is compact, as mongoexport writes it.

use std::fmt::Write;

use super::{Form, base64};
use crate::decimal;
use crate::document::{Array, Document};
use crate::value::{Binary, Value};

/// 9999-12-31T23:59:59.999Z: relaxed dates lie between 1970 and here.
const RELAXED_DATE_MAX: i64 = 253_402_300_799_999;

/// Writes a document as one line of JSON.
pub fn write(document: Document<'_>, form: Form, out: &mut String) {
    out.push('{');
    for (position, (name, value)) in document.iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        write_text(name, out);
        out.push(':');
        write_value(value, form, out);
    }
    out.push('}');
}

/// Writes one value.
pub fn write_value(value: Value<'_>, form: Form, out: &mut String) {
    let is_relaxed = form == Form::Relaxed;
    match value {
        Value::Double(number) if is_relaxed && number.is_finite() => format(out, double(number)),
        Value::Double(number) => {
            format(out, format_args!(r#"{{"$numberDouble":"{}"}}"#, double(number)))
        }
        Value::Int32(number) if is_relaxed => format(out, number),
        Value::Int32(number) => format(out, format_args!(r#"{{"$numberInt":"{number}"}}"#)),
        Value::Int64(number) if is_relaxed => format(out, number),
        Value::Int64(number) => format(out, format_args!(r#"{{"$numberLong":"{number}"}}"#)),
        Value::Decimal128(number) => {
            let number = decimal::to_string(number);
            format(out, format_args!(r#"{{"$numberDecimal":"{number}"}}"#));
        }
        Value::String(text) => write_text(text, out),
        Value::Symbol(text) => write_wrapped("$symbol", text, out),
        Value::JavaScript(text) => write_wrapped("$code", text, out),
        Value::Document(document) => write(document, form, out),
        Value::Array(array) => write_array(array, form, out),
        Value::Binary(binary) => write_binary(binary, out),
        Value::Undefined => out.push_str(r#"{"$undefined":true}"#),
        Value::ObjectId(id) => format(out, format_args!(r#"{{"$oid":"{id}"}}"#)),
        Value::Boolean(boolean) => format(out, boolean),
        Value::DateTime(millis) => write_date(millis, is_relaxed, out),
        Value::Null => out.push_str("null"),
        Value::Regex(regex) => {
            out.push_str(r#"{"$regularExpression":{"pattern":"#);
            write_text(regex.pattern, out);
            out.push_str(r#","options":"#);
            write_text(regex.options, out);
            out.push_str("}}");
        }
        Value::DbPointer { namespace, id } => {
            out.push_str(r#"{"$dbPointer":{"$ref":"#);
            write_text(namespace, out);
            format(out, format_args!(r#","$id":{{"$oid":"{id}"}}}}}}"#));
        }
        Value::JavaScriptWithScope { code, scope } => {
            out.push_str(r#"{"$code":"#);
            write_text(code, out);
            out.push_str(r#","$scope":"#);
            write(scope, form, out);
            out.push('}');
        }
        Value::Timestamp(timestamp) => {
            let (seconds, counter) = (timestamp.0 >> 32, timestamp.0 as u32);
            format(out, format_args!(r#"{{"$timestamp":{{"t":{seconds},"i":{counter}}}}}"#));
        }
        Value::MinKey => out.push_str(r#"{"$minKey":1}"#),
        Value::MaxKey => out.push_str(r#"{"$maxKey":1}"#),
        Value::Reference(_) => unreachable!("what is written was read"),
    }
}

fn write_array(array: Array<'_>, form: Form, out: &mut String) {
    out.push('[');
    for (position, value) in array.iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        write_value(value, form, out);
    }
    out.push(']');
}

/// The old subtype 2 has a length inside its bytes, which JSON doesn't show.
fn write_binary(binary: Binary<'_>, out: &mut String) {
    let bytes = if binary.subtype == 2 { binary.bytes.get(4..) } else { Some(binary.bytes) };
    out.push_str(r#"{"$binary":{"base64":""#);
    base64::append(bytes.unwrap_or(&[]), out);
    format(out, format_args!(r#"","subType":"{:02x}"}}}}"#, binary.subtype));
}

/// A date as text if people would read it, with milliseconds only if there are any.
fn write_date(millis: i64, is_relaxed: bool, out: &mut String) {
    let is_readable = is_relaxed && (0..=RELAXED_DATE_MAX).contains(&millis);
    let Some(date) = jiff::Timestamp::from_millisecond(millis).ok().filter(|_| is_readable) else {
        return format(out, format_args!(r#"{{"$date":{{"$numberLong":"{millis}"}}}}"#));
    };
    if millis % 1000 == 0 {
        format(out, format_args!(r#"{{"$date":"{date}"}}"#));
    } else {
        format(out, format_args!(r#"{{"$date":"{date:.3}"}}"#));
    }
}

fn write_wrapped(wrapper: &str, text: &str, out: &mut String) {
    format(out, format_args!(r#"{{"{wrapper}":"#));
    write_text(text, out);
    out.push('}');
}

/// The shortest digits that give the double back: 1.0, 0.1, 1e+300.
fn double(number: f64) -> String {
    match number {
        _ if number.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        _ => format!("{number:?}"),
    }
}

/// Text in quotes, with what JSON can't hold escaped.
pub(crate) fn write_text(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(position) = rest.find(|it: char| it < ' ' || it == '"' || it == '\\') {
        let (plain, special) = rest.split_at(position);
        out.push_str(plain);
        match special.as_bytes()[0] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            other => format(out, format_args!("\\u{other:04x}")),
        }
        rest = &special[1..];
    }
    out.push_str(rest);
    out.push('"');
}

fn format(out: &mut String, what: impl std::fmt::Display) {
    write!(out, "{what}").expect("a string takes everything");
}
