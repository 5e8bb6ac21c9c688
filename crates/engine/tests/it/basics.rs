//! One call at a time: what each promises, by example.

use bytes::Bytes;
use frond_engine::{
    ChangeRetention, Durability, Engine, EngineError, EngineOptions, Sequence, TreeId,
};
use frond_store::memory::MemoryStore;
use frond_store::{Chunk, ChunkKind};
use frond_testkit::SimDisk;
use frond_tree::{Bounds, Content as Place, Direction, Tree, Value};

use crate::rig::{churning, content, delete, get, make_trees, open, put, quiet, small_nodes};

#[test]
fn commits_are_read_back_after_reopening() {
    let disk = SimDisk::new(1);
    let engine = open(&disk, quiet()).unwrap();
    let trees = make_trees(&engine, 2).unwrap();
    let mut transaction = engine.begin();
    put(&mut transaction, trees[0], "a", "1");
    put(&mut transaction, trees[1], "b", "2");
    put(&mut transaction, TreeId::SYSTEM, "c", "3");
    let before = engine.snapshot();
    let sequence = transaction.commit(Durability::Synced).unwrap();
    assert_eq!(get(&before, trees[0], "a"), None);
    assert_eq!(engine.visible(), sequence);
    let check = |engine: &Engine| {
        let snapshot = engine.snapshot();
        assert_eq!(get(&snapshot, trees[0], "a").as_deref(), Some("1"));
        assert_eq!(get(&snapshot, trees[1], "b").as_deref(), Some("2"));
        assert_eq!(get(&snapshot, TreeId::SYSTEM, "c").as_deref(), Some("3"));
        assert!(snapshot.sequence() >= sequence);
        engine.check().unwrap();
    };
    check(&engine);
    engine.close().unwrap();
    drop(engine);

    let disk = disk.kill();
    let engine = open(&disk, quiet()).unwrap();
    check(&engine);
    engine.checkpoint().unwrap();
    check(&engine);
    let fresh = engine.reserve_tree_id();
    assert!(!trees.contains(&fresh) && fresh != TreeId::SYSTEM);
    engine.close().unwrap();
    drop(engine);

    let engine = open(&disk.kill(), quiet()).unwrap();
    check(&engine);
}

#[test]
fn a_value_in_two_trees_is_logged_once_and_recovered_in_both() {
    let disk = SimDisk::new(3);
    let engine = open(&disk, quiet()).unwrap();
    let trees = make_trees(&engine, 2).unwrap();
    let document = |number: usize| format!("{number:04} {}", "all of a document ".repeat(50));
    let before = engine.counters().log_record_bytes;
    let mut transaction = engine.begin();
    for number in 0..100 {
        put(&mut transaction, trees[0], &format!("{number:04}"), &document(number));
        let held = format!("bits{}", document(number));
        put(&mut transaction, trees[1], &format!("{:04}", 99 - number), &held);
    }
    transaction.commit(Durability::Synced).unwrap();
    let logged = engine.counters().log_record_bytes - before;
    let once = 100 * document(0).len() as u64;
    assert!(once < logged && logged < once + 100 * 60, "{logged} bytes, {once} of documents");
    let engine = open(&disk.crash(), quiet()).unwrap();
    let check = |engine: &Engine| {
        let snapshot = engine.snapshot();
        for number in 0..100 {
            let (found, held) = (
                get(&snapshot, trees[0], &format!("{number:04}")),
                get(&snapshot, trees[1], &format!("{:04}", 99 - number)),
            );
            assert_eq!(found, Some(document(number)));
            assert_eq!(held, Some(format!("bits{}", document(number))));
        }
    };
    check(&engine);
    engine.checkpoint().unwrap();
    check(&engine);
    engine.check().unwrap();
}

