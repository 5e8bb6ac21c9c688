//! Healing: a stored frame is read again before another good copy of its chunks is discarded, and
//! set aside if it is damaged.
//!
//! 1. Before a chunk is dropped because its name is in the index, the caller asks
//!    [`LocalStore::find_intact`] first. It reads the frames from their files, those that lie near
//!    each other by one read, and looks at their checksums. A checksum binds a frame's bytes to the
//!    names of its chunks, so nothing is decompressed.
//! 2. A damaged frame is *set aside* ([`crate::index`], invariant 3): its chunks are absent. So the
//!    put goes on and writes them, which is all that healing takes. Readers, moves and scrubbing
//!    set aside what they meet, too.
//! 3. The manifest lists the frames that were set aside, from the next sync on at the latest: a
//!    sync that makes the new copy durable doesn't return before. So no opening takes the old frame
//!    for the chunk's place. Each opening reads these frames again, and takes back those that are
//!    whole after all.
//! 4. If the cache of decompressed chunks has what was lost, or another place holds it, or it has a
//!    second copy ([`crate::copies`]), it is put from there at once. If what lies in its place
//!    turns out to be whole when it is read again, it is put from there.
//!
//! A read from a disk comes through the system's cache, if that has the bytes: damage that isn't
//! seen so is found by a scrub, which reads past it.

use std::sync::Arc;

use super::LocalStore;
use super::find::PackLocation;
use crate::chunk::{Chunk, ChunkHash};
use crate::damage::{Damage, FrameDamage, Hole, HoleOrigin};
use crate::error::StoreError;
use crate::index::{Index, Known};
use crate::location::{FrameOffset, Location, PackedChunk};
use crate::pack::Pack;
use crate::pack::format::Frame;
use crate::pack::reader::{Naming, pick, read_frame, read_index};
use crate::{ChunkStore, Lifetime};

/// Frames are read by so much at once: that is still in the processor's cache when their checksums
/// are computed (docs/notes/2026-11-29-verify.md).
const CHECKED_BYTES: u64 = 64 << 10;
/// The number of findings that wait for a caller that asks; of more there is only the count.
const FINDINGS_MAX: usize = 1000;

/// A chunk that is to be looked at, and where it was among those that were asked for.
type Wanted = (Arc<Pack>, Location, usize);

