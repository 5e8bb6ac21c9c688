//! Counts how often each index was used, for `$indexStats`, and how often a collection was read
//! whole, for `$collStats`: since the data directory was opened, or since the first time.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

/// The name, which no index has, under which it is counted that a collection was read whole.
pub(crate) const COLLECTION_SCANS: &str = "";
/// The same of tailable cursors.
pub(crate) const TAILABLE_SCANS: &str = "\0";
/// How often a collection was read whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CollectionScans {
    /// By tailable cursors.
    pub tailable: u64,
    /// By all others.
    pub others: u64,
}

/// Indexes that are counted at most.
const INDEXES_MAX: usize = 100_000;

/// The number of uses of each index. Collections are distinguished by their UUIDs.
#[derive(Default)]
pub(crate) struct IndexUsage(RwLock<HashMap<u64, AtomicU64>>);

impl IndexUsage {
    /// Counts one use of a collection's index.
    pub fn count(&self, collection: [u8; 16], index: &str) {
        let key = key(collection, index);
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = known.get(&key) {
            count.fetch_add(1, Ordering::Relaxed);
            return;
        }
        drop(known);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= INDEXES_MAX {
            known.clear();
        }
        known.entry(key).or_default().fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of uses of a collection's index.
    pub fn of(&self, collection: [u8; 16], index: &str) -> u64 {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&key(collection, index)).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

/// Two of a hundred thousand indexes share a number once in a billion data directories.
fn key(collection: [u8; 16], index: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (collection, index).hash(&mut hasher);
    hasher.finish()
}
