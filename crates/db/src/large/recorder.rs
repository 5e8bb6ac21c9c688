//! A store in front of another that keeps what is put, so that a transaction can take it along.
//!
//! An edit writes some nodes again that come out as they were: those that follow the changed one.
//! The document before has them, so they are left out.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use frond_store::chunk::HASH_BYTES;
use frond_store::{Chunk, ChunkHash, ChunkStore, Layered, Lifetime, StoreError, StoreLayer};

/// Reads go through; what is put stays here.
pub(crate) struct Recorder<'a> {
    store: &'a dyn ChunkStore,
    recorded: Mutex<Recorded>,
}

/// Ordered: an edit has a few of each, for which a hash costs more than comparing.
#[derive(Default)]
struct Recorded {
    put: BTreeMap<ChunkHash, Chunk>,
    /// The chunks that were read from the store behind: of the former document. The first are kept,
    /// since an edit asks for each more than once.
    read: BTreeMap<ChunkHash, Option<Chunk>>,
}

/// The number of the chunks read that are kept.
const KEPT_COUNT_MAX: usize = 32;
/// Bits that show what wasn't put, by twelve bits of its name.
const BITS: usize = 1 << 12;

impl<'a> Recorder<'a> {
    /// Begins with nothing put.
    pub fn new(store: &'a dyn ChunkStore) -> Layered<Recorder<'a>> {
        Layered(Recorder { store, recorded: Mutex::default() })
    }

    /// The chunks that were put and that `head` reaches, without those of `known` and those that
    /// were read: what lay between two edits is left out. Ordered, so that a log record depends on
    /// the content alone.
    pub fn into_reached(self, head: ChunkHash, known: &HashSet<ChunkHash>) -> Vec<Chunk> {
        let recorded = self.recorded.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Recorded { mut put, read } = recorded;
        // Most of what a chunk refers to wasn't put: mostly a bit of its name shows it.
        let place = |name: &[u8]| usize::from(u16::from_le_bytes([name[0], name[1]])) % BITS;
        let mut bits = [0_u64; BITS / 64];
        put.keys().map(|hash| place(&hash.0)).for_each(|at| bits[at / 64] |= 1 << (at % 64));
        let may_be_put = |at: usize| bits[at / 64] & 1 << (at % 64) != 0;
        let (mut reached, mut open) = (Vec::new(), vec![head]);
        while let Some(hash) = open.pop() {
            if known.contains(&hash) || read.contains_key(&hash) {
                continue;
            }
            let Some(chunk) = put.remove(&hash) else { continue };
            if let Some(origin) = chunk.origin().filter(|origin| read.contains_key(&origin.old)) {
                // Whatever else it refers to, the one before does too.
                open.extend(origin.reference.map(|(position, _)| chunk.reference(position)));
                reached.push(chunk);
                continue;
            }
            let names = chunk.references_bytes().chunks_exact(HASH_BYTES).enumerate();
            let may_be = names.filter(|(_, name)| may_be_put(place(name)));
            open.extend(may_be.map(|(position, _)| chunk.reference(position)));
            reached.push(chunk);
        }
        reached
    }
}

/// Chunks that were put so far, in front of a store that has all others.
pub(crate) struct Beside {
    store: Arc<dyn ChunkStore>,
    put: BTreeMap<ChunkHash, Chunk>,
}

impl StoreLayer for Beside {
    fn inner(&self) -> &dyn ChunkStore {
        &*self.store
    }

    fn own(&self, hash: ChunkHash) -> Option<Chunk> {
        self.put.get(&hash).cloned()
    }
}

impl Recorder<'_> {
    /// Returns the chunks put so far, to be read in front of a store that has all chunks they refer
    /// to.
    pub fn beside(&self, store: &Arc<dyn ChunkStore>) -> Layered<Beside> {
        Layered(Beside { store: store.clone(), put: self.recorded().put.clone() })
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut recorded = self.recorded();
        if let Some(chunk) = recorded.put.get(&hash) {
            return Some(chunk.clone());
        }
        if let Some(Some(chunk)) = recorded.read.get(&hash) {
            return Some(chunk.clone());
        }
        // A chunk that can't be read fails when the store behind is asked for it by itself.
        let chunk = self.store.get(hash).ok()?;
        let is_kept = recorded.read.len() < KEPT_COUNT_MAX;
        recorded.read.insert(hash, is_kept.then(|| chunk.clone()));
        Some(chunk)
    }

    fn put(&self, _: Option<Lifetime>, chunks: &[Chunk]) -> Result<(), StoreError> {
        self.recorded().put.extend(chunks.iter().map(|chunk| (chunk.hash(), chunk.clone())));
        Ok(())
    }
}
