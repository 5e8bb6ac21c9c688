//! The names of chunks, and hashers for tables of them.

use std::fmt;
use std::hash::{BuildHasher, Hasher};

/// Bytes of a chunk's name.
pub const HASH_BYTES: usize = 32;

/// The BLAKE3 hash of a chunk's encoded bytes: its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkHash(pub [u8; HASH_BYTES]);

impl fmt::Display for ChunkHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ChunkHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..6].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The first four bytes of a name, by which names are filed and found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct NameBeginning(pub(crate) u32);

impl NameBeginning {
    pub(crate) fn of(hash: ChunkHash) -> NameBeginning {
        NameBeginning(hash.0.first_chunk().copied().map_or(0, u32::from_be_bytes))
    }

    /// The least name that begins so.
    pub(crate) fn least_name(self) -> ChunkHash {
        let mut hash = ChunkHash([0; HASH_BYTES]);
        hash.0[..size_of::<u32>()].copy_from_slice(&self.0.to_be_bytes());
        hash
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

    /// Adds a number, itself a hash, that distinguishes parts of the thing that has the name.
    fn write_u64(&mut self, number: u64) {
        self.0 ^= number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
