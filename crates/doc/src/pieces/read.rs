//! Pieces back into BSON: whole, some outermost fields, one path. They come from disk: every step
//! is checked, and nothing is reserved by a length that they give.

use frond_store::{ChunkHash, ChunkStore};
use frond_tree::{Sequence, TreeFormat};

use super::item::{Body, BodyRef, Item, ItemRef, Layout, has_name};
use super::names::Names;
use super::{Container, LargeDocument, PiecesError};
use crate::builder::position_name;
use crate::document::value::{Value, ValueBuf};
use crate::document::{DEPTH_MAX, DocumentBuf};
use crate::element_type::ElementType;
use crate::error::DocError;

/// An element that a path leads to through containers.
#[derive(Clone, Debug)]
pub struct LocatedElement {
    /// The levels from the outermost container on.
    pub(super) levels: Vec<Level>,
    /// The number of the path's parts that led to the last container.
    pub part_count: usize,
    /// The item that the next part names there; `None` if there is none.
    pub item: Option<(u64, Item)>,
}

/// The elements of a container that a caller wants, and how much of them.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// All of all of them.
    All,
    /// Those that are no documents or arrays that lie elsewhere, which aren't read.
    Short,
    /// The documents among them, at least with their fields of these names.
    Fields(&'a [&'a [u8]]),
    /// All of them, but of documents at least their fields of these names.
    AllWithFields(&'a [&'a [u8]]),
}

impl Part<'_> {
    fn has(&self, item: &ItemRef<'_>) -> bool {
        match self {
            Part::All | Part::AllWithFields(_) => true,
            Part::Short => !matches!(item.body, BodyRef::Elsewhere { layout: Some(_), .. }),
            Part::Fields(_) => item.kind == ElementType::Document,
        }
    }
}

/// A container that a path leads through.
#[derive(Clone, Debug)]
pub(super) struct Level {
    pub(super) container: Container,
    /// The item that leads to the next one, and its position; of the last one none.
    pub(super) item: Option<(u64, Item)>,
}

impl LocatedElement {
    pub(super) fn container(&self) -> Container {
        self.levels.last().expect("a path begins in the outermost container").container
    }

    /// Whether the last container is an array whose elements are named by their positions.
    pub fn is_in_array(&self) -> bool {
        self.container().layout == Layout::Array
    }

    /// Whether the way to the last container, and that itself, are documents.
    pub fn is_in_documents(&self) -> bool {
        self.levels.iter().all(|level| level.container.layout == Layout::Document)
    }

    /// Whether it is such an array or a document, and no array with other names.
    pub fn is_plain(&self) -> bool {
        self.container().layout != Layout::NamedArray
    }

    /// The last container's name: containers of one name have the same elements.
    pub fn container_hash(&self) -> ChunkHash {
        self.container().sequence.root
    }

    /// Returns how many elements the last container has.
    ///
    /// # Errors
    /// As the store.
    pub fn count(&self, store: &dyn ChunkStore) -> Result<u64, PiecesError> {
        Ok(self.container().sequence.count(store)?)
    }
}

impl LargeDocument {
    /// Reads the whole document.
    ///
    /// # Errors
    /// As the store; [`PiecesError::Document`] if the pieces make no document of that length, or
    /// one of 2 GiB and more.
    pub fn read(&self, store: &dyn ChunkStore) -> Result<DocumentBuf, PiecesError> {
        let mut bytes = Vec::new();
        append_container(store, &self.root, &mut bytes, 1)?;
        Ok(DocumentBuf::from_validated(bytes.into()))
    }

