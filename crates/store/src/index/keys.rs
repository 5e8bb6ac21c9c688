//! Finds which pack may hold a chunk: a set of pairs of 32 bits of a name and a pack's number, 8
//! bytes each.
//!
//! The pairs lie sorted in buckets; a pair's bucket is given by its highest bits. When buckets have
//! grown, each is cut in two. Names are hashes, so buckets grow alike; a client that makes chunks
//! whose names begin alike makes one bucket long, and searches stay logarithmic.
//!
//! An equal pair may be there more than once: two chunks of a pack whose names begin alike.

use std::ops::Range;

use crate::chunk::ChunkHash;
use crate::hash::NameBeginning;
use crate::interpolation;
use crate::location::{PackNumber, PackedChunk};
use crate::pack::outline::{NameStart, Outline};

/// A bucket's mean size, at most.
const BUCKET_COUNT_MAX: usize = 128;
/// Buckets grow by so many, not by half: there are many, and they are small.
const GROWTH: usize = 16;

/// The set of pairs.
#[derive(Debug)]
pub(crate) struct Keys {
    buckets: Vec<Vec<u64>>,
    /// Logarithm of the number of buckets.
    bits: u32,
    count: usize,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys { buckets: vec![Vec::new()], bits: 0, count: 0 }
    }
}

fn key(hash: ChunkHash) -> u64 {
    u64::from(NameBeginning::of(hash).0) << u32::BITS
}

fn pair(hash: ChunkHash, pack: PackNumber) -> u64 {
    key(hash) | u64::from(pack.0)
}

fn pack_of(pair: u64) -> PackNumber {
    PackNumber(pair as u32)
}

fn beginning(pair: u64) -> NameBeginning {
    NameBeginning((pair >> u32::BITS) as u32)
}

/// Moves from a sorted bucket to `alike` the pairs of names that begin alike in several packs.
fn take_alike(bucket: &mut Vec<u64>, alike: &mut Vec<u64>) {
    let are_alike = |left: &u64, right: &u64| beginning(*left) == beginning(*right);
    let several = |same: &&[u64]| same.first() != same.last();
    if !bucket.windows(2).any(|pair| pair[0] != pair[1] && are_alike(&pair[0], &pair[1])) {
        return;
    }
    let start = alike.len();
    bucket.chunk_by(are_alike).filter(several).for_each(|same| alike.extend_from_slice(same));
    let taken = &alike[start..];
    bucket.retain(|pair| taken.binary_search(pair).is_err());
}

/// The pairs of a pack, which ascend.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct PackPairs(Vec<u64>);

impl PackPairs {
    /// Those of `chunks`, which ascend by name.
    pub(crate) fn of(pack: PackNumber, chunks: &[PackedChunk]) -> PackPairs {
        let mut last = None;
        let is_first = |chunk: &&PackedChunk| last.replace(chunk.hash) != Some(chunk.hash);
        let mut pairs = Vec::with_capacity(chunks.len());
        pairs.extend(chunks.iter().filter(is_first).map(|chunk| pair(chunk.hash, pack)));
        PackPairs(pairs)
    }

    /// Those of an index that has this outline.
    pub(crate) fn of_outline(pack: PackNumber, outline: &Outline) -> PackPairs {
        let pair =
            |start: NameStart| u64::from(start.beginning().0) << u32::BITS | u64::from(pack.0);
        PackPairs(outline.starts().map(pair).collect())
    }
}

impl Keys {
    /// All pairs but those whose names begin alike in several packs: these are returned, each once.
    ///
    /// Each pair is filed in its bucket, and each bucket is sorted once: to insert them one by one
    /// moves those behind each.
    pub(crate) fn of(packs: Vec<PackPairs>) -> (Keys, Vec<(PackNumber, NameBeginning)>) {
        let count: usize = packs.iter().map(|pairs| pairs.0.len()).sum();
        let mut keys = Keys::default();
        while BUCKET_COUNT_MAX << keys.bits < count && keys.bits < u32::BITS {
            keys.bits += 1;
        }
        let mut counts = vec![0u32; 1 << keys.bits];
        packs.iter().flat_map(|pairs| &pairs.0).for_each(|pair| counts[keys.bucket(*pair)] += 1);
        keys.buckets = counts.iter().map(|count| Vec::with_capacity(*count as usize)).collect();
        for pairs in packs {
            for pair in pairs.0 {
                let position = keys.bucket(pair);
                keys.buckets[position].push(pair);
            }
        }
        let mut alike = Vec::new();
        for bucket in &mut keys.buckets {
            bucket.sort_unstable();
            take_alike(bucket, &mut alike);
        }
        keys.count = count - alike.len();
        let mut left: Vec<_> =
            alike.iter().map(|pair| (pack_of(*pair), beginning(*pair))).collect();
        left.dedup();
        (keys, left)
    }

    fn bucket(&self, pair: u64) -> usize {
        // Shifted in two steps, since one bucket needs a shift by all bits.
        (pair >> 1 >> (u64::BITS - 1 - self.bits)) as usize
    }

    pub(crate) fn insert(&mut self, hash: ChunkHash, pack: PackNumber) {
        let pair = pair(hash, pack);
        let position = self.bucket(pair);
        let bucket = &mut self.buckets[position];
        if bucket.len() == bucket.capacity() {
            bucket.reserve_exact(GROWTH);
        }
        let place = bucket.partition_point(|other| *other < pair);
        bucket.insert(place, pair);
        self.count += 1;
        if BUCKET_COUNT_MAX * self.buckets.len() < self.count && self.bits < u32::BITS {
            self.split();
        }
    }

