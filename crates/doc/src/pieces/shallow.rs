//! Documents in memory whose long values stay in the store: each is a [`Reference`].
//!
//! 1. [`LargeDocument::shallow`] reads a document's outermost container, [`open`] one level of what
//!    a reference stands for, [`whole`] all of it.
//! 2. Such a document is built as any other ([`super::build`]): what a reference stands for is an
//!    item already. So a document that differs from another in one field is read and written as its
//!    outermost container alone.

use std::ops::Range;

use frond_store::{ChunkHash, ChunkStore};
use frond_tree::{Sequence, TreeFormat};

use super::item::{BodyRef, ItemRef, Layout};
use super::names::Names;
use super::read::{append_value, close};
use super::{Container, LargeDocument, PiecesError, piece_format};
use crate::builder::position_name;
use crate::document::value::ValueBuf;
use crate::document::{Document, DocumentBuf};
use crate::element_type::ElementType;
use crate::raw::{RawElement, RawElements};
use crate::reference::{REFERENCE_BYTES, Reference};

/// The least bytes of a document with a reference: its length, a type byte, a name's end, the
/// reference, a final zero.
const HOLDER_BYTES: usize = 4 + 1 + 1 + REFERENCE_BYTES + 1;

impl LargeDocument {
    /// The document with references for what lies elsewhere; only the outermost fields of these
    /// names, if they are given.
    ///
    /// # Errors
    /// As [`LargeDocument::read`].
    pub fn shallow(
        &self,
        store: &dyn ChunkStore,
        names: Option<&[&[u8]]>,
    ) -> Result<DocumentBuf, PiecesError> {
        let mut bytes = Vec::new();
        append_shallow(store, &self.root, names, &mut bytes, 1)?;
        Ok(DocumentBuf::from_validated(bytes.into()))
    }

    /// Returns how many outermost fields it has.
    ///
    /// # Errors
    /// As the store.
    pub fn field_count(&self, store: &dyn ChunkStore) -> Result<u64, PiecesError> {
        Ok(self.root.sequence.count(store)?)
    }
}

/// Reads the value that a reference stands for, with references in turn for values that lie
/// elsewhere.
///
/// # Errors
/// As [`LargeDocument::read`].
pub fn open(store: &dyn ChunkStore, reference: Reference<'_>) -> Result<ValueBuf, PiecesError> {
    // A document of one field, whose name is empty.
    let mut bytes = vec![0; size_of::<i32>()];
    bytes.extend_from_slice(&[reference.kind() as u8, 0]);
    match container(reference)? {
        Some(container) => {
            append_shallow(store, &container, None, &mut bytes, reference.depth())?;
        }
        None => append_referred(store, reference, &mut bytes)?,
    }
    close(&mut bytes, 0)?;
    Ok(ValueBuf::from_only_field(DocumentBuf::from_validated(bytes.into())))
}

/// Returns how many elements an array has that a reference stands for: O(1).
///
/// # Errors
/// As [`LargeDocument::read`].
pub fn element_count(store: &dyn ChunkStore, array: Reference<'_>) -> Result<u64, PiecesError> {
    match container(array)? {
        Some(container) => Ok(container.sequence.count(store)?),
        None => {
            Ok(open(store, array)?.as_value().as_array().map_or(0, |array| array.iter().count())
                as u64)
        }
    }
}