    /// Reads the outermost fields of these names, in the document's order.
    ///
    /// # Errors
    /// As [`LargeDocument::read`].
    pub fn project(
        &self,
        store: &dyn ChunkStore,
        names: &[&[u8]],
    ) -> Result<DocumentBuf, PiecesError> {
        let mut wanted: Vec<Item> = Vec::new();
        let names = Names::of(names);
        self.visit(store, &self.root, &mut |_, item| {
            // No name stands twice; when all are found, nothing else is read.
            if names.contains(item.name) {
                wanted.push(item.to_item());
            }
            wanted.len() == names.count()
        })?;
        let mut bytes = vec![0; size_of::<i32>()];
        for item in &wanted {
            append_element(
                store,
                self.root.sequence.format,
                &item.name,
                item.view(),
                &mut bytes,
                1,
            )?;
        }
        close(&mut bytes, 0)?;
        Ok(DocumentBuf::from_validated(bytes.into()))
    }

    /// Follows a path through containers, as far as it leads: documents by name, arrays by
    /// position.
    ///
    /// # Errors
    /// As [`LargeDocument::read`].
    pub fn find(
        &self,
        store: &dyn ChunkStore,
        parts: &[&str],
    ) -> Result<LocatedElement, PiecesError> {
        let outermost = Level { container: self.root, item: None };
        let mut found = LocatedElement { levels: vec![outermost], part_count: 0, item: None };
        for part in parts {
            let container = found.container();
            found.item = child(store, &container, part)?;
            let Some((_, item)) = &found.item else { break };
            let Body::Elsewhere { layout: Some(layout), bytes, root } = item.body else { break };
            if found.part_count + 1 == parts.len() || DEPTH_MAX <= found.levels.len() {
                break;
            }
            let sequence = Sequence { root, format: container.sequence.format };
            if let Some(last) = found.levels.last_mut() {
                last.item = found.item.take();
            }
            let container = Container { sequence, layout, bytes };
            found.levels.push(Level { container, item: None });
            found.part_count += 1;
        }
        Ok(found)
    }

    /// Reads the value at a path through documents and, by number, arrays. One path of chunks.
    ///
    /// # Errors
    /// As [`LargeDocument::read`].
    pub fn get(
        &self,
        store: &dyn ChunkStore,
        parts: &[&str],
    ) -> Result<Option<ValueBuf>, PiecesError> {
        let found = self.find(store, parts)?;
        let Some((_, item)) = &found.item else { return Ok(None) };
        let value = self.value_of(store, item)?;
        let mut value = value.as_value();
        for part in &parts[found.part_count + 1..] {
            let inner = match value {
                Value::Document(document) => document.get(part),
                Value::Array(array) => array.as_document().get(part),
                _ => None,
            };
            let Some(inner) = inner else { return Ok(None) };
            value = inner;
        }
        Ok(Some(value.to_buf()))
    }

    /// Calls `visit` with the position and value of each element of the container that `found` ends
    /// in, until it says `true`; `part` selects the elements, and how much of them.
    ///
    /// # Errors
    /// As [`LargeDocument::read`].
    pub fn visit_values(
        &self,
        store: &dyn ChunkStore,
        found: &LocatedElement,
        part: Part<'_>,
        visit: &mut dyn FnMut(u64, Value<'_>) -> bool,
    ) -> Result<(), PiecesError> {
        let (mut failure, mut bytes) = (None, Vec::new());
        self.visit(store, &found.container(), &mut |position, item| {
            if !part.has(&item) {
                return false;
            }
            match self.part_of_value(store, item, part, &mut bytes) {
                Ok(value) => visit(position, value),
                Err(error) => {
                    failure = Some(error);
                    true
                }
            }
        })?;
        failure.map_or(Ok(()), Err)
    }

    /// Calls `visit` with the value of the element at `position` of the container that `found` ends
    /// in, if there is one.
    ///
    /// # Errors
    /// As [`LargeDocument::read`].
    pub fn visit_value(
        &self,
        store: &dyn ChunkStore,
        found: &LocatedElement,
        position: u64,
        part: Part<'_>,
        visit: &mut dyn FnMut(Value<'_>),
    ) -> Result<(), PiecesError> {
        let container = found.container();
        let Some(item) = container.sequence.get(store, position)? else { return Ok(()) };
        let item = ItemRef::decode(&item, container.layout)?;
        visit(self.part_of_value(store, item, part, &mut Vec::new())?);
        Ok(())
    }

    /// The value of an item, or the part that is wanted of it; put together in `bytes` where it
    /// lies elsewhere.
    fn part_of_value<'a>(
        &self,
        store: &dyn ChunkStore,
        item: ItemRef<'a>,
        part: Part<'_>,
        bytes: &'a mut Vec<u8>,
    ) -> Result<Value<'a>, PiecesError> {
        bytes.clear();
        let value = match (item.body, part) {
            (BodyRef::Here(value), _) => value,
            (
                BodyRef::Elsewhere { layout: Some(Layout::Document), bytes: length, root },
                Part::Fields(names) | Part::AllWithFields(names),
            ) => {
                let sequence = Sequence { root, format: self.root.sequence.format };
                let container = Container { sequence, layout: Layout::Document, bytes: length };
                self.append_fields(store, &container, names, bytes)?;
                bytes
            }
            _ => {
                append_value(store, self.root.sequence.format, item, bytes, 1)?;
                bytes
            }
        };
        let value = crate::document::decode_value(item.kind, value);
        value.ok_or_else(|| PiecesError::damaged("a value of another type"))
    }

