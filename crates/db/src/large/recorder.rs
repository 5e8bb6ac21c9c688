//! A store in front of another that keeps what is put, so that a transaction can take it along.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use frond_store::{Chunk, ChunkHash, ChunkStore, Lifetime, StoreError, StoreLayer};

/// Reads go through; what is put stays here.
pub(crate) struct Recorder<'a> {
    store: &'a dyn ChunkStore,
    put: Mutex<HashMap<ChunkHash, Chunk>>,
}

impl<'a> Recorder<'a> {
    /// Nothing is put yet.
    pub fn new(store: &'a dyn ChunkStore) -> Recorder<'a> {
        Recorder { store, put: Mutex::default() }
    }

    /// The chunks that were put and that `head` reaches, without those of `known`: what lay between
    /// two edits is left out. Ordered, so that a log record depends on the content alone.
    pub fn into_reached(self, head: ChunkHash, known: &HashSet<ChunkHash>) -> Vec<Chunk> {
        let mut put = self.put.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (mut reached, mut open) = (Vec::new(), vec![head]);
        while let Some(hash) = open.pop() {
            if known.contains(&hash) {
                continue;
            }
            let Some(chunk) = put.remove(&hash) else { continue };
            open.extend((0..chunk.reference_count()).map(|position| chunk.reference(position)));
            reached.push(chunk);
        }
        reached
    }
}

/// All chunks that `head` reaches, itself counted.
pub(crate) fn all_chunks(
    store: &dyn ChunkStore,
    head: ChunkHash,
) -> Result<HashSet<ChunkHash>, StoreError> {
    let (mut reached, mut open) = (HashSet::new(), vec![head]);
    while let Some(hash) = open.pop() {
        if reached.insert(hash) {
            let chunk = store.get(hash)?;
            open.extend((0..chunk.reference_count()).map(|position| chunk.reference(position)));
        }
    }
    Ok(reached)
}

impl StoreLayer for Recorder<'_> {
    fn inner(&self) -> &dyn ChunkStore {
        self.store
    }

    fn own(&self, hash: ChunkHash) -> Option<Chunk> {
        self.put.lock().unwrap_or_else(PoisonError::into_inner).get(&hash).cloned()
    }

    fn put(&self, _: Option<Lifetime>, chunks: &[Chunk]) -> Result<(), StoreError> {
        let mut put = self.put.lock().unwrap_or_else(PoisonError::into_inner);
        put.extend(chunks.iter().map(|chunk| (chunk.hash(), chunk.clone())));
        Ok(())
    }
}
