//! Fingerprints of keys: 64 bits, with a random seed, so that no client can choose keys that
//! collide.

use std::hash::Hasher;

use twox_hash::XxHash3_64;

use crate::ids::TreeId;

/// Spreads tree ids over a fingerprint's seeds.
const TREE_FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Names a key.
pub(crate) fn fingerprint(seed: u64, tree: TreeId, key: &[u8]) -> u64 {
    // The tree is part of the seed: nothing has to be copied for hashing.
    XxHash3_64::oneshot_with_seed(seed.wrapping_add(tree.0.wrapping_mul(TREE_FACTOR)), key)
}

/// Fingerprints are hashes already.
#[derive(Default)]
pub(crate) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only fingerprints are hashed, by the method below; this would be right too.
        self.0 = XxHash3_64::oneshot_with_seed(self.0, bytes);
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }
}
