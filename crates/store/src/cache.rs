//! The cache of decompressed chunks, bounded by their bytes.
//!
//! 1. The cache proper (`quick_cache`: Clock-Pro, so a chunk read once, as by a scan, never drives
//!    out one that is read again and again) holds every chunk that was read or written.
//! 2. Before it lie *fronts*, one for each stripe of threads: a few slots for chunks that reference
//!    many others, which are the interior nodes of trees. Every walk of a tree passes the root;
//!    without fronts all processors would write the same lock, the same clock bit and the same
//!    count for each of them. A front's chunks are detached, so that nothing of a hit is shared.
//! 3. A holder of a [`WeakChunk`](crate::WeakChunk) uses what is cached without asking (a tree's
//!    cached levels does). It asks once after each time that the clock's hand has passed, and a
//!    chunk so used is spared once.
//! 4. The chunks used most are *pinned* by their users ([`Chunk::pin`]), and stay until they let
//!    go: pins take no more than a part of the cache
//!    ([`ChunkStore::pin_budget`](crate::ChunkStore::pin_budget)).
//! 5. When the cache is half full, a reader of a small part of a chunk, as point reads are, has
//!    it kept only where it was missed lately ([`crate::cache::admission`]). A scan over all of
//!    many chunks fills it further.
//! 6. Where most misses come from a disk, only that part is kept, beside the cache
//!    ([`crate::cache::entries`]): of what is read at places that lie apart, far more fits; and
//!    what is read at many places of a chunk within a while is in the system's cache. Then nothing
//!    more is pinned: the way to a part is as short.
//! 7. The memory beside the cache, parts and the data that readers keep there ([`CacheBudget`]), is
//!    taken from its bytes, step by step as it grows; parts give way to the rooms. An interior node
//!    that readers have stays, since dropping it would free nothing.
//! 8. Where the process is short of memory, a part of the bytes is withheld
//!    ([`ChunkCache::withhold`]). What is held beside the cache for a moment, as a pack that is
//!    sent, is reserved of them ([`ChunkCache::reserve`]).
//!
//! A surprise: a front's hits are unknown to the cache proper, which would take an interior node
//! for one that no reader wants; so every so often a hit asks it too.

pub(crate) mod admission;
pub(crate) mod budget;
pub(crate) mod entries;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, Weighter};

use crate::cache::admission::GhostList;
use crate::cache::budget::CacheBudget;
use crate::cache::entries::EntryCache;
use crate::chunk::{CHUNK_FIELDS_BYTES, Chunk, ChunkHash, DERIVED_SHARE};
use crate::entry_name::EntryName;
use crate::hash::NameHasherBuilder;
use crate::read::latency::LatencyAverage;
use crate::stripe::{STRIPE_COUNT, Stripe, stripe};
use crate::{Admission, EntryLookup};

/// The memory of an entry besides its bytes: the chunk's fields, its name and the cache's own.
const ENTRY_BYTES: u64 = CHUNK_FIELDS_BYTES + 96;
const CHUNK_BYTES_TYPICAL: u64 = 8 << 10;
/// The number of names to expect for each chunk that has room; of those of dropped chunks the cache
/// remembers half as many.
const NAMES_A_CHUNK: usize = 4;
/// The number of eighths of its bytes from which on the cache is taken to be full by a caller that
/// reads a chunk for a part of it.
const FULL_EIGHTHS: u64 = 4;
/// The same where misses come from a disk: a chunk that is read at one place takes that of eight
/// parts.
const FULL_EIGHTHS_SLOW: u64 = 1;
/// The same for a scan, which uses all of each.
const FULL_EIGHTHS_PASSING: u64 = 6;
/// A chunk with so many references is an interior node, or as good as one.
const REFERENCES_MIN: usize = 8;
/// All fronts together hold about so much of the cache's bytes, if their chunks are as large as
/// this.
const FRONT_SHARE: u64 = 16;
const FRONT_CHUNK_BYTES: u64 = 4 << 10;
const FRONT_SLOTS_MAX: u64 = 64;
/// The number of a front's hits of which one is reported to the cache proper.
const HITS_A_TOUCH: u32 = 64;
/// The number of chunks that want another's slot of which one gets it: where there are far more
/// interior nodes than slots, those that are read most stay, and the others aren't copied at each
/// read.
const MISSES_A_CHANGE: u32 = 16;
/// The cache's bytes follow those beside it in steps of such a part of all.
const STEP_SHARE: u64 = 64;
/// Parts leave chunks such a share of all bytes, and such a smaller one beyond what is pinned or
/// held by readers.
const CHUNKS_SHARE: u64 = 6;
const OTHER_CHUNKS_SHARE: u64 = 16;

