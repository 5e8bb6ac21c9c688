//! From BSON to pieces: recursion follows the document's nesting, which validation has bounded.

mod dedup;

use std::collections::HashSet;

use bytes::Bytes;
use frond_store::{ChunkHash, ChunkStore};
use frond_tree::{Sequence, TreeError, TreeFormat};

use super::item::{Body, Item, Layout, is_named_by_position, refers};
use super::{
    Container, ITEM_BYTES_MAX, ITEM_VALUE_BYTES_MAX, LARGE_DOCUMENT_BYTES, LargeDocument,
    NAME_BYTES_MAX, PiecesError, cut, piece_format, shallow,
};
use crate::document::Document;
use crate::element_type::ElementType;
use crate::raw::{RawElement, RawElements};
use crate::reference::Reference;
use dedup::DedupedParts;

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
    build_of(store, format, document, false)
}

/// As [`build`], of a document some of whose values may be references to what lies in the store
/// already, made in a tree of the same format.
///
/// # Errors
/// As [`build`].
pub fn build_referring(
    store: &dyn ChunkStore,
    format: TreeFormat,
    document: Document<'_>,
) -> Result<Option<LargeDocument>, TreeError> {
    build_of(store, format, document, true)
}

fn build_of(
    store: &dyn ChunkStore,
    format: TreeFormat,
    document: Document<'_>,
    refers: bool,
) -> Result<Option<LargeDocument>, TreeError> {
    let bytes = match refers {
        true => shallow::whole_bytes(document),
        false => document.as_bytes().len() as u64,
    };
    if !is_large(bytes)
        || document.elements().any(|it| has_long_name(&it))
        || has_name_twice(document)
    {
        return Ok(None);
    }
    let builder = Builder { store, format: piece_format(format), refers };
    let root =
        builder.container(Layout::Document, document.as_bytes(), &mut DedupedParts::default())?;
    Ok(Some(LargeDocument { root }))
}

/// Whether two outermost fields have one name. A reader of some fields must not have to look
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
    /// The format of containers.
    pub(super) format: TreeFormat,
    /// Whether references stand among the values.
    pub(super) refers: bool,
}

impl Builder<'_> {
    /// Puts a container, given its BSON.
    fn container<'b>(
        &self,
        layout: Layout,
        bson: &'b [u8],
        known_parts: &mut DedupedParts<'b>,
    ) -> Result<Container, TreeError> {
        let mut items = RawElements::new(bson).map(|element| {
            let name = if layout.has_names() { element.name } else { &[] };
            let element = RawElement { name, ..element };
            Ok(self.item_among(layout, element, known_parts)?.encode(layout))
        });
        let sequence = Sequence::build_referring(self.store, self.format, &mut items, refers)?;
        let bytes = match self.refers {
            true => shallow::whole_bytes(Document::from_validated(bson)),
            false => bson.len() as u64,
        };
        Ok(Container { sequence, layout, bytes })
    }

    /// Makes the item of an element of a container of layout `around`, and puts what it refers to.
    pub(super) fn item(&self, around: Layout, element: RawElement<'_>) -> Result<Item, TreeError> {
        self.item_among(around, element, &mut DedupedParts::default())
    }

    /// The same of a document whose containers so far are `known_parts`.
    fn item_among<'b>(
        &self,
        around: Layout,
        element: RawElement<'b>,
        known_parts: &mut DedupedParts<'b>,
    ) -> Result<Item, TreeError> {
        let RawElement { kind, name, value } = element;
        if let (ElementType::Reference, Some(reference)) = (kind, Reference::decode(value)) {
            return self.referred(around, name, reference);
        }
        let bytes = match self.refers {
            true => shallow::value_bytes(&element),
            false => value.len() as u64,
        };
        let body = if bytes <= around.value_bytes_max(kind) as u64 {
            Body::Here(Bytes::copy_from_slice(value))
        } else if matches!(kind, ElementType::Document | ElementType::Array) {
            let (layout, root) = match known_parts.get(kind, value) {
                Some(known) => known,
                None => self.nested(kind, value, known_parts)?,
            };
            Body::Elsewhere { layout: Some(layout), bytes, root }
        } else {
            Body::Elsewhere { layout: None, bytes, root: self.slices(value)? }
        };
        Ok(Item { kind, name: Bytes::copy_from_slice(name), body })
    }

    /// Puts a nested document or array that wasn't met.
    fn nested<'b>(
        &self,
        kind: ElementType,
        bson: &'b [u8],
        known_parts: &mut DedupedParts<'b>,
    ) -> Result<(Layout, ChunkHash), TreeError> {
        let layout = match kind {
            ElementType::Document => Layout::Document,
            _ if is_named_by_position(bson) => Layout::Array,
            _ => Layout::NamedArray,
        };
        let root = self.container(layout, bson, known_parts)?.sequence.root;
        known_parts.add(kind, bson, (layout, root));
        Ok((layout, root))
    }

    /// Makes the item of a value that is there already. A value that lay by itself in an array may
    /// be short enough to lie in a document.
    fn referred(
        &self,
        around: Layout,
        name: &[u8],
        reference: Reference<'_>,
    ) -> Result<Item, TreeError> {
        let kind = reference.kind();
        let failed = |error| match error {
            PiecesError::Tree(error) => error,
            error => {
                TreeError::Damaged { hash: ChunkHash(reference.root()), what: error.to_string() }
            }
        };
        let name = Bytes::copy_from_slice(name);
        if reference.bytes() <= around.value_bytes_max(kind) as u64 {
            let mut value = Vec::new();
            shallow::append_referred(self.store, reference, &mut value).map_err(failed)?;
            return Ok(Item { kind, name, body: Body::Here(value.into()) });
        }
        let item = shallow::item_of(reference).map_err(failed)?;
        Ok(Item { name, ..item.to_item() })
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
