//! Making documents and arrays field by field, and values of their own.
//!
//! The builder writes BSON as it goes: a nested document's length is left open and filled in when
//! it is closed.

use crate::document::value::{Value, ValueBuf};
use crate::document::{Document, DocumentBuf};
use crate::raw::RawElement;
use crate::reference::REFERENCE_BYTES;

/// Builds one document; nested ones through `begin_document`, `begin_array` and `end`.
///
/// *Invariants*: `bytes` is empty, or begins with the outermost document's length, still open.
#[derive(Clone, Debug, Default)]
pub struct DocumentBuilder {
    bytes: Vec<u8>,
    /// The documents and arrays that are open inside the outermost document.
    open: Vec<Open>,
}

/// A nested document or array that is open.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// The offset of its length.
    offset: usize,
    /// The number of elements that were pushed.
    count: usize,
}

impl DocumentBuilder {
    /// Begins an empty document.
    pub fn new() -> DocumentBuilder {
        DocumentBuilder::with_capacity(64)
    }

    /// Begins an empty document that will take about `bytes`.
    pub fn with_capacity(bytes: usize) -> DocumentBuilder {
        let mut buffer = Vec::with_capacity(bytes.max(5));
        buffer.extend_from_slice(&[0; 4]);
        DocumentBuilder { bytes: buffer, open: Vec::new() }
    }

    /// Makes room for so many more bytes.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Returns how many bytes the document has so far.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns how many documents and arrays are open, the outermost counted.
    pub(crate) fn depth(&self) -> usize {
        1 + self.open.len()
    }

    /// Appends a field. `name` must hold no NUL (debug-asserted; the wire and JSON refuse them).
    pub fn append(&mut self, name: &str, value: Value<'_>) -> &mut DocumentBuilder {
        self.begin_element(value.type_byte(), name);
        append_value(&mut self.bytes, value);
        self
    }

    /// Appends an element as it lies in another document, under its own name.
    pub fn append_element(&mut self, element: &RawElement<'_>) -> &mut DocumentBuilder {
        if self.bytes.is_empty() {
            self.bytes.extend_from_slice(&[0; 4]);
        }
        self.bytes.push(element.kind as u8);
        self.bytes.extend_from_slice(element.name);
        self.bytes.push(0);
        self.bytes.extend_from_slice(element.value);
        self
    }

    /// Opens a nested document; fields go into it until `end`.
    pub fn begin_document(&mut self, name: &str) -> &mut DocumentBuilder {
        self.begin_nested(0x03, name)
    }

    /// Opens a nested array; its elements are appended with `push` until `end`.
    pub fn begin_array(&mut self, name: &str) -> &mut DocumentBuilder {
        self.begin_nested(0x04, name)
    }

    /// Appends an element to the array that is open, named by its position.
    pub fn push(&mut self, value: Value<'_>) -> &mut DocumentBuilder {
        let mut digits = [0; 20];
        let name = self.next_position(&mut digits);
        self.append(name, value)
    }

    /// Opens a document that is the next element of the array that is open.
    pub fn push_begin_document(&mut self) -> &mut DocumentBuilder {
        let mut digits = [0; 20];
        let name = self.next_position(&mut digits);
        self.begin_nested(0x03, name)
    }

    /// Opens an array that is the next element of the array that is open.
    pub fn push_begin_array(&mut self) -> &mut DocumentBuilder {
        let mut digits = [0; 20];
        let name = self.next_position(&mut digits);
        self.begin_nested(0x04, name)
    }

    /// Closes the nested document or array opened last.
    pub fn end(&mut self) -> &mut DocumentBuilder {
        let open = self.open.pop().expect("end() closes something that was opened");
        close(&mut self.bytes, open.offset);
        self
    }

    /// Replaces the nested document or array that was closed last, and whose element began when
    /// there were `start` bytes, by what `convert` makes of it, if anything.
    pub(crate) fn replace_last<E>(
        &mut self,
        start: usize,
        name: &str,
        convert: impl FnOnce(Document<'_>) -> Result<Option<ValueBuf>, E>,
    ) -> Result<(), E> {
        let value_start = start + 1 + name.len() + 1;
        let nested = Document::from_validated(&self.bytes[value_start..]);
        if let Some(value) = convert(nested)? {
            self.bytes.truncate(start);
            self.append(name, value.as_value());
        }
        Ok(())
    }

    /// Ends the document. Nested ones must have been closed (asserted).
    pub fn build(mut self) -> DocumentBuf {
        assert!(self.open.is_empty(), "build() with {} nested ones open", self.open.len());
        if self.bytes.is_empty() {
            return DocumentBuf::empty(); // Made by `default`, nothing appended.
        }
        close(&mut self.bytes, 0);
        DocumentBuf::from_validated(self.bytes.into())
    }

    fn begin_nested(&mut self, kind: u8, name: &str) -> &mut DocumentBuilder {
        self.begin_element(kind, name);
        self.open.push(Open { offset: self.bytes.len(), count: 0 });
        self.bytes.extend_from_slice(&[0; 4]);
        self
    }

    fn begin_element(&mut self, kind: u8, name: &str) {
        debug_assert!(!name.as_bytes().contains(&0), "a name holds no NUL");
        if self.bytes.is_empty() {
            self.bytes.extend_from_slice(&[0; 4]);
        }
        self.bytes.push(kind);
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
    }

    /// The name of the open array's next element.
    fn next_position<'d>(&mut self, digits: &'d mut [u8; 20]) -> &'d str {
        let open = self.open.last_mut().expect("push() goes into an array that is open");
        let position = open.count;
        open.count += 1;
        position_name(position, digits)
    }
}

