//! Goal: failures in the background are reported, retried ever more seldom, and hold up nothing
//! else.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use frond_engine::{Durability, Engine, EngineError, EngineOptions, Image, ReclaimOptions, TreeId};
use frond_store::local::{LocalOptions, LocalStore};
use frond_store::{ChunkStore, StoreError};
use frond_testkit::{Random, SimDisk};
use frond_tree::Value;

use crate::rig::{make_trees, open, quiet};

const ENTRY_COUNT: usize = 3_000;
/// Short enough to lie in the leaf, and not to be compared with what was there.
const VALUE_BYTES: usize = 100;
/// Waiting for longer than this is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

fn key(number: usize) -> Bytes {
    Bytes::copy_from_slice(&(number as u64).to_be_bytes())
}

/// Puts random values.
fn put(engine: &Engine, trees: &[TreeId], numbers: &[usize], random: &mut Random) -> Vec<Bytes> {
    let mut transaction = engine.begin();
    let mut values = Vec::new();
    for number in numbers {
        let value = Bytes::from(random.bytes(VALUE_BYTES));
        for tree in trees {
            transaction.put(*tree, key(*number), Value::inline(value.clone())).unwrap();
        }
        values.push(value);
    }
    transaction.commit(Default::default()).unwrap();
    values
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        thread::yield_now();
    }
}

/// The file that has `bytes`, and which of its bits begins them.
fn place_of(disk: &SimDisk, bytes: &[u8]) -> (String, u64) {
    let names = disk.machine().disk.list().unwrap();
    for name in names.into_iter().filter(|name| name.ends_with(".pack")) {
        let contents = disk.contents(&name).unwrap();
        if let Some(place) = contents.windows(bytes.len()).position(|window| window == bytes) {
            return (name, place as u64 * 8);
        }
    }
    panic!("no pack has these bytes");
}

#[test]
fn a_fold_that_fails_is_reported_once_and_put_off_while_others_go_on() {
    let (disk, mut random) = (SimDisk::new(1), Random::new(1));
    let options = EngineOptions { memtable_bytes_max: 48_000, ..quiet() };
    let engine = open(&disk, options).unwrap();
    let trees = make_trees(&engine, 2).unwrap();
    let all: Vec<usize> = (0..ENTRY_COUNT).collect();
    let values = put(&engine, &trees[..1], &all, &mut random);
    put(&engine, &trees[1..], &all, &mut random);
    engine.checkpoint().unwrap();
    engine.close().unwrap();
    drop(engine);

    let broken = ENTRY_COUNT / 2;
    let (pack, bit) = place_of(&disk, &values[broken][..16]);
    let engine = open(&disk, options).unwrap();
    disk.flip_bit(&pack, bit);
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let reported = Arc::clone(&lines);
    // Damage is reported in lines of its own.
    let is_finding = |line: &str| line.starts_with("stored data are damaged");
    engine.on_failure(move |line| {
        if !is_finding(line) {
            reported.lock().unwrap().push(line.to_owned());
        }
    });
    let begun = Instant::now();
    for _ in 0..20 {
        let mut numbers: Vec<usize> = (0..60).map(|_| random.below(ENTRY_COUNT)).collect();
        numbers.push(broken);
        put(&engine, &trees, &numbers, &mut random);
    }
    wait_until("failures", || 3 <= engine.counters().background_failures);
    // Finding out what a tree needs and doing it are put off apart: of three two are the same.
    assert!(Duration::from_millis(100) <= begun.elapsed(), "what failed is tried after a pause");
    wait_until("a round of folding the other tree", || {
        let numbers: Vec<usize> = (0..60).map(|_| random.below(ENTRY_COUNT)).collect();
        put(&engine, &trees[1..], &numbers, &mut random);
        1 <= engine.counters().folds
    });
    let failure = engine.last_failure().unwrap();
    assert!(failure.work == "fold" && failure.message.contains(&pack), "{failure:?}");
    assert_eq!(lines.lock().unwrap().len(), 1, "{lines:?}");
    assert!(lines.lock().unwrap()[0].contains(&failure.message));
    assert!(!engine.is_at_rest().unwrap());

    disk.flip_bit(&pack, bit);
    wait_until("rest", || engine.is_at_rest().unwrap());
    wait_until("the end is told", || lines.lock().unwrap().len() == 2);
    engine.check().unwrap();
}

