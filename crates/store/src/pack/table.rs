//! The index of a sealed pack: on disk, found by interpolation.
//!
//! 1. In memory stays one number a page of 102 chunks: the beginning of the page's first name
//!    (*fence*).
//! 2. A search finds the page among the fences, takes it from the cache of pages or reads it from
//!    the disk, checks it, and searches it. Names are hashes, so it is one page; two only where the
//!    first eight bytes of names on both sides of a page's end are equal.

pub(crate) mod format;

use std::ops::Range;

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use self::format::{PAGE_ENTRY_COUNT, check_page, page_chunks, page_place, search_page};
use super::Pack;
use super::outline::Outline;
use crate::chunk::ChunkHash;
use crate::error::StoreError;
use crate::hash::NameBeginning;
use crate::interpolation::guess;
use crate::location::{PackNumber, PackedChunk};

/// The memory of a cache entry besides its bytes.
const PAGE_ENTRY_COST: u64 = 100;
const PAGE_BYTES_TYPICAL: u64 = 4 << 10;

/// The part of a sealed pack's index that stays in memory.
#[derive(Debug)]
pub(crate) struct PackTable {
    /// The pack's length, index included.
    pub(crate) pack_bytes: u64,
    index_offset: u32,
    entry_count: u32,
    fences: Vec<u64>,
}

impl PackTable {
    /// The table of the index at `index_offset` in a pack of `pack_bytes`, whose entries are
    /// `entries`, in their order.
    pub(crate) fn new(pack_bytes: u64, index_offset: u32, entries: &[PackedChunk]) -> PackTable {
        let fences = entries.chunks(PAGE_ENTRY_COUNT).map(|page| fence(page[0].hash)).collect();
        let entry_count = u32::try_from(entries.len()).expect("an index counts in 32 bits");
        PackTable { pack_bytes, index_offset, entry_count, fences }
    }

    /// The table of a pack of `pack_bytes` whose index has this outline.
    pub(crate) fn of_outline(pack_bytes: u64, outline: &Outline) -> PackTable {
        let Outline { index_offset, entry_count, ref fences, .. } = *outline;
        PackTable { pack_bytes, index_offset, entry_count, fences: fences.clone() }
    }

    /// The pages that may hold `hash`; most likely the last.
    fn pages(&self, hash: ChunkHash) -> Range<usize> {
        let key = fence(hash);
        let first = self.fences.partition_point(|fence| *fence < key).saturating_sub(1);
        first..self.fences.partition_point(|fence| *fence <= key)
    }

    /// Returns where in a page of `count` entries `hash` most likely lies.
    fn guess(&self, page: usize, hash: ChunkHash, count: usize) -> usize {
        let fence_of = |page: usize, or| self.fences.get(page).copied().unwrap_or(or);
        guess(fence(hash), fence_of(page, 0), fence_of(page + 1, u64::MAX), count)
    }
}

/// The beginning of a page's first name.
pub(super) fn fence(hash: ChunkHash) -> u64 {
    hash.0.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

impl Pack {
    /// Finds a chunk of a sealed pack, and its position in the pack's index. Where a page isn't
    /// what was written, the frames decide; then the position may be another, and no collection
    /// touches the pack.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub(crate) fn search(
        &self,
        pages: &PageCache,
        hash: ChunkHash,
    ) -> Result<Option<(u32, PackedChunk)>, StoreError> {
        let table = self.table.get().expect("a sealed pack's table is set");
        for page in table.pages(hash).rev() {
            let entries = match self.page(pages, table, page as u32) {
                Err(StoreError::Damaged { .. }) => {
                    let rescued = self.rescued()?;
                    let found = rescued.binary_search_by_key(&hash, |entry| entry.hash).ok();
                    return Ok(found.map(|position| (position as u32, rescued[position])));
                }
                entries => entries?,
            };
            let guess = |count| table.guess(page, hash, count);
            if let Some((position, found)) = search_page(&entries, hash, guess) {
                let before = page * PAGE_ENTRY_COUNT;
                return Ok(Some(((before + position) as u32, found)));
            }
        }
        Ok(None)
    }

    /// The chunks of a sealed pack whose names begin so, in their order.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub(crate) fn named_alike(
        &self,
        pages: &PageCache,
        beginning: NameBeginning,
    ) -> Result<Vec<PackedChunk>, StoreError> {
        let table = self.table.get().expect("a sealed pack's table is set");
        let mut found = Vec::new();
        let is_alike = |chunk: &PackedChunk| NameBeginning::of(chunk.hash) == beginning;
        for page in table.pages(beginning.least_name()).start..table.fences.len() {
            let entries = match self.page(pages, table, page as u32) {
                Err(StoreError::Damaged { .. }) => {
                    let rescued = self.rescued()?;
                    return Ok(rescued.iter().copied().filter(is_alike).collect());
                }
                entries => entries?,
            };
            found.extend(page_chunks(&entries).filter(is_alike));
            let last = page_chunks(&entries).last();
            if last.is_some_and(|last| beginning < NameBeginning::of(last.hash)) {
                break;
            }
        }
        Ok(found)
    }

    fn page(&self, pages: &PageCache, table: &PackTable, page: u32) -> Result<Bytes, StoreError> {
        if let Some(entries) = pages.0.get(&(self.number, page)) {
            return Ok(entries);
        }
        let (offset, bytes) = page_place(table.index_offset, table.entry_count, page);
        let fence = table.fences.get(page as usize).copied();
        let entries = match self.read_page(offset, bytes, fence) {
            // What came from beyond the disk may be at fault, and is asked for again.
            Err(StoreError::Damaged { .. }) if self.file.forget_cached(offset, bytes as u64) => {
                self.read_page(offset, bytes, fence)
            }
            read => read,
        }?;
        pages.0.insert((self.number, page), entries.clone());
        Ok(entries)
    }
}

impl Pack {
    fn read_page(
        &self,
        offset: u64,
        bytes: usize,
        expected: Option<u64>,
    ) -> Result<Bytes, StoreError> {
        let mut stored = self.read(offset, bytes)?;
        let entries = check_page(&stored, offset).map_err(|what| self.damaged(offset, what))?;
        // The fences may come from an outline.
        if page_chunks(entries).next().map(|chunk| fence(chunk.hash)) != expected {
            return Err(self.damaged(offset, "a page of an index begins with another name"));
        }
        let entries_bytes = entries.len();
        stored.truncate(entries_bytes);
        Ok(Bytes::from(stored))
    }
}

/// Pages of indexes that were read lately, without their checksums.
pub(crate) struct PageCache(Cache<(PackNumber, u32), Bytes, ByBytes>);

#[derive(Clone)]
struct ByBytes;

impl Weighter<(PackNumber, u32), Bytes> for ByBytes {
    fn weight(&self, _page: &(PackNumber, u32), entries: &Bytes) -> u64 {
        entries.len() as u64 + PAGE_ENTRY_COST
    }
}

impl PageCache {
    pub(crate) fn new(bytes_max: u64) -> PageCache {
        let count = usize::try_from(bytes_max / PAGE_BYTES_TYPICAL).unwrap_or(usize::MAX);
        let hasher = quick_cache::DefaultHashBuilder::default();
        PageCache(Cache::with(count, bytes_max, ByBytes, hasher, DefaultLifecycle::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_take_no_more_than_they_may() {
        let pages = PageCache::new(8 << 10);
        for page in 0..100 {
            pages.0.insert((PackNumber(1), page), Bytes::from(vec![0; 1000]));
        }
        assert!(!pages.0.is_empty() && pages.0.len() <= 8, "{} pages", pages.0.len());
    }
}
