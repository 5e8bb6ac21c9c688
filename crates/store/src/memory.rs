//! A chunk store in memory: for tests, and for trees that are not kept.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::chunk::{Chunk, ChunkHash};
use crate::error::StoreError;
use crate::gc::session::{Session, Sessions};
use crate::{
    ChunkStore, GarbageCollection, GcReport, Lifetime, Maintenance, ROOT_NAME_BYTES_MAX,
    ReadOptions, StoreCounters,
};

/// A [`ChunkStore`] that is gone when it is dropped.
#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    sessions: Arc<Sessions>,
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

    /// Returns how many chunks are stored.
    pub fn chunk_count(&self) -> usize {
        self.state().chunks.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the lock is held")
    }
}

impl ChunkStore for MemoryStore {
    fn read(&self, hash: ChunkHash, _options: ReadOptions) -> Result<Chunk, StoreError> {
        let mut state = self.state();
        state.counters.chunks_read += 1;
        state.chunks.get(&hash).cloned().ok_or(StoreError::Missing(hash))
    }

    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, StoreError> {
        let state = self.state();
        self.sessions.touch_names(hashes.iter().copied());
        Ok(hashes.iter().map(|hash| state.chunks.contains_key(hash)).collect())
    }

    fn put_many_for(&self, _lifetime: Lifetime, chunks: &[Chunk]) -> Result<(), StoreError> {
        let mut state = self.state();
        self.sessions.touch_names(chunks.iter().map(Chunk::hash));
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

    fn session(&self) -> Session {
        self.sessions.begin()
    }

    fn maintenance(&self) -> &dyn Maintenance {
        self
    }

    fn counters(&self) -> StoreCounters {
        self.state().counters
    }
}

impl Maintenance for MemoryStore {
    fn collect(&self, collection: &mut GarbageCollection<'_>) -> Result<GcReport, StoreError> {
        // Writers wait meanwhile: this store is small.
        let roots = (collection.roots)()?;
        let mut state = self.state();
        let bytes_before = state.counters.bytes_stored;
        let mut live = HashSet::new();
        for hash in roots.iter().chain(state.roots.values()) {
            if let Some(missing) = follow(&state, *hash, &mut live) {
                return Err(StoreError::Missing(missing));
            }
        }
        for hash in self.sessions.protected().1.names {
            // It may be garbage, a part of which is gone.
            follow(&state, hash, &mut live);
        }
        if collection.options.dry_run {
            let is_live = |chunk: &&Chunk| live.contains(&chunk.hash());
            let chunks = state.chunks.values().filter(is_live);
            return Ok(GcReport {
                chunks_live: chunks.clone().count() as u64,
                bytes_live: chunks.map(|chunk| chunk.encoded().len() as u64).sum(),
                bytes_before,
                bytes_after: bytes_before,
                ..GcReport::default()
            });
        }
        let count = state.chunks.len();
        state.chunks.retain(|hash, _| live.contains(hash));
        let left = state.chunks.values().map(|chunk| chunk.encoded().len() as u64).sum();
        state.counters.bytes_stored = left;
        Ok(GcReport {
            chunks_live: state.chunks.len() as u64,
            chunks_dead: (count - state.chunks.len()) as u64,
            bytes_before,
            bytes_after: left,
            ..GcReport::default()
        })
    }
}

/// Adds what `root` reaches to `live`. Returns a chunk that should be there and isn't.
fn follow(state: &State, root: ChunkHash, live: &mut HashSet<ChunkHash>) -> Option<ChunkHash> {
    let (mut stack, mut missing) = (vec![root], None);
    while let Some(hash) = stack.pop() {
        match state.chunks.get(&hash) {
            Some(chunk) if live.insert(hash) => stack.extend(chunk.references()),
            Some(_) => {}
            None => missing = Some(hash),
        }
    }
    missing
}
