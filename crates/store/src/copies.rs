//! Second copies of the metadata chunks, from which all others are reached, in a file of their own.
//! The caller says which chunks these are.
//!
//! The file is laid out as a pack that is never sealed (docs/format/copies.md): frames of one chunk
//! each, which are searched for when the store is opened. No manifest lists it, and no chunk is in
//! force there: it is read where a chunk's own place is damaged ([`crate::local`]), and by a
//! rescue.
//!
//! 1. [`Copies::add`] appends, and syncs once a minute at most: what a power cut takes before that
//!    is made again by the opening.
//! 2. [`Copies::replace`] writes another file, syncs it and renames it: so what isn't needed any
//!    more goes, and what is damaged is whole again.
//! 3. A copy is a precaution. Where it can't be made nothing fails, but the file isn't added to any
//!    more: it is replaced.
//!
//! The remains of an `add` after a crash can't be distinguished from damage, and both end alike:
//! the file is replaced.
//!
//! *Thread safety*: every method may be called from any number of threads at once.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::chunk::{Chunk, ChunkHash};
use crate::error::StoreError;
use crate::field::prefix;
use crate::hash::NameHasherBuilder;
use crate::io::{Clock, Disk, Machine};
use crate::location::{FrameOffset, PackNumber, Purpose};
use crate::pack::Pack;
use crate::pack::codec::Effort;
use crate::pack::format::{OFFSET_FIRST_FRAME, PACK_MAGIC};
use crate::pack::frames::Frames;
use crate::pack::reader::{Naming, check_header, pick, read_frame};
use crate::pack::recover::recover;

/// The file.
pub(crate) const COPIES_NAME: &str = "COPIES";
/// The name of the next one until it is complete.
pub(crate) const COPIES_NEW_NAME: &str = "COPIES.new";
/// The file is replaced when it has grown to twice what it was, and by so much: a copy that is
/// superseded costs its space until then.
const SLACK_BYTES: u64 = 256 << 10;
/// The time since the last sync after which an addition syncs again. A flush would wait for each
/// one, and the system writes it by itself in less.
const SYNC_MICROS: i64 = 60_000_000;

type Places = HashMap<ChunkHash, FrameOffset, NameHasherBuilder>;

/// The copies of one data directory.
pub struct Copies {
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    /// The bytes that stay free.
    reserve_bytes: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    file: Option<Arc<Pack>>,
    /// The places of the frames that lie whole in the file.
    places: Places,
    /// The offset of the next frame.
    position: u64,
    /// Its end when it was replaced last.
    bytes_anew: u64,
    /// Whether it can be added to: it is there, and nothing in it is known to be damaged.
    is_whole: bool,
    /// The time when it was synced last.
    synced_micros: i64,
}

/// The contents of a directory's file of copies.
pub(crate) struct FoundCopies {
    pub(crate) pack: Pack,
    pub(crate) places: Vec<(ChunkHash, FrameOffset)>,
    /// The offset of the next frame.
    pub(crate) end: u64,
    /// The faults: frames that aren't whole, or the header.
    pub(crate) damages: Vec<StoreError>,
}

/// Reads the file, if there is one.
///
/// # Errors
/// [`StoreError::Version`] if another version wrote it; [`StoreError::Io`].
pub(crate) fn find(disk: &dyn Disk) -> Result<Option<FoundCopies>, StoreError> {
    let file = match disk.open(COPIES_NAME) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::io(COPIES_NAME, error)),
    };
    let pack = named(COPIES_NAME, file);
    let mut damages = Vec::new();
    match check_header(&pack) {
        Err(error @ StoreError::Damaged { .. }) => damages.push(error),
        other => other?,
    }
    let bytes = pack.file.bytes().map_err(|error| pack.io(error))?;
    let recovered = recover(&pack, bytes)?;
    damages.extend(recovered.gaps.iter().map(|gap| pack.damaged(gap.bytes.start, &gap.what)));
    let places = recovered.entries.iter().map(|entry| (entry.hash, entry.place)).collect();
    Ok(Some(FoundCopies { pack, places, end: recovered.end, damages }))
}

