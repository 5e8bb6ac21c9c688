//! Opens a store, repairing what a crash may have left. The steps:
//!
//! 1. Lock the directory, read the manifest. Without one the store is new: publish an empty one
//!    before any pack exists, so that packs without a manifest are damage, never a new store.
//! 2. Remove half-made manifests and packs that the manifest doesn't list: nothing in them was
//!    acknowledged. Where only one of its copies could be read a later manifest may have listed
//!    them: then what is whole in them is in force, as in an open pack of which nothing was
//!    durable.
//! 3. Read the index of each sealed pack, of which 8 bytes a chunk stay in memory. Search the open
//!    ones for frames ([`crate::pack::recover`]). A crash leaves zeros behind the length that the
//!    manifest records, or a part of an index: these are cut off. Other bytes that are no whole
//!    frame stay where they are.
//! 4. Write the frames after that length again and sync them: they may be in the page cache only
//!    (see [`rewrite`]), and putting one of them again must find it durable.
//! 5. Publish a manifest with the lengths found.
//!
//! *Damage* keeps no store closed but for that of both copies of the manifest. A pack without a
//! right index is
//! searched for frames, and gets another index behind what it has. A damaged frame is set aside
//! ([`super::heal`]). A place whose former content is unknown is a *hole*: in a pack, or all of one
//! whose file is gone. What isn't found may have lain there.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock};

use super::{DirectoryLock, LocalOptions, LocalStore, PACK_BYTES_TARGET_MAX, Publisher};
use crate::CacheBudget;
use crate::cache::ChunkCache;
use crate::chunk::ChunkHash;
use crate::copies::{COPIES_NEW_NAME, Copies};
use crate::counters::Counters;
use crate::damage::{Damage, FrameDamage, Hole, HoleOrigin};
use crate::error::StoreError;
use crate::field::prefix;
use crate::gc::session::Sessions;
use crate::hash::NameHasherBuilder;
use crate::home;
use crate::index::{Index, Known};
use crate::io::{Disk, Machine};
use crate::local::prefetch::WINDOW_BYTES_MAX;
use crate::location::{FrameOffset, PackNumber, PackedChunk, Purpose};
use crate::manifest::{
    self, Aside, AsideWhy, Found, MANIFEST_NAME, Manifest, PackEntry, PackState,
};
use crate::pack::Pack;
use crate::pack::format::PACK_MAGIC;
use crate::pack::reader::{
    Naming, check_header, read_frame, read_index, read_index_alone, rewrite,
};
use crate::pack::recover::{Gap, Recovered, claimed_by_frame, recover};
use crate::pack::table::format::{encode_index, index_bytes};
use crate::pack::table::{PackTable, PageCache};
use crate::pack::writer::{ActivePack, Writer};
use crate::read::buffers::BufferPool;
use crate::read::direct_policy::DirectIoPolicy;

/// The room is such a part of the bytes for the cache, which has what isn't taken of it.
const ROOM_SHARE: u64 = 4;
/// Chunks of such a part of the cache's bytes may be pinned in it.
const LEAF_ROOM_SHARE: u64 = 4;
/// So many buffers are kept, for as many threads that read or put chunks at once.
const BUFFER_COUNT_MAX: usize = 8;
/// Larger ones aren't kept: a batch of trees' chunks is about 1 MiB.
const BUFFER_BYTES_MAX: usize = 4 << 20;
const NO_FRAME: &str = "no whole frame";
const ENDS_EARLY: &str = "no frame lies between here and the length that was durable";
/// So many windows are kept: who reads a range has one for each run.
const WINDOW_COUNT_MAX: usize = 32;
/// So many frames of at most so many bytes: for as many threads that wait for a disk at once.
const FRAME_COUNT_MAX: usize = 64;
const FRAME_BYTES_MAX: usize = 32 << 10;

