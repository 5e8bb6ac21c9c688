//! Where each chunk lies: by name in memory for the chunks of open packs, on disk for those of sealed ones.
//!
//! 1. Chunks of open packs are few ([`crate::pack::writer::PACK_CHUNKS_MAX`]), and known by name.
//! 2. Of a chunk in a sealed pack, 8 bytes are in memory ([`Keys`]): they tell which packs may hold it.
//!    Whether one does, and where, tells a page of the pack's index ([`crate::pack::table`]). Who holds the
//!    index's lock reads no page; so a search is made without it, and confirmed under it ([`Index::is_at`])
//!    where that matters.
//!
//! *Invariants*
//! 1. A chunk lies in one place that is in force, however many packs hold its bytes.
//! 2. What is not in force isn't found: a removed chunk's pair is gone from the keys, or where
//!    another chunk of the pack has an equal pair, its name is in `gone`.

mod keys;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use self::keys::Keys;
use crate::chunk::{ChunkHash, HASH_BYTES};
use crate::pack::{Pack, PackNumber};

/// Where a chunk lies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Location {
    pub(crate) pack: PackNumber,
    pub(crate) place: FramePlace,
    /// Whether the chunk refers to others: if not, nobody who follows references needs to read it.
    pub(crate) refers: bool,
    /// Its position in the index of its pack, if that is sealed.
    pub(crate) position: Option<u32>,
}

/// What a pack tells of one of its chunks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PackedChunk {
    pub(crate) hash: ChunkHash,
    pub(crate) place: FramePlace,
    pub(crate) refers: bool,
}

impl PackedChunk {
    /// As a place in `pack`.
    pub(crate) fn location(&self, pack: PackNumber, position: Option<u32>) -> Location {
        Location { pack, place: self.place, refers: self.refers, position }
    }
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

/// What the index knows of a chunk without reading.
pub(crate) enum Known {
    /// It lies in an open pack.
    Here(Arc<Pack>, Location),
    /// If it is anywhere, then in one of these sealed packs.
    Perhaps(Vec<Arc<Pack>>),
}

/// All packs, and all chunks in them.
#[derive(Default)]
pub(crate) struct Index {
    packs: BTreeMap<PackNumber, Arc<Pack>>,
    open: HashMap<ChunkHash, Location, NameHasherBuilder>,
    sealed: Keys,
    gone: BTreeSet<(PackNumber, ChunkHash)>,
}

impl Index {
    pub(crate) fn packs(&self) -> &BTreeMap<PackNumber, Arc<Pack>> {
        &self.packs
    }

    pub(crate) fn add_pack(&mut self, pack: Arc<Pack>) {
        self.packs.insert(pack.number, pack);
    }

    /// Forgets packs of which nothing is in force.
    pub(crate) fn drop_packs(&mut self, goes: impl Fn(PackNumber) -> bool) {
        self.packs.retain(|number, _| !goes(*number));
        self.gone.retain(|(number, _)| !goes(*number));
    }

    /// Where `hash` is or may be.
    pub(crate) fn look(&self, hash: ChunkHash) -> Known {
        if let Some(at) = self.open.get(&hash) {
            return Known::Here(Arc::clone(&self.packs[&at.pack]), *at);
        }
        let is_there =
            |pack: &PackNumber| self.gone.is_empty() || !self.gone.contains(&(*pack, hash));
        let packs = self.sealed.packs(hash).filter(is_there);
        Known::Perhaps(packs.map(|pack| Arc::clone(&self.packs[&pack])).collect())
    }

    /// Where `hash` lies, if that is in an open pack.
    pub(crate) fn open_place(&self, hash: ChunkHash) -> Option<&Location> {
        self.open.get(&hash)
    }

    /// All chunks of open packs.
    pub(crate) fn open_chunks(&self) -> impl Iterator<Item = (&ChunkHash, &Location)> {
        self.open.iter()
    }

    /// Whether `hash`, which the sealed pack `pack` holds, is in force there.
    pub(crate) fn lies_in(&self, hash: ChunkHash, pack: PackNumber) -> bool {
        !self.open.contains_key(&hash)
            && self.sealed.contains(hash, pack)
            && !self.gone.contains(&(pack, hash))
    }

