//! Pending chunks: those that transactions brought and only the log holds so far.
//!
//! A large value that is changed again and again has a few new chunks each time, and mostly only
//! the last ones are ever needed on the disk. So a commit puts them here, and a reader finds them
//! through [`StoreWithPending`]; packs get them when something refers to them that lies in packs
//! itself, which is when the value is flushed or folded.
//!
//! *Invariants*
//! 1. Chunks in packs refer to nothing but chunks in packs: a writer that puts a chunk first has
//!    everything packed that the chunk reaches here. So a reader that begins at a root, a tree or a
//!    commit needn't know of this.
//! 2. A chunk stays here as long as a memtable that has it: what a snapshot shows can be read.
//! 3. The references of a chunk here are here or in packs, and so are the chunks that a record of a
//!    memtable needs besides. Collections keep that ([`PendingView`]); before the log's segments of
//!    a memtable go, `flush` has packed what the memtables after it need of it.
//! 4. A *packed* chunk is in packs, with all that it reaches. It is kept there as long as it is
//!    here.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use frond_store::chunk::HASH_BYTES;
use frond_store::{
    Chunk, ChunkHash, ChunkStore, Layered, Lifetime, NameHasherBuilder, StoreError, StoreLayer,
};

use crate::log::record::Record;

const NO_PANIC: &str = "no panic while the lock is held";

/// Threads that look up different chunks don't meet at a lock mostly.
const SHARD_COUNT: usize = 64;
/// Memory that a chunk takes here besides its bytes.
const CHUNK_OVERHEAD_BYTES: u64 = 250;
/// Chunks are packed in batches of about this.
const BATCH_BYTES: usize = 1 << 20;
/// The chunks of one transaction are packed at once if they are more than this: a write and a look
/// at the index are little to that then, and they would fill the memtable.
const BORN_BYTES_MAX: usize = 256 << 10;

/// A step of a walk that comes to a chunk after all that it refers to.
enum Step {
    Enter(ChunkHash),
    Leave(Chunk),
}

/// The pending chunks of all memtables.
///
/// *Thread safety*: every method may be called at any time; a shard's lock is taken last, and held
/// for a look-up.
pub(crate) struct PendingChunks {
    /// Shared while a memtable gets or gives up chunks that refer to each other; alone while all
    /// are looked at, so that none is seen without those it came with.
    collection_latch: RwLock<()>,
    shards: [RwLock<Shard>; SHARD_COUNT],
    count: AtomicUsize,
}

type Shard = HashMap<ChunkHash, Entry, NameHasherBuilder>;

struct Entry {
    chunk: Chunk,
    /// The number of memtables that have it.
    holders: usize,
    is_packed: AtomicBool,
}

impl Default for PendingChunks {
    fn default() -> PendingChunks {
        PendingChunks {
            collection_latch: RwLock::default(),
            shards: std::array::from_fn(|_| RwLock::default()),
            count: AtomicUsize::new(0),
        }
    }
}

impl PendingChunks {
    /// Whether there are none: then nothing else need be asked.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// The chunk, if it is here.
    pub fn get(&self, hash: ChunkHash) -> Option<Chunk> {
        if self.is_empty() {
            return None;
        }
        self.shard(hash).get(&hash).map(|entry| entry.chunk.clone())
    }

    /// The chunk, if it is here and not packed.
    fn unpacked(&self, hash: ChunkHash) -> Option<Chunk> {
        let shard = self.shard(hash);
        let entry = shard.get(&hash).filter(|entry| !entry.is_packed.load(Ordering::Acquire));
        entry.map(|entry| entry.chunk.clone())
    }

    /// Packs what `roots` reach here.
    ///
    /// # Errors
    /// As the store's `put_many_for`; nothing is noted as packed then, and what was put until then
    /// refers to nothing that wasn't: a full disk leaves a collection nothing to complete.
    pub fn pack(
        &self,
        store: &dyn ChunkStore,
        lifetime: Lifetime,
        roots: impl IntoIterator<Item = ChunkHash>,
    ) -> Result<(), StoreError> {
        if self.is_empty() {
            return Ok(());
        }
        let reached = reached(roots, |hash| self.unpacked(hash));
        for batch in batches(&reached) {
            store.put_many_for(lifetime, batch)?;
        }
        // Not before all are put: another thread doesn't go on below what is packed.
        self.note_packed(reached.iter().map(Chunk::hash));
        Ok(())
    }