/// Writes `position` in decimal, as arrays name their elements.
pub fn position_name(mut position: usize, digits: &mut [u8; 20]) -> &str {
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (position % 10) as u8;
        position /= 10;
        if position == 0 {
            break;
        }
    }
    std::str::from_utf8(&digits[start..]).expect("decimal digits are ASCII")
}

/// Writes the final zero of what began at `offset`, and its length.
fn close(bytes: &mut Vec<u8>, offset: usize) {
    bytes.push(0);
    let length = i32::try_from(bytes.len() - offset).expect("a document stays below 2 GiB");
    bytes[offset..offset + 4].copy_from_slice(&length.to_le_bytes());
}

/// Appends a value's bytes, without type and name.
pub(crate) fn append_value(bytes: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Double(number) => bytes.extend_from_slice(&number.to_le_bytes()),
        Value::String(text) | Value::JavaScript(text) | Value::Symbol(text) => {
            append_string(bytes, text);
        }
        Value::Document(document) => bytes.extend_from_slice(document.as_bytes()),
        Value::Array(array) => bytes.extend_from_slice(array.as_bytes()),
        Value::Binary(binary) => {
            append_length(bytes, binary.bytes.len());
            bytes.push(binary.subtype);
            bytes.extend_from_slice(binary.bytes);
        }
        Value::ObjectId(id) => bytes.extend_from_slice(&id.0),
        Value::Boolean(boolean) => bytes.push(u8::from(boolean)),
        Value::DateTime(millis) => bytes.extend_from_slice(&millis.to_le_bytes()),
        Value::Regex(regex) => {
            for part in [regex.pattern, regex.options] {
                debug_assert!(!part.as_bytes().contains(&0), "a regex holds no NUL");
                bytes.extend_from_slice(part.as_bytes());
                bytes.push(0);
            }
        }
        Value::DbPointer { namespace, id } => {
            append_string(bytes, namespace);
            bytes.extend_from_slice(&id.0);
        }
        Value::JavaScriptWithScope { code, scope } => {
            append_length(bytes, 4 + 4 + code.len() + 1 + scope.as_bytes().len());
            append_string(bytes, code);
            bytes.extend_from_slice(scope.as_bytes());
        }
        Value::Int32(number) => bytes.extend_from_slice(&number.to_le_bytes()),
        Value::Timestamp(timestamp) => bytes.extend_from_slice(&timestamp.0.to_le_bytes()),
        Value::Int64(number) => bytes.extend_from_slice(&number.to_le_bytes()),
        Value::Decimal128(number) => bytes.extend_from_slice(&number.0),
        Value::Reference(reference) => bytes.extend_from_slice(reference.as_bytes()),
        Value::Undefined | Value::Null | Value::MinKey | Value::MaxKey => {}
    }
}

/// Returns how many bytes [`append_value`] appends.
pub(crate) fn value_bytes(value: Value<'_>) -> usize {
    match value {
        Value::String(text) | Value::JavaScript(text) | Value::Symbol(text) => 4 + text.len() + 1,
        Value::Document(document) => document.as_bytes().len(),
        Value::Array(array) => array.as_bytes().len(),
        Value::Binary(binary) => 4 + 1 + binary.bytes.len(),
        Value::ObjectId(_) => 12,
        Value::Boolean(_) => 1,
        Value::Regex(regex) => regex.pattern.len() + 1 + regex.options.len() + 1,
        Value::DbPointer { namespace, .. } => 4 + namespace.len() + 1 + 12,
        Value::JavaScriptWithScope { code, scope } => {
            4 + 4 + code.len() + 1 + scope.as_bytes().len()
        }
        Value::Int32(_) => 4,
        Value::Double(_) | Value::DateTime(_) | Value::Timestamp(_) | Value::Int64(_) => 8,
        Value::Decimal128(_) => 16,
        Value::Reference(_) => REFERENCE_BYTES,
        Value::Undefined | Value::Null | Value::MinKey | Value::MaxKey => 0,
    }
}

