//! A document: a view over bytes that were validated when they came in.
//!
//! [`Document`] and [`Array`] are views that are copied freely, like `&str`. Whoever makes one from
//! bytes from outside validates them first ([`DocumentBuf::validated`]); iterating over bytes that
//! aren't BSON ends early and never panics.

use std::fmt;

use bytes::Bytes;

use crate::error::DocError;
use crate::raw::RawElements;
use crate::validate::validate;
use crate::value::Value;

/// How deep documents and arrays may be nested, the outermost counted.
pub const DEPTH_MAX: usize = 180;
/// Largest document taken over the wire.
pub const DOCUMENT_BYTES_MAX: usize = 16 << 20;
/// The five bytes of the empty document.
pub const EMPTY: [u8; 5] = [5, 0, 0, 0, 0];

/// A view over a document's bytes, its length prefix and final zero included.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Document<'a>(&'a [u8]);

/// A view over an array's bytes: a document whose field names don't matter.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Array<'a>(&'a [u8]);

/// A document that owns its bytes (or shares them: cloning is cheap).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct DocumentBuf(Bytes);

impl<'a> Document<'a> {
    /// Views validated bytes as a document.
    pub fn from_validated(bytes: &'a [u8]) -> Document<'a> {
        Document(bytes)
    }

    /// The empty document.
    pub fn empty() -> Document<'static> {
        Document(&EMPTY)
    }

    /// The document's bytes.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The fields in their order: name and value.
    pub fn iter(&self) -> Fields<'a> {
        Fields { elements: self.elements() }
    }

    /// The fields in their order, undecoded.
    pub fn elements(&self) -> RawElements<'a> {
        RawElements::new(self.0)
    }

    /// The value of the first field named `name`; no dotted path. Decodes that value alone.
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        self.elements().find(|element| element.name == name.as_bytes())?.decode()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.len() <= EMPTY.len()
    }

    /// Copies the document.
    pub fn to_buf(&self) -> DocumentBuf {
        DocumentBuf(Bytes::copy_from_slice(self.0))
    }
}

impl<'a> Array<'a> {
    /// Views validated bytes as an array.
    pub fn from_validated(bytes: &'a [u8]) -> Array<'a> {
        Array(bytes)
    }

    /// The array's bytes.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The elements in their order.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        self.elements().map_while(|element| element.decode())
    }

    /// The elements in their order, undecoded.
    pub fn elements(&self) -> RawElements<'a> {
        RawElements::new(self.0)
    }

    /// The element at `position`, counted from 0.
    pub fn get(&self, position: usize) -> Option<Value<'a>> {
        self.elements().nth(position)?.decode()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.0.len() <= EMPTY.len()
    }

    /// The array seen as a document, with its positions as names.
    pub fn as_document(&self) -> Document<'a> {
        Document(self.0)
    }
}

impl DocumentBuf {
    /// The empty document.
    pub fn empty() -> DocumentBuf {
        DocumentBuf(Bytes::from_static(&EMPTY))
    }

    /// Takes bytes from outside.
    ///
    /// # Errors
    /// [`DocError::Invalid`] if they are not one whole BSON document (lengths, types, names,
    /// UTF-8, final zeros, nothing after it); [`DocError::TooDeep`].
    pub fn validated(bytes: Bytes) -> Result<DocumentBuf, DocError> {
        validate(&bytes)?;
        Ok(DocumentBuf(bytes))
    }

    /// Takes bytes that were validated when they came in.
    pub fn from_validated(bytes: Bytes) -> DocumentBuf {
        DocumentBuf(bytes)
    }

    /// Borrows the document.
    pub fn view(&self) -> Document<'_> {
        Document(&self.0)
    }

    /// The fields in their order: name and value.
    pub fn iter(&self) -> Fields<'_> {
        self.view().iter()
    }

    /// The value of the first field named `name`; no dotted path.
    pub fn get(&self, name: &str) -> Option<Value<'_>> {
        self.view().get(name)
    }

    /// The document's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The document's bytes, shared.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

/// An iterator over a document's fields.
#[derive(Clone)]
pub struct Fields<'a> {
    elements: RawElements<'a>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a str, Value<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let element = self.elements.next()?;
        Some((element.name()?, element.decode()?))
    }
}

impl fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Debug for DocumentBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.view(), f)
    }
}
