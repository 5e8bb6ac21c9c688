//! A store in front of another that puts chunks together: a document that comes as a stream makes
//! many small ones, each put by itself, and a put costs a search of the index and a write, however
//! little it is of.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use frond_store::{Chunk, ChunkHash, ChunkStore, Layered, Lifetime, StoreError, StoreLayer};

/// The size at which the waiting chunks are put.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// Keeps chunks until there are many, or until [`BatchingStore::flush`].
pub(crate) struct BatchingStore<'a> {
    store: &'a dyn ChunkStore,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// The chunks in the order in which they came, so that what is read together lies together.
    chunks: Vec<Chunk>,
    positions: HashMap<ChunkHash, usize>,
    bytes: usize,
}

impl<'a> BatchingStore<'a> {
    /// Begins with nothing that waits.
    pub fn new(store: &'a dyn ChunkStore) -> Layered<BatchingStore<'a>> {
        Layered(BatchingStore { store, waiting: Mutex::default() })
    }

    /// Puts what is waiting.
    ///
    /// # Errors
    /// As [`ChunkStore::put_many`].
    pub fn flush(&self) -> Result<(), StoreError> {
        self.put_waiting(&mut self.waiting())
    }

    fn put_waiting(&self, waiting: &mut Waiting) -> Result<(), StoreError> {
        // No reader asks for them soon, so they needn't take the place of others in the cache.
        self.store.put_many_for(Lifetime::Loaded, &waiting.chunks)?;
        waiting.chunks.clear();
        waiting.positions.clear();
        waiting.bytes = 0;
        Ok(())
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreLayer for BatchingStore<'_> {
    fn inner(&self) -> &dyn ChunkStore {
        self.store
    }

    fn own(&self, hash: ChunkHash) -> Option<Chunk> {
        let waiting = self.waiting();
        let position = *waiting.positions.get(&hash)?;
        waiting.chunks.get(position).cloned()
    }

    fn put(&self, hint: Option<Lifetime>, chunks: &[Chunk]) -> Result<(), StoreError> {
        if let Some(lifetime) = hint {
            return self.store.put_many_for(lifetime, chunks);
        }
        let mut waiting = self.waiting();
        for chunk in chunks {
            let position = waiting.chunks.len();
            if *waiting.positions.entry(chunk.hash()).or_insert(position) != position {
                continue; // It is waiting already.
            }
            waiting.bytes += chunk.encoded().len();
            waiting.chunks.push(chunk.clone());
        }
        if WAITING_BYTES_MAX <= waiting.bytes { self.put_waiting(&mut waiting) } else { Ok(()) }
    }
}
