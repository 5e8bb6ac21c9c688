//! Sorting any number of documents by their keys' bytes, stable, in bounded memory.
//!
//! 1. Entries are kept until they take the memory that is allowed; then they are sorted and written
//!    to a file, a *run*.
//! 2. In the end the runs and what is still in memory are interleaved: the least key first, of equal
//!    keys the one of the earlier run, so that equal documents keep their order.
//! 3. Where only the first so many are wanted, the worse half is dropped before anything is written.
//!
//! A run is a sequence of entries: two lengths of four bytes (little-endian), the key, the document.
//! It lives as long as the query; nobody else reads it.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use bytes::Bytes;
use frond_doc::DocumentBuf;

use super::spill::{Resources, SpillFile};
use crate::error::QueryError;

/// What an entry costs besides its bytes.
const ENTRY_BYTES: usize = size_of::<Entry>();
/// A run is read in pieces of so many bytes.
const BUFFER_BYTES: usize = 64 << 10;
/// The two lengths before an entry.
const LENGTHS_BYTES: usize = 8;

/// A document and the key by which it is sorted.
type Entry = (Bytes, DocumentBuf);

/// Collects documents to be sorted.
pub struct Sorter<'r> {
    /// Who sorts, for messages.
    stage: &'static str,
    resources: &'r Resources,
    /// How many of the first are wanted.
    wanted: usize,
    entries: Vec<Entry>,
    bytes: usize,
    runs: Vec<Run>,
}

impl<'r> Sorter<'r> {
    /// Sorts for `stage`; only the first `wanted` documents will be asked for.
    pub fn new(stage: &'static str, resources: &'r Resources, wanted: usize) -> Sorter<'r> {
        Sorter { stage, resources, wanted, entries: Vec::new(), bytes: 0, runs: Vec::new() }
    }

    /// Takes a document.
    ///
    /// # Errors
    /// What writing a run failed with; 292 if none may be written.
    pub fn add(&mut self, key: Bytes, document: DocumentBuf) -> Result<(), QueryError> {
        self.bytes += cost(&key, &document);
        self.entries.push((key, document));
        let is_full = self.resources.memory_bytes_max < self.bytes;
        if is_full || self.wanted.saturating_mul(2).max(64) <= self.entries.len() {
            self.sort();
        }
        if self.resources.memory_bytes_max < self.bytes { self.write_run() } else { Ok(()) }
    }

    fn sort(&mut self) {
        self.entries.sort_by(|left, right| left.0.cmp(&right.0));
        if self.wanted < self.entries.len() {
            self.entries.truncate(self.wanted);
            self.bytes = self.entries.iter().map(|(key, document)| cost(key, document)).sum();
        }
    }

    fn write_run(&mut self) -> Result<(), QueryError> {
        let mut file = self.resources.create(self.stage)?;
        let mut buffer = Vec::with_capacity(BUFFER_BYTES * 2);
        let mut bytes = 0;
        for (key, document) in self.entries.drain(..) {
            for part in [key.len(), document.as_bytes().len()] {
                let length = u32::try_from(part).expect("a document has less than 2 GiB");
                buffer.extend_from_slice(&length.to_le_bytes());
            }
            buffer.extend_from_slice(&key);
            buffer.extend_from_slice(document.as_bytes());
            if BUFFER_BYTES < buffer.len() {
                bytes += buffer.len() as u64;
                file.append(&buffer)?;
                buffer.clear();
            }
        }
        bytes += buffer.len() as u64;
        file.append(&buffer)?;
        self.runs.push(Run { file, bytes, offset: 0, buffer: Vec::new(), position: 0 });
        self.bytes = 0;
        Ok(())
    }

    /// The documents in the order of their keys.
    ///
    /// # Errors
    /// What reading a run failed with.
    pub fn finish(mut self) -> Result<Sorted, QueryError> {
        self.sort();
        let mut sorted = Sorted {
            heap: BinaryHeap::new(),
            runs: self.runs,
            rest: self.entries.into_iter(),
            left: self.wanted,
        };
        if !sorted.runs.is_empty() {
            for run in 0..=sorted.runs.len() {
                sorted.push_next(run)?;
            }
        }
        Ok(sorted)
    }
}

/// What an entry costs in memory.
fn cost(key: &Bytes, document: &DocumentBuf) -> usize {
    ENTRY_BYTES + key.len() + document.as_bytes().len()
}

/// Sorted documents on a disk.
struct Run {
    file: Box<dyn SpillFile>,
    bytes: u64,
    /// Where the next piece begins.
    offset: u64,
    buffer: Vec<u8>,
    /// In the buffer.
    position: usize,
}

impl Run {
    fn next(&mut self) -> Result<Option<Entry>, QueryError> {
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
        let more = (wanted - held).max(BUFFER_BYTES).min(left);
        assert!(wanted <= held + more, "a run holds what was written to it");
        self.buffer.resize(held + more, 0);
        self.file.read_at(self.offset, &mut self.buffer[held..])?;
        self.offset += more as u64;
        Ok(())
    }
}

/// The next entry of a run, the least first.
struct Head {
    entry: Entry,
    run: usize,
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        (&self.entry.0, self.run).cmp(&(&other.entry.0, other.run))
    }
}

/// Sorted documents with their keys.
pub struct Sorted {
    /// Empty where there are no runs: all is in `rest` then.
    heap: BinaryHeap<Reverse<Head>>,
    runs: Vec<Run>,
    /// What is in memory: the last run.
    rest: std::vec::IntoIter<Entry>,
    left: usize,
}

impl Sorted {
    fn push_next(&mut self, run: usize) -> Result<(), QueryError> {
        let entry = match self.runs.get_mut(run) {
            Some(run) => run.next()?,
            None => self.rest.next(),
        };
        self.heap.extend(entry.map(|entry| Reverse(Head { entry, run })));
        Ok(())
    }
}

impl Iterator for Sorted {
    type Item = Result<Entry, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        if self.runs.is_empty() {
            return self.rest.next().map(Ok);
        }
        let Reverse(Head { entry, run }) = self.heap.pop()?;
        Some(self.push_next(run).map(|()| entry))
    }
}
