//! Making documents and arrays field by field.

use crate::document::DocumentBuf;
use crate::value::Value;

/// Builds one document; nested ones through `begin_document`, `begin_array` and `end`.
#[derive(Default)]
pub struct DocumentBuilder {
    bytes: Vec<u8>,
    /// Where each open document's length stands.
    open: Vec<usize>,
}

impl DocumentBuilder {
    /// Begins an empty document.
    pub fn new() -> DocumentBuilder {
        todo!()
    }

    /// Appends a field. `name` must hold no NUL (debug-asserted; the wire and JSON refuse them).
    pub fn append(&mut self, _name: &str, _value: Value<'_>) -> &mut DocumentBuilder {
        todo!()
    }

    /// Opens a nested document; fields go into it until `end`.
    pub fn begin_document(&mut self, _name: &str) -> &mut DocumentBuilder {
        todo!()
    }

    /// Opens a nested array; its elements are appended with `push` until `end`.
    pub fn begin_array(&mut self, _name: &str) -> &mut DocumentBuilder {
        todo!()
    }

    /// Appends an element to the array that is open, named by its position.
    pub fn push(&mut self, _value: Value<'_>) -> &mut DocumentBuilder {
        todo!()
    }

    /// Closes the nested document or array opened last.
    pub fn end(&mut self) -> &mut DocumentBuilder {
        todo!()
    }

    /// Ends the document. Nested ones must have been closed (asserted).
    pub fn build(self) -> DocumentBuf {
        let _ = (self.bytes, self.open);
        todo!()
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
