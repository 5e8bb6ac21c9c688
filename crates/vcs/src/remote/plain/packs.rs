//! The chunks of a plain remote: which pack has which, and how they are read and written.
//!
//! - Chunks are put into frames, and frames into a pack in memory, which is written when it is
//!   large enough, while others go on. A pack is there as a whole or not at all, and isn't needed
//!   before a ref is changed.
//! - Chunks are read by the frame. Those that lie side by side are asked for together, and what was
//!   read last is kept: a transfer asks for them in about the order in which another one wrote
//!   them.
//!
//! *Damage*: what can't be read where it lies counts as not being there. So a client that has it
//! puts it again, and a chunk that lies twice is read from where it is whole. All that is found is
//! noted ([`StorageDamage`]).
//!
//! *Bounds*: an entry a chunk of the remote (about 60 bytes), a pack or two in memory, and
//! [`RECENT_BYTES_MAX`] of chunks that were read.

pub(super) mod check;
mod state;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use frond_db::inside::{CommitId, Error, ErrorKind};
use frond_store::io::Chance;
use frond_store::{Chunk, ChunkHash, StoreError};
use state::{Pending, State, bytes_of};

use super::examine::{self, StorageDamage};
use super::format;
use crate::remote::frame::{self, FRAME_BYTES_TARGET, FrameEffort};
use crate::remote::plain::storage::{FilePart, PlainStorage};

/// Packs lie for long, so that thorough compression is worth its time.
pub(crate) const EFFORT: FrameEffort = FrameEffort::Thorough;
/// The beginning of the names of packs.
pub(crate) const PACK_PREFIX: &str = "pack-";
/// A pack is written when its frames have grown to this.
const PACK_BYTES_TARGET: usize = 16 << 20;
/// The bytes of a pack's end that are read first: the index of a few hundred chunks.
const TAIL_BYTES: u64 = 32 << 10;
/// Packs whose indexes are read together.
const INDEX_BATCH: usize = 64;
/// Frames of one pack are read at once if no more than this lies between them.
const GAP_BYTES_MAX: u64 = 64 << 10;
/// The number of bytes that are read at once at most.
const READ_BYTES_MAX: u64 = 8 << 20;

/// A frame in a pack: (number of the pack, offset), bytes.
type PlacedFrame = ((u32, u32), u32);
/// Frames that are asked for at once: each slice lies in one piece.
type Reads<'f> = Vec<&'f [PlacedFrame]>;

/// The packs of a plain remote.
///
/// *Locks*: one, never held while the place is asked.
pub(crate) struct Packs {
    place: Arc<dyn PlainStorage>,
    chance: Arc<dyn Chance>,
    state: Mutex<State>,
}

