//! The index of all chunks: by name in memory for open packs, on disk for sealed ones.
//!
//! 1. Chunks of open packs are few ([`crate::pack::writer::PACK_CHUNKS_MAX`]), and known by name.
//! 2. Of a chunk in a sealed pack there are 8 bytes ([`Keys`]), in memory or in a file: they show
//!    which packs may hold it. Whether one does, and where, is found in a page of the pack's index
//!    ([`crate::pack::table`]). A thread that holds the index's lock reads no page; so a search is
//!    made without it, and confirmed under it ([`Index::is_at`]) where that matters. What keys it
//!    needs of the file is read before the lock is taken ([`KeysRead`]).
//!
//! *Invariants*
//! 1. A chunk lies in one place that is in force, however many packs hold its bytes.
//! 2. A place that is not in force isn't found: a removed chunk's pair is gone from the keys, or
//!    where another chunk of the pack has an equal pair, its name is in `gone`.
//! 3. A frame that was found damaged is *set aside*: nothing in force lies in it. So its chunks are
//!    absent to a writer that puts them, and [`Index::damage`] shows a reader why they are.

mod keys;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub(crate) use self::keys::{Keys, KeysBuilder, KeysRead, Pair};
use crate::chunk::ChunkHash;
use crate::damage::{FrameDamage, Hole, HoleOrigin};
use crate::hash::NameHasherBuilder;
use crate::location::{FrameOffset, Location, PackNumber, PackedChunk};
use crate::manifest::{SetAside, SetAsideReason};
use crate::pack::Pack;

/// The answer of the index without reading the disk.
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
    /// Chunks that lie in frames that were set aside, and nowhere else.
    lost: HashMap<ChunkHash, FrameDamage, NameHasherBuilder>,
    /// The places that were set aside, by where they begin, whether or not their chunks were put
    /// again since.
    aside: BTreeMap<(PackNumber, u32), SetAside>,
    /// Places for which it isn't known what lay there.
    holes: Vec<Hole>,
}

impl Index {
    /// One of packs that aren't added yet, whose chunks have these keys.
    pub(crate) fn of_keys(sealed: Keys) -> Index {
        Index { sealed, ..Index::default() }
    }

    /// The keys of sealed packs.
    pub(crate) fn keys(&self) -> &Keys {
        &self.sealed
    }

    /// The same, to be changed.
    pub(crate) fn keys_mut(&mut self) -> &mut Keys {
        &mut self.sealed
    }

    pub(crate) fn packs(&self) -> &BTreeMap<PackNumber, Arc<Pack>> {
        &self.packs
    }

    pub(crate) fn add_pack(&mut self, pack: Arc<Pack>) {
        self.packs.insert(pack.number, pack);
    }

    /// Forgets packs in which nothing is in force.
    pub(crate) fn drop_packs(&mut self, goes: impl Fn(PackNumber) -> bool) {
        self.packs.retain(|number, _| !goes(*number));
        self.gone.retain(|(number, _)| !goes(*number));
        self.lost.retain(|_, damage| !goes(damage.at.pack));
        self.aside.retain(|(number, _), _| !goes(*number));
        self.holes.retain(|hole| {
            PackNumber::from_file_name(&hole.damage.file).is_none_or(|number| !goes(number))
        });
    }

    /// Sets aside the frame in which `damage` was found, as far as `hash` goes: if that lies there,
    /// it is lost until it is put again. Returns whether it lay there.
    pub(crate) fn set_aside(
        &mut self,
        hash: ChunkHash,
        damage: FrameDamage,
        read: &KeysRead,
    ) -> bool {
        if !self.is_at(hash, &damage.at, read) {
            return false;
        }
        match damage.at.position {
            Some(_) => self.remove_sealed(hash, damage.at.pack, read),
            None => drop(self.open.remove(&hash)),
        }
        self.note_lost(hash, damage);
        true
    }

    /// Notes that `hash`, which isn't in force anywhere, lies in a damaged frame.
    pub(crate) fn note_lost(&mut self, hash: ChunkHash, damage: FrameDamage) {
        self.note_aside(damage.at.pack, damage.at.place, SetAsideReason::Damaged);
        self.lost.insert(hash, damage);
    }

