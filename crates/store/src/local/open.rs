//! Opens a store, repairing what a crash may have left. The steps:
//!
//! 1. Lock the directory, read the manifest. Without one the store is new: publish an empty one
//!    before any pack exists, so that packs without a manifest are damage, never a new store.
//! 2. Remove `MANIFEST.new` and packs that the manifest doesn't list: nothing in them was
//!    acknowledged.
//! 3. Read the index of each sealed pack, of which 8 bytes a chunk stay in memory. Scan the open ones: a frame that isn't whole is damage if it
//!    begins before the length that the manifest records; after that it is what a crash left of an
//!    unfinished write, and is cut off.
//! 4. Write the frames after that length again and sync them: they may be in the page cache only
//!    (see [`rewrite`]), and putting one of them again must find it durable.
//! 5. Publish a manifest with the lengths found.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock};

use super::ahead::WINDOW_BYTES_MAX;
use super::{DirectoryLock, LocalOptions, LocalStore, PACK_BYTES_TARGET_MAX, Publisher};
use crate::Room;
use crate::buffers::Buffers;
use crate::bypass::Bypass;
use crate::cache::ChunkCache;
use crate::chunk::ChunkHash;
use crate::counters::Counters;
use crate::error::StoreError;
use crate::index::{Index, Known, PackedChunk};
use crate::io::{Disk, Machine};
use crate::manifest::{self, MANIFEST_NAME, MANIFEST_NEW_NAME, Manifest, PackEntry, PackState};
use crate::pack::reader::{read_index, rewrite, scan};
use crate::pack::table::PageCache;
use crate::pack::writer::{ActivePack, Writer};
use crate::pack::{Pack, PackNumber};
use crate::session::Sessions;

/// The room is such a part of the bytes for the cache, which has what isn't taken of it.
const ROOM_SHARE: u64 = 4;
/// Chunks of such a part of the cache's bytes may be pinned in it.
const LEAF_ROOM_SHARE: u64 = 4;
/// So many buffers are kept, for as many threads that read or put chunks at once.
const BUFFER_COUNT_MAX: usize = 8;
/// Larger ones aren't kept: a batch of trees' chunks is about 1 MiB.
const BUFFER_BYTES_MAX: usize = 4 << 20;
/// So many windows are kept: who reads a range has one for each run.
const WINDOW_COUNT_MAX: usize = 32;
/// So many frames of at most so many bytes: for as many threads that wait for a disk at once.
const FRAME_COUNT_MAX: usize = 64;
const FRAME_BYTES_MAX: usize = 32 << 10;

pub(super) fn open(machine: &Machine, options: LocalOptions) -> Result<LocalStore, StoreError> {
    let disk = Arc::clone(&machine.disk);
    disk.lock().map_err(|error| StoreError::io("LOCK", error))?;
    let lock = DirectoryLock(Arc::clone(&disk));
    let (manifest, next_number) = read_manifest_and_clean(&*disk)?;
    let counters = Counters::default();
    let pages = PageCache::new(options.index_cache_bytes);
    let loaded = load(&*disk, &manifest, pages, &counters)?;

    let target = options.pack_bytes_target.min(PACK_BYTES_TARGET_MAX);
    let roots = manifest.roots.clone();
    let is_new = manifest.generation == 0;
    let sessions = Arc::new(Sessions::default());
    let writer =
        Writer::new(Arc::clone(&disk), Arc::clone(&sessions), loaded.open, next_number, target);
    let room = Room::new(options.cache_bytes / ROOM_SHARE);
    let leaf_room = Room::new(options.cache_bytes / LEAF_ROOM_SHARE);
    let rooms = [&room, &leaf_room].map(Arc::clone);
    let store = LocalStore {
        _lock: lock,
        disk,
        index: RwLock::new(loaded.index),
        cache: ChunkCache::new(options.cache_bytes, rooms),
        room,
        leaf_room,
        pages: loaded.pages,
        writer: Mutex::new(writer),
        publisher: Mutex::new(Publisher { manifest, packs: loaded.packs, batches: 0 }),
        roots: RwLock::new(roots.clone()),
        poisoned: AtomicBool::new(false),
        sessions,
        collector: Mutex::new(()),
        pack_bytes_target: target,
        clock: Arc::clone(&machine.clock),
        slow_read_micros: options.slow_read_micros,
        buffers: Buffers::new(BUFFER_COUNT_MAX, BUFFER_BYTES_MAX),
        windows: Arc::new(Buffers::new(WINDOW_COUNT_MAX, WINDOW_BYTES_MAX)),
        frames: Arc::new(Buffers::new(FRAME_COUNT_MAX, FRAME_BYTES_MAX)),
        bypass: Bypass::default(),
        counters,
    };
    let published = store.publish(&mut store.publisher(), roots);
    match published {
        // On a full disk the old manifest will do, so that what is there can be read.
        Err(error) if is_new || store.check_poison().is_err() => Err(error),
        _ => Ok(store),
    }
}

