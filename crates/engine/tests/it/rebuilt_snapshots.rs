//! Goal: every acknowledged moment that the kept log reaches is read exactly, whatever was flushed,
//! folded, collected, dropped or replaced since; any other is refused, with the moment from which
//! on all are there.
//!
//! *Method*: random transactions on several trees with short and long values, large values that
//! share chunks, new bases and dropped trees; in between flushes, folds, collections, restarts,
//! power cuts and a clock that runs. After each the whole content is noted under its Sequence, and
//! now and then, and at the end, all moments are read back, in any order. Once the log is kept for
//! hours, once for so little that most is given up.

use std::collections::BTreeMap;

use bytes::Bytes;
use frond_engine::{
    ChangeRetention, Durability, Engine, EngineError, EngineOptions, RebuildError, RetentionBegins,
    Sequence, Snapshot, TreeId,
};
use frond_testkit::machine::machine;
use frond_testkit::random::{assert_met, for_seeds};
use frond_testkit::{Random, SimClock, SimDisk};
use frond_tree::{Bounds, Direction, Edit, Tree, Value};

use crate::large::{self, Parts, brought, value_of};
use crate::rig::{
    Content, THOROUGH, changed, churning, collect, make_trees, new_bytes, quiet, small_nodes,
};

const LARGE_COUNT: usize = 4;

/// The content of a snapshot: ordinary trees, and large values of the last.
type World = (BTreeMap<TreeId, Content>, BTreeMap<Bytes, Parts>);

struct Run {
    disk: SimDisk,
    clock: SimClock,
    options: EngineOptions,
    engine: Engine,
    trees: Vec<TreeId>,
    large: TreeId,
    moments: Vec<(Sequence, World)>,
    earlier: Vec<Parts>,
    exact: u64,
    refused: u64,
}

/// Opens it; each opening has other dice, as segments of the log that are used again need them.
fn open(disk: &SimDisk, clock: &SimClock, seed: u64, options: EngineOptions) -> Engine {
    Engine::open(&machine(disk, clock, seed), options).unwrap()
}

impl Run {
    fn new(random: &mut Random, changes: ChangeRetention) -> Run {
        let (disk, clock) = (SimDisk::new(random.next()), SimClock::new());
        let base = if random.one_in(3) { quiet() } else { churning(*random.choose(&[20, 400])) };
        let options = EngineOptions { changes, ..base };
        let engine = open(&disk, &clock, random.next(), options);
        let trees = make_trees(&engine, 3).unwrap();
        let large = make_trees(&engine, 1).unwrap()[0];
        let (moments, earlier) = Default::default();
        let (exact, refused) = (0, 0);
        Run { disk, clock, options, engine, trees, large, moments, earlier, exact, refused }
    }

    fn world(&self, snapshot: &Snapshot) -> Result<World, EngineError> {
        let mut world = World::default();
        for tree in self.trees.iter().filter(|tree| snapshot.has_tree(**tree)) {
            let mut content = Content::new();
            for entry in snapshot.range(*tree, Bounds::all(), Direction::Ascending)? {
                let entry = entry?;
                assert_eq!(snapshot.get(*tree, &entry.key)?.as_ref(), Some(&entry.value));
                content.insert(entry.key, snapshot.read(&entry.value)?);
            }
            assert_eq!(snapshot.count(*tree)?, content.len() as u64);
            world.0.insert(*tree, content);
        }
        for entry in snapshot.range(self.large, Bounds::all(), Direction::Ascending)? {
            let entry = entry?;
            let parts = large::read(&**snapshot.store(), &entry.value).expect("all its chunks");
            world.1.insert(entry.key, parts);
        }
        Ok(world)
    }

    fn note(&mut self) {
        let snapshot = self.engine.snapshot();
        let world = self.world(&snapshot).unwrap();
        self.moments.push((snapshot.sequence(), world));
    }

