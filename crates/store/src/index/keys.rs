//! Tells which pack may hold a chunk: a set of pairs of 32 bits of a name and a pack's number, 8
//! bytes each.
//!
//! The pairs lie sorted in buckets; a pair's bucket is told by its highest bits. When buckets have
//! grown, each is cut in two. Names are hashes, so buckets grow alike; a client that makes chunks
//! whose names begin alike makes one bucket long, and searches stay logarithmic.
//!
//! An equal pair may be there more than once: two chunks of a pack whose names begin alike.

use std::ops::Range;

use crate::chunk::ChunkHash;
use crate::interpolation;
use crate::location::PackNumber;

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
    let beginning = hash.0.first_chunk().copied().map_or(0, u32::from_be_bytes);
    u64::from(beginning) << u32::BITS
}

fn pair(hash: ChunkHash, pack: PackNumber) -> u64 {
    key(hash) | u64::from(pack.0)
}

impl Keys {
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
        // What is left of a pair tells its place within the bucket.
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
            .map(|pair| PackNumber(*pair as u32))
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