pub(super) fn open(machine: &Machine, options: LocalOptions) -> Result<LocalStore, StoreError> {
    let disk = Arc::clone(&machine.disk);
    disk.lock().map_err(StoreError::of_lock)?;
    let lock = DirectoryLock(Arc::clone(&disk));
    home::check_at_home(&*disk)?;
    let Beginning { manifest, unlisted, damages, next_number } = read_manifest_and_clean(&*disk)?;
    let counters = Counters::default();
    let pages = PageCache::new(options.index_cache_bytes);
    let loaded = load(&*disk, &manifest, &unlisted, pages, &counters)?;

    let copies = Copies::open(machine, options.reserve_bytes)?;
    let target = options.pack_bytes_target.min(PACK_BYTES_TARGET_MAX);
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
        writer: Mutex::new(writer),
        publisher: Mutex::new(Publisher { manifest, packs: loaded.packs, batches: 0 }),
        roots: RwLock::new(roots.clone()),
        poisoned: AtomicBool::new(false),
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
    let published = store.publish(&mut store.publisher(), roots);
    match published {
        // On a full disk the old manifest will do, so that what is there can be read.
        Err(error) if is_new || store.check_poison().is_err() => Err(error),
        _ => Ok(store),
    }
}

/// What steps 1 and 2 find.
struct Beginning {
    manifest: Manifest,
    /// Packs that a later manifest may have listed.
    unlisted: Vec<PackNumber>,
    /// What is wrong with one of its copies.
    damages: Vec<StoreError>,
    /// For the next pack.
    next_number: u32,
}

