//! Giving space back: what a reader can still read stays, what none can goes, also over crashes.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use frond_engine::{Engine, EngineOptions, ReclaimOptions, Reserve, Snapshot, TreeId};
use frond_store::{Chunk, ChunkKind};
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDisk};
use frond_tree::{Content as Where, Edit, Tree, TreeError, Value};

use crate::rig::{Content, content, make_trees, open, quiet, small_nodes};

const THOROUGH: ReclaimOptions =
    ReclaimOptions { thorough: true, bytes_a_second: None, purge: false };
const QUICK: ReclaimOptions =
    ReclaimOptions { thorough: false, bytes_a_second: None, purge: false };

fn stored(engine: &Engine) -> u64 {
    engine.store().counters().bytes_stored
}

/// Collects until at most `bytes` are stored: a background thread that is about to end its fold may
/// keep what it worked on from the first collection.
fn reclaim_until(engine: &Engine, bytes: u64) {
    let collected =
        (0..1000).map(|_| engine.reclaim(THOROUGH).unwrap()).find(|_| stored(engine) <= bytes);
    assert!(collected.is_some(), "{} bytes, expected {bytes}", stored(engine));
}

/// Writes `count` values that don't compress, some of them out of line.
fn fill(engine: &Engine, tree: TreeId, random: &mut Random, count: usize) -> Content {
    let mut transaction = engine.begin();
    let mut written = Content::new();
    for _ in 0..count {
        let bytes = 20 + random.below(400);
        let (key, value) = (Bytes::from(random.bytes(8)), Bytes::from(random.bytes(bytes)));
        transaction.put(tree, key.clone(), Value::inline(value.clone())).unwrap();
        written.insert(key, value);
    }
    transaction.commit(Default::default()).unwrap();
    written
}

#[test]
fn a_dropped_tree_gives_its_space_back() {
    let mut random = Random::new(1);
    let engine = open(&SimDisk::new(1), quiet()).unwrap();
    let trees = make_trees(&engine, 2).unwrap();
    let kept = fill(&engine, trees[0], &mut random, 100);
    fill(&engine, trees[1], &mut random, 1000);
    engine.checkpoint().unwrap();
    let before = stored(&engine);
    let mut transaction = engine.begin();
    transaction.drop_tree(trees[1]).unwrap();
    transaction.commit(Default::default()).unwrap();
    reclaim_until(&engine, before / 5);
    assert_eq!(content(&engine.snapshot(), trees[0]), kept);
    engine.check().unwrap();
}

#[test]
fn a_snapshot_reads_on_whatever_goes() {
    let mut random = Random::new(2);
    let disk = SimDisk::new(2);
    let engine = open(&disk, quiet()).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let first = fill(&engine, tree, &mut random, 300);
    let in_memtable = engine.snapshot();
    engine.checkpoint().unwrap();
    let in_base = engine.snapshot();
    let mut transaction = engine.begin();
    first.keys().for_each(|key| transaction.delete(tree, key.clone()).unwrap());
    transaction.commit(Default::default()).unwrap();
    let second = fill(&engine, tree, &mut random, 300);
    for options in [THOROUGH, QUICK, THOROUGH] {
        engine.reclaim(options).unwrap();
        assert_eq!(content(&in_memtable, tree), first);
        assert_eq!(content(&in_base, tree), first);
        assert_eq!(content(&engine.snapshot(), tree), second);
    }
    let with_both = stored(&engine);
    drop((in_memtable, in_base));
    reclaim_until(&engine, with_both * 7 / 10);
    assert_eq!(content(&engine.snapshot(), tree), second);
}

