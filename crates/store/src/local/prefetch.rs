//! Reads ahead for a scan of chunks in the order in which they were put, as range scans do: folds
//! and flushes put neighbours one after the other.
//!
//! 1. The first chunk that isn't in the cache is looked up. The frames behind it are read with it,
//!    as many bytes as the chunks that are wanted may take.
//! 2. Frame by frame, the bytes are compared with the chunks that are wanted next, by the names in
//!    frames' headers: none of these is looked up. A chunk that can't be found so ends the reading;
//!    the caller asks for the rest in its turn.
//! 3. A frame is checked and decompressed when its chunk is opened. In a full cache it is kept if
//!    it was wanted lately.
//!
//! So to read more than is needed costs a copy of compressed bytes, and a scan costs the cache
//! nothing.

use std::sync::Arc;

use bytes::Bytes;

use super::LocalStore;
use crate::Prefetched;
use crate::chunk::{Chunk, ChunkHash};
use crate::error::StoreError;
use crate::location::Location;
use crate::pack::Pack;
use crate::pack::format::{frame_bytes, frame_name, is_group};
use crate::pack::reader::{Naming, decode_frame, pick};
use crate::read::buffers::BufferPool;
use crate::read::prefetch::{PooledBuffer, State, Stored};

/// The greatest number of bytes that are read at once, if the first chunk isn't longer.
pub(super) const WINDOW_BYTES_MAX: usize = 64 << 10;

/// Frames as they lie in a pack; those before `next` are done with.
struct Window {
    pack: Arc<Pack>,
    offset: u64,
    bytes: Bytes,
    next: usize,
}

impl LocalStore {
    pub(super) fn fetch_prefetched(
        &self,
        hashes: &[ChunkHash],
    ) -> Result<Vec<Prefetched>, StoreError> {
        let mut ahead: Vec<Prefetched> = Vec::with_capacity(hashes.len());
        let mut window: Option<Window> = None;
        for (position, hash) in hashes.iter().enumerate() {
            if let Some(chunk) = self.cache.get(*hash) {
                ahead.push(chunk.into());
                continue;
            }
            let found = match &mut window {
                Some(window) => window.find(*hash),
                None => {
                    let found = self.find(*hash)?;
                    let (pack, at) = found.map_or_else(|| self.find_healed(*hash), Ok)?;
                    let read = Window::read(&self.windows, pack, &at, hashes.len() - position)?;
                    let window = window.insert(read);
                    Some(window.take(*hash, at.place.bytes as usize))
                }
            };
            let Some(found) = found else { break };
            self.counters.chunks_fetched.add(1);
            ahead.push(match is_group(&found.frame) {
                // The other chunks of the group may be wanted next.
                true => self.open_stored(found)?.into(),
                false => Prefetched(State::Stored(found)),
            });
        }
        self.counters.chunks_read.add(ahead.len() as u64);
        Ok(ahead)
    }

    /// As `open_stored`, for a caller that lets the chunk go.
    pub(super) fn open_stored_past_cache(&self, stored: &Stored) -> Result<Chunk, StoreError> {
        match stored.open() {
            Err(StoreError::Damaged { .. }) => self.fetch_past_cache(stored.hash),
            opened => Ok(opened?.0),
        }
    }

    pub(super) fn open_stored(&self, stored: Stored) -> Result<Chunk, StoreError> {
        let hash = stored.hash;
        let (chunk, chunks) = match stored.open() {
            // It is set aside by its reader where it lies; perhaps it is healed by then.
            Err(StoreError::Damaged { .. }) => return self.fetch(hash),
            opened => opened?,
        };
        if chunks.len() > 1 || self.cache.worth_passing(hash) {
            chunks.into_iter().for_each(|chunk| self.cache.insert(chunk));
        }
        Ok(chunk)
    }
}

impl Stored {
    /// The chunk, and all that are in its frame.
    pub(super) fn open(&self) -> Result<(Chunk, Vec<Chunk>), StoreError> {
        let chunks = decode_frame(&self.pack, self.offset, &self.frame, Naming::ByChecksum)?;
        let chunk = pick(&self.pack, self.offset, &chunks, self.hash)?;
        Ok((chunk, chunks))
    }
}

impl Window {
    /// Reads the frame at `at`, and what lies behind it, for `count` such frames.
    fn read(
        buffers: &Arc<BufferPool>,
        pack: Arc<Pack>,
        at: &Location,
        count: usize,
    ) -> Result<Window, StoreError> {
        let (offset, first) = (u64::from(at.place.offset), at.place.bytes as usize);
        let there = usize::try_from(pack.written().saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = first.saturating_mul(count).min(WINDOW_BYTES_MAX).min(there).max(first);
        let mut bytes = PooledBuffer::new(buffers, wanted);
        if pack.read_to(offset, bytes.bytes_mut()).is_err() {
            // A fault behind the first frame doesn't concern it.
            bytes.cut(first);
            pack.read_to(offset, bytes.bytes_mut())?;
        }
        Ok(Window { pack, offset, bytes: Bytes::from_owner(bytes), next: 0 })
    }

    /// The next frame, which is so long, for the chunk `hash`.
    fn take(&mut self, hash: ChunkHash, bytes: usize) -> Stored {
        let start = self.next;
        self.next += bytes;
        let (pack, offset) = (Arc::clone(&self.pack), self.offset + start as u64);
        Stored { hash, pack, offset, frame: self.bytes.slice(start..self.next) }
    }

    /// The next frame of `hash` alone, if it is here.
    fn find(&mut self, hash: ChunkHash) -> Option<Stored> {
        loop {
            let rest = self.bytes.get(self.next..)?;
            let bytes = frame_bytes(rest).filter(|bytes| *bytes <= rest.len())?;
            let is_it = frame_name(rest) == Some(hash) && !is_group(rest);
            let stored = self.take(hash, bytes);
            if is_it {
                return Some(stored);
            }
        }
    }
}