/// A file that is read and written as a pack.
fn named(name: &str, file: Arc<dyn crate::io::DiskFile>) -> Pack {
    let mut pack = Pack::new(PackNumber(u32::MAX), Purpose::Working, file);
    name.clone_into(&mut pack.name);
    pack
}

impl Copies {
    /// The copies that lie on `disk`.
    ///
    /// # Errors
    /// As [`find`].
    pub(crate) fn open(machine: &Machine, reserve_bytes: u64) -> Result<Copies, StoreError> {
        let (disk, clock) = (Arc::clone(&machine.disk), Arc::clone(&machine.clock));
        let state = find(&*disk)?.map_or_else(State::default, |found| State {
            file: Some(Arc::new(found.pack)),
            places: found.places.into_iter().collect(),
            position: found.end,
            bytes_anew: found.end,
            is_whole: found.damages.is_empty(),
            synced_micros: clock.steady_micros(),
        });
        Ok(Copies { disk, clock, reserve_bytes, state: Mutex::new(state) })
    }

    /// Whether the chunk `hash` has a copy.
    pub fn has(&self, hash: &ChunkHash) -> bool {
        self.state().places.contains_key(hash)
    }

    /// Whether the file is to be [replaced](Copies::replace) rather than added to.
    pub fn is_due(&self) -> bool {
        let state = self.state();
        !state.is_whole || 2 * state.bytes_anew + SLACK_BYTES < state.position
    }

    /// Adds copies; nothing where the file is to be replaced. An opening completes the remains of
    /// them after a crash.
    pub fn add(&self, chunks: &[Chunk]) {
        let mut state = self.state();
        let Some(file) = state.file.clone().filter(|_| state.is_whole) else { return };
        let new: Vec<&Chunk> =
            chunks.iter().filter(|chunk| !state.places.contains_key(&chunk.hash())).collect();
        if new.is_empty() || !self.has_room(new.iter().copied()) {
            return;
        }
        let State { places, position, .. } = &mut *state;
        let mut written = append(&file, position, places, &new);
        let now = self.clock.steady_micros();
        if SYNC_MICROS <= now.saturating_sub(state.synced_micros) {
            written = written.and_then(|()| file.file.sync());
            state.synced_micros = now;
        }
        state.is_whole = written.is_ok();
    }

    /// Takes all copies away, durably.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn clear(&self) -> Result<(), StoreError> {
        let mut state = self.state();
        *state = State::default();
        let removed = match self.disk.remove(COPIES_NAME) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        let removed = removed.and_then(|()| self.disk.sync_directory());
        removed.map_err(|error| StoreError::io(COPIES_NAME, error))
    }

    /// Begins a file that takes the place of this one.
    pub fn replace(&self) -> Option<NewCopies<'_>> {
        let created = match self.disk.create(COPIES_NEW_NAME) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                self.disk.remove(COPIES_NEW_NAME).and_then(|()| self.disk.create(COPIES_NEW_NAME))
            }
            other => other,
        };
        let pack = named(COPIES_NAME, created.ok()?);
        pack.file.write_all_at(0, &prefix(PACK_MAGIC)).ok()?;
        let position = u64::from(OFFSET_FIRST_FRAME);
        Some(NewCopies { copies: self, pack, places: Places::default(), position })
    }

    /// The chunk `hash`, if it has a copy that can be read.
    pub(crate) fn get(&self, hash: ChunkHash) -> Option<Chunk> {
        let (file, place) = {
            let state = self.state();
            (state.file.clone()?, *state.places.get(&hash)?)
        };
        let read = read_frame(&file, place, Naming::ByHash);
        match read.and_then(|chunks| pick(&file, u64::from(place.offset), &chunks, hash)) {
            Ok(chunk) => Some(chunk),
            Err(_) => {
                self.note_damaged(&file, hash);
                None
            }
        }
    }

    /// Reads all of it; what is damaged is no copy any more. Returns what was found.
    pub(crate) fn check(&self) -> Vec<StoreError> {
        let (file, mut places) = {
            let state = self.state();
            let Some(file) = state.file.clone() else { return Vec::new() };
            (file, state.places.iter().map(|(hash, place)| (*place, *hash)).collect::<Vec<_>>())
        };
        places.sort_unstable_by_key(|(place, _)| *place);
        let mut damages: Vec<StoreError> = check_header(&file).err().into_iter().collect();
        for (place, hash) in places {
            if let Err(error) = read_frame(&file, place, Naming::ByHash) {
                self.note_damaged(&file, hash);
                damages.push(error);
            }
        }
        if !damages.is_empty() {
            self.state().is_whole = false;
        }
        damages
    }

    fn note_damaged(&self, file: &Arc<Pack>, hash: ChunkHash) {
        let mut state = self.state();
        // It may have been replaced meanwhile.
        if state.file.as_ref().is_some_and(|now| Arc::ptr_eq(now, file)) {
            state.places.remove(&hash);
            state.is_whole = false;
        }
    }

    /// Whether copies of `chunks` take nothing of what is left free for others.
    fn has_room<'a>(&self, chunks: impl Iterator<Item = &'a Chunk>) -> bool {
        let bytes: usize = chunks.map(|chunk| chunk.encoded().len()).sum();
        let space = self.disk.space().ok().flatten();
        space.is_none_or(|space| self.reserve_bytes.saturating_add(bytes as u64) <= space.free)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the lock is held")
    }
}