impl Packs {
    pub fn new(place: Arc<dyn PlainStorage>, chance: Arc<dyn Chance>) -> Packs {
        Packs { place, chance, state: Mutex::new(State::default()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the lock is held")
    }

    /// Looks for packs that came since; those that are `doomed` count for nothing.
    ///
    /// # Errors
    /// As the place. A pack whose index can't be read is noted as damaged.
    pub fn refresh(&self, doomed: &[String]) -> Result<(), Error> {
        let mut found = self.place.list(PACK_PREFIX)?;
        found.retain(|(name, _)| !doomed.contains(name));
        let new: Vec<(String, u64)> = {
            let mut state = self.state();
            let there: HashSet<&String> = found.iter().map(|(name, _)| name).collect();
            state.forget_except(&there);
            found.iter().filter(|(name, _)| !state.opened.contains(name)).cloned().collect()
        };
        for batch in new.chunks(INDEX_BATCH) {
            self.open_packs(batch)?;
        }
        Ok(())
    }

    /// Reads the indexes of packs: their ends at once, and once more of those that are longer.
    fn open_packs(&self, packs: &[(String, u64)]) -> Result<(), Error> {
        let part = |name: &str, bytes: u64, tail: u64| FilePart {
            name: name.to_owned(),
            range: bytes.saturating_sub(tail)..bytes,
        };
        let parts: Vec<_> = packs.iter().map(|(n, bytes)| part(n, *bytes, TAIL_BYTES)).collect();
        // One that went meanwhile was removed by a collection; what it held lies elsewhere.
        let Some(mut tails) = self.place.read_many(&parts)? else { return self.open_each(packs) };
        let mut longer = Vec::new();
        for (position, (name, bytes)) in packs.iter().enumerate() {
            // One that is damaged is read as a whole below.
            let needed = format::index_bytes(name, *bytes, &tails[position]).unwrap_or_default();
            if needed > tails[position].len() as u64 {
                longer.push((position, part(name, *bytes, needed)));
            }
        }
        let parts: Vec<FilePart> = longer.iter().map(|(_, part)| part.clone()).collect();
        let Some(more) = self.place.read_many(&parts)? else { return self.open_each(packs) };
        for ((position, _), tail) in longer.iter().zip(more) {
            tails[*position] = tail;
        }
        for ((name, bytes), tail) in packs.iter().zip(&tails) {
            match format::read_index(name, *bytes, tail) {
                Ok(places) => self.state().add_pack(name.clone(), places, format::mark_of(tail)),
                Err(error) => self.open_without_index(name, *bytes, error)?,
            }
        }
        Ok(())
    }

    /// Reads a pack whose index is damaged as a whole, and takes what is in it.
    fn open_without_index(&self, name: &str, bytes: u64, error: Error) -> Result<(), Error> {
        let whole = FilePart { name: name.to_owned(), range: 0..bytes };
        let Some(read) = self.place.read_many(&[whole])? else { return Ok(()) };
        let scanned = examine::scan(name, read.first().map_or(&[], |pack| &pack[..]), &mut |_| {});
        let mut state = self.state();
        state.note(StorageDamage {
            file: name.to_owned(),
            what: error.message,
            chunks: scanned.lost,
            may_hold_more: scanned.may_hold_more,
        });
        state.add_pack(name.to_owned(), scanned.places, None);
        Ok(())
    }

    fn open_each(&self, packs: &[(String, u64)]) -> Result<(), Error> {
        match packs {
            [] | [_] => Ok(()),
            _ => packs.iter().try_for_each(|pack| self.open_packs(std::slice::from_ref(pack))),
        }
    }

    /// Returns for each of `hashes` whether its chunk was put.
    pub fn has_many(&self, hashes: &[ChunkHash]) -> Vec<bool> {
        let state = self.state();
        hashes.iter().map(|hash| state.has(hash)).collect()
    }

    /// Whether the chunk lies in two packs, and is whole in both as far as is known.
    pub fn lies_twice(&self, hash: &ChunkHash) -> bool {
        let state = self.state();
        let Some(at) = state.chunks.get(hash) else { return false };
        state.copies.get(hash).is_some_and(|copies| copies.iter().any(|copy| copy.pack != at.pack))
    }

    /// Returns whether `hash` was put by us, and needs no rereading yet.
    pub fn is_new(&self, hash: &ChunkHash) -> bool {
        let state = self.state();
        state.pending.chunks.contains(hash) || state.in_writing.contains(hash)
    }

    /// Returns the chunks of `hashes`, in their order; `None` if a pack is gone.
    ///
    /// # Errors
    /// `Damaged` if one of them isn't there, or isn't whole.
    pub fn get_many(&self, hashes: &[ChunkHash]) -> Result<Option<Vec<Chunk>>, Error> {
        let Some(found) = self.get_found(hashes)? else { return Ok(None) };
        let wrong = |hash: &ChunkHash| {
            let state = self.state();
            let damage = state.damages.iter().find(|damage| damage.chunks.contains(hash));
            let what = damage.map(|damage| damage.what.clone());
            what.map_or_else(|| StoreError::Missing(*hash).into(), Error::damaged)
        };
        let chunks = found.into_iter().zip(hashes);
        let chunks = chunks.map(|(chunk, hash)| chunk.ok_or_else(|| wrong(hash)));
        chunks.collect::<Result<_, _>>().map(Some)
    }

    /// As `get_many`, with nothing in the place of a chunk that isn't there or can't be read.
    ///
    /// # Errors
    /// As the place, and as [`Packs::flush`]; what is damaged is noted instead.
    pub fn get_found(&self, hashes: &[ChunkHash]) -> Result<Option<Vec<Option<Chunk>>>, Error> {
        if hashes.iter().any(|hash| self.state().pending.chunks.contains(hash)) {
            self.flush()?;
        }
        let mut wanted: HashSet<ChunkHash> = hashes.iter().copied().collect();
        let mut found: HashMap<ChunkHash, Chunk> = HashMap::new();
        loop {
            // Frames by pack and offset, so that neighbours are read together.
            let mut frames: BTreeMap<(u32, u32), u32> = BTreeMap::new();
            {
                let state = self.state();
                for hash in hashes {
                    if found.contains_key(hash) {
                        continue;
                    }
                    let Some(at) = state.chunks.get(hash) else { continue };
                    let key = (at.pack, at.place.offset);
                    if let Some(chunks) = state.recent.frames.get(&key) {
                        take(chunks, &mut wanted, &mut found);
                    }
                    if !found.contains_key(hash) {
                        frames.insert(key, at.place.bytes);
                    }
                }
            }
            if frames.is_empty() {
                return Ok(Some(hashes.iter().map(|hash| found.get(hash).cloned()).collect()));
            }
            // A chunk that isn't where it should be is forgotten there: it lies elsewhere, or
            // nowhere.
            let frames: Vec<((u32, u32), u32)> = frames.into_iter().collect();
            for run in self.runs(&frames) {
                if !self.read_run(run, &mut wanted, &mut found)? {
                    return Ok(None);
                }
            }
        }
    }

    /// Groups of frames that are read together: several reads, each of neighbours.
    fn runs<'f>(&self, frames: &'f [PlacedFrame]) -> Vec<Reads<'f>> {
        let mut reads: Vec<&[PlacedFrame]> = Vec::new();
        let mut start = 0;
        for position in 1..=frames.len() {
            let is_end = position == frames.len() || {
                let ((pack, offset), bytes) = frames[position - 1];
                let ((next_pack, next), next_bytes) = frames[position];
                let gap = u64::from(next).saturating_sub(u64::from(offset) + u64::from(bytes));
                let all = u64::from(next) + u64::from(next_bytes)
                    - u64::from(frames[start].0.1).min(u64::from(next));
                pack != next_pack || GAP_BYTES_MAX < gap || READ_BYTES_MAX < all
            };
            if is_end {
                reads.push(&frames[start..position]);
                start = position;
            }
        }
        // Those that take little together are asked for at once.
        let mut runs: Vec<Reads<'_>> = Vec::new();
        let mut bytes = u64::MAX;
        for read in reads {
            let own: u64 = read.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
            match runs.last_mut() {
                Some(run) if bytes.saturating_add(own) <= READ_BYTES_MAX => run.push(read),
                _ => {
                    bytes = 0;
                    runs.push(vec![read]);
                }
            }
            bytes += own;
        }
        runs
    }