    /// Appends a document of the fields of these names.
    fn append_fields(
        &self,
        store: &dyn ChunkStore,
        container: &Container,
        names: &[&[u8]],
        bytes: &mut Vec<u8>,
    ) -> Result<(), PiecesError> {
        let start = bytes.len();
        bytes.extend_from_slice(&[0; size_of::<i32>()]);
        let mut failure = None;
        self.visit(store, container, &mut |_, item| {
            if names.contains(&item.name) {
                let format = container.sequence.format;
                failure = append_element(store, format, item.name, item, bytes, 1).err();
            }
            failure.is_some()
        })?;
        failure.map_or(Ok(()), Err)?;
        close(bytes, start)
    }

    /// Reads an item's value.
    ///
    /// # Errors
    /// As [`LargeDocument::read`].
    pub fn value_of(&self, store: &dyn ChunkStore, item: &Item) -> Result<ValueBuf, PiecesError> {
        let mut bytes = Vec::new();
        self.append_value_of(store, item, &mut bytes)?;
        let value = crate::document::decode_value(item.kind, &bytes);
        Ok(value.ok_or_else(|| PiecesError::damaged("a value of another type"))?.to_buf())
    }

    /// Appends the bytes of an item's value.
    pub(super) fn append_value_of(
        &self,
        store: &dyn ChunkStore,
        item: &Item,
        bytes: &mut Vec<u8>,
    ) -> Result<(), PiecesError> {
        append_value(store, self.root.sequence.format, item.view(), bytes, 1)
    }

    /// Reads a container's BSON.
    pub(super) fn bytes_of(
        &self,
        store: &dyn ChunkStore,
        container: &Container,
    ) -> Result<Vec<u8>, PiecesError> {
        let mut bytes = Vec::new();
        append_container(store, container, &mut bytes, 1)?;
        Ok(bytes)
    }

