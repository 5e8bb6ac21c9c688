//! Goal: changes between two moments are reported exactly or not at all; a transaction conflicts if
//! something it validates changes, unless the client was told nothing of it. Method: a model of
//! what random transactions wrote, beside snapshots of before; small cases for the rest.

use std::collections::BTreeSet;

use bytes::Bytes;
use frond_engine::{Durability, EngineError, LockMode, TreeId};
use frond_testkit::SimDisk;
use frond_testkit::random::{assert_met, for_seeds};
use frond_tree::{Tree, Value};

use crate::rig::{churning, get, make_trees, open, put, quiet, small_nodes};

#[test]
fn keys_written_since_a_snapshot_are_those_that_were() {
    let (mut known, mut unknown) = (0, 0);
    for_seeds(20, |mut random| {
        let engine = open(&SimDisk::new(random.next()), churning(50)).unwrap();
        let trees = make_trees(&engine, 2).unwrap();
        // Snapshots, and what was written to the first tree since.
        let mut before: Vec<(frond_engine::Snapshot, BTreeSet<Bytes>)> = Vec::new();
        for _ in 0..60 {
            if random.one_in(4) {
                before.push((engine.snapshot(), BTreeSet::new()));
            }
            let mut transaction = engine.begin();
            let tree = trees[random.below(2)];
            for _ in 0..=random.below(4) {
                let key = format!("k{}", random.below(20));
                put(&mut transaction, tree, &key, &"x".repeat(random.below(60)));
                if tree == trees[0] {
                    let key = Bytes::from(key);
                    for (_, keys) in &mut before {
                        keys.insert(key.clone());
                    }
                }
            }
            transaction.commit(Durability::Relaxed).unwrap();
            let now = engine.snapshot();
            for (snapshot, expected) in &before {
                match now.keys_written_since(snapshot, trees[0], usize::MAX).unwrap() {
                    Some(keys) => {
                        assert!(keys.iter().eq(expected), "{keys:?} {expected:?}");
                        known += 1;
                        let few = now.keys_written_since(snapshot, trees[0], 1).unwrap();
                        assert!(few.is_none_or(|few| few == keys && keys.len() < 2));
                    }
                    None => unknown += 1,
                }
            }
        }
    });
    assert_met("told", known, 100);
    assert_met("untold", unknown, 100);
}

#[test]
fn a_transaction_moves_over_no_change_of_what_it_wants_unchanged() {
    let engine = open(&SimDisk::new(1), quiet()).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    for (written, expected) in [("other", true), ("wanted", false)] {
        let mut transaction = engine.begin_as(LockMode::Interactive);
        transaction.validate(tree, Bytes::from("wanted"));
        let mut other = engine.begin();
        put(&mut other, tree, written, "x");
        other.commit(Durability::Relaxed).unwrap();
        assert_eq!(transaction.refresh_snapshot().unwrap(), expected, "{written} was written");
    }
}

#[test]
fn a_tree_that_was_replaced_is_not_known() {
    let engine = open(&SimDisk::new(1), quiet()).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let before = engine.snapshot();
    let mut transaction = engine.begin();
    transaction.set_base(tree, Tree::empty(&**engine.store(), small_nodes()).unwrap()).unwrap();
    transaction.commit(Durability::Synced).unwrap();
    assert_eq!(engine.snapshot().keys_written_since(&before, tree, 10).unwrap(), None);
}

#[test]
fn validating_a_tree_conflicts_with_any_write_to_it() {
    for (other, is_conflict) in [(0, true), (1, false)] {
        let engine = open(&SimDisk::new(1), quiet()).unwrap();
        let trees = make_trees(&engine, 3).unwrap();
        let mut transaction = engine.begin();
        transaction.validate_tree(trees[0]);
        put(&mut transaction, trees[2], "a", "1");
        let mut another = engine.begin();
        put(&mut another, trees[other], "new", "1");
        another.commit(Durability::Relaxed).unwrap();
        let done = transaction.commit(Durability::Relaxed);
        assert_eq!(matches!(done, Err(EngineError::Conflict { .. })), is_conflict);
    }
}

#[test]
fn a_base_that_was_synced_and_what_lies_over_it_survive() {
    let disk = SimDisk::new(3);
    let engine = open(&disk, quiet()).unwrap();
    let tree = engine.reserve_tree_id();
    let store = &**engine.store();
    let entry = |key: &'static str| {
        Ok(frond_tree::Entry { key: key.into(), value: Value::inline("of the base") })
    };
    let mut entries = ["a", "b", "c"].into_iter().map(entry);
    let base = Tree::build(store, small_nodes(), &mut entries).unwrap();
    store.sync().unwrap();
    let mut transaction = engine.begin();
    transaction.set_synced_base(tree, base).unwrap();
    put(&mut transaction, tree, "b", "over it");
    transaction.delete(tree, "c".into()).unwrap();
    transaction.commit(Durability::Synced).unwrap();
    let engine = open(&disk.crash(), quiet()).unwrap();
    let snapshot = engine.snapshot();
    let found = ["a", "b", "c"].map(|key| get(&snapshot, tree, key));
    assert_eq!(found, [Some("of the base".to_owned()), Some("over it".to_owned()), None]);
    engine.check().unwrap();
}

#[test]
fn validations_of_an_undone_statement_are_forgotten() {
    for is_undone in [true, false] {
        let engine = open(&SimDisk::new(1), quiet()).unwrap();
        let tree = make_trees(&engine, 1).unwrap()[0];
        let mut transaction = engine.begin_as(LockMode::Interactive);
        let mut another = engine.begin();
        put(&mut another, tree, "name", "new");
        another.commit(Durability::Relaxed).unwrap();

        let statement = transaction.begin_statement();
        transaction.validate(TreeId::SYSTEM, "unrelated".into());
        transaction.validate(tree, "name".into());
        assert!(transaction.check_validated(statement).is_err());
        assert!(transaction.is_stale());
        if is_undone {
            transaction.undo_statement(statement);
        }
        assert_eq!(transaction.refresh_snapshot().unwrap(), is_undone);
        if is_undone {
            let statement = transaction.begin_statement();
            transaction.validate(tree, "name".into());
            transaction.check_validated(statement).unwrap();
            put(&mut transaction, tree, "more", "1");
            transaction.commit(Durability::Relaxed).unwrap();
        }
    }
}
