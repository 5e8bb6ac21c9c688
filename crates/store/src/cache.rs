//! Decompressed chunks in memory, bounded by their bytes.
//!
//! 1. The cache proper (`quick_cache`: Clock-Pro, so a chunk read once, as by a scan, never drives out
//!    one that is read again and again) holds every chunk that was read or written.
//! 2. Before it lie *fronts*, one for each lane of threads: a few slots for chunks that reference
//!    many others, which are the interior nodes of trees. Every walk of a tree passes the root; without
//!    fronts all processors would write the same lock, the same clock bit and the same count for
//!    each of them. A front's chunks are detached, so that nothing of a hit is shared.
//! 3. Who has a [`WeakChunk`](crate::WeakChunk) uses what is cached without asking (a tree's trunk does). It asks once
//!    after each time that the clock's hand has passed, and a chunk so used is spared once.
//! 4. What is used most is *pinned* by those who use it ([`Chunk::pin`]), and stays until they let go: they take of a room
//!    for no more than a part of the cache ([`ChunkStore::leaf_room`](crate::ChunkStore::leaf_room)).
//! 5. When the cache is full, who reads a chunk for a small part of it, as point reads do, has it kept only where it was
//!    missed lately ([`crate::missed`]).
//!
//! What may be surprising: a front's hits are unknown to the cache proper, which would take an
//! interior node for one that nobody reads; so every so often a hit asks it too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, Weighter};

use crate::chunk::{CHUNK_FIELDS_BYTES, Chunk, ChunkHash, DERIVED_SHARE};
use crate::index::NameHasherBuilder;
use crate::lane::{LANE_COUNT, Lane, lane};
use crate::missed::Missed;

/// What an entry costs beside its bytes: the chunk's fields, its name and the cache's own.
const ENTRY_BYTES: u64 = CHUNK_FIELDS_BYTES + 96;
/// For the cache's first guess at how many entries it will hold.
const CHUNK_BYTES_TYPICAL: u64 = 8 << 10;
/// A chunk with so many references is an interior node, or as good as one.
const REFERENCES_MIN: usize = 8;
/// All fronts together hold about so much of the cache's bytes, if their chunks are as large as this.
const FRONT_SHARE: u64 = 16;
const FRONT_CHUNK_BYTES: u64 = 4 << 10;
const FRONT_SLOTS_MAX: u64 = 64;
/// Of a front's hits, one in so many is told to the cache proper.
const HITS_A_TOUCH: u32 = 64;
/// Of the chunks that want another's slot, one in so many gets it: where there are far more interior nodes than slots,
/// those that are read most stay, and the others aren't copied at each read.
const MISSES_A_CHANGE: u32 = 16;

/// As many missed chunks are known as such a part of those that have room. Simulated with a cache for a quarter of the data
/// (records of 1 KB, leaves of 8): of Zipf's reads 79 % hit and 3 % put a leaf, of uniform ones 23 and 9; with twice as many
/// names the same hit and 5 and 15 % put one; if each miss puts one, 78 and 23 % hit, 22 and 77 % put one.
const MISSED_SHARE: usize = 2;

/// Most recently and most often used chunks.
pub(crate) struct ChunkCache {
    cache: Cache<ChunkHash, Chunk, ByBytes, NameHasherBuilder, SecondLook>,
    fronts: [Lane<Mutex<Front>>; LANE_COUNT],
    is_full: Arc<AtomicBool>,
    missed: Missed,
}

/// A chunk's slot follows from its name.
#[derive(Default)]
struct Front {
    slots: Vec<Option<Chunk>>,
    hits: u32,
    misses: u32,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<ChunkHash, Chunk> for ByBytes {
    fn weight(&self, _hash: &ChunkHash, chunk: &Chunk) -> u64 {
        let bytes = chunk.encoded().len();
        (bytes + bytes / DERIVED_SHARE) as u64 + ENTRY_BYTES
    }
}

/// Spares a chunk once if it was used by a way that the cache proper doesn't see ([`Chunk::note_use`]).
#[derive(Clone, Default)]
struct SecondLook {
    has_evicted: Arc<AtomicBool>,
}

impl Lifecycle<ChunkHash, Chunk> for SecondLook {
    /// Dropped when the cache's lock is released.
    type RequestState = Vec<Chunk>;