    /// Visits a container's items until `visit` says `true`.
    pub(super) fn visit(
        &self,
        store: &dyn ChunkStore,
        container: &Container,
        visit: &mut dyn FnMut(u64, ItemRef<'_>) -> bool,
    ) -> Result<(), PiecesError> {
        let mut failure = None;
        container.sequence.visit(store, 0, &mut |position, item| match ItemRef::decode(
            item,
            container.layout,
        ) {
            Ok(item) => visit(position, item),
            Err(error) => {
                failure = Some(error);
                true
            }
        })?;
        failure.map_or(Ok(()), Err)
    }
}

/// The item that a part of a path leads to, and its position.
pub(super) fn child(
    store: &dyn ChunkStore,
    container: &Container,
    part: &str,
) -> Result<Option<(u64, Item)>, PiecesError> {
    if container.layout == Layout::Array {
        let is_position = part == "0" || !part.starts_with(['0', '+']);
        let Some(position) = part.parse().ok().filter(|_| is_position) else { return Ok(None) };
        let item = container.sequence.get(store, position)?;
        let Some(item) = item else { return Ok(None) };
        let item = ItemRef::decode(&item, container.layout)?.to_item();
        return Ok(Some((position, item)));
    }
    let mut found = None;
    container.sequence.visit(store, 0, &mut |position, item| {
        let is_it = has_name(item, part.as_bytes());
        if is_it {
            let item = ItemRef::decode(item, container.layout);
            found = Some(item.map(|item| (position, item.to_item())));
        }
        is_it
    })?;
    found.transpose()
}

/// Appends a container's BSON. `depth` documents and arrays are open, it counted.
fn append_container(
    store: &dyn ChunkStore,
    container: &Container,
    bytes: &mut Vec<u8>,
    depth: usize,
) -> Result<(), PiecesError> {
    if DEPTH_MAX < depth {
        return Err(PiecesError::damaged("nested too deep"));
    }
    let start = bytes.len();
    bytes.extend_from_slice(&[0; size_of::<i32>()]);
    let (mut digits, mut failure) = ([0; 20], None);
    container.sequence.visit(store, 0, &mut |position, item| {
        let appended = ItemRef::decode(item, container.layout).and_then(|item| {
            let name = match container.layout {
                Layout::Array => position_name(position as usize, &mut digits).as_bytes(),
                _ => item.name,
            };
            if container.bytes < item.element_bytes().saturating_add((bytes.len() - start) as u64) {
                return Err(PiecesError::damaged("longer than its pieces say"));
            }
            append_element(store, container.sequence.format, name, item, bytes, depth)
        });
        failure = appended.err();
        failure.is_some()
    })?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    close(bytes, start)?;
    if (bytes.len() - start) as u64 != container.bytes {
        return Err(PiecesError::damaged("not as long as its pieces say"));
    }
    Ok(())
}

fn append_element(
    store: &dyn ChunkStore,
    format: TreeFormat,
    name: &[u8],
    item: ItemRef<'_>,
    bytes: &mut Vec<u8>,
    depth: usize,
) -> Result<(), PiecesError> {
    bytes.push(item.kind as u8);
    bytes.extend_from_slice(name);
    bytes.push(0);
    append_value(store, format, item, bytes, depth)
}

pub(super) fn append_value(
    store: &dyn ChunkStore,
    format: TreeFormat,
    item: ItemRef<'_>,
    bytes: &mut Vec<u8>,
    depth: usize,
) -> Result<(), PiecesError> {
    let (layout, length, root) = match item.body {
        BodyRef::Here(value) => {
            bytes.extend_from_slice(value);
            return Ok(());
        }
        BodyRef::Elsewhere { layout, bytes, root } => (layout, bytes, root),
    };
    let sequence = Sequence { root, format };
    if let Some(layout) = layout {
        let container = Container { sequence, layout, bytes: length };
        return append_container(store, &container, bytes, depth + 1);
    }
    let start = bytes.len();
    let is_too_long = sequence.visit(store, 0, &mut |_, slice| {
        bytes.extend_from_slice(slice);
        length < (bytes.len() - start) as u64
    })?;
    let is_whole = crate::raw::value_bytes(item.kind, &bytes[start..]);
    if is_too_long
        || (bytes.len() - start) as u64 != length
        || is_whole != Some(bytes.len() - start)
        || item.kind == ElementType::Document
    {
        return Err(PiecesError::damaged("a value of another length"));
    }
    Ok(())
}

/// Ends the document whose length stands at `start`.
pub(super) fn close(bytes: &mut Vec<u8>, start: usize) -> Result<(), PiecesError> {
    bytes.push(0);
    let length = i32::try_from(bytes.len() - start)
        .map_err(|_| DocError::TooLarge { bytes: bytes.len(), max: i32::MAX as usize })?;
    bytes[start..start + size_of::<i32>()].copy_from_slice(&length.to_le_bytes());
    Ok(())
}