/// As many missed chunks are known as such a part of those that have room. Simulated with a cache
/// for a quarter of the data (records of 1 KB, leaves of 8): of Zipf's reads 79 % hit and 3 % put a
/// leaf, of uniform ones 23 and 9; with twice as many names the same hit and 5 and 15 % put one; if
/// each miss puts one, 78 and 23 % hit, 22 and 77 % put one.
const MISSED_SHARE: usize = 2;

/// The most recently and most often used chunks.
pub(crate) struct ChunkCache {
    cache: Cache<ChunkHash, Chunk, ByBytes, NameHasherBuilder, SecondChance>,
    parts: EntryCache,
    fronts: [Stripe<Mutex<Front>>; STRIPE_COUNT],
    /// The eighths of its bytes that it had at most, as far as any reader needs.
    eighths: AtomicU64,
    ghosts: GhostList,
    slow: MostlyFromDisk,
    bytes_max: u64,
    /// The bytes of it that aren't to be used.
    withheld: AtomicU64,
    /// The bytes of it that others hold for a moment.
    reserved: AtomicU64,
    budget: Arc<CacheBudget>,
    pin_budget: Arc<CacheBudget>,
    /// Steps that the cache has less than all bytes.
    steps_beside: Mutex<u64>,
}

/// Says whether most of the last misses came from a disk.
#[derive(Default)]
struct MostlyFromDisk {
    share: LatencyAverage,
    is_most: AtomicBool,
}

impl MostlyFromDisk {
    /// The number of eighths above which they are most; fewer than the least aren't any more.
    const MOST_EIGHTHS: u32 = 4;
    const LEAST_EIGHTHS: u32 = 3;

    fn note(&self, is_slow: bool) {
        self.share.note(is_slow);
        let is_most = self.is_most();
        let limit = if is_most { Self::LEAST_EIGHTHS } else { Self::MOST_EIGHTHS };
        if is_most != self.share.exceeds(limit) {
            self.is_most.store(!is_most, Ordering::Relaxed);
        }
    }

    fn is_most(&self) -> bool {
        self.is_most.load(Ordering::Relaxed)
    }
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
    fn weight(&self, _name: &ChunkHash, chunk: &Chunk) -> u64 {
        let bytes = chunk.encoded().len();
        (bytes + bytes / DERIVED_SHARE) as u64 + ENTRY_BYTES
    }
}

/// Spares a chunk once if it was used by a way that the cache proper doesn't see
/// ([`Chunk::note_use`]).
#[derive(Clone)]
struct SecondChance;

impl Lifecycle<ChunkHash, Chunk> for SecondChance {
    /// Dropped when the cache's lock is released.
    type RequestState = Vec<Chunk>;

    fn is_pinned(&self, _name: &ChunkHash, chunk: &Chunk) -> bool {
        let is_interior = REFERENCES_MIN <= chunk.reference_count();
        chunk.is_pinned() || chunk.take_used() || is_interior && chunk.is_held_by_others()
    }

    fn on_evict(&self, evicted: &mut Vec<Chunk>, _name: ChunkHash, chunk: Chunk) {
        evicted.push(chunk);
    }
}

