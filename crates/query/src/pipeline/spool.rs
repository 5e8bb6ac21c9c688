//! Documents that are read more than once: in memory while they fit, then in a file.
//!
//! A document begins with its own length, so they lie one after the other, first those of the file, then those
//! in memory. Reading takes one buffer, however many there are, and any number of readers read at once.

use std::sync::Arc;

use bytes::Bytes;
use frond_doc::{Document, DocumentBuf};

use super::spill::{Resources, SpillFile};
use crate::error::QueryError;

/// A file is read in pieces of so many bytes.
const BUFFER_BYTES: usize = 64 << 10;
/// The length with which a document begins.
const LENGTH_BYTES: usize = 4;
/// Whether to stop is asked once for so many documents.
const CHECK_COUNT: usize = 256;

/// The documents.
pub(super) struct Spool {
    /// Who reads them, for messages.
    stage: &'static str,
    resources: Resources,
    file: Option<Box<dyn SpillFile>>,
    file_bytes: u64,
    /// Behind those of the file.
    tail: Vec<u8>,
    count: usize,
}

/// Reads a spool from its beginning.
pub(super) struct SpoolReader {
    spool: Arc<Spool>,
    /// Of the file, how much is or was in the buffer.
    file_offset: u64,
    buffer: Vec<u8>,
    /// In the buffer.
    position: usize,
    tail_position: usize,
    count: usize,
}

impl Spool {
    /// Holds nothing yet. What takes more memory than `resources` allow goes to a file.
    pub(super) fn new(stage: &'static str, resources: &Resources) -> Spool {
        let resources = resources.clone();
        Spool { stage, resources, file: None, file_bytes: 0, tail: Vec::new(), count: 0 }
    }

    /// How many documents there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Takes a document.
    ///
    /// # Errors
    /// What writing the file failed with; 292 if there may be none.
    pub(super) fn push(&mut self, document: Document<'_>) -> Result<(), QueryError> {
        self.tail.extend_from_slice(document.as_bytes());
        self.count += 1;
        // A growing vector has room for twice what it holds.
        if self.tail.len() <= self.resources.memory_bytes_max / 2 {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(self.resources.create(self.stage)?),
        };
        file.append(&self.tail)?;
        self.file_bytes += self.tail.len() as u64;
        self.tail.clear();
        self.tail.shrink_to(BUFFER_BYTES);
        self.resources.check()
    }

    /// Reads them all, in the order in which they came.
    pub(super) fn read(self: &Arc<Spool>) -> SpoolReader {
        SpoolReader {
            spool: Arc::clone(self),
            file_offset: 0,
            buffer: Vec::new(),
            position: 0,
            tail_position: 0,
            count: 0,
        }
    }
}

impl SpoolReader {
    /// The next document.
    ///
    /// # Errors
    /// What reading the file failed with; that the query is to stop.
    pub(super) fn next_document(&mut self) -> Result<Option<DocumentBuf>, QueryError> {
        self.count += 1;
        if self.count.is_multiple_of(CHECK_COUNT) {
            self.spool.resources.check()?;
        }
        let is_in_file =
            self.position < self.buffer.len() || self.file_offset < self.spool.file_bytes;
        let bytes = if is_in_file {
            self.have(LENGTH_BYTES)?;
            let length = length_at(&self.buffer[self.position..]);
            self.have(length)?;
            self.position += length;
            &self.buffer[self.position - length..self.position]
        } else {
            let rest = &self.spool.tail[self.tail_position..];
            if rest.is_empty() {
                return Ok(None);
            }
            let length = length_at(rest);
            self.tail_position += length;
            &rest[..length]
        };
        Ok(Some(DocumentBuf::from_validated(Bytes::copy_from_slice(bytes))))
    }

    /// Reads on until the buffer holds so many bytes from its position on.
    fn have(&mut self, wanted: usize) -> Result<(), QueryError> {
        let held = self.buffer.len() - self.position;
        if wanted <= held {
            return Ok(());
        }
        self.buffer.drain(..self.position);
        self.position = 0;
        let left = usize::try_from(self.spool.file_bytes - self.file_offset).unwrap_or(usize::MAX);
        let more = (wanted - held).max(BUFFER_BYTES).min(left);
        assert!(wanted <= held + more, "a spool holds what was written to it");
        self.buffer.resize(held + more, 0);
        let file = self.spool.file.as_ref().expect("its bytes were counted");
        file.read_at(self.file_offset, &mut self.buffer[held..])?;
        self.file_offset += more as u64;
        Ok(())
    }
}

/// The length of the document that begins there.
fn length_at(bytes: &[u8]) -> usize {
    let length = bytes.first_chunk::<LENGTH_BYTES>().expect("a document has a length");
    u32::from_le_bytes(*length) as usize
}

impl Iterator for SpoolReader {
    type Item = Result<DocumentBuf, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_document().transpose()
    }
}
