//! Large documents as extended JSON, one after another.
//!
//! Equal parts are stored once, and made text once: the text of a container that is seen again is
//! kept, and copied from then on. Of most containers nothing is ever met again, so that at first
//! only the name is remembered.

use std::collections::HashMap;
use std::io::Write;
use std::ops::Range;

use frond_store::{ChunkHash, ChunkStore};
use frond_tree::Sequence;

use super::{BUFFER_BYTES, Output, check_depth, visit_items};
use crate::document::Document;
use crate::extended_json::{self, Form, append_raw, append_text};
use crate::pieces::item::{BodyRef, ItemRef, Layout};
use crate::pieces::{Container, LargeDocument, PiecesError};
use crate::raw::{array_at, text};

/// Containers of more BSON are put together of what they consist of.
const KEPT_BYTES_MAX: u64 = 64 << 10;
/// Text that is kept, at most.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// Names that are remembered.
const NAMES: usize = 8 << 10;

/// Writes documents as JSON, and text between them, many at a time: what is left in memory goes
/// with [`JsonWriter::finish`].
pub struct JsonWriter {
    form: Form,
    buffer: Vec<u8>,
    texts: Texts,
}

impl JsonWriter {
    /// Writes in that form.
    pub fn new(form: Form) -> JsonWriter {
        JsonWriter { form, buffer: Vec::new(), texts: Texts::default() }
    }

    /// Adds text as it is.
    pub fn push(&mut self, text: &str) {
        self.buffer.extend_from_slice(text.as_bytes());
    }

    /// Writes a document that lies in memory.
    ///
    /// # Errors
    /// As `out`.
    pub fn write(&mut self, document: Document<'_>, out: &mut dyn Write) -> std::io::Result<()> {
        extended_json::append(document, self.form, &mut self.buffer);
        if BUFFER_BYTES <= self.buffer.len() { self.finish(out) } else { Ok(()) }
    }

    /// Writes one that lies in pieces. Where it can't be read, nothing of a short one is written.
    ///
    /// # Errors
    /// As [`LargeDocument::write_bson`].
    pub fn write_pieces(
        &mut self,
        document: &LargeDocument,
        store: &dyn ChunkStore,
        out: &mut dyn Write,
    ) -> Result<(), PiecesError> {
        let start = self.buffer.len();
        let output = Output { document, store, out, buffer: &mut self.buffer, written: 0 };
        let mut json = Json { output, form: self.form, texts: &mut self.texts, kept_depth: 0 };
        let done = json.container(&document.root, 1).and_then(|()| json.output.flush_if_full());
        if done.is_err() && json.output.written == 0 {
            json.output.buffer.truncate(start);
        }
        done
    }

    /// Writes what was not written yet. Nothing is written twice, whatever `out` says.
    ///
    /// # Errors
    /// As `out`.
    pub fn finish(&mut self, out: &mut dyn Write) -> std::io::Result<()> {
        let done = out.write_all(&self.buffer);
        self.buffer.clear();
        done
    }
}

/// A container whose text is kept, by its name and by what its items are.
type Key = (ChunkHash, Layout);

/// The text of containers that were seen more than once, all of one form.
#[derive(Default)]
struct Texts {
    /// The beginnings of names that were seen, each at the place that follows from itself.
    seen: Vec<u64>,
    kept: HashMap<Key, Range<usize>>,
    text: Vec<u8>,
}

impl Texts {
    fn get(&self, key: &Key) -> Option<&[u8]> {
        self.text.get(self.kept.get(key)?.clone())
    }

    /// Whether a name was seen before, as far as is remembered. Of another one with the same
    /// beginning some text is kept in vain.
    fn was_seen(&mut self, name: &ChunkHash) -> bool {
        let beginning = array_at(&name.0, 0).map_or(0, u64::from_le_bytes);
        self.seen.resize(NAMES, 0);
        let place = &mut self.seen[beginning as usize % NAMES];
        std::mem::replace(place, beginning) == beginning
    }

    fn keep(&mut self, key: Key, text: &[u8]) {
        if TEXT_BYTES_MAX < text.len() {
            return; // Its pieces say that it is shorter.
        }
        if TEXT_BYTES_MAX < self.text.len() + text.len() {
            self.kept.clear();
            self.text.clear();
        }
        let start = self.text.len();
        self.text.extend_from_slice(text);
        self.kept.insert(key, start..self.text.len());
    }
}

/// A document while it is written.
struct Json<'a> {
    output: Output<'a>,
    form: Form,
    texts: &'a mut Texts,
    /// The number of the containers being written that will be kept: their text stays in the
    /// buffer.
    kept_depth: usize,
}

impl Json<'_> {
    fn container(&mut self, container: &Container, depth: usize) -> Result<(), PiecesError> {
        check_depth(depth)?;
        let key = (container.sequence.root, container.layout);
        if let Some(text) = self.texts.get(&key) {
            self.output.buffer.extend_from_slice(text);
            return Ok(());
        }
        if KEPT_BYTES_MAX < container.bytes || !self.texts.was_seen(&key.0) {
            return self.elements(container, depth);
        }
        let start = self.output.buffer.len();
        self.kept_depth += 1;
        self.elements(container, depth)?;
        self.kept_depth -= 1;
        self.texts.keep(key, &self.output.buffer[start..]);
        Ok(())
    }

    fn elements(&mut self, container: &Container, depth: usize) -> Result<(), PiecesError> {
        let is_document = container.layout == Layout::Document;
        self.output.buffer.push(if is_document { b'{' } else { b'[' });
        let store = self.output.store;
        visit_items(store, container, &mut |position, item| {
            let buffer = &mut *self.output.buffer;
            if position > 0 {
                buffer.push(b',');
            }
            if is_document {
                text(item.name).ok_or_else(|| PiecesError::damaged("no UTF-8"))?;
                append_text(item.name, buffer);
                buffer.push(b':');
            }
            if let BodyRef::Elsewhere { layout: Some(layout), bytes, root } = item.body {
                let sequence = Sequence { root, format: container.sequence.format };
                self.container(&Container { sequence, layout, bytes }, depth + 1)?;
            } else {
                self.value(item)?;
            }
            if self.kept_depth == 0 { self.output.flush_if_full() } else { Ok(()) }
        })?;
        self.output.buffer.push(if is_document { b'}' } else { b']' });
        Ok(())
    }

    fn value(&mut self, item: ItemRef<'_>) -> Result<(), PiecesError> {
        let wrong = || PiecesError::damaged("a value of another type");
        let output = &mut self.output;
        if let BodyRef::Here(bytes) = item.body {
            return append_raw(item.kind, bytes, self.form, output.buffer).ok_or_else(wrong);
        }
        let mut bytes = Vec::new();
        output.document.append_value_of(output.store, &item.to_item(), &mut bytes)?;
        append_raw(item.kind, &bytes, self.form, output.buffer).ok_or_else(wrong)
    }
}