    fn write(&mut self, random: &mut Random, durability: Durability) {
        let mut transaction = self.engine.begin();
        let (small, large) = self.world(&self.engine.snapshot()).unwrap();
        let count = Value::inline(self.moments.len().to_le_bytes().to_vec());
        transaction.put(TreeId::SYSTEM, Bytes::from("count"), count).unwrap();
        for _ in 0..1 + random.below(3) {
            let Some((tree, content)) = small.iter().nth(random.below(3)) else { continue };
            let key = Bytes::from(vec![b'a' + random.below(20) as u8]);
            match content.get(&key) {
                Some(_) if random.one_in(4) => transaction.delete(*tree, key).unwrap(),
                Some(before) => {
                    let value = Value::inline(changed(before, random));
                    transaction.put_changed(*tree, key, value).unwrap();
                }
                None => transaction.put(*tree, key, Value::inline(new_bytes(random))).unwrap(),
            }
        }
        if random.one_in(2) {
            let key = Bytes::from(vec![b'a' + random.below(LARGE_COUNT) as u8]);
            let before = large.get(&key);
            let parts = match before {
                Some(_) if random.one_in(4) => random.choose(&self.earlier).clone(),
                Some(before) => {
                    let mut parts = before.clone();
                    let place = random.below(parts.len());
                    parts[place] = changed(&parts[place], random);
                    parts
                }
                None => (0..5).map(|_| Bytes::from(random.bytes(400))).collect(),
            };
            if random.one_in(5) {
                self.engine.store().put_many(&large::chunks_of(&parts)).unwrap();
                transaction.put(self.large, key, value_of(&parts)).unwrap();
            } else {
                let value = brought(&mut transaction, &parts, before);
                transaction.put_changed(self.large, key, value).unwrap();
            }
            self.earlier.push(parts);
        }
        transaction.commit(durability).unwrap();
    }

    /// A tree gets another base, or goes, or comes again.
    fn replace(&mut self, random: &mut Random) {
        let tree = *random.choose(&self.trees);
        let mut transaction = self.engine.begin();
        if self.engine.snapshot().has_tree(tree) && random.one_in(3) {
            transaction.drop_tree(tree).unwrap();
        } else {
            let store = &**self.engine.store();
            let empty = Tree::empty(store, small_nodes()).unwrap();
            let entry = |number: u8| {
                let value = Value::inline(vec![number; 10 + usize::from(number)]);
                Ok((Bytes::from(vec![b'a' + number]), Edit::Put(value)))
            };
            let count = random.below(15) as u8;
            let base = empty.apply(store, &mut (0..count).map(entry)).unwrap();
            transaction.set_base(tree, base).unwrap();
        }
        transaction.commit(Durability::Synced).unwrap();
    }

    fn reopen(&mut self, random: &mut Random) {
        // Relaxed writes are synced with it: a power cut takes nothing.
        self.write(random, Durability::Synced);
        self.note();
        if random.one_in(2) {
            self.engine.close().unwrap();
        }
        self.disk = self.disk.crash();
        self.engine = open(&self.disk, &self.clock, random.next(), self.options);
    }

    fn step(&mut self, random: &mut Random) {
        match random.below(30) {
            0 => self.engine.checkpoint().unwrap(),
            1 | 2 => self.engine.flush().unwrap(),
            3 => {
                let snapshot = self.engine.snapshot();
                let trees = [self.trees.as_slice(), &[self.large]].concat();
                let trees: Vec<TreeId> =
                    trees.into_iter().filter(|tree| snapshot.has_tree(*tree)).collect();
                self.engine.fold(&snapshot, &trees).unwrap();
            }
            4 => collect(&self.engine, random).unwrap(),
            5 => _ = self.engine.reclaim(THOROUGH).unwrap(),
            6 => self.reopen(random),
            7 => self.replace(random),
            8 | 9 => self.clock.step(1_000_000 * random.below(30) as i64),
            10 => self.read_back(random, 3),
            11 => self.write(random, Durability::Relaxed),
            _ => self.write(random, Durability::Synced),
        }
        self.note();
    }

    /// Reads some moments, in any order.
    fn read_back(&mut self, random: &mut Random, count: usize) {
        for _ in 0..count {
            self.read_one(random.below(self.moments.len()));
        }
    }

    fn read_one(&mut self, position: usize) {
        let (moment, expected) = &self.moments[position];
        let from = self.engine.oldest_rebuildable().unwrap();
        match self.engine.rebuild_snapshot_at(*moment, &|| true) {
            Ok(snapshot) => {
                assert_eq!(snapshot.sequence(), *moment);
                assert!(self.world(&snapshot).unwrap() == *expected, "{moment:?} is another");
                self.exact += 1;
            }
            Err(RebuildError::Gone { from: earliest }) => {
                assert!(*moment < earliest, "{moment:?} isn't before {earliest:?}");
                assert!(from <= earliest, "what was given up came back");
                self.refused += 1;
            }
            Err(error) => panic!("{moment:?}: {error}"),
        }
    }
}