#[test]
fn a_check_finds_a_chunk_of_a_tree_that_is_damaged() {
    let (disk, mut random) = (SimDisk::new(4), Random::new(4));
    let engine = open(&disk, quiet()).unwrap();
    let trees = make_trees(&engine, 1).unwrap();
    let all: Vec<usize> = (0..300).collect();
    let values = put(&engine, &trees, &all, &mut random);
    engine.checkpoint().unwrap();
    engine.check().unwrap();
    engine.close().unwrap();
    drop(engine);
    let (pack, bit) = place_of(&disk, &values[150][..16]);
    disk.flip_bit(&pack, bit);
    let engine = open(&disk, quiet()).unwrap();
    let error = engine.check().expect_err("a bit turned over");
    assert!(error.to_string().contains(&pack), "{error}");
    disk.flip_bit(&pack, bit);
    engine.check().unwrap();
}

/// It is tried again until there is room, and then it is durable.
/// After a collection, too, which begins the file of copies anew.
#[test]
fn metadata_chunks_are_read_from_their_second_copy() {
    for collects in [false, true] {
        let disk = SimDisk::new(31);
        let engine = open(&disk, quiet()).unwrap();
        let values = put(&engine, &[TreeId::SYSTEM], &[1], &mut Random::new(31));
        engine.checkpoint().unwrap();
        if collects {
            engine.reclaim(ReclaimOptions { thorough: true, ..Default::default() }).unwrap();
        }
        engine.close().unwrap();
        drop(engine);
        let (file, bit) = place_of(&disk, &values[0]);
        disk.flip_bit(&file, bit);
        let engine = open(&disk, quiet()).unwrap();
        let snapshot = engine.snapshot();
        let found = snapshot.get(TreeId::SYSTEM, &key(1)).unwrap().unwrap();
        assert_eq!(snapshot.read(&found).unwrap(), values[0], "{collects}");
    }
}

#[test]
fn a_sync_that_a_full_disk_refuses_is_reported_and_made_up_for() {
    let disk = SimDisk::new(3);
    let engine = open(&disk, EngineOptions { relaxed_sync_millis: 1, ..quiet() }).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let reported = Arc::clone(&lines);
    engine.on_failure(move |line| reported.lock().unwrap().push(line.to_owned()));
    disk.fill_after(0);
    let mut transaction = engine.begin();
    let value = Value::inline(vec![7; 50_000]);
    transaction.put(tree, key(1), value.clone()).unwrap();
    transaction.commit(Durability::Relaxed).unwrap();
    wait_until("the failure is told", || {
        engine.last_failure().is_some_and(|failure| failure.work == "sync")
    });
    disk.make_room();
    let end = "no sync in the background fails any more";
    wait_until("the end is told", || lines.lock().unwrap().iter().any(|line| line == end));
    let restarted = open(&disk.crash(), quiet()).unwrap();
    drop(engine);
    assert_eq!(restarted.snapshot().get(tree, &key(1)).unwrap(), Some(value));
}

/// It is retried whether or not anything is written meanwhile.
#[test]
fn a_flush_that_a_full_disk_refuses_is_tried_until_there_is_room() {
    let disk = SimDisk::new(6);
    let engine = open(&disk, EngineOptions { memtable_bytes_max: 48_000, ..quiet() }).unwrap();
    let trees = make_trees(&engine, 1).unwrap();
    // Enough for the log, and not for the tree besides.
    disk.fill_after(90_000);
    put(&engine, &trees, &(0..500).collect::<Vec<_>>(), &mut Random::new(6));
    wait_until("the failure is told", || {
        engine.last_failure().is_some_and(|failure| failure.work == "flush")
    });
    disk.make_room();
    wait_until("rest", || engine.is_at_rest().unwrap());
    engine.check().unwrap();
}

/// Whichever step of it fails: what is said is what the directory is, or the store takes nothing
/// more, since it is unknown what its manifest says.
#[test]
fn an_image_is_installed_or_says_that_it_is_not() {
    let engine = open(&SimDisk::new(1), quiet()).unwrap();
    make_trees(&engine, 2).unwrap();
    let image = engine.image().unwrap();
    let mut get = |hashes: &[_]| -> Result<_, EngineError> {
        Ok(engine.store().get_many(hashes)?.into_iter().map(Some).collect())
    };
    let chunks = Image::metadata_chunks(image.root(), &mut get).unwrap();
    for changes in 0..20 {
        let disk = SimDisk::new(changes);
        let store = LocalStore::open(&disk.machine(), LocalOptions::default()).unwrap();
        Image::begin(&*store).unwrap();
        store.put_many(&chunks).unwrap();
        disk.fail_name_change_after(changes);
        let installed = Image::install(&*store, image.root());
        let is_unknown =
            installed.is_err() && matches!(store.sync(), Err(StoreError::Poisoned { .. }));
        drop(store);
        disk.fail_name_change_after(u64::MAX);
        let store = LocalStore::open(&disk.machine(), LocalOptions::default()).unwrap();
        let is_in = Engine::is_in(&*store).unwrap();
        assert!(is_unknown || is_in == installed.is_ok(), "{changes}: {is_in}, {installed:?}");
    }
}
