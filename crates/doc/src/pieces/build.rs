//! From BSON to pieces: recursion follows the document's nesting, which validation has bounded.

use std::collections::HashSet;

use bytes::Bytes;
use frond_store::{ChunkHash, ChunkStore};
use frond_tree::{Sequence, TreeError, TreeFormat};

use super::item::{Body, Item, Layout, is_named_by_position, refers};
use super::{
    Container, ITEM_BYTES_MAX, ITEM_VALUE_BYTES_MAX, LARGE_DOCUMENT_BYTES, LargeDocument,
    NAME_BYTES_MAX, cut, piece_format,
};
use crate::document::Document;
use crate::raw::{RawElement, RawElements};
use crate::value::ElementType;

/// Stores a document as pieces; `None` if it isn't large. Chunks are put, not synced. `format` is
/// that of the tree that will hold it.
///
/// # Errors
/// As the store's.
pub fn build(
    store: &dyn ChunkStore,
    format: TreeFormat,
    document: Document<'_>,
) -> Result<Option<LargeDocument>, TreeError> {
    let bytes = document.as_bytes();
    if !is_large(bytes.len() as u64)
        || document.elements().any(|it| has_long_name(&it))
        || has_name_twice(document)
    {
        return Ok(None);
    }
    let builder = Builder { store, format: piece_format(format) };
    let root = builder.container(Layout::Document, bytes)?;
    Ok(Some(LargeDocument { root }))
}

/// Whether two outermost fields have one name. Whoever asks for some fields must not have to look
/// through all for another of the same name.
fn has_name_twice(document: Document<'_>) -> bool {
    let mut names = HashSet::new();
    !document.elements().all(|element| names.insert(element.name))
}

/// Whether a document of so many bytes is stored as pieces (if its names are no hindrance).
pub(super) fn is_large(bytes: u64) -> bool {
    LARGE_DOCUMENT_BYTES as u64 <= bytes
}

/// Whether an element's name is too long, or that of one in what would become a container.
pub(super) fn has_long_name(element: &RawElement<'_>) -> bool {
    let is_container = matches!(element.kind, ElementType::Document | ElementType::Array);
    NAME_BYTES_MAX < element.name.len()
        || is_container
            && ITEM_VALUE_BYTES_MAX < element.value.len()
            && RawElements::new(element.value).any(|inner| has_long_name(&inner))
}

/// Puts containers and slices.
pub(super) struct Builder<'a> {
    pub(super) store: &'a dyn ChunkStore,
    /// Of containers.
    pub(super) format: TreeFormat,
}

impl Builder<'_> {
    /// Puts a container, given its BSON.
    fn container(&self, layout: Layout, bson: &[u8]) -> Result<Container, TreeError> {
        let mut items = RawElements::new(bson).map(|element| {
            let name = if layout.has_names() { element.name } else { &[] };
            Ok(self.item(layout, name, element.kind, element.value)?.encode(layout))
        });
        let sequence = Sequence::build_referring(self.store, self.format, &mut items, refers)?;
        Ok(Container { sequence, layout, bytes: bson.len() as u64 })
    }

    /// Makes the item of an element of a container of layout `around`, and puts what it refers to.
    pub(super) fn item(
        &self,
        around: Layout,
        name: &[u8],
        kind: ElementType,
        value: &[u8],
    ) -> Result<Item, TreeError> {
        let body = if value.len() <= around.value_bytes_max(kind) {
            Body::Here(Bytes::copy_from_slice(value))
        } else {
            let layout = match kind {
                ElementType::Document => Some(Layout::Document),
                ElementType::Array if is_named_by_position(value) => Some(Layout::Array),
                ElementType::Array => Some(Layout::NamedArray),
                _ => None,
            };
            let root = match layout {
                Some(layout) => self.container(layout, value)?.sequence.root,
                None => self.slices(value)?,
            };
            Body::Elsewhere { layout, bytes: value.len() as u64, root }
        };
        Ok(Item { kind, name: Bytes::copy_from_slice(name), body })
    }

    fn slices(&self, mut rest: &[u8]) -> Result<ChunkHash, TreeError> {
        let mut slices = std::iter::from_fn(|| {
            let count = cut::first_piece(rest, ITEM_BYTES_MAX as usize);
            let (slice, after) = rest.split_at(count);
            rest = after;
            (count > 0).then(|| Ok(Bytes::copy_from_slice(slice)))
        });
        Ok(Sequence::build(self.store, self.format, &mut slices)?.root)
    }
}
