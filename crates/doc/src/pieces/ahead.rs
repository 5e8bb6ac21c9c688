//! A store in front of another for whoever reads a whole document: with a node, what it refers to is read.
//!
//! The chunks of a document that was stored as a stream lie one behind the other, mostly of a kilobyte or
//! four. Asked for one by one each costs a search, a read and a place in the cache; asked for together, those
//! of a node cost one read. Each is handed out once and then forgotten.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use frond_store::{Chunk, ChunkHash, ChunkStore, StoreLayer};

/// Nothing is read ahead while so much is: of deeply nested documents something is held for each level.
const HELD_BYTES_MAX: usize = 4 << 20;
/// Most chunks that are read ahead together, of some kilobytes each.
const CHUNK_COUNT_MAX: usize = 256;

pub(super) struct ReadAhead<'a> {
    store: &'a dyn ChunkStore,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    chunks: HashMap<ChunkHash, Chunk>,
    bytes: usize,
}

impl<'a> ReadAhead<'a> {
    pub(super) fn new(store: &'a dyn ChunkStore) -> ReadAhead<'a> {
        ReadAhead { store, held: Mutex::default() }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn take(&mut self, hash: ChunkHash) -> Option<Chunk> {
        let chunk = self.chunks.remove(&hash)?;
        self.bytes -= chunk.encoded().len();
        Some(chunk)
    }

    fn add(&mut self, chunk: Chunk) {
        let bytes = chunk.encoded().len();
        if self.chunks.insert(chunk.hash(), chunk).is_none() {
            self.bytes += bytes;
        }
    }
}

impl StoreLayer for ReadAhead<'_> {
    fn inner(&self) -> &dyn ChunkStore {
        self.store
    }

    fn own(&self, hash: ChunkHash) -> Option<Chunk> {
        let mut held = self.held();
        // What can't be read fails when the store behind is asked for it by itself.
        let chunk = held.take(hash).or_else(|| self.store.get(hash).ok())?;
        if 1 < chunk.reference_count() && held.bytes < HELD_BYTES_MAX {
            let ahead: Vec<ChunkHash> = chunk.references().take(CHUNK_COUNT_MAX).collect();
            for chunk in self.store.get_many(&ahead).unwrap_or_default() {
                held.add(chunk);
            }
        }
        Some(chunk)
    }
}
