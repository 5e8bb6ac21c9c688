//! Content-addressed chunks on local disk, and the operating system behind three small traits.
//!
//! Reading order: [`io`] (disk, clock, chance), [`chunk`] (what is stored), [`ChunkStore`] (what a
//! store can do), then [`local`] (pack files; with it `pack`, `manifest` and `index`) and [`memory`]
//! (for tests and temporary trees). [`field`] is what every file format shares.
//! This crate doesn't know what a chunk's payload means.

pub mod chunk;
pub mod error;
pub mod field;
pub mod io;
pub mod local;
pub mod memory;

mod ahead;
mod bits;
mod buffers;
mod bypass;
mod cache;
mod collection;
mod counters;
mod index;
pub mod lane;
mod layer;
mod manifest;
mod missed;
mod near;
mod pack;
mod part;
mod parts;
mod room;
mod session;
mod slow;

pub use ahead::Ahead;
pub use chunk::{Chunk, ChunkHash, ChunkKind, WeakChunk};
pub use collection::{CollectOptions, Collected, Collection};
pub use error::StoreError;
pub use index::NameHasherBuilder;
pub use layer::{PutFor, StoreLayer};
pub use manifest::ROOT_NAME_BYTES_MAX;
pub use part::PartName;
pub use room::{Room, Taken};
pub use session::Session;

use std::sync::Arc;

use bytes::Bytes;

/// How long chunks are expected to be needed: a hint that decides which pack they go to and how hard
/// they are compressed, never what is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lifetime {
    /// Until they are folded into something else: a run.
    Brief,
    /// Until the next fold, or for good: the working state.
    Working,
    /// For good: what a version commit made.
    Lasting,
    /// As `Working`, and so much at once that it isn't kept in the cache: what a load made.
    Loaded,
}

/// A set of chunks named by their content, and the named roots that keep some of them alive.
///
/// *Thread safety*: every method may be called from any number of threads at once.
///
/// *Invariants*
/// 1. A chunk that `put_many` returned for is readable at once by every thread.
/// 2. It is durable once a later `sync` has returned. A root never names a chunk that isn't.
/// 3. Every chunk read from a disk is the one that was asked for, or damage is found: a checksum binds
///    its bytes to its name.
pub trait ChunkStore: Send + Sync {
    /// Returns the chunk named `hash`.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if no such chunk is stored; [`StoreError::Damaged`] if the stored
    /// bytes don't hash to their name.
    fn get(&self, hash: ChunkHash) -> Result<Chunk, StoreError>;

    /// As `get`, for a chunk that the caller replaces: it isn't kept in memory for the next who asks.
    ///
    /// # Errors
    /// As there.
    fn get_to_replace(&self, hash: ChunkHash) -> Result<Chunk, StoreError> {
        self.get(hash)
    }

    /// As `get`, for a caller that wants a small part of the chunk: it is kept in memory only if there is room, or if it
    /// was wanted lately. If not, the caller may have the part [kept](ChunkStore::keep_part) instead, under the name
    /// `part`; then its bytes are what the next one gets. Parts of one chunk may happen to have the same name.
    ///
    /// # Errors
    /// As there.
    fn glimpse(&self, hash: ChunkHash, _part: PartName) -> Result<Glimpse, StoreError> {
        Ok(Glimpse::Chunk(self.get(hash)?, Kept::InMemory))
    }

    /// Keeps what the caller wants of the chunk named `hash` in memory, where there is a cache: all `pieces`, one after the
    /// other.
    fn keep_part(&self, _hash: ChunkHash, _part: PartName, _pieces: &[&[u8]]) {}

    /// Returns the chunks named by `hashes`, in their order. Reads may be sorted and combined.
    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, StoreError> {
        hashes.iter().map(|hash| self.get(*hash)).collect()
    }

    /// Reads for who passes by the chunks named by `hashes` in their order, and hardly comes back: the first, and as many of
    /// those that follow as come with it at little cost. At least one, if any is wanted. To read more than are
    /// [opened](ChunkStore::open_ahead) later costs little, too.
    ///
    /// # Errors
    /// As `get`, of any of the chunks.
    fn read_ahead(&self, hashes: &[ChunkHash]) -> Result<Vec<Ahead>, StoreError> {
        Ok(self.get_many(hashes)?.into_iter().map(Ahead::from).collect())
    }

    /// The chunk that this store has read ahead. In memory it is kept for others only if there is room, or if it was wanted
    /// lately.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], as `get`.
    fn open_ahead(&self, ahead: Ahead) -> Result<Chunk, StoreError> {
        match ahead.0 {
            ahead::State::Chunk(chunk) => Ok(chunk),
            ahead::State::Stored(stored) => self.get(stored.hash),
        }
    }