/// A file of copies that isn't in force yet.
pub struct NewCopies<'a> {
    copies: &'a Copies,
    pack: Pack,
    places: Places,
    position: u64,
}

impl NewCopies<'_> {
    /// Adds copies. Returns whether they could be written: if not, the file in force stays.
    pub fn add(&mut self, chunks: &[Chunk]) -> bool {
        if !self.copies.has_room(chunks.iter()) {
            return false;
        }
        let chunks: Vec<&Chunk> = chunks.iter().collect();
        append(&self.pack, &mut self.position, &mut self.places, &chunks).is_ok()
    }

    /// Gives it up.
    pub fn abandon(self) {
        // A file that stays is removed by the next opening.
        let _ = self.copies.disk.remove(COPIES_NEW_NAME);
    }

    /// Puts the file in force, durably. Where that fails, the one before stays, or this one is
    /// there.
    pub fn finish(self) {
        let NewCopies { copies, pack, places, position } = self;
        let mut state = copies.state();
        let renamed = pack
            .file
            .sync()
            .and_then(|()| copies.disk.rename(COPIES_NEW_NAME, COPIES_NAME))
            .and_then(|()| copies.disk.sync_directory());
        match renamed {
            Ok(()) => {
                let file = Some(Arc::new(pack));
                let synced_micros = copies.clock.steady_micros();
                let (bytes_anew, is_whole) = (position, true);
                *state = State { file, places, position, bytes_anew, is_whole, synced_micros };
            }
            Err(_) => state.is_whole = false,
        }
    }
}

/// Appends a frame for each of `chunks`.
fn append(
    pack: &Pack,
    position: &mut u64,
    places: &mut Places,
    chunks: &[&Chunk],
) -> io::Result<()> {
    let mut frames = Frames::default();
    chunks.iter().for_each(|chunk| frames.push(Effort::Light, &[chunk]));
    let (_, bytes) = frames.first_run(frames.frames());
    let end = *position + bytes.len() as u64;
    if u64::from(u32::MAX) < end {
        return Err(ErrorKind::FileTooLarge.into());
    }
    pack.file.write_all_at(*position, bytes)?;
    for (chunk, frame) in chunks.iter().zip(frames.frames()) {
        let (offset, bytes) = (*position as u32, frame.len() as u32);
        places.insert(chunk.hash(), FrameOffset { offset, bytes });
        *position += frame.len() as u64;
    }
    Ok(())
}
