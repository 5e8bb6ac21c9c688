//! A chunk store in the pack files of one data directory.
//!
//! *Durability*
//! 1. Frames are appended to an open pack, and found through an index: in memory for open packs, at
//!    the end of sealed ones.
//! 2. `sync` syncs the packs written since the last one. Frames describe themselves, so the next
//!    opening finds them by scanning what follows the length that the manifest records. The
//!    manifest is written only if a pack is new: what it doesn't list was never acknowledged.
//! 3. `swap_root` does the same and then publishes a manifest with the new root. So a root never
//!    names a chunk that isn't durable.
//! 4. When a sync fails, what the disk holds is unknown: the store is *poisoned* and refuses to
//!    write until it is opened again; reads go on.
//!
//! *Locks*, in the order in which they may be taken: `collector` (one collection at a time), then
//! `sender` (one that sends packs to the disk's tier), then `publisher` (one sync or swap at a
//! time), then `writer` (the ends of the open packs), then `index` or `roots` (in memory only),
//! then that of `sessions`. Readers take the last kinds alone, so they wait for no disk but their
//! own reads; `writer` is held across a write but never across a sync; `publisher` is held across
//! syncs, and only threads that want one too wait for it (most find then that theirs is done).

mod chunk_store;
mod collect;
mod doubts;
pub mod examine;
mod fetch;
mod find;
mod heal;
mod keys;
mod mark;
mod open;
mod prefetch;
mod repack;
mod reported_present;
mod reread;
mod scrub;
mod tier;
mod tier_sender;
mod verify;

pub use self::tier::SELF_CONTAINED_SUFFIX;

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock, RwLockWriteGuard};

use crate::cache::ChunkCache;
use crate::chunk::ChunkHash;
use crate::copies::Copies;
use crate::counters::Counters;
use crate::error::StoreError;
use crate::gc::session::Sessions;
use crate::hash::NameHasherBuilder;
use crate::headroom::Headroom;
use crate::index::Index;
use crate::io::{Clock, Disk};
use crate::location::Location;
use crate::location::{PackNumber, Purpose};
use crate::manifest::{self, MANIFEST_NAMES, Manifest, PackEntry, PackState, PublishError};
use crate::pack::Pack;
use crate::pack::frames::{Frames, NewChunk};
use crate::pack::reader::read_index;
use crate::pack::table::PageCache;
use crate::pack::writer::{UnsyncedPack, Writer, Written};
use crate::read::buffers::BufferPool;
use crate::read::direct_policy::DirectIoPolicy;
use crate::{CacheBudget, ChunkStore, Damage};

/// Largest `pack_bytes_target`: with the largest chunk behind it, a pack ends below 4 GiB.
const PACK_BYTES_TARGET_MAX: u64 = 1 << 30;

/// Entries of the index that are changed together: it is locked meanwhile.
const CHANGED_TOGETHER: usize = 1024;

/// Settings of a [`LocalStore`].
#[derive(Clone, Copy, Debug)]
pub struct LocalOptions {
    /// Bytes of decompressed chunks kept in memory, and of what readers keep beside them.
    pub cache_bytes: u64,
    /// Bytes of pages of packs' indexes kept in memory.
    pub index_cache_bytes: u64,
    /// Bytes of memory for the keys that show which pack may hold a chunk, 10 for each; the rest
    /// lies in a file.
    pub keys_memory_max: u64,
    /// A read that takes so long came from a disk, not from the system's cache: what was read is
    /// worth more memory.
    pub slow_read_micros: i64,
    /// A pack is closed and a new one begun when it has grown to this; at most 1 GiB.
    pub pack_bytes_target: u64,
    /// The number of bytes of which a part is left free of chunks, for what gives space back
    /// ([`crate::Headroom`]).
    pub reserve_bytes: u64,
}

impl Default for LocalOptions {
    fn default() -> Self {
        LocalOptions {
            cache_bytes: 128 << 20,
            index_cache_bytes: 8 << 20,
            keys_memory_max: 512 << 20,
            slow_read_micros: 20,
            pack_bytes_target: 256 << 20,
            reserve_bytes: 0,
        }
    }
}

