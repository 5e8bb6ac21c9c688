//! A large document written element by element, never whole in memory.
//!
//! 1. Each open document or array keeps its elements as BSON while they are short. With the first
//!    that makes it longer than an item may hold it becomes a container: a sequence that grows.
//! 2. When it ends, its item goes to the one around it.
//! 3. An array is taken for one whose elements are named 0, 1, 2, ... until one isn't; then what
//!    was written of it is written again, with names.
//! 4. At the end `_id` is brought to the front, or made; a document that turned out short is read
//!    back.
//!
//! So the result is what [`build`](super::build) makes of the same document after normalisation. A
//! document that can't be stored as pieces is refused, since there is nowhere else to put it.

use std::collections::HashSet;

use bytes::Bytes;
use frond_store::ChunkStore;
use frond_tree::{GrowingSequence, Replacement, Sequence, TreeFormat};

use super::build::{Builder, has_long_name, is_large};
use super::item::{Body, Item, ItemRef, Layout, refers};
use super::{
    Container, Edited, ITEM_VALUE_BYTES_MAX, LargeDocument, NAME_BYTES_MAX, PiecesError,
    piece_format,
};
use crate::builder::position_name;
use crate::document::DEPTH_MAX;
use crate::document::value::ObjectId;
use crate::element_type::ElementType;
use crate::error::DocError;
use crate::raw::{RawElement, RawElements};

/// Writes one document. Chunks are put into the store as they are full, not synced.
pub struct Writer<'a> {
    builder: Builder<'a>,
    /// The value given to empty timestamps among the outermost fields.
    now: u64,
    /// The outermost document first.
    open: Vec<Open<'a>>,
    /// The names of the outermost fields.
    names: HashSet<Box<[u8]>>,
    /// The position of `_id` among them.
    id_position: Option<u64>,
}

/// A document or array that has begun.
struct Open<'a> {
    name: Vec<u8>,
    kind: ElementType,
    layout: Layout,
    /// The length of its BSON so far, the length in front and the zero at its end included.
    bytes: u64,
    count: u64,
    /// Its BSON so far, while it is short.
    short: Vec<u8>,
    /// Its items, once it isn't.
    sequence: Option<GrowingSequence<'a>>,
}

const EMPTY_BYTES: u64 = size_of::<i32>() as u64 + 1;

impl<'a> Open<'a> {
    fn new(kind: ElementType, name: &[u8]) -> Open<'a> {
        let layout = match kind {
            ElementType::Array => Layout::Array,
            _ => Layout::Document,
        };
        Open {
            name: name.to_vec(),
            kind,
            layout,
            bytes: EMPTY_BYTES,
            count: 0,
            short: vec![0; size_of::<i32>()],
            sequence: None,
        }
    }

    /// Adds an element whose name and item are known.
    fn push(
        &mut self,
        builder: &Builder<'a>,
        name: &[u8],
        mut item: Item,
    ) -> Result<(), PiecesError> {
        let mut digits = [0; 20];
        if self.layout == Layout::Array
            && position_name(self.count as usize, &mut digits).as_bytes() != name
        {
            self.begin_to_name(builder)?;
        }
        item.name = match self.layout {
            Layout::Array => Bytes::new(),
            _ => Bytes::copy_from_slice(name),
        };
        let value_bytes = match &item.body {
            Body::Here(value) => value.len() as u64,
            Body::Elsewhere { bytes, .. } => *bytes,
        };
        self.bytes = self.bytes.saturating_add(name.len() as u64 + 2).saturating_add(value_bytes);
        self.count += 1;
        if self.bytes <= ITEM_VALUE_BYTES_MAX as u64
            && let Body::Here(value) = &item.body
        {
            self.short.push(item.kind as u8);
            self.short.extend_from_slice(name);
            self.short.push(0);
            self.short.extend_from_slice(value);
            return Ok(());
        }
        let item = item.encode(self.layout);
        Ok(self.grown(builder)?.push(&item)?)
    }

    /// Its items, made of the short elements where there are none yet.
    fn grown(&mut self, builder: &Builder<'a>) -> Result<&mut GrowingSequence<'a>, PiecesError> {
        if self.sequence.is_none() {
            let mut sequence = GrowingSequence::new(builder.store, builder.format, refers);
            self.short.push(0);
            for element in RawElements::new(&self.short) {
                let name = if self.layout.has_names() { element.name } else { &[] };
                let item = builder.item(self.layout, RawElement { name, ..element })?;
                sequence.push(&item.encode(self.layout))?;
            }
            self.short = Vec::new();
            self.sequence = Some(sequence);
        }
        Ok(self.sequence.as_mut().expect("it was just made where it was absent"))
    }

    /// Begins to name the array's elements; those before are named by their positions.
    fn begin_to_name(&mut self, builder: &Builder<'a>) -> Result<(), PiecesError> {
        self.layout = Layout::NamedArray;
        let Some(unnamed) = self.sequence.take() else { return Ok(()) };
        let unnamed = unnamed.finish()?;
        let mut named = GrowingSequence::new(builder.store, builder.format, refers);
        let mut failure = None;
        unnamed.visit(builder.store, 0, &mut |position, item| {
            let mut digits = [0; 20];
            let pushed = ItemRef::decode(item, Layout::Array).and_then(|item| {
                let name = position_name(position as usize, &mut digits).as_bytes();
                let item = Item { name: Bytes::copy_from_slice(name), ..item.to_item() };
                Ok(named.push(&item.encode(Layout::NamedArray))?)
            });
            failure = pushed.err();
            failure.is_some()
        })?;
        self.sequence = Some(named);
        failure.map_or(Ok(()), Err)
    }
}

