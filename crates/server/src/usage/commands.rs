//! Counts how often each command ran, and how often it failed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;

/// The counters of one command lie apart from those of others: threads that run something else
/// aren't slowed.
#[derive(Default)]
#[repr(align(128))]
struct Counts {
    total: AtomicU64,
    failed: AtomicU64,
}

/// The number of runs of each of a list of commands.
#[derive(Default)]
pub struct CommandCounts {
    counts: HashMap<&'static str, Counts, RandomState>,
}

impl CommandCounts {
    /// Counts commands of these names.
    pub fn of(names: impl Iterator<Item = &'static str>) -> CommandCounts {
        CommandCounts { counts: names.map(|name| (name, Counts::default())).collect() }
    }

    /// Counts a command that has ended.
    pub fn count(&self, command: &str, has_failed: bool) {
        if let Some(counts) = self.counts.get(command) {
            counts.total.fetch_add(1, Ordering::Relaxed);
            counts.failed.fetch_add(u64::from(has_failed), Ordering::Relaxed);
        }
    }

    /// The commands that ran: their names, how often, and how often they failed, by name.
    pub fn list(&self) -> Vec<(&'static str, u64, u64)> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = self.counts.iter();
        let mut list: Vec<_> = counts
            .map(|(name, counts)| (*name, read(&counts.total), read(&counts.failed)))
            .filter(|(_, total, _)| 0 < *total)
            .collect();
        list.sort_unstable();
        list
    }
}
