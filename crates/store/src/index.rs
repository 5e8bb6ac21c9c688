//! Where each chunk lies, in memory: 48 bytes a chunk.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use crate::chunk::{ChunkHash, HASH_BYTES};
use crate::pack::{Pack, PackNumber};

/// Where a chunk lies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Location {
    pub(crate) pack: PackNumber,
    pub(crate) place: FramePlace,
    pub(crate) slot: Slot,
}

/// A chunk's number among those of its pack, and whether it refers to other chunks. Numbers are given
/// anew whenever the store is opened: they are places in a collection's bitmaps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Slot(u32);

const SLOT_REFERS: u32 = 1 << 31;

impl Slot {
    pub(crate) fn new(ordinal: u32, refers: bool) -> Slot {
        assert!(ordinal < SLOT_REFERS);
        Slot(ordinal | if refers { SLOT_REFERS } else { 0 })
    }

    pub(crate) fn ordinal(self) -> u32 {
        self.0 & !SLOT_REFERS
    }

    /// Whether the chunk refers to others: if not, nobody who follows references needs to read it.
    pub(crate) fn refers(self) -> bool {
        self.0 & SLOT_REFERS != 0
    }
}

/// What a pack tells of one of its chunks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PackedChunk {
    pub(crate) hash: ChunkHash,
    pub(crate) place: FramePlace,
    pub(crate) refers: bool,
}

/// Where a frame lies inside its pack. Packs end below 4 GiB, so 32 bits do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct FramePlace {
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

impl FramePlace {
    /// Where the next frame begins.
    pub(crate) fn end(self) -> u64 {
        u64::from(self.offset) + u64::from(self.bytes)
    }
}

/// All packs, and all chunks in them.
#[derive(Default)]
pub(crate) struct Index {
    pub(crate) packs: BTreeMap<PackNumber, Arc<Pack>>,
    pub(crate) chunks: HashMap<ChunkHash, Location, NameHasherBuilder>,
}

impl Index {
    /// Adds the chunks of a pack. A chunk that is there already keeps its place: either is right.
    pub(crate) fn insert_all(&mut self, pack: PackNumber, entries: &[PackedChunk]) {
        for (ordinal, entry) in (0..).zip(entries) {
            let location =
                Location { pack, place: entry.place, slot: Slot::new(ordinal, entry.refers) };
            self.chunks.entry(entry.hash).or_insert(location);
        }
    }
}

/// Takes a name's first eight bytes: it is a cryptographic hash already.
#[derive(Clone, Copy, Default)]
pub(crate) struct NameHasherBuilder;

impl BuildHasher for NameHasherBuilder {
    type Hasher = NameHasher;

    fn build_hasher(&self) -> NameHasher {
        NameHasher(0)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct NameHasher(u64);

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        // Arrays announce their length first: that is not part of the name.
        if bytes.len() == HASH_BYTES {
            self.0 = bytes.first_chunk().copied().map_or(0, u64::from_le_bytes);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
