//! Seeded randomness, and the loop that runs a property for many seeds.

use std::time::{Duration, Instant};

/// SplitMix64: small, seedable, good enough to choose test cases.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The same seed gives the same numbers on every machine.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    #[expect(clippy::should_implement_trait, reason = "it never ends: an iterator would say Some")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `bound - 1`; `bound` is at least 1.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// True once in `n` calls on average.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// `count` random bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }

    /// One of `choices`, which is not empty.
    pub fn choose<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

/// Runs `property` once for each seed from 0 to `count - 1`, or for the seed in the environment
/// variable `FROND_SEED` alone; a failure prints its seed. For the rare long run, `FROND_SEED_TIMES` makes it so many times
/// as many seeds, and `FROND_SEED_SECONDS` goes on for so long; `FROND_SEED_FROM` is the first seed.
pub fn for_seeds(count: u64, mut property: impl FnMut(Random)) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("FROND_SEED_FROM").unwrap_or(0);
    let count = count.saturating_mul(number("FROND_SEED_TIMES").unwrap_or(1));
    let seeds = match (number("FROND_SEED"), number("FROND_SEED_SECONDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(_)) => first..u64::MAX,
        (None, None) => first..first.saturating_add(count),
    };
    let (begun, most) = (Instant::now(), number("FROND_SEED_SECONDS").map(Duration::from_secs));
    for seed in seeds {
        if most.is_some_and(|most| most <= begun.elapsed()) {
            break;
        }
        let guard = PrintSeed(seed);
        property(Random::new(seed));
        std::mem::forget(guard);
    }
}

struct PrintSeed(u64);

impl Drop for PrintSeed {
    fn drop(&mut self) {
        eprintln!("failed with FROND_SEED={}", self.0);
    }
}
