//! A map from names to places that takes little more memory than its entries.
//!
//! Where each of a store's chunks lies is the one thing that grows with the data, so a table that is
//! half empty after it has grown, and is there twice while it grows, counts: a thousand chunks of 16 KB
//! for each 48 KB here. Names are divided among shards by their first byte; a shard is a vector with open
//! addressing (linear probing) that grows by a quarter, when four fifths of it are taken. So the
//! table takes 60 to 75 bytes an entry, and growing takes memory for one shard.
//!
//! Names are cryptographic hashes: whoever could choose them could choose their chunks too.

use super::{FramePlace, Location, Slot};
use crate::chunk::{ChunkHash, HASH_BYTES};
use crate::pack::PackNumber;

const SHARD_COUNT: usize = 256;
const SLOTS_MIN: usize = 8;
/// A shard grows when more than so many fifths of its slots would be taken.
const FIFTHS_MAX: usize = 4;

/// See the module.
#[derive(Default)]
pub(crate) struct ChunkTable {
    shards: Vec<Shard>,
}

#[derive(Clone, Default)]
struct Shard {
    /// Each entry lies at its home, or behind it with no free slot between.
    slots: Vec<(ChunkHash, Location)>,
    count: usize,
}

/// A free slot: no frame has no bytes.
const FREE: (ChunkHash, Location) = (
    ChunkHash([0; HASH_BYTES]),
    Location { pack: PackNumber(0), place: FramePlace { offset: 0, bytes: 0 }, slot: Slot(0) },
);

fn is_free(slot: &(ChunkHash, Location)) -> bool {
    slot.1.place.bytes == 0
}

impl ChunkTable {
    /// Where the chunk lies.
    pub(crate) fn get(&self, hash: &ChunkHash) -> Option<&Location> {
        let shard = self.shards.get(usize::from(hash.0[0]))?;
        shard.find(hash).ok().map(|at| &shard.slots[at].1)
    }

    pub(crate) fn contains_key(&self, hash: &ChunkHash) -> bool {
        self.get(hash).is_some()
    }

    /// Notes a place; one that was noted before is forgotten.
    pub(crate) fn insert(&mut self, hash: ChunkHash, location: Location) {
        assert!(location.place.bytes > 0, "a frame has a header");
        if self.shards.is_empty() {
            self.shards = vec![Shard::default(); SHARD_COUNT];
        }
        self.shards[usize::from(hash.0[0])].insert(hash, location);
    }

    /// As `insert`, for many.
    pub(crate) fn extend(&mut self, entries: impl IntoIterator<Item = (ChunkHash, Location)>) {
        entries.into_iter().for_each(|(hash, location)| self.insert(hash, location));
    }

    /// Forgets a chunk.
    pub(crate) fn remove(&mut self, hash: &ChunkHash) {
        if let Some(shard) = self.shards.get_mut(usize::from(hash.0[0])) {
            shard.remove(hash);
        }
    }

    /// All entries, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(ChunkHash, Location)> {
        self.shards.iter().flat_map(|shard| &shard.slots).filter(|slot| !is_free(slot))
    }
}

impl Shard {
    /// Where the entry of `hash` lies, or the free slot where it would; none if there are no slots.
    fn find(&self, hash: &ChunkHash) -> Result<usize, Option<usize>> {
        if self.slots.is_empty() {
            return Err(None);
        }
        let mut at = home(hash, self.slots.len());
        // Ends: a fifth of the slots is free.
        loop {
            let slot = &self.slots[at];
            if is_free(slot) {
                return Err(Some(at));
            }
            if slot.0 == *hash {
                return Ok(at);
            }
            at = self.next(at);
        }
    }

    fn next(&self, at: usize) -> usize {
        if at + 1 < self.slots.len() { at + 1 } else { 0 }
    }

    fn insert(&mut self, hash: ChunkHash, location: Location) {
        if let Ok(at) = self.find(&hash) {
            self.slots[at].1 = location;
            return;
        }
        if self.slots.len() * FIFTHS_MAX < (self.count + 1) * 5 {
            let slots = (self.slots.len() + self.slots.len() / 4).max(SLOTS_MIN);
            let old = std::mem::replace(&mut self.slots, vec![FREE; slots]);
            for entry in old.into_iter().filter(|entry| !is_free(entry)) {
                self.place(entry);
            }
        }
        self.place((hash, location));
        self.count += 1;
    }

    fn place(&mut self, entry: (ChunkHash, Location)) {
        if let Err(Some(at)) = self.find(&entry.0) {
            self.slots[at] = entry;
        }
    }

    fn remove(&mut self, hash: &ChunkHash) {
        let Ok(mut hole) = self.find(hash) else { return };
        self.count -= 1;
        let mut at = hole;
        // Entries behind the hole move up to it unless that would take them before their homes.
        loop {
            at = self.next(at);
            if is_free(&self.slots[at]) {
                break;
            }
            let home = home(&self.slots[at].0, self.slots.len());
            let stays =
                if hole <= at { hole < home && home <= at } else { hole < home || home <= at };
            if !stays {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
        }
        self.slots[hole] = FREE;
    }
}

/// The slot where a search for `hash` begins.
fn home(hash: &ChunkHash, slots: usize) -> usize {
    // Not the byte that chose the shard.
    let [_, a, b, c, d, ..] = hash.0;
    let number = u64::from(u32::from_le_bytes([a, b, c, d]));
    // Less than `slots`, since the number is below 2^32.
    ((number * slots as u64) >> u32::BITS) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Names of which many share a shard and a home.
    fn hash(number: u32) -> ChunkHash {
        let mut name = [0; HASH_BYTES];
        name[0] = (number % 3) as u8;
        name[4] = [0, 0x55, 0xfe, 0xff][number as usize % 4];
        name[8..12].copy_from_slice(&number.to_le_bytes());
        ChunkHash(name)
    }

    #[test]
    fn a_table_holds_what_a_map_holds() {
        let mut table = ChunkTable::default();
        let mut model: HashMap<ChunkHash, Location> = HashMap::new();
        let mut random = 1u64;
        for round in 1..20_000u32 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let hash = hash((random >> 33) as u32 % 400);
            assert_eq!(table.get(&hash), model.get(&hash));
            if random >> 62 < 2 {
                let place = FramePlace { offset: round, bytes: 1 + round };
                let at = Location { pack: PackNumber(round), place, slot: Slot::new(round, true) };
                table.insert(hash, at);
                model.insert(hash, at);
            } else {
                table.remove(&hash);
                model.remove(&hash);
            }
        }
        let mut all: Vec<_> = table.iter().copied().collect();
        let mut expected: Vec<_> = model.into_iter().collect();
        all.sort_unstable();
        expected.sort_unstable();
        assert_eq!(all, expected);
        assert!(expected.len() > 100);
    }

    #[test]
    fn a_table_takes_little_more_than_its_entries() {
        let mut table = ChunkTable::default();
        let place = FramePlace { offset: 16, bytes: 100 };
        for number in 0..100_000u32 {
            let mut name = [0; HASH_BYTES];
            name[..4].copy_from_slice(&number.wrapping_mul(0x9e37_79b9).to_le_bytes());
            name[4] = (number >> 7) as u8;
            name[8..12].copy_from_slice(&number.to_le_bytes());
            let at = Location { pack: PackNumber(1), place, slot: Slot::new(number, false) };
            table.insert(ChunkHash(name), at);
        }
        assert_eq!(table.iter().count(), 100_000);
        let slots: usize = table.shards.iter().map(|shard| shard.slots.len()).sum();
        assert!(slots < 100_000 * 16 / 10, "{slots} slots");
    }
}