    fn is_pinned(&self, _hash: &ChunkHash, chunk: &Chunk) -> bool {
        chunk.is_pinned() || chunk.take_used()
    }

    fn on_evict(&self, evicted: &mut Vec<Chunk>, _hash: ChunkHash, chunk: Chunk) {
        evicted.push(chunk);
        // Looked at first: all threads read it.
        if !self.has_evicted.load(Ordering::Relaxed) {
            self.has_evicted.store(true, Ordering::Relaxed);
        }
    }
}

impl ChunkCache {
    pub(crate) fn new(bytes_max: u64) -> ChunkCache {
        let items = usize::try_from(bytes_max / CHUNK_BYTES_TYPICAL).unwrap_or(usize::MAX);
        let hasher = NameHasherBuilder;
        let slots = bytes_max / FRONT_SHARE / FRONT_CHUNK_BYTES / LANE_COUNT as u64;
        let slots = slots.min(FRONT_SLOTS_MAX) as usize;
        let front = |_| Lane(Mutex::new(Front { slots: vec![None; slots], ..Front::default() }));
        let second_look = SecondLook::default();
        ChunkCache {
            is_full: Arc::clone(&second_look.has_evicted),
            cache: Cache::with(items, bytes_max, ByBytes, hasher, second_look),
            fronts: std::array::from_fn(front),
            missed: Missed::new((items / MISSED_SHARE).max(1)),
        }
    }

    pub(crate) fn get(&self, hash: ChunkHash) -> Option<Chunk> {
        // Where two threads share a lane, one of them needn't wait.
        let Ok(mut front) = self.fronts[lane()].0.try_lock() else {
            return self.cache.get(&hash);
        };
        let Front { slots, hits, misses } = &mut *front;
        let Some(slot) = slot(slots, hash) else {
            return self.cache.get(&hash);
        };
        if let Some(chunk) = slot.as_ref().filter(|chunk| chunk.hash() == hash) {
            *hits = hits.wrapping_add(1);
            if hits.is_multiple_of(HITS_A_TOUCH) && self.cache.get(&hash).is_none() {
                self.cache.insert(hash, chunk.clone());
            }
            return Some(chunk.clone());
        }
        let chunk = self.cache.get(&hash)?;
        if chunk.reference_count() >= REFERENCES_MIN {
            *misses = misses.wrapping_add(1);
            if slot.is_none() || misses.is_multiple_of(MISSES_A_CHANGE) {
                *slot = Some(chunk.detached());
            }
        }
        Some(chunk)
    }

    /// As `get`, for a chunk that has no place in the fronts.
    pub(crate) fn get_leaf(&self, hash: ChunkHash) -> Option<Chunk> {
        self.cache.get(&hash)
    }

    /// Whether a chunk that was read for a small part of it, and wasn't here, is worth its place.
    pub(crate) fn wants(&self, hash: ChunkHash) -> bool {
        !self.is_full.load(Ordering::Relaxed) || self.missed.note(hash)
    }

