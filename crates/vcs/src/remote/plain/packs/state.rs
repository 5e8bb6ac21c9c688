//! The knowledge of a plain remote's packs: where chunks lie, which of them were found damaged, and
//! what is being written.

use std::collections::{HashMap, HashSet, VecDeque};

use frond_store::{Chunk, ChunkHash};

use super::{EFFORT, PACK_BYTES_TARGET};
use crate::remote::frame::FrameBuilder;
use crate::remote::plain::examine::StorageDamage;
use crate::remote::plain::format::{self, ChunkLocation, PackMark};

/// The greatest number of uncompressed bytes of chunks that were read and are kept.
const RECENT_BYTES_MAX: usize = 48 << 20;

/// The place of a chunk.
#[derive(Clone, Copy)]
pub(super) struct Location {
    /// A position in `names`.
    pub pack: u32,
    pub place: ChunkLocation,
}

#[derive(Default)]
pub(super) struct State {
    /// Names of packs, in the order in which they were found; one that is gone keeps its place.
    pub names: Vec<String>,
    pub opened: HashSet<String>,
    /// The marks of those that were opened and have an index.
    pub marks: HashMap<String, PackMark>,
    pub chunks: HashMap<ChunkHash, Location>,
    /// The other places of chunks that lie more than once.
    pub copies: HashMap<ChunkHash, Vec<Location>>,
    pub damages: Vec<StorageDamage>,
    pub pending: Pending,
    /// Chunks in packs that are being written.
    pub in_writing: HashSet<ChunkHash>,
    pub recent: Recent,
}

/// A pack that is being filled.
pub(super) struct Pending {
    pub builder: FrameBuilder,
    pub pack: Vec<u8>,
    pub places: Vec<(ChunkHash, ChunkLocation)>,
    pub chunks: HashSet<ChunkHash>,
}

impl Default for Pending {
    fn default() -> Pending {
        let (builder, pack) = (FrameBuilder::default(), format::begin_pack());
        Pending { builder, pack, places: Vec::new(), chunks: HashSet::new() }
    }
}

impl Pending {
    pub fn append(&mut self, frames: &[u8], places: &[(usize, usize, Vec<ChunkHash>)]) {
        let small = |number: usize| u32::try_from(number).expect("a pack is smaller than 4 GiB");
        let start = self.pack.len();
        self.pack.extend_from_slice(frames);
        for (offset, bytes, hashes) in places {
            let place = ChunkLocation { offset: small(start + offset), bytes: small(*bytes) };
            self.places.extend(hashes.iter().map(|hash| (*hash, place)));
        }
    }

    pub fn end_frame(&mut self) {
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
pub(super) struct Recent {
    pub frames: HashMap<(u32, u32), Vec<Chunk>>,
    order: VecDeque<(u32, u32)>,
    bytes: usize,
}

impl Recent {
    pub fn add(&mut self, key: (u32, u32), chunks: Vec<Chunk>) {
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

impl Recent {
    pub fn forget(&mut self, key: (u32, u32)) {
        self.bytes -= bytes_of(&self.frames.remove(&key).unwrap_or_default());
    }
}

pub(super) fn bytes_of(chunks: &[Chunk]) -> usize {
    chunks.iter().map(|chunk| chunk.encoded().len()).sum()
}

impl State {
    pub fn has(&self, hash: &ChunkHash) -> bool {
        self.chunks.contains_key(hash)
            || self.pending.chunks.contains(hash)
            || self.in_writing.contains(hash)
    }

    /// Adds a pack, with its mark if its index could be read.
    pub fn add_pack(
        &mut self,
        name: String,
        places: Vec<(ChunkHash, ChunkLocation)>,
        mark: Option<PackMark>,
    ) {
        if !self.opened.insert(name.clone()) {
            return;
        }
        self.marks.extend(mark.map(|mark| (name.clone(), mark)));
        let pack = u32::try_from(self.names.len()).expect("packs are far fewer");
        self.names.push(name);
        for (hash, place) in places {
            let at = Location { pack, place };
            if let Some(before) = self.chunks.insert(hash, at) {
                self.copies.entry(hash).or_default().push(before);
            }
        }
    }

    /// Notes damage, once.
    pub fn note(&mut self, damage: StorageDamage) {
        if !self.damages.contains(&damage) {
            self.damages.push(damage);
        }
    }

    /// Forgets packs that are gone.
    pub fn forget_except(&mut self, there: &HashSet<&String>) {
        let gone: HashSet<String> =
            self.opened.iter().filter(|name| !there.contains(name)).cloned().collect();
        if gone.is_empty() {
            return;
        }
        self.opened.retain(|name| !gone.contains(name));
        self.marks.retain(|name, _| !gone.contains(name));
        let is_gone: Vec<bool> = self.names.iter().map(|name| gone.contains(name)).collect();
        self.forget(&|at, _| is_gone[at.pack as usize]);
    }

    /// Forgets where chunks lie. One that lies elsewhere, too, is found there from now on.
    pub fn forget(&mut self, is_gone: &dyn Fn(&Location, &ChunkHash) -> bool) {
        self.copies.retain(|hash, copies| {
            copies.retain(|at| !is_gone(at, hash));
            !copies.is_empty()
        });
        let copies = &mut self.copies;
        self.chunks.retain(|hash, at| {
            if !is_gone(at, hash) {
                return true;
            }
            match copies.get_mut(hash).and_then(Vec::pop) {
                Some(copy) => *at = copy,
                None => return false,
            }
            true
        });
        self.copies.retain(|_, copies| !copies.is_empty());
    }

    /// Notes that a frame holds `chunks` only, and why the others aren't there.
    pub fn forget_frame(&mut self, key: (u32, u32), chunks: &[Chunk], what: String) {
        let whole: HashSet<ChunkHash> = chunks.iter().map(Chunk::hash).collect();
        let is_gone = |at: &Location, hash: &ChunkHash| {
            (at.pack, at.place.offset) == key && !whole.contains(hash)
        };
        let copies =
            self.copies.iter().flat_map(|(hash, all)| all.iter().map(move |at| (hash, at)));
        let lost: Vec<ChunkHash> = self
            .chunks
            .iter()
            .chain(copies)
            .filter(|(hash, at)| is_gone(at, hash))
            .map(|(hash, _)| *hash)
            .collect();
        if lost.is_empty() {
            return;
        }
        self.forget(&is_gone);
        self.recent.forget(key);
        let file = self.names[key.0 as usize].clone();
        self.note(StorageDamage { file, what, chunks: lost, may_hold_more: false });
    }

    /// Checks whether all of `wanted` that should lie in a frame are among its `chunks`.
    pub fn are_all_of(
        &self,
        key: (u32, u32),
        chunks: &[Chunk],
        wanted: &HashSet<ChunkHash>,
    ) -> bool {
        let names: HashSet<ChunkHash> = chunks.iter().map(Chunk::hash).collect();
        wanted.iter().all(|hash| {
            let at = self.chunks.get(hash);
            names.contains(hash) || at.is_none_or(|at| (at.pack, at.place.offset) != key)
        })
    }

    pub fn take_full(&mut self) -> Option<Pending> {
        (self.pending.pack.len() >= PACK_BYTES_TARGET).then(|| {
            self.pending.end_frame();
            self.take_pending()
        })
    }

    pub fn take_pending(&mut self) -> Pending {
        let pending = std::mem::take(&mut self.pending);
        self.in_writing.extend(&pending.chunks);
        pending
    }
}