    fn split(&mut self) {
        self.bits += 1;
        let (bits, old) = (self.bits, std::mem::take(&mut self.buckets));
        let is_low = |pair: u64| pair >> (u64::BITS - bits) & 1 == 0;
        self.buckets.reserve_exact(old.len() * 2);
        for bucket in old {
            let (low, high) = bucket.split_at(bucket.partition_point(|pair| is_low(*pair)));
            self.buckets.extend([low.to_vec(), high.to_vec()]);
        }
    }

    fn places(&self, from: u64, to: u64) -> (usize, Range<usize>) {
        let position = self.bucket(from);
        let bucket = &self.buckets[position];
        // The rest of a pair gives its place within the bucket.
        let guess = interpolation::guess(from << self.bits, 0, u64::MAX, bucket.len());
        let start = interpolation::count_before(bucket.len(), guess, |place| bucket[place] < from);
        let count = bucket[start..].iter().take_while(|pair| **pair <= to).count();
        (position, start..start + count)
    }

    /// The packs that may hold `hash`, each once.
    pub(crate) fn packs(&self, hash: ChunkHash) -> impl Iterator<Item = PackNumber> {
        let (bucket, places) = self.places(key(hash), pair(hash, PackNumber(u32::MAX)));
        let mut last = None;
        self.buckets[bucket][places]
            .iter()
            .map(|pair| pack_of(*pair))
            .filter(move |pack| last.replace(*pack) != Some(*pack))
    }

    pub(crate) fn contains(&self, hash: ChunkHash, pack: PackNumber) -> bool {
        let pair = pair(hash, pack);
        !self.places(pair, pair).1.is_empty()
    }

    /// Takes one such pair away.
    pub(crate) fn remove(&mut self, hash: ChunkHash, pack: PackNumber) {
        let pair = pair(hash, pack);
        let (bucket, places) = self.places(pair, pair);
        if !places.is_empty() {
            self.buckets[bucket].remove(places.start);
            self.count -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Adding packs together has the same result as inserting their keys one by one, once the pairs
    /// that are left have been inserted; and only pairs that are alike in several packs are left.
    #[test]
    fn packs_that_are_added_together_are_as_one_by_one() {
        let place = crate::location::FrameOffset { offset: 16, bytes: 10 };
        // Names of few beginnings: within a pack, and in two of them.
        let chunk = |pack: u32, number: u32| {
            let mut hash = name(number % 9_973);
            hash.0[31] = (number / 9_973) as u8;
            hash.0[30] = if number.is_multiple_of(50) { 0 } else { pack as u8 };
            PackedChunk { hash, place, refers: false }
        };
        let (mut packs, mut one_by_one, mut beginnings) =
            (Vec::new(), Keys::default(), BTreeMap::<u32, Vec<u32>>::new());
        for pack in 0..5 {
            let mut chunks: Vec<PackedChunk> =
                (0..4_000).map(|number| chunk(pack, pack * 1_999 + number)).collect();
            chunks.extend((0..40).map(|number| chunk(pack, 20_000 + number)));
            chunks.sort_unstable();
            // A pack may name a chunk twice.
            chunks.insert(7, chunks[6]);
            packs.push(PackPairs::of(PackNumber(pack), &chunks));
            chunks.dedup_by_key(|chunk| chunk.hash);
            for chunk in chunks {
                one_by_one.insert(chunk.hash, PackNumber(pack));
                beginnings.entry(NameBeginning::of(chunk.hash).0).or_default().push(pack);
            }
        }
        let (mut together, left) = Keys::of(packs);
        let are_several = |packs: &&Vec<u32>| packs.iter().any(|pack| *pack != packs[0]);
        let expected: usize =
            beginnings.values().filter(are_several).map(|packs| distinct(packs)).sum();
        assert_eq!(left.len(), expected);
        assert!(expected > 100, "{expected} beginnings are in several packs");
        for (pack, beginning) in left {
            let count = beginnings[&beginning.0].iter().filter(|other| **other == pack.0).count();
            (0..count).for_each(|_| together.insert(beginning.least_name(), pack));
        }
        assert_eq!(together.count, one_by_one.count);
        assert_eq!(together.bits, one_by_one.bits);
        assert_eq!(together.buckets, one_by_one.buckets);
    }

    fn distinct(packs: &[u32]) -> usize {
        let mut packs = packs.to_vec();
        packs.dedup();
        packs.len()
    }

    fn name(number: u32) -> ChunkHash {
        let mut hash = ChunkHash([7; 32]);
        hash.0[..4].copy_from_slice(&number.wrapping_mul(0x9e37_79b9).to_be_bytes());
        hash
    }

    #[test]
    fn pairs_are_there_as_often_as_they_were_inserted() {
        let (mut keys, mut model) = (Keys::default(), BTreeMap::<(u32, u32), u32>::new());
        for round in 0..40_000u32 {
            let (number, pack) = (round.wrapping_mul(7919) % 9_001, round % 5);
            let pack_number = PackNumber(pack);
            if round % 3 == 2 {
                keys.remove(name(number), pack_number);
                if let Some(count) = model.get_mut(&(number, pack)) {
                    *count = count.saturating_sub(1);
                }
            } else {
                keys.insert(name(number), pack_number);
                *model.entry((number, pack)).or_default() += 1;
            }
        }
        for number in 0..9_100 {
            let is_there = |pack: &u32| model.get(&(number, *pack)).is_some_and(|count| *count > 0);
            let expected: Vec<PackNumber> = (0..5).filter(is_there).map(PackNumber).collect();
            assert_eq!(keys.packs(name(number)).collect::<Vec<_>>(), expected);
            for pack in (0..6).map(PackNumber) {
                assert_eq!(keys.contains(name(number), pack), expected.contains(&pack));
            }
        }
        assert_eq!(keys.count, model.values().sum::<u32>() as usize);
        assert!(keys.buckets.len() > 100);
    }
}