    /// Reads frames and takes what is wanted. Returns whether the packs were there.
    fn read_run(
        &self,
        reads: Vec<&[PlacedFrame]>,
        wanted: &mut HashSet<ChunkHash>,
        found: &mut HashMap<ChunkHash, Chunk>,
    ) -> Result<bool, Error> {
        let parts: Vec<FilePart> = {
            let state = self.state();
            let part = |read: &&[PlacedFrame]| {
                let ((pack, first), _) = read[0];
                let ((_, last), bytes) = read[read.len() - 1];
                let range = u64::from(first)..u64::from(last) + u64::from(bytes);
                FilePart { name: state.names[pack as usize].clone(), range }
            };
            reads.iter().map(part).collect()
        };
        let Some(bytes) = self.read_parts(&parts)? else { return Ok(false) };
        for ((read, part), bytes) in reads.iter().zip(&parts).zip(bytes) {
            for (key, frame_bytes) in *read {
                let start = u64::from(key.1) - part.range.start;
                let start = usize::try_from(start).unwrap_or(usize::MAX);
                let end = start.saturating_add(*frame_bytes as usize);
                let place = format!("{}, frame at {}", part.name, key.1);
                let bytes = bytes.as_ref().ok().and_then(|bytes| bytes.get(start..end));
                let frame = bytes.and_then(|frame| frame::decode(&place, frame).ok());
                let chunks = match frame {
                    Some(chunks) if self.state().are_all_of(*key, &chunks, wanted) => chunks,
                    _ => match self.reread_frame(*key, *frame_bytes, &place)? {
                        Some(chunks) => chunks,
                        None => return Ok(false),
                    },
                };
                take(&chunks, wanted, found);
                self.state().recent.add(*key, chunks);
            }
        }
        Ok(true)
    }

    /// Reads parts; of what is damaged the others are read yet.
    fn read_parts(&self, parts: &[FilePart]) -> Result<Option<Vec<Result<Bytes, Error>>>, Error> {
        let read = match self.place.read_many(parts) {
            Err(error) if error.kind == ErrorKind::Damaged => None,
            read => match read? {
                Some(read) => Some(read),
                None => return Ok(None),
            },
        };
        if let Some(read) = read {
            return Ok(Some(read.into_iter().map(Ok).collect()));
        }
        let mut each = Vec::with_capacity(parts.len());
        for part in parts {
            match self.place.read_many(std::slice::from_ref(part)) {
                Err(error) if error.kind == ErrorKind::Damaged => each.push(Err(error)),
                read => match read?.and_then(|mut read| read.pop()) {
                    Some(bytes) => each.push(Ok(bytes)),
                    None => return Ok(None),
                },
            }
        }
        Ok(Some(each))
    }

