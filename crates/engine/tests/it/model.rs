//! Random transactions against a model: the engine does what a list of sorted maps would do.
//!
//! *Method*: several transactions and snapshots are open at once, each with a copy of the model's
//! trees from when it began. A commit must conflict exactly if a key that it wrote (or a tree that
//! it replaced) was written since; if it has read nothing, only if a tree that it wrote to was
//! replaced since (or one that it replaced was written). Folds, checkpoints, collections and
//! reopenings happen in between and must change nothing that anybody sees; snapshots must show what
//! they showed at first, and so must moments that are leased; others do, or are too old.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use frond_engine::{
    Durability, Engine, EngineError, EngineOptions, ReclaimOptions, Savepoint, Sequence, Snapshot,
    Transaction, TreeId,
};
use frond_testkit::random::{assert_met, for_seeds};
use frond_testkit::{Random, SimDisk};
use frond_tree::{Bounds, Direction, Tree, Value};

use crate::rig::{Content, add_work, changed, churning, content, new_bytes, open, small_nodes};

type Trees = BTreeMap<TreeId, Content>;

/// The keys that a transaction touched: `None` for the tree as a whole.
type Touched = BTreeSet<(TreeId, Option<Bytes>)>;

struct OpenTransaction {
    transaction: Transaction,
    trees: Trees,
    touched: Touched,
    has_read: bool,
    /// The number of transactions that were committed when it began.
    began: usize,
    savepoints: Vec<(Savepoint, Trees, Touched)>,
}

struct World {
    disk: SimDisk,
    options: EngineOptions,
    engine: Engine,
    trees: Trees,
    committed: Vec<Touched>,
    transactions: Vec<OpenTransaction>,
    snapshots: Vec<(Snapshot, Trees)>,
    /// Moments that have gone by, and whether they are leased.
    moments: Vec<(Sequence, Trees, bool)>,
    /// Runs written, steps of passes and merges of engines that were closed.
    work: [u64; 3],
}

impl World {
    fn new(random: &mut Random) -> World {
        let disk = SimDisk::new(random.next());
        // Some runs flush and fold all the time, in the background or not, some only when asked.
        let share = *random.choose(&[15, 400, 5000]);
        let options = match random.below(3) {
            0 => EngineOptions { memtable_bytes_max: 6_000, fold_threads: 2, ..churning(share) },
            1 => churning(share),
            _ => EngineOptions::default(),
        };
        let options = EngineOptions { relaxed_sync_millis: 1, ..options };
        let engine = open(&disk, options).unwrap();
        let trees = Trees::from([(TreeId::SYSTEM, Content::new())]);
        let (committed, transactions, snapshots, moments) = Default::default();
        let work = [0; 3];
        World { disk, options, engine, trees, committed, transactions, snapshots, moments, work }
    }

    fn step(&mut self, random: &mut Random) {
        // Where the background is to be seen at work, little is folded on demand.
        let on_demand = self.options.fold_threads > 0 || random.one_in(20);
        match random.below(42) {
            0 | 2..=4 if !on_demand => {}
            40 | 41 => {
                let thorough = on_demand && random.one_in(4);
                let options = ReclaimOptions { thorough, ..ReclaimOptions::default() };
                self.engine.reclaim(options).unwrap();
            }
            0 => self.engine.checkpoint().unwrap(),
            1 => self.reopen(),
            2..=4 => self.fold(random),
            5..=7 => {
                self.snapshots.push((self.engine.snapshot(), self.trees.clone()));
                self.note_moment(random);
                if self.snapshots.len() > 4 {
                    let (snapshot, trees) =
                        self.snapshots.swap_remove(random.below(self.snapshots.len()));
                    check_snapshot(&snapshot, &trees, random);
                }
            }
            8..=13 => {
                let transaction = self.engine.begin();
                self.transactions.push(OpenTransaction {
                    transaction,
                    trees: self.trees.clone(),
                    touched: Touched::new(),
                    has_read: false,
                    began: self.committed.len(),
                    savepoints: Vec::new(),
                });
            }
            14..=19 if !self.transactions.is_empty() => self.commit(random),
            _ if !self.transactions.is_empty() => {
                let position = random.below(self.transactions.len());
                let engine = &self.engine;
                write(engine, &mut self.transactions[position], random);
            }
            _ => check_snapshot(&self.engine.snapshot(), &self.trees, random),
        }
    }

