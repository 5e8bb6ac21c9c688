//! Folds at moments that only a test without background threads can choose.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use frond_store::local::{LocalOptions, LocalStore};
use frond_testkit::SimDisk;
use frond_tree::{Tree, Value};

use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::options::EngineOptions;
use crate::recovery;
use crate::shared::Shared;
use crate::transaction::held_locks::LockMode;
use crate::transaction::{Durability, Transaction};

const FIRST: TreeId = TreeId(2);
const SECOND: TreeId = TreeId(3);

fn open(disk: &SimDisk) -> Arc<Shared> {
    open_with(disk, EngineOptions::default())
}

fn open_with(disk: &SimDisk, options: EngineOptions) -> Arc<Shared> {
    let machine = disk.machine();
    let store = LocalStore::open(&machine, LocalOptions::default()).unwrap();
    Arc::new(recovery::open(&machine, store, options).unwrap())
}

/// An engine with two empty trees.
fn open_with_trees(disk: &SimDisk) -> Arc<Shared> {
    with_trees(open(disk))
}

fn with_trees(shared: Arc<Shared>) -> Arc<Shared> {
    let base = Tree::empty(&*shared.store, shared.local_format).unwrap();
    commit(&shared, Durability::Synced, |transaction| {
        for expected in [FIRST, SECOND] {
            assert_eq!(shared.tree_ids.reserve(), expected);
            transaction.set_base(expected, base).unwrap();
        }
    });
    shared
}

fn commit(
    shared: &Arc<Shared>,
    durability: Durability,
    change: impl FnOnce(&mut Transaction),
) -> Sequence {
    let mut transaction = Transaction::begin(Arc::clone(shared), LockMode::default());
    change(&mut transaction);
    transaction.commit(durability).unwrap()
}

/// Writes `text` at one key of both trees.
fn write_both(shared: &Arc<Shared>, durability: Durability, text: &'static str) -> Sequence {
    commit(shared, durability, |transaction| {
        for tree in [FIRST, SECOND] {
            transaction.put(tree, Bytes::from("key"), Value::inline(text)).unwrap();
        }
    })
}

fn seal(shared: &Shared) {
    shared.seal(&mut shared.queue());
}

/// Returns the values that both trees hold at the key.
fn read_both(shared: &Shared) -> [Option<Value>; 2] {
    let snapshot = shared.snapshot();
    [FIRST, SECOND].map(|tree| snapshot.get(tree, b"key").unwrap())
}

fn both(text: &'static str) -> [Option<Value>; 2] {
    [Some(Value::inline(text)), Some(Value::inline(text))]
}

#[test]
fn a_base_beyond_the_horizon_is_published_only_once_the_log_reaches_it() {
    // Beginning the segment would sync what waits, too.
    for has_segment in [false, true] {
        let disk = SimDisk::new(1);
        let shared = open_with_trees(&disk);
        write_both(&shared, Durability::Synced, "old");
        seal(&shared);
        if has_segment {
            write_both(&shared, Durability::Synced, "newer");
        }
        // Relaxed: visible, but only in memory. A version commit of one of the trees folds it.
        write_both(&shared, Durability::Relaxed, "new");
        shared.fold(&shared.snapshot(), &[FIRST]).unwrap();
        assert!(shared.flush_sealed().unwrap());
        shared.check().unwrap();
        let beyond = shared.publisher().beyond.clone();
        assert!(beyond.contains_key(&FIRST));
        let restarted = open(&disk.crash());
        assert_eq!(restarted.publisher().beyond, beyond, "no moment by itself, then as before");
        assert_eq!(read_both(&restarted), both("new"), "not half of the relaxed transaction");
        restarted.check().unwrap();
    }
}

#[test]
fn an_era_that_begins_after_the_horizon_is_published_by_the_next_fold() {
    check_later_era(|_| {});
    check_later_era(|shared| shared.checkpoint().unwrap());
}

/// `before_restart` folds again, or leaves that to the restart.
fn check_later_era(before_restart: impl Fn(&Shared)) {
    let mut disk = SimDisk::new(2);
    let shared = open_with_trees(&disk);
    write_both(&shared, Durability::Synced, "old");
    let old = shared.fold(&shared.snapshot(), &[FIRST]).unwrap()[0];
    seal(&shared);
    let replacing = commit(&shared, Durability::Synced, |transaction| {
        transaction.set_base(FIRST, old).unwrap();
        transaction.put(FIRST, Bytes::from("more"), Value::inline("x")).unwrap();
        transaction.drop_tree(SECOND).unwrap();
    });
    // Folds the new generation, while the old one still waits to be published.
    let folded = shared.fold(&shared.snapshot(), &[FIRST]).unwrap()[0];
    assert!(shared.flush_sealed().unwrap());
    let (state, _) = shared.current();
    let newest = state.generation(FIRST, replacing).unwrap();
    assert_eq!((newest.from, *newest.base.as_ref().unwrap().tree), (replacing, folded));
    assert_eq!(
        *state.generation(FIRST, replacing.preceding()).unwrap().base.as_ref().unwrap().tree,
        old
    );
    before_restart(&shared);
    for _ in 0..2 {
        disk = disk.crash();
        let shared = open(&disk);
        let snapshot = shared.snapshot();
        assert_eq!(snapshot.get(FIRST, b"more").unwrap(), Some(Value::inline("x")));
        assert_eq!(snapshot.get(FIRST, b"key").unwrap(), Some(Value::inline("old")));
        assert!(!snapshot.has_tree(SECOND));
        shared.checkpoint().unwrap();
        assert_eq!(shared.snapshot().clean_base(FIRST).unwrap(), Some(folded));
        assert!(shared.current().0.trees.get(SECOND).is_empty());
        shared.check().unwrap();
    }
}

