//! A sorted set of pairs in memory, 8 bytes each.
//!
//! The pairs lie sorted in buckets; a pair's bucket is given by its highest bits. When buckets have
//! grown, each is cut in two. Names are hashes, so buckets grow alike; a client that makes chunks
//! whose names begin alike makes one bucket long, and searches stay logarithmic.

use std::ops::Range;

use super::{Pair, alike_range};
use crate::hash::NameBeginning;
use crate::interpolation;

/// A bucket's mean size, at most.
const BUCKET_COUNT_MAX: usize = 128;
/// Buckets grow by so many, not by half: there are many, and they are small.
const GROWTH: usize = 16;

/// See the module. An equal pair may be there more than once.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Buckets {
    buckets: Vec<Vec<Pair>>,
    /// Logarithm of the number of buckets.
    bits: u32,
    count: usize,
}

impl Default for Buckets {
    fn default() -> Buckets {
        Buckets { buckets: vec![Vec::new()], bits: 0, count: 0 }
    }
}

impl Buckets {
    /// An empty set with room for `count` pairs.
    pub(super) fn for_count(count: usize) -> Buckets {
        let mut bits = 0;
        while BUCKET_COUNT_MAX << bits < count && bits < u32::BITS {
            bits += 1;
        }
        Buckets { buckets: vec![Vec::new(); 1 << bits], bits, count: 0 }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// All pairs, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = Pair> {
        self.buckets.iter().flatten().copied()
    }

    fn bucket(&self, pair: Pair) -> usize {
        // Shifted in two steps, since one bucket needs a shift by all bits.
        (pair.0 >> 1 >> (u64::BITS - 1 - self.bits)) as usize
    }

    pub(super) fn insert(&mut self, pair: Pair) {
        let position = self.bucket(pair);
        let bucket = &mut self.buckets[position];
        if bucket.len() == bucket.capacity() {
            bucket.reserve_exact(GROWTH);
        }
        let place = match bucket.last() {
            // As all do that are added in order.
            Some(last) if pair < *last => bucket.partition_point(|other| *other < pair),
            _ => bucket.len(),
        };
        bucket.insert(place, pair);
        self.count += 1;
        if BUCKET_COUNT_MAX * self.buckets.len() < self.count && self.bits < u32::BITS {
            self.split();
        }
    }

    fn split(&mut self) {
        self.bits += 1;
        let (bits, old) = (self.bits, std::mem::take(&mut self.buckets));
        let is_low = |pair: &Pair| pair.0 >> (u64::BITS - bits) & 1 == 0;
        self.buckets.reserve_exact(old.len() * 2);
        for bucket in old {
            let (low, high) = bucket.split_at(bucket.partition_point(is_low));
            self.buckets.extend([low.to_vec(), high.to_vec()]);
        }
    }

    fn places(&self, from: Pair, to: Pair) -> (usize, Range<usize>) {
        let position = self.bucket(from);
        let bucket = &self.buckets[position];
        // The rest of a pair gives its place within the bucket.
        let guess = interpolation::guess(from.0 << self.bits, 0, u64::MAX, bucket.len());
        let start = interpolation::count_before(bucket.len(), guess, |place| bucket[place] < from);
        let count = bucket[start..].iter().take_while(|pair| **pair <= to).count();
        (position, start..start + count)
    }

    /// Those of names that begin so, ascending.
    pub(super) fn alike(&self, beginning: NameBeginning) -> &[Pair] {
        let (from, to) = alike_range(beginning).into_inner();
        let (bucket, places) = self.places(from, to);
        &self.buckets[bucket][places]
    }

    /// How often `pair` is there.
    pub(super) fn count_of(&self, pair: Pair) -> usize {
        self.places(pair, pair).1.len()
    }

    /// Takes one such pair away. Returns whether there was one.
    pub(super) fn remove(&mut self, pair: Pair) -> bool {
        let (bucket, places) = self.places(pair, pair);
        if !places.is_empty() {
            self.buckets[bucket].remove(places.start);
            self.count -= 1;
        }
        !places.is_empty()
    }
}