impl LocalStore {
    /// Returns for each of `hashes` whether its chunk is there and whole, and notes that this was
    /// reported. Chunks that aren't whole are set aside.
    pub(super) fn find_intact(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, StoreError> {
        loop {
            let found = self.find_and_touch(hashes)?;
            let is_there = found.iter().map(Option::is_some).collect();
            if !self.set_aside_damaged(hashes, found)? {
                return Ok(is_there);
            }
        }
    }

    /// Reads the frames of chunks that have other copies in packs, which aren't in force, before
    /// one of these may go: an opening took the first copy that it found, and that may be the
    /// damaged one of the two.
    pub(super) fn check_duplicates(&self) -> Result<(), StoreError> {
        let hashes = self.index(Index::not_in_force);
        let found = self.find_many(&hashes)?;
        self.set_aside_damaged(&hashes, found).map(drop)
    }

    /// Reads the frames that were found, and sets those aside that aren't whole. Returns whether
    /// there were any.
    fn set_aside_damaged(
        &self,
        hashes: &[ChunkHash],
        found: Vec<Option<PackLocation>>,
    ) -> Result<bool, StoreError> {
        let wanted = found.into_iter().enumerate();
        let mut wanted: Vec<Wanted> = wanted
            .filter_map(|(position, found)| Some((found?, position)))
            .map(|((pack, at), position)| (pack, at, position))
            .collect();
        wanted.sort_unstable_by_key(|(_, at, position)| (*at, *position));
        let mut damaged = Vec::new();
        for run in super::fetch::runs(&wanted, CHECKED_BYTES, |(_, at, _)| at) {
            self.check_run(hashes, run, &mut damaged)?;
        }
        damaged.retain(|(hash, pack, damage)| !reads_intact(pack, damage.at.place, *hash));
        let any = !damaged.is_empty();
        for (hash, pack, damage) in damaged {
            self.set_aside(hash, &pack, damage)?;
        }
        Ok(any)
    }

    /// Checks the frames of `run`, which lie near each other in one pack: each once, however many
    /// of its chunks are wanted.
    fn check_run(
        &self,
        hashes: &[ChunkHash],
        run: &[Wanted],
        damaged: &mut Vec<(ChunkHash, Arc<Pack>, FrameDamage)>,
    ) -> Result<(), StoreError> {
        let [(pack, first, _), ..] = run else { return Ok(()) };
        let start = u64::from(first.place.offset);
        let end = run.last().map_or(start, |(_, last, _)| last.place.end());
        self.buffers.with((end - start) as usize, |bytes| {
            let all = pack.read_to(start, bytes);
            for frame in run.chunk_by(|(_, left, _), (_, right, _)| left.place == right.place) {
                let place = frame[0].1.place;
                let offset = u64::from(place.offset);
                let stored = &mut bytes[(offset - start) as usize..(place.end() - start) as usize];
                let read = match &all {
                    Ok(()) => Ok(()),
                    // Perhaps only some of them can't be read.
                    Err(_) => pack.read_to(offset, stored),
                };
                let parsed = match read.map(|()| Frame::parse(stored)) {
                    Ok(parsed) => parsed.map_err(str::to_owned),
                    Err(StoreError::Damaged { what, .. }) => Err(what),
                    Err(other) => return Err(other),
                };
                for (_, at, position) in frame {
                    let hash = hashes[*position];
                    if let Err(what) = check_holds(&parsed, hash) {
                        damaged.push((hash, Arc::clone(pack), FrameDamage { at: *at, what }));
                    }
                }
            }
            Ok(())
        })
    }

    /// Sets a damaged frame aside, as far as `hash` goes, and heals that if the cache has it.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::Damaged`]: the index can't be searched.
    pub(super) fn set_aside(
        &self,
        hash: ChunkHash,
        pack: &Pack,
        damage: FrameDamage,
    ) -> Result<(), StoreError> {
        let lay_there = {
            let mut writer = self.writer();
            let (mut index, read) = self.index_mut_for(std::iter::once(hash))?;
            let lay_there = index.set_aside(hash, damage.clone(), &read);
            if lay_there {
                writer.forget(pack.number, damage.at.place);
            }
            lay_there
        };
        if !lay_there {
            return Ok(());
        }
        let mut finding = damage.of(hash);
        let put = |chunk: Chunk| self.put_many_for(Lifetime::Working, &[chunk]).is_ok();
        if self.cached_intact(hash).is_some_and(put) {
            finding.what.push_str("; it is healed, from memory");
        } else if self.other_copy(hash, &damage.at).is_some_and(put) {
            finding.what.push_str("; it is healed, from another copy");
        }
        self.note_finding(finding);
        Ok(())
    }

    /// The chunk as it lies in another place than `damaged`, in force or not: it may have been put
    /// again after a collection had taken it for dead, and an opening took the first copy that it
    /// found.
    fn other_copy(&self, hash: ChunkHash, damaged: &Location) -> Option<Chunk> {
        let mut copies = self.writer().copies(hash);
        for (pack, bytes) in self.sealed_packs() {
            if let Ok(Some(_)) = self.search(&pack, hash) {
                copies.extend(
                    places(&pack, bytes, hash).into_iter().map(|it| (Arc::clone(&pack), it)),
                );
            }
        }
        copies.retain(|(pack, place)| (pack.number, *place) != (damaged.pack, damaged.place));
        let in_packs = copies.into_iter().find_map(|(pack, place)| {
            let chunks = read_frame(&pack, place, Naming::ByHash).ok()?;
            pick(&pack, u64::from(place.offset), &chunks, hash).ok()
        });
        in_packs.or_else(|| self.copies.get(hash))
    }

    /// Notes what is to be reported to a caller that asks for it.
    pub(super) fn note_finding(&self, finding: Damage) {
        self.counters.damages_found.add(1);
        let mut findings = self.findings.lock().expect("no panic while the lock is held");
        if findings.len() < FINDINGS_MAX {
            findings.push(finding);
        }
    }

    /// As `note_finding`, for a file with more than one chunk concerned.
    pub(super) fn note_file_finding(&self, error: StoreError) {
        if let StoreError::Damaged { file, offset, what } = error {
            self.note_finding(Damage { file, offset, chunk: None, what });
        }
    }

    /// Takes the damage that was found since the last call.
    pub(super) fn new_findings(&self) -> Vec<Damage> {
        std::mem::take(&mut *self.findings.lock().expect("no panic while the lock is held"))
    }

    /// The chunk, if the cache has it and it hashes to its name.
    fn cached_intact(&self, hash: ChunkHash) -> Option<Chunk> {
        let cached = self.cache.get(hash)?;
        let again = Chunk::from_encoded(cached.encoded().clone(), ("the cache", 0)).ok()?;
        (again.hash() == hash).then_some(again)
    }

    /// Does `read` with where `hash` lies. A chunk that it finds damaged there is fetched again if
    /// it comes from beyond the disk, and then set aside; if that heals it, it is read once more.
    pub(super) fn read_intact<T>(
        &self,
        hash: ChunkHash,
        read: impl Fn(&Arc<Pack>, &Location) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut last = None;
        let mut was_fetched_again = false;
        loop {
            let Some((pack, at)) = self.find(hash)? else {
                if last.is_none() && self.heal_in_place(hash) {
                    continue;
                }
                return Err(last.unwrap_or_else(|| self.absent(hash)));
            };
            match read(&pack, &at) {
                Err(StoreError::Damaged { file, offset, what }) => {
                    if !was_fetched_again && pack.forget_cached(at.place) {
                        was_fetched_again = true;
                        continue;
                    }
                    let damage = FrameDamage { at, what: what.clone() };
                    self.set_aside(hash, &pack, damage)?;
                    last = Some(StoreError::Damaged { file, offset, what });
                }
                other => return other,
            }
        }
    }

    /// Puts a chunk that was lost again, if what lies in its place is whole now (what was wrong was
    /// the way there), or if it has a second copy. Returns whether it is stored.
    pub(super) fn heal_in_place(&self, hash: ChunkHash) -> bool {
        let (lost, may_be_lost) = self.index(|index| {
            let damage = index.damage(hash);
            let lost = damage.and_then(|damage| {
                Some((Arc::clone(index.packs().get(&damage.at.pack)?), damage.at.place))
            });
            (lost, damage.is_some() || !index.holes().is_empty())
        });
        // Without damage it was never there, or is garbage that went.
        if !may_be_lost {
            return false;
        }
        let in_place = lost.and_then(|(pack, place)| {
            let chunks = read_frame(&pack, place, Naming::ByHash).ok()?;
            pick(&pack, u64::from(place.offset), &chunks, hash).ok()
        });
        let chunk = in_place.or_else(|| self.copies.get(hash));
        chunk.is_some_and(|chunk| self.put_many_for(Lifetime::Working, &[chunk]).is_ok())
    }

    /// Returns where a chunk lies that wasn't found, if it can be put again.
    pub(super) fn find_healed(&self, hash: ChunkHash) -> Result<PackLocation, StoreError> {
        let found = if self.heal_in_place(hash) { self.find(hash)? } else { None };
        found.ok_or_else(|| self.absent(hash))
    }

    /// Returns why the chunk named `hash` can't be read, which isn't stored.
    pub(super) fn absent(&self, hash: ChunkHash) -> StoreError {
        let known = self.index(|index| match (index.damage(hash), index.holes()) {
            (Some(damage), _) => Some(damage.of(hash).error()),
            (None, [Hole { damage, .. }, ..]) => {
                let what =
                    format!("chunk {hash} isn't found, and may have lain here: {}", damage.what);
                Some(StoreError::damaged(&damage.file, damage.offset, &what))
            }
            (None, []) => None,
        });
        let known = known.or_else(|| self.damaged_index_of(hash));
        known.unwrap_or(StoreError::Missing(hash))
    }

    /// Returns the fault of the index of a pack that may hold `hash`. A search that meets a damaged
    /// page scans the pack's frames instead; a frame that is damaged, too, doesn't give its name.
    pub(super) fn damaged_index_of(&self, hash: ChunkHash) -> Option<StoreError> {
        let names = std::iter::once(hash);
        let packs = match self.index_for(names, |index, read| index.look(hash, read)) {
            Ok(Known::Perhaps(packs)) => packs,
            Ok(Known::Here(..)) => return None,
            Err(error) => return Some(error),
        };
        packs.into_iter().find_map(|pack| {
            let bytes = pack.table.get()?.pack_bytes;
            match read_index(&pack, bytes) {
                Err(StoreError::Damaged { file, offset, what }) => {
                    let what = format!("chunk {hash} isn't found, and may have lain here: {what}");
                    let error = || StoreError::damaged(&file, offset, &what);
                    self.note_file_finding(error());
                    Some(error())
                }
                _ => None,
            }
        })
    }

    /// Returns the damage that is lost until it is put again, by file and offset.
    pub(super) fn all_damages(&self) -> Vec<Damage> {
        let mut all: Vec<Damage> = self.index(|index| {
            let lost = index.lost().map(|(hash, damage)| damage.of(*hash));
            let holes = index.holes().iter().filter(|hole| hole.origin == HoleOrigin::Damage);
            lost.chain(holes.map(|hole| hole.damage.clone())).collect()
        });
        all.sort_unstable();
        all
    }
}

/// All places of a chunk in a sealed pack of so many bytes: one that was put again for damage has
/// two.
fn places(pack: &Pack, bytes: u64, hash: ChunkHash) -> Vec<FrameOffset> {
    let entries = read_index(pack, bytes).or_else(|_| pack.rescued().map(<[PackedChunk]>::to_vec));
    let entries = entries.unwrap_or_default();
    entries.iter().filter(|entry| entry.hash == hash).map(|entry| entry.place).collect()
}

/// Whether a chunk that was read damaged is whole when it is fetched again from beyond the disk.
fn reads_intact(pack: &Pack, place: FrameOffset, hash: ChunkHash) -> bool {
    let read = || {
        let chunks = read_frame(pack, place, Naming::ByHash)?;
        pick(pack, u64::from(place.offset), &chunks, hash)
    };
    pack.forget_cached(place) && read().is_ok()
}

/// Checks that a frame is whole, and holds the chunk `hash`.
fn check_holds(frame: &Result<Frame<'_>, String>, hash: ChunkHash) -> Result<(), String> {
    match frame {
        Ok(frame) if frame.chunks().any(|(chunk, _)| chunk.hash == hash) => Ok(()),
        Ok(_) => Err(format!("the frame does not hold chunk {hash}")),
        Err(what) => Err(what.clone()),
    }
}
