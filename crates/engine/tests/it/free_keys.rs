//! Goal: a key is free for a transaction exactly if it has no value, whatever was searched before.
//!
//! *Method*: keys committed in all layers, deleted in others; then transactions of each kind that
//! ask for keys in ascending order, write and delete some meanwhile, undo that, and are overtaken
//! by others' commits. What they hear is compared with what they read.

use bytes::Bytes;
use frond_engine::{Durability, Engine, LockMode, TreeId};
use frond_testkit::random::{assert_met, for_seeds};
use frond_testkit::{Random, SimDisk};
use frond_tree::Value;

use crate::rig::{churning, make_trees, open};

fn key(number: usize) -> Bytes {
    Bytes::from(format!("{number:05}"))
}

/// Commits or deletes a few keys from `first` on.
fn change(engine: &Engine, tree: TreeId, first: usize, random: &mut Random) {
    let mut transaction = engine.begin();
    for _ in 0..1 + random.below(5) {
        let key = key(first + random.below(1000));
        match random.one_in(3) {
            true => transaction.delete(tree, key).unwrap(),
            false => transaction.put(tree, key, Value::inline(vec![1; 100])).unwrap(),
        }
    }
    transaction.commit(Durability::Relaxed).unwrap();
}

#[test]
fn a_key_is_free_if_it_has_no_value() {
    // Answers that hold: free and taken, of committed keys and of own ones.
    let (mut free, mut taken, mut own) = (0_u32, 0_u32, 0_u32);
    for_seeds(20, |mut random| {
        let engine = open(&SimDisk::new(random.next()), churning(50)).unwrap();
        let trees = make_trees(&engine, 2).unwrap();
        for _ in 0..random.below(60) {
            change(&engine, trees[0], 0, &mut random);
            change(&engine, trees[0], 1000, &mut random);
        }
        for mode in [LockMode::Optimistic, LockMode::Locking, LockMode::Interactive] {
            let mut transaction = engine.begin_as(mode);
            let mut number = random.below(300);
            while number < 2000 {
                let (tree, searched) = (trees[random.below(20) / 19], key(number));
                let is_free = transaction.is_free(tree, &searched).unwrap();
                assert_eq!(
                    is_free,
                    transaction.get(tree, &searched).unwrap().is_none(),
                    "{number}"
                );
                (free, taken) = (free + u32::from(is_free), taken + u32::from(!is_free));
                // Others commit where this one writes nothing, so that neither conflicts.
                let is_own = number < 990;
                let savepoint = transaction.savepoint();
                match random.below(24) {
                    0 if is_own => transaction.put(tree, searched, Value::inline("own")).unwrap(),
                    1 if is_own => transaction.delete(tree, searched).unwrap(),
                    // A key that is asked for later.
                    2 if is_own => {
                        own += 1;
                        let later = key(number + 1 + random.below(4));
                        transaction.put(tree, later, Value::inline("own")).unwrap();
                    }
                    3 => change(&engine, trees[0], 1000, &mut random),
                    _ => {}
                }
                if random.one_in(6) {
                    transaction.rollback_to(savepoint);
                }
                number = match random.one_in(80) {
                    true => random.below(2000),
                    false => number + 1 + random.below(3),
                };
            }
        }
    });
    assert_met("free keys", free, 5_000);
    assert_met("taken keys", taken, 200);
    assert_met("own keys", own, 200);
}
