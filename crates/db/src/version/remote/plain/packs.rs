//! The chunks of a plain remote: which pack has which, and how they are read and written.
//!
//! - Chunks are put into frames, and frames into a pack in memory, which is written when it is large enough,
//!   while others go on. A pack is there as a whole or not at all, and nobody needs it before a ref
//!   is changed.
//! - Chunks are read by the frame. Those that lie side by side are asked for together, and what was read
//!   last is kept: a transfer asks for them in about the order in which another one wrote them.
//!
//! *Bounds*: an entry a chunk of the remote (about 60 bytes), a pack or two in memory, and
//! [`RECENT_BYTES_MAX`] of chunks that were read.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use frond_store::io::Chance;
use frond_store::{Chunk, ChunkHash, StoreError};

use super::format::{self, Place};
use super::place::{FilePart, PlainPlace};
use crate::error::Error;
use crate::version::CommitId;
use crate::version::remote::frame::{self, FRAME_BYTES_TARGET, FrameBuilder, FrameEffort};

/// What lies for long is worth some time.
pub(crate) const EFFORT: FrameEffort = FrameEffort::Thorough;
/// What the names of packs begin with.
pub(crate) const PACK_PREFIX: &str = "pack-";
/// A pack is written when its frames have grown to this.
const PACK_BYTES_TARGET: usize = 16 << 20;
/// So much of a pack's end is read first: the index of a few hundred chunks.
const TAIL_BYTES: u64 = 32 << 10;
/// Packs whose indexes are read together.
const INDEX_BATCH: usize = 64;
/// Frames of one pack are read at once if no more than this lies between them.
const GAP_BYTES_MAX: u64 = 64 << 10;
/// No more than this is read at once.
const READ_BYTES_MAX: u64 = 8 << 20;
/// Most uncompressed bytes of chunks that were read and are kept.
const RECENT_BYTES_MAX: usize = 48 << 20;

/// A frame in a pack: (number of the pack, offset), bytes.
type PlacedFrame = ((u32, u32), u32);
/// Frames that are asked for at once: each slice lies in one piece.
type Reads<'f> = Vec<&'f [PlacedFrame]>;

/// Where a chunk lies.
#[derive(Clone, Copy)]
struct Location {
    /// A position in `names`.
    pack: u32,
    place: Place,
}

/// The packs of a plain remote.
///
/// *Locks*: one, never held while the place is asked.
pub(crate) struct Packs {
    place: Arc<dyn PlainPlace>,
    chance: Arc<dyn Chance>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Names of packs, in the order in which they were found; one that is gone keeps its place.
    names: Vec<String>,
    opened: HashSet<String>,
    chunks: HashMap<ChunkHash, Location>,
    pending: Pending,
    /// Chunks in packs that are being written.
    in_writing: HashSet<ChunkHash>,
    recent: Recent,
}

/// A pack that is being filled.
struct Pending {
    builder: FrameBuilder,
    pack: Vec<u8>,
    places: Vec<(ChunkHash, Place)>,
    chunks: HashSet<ChunkHash>,
}

impl Default for Pending {
    fn default() -> Pending {
        let (builder, pack) = (FrameBuilder::default(), format::begin_pack());
        Pending { builder, pack, places: Vec::new(), chunks: HashSet::new() }
    }
}

impl Pending {
    fn append(&mut self, frames: &[u8], places: &[(usize, usize, Vec<ChunkHash>)]) {
        let small = |number: usize| u32::try_from(number).expect("a pack is smaller than 4 GiB");
        let start = self.pack.len();
        self.pack.extend_from_slice(frames);
        for (offset, bytes, hashes) in places {
            let place = Place { offset: small(start + offset), bytes: small(*bytes) };
            self.places.extend(hashes.iter().map(|hash| (*hash, place)));
        }
    }

    fn end_frame(&mut self) {
        if !self.builder.is_empty() {
            let mut frame = Vec::new();
            let hashes = self.builder.end(EFFORT, &mut frame);
            let bytes = frame.len();
            self.append(&frame, &[(0, bytes, hashes)]);
        }
    }
}

/// Frames that were read last.
#[derive(Default)]
struct Recent {
    frames: HashMap<(u32, u32), Vec<Chunk>>,
    order: VecDeque<(u32, u32)>,
    bytes: usize,
}

impl Recent {
    fn add(&mut self, key: (u32, u32), chunks: Vec<Chunk>) {
        self.bytes += bytes_of(&chunks);
        if let Some(before) = self.frames.insert(key, chunks) {
            self.bytes -= bytes_of(&before);
        } else {
            self.order.push_back(key);
        }
        while self.bytes > RECENT_BYTES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            let gone = self.frames.remove(&oldest).unwrap_or_default();
            self.bytes -= bytes_of(&gone);
        }
    }
}

fn bytes_of(chunks: &[Chunk]) -> usize {
    chunks.iter().map(|chunk| chunk.encoded().len()).sum()
}

