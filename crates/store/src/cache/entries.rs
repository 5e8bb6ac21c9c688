//! The entry cache: parts of chunks as plain bytes, for point reads of data much larger than
//! memory.
//!
//! A part takes little more than its bytes: no fields, no allocation of its own and no place in the
//! cache of chunks (1.08 KB for an entry of 1 KB; as a chunk with one entry it took 1.6). Names are
//! spread over *shards* ([`shard`]), each with a lock that is held while a part is copied, so that
//! threads seldom meet. A shard's memory are segments, which it takes as it grows and gives back as
//! the limit falls; without parts it has none.
//!
//! A surprise: a part is copied out. Lent, it would keep its segment, or the shard's lock.

mod shard;
mod slots;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;

use crate::cache::entries::shard::Shard;
use crate::chunk::ChunkHash;
use crate::entry_name::EntryName;
use crate::stripe::Stripe;

/// There is a shard for so many bytes.
const SHARD_BYTES: u64 = 8 << 20;
const SHARD_COUNT_MAX: u64 = 64;

/// Parts of chunks, within a limit that changes.
///
/// *Thread safety*: read and written by any number of threads; each shard has a lock.
pub(crate) struct EntryCache {
    shards: Box<[Stripe<Mutex<Shard>>]>,
    /// The memory that all shards take, and the limit.
    bytes: AtomicU64,
    bytes_max: AtomicU64,
    /// The shard that gives memory back next.
    next: AtomicUsize,
}

impl EntryCache {
    /// Makes one for at most so many bytes; none may be taken until `set_bytes_max`.
    pub(crate) fn new(bytes: u64) -> EntryCache {
        let count = (bytes / SHARD_BYTES).clamp(1, SHARD_COUNT_MAX);
        let shard = |_| Stripe(Mutex::new(Shard::new(bytes / count)));
        EntryCache {
            shards: (0..count).map(shard).collect(),
            bytes: AtomicU64::new(0),
            bytes_max: AtomicU64::new(0),
            next: AtomicUsize::new(0),
        }
    }

    /// Returns the memory that all of it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Changes what may be taken. Memory above it is given back by `shrink`.
    pub(crate) fn set_bytes_max(&self, bytes: u64) {
        // Looked at first: it hardly ever changes.
        if self.bytes_max.load(Ordering::Relaxed) != bytes {
            self.bytes_max.store(bytes, Ordering::Relaxed);
        }
    }

    /// Gives memory back, if more is taken than may be: if nothing may be, bit by bit.
    pub(crate) fn shrink(&self) {
        let bytes_max = self.bytes_max.load(Ordering::Relaxed);
        while bytes_max < self.bytes() {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            self.change(next % self.shards.len(), |shard| shard.shrink(bytes_max > 0));
            if bytes_max == 0 {
                break;
            }
        }
    }

    /// The part of `chunk` that is kept under the name `entry_name`, copied.
    pub(crate) fn get(&self, chunk: ChunkHash, part: EntryName) -> Option<Bytes> {
        if self.bytes() == 0 {
            return None;
        }
        let (position, print) = self.place(chunk, part);
        self.shard(position).get(chunk, print).map(Bytes::copy_from_slice)
    }

    /// Keeps a part of `chunk`: all `pieces`, one after the other.
    pub(crate) fn insert(&self, chunk: ChunkHash, part: EntryName, pieces: &[&[u8]]) {
        let (position, print) = self.place(chunk, part);
        let bytes_max = self.bytes_max.load(Ordering::Relaxed) / self.shards.len() as u64;
        self.change(position, |shard| shard.insert(chunk, print, pieces, bytes_max));
    }

    fn change(&self, position: usize, change: impl FnOnce(&mut Shard)) {
        let mut shard = self.shard(position);
        let before = shard.bytes();
        change(&mut shard);
        let after = shard.bytes();
        if after != before {
            self.bytes.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
        }
    }