    /// Notes that these are in packs, with all that they reach.
    fn note_packed(&self, hashes: impl IntoIterator<Item = ChunkHash>) {
        for hash in hashes {
            if let Some(entry) = self.shard(hash).get(&hash) {
                entry.is_packed.store(true, Ordering::Release);
            }
        }
    }

    /// Returns the chunks that are here at this time. Chunks that `store` has, too, are packed:
    /// they may have been reported there to a caller.
    ///
    /// # Errors
    /// As the store: it can't be asked what it has, or takes no chunks.
    pub fn view<'a>(&'a self, store: &'a dyn ChunkStore) -> Result<PendingView<'a>, StoreError> {
        let mut unpacked = HashMap::new();
        let mut kept = HashSet::new();
        {
            let _turnover = self.collection_latch.write().expect(NO_PANIC);
            for shard in &self.shards {
                for (hash, entry) in &*shard.read().expect(NO_PANIC) {
                    if entry.is_packed.load(Ordering::Acquire) {
                        kept.insert(*hash);
                    } else {
                        unpacked.insert(*hash, entry.chunk.clone());
                    }
                }
            }
        }
        let mut view = PendingView { pending: self, store, unpacked, kept };
        let names: Vec<ChunkHash> = view.unpacked.keys().copied().collect();
        let stored = names.iter().zip(store.has_many(&names)?).filter(|(_, stored)| *stored);
        for hash in stored.map(|(hash, _)| *hash).collect::<Vec<_>>() {
            view.unpacked.remove(&hash);
            view.keep(hash)?;
        }
        view.keep_own()?;
        Ok(view)
    }

    fn collection_latch(&self) -> RwLockReadGuard<'_, ()> {
        self.collection_latch.read().expect(NO_PANIC)
    }

    fn add(&self, chunk: &Chunk) {
        let mut shard = self.shard_mut(chunk.hash());
        let entry = shard.entry(chunk.hash()).or_insert_with(|| {
            self.count.fetch_add(1, Ordering::AcqRel);
            Entry { chunk: chunk.clone(), holders: 0, is_packed: AtomicBool::new(false) }
        });
        entry.holders += 1;
    }

    fn release(&self, hash: ChunkHash) {
        let mut shard = self.shard_mut(hash);
        let Some(entry) = shard.get_mut(&hash) else { return };
        entry.holders -= 1;
        if entry.holders == 0 {
            self.count.fetch_sub(1, Ordering::AcqRel);
            shard.remove(&hash);
        }
    }

    fn shard(&self, hash: ChunkHash) -> RwLockReadGuard<'_, Shard> {
        self.shards[shard_of(hash)].read().expect(NO_PANIC)
    }

    fn shard_mut(&self, hash: ChunkHash) -> RwLockWriteGuard<'_, Shard> {
        self.shards[shard_of(hash)].write().expect(NO_PANIC)
    }
}

/// The pending chunks at one time, for collections: what must stay in packs for their sake, and for
/// others'.
pub(crate) struct PendingView<'a> {
    pending: &'a PendingChunks,
    store: &'a dyn ChunkStore,
    /// Chunks that go meanwhile are still known.
    unpacked: HashMap<ChunkHash, Chunk>,
    kept: HashSet<ChunkHash>,
}

impl PendingView<'_> {
    /// Keeps in packs what must be there so that all that `hash` reaches is here or there.
    ///
    /// # Errors
    /// As `pack`.
    pub fn keep(&mut self, hash: ChunkHash) -> Result<(), StoreError> {
        if !self.unpacked.contains_key(&hash) && self.kept.insert(hash) {
            // It may have come here since: then packs get all of it.
            self.pending.pack(self.store, Lifetime::Working, [hash])?;
        }
        Ok(())
    }

    /// Returns the names of the chunks that must be kept.
    pub fn into_kept(self) -> HashSet<ChunkHash> {
        self.kept
    }

    fn keep_own(&mut self) -> Result<(), StoreError> {
        let below: HashSet<ChunkHash> =
            self.unpacked.values().flat_map(Chunk::references).collect();
        below.into_iter().try_for_each(|hash| self.keep(hash))
    }
}

