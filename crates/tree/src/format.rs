//! What is fixed for a repository's life: sizes, and the salt of the boundary rule.

/// Longest key.
pub const KEY_BYTES_MAX: usize = 8 << 10;

/// The parameters that, with the content, decide a tree's chunks and so its root hash.
///
/// *Invariants*: 1. `inline_bytes_max <= chunk_bytes_target / 4`. 2. The hard maximum of a chunk is
/// four times the target, the minimum an eighth.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TreeFormat {
    /// Mean uncompressed bytes of a node.
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
}
