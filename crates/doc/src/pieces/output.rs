//! A large document to a writer, as BSON or as JSON ([`json`]), a piece at a time.
//!
//! Lengths stand in the pieces, so that BSON, which has them in front, is written as it is read.
//! The written bytes are checked against them: a document that isn't as its pieces say ends in an
//! error.

pub(super) mod json;

use std::io::Write;

use frond_store::ChunkStore;
use frond_tree::Sequence;

use super::item::{BodyRef, Item, ItemRef, Layout};
use super::{Container, LargeDocument, PiecesError};
use crate::builder::position_name;
use crate::document::DEPTH_MAX;

/// The number of bytes that are gathered before the writer is called.
const BUFFER_BYTES: usize = 64 << 10;

impl LargeDocument {
    /// Writes the document's BSON.
    ///
    /// # Errors
    /// [`PiecesError::Input`] if the writer fails; as [`LargeDocument::read`].
    pub fn write_bson(
        &self,
        store: &dyn ChunkStore,
        out: &mut dyn Write,
    ) -> Result<(), PiecesError> {
        let mut buffer = Vec::new();
        let mut output = Output { document: self, store, out, buffer: &mut buffer, written: 0 };
        output.bson_container(&self.root, 1)?;
        output.flush()
    }
}

struct Output<'a> {
    document: &'a LargeDocument,
    store: &'a dyn ChunkStore,
    out: &'a mut dyn Write,
    buffer: &'a mut Vec<u8>,
    /// Bytes that left the buffer.
    written: u64,
}

impl Output<'_> {
    fn flush(&mut self) -> Result<(), PiecesError> {
        let done = self.out.write_all(self.buffer);
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(done?)
    }

    fn flush_if_full(&mut self) -> Result<(), PiecesError> {
        if BUFFER_BYTES <= self.buffer.len() { self.flush() } else { Ok(()) }
    }

    fn offset(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Recursion follows the nesting, which is bounded here.
    fn bson_container(&mut self, container: &Container, depth: usize) -> Result<(), PiecesError> {
        let length = i32::try_from(container.bytes);
        let length = length.map_err(|_| PiecesError::damaged("longer than BSON can be"))?;
        check_depth(depth)?;
        let start = self.offset();
        self.buffer.extend_from_slice(&length.to_le_bytes());
        let store = self.store;
        visit_items(store, container, &mut |position, item| {
            let mut digits = [0; 20];
            self.buffer.push(item.kind as u8);
            self.buffer.extend_from_slice(match container.layout {
                Layout::Array => position_name(position as usize, &mut digits).as_bytes(),
                _ => item.name,
            });
            self.buffer.push(0);
            match item.body {
                BodyRef::Here(value) => self.buffer.extend_from_slice(value),
                BodyRef::Elsewhere { layout: Some(layout), bytes, root } => {
                    let sequence = Sequence { root, format: container.sequence.format };
                    let inner = Container { sequence, layout, bytes };
                    self.bson_container(&inner, depth + 1)?;
                }
                BodyRef::Elsewhere { layout: None, .. } => self.bson_value(&item.to_item())?,
            }
            self.flush_if_full()
        })?;
        self.buffer.push(0);
        if self.offset() - start != container.bytes {
            return Err(PiecesError::damaged("not as long as its pieces say"));
        }
        Ok(())
    }

    /// A value that lies in slices.
    fn bson_value(&mut self, item: &Item) -> Result<(), PiecesError> {
        self.document.append_value_of(self.store, item, self.buffer)
    }
}

/// Calls `element` with each item of a container and its position.
fn visit_items(
    store: &dyn ChunkStore,
    container: &Container,
    element: &mut dyn FnMut(u64, ItemRef<'_>) -> Result<(), PiecesError>,
) -> Result<(), PiecesError> {
    let mut failure = None;
    container.sequence.visit(store, 0, &mut |position, item| {
        let done = ItemRef::decode(item, container.layout);
        failure = done.and_then(|item| element(position, item)).err();
        failure.is_some()
    })?;
    failure.map_or(Ok(()), Err)
}

fn check_depth(depth: usize) -> Result<(), PiecesError> {
    if DEPTH_MAX < depth {
        return Err(PiecesError::damaged("nested too deep"));
    }
    Ok(())
}
