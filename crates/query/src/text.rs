//! Prints values in error messages as MongoDB does, since people search for its words.

use std::fmt::Write;

use frond_doc::{Document, Value, decimal};

/// The length at which longer values are cut: a message is for people.
const TEXT_BYTES_MAX: usize = 512;

/// Prints a value: `"x"`, `5`, `{ a: 1 }`, `[ 1, 2 ]`, `ObjectId('...')`.
pub fn value(value: Value<'_>) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

/// Prints `name: value`, as messages do that quote one field.
pub fn field(name: &str, of: Value<'_>) -> String {
    format!("{name}: {}", value(of))
}

/// Prints a document's `_id` as `{_id: 1}`: how messages name a document.
pub fn id(document: Document<'_>) -> String {
    match document.get("_id") {
        Some(id) => format!("{{_id: {}}}", value(id)),
        None => "{no id}".to_owned(),
    }
}

fn write_value(out: &mut String, value: Value<'_>) {
    if out.len() > TEXT_BYTES_MAX {
        if !out.ends_with("...") {
            out.push_str("...");
        }
        return;
    }
    let written = match value {
        Value::Double(number) if number.is_nan() => write!(out, "nan.0"),
        Value::Double(number) if number.is_infinite() => {
            write!(out, "{}inf.0", if number < 0.0 { "-" } else { "" })
        }
        Value::Double(number) => write!(out, "{number:?}"),
        Value::String(text) | Value::Symbol(text) => write!(out, "\"{text}\""),
        Value::Document(document) => return write_fields(out, document),
        Value::Array(array) => return write_elements(out, array.iter()),
        Value::Binary(binary) => {
            write!(out, "BinData({}, {} bytes)", binary.subtype, binary.bytes.len())
        }
        Value::Undefined => write!(out, "undefined"),
        Value::ObjectId(id) => write!(out, "ObjectId('{id}')"),
        Value::Boolean(boolean) => write!(out, "{boolean}"),
        Value::DateTime(millis) => write!(out, "new Date({millis})"),
        Value::Null => write!(out, "null"),
        Value::Regex(regex) => write!(out, "/{}/{}", regex.pattern, regex.options),
        Value::DbPointer { namespace, id } => write!(out, "DBRef('{namespace}', {id})"),
        Value::JavaScript(code) => write!(out, "{code}"),
        Value::JavaScriptWithScope { code, .. } => write!(out, "CodeWScope( {code}, ...)"),
        Value::Int32(number) => write!(out, "{number}"),
        Value::Int64(number) => write!(out, "{number}"),
        Value::Timestamp(timestamp) => {
            write!(out, "Timestamp({}, {})", timestamp.0 >> 32, timestamp.0 as u32)
        }
        Value::Decimal128(number) => write!(out, "{}", decimal::to_string(number)),
        Value::MinKey => write!(out, "MinKey"),
        Value::MaxKey => write!(out, "MaxKey"),
        // Long, and not read for a message.
        Value::Reference(_) => write!(out, "..."),
    };
    written.expect("writing to a string can't fail");
}

fn write_fields(out: &mut String, document: Document<'_>) {
    if document.is_empty() {
        out.push_str("{}");
        return;
    }
    let mut separator = "{ ";
    for (name, value) in document.iter() {
        out.push_str(separator);
        out.push_str(name);
        out.push_str(": ");
        write_value(out, value);
        separator = ", ";
        if out.len() > TEXT_BYTES_MAX {
            break;
        }
    }
    out.push_str(" }");
}

fn write_elements<'a>(out: &mut String, elements: impl Iterator<Item = Value<'a>>) {
    let mut separator = "[ ";
    let mut empty = true;
    for value in elements {
        empty = false;
        out.push_str(separator);
        write_value(out, value);
        separator = ", ";
        if out.len() > TEXT_BYTES_MAX {
            break;
        }
    }
    out.push_str(if empty { "[]" } else { " ]" });
}
