//! BSON, extended JSON and index keys.

use std::cmp::Ordering;

use bytes::Bytes;
use frond_doc::extended_json::{self, Form};
use frond_doc::field_index::shape::ShapeRegistry;
use frond_doc::{Document, DocumentBuf, Value, key, order};

/// Bytes that may be a document: what is valid is read in every way, and all ways agree.
pub fn document(bytes: &[u8]) {
    let Ok(document) = DocumentBuf::validated(Bytes::copy_from_slice(bytes)) else { return };
    let indexed = document.clone().indexed(&ShapeRegistry::new(1 << 20));
    for (name, value) in document.iter() {
        let found = document.get(name).expect("a name that was met");
        let by_index = indexed.get(name).expect("a name that was met");
        assert_eq!(order::compare(found, by_index), Ordering::Equal, "the index of {name:?}");
        key_gives_back(value);
    }
    json_gives_back(document.view());
}

/// Text that may be extended JSON: what is written of what was read reads the same.
pub fn json(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(document) = extended_json::parse(text) {
        let bytes = Bytes::copy_from_slice(document.as_bytes());
        DocumentBuf::validated(bytes).expect("what was made is valid");
        json_gives_back(document.view());
    }
}

/// Bytes that may be a key and its type bits: what is skipped ends where what is decoded does.
pub fn key(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let (descending, split) = (first & 1 == 1, usize::from(first >> 1).min(bytes.len()));
    let (bits, key) = bytes.split_at(split);
    let mut behind = key;
    let skipped = key::skip(&mut behind, descending).is_ok();
    let (mut rest, mut rest_bits) = (key, bits);
    if let Ok(value) = key::decode(&mut rest, &mut rest_bits, descending) {
        assert!(skipped && rest == behind, "a key ends in two places");
        key_gives_back(value.as_value());
    }
}

/// Bytes that may be a column: what is read of it is no more than is allowed.
pub fn column(bytes: &[u8]) {
    const BYTES_MAX: usize = 1 << 20;
    if let Ok(values) = frond_doc::column::read(bytes, BYTES_MAX) {
        let taken = values.iter().flatten().map(|value| value.named(b"").value.len());
        assert!(values.len() <= BYTES_MAX && taken.sum::<usize>() <= BYTES_MAX);
    }
}

/// A key and its type bits give a value back that is equal and has the same key.
fn key_gives_back(value: Value<'_>) {
    for descending in [false, true] {
        let (mut written, mut bits) = (Vec::new(), Vec::new());
        key::append(&mut written, value, descending);
        key::append_type_bits(&mut bits, value);
        let (mut rest, mut rest_bits) = (&written[..], &bits[..]);
        let read = key::decode(&mut rest, &mut rest_bits, descending).expect("a key is read");
        assert!(rest.is_empty());
        assert_eq!(order::compare(read.as_value(), value), Ordering::Equal);
        let mut again = Vec::new();
        key::append(&mut again, read.as_value(), descending);
        assert_eq!(again, written);
    }
}

/// Canonical JSON gives an equal document back, where no name may be one of extended JSON's own and
/// options of regular expressions are in order, as JSON has them.
fn json_gives_back(document: Document<'_>) {
    let mut text = String::new();
    extended_json::write(document, Form::Relaxed, &mut text);
    text.clear();
    extended_json::write(document, Form::Canonical, &mut text);
    if is_changed_by_json(document) {
        return;
    }
    match extended_json::parse(&text) {
        Ok(read) => {
            let same = order::compare_documents(read.view(), document) == Ordering::Equal;
            assert!(same, "{text} reads as another document");
        }
        // JSON may be nested less deep than documents.
        Err(error) => assert!(text.len() > 100, "{error}: {text}"),
    }
}

/// Whether bytes of the old subtype begin with the length of the rest, which JSON doesn't tell.
fn has_its_length(bytes: &[u8]) -> bool {
    bytes.split_first_chunk().is_some_and(|(length, rest)| {
        usize::try_from(i32::from_le_bytes(*length)) == Ok(rest.len())
    })
}

fn is_changed_by_json(document: Document<'_>) -> bool {
    document.iter().any(|(name, value)| {
        let is_changed = match value {
            Value::Document(inner) => is_changed_by_json(inner),
            Value::Array(inner) => is_changed_by_json(inner.as_document()),
            Value::JavaScriptWithScope { scope, .. } => is_changed_by_json(scope),
            Value::Regex(regex) => !regex.options.bytes().is_sorted(),
            Value::Binary(binary) => binary.subtype == 2 && !has_its_length(binary.bytes),
            _ => false,
        };
        name.starts_with('$') || is_changed
    })
}
