//! Sorted entries in a file: written from the least to the greatest, read the same way, the whole
//! or what lies between two keys, by any number of readers.
//!
//! A run is a sequence of entries: two lengths of four bytes (little-endian), the key, the
//! document. It lives as long as the query; no other query reads it. The keys of some entries are
//! kept in memory with their offsets ([`Mark`]): a reader begins at the last one before its key.

use std::sync::Arc;

use bytes::Bytes;
use frond_doc::DocumentBuf;

use super::Entry;
use crate::error::QueryError;
use crate::pipeline::spill::SpillFile;

/// A run is written and read in pieces of so many bytes.
const BUFFER_BYTES: usize = 64 << 10;
/// Or read in pieces of so many, where its reader may take long.
const BUFFER_BYTES_RESTING: usize = 4 << 10;
/// The two lengths before an entry.
const LENGTHS_BYTES: usize = 8;
/// The bytes between two marks, at first. Where there are [`MARKS_MAX`], every other one goes.
const MARK_EVERY_BYTES: u64 = 16 << 10;
/// The marks of a run take some kilobytes, however long it is.
const MARKS_MAX: usize = 1024;
/// A longer key isn't marked.
const MARK_KEY_BYTES_MAX: usize = 256;

/// An entry whose place is known.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) key: Bytes,
    offset: u64,
}

/// Writes a run.
pub(super) struct RunWriter {
    file: Box<dyn SpillFile>,
    bytes: u64,
    buffer: Vec<u8>,
    count: u64,
    marks: Vec<Mark>,
    mark_every_bytes: u64,
}

impl RunWriter {
    /// Begins a run in an empty file.
    pub(super) fn new(file: Box<dyn SpillFile>) -> RunWriter {
        RunWriter {
            file,
            bytes: 0,
            buffer: Vec::with_capacity(BUFFER_BYTES * 2),
            count: 0,
            marks: Vec::new(),
            mark_every_bytes: MARK_EVERY_BYTES,
        }
    }

    /// Appends an entry, which isn't less than the one before.
    pub(super) fn add(&mut self, key: &[u8], document: &[u8]) -> Result<(), QueryError> {
        self.mark(key);
        self.count += 1;
        for part in [key, document] {
            let length = u32::try_from(part.len()).expect("a document has less than 2 GiB");
            self.buffer.extend_from_slice(&length.to_le_bytes());
        }
        self.buffer.extend_from_slice(key);
        self.buffer.extend_from_slice(document);
        if BUFFER_BYTES < self.buffer.len() { self.write() } else { Ok(()) }
    }

    /// Marks the next entry, if enough lies between it and the last that was marked.
    fn mark(&mut self, key: &[u8]) {
        let offset = self.bytes + self.buffer.len() as u64;
        let is_far = |last: &Mark| self.mark_every_bytes <= offset - last.offset;
        if MARK_KEY_BYTES_MAX < key.len() || !self.marks.last().is_none_or(is_far) {
            return;
        }
        if self.marks.len() == MARKS_MAX {
            let mut position = 0;
            self.marks.retain(|_| {
                position += 1;
                position % 2 == 1
            });
            self.mark_every_bytes *= 2;
        }
        self.marks.push(Mark { key: Bytes::copy_from_slice(key), offset });
    }