    pub(crate) fn insert(&self, chunk: Chunk) {
        self.cache.insert(chunk.hash(), chunk);
    }
}

fn slot(slots: &mut [Option<Chunk>], hash: ChunkHash) -> Option<&mut Option<Chunk>> {
    // Not the bytes that the cache proper takes for its own table.
    let (_, bytes) = hash.0.split_last_chunk()?;
    let position = u64::from_le_bytes(*bytes).checked_rem(slots.len() as u64)?;
    slots.get_mut(position as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{ChunkKind, WeakChunk};

    const CACHE_BYTES: u64 = 4 << 20;
    const PAYLOAD_BYTES: usize = 4 << 10;

    fn chunk(number: u32, references: usize) -> Chunk {
        let mut payload = vec![0; PAYLOAD_BYTES];
        payload[..4].copy_from_slice(&number.to_le_bytes());
        Chunk::new(ChunkKind::Blob, &vec![ChunkHash([1; 32]); references], &payload)
    }

    #[test]
    fn a_scan_leaves_hot_chunks() {
        let cache = ChunkCache::new(CACHE_BYTES);
        let hot: Vec<Chunk> = (0..200).map(|number| chunk(number, 0)).collect();
        hot.iter().for_each(|chunk| cache.insert(chunk.clone()));
        for _ in 0..3 {
            assert!(hot.iter().all(|chunk| cache.get(chunk.hash()).is_some()));
        }
        // Ten times as much as fits.
        (1_000..11_000).for_each(|number| cache.insert(chunk(number, 0)));
        let left = hot.iter().filter(|chunk| cache.get(chunk.hash()).is_some()).count();
        assert!(left > 180, "{left} of {} are left", hot.len());
        assert!(cache.cache.weight() <= CACHE_BYTES);
    }

    #[test]
    fn what_is_used_by_weak_references_stays() {
        let cache = ChunkCache::new(CACHE_BYTES);
        let insert = |number| {
            let chunk = chunk(number, 0);
            cache.insert(chunk.clone());
            (chunk.hash(), chunk.downgrade())
        };
        let used: Vec<_> = (0..100).map(insert).collect();
        let unused: Vec<_> = (100..200).map(insert).collect();
        let mut asked = 0;
        for number in 1_000..21_000 {
            let (hash, _) = insert(number);
            assert!(cache.get(hash).is_some());
            assert!(cache.cache.weight() <= CACHE_BYTES);
            let (hash, weak) = &used[number as usize % used.len()];
            if weak.upgrade().is_some_and(|chunk| !chunk.note_use()) {
                asked += usize::from(cache.get(*hash).is_some());
            }
        }
        let left = |chunks: &[(ChunkHash, WeakChunk)]| {
            chunks.iter().filter(|(_, chunk)| chunk.upgrade().is_some()).count()
        };
        assert!(left(&used) > 80, "{} are left", left(&used));
        assert!(left(&unused) < 10, "{} are left", left(&unused));
        assert!(asked < 20_000 / 4, "the cache was asked {asked} times");
    }

    #[test]
    fn a_full_cache_wants_what_is_missed_twice() {
        let cache = ChunkCache::new(CACHE_BYTES);
        let mut names = (0..100).map(|number| chunk(number, 0).hash());
        assert!(names.clone().all(|hash| cache.wants(hash) && cache.wants(hash)));
        (1_000..11_000).for_each(|number| cache.insert(chunk(number, 0)));
        assert!(names.all(|hash| !cache.wants(hash) && cache.wants(hash) && !cache.wants(hash)));
    }

    #[test]
    fn fronts_answer_what_was_asked_for() {
        let cache = ChunkCache::new(CACHE_BYTES);
        let nodes: Vec<Chunk> = (0..100).map(|number| chunk(number, 100)).collect();
        nodes.iter().for_each(|chunk| cache.insert(chunk.clone()));
        for _ in 0..300 {
            for node in &nodes {
                assert_eq!(cache.get(node.hash()).as_ref(), Some(node));
            }
        }
        assert!(cache.get(chunk(200, 100).hash()).is_none());
    }

    #[test]
    fn interior_nodes_stay_in_the_cache_proper() {
        let cache = ChunkCache::new(CACHE_BYTES);
        let root = chunk(0, 100);
        cache.insert(root.clone());
        for number in 1_000..11_000 {
            assert!(cache.get(root.hash()).is_some(), "after {number}");
            cache.insert(chunk(number, 0));
        }
        assert!(cache.cache.get(&root.hash()).is_some());
    }
}