#[test]
fn a_closed_engine_takes_no_writes() {
    let engine = open(&SimDisk::new(2), quiet()).unwrap();
    let mut transaction = engine.begin();
    put(&mut transaction, TreeId::SYSTEM, "a", "1");
    engine.close().unwrap();
    assert!(matches!(transaction.commit(Durability::Synced), Err(EngineError::Closed(_))));
    assert!(matches!(engine.checkpoint(), Err(EngineError::Closed(_))));
    assert_eq!(get(&engine.snapshot(), TreeId::SYSTEM, "a"), None);
    engine.close().unwrap();
    assert_eq!(engine.fault(), None, "its owner has closed it");
}

#[test]
fn the_first_committer_wins() {
    let engine = open(&SimDisk::new(3), quiet()).unwrap();
    let trees = make_trees(&engine, 2).unwrap();
    // (what the first does, what the second does, whether the second is refused if it has read
    // something, and if not)
    type Act = fn(&mut frond_engine::Transaction, TreeId, Tree);
    let put_a: Act = |transaction, tree, _| put(transaction, tree, "a", "x");
    let put_b: Act = |transaction, tree, _| put(transaction, tree, "b", "x");
    let delete_a: Act = |transaction, tree, _| delete(transaction, tree, "a");
    let validate_a: Act = |transaction, tree, _| {
        transaction.validate(tree, Bytes::from("a"));
        put(transaction, tree, "v", "x");
    };
    let replace: Act = |transaction, tree, base| transaction.set_base(tree, base).unwrap();
    let cases: [(Act, Act, bool, bool); 11] = [
        (put_a, put_a, true, false),
        (put_a, put_b, false, false),
        (put_a, delete_a, true, false),
        (delete_a, put_a, true, false),
        (put_a, validate_a, true, true),
        (put_b, validate_a, false, false),
        (validate_a, put_a, false, false),
        (replace, put_a, true, true),
        (put_b, replace, true, true),
        (replace, replace, true, true),
        (replace, validate_a, true, true),
    ];
    let base = Tree::empty(&**engine.store(), small_nodes()).unwrap();
    for (position, (first_act, second_act, if_read, if_blind)) in cases.into_iter().enumerate() {
        for (reads, refused) in [(true, if_read), (false, if_blind)] {
            let (mut first, mut second) = (engine.begin(), engine.begin());
            first_act(&mut first, trees[0], base);
            if reads {
                second.get(trees[1], b"something").unwrap();
            }
            second_act(&mut second, trees[0], base);
            let mark = format!("{position} {reads}");
            put(&mut second, trees[1], "second", &mark);
            first.commit(Durability::Synced).unwrap();
            let result = second.commit(Durability::Synced);
            if refused {
                let error = result.unwrap_err();
                assert!(matches!(error, EngineError::Conflict { tree, .. } if tree == trees[0]));
            } else {
                result.unwrap();
            }
            let found = get(&engine.snapshot(), trees[1], "second");
            assert_eq!(found == Some(mark), !refused, "case {position}, reads: {reads}");
        }
    }
    assert_eq!(engine.counters().conflicts, 8 + 5);
}

