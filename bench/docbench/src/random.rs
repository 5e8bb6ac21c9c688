//! Numbers that look random, from a seed, and YCSB's distributions.
//!
//! splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014). The
//! Zipfian generator is Gray's (Quickly Generating Billion-Record Synthetic Databases, 1994) as
//! YCSB has it: constant 0.99; *scrambled*, the rank is drawn from ten billion and hashed by FNV
//! onto the keys; *latest*, it counts back from the newest key.

/// A generator. The same seed gives the same numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Begins at `seed`.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Another generator for each of `parts`, independent of the others.
    pub fn of(seed: u64, parts: &[u64]) -> Random {
        let mut random = Random(seed);
        for part in parts {
            random = Random(random.next() ^ part.wrapping_mul(0x2545_f491_4f6c_dd1d));
        }
        Random(random.next())
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The next one below `limit`; the bias is below limit / 2^64.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// The next one from `least` to `most`.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// Returns a number from 0 to below 1.
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The time until the next arrival of a Poisson process of `rate` a second, in seconds.
    pub fn arrival(&mut self, rate: f64) -> f64 {
        -(1.0 - self.fraction()).ln() / rate
    }

    /// `count` printable letters.
    pub fn letters(&mut self, count: usize) -> String {
        const LETTERS: &[u8; 64] =
            b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
        let mut text = String::with_capacity(count);
        let mut bits = 0;
        for position in 0..count {
            if position % 10 == 0 {
                bits = self.next();
            }
            text.push(LETTERS[(bits & 63) as usize] as char);
            bits >>= 6;
        }
        text
    }

    /// Puts `values` into a random order.
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for position in (1..values.len()).rev() {
            values.swap(position, self.below(position as u64 + 1) as usize);
        }
    }
}

/// FNV-1a over the eight bytes of a number: YCSB's hash of keys.
pub fn fnv64(mut value: u64) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for _ in 0..8 {
        hash = (hash ^ (value & 0xff)).wrapping_mul(0x0100_0000_01b3);
        value >>= 8;
    }
    hash
}

const THETA: f64 = 0.99;
/// YCSB's ranks of a scrambled Zipfian, and the sum of their weights.
const RANKS: u64 = 10_000_000_000;
const RANKS_ZETA: f64 = 26.469_028_201_783_02;

/// Ranks from 0, the first ones most often.
#[derive(Clone, Debug)]
pub struct Zipf {
    count: u64,
    zeta: f64,
    eta: f64,
    alpha: f64,
}

impl Zipf {
    /// Ranks below `count`; takes a time that grows with it.
    pub fn new(count: u64) -> Zipf {
        Zipf::with(count, (1..=count).map(|rank| (rank as f64).powf(-THETA)).sum())
    }

    /// YCSB's scrambled one, whose ranks [`scrambled`](Zipf::scrambled) spreads over keys.
    pub fn of_ycsb() -> Zipf {
        Zipf::with(RANKS, RANKS_ZETA)
    }

    fn with(count: u64, zeta: f64) -> Zipf {
        let zeta_two = 1.0 + 0.5f64.powf(THETA);
        let eta = (1.0 - (2.0 / count as f64).powf(1.0 - THETA)) / (1.0 - zeta_two / zeta);
        Zipf { count, zeta, eta, alpha: 1.0 / (1.0 - THETA) }
    }

    /// The next rank.
    pub fn next(&self, random: &mut Random) -> u64 {
        let fraction = random.fraction();
        let weight = fraction * self.zeta;
        if weight < 1.0 {
            return 0;
        }
        if weight < 1.0 + 0.5f64.powf(THETA) {
            return 1;
        }
        let rank = self.count as f64 * (self.eta * fraction - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.count - 1)
    }

    /// The next key below `count`, some keys far more often than others, spread over all.
    pub fn scrambled(&self, random: &mut Random, count: u64) -> u64 {
        fnv64(self.next(random)) % count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ranks_come_most_often() {
        let (zipf, mut random) = (Zipf::new(1_000), Random::new(1));
        let mut counts = [0u32; 1_000];
        for _ in 0..100_000 {
            counts[zipf.next(&mut random) as usize] += 1;
        }
        // 1 / zeta(1000, 0.99) is 0.129.
        assert!((12_000..14_000).contains(&counts[0]), "{}", counts[0]);
        assert!(counts[1] < counts[0] && counts[500] < counts[10], "{counts:?}");
    }

    #[test]
    fn arrivals_have_their_rate() {
        let mut random = Random::new(2);
        let sum: f64 = (0..100_000).map(|_| random.arrival(50.0)).sum();
        assert!((1_950.0..2_050.0).contains(&sum), "{sum}");
    }

    #[test]
    fn parts_of_a_seed_differ() {
        assert_ne!(Random::of(1, &[1, 2]).next(), Random::of(1, &[2, 1]).next());
        assert_eq!(Random::of(1, &[1, 2]).next(), Random::of(1, &[1, 2]).next());
    }
}