    /// As `open_ahead`, for a chunk that the caller replaces: it isn't kept in memory for the next who asks.
    ///
    /// # Errors
    /// As there.
    fn open_ahead_to_replace(&self, ahead: Ahead) -> Result<Chunk, StoreError> {
        self.open_ahead(ahead)
    }

    /// Tells for each of `hashes` whether its chunk is stored. That says nothing of the chunks that it
    /// refers to: it may be garbage, of which a part is gone.
    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, StoreError>;

    /// Adds chunks; those already present cost a look-up and are not written again.
    fn put_many(&self, chunks: &[Chunk]) -> Result<(), StoreError> {
        self.put_many_for(Lifetime::Working, chunks)
    }

    /// As `put_many`, with a hint about how long they will be needed.
    fn put_many_for(&self, lifetime: Lifetime, chunks: &[Chunk]) -> Result<(), StoreError>;

    /// Makes every chunk put before this call durable.
    fn sync(&self) -> Result<(), StoreError>;

    /// Makes the chunks named `hashes` durable: as `sync`, unless all of them are. With a chunk that was put
    /// after what it refers to that is durable too.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if one of them isn't stored.
    fn sync_these(&self, hashes: &[ChunkHash]) -> Result<(), StoreError> {
        let is_stored = self.has_many(hashes)?;
        match hashes.iter().zip(is_stored).find(|(_, is_stored)| !is_stored) {
            Some((hash, _)) => Err(StoreError::Missing(*hash)),
            None => self.sync(),
        }
    }

    /// Returns the chunk that the root `name` names, if there is such a root.
    fn root(&self, name: &str) -> Result<Option<ChunkHash>, StoreError>;

    /// Replaces the root `name` if it is `expected` now; `None` stands for an absent root.
    /// Syncs first, then replaces atomically and durably.
    ///
    /// `name` is at most [`ROOT_NAME_BYTES_MAX`] long (asserted).
    ///
    /// # Errors
    /// [`StoreError::RootChanged`] if the root is not `expected`; [`StoreError::Missing`] if no chunk
    /// `new` is stored.
    fn swap_root(
        &self,
        name: &str,
        expected: Option<ChunkHash>,
        new: Option<ChunkHash>,
    ) -> Result<(), StoreError>;

    /// Protects from collection what is put, or found by `has_many` or `put_many`, from now until the
    /// result is dropped. Whoever puts chunks holds one until something lasting refers to them.
    fn session(&self) -> Session;

    /// Removes chunks that can't be reached from the named roots, from the roots that `collection`
    /// gives, or from what sessions protect. Readers and writers go on. One runs at a time.
    ///
    /// # Errors
    /// [`StoreError::Missing`] or [`StoreError::Damaged`] if something reachable can't be read: nothing
    /// was removed that isn't garbage. [`StoreError::Io`] with a full disk: likewise.
    fn collect(&self, collection: &mut Collection<'_>) -> Result<Collected, StoreError>;

    /// The memory for what readers keep of chunks beside the store's cache, where it has one.
    fn room(&self) -> Option<&Arc<Room>> {
        None
    }

    /// How much of the store's cache readers may [pin](Chunk::pin), where it has one.
    fn leaf_room(&self) -> Option<&Arc<Room>> {
        None
    }

    /// Returns what the store has done since it was opened.
    fn counters(&self) -> StoreCounters;
}

/// A chunk that was wanted for a small part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Glimpse {
    /// All of it, and whether the store has it in memory for the next who asks.
    Chunk(Chunk, Kept),
    /// What was kept of it: the part that was asked for, or another of the same name.
    Part(Bytes),
}

/// Whether a store has in memory what it read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// It has.
    InMemory,
    /// It has not; reading it was dear, so that the part that was wanted is worth [keeping](ChunkStore::keep_part).
    PartWanted,
    /// It has not, and to read it again is cheaper than to keep anything.
    No,
}

/// What a store has done since it was opened; for tests, benchmarks and `serverStatus`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCounters {
    /// Chunks asked for by `get` and `get_many`; not those that a reader still had.
    pub chunks_read: u64,
    /// Of these, chunks that had to be read from the disk.
    pub chunks_fetched: u64,
    /// Chunks written (new ones, not those already present).
    pub chunks_written: u64,
    /// Uncompressed bytes of the chunks written.
    pub bytes_put: u64,
    /// Bytes written to files, headers and indexes included.
    pub bytes_written: u64,
    /// Of these, bytes written for brief: a write-optimised overlay's.
    pub bytes_brief: u64,
    /// Of these, bytes that collections moved or packed.
    pub bytes_moved: u64,
    /// Calls of `sync` on any file.
    pub syncs: u64,
    /// Bytes of all pack files now.
    pub bytes_stored: u64,
}