    fn shard(&self, position: usize) -> MutexGuard<'_, Shard> {
        self.shards[position].0.lock().expect("no panic while the lock is held")
    }

    /// The shard for a part, and its fingerprint there.
    fn place(&self, chunk: ChunkHash, part: EntryName) -> (usize, u32) {
        let [a, b, c, d, e, f, g, h, ..] = chunk.0;
        let name = u64::from_le_bytes([a, b, c, d, e, f, g, h]) ^ part.0;
        let position = (u128::from(name) * self.shards.len() as u128) >> u64::BITS;
        // Zero is none.
        (position as usize, (name as u32).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 20 << 20;

    fn name(number: u32) -> (ChunkHash, EntryName) {
        let chunk = ChunkHash(*blake3::hash(&(number / 2).to_le_bytes()).as_bytes());
        (chunk, EntryName::of(&number.to_le_bytes()))
    }

    fn content(number: u32) -> Vec<u8> {
        number.to_le_bytes().repeat(1 + number as usize % 300)
    }

    fn insert(parts: &EntryCache, number: u32) {
        let ((chunk, part), content) = (name(number), content(number));
        let (head, rest) = content.split_at(content.len() / 3);
        parts.insert(chunk, part, &[head, rest]);
    }

    /// Whether the part is there; as it was put.
    fn has(parts: &EntryCache, number: u32) -> bool {
        let (chunk, part) = name(number);
        let found = parts.get(chunk, part);
        found.is_some_and(|found| {
            assert_eq!(found, content(number));
            true
        })
    }

    #[test]
    fn the_limit_is_kept_as_it_changes() {
        let parts = EntryCache::new(BYTES);
        insert(&parts, 0);
        assert!(!has(&parts, 0) && parts.bytes() == 0, "nothing may be taken yet");
        for limit in [BYTES, BYTES / 2, 1 << 20, BYTES / 3, 0] {
            parts.set_bytes_max(limit);
            while limit < parts.bytes() {
                parts.shrink();
            }
            for number in 0..60_000 {
                insert(&parts, number);
                assert!(parts.bytes() <= limit);
                assert!(!has(&parts, number / 2 * 2 + 1) || number % 2 == 1 || limit > 0);
            }
            let count = (0..60_000).filter(|number| has(&parts, *number)).count();
            let bytes = count as u64 * 640;
            // Segments that are open or free weigh more where there are few.
            let least = (limit / 10 * 9).saturating_sub(600_000);
            assert!(least <= bytes && bytes <= limit, "{bytes} of {limit}");
        }
        assert_eq!(parts.bytes(), 0);
    }

    /// Fills it several times with parts that are not read again; calls `between` often.
    fn pass(parts: &EntryCache, between: &dyn Fn()) {
        for number in 100_000..110_000 {
            insert(parts, number);
            if number % 250 == 0 {
                between();
            }
        }
    }

    #[test]
    fn entries_that_are_read_survive_a_scan() {
        let parts = EntryCache::new(BYTES);
        parts.set_bytes_max(1 << 20);
        (0..100).for_each(|number| insert(&parts, number));
        let read = || assert!((0..100).all(|number| has(&parts, number)));
        read();
        pass(&parts, &read);
        read();
    }

    #[test]
    fn entries_that_return_soon_survive_a_scan() {
        let parts = EntryCache::new(BYTES);
        parts.set_bytes_max(1 << 20);
        (0..100).for_each(|number| insert(&parts, number));
        (1_000..3_500).for_each(|number| insert(&parts, number));
        (0..100).for_each(|number| insert(&parts, number));
        pass(&parts, &|| ());
        let count = (0..100).filter(|number| has(&parts, *number)).count();
        assert!(count > 60, "{count} of 100 were known to come again");
        let others = (1_000..3_500).filter(|number| has(&parts, *number)).count();
        assert!(others < 300, "{others} of those that came once");
    }

    #[test]
    fn threads_meet_what_was_put() {
        let parts = EntryCache::new(BYTES);
        parts.set_bytes_max(BYTES / 4);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let parts = &parts;
                scope.spawn(move || {
                    for number in 0..40_000u32 {
                        let number = number.wrapping_mul(7 + thread) % 10_000;
                        if !has(parts, number) {
                            insert(parts, number);
                        }
                        if number % 1000 == 0 {
                            parts.set_bytes_max(BYTES / u64::from(4 + number / 1000 % 3));
                            parts.shrink();
                        }
                    }
                });
            }
        });
        assert!((0..10_000).filter(|number| has(&parts, *number)).count() > 1_000);
    }
}