fn run(random: &mut Random, changes: ChangeRetention) -> (u64, u64) {
    let mut run = Run::new(random, changes);
    run.note();
    for _ in 0..120 {
        run.step(random);
    }
    (0..run.moments.len()).rev().for_each(|position| run.read_one(position));
    run.engine.check().unwrap();
    (run.exact, run.refused)
}

#[test]
fn every_moment_is_exact_while_the_log_is_kept() {
    let mut exact = 0;
    for_seeds(30, |mut random| {
        let changes =
            ChangeRetention { begins: RetentionBegins::AtOnce, seconds: 1 << 20, bytes: 1 << 30 };
        let (read, refused) = run(&mut random, changes);
        assert_eq!(refused, 0, "all is kept");
        exact += read;
    });
    assert_met("moments that were read", exact, 1_000);
}

/// The log's first segments don't tell, and what they have lies in memtables alone, in published
/// bases, or in both. Kept states of an earlier term may be there.
#[test]
fn every_moment_since_the_log_is_kept_is_exact() {
    let mut exact = 0;
    for_seeds(40, |mut random| {
        let kept =
            ChangeRetention { begins: RetentionBegins::AtOnce, seconds: 1 << 20, bytes: 1 << 30 };
        let begun = *random.choose(&[kept, ChangeRetention::default()]);
        let mut run = Run::new(&mut random, begun);
        run.note();
        for changes in [ChangeRetention::default(), kept] {
            (0..random.below(20)).for_each(|_| run.step(&mut random));
            if random.one_in(2) {
                run.engine.checkpoint().unwrap();
            }
            run.engine.close().unwrap();
            run.options.changes = changes;
            run.disk = run.disk.crash();
            run.engine = open(&run.disk, &run.clock, random.next(), run.options);
        }
        run.moments.clear();
        (run.exact, run.refused) = (0, 0);
        run.note();
        for _ in 0..random.below(5) {
            run.write(&mut random, Durability::Synced);
            run.note();
        }
        // A fold before the first flush may leave nothing that shows what was before it.
        run.engine.flush().unwrap();
        (0..60).for_each(|_| run.step(&mut random));
        (0..run.moments.len()).rev().for_each(|position| run.read_one(position));
        assert_eq!(run.refused, 0, "all is kept since");
        run.engine.check().unwrap();
        exact += run.exact;
    });
    assert_met("moments that were read", exact, 1_000);
}

#[test]
fn moments_before_the_log_are_refused() {
    let (mut exact, mut refused) = (0, 0);
    for_seeds(30, |mut random| {
        let changes =
            ChangeRetention { begins: RetentionBegins::AtOnce, seconds: 100, bytes: 20_000 };
        let counts = run(&mut random, changes);
        (exact, refused) = (exact + counts.0, refused + counts.1);
    });
    assert_met("moments that were read", exact, 300);
    assert_met("moments that were refused", refused, 300);
}

#[test]
fn a_segment_that_is_gone_makes_no_moment_older() {
    let (mut exact, mut refused) = (0, 0);
    for_seeds(20, |mut random| {
        let changes =
            ChangeRetention { begins: RetentionBegins::AtOnce, seconds: 1 << 20, bytes: 1 << 30 };
        let mut run = Run::new(&mut random, changes);
        run.note();
        for _ in 0..60 {
            run.step(&mut random);
        }
        run.engine.close().unwrap();
        run.disk = run.disk.crash();
        let disk = machine(&run.disk, &run.clock, 0).disk;
        let mut segments = disk.list().unwrap();
        segments.retain(|name| name.starts_with("log-"));
        segments.sort();
        // The opening misses the one in which the log ends.
        segments.pop();
        if segments.is_empty() {
            return;
        }
        disk.remove(random.choose::<String>(&segments)).unwrap();
        let opened = Engine::open(&machine(&run.disk, &run.clock, random.next()), run.options);
        let Ok(engine) = opened else {
            refused += 1;
            return;
        };
        run.engine = engine;
        for (moment, expected) in &run.moments {
            match run.engine.rebuild_snapshot_at(*moment, &|| true) {
                Ok(snapshot) => {
                    assert!(run.world(&snapshot).unwrap() == *expected, "{moment:?} is another");
                    exact += 1;
                }
                Err(_) => refused += 1,
            }
        }
    });
    assert_met("moments that were read", exact, 20);
    assert_met("moments that were refused", refused, 20);
}
