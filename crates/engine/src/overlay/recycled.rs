//! Recycles the memory of flushed memtables for the next ones.
//!
//! A memtable's memory is tens of megabytes that are freed at once, and asked for again in the next
//! second. An allocator gives them back to the system meanwhile, and that is done by whichever
//! thread asks it for memory next: mostly one that commits, which then waits for 20 to 60 ms; and
//! each page that comes back is cleared again when it is used. So payloads and blocks go from the
//! memtables that were flushed to those that are filled.
//!
//! *Invariants*
//! 1. The kept memory is at most `bytes_max`, the size of a memtable: the oldest goes first.
//! 2. A payload that is lent has no bytes, a block no entries.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;

use super::memtable::Block;

/// Smaller payloads share pages of the allocator with others: keeping them wins nothing.
const PAYLOAD_BYTES_MIN: usize = 64 << 10;
/// A payload isn't lent where it would be more than so many times as large as is needed.
const SPARE_TIMES_MAX: usize = 2;

/// Keeps the memory of flushed memtables. The default one keeps nothing.
#[derive(Default)]
pub(crate) struct Recycler {
    bytes_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    payloads: VecDeque<Vec<u8>>,
    blocks: Vec<Block>,
    /// The bytes of both.
    bytes: usize,
}

impl Recycler {
    /// Keeps at most `bytes_max`.
    pub fn new(bytes_max: u64) -> Recycler {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        Recycler { bytes_max, kept: Mutex::default() }
    }

    /// An empty buffer with room for `bytes`.
    pub fn payload(&self, bytes: usize) -> Vec<u8> {
        let fits = |kept: &Vec<u8>| {
            bytes <= kept.capacity() && kept.capacity() <= bytes.saturating_mul(SPARE_TIMES_MAX)
        };
        let mut kept = self.kept();
        let position = kept.payloads.iter().rposition(fits);
        match position.and_then(|position| kept.payloads.swap_remove_back(position)) {
            Some(payload) => {
                kept.bytes -= payload.capacity();
                payload
            }
            None => Vec::with_capacity(bytes),
        }
    }

    /// Shares `payload`; its memory comes back when the last holder drops it.
    pub fn share(self: &Arc<Recycler>, payload: Vec<u8>) -> Bytes {
        if payload.capacity() < PAYLOAD_BYTES_MIN {
            return payload.into();
        }
        Bytes::from_owner(Shared { payload, recycler: Arc::clone(self) })
    }

    /// An empty block.
    pub fn block(&self) -> Block {
        let mut kept = self.kept();
        match kept.blocks.pop() {
            Some(block) => {
                kept.bytes -= Block::BYTES;
                block
            }
            None => Block::with_capacity(),
        }
    }

    /// Takes an empty block of full size.
    pub fn keep_block(&self, block: Block) {
        let mut kept = self.kept();
        if kept.bytes + Block::BYTES <= self.bytes_max {
            kept.bytes += Block::BYTES;
            kept.blocks.push(block);
        }
    }

    fn keep_payload(&self, mut payload: Vec<u8>) {
        payload.clear();
        let mut kept = self.kept();
        kept.bytes += payload.capacity();
        kept.payloads.push_back(payload);
        let mut gone = Vec::new();
        while self.bytes_max < kept.bytes
            && let Some(oldest) = kept.payloads.pop_front()
        {
            kept.bytes -= oldest.capacity();
            gone.push(oldest);
        }
        // Freed without the lock.
        drop(kept);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no panic while the lock is held")
    }
}

/// A payload that is in use.
struct Shared {
    payload: Vec<u8>,
    recycler: Arc<Recycler>,
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.payload
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.recycler.keep_payload(std::mem::take(&mut self.payload));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(recycler: &Recycler, bytes: usize) -> Vec<u8> {
        let mut payload = recycler.payload(bytes);
        assert!(payload.is_empty());
        payload.resize(bytes, 7);
        payload
    }

    #[test]
    fn memory_is_recycled_once_it_is_unused() {
        let recycler = Arc::new(Recycler::new(1 << 20));
        // Whether it lends what it has kept.
        let lends = |bytes| {
            let before = recycler.kept().bytes;
            let payload = recycler.payload(bytes);
            assert!(bytes <= payload.capacity());
            assert!(payload.is_empty(), "what another transaction wrote isn't lent");
            recycler.kept().bytes < before
        };
        let shared = recycler.share(filled(&recycler, 100_000));
        let part = shared.slice(50..60);
        drop(shared);
        assert!(!lends(100_000), "a part is still read");
        assert_eq!(part, [7; 10][..]);
        drop(part);
        assert!(!lends(49_000), "too large");
        assert!(!lends(100_001), "too small");
        assert!(lends(60_000));
        assert_eq!(recycler.kept().bytes, 0);
        drop(recycler.share(filled(&recycler, 1000)));
        assert_eq!(recycler.kept().bytes, 0, "a small one isn't kept");
    }

    #[test]
    fn recycled_memory_is_bounded_and_the_oldest_goes_first() {
        let recycler = Arc::new(Recycler::new(250_000));
        for bytes in [100_000, 110_000, 120_000] {
            drop(recycler.share(filled(&recycler, bytes)));
        }
        assert_eq!(recycler.kept().bytes, 230_000);
        (0..100).for_each(|_| recycler.keep_block(Block::with_capacity()));
        let blocks = recycler.kept().blocks.len();
        assert_eq!(blocks, 20_000 / Block::BYTES);
        assert_eq!(recycler.block().len(), 0);
        assert_eq!(recycler.kept().bytes, 230_000 + (blocks - 1) * Block::BYTES);
        drop(recycler.share(filled(&recycler, 300_000)));
        assert!(recycler.kept().payloads.is_empty(), "not even it alone fits");
        let nothing = Arc::new(Recycler::default());
        drop(nothing.share(filled(&nothing, 100_000)));
        nothing.keep_block(Block::with_capacity());
        assert_eq!(nothing.kept().bytes, 0);
    }
}