    /// Whether `hash` still lies where a search found it.
    pub(crate) fn is_at(&self, hash: ChunkHash, at: &Location) -> bool {
        match at.position {
            Some(_) => self.lies_in(hash, at.pack),
            None => self.open.get(&hash) == Some(at),
        }
    }

    /// Adds a chunk of an open pack, which is in force from now on.
    pub(crate) fn insert_open(&mut self, hash: ChunkHash, at: Location) {
        self.open.insert(hash, at);
    }

    /// Adds a chunk of a sealed pack; `in_force` tells whether this is its place.
    pub(crate) fn insert_sealed(&mut self, hash: ChunkHash, pack: PackNumber, in_force: bool) {
        if in_force {
            self.sealed.insert(hash, pack);
        } else {
            self.gone.insert((pack, hash));
        }
    }

    /// Moves chunks of a pack that was sealed, which ascend by name, to the keys: those that lie there.
    pub(crate) fn seal(&mut self, pack: PackNumber, chunks: &[PackedChunk]) {
        let mut last = None;
        for chunk in chunks {
            if last.replace(chunk.hash) == Some(chunk.hash) {
                continue;
            }
            let in_force = self.open.get(&chunk.hash).is_some_and(|at| at.pack == pack);
            if in_force {
                self.open.remove(&chunk.hash);
            }
            self.insert_sealed(chunk.hash, pack, in_force);
        }
    }

    /// Takes away a chunk that the sealed pack `pack` holds.
    pub(crate) fn remove_sealed(&mut self, hash: ChunkHash, pack: PackNumber) {
        self.sealed.remove(hash, pack);
        if self.sealed.contains(hash, pack) {
            self.gone.insert((pack, hash));
        }
    }
}

/// Takes a name's first eight bytes: it is a cryptographic hash already.
#[derive(Clone, Copy, Default)]
pub struct NameHasherBuilder;

impl BuildHasher for NameHasherBuilder {
    type Hasher = NameHasher;

    fn build_hasher(&self) -> NameHasher {
        NameHasher(0)
    }
}

/// See [`NameHasherBuilder`].
#[derive(Clone, Copy)]
pub struct NameHasher(u64);

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        // Arrays announce their length first: that is not part of the name.
        if bytes.len() == HASH_BYTES {
            self.0 = bytes.first_chunk().copied().map_or(0, u64::from_le_bytes);
        }
    }

    /// What tells parts of what has the name from each other; itself a hash.
    fn write_u64(&mut self, number: u64) {
        self.0 ^= number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(last: u8) -> ChunkHash {
        let mut hash = ChunkHash([9; HASH_BYTES]);
        hash.0[HASH_BYTES - 1] = last;
        hash
    }

    /// Names that begin alike have equal pairs: what is gone isn't found through one that is left.
    #[test]
    fn a_removed_chunk_is_gone_where_another_name_begins_alike() {
        let (one, two) = (PackNumber(1), PackNumber(2));
        let mut index = Index::default();
        for byte in [1, 2, 3] {
            index.insert_sealed(hash(byte), one, true);
        }
        index.insert_sealed(hash(2), two, false);
        index.insert_sealed(hash(4), two, true);
        assert!(index.lies_in(hash(2), one) && !index.lies_in(hash(2), two));
        index.remove_sealed(hash(1), one);
        assert!(!index.lies_in(hash(1), one) && index.lies_in(hash(2), one));
        let place = FramePlace { offset: 16, bytes: 10 };
        let again = Location { pack: two, place, refers: false, position: None };
        index.insert_open(hash(1), again);
        assert!(index.is_at(hash(1), &again) && !index.lies_in(hash(1), two));
        index.seal(two, &[PackedChunk { hash: hash(1), place, refers: false }]);
        let sealed = Location { position: Some(0), ..again };
        assert!(index.is_at(hash(1), &sealed) && !index.is_at(hash(1), &again));
        index.remove_sealed(hash(2), one);
        index.remove_sealed(hash(3), one);
        assert!([1, 2, 3].into_iter().all(|byte| !index.lies_in(hash(byte), one)));
        index.drop_packs(|pack| pack == one);
        assert!(index.gone.iter().all(|(pack, _)| *pack == two));
    }
}
