//! A store for background work that writes and syncs in small portions.
//!
//! A disk that gets hundreds of megabytes at one sync makes every other sync wait for them, and so
//! every commit. In portions, commits come between. So they do between reads, and between writes of
//! a few chunks (`throttle`).

use std::sync::atomic::{AtomicU64, Ordering};

use frond_store::{
    Chunk, ChunkHash, ChunkKind, ChunkStore, Layered, Lifetime, StoreError, StoreLayer,
};

use crate::background::throttle::{self, yield_now};

/// Uncompressed bytes put between two syncs: about a hundredth of a second of a disk's time.
/// Several threads may put at once, and a commit waits for all of them.
const UNSYNCED_BYTES_MAX: u64 = 2 << 20;
/// Chunks that a background thread puts together: compressing them is a bit of work.
const PUT_TOGETHER: usize = 4;

/// `store`, with hints for what is put without one, and with a sync now and then.
pub(crate) struct ThrottledStore<'a> {
    store: &'a dyn ChunkStore,
    /// The hint for nodes of maps.
    nodes: Lifetime,
    /// The hint for all else: what values refer to.
    values: Lifetime,
    unsynced: AtomicU64,
}

impl<'a> ThrottledStore<'a> {
    /// A store that takes everything for `lifetime`.
    pub fn new(store: &'a dyn ChunkStore, lifetime: Lifetime) -> Layered<ThrottledStore<'a>> {
        ThrottledStore::over(store, lifetime, lifetime)
    }

    /// A store that takes nodes for brief, and what values refer to for what the base will need.
    pub fn for_run(store: &'a dyn ChunkStore) -> Layered<ThrottledStore<'a>> {
        ThrottledStore::over(store, Lifetime::Brief, Lifetime::Working)
    }

    /// A store that takes nodes for what the next step rewrites, and what values refer to for what
    /// stays.
    pub fn for_step(store: &'a dyn ChunkStore) -> Layered<ThrottledStore<'a>> {
        ThrottledStore::over(store, Lifetime::Rewritten, Lifetime::Working)
    }

    fn over(
        store: &'a dyn ChunkStore,
        nodes: Lifetime,
        values: Lifetime,
    ) -> Layered<ThrottledStore<'a>> {
        Layered(ThrottledStore { store, nodes, values, unsynced: AtomicU64::new(0) })
    }
}

impl StoreLayer for ThrottledStore<'_> {
    fn inner(&self) -> &dyn ChunkStore {
        self.store
    }

    fn own(&self, _hash: ChunkHash) -> Option<Chunk> {
        yield_now();
        None
    }

    fn put(&self, hint: Option<Lifetime>, chunks: &[Chunk]) -> Result<(), StoreError> {
        for alike in chunks.chunk_by(|left, right| left.kind() == right.kind()) {
            let lifetime = hint.unwrap_or(match alike[0].kind() {
                ChunkKind::MapNode => self.nodes,
                _ => self.values,
            });
            let together = if throttle::is_due() { PUT_TOGETHER } else { alike.len() };
            for some in alike.chunks(together) {
                self.store.put_many_for(lifetime, some)?;
                yield_now();
            }
        }
        let bytes: usize = chunks.iter().map(|chunk| chunk.encoded().len()).sum();
        let unsynced = self.unsynced.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        if unsynced < UNSYNCED_BYTES_MAX {
            return Ok(());
        }
        self.unsynced.store(0, Ordering::Relaxed);
        // If it fails, the store takes no writes any more, and the publishing thread finds that.
        self.store.sync()
    }
}
