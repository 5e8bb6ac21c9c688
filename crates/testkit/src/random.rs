//! Seeded randomness, and the loop that runs a property for many seeds.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::time::{Duration, Instant};

/// SplitMix64: small, seedable, good enough to choose test cases.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The same seed gives the same numbers on every machine.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Begins with a fresh seed, which is printed; the environment says another ([`seeds`]).
    pub fn fresh() -> Random {
        let seed = seeds(1).start;
        eprintln!("FROND_SEED={seed}");
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

/// Runs `property` once for each of `count` seeds ([`seeds`]); a failure prints its seed, with
/// which the environment variable `FROND_SEED` runs it alone. For the rare long run,
/// `FROND_SEED_SECONDS` goes on for so long.
pub fn for_seeds(count: u64, mut property: impl FnMut(Random)) {
    let seconds = number("FROND_SEED_SECONDS").filter(|_| number("FROND_SEED").is_none());
    let seeds = match seconds {
        Some(_) => first()..u64::MAX,
        None => seeds(count),
    };
    let (begun, most) = (Instant::now(), seconds.map(Duration::from_secs));
    for seed in seeds {
        if most.is_some_and(|most| most <= begun.elapsed()) {
            break;
        }
        let guard = PrintSeed(seed);
        property(Random::new(seed));
        std::mem::forget(guard);
    }
}

/// Asserts that a run of all its seeds met `what` so often at least, and prints how often it did.
/// One seed alone, or as many as fit into a time, may have met nothing.
///
/// Seeds are fresh, so what is asked for lies far below what whole runs print: so far that chance
/// alone leads there less than once in a million runs.
pub fn assert_met(what: &str, count: impl TryInto<u64>, least: u64) {
    let count = count.try_into().ok().expect("a count is neither negative nor larger than a u64");
    eprintln!("met {what}: {count}, at least {least}");
    let is_whole = ["FROND_SEED", "FROND_SEED_SECONDS"].iter().all(|name| number(name).is_none());
    assert!(!is_whole || least <= count, "{what}: {count}, and not {least}");
}

/// `count` seeds in a row. The first is another one in each process, and printed, unless
/// `FROND_SEED_FROM` says it, as `cargo xtask ci` does; `FROND_SEED` says the only one, and
/// `FROND_SEED_TIMES` makes it so many times as many.
pub fn seeds(count: u64) -> Range<u64> {
    if let Some(only) = number("FROND_SEED") {
        return only..only + 1;
    }
    let first = first();
    eprintln!("FROND_SEED_FROM={first}");
    first..first.saturating_add(count.saturating_mul(number("FROND_SEED_TIMES").unwrap_or(1)))
}

fn first() -> u64 {
    // Standard maps are seeded by the system; 32 bits are enough, and short to type.
    let fresh = || RandomState::new().hash_one(()) >> 32;
    number("FROND_SEED_FROM").unwrap_or_else(fresh)
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

struct PrintSeed(u64);

impl Drop for PrintSeed {
    fn drop(&mut self) {
        eprintln!("failed with FROND_SEED={}", self.0);
    }
}