    fn commit(&mut self, random: &mut Random) {
        let position = random.below(self.transactions.len());
        let open = self.transactions.swap_remove(position);
        if random.one_in(5) {
            return; // Dropped: nothing of it may ever show.
        }
        let conflicts = self.committed[open.began..]
            .iter()
            .any(|other| conflict(other, &open.touched, open.has_read));
        let relaxed = random.one_in(3);
        let durability = if relaxed { Durability::Relaxed } else { Durability::Synced };
        match open.transaction.commit(durability) {
            Ok(_) => {
                assert!(!conflicts, "a conflict was missed");
                for (tree, key) in &open.touched {
                    carry_over(&mut self.trees, &open.trees, *tree, key.as_ref());
                }
                self.committed.push(open.touched);
            }
            Err(EngineError::Conflict { .. }) => assert!(conflicts, "a needless conflict"),
            Err(error) => panic!("{error}"),
        }
    }

    /// Keeps the moment in mind, leased or not, and reads one that is.
    fn note_moment(&mut self, random: &mut Random) {
        let is_leased = random.one_in(2);
        let moment = match is_leased {
            true => self.engine.lease(Duration::from_secs(600)).sequence(),
            false => self.engine.visible(),
        };
        self.moments.push((moment, self.trees.clone(), is_leased));
        if self.moments.len() > 6 {
            let (moment, trees, is_leased) =
                self.moments.swap_remove(random.below(self.moments.len()));
            match self.engine.snapshot_at(moment) {
                Ok(snapshot) => check_snapshot(&snapshot, &trees, random),
                Err(EngineError::SnapshotTooOld) => assert!(!is_leased, "a lease was broken"),
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn fold(&mut self, random: &mut Random) {
        let now = (self.engine.snapshot(), self.trees.clone());
        let (snapshot, trees) = match self.snapshots.is_empty() || random.one_in(2) {
            true => &now,
            false => random.choose(&self.snapshots),
        };
        let ids: Vec<TreeId> = trees.keys().copied().filter(|_| !random.one_in(3)).collect();
        let folded = self.engine.fold(snapshot, &ids).unwrap();
        for (id, tree) in ids.iter().zip(folded) {
            let built = build(&self.engine, tree.format, &trees[id]);
            assert_eq!(tree, built, "a fold gives the root that a fresh build gives");
        }
    }

    fn reopen(&mut self) {
        self.work = add_work(self.work, &self.engine);
        self.engine.close().unwrap();
        self.transactions.clear();
        self.snapshots.clear();
        self.moments.iter_mut().for_each(|(_, _, is_leased)| *is_leased = false);
        self.disk = self.disk.crash();
        self.engine = open(&self.disk, self.options).unwrap();
    }
}

/// Whether `mine` may not commit after `other`, which it has not seen.
fn conflict(other: &Touched, mine: &Touched, has_read: bool) -> bool {
    mine.iter().any(|(tree, key)| match key {
        Some(_) => {
            let same_key = has_read && other.contains(&(*tree, key.clone()));
            same_key || other.contains(&(*tree, None))
        }
        None => other.iter().any(|(written, _)| written == tree),
    })
}

/// Brings what one transaction did at `key` (or to the whole tree) into the model.
fn carry_over(into: &mut Trees, from: &Trees, tree: TreeId, key: Option<&Bytes>) {
    let Some(key) = key else {
        match from.get(&tree) {
            Some(content) => into.insert(tree, content.clone()),
            None => into.remove(&tree),
        };
        return;
    };
    let (Some(into), Some(from)) = (into.get_mut(&tree), from.get(&tree)) else { return };
    match from.get(key) {
        Some(value) => into.insert(key.clone(), value.clone()),
        None => into.remove(key),
    };
}

/// Does something in a transaction, and the same in its copy of the model.
fn write(engine: &Engine, open: &mut OpenTransaction, random: &mut Random) {
    let trees: Vec<TreeId> = open.trees.keys().copied().collect();
    let tree = *random.choose(&trees);
    match random.below(30) {
        0 if open.trees.len() < 6 => {
            let tree = engine.reserve_tree_id();
            let base = build(engine, small_nodes(), &Content::new());
            open.transaction.set_base(tree, base).unwrap();
            open.trees.insert(tree, Content::new());
            open.touched.insert((tree, None));
        }
        1 if random.one_in(3) => {
            let source = open.trees[random.choose(&trees)].clone();
            let base = build(engine, small_nodes(), &source);
            open.transaction.set_base(tree, base).unwrap();
            open.trees.insert(tree, source);
            open.touched.insert((tree, None));
        }
        2 if tree != TreeId::SYSTEM && random.one_in(3) => {
            open.transaction.drop_tree(tree).unwrap();
            open.trees.remove(&tree);
            open.touched.insert((tree, None));
        }
        3 | 4 => {
            let savepoint = open.transaction.savepoint();
            open.savepoints.push((savepoint, open.trees.clone(), open.touched.clone()));
        }
        5 if !open.savepoints.is_empty() => {
            let keep = random.below(open.savepoints.len());
            open.savepoints.truncate(keep + 1);
            let (savepoint, trees, touched) = open.savepoints[keep].clone();
            open.transaction.rollback_to(savepoint);
            open.has_read = true;
            open.trees = trees;
            open.touched = touched;
        }
        6..=8 => {
            check_transaction(&open.transaction, tree, &open.trees[&tree], random);
            open.has_read = !open.touched.contains(&(tree, None)) || open.has_read;
        }
        _ => {
            let content = open.trees.get_mut(&tree).unwrap();
            // A transaction that says that it changes a value has read it.
            let is_blind = random.one_in(2);
            for _ in 0..1 + random.below(12) {
                let key = Bytes::from(format!("{:03}", random.below(300)));
                open.touched.insert((tree, Some(key.clone())));
                if random.one_in(4) {
                    content.remove(&key);
                    open.transaction.delete(tree, key).unwrap();
                    continue;
                }
                let bytes = match content.get(&key).filter(|_| !random.one_in(3)) {
                    Some(before) => changed(before, random),
                    None if random.one_in(6) => new_bytes(random),
                    None => random.bytes(20).into(),
                };
                content.insert(key.clone(), bytes.clone());
                let value = Value::inline(bytes);
                open.has_read |= !is_blind;
                match is_blind {
                    true => open.transaction.put(tree, key, value).unwrap(),
                    false => open.transaction.put_changed(tree, key, value).unwrap(),
                }
            }
        }
    }
}

fn build(engine: &Engine, format: frond_tree::TreeFormat, content: &Content) -> Tree {
    let entries = &mut content.iter().map(|(key, value)| {
        Ok(frond_tree::Entry { key: key.clone(), value: Value::inline(value.clone()) })
    });
    Tree::build(&**engine.store(), format, entries).unwrap()
}

fn random_bounds(random: &mut Random) -> Bounds {
    let mut bound =
        || (!random.one_in(3)).then(|| Bytes::from(format!("{:03}", random.below(300))));
    Bounds { start: bound(), end: bound() }
}

fn expected_range(content: &Content, bounds: &Bounds) -> Vec<(Bytes, Bytes)> {
    let after_start = |key: &Bytes| bounds.start.as_ref().is_none_or(|start| start <= key);
    let before_end = |key: &Bytes| bounds.end.as_ref().is_none_or(|end| key < end);
    content
        .iter()
        .filter(|(key, _)| after_start(key) && before_end(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn check_transaction(
    transaction: &Transaction,
    tree: TreeId,
    expected: &Content,
    random: &mut Random,
) {
    let bounds = random_bounds(random);
    for direction in [Direction::Ascending, Direction::Descending] {
        let cursor = transaction.range(tree, bounds.clone(), direction).unwrap();
        let mut found: Vec<(Bytes, Bytes)> = cursor
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.key, transaction.read(&entry.value).unwrap()))
            .collect();
        if direction == Direction::Descending {
            found.reverse();
        }
        assert_eq!(found, expected_range(expected, &bounds));
    }
    let key = Bytes::from(format!("{:03}", random.below(300)));
    let found = transaction.get(tree, &key).unwrap();
    let found = found.map(|value| transaction.read(&value).unwrap());
    assert_eq!(found.as_ref(), expected.get(&key));
}

fn check_snapshot(snapshot: &Snapshot, trees: &Trees, random: &mut Random) {
    for (tree, expected) in trees {
        assert_eq!(content(snapshot, *tree), *expected);
        let bounds = random_bounds(random);
        let count = snapshot.count_range(*tree, &bounds).unwrap();
        assert_eq!(count, expected_range(expected, &bounds).len() as u64);
    }
    let dropped = TreeId(trees.keys().last().unwrap().0 + 1);
    assert!(!snapshot.has_tree(dropped));
}

#[test]
fn random_transactions_do_what_the_model_does() {
    let mut work = [0; 3];
    for_seeds(60, |mut random| {
        let mut world = World::new(&mut random);
        let steps = if world.options.fold_threads == 0 { 1500 } else { 250 };
        for _ in 0..steps {
            world.step(&mut random);
        }
        for (snapshot, trees) in &world.snapshots {
            check_snapshot(snapshot, trees, &mut random);
        }
        check_snapshot(&world.engine.snapshot(), &world.trees, &mut random);
        world.engine.check().unwrap();
        world.reopen();
        check_snapshot(&world.engine.snapshot(), &world.trees, &mut random);
        world.engine.checkpoint().unwrap();
        check_snapshot(&world.engine.snapshot(), &world.trees, &mut random);
        world.engine.check().unwrap();
        let done = add_work(world.work, &world.engine);
        work.iter_mut().zip(done).for_each(|(sum, done)| *sum += done);
    });
    for (what, count) in ["flushes", "folds", "merges"].into_iter().zip(work) {
        assert_met(what, count, 1);
    }
}
