//! The ghost list: chunks that were missed lately. A chunk that is wanted for the second time is
//! worth a place in a full cache.
//!
//! A chunk that is put into a full cache costs more than its place: memory that the processor's
//! cache doesn't have is written, and another chunk's is freed. Of chunks that are read for one
//! entry each, most go before anybody wants them again. So such a read only notes its chunk's name
//! here, and the chunk is kept when it is missed once more while the note is there. (The ghosts of
//! 2Q: Johnson and Shasha, VLDB 1994; ours are a table without order.)
//!
//! A name has one slot, and goes when another's takes it: half of them are gone after about as many
//! misses as there are slots, but some stay much longer, so that what is wanted more seldom than
//! that gets in at last, too.

use bytes::Bytes;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::chunk::{Chunk, ChunkHash};

/// Names of chunks, as far as they have room. Zero is none.
pub(crate) struct GhostList(Box<[AtomicU32]>);

impl GhostList {
    /// Room for at most `count` names, which is more than zero.
    pub(crate) fn new(count: usize) -> GhostList {
        GhostList((0..count).map(|_| AtomicU32::new(0)).collect())
    }

    /// Whether `hash` was noted lately. If so it is forgotten, if not it is noted now.
    pub(crate) fn note(&self, hash: ChunkHash) -> bool {
        // Not the bytes that caches take for their tables.
        let [.., a, b, c, d, e, f, g, h] = hash.0;
        let position = u64::from_le_bytes([a, b, c, d, e, f, g, h]) % self.0.len() as u64;
        let [_, _, _, _, _, _, _, _, a, b, c, d, ..] = hash.0;
        let name = u32::from_le_bytes([a, b, c, d]) | 1;
        let slot = &self.0[position as usize];
        let is_again = slot.load(Ordering::Relaxed) == name;
        slot.store(if is_again { 0 } else { name }, Ordering::Relaxed);
        is_again
    }
}

/// A chunk that was wanted for a small part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EntryLookup {
    /// All of it, and whether the store has it in memory for the next reader.
    Chunk(Chunk, Admission),
    /// The entry that was kept of it: the one that was asked for, or another of the same name.
    Entry(Bytes),
}

/// Says whether a store cached what it read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It has.
    InMemory,
    /// It has not; reading it was dear, so that the part that was wanted is worth
    /// [keeping](crate::ReadCache::keep_entry).
    EntryWanted,
    /// It has not, and to read it again is cheaper than to keep anything.
    No,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> ChunkHash {
        ChunkHash(*blake3::hash(&number.to_le_bytes()).as_bytes())
    }

    #[test]
    fn a_repeated_miss_is_recognised_once() {
        let ghosts = GhostList::new(100);
        for number in 0..1_000 {
            assert!(!ghosts.note(hash(number)));
            assert!(ghosts.note(hash(number)));
            assert!(!ghosts.note(hash(number)));
        }
    }

    #[test]
    fn names_go_bit_by_bit() {
        let ghosts = GhostList::new(1_000);
        let known_after = |misses: u64| {
            let known = |round: u64| {
                let first = round * (misses + 1);
                (first..=first + misses).for_each(|number| _ = ghosts.note(hash(number)));
                ghosts.note(hash(first))
            };
            (0..100).filter(|round| known(*round)).count()
        };
        let (soon, later, late) = (known_after(100), known_after(700), known_after(3_000));
        assert!(soon > 80 && (30..70).contains(&later) && (1..20).contains(&late));
    }
}
