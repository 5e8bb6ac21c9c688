//! Elements in and out of a large document: one path of chunks is rewritten.
//!
//! 1. The container's sequence is spliced; its length in BSON follows from the items that went and
//!    came (an array's also from the digits of its positions).
//! 2. The item that refers to it in the container around it gets its new hash and length, and so on
//!    outward. A container that became short enough to lie in its item does. The way down has met these items:
//!    they aren't looked for again.
//! 3. A document that became short is given back whole: it is stored as such again.
//!
//! So the result is what `build` makes of the same content.

use bytes::Bytes;
use frond_store::ChunkStore;

use super::build::{Builder, has_long_name, is_large};
use super::item::{Body, Item, ItemRef, Layout, digits_of_names, refers};
use super::read::Level;
use super::{Container, Found, ITEM_VALUE_BYTES_MAX, LargeDocument, NAME_BYTES_MAX, PiecesError};
use crate::document::DocumentBuf;
use crate::error::DocError;
use crate::raw::RawElement;

/// An element that is put in: name (not used in arrays), type, and value as in BSON.
pub type Element<'a> = RawElement<'a>;

/// What an edit makes.
#[derive(Clone, Debug)]
pub enum Edited {
    /// A document that is still large; its chunks were put.
    Large(LargeDocument),
    /// One that isn't any more.
    Small(DocumentBuf),
}

impl LargeDocument {
    /// In the container that `found` ends in, removes `removed` elements at `position` and puts
    /// `elements` in their place. Chunks are put, not synced. `None` if a name is too long.
    ///
    /// # Errors
    /// As [`LargeDocument::read`]; [`DocError::TooLarge`] from 2 GiB on.
    pub fn splice(
        &self,
        store: &dyn ChunkStore,
        found: &Found,
        position: u64,
        removed: u64,
        elements: &[Element<'_>],
    ) -> Result<Option<Edited>, PiecesError> {
        if elements.iter().any(has_long_name) {
            return Ok(None);
        }
        let builder = Builder { store, format: self.root.sequence.format };
        let mut items = Vec::with_capacity(elements.len());
        for element in elements {
            let layout = found.container().layout;
            let name = if layout.has_names() { element.name } else { &[] };
            items.push(builder.item(layout, name, element.kind, element.value)?);
        }
        self.splice_made(store, found, position, removed, &items).map(Some)
    }

    /// As [`LargeDocument::splice`] with a single item of this document, which comes from elsewhere
    /// in it and gets that name: what it refers to isn't read. `None` if the name is too long.
    ///
    /// # Errors
    /// As [`LargeDocument::splice`].
    pub fn splice_item(
        &self,
        store: &dyn ChunkStore,
        found: &Found,
        position: u64,
        removed: u64,
        item: &Item,
        name: &str,
    ) -> Result<Option<Edited>, PiecesError> {
        if NAME_BYTES_MAX < name.len() {
            return Ok(None);
        }
        let name = if found.is_in_array() { "" } else { name };
        let item = Item { name: Bytes::copy_from_slice(name.as_bytes()), ..item.clone() };
        self.splice_made(store, found, position, removed, &[item]).map(Some)
    }

    fn splice_made(
        &self,
        store: &dyn ChunkStore,
        found: &Found,
        position: u64,
        removed: u64,
        items: &[Item],
    ) -> Result<Edited, PiecesError> {
        let builder = Builder { store, format: self.root.sequence.format };
        let container = found.container();
        let gone_bytes = match &found.item {
            Some((at, item)) if *at == position && removed == 1 => item.view().element_bytes(),
            _ => bytes_of_items(store, &container, position, removed)?,
        };
        let mut changed =
            self.splice_items(store, &container, position, removed, gone_bytes, items)?;
        for Level { container: around, item } in found.levels.iter().rev().skip(1) {
            let (position, old) = item.as_ref().expect("it leads to the container that changed");
            let item = self.item_of(store, old, &changed)?;
            let gone_bytes = old.view().element_bytes();
            changed = self.splice_items(store, around, *position, 1, gone_bytes, &[item])?;
        }
        if i32::MAX as u64 <= changed.bytes {
            let bytes = usize::try_from(changed.bytes).unwrap_or(usize::MAX);
            return Err(DocError::TooLarge { bytes, max: i32::MAX as usize }.into());
        }
        let head = builder.head(changed)?;
        if is_large(changed.bytes) {
            return Ok(Edited::Large(head));
        }
        head.read(store).map(Edited::Small)
    }

    /// Replaces items that take `gone_bytes` as elements.
    fn splice_items(
        &self,
        store: &dyn ChunkStore,
        container: &Container,
        position: u64,
        removed: u64,
        gone_bytes: u64,
        items: &[Item],
    ) -> Result<Container, PiecesError> {
        let come_bytes: u64 = items.iter().map(|item| item.view().element_bytes()).sum();
        let mut bytes = container.bytes.saturating_sub(gone_bytes).saturating_add(come_bytes);
        if container.layout == Layout::Array && removed != items.len() as u64 {
            let before = container.sequence.count(store)?;
            let after = before.saturating_sub(removed) + items.len() as u64;
            bytes = bytes
                .saturating_sub(digits_of_names(before))
                .saturating_add(digits_of_names(after));
        }
        let encoded: Vec<Bytes> = items.iter().map(|item| item.encode(container.layout)).collect();
        let sequence =
            container.sequence.splice_referring(store, position, removed, &encoded, refers)?;
        Ok(Container { sequence, bytes, ..*container })
    }

    /// The item of a container that was changed, in the place of `old`.
    fn item_of(
        &self,
        store: &dyn ChunkStore,
        old: &Item,
        changed: &Container,
    ) -> Result<Item, PiecesError> {
        let (kind, name) = (old.kind, old.name.clone());
        let is_short = changed.bytes <= ITEM_VALUE_BYTES_MAX as u64;
        if changed.layout == Layout::NamedArray || is_short {
            // Its names may be positions by now, which makes it an array like any other.
            let value = self.bytes_of(store, changed)?;
            let builder = Builder { store, format: self.root.sequence.format };
            return Ok(builder.item(changed.layout, &name, kind, &value)?);
        }
        let (bytes, root) = (changed.bytes, changed.sequence.root);
        let body = Body::Elsewhere { layout: Some(changed.layout), bytes, root };
        Ok(Item { kind, name, body })
    }
}

/// How long so many items are as elements, see [`ItemRef::element_bytes`].
fn bytes_of_items(
    store: &dyn ChunkStore,
    container: &Container,
    position: u64,
    count: u64,
) -> Result<u64, PiecesError> {
    let (mut bytes, mut failure) = (0_u64, None);
    if count == 0 {
        return Ok(0);
    }
    container.sequence.visit(store, position, &mut |at, item| {
        match ItemRef::decode(item, container.layout) {
            Ok(item) => bytes = bytes.saturating_add(item.element_bytes()),
            Err(error) => failure = Some(error),
        }
        failure.is_some() || position + count <= at + 1
    })?;
    failure.map_or(Ok(bytes), Err)
}