/// Returns the chunks that `roots` reach as far as `get` has them, in the order in which a value is
/// read, and each chunk behind those it refers to. So chunks that are read together lie together: a
/// put of the same value reads it again ([`ChunkStore::has_intact`]) by one call instead of one a
/// chunk.
fn reached(
    roots: impl IntoIterator<Item = ChunkHash>,
    get: impl Fn(ChunkHash) -> Option<Chunk>,
) -> Vec<Chunk> {
    let mut reached: Vec<Chunk> = Vec::new();
    let mut known: HashSet<ChunkHash, NameHasherBuilder> = HashSet::default();
    let mut open: Vec<Step> = roots.into_iter().map(Step::Enter).collect();
    open.reverse();
    while let Some(step) = open.pop() {
        match step {
            Step::Enter(hash) => {
                let Some(chunk) = get(hash).filter(|_| known.insert(hash)) else { continue };
                let below: Vec<Step> = chunk.references().map(Step::Enter).collect();
                open.push(Step::Leave(chunk));
                open.extend(below.into_iter().rev());
            }
            Step::Leave(chunk) => reached.push(chunk),
        }
    }
    reached
}

fn shard_of(hash: ChunkHash) -> usize {
    // Not the bytes that the shard's table takes.
    usize::from(hash.0[HASH_BYTES - 1]) % SHARD_COUNT
}

fn batches(chunks: &[Chunk]) -> impl Iterator<Item = &[Chunk]> {
    let mut bytes = 0;
    chunks.chunk_by(move |left, _| {
        bytes += left.encoded().len();
        let keep_going = bytes < BATCH_BYTES;
        bytes = if keep_going { bytes } else { 0 };
        keep_going
    })
}

/// The chunks that a transaction brings to its memtable besides its entries.
#[derive(Default)]
pub(crate) struct NewChunks {
    /// Chunks that its values reach.
    pub chunks: Vec<Chunk>,
    /// The chunks it needs besides those that these refer to: chunks from which the log makes its
    /// own, and values' chunks that it didn't bring.
    pub needs: Vec<ChunkHash>,
}

impl NewChunks {
    /// Returns the chunks of a record for the memtable, some of which the log makes from `origins`.
    /// Many chunks are packed at once instead.
    ///
    /// # Errors
    /// As the store's `put_many`, where there are many chunks.
    pub fn of(
        record: &Record,
        origins: Vec<ChunkHash>,
        store: &dyn ChunkStore,
    ) -> Result<NewChunks, StoreError> {
        let mut needs = origins;
        needs.extend(record.referenced_chunks());
        let bytes: usize = record.chunks.iter().map(|chunk| chunk.encoded().len()).sum();
        if bytes <= BORN_BYTES_MAX {
            return Ok(NewChunks { chunks: record.chunks.clone(), needs });
        }
        let own = record.chunks.iter().map(|chunk| (chunk.hash(), chunk));
        let own: HashMap<ChunkHash, &Chunk, NameHasherBuilder> = own.collect();
        // Those too that no value of the record names.
        let all = record.named_chunks().chain(record.chunks.iter().map(Chunk::hash));
        store.put_many(&reached(all, |hash| own.get(&hash).copied().cloned()))?;
        Ok(NewChunks { chunks: Vec::new(), needs })
    }
}

/// The pending chunks of a memtable.
#[derive(Default)]
pub(crate) struct MemtableChunks {
    pending: Arc<PendingChunks>,
    names: Mutex<Names>,
}

#[derive(Default)]
struct Names {
    chunks: Vec<ChunkHash>,
    needs: Vec<ChunkHash>,
}

impl MemtableChunks {
    /// Begins with nothing.
    pub fn new(pending: &Arc<PendingChunks>) -> MemtableChunks {
        MemtableChunks { pending: Arc::clone(pending), names: Mutex::default() }
    }

    /// Takes what a transaction brings. Returns the memory taken.
    pub fn add(&self, new_chunks: &NewChunks) -> u64 {
        if new_chunks.chunks.is_empty() && new_chunks.needs.is_empty() {
            return 0;
        }
        let collection_latch =
            (!new_chunks.chunks.is_empty()).then(|| self.pending.collection_latch());
        new_chunks.chunks.iter().for_each(|chunk| self.pending.add(chunk));
        drop(collection_latch);
        let mut names = self.names();
        names.chunks.extend(new_chunks.chunks.iter().map(Chunk::hash));
        names.needs.extend(&new_chunks.needs);
        let bytes = |chunk: &Chunk| chunk.encoded().len() as u64 + CHUNK_OVERHEAD_BYTES;
        new_chunks.chunks.iter().map(bytes).sum::<u64>() + size_of_val(&new_chunks.needs[..]) as u64
    }