/// A [`ChunkStore`] in append-only pack files and a manifest.
///
/// *Thread safety*: every method may be called from any number of threads at once.
///
/// *Invariants*
/// 1. Whatever the index names was written as a whole.
/// 2. The roots in memory are those of the last manifest that was published durably.
/// 3. The directory stays locked while the store lives.
pub struct LocalStore {
    _lock: DirectoryLock,
    disk: Arc<dyn Disk>,
    index: RwLock<Index>,
    cache: ChunkCache,
    budget: Arc<CacheBudget>,
    pin_budget: Arc<CacheBudget>,
    pages: PageCache,
    keys_memory_max: u64,
    /// The memory of keys from which on they go to their file.
    spill_at: AtomicU64,
    /// Held by the one thread that moves them there.
    spiller: Mutex<()>,
    writer: Mutex<Writer>,
    publisher: Mutex<Publisher>,
    roots: RwLock<BTreeMap<String, ChunkHash>>,
    poisoned: OnceLock<String>,
    copies: Copies,
    sessions: Arc<Sessions>,
    reported: reported_present::ReportedPresent,
    /// Held by the one collection that runs.
    collector: Mutex<()>,
    /// Held by the one thread that sends packs to the disk's tier.
    sender: Mutex<()>,
    sending: tier_sender::TierSender,
    pack_bytes_target: u64,
    reserve_bytes: u64,
    clock: Arc<dyn Clock>,
    slow_read_micros: i64,
    buffers: BufferPool,
    /// The buffers for what is read ahead.
    windows: Arc<BufferPool>,
    /// The buffers for chunks that are let go.
    frames: Arc<BufferPool>,
    direct_policy: DirectIoPolicy,
    counters: Counters,
    /// Damage that no caller has asked for yet.
    findings: Mutex<Vec<Damage>>,
}

/// Syncs, so that closing in order loses nothing. A caller that must know whether that worked syncs
/// before.
impl Drop for LocalStore {
    fn drop(&mut self) {
        // After a panic under a lock nothing more is written.
        if !self.writer.is_poisoned() && !self.publisher.is_poisoned() {
            let _ = self.sync();
        }
    }
}

/// Lets go of the directory when dropped.
struct DirectoryLock(Arc<dyn Disk>);

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

/// The durable state, and the manifest that lists it.
struct Publisher {
    /// The manifest in force.
    manifest: Manifest,
    /// The packs as far as they are durable; beyond the manifest's by what `sync` did since.
    packs: Vec<PackEntry>,
    /// The writer's `batches` that are durable.
    batches: u64,
}

impl Publisher {
    fn is_durable(&self, at: &Location) -> bool {
        let position = self.packs.binary_search_by_key(&at.pack, |entry| entry.number);
        position.is_ok_and(|it| u64::from(at.place.offset) < self.packs[it].bytes)
    }
}

impl LocalStore {
    /// The names of all chunks, sorted. For tests: it reads all indexes, and holds all names.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], [`StoreError::Io`].
    pub fn chunk_hashes(&self) -> Result<Vec<ChunkHash>, StoreError> {
        let mut hashes: Vec<_> =
            self.index(|index| index.open_chunks().map(|(hash, _)| *hash).collect());
        for (pack, bytes) in self.sealed_packs() {
            let entries = read_index(&pack, bytes)?;
            let are_in_force = self.are_in_force(pack.number, &entries)?;
            let in_force = entries.iter().zip(are_in_force).filter(|(_, is_there)| *is_there);
            hashes.extend(in_force.map(|(entry, _)| entry.hash));
        }
        hashes.sort_unstable();
        Ok(hashes)
    }

    /// The sealed packs, and their lengths.
    fn sealed_packs(&self) -> Vec<(Arc<Pack>, u64)> {
        self.index(|index| {
            let sealed = |pack: &Arc<Pack>| Some((Arc::clone(pack), pack.table.get()?.pack_bytes));
            index.packs().values().filter_map(sealed).collect()
        })
    }