/// Steps 1 and 2. Returns the manifest and the number for the next pack.
fn read_manifest_and_clean(disk: &dyn Disk) -> Result<(Manifest, u32), StoreError> {
    let names = disk.list().map_err(|error| StoreError::io(".", error))?;
    let on_disk: Vec<_> =
        names.iter().filter_map(|name| PackNumber::from_file_name(name)).collect();
    let manifest = match manifest::read(disk)? {
        Some(manifest) => manifest,
        None if on_disk.is_empty() => Manifest::default(),
        None => {
            return Err(StoreError::damaged(MANIFEST_NAME, 0, "missing, though there are packs"));
        }
    };
    let is_listed = |number: PackNumber| manifest.packs.iter().any(|pack| pack.number == number);
    let unlisted = on_disk.iter().filter(|number| !is_listed(**number)).map(PackNumber::to_string);
    let half_made = names.iter().filter(|name| *name == MANIFEST_NEW_NAME).cloned();
    for name in unlisted.chain(half_made) {
        disk.remove(&name).map_err(|error| StoreError::io(&name, error))?;
    }
    let number_max = manifest.packs.iter().map(|pack| pack.number).chain(on_disk).max();
    Ok((manifest, number_max.map_or(0, |number| number.0.saturating_add(1))))
}

/// The packs, as they were found.
struct Loaded {
    index: Index,
    pages: PageCache,
    packs: Vec<PackEntry>,
    open: Vec<ActivePack>,
}

impl Loaded {
    /// Whether a chunk is in force in a pack other than `but`.
    fn holds(&self, hash: ChunkHash, but: Option<PackNumber>) -> Result<bool, StoreError> {
        match self.index.look(hash) {
            Known::Here(..) => Ok(true),
            Known::Perhaps(packs) => {
                for pack in packs.into_iter().filter(|pack| Some(pack.number) != but) {
                    if pack.search(&self.pages, hash)?.is_some() {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    /// Adds the chunks of a pack, which ascend by name if it is sealed. A chunk that is there already keeps
    /// its place: either is right.
    fn insert_all(
        &mut self,
        pack: PackNumber,
        state: PackState,
        chunks: &[PackedChunk],
    ) -> Result<(), StoreError> {
        let mut last = None;
        for chunk in chunks {
            if state == PackState::Sealed && last.replace(chunk.hash) == Some(chunk.hash) {
                continue;
            }
            // Of this pack, only others are there yet, whose names may begin alike.
            let is_there = self.holds(chunk.hash, Some(pack))?;
            match state {
                PackState::Sealed => self.index.insert_sealed(chunk.hash, pack, !is_there),
                PackState::Open if is_there => {}
                PackState::Open => self.index.insert_open(chunk.hash, chunk.location(pack, None)),
            }
        }
        Ok(())
    }
}

/// Steps 3 and 4.
fn load(
    disk: &dyn Disk,
    manifest: &Manifest,
    pages: PageCache,
    counters: &Counters,
) -> Result<Loaded, StoreError> {
    let index = Index::default();
    let mut loaded = Loaded { index, pages, packs: Vec::new(), open: Vec::new() };
    for entry in &manifest.packs {
        let pack = open_pack(disk, entry)?;
        loaded.index.add_pack(Arc::clone(&pack));
        let mut entry = entry.clone();
        match entry.state {
            PackState::Sealed => {
                let chunks = read_index(&pack, entry.bytes)?;
                loaded.insert_all(pack.number, PackState::Sealed, &chunks)?;
            }
            PackState::Open => {
                let active = recover(Arc::clone(&pack), entry.bytes)?;
                counters.syncs.add(1);
                entry.bytes = active.position;
                loaded.insert_all(entry.number, PackState::Open, &active.entries)?;
                loaded.open.push(active);
            }
        }
        pack.note_written(entry.bytes);
        counters.bytes_stored.add(entry.bytes);
        loaded.packs.push(entry);
    }
    for (name, hash) in &manifest.roots {
        if !loaded.holds(*hash, None)? {
            let what = format!("root {name:?} names chunk {hash}, which is not stored");
            return Err(StoreError::damaged(MANIFEST_NAME, 0, &what));
        }
    }
    Ok(loaded)
}

fn open_pack(disk: &dyn Disk, entry: &PackEntry) -> Result<Arc<Pack>, StoreError> {
    let name = entry.number.to_string();
    let file = disk.open(&name).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => StoreError::damaged(&name, 0, "missing"),
        _ => StoreError::io(&name, error),
    })?;
    let bytes = file.bytes().map_err(|error| StoreError::io(&name, error))?;
    if bytes < entry.bytes {
        let what = format!("the file ends here, but {} bytes of it were durable", entry.bytes);
        return Err(StoreError::damaged(&name, bytes, &what));
    }
    Ok(Arc::new(Pack::new(entry.number, entry.purpose, file)))
}

/// Finds the frames of the open pack, of which `bytes_durable` were, and makes all of them durable.
fn recover(pack: Arc<Pack>, bytes_durable: u64) -> Result<ActivePack, StoreError> {
    let bytes = pack.file.bytes().map_err(|error| pack.io(error))?;
    let found = scan(&pack, bytes)?;
    if found.end < bytes_durable {
        return Err(pack.damaged(found.end, found.rest.unwrap_or("frames end too early")));
    }
    if found.end < bytes {
        pack.file.set_bytes(found.end).map_err(|error| pack.io(error))?;
    }
    rewrite(&pack, bytes_durable, found.end)?;
    pack.file.sync().map_err(|error| pack.io(error))?;
    Ok(ActivePack { pack, position: found.end, entries: found.entries, torn: false })
}
