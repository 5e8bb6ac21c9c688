//! Opens a store, repairing what a crash may have left. The steps:
//!
//! 1. Lock the directory, remove what an unsettled creation left ([`crate::new_directory`]), and
//!    read the manifest. Without one the store is new: publish an empty one before any pack exists,
//!    so that packs without a manifest are damage, never a new store.
//! 2. Remove half-made manifests and packs that the manifest doesn't list: nothing in them was
//!    acknowledged. Where only one of its copies could be read a later manifest may have listed
//!    them: then what is whole in them is in force, as in an open pack in which nothing was
//!    durable.
//! 3. Read the index of each sealed pack, several at once ([`indexes`]), and file its chunks
//!    ([`packs`]). Search the open ones for frames ([`crate::pack::recover`]). A crash leaves zeros
//!    behind the length that the manifest records, or a part of an index: these are cut off. Other
//!    bytes that are no whole frame stay where they are.
//! 4. Write the frames after that length again and sync them: they may be in the page cache only
//!    (see [`rewrite`](crate::pack::reader::rewrite)), and putting one of them again must find it
//!    durable.
//! 5. Publish a manifest with the lengths found.
//!
//! *Damage* keeps no store closed but for that of both copies of the manifest. A pack without a
//! right index is searched for frames, and gets another index behind what it has. A damaged frame
//! is set aside ([`super::heal`]). A place whose former content is unknown is a *hole*: in a pack,
//! or all of one whose file is gone. A chunk that isn't found may have lain there.

mod indexes;
mod packs;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use super::{DirectoryLock, LocalOptions, LocalStore, PACK_BYTES_TARGET_MAX, Publisher};
use crate::CacheBudget;
use crate::cache::ChunkCache;
use crate::copies::{COPIES_NEW_NAME, Copies};
use crate::counters::Counters;
use crate::error::StoreError;
use crate::gc::session::Sessions;
use crate::hash::ChunkHash;
use crate::io::{Disk, Machine, Tier};
use crate::local::prefetch::WINDOW_BYTES_MAX;
use crate::location::PackNumber;
use crate::manifest::{self, LoadedManifest, MANIFEST_NAME, Manifest};
use crate::new_directory::remove_unsettled;
use crate::pack::table::PageCache;
use crate::pack::writer::Writer;
use crate::read::buffers::BufferPool;
use crate::read::direct_policy::DirectIoPolicy;
use crate::tiered;

/// The room is such a part of the bytes for the cache, which has what isn't taken of it.
const ROOM_SHARE: u64 = 4;
/// Chunks of such a part of the cache's bytes may be pinned in it.
const LEAF_ROOM_SHARE: u64 = 4;
/// A pack that goes to the disk's tier is held in memory on its way, which the cache leaves to it:
/// it is such a part of the cache's bytes, within these bounds. Each is a request, which is paid
/// for.
const SENT_SHARE: u64 = 4;
const SENT_BYTES_MIN: u64 = 4 << 20;
const SENT_BYTES_MAX: u64 = 64 << 20;
/// The number of buffers that are kept, for as many threads that read or put chunks at once.
const BUFFER_COUNT_MAX: usize = 8;
/// Larger ones aren't kept: a batch of trees' chunks is about 1 MiB.
const BUFFER_BYTES_MAX: usize = 4 << 20;
/// The number of windows that are kept: a scan has one for each run.
const WINDOW_COUNT_MAX: usize = 32;
/// The number of frames, of at most so many bytes, that are kept: for as many threads that wait for
/// a disk at once.
const FRAME_COUNT_MAX: usize = 64;
const FRAME_BYTES_MAX: usize = 32 << 10;

