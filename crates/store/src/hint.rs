//! A store that gives every `put_many` the same hint.

use crate::chunk::{Chunk, ChunkHash};
use crate::error::StoreError;
use crate::{ChunkStore, Collected, Collection, Lifetime, Session, StoreCounters};

/// `store`, with `lifetime` as the hint of every chunk that is put without one: for code that writes
/// trees and doesn't know how long they are needed.
#[derive(Clone, Copy)]
pub struct PutFor<'a> {
    /// Where the chunks go.
    pub store: &'a dyn ChunkStore,
    /// The hint.
    pub lifetime: Lifetime,
}

impl ChunkStore for PutFor<'_> {
    fn get(&self, hash: ChunkHash) -> Result<Chunk, StoreError> {
        self.store.get(hash)
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, StoreError> {
        self.store.get_many(hashes)
    }

    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, StoreError> {
        self.store.has_many(hashes)
    }

    fn put_many(&self, chunks: &[Chunk]) -> Result<(), StoreError> {
        self.store.put_many_for(self.lifetime, chunks)
    }

    fn put_many_for(&self, lifetime: Lifetime, chunks: &[Chunk]) -> Result<(), StoreError> {
        self.store.put_many_for(lifetime, chunks)
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.store.sync()
    }

    fn root(&self, name: &str) -> Result<Option<ChunkHash>, StoreError> {
        self.store.root(name)
    }

    fn swap_root(
        &self,
        name: &str,
        expected: Option<ChunkHash>,
        new: Option<ChunkHash>,
    ) -> Result<(), StoreError> {
        self.store.swap_root(name, expected, new)
    }

    fn session(&self) -> Session {
        self.store.session()
    }

    fn collect(&self, collection: &mut Collection<'_>) -> Result<Collected, StoreError> {
        self.store.collect(collection)
    }

    fn counters(&self) -> StoreCounters {
        self.store.counters()
    }
}