#[test]
fn whatever_depends_on_the_snapshot_counts_as_reading() {
    let engine = open(&SimDisk::new(31), quiet()).unwrap();
    let trees = make_trees(&engine, 2).unwrap();
    let missing = engine.reserve_tree_id();
    type Act = Box<dyn Fn(&mut frond_engine::Transaction)>;
    let act = |act: fn(&mut frond_engine::Transaction, TreeId)| -> Act {
        let tree = trees[1];
        Box::new(move |transaction| act(transaction, tree))
    };
    let reads: [Act; 13] = [
        act(|transaction, tree| drop(transaction.get(tree, b"x").unwrap())),
        act(|transaction, tree| assert_eq!(transaction.count(tree).unwrap(), 0)),
        act(|transaction, tree| {
            let bounds = Bounds { start: Some(Bytes::from("x")), end: None };
            assert_eq!(transaction.count_range(tree, &bounds).unwrap(), 0);
        }),
        act(|transaction, tree| {
            assert_eq!(transaction.estimate_range(tree, &Bounds::all()).unwrap(), 0);
        }),
        act(|transaction, tree| assert_eq!(transaction.tree_bytes(tree).unwrap(), 0)),
        act(|transaction, tree| assert_eq!(transaction.flags(tree).unwrap(), 0)),
        act(|transaction, tree| {
            drop(transaction.range(tree, Bounds::all(), Direction::Ascending).unwrap());
        }),
        act(|transaction, tree| assert!(transaction.has_tree(tree))),
        act(|transaction, _| drop(transaction.snapshot().clone())),
        act(|transaction, _| drop(transaction.store())),
        act(|transaction, tree| transaction.validate(tree, Bytes::from("x"))),
        act(|transaction, tree| {
            let savepoint = transaction.savepoint();
            put(transaction, tree, "x", "undone");
            transaction.rollback_to(savepoint);
        }),
        Box::new(move |transaction| {
            let refused = transaction.put(missing, Bytes::from("x"), Value::inline("x"));
            assert!(matches!(refused, Err(EngineError::NoTree(_))));
        }),
    ];
    let writes: [Act; 3] = [
        act(|transaction, tree| put(transaction, tree, "x", "1")),
        act(|transaction, tree| delete(transaction, tree, "x")),
        act(|transaction, tree| {
            put(transaction, tree, "x", "1");
            let own = transaction.get(tree, b"x").unwrap();
            assert!(own.is_some() && transaction.wrote(tree, &Bounds::all()));
            transaction.savepoint();
        }),
    ];
    let refused = |act: &Act| {
        let (mut first, mut second) = (engine.begin(), engine.begin());
        put(&mut first, trees[0], "a", "first");
        act(&mut second);
        put(&mut second, trees[0], "a", "second");
        first.commit(Durability::Synced).unwrap();
        second.commit(Durability::Synced).is_err()
    };
    assert_eq!(reads.iter().map(refused).collect::<Vec<_>>(), [true; 13]);
    assert_eq!(writes.iter().map(refused).collect::<Vec<_>>(), [false; 3]);
}

/// In the memtable, in runs and in the tree.
#[test]
fn the_bytes_of_a_tree_are_those_of_its_keys_and_values() {
    let engine = open(&SimDisk::new(32), quiet()).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let bytes = || engine.snapshot().bytes(tree).unwrap();
    let long = "x".repeat(3_000);
    let check = |expected: usize| {
        assert_eq!(bytes(), expected as u64, "in the memtable");
        engine.checkpoint().unwrap();
        assert_eq!(bytes(), expected as u64, "in the tree");
    };
    let mut transaction = engine.begin();
    put(&mut transaction, tree, "a", "1");
    put(&mut transaction, tree, "long", &long);
    put(&mut transaction, tree, "gone", "soon");
    transaction.commit(Durability::Synced).unwrap();
    check(2 + 4 + long.len() + 8);
    let mut transaction = engine.begin();
    put(&mut transaction, tree, "a", "more");
    delete(&mut transaction, tree, "gone");
    put(&mut transaction, tree, "b", "");
    transaction.commit(Durability::Synced).unwrap();
    check(5 + 4 + long.len() + 1);
}

/// The process may end before they are synced, and no power is lost.
#[test]
fn many_relaxed_bytes_are_written_before_their_time() {
    let disk = SimDisk::new(33);
    let engine = open(&disk, quiet()).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let text = "x".repeat(300_000);
    for key in ["a", "b", "c", "d"] {
        let mut transaction = engine.begin();
        put(&mut transaction, tree, key, &text);
        transaction.commit(Durability::Relaxed).unwrap();
    }
    let killed = disk.kill();
    let engine = open(&killed, quiet()).unwrap();
    assert!(get(&engine.snapshot(), tree, "a") == Some(text));
}

#[test]
fn a_log_that_may_not_be_kept_is_not() {
    let options = EngineOptions { changes: ChangeRetention::default(), ..quiet() };
    let engine = open(&SimDisk::new(34), options).unwrap();
    assert!(!engine.keep_changes().unwrap());
}