/// A value that only a memtable has, which a snapshot holds, refers to a chunk that no tree has:
/// one that was stored before, or that its transaction brought with so much that it was packed at
/// once.
#[test]
fn a_snapshot_keeps_what_the_values_of_its_memtables_refer_to() {
    for brings in [false, true] {
        let engine = open(&SimDisk::new(5), quiet()).unwrap();
        let tree = make_trees(&engine, 1).unwrap()[0];
        let bytes = Random::new(5).bytes(300_000);
        let chunk = Chunk::new(ChunkKind::Blob, &[], &bytes);
        let chunks = std::slice::from_ref(&chunk);
        let mut transaction = engine.begin();
        match brings {
            true => transaction.put_chunks(chunks),
            false => engine.store().put_many(chunks).unwrap(),
        }
        let content = Where::Chunk { hash: chunk.hash(), bytes: 300_000 };
        let key = Bytes::from("key");
        transaction.put(tree, key.clone(), Value { flags: 0, content }).unwrap();
        transaction.commit(Default::default()).unwrap();
        let snapshot = engine.snapshot();
        let mut transaction = engine.begin();
        transaction.put(tree, key.clone(), Value::inline("other")).unwrap();
        transaction.commit(Default::default()).unwrap();
        for _ in 0..2 {
            engine.reclaim(THOROUGH).unwrap();
            // A cache may have what is gone.
            assert_eq!(engine.store().has_many(&[chunk.hash()]).unwrap(), [true]);
            let found = snapshot.get(tree, &key).unwrap().unwrap();
            assert!(snapshot.read(&found).unwrap() == bytes);
        }
        drop(snapshot);
        let goes = (0..1000).any(|_| {
            engine.reclaim(THOROUGH).unwrap();
            engine.store().has_many(&[chunk.hash()]).unwrap() == [false]
        });
        assert!(goes, "no reader can come to it any more");
    }
}

/// A fold of all would need room for most of another tree. So it goes step by step, as far as there
/// is room.
#[test]
fn a_disk_without_room_for_a_second_tree_is_folded_in_steps() {
    const PART_COUNT: u64 = 10;
    const KEYS_OF_PART: u64 = 400;
    let (disk, mut random) = (SimDisk::new(13), Random::new(13));
    disk.limit_to(Some(1 << 30));
    // Memtables are small beside the tree, and no step is due before it is asked for.
    let options = EngineOptions {
        memtable_bytes_max: 64_000,
        overlay_percent_max: 10_000,
        fold_threads: 0,
        reserve: Reserve::Bytes(400_000),
        ..quiet()
    };
    let engine = open(&disk, options).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let mut expected = Content::new();
    let mut write = |numbers: &mut dyn Iterator<Item = u64>, bytes: usize| {
        let mut transaction = engine.begin();
        for number in numbers {
            let key = Bytes::copy_from_slice(&number.to_be_bytes());
            let value = Bytes::from(random.bytes(bytes));
            transaction.put(tree, key.clone(), Value::inline(value.clone())).unwrap();
            expected.insert(key, value);
        }
        transaction.commit(Default::default()).unwrap();
    };
    // Each part in a pack of its own, which a collection ends.
    for part in 0..PART_COUNT {
        write(&mut (part * KEYS_OF_PART..(part + 1) * KEYS_OF_PART), 200);
        engine.checkpoint().unwrap();
        engine.reclaim(QUICK).unwrap();
    }
    for part in 0..PART_COUNT {
        write(&mut (part * KEYS_OF_PART..(part + 1) * KEYS_OF_PART).step_by(2), 100);
    }
    engine.flush().unwrap();
    let used = || -> usize {
        let files = disk.machine().disk.list().unwrap();
        files.iter().map(|name| disk.contents(name).unwrap().len()).sum()
    };
    let full = used();
    disk.limit_to(Some(full as u64 + 60_000));
    let error = engine.checkpoint().expect_err("there is no room for all of it");
    assert!(error.is_full(), "{error}");
    engine.reclaim(THOROUGH).unwrap();
    assert!(0 < engine.counters().pass_steps);
    // The folds leave room to move what lives in the packs that they empty.
    assert!(used() < full, "{} of {full} bytes are left", used());
    assert_eq!(content(&engine.snapshot(), tree), expected);
    engine.check().unwrap();
}

/// Garbage goes while nothing is written, as far as a requested collection would remove it; a
/// snapshot that is read meanwhile stays, and so does all of it over a restart.
#[test]
fn garbage_goes_by_itself_when_the_engine_is_idle() {
    let mut random = Random::new(11);
    let disk = SimDisk::new(11);
    let options = EngineOptions { quiet_millis: Some(150), ..quiet() };
    let engine = open(&disk, EngineOptions { quiet_millis: None, ..options }).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let mut kept = Content::new();
    for _ in 0..6 {
        let written = fill(&engine, tree, &mut random, 1500);
        engine.checkpoint().unwrap();
        let mut transaction = engine.begin();
        for key in written.keys().take(1400) {
            transaction.delete(tree, key.clone()).unwrap();
        }
        transaction.commit(Default::default()).unwrap();
        kept.extend(written.into_iter().skip(1400));
        engine.checkpoint().unwrap();
    }
    let with_garbage = stored(&engine);
    engine.close().unwrap();
    // As much as is left where a collection is asked for.
    let copy = disk.kill();
    let explicit = open(&copy, quiet()).unwrap();
    explicit.reclaim(THOROUGH).unwrap();
    let least = stored(&explicit);
    assert!(least * 2 < with_garbage, "{least} of {with_garbage}");
    drop(explicit);

    let engine = open(&disk.kill(), options).unwrap();
    let snapshot = engine.snapshot();
    let begun = std::time::Instant::now();
    while least + least / 10 < stored(&engine) {
        assert!(begun.elapsed().as_secs() < 60, "{} and not {least}", stored(&engine));
        assert_eq!(content(&snapshot, tree), kept);
    }
    assert_eq!(content(&engine.snapshot(), tree), kept);
    engine.check().unwrap();
}

