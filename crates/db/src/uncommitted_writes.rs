//! The writes to branches since they were last committed: in memory, and only as a hint for
//! policies where to look.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

/// The record that is kept between two runs.
///
/// *Thread safety*: any number of threads. Neither lock is held while the other is taken.
#[derive(Default)]
pub struct UncommittedWrites {
    /// Databases with a policy, and whether their branches were looked at since the opening.
    watched: RwLock<HashSet<String>>,
    new: Mutex<HashSet<String>>,
    /// The writes, by database and branch, since the last commit.
    changed: Mutex<BTreeMap<(String, String), Changed>>,
    /// Whether any branch takes no direct writes; never taken back.
    some_closed: AtomicBool,
}

/// The writes to a branch.
#[derive(Clone, Copy, Default, Debug)]
pub struct Changed {
    /// The bytes.
    pub bytes: u64,
    /// The time when the first of it was.
    pub since_millis: i64,
}

impl UncommittedWrites {
    /// A database got a policy, or lost it.
    pub fn watch(&self, database: &str, has_policy: bool) {
        let mut watched = self.watched.write().unwrap_or_else(PoisonError::into_inner);
        if has_policy {
            watched.insert(database.to_owned());
        } else {
            watched.remove(database);
        }
        drop(watched);
        if has_policy {
            self.new.lock().unwrap_or_else(PoisonError::into_inner).insert(database.to_owned());
        }
    }

    /// Whether a database has a policy.
    pub fn watches(&self, database: &str) -> bool {
        self.watched.read().unwrap_or_else(PoisonError::into_inner).contains(database)
    }

    /// Notes a write of about so many bytes, which is visible.
    pub fn note(&self, database: &str, branch: &str, bytes: u64, now_millis: impl Fn() -> i64) {
        if bytes == 0 || !self.watches(database) {
            return;
        }
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Changed { bytes: 0, since_millis: now_millis() };
        let key = (database.to_owned(), branch.to_owned());
        changed.entry(key).or_insert_with(fresh).bytes += bytes;
    }

    /// Notes that a branch takes no direct writes.
    pub fn note_closed(&self) {
        self.some_closed.store(true, Ordering::Release);
    }

    /// Whether any branch may take no direct writes.
    pub fn some_closed(&self) -> bool {
        self.some_closed.load(Ordering::Acquire)
    }

    /// Takes the databases whose branches were not looked at since they got a policy.
    pub fn take_new(&self) -> HashSet<String> {
        std::mem::take(&mut *self.new.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the noted writes, by database and branch.
    pub fn all_changed(&self) -> Vec<((String, String), Changed)> {
        let changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        changed.iter().map(|(key, changed)| (key.clone(), *changed)).collect()
    }

    /// Gives what was noted of a branch to its new name.
    pub fn rename(&self, database: &str, old: &str, new: &str) {
        let key = |branch: &str| (database.to_owned(), branch.to_owned());
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(moved) = changed.remove(&key(old)) else { return };
        // It may have been written to under the new name already.
        let known = changed.entry(key(new)).or_insert(Changed { bytes: 0, ..moved });
        known.bytes += moved.bytes;
        known.since_millis = known.since_millis.min(moved.since_millis);
    }

    /// Takes what was noted of a branch: it is about to be committed.
    pub fn take(&self, key: &(String, String)) {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}
