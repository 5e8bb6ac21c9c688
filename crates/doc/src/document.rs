//! A document: a view over bytes that were validated when they came in.
//!
//! [`Document`] and [`Array`] are views that are copied freely, like `&str`. A caller that makes
//! one from outside bytes validates them first ([`DocumentBuf::validated`]); iterating over bytes
//! that aren't BSON ends early and never panics.

mod decode;
mod indexed;
pub mod value;

use std::fmt;
use std::hash::{Hash, Hasher};

use bytes::Bytes;

use crate::error::DocError;
use crate::field_index::shape::Remembered;
use crate::field_index::{Attached, ElementSpot, FieldIndex, FieldLookup};
use crate::name_walk;
use crate::raw::{RawElement, RawElements};
pub use crate::validate::{ANSWER_DEPTH_MAX, DEPTH_MAX};
use crate::validate::{validate, validate_to};
pub(crate) use decode::decode_value;
use value::Value;

/// Largest document taken over the wire.
pub const DOCUMENT_BYTES_MAX: usize = 16 << 20;
/// The five bytes of the empty document.
pub const EMPTY: [u8; 5] = [5, 0, 0, 0, 0];

/// A view over a document's bytes, its length prefix and final zero included.
///
/// It may carry an index of its fields, which [`Document::get`] and paths then use; documents are
/// equal if their bytes are.
#[derive(Clone, Copy)]
pub struct Document<'a> {
    bytes: &'a [u8],
    index: Option<&'a Attached>,
}

/// A view over an array's bytes: a document whose field names don't matter.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Array<'a>(&'a [u8]);

/// A document that owns its bytes (or shares them: cloning is cheap), and may carry an index of its
/// fields, as [`Document`].
#[derive(Clone)]
pub struct DocumentBuf {
    bytes: Bytes,
    index: Option<Attached>,
}

impl<'a> Document<'a> {
    /// Views validated bytes as a document.
    pub fn from_validated(bytes: &'a [u8]) -> Document<'a> {
        Document { bytes, index: None }
    }

    /// The empty document.
    pub fn empty() -> Document<'static> {
        Document { bytes: &EMPTY, index: None }
    }

    /// The document's bytes.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The fields in their order: name and value.
    pub fn iter(&self) -> Fields<'a> {
        Fields { elements: self.elements() }
    }

    /// The fields in their order, undecoded.
    pub fn elements(&self) -> RawElements<'a> {
        RawElements::new(self.bytes)
    }

    /// The value of the first field named `name`; no dotted path. Decodes that value alone.
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        self.field(name.as_bytes())?.decode()
    }

    /// The first field named `name`, undecoded.
    #[inline]
    pub fn field(&self, name: &[u8]) -> Option<RawElement<'a>> {
        match self.index().map(|index| index.field(self.bytes, name)) {
            Some(FieldLookup::At(spot)) => spot.element(self.bytes),
            Some(FieldLookup::Absent) => None,
            Some(FieldLookup::Unindexed) | None => name_walk::find(self.bytes, name),
        }
    }

    /// The field at a dotted path through documents alone (arrays are not entered), undecoded.
    #[inline(always)]
    pub fn field_at(&self, dotted: &str) -> Option<RawElement<'a>> {
        // No closure, which might become a call, and hand what it finds on through memory.
        let known = match self.index() {
            Some(index) => index.at_dotted(self.bytes, dotted),
            None => FieldLookup::Unindexed,
        };
        let spot = match known {
            FieldLookup::At(spot) => spot,
            FieldLookup::Absent => return None,
            FieldLookup::Unindexed => walk_to_dotted(self.bytes, self.index, dotted)?,
        };
        spot.element(self.bytes)
    }

    /// Returns where the field lies to which `parts` lead through documents, name by name.
    pub(crate) fn walk_to<'p>(
        &self,
        mut parts: impl Iterator<Item = &'p str>,
    ) -> Option<ElementSpot> {
        let mut found = self.field(parts.next()?.as_bytes())?;
        for part in parts {
            found = found.decode()?.as_document()?.field(part.as_bytes())?;
        }
        ElementSpot::of(self.bytes, &found)
    }

    /// Takes the view apart: calls pass its parts in registers, but the view itself by its address.
    #[inline(always)]
    pub(crate) fn into_parts(self) -> (&'a [u8], Option<&'a Attached>) {
        (self.bytes, self.index)
    }

    /// The document that was taken apart by [`Document::into_parts`].
    pub(crate) fn from_parts(bytes: &'a [u8], index: Option<&'a Attached>) -> Document<'a> {
        Document { bytes, index }
    }

    /// Whether fields are found without a scan.
    #[inline]
    pub fn is_indexed(&self) -> bool {
        self.index().is_some()
    }

    /// As [`Attached::at_remembered`].
    #[inline(always)]
    pub(crate) fn at_remembered(&self, remembered: Remembered) -> FieldLookup {
        self.index.map_or(FieldLookup::Unindexed, |index| index.at_remembered(remembered))
    }

    #[inline(always)]
    pub(crate) fn index(&self) -> Option<&'a FieldIndex> {
        self.index?.get(self.bytes)
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() <= EMPTY.len()
    }

    /// Copies the document.
    pub fn to_buf(&self) -> DocumentBuf {
        DocumentBuf::from_validated(Bytes::copy_from_slice(self.bytes))
    }
}