/// As long as transactions commit, nothing is packed.
#[test]
fn nothing_is_packed_beside_commits() {
    let mut random = Random::new(12);
    let options = EngineOptions { quiet_millis: Some(1500), ..quiet() };
    let engine = open(&SimDisk::new(12), options).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    fill(&engine, tree, &mut random, 1500);
    engine.checkpoint().unwrap();
    let begun = std::time::Instant::now();
    while begun.elapsed().as_millis() < 2500 {
        fill(&engine, tree, &mut random, 1);
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(engine.store().counters().bytes_moved, 0);
    }
    engine.check().unwrap();
}

/// The log says with which base a tree began; a version commit replaces it in memory, not in the
/// log.
#[test]
fn a_base_that_the_log_names_is_there_when_it_is_read_back() {
    let mut random = Random::new(8);
    let disk = SimDisk::new(8);
    let engine = open(&disk, quiet()).unwrap();
    let store = &**engine.store();
    let tree = engine.reserve_tree_id();
    let mut entries = (0..50u8).map(|n| {
        let (key, value) = (Bytes::from(vec![n]), Value::inline(random.bytes(90)));
        Ok(frond_tree::Entry { key, value })
    });
    let base = Tree::build(store, small_nodes(), &mut entries).unwrap();
    let mut transaction = engine.begin();
    transaction.set_base(tree, base).unwrap();
    transaction.commit(Default::default()).unwrap();
    fill(&engine, tree, &mut Random::new(9), 30);
    engine.fold(&engine.snapshot(), &[tree]).unwrap();
    let expected = content(&engine.snapshot(), tree);
    engine.reclaim(QUICK).unwrap();
    let engine = open(&disk.kill(), quiet()).unwrap();
    assert_eq!(content(&engine.snapshot(), tree), expected);
    let before = stored(&engine);
    engine.reclaim(THOROUGH).unwrap();
    assert!(stored(&engine) < before, "the base isn't needed once the fold is published");
    engine.check().unwrap();
}

/// A transaction puts a tree's chunks and a value's chunk long before it commits.
#[test]
fn chunks_of_an_open_transaction_survive_collections() {
    let disk = SimDisk::new(3);
    let engine = open(&disk, quiet()).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let other = engine.reserve_tree_id();
    let blob = Chunk::new(ChunkKind::Blob, &[], &[9; 700]);
    let mut transaction = engine.begin();
    let entries: Vec<(Bytes, Edit)> = (0..200u32)
        .map(|n| (Bytes::from(n.to_be_bytes().to_vec()), Edit::Put(Value::inline(vec![7; 90]))))
        .collect();
    let store = &**engine.store();
    let mut edits = entries.into_iter().map(Ok::<_, TreeError>);
    let built = Tree::empty(store, small_nodes()).unwrap().apply(store, &mut edits).unwrap();
    engine.reclaim(THOROUGH).unwrap();
    transaction.set_base(other, built).unwrap();
    let value = Value { flags: 0, content: Where::Chunk { hash: blob.hash(), bytes: 700 } };
    transaction.put_chunks(std::slice::from_ref(&blob));
    transaction.put(tree, Bytes::from("out of line"), value).unwrap();
    engine.reclaim(THOROUGH).unwrap();
    transaction.commit(Default::default()).unwrap();
    engine.reclaim(QUICK).unwrap();
    let check = |snapshot: &Snapshot| {
        assert_eq!(snapshot.count(other).unwrap(), 200);
        assert_eq!(content(snapshot, tree)[&Bytes::from("out of line")], vec![9; 700]);
    };
    check(&engine.snapshot());
    engine.reclaim(THOROUGH).unwrap();
    check(&engine.snapshot());
    drop(engine);
    check(&open(&disk.crash(), quiet()).unwrap().snapshot());
}