#[test]
fn several_sealed_memtables_are_folded_at_once_and_their_segments_removed() {
    let disk = SimDisk::new(3);
    let shared = open_with_trees(&disk);
    for text in ["a", "b"] {
        write_both(&shared, Durability::Synced, text);
        seal(&shared);
    }
    let before = shared.snapshot();
    write_both(&shared, Durability::Synced, "d");
    let logs = |disk: &SimDisk| {
        use frond_store::io::Disk;
        let names = disk.list().unwrap();
        names.into_iter().filter(|name| name.starts_with("log-")).collect::<Vec<_>>()
    };
    assert_eq!(logs(&disk).len(), 3);
    assert!(shared.flush_sealed().unwrap());
    assert!(!shared.flush_sealed().unwrap());
    assert_eq!(logs(&disk), ["log-0000000003"]);
    assert_eq!(read_both(&shared), both("d"));
    assert_eq!(before.get(FIRST, b"key").unwrap(), Some(Value::inline("b")));
    shared.checkpoint().unwrap();
    assert_eq!(logs(&disk), ["log-0000000004"]);
    assert_eq!(read_both(&open(&disk.crash())), both("d"));
}

#[test]
fn a_fold_that_is_stopped_changes_nothing() {
    const KEYS: u32 = 5_000;
    let disk = SimDisk::new(5);
    let shared = open_with_trees(&disk);
    commit(&shared, Durability::Synced, |transaction| {
        for (number, tree) in (0..KEYS).flat_map(|number| [(number, FIRST), (number, SECOND)]) {
            let key = Bytes::copy_from_slice(&number.to_be_bytes());
            transaction.put(tree, key, Value::inline(vec![1_u8; 100])).unwrap();
        }
    });
    let before = shared.snapshot();
    let mut stopped = 0;
    let folded = loop {
        let (checks, checks_max) = (AtomicU64::new(0), stopped);
        let keep_going = move || checks.fetch_add(1, Ordering::Relaxed) < checks_max;
        let snapshot = shared.snapshot().asking(Arc::new(keep_going));
        match shared.fold(&snapshot, &[FIRST, SECOND]) {
            Ok(folded) => break folded,
            Err(error) => assert!(matches!(error, EngineError::Interrupted), "{error}"),
        }
        assert_eq!(shared.snapshot().clean_base(FIRST).unwrap(), None, "nothing was folded");
        shared.check().unwrap();
        stopped += 1;
    };
    assert_eq!(stopped, 2 * u64::from(KEYS).div_ceil(1024), "it asks in both trees");
    assert_eq!(folded, shared.fold(&before, &[FIRST, SECOND]).unwrap());
    assert_eq!(folded[0].count(&*shared.store).unwrap(), u64::from(KEYS));
    let restarted = open(&disk.crash());
    restarted.check().unwrap();
    restarted.checkpoint().unwrap();
    assert_eq!(restarted.snapshot().clean_base(SECOND).unwrap(), Some(folded[1]));
}

#[test]
fn a_version_commit_takes_over_what_steps_have_done() {
    let (whole, read_for_all) = fold_after_steps(0);
    let (taken_over, read_for_rest) = fold_after_steps(30);
    assert_eq!(taken_over, whole);
    assert!(read_for_rest * 3 < read_for_all * 2, "{read_for_rest} and {read_for_all} chunks");
}

/// Folds a tree after some steps of folding it, with newer edits in its way; returns what became of
/// it, and how many chunks that read.
fn fold_after_steps(steps: usize) -> (Tree, u64) {
    let options = EngineOptions { memtable_bytes_max: 16 << 10, ..EngineOptions::default() };
    let shared = with_trees(open_with(&SimDisk::new(4), options));
    let write = |numbers: &mut dyn Iterator<Item = u32>, round: u8| {
        commit(&shared, Durability::Synced, |transaction| {
            for number in numbers {
                let key = Bytes::copy_from_slice(&number.to_be_bytes());
                let value = Value::inline(vec![number as u8 ^ round; 100]);
                if (number + u32::from(round)).is_multiple_of(9) {
                    transaction.delete(FIRST, key).unwrap();
                } else {
                    transaction.put(FIRST, key, value).unwrap();
                }
            }
        });
        seal(&shared);
        while shared.flush_sealed().unwrap() {}
    };
    write(&mut (0..4_000), 0);
    shared.checkpoint().unwrap();
    write(&mut (0..4_000).step_by(3), 1);
    for _ in 0..steps {
        assert!(shared.work_once().unwrap());
    }
    let (state, _) = shared.current();
    let base = state.trees.get(FIRST)[0].base.as_ref().unwrap();
    assert_eq!(shared.is_folding(FIRST, base), steps > 0);
    drop(state);
    // Before and behind the steps' cursor.
    write(&mut (0..4_000).step_by(333), 2);
    assert_eq!(shared.current().0.run_count(), 2);
    let before = shared.store.counters().chunks_read;
    let folded = shared.fold(&shared.snapshot(), &[FIRST]).unwrap()[0];
    let read = shared.store.counters().chunks_read - before;
    assert_eq!(shared.current().0.run_count(), 0);
    shared.check().unwrap();
    (folded, read)
}