impl ChunkCache {
    /// A cache for `bytes_max`: of these readers may take the first room, and of its chunks pin the
    /// second.
    pub(crate) fn new(bytes_max: u64, [budget, pin_budget]: [Arc<CacheBudget>; 2]) -> ChunkCache {
        let items = usize::try_from(bytes_max / CHUNK_BYTES_TYPICAL).unwrap_or(usize::MAX);
        let hasher = NameHasherBuilder;
        let slots = bytes_max / FRONT_SHARE / FRONT_CHUNK_BYTES / STRIPE_COUNT as u64;
        let slots = slots.min(FRONT_SLOTS_MAX) as usize;
        let front = |_| Stripe(Mutex::new(Front { slots: vec![None; slots], ..Front::default() }));
        let expected = items.saturating_mul(NAMES_A_CHUNK);
        ChunkCache {
            cache: Cache::with(expected, bytes_max, ByBytes, hasher, SecondChance),
            parts: EntryCache::new(bytes_max),
            fronts: std::array::from_fn(front),
            eighths: AtomicU64::new(0),
            ghosts: GhostList::new((items / MISSED_SHARE).max(1)),
            slow: MostlyFromDisk::default(),
            bytes_max,
            withheld: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
            budget,
            pin_budget,
            steps_beside: Mutex::new(0),
        }
    }

    pub(crate) fn get(&self, hash: ChunkHash) -> Option<Chunk> {
        // Where two threads share a stripe, one of them needn't wait.
        let Ok(mut front) = self.fronts[stripe()].0.try_lock() else {
            return self.cache.get(&hash);
        };
        let Front { slots, hits, misses } = &mut *front;
        let Some(slot) = slot(slots, hash) else {
            return self.cache.get(&hash);
        };
        if let Some(chunk) = slot.as_ref().filter(|chunk| chunk.hash() == hash) {
            *hits = hits.wrapping_add(1);
            if hits.is_multiple_of(HITS_A_TOUCH) && self.cache.get(&hash).is_none() {
                self.insert(chunk.clone());
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

    /// As `get`, for a chunk that has no place in the fronts; or what is kept of it under the name
    /// `entry_name`.
    pub(crate) fn look_up_entry(&self, hash: ChunkHash, part: EntryName) -> Option<EntryLookup> {
        // Where there are any, it is most likely one of them.
        let bytes = self.parts.get(hash, part).map(EntryLookup::Entry);
        bytes.or_else(|| Some(EntryLookup::Chunk(self.cache.get(&hash)?, Admission::InMemory)))
    }

    /// Returns how much to keep of a chunk that was read for a small part of it, and wasn't here.
    pub(crate) fn worth(&self, hash: ChunkHash, is_slow: bool) -> Admission {
        self.slow.note(is_slow);
        if self.slow.is_most() {
            return if self.has(FULL_EIGHTHS_SLOW) {
                Admission::EntryWanted
            } else {
                Admission::InMemory
            };
        }
        let is_worth_it = !self.has(FULL_EIGHTHS) || self.ghosts.note(hash);
        if is_worth_it { Admission::InMemory } else { Admission::No }
    }

    /// Whether a chunk that wasn't here is worth its place for a reader that passes by.
    pub(crate) fn worth_passing(&self, hash: ChunkHash) -> bool {
        !self.has(FULL_EIGHTHS_PASSING) || self.ghosts.note(hash)
    }

    /// Whether it has been filled so far once: hardly ever is it empty again.
    fn has(&self, eighths: u64) -> bool {
        eighths <= self.eighths.load(Ordering::Relaxed)
    }

    pub(crate) fn insert(&self, chunk: Chunk) {
        self.share_bytes();
        self.cache.insert(chunk.hash(), chunk);
        // Looked at first: all threads read it.
        if !self.has(FULL_EIGHTHS_PASSING) {
            let eighths = 8 * self.cache.weight() / self.cache.capacity().max(1);
            self.eighths.fetch_max(eighths, Ordering::Relaxed);
        }
    }

    /// Keeps a part of the chunk named `hash`, where parts are what is kept.
    pub(crate) fn keep_entry(&self, hash: ChunkHash, part: EntryName, pieces: &[&[u8]]) {
        self.share_bytes();
        self.parts.insert(hash, part, pieces);
    }

    /// Returns how many bytes it has now, with what readers keep beside it, and how many it may
    /// have.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.cache.weight() + self.parts.bytes() + self.budget.own_bytes(), self.bytes_max)
    }

    /// Takes so many bytes less, from now on; what is above that goes.
    pub(crate) fn withhold(&self, bytes: u64) {
        if self.withheld.swap(bytes, Ordering::Relaxed) != bytes {
            self.share_bytes();
        }
    }

    /// Takes so many bytes less until what is returned is dropped; what is above that goes before.
    pub(crate) fn reserve(&self, bytes: u64) -> ReservedBytes<'_> {
        self.reserved.fetch_add(bytes, Ordering::Relaxed);
        self.share_bytes();
        ReservedBytes { cache: self, bytes }
    }

    /// The bytes that aren't the cache's now.
    fn bytes_elsewhere(&self) -> u64 {
        self.withheld.load(Ordering::Relaxed).max(self.reserved.load(Ordering::Relaxed))
    }

    /// Leaves the bytes that lie beside the cache, and sets how many the parts may take.
    fn share_bytes(&self) {
        let is_for_parts = self.slow.is_most();
        self.pin_budget.set_closed(is_for_parts);
        self.parts.set_bytes_max(if is_for_parts { self.parts_bytes_max() } else { 0 });
        self.parts.shrink();
        let step = (self.bytes_max / STEP_SHARE).max(1);
        let beside = self.budget.own_bytes() + self.parts.bytes();
        let steps = (beside + self.bytes_elsewhere()).div_ceil(step);
        // A thread that finds the lock taken needn't wait for the other.
        if let Ok(mut beside) = self.steps_beside.try_lock()
            && *beside != steps
        {
            *beside = steps;
            self.cache.set_capacity(self.bytes_max - (steps * step).min(self.bytes_max));
        }
    }

    fn parts_bytes_max(&self) -> u64 {
        let (own, all) = (self.budget.own_bytes(), self.budget.bytes());
        let kept_by_readers = all.saturating_sub(own) + self.pin_budget.bytes();
        let others = self.bytes_max / OTHER_CHUNKS_SHARE;
        let chunks = (kept_by_readers + others).max(self.bytes_max / CHUNKS_SHARE);
        let step = self.bytes_max / STEP_SHARE;
        // It changes by whole steps, so seldom.
        self.bytes_max.saturating_sub(own + chunks + self.bytes_elsewhere()) / step.max(1) * step
    }
}

/// Bytes that the cache has less; dropped, it has them again.
pub(crate) struct ReservedBytes<'a> {
    cache: &'a ChunkCache,
    bytes: u64,
}