    /// Notes that `place` was set aside.
    pub(crate) fn note_aside(&mut self, pack: PackNumber, place: FrameOffset, why: SetAsideReason) {
        let end = u32::try_from(place.end()).unwrap_or(u32::MAX);
        let aside = self.aside.entry((pack, place.offset)).or_insert(SetAside { end, why });
        // The length in a damaged frame may be wrong.
        *aside = SetAside { end: aside.end.max(end), why };
    }

    /// Returns the damage that lost `hash`, if it was lost and not put again.
    pub(crate) fn damage(&self, hash: ChunkHash) -> Option<&FrameDamage> {
        self.lost.get(&hash)
    }

    /// All chunks that are lost.
    pub(crate) fn lost(&self) -> impl Iterator<Item = (&ChunkHash, &FrameDamage)> {
        self.lost.iter()
    }

    /// Notes a place for which it isn't known what lay there.
    pub(crate) fn note_hole(&mut self, hole: Hole) {
        self.holes.push(hole);
    }

    /// Places for which it isn't known what lay there.
    pub(crate) fn holes(&self) -> &[Hole] {
        &self.holes
    }

    /// Notes that damage made the hole at `offset` of `pack`.
    pub(crate) fn settle_hole(&mut self, pack: PackNumber, offset: u32, origin: HoleOrigin) {
        if let Some(aside) = self.aside.get_mut(&(pack, offset)) {
            aside.why = SetAsideReason::Damaged;
        }
        let (file, offset) = (pack.to_string(), u64::from(offset));
        let is_it = |hole: &&mut Hole| hole.damage.file == file && hole.damage.offset == offset;
        self.holes.iter_mut().filter(is_it).for_each(|hole| hole.origin = origin);
    }

    /// Returns where the places begin that were set aside.
    pub(crate) fn aside(&self) -> &BTreeMap<(PackNumber, u32), SetAside> {
        &self.aside
    }

    /// Returns where `hash` is or may be.
    pub(crate) fn look(&self, hash: ChunkHash, read: &KeysRead) -> Known {
        if let Some(at) = self.open.get(&hash) {
            return Known::Here(Arc::clone(&self.packs[&at.pack]), *at);
        }
        let is_there =
            |pack: &PackNumber| self.gone.is_empty() || !self.gone.contains(&(*pack, hash));
        let packs = self.sealed.packs(hash, read).into_iter().filter(is_there);
        Known::Perhaps(packs.map(|pack| Arc::clone(&self.packs[&pack])).collect())
    }

    /// Returns where `hash` lies, if that is in an open pack.
    pub(crate) fn open_place(&self, hash: ChunkHash) -> Option<&Location> {
        self.open.get(&hash)
    }

    /// All chunks of open packs.
    pub(crate) fn open_chunks(&self) -> impl Iterator<Item = (&ChunkHash, &Location)> {
        self.open.iter()
    }

    /// Whether `hash`, which the sealed pack `pack` holds, is in force there.
    pub(crate) fn lies_in(&self, hash: ChunkHash, pack: PackNumber, read: &KeysRead) -> bool {
        !self.open.contains_key(&hash)
            && self.sealed.contains(hash, pack, read)
            && !self.gone.contains(&(pack, hash))
    }

    /// Whether `hash` still lies where a search found it.
    pub(crate) fn is_at(&self, hash: ChunkHash, at: &Location, read: &KeysRead) -> bool {
        match at.position {
            Some(_) => self.lies_in(hash, at.pack, read),
            None => self.open.get(&hash) == Some(at),
        }
    }

    /// The chunks that may have a copy in a sealed pack that isn't in force.
    pub(crate) fn not_in_force(&self) -> Vec<ChunkHash> {
        self.gone.iter().map(|(_, hash)| *hash).collect()
    }

    /// Adds a chunk of an open pack, which is in force from now on.
    pub(crate) fn insert_open(&mut self, hash: ChunkHash, at: Location) {
        self.open.insert(hash, at);
        self.lost.remove(&hash);
    }

    /// Adds a chunk of a sealed pack; `in_force` says whether this is its place.
    pub(crate) fn insert_sealed(&mut self, hash: ChunkHash, pack: PackNumber, in_force: bool) {
        if in_force {
            self.sealed.insert(hash, pack);
            // The pack's first copy may have been damaged.
            self.gone.remove(&(pack, hash));
            self.lost.remove(&hash);
        } else {
            self.gone.insert((pack, hash));
        }
    }

