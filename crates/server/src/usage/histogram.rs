//! Counts how long commands took: sums, and how many took how long.
//!
//! Buckets are MongoDB's: powers of two up to 1,024 microseconds, then two for each power, up to
//! half an hour.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::usage::CommandTime;

/// The latency of `opLatencies` in which a command is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Latency {
    /// Queries.
    Read,
    /// Changes of documents.
    Write,
    /// All else.
    Command,
    /// Transactions of several commands, from their first command to their end.
    Transaction,
}

impl Latency {
    /// All, in the order in which they are shown.
    pub const ALL: [Latency; 4] =
        [Latency::Read, Latency::Write, Latency::Command, Latency::Transaction];

    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Latency::Read => "reads",
            Latency::Write => "writes",
            Latency::Command => "commands",
            Latency::Transaction => "transactions",
        }
    }
}

/// The power of two up to which a bucket is a power.
const WHOLE_POWER_MAX: usize = 10;
const BUCKETS: usize = 51;

/// Those powers of two that [`Latencies::below_powers`] reports: 16 microseconds to a minute.
const POWERS_SHOWN: std::ops::RangeInclusive<u64> = 1 << 4..=1 << 26;

type Buckets = [AtomicU64; BUCKETS];

/// The time that commands took, by kind.
#[derive(Default)]
#[repr(align(128))]
pub struct Latencies([Sums; Latency::ALL.len()]);

#[derive(Default)]
struct Sums {
    micros: AtomicU64,
    count: AtomicU64,
    /// Made by the first command: most collections are used in one way.
    buckets: OnceLock<Box<Buckets>>,
}

impl Latencies {
    /// Counts a command.
    pub fn count(&self, latency: Latency, micros: u64) {
        let sums = &self.0[latency as usize];
        sums.micros.fetch_add(micros, Ordering::Relaxed);
        sums.count.fetch_add(1, Ordering::Relaxed);
        let none = || Box::new(std::array::from_fn(|_| AtomicU64::new(0)));
        sums.buckets.get_or_init(none)[bucket_of(micros)].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how long commands of a kind took together.
    pub fn spent(&self, latency: Latency) -> CommandTime {
        let sums = &self.0[latency as usize];
        let micros = sums.micros.load(Ordering::Relaxed);
        CommandTime { micros, count: sums.count.load(Ordering::Relaxed) }
    }

    /// Returns how many commands of a kind took at least so many microseconds, and less than the
    /// next; empty ones are left out.
    pub fn histogram(&self, latency: Latency) -> Vec<(u64, u64)> {
        let buckets = self.0[latency as usize].buckets.get();
        let counts = buckets.into_iter().flat_map(|buckets| buckets.iter().enumerate());
        counts
            .map(|(position, count)| (least_of(position), count.load(Ordering::Relaxed)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// Returns how many commands of a kind took less than so many microseconds, for powers of two,
    /// and how many there were.
    pub fn below_powers(&self, latency: Latency) -> (Vec<(u64, u64)>, u64) {
        let buckets = self.0[latency as usize].buckets.get();
        let counts: [u64; BUCKETS] = std::array::from_fn(|position| {
            buckets.map_or(0, |buckets| buckets[position].load(Ordering::Relaxed))
        });
        let mut below = Vec::new();
        let mut sum = 0;
        for (position, count) in counts.iter().enumerate() {
            let least = least_of(position);
            if least.is_power_of_two() && POWERS_SHOWN.contains(&least) {
                below.push((least, sum));
            }
            sum += count;
        }
        (below, sum)
    }
}

fn bucket_of(micros: u64) -> usize {
    let power = micros.max(1).ilog2() as usize;
    if power <= WHOLE_POWER_MAX {
        return power;
    }
    let upper_half = micros >> (power - 1) & 1;
    let position = WHOLE_POWER_MAX + 1 + (power - WHOLE_POWER_MAX - 1) * 2 + upper_half as usize;
    position.min(BUCKETS - 1)
}

/// The least that falls into a bucket.
fn least_of(position: usize) -> u64 {
    if position == 0 {
        return 0;
    }
    if position <= WHOLE_POWER_MAX {
        return 1 << position;
    }
    let above = position - WHOLE_POWER_MAX - 1;
    let power = 1 << (WHOLE_POWER_MAX + 1 + above / 2);
    power + power / 2 * (above as u64 % 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_begins_where_the_one_before_ends() {
        for position in 1..BUCKETS {
            let least = least_of(position);
            assert_eq!((bucket_of(least - 1), bucket_of(least)), (position - 1, position));
        }
        assert_eq!((bucket_of(0), bucket_of(u64::MAX)), (0, BUCKETS - 1));
        let firsts: Vec<u64> = (9..14).map(least_of).collect();
        assert_eq!(firsts, [512, 1_024, 2_048, 3_072, 4_096]);
    }

    #[test]
    fn commands_fall_into_their_buckets() {
        let latencies = Latencies::default();
        assert_eq!(latencies.histogram(Latency::Read), []);
        for micros in [0, 1, 3, 2_500] {
            latencies.count(Latency::Read, micros);
        }
        assert_eq!(latencies.histogram(Latency::Read), [(0, 2), (2, 1), (2_048, 1)]);
        assert_eq!(latencies.spent(Latency::Read), CommandTime { micros: 2_504, count: 4 });
        assert_eq!(latencies.spent(Latency::Write), CommandTime::default());
        latencies.count(Latency::Read, 16);
        latencies.count(Latency::Read, u64::MAX);
        let (below, all) = latencies.below_powers(Latency::Read);
        assert_eq!((below.first(), below.last(), all), (Some(&(16, 3)), Some(&(1 << 26, 5)), 6));
        assert!(below.windows(2).all(|pair| pair[0].0 * 2 == pair[1].0 && pair[0].1 <= pair[1].1));
        assert_eq!(latencies.below_powers(Latency::Write).1, 0);
    }
}
