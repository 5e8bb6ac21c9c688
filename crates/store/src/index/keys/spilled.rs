//! A sorted set of pairs in a file that never changes: what doesn't fit into the memory for keys.
//!
//! 1. In memory stays the first pair of each page of 511 (*fences*): a sixty-fourth of a byte for
//!    each.
//! 2. The file has no name: it is removed as soon as it is made, and goes with the process. So it
//!    is never synced, and a crash leaves nothing of it.
//! 3. Each page has a checksum. What can't be read as it was written is an error, never an absent
//!    pair: a pair that is missed is a chunk that is lost.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use twox_hash::XxHash3_64;

use super::{Pair, alike_range};
use crate::error::StoreError;
use crate::field::u64_at;
use crate::hash::NameBeginning;
use crate::io::{Disk, DiskFile};

/// The name that the file has for a moment.
const FILE_NAME: &str = "KEYS";
const PAGE_BYTES: usize = 4 << 10;
const PAIR_BYTES: usize = size_of::<u64>();
/// The pairs of a page; the rest is its checksum.
const PAGE_COUNT: usize = PAGE_BYTES / PAIR_BYTES - 1;
const PAIRS_BYTES: usize = PAGE_COUNT * PAIR_BYTES;
const _: () = assert!(PAIRS_BYTES + PAIR_BYTES == PAGE_BYTES);
/// Pages are written together.
const WRITTEN_BYTES: usize = 64 * PAGE_BYTES;

/// See the module. An equal pair may be there more than once.
///
/// *Thread safety*: every method may be called from any number of threads at once.
pub(crate) struct Spilled {
    file: Arc<dyn DiskFile>,
    fences: Vec<Pair>,
    count: usize,
}

impl std::fmt::Debug for Spilled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spilled").field("count", &self.count).finish_non_exhaustive()
    }
}

impl Spilled {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Adds to `found` all pairs of names that begin as one of `beginnings`, which ascend strictly.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::Damaged`].
    pub(super) fn read_alike(
        &self,
        beginnings: &[NameBeginning],
        found: &mut Vec<Pair>,
    ) -> Result<(), StoreError> {
        let mut last: Option<(usize, Page)> = None;
        for beginning in beginnings {
            let range = alike_range(*beginning);
            // The page before the first that begins so may end with some.
            let first = self.fences.partition_point(|fence| fence < range.start());
            let end = self.fences.partition_point(|fence| fence <= range.end());
            for page in first.saturating_sub(1)..end {
                let there = match last.take() {
                    Some((number, there)) if number == page => there,
                    _ => self.page(page)?,
                };
                let pairs = there.pairs_from(*range.start());
                found.extend(pairs.take_while(|pair| pair <= range.end()));
                last = Some((page, there));
            }
        }
        Ok(())
    }

    fn page(&self, page: usize) -> Result<Page, StoreError> {
        let offset = (page * PAGE_BYTES) as u64;
        let mut bytes = vec![0; PAGE_BYTES];
        self.file.read_exact_at(offset, &mut bytes).map_err(io_error)?;
        let (stored, checksum) = bytes.split_at(PAIRS_BYTES);
        let holds = u64_at(checksum, 0) == Some(XxHash3_64::oneshot(stored));
        let count = PAGE_COUNT.min(self.count - page * PAGE_COUNT);
        let read = Page { bytes, count };
        match holds && read.pairs_from(Pair(0)).next() == self.fences.get(page).copied() {
            true => Ok(read),
            false => Err(StoreError::damaged(FILE_NAME, offset, "the checksum is wrong")),
        }
    }

    /// All pairs, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = Result<Pair, StoreError>> {
        (0..self.fences.len()).flat_map(|page| {
            let (pairs, error): (Vec<Pair>, _) = match self.page(page) {
                Ok(there) => (there.pairs_from(Pair(0)).collect(), None),
                Err(error) => (Vec::new(), Some(error)),
            };
            pairs.into_iter().map(Ok).chain(error.map(Err))
        })
    }
}

/// A page that was read.
struct Page {
    bytes: Vec<u8>,
    count: usize,
}

impl Page {
    /// Its pairs that aren't less than `least`, ascending: few of them are decoded.
    fn pairs_from(&self, least: Pair) -> impl Iterator<Item = Pair> {
        let (pairs, _) = self.bytes.as_chunks::<PAIR_BYTES>();
        let pairs = &pairs[..self.count];
        let decode = |pair: &[u8; PAIR_BYTES]| Pair(u64::from_le_bytes(*pair));
        let from = pairs.partition_point(|pair| decode(pair) < least);
        pairs[from..].iter().map(decode)
    }
}

fn io_error(error: io::Error) -> StoreError {
    StoreError::io(FILE_NAME, error)
}

/// Writes a [`Spilled`].
pub(super) struct SpillWriter {
    file: Arc<dyn DiskFile>,
    fences: Vec<Pair>,
    count: usize,
    /// Whole pages, and the pairs of one that isn't.
    buffer: Vec<u8>,
    written: u64,
}

impl SpillWriter {
    /// Begins a file of `disk`.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub(super) fn create(disk: &dyn Disk) -> Result<SpillWriter, StoreError> {
        // A crash may have left one.
        match disk.remove(FILE_NAME) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(io_error(error)),
            _ => {}
        }
        let file = disk.create(FILE_NAME).map_err(io_error)?;
        disk.remove(FILE_NAME).map_err(io_error)?;
        let (fences, buffer) = (Vec::new(), Vec::with_capacity(WRITTEN_BYTES));
        Ok(SpillWriter { file, fences, count: 0, buffer, written: 0 })
    }

    /// Adds a pair, none of those before being greater.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub(super) fn push(&mut self, pair: Pair) -> Result<(), StoreError> {
        if self.count.is_multiple_of(PAGE_COUNT) {
            debug_assert!(self.fences.last().is_none_or(|last| *last <= pair), "pairs ascend");
            self.fences.push(pair);
        }
        self.buffer.extend_from_slice(&pair.0.to_le_bytes());
        self.count += 1;
        if self.count.is_multiple_of(PAGE_COUNT) {
            self.end_page()?;
        }
        Ok(())
    }

    fn end_page(&mut self) -> Result<(), StoreError> {
        let start = self.buffer.len().next_multiple_of(PAGE_BYTES) - PAGE_BYTES;
        self.buffer.resize(start + PAIRS_BYTES, 0);
        let checksum = XxHash3_64::oneshot(&self.buffer[start..]);
        self.buffer.extend_from_slice(&checksum.to_le_bytes());
        if WRITTEN_BYTES <= self.buffer.len() { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), StoreError> {
        self.file.write_all_at(self.written, &self.buffer).map_err(io_error)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub(super) fn finish(mut self) -> Result<Spilled, StoreError> {
        if !self.count.is_multiple_of(PAGE_COUNT) {
            self.end_page()?;
        }
        self.write()?;
        Ok(Spilled { file: self.file, fences: self.fences, count: self.count })
    }
}

#[cfg(test)]
impl Spilled {
    /// Changes a byte of the file.
    pub(super) fn damage(&self, offset: u64) {
        let mut byte = [0];
        self.file.read_exact_at(offset, &mut byte).expect("the file is longer");
        self.file.write_all_at(offset, &[!byte[0]]).expect("it can be written");
    }
}
