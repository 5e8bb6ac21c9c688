//! Bloom filters: find from one cache line whether a run may hold a key.
//!
//! A filter is an array of blocks of 64 bytes. A key's hash chooses a block, and within it six
//! bits. With ten bits a key about one absent key in a hundred is taken for present; a present one
//! is never taken for absent. (Putze, Sanders, Singler: Cache-, Hash- and Space-Efficient Bloom
//! Filters, section 3.)
//!
//! Stored as the payload of a blob; the authority is docs/format/engine-state.md.

use bytes::Bytes;
use twox_hash::XxHash3_64;

/// Stored: change only with a new version.
const BLOCK_BYTES: usize = 64;
const BLOCK_BITS_LOG2: u32 = 9;
const BITS_PER_KEY: usize = 10;
const PROBES: u32 = 6;
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
const _: () = assert!(1 << BLOCK_BITS_LOG2 == BLOCK_BYTES * 8);
const _: () = assert!(PROBES * BLOCK_BITS_LOG2 <= u64::BITS);

/// A key's hash, as filters take it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    /// Hashes a key: once, however many filters are asked.
    pub fn new(key: &[u8]) -> KeyHash {
        KeyHash(XxHash3_64::oneshot(key))
    }

    /// The first byte of the key's block among `blocks`.
    fn block(self, blocks: usize) -> usize {
        let position = ((self.0 >> 32) * blocks as u64) >> 32;
        position as usize * BLOCK_BYTES
    }

    /// The places of the key's bits in its block.
    fn bits(self) -> impl Iterator<Item = usize> {
        // The high bits of a product depend on every bit of the hash.
        let mut mixed = self.0.wrapping_mul(MIX) >> (u64::BITS - PROBES * BLOCK_BITS_LOG2);
        (0..PROBES).map(move |_| {
            let bit = mixed & ((1 << BLOCK_BITS_LOG2) - 1);
            mixed >>= BLOCK_BITS_LOG2;
            bit as usize
        })
    }
}

/// Says which keys a run may hold.
pub(crate) struct Filter {
    /// A multiple of [`BLOCK_BYTES`], at least one block.
    blocks: Bytes,
}

impl Filter {
    /// The bytes of a filter for keys with these hashes.
    pub fn build(hashes: &[KeyHash]) -> Vec<u8> {
        let blocks = (hashes.len() * BITS_PER_KEY).div_ceil(BLOCK_BYTES * 8).max(1);
        let mut bytes = vec![0; blocks * BLOCK_BYTES];
        for hash in hashes {
            let start = hash.block(blocks);
            let block = &mut bytes[start..start + BLOCK_BYTES];
            hash.bits().for_each(|bit| block[bit / 8] |= 1 << (bit % 8));
        }
        bytes
    }

    /// Reads what `build` made; `None` if it is none.
    pub fn open(bytes: Bytes) -> Option<Filter> {
        let fits = !bytes.is_empty() && bytes.len().is_multiple_of(BLOCK_BYTES);
        fits.then_some(Filter { blocks: bytes })
    }

    /// False if the key is certainly absent.
    pub fn may_hold(&self, hash: KeyHash) -> bool {
        let start = hash.block(self.blocks.len() / BLOCK_BYTES);
        let block = &self.blocks[start..start + BLOCK_BYTES];
        hash.bits().all(|bit| block[bit / 8] & (1 << (bit % 8)) != 0)
    }

    /// Memory that it takes.
    pub fn bytes(&self) -> u64 {
        self.blocks.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(from: u64, count: u64) -> Vec<KeyHash> {
        (from..from + count).map(|number| KeyHash::new(&number.to_be_bytes())).collect()
    }

    #[test]
    fn present_keys_are_found_and_few_absent_ones() {
        for count in [0, 1, 50, 51, 52, 10_000] {
            let present = hashes(0, count);
            let filter = Filter::open(Filter::build(&present).into()).unwrap();
            assert!(present.iter().all(|hash| filter.may_hold(*hash)), "{count} keys");
            let absent = hashes(1 << 40, 10_000);
            let wrong = absent.iter().filter(|hash| filter.may_hold(**hash)).count();
            assert!(wrong < 250, "{wrong} of 10,000 beside {count} keys");
            assert!(filter.bytes() <= count * 10 / 8 + BLOCK_BYTES as u64);
        }
    }

    #[test]
    fn bytes_that_are_no_filter_are_refused() {
        for bytes in [0, 1, 63, 65] {
            assert!(Filter::open(vec![0; bytes].into()).is_none());
        }
    }
}
