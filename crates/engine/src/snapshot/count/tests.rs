//! Goal: where writers say what keys had, a count looks none of them up: neither in a memtable nor
//! in the run that a flush makes of it. Method: writes to a third of a tree, by writers that say it
//! and by ones that don't, and the chunks that counts read.

use std::sync::Arc;

use bytes::Bytes;
use frond_store::local::{LocalOptions, LocalStore};
use frond_testkit::SimDisk;
use frond_tree::{Bounds, Tree, Value};

use crate::ids::TreeId;
use crate::options::EngineOptions;
use crate::recovery;
use crate::shared::Shared;
use crate::transaction::held_locks::LockMode;
use crate::transaction::{Durability, Transaction};

const TREE: TreeId = TreeId(2);
const KEYS: u32 = 4_000;
/// What the ranks of two bounds take, in a tree and a run.
const FEW_CHUNKS: u64 = 10;

fn commit(shared: &Arc<Shared>, change: impl FnOnce(&mut Transaction)) {
    let mut transaction = Transaction::begin(Arc::clone(shared), LockMode::default());
    change(&mut transaction);
    transaction.commit(Durability::Synced).unwrap();
}

/// An engine without threads, and a tree with the even keys.
fn filled() -> Arc<Shared> {
    let (machine, options) = (
        SimDisk::new(1).machine(),
        EngineOptions { memtable_bytes_max: 400_000, ..EngineOptions::default() },
    );
    let store = LocalStore::open(&machine, LocalOptions::default()).unwrap();
    let shared = Arc::new(recovery::open(&machine, store, options).unwrap());
    assert_eq!(shared.tree_ids.reserve(), TREE);
    let base = Tree::empty(&*shared.store, shared.local_format).unwrap();
    commit(&shared, |transaction| transaction.set_base(TREE, base).unwrap());
    commit(&shared, |transaction| {
        for number in (0..KEYS).step_by(2) {
            transaction.put(TREE, key(number), Value::inline(vec![1; 200])).unwrap();
        }
    });
    shared.checkpoint().unwrap();
    shared
}

fn key(number: u32) -> Bytes {
    Bytes::copy_from_slice(&number.to_be_bytes())
}

/// Writes to each third key: half of them come, a quarter changes, a quarter goes.
fn write(transaction: &mut Transaction, knows: bool) {
    for number in (0..KEYS).step_by(3) {
        let (key, value) = (key(number), Value::inline("new"));
        match (knows, number % 4) {
            (true, 0) => transaction.put_existing(TREE, key, value),
            (true, 2) => transaction.delete_existing(TREE, key),
            (true, _) => transaction.put_new(TREE, key, value),
            (false, 2) => transaction.delete(TREE, key),
            (false, _) => transaction.put(TREE, key, value),
        }
        .unwrap();
    }
}

/// Counts a range, and returns how many chunks that read.
fn count(shared: &Shared) -> u64 {
    let bounds = Bounds { start: Some(key(KEYS / 4)), end: Some(key(KEYS)) };
    let expected = (KEYS / 4..KEYS).filter(|number| match (number % 3, number % 4) {
        (0, kind) => kind != 2,
        (_, kind) => kind % 2 == 0,
    });
    let before = shared.store.counters().chunks_read;
    let counted = shared.snapshot().count_range(TREE, &bounds).unwrap();
    assert_eq!(counted, expected.count() as u64);
    shared.store.counters().chunks_read - before
}

#[test]
fn keys_that_writers_know_are_not_looked_up() {
    for knows in [true, false] {
        for is_flushed in [false, true] {
            let shared = filled();
            commit(&shared, |transaction| write(transaction, knows));
            if is_flushed {
                shared.flush().unwrap();
            }
            assert_eq!(shared.current().0.run_count(), u64::from(is_flushed));
            let read = count(&shared);
            assert_eq!(read <= FEW_CHUNKS, knows, "{read} chunks, {knows} {is_flushed}");
            assert!(count(&shared) <= FEW_CHUNKS, "what was looked up is kept");
            shared.check().unwrap();
        }
    }
}

#[test]
fn a_transaction_looks_up_none_of_its_writes_that_it_knows() {
    for knows in [true, false] {
        let shared = filled();
        let mut transaction = Transaction::begin(Arc::clone(&shared), LockMode::default());
        write(&mut transaction, knows);
        let before = shared.store.counters().chunks_read;
        let counted = transaction.count(TREE).unwrap();
        let read = shared.store.counters().chunks_read - before;
        assert_eq!(read <= FEW_CHUNKS, knows, "{read} chunks");
        transaction.commit(Durability::Synced).unwrap();
        assert_eq!(shared.snapshot().count(TREE).unwrap(), counted);
        shared.check().unwrap();
    }
}
