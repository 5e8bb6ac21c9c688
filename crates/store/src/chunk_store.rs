//! The trait of all chunk stores.

mod maintenance;
mod read_cache;

pub use self::maintenance::{Maintenance, SendFailure};
pub use self::read_cache::ReadCache;

use crate::cache::admission::{Admission, EntryLookup};
use crate::chunk::{Chunk, ChunkHash};
use crate::counters::StoreCounters;
use crate::entry_name::EntryName;
use crate::error::StoreError;
use crate::gc::session::Session;
use crate::lifetime::Lifetime;
#[cfg(doc)]
use crate::manifest::ROOT_NAME_BYTES_MAX;
use crate::read::prefetch::{Prefetched, State};
use crate::unreadable::UnreadableRange;

/// Options of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadOptions {
    /// The caller replaces the chunk: it isn't kept in memory for the next reader.
    pub will_replace: bool,
}

impl ReadOptions {
    /// The options for a chunk that the caller replaces.
    pub const TO_REPLACE: ReadOptions = ReadOptions { will_replace: true };
}

/// A set of chunks named by their content, and the named roots that keep some of them alive.
///
/// *Thread safety*: every method may be called from any number of threads at once.
///
/// *Invariants*
/// 1. A chunk that `put_many` returned for is readable at once by every thread.
/// 2. It is durable once a later `sync` has returned. A root never names a chunk that isn't.
/// 3. Every chunk read from a disk is the one that was asked for, or damage is found: a checksum
///    binds its bytes to its name.
pub trait ChunkStore: Send + Sync {
    /// Returns the chunk named `hash`, served as `options` say.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if no such chunk is stored; [`StoreError::Damaged`] if the stored
    /// bytes don't hash to their name.
    fn read(&self, hash: ChunkHash, options: ReadOptions) -> Result<Chunk, StoreError>;

    /// Returns the chunk named `hash`.
    ///
    /// # Errors
    /// As `read`.
    fn get(&self, hash: ChunkHash) -> Result<Chunk, StoreError> {
        self.read(hash, ReadOptions::default())
    }

    /// As `get`, for a caller that wants a small part of the chunk: it is kept in memory only if
    /// there is room, or if it was wanted lately. If not, the caller may have the part
    /// [kept](ReadCache::keep_entry) instead, under the name `entry_name`; then its bytes are what
    /// the next one gets. Parts of one chunk may happen to have the same name.
    ///
    /// # Errors
    /// As `read`.
    fn look_up_entry(&self, hash: ChunkHash, _part: EntryName) -> Result<EntryLookup, StoreError> {
        Ok(EntryLookup::Chunk(self.get(hash)?, Admission::InMemory))
    }

    /// Returns the chunks named by `hashes`, in their order. Reads may be sorted and combined.
    ///
    /// # Errors
    /// As `read`, of the first that can't be read.
    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, StoreError> {
        hashes.iter().map(|hash| self.get(*hash)).collect()
    }

    /// Reads for a caller that passes by the chunks named by `hashes` in their order, and hardly
    /// comes back: the first, and as many of those that follow as come with it at little cost. At
    /// least one, if any is wanted. To read more than are [opened](ChunkStore::open_prefetched)
    /// later costs little, too.
    ///
    /// # Errors
    /// As `read`, of any of the chunks.
    fn prefetch(&self, hashes: &[ChunkHash]) -> Result<Vec<Prefetched>, StoreError> {
        Ok(self.get_many(hashes)?.into_iter().map(Prefetched::from).collect())
    }

    /// The chunk that this store has read ahead. In memory it is kept for others only if `options`
    /// say so, and if there is room, or it was wanted lately.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], as `read`.
    fn open_prefetched(
        &self,
        ahead: Prefetched,
        options: ReadOptions,
    ) -> Result<Chunk, StoreError> {
        match ahead.0 {
            State::Chunk(chunk) => Ok(chunk),
            State::Stored(stored) => self.read(stored.hash, options),
        }
    }

    /// Returns for each of `hashes` whether its chunk is stored. That says nothing of the chunks
    /// that it refers to: it may be garbage, a part of which is gone.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the disk doesn't answer.
    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, StoreError>;

    /// As `has_many`, of chunks whose stored bytes were read again and are what was written. A
    /// chunk that isn't whole is set aside: it isn't there until it is put again, which heals it. A
    /// caller that throws a good copy away since the store has one asks this, not `has_many`. Costs
    /// a read of each chunk that is there, from the system's cache mostly.
    ///
    /// # Errors
    /// As `has_many`. Damage is none.
    fn has_intact(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, StoreError> {
        self.has_many(hashes)
    }

    /// Adds chunks. Those already present and [whole](ChunkStore::has_intact) are not written
    /// again.
    ///
    /// # Errors
    /// As `put_many_for`.
    fn put_many(&self, chunks: &[Chunk]) -> Result<(), StoreError> {
        self.put_many_for(Lifetime::Working, chunks)
    }

    /// As `put_many`, with a hint about how long they will be needed.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the disk doesn't answer or is full; [`StoreError::Poisoned`].
    fn put_many_for(&self, lifetime: Lifetime, chunks: &[Chunk]) -> Result<(), StoreError>;

    /// Makes every chunk put before this call durable.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the disk doesn't answer or is full; [`StoreError::Poisoned`] from then
    /// on, unless it was full.
    fn sync(&self) -> Result<(), StoreError>;

    /// Makes the chunks named `hashes` durable: as `sync`, unless all of them are. With a chunk
    /// that was put after what it refers to that is durable too, also where the chunk itself was
    /// there already.
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
    ///
    /// # Errors
    /// [`StoreError::Io`] if the disk doesn't answer.
    fn root(&self, name: &str) -> Result<Option<ChunkHash>, StoreError>;

    /// Replaces the root `name` if it is `expected` now; `None` stands for an absent root.
    /// Syncs first, then replaces atomically and durably.
    ///
    /// `name` is at most [`ROOT_NAME_BYTES_MAX`] long (asserted).
    ///
    /// # Errors
    /// [`StoreError::RootChanged`] if the root is not `expected`; [`StoreError::Missing`] if no
    /// chunk `new` is stored.
    fn swap_root(
        &self,
        name: &str,
        expected: Option<ChunkHash>,
        new: Option<ChunkHash>,
    ) -> Result<(), StoreError>;

    /// Protects from collection what is put, or found by `has_many` or `put_many`, from now until
    /// the result is dropped. A writer that puts chunks holds one until something lasting refers to
    /// them.
    fn session(&self) -> Session;

    /// Whether a walk of a tree goes on behind a part that can't be read, instead of failing.
    /// Only a store that is read to save what is left of it says yes, and notes the loss.
    fn skip_unreadable(&self, _lost: UnreadableRange) -> bool {
        false
    }

    /// Returns the read cache of this store, or of the one behind it, if there is one.
    fn read_cache(&self) -> Option<&dyn ReadCache> {
        None
    }

    /// Returns how the store is kept in order: what only its background work and its operator ask.
    fn maintenance(&self) -> &dyn Maintenance;

    /// Returns what the store has done since it was opened.
    fn counters(&self) -> StoreCounters;
}
