//! What is fixed for a repository's life: sizes, and the salt of the boundary rule.

use crate::boundary::INTERIOR_ENTRIES_FREE;

/// Longest key.
pub const KEY_BYTES_MAX: usize = 8 << 10;

/// Bytes that a node's entry has beside its key and an inline value, at most: a place in the offset
/// table, lengths, counts and a reference.
pub(crate) const ENTRY_OVERHEAD_BYTES_MAX: u64 = 128;

/// Targets outside of these are treated as the nearest one; they bound the integers of the
/// boundary rule.
const TARGET_MIN: u32 = 256;
const TARGET_MAX: u32 = 1 << 20;

/// The parameters that, with the content, decide a tree's chunks and so its root hash.
///
/// *Invariants*: 1. `inline_bytes_max <= chunk_bytes_target / 4` in a map; a sequence's items, of which any
/// number makes a node, may have half the target. 2. The hard maximum of a chunk is
/// four times the target (see [`TreeFormat::chunk_bytes_max`]), the minimum an eighth.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TreeFormat {
    /// Mean uncompressed bytes of a node. From 256 to 1 MiB.
    pub chunk_bytes_target: u32,
    /// Longest value kept in a leaf; longer ones lie out of line.
    pub inline_bytes_max: u32,
    /// Random, so that nobody can choose keys that end up in bad chunks; clones inherit it.
    pub salt: u64,
}

impl TreeFormat {
    /// 16 KB nodes, 4 KB inline.
    pub fn new(salt: u64) -> TreeFormat {
        TreeFormat { chunk_bytes_target: 16 << 10, inline_bytes_max: 4 << 10, salt }
    }

    /// No chunk of a tree is larger than this: four times the target. Only where the target is so
    /// small (below 9 KB) that four of the longest keys exceed that, they are the limit: an
    /// interior node has at least two entries, and its boundaries want a choice.
    pub fn chunk_bytes_max(&self) -> u64 {
        let target = u64::from(self.target());
        let entry = KEY_BYTES_MAX as u64 + ENTRY_OVERHEAD_BYTES_MAX;
        let leaf = target * 2 + entry + u64::from(self.inline_bytes_max());
        (target * 4).max(leaf).max(entry * INTERIOR_ENTRIES_FREE as u64)
    }

    /// Longest item of a sequence: `inline_bytes_max`, but at least 64 bytes, and half the target at most.
    pub fn item_bytes_max(&self) -> usize {
        self.inline_bytes_max.min(self.target() / 2).max(TARGET_MIN / 4) as usize
    }

    /// The longest value that becomes one chunk when it lies out of line.
    pub(crate) fn blob_bytes_max(&self) -> usize {
        self.target() as usize * 4
    }

    pub(crate) fn target(&self) -> u32 {
        self.chunk_bytes_target.clamp(TARGET_MIN, TARGET_MAX)
    }

    /// Invariant 1, also for a format that breaks it.
    pub(crate) fn inline_bytes_max(&self) -> u32 {
        self.inline_bytes_max.min(self.target() / 4)
    }
}
