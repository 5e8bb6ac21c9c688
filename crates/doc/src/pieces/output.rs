//! A large document to a writer, as BSON or as JSON, a piece at a time.
//!
//! Lengths stand in the pieces, so that BSON, which has them in front, is written as it is read.
//! What is written is checked against them: a document that isn't what its pieces say ends in an
//! error.

use std::io::Write;

use frond_store::ChunkStore;
use frond_tree::Sequence;

use super::item::{BodyRef, Item, ItemRef, Layout};
use super::{Container, LargeDocument, PiecesError};
use crate::builder::position_name;
use crate::document::DEPTH_MAX;
use crate::extended_json::{Form, append_raw, append_text};
use crate::raw::text;

/// What is gathered before the writer is called.
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
        let mut output = Output::new(self, store, out);
        output.bson_container(&self.root, 1)?;
        output.flush()
    }

    /// Writes the document as one line of extended JSON, without a line's end.
    ///
    /// # Errors
    /// As [`LargeDocument::write_bson`].
    pub fn write_json(
        &self,
        store: &dyn ChunkStore,
        form: Form,
        out: &mut dyn Write,
    ) -> Result<(), PiecesError> {
        let mut output = Output::new(self, store, out);
        output.json_container(&self.root, form, 1)?;
        output.flush()
    }
}

struct Output<'a> {
    document: &'a LargeDocument,
    store: &'a dyn ChunkStore,
    out: &'a mut dyn Write,
    buffer: Vec<u8>,
    /// Bytes that left the buffer.
    written: u64,
}

impl<'a> Output<'a> {
    fn new(
        document: &'a LargeDocument,
        store: &'a dyn ChunkStore,
        out: &'a mut dyn Write,
    ) -> Output<'a> {
        Output { document, store, out, buffer: Vec::new(), written: 0 }
    }

    fn flush(&mut self) -> Result<(), PiecesError> {
        self.out.write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn flush_if_full(&mut self) -> Result<(), PiecesError> {
        if BUFFER_BYTES <= self.buffer.len() { self.flush() } else { Ok(()) }
    }

    fn offset(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Calls `element` with each item of a container and its position.
    fn each(
        &mut self,
        container: &Container,
        element: &mut dyn FnMut(&mut Self, u64, ItemRef<'_>) -> Result<(), PiecesError>,
    ) -> Result<(), PiecesError> {
        let (store, mut failure) = (self.store, None);
        container.sequence.visit(store, 0, &mut |position, item| {
            let done = ItemRef::decode(item, container.layout)
                .and_then(|item| element(self, position, item))
                .and_then(|()| self.flush_if_full());
            failure = done.err();
            failure.is_some()
        })?;
        failure.map_or(Ok(()), Err)
    }

    /// Recursion follows the nesting, which is bounded here.
    fn bson_container(&mut self, container: &Container, depth: usize) -> Result<(), PiecesError> {
        let length = i32::try_from(container.bytes);
        let length = length.map_err(|_| PiecesError::damaged("longer than BSON can be"))?;
        check_depth(depth)?;
        let start = self.offset();
        self.buffer.extend_from_slice(&length.to_le_bytes());
        self.each(container, &mut |output, position, item| {
            let mut digits = [0; 20];
            output.buffer.push(item.kind as u8);
            output.buffer.extend_from_slice(match container.layout {
                Layout::Array => position_name(position as usize, &mut digits).as_bytes(),
                _ => item.name,
            });
            output.buffer.push(0);
            match item.body {
                BodyRef::Here(value) => output.buffer.extend_from_slice(value),
                BodyRef::Elsewhere { layout: Some(layout), bytes, root } => {
                    let sequence = Sequence { root, format: container.sequence.format };
                    let inner = Container { sequence, layout, bytes };
                    output.bson_container(&inner, depth + 1)?;
                }
                BodyRef::Elsewhere { layout: None, .. } => output.bson_value(&item.to_item())?,
            }
            Ok(())
        })?;
        self.buffer.push(0);
        if self.offset() - start != container.bytes {
            return Err(PiecesError::damaged("not as long as its pieces say"));
        }
        Ok(())
    }

    /// A value that lies in slices.
    fn bson_value(&mut self, item: &Item) -> Result<(), PiecesError> {
        self.document.append_value_of(self.store, item, &mut self.buffer)
    }

    fn json_container(
        &mut self,
        container: &Container,
        form: Form,
        depth: usize,
    ) -> Result<(), PiecesError> {
        check_depth(depth)?;
        let is_document = container.layout == Layout::Document;
        self.buffer.push(if is_document { b'{' } else { b'[' });
        self.each(container, &mut |output, position, item| {
            if position > 0 {
                output.buffer.push(b',');
            }
            if is_document {
                text(item.name).ok_or_else(|| PiecesError::damaged("no UTF-8"))?;
                append_text(item.name, &mut output.buffer);
                output.buffer.push(b':');
            }
            if let BodyRef::Elsewhere { layout: Some(layout), bytes, root } = item.body {
                let sequence = Sequence { root, format: container.sequence.format };
                return output.json_container(
                    &Container { sequence, layout, bytes },
                    form,
                    depth + 1,
                );
            }
            output.json_value(item, form)
        })?;
        self.buffer.push(if is_document { b'}' } else { b']' });
        Ok(())
    }

    fn json_value(&mut self, item: ItemRef<'_>, form: Form) -> Result<(), PiecesError> {
        let wrong = || PiecesError::damaged("a value of another type");
        if let BodyRef::Here(bytes) = item.body {
            return append_raw(item.kind, bytes, form, &mut self.buffer).ok_or_else(wrong);
        }
        let mut bytes = Vec::new();
        self.document.append_value_of(self.store, &item.to_item(), &mut bytes)?;
        append_raw(item.kind, &bytes, form, &mut self.buffer).ok_or_else(wrong)
    }
}

fn check_depth(depth: usize) -> Result<(), PiecesError> {
    if DEPTH_MAX < depth {
        return Err(PiecesError::damaged("nested too deep"));
    }
    Ok(())
}