/// Those elements of an array that a reference stands for which lie at `positions`, as an array,
/// with references for what lies elsewhere in turn. Others aren't read.
///
/// # Errors
/// As [`LargeDocument::read`].
pub fn elements(
    store: &dyn ChunkStore,
    array: Reference<'_>,
    positions: Range<u64>,
) -> Result<ValueBuf, PiecesError> {
    let mut bytes = vec![0; size_of::<i32>()];
    bytes.extend_from_slice(&[ElementType::Array as u8, 0]);
    let start = bytes.len();
    bytes.extend_from_slice(&[0; size_of::<i32>()]);
    let mut digits = [0; 20];
    match container(array)? {
        Some(container) => {
            let mut failure = None;
            container.sequence.visit(store, positions.start, &mut |position, item| {
                if positions.end <= position {
                    return true;
                }
                let name = position_name((position - positions.start) as usize, &mut digits);
                match ItemRef::decode(item, container.layout) {
                    Ok(item) => append_item(&mut bytes, name.as_bytes(), item, array.depth()),
                    Err(error) => failure = Some(error),
                }
                failure.is_some()
            })?;
            failure.map_or(Ok(()), Err)?;
        }
        None => {
            let opened = open(store, array)?;
            let skipped = usize::try_from(positions.start).unwrap_or(usize::MAX);
            let count = positions.end.saturating_sub(positions.start);
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            let elements = opened.as_value().as_array().into_iter().flat_map(|it| it.elements());
            for (position, element) in elements.skip(skipped).take(count).enumerate() {
                bytes.push(element.kind as u8);
                bytes.extend_from_slice(position_name(position, &mut digits).as_bytes());
                bytes.push(0);
                bytes.extend_from_slice(element.value);
            }
        }
    }
    close(&mut bytes, start)?;
    close(&mut bytes, 0)?;
    Ok(ValueBuf::from_only_field(DocumentBuf::from_validated(bytes.into())))
}

/// The document without references: what they stand for is read.
///
/// # Errors
/// As [`LargeDocument::read`].
pub fn whole(store: &dyn ChunkStore, document: Document<'_>) -> Result<DocumentBuf, PiecesError> {
    let mut bytes = Vec::new();
    append_whole(store, document.as_bytes(), &mut bytes)?;
    Ok(DocumentBuf::from_validated(bytes.into()))
}

/// Whether a reference stands in the document, at any depth.
pub fn has_references(document: Document<'_>) -> bool {
    any_reference(document.as_bytes(), &|_, _| true)
}

/// Whether a reference stands deeper in the document than what it stands for lay in its own, so
/// that the whole may be nested too deep.
pub fn has_deepened(document: Document<'_>) -> bool {
    any_reference_at(document.as_bytes(), 1, &|reference, depth| reference.depth() <= depth)
}

/// Returns how long the document is without references.
pub fn whole_bytes(document: Document<'_>) -> u64 {
    bytes_of(document.as_bytes())
}

