//! Decides which reads go past the system's cache.
//!
//! While nearly all single chunks that are read through it come from a disk all the same, the next
//! ones are read past it: then memory is short, and what our cache hasn't the system's hasn't
//! either. One read in eight is a trial. So where memory isn't short, as after a start, the
//! system's cache fills at that pace, until enough of what is tried is there.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::read::latency::LatencyAverage;

/// The number of reads that may go past the system's cache of which one doesn't.
const READS_A_TRIAL: u32 = 8;
/// If more of those that went through the system's cache came from a disk, they went through it in
/// vain.
const IN_VAIN_EIGHTHS: u32 = 6;

/// Decides it by how the last trials went.
#[derive(Default)]
pub(crate) struct DirectIoPolicy {
    slow: LatencyAverage,
    reads: AtomicU32,
}

impl DirectIoPolicy {
    /// Whether the next read goes past the system's cache. One that doesn't is to be noted.
    pub(crate) fn is_taken(&self) -> bool {
        self.slow.exceeds(IN_VAIN_EIGHTHS)
            && !self.reads.fetch_add(1, Ordering::Relaxed).is_multiple_of(READS_A_TRIAL)
    }

    /// Notes a read that went through the system's cache, and whether it came from a disk.
    pub(crate) fn note(&self, is_slow: bool) {
        self.slow.note(is_slow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system whose cache has so many eighths of what is read; returns how many of a thousand
    /// reads went past it.
    fn past_of_thousand(direct_policy: &DirectIoPolicy, cached_eighths: u32) -> usize {
        let read = |number: u32| {
            let is_taken = direct_policy.is_taken();
            if !is_taken {
                // Spread over all trials.
                direct_policy.note(cached_eighths <= number.wrapping_mul(0x9e37_79b9) >> 29);
            }
            is_taken
        };
        (0..2_000).for_each(|number| _ = read(number));
        (2_000..3_000).filter(|number| read(*number)).count()
    }

    #[test]
    fn the_system_cache_is_passed_while_it_serves_nearly_nothing() {
        let direct_policy = DirectIoPolicy::default();
        for (cached_eighths, expected) in [(8, 0), (0, 875), (4, 0), (1, 875), (8, 0)] {
            let found = past_of_thousand(&direct_policy, cached_eighths);
            assert!(found.abs_diff(expected) < 50, "{cached_eighths} eighths: {found} reads");
        }
    }
}
