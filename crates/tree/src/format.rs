//! The values that are fixed for a repository's life: sizes, and the salt of the boundary rule.

/// The number of entries from which on an interior node ends like a leaf.
pub(crate) const INTERIOR_ENTRIES_FREE: usize = 4;
/// The longest key.
pub const KEY_BYTES_MAX: usize = 8 << 10;

/// Bytes that a node's entry has beside its key and an inline value, at most: a place in the offset
/// table, lengths, counts and a reference.
pub(crate) const ENTRY_OVERHEAD_BYTES_MAX: u64 = 128;

/// Targets outside of these are treated as the nearest one; they bound the integers of the
/// boundary rule.
const TARGET_MIN: u32 = 256;
const TARGET_MAX: u32 = 1 << 20;
/// A leaf of the target's size holds so many of the longest inline values, or items of a sequence.
const INLINE_DIVISOR: u32 = 2;
/// A leaf of long values' slices is so many times as large as the longest inline value.
const VALUES_FACTOR: u32 = 4;
/// The target of interior nodes is that of leaves divided by this, but at least the minimum below
/// if leaves reach it.
const INTERIOR_DIVISOR: u32 = 4;
const INTERIOR_TARGET_MIN: u32 = 4 << 10;
/// See [`TreeFormat::for_scattered_edits`].
const SCATTERED_DIVISOR: u32 = 2;
const SCATTERED_INLINE_DIVISOR: u32 = 4;
/// See [`TreeFormat::for_passing`].
const PASSING_FACTOR: u32 = 4;
const PASSING_TARGET_MAX: u32 = 16 << 10;

/// The parameters that, with the content, decide a tree's chunks and so its root hash.
///
/// *Invariants*: 1. `inline_bytes_max <= chunk_bytes_target / 2`. 2. The hard maximum of a chunk is
/// four times the target (see [`TreeFormat::chunk_bytes_max`]), the minimum an eighth.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TreeFormat {
    /// Mean uncompressed bytes of a leaf; interior nodes have a quarter, see
    /// docs/format/boundary.md. From 256 to 1 MiB.
    pub chunk_bytes_target: u32,
    /// The longest value kept in a leaf; longer ones lie out of line.
    pub inline_bytes_max: u32,
    /// Random, so that no client can choose keys that end up in bad chunks; clones inherit it.
    pub salt: u64,
}

impl TreeFormat {
    /// 8 KB leaves, 4 KB inline.
    pub fn new(salt: u64) -> TreeFormat {
        TreeFormat { chunk_bytes_target: 8 << 10, inline_bytes_max: 4 << 10, salt }
    }

    /// No chunk of a tree is larger than this: four times the target. Only where the target is so
    /// small (below 9 KB, as the default is) that four of the longest keys exceed that, they are
    /// the limit: an interior node has at least two entries, and its boundaries want a choice.
    pub fn chunk_bytes_max(&self) -> u64 {
        let target = u64::from(self.target());
        let entry = KEY_BYTES_MAX as u64 + ENTRY_OVERHEAD_BYTES_MAX;
        let leaf = target * 2 + entry + u64::from(self.inline_bytes_max());
        (target * 4).max(leaf).max(entry * INTERIOR_ENTRIES_FREE as u64)
    }

    /// Returns the longest item of a sequence: `inline_bytes_max`, but at least 64 bytes, and half
    /// the target at most.
    pub fn item_bytes_max(&self) -> usize {
        self.inline_bytes_max().max(TARGET_MIN / 4) as usize
    }

    /// The longest value that becomes one chunk when it lies out of line.
    pub(crate) fn blob_bytes_max(&self) -> usize {
        self.of_values().target() as usize * 4
    }

    /// The format of a map beside one of this format whose entries are small and whose edits lie
    /// far from each other, as those of an index: each rewrites a leaf of its own, so leaves are
    /// half as large.
    pub fn for_scattered_edits(&self) -> TreeFormat {
        let chunk_bytes_target = self.target() / SCATTERED_DIVISOR;
        let inline_bytes_max =
            self.inline_bytes_max().min(chunk_bytes_target / SCATTERED_INLINE_DIVISOR);
        TreeFormat { chunk_bytes_target, inline_bytes_max, salt: self.salt }
    }

    /// The format of a map whose values lie where one of this format has them, in larger nodes if
    /// its own are small: for what is read in order and soon given up.
    pub fn for_passing(&self) -> TreeFormat {
        let larger = (self.target() * PASSING_FACTOR).min(PASSING_TARGET_MAX);
        let chunk_bytes_target = larger.max(self.target());
        let inline_bytes_max = self.inline_bytes_max();
        TreeFormat { chunk_bytes_target, inline_bytes_max, salt: self.salt }
    }

    /// The format of sequences of long values. It follows from the limit for inline values alone,
    /// so that maps that differ only in their nodes have equal values in the same place.
    pub(crate) fn of_values(&self) -> TreeFormat {
        let inline_bytes_max = self.inline_bytes_max();
        let chunk_bytes_target = inline_bytes_max * VALUES_FACTOR;
        TreeFormat { chunk_bytes_target, inline_bytes_max, salt: self.salt }
    }

    /// Mean bytes of an interior node: a quarter of a leaf's, since every edit below rewrites it,
    /// but not so few that the tree gains levels.
    pub(crate) fn interior_target(&self) -> u32 {
        let target = self.target();
        (target / INTERIOR_DIVISOR).max(INTERIOR_TARGET_MIN).min(target)
    }

    pub(crate) fn target(&self) -> u32 {
        self.chunk_bytes_target.clamp(TARGET_MIN, TARGET_MAX)
    }

    /// Invariant 1, also for a format that breaks it.
    pub(crate) fn inline_bytes_max(&self) -> u32 {
        self.inline_bytes_max.min(self.target() / INLINE_DIVISOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(target, inline, expected)`: the targets of interior nodes, and those of leaves beside and
    /// above.
    fn check(target: u32, inline: u32, expected: [u32; 3], inline_scattered: u32) {
        let format = TreeFormat { chunk_bytes_target: target, inline_bytes_max: inline, salt: 1 };
        let (scattered, passing) = (format.for_scattered_edits(), format.for_passing());
        let found =
            [format.interior_target(), scattered.chunk_bytes_target, passing.chunk_bytes_target];
        assert_eq!(found, expected, "{target}");
        assert_eq!(scattered.inline_bytes_max, inline_scattered);
        assert_eq!(passing.of_values(), format.of_values());
    }

    #[test]
    fn targets_follow_from_a_format() {
        check(8 << 10, 4 << 10, [4 << 10, 4 << 10, 16 << 10], 1 << 10);
        check(4 << 10, 1 << 10, [4 << 10, 2 << 10, 16 << 10], 512);
        check(64 << 10, 100, [16 << 10, 32 << 10, 64 << 10], 100);
        check(512, 400, [512, 256, 2 << 10], 64);
    }

    /// The place of a long value doesn't depend on the nodes of its map.
    #[test]
    fn values_lie_by_the_inline_limit() {
        let format = TreeFormat::new(7);
        let larger = TreeFormat { chunk_bytes_target: 64 << 10, ..format };
        assert_eq!(larger.of_values(), format.of_values());
        assert_eq!(format.of_values().of_values(), format.of_values());
        assert_eq!(format.blob_bytes_max(), 64 << 10);
    }
}