fn append_string(bytes: &mut Vec<u8>, text: &str) {
    append_length(bytes, text.len() + 1);
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
}

fn append_length(bytes: &mut Vec<u8>, length: usize) {
    let length = i32::try_from(length).expect("a value stays below 2 GiB");
    bytes.extend_from_slice(&length.to_le_bytes());
}

/// The bytes of a document that holds one owned value, besides the value itself: its length, the
/// type, the end of an empty name, a final zero.
const VALUE_OVERHEAD: usize = 4 + 1 + 1 + 1;

impl Value<'_> {
    /// Copies the value.
    pub fn to_buf(&self) -> ValueBuf {
        ValueBuf::from(*self)
    }
}

impl<'a> From<Value<'a>> for ValueBuf {
    fn from(value: Value<'a>) -> ValueBuf {
        // Exactly: many are kept.
        let bytes = VALUE_OVERHEAD + value_bytes(value);
        let mut builder = DocumentBuilder::with_capacity(bytes);
        builder.append("", value);
        ValueBuf::from_only_field(builder.build())
    }
}

impl From<DocumentBuf> for ValueBuf {
    fn from(document: DocumentBuf) -> ValueBuf {
        ValueBuf::from(Value::Document(document.view()))
    }
}

/// Builds a document from `name: value` pairs, each value anything that `Value` can be made from:
/// `document! { "ok": 1.0, "n": 5_i32, "name": "x" }`.
#[macro_export]
macro_rules! document {
    ($($name:literal : $value:expr),* $(,)?) => {{
        #[allow(unused_mut)]
        let mut builder = $crate::DocumentBuilder::new();
        $(builder.append($name, $crate::Value::from($value));)*
        builder.build()
    }};
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::value::{Binary, Decimal128, ObjectId, Regex, Timestamp};

    #[test]
    fn every_type_comes_back() {
        let inner = document! { "x": 1_i32 };
        let values = [
            Value::Double(-0.5),
            Value::String("straße\0"),
            Value::Document(inner.view()),
            Value::Binary(Binary { subtype: 4, bytes: &[1, 2, 3] }),
            Value::Undefined,
            Value::ObjectId(ObjectId([7; 12])),
            Value::Boolean(true),
            Value::DateTime(-5),
            Value::Null,
            Value::Regex(Regex { pattern: "^a", options: "im" }),
            Value::DbPointer { namespace: "a.b", id: ObjectId([9; 12]) },
            Value::JavaScript("f()"),
            Value::Symbol("s"),
            Value::JavaScriptWithScope { code: "g()", scope: inner.view() },
            Value::Int32(i32::MIN),
            Value::Timestamp(Timestamp(u64::MAX)),
            Value::Int64(i64::MIN),
            Value::Decimal128(Decimal128([3; 16])),
            Value::MinKey,
            Value::MaxKey,
        ];
        let mut builder = DocumentBuilder::new();
        builder.begin_array("all");
        for value in values {
            builder.push(value);
            assert_eq!(value.to_buf().as_value(), value);
            let mut bytes = Vec::new();
            append_value(&mut bytes, value);
            assert_eq!(bytes.len(), value_bytes(value), "{value:?}");
        }
        builder.end();
        let document = DocumentBuf::validated(builder.build().into_bytes()).expect("valid");
        let array = document.get("all").and_then(|value| value.as_array()).expect("an array");
        assert!(array.iter().eq(values));
        assert_eq!(array.get(14), Some(Value::Int32(i32::MIN)));
        let names: Vec<&str> = array.as_document().iter().map(|(name, _)| name).collect();
        assert_eq!(names[9..12], ["9", "10", "11"]);
    }

    #[test]
    fn nesting() {
        let mut builder = DocumentBuilder::default();
        builder.append("a", Value::from(1_i32)).begin_document("b");
        builder.append("c", Value::from("d")).begin_array("e");
        builder.push_begin_document().append("f", Value::Null).end();
        builder.push_begin_array().push(Value::from(2_i64)).end().push(Value::from(true));
        builder.end().end().append("g", Value::from(1.5));
        let document = DocumentBuf::validated(builder.build().into_bytes()).expect("valid");
        assert_eq!(
            format!("{document:?}"),
            concat!(
                r#"{"a": Int32(1), "b": Document({"c": String("d"), "e": Array([Document("#,
                r#"{"f": Null}), Array([Int64(2)]), Boolean(true)])}), "g": Double(1.5)}"#
            )
        );
        assert_eq!(DocumentBuilder::default().build().view(), Document::empty());
        assert_eq!(document! {}.view(), Document::empty());
    }
}
