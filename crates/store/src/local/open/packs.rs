//! Opens the packs of a store: steps 3 and 4 of [`super`].

mod alike;

use std::collections::HashSet;
use std::sync::Arc;

use super::indexes::{self, SealedPack};
use crate::chunk::ChunkHash;
use crate::counters::Counters;
use crate::damage::{Damage, FrameDamage, Hole, HoleOrigin};
use crate::error::StoreError;
use crate::field::prefix;
use crate::hash::NameHasherBuilder;
use crate::index::{Index, KeysRead, Known};
use crate::io::{Disk, Tier};
use crate::location::{FrameOffset, PackNumber, PackedChunk, Purpose};
use crate::manifest::{MANIFEST_NAME, Manifest, PackEntry, PackState, SetAside, SetAsideReason};
use crate::pack::Pack;
use crate::pack::format::PACK_MAGIC;
use crate::pack::outline::Starts;
use crate::pack::reader::{
    Naming, check_header, read_frame, read_index, read_index_alone, rewrite,
};
use crate::pack::recover::{Gap, Recovered, claimed_by_frame, recover};
use crate::pack::table::format::{encode_index, index_bytes};
use crate::pack::table::{PackTable, PageCache};
use crate::pack::writer::ActivePack;

const NO_FRAME: &str = "no whole frame";
const ENDS_EARLY: &str = "no frame lies between here and the length that was durable";

/// The packs, as they were found.
pub(super) struct Loaded {
    pub index: Index,
    pub pages: PageCache,
    pub packs: Vec<PackEntry>,
    pub open: Vec<ActivePack>,
    /// Chunks in frames that are damaged.
    damaged: Vec<(ChunkHash, FrameDamage)>,
    /// The damage to report.
    pub findings: Vec<Damage>,
}