impl Drop for ReservedBytes<'_> {
    fn drop(&mut self) {
        self.cache.reserved.fetch_sub(self.bytes, Ordering::Relaxed);
        self.cache.share_bytes();
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

    fn cache() -> ChunkCache {
        ChunkCache::new(CACHE_BYTES, [(); 2].map(|()| CacheBudget::new(CACHE_BYTES / 4)))
    }

    fn chunk(number: u32, references: usize) -> Chunk {
        let mut payload = vec![0; PAYLOAD_BYTES];
        payload[..4].copy_from_slice(&number.to_le_bytes());
        Chunk::new(ChunkKind::Blob, &vec![ChunkHash([1; 32]); references], &payload)
    }

    #[test]
    fn a_scan_leaves_hot_chunks() {
        let cache = cache();
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
    fn chunks_used_by_weak_references_stay() {
        let cache = cache();
        let insert = |number| {
            let chunk = chunk(number, 0);
            cache.insert(chunk.clone());
            (chunk.hash(), chunk.downgrade())
        };
        let used: Vec<_> = (0..100).map(insert).collect();
        let unused: Vec<_> = (100..200).map(insert).collect();
        let mut count = 0;
        for number in 1_000..21_000 {
            let (hash, _) = insert(number);
            assert!(cache.get(hash).is_some());
            assert!(cache.cache.weight() <= CACHE_BYTES);
            let (hash, weak) = &used[number as usize % used.len()];
            if weak.upgrade().is_some_and(|chunk| !chunk.note_use()) {
                count += usize::from(cache.get(*hash).is_some());
            }
        }
        let left = |chunks: &[(ChunkHash, WeakChunk)]| {
            chunks.iter().filter(|(_, chunk)| chunk.upgrade().is_some()).count()
        };
        assert!(left(&used) > 80, "{} are left", left(&used));
        assert!(left(&unused) < 10, "{} are left", left(&unused));
        assert!(count < 20_000 / 4, "the cache was asked {count} times");
    }

    #[test]
    fn a_full_cache_wants_what_is_missed_twice() {
        let cache = cache();
        let names = (0..100).map(|number| chunk(number, 0).hash());
        let check = |hash, expected: [Admission; 3]| {
            assert_eq!(expected.map(|_| cache.worth(hash, false)), expected);
        };
        names.clone().for_each(|hash| check(hash, [Admission::InMemory; 3]));
        (1_000..11_000).for_each(|number| cache.insert(chunk(number, 0)));
        names.for_each(|hash| check(hash, [Admission::No, Admission::InMemory, Admission::No]));
    }

    #[test]
    fn a_chunk_that_comes_twice_takes_one_place() {
        let cache = cache();
        (0..10_000).for_each(|_| cache.insert(chunk(0, 0)));
        assert_eq!(cache.worth(chunk(1, 0).hash(), false), Admission::InMemory, "there is budget");
    }

    #[test]
    fn where_misses_come_from_a_disk_parts_are_kept() {
        let cache = cache();
        (1_000..11_000).for_each(|number| cache.insert(chunk(number, 0)));
        let hash = chunk(1, 0).hash();
        assert_eq!([(); 2].map(|()| cache.worth(hash, true)), [Admission::No, Admission::InMemory]);
        (0..200).for_each(|number| _ = cache.worth(chunk(number, 0).hash(), number % 4 > 0));
        assert_eq!(
            [true, false, true].map(|is| cache.worth(hash, is)),
            [Admission::EntryWanted; 3]
        );
        (0..200).for_each(|number| _ = cache.worth(chunk(number, 0).hash(), number % 2 == 0));
        assert_eq!(cache.worth(hash, false), Admission::EntryWanted, "it doesn't change at once");
        (0..200).for_each(|number| _ = cache.worth(chunk(number, 0).hash(), number % 4 == 0));
        let fast = chunk(500, 0).hash();
        assert_eq!(
            [(); 2].map(|()| cache.worth(fast, false)),
            [Admission::No, Admission::InMemory]
        );
    }

    #[test]
    fn the_room_is_taken_from_the_cache() {
        let cache = cache();
        let fill = || (0..3_000).for_each(|number| cache.insert(chunk(number, 0)));
        fill();
        let all = cache.cache.weight();
        let taken = cache.budget.take(CACHE_BYTES / 4).unwrap();
        fill();
        assert!(cache.cache.weight() + CACHE_BYTES / 4 <= CACHE_BYTES);
        drop(taken);
        fill();
        assert!(all - all / 32 <= cache.cache.weight() && cache.cache.weight() <= CACHE_BYTES);
    }

    #[test]
    fn withheld_cache_memory_is_given_back_at_once() {
        let cache = cache();
        (0..3_000).for_each(|number| cache.insert(chunk(number, 0)));
        let all = cache.cache.weight();
        cache.withhold(CACHE_BYTES / 4 * 3);
        assert!(cache.cache.weight() <= CACHE_BYTES / 4);
        cache.withhold(0);
        (0..3_000).for_each(|number| cache.insert(chunk(number, 0)));
        assert!(all - all / 32 <= cache.cache.weight());
    }

    #[test]
    fn interior_nodes_in_use_stay() {
        let cache = cache();
        let nodes: Vec<Chunk> = (0..100).map(|number| chunk(number, 10)).collect();
        nodes.iter().for_each(|node| cache.insert(node.clone()));
        let held: Vec<Chunk> = nodes.iter().take(50).map(Chunk::detached).collect();
        drop(nodes);
        let insert_and_use = |number| {
            let chunk = chunk(number, 0);
            cache.insert(chunk.clone());
            assert!(cache.get(chunk.hash()).is_some());
        };
        (1_000..11_000).for_each(insert_and_use);
        let is_here = |number: &u32| cache.cache.get(&chunk(*number, 10).hash()).is_some();
        assert!((0..50).all(|number| is_here(&number)), "dropping them frees nothing");
        let others = (50..100).filter(is_here).count();
        assert!(others < 5, "{others} are left");
        drop(held);
        (11_000..31_000).for_each(insert_and_use);
        assert!((0..50).filter(is_here).count() < 5);
        assert!(cache.cache.weight() <= CACHE_BYTES);
    }

    /// All misses come from a disk, or none any more.
    fn miss(cache: &ChunkCache, is_slow: bool) {
        (0..200).for_each(|number| _ = cache.worth(chunk(number, 0).hash(), is_slow));
    }

    #[test]
    fn parts_stand_for_chunks_that_are_not_here() {
        let cache = cache();
        let whole = chunk(0, 0);
        let names = [b"one", b"two"].map(|key| EntryName::of(key));
        let part = |bytes: &'static [u8]| Some(EntryLookup::Entry(bytes.into()));
        cache.keep_entry(whole.hash(), names[0], &[b"nobody"]);
        assert_eq!(cache.look_up_entry(whole.hash(), names[0]), None, "there is no disk yet");
        miss(&cache, true);
        cache.keep_entry(whole.hash(), names[0], &[b"the ", b"first"]);
        assert_eq!(cache.look_up_entry(whole.hash(), names[0]), part(b"the first"));
        assert_eq!(cache.look_up_entry(whole.hash(), names[1]), None);
        assert_eq!(cache.get(whole.hash()), None, "who wants all gets no part");
        cache.keep_entry(whole.hash(), names[1], &[b"the second"]);
        assert_eq!(cache.look_up_entry(whole.hash(), names[1]), part(b"the second"));
        cache.insert(whole.clone());
        assert_eq!(cache.look_up_entry(whole.hash(), names[0]), part(b"the first"));
        let other = cache.look_up_entry(whole.hash(), EntryName::of(b"three"));
        assert_eq!(other, Some(EntryLookup::Chunk(whole, Admission::InMemory)));
    }

    /// Also with what is pinned, and what readers take.
    #[test]
    fn chunks_and_parts_share_the_bytes() {
        let cache = cache();
        let insert = |numbers: std::ops::Range<u32>| {
            for number in numbers {
                let whole = chunk(number, 0);
                if number % 5 == 0 {
                    cache.insert(whole.clone());
                }
                let part = EntryName::of(&number.to_le_bytes());
                cache.keep_entry(whole.hash(), part, &[&vec![7; number as usize % 2_000]]);
                let all = cache.cache.weight() + cache.parts.bytes() + cache.budget.own_bytes();
                assert!(all <= CACHE_BYTES + CACHE_BYTES / STEP_SHARE, "{all} at {number}");
            }
            cache.parts.bytes()
        };
        assert_eq!(insert(0..5_000), 0);
        let pinned = cache.pin_budget.take(CACHE_BYTES / 8).unwrap();
        miss(&cache, true);
        let with_pins = insert(0..10_000);
        assert!(CACHE_BYTES / 2 < with_pins);
        assert!(cache.pin_budget.take(1).is_none() && cache.pin_budget.take_refused());
        drop(pinned);
        let most = insert(10_000..20_000);
        assert!(with_pins < most && CACHE_BYTES / 4 * 3 < most);
        let budget = cache.budget.take(CACHE_BYTES / 4).unwrap();
        let beside_room = insert(20_000..30_000);
        assert!(beside_room < most && CACHE_BYTES / 2 < beside_room);
        drop(budget);
        miss(&cache, false);
        let left = insert(30_000..31_000);
        assert_eq!(left, 0, "they go step by step");
        assert!(cache.pin_budget.take(1).is_some());
    }

    #[test]
    fn fronts_answer_what_was_asked_for() {
        let cache = cache();
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
        let cache = cache();
        let root = chunk(0, 100);
        cache.insert(root.clone());
        for number in 1_000..11_000 {
            assert!(cache.get(root.hash()).is_some(), "after {number}");
            cache.insert(chunk(number, 0));
        }
        assert!(cache.cache.get(&root.hash()).is_some());
    }
}
