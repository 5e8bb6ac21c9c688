//! Reading moments that have gone by: exactly, or not at all.
//!
//! *Method*: single cases here, with flushes and folds where they hurt; random ones in `model`.
//! Then writers on several threads, each of which keeps a pair of keys equal, while readers lease
//! moments and read them again and again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use frond_engine::{Durability, Engine, EngineError, EngineOptions, Sequence, TreeId};
use frond_testkit::SimDisk;
use frond_tree::Value;

use crate::rig::{Content, QUICK, content, get, make_trees, open, put, quiet};

const MINUTE: Duration = Duration::from_secs(60);

fn write(engine: &Engine, tree: TreeId, value: &str) -> Sequence {
    let mut transaction = engine.begin();
    put(&mut transaction, tree, "k", value);
    transaction.commit(Durability::Synced).unwrap();
    engine.visible()
}

fn read_at(engine: &Engine, tree: TreeId, moment: Sequence) -> Result<Option<String>, bool> {
    match engine.snapshot_at(moment) {
        Ok(snapshot) => Ok(get(&snapshot, tree, "k")),
        Err(error) => Err(matches!(error, EngineError::SnapshotTooOld)),
    }
}

#[test]
fn leased_moments_can_be_read_again_and_others_may_be_too_old() {
    let engine = open(&SimDisk::new(1), quiet()).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let first = write(&engine, tree, "1");
    assert_eq!(engine.lease(MINUTE).sequence(), first);
    let second = write(&engine, tree, "2");
    let third = write(&engine, tree, "3");
    let all = || [first, second, third].map(|moment| read_at(&engine, tree, moment));
    let exact = ["1", "2", "3"].map(|value| Ok(Some(value.to_owned())));
    assert_eq!(all(), exact);
    engine.flush().unwrap();
    engine.checkpoint().unwrap();
    engine.reclaim(QUICK).unwrap();
    assert_eq!(all(), exact, "one lease keeps all that its State shows");
    let fourth = write(&engine, tree, "4");
    engine.flush().unwrap();
    write(&engine, tree, "5");
    assert_eq!(read_at(&engine, tree, fourth), Ok(Some("4".to_owned())), "it was the last");
    engine.flush().unwrap();
    assert_eq!(read_at(&engine, tree, fourth), Err(true), "it wasn't leased");
    assert_eq!(all(), exact);
}

#[test]
fn a_dropped_tree_is_read_as_it_was() {
    let engine = open(&SimDisk::new(1), quiet()).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let moment = write(&engine, tree, "1");
    engine.lease(MINUTE);
    let mut transaction = engine.begin();
    transaction.drop_tree(tree).unwrap();
    transaction.commit(Durability::Synced).unwrap();
    assert!(!engine.snapshot().has_tree(tree));
    for _ in 0..2 {
        assert_eq!(read_at(&engine, tree, moment), Ok(Some("1".to_owned())));
        engine.checkpoint().unwrap();
        engine.reclaim(QUICK).unwrap();
    }
}

#[test]
fn a_moment_to_come_is_settled() {
    let engine = open(&SimDisk::new(1), quiet()).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let now = write(&engine, tree, "1");
    let ahead = Sequence(now.0 + 1000);
    assert_eq!(read_at(&engine, tree, ahead), Ok(Some("1".to_owned())));
    let later = write(&engine, tree, "2");
    assert!(ahead < later);
    assert_eq!(read_at(&engine, tree, ahead), Ok(Some("1".to_owned())));
    assert_eq!(read_at(&engine, tree, later), Ok(Some("2".to_owned())));
}

#[test]
fn forgotten_moments_and_those_before_the_opening_are_too_old() {
    let disk = SimDisk::new(1);
    let engine = open(&disk, quiet()).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let first = write(&engine, tree, "1");
    engine.lease(MINUTE);
    let second = write(&engine, tree, "2");
    engine.forget_past();
    assert_eq!(read_at(&engine, tree, first), Err(true), "though the memtable has it");
    assert_eq!(read_at(&engine, tree, second), Ok(Some("2".to_owned())));
    let mut lost = engine.begin();
    put(&mut lost, tree, "k", "lost");
    lost.commit(Durability::Relaxed).unwrap();
    let lost = engine.lease(MINUTE).sequence();
    let engine = open(&disk.crash(), quiet()).unwrap();
    assert_eq!(read_at(&engine, tree, first), Err(true));
    assert_eq!(read_at(&engine, tree, second), Ok(Some("2".to_owned())));
    assert_eq!(read_at(&engine, tree, lost), Err(true), "a crash took what it showed");
}

#[test]
fn leases_are_kept_within_the_budget_of_snapshots() {
    let options = EngineOptions { fold_threads: 0, snapshots_bytes_max: 10_000, ..quiet() };
    let engine = open(&SimDisk::new(1), options).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let text = "some three thousand bytes ".repeat(120);
    let moments: Vec<Sequence> = (0..10)
        .map(|number| {
            let moment = write(&engine, tree, &format!("{number} {text}"));
            engine.lease(MINUTE);
            engine.flush().unwrap();
            moment
        })
        .collect();
    let found: Vec<_> = moments.iter().map(|moment| read_at(&engine, tree, *moment)).collect();
    let too_old = found.iter().take_while(|found| **found == Err(true)).count();
    assert!((4..=8).contains(&too_old), "{too_old} of 10");
    for (number, found) in found.iter().enumerate().skip(too_old) {
        let value = found.as_ref().unwrap().as_ref().unwrap();
        assert!(value.starts_with(&format!("{number} ")));
    }
}

#[test]
fn moments_hold_still_while_writers_flush_and_fold() {
    let options = EngineOptions { memtable_bytes_max: 20_000, run_count_max: 2, ..quiet() };
    let engine = open(&SimDisk::new(3), options).unwrap();
    let trees = make_trees(&engine, 2).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (engine, stop, trees) = (&engine, &stop, &trees);
        for writer in 0..2 {
            scope.spawn(move || {
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let key = Bytes::from(format!("{writer}-{:02}", number % 40));
                    let value = Value::inline(format!("{number:0100}"));
                    let mut transaction = engine.begin();
                    for tree in trees {
                        transaction.put(*tree, key.clone(), value.clone()).unwrap();
                    }
                    transaction.commit(Durability::Relaxed).unwrap();
                }
            });
        }
        let mut kept: Vec<(Sequence, Content)> = Vec::new();
        for round in 0..60 {
            let seen = kept.last().map(|(moment, _)| *moment);
            while seen == Some(engine.visible()) {
                thread::sleep(Duration::from_millis(1));
            }
            let snapshot = engine.lease(MINUTE);
            let shown = content(&snapshot, trees[0]);
            assert_eq!(shown, content(&snapshot, trees[1]), "a commit is seen whole");
            kept.push((snapshot.sequence(), shown));
            drop(snapshot);
            if round % 10 == 9 {
                engine.flush().unwrap();
                engine.reclaim(QUICK).unwrap();
            }
            for (moment, shown) in kept.iter().rev().step_by(7) {
                let again = engine.snapshot_at(*moment).unwrap();
                assert_eq!(content(&again, trees[0]), *shown, "at {moment:?}");
                assert_eq!(content(&again, trees[1]), *shown, "at {moment:?}");
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(engine.counters().flushes > 3, "it was stirred");
        assert!(engine.counters().leased_states > 1);
    });
    engine.check().unwrap();
}
