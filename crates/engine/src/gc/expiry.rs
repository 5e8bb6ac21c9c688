//! Limits the age of snapshots, and the memory that they keep together.
//!
//! A snapshot keeps the State of its moment: memtables in memory, bases and runs on the disk.
//! Folding and collection go on beside it, but can't give back what it keeps. So a State that was
//! replaced longer ago than
//! [`EngineOptions::snapshot_seconds_max`](crate::EngineOptions::snapshot_seconds_max) *expires*:
//! first it is marked, then its memtables are emptied and collections take no notice of it any
//! more. A reader looks at the mark after having read: as long as it isn't set, nothing was
//! missing. A snapshot of a State that nothing has replaced stays good, however old it is.
//!
//! While others write, each snapshot that stays open keeps memtables that no other one keeps. So
//! after each flush the oldest States expire too, until what was flushed and is kept for readers
//! takes at most [`EngineOptions::snapshots_bytes_max`](crate::EngineOptions::snapshots_bytes_max).
//!
//! A transaction whose snapshot expired can't read any more, but can commit: conflicts are found
//! without the State.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::shared::Shared;
use crate::state::State;

impl Shared {
    /// Lets go of States that were replaced at least `expiry` ago; returns whether any is still
    /// held.
    pub fn expire_states(&self, age: Duration) -> bool {
        let expired = self.current.expire(age);
        self.clear_memtables_of(&expired);
        !expired.is_empty()
    }

    /// Lets the oldest States go, until the memtables that were flushed and are kept for readers
    /// take at most `bytes_max`.
    pub fn expire_states_above(&self, bytes_max: u64) {
        let held = self.readable_states();
        let Some((latest, replaced)) = held.split_last() else { return };
        let mut known: HashSet<_> = latest.memtables().map(Arc::as_ptr).collect();
        let mut bytes = 0;
        let mut fits = |state: &Arc<State>| {
            let new = state.memtables().filter(|memtable| known.insert(Arc::as_ptr(memtable)));
            bytes += new.map(|memtable| memtable.bytes()).sum::<u64>();
            bytes <= bytes_max
        };
        // The newest first. Above the limit nothing is gained by those that keep nothing of their
        // own.
        let fitting = replaced.iter().rev().take_while(|state| fits(state)).count();
        let expired = &replaced[..replaced.len() - fitting];
        expired.iter().for_each(|state| state.expiry.expire());
        self.clear_memtables_of(expired);
    }

    /// Gives back the memory of what only States keep that have expired.
    fn clear_memtables_of(&self, expired: &[Arc<State>]) {
        if expired.is_empty() {
            return;
        }
        let held = self.readable_states();
        let kept: HashSet<_> =
            held.iter().flat_map(|state| state.memtables().map(Arc::as_ptr)).collect();
        for memtable in expired.iter().flat_map(|state| state.memtables()) {
            if !kept.contains(&Arc::as_ptr(memtable)) {
                memtable.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use frond_testkit::SimDisk;
    use frond_tree::{Bounds, Direction, Tree, Value};

    use super::*;
    use crate::{Durability, Engine, EngineError, EngineOptions, TreeId};

    fn put(engine: &Engine, tree: TreeId, text: &'static str) {
        let mut transaction = engine.begin();
        transaction.put(tree, Bytes::from(text), Value::inline(text)).unwrap();
        transaction.commit(Durability::Synced).unwrap();
    }

    #[test]
    fn a_snapshot_that_is_too_old_says_so_and_keeps_nothing() {
        let options = EngineOptions { fold_threads: 0, ..EngineOptions::default() };
        let engine = Engine::open(&SimDisk::new(1).machine(), options).unwrap();
        let tree = engine.reserve_tree_id();
        let mut transaction = engine.begin();
        let empty = Tree::empty(&**engine.store(), engine.local_format()).unwrap();
        transaction.set_base(tree, empty).unwrap();
        transaction.commit(Durability::Synced).unwrap();
        put(&engine, tree, "a");
        put(&engine, tree, "b");

        let snapshot = engine.snapshot();
        let all = || snapshot.range(tree, Bounds::all(), Direction::Ascending).unwrap();
        let (mut begun, untouched) = (all(), all());
        assert!(begun.step().unwrap());
        let mut writing = engine.begin();
        assert!(writing.get(tree, b"a").unwrap().is_some());
        // Nothing has replaced its State yet.
        assert!(!engine.shared().expire_states(Duration::ZERO));
        engine.flush().unwrap();
        put(&engine, tree, "c");
        engine.checkpoint().unwrap();
        assert!(!engine.shared().expire_states(Duration::from_secs(3600)));
        assert_eq!(snapshot.get(tree, b"a").unwrap(), Some(Value::inline("a")));

        assert!(engine.shared().expire_states(Duration::ZERO));
        let too_old = |error: EngineError| matches!(error, EngineError::SnapshotTooOld);
        assert!(too_old(snapshot.get(tree, b"a").unwrap_err()));
        assert!(too_old(snapshot.count(tree).unwrap_err()));
        assert!(too_old(begun.step().unwrap_err()));
        assert!(untouched.last().unwrap().is_err_and(too_old));
        assert!(too_old(engine.fold(&snapshot, &[tree]).unwrap_err()));
        assert_eq!(engine.shared().readable_states().len(), 1);
        assert!(snapshot.state().memtables().all(|memtable| memtable.trees().is_empty()));

        assert!(too_old(writing.get(tree, b"b").unwrap_err()));
        writing.put(tree, Bytes::from("d"), Value::inline("d")).unwrap();
        writing.commit(Durability::Synced).unwrap();
        assert_eq!(engine.snapshot().count(tree).unwrap(), 4);
        engine.check().unwrap();
    }

    #[test]
    fn memory_kept_by_snapshots_is_bounded_and_the_oldest_expire_first() {
        let options = EngineOptions {
            fold_threads: 0,
            snapshots_bytes_max: 10_000,
            ..EngineOptions::default()
        };
        let engine = Engine::open(&SimDisk::new(1).machine(), options).unwrap();
        let tree = engine.reserve_tree_id();
        let mut transaction = engine.begin();
        let empty = Tree::empty(&**engine.store(), engine.local_format()).unwrap();
        transaction.set_base(tree, empty).unwrap();
        transaction.commit(Durability::Synced).unwrap();
        let text: &'static str = "some three thousand bytes ".repeat(120).leak();
        let mut snapshots = Vec::new();
        for _ in 0..10 {
            put(&engine, tree, text);
            // Two of one moment keep no more than one.
            snapshots.extend([engine.snapshot(), engine.snapshot()]);
            engine.flush().unwrap();
        }
        let readable: Vec<bool> =
            snapshots.iter().map(|snapshot| snapshot.get(tree, b"a").is_ok()).collect();
        assert!(readable.is_sorted(), "{readable:?}");
        let count = readable.iter().filter(|is_readable| **is_readable).count();
        assert!((2..=6).contains(&count), "{readable:?}");
        let held = engine.shared().readable_states();
        assert_eq!(held.len(), 1 + count / 2);
        let mut memtables = snapshots[0].state().memtables();
        assert!(memtables.all(|memtable| memtable.trees().is_empty()), "its memory is given back");
    }
}