    fn index<T>(&self, look: impl FnOnce(&Index) -> T) -> T {
        look(&self.index.read().expect("no panic while the lock is held"))
    }

    fn index_mut(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write().expect("no panic while the lock is held")
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().expect("no panic while the lock is held")
    }

    fn publisher(&self) -> MutexGuard<'_, Publisher> {
        self.publisher.lock().expect("no panic while the lock is held")
    }

    fn check_poison(&self) -> Result<(), StoreError> {
        match self.poisoned.get() {
            Some(reason) => Err(StoreError::Poisoned { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// The bytes that this thread may write into packs; `None`: the disk doesn't say.
    fn writable_bytes(&self) -> Option<u64> {
        let space = self.disk.space().ok().flatten()?;
        Some(space.free.saturating_sub(Headroom::of_thread(self.reserve_bytes)))
    }

    /// Whether less than the reserve is free.
    fn is_short(&self) -> bool {
        let space = self.disk.space().ok().flatten();
        space.is_some_and(|space| space.free < self.reserve_bytes)
    }

    /// Refuses frames that would take what is left free for others.
    fn check_room(&self, frames: &Frames) -> Result<(), StoreError> {
        if self.reserve_bytes == 0 || frames.frames().is_empty() {
            return Ok(());
        }
        let bytes: u64 = frames.frames().iter().map(|frame| frame.len() as u64).sum();
        if self.writable_bytes().is_none_or(|writable| bytes <= writable) {
            return Ok(());
        }
        let message =
            "the disk is full except for the reserve, which deletes and garbage collection need";
        let error = io::Error::new(io::ErrorKind::StorageFull, message);
        Err(StoreError::io("the packs", error))
    }

    fn poison(&self, error: StoreError) -> StoreError {
        // The first counts: others follow from it.
        self.poisoned.get_or_init(|| error.to_string());
        error
    }

    /// Makes all that was put before this call durable in the packs, and notes it. Returns whether
    /// the manifest must note it: if it doesn't list a pack.
    fn sync_packs(&self, publisher: &mut Publisher) -> Result<bool, StoreError> {
        self.check_poison()?;
        // First: a writer that learnt that a chunk is there had put all that was missing below it.
        self.reported.clear();
        let (packs, batches) = {
            let writer = self.writer();
            (writer.unsynced(), writer.batches)
        };
        let mut durable = publisher.packs.clone();
        for pack in &packs {
            if note_durable(&mut durable, pack) {
                self.counters.syncs.add(1);
                pack.pack.file.sync().map_err(|error| self.poison(pack.pack.io(error)))?;
            }
        }
        publisher.packs = durable;
        publisher.batches = batches;
        self.writer().synced(&packs);
        Ok(!self.is_manifest_current(publisher))
    }

    /// Whether the manifest in force lists all packs that are durable, and all that was set aside.
    fn is_manifest_current(&self, publisher: &Publisher) -> bool {
        publisher.packs.len() == publisher.manifest.packs.len()
            && self.index(|index| *index.aside() == publisher.manifest.aside)
    }

    fn publish(
        &self,
        publisher: &mut Publisher,
        roots: BTreeMap<String, ChunkHash>,
    ) -> Result<(), StoreError> {
        let generation = publisher.manifest.generation + 1;
        let packs = publisher.packs.clone();
        let mut aside = self.index(|index| index.aside().clone());
        aside.retain(|(pack, _), _| packs.iter().any(|entry| entry.number == *pack));
        let manifest = Manifest { generation, packs, roots, aside };
        self.counters.syncs.add(MANIFEST_NAMES.len() as u64);
        let bytes = manifest::publish(&*self.disk, &manifest).map_err(|error| match error {
            PublishError::Unchanged(error) => error,
            PublishError::Unknown(error) => self.poison(error),
        })?;
        self.counters.bytes_written.add(bytes);
        publisher.manifest = manifest;
        Ok(())
    }

    /// Writes frames of one chunk each, unless their chunk is there by now, and makes what was
    /// written readable, also if a later part failed. Returns what was written.
    fn append_absent(
        &self,
        purpose: Purpose,
        frames: &mut Frames,
    ) -> Result<HashSet<ChunkHash, NameHasherBuilder>, StoreError> {
        let mut writer = self.writer();
        self.check_poison()?;
        // Another thread may have put some of these meanwhile: just now, so they needn't be read
        // again.
        let names: Vec<ChunkHash> = frames
            .frames()
            .iter()
            .flat_map(|frame| frames.chunks_of(frame))
            .map(|chunk| chunk.hash)
            .collect();
        let mut present = self.has_many(&names)?.into_iter();
        frames.retain(|chunks: &[NewChunk]| {
            let present = present.by_ref().take(chunks.len());
            present.fold(false, |absent, present| absent | !present)
        });
        self.check_room(frames)?;
        let mut written = Written::default();
        let result = writer.append(purpose, frames, &mut written);
        let added = written.chunks.iter().map(|(hash, _)| *hash).collect();
        if purpose == Purpose::Brief {
            self.counters.bytes_brief.add(written.bytes);
        }
        self.note_written(written);
        result.map(|()| added)
    }

    /// Makes what was written readable: its places are in force from now on. The caller holds the
    /// writer's lock.
    fn note_written(&self, mut written: Written) {
        {
            let mut index = self.index_mut();
            written.packs.drain(..).for_each(|pack| index.add_pack(pack));
            written.chunks.drain(..).for_each(|(hash, at)| index.insert_open(hash, at));
        }
        self.note_sealed(written);
    }

    /// As `note_written`; `from` returns for each chunk which sealed pack it lay in.
    fn note_moved(
        &self,
        mut written: Written,
        from: impl Fn(ChunkHash) -> Option<PackNumber>,
    ) -> Result<(), StoreError> {
        let names = written.chunks.iter().map(|(hash, _)| *hash);
        let (mut index, read) = match self.index_mut_for(names) {
            Ok(found) => found,
            Err(error) => {
                // It lies in two places then, of which only an opening leaves one.
                self.note_written(written);
                return Err(self.poison(error));
            }
        };
        written.packs.drain(..).for_each(|pack| index.add_pack(pack));
        for (hash, at) in written.chunks.drain(..) {
            // A chunk found damaged meanwhile doesn't lie there any more.
            let old = from(hash).filter(|old| index.lies_in(hash, *old, &read));
            index.insert_open(hash, at);
            if let Some(old) = old {
                index.remove_sealed(hash, old, &read);
            }
        }
        drop(index);
        self.note_sealed(written);
        Ok(())
    }

    fn note_sealed(&self, written: Written) {
        self.counters.bytes_written.add(written.bytes);
        self.counters.bytes_stored.add(written.bytes);
        for (pack, chunks) in written.sealed {
            // Not all at once: readers wait meanwhile. A chunk is found here or there.
            for some in chunks.chunks(CHANGED_TOGETHER) {
                self.index_mut().seal(pack, some);
            }
            let _index = self.index_mut();
            self.sessions.seal(pack, &chunks);
        }
    }
}

/// Notes that `pack` is durable up to its length. Returns whether it wasn't before.
fn note_durable(packs: &mut Vec<PackEntry>, pack: &UnsyncedPack) -> bool {
    let state = if pack.sealed { PackState::Sealed } else { PackState::Open };
    let entry = PackEntry {
        number: pack.pack.number,
        state,
        purpose: pack.pack.purpose,
        bytes: pack.bytes,
    };
    match packs.iter_mut().find(|known| known.number == entry.number) {
        Some(known) if *known == entry => return false,
        Some(known) => *known = entry,
        None => {
            let place = packs.partition_point(|known| known.number < entry.number);
            packs.insert(place, entry);
        }
    }
    true
}