#[test]
fn a_blind_write_conflicts_with_dropping_its_tree() {
    let engine = open(&SimDisk::new(32), quiet()).unwrap();
    let trees = make_trees(&engine, 2).unwrap();
    let (mut writing, mut dropping) = (engine.begin(), engine.begin());
    put(&mut writing, trees[0], "a", "1");
    dropping.drop_tree(trees[0]).unwrap();
    dropping.commit(Durability::Synced).unwrap();
    let error = writing.commit(Durability::Synced).unwrap_err();
    assert!(matches!(error, EngineError::Conflict { tree, .. } if tree == trees[0]));

    let (mut writing, mut dropping) = (engine.begin(), engine.begin());
    put(&mut writing, trees[1], "a", "1");
    dropping.drop_tree(trees[1]).unwrap();
    writing.commit(Durability::Synced).unwrap();
    let error = dropping.commit(Durability::Synced).unwrap_err();
    assert!(matches!(error, EngineError::Conflict { tree, .. } if tree == trees[1]));
    assert_eq!(get(&engine.snapshot(), trees[1], "a").as_deref(), Some("1"));
    engine.check().unwrap();
}

#[test]
fn a_transaction_reads_its_own_writes_and_goes_back_to_savepoints() {
    let engine = open(&SimDisk::new(4), quiet()).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let mut transaction = engine.begin();
    put(&mut transaction, tree, "a", "old");
    put(&mut transaction, tree, "b", "old");
    transaction.commit(Durability::Synced).unwrap();

    let mut transaction = engine.begin();
    put(&mut transaction, tree, "c", "1");
    let show = |transaction: &frond_engine::Transaction, direction| {
        let cursor = transaction.range(tree, Bounds::all(), direction).unwrap();
        let entries = cursor.map(|entry| {
            let entry = entry.unwrap();
            let value = transaction.read(&entry.value).unwrap();
            let found = transaction.get(tree, &entry.key).unwrap();
            assert_eq!(found, Some(entry.value));
            format!("{}={}", entry.key.escape_ascii(), value.escape_ascii())
        });
        entries.collect::<Vec<_>>().join(" ")
    };
    let savepoint = transaction.savepoint();
    delete(&mut transaction, tree, "a");
    put(&mut transaction, tree, "b", "2");
    put(&mut transaction, tree, "c", "3");
    let chunk = Chunk::new(ChunkKind::Blob, &[], b"a chunk of its own");
    transaction.put_chunks(std::slice::from_ref(&chunk));
    let content = Place::Chunk { hash: chunk.hash(), bytes: 18 };
    transaction.put(tree, Bytes::from("d"), Value { flags: 4, content }).unwrap();
    assert_eq!(show(&transaction, Direction::Ascending), "b=2 c=3 d=a chunk of its own");
    assert_eq!(show(&transaction, Direction::Descending), "d=a chunk of its own c=3 b=2");
    let inner = transaction.savepoint();
    let base = Tree::empty(&**engine.store(), small_nodes()).unwrap();
    transaction.set_base(tree, base).unwrap();
    put(&mut transaction, tree, "z", "9");
    assert_eq!(show(&transaction, Direction::Ascending), "z=9");
    transaction.rollback_to(inner);
    assert_eq!(show(&transaction, Direction::Ascending), "b=2 c=3 d=a chunk of its own");
    transaction.rollback_to(savepoint);
    assert_eq!(show(&transaction, Direction::Ascending), "a=old b=old c=1");
    transaction.rollback_to(savepoint);
    transaction.drop_tree(tree).unwrap();
    assert!(matches!(transaction.get(tree, b"a"), Err(EngineError::NoTree(_))));
    let key = Bytes::from("a");
    assert!(matches!(transaction.delete(tree, key), Err(EngineError::NoTree(_))));
    transaction.rollback_to(savepoint);
    transaction.commit(Durability::Synced).unwrap();
    assert_eq!(get(&engine.snapshot(), tree, "c").as_deref(), Some("1"));
}