    /// Moves chunks of a pack that was sealed, which ascend by name, to the keys: those that lie
    /// there.
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
    pub(crate) fn remove_sealed(&mut self, hash: ChunkHash, pack: PackNumber, read: &KeysRead) {
        self.sealed.remove(hash, pack, read);
        if self.sealed.contains(hash, pack, read) {
            self.gone.insert((pack, hash));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::HASH_BYTES;

    fn hash(last: u8) -> ChunkHash {
        let mut hash = ChunkHash([9; HASH_BYTES]);
        hash.0[HASH_BYTES - 1] = last;
        hash
    }

    /// Names that begin alike have equal pairs: what is gone isn't found through one that is left.
    #[test]
    fn a_removed_chunk_is_gone_where_another_name_begins_alike() {
        let (one, two) = (PackNumber(1), PackNumber(2));
        let (mut index, none) = (Index::default(), KeysRead::default());
        for byte in [1, 2, 3] {
            index.insert_sealed(hash(byte), one, true);
        }
        index.insert_sealed(hash(2), two, false);
        index.insert_sealed(hash(4), two, true);
        assert!(index.lies_in(hash(2), one, &none) && !index.lies_in(hash(2), two, &none));
        index.remove_sealed(hash(1), one, &none);
        assert!(!index.lies_in(hash(1), one, &none) && index.lies_in(hash(2), one, &none));
        let place = FrameOffset { offset: 16, bytes: 10 };
        let again = Location { pack: two, place, refers: false, position: None };
        index.insert_open(hash(1), again);
        assert!(index.is_at(hash(1), &again, &none) && !index.lies_in(hash(1), two, &none));
        index.seal(two, &[PackedChunk { hash: hash(1), place, refers: false }]);
        let sealed = Location { position: Some(0), ..again };
        assert!(index.is_at(hash(1), &sealed, &none) && !index.is_at(hash(1), &again, &none));
        index.remove_sealed(hash(2), one, &none);
        index.remove_sealed(hash(3), one, &none);
        assert!([1, 2, 3].into_iter().all(|byte| !index.lies_in(hash(byte), one, &none)));
        index.drop_packs(|pack| pack == one);
        assert!(index.gone.iter().all(|(pack, _)| *pack == two));
    }

    #[test]
    fn the_index_forgets_a_removed_pack() {
        let (one, two) = (PackNumber(1), PackNumber(2));
        let mut index = Index::default();
        let place = FrameOffset { offset: 16, bytes: 10 };
        for pack in [one, two] {
            let at = Location { pack, place, refers: false, position: None };
            index.note_lost(hash(pack.0 as u8), FrameDamage { at, what: String::new() });
        }
        index.drop_packs(|pack| pack == one);
        assert_eq!(index.aside().keys().collect::<Vec<_>>(), [&(two, 16)]);
        assert_eq!(index.lost().map(|(hash, _)| *hash).collect::<Vec<_>>(), [hash(2)]);
    }

    #[test]
    fn chunks_that_moved_meanwhile_are_not_set_aside() {
        let place = |offset| FrameOffset { offset, bytes: 10 };
        let at = |offset| {
            let (pack, place) = (PackNumber(1), place(offset));
            Location { pack, place, refers: false, position: None }
        };
        let damage = |offset| FrameDamage { at: at(offset), what: String::new() };
        let (mut index, none) = (Index::default(), KeysRead::default());
        index.insert_open(hash(1), at(90));
        assert!(
            !index.set_aside(hash(1), damage(16), &none) && index.is_at(hash(1), &at(90), &none)
        );
        assert!(index.aside().is_empty() && index.damage(hash(1)).is_none());
        assert!(
            index.set_aside(hash(1), damage(90), &none) && !index.is_at(hash(1), &at(90), &none)
        );
    }

    /// The first copy that a pack holds was damaged, the second is in force.
    #[test]
    fn a_copy_of_which_a_pack_held_another_is_found() {
        let one = PackNumber(1);
        let (mut index, none) = (Index::default(), KeysRead::default());
        index.insert_sealed(hash(1), one, false);
        assert!(!index.lies_in(hash(1), one, &none));
        index.insert_sealed(hash(1), one, true);
        assert!(index.lies_in(hash(1), one, &none));
    }
}
