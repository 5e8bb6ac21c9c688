//! Where each chunk lies, in memory: 44 bytes a chunk.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use crate::chunk::{ChunkHash, HASH_BYTES};
use crate::pack::{Pack, PackNumber};

/// Where a chunk's frame lies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Location {
    pub(crate) pack: PackNumber,
    pub(crate) place: FramePlace,
}

/// Where a frame lies inside its pack. Packs end below 4 GiB, so 32 bits do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
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
    pub(crate) fn insert_all(
        &mut self,
        pack: PackNumber,
        entries: impl IntoIterator<Item = (ChunkHash, FramePlace)>,
    ) {
        for (hash, place) in entries {
            self.chunks.entry(hash).or_insert(Location { pack, place });
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
