//! Sorted entries in a file: written from the least to the greatest, read the same way.
//!
//! A run is a sequence of entries: two lengths of four bytes (little-endian), the key, the
//! document. It lives as long as the query; no other query reads it.

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

/// Writes a run.
pub(super) struct RunWriter {
    file: Box<dyn SpillFile>,
    bytes: u64,
    buffer: Vec<u8>,
}

impl RunWriter {
    /// Begins a run in an empty file.
    pub(super) fn new(file: Box<dyn SpillFile>) -> RunWriter {
        RunWriter { file, bytes: 0, buffer: Vec::with_capacity(BUFFER_BYTES * 2) }
    }

    /// Appends an entry, which isn't less than the one before.
    pub(super) fn add(&mut self, key: &[u8], document: &[u8]) -> Result<(), QueryError> {
        for part in [key, document] {
            let length = u32::try_from(part.len()).expect("a document has less than 2 GiB");
            self.buffer.extend_from_slice(&length.to_le_bytes());
        }
        self.buffer.extend_from_slice(key);
        self.buffer.extend_from_slice(document);
        if BUFFER_BYTES < self.buffer.len() { self.write() } else { Ok(()) }
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
        let (file, bytes) = (self.file, self.bytes);
        let (buffer, buffer_bytes) = (Vec::new(), BUFFER_BYTES);
        Ok(Run { file, bytes, level, offset: 0, buffer, buffer_bytes, position: 0 })
    }
}

/// A run that is read.
pub(super) struct Run {
    file: Box<dyn SpillFile>,
    bytes: u64,
    /// The number of times its entries were merged.
    level: u32,
    /// The offset of the next piece.
    offset: u64,
    buffer: Vec<u8>,
    /// It takes about so much.
    buffer_bytes: usize,
    /// The position in the buffer.
    position: usize,
}

impl Run {
    /// The same, to be read slowly and in little memory.
    pub(super) fn resting(self) -> Run {
        Run { buffer_bytes: BUFFER_BYTES_RESTING, ..self }
    }

    /// Returns how often its entries were merged.
    pub(super) fn level(&self) -> u32 {
        self.level
    }

    /// The next entry.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, QueryError> {
        if self.offset == self.bytes && self.position == self.buffer.len() {
            return Ok(None);
        }
        self.have(LENGTHS_BYTES)?;
        let length = |run: &Run, at: usize| {
            let bytes = &run.buffer[run.position + at..][..4];
            u32::from_le_bytes(bytes.try_into().expect("four bytes")) as usize
        };
        let (key_bytes, document_bytes) = (length(self, 0), length(self, 4));
        self.position += LENGTHS_BYTES;
        self.have(key_bytes + document_bytes)?;
        let entry = &self.buffer[self.position..][..key_bytes + document_bytes];
        let key = Bytes::copy_from_slice(&entry[..key_bytes]);
        let document = DocumentBuf::from_validated(Bytes::copy_from_slice(&entry[key_bytes..]));
        self.position += key_bytes + document_bytes;
        Ok(Some((key, document)))
    }

    /// Reads on until the buffer holds so many bytes from its position on.
    fn have(&mut self, wanted: usize) -> Result<(), QueryError> {
        let held = self.buffer.len() - self.position;
        if wanted <= held {
            return Ok(());
        }
        self.buffer.drain(..self.position);
        self.position = 0;
        let left = usize::try_from(self.bytes - self.offset).unwrap_or(usize::MAX);
        let more = (wanted - held).max(self.buffer_bytes).min(left);
        assert!(wanted <= held + more, "a run holds what was written to it");
        self.buffer.resize(held + more, 0);
        self.file.read_at(self.offset, &mut self.buffer[held..])?;
        self.offset += more as u64;
        // One large document must not make the buffer large for ever.
        if self.buffer.len() < self.buffer_bytes * 2 {
            self.buffer.shrink_to(self.buffer_bytes * 2);
        }
        Ok(())
    }
}