pub(super) fn open(machine: &Machine, options: LocalOptions) -> Result<LocalStore, StoreError> {
    let disk = Arc::clone(&machine.disk);
    disk.lock().map_err(StoreError::of_lock)?;
    let lock = DirectoryLock(Arc::clone(&disk));
    tiered::check_tier_is_known(&*disk)?;
    remove_unsettled(&*disk).map_err(|error| StoreError::io(".", error))?;
    let Beginning { manifest, unlisted, damages, next_number } = read_manifest_and_clean(&*disk)?;
    let counters = Counters::default();
    let pages = (PageCache::new(options.index_cache_bytes), options.keys_memory_max);
    let loaded = packs::load(&*disk, &manifest, &unlisted, pages, &counters)?;

    let copies = Copies::open(machine, options.reserve_bytes)?;
    let target = pack_bytes_target(&options, disk.tier().is_some());
    let roots = manifest.roots.clone();
    let is_new = manifest.generation == 0;
    let sessions = Arc::new(Sessions::default());
    let writer =
        Writer::new(Arc::clone(&disk), Arc::clone(&sessions), loaded.open, next_number, target);
    let budget = CacheBudget::new(options.cache_bytes / ROOM_SHARE);
    let pin_budget = CacheBudget::new(options.cache_bytes / LEAF_ROOM_SHARE);
    let rooms = [&budget, &pin_budget].map(Arc::clone);
    let store = LocalStore {
        _lock: lock,
        disk,
        index: RwLock::new(loaded.index),
        cache: ChunkCache::new(options.cache_bytes, rooms),
        budget,
        pin_budget,
        pages: loaded.pages,
        keys_memory_max: options.keys_memory_max,
        spill_at: AtomicU64::new(options.keys_memory_max),
        spiller: Mutex::new(()),
        writer: Mutex::new(writer),
        publisher: Mutex::new(Publisher { manifest, packs: loaded.packs, batches: 0 }),
        roots: RwLock::new(roots.clone()),
        poisoned: OnceLock::new(),
        copies,
        sessions,
        reported: Default::default(),
        collector: Mutex::new(()),
        sender: Mutex::new(()),
        sending: Default::default(),
        pack_bytes_target: target,
        reserve_bytes: options.reserve_bytes,
        clock: Arc::clone(&machine.clock),
        slow_read_micros: options.slow_read_micros,
        buffers: BufferPool::new(BUFFER_COUNT_MAX, BUFFER_BYTES_MAX),
        windows: Arc::new(BufferPool::new(WINDOW_COUNT_MAX, WINDOW_BYTES_MAX)),
        frames: Arc::new(BufferPool::new(FRAME_COUNT_MAX, FRAME_BYTES_MAX)),
        direct_policy: DirectIoPolicy::default(),
        counters,
        findings: Mutex::default(),
    };
    loaded.findings.into_iter().for_each(|finding| store.note_finding(finding));
    damages.into_iter().for_each(|damage| store.note_file_finding(damage));
    note_lost(&store);
    publish_first(&store, roots, is_new)?;
    Ok(store)
}

/// The size at which a pack is sealed.
fn pack_bytes_target(options: &LocalOptions, is_sent: bool) -> u64 {
    let target = options.pack_bytes_target.min(PACK_BYTES_TARGET_MAX);
    let sent = (options.cache_bytes / SENT_SHARE).clamp(SENT_BYTES_MIN, SENT_BYTES_MAX);
    if is_sent { target.min(sent) } else { target }
}

/// Publishes a manifest of what was found.
fn publish_first(
    store: &LocalStore,
    roots: BTreeMap<String, ChunkHash>,
    is_new: bool,
) -> Result<(), StoreError> {
    match store.publish(&mut store.publisher(), roots) {
        // On a full disk the old manifest will do, so that what is there can be read.
        Err(error) if is_new || store.check_poison().is_err() => Err(error),
        _ => Ok(()),
    }
}

/// Notes packs that the disk's tier has lost.
fn note_lost(store: &LocalStore) {
    for name in store.disk.tier().map(Tier::lost).unwrap_or_default() {
        let number = PackNumber::from_file_name(&name);
        if number.is_some_and(|number| store.index(|index| index.packs().contains_key(&number))) {
            let what = "it isn't in the store any more";
            store.note_file_finding(StoreError::damaged(&name, 0, what));
        }
    }
}

/// The result of steps 1 and 2.
struct Beginning {
    manifest: Manifest,
    /// Packs that a later manifest may have listed.
    unlisted: Vec<PackNumber>,
    /// The faults in one of its copies.
    damages: Vec<StoreError>,
    /// The number for the next pack.
    next_number: u32,
}

/// Steps 1 and 2.
fn read_manifest_and_clean(disk: &dyn Disk) -> Result<Beginning, StoreError> {
    let names = disk.list().map_err(|error| StoreError::io(".", error))?;
    let on_disk: Vec<_> =
        names.iter().filter_map(|name| PackNumber::from_file_name(name)).collect();
    let LoadedManifest { manifest, damages, is_alone } = match manifest::read(disk)? {
        Some(found) => found,
        None if on_disk.is_empty() => {
            LoadedManifest { manifest: Manifest::default(), damages: Vec::new(), is_alone: false }
        }
        None => {
            return Err(StoreError::damaged(MANIFEST_NAME, 0, "missing, though there are packs"));
        }
    };
    let is_listed = |number: &PackNumber| manifest.packs.iter().any(|pack| pack.number == *number);
    let unlisted = on_disk.iter().copied().filter(|number| !is_listed(number));
    let (unlisted, garbage): (Vec<_>, Vec<_>) = unlisted.partition(|_| is_alone);
    let is_half_made = |name: &&String| manifest::is_half_made(name) || *name == COPIES_NEW_NAME;
    let half_made = names.iter().filter(is_half_made).cloned();
    for name in garbage.iter().map(PackNumber::to_string).chain(half_made) {
        disk.remove(&name).map_err(|error| StoreError::io(&name, error))?;
    }
    let number_max = manifest.packs.iter().map(|pack| pack.number).chain(on_disk).max();
    let next_number = number_max.map_or(0, |number| number.0.saturating_add(1));
    Ok(Beginning { manifest, unlisted, damages, next_number })
}

impl LocalStore {
    /// Opens the store in `machine`'s disk, making an empty one where there is none.
    ///
    /// # Errors
    /// [`StoreError::Version`], [`StoreError::Damaged`], [`StoreError::Io`].
    pub fn open(machine: &Machine, options: LocalOptions) -> Result<Arc<LocalStore>, StoreError> {
        open(machine, options).map(Arc::new)
    }
}