#[test]
fn chunks_travel_in_the_log() {
    let disk = SimDisk::new(5);
    let engine = open(&disk, quiet()).unwrap();
    let chunk = Chunk::new(ChunkKind::Blob, &[], b"pending in a transaction");
    let content = Place::Chunk { hash: chunk.hash(), bytes: 21 };
    let value = Value { flags: 2, content };
    let mut transaction = engine.begin();
    transaction.put_chunks(std::slice::from_ref(&chunk));
    transaction.put(TreeId::SYSTEM, Bytes::from("k"), value.clone()).unwrap();
    transaction.commit(Durability::Synced).unwrap();
    assert_eq!(engine.snapshot().read(&value).unwrap(), "pending in a transaction");

    // The power fails before anything was folded.
    let engine = open(&disk.crash(), quiet()).unwrap();
    let snapshot = engine.snapshot();
    assert_eq!(snapshot.get(TreeId::SYSTEM, b"k").unwrap().as_ref(), Some(&value));
    assert_eq!(snapshot.read(&value).unwrap(), "pending in a transaction");
    assert_eq!(snapshot.flags(TreeId::SYSTEM).unwrap(), 2);
    engine.checkpoint().unwrap();
    assert_eq!(engine.snapshot().flags(TreeId::SYSTEM).unwrap(), 2);
}

#[test]
fn a_version_commit_folds_what_changed_and_nothing_when_nothing_did() {
    let store = MemoryStore::new();
    let engine = Engine::open_over(&SimDisk::new(6).machine(), store.clone(), quiet()).unwrap();
    let trees = make_trees(&engine, 2).unwrap();
    let mut transaction = engine.begin();
    (0..500).for_each(|n| put(&mut transaction, trees[0], &format!("{n:05}"), "x"));
    transaction.commit(Durability::Synced).unwrap();
    let old = engine.snapshot();
    assert_eq!(old.clean_base(trees[0]).unwrap(), None);
    let first = engine.fold(&old, &trees).unwrap();
    let syncs = store_syncs(&engine);
    assert_eq!(engine.fold(&old, &trees).unwrap(), first);
    assert_eq!(engine.fold(&engine.snapshot(), &trees).unwrap(), first);
    assert_eq!(store_syncs(&engine), syncs, "folding again neither writes nor syncs");
    assert_eq!(engine.snapshot().clean_base(trees[0]).unwrap(), Some(first[0]));
    assert_eq!(engine.counters().folds, 1);

    let mut transaction = engine.begin();
    put(&mut transaction, trees[0], "00007", "y");
    delete(&mut transaction, trees[0], "00008");
    transaction.commit(Durability::Synced).unwrap();
    let chunks_before = engine.store().counters().chunks_written;
    let new = engine.snapshot();
    let second = engine.fold(&new, &trees).unwrap();
    assert!(engine.store().counters().chunks_written - chunks_before < 8);
    assert_ne!(second[0], first[0]);
    assert_eq!(second[1], first[1]);
    // An older snapshot, whose State has never seen the folds, still folds to what it shows.
    assert_eq!(engine.fold(&old, &trees).unwrap(), first);
    assert_eq!(content(&old, trees[0]).len(), 500);
    let entries = &mut content(&new, trees[0])
        .into_iter()
        .map(|(key, value)| Ok(frond_tree::Entry { key, value: Value::inline(value) }));
    assert_eq!(Tree::build(&*store, small_nodes(), entries).unwrap(), second[0]);
    engine.check().unwrap();
}

fn store_syncs(engine: &Engine) -> (u64, u64) {
    let counters = engine.store().counters();
    (counters.syncs, counters.chunks_written)
}