/// Writes, folds and collections, until the end or the power fails. Returns what was acknowledged.
fn script(disk: &SimDisk, random: &mut Random) -> (Option<TreeId>, Content, Content) {
    let (mut acknowledged, mut attempted) = (Content::new(), Content::new());
    let Ok(engine) = open(disk, quiet()) else { return (None, acknowledged, attempted) };
    let Ok(trees) = make_trees(&engine, 1) else { return (None, acknowledged, attempted) };
    let tree = trees[0];
    for _ in 0..8 {
        let done = match random.below(5) {
            0 => engine.reclaim(THOROUGH).map(drop),
            1 => engine.reclaim(QUICK).map(drop),
            2 => engine.fold(&engine.snapshot(), &trees).map(drop),
            _ => {
                let mut transaction = engine.begin();
                for _ in 0..1 + random.below(12) {
                    let key = Bytes::from(random.bytes(1));
                    let bytes = random.below(300);
                    let value = Bytes::from(random.bytes(bytes));
                    transaction.put(tree, key.clone(), Value::inline(value.clone())).unwrap();
                    attempted.insert(key, value);
                }
                transaction.commit(Default::default()).map(drop)
            }
        };
        if done.is_err() {
            break;
        }
        acknowledged = attempted.clone();
    }
    (Some(tree), acknowledged, attempted)
}

#[test]
fn a_power_cut_at_any_operation_loses_nothing() {
    for_seeds(12, |mut random| {
        let seed = random.next();
        let whole = SimDisk::new(seed);
        script(&whole, &mut Random::new(seed));
        for crash_point in 0..whole.operations() {
            let disk = SimDisk::new(seed);
            disk.crash_after(crash_point);
            let (tree, acknowledged, attempted) = script(&disk, &mut Random::new(seed));
            let after = disk.crash();
            let engine = open(&after, quiet()).expect("a power cut needs no repair");
            if let Some(tree) = tree {
                let found = content(&engine.snapshot(), tree);
                assert!(found == acknowledged || found == attempted);
                engine.reclaim(THOROUGH).unwrap();
                assert_eq!(content(&engine.snapshot(), tree), found);
                engine.check().unwrap();
            }
        }
    });
}

/// Writers, readers, version folds and collections at once, with small memtables so that the
/// background folds all the time.
#[test]
fn collections_disturb_no_reader_and_no_writer() {
    for_seeds(3, |mut random| {
        let disk = SimDisk::new(random.next());
        let options = EngineOptions { memtable_bytes_max: 6_000, ..Default::default() };
        let engine = open(&disk, options).unwrap();
        let trees = make_trees(&engine, 3).unwrap();
        let done = AtomicBool::new(false);
        let contents: Vec<Content> = std::thread::scope(|scope| {
            let writers: Vec<_> = trees
                .iter()
                .map(|tree| {
                    let (seed, engine) = (random.next(), &engine);
                    scope.spawn(move || write_and_fold(engine, *tree, Random::new(seed)))
                })
                .collect();
            let collector = scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    engine.reclaim(THOROUGH).unwrap();
                    engine.reclaim(QUICK).unwrap();
                }
            });
            let contents = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
            done.store(true, Ordering::SeqCst);
            collector.join().unwrap();
            contents
        });
        engine.check().unwrap();
        drop(engine);
        let engine = open(&disk.crash(), options).unwrap();
        for (tree, expected) in trees.iter().zip(contents) {
            assert_eq!(content(&engine.snapshot(), *tree), expected);
        }
    });
}

fn write_and_fold(engine: &Engine, tree: TreeId, mut random: Random) -> Content {
    let mut model = Content::new();
    for round in 0..60 {
        let before = (engine.snapshot(), model.clone());
        model.extend(fill(engine, tree, &mut random, 8));
        if random.one_in(3) {
            let folded = engine.fold(&engine.snapshot(), &[tree]).unwrap()[0];
            assert_eq!(folded.count(&**engine.store()).unwrap(), model.len() as u64);
        }
        if round % 10 == 0 {
            assert_eq!(content(&before.0, tree), before.1);
            assert_eq!(content(&engine.snapshot(), tree), model);
        }
    }
    model
}
