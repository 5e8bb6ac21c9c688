//! Chunks in memory: for tests, and for trees that nobody keeps.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::chunk::{Chunk, ChunkHash};
use crate::error::StoreError;
use crate::{ChunkStore, Lifetime, ROOT_NAME_BYTES_MAX, StoreCounters};

/// A [`ChunkStore`] that is gone when it is dropped.
#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    chunks: HashMap<ChunkHash, Chunk>,
    roots: BTreeMap<String, ChunkHash>,
    counters: StoreCounters,
}

impl MemoryStore {
    /// Makes an empty store.
    pub fn new() -> Arc<MemoryStore> {
        Arc::default()
    }

    /// How many chunks are stored.
    pub fn chunk_count(&self) -> usize {
        self.state().chunks.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the lock is held")
    }
}

impl ChunkStore for MemoryStore {
    fn get(&self, hash: ChunkHash) -> Result<Chunk, StoreError> {
        let mut state = self.state();
        state.counters.chunks_read += 1;
        state.chunks.get(&hash).cloned().ok_or(StoreError::Missing(hash))
    }

    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, StoreError> {
        let state = self.state();
        Ok(hashes.iter().map(|hash| state.chunks.contains_key(hash)).collect())
    }

    fn put_many_for(&self, _lifetime: Lifetime, chunks: &[Chunk]) -> Result<(), StoreError> {
        let mut state = self.state();
        for chunk in chunks {
            if state.chunks.insert(chunk.hash(), chunk.clone()).is_none() {
                let bytes = chunk.encoded().len() as u64;
                state.counters.chunks_written += 1;
                state.counters.bytes_put += bytes;
                state.counters.bytes_stored += bytes;
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.state().counters.syncs += 1;
        Ok(())
    }

    fn root(&self, name: &str) -> Result<Option<ChunkHash>, StoreError> {
        Ok(self.state().roots.get(name).copied())
    }

    fn swap_root(
        &self,
        name: &str,
        expected: Option<ChunkHash>,
        new: Option<ChunkHash>,
    ) -> Result<(), StoreError> {
        assert!(name.len() <= ROOT_NAME_BYTES_MAX);
        let mut state = self.state();
        let found = state.roots.get(name).copied();
        if found != expected {
            return Err(StoreError::RootChanged { name: name.to_owned(), expected, found });
        }
        if let Some(hash) = new.filter(|hash| !state.chunks.contains_key(hash)) {
            return Err(StoreError::Missing(hash));
        }
        match new {
            Some(hash) => state.roots.insert(name.to_owned(), hash),
            None => state.roots.remove(name),
        };
        Ok(())
    }

    fn counters(&self) -> StoreCounters {
        self.state().counters
    }
}
