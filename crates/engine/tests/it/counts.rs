//! Goal: a count, whole or of a range, equals a scan of the same snapshot, whatever lies over the
//! tree. Method: some thousand keys of odd lengths; writes of a share of them, blind ones, ones
//! that say what the key had, ones of a transaction that wrote a key twice, and ones that come to
//! nothing; counts in snapshots old and new, several times each, before and after flushes, partial
//! folds, whole ones, replaced trees, openings and power cuts; then beside writers on other
//! threads. A count reads little where the writers said what keys had.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bytes::Bytes;
use frond_engine::{Durability, Engine, EngineOptions, Snapshot, Transaction, TreeId};
use frond_testkit::random::{assert_met, for_seeds};
use frond_testkit::{Random, SimDisk};
use frond_tree::{Bounds, Direction, Entry, Tree, Value};

use crate::rig::{churning, make_trees, open, quiet, small_nodes};

const KEYS: usize = 4_000;

/// Some begin with others.
fn key(number: usize) -> Bytes {
    let text = format!("{:04}", number / 2 * 2);
    Bytes::from(if number.is_multiple_of(2) { text } else { text + "suffix of an odd one" })
}

fn random_bounds(random: &mut Random) -> Bounds {
    let mut bound = || (!random.one_in(4)).then(|| key(random.below(KEYS + 10)));
    let mut bounds = Bounds { start: bound(), end: bound() };
    if random.one_in(5) {
        // A narrow one.
        let first = random.below(KEYS);
        bounds = Bounds { start: Some(key(first)), end: Some(key(first + random.below(6))) };
    }
    bounds
}

fn check(snapshot: &Snapshot, tree: TreeId, random: &mut Random) {
    let cursor = snapshot.range(tree, Bounds::all(), Direction::Ascending).unwrap();
    let keys: Vec<Bytes> = cursor.map(|entry| entry.unwrap().key).collect();
    for _ in 0..6 {
        let bounds = random_bounds(random);
        let is_within = |key: &&Bytes| {
            bounds.start.as_ref().is_none_or(|start| start <= key)
                && bounds.end.as_ref().is_none_or(|end| *key < end)
        };
        let expected = keys.iter().filter(is_within).count() as u64;
        assert_eq!(snapshot.count_range(tree, &bounds).unwrap(), expected, "{bounds:?}");
    }
    assert_eq!(snapshot.count(tree).unwrap(), keys.len() as u64);
    for direction in [Direction::Ascending, Direction::Descending] {
        check_without_first(snapshot, tree, direction, random);
    }
}

/// Checks a cursor that begins where so many keys were passed, with few left to be passed.
fn check_without_first(
    snapshot: &Snapshot,
    tree: TreeId,
    direction: Direction,
    random: &mut Random,
) {
    let bounds = random_bounds(random);
    let keys = |bounds: &Bounds| -> Vec<Bytes> {
        let cursor = snapshot.range(tree, bounds.clone(), direction).unwrap();
        cursor.map(|entry| entry.unwrap().key).collect()
    };
    let all = keys(&bounds);
    let count = random.below(all.len() + 1);
    let (left, cut) = snapshot.without_first(tree, &bounds, direction, count as u64).unwrap();
    assert!(cut <= count as u64);
    assert_eq!(keys(&left), all[cut as usize..], "{cut} of {count} within {bounds:?}");
}

/// A transaction counts what it wrote itself.
fn check_own(engine: &Engine, tree: TreeId, random: &mut Random) {
    let mut transaction = engine.begin();
    if random.one_in(4) {
        let base = Tree::empty(&**engine.store(), small_nodes()).unwrap();
        transaction.set_base(tree, base).unwrap();
    }
    for _ in 0..random.below(100) {
        let key = key(random.below(KEYS));
        match random.one_in(2) {
            true => transaction.delete(tree, key).unwrap(),
            false => transaction.put(tree, key, Value::inline("own")).unwrap(),
        }
    }
    let bounds = random_bounds(random);
    let scanned = transaction.range(tree, bounds.clone(), Direction::Ascending).unwrap().count();
    assert_eq!(transaction.count_range(tree, &bounds).unwrap(), scanned as u64);
}

/// Writes to `count` keys in one transaction, which is committed, or not.
fn write(engine: &Engine, tree: TreeId, count: usize, random: &mut Random) {
    let mut transaction = engine.begin();
    if random.one_in(2) {
        transaction.get(tree, &key(random.below(KEYS))).unwrap();
    }
    let knows = random.one_in(2);
    let span = 1 + random.below(KEYS);
    let first = random.below(KEYS - span + 1);
    for _ in 0..count {
        let key = key(first + random.below(span));
        for _ in 0..1 + random.below(2) {
            match knows {
                true => write_knowing(&mut transaction, tree, key.clone(), random),
                false if random.below(5) < 2 => transaction.delete(tree, key.clone()).unwrap(),
                false => transaction.put(tree, key.clone(), value(random)).unwrap(),
            }
        }
    }
    if random.one_in(8) {
        return;
    }
    let durability = *random.choose(&[Durability::Synced, Durability::Relaxed]);
    transaction.commit(durability).unwrap();
}

fn value(random: &mut Random) -> Value {
    let bytes = random.below(60);
    Value::inline(random.bytes(bytes))
}

/// Writes to a key, and says what it had, which the transaction has read.
fn write_knowing(transaction: &mut Transaction, tree: TreeId, key: Bytes, random: &mut Random) {
    let is_there = transaction.get(tree, &key).unwrap().is_some();
    match (is_there, random.below(4)) {
        (false, 0) => transaction.delete(tree, key),
        (false, _) => transaction.put_new(tree, key, value(random)),
        (true, 0 | 1) => transaction.delete_existing(tree, key),
        (true, 2) => transaction.put_existing(tree, key, value(random)),
        (true, _) => transaction.put_changed_existing(tree, key, value(random)),
    }
    .unwrap();
}

