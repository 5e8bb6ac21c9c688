//! Decompressed chunks in memory, bounded by their bytes.

use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use crate::chunk::{Chunk, ChunkHash};
use crate::index::NameHasherBuilder;

/// What an entry costs beside its bytes: its name, the chunk's fields, the cache's own.
const ENTRY_BYTES: u64 = 160;
/// For the cache's first guess at how many entries it will hold.
const CHUNK_BYTES_TYPICAL: u64 = 8 << 10;

/// Most recently and most often used chunks.
pub(crate) struct ChunkCache(
    Cache<ChunkHash, Chunk, ByBytes, NameHasherBuilder, DefaultLifecycle<ChunkHash, Chunk>>,
);

#[derive(Clone)]
struct ByBytes;

impl Weighter<ChunkHash, Chunk> for ByBytes {
    fn weight(&self, _hash: &ChunkHash, chunk: &Chunk) -> u64 {
        chunk.encoded().len() as u64 + ENTRY_BYTES
    }
}

impl ChunkCache {
    pub(crate) fn new(bytes_max: u64) -> ChunkCache {
        let items = usize::try_from(bytes_max / CHUNK_BYTES_TYPICAL).unwrap_or(usize::MAX);
        let hasher = NameHasherBuilder;
        ChunkCache(Cache::with(items, bytes_max, ByBytes, hasher, DefaultLifecycle::default()))
    }

    pub(crate) fn get(&self, hash: ChunkHash) -> Option<Chunk> {
        self.0.get(&hash)
    }

    pub(crate) fn insert(&self, chunk: Chunk) {
        self.0.insert(chunk.hash(), chunk);
    }
}