fn any_reference(bytes: &[u8], test: &dyn Fn(Reference<'_>, usize) -> bool) -> bool {
    any_reference_at(bytes, 1, test)
}

/// `depth` documents and arrays are open, that of `bytes` counted. The recursion is as deep as the
/// document, which was checked.
fn any_reference_at(
    bytes: &[u8],
    depth: usize,
    test: &dyn Fn(Reference<'_>, usize) -> bool,
) -> bool {
    HOLDER_BYTES <= bytes.len()
        && RawElements::new(bytes).any(|element| match element.kind {
            ElementType::Reference => {
                Reference::decode(element.value).is_some_and(|reference| test(reference, depth))
            }
            ElementType::Document | ElementType::Array => {
                any_reference_at(element.value, depth + 1, test)
            }
            _ => false,
        })
}

fn bytes_of(bytes: &[u8]) -> u64 {
    if bytes.len() < HOLDER_BYTES {
        return bytes.len() as u64;
    }
    let inner: u64 = RawElements::new(bytes)
        .map(|element| match element.kind {
            ElementType::Reference => {
                let more = Reference::decode(element.value).map_or(0, |it| it.bytes());
                more.saturating_sub(REFERENCE_BYTES as u64)
            }
            ElementType::Document | ElementType::Array => {
                bytes_of(element.value) - element.value.len() as u64
            }
            _ => 0,
        })
        .fold(0, u64::saturating_add);
    inner.saturating_add(bytes.len() as u64)
}

/// Returns how long a value is without references.
pub(super) fn value_bytes(element: &RawElement<'_>) -> u64 {
    match element.kind {
        ElementType::Reference => Reference::decode(element.value).map_or(0, |it| it.bytes()),
        ElementType::Document | ElementType::Array => bytes_of(element.value),
        _ => element.value.len() as u64,
    }
}

/// The item that a reference stands for, in no container yet.
pub(super) fn item_of(reference: Reference<'_>) -> Result<ItemRef<'static>, PiecesError> {
    let layout = match reference.layout() {
        0 => None,
        1 => Some(Layout::Document),
        2 => Some(Layout::Array),
        3 => Some(Layout::NamedArray),
        _ => return Err(PiecesError::damaged("a reference of another layout")),
    };
    let root = ChunkHash(reference.root());
    let body = BodyRef::Elsewhere { layout, bytes: reference.bytes(), root };
    Ok(ItemRef { kind: reference.kind(), name: &[], body })
}

pub(super) fn container(reference: Reference<'_>) -> Result<Option<Container>, PiecesError> {
    let BodyRef::Elsewhere { layout, bytes, root } = item_of(reference)?.body else {
        return Ok(None);
    };
    let sequence = Sequence { root, format: reading_format() };
    Ok(layout.map(|layout| Container { sequence, layout, bytes }))
}

/// The parameters matter to a caller that changes a container.
pub(super) fn reading_format() -> TreeFormat {
    piece_format(TreeFormat::new(0))
}

fn append_shallow(
    store: &dyn ChunkStore,
    container: &Container,
    names: Option<&[&[u8]]>,
    bytes: &mut Vec<u8>,
    depth: usize,
) -> Result<(), PiecesError> {
    let names = names.map(Names::of);
    let start = bytes.len();
    bytes.extend_from_slice(&[0; size_of::<i32>()]);
    let (mut digits, mut failure, mut count) = ([0; 20], None, 0);
    container.sequence.visit(store, 0, &mut |position, item| {
        let item = match ItemRef::decode(item, container.layout) {
            Ok(item) => item,
            Err(error) => {
                failure = Some(error);
                return true;
            }
        };
        if names.as_ref().is_some_and(|names| !names.contains(item.name)) {
            return false;
        }
        count += 1;
        let name = match container.layout {
            Layout::Array => position_name(position as usize, &mut digits).as_bytes(),
            _ => item.name,
        };
        append_item(bytes, name, item, depth);
        // No outermost name stands twice.
        names.as_ref().is_some_and(|names| names.count() == count)
    })?;
    failure.map_or(Ok(()), Err)?;
    close(bytes, start)
}

fn append_item(bytes: &mut Vec<u8>, name: &[u8], item: ItemRef<'_>, depth: usize) {
    let is_here = matches!(item.body, BodyRef::Here(_));
    bytes.push(if is_here { item.kind as u8 } else { ElementType::Reference as u8 });
    bytes.extend_from_slice(name);
    bytes.push(0);
    match item.body {
        BodyRef::Here(value) => bytes.extend_from_slice(value),
        BodyRef::Elsewhere { layout, bytes: length, root } => {
            let layout = match layout {
                None => 0,
                Some(Layout::Document) => 1,
                Some(Layout::Array) => 2,
                Some(Layout::NamedArray) => 3,
            };
            Reference::append(bytes, item.kind, layout, depth + 1, length, &root.0);
        }
    }
}

/// Appends the bytes of what a reference stands for.
pub(super) fn append_referred(
    store: &dyn ChunkStore,
    reference: Reference<'_>,
    bytes: &mut Vec<u8>,
) -> Result<(), PiecesError> {
    append_value(store, reading_format(), item_of(reference)?, bytes, 1)
}

fn append_whole(
    store: &dyn ChunkStore,
    document: &[u8],
    bytes: &mut Vec<u8>,
) -> Result<(), PiecesError> {
    if document.len() < HOLDER_BYTES {
        bytes.extend_from_slice(document);
        return Ok(());
    }
    let start = bytes.len();
    bytes.extend_from_slice(&[0; size_of::<i32>()]);
    for element in RawElements::new(document) {
        let reference = match element.kind {
            ElementType::Reference => Reference::decode(element.value),
            _ => None,
        };
        bytes.push(reference.map_or(element.kind, |it| it.kind()) as u8);
        bytes.extend_from_slice(element.name);
        bytes.push(0);
        match (reference, element.kind) {
            (Some(reference), _) => append_referred(store, reference, bytes)?,
            (None, ElementType::Document | ElementType::Array) => {
                append_whole(store, element.value, bytes)?;
            }
            (None, _) => bytes.extend_from_slice(element.value),
        }
    }
    close(bytes, start)
}