    fn write(&mut self) -> Result<(), QueryError> {
        self.bytes += self.buffer.len() as u64;
        self.file.append(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the run, which was merged so often.
    pub(super) fn finish(mut self, level: u32) -> Result<Run, QueryError> {
        self.write()?;
        let RunWriter { file, bytes, count, marks, .. } = self;
        let stored = Arc::new(Stored { file, bytes, count, marks });
        Ok(Run::of(stored, level, BUFFER_BYTES))
    }
}

/// A run as it was written.
struct Stored {
    file: Box<dyn SpillFile>,
    bytes: u64,
    count: u64,
    marks: Vec<Mark>,
}

/// A run that is read.
pub(super) struct Run {
    stored: Arc<Stored>,
    /// The number of times its entries were merged.
    level: u32,
    /// The offset where reading ends, and the key from which on nothing is wanted.
    end: u64,
    to: Option<Bytes>,
    /// The offset of the next piece.
    offset: u64,
    buffer: Vec<u8>,
    /// It takes about so much.
    buffer_bytes: usize,
    /// The position in the buffer.
    position: usize,
}

impl Run {
    fn of(stored: Arc<Stored>, level: u32, buffer_bytes: usize) -> Run {
        let end = stored.bytes;
        let (to, offset, buffer, position) = (None, 0, Vec::new(), 0);
        Run { stored, level, end, to, offset, buffer, buffer_bytes, position }
    }

    /// The same, to be read slowly and in little memory.
    pub(super) fn resting(self) -> Run {
        Run { buffer_bytes: BUFFER_BYTES_RESTING, ..self }
    }

    /// Another reader of all that was written.
    pub(super) fn twin(&self) -> Run {
        Run::of(Arc::clone(&self.stored), self.level, self.buffer_bytes)
    }

    /// A reader of the entries from the first key on, if there is one, that are less than the
    /// second.
    pub(super) fn between(
        &self,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
    ) -> Result<Run, QueryError> {
        let mut run = self.twin();
        let marks = &self.stored.marks;
        let marks_before = |key: &[u8]| marks.partition_point(|mark| *mark.key < *key);
        if let Some(to) = to {
            run.end = marks.get(marks_before(to)).map_or(run.end, |mark| mark.offset);
            run.to = Some(Bytes::copy_from_slice(to));
        }
        if let Some(from) = from {
            let before = marks_before(from).checked_sub(1).and_then(|last| marks.get(last));
            run.offset = before.map_or(0, |mark| mark.offset).min(run.end);
            while let Some((key_bytes, document_bytes)) = run.lengths()? {
                let entry = &run.buffer[run.position + LENGTHS_BYTES..];
                if from <= &entry[..key_bytes] {
                    break;
                }
                run.position += LENGTHS_BYTES + key_bytes + document_bytes;
            }
        }
        Ok(run)
    }

    /// Returns how often its entries were merged.
    pub(super) fn level(&self) -> u32 {
        self.level
    }

    /// Returns how many entries were written.
    pub(super) fn count(&self) -> u64 {
        self.stored.count
    }

    /// Some of its keys, at about equal distances.
    pub(super) fn marks(&self) -> &[Mark] {
        &self.stored.marks
    }

    /// The next entry.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, QueryError> {
        let Some((key_bytes, document_bytes)) = self.lengths()? else { return Ok(None) };
        let entry = &self.buffer[self.position + LENGTHS_BYTES..][..key_bytes + document_bytes];
        if self.to.as_ref().is_some_and(|to| **to <= entry[..key_bytes]) {
            return Ok(None);
        }
        let key = Bytes::copy_from_slice(&entry[..key_bytes]);
        let document = DocumentBuf::from_validated(Bytes::copy_from_slice(&entry[key_bytes..]));
        self.position += LENGTHS_BYTES + key_bytes + document_bytes;
        Ok(Some((key, document)))
    }

    /// The bytes of the next entry's key and document, which are in the buffer then; `None` if
    /// nothing is left.
    fn lengths(&mut self) -> Result<Option<(usize, usize)>, QueryError> {
        if self.offset == self.end && self.position == self.buffer.len() {
            return Ok(None);
        }
        self.have(LENGTHS_BYTES)?;
        let length = |at: usize| {
            let bytes = &self.buffer[self.position + at..][..4];
            u32::from_le_bytes(bytes.try_into().expect("four bytes")) as usize
        };
        let lengths = (length(0), length(4));
        self.have(LENGTHS_BYTES + lengths.0 + lengths.1)?;
        Ok(Some(lengths))
    }

    /// Reads on until the buffer holds so many bytes from its position on.
    fn have(&mut self, wanted: usize) -> Result<(), QueryError> {
        let held = self.buffer.len() - self.position;
        if wanted <= held {
            return Ok(());
        }
        self.buffer.drain(..self.position);
        self.position = 0;
        let left = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
        let more = (wanted - held).max(self.buffer_bytes).min(left);
        assert!(wanted <= held + more, "a run holds what was written to it");
        self.buffer.resize(held + more, 0);
        self.stored.file.read_at(self.offset, &mut self.buffer[held..])?;
        self.offset += more as u64;
        // One large document must not make the buffer large for ever.
        if self.buffer.len() < self.buffer_bytes * 2 {
            self.buffer.shrink_to(self.buffer_bytes * 2);
        }
        Ok(())
    }
}
