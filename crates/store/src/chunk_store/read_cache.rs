//! A store's cache, as readers of trees see it.

use std::sync::Arc;

use crate::cache::budget::CacheBudget;
use crate::chunk::ChunkHash;
use crate::entry_name::EntryName;

/// The cache of a [`ChunkStore`](super::ChunkStore), as readers of trees see it.
pub trait ReadCache: Send + Sync {
    /// Keeps what the caller wants of the chunk named `hash` in memory: all `pieces`, one after the
    /// other.
    fn keep_entry(&self, hash: ChunkHash, part: EntryName, pieces: &[&[u8]]);

    /// The memory for what readers keep of chunks beside the store's cache.
    fn link_budget(&self) -> &Arc<CacheBudget>;

    /// Returns how much of the store's cache readers may [pin](crate::Chunk::pin).
    fn pin_budget(&self) -> &Arc<CacheBudget>;

    /// Has the cache take so much less memory than it may, until another number is set.
    fn withhold(&self, bytes: u64);
}