    /// Reads a frame once more, alone: it wasn't what it should be. A chunk that isn't there this
    /// time, too, is damage. `None` if the pack is gone.
    fn reread_frame(
        &self,
        key: (u32, u32),
        bytes: u32,
        place: &str,
    ) -> Result<Option<Vec<Chunk>>, Error> {
        let name = self.state().names[key.0 as usize].clone();
        let range = u64::from(key.1)..u64::from(key.1) + u64::from(bytes);
        let Some(read) = self.read_parts(&[FilePart { name, range }])? else { return Ok(None) };
        let read = read.into_iter().next().unwrap_or_else(|| Ok(Bytes::new()));
        let decoded = read.and_then(|frame| frame::decode(place, &frame));
        let (chunks, what) = match decoded {
            Ok(chunks) => (chunks, format!("remote: {place}: a chunk isn't what its name says")),
            Err(error) if error.kind == ErrorKind::Damaged => (Vec::new(), error.message),
            Err(error) => return Err(error),
        };
        self.state().forget_frame(key, &chunks, what);
        Ok(Some(chunks))
    }

    /// Adds chunks that are not there yet.
    ///
    /// # Errors
    /// As [`Packs::flush`], where a pack has become full.
    pub fn put_many(&self, chunks: &[Chunk]) -> Result<(), Error> {
        let mut absent: Vec<Chunk> = {
            let state = self.state();
            chunks.iter().filter(|chunk| !state.has(&chunk.hash())).cloned().collect()
        };
        let mut seen = HashSet::new();
        absent.retain(|chunk| seen.insert(chunk.hash()));
        self.put_again(absent)
    }

    /// Adds chunks, also if they are there.
    ///
    /// # Errors
    /// As [`Packs::flush`], where a pack has become full.
    pub fn put_again(&self, chunks: Vec<Chunk>) -> Result<(), Error> {
        let full = if bytes_of(&chunks) < FRAME_BYTES_TARGET {
            // Few: they share a frame with what comes next.
            let mut state = self.state();
            for chunk in chunks {
                state.pending.chunks.insert(chunk.hash());
                if state.pending.builder.push(chunk) {
                    state.pending.end_frame();
                }
            }
            state.take_full()
        } else {
            let (frames, places) = frame::encode_frames(&chunks, EFFORT);
            let mut state = self.state();
            state.pending.end_frame();
            state.pending.chunks.extend(chunks.iter().map(Chunk::hash));
            state.pending.append(&frames, &places);
            state.take_full()
        };
        full.map_or(Ok(()), |pending| self.write(pending))
    }

    /// Makes all that was put durable.
    ///
    /// # Errors
    /// As the place: the pack can't be put there. Its chunks count as absent then.
    pub fn flush(&self) -> Result<(), Error> {
        let pending = {
            let mut state = self.state();
            state.pending.end_frame();
            state.take_pending()
        };
        if pending.places.is_empty() { Ok(()) } else { self.write(pending) }
    }

    fn write(&self, pending: Pending) -> Result<(), Error> {
        let Pending { mut pack, mut places, chunks, .. } = pending;
        format::end_pack(&mut pack, &mut places);
        let mark = format::mark_of(&pack);
        // A name that was never used: one that a collection has doomed isn't come back to.
        let mut own = CommitId([0; 20]);
        self.chance.fill(&mut own.0);
        let name = format!("{PACK_PREFIX}{own}");
        let written = self.place.create(&name, pack.into());
        let mut state = self.state();
        state.in_writing.retain(|hash| !chunks.contains(hash));
        written?;
        state.add_pack(name, places, mark);
        Ok(())
    }

    /// The names of the packs, and of each how many chunks it has and which of them are found in
    /// it.
    pub fn contents(&self) -> BTreeMap<String, Vec<ChunkHash>> {
        let state = self.state();
        let mut contents: BTreeMap<String, Vec<ChunkHash>> =
            state.opened.iter().map(|name| (name.clone(), Vec::new())).collect();
        for (hash, at) in &state.chunks {
            if let Some(hashes) = contents.get_mut(&state.names[at.pack as usize]) {
                hashes.push(*hash);
            }
        }
        contents
    }
}

fn take(chunks: &[Chunk], wanted: &mut HashSet<ChunkHash>, found: &mut HashMap<ChunkHash, Chunk>) {
    for chunk in chunks {
        if wanted.remove(&chunk.hash()) {
            found.insert(chunk.hash(), chunk.clone());
        }
    }
}