#[inline(never)]
fn walk_to_dotted(bytes: &[u8], index: Option<&Attached>, dotted: &str) -> Option<ElementSpot> {
    Document { bytes, index }.walk_to(dotted.split('.'))
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
        Document::from_validated(self.0)
    }
}

impl Default for DocumentBuf {
    /// The empty document.
    fn default() -> DocumentBuf {
        DocumentBuf::empty()
    }
}

impl DocumentBuf {
    /// The empty document.
    pub fn empty() -> DocumentBuf {
        DocumentBuf::from_validated(Bytes::from_static(&EMPTY))
    }

    /// Takes bytes from outside.
    ///
    /// # Errors
    /// [`DocError::Invalid`] if they are not one whole BSON document (lengths, types, names,
    /// UTF-8, final zeros, nothing after it); [`DocError::TooDeep`].
    pub fn validated(bytes: Bytes) -> Result<DocumentBuf, DocError> {
        validate(&bytes)?;
        Ok(DocumentBuf::from_validated(bytes))
    }

    /// As [`DocumentBuf::validated`], of what documents lie in so many levels down.
    ///
    /// # Errors
    /// As [`DocumentBuf::validated`]; [`DocError::TooDeep`] beyond [`DEPTH_MAX`] and these levels.
    pub fn validated_around(bytes: Bytes, levels: usize) -> Result<DocumentBuf, DocError> {
        validate_to(&bytes, DEPTH_MAX + levels)?;
        Ok(DocumentBuf::from_validated(bytes))
    }

    /// As [`DocumentBuf::validated`], of what other documents lie in.
    ///
    /// # Errors
    /// As [`DocumentBuf::validated`]; [`DocError::TooDeep`] beyond [`ANSWER_DEPTH_MAX`].
    pub fn validated_answer(bytes: Bytes) -> Result<DocumentBuf, DocError> {
        validate_to(&bytes, ANSWER_DEPTH_MAX)?;
        Ok(DocumentBuf::from_validated(bytes))
    }

    /// Takes bytes that were validated when they came in.
    pub fn from_validated(bytes: Bytes) -> DocumentBuf {
        DocumentBuf { bytes, index: None }
    }

    /// Borrows the document.
    pub fn view(&self) -> Document<'_> {
        Document { bytes: &self.bytes, index: self.index.as_ref().map(Attached::for_view) }
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
        &self.bytes
    }

    /// The document's bytes, shared.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
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

impl PartialEq for Document<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Document<'_> {}

impl Hash for Document<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
    }
}

impl PartialEq for DocumentBuf {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for DocumentBuf {}

impl Hash for DocumentBuf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
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
