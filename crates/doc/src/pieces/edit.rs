//! Elements in and out of a large document: one path of chunks is rewritten.
//!
//! 1. The containers that change are taken from the innermost on. A container's sequence is
//!    spliced, once; its length in BSON follows from the items that went and came (an array's also
//!    from the digits of its positions).
//! 2. The item that refers to it in the container around it gets its new hash and length, and so on
//!    outward. A container that became short enough to lie in its item does. The way down has met
//!    these items: they aren't looked for again.
//! 3. A document that became short is given back whole: it is stored as such again.
//!
//! So the result is what `build` makes of the same content.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use bytes::Bytes;
use frond_store::ChunkStore;
use frond_tree::Replacement;

use super::build::{Builder, has_long_name, is_large};
use super::item::{Body, Item, ItemRef, Layout, digits_of_names, refers};
use super::{
    Container, ITEM_VALUE_BYTES_MAX, LargeDocument, LocatedElement, NAME_BYTES_MAX, PiecesError,
};
use crate::document::DocumentBuf;
use crate::error::DocError;
use crate::raw::RawElement;

/// An element that is put in: name (not used in arrays), type, and value as in BSON.
pub type Element<'a> = RawElement<'a>;

/// The result of an edit.
#[derive(Clone, Debug)]
pub enum Edited {
    /// A document that is still large; its chunks were put.
    Large(LargeDocument),
    /// One that isn't any more.
    Small(DocumentBuf),
}

/// A splice whose items are made.
#[derive(Debug)]
pub struct Splice {
    found: LocatedElement,
    position: u64,
    removed: u64,
    items: Vec<Item>,
}

/// A part of a container that is replaced.
struct Change {
    position: u64,
    removed: u64,
    /// The item that goes, if it is one and known.
    gone: Option<Item>,
    items: Vec<Item>,
}

/// A container that is to be changed.
struct OpenContainer {
    container: Container,
    /// The item that leads to it, and where that is in the container around it; the outermost has
    /// none.
    item: Option<(u64, Item)>,
    changes: Vec<Change>,
}

/// Containers to be changed, by the positions that lead to them: those that lie deeper come before
/// what they lie in.
#[derive(Default)]
struct OpenContainers(BTreeMap<(Reverse<usize>, Vec<u64>), OpenContainer>);

impl OpenContainers {
    /// Opens what the splice changes, and the containers around that.
    fn add(&mut self, splice: Splice) {
        let Splice { found, position, removed, items } = splice;
        let (mut way, mut item) = (Vec::new(), None);
        for level in found.levels {
            let open = self.0.entry((Reverse(way.len()), way.clone()));
            open.or_insert(OpenContainer { container: level.container, item, changes: Vec::new() });
            item = level.item;
            way.extend(item.as_ref().map(|(position, _)| *position));
        }
        let gone = found.item.filter(|(at, _)| *at == position && removed == 1);
        let gone = gone.map(|(_, item)| item);
        self.change(&way, Change { position, removed, gone, items });
    }

    /// Has an item of an open container replaced.
    fn replace_item(&mut self, way: &[u64], position: u64, old: Item, new: Item) {
        self.change(way, Change { position, removed: 1, gone: Some(old), items: vec![new] });
    }

    fn change(&mut self, way: &[u64], change: Change) {
        let open = self.0.get_mut(&(Reverse(way.len()), way.to_vec()));
        let changes = &mut open.expect("what lies around it was opened with it").changes;
        // Changes at one position stay in their order.
        let place = changes.partition_point(|known| known.position <= change.position);
        changes.insert(place, change);
    }

    /// Takes out the one that lies deepest, and the positions that lead to it.
    fn innermost(&mut self) -> Option<(Vec<u64>, OpenContainer)> {
        self.0.pop_first().map(|((_, way), open)| (way, open))
    }
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
        found: &LocatedElement,
        position: u64,
        removed: u64,
        elements: &[Element<'_>],
    ) -> Result<Option<Edited>, PiecesError> {
        let splice = self.prepare(store, found, position, removed, elements)?;
        splice.map(|splice| self.splice_all(store, vec![splice])).transpose()
    }