/// Steps 1 and 2.
fn read_manifest_and_clean(disk: &dyn Disk) -> Result<Beginning, StoreError> {
    let names = disk.list().map_err(|error| StoreError::io(".", error))?;
    let on_disk: Vec<_> =
        names.iter().filter_map(|name| PackNumber::from_file_name(name)).collect();
    let Found { manifest, damages, is_alone } = match manifest::read(disk)? {
        Some(found) => found,
        None if on_disk.is_empty() => {
            Found { manifest: Manifest::default(), damages: Vec::new(), is_alone: false }
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

/// The packs, as they were found.
struct Loaded {
    index: Index,
    pages: PageCache,
    packs: Vec<PackEntry>,
    open: Vec<ActivePack>,
    /// Chunks in frames that are damaged.
    damaged: Vec<(ChunkHash, FrameDamage)>,
    /// What is told.
    findings: Vec<Damage>,
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

    /// Loads a sealed pack by its index, or by another that is made of its frames.
    fn load_sealed(
        &mut self,
        pack: &Pack,
        entry: &mut PackEntry,
        manifest: &Manifest,
    ) -> Result<(), StoreError> {
        match read_index(pack, entry.bytes) {
            Ok(chunks) => {
                self.note_damaged(pack, &chunks, manifest)?;
                return self.insert_all(pack.number, PackState::Sealed, &chunks);
            }
            Err(StoreError::Damaged { file, offset, what }) => {
                let what = format!("{what}; what is whole is in force");
                self.findings.push(Damage { file, offset, chunk: None, what });
            }
            Err(other) => return Err(other),
        }
        let bytes = pack.file.bytes().map_err(|error| pack.io(error))?.min(entry.bytes);
        // An operator may have put back a file as it was before its index was made again.
        if let Ok(chunks) = read_index(pack, bytes) {
            self.findings.pop();
            entry.bytes = bytes;
            self.note_damaged(pack, &chunks, manifest)?;
            return self.insert_all(pack.number, PackState::Sealed, &chunks);
        }
        let has_wrong_header = is_header_damaged(pack)?;
        if has_wrong_header && let Ok(chunks) = read_index_alone(pack, entry.bytes) {
            mend_header(pack)?;
            self.note_damaged(pack, &chunks, manifest)?;
            return self.insert_all(pack.number, PackState::Sealed, &chunks);
        }
        let Recovered { mut entries, gaps, end, before_index } = recover(pack, bytes)?;
        keep_first(&mut entries);
        if end < entry.bytes && !before_index {
            self.note_hole(&pack.name, last_gap(&gaps, end), ENDS_EARLY, HoleOrigin::Damage);
        }
        self.note_gaps(pack, gaps, entry.bytes, manifest);
        if entries.is_empty() {
            return Ok(());
        }
        if has_wrong_header {
            mend_header(pack)?;
        }
        self.index_anew(pack, entry, entries)
    }

    /// Loads a pack that the manifest in force doesn't list, though a later one may have. Perhaps
    /// nothing of it was durable, whatever an index says: what is whole in it is sealed. `None` if
    /// that is nothing.
    fn load_unlisted(
        &mut self,
        pack: &Arc<Pack>,
        manifest: &Manifest,
    ) -> Result<Option<PackEntry>, StoreError> {
        let bytes = pack.file.bytes().map_err(|error| pack.io(error))?;
        let (number, purpose) = (pack.number, Purpose::Working);
        let mut entry = PackEntry { number, state: PackState::Sealed, purpose, bytes };
        let Recovered { mut entries, gaps, end, .. } = recover(pack, bytes)?;
        keep_first(&mut entries);
        if entries.is_empty() {
            return Ok(None);
        }
        self.index.add_pack(Arc::clone(pack));
        if is_header_damaged(pack)? {
            mend_header(pack)?;
        }
        pack.file.set_bytes(end).map_err(|error| pack.io(error))?;
        rewrite(pack, 0, end)?;
        self.note_gaps(pack, gaps, 0, manifest);
        entry.bytes = end;
        self.index_anew(pack, &mut entry, entries)?;
        Ok(Some(entry))
    }

    /// Gives a pack an index of `entries`, which is durable then with all before it.
    fn index_anew(
        &mut self,
        pack: &Pack,
        entry: &mut PackEntry,
        mut entries: Vec<PackedChunk>,
    ) -> Result<(), StoreError> {
        match append_index(pack, entry.bytes, &mut entries) {
            Ok(end) => {
                let offset = end - index_bytes(entries.len()) as u64;
                let offset = u32::try_from(offset).expect("what was written is in reach");
                pack.table.get_or_init(|| PackTable::new(end, offset, &entries));
                entry.bytes = end;
                self.insert_all(pack.number, PackState::Sealed, &entries)
            }
            // Until there is room, what it has is known by name.
            Err(error) if error.is_full() => {
                self.insert_all(pack.number, PackState::Open, &entries)
            }
            Err(error) => Err(error),
        }
    }

    /// Loads the open pack, of which `bytes_durable` were, and makes all that is whole durable.
    fn load_open(
        &mut self,
        pack: &Arc<Pack>,
        bytes_durable: u64,
        manifest: &Manifest,
    ) -> Result<ActivePack, StoreError> {
        if is_header_damaged(pack)? {
            let (file, what) = (pack.name.clone(), "the header is wrong; it is written again");
            self.findings.push(Damage { file, offset: 0, chunk: None, what: what.to_owned() });
            mend_header(pack)?;
        }
        let bytes = pack.file.bytes().map_err(|error| pack.io(error))?;
        let Recovered { mut entries, gaps, end: frames_end, .. } = recover(pack, bytes)?;
        let end = frames_end.max(bytes_durable.min(bytes));
        if end < bytes {
            pack.file.set_bytes(end).map_err(|error| pack.io(error))?;
        }
        if frames_end < bytes_durable {
            let start = last_gap(&gaps, frames_end);
            self.note_hole(&pack.name, start, ENDS_EARLY, HoleOrigin::Damage);
        }
        rewrite(pack, bytes_durable.min(end), end)?;
        pack.file.sync().map_err(|error| pack.io(error))?;
        self.note_gaps(pack, gaps, bytes_durable, manifest);
        keep_first(&mut entries);
        self.insert_all(pack.number, PackState::Open, &entries)?;
        Ok(ActivePack { pack: Arc::clone(pack), position: end, entries, torn: false })
    }

    /// Notes what lies between the whole frames of a pack, of which so many bytes were durable.
    fn note_gaps(&mut self, pack: &Pack, gaps: Vec<Gap>, bytes_durable: u64, manifest: &Manifest) {
        for Gap { bytes, what, chunks } in gaps {
            let offset = u32::try_from(bytes.start).expect("a window has no more of a pack");
            let place = FrameOffset { offset, bytes: (bytes.end - bytes.start) as u32 };
            let known = manifest.aside.get(&(pack.number, offset)).map(|aside| aside.why);
            let is_torn = known == Some(AsideWhy::DamagedOrTorn)
                || (bytes_durable <= bytes.start && known.is_none());
            if is_torn {
                self.note_torn(pack, place, &what);
                continue;
            }
            self.note_gap(pack, place, &what, &chunks);
        }
    }

    /// Notes that damage lies at `place`, where by their own word `chunks` should.
    fn note_gap(&mut self, pack: &Pack, place: FrameOffset, what: &str, chunks: &[PackedChunk]) {
        self.damaged.extend(chunks.iter().map(|chunk| {
            let at = chunk.location(pack.number, None);
            (chunk.hash, FrameDamage { at, what: what.to_owned() })
        }));
        let is_named = !chunks.is_empty();
        let origin = if is_named { HoleOrigin::Named } else { HoleOrigin::Damage };
        self.index.note_aside(pack.number, place, AsideWhy::Damaged);
        self.note_hole(&pack.name, u64::from(place.offset), what, origin);
    }

    /// Notes a place that is damaged or was never acknowledged: nothing tells which.
    fn note_torn(&mut self, pack: &Pack, place: FrameOffset, what: &str) {
        self.index.note_aside(pack.number, place, AsideWhy::DamagedOrTorn);
        self.note_hole(&pack.name, u64::from(place.offset), what, HoleOrigin::DamageOrCrash);
    }

    fn note_hole(&mut self, file: &str, offset: u64, what: &str, origin: HoleOrigin) {
        let (file, what) = (file.to_owned(), what.to_owned());
        let damage = Damage { file, offset, chunk: None, what };
        if origin == HoleOrigin::Damage {
            self.findings.push(damage.clone());
        }
        self.index.note_hole(Hole { damage, origin });
    }

    /// Notes which of the frames of `pack` that were set aside are damaged indeed.
    fn note_damaged(
        &mut self,
        pack: &Pack,
        chunks: &[PackedChunk],
        manifest: &Manifest,
    ) -> Result<(), StoreError> {
        let aside: Vec<_> = manifest.aside_in(pack.number).collect();
        if aside.is_empty() {
            return Ok(());
        }
        let indexed: HashSet<u32> = chunks.iter().map(|chunk| chunk.place.offset).collect();
        for (offset, Aside { end, why }) in aside {
            let place = FrameOffset { offset, bytes: end - offset };
            if why == AsideWhy::DamagedOrTorn {
                self.note_torn(pack, place, NO_FRAME);
            } else if !indexed.contains(&offset) {
                // It was damaged already when the index was made.
                let chunks = claimed_by_frame(pack, u64::from(offset)).unwrap_or_default();
                self.note_gap(pack, place, NO_FRAME, &chunks);
            }
        }
        for (position, chunk) in (0..).zip(chunks) {
            if !manifest.aside.contains_key(&(pack.number, chunk.place.offset)) {
                continue;
            }
            match read_frame(pack, chunk.place, Naming::ByHash) {
                Ok(_) => {}
                Err(StoreError::Damaged { what, .. }) => {
                    let at = chunk.location(pack.number, Some(position));
                    self.damaged.push((chunk.hash, FrameDamage { at, what }));
                }
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    fn is_damaged(&self, pack: PackNumber, place: FrameOffset) -> bool {
        self.damaged.iter().any(|(_, damage)| damage.at.pack == pack && damage.at.place == place)
    }

    /// Sets aside what is damaged, once all packs are there. What is nowhere else is lost.
    fn set_aside_damaged(&mut self) -> Result<(), StoreError> {
        for (hash, damage) in std::mem::take(&mut self.damaged) {
            if self.holds(hash, None)? {
                let FrameDamage { at, .. } = damage;
                self.index.note_aside(at.pack, at.place, AsideWhy::Damaged);
            } else {
                self.findings.push(damage.of(hash));
                self.index.note_lost(hash, damage);
            }
        }
        Ok(())
    }

    /// Adds the chunks of a pack, which ascend by name if it is sealed. A chunk that is there
    /// already keeps its place: either is right.
    fn insert_all(
        &mut self,
        pack: PackNumber,
        state: PackState,
        chunks: &[PackedChunk],
    ) -> Result<(), StoreError> {
        let mut last = None;
        for chunk in chunks {
            if self.is_damaged(pack, chunk.place) {
                // Its name isn't to be found there, through an equal pair of another either.
                self.index.insert_sealed(chunk.hash, pack, false);
                continue;
            }
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
    unlisted: &[PackNumber],
    pages: PageCache,
    counters: &Counters,
) -> Result<Loaded, StoreError> {
    let mut loaded = Loaded {
        index: Index::default(),
        pages,
        packs: Vec::new(),
        open: Vec::new(),
        damaged: Vec::new(),
        findings: Vec::new(),
    };
    for entry in &manifest.packs {
        let mut entry = entry.clone();
        let Some(pack) = open_pack(disk, &entry, manifest)? else {
            loaded.note_hole(&entry.number.to_string(), 0, "missing", HoleOrigin::Damage);
            // There may be another open one before it is found again.
            entry.state = PackState::Sealed;
            loaded.packs.push(entry);
            continue;
        };
        loaded.index.add_pack(Arc::clone(&pack));
        match entry.state {
            PackState::Sealed => loaded.load_sealed(&pack, &mut entry, manifest)?,
            PackState::Open => {
                let active = loaded.load_open(&pack, entry.bytes, manifest)?;
                counters.syncs.add(1);
                entry.bytes = active.position;
                loaded.open.push(active);
            }
        }
        pack.note_written(entry.bytes);
        counters.bytes_stored.add(entry.bytes);
        loaded.packs.push(entry);
    }
    for number in unlisted {
        let name = number.to_string();
        let file = disk.open(&name).map_err(|error| StoreError::io(&name, error))?;
        let pack = Arc::new(Pack::new(*number, Purpose::Working, file));
        match loaded.load_unlisted(&pack, manifest)? {
            Some(entry) => {
                pack.note_written(entry.bytes);
                counters.bytes_stored.add(entry.bytes);
                loaded.packs.push(entry);
            }
            None => disk.remove(&name).map_err(|error| StoreError::io(&name, error))?,
        }
    }
    loaded.packs.sort_by_key(|pack| pack.number);
    loaded.set_aside_damaged()?;
    for (name, hash) in &manifest.roots {
        // Of what is lost, who reads it is told.
        let is_lost = loaded.index.damage(*hash).is_some() || !loaded.index.holes().is_empty();
        if !is_lost && !loaded.holds(*hash, None)? {
            let what = format!("root {name:?} names chunk {hash}, which is not stored");
            return Err(StoreError::damaged(MANIFEST_NAME, 0, &what));
        }
    }
    Ok(loaded)
}

/// The pack's file, if there is one.
fn open_pack(
    disk: &dyn Disk,
    entry: &PackEntry,
    manifest: &Manifest,
) -> Result<Option<Arc<Pack>>, StoreError> {
    let name = entry.number.to_string();
    match disk.open(&name) {
        Ok(file) => {
            let pack = Pack::new(entry.number, entry.purpose, file);
            let aside = manifest.aside_in(entry.number);
            aside.for_each(|(_, aside)| pack.note_gap_end(u64::from(aside.end)));
            Ok(Some(Arc::new(pack)))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io(&name, error)),
    }
}

/// Leaves one place of each chunk: a pack has two where damage that a chunk was put again for is
/// gone.
fn keep_first(entries: &mut Vec<PackedChunk>) {
    let mut names = HashSet::with_hasher(NameHasherBuilder);
    entries.retain(|entry| names.insert(entry.hash));
}

/// Where what is no frame begins, of which a pack has the first bytes up to `end`.
fn last_gap(gaps: &[Gap], end: u64) -> u64 {
    gaps.last().filter(|gap| gap.bytes.end == end).map_or(end, |gap| gap.bytes.start)
}

/// Whether the header is damaged.
fn is_header_damaged(pack: &Pack) -> Result<bool, StoreError> {
    match check_header(pack) {
        Ok(()) => Ok(false),
        Err(StoreError::Damaged { .. }) => Ok(true),
        Err(other) => Err(other),
    }
}

/// Writes the header again, which is the same in all packs.
fn mend_header(pack: &Pack) -> Result<(), StoreError> {
    pack.file.write_all_at(0, &prefix(PACK_MAGIC)).map_err(|error| pack.io(error))
}

/// Writes an index of `entries` behind all that the pack has, of which so many bytes should be
/// there. Returns the pack's length then.
fn append_index(
    pack: &Pack,
    bytes_durable: u64,
    entries: &mut [PackedChunk],
) -> Result<u64, StoreError> {
    let io = |error| pack.io(error);
    let end = pack.file.bytes().map_err(io)?.max(bytes_durable);
    let offset = u32::try_from(end).map_err(|_| pack.damaged(end, "too long for an index"))?;
    let index = encode_index(offset, entries);
    pack.file.write_all_at(end, &index).map_err(io)?;
    pack.file.sync().map_err(io)?;
    Ok(end + index.len() as u64)
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