fn replace(engine: &Engine, tree: TreeId, random: &mut Random) {
    let entries = (0..KEYS).filter(|_| random.one_in(3)).map(|number| {
        let value = Value::inline("replaced");
        Ok(Entry { key: key(number), value })
    });
    let entries: Vec<_> = entries.collect();
    let mut transaction = engine.begin();
    let base = Tree::build(&**engine.store(), small_nodes(), &mut entries.into_iter()).unwrap();
    transaction.set_base(tree, base).unwrap();
    transaction.put(tree, key(1), Value::inline("beside")).unwrap();
    transaction.commit(Durability::Synced).unwrap();
}

#[test]
fn counts_are_those_of_scans() {
    for_seeds(20, |mut random| {
        let mut disk = SimDisk::new(random.next());
        let options = match random.below(3) {
            0 => quiet(),
            1 => EngineOptions { memtable_bytes_max: 30_000, ..churning(15) },
            _ => EngineOptions { memtable_bytes_max: 30_000, run_count_max: 6, ..churning(400) },
        };
        let mut engine = open(&disk, options).unwrap();
        let tree = make_trees(&engine, 1).unwrap()[0];
        let mut held: Vec<Snapshot> = Vec::new();
        for _ in 0..60 {
            match random.below(24) {
                0..=9 => {
                    let count = random.below(KEYS / 8);
                    write(&engine, tree, count, &mut random);
                }
                10..=12 => (0..30).for_each(|_| write(&engine, tree, 2, &mut random)),
                13 => held.push(engine.snapshot()),
                14 => drop(engine.fold(&engine.snapshot(), &[tree]).unwrap()),
                15 if random.one_in(3) => replace(&engine, tree, &mut random),
                16 => engine.checkpoint().unwrap(),
                19 => check_own(&engine, tree, &mut random),
                17 | 18 => {
                    held.clear();
                    if random.one_in(2) {
                        engine.close().unwrap();
                    }
                    disk = disk.crash();
                    drop(engine);
                    engine = open(&disk, options).unwrap();
                }
                _ => check(&engine.snapshot(), tree, &mut random),
            }
            if let Some(snapshot) = held.get(random.below(held.len().max(1))) {
                check(snapshot, tree, &mut random);
            }
        }
        check(&engine.snapshot(), tree, &mut random);
    });
}

/// Written in the order of their keys, those of one run lie side by side: the largest run alone
/// says little of where the parts of a range end.
#[test]
fn a_range_is_cut_evenly_whatever_its_entries_lie_in() {
    let mut with_runs = 0;
    for_seeds(20, |mut random| {
        let disk = SimDisk::new(random.next());
        let options = EngineOptions { run_count_max: 5, ..churning(400) };
        let engine = open(&disk, options).unwrap();
        let tree = make_trees(&engine, 1).unwrap()[0];
        let batch = 20 + random.below(50);
        for first in (0..KEYS).step_by(batch) {
            let mut transaction = engine.begin();
            for number in first..(first + batch).min(KEYS) {
                transaction.put(tree, key(number), value(&mut random)).unwrap();
            }
            transaction.commit(Durability::Relaxed).unwrap();
        }
        let snapshot = engine.snapshot();
        with_runs += usize::from(snapshot.clean_base(tree).unwrap().is_none());
        for bounds in [Bounds::all(), random_bounds(&mut random)] {
            let all = snapshot.count_range(tree, &bounds).unwrap();
            let count = 2 + random.below(14);
            let parts = snapshot.split(tree, &bounds, count).unwrap();
            assert!(parts.len() <= count, "{parts:?}");
            let (first, last) = (parts.first().unwrap(), parts.last().unwrap());
            assert_eq!((&first.start, &last.end), (&bounds.start, &bounds.end));
            let follow = |pair: &[Bounds]| pair[0].end.is_some() && pair[0].end == pair[1].start;
            assert!(parts.windows(2).all(follow), "{parts:?}");
            for part in &parts {
                let entries = snapshot.count_range(tree, part).unwrap();
                // What is in memtables isn't looked at.
                let most = all / count as u64 * 2 + 150;
                assert!(entries <= most, "{entries} of {all} in one of {count} parts");
            }
        }
    });
    assert_met("ranges over runs", with_runs, 10);
}

#[test]
fn counts_beside_writers_are_those_of_scans() {
    let disk = SimDisk::new(3);
    let options = EngineOptions { memtable_bytes_max: 60_000, ..EngineOptions::default() };
    let engine = open(&disk, options).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut random = Random::fresh();
                    for _ in 0..150 {
                        let (mut transaction, knows) = (engine.begin(), random.one_in(2));
                        for _ in 0..20 {
                            let key = key(random.below(KEYS));
                            match random.one_in(3) {
                                _ if knows => {
                                    write_knowing(&mut transaction, tree, key, &mut random);
                                }
                                true => transaction.delete(tree, key).unwrap(),
                                false => transaction.put(tree, key, Value::inline("v")).unwrap(),
                            }
                        }
                        // One that knows has read, so that it may come too late.
                        let committed = transaction.commit(Durability::Relaxed);
                        assert!(committed.is_ok() || knows);
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                let mut random = Random::fresh();
                while !done.load(Ordering::Relaxed) {
                    check(&engine.snapshot(), tree, &mut random);
                }
            });
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    check(&engine.snapshot(), tree, &mut Random::fresh());
}