/// Loads the packs that the manifest lists, and those that a later one may have listed.
pub(super) fn load(
    disk: &dyn Disk,
    manifest: &Manifest,
    unlisted: &[PackNumber],
    (pages, keys_memory_max): (PageCache, u64),
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
    let mut files = Vec::with_capacity(manifest.packs.len());
    for entry in &manifest.packs {
        files.push((entry.clone(), open_pack(disk, entry, manifest)?));
    }
    let whole = loaded.load_whole(disk, &files, manifest, keys_memory_max)?;
    for (mut entry, pack) in files {
        let Some(pack) = pack else {
            loaded.note_hole(&entry.number.to_string(), 0, "missing", HoleOrigin::Damage);
            // There may be another open one before it is found again.
            entry.state = PackState::Sealed;
            loaded.packs.push(entry);
            continue;
        };
        loaded.index.add_pack(Arc::clone(&pack));
        match entry.state {
            PackState::Sealed if whole.contains(&entry.number) => {}
            PackState::Sealed => {
                loaded.load_sealed(&pack, &mut entry, (manifest, disk.tier()))?;
            }
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
        loaded.adopt_or_remove(disk, *number, manifest, counters)?;
    }
    loaded.packs.sort_by_key(|pack| pack.number);
    loaded.set_aside_damaged()?;
    loaded.check_roots(manifest)?;
    Ok(loaded)
}

impl Loaded {
    /// Adds a pack that the manifest doesn't list, or removes its file if it has nothing whole.
    fn adopt_or_remove(
        &mut self,
        disk: &dyn Disk,
        number: PackNumber,
        manifest: &Manifest,
        counters: &Counters,
    ) -> Result<(), StoreError> {
        let name = number.to_string();
        let file = disk.open(&name).map_err(|error| StoreError::io(&name, error))?;
        let pack = Arc::new(Pack::new(number, Purpose::Working, file));
        match self.load_unlisted(&pack, manifest)? {
            Some(entry) => {
                pack.note_written(entry.bytes);
                counters.bytes_stored.add(entry.bytes);
                self.packs.push(entry);
            }
            None => disk.remove(&name).map_err(|error| StoreError::io(&name, error))?,
        }
        Ok(())
    }

    /// Whether a chunk is in force in a pack other than `but`.
    fn holds(&self, hash: ChunkHash, but: Option<PackNumber>) -> Result<bool, StoreError> {
        let spilled = self.index.keys().spilled();
        let read = KeysRead::of(spilled, std::iter::once(hash))?;
        match self.index.look(hash, &read) {
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

    /// Loads those sealed packs from which nothing was set aside and whose indexes are right, all
    /// together. Returns which these are.
    fn load_whole(
        &mut self,
        disk: &dyn Disk,
        files: &[(PackEntry, Option<Arc<Pack>>)],
        manifest: &Manifest,
        keys_memory_max: u64,
    ) -> Result<HashSet<PackNumber>, StoreError> {
        let sealed = files.iter().filter(|(entry, _)| {
            entry.state == PackState::Sealed && manifest.aside_in(entry.number).next().is_none()
        });
        let sealed: Vec<SealedPack> = sealed
            .filter_map(|(entry, pack)| Some((Arc::clone(pack.as_ref()?), entry.bytes)))
            .collect();
        let starts: Vec<Starts> =
            indexes::read(&sealed, disk.tier()).into_iter().flatten().collect();
        let whole: HashSet<PackNumber> = starts.iter().map(|starts| starts.pack).collect();
        let (keys, left) = alike::keys_of(disk, starts, keys_memory_max)?;
        self.index = Index::of_keys(keys);
        let sealed = sealed.iter().filter(|(pack, _)| whole.contains(&pack.number));
        sealed.for_each(|(pack, _)| self.index.add_pack(Arc::clone(pack)));
        self.insert_alike(&left)?;
        Ok(whole)
    }

    /// Loads a sealed pack by its index, or by another that is made of its frames.
    fn load_sealed(
        &mut self,
        pack: &Pack,
        entry: &mut PackEntry,
        (manifest, tier): (&Manifest, Option<&dyn Tier>),
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
        self.index_anew(pack, entry, (entries, tier))
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
        self.index_anew(pack, &mut entry, (entries, None))?;
        Ok(Some(entry))
    }

    /// Gives a pack an index of `entries`, which is durable then with all before it.
    fn index_anew(
        &mut self,
        pack: &Pack,
        entry: &mut PackEntry,
        (mut entries, tier): (Vec<PackedChunk>, Option<&dyn Tier>),
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
            Err(error) if error.is_immutable() => {
                let state = match keep_index(pack, entry.bytes, &mut entries, tier)? {
                    true => PackState::Sealed,
                    false => PackState::Open,
                };
                self.insert_all(pack.number, state, &entries)
            }
            Err(error) => Err(error),
        }
    }

    /// Loads the open pack, whose first `bytes_durable` bytes were durable, and makes all that is
    /// whole durable.
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

    /// Notes what lies between the whole frames of a pack, whose first `bytes_durable` bytes were
    /// durable.
    fn note_gaps(&mut self, pack: &Pack, gaps: Vec<Gap>, bytes_durable: u64, manifest: &Manifest) {
        for Gap { bytes, what, chunks } in gaps {
            let offset = u32::try_from(bytes.start).expect("a window has no more of a pack");
            let place = FrameOffset { offset, bytes: (bytes.end - bytes.start) as u32 };
            let known = manifest.aside.get(&(pack.number, offset)).map(|aside| aside.why);
            let is_torn = known == Some(SetAsideReason::DamagedOrTorn)
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
        self.index.note_aside(pack.number, place, SetAsideReason::Damaged);
        self.note_hole(&pack.name, u64::from(place.offset), what, origin);
    }

    /// Notes a place that is damaged or was never acknowledged: nothing shows which.
    fn note_torn(&mut self, pack: &Pack, place: FrameOffset, what: &str) {
        self.index.note_aside(pack.number, place, SetAsideReason::DamagedOrTorn);
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
        for (offset, SetAside { end, why }) in aside {
            let place = FrameOffset { offset, bytes: end - offset };
            if why == SetAsideReason::DamagedOrTorn {
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

    /// Sets aside what is damaged, once all packs are there. A chunk that is nowhere else is lost.
    fn set_aside_damaged(&mut self) -> Result<(), StoreError> {
        for (hash, damage) in std::mem::take(&mut self.damaged) {
            if self.holds(hash, None)? {
                let FrameDamage { at, .. } = damage;
                self.index.note_aside(at.pack, at.place, SetAsideReason::Damaged);
            } else {
                self.findings.push(damage.of(hash));
                self.index.note_lost(hash, damage);
            }
        }
        Ok(())
    }

    /// Checks that what the roots name is there. Readers of what is lost get an error.
    fn check_roots(&self, manifest: &Manifest) -> Result<(), StoreError> {
        for (name, hash) in &manifest.roots {
            let is_lost = self.index.damage(*hash).is_some() || !self.index.holes().is_empty();
            if !is_lost && !self.holds(*hash, None)? {
                let what = format!("root {name:?} names chunk {hash}, which is not stored");
                return Err(StoreError::damaged(MANIFEST_NAME, 0, &what));
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
            // Only others of this pack are there yet, whose names may begin alike.
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

/// Returns where what is no frame begins, of which a pack has the first bytes up to `end`.
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

/// Has the tier that the pack lies in keep an index of `entries`, which are all that its own had if
/// no frame is damaged, too. Returns whether they are.
fn keep_index(
    pack: &Pack,
    pack_bytes: u64,
    entries: &mut [PackedChunk],
    tier: Option<&dyn Tier>,
) -> Result<bool, StoreError> {
    let offset = pack_bytes.checked_sub(index_bytes(entries.len()) as u64);
    let offset = offset.and_then(|offset| u32::try_from(offset).ok());
    let (Some(tier), Some(offset)) = (tier, offset) else { return Ok(false) };
    let index = encode_index(offset, entries);
    let is_kept = tier.keep_index(&pack.name, &index).map_err(|error| pack.io(error))?;
    if !is_kept || read_index(pack, pack_bytes).is_err() {
        return Ok(false);
    }
    pack.table.get_or_init(|| PackTable::new(pack_bytes, offset, entries));
    Ok(true)
}

/// Writes an index of `entries` behind all that the pack has, of which `bytes_durable` should be
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
