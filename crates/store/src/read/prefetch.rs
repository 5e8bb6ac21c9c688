//! Prefetched chunks: their bytes are in memory, and are decompressed only when they are read.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::chunk::{Chunk, ChunkHash};
use crate::pack::Pack;
use crate::read::buffers::BufferPool;

/// A chunk that was read ahead: [`ChunkStore::prefetch`](crate::ChunkStore::prefetch) gives it, and
/// [`ChunkStore::open_prefetched`](crate::ChunkStore::open_prefetched) of the same store takes it.
pub struct Prefetched(pub(crate) State);

pub(crate) enum State {
    /// It was in memory.
    Chunk(Chunk),
    Stored(Stored),
}

/// A frame as it lies in a pack.
pub(crate) struct Stored {
    pub(crate) hash: ChunkHash,
    pub(crate) pack: Arc<Pack>,
    pub(crate) offset: u64,
    pub(crate) frame: Bytes,
}

impl From<Chunk> for Prefetched {
    fn from(chunk: Chunk) -> Prefetched {
        Prefetched(State::Chunk(chunk))
    }
}

/// A buffer that goes back to its pool when no reader has its bytes any more.
pub(crate) struct PooledBuffer {
    buffer: Vec<u8>,
    part: Range<usize>,
    buffers: Arc<BufferPool>,
}

impl PooledBuffer {
    /// A buffer of `bytes`, with whatever was in it.
    pub(crate) fn new(buffers: &Arc<BufferPool>, bytes: usize) -> PooledBuffer {
        let mut buffer = buffers.take();
        if buffer.len() < bytes {
            // As many as they grow to at once: then it isn't too large to be kept.
            buffer.resize(bytes.next_power_of_two(), 0);
        }
        PooledBuffer { buffer, part: 0..bytes, buffers: Arc::clone(buffers) }
    }

    /// Reads into a buffer: `read` returns the part of the buffer that it filled, and may make the
    /// buffer longer.
    pub(crate) fn read<E>(
        buffers: &Arc<BufferPool>,
        read: impl FnOnce(&mut Vec<u8>) -> Result<Range<usize>, E>,
    ) -> Result<PooledBuffer, E> {
        let mut lent =
            PooledBuffer { buffer: buffers.take(), part: 0..0, buffers: Arc::clone(buffers) };
        lent.part = read(&mut lent.buffer)?;
        Ok(lent)
    }

    /// All of it, as far as it wasn't cut.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.part.clone()]
    }

    /// Cuts it to so many bytes, which isn't more than it had.
    pub(crate) fn cut(&mut self, bytes: usize) {
        assert!(bytes <= self.part.len());
        self.part.end = self.part.start + bytes;
    }
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[self.part.clone()]
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.buffers.give_back(std::mem::take(&mut self.buffer));
    }
}