    /// The chunks, some of them perhaps more than once.
    pub fn chunks(&self) -> Vec<ChunkHash> {
        self.names().chunks.clone()
    }

    /// Returns the chunks that its transactions need besides those that their chunks refer to.
    pub fn needs(&self) -> Vec<ChunkHash> {
        self.names().needs.clone()
    }

    /// Returns the chunks that its transactions need, and may not have brought.
    pub fn all_needs(&self) -> HashSet<ChunkHash> {
        let mut needs: HashSet<ChunkHash> = self.needs().into_iter().collect();
        for chunk in self.chunks().into_iter().filter_map(|hash| self.pending.get(hash)) {
            needs.extend(chunk.references());
        }
        needs
    }

    /// Lets go of all.
    pub fn clear(&self) {
        let names = std::mem::take(&mut *self.names());
        let _turnover = (!names.chunks.is_empty()).then(|| self.pending.collection_latch());
        names.chunks.into_iter().for_each(|hash| self.pending.release(hash));
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().expect(NO_PANIC)
    }
}

impl Drop for MemtableChunks {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A store with what is born and not in its packs yet; keeps invariant 1.
pub(crate) struct StoreWithPending {
    /// The packs.
    pub store: Arc<dyn ChunkStore>,
    pending: Arc<PendingChunks>,
}

impl StoreWithPending {
    /// Begins with nothing born.
    pub fn new(store: Arc<dyn ChunkStore>) -> Arc<Layered<StoreWithPending>> {
        Arc::new(Layered(StoreWithPending { store, pending: Arc::default() }))
    }

    /// Returns the pending chunks.
    pub fn all(&self) -> &Arc<PendingChunks> {
        &self.pending
    }

    /// Returns a view of the chunks that are pending at this time; packs have the others.
    ///
    /// # Errors
    /// As the store: it can't be asked what it has, or takes no chunks.
    pub fn view(&self) -> Result<PendingView<'_>, StoreError> {
        self.pending.view(&*self.store)
    }

    /// Packs what `roots` reach of what is born.
    ///
    /// # Errors
    /// As the store's `put_many_for`.
    pub fn pack(&self, roots: impl IntoIterator<Item = ChunkHash>) -> Result<(), StoreError> {
        self.pending.pack(&*self.store, Lifetime::Working, roots)
    }
}

impl StoreLayer for StoreWithPending {
    fn inner(&self) -> &dyn ChunkStore {
        &*self.store
    }

    fn own(&self, hash: ChunkHash) -> Option<Chunk> {
        self.pending.get(hash)
    }

    /// A caller that learns that a chunk is there may refer to it later, when no memtable has it
    /// any more.
    fn has(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, StoreError> {
        self.pack(hashes.iter().copied())?;
        self.store.has_many(hashes)
    }

    /// As `has`: a chunk that is packed here was read again there.
    fn has_checked(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, StoreError> {
        self.pack(hashes.iter().copied())?;
        self.store.has_intact(hashes)
    }

    fn put(&self, hint: Option<Lifetime>, chunks: &[Chunk]) -> Result<(), StoreError> {
        if self.pending.is_empty() {
            return put(&*self.store, hint, chunks);
        }
        // The tree will need the chunks that a run refers to.
        let lifetime = hint.filter(|hint| *hint == Lifetime::Lasting).unwrap_or(Lifetime::Working);
        self.pending.pack(&*self.store, lifetime, chunks.iter().flat_map(Chunk::references))?;
        put(&*self.store, hint, chunks)?;
        self.pending.note_packed(chunks.iter().map(Chunk::hash));
        Ok(())
    }

    /// Packs what these reach, too.
    fn make_durable(&self, hashes: &[ChunkHash]) -> Result<(), StoreError> {
        // Those that are here may have been packed by another thread just now, before what they
        // refer to.
        let are_born = hashes.iter().any(|hash| self.pending.get(*hash).is_some());
        self.pack(hashes.iter().copied())?;
        if are_born { self.store.sync() } else { self.store.sync_these(hashes) }
    }
}

fn put(store: &dyn ChunkStore, hint: Option<Lifetime>, chunks: &[Chunk]) -> Result<(), StoreError> {
    match hint {
        Some(lifetime) => store.put_many_for(lifetime, chunks),
        None => store.put_many(chunks),
    }
}

#[cfg(test)]
mod tests;
