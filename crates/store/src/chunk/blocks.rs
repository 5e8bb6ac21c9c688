//! The hashes of a chunk's blocks, so that a change in one place hashes one block anew.
//!
//! BLAKE3 hashes blocks of 1 KB and combines two and two: left of each pair is the largest power of two of blocks that leaves
//! some (The BLAKE3 paper, section 2.1). Hashing one block takes as long as hashing eight side by side, but what is left
//! over at the end, and with cold caches the code for many, costs as much again. So blocks are known only of chunks
//! that were changed before: those are changed again.

use blake3::Hasher;
use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

use super::{ChunkHash, HASH_BYTES};

const BLOCK_BYTES: usize = blake3::CHUNK_LEN;
/// Of longer chunks no blocks are known.
const BLOCK_COUNT_MAX: usize = 64;

type BlockHash = [u8; HASH_BYTES];

/// The hash of each block, of two at least.
#[derive(Clone, Debug)]
pub(super) struct Blocks(Box<[BlockHash]>);

impl Blocks {
    /// Those of `encoded`; `None` if it is too short or too long for them.
    pub(super) fn of(encoded: &[u8]) -> Option<Blocks> {
        let count = encoded.len().div_ceil(BLOCK_BYTES);
        let blocks = || (0..count).map(|block| hash(encoded, block)).collect();
        (2..=BLOCK_COUNT_MAX).contains(&count).then(|| Blocks(blocks()))
    }

    /// Those of `encoded`, which differs from what these are of at some places.
    pub(super) fn changed(&self, encoded: &[u8], changed: ChangedBlocks) -> Blocks {
        let mut blocks = self.0.clone();
        for (block, known) in blocks.iter_mut().enumerate() {
            if changed.0 & 1 << block != 0 {
                *known = hash(encoded, block);
            }
        }
        Blocks(blocks)
    }

    /// The hash of all.
    pub(super) fn name(&self) -> ChunkHash {
        let (left, right) = self.0.split_at(left_count(self.0.len()));
        let name = merge_subtrees_root(&combined(left), &combined(right), Mode::Hash);
        ChunkHash(*name.as_bytes())
    }
}

/// Which blocks changed: a bit each.
#[derive(Clone, Copy, Default)]
pub(super) struct ChangedBlocks(u64);

impl ChangedBlocks {
    /// Adds those that have bytes from `start` to `end`.
    pub(super) fn add(&mut self, start: usize, end: usize) {
        for block in start / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES).min(BLOCK_COUNT_MAX) {
            self.0 |= 1 << block;
        }
    }
}

fn hash(encoded: &[u8], block: usize) -> BlockHash {
    let start = block * BLOCK_BYTES;
    let end = encoded.len().min(start + BLOCK_BYTES);
    let mut hasher = Hasher::new();
    hasher.set_input_offset(start as u64).update(&encoded[start..end]);
    hasher.finalize_non_root()
}

fn combined(blocks: &[BlockHash]) -> BlockHash {
    if let [block] = blocks {
        return *block;
    }
    let (left, right) = blocks.split_at(left_count(blocks.len()));
    merge_subtrees_non_root(&combined(left), &combined(right), Mode::Hash)
}

/// The largest power of two below `count`, which is two at least.
fn left_count(count: usize) -> usize {
    1 << (count - 1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_that_of_all_bytes() {
        let all: Vec<u8> = (0..70 * BLOCK_BYTES).map(|at| (at * 7 + at / 251) as u8).collect();
        for count in (0..9000).step_by(511).chain([1024, 1025, 2048, 65_535, 65_536]) {
            let blocks = Blocks::of(&all[..count]);
            assert_eq!(blocks.is_some(), BLOCK_BYTES < count);
            let name = ChunkHash(*blake3::hash(&all[..count]).as_bytes());
            assert!(blocks.is_none_or(|blocks| blocks.name() == name), "{count}");
        }
        assert!(Blocks::of(&all).is_none());
    }

    #[test]
    fn blocks_that_changed_are_hashed_anew() {
        let mut bytes: Vec<u8> = (0..5000).map(|at| (at * 7) as u8).collect();
        let mut blocks = Blocks::of(&bytes).unwrap();
        for (start, end) in [(0, 1), (1023, 1025), (4096, 5000), (100, 4097), (2048, 3072)] {
            bytes[start..end].iter_mut().for_each(|byte| *byte ^= 1);
            let mut changed = ChangedBlocks::default();
            changed.add(start, end);
            blocks = blocks.changed(&bytes, changed);
            assert_eq!(blocks.name().0, *blake3::hash(&bytes).as_bytes());
        }
    }
}