    /// Makes the items of such a splice, for [`LargeDocument::splice_all`]. `None` if a name is too
    /// long.
    ///
    /// # Errors
    /// As [`LargeDocument::read`].
    pub fn prepare(
        &self,
        store: &dyn ChunkStore,
        found: &LocatedElement,
        position: u64,
        removed: u64,
        elements: &[Element<'_>],
    ) -> Result<Option<Splice>, PiecesError> {
        if elements.iter().any(has_long_name) {
            return Ok(None);
        }
        let builder = Builder { store, format: self.root.sequence.format, refers: false };
        let mut items = Vec::with_capacity(elements.len());
        for element in elements {
            let layout = found.container().layout;
            let name = if layout.has_names() { element.name } else { &[] };
            items.push(builder.item(layout, RawElement { name, ..*element })?);
        }
        Ok(Some(Splice { found: found.clone(), position, removed, items }))
    }

    /// As [`LargeDocument::splice`] with a single item of this document, which comes from elsewhere
    /// in it and gets that name: what it refers to isn't read. `None` if the name is too long.
    ///
    /// # Errors
    /// As [`LargeDocument::splice`].
    pub fn splice_item(
        &self,
        store: &dyn ChunkStore,
        found: &LocatedElement,
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
        let splice = Splice { found: found.clone(), position, removed, items: vec![item] };
        self.splice_all(store, vec![splice]).map(Some)
    }

    /// Makes several splices of this document at once: what lies on the way to more than one is
    /// written once. They are of different places, none of which lies in another.
    ///
    /// # Errors
    /// As [`LargeDocument::splice`].
    pub fn splice_all(
        &self,
        store: &dyn ChunkStore,
        splices: Vec<Splice>,
    ) -> Result<Edited, PiecesError> {
        let mut open = OpenContainers::default();
        for splice in splices {
            open.add(splice);
        }
        loop {
            let Some((way, container)) = open.innermost() else {
                return Err(PiecesError::damaged("no container to change"));
            };
            let changed = self.splice_items(store, &container)?;
            let Some((position, old)) = container.item else {
                return self.finish(store, changed);
            };
            let item = self.item_of(store, &old, &changed)?;
            let around = &way[..way.len() - 1];
            open.replace_item(around, position, old, item);
        }
    }

    /// Gives the document with that outermost container.
    fn finish(&self, store: &dyn ChunkStore, root: Container) -> Result<Edited, PiecesError> {
        if i32::MAX as u64 <= root.bytes {
            let bytes = usize::try_from(root.bytes).unwrap_or(usize::MAX);
            return Err(DocError::TooLarge { bytes, max: i32::MAX as usize }.into());
        }
        let document = LargeDocument { root };
        match is_large(root.bytes) {
            true => Ok(Edited::Large(document)),
            false => document.read(store).map(Edited::Small),
        }
    }

    /// Splices all that is to be changed in one container.
    fn splice_items(
        &self,
        store: &dyn ChunkStore,
        open: &OpenContainer,
    ) -> Result<Container, PiecesError> {
        let container = &open.container;
        let (mut bytes, mut gone_count, mut come_count) = (container.bytes, 0, 0);
        let mut replacements: Vec<Replacement> = Vec::with_capacity(open.changes.len());
        for change in &open.changes {
            let Change { position, removed, gone, items } = change;
            let gone_bytes = match gone {
                Some(item) => item.view().element_bytes(),
                None => bytes_of_items(store, container, *position, *removed)?,
            };
            let come_bytes: u64 = items.iter().map(|item| item.view().element_bytes()).sum();
            bytes = bytes.saturating_sub(gone_bytes).saturating_add(come_bytes);
            gone_count += removed;
            come_count += items.len() as u64;
            let items = items.iter().map(|item| item.encode(container.layout)).collect();
            replacements.push(Replacement { position: *position, removed: *removed, items });
        }
        if container.layout == Layout::Array && gone_count != come_count {
            let before = container.sequence.count(store)?;
            let after = before.saturating_sub(gone_count) + come_count;
            bytes = bytes
                .saturating_sub(digits_of_names(before))
                .saturating_add(digits_of_names(after));
        }
        let sequence = container.sequence.replace_referring(store, &replacements, refers)?;
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
            let builder = Builder { store, format: self.root.sequence.format, refers: false };
            return Ok(
                builder.item(changed.layout, RawElement { kind, name: &name, value: &value })?
            );
        }
        let (bytes, root) = (changed.bytes, changed.sequence.root);
        let body = Body::Elsewhere { layout: Some(changed.layout), bytes, root };
        Ok(Item { kind, name, body })
    }
}

/// Returns how long so many items are as elements, see [`ItemRef::element_bytes`].
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