#[test]
fn replaced_and_dropped_trees_stay_as_they_were_for_older_snapshots() {
    let disk = SimDisk::new(7);
    let engine = open(&disk, quiet()).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let mut transaction = engine.begin();
    put(&mut transaction, tree, "a", "first");
    transaction.commit(Durability::Synced).unwrap();
    let first = engine.snapshot();
    let base = engine.fold(&first, &[tree]).unwrap()[0];
    let mut transaction = engine.begin();
    put(&mut transaction, tree, "gone", "x");
    transaction.set_base(tree, base).unwrap();
    put(&mut transaction, tree, "b", "second");
    transaction.commit(Durability::Synced).unwrap();
    let second = engine.snapshot();
    engine.checkpoint().unwrap();
    let mut transaction = engine.begin();
    transaction.drop_tree(tree).unwrap();
    transaction.commit(Durability::Synced).unwrap();
    let third = engine.snapshot();
    let check = |folded: bool| {
        assert_eq!(content(&first, tree).len(), 1);
        assert_eq!(content(&second, tree).len(), 2, "folded: {folded}");
        assert_eq!(get(&second, tree, "b").as_deref(), Some("second"));
        assert!(!third.has_tree(tree));
        assert!(matches!(third.count(tree), Err(EngineError::NoTree(_))));
        assert!(!engine.snapshot().has_tree(tree));
        assert!(matches!(engine.fold(&third, &[tree]), Err(EngineError::NoTree(_))));
        assert_eq!(engine.fold(&first, &[tree]).unwrap(), [base]);
    };
    check(false);
    engine.checkpoint().unwrap();
    check(true);
    engine.check().unwrap();
    drop(engine);
    let engine = open(&disk.kill(), quiet()).unwrap();
    assert!(!engine.snapshot().has_tree(tree));
    let mut transaction = engine.begin();
    let unknown = TreeId(999);
    assert!(matches!(transaction.set_base(unknown, base), Err(EngineError::NoTree(_))));
    assert!(matches!(transaction.drop_tree(tree), Err(EngineError::NoTree(_))));
}

#[test]
fn transactions_that_write_nothing_cost_nothing() {
    let disk = SimDisk::new(8);
    let engine = open(&disk, quiet()).unwrap();
    let operations = disk.operations();
    let mut transaction = engine.begin();
    transaction.validate(TreeId::SYSTEM, Bytes::from("a"));
    assert_eq!(transaction.commit(Durability::Synced).unwrap(), engine.visible());
    engine.checkpoint().unwrap();
    assert_eq!(disk.operations(), operations);
    assert_eq!(engine.visible(), Sequence(0));
}

#[test]
fn too_long_keys_are_refused() {
    let engine = open(&SimDisk::new(9), quiet()).unwrap();
    let mut transaction = engine.begin();
    let key = Bytes::from(vec![7; frond_tree::format::KEY_BYTES_MAX + 1]);
    let result = transaction.put(TreeId::SYSTEM, key, Value::inline("x"));
    assert!(matches!(result, Err(EngineError::Tree(_))));
}

#[test]
fn a_collection_keeps_the_runs_of_a_snapshot_that_is_held() {
    let engine = open(&SimDisk::new(10), churning(5000)).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let write = |round: u64| {
        let mut transaction = engine.begin();
        for number in 0..200 {
            let key = Bytes::from(format!("{:04}", number * 7 % 1000 + round));
            let chunk = Chunk::new(ChunkKind::Blob, &[], &[round, number].map(|n| n as u8));
            transaction.put_chunks(std::slice::from_ref(&chunk));
            let content = Place::Chunk { hash: chunk.hash(), bytes: 2 };
            transaction.put(tree, key, Value { flags: 0, content }).unwrap();
        }
        transaction.commit(Durability::Synced).unwrap();
    };
    (0..6).for_each(write);
    let snapshot = engine.snapshot();
    let expected = content(&snapshot, tree);
    (6..30).for_each(write);
    engine.checkpoint().unwrap();
    assert!(engine.counters().runs_written > 3);
    assert_eq!(content(&snapshot, tree), expected);
    engine.reclaim(Default::default()).unwrap();
    assert_eq!(
        content(&snapshot, tree),
        expected,
        "bases, runs and values of an old snapshot stay"
    );
    drop(snapshot);
    let collected = engine.reclaim(Default::default()).unwrap();
    assert!(collected.chunks_dead > 0, "nothing is held without a reader");
    assert_eq!(
        engine.snapshot().count(tree).unwrap(),
        content(&engine.snapshot(), tree).len() as u64
    );
}