impl<'a> Writer<'a> {
    /// Begins a document that a tree of that format will hold. `now` is what an empty timestamp
    /// among its outermost fields becomes.
    pub fn new(store: &'a dyn ChunkStore, format: TreeFormat, now: u64) -> Writer<'a> {
        Writer {
            builder: Builder { store, format: piece_format(format), refers: false },
            now,
            open: vec![Open::new(ElementType::Document, &[])],
            names: HashSet::new(),
            id_position: None,
        }
    }

    /// Begins a document or an array as the next element. In an array that was begun here the name
    /// is the position.
    ///
    /// # Errors
    /// [`DocError::TooDeep`]; a name that doesn't fit.
    pub fn begin(&mut self, kind: ElementType, name: &[u8]) -> Result<(), PiecesError> {
        debug_assert!(matches!(kind, ElementType::Document | ElementType::Array));
        if DEPTH_MAX <= self.open.len() {
            return Err(DocError::TooDeep { max: DEPTH_MAX }.into());
        }
        self.take_name(name)?;
        self.open.push(Open::new(kind, name));
        Ok(())
    }

    /// Ends the document or array that was begun last.
    ///
    /// # Errors
    /// As the store; [`DocError::TooLarge`] from 2 GiB on.
    pub fn end(&mut self) -> Result<(), PiecesError> {
        assert!(self.open.len() > 1, "the outermost document ends with `finish`");
        let Some(mut ended) = self.open.pop() else { return Ok(()) };
        check_length(ended.bytes)?;
        let body = match ended.sequence.take() {
            Some(sequence) => Body::Elsewhere {
                layout: Some(ended.layout),
                bytes: ended.bytes,
                root: sequence.finish()?.root,
            },
            None => Body::Here(close_short(ended.short).into()),
        };
        let item = Item { kind: ended.kind, name: Bytes::new(), body };
        self.push(&ended.name, item)
    }

    /// Writes the next element; its value's bytes are as in BSON, and valid.
    ///
    /// # Errors
    /// As the store; a name that doesn't fit.
    pub fn element(&mut self, element: RawElement<'_>) -> Result<(), PiecesError> {
        self.take_name(element.name)?;
        if has_long_name(&element) {
            return Err(refused(format!("a name of more than {NAME_BYTES_MAX} bytes")));
        }
        let now = self.now.to_le_bytes();
        let is_now = self.open.len() == 1
            && element.kind == ElementType::Timestamp
            && element.value == [0; size_of::<u64>()]
            && element.name != b"_id";
        let value = if is_now { &now } else { element.value };
        let layout = self.open.last().map_or(Layout::Document, |open| open.layout);
        let item =
            self.builder.item(layout, RawElement { kind: element.kind, name: &[], value })?;
        self.push(element.name, item)
    }

    /// Returns how many documents and arrays are open, the outermost counted.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// The position that the next element of the innermost has.
    pub fn next_position(&self) -> u64 {
        self.open.last().map_or(0, |open| open.count)
    }

    /// Ends the document: `_id` becomes its first field, made by `new_id` where there is none.
    ///
    /// # Errors
    /// As the store; [`DocError::TooLarge`] from 2 GiB on.
    pub fn finish(mut self, new_id: impl FnOnce() -> ObjectId) -> Result<Edited, PiecesError> {
        assert!(self.open.len() == 1, "documents and arrays that were begun are ended");
        let Some(mut root) = self.open.pop() else {
            return Err(PiecesError::damaged("no document was begun"));
        };
        root.grown(&self.builder)?;
        let Some(sequence) = root.sequence.take() else {
            return Err(PiecesError::damaged("no document was begun"));
        };
        let (sequence, added) = self.with_id_first(sequence.finish()?, new_id)?;
        let bytes = root.bytes.saturating_add(added);
        check_length(bytes)?;
        let root = Container { sequence, layout: Layout::Document, bytes };
        let document = LargeDocument { root };
        match is_large(bytes) {
            true => Ok(Edited::Large(document)),
            false => document.read(self.builder.store).map(Edited::Small),
        }
    }

    /// The outermost items with `_id` in front, and how many bytes came to them.
    fn with_id_first(
        &self,
        sequence: Sequence,
        new_id: impl FnOnce() -> ObjectId,
    ) -> Result<(Sequence, u64), PiecesError> {
        let store = self.builder.store;
        match self.id_position {
            Some(0) => Ok((sequence, 0)),
            Some(position) => {
                let id = sequence.get(store, position)?;
                let id = id.ok_or_else(|| PiecesError::damaged("an item is gone"))?;
                let moved = [
                    Replacement { position: 0, removed: 0, items: vec![id] },
                    Replacement { position, removed: 1, items: Vec::new() },
                ];
                Ok((sequence.replace_referring(store, &moved, refers)?, 0))
            }
            None => {
                let id = new_id().0;
                let item = self.builder.item(
                    Layout::Document,
                    RawElement { kind: ElementType::ObjectId, name: b"_id", value: &id },
                )?;
                let added = item.view().element_bytes();
                let items = vec![item.encode(Layout::Document)];
                let first = [Replacement { position: 0, removed: 0, items }];
                Ok((sequence.replace_referring(store, &first, refers)?, added))
            }
        }
    }

    fn push(&mut self, name: &[u8], item: Item) -> Result<(), PiecesError> {
        let innermost = self.open.last_mut().expect("the outermost document is open");
        innermost.push(&self.builder, name, item)
    }

    fn take_name(&mut self, name: &[u8]) -> Result<(), PiecesError> {
        if NAME_BYTES_MAX < name.len() {
            return Err(refused(format!("a name of more than {NAME_BYTES_MAX} bytes")));
        }
        if self.open.len() == 1 {
            if name == b"_id" {
                self.id_position = Some(self.next_position());
            }
            if !self.names.insert(name.into()) {
                let name = String::from_utf8_lossy(name);
                return Err(refused(format!("two outermost fields called {name:?}")));
            }
        }
        Ok(())
    }
}

fn close_short(mut short: Vec<u8>) -> Vec<u8> {
    short.push(0);
    let length = short.len() as i32; // A short one has at most some hundred bytes.
    short[..size_of::<i32>()].copy_from_slice(&length.to_le_bytes());
    short
}

fn check_length(bytes: u64) -> Result<(), PiecesError> {
    if i32::MAX as u64 <= bytes {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        return Err(DocError::TooLarge { bytes, max: i32::MAX as usize }.into());
    }
    Ok(())
}

fn refused(what: String) -> PiecesError {
    let what = format!("a document that is written piece by piece can't have {what}");
    DocError::Invalid { offset: 0, what }.into()
}
