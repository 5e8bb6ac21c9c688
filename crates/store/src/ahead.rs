//! Chunks that were read ahead for somebody who passes by many: their bytes are in memory, and are decompressed when it
//! is their turn, or never.

use std::sync::Arc;

use bytes::Bytes;

use crate::buffers::Buffers;
use crate::chunk::{Chunk, ChunkHash};
use crate::pack::Pack;

/// A chunk that was read ahead: [`ChunkStore::read_ahead`](crate::ChunkStore::read_ahead) gives it, and
/// [`ChunkStore::open_ahead`](crate::ChunkStore::open_ahead) of the same store takes it.
pub struct Ahead(pub(crate) State);

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

impl From<Chunk> for Ahead {
    fn from(chunk: Chunk) -> Ahead {
        Ahead(State::Chunk(chunk))
    }
}

/// A buffer that goes back when nobody has its bytes any more.
pub(crate) struct Lent {
    buffer: Vec<u8>,
    bytes: usize,
    buffers: Arc<Buffers>,
}

impl Lent {
    /// A buffer of `bytes`, with whatever was in it.
    pub(crate) fn new(buffers: &Arc<Buffers>, bytes: usize) -> Lent {
        let mut buffer = buffers.take();
        if buffer.len() < bytes {
            // As many as they grow to at once: then it isn't too large to be kept.
            buffer.resize(bytes.next_power_of_two(), 0);
        }
        Lent { buffer, bytes, buffers: Arc::clone(buffers) }
    }

    /// All of it, as far as it wasn't cut.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.bytes]
    }

    /// From now on it has so many bytes, which isn't more than it had.
    pub(crate) fn cut(&mut self, bytes: usize) {
        assert!(bytes <= self.bytes);
        self.bytes = bytes;
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.bytes]
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.buffers.give_back(std::mem::take(&mut self.buffer));
    }
}