impl Packs {
    pub fn new(place: Arc<dyn PlainPlace>, chance: Arc<dyn Chance>) -> Packs {
        Packs { place, chance, state: Mutex::new(State::default()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the lock is held")
    }

    /// Looks for packs that came since; those that are `doomed` count for nothing.
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
            let needed = format::index_bytes(name, *bytes, &tails[position])?;
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
            let places = format::read_index(name, *bytes, tail)?;
            self.state().add_pack(name.clone(), places);
        }
        Ok(())
    }

    fn open_each(&self, packs: &[(String, u64)]) -> Result<(), Error> {
        match packs {
            [] | [_] => Ok(()),
            _ => packs.iter().try_for_each(|pack| self.open_packs(std::slice::from_ref(pack))),
        }
    }

    /// Tells for each of `hashes` whether its chunk was put.
    pub fn has_many(&self, hashes: &[ChunkHash]) -> Vec<bool> {
        let state = self.state();
        hashes.iter().map(|hash| state.has(hash)).collect()
    }

    /// Returns the chunks of `hashes`, in their order; `None` if a pack is gone.
    pub fn get_many(&self, hashes: &[ChunkHash]) -> Result<Option<Vec<Chunk>>, Error> {
        if hashes.iter().any(|hash| self.state().pending.chunks.contains(hash)) {
            self.flush()?;
        }
        let mut wanted: HashSet<ChunkHash> = hashes.iter().copied().collect();
        let mut found: HashMap<ChunkHash, Chunk> = HashMap::new();
        // Frames by pack and offset, so that neighbours are read together.
        let mut frames: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        {
            let state = self.state();
            for hash in hashes {
                let at = state.chunks.get(hash).ok_or(StoreError::Missing(*hash))?;
                let key = (at.pack, at.place.offset);
                match state.recent.frames.get(&key) {
                    Some(chunks) => take(chunks, &mut wanted, &mut found),
                    None => drop(frames.insert(key, at.place.bytes)),
                }
            }
        }
        let frames: Vec<((u32, u32), u32)> = frames.into_iter().collect();
        for run in self.runs(&frames) {
            if !self.read_run(run, &mut wanted, &mut found)? {
                return Ok(None);
            }
        }
        let mut chunks = Vec::with_capacity(hashes.len());
        for hash in hashes {
            let chunk = found.get(hash).cloned();
            let wrong = || Error::damaged(format!("remote: chunk {hash} is not in its frame"));
            chunks.push(chunk.ok_or_else(wrong)?);
        }
        Ok(Some(chunks))
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
        let Some(bytes) = self.place.read_many(&parts)? else { return Ok(false) };
        for ((read, part), bytes) in reads.iter().zip(&parts).zip(bytes) {
            for (key, frame_bytes) in *read {
                let start = u64::from(key.1) - part.range.start;
                let start = usize::try_from(start).unwrap_or(usize::MAX);
                let end = start.saturating_add(*frame_bytes as usize);
                let cut = || Error::damaged(format!("remote: {}: is cut", part.name));
                let frame = bytes.get(start..end).ok_or_else(cut)?;
                let place = format!("{}, frame at {}", part.name, key.1);
                let chunks = frame::decode(&place, frame)?;
                take(&chunks, wanted, found);
                self.state().recent.add(*key, chunks);
            }
        }
        Ok(true)
    }

    /// Adds chunks that are not there yet.
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
        // A name that was never used: one that a collection has doomed isn't come back to.
        let mut own = CommitId([0; 20]);
        self.chance.fill(&mut own.0);
        let name = format!("{PACK_PREFIX}{own}");
        let written = self.place.create(&name, pack.into());
        let mut state = self.state();
        state.in_writing.retain(|hash| !chunks.contains(hash));
        written?;
        state.add_pack(name, places);
        Ok(())
    }

    /// The names of the packs, and of each how many chunks it has and which of them are found in it.
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

impl State {
    fn has(&self, hash: &ChunkHash) -> bool {
        self.chunks.contains_key(hash)
            || self.pending.chunks.contains(hash)
            || self.in_writing.contains(hash)
    }

    fn add_pack(&mut self, name: String, places: Vec<(ChunkHash, Place)>) {
        if !self.opened.insert(name.clone()) {
            return;
        }
        let pack = u32::try_from(self.names.len()).expect("packs are far fewer");
        self.names.push(name);
        let located = places.into_iter().map(|(hash, place)| (hash, Location { pack, place }));
        self.chunks.extend(located);
    }

    /// Forgets packs that are gone.
    fn forget_except(&mut self, there: &HashSet<&String>) {
        let gone: HashSet<String> =
            self.opened.iter().filter(|name| !there.contains(name)).cloned().collect();
        if gone.is_empty() {
            return;
        }
        self.opened.retain(|name| !gone.contains(name));
        let names = &self.names;
        self.chunks.retain(|_, at| !gone.contains(&names[at.pack as usize]));
    }

    fn take_full(&mut self) -> Option<Pending> {
        (self.pending.pack.len() >= PACK_BYTES_TARGET).then(|| {
            self.pending.end_frame();
            self.take_pending()
        })
    }

    fn take_pending(&mut self) -> Pending {
        let pending = std::mem::take(&mut self.pending);
        self.in_writing.extend(&pending.chunks);
        pending
    }
}
