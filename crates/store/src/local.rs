//! Chunks in pack files of one data directory.

use std::sync::Arc;

use crate::chunk::{Chunk, ChunkHash};
use crate::error::StoreError;
use crate::io::Machine;
use crate::{ChunkStore, StoreCounters};

/// Settings of a [`LocalStore`].
#[derive(Clone, Copy, Debug)]
pub struct LocalOptions {
    /// Bytes of decompressed chunks kept in memory.
    pub cache_bytes: u64,
    /// A pack is closed and a new one begun when it has grown to this.
    pub pack_bytes_target: u64,
}

impl Default for LocalOptions {
    fn default() -> Self {
        LocalOptions { cache_bytes: 128 << 20, pack_bytes_target: 256 << 20 }
    }
}

/// A [`ChunkStore`] in append-only pack files and a manifest.
pub struct LocalStore {}

impl LocalStore {
    /// Opens the store in `machine`'s disk, making an empty one where there is none.
    ///
    /// # Errors
    /// [`StoreError::Version`], [`StoreError::Damaged`], [`StoreError::Io`].
    pub fn open(machine: &Machine, options: LocalOptions) -> Result<Arc<LocalStore>, StoreError> {
        todo!("{} {options:?}", machine.clock.now_micros())
    }
}

impl ChunkStore for LocalStore {
    fn get(&self, _hash: ChunkHash) -> Result<Chunk, StoreError> {
        todo!()
    }

    fn has_many(&self, _hashes: &[ChunkHash]) -> Result<Vec<bool>, StoreError> {
        todo!()
    }

    fn put_many(&self, _chunks: &[Chunk]) -> Result<(), StoreError> {
        todo!()
    }

    fn sync(&self) -> Result<(), StoreError> {
        todo!()
    }

    fn root(&self, _name: &str) -> Result<Option<ChunkHash>, StoreError> {
        todo!()
    }

    fn swap_root(
        &self,
        _name: &str,
        _expected: Option<ChunkHash>,
        _new: Option<ChunkHash>,
    ) -> Result<(), StoreError> {
        todo!()
    }

    fn counters(&self) -> StoreCounters {
        todo!()
    }
}
