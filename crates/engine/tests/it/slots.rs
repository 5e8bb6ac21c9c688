//! Goal: where the log lies in a bucket, every acknowledged transaction survives the loss of the
//! directory, and no other by half; a deposed leader acknowledges nothing.
//!
//! *Method*: a script writes (small values, changed ones, large ones with chunks that lie in packs
//! only, trees that are made and dropped), flushes, folds and collects, on a simulated disk and a
//! simulated bucket. It is cut off at each call to the bucket, or loses its power at each operation
//! of the disk, or the bucket answers badly. Then the directory goes on, or is deleted and an empty
//! one takes over: it must have exactly what was acknowledged, or that and the one transaction
//! whose outcome is unknown.

mod beside;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use frond_engine::order::{SetEntry, SlotOrder};
use frond_engine::{Durability, Engine, EngineError, EngineOptions, TreeId};
use frond_store::bucket::Bucket;
use frond_store::io::Machine;
use frond_store::tiered::{LogPlace, TieredDisk, TieredOptions};
use frond_testkit::random::for_seeds;
use frond_testkit::{DepotFaults, Random, SimDepot, SimDisk};
use frond_tree::{Tree, Value};

use crate::large::{Parts, brought, chunks_of, value_of};
use crate::rig::{changed, churning, collect, new_bytes, quiet, small_nodes};
use crate::sets::{World, world};

/// A directory and its way to the bucket.
struct Node {
    disk: SimDisk,
    bucket: Arc<SimDepot>,
    take_over: bool,
}

impl Node {
    fn new(seed: u64, bucket: &SimDepot) -> Node {
        let (disk, bucket) = (SimDisk::new(seed), Arc::new(bucket.other_client()));
        Node { disk, bucket, take_over: false }
    }

    /// An empty directory that takes over.
    fn successor(seed: u64, bucket: &SimDepot) -> Node {
        Node { take_over: true, ..Node::new(seed, bucket) }
    }

    /// The same directory after its process ended, which `disk` is what is left of.
    fn again(&self, disk: SimDisk) -> Node {
        Node { disk, bucket: Arc::new(self.bucket.other_client()), take_over: false }
    }

    fn open(&self) -> Result<Engine, EngineError> {
        self.open_with(churning(40))
    }

    fn open_with(&self, engine: EngineOptions) -> Result<Engine, EngineError> {
        self.open_on(self.bucket.clone(), engine)
    }

    fn open_on(
        &self,
        bucket: Arc<dyn Bucket>,
        engine: EngineOptions,
    ) -> Result<Engine, EngineError> {
        let machine = self.disk.machine();
        let options = TieredOptions {
            place: "sim://bucket".to_owned(),
            cache_bytes: 1 << 20,
            local_bytes_max: 64 << 10,
            take_over: self.take_over,
            clone_of: None,
            pin_lease: None,
            log: LogPlace::Bucket,
            linger: Duration::ZERO,
            keep_slots: Duration::ZERO,
        };
        let tiered = Arc::new(TieredDisk::open(&machine, bucket, options)?);
        let slots = Arc::clone(tiered.slots().expect("the log lies there"));
        let machine = Machine { disk: Arc::clone(&tiered) as _, ..machine };
        let order = Arc::new(SlotOrder::new(Arc::clone(&slots)));
        let engine = Engine::open_in_set(&machine, engine, order)?;
        slots.replay(&mut |entry| engine.apply(SetEntry::decode(&entry)?))?;
        engine.lead();
        engine.remove_left_staging()?;
        if !tiered.is_log_begun() {
            engine.send_all()?;
        }
        // A thread sends it. Before that nothing may be acknowledged.
        while !tiered.is_log_begun() {
            std::thread::yield_now();
        }
        Ok(engine)
    }
}

/// The known outcome of a script's writes.
#[derive(Default)]
struct Seen {
    trees: Vec<TreeId>,
    acknowledged: World,
    /// The content if the last transaction was committed, for which that isn't known.
    unknown: Option<World>,
}

impl Seen {
    /// A random transaction.
    fn write(&mut self, engine: &Engine, random: &mut Random) -> Result<(), EngineError> {
        let mut after = self.acknowledged.clone();
        let mut transaction = engine.begin();
        let mut here: Vec<TreeId> =
            self.trees.iter().copied().filter(|tree| transaction.has_tree(*tree)).collect();
        if here.len() < 2 || random.one_in(12) {
            let tree = engine.reserve_tree_id();
            transaction.set_base(tree, Tree::empty(&**engine.store(), small_nodes())?)?;
            // One that was reserved in vain may be again, elsewhere.
            self.trees.retain(|other| *other != tree);
            self.trees.push(tree);
            here = vec![tree];
        } else if random.one_in(20) {
            let tree = here.swap_remove(random.below(here.len()));
            transaction.drop_tree(tree)?;
            after.retain(|(of, _), _| *of != tree);
        }
        for _ in 0..1 + random.below(3) {
            let tree = *random.choose(&here);
            let key = Bytes::from(vec![b'a' + random.below(9) as u8]);
            let before = after.get(&(tree, key.clone())).cloned();
            let (value, parts) = match random.below(4) {
                0 => large(engine, &mut transaction, before.as_ref(), random)?,
                kind => {
                    let bytes = match &before {
                        Some(parts) if parts.len() == 1 && kind == 1 => changed(&parts[0], random),
                        _ => new_bytes(random),
                    };
                    (Value::inline(bytes.clone()), vec![bytes])
                }
            };
            transaction.put_changed(tree, key.clone(), value)?;
            after.insert((tree, key), parts);
        }
        match transaction.commit(Durability::Synced) {
            Ok(_) => {
                assert!(self.unknown.is_none(), "it acknowledges what comes behind an unknown");
                self.acknowledged = after;
                Ok(())
            }
            Err(error @ EngineError::Unknown(_)) => {
                self.unknown = Some(after);
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes, flushes, folds and collects, until the end or the first error.
    fn script(&mut self, node: &Node, mut random: Random, steps: usize) -> Result<(), EngineError> {
        let engine = node.open()?;
        for _ in 0..steps {
            match random.below(12) {
                0 => engine.flush()?,
                1 => engine.checkpoint()?,
                2 => collect(&engine, &mut random)?,
                _ => self.write(&engine, &mut random)?,
            }
        }
        Ok(())
    }

    /// Checks the state that an opening finds, which all later ones find, too.
    fn check(&mut self, engine: &Engine) {
        engine.check().expect("it is whole");
        let found = world(engine, &engine.snapshot(), &self.trees);
        let unknown = self.unknown.take();
        let is_right = found == self.acknowledged || Some(&found) == unknown.as_ref();
        assert!(is_right, "{} keys, {} of them", found.len(), self.acknowledged.len());
        self.acknowledged = found;
    }
}

/// A large value, brought by the transaction or lying in this engine's packs only.
fn large(
    engine: &Engine,
    transaction: &mut frond_engine::Transaction,
    before: Option<&Parts>,
    random: &mut Random,
) -> Result<(Value, Parts), EngineError> {
    let known = before.filter(|parts| parts.len() > 1);
    let mut parts: Parts = match known {
        Some(parts) => parts.clone(),
        None => (0..4).map(|_| random.bytes(400).into()).collect(),
    };
    let place = random.below(parts.len());
    parts[place] = changed(&parts[place], random);
    if random.one_in(2) {
        engine.store().put_many(&chunks_of(&parts))?;
        return Ok((value_of(&parts), parts));
    }
    Ok((brought(transaction, &parts, known), parts))
}

/// The directory goes on, which needs no repair, or is lost; then the next one is.
fn go_on(node: &Node, left: SimDisk, bucket: &SimDepot, seen: &mut Seen, random: &mut Random) {
    bucket.settle();
    if random.one_in(2) {
        seen.check(&node.again(left).open().expect("a cut needs no repair"));
    }
    lose(bucket, seen, random);
}

/// The directory is lost, and so is the one that takes over.
fn lose(bucket: &SimDepot, seen: &mut Seen, random: &mut Random) {
    let successor = Node::successor(random.next(), bucket);
    let engine = match successor.open() {
        Ok(engine) => engine,
        // Nothing was ever whole, and so nothing acknowledged.
        Err(error) => return assert!(seen.acknowledged.is_empty(), "{error}"),
    };
    seen.check(&engine);
    for _ in 0..3 {
        seen.write(&engine, random).expect("it leads");
    }
    drop(engine);
    let third = Node::successor(random.next(), bucket).open().expect("it takes over again");
    seen.check(&third);
}

#[test]
fn cut_off_at_each_call_to_the_bucket_nothing_acknowledged_is_lost() {
    for_seeds(2, |mut random| {
        let seed = random.next();
        let mut run = |cut: Option<u64>| {
            let bucket = SimDepot::new(seed);
            let node = Node::new(seed, &bucket);
            if let Some(calls) = cut {
                node.bucket.cut_after(calls);
            }
            let mut seen = Seen::default();
            let ended = seen.script(&node, Random::new(seed), 30);
            assert!(ended.is_ok() || node.bucket.is_cut(), "{ended:?}");
            let (calls, left) = (node.bucket.calls(), node.disk.kill());
            go_on(&node, left, &bucket, &mut seen, &mut random);
            calls
        };
        let calls = run(None);
        for cut in 0..calls {
            run(Some(cut));
        }
    });
}

#[test]
fn when_the_power_fails_at_each_operation_nothing_acknowledged_is_lost() {
    for_seeds(1, |mut random| {
        let seed = random.next();
        let mut run = |cut: Option<u64>| {
            let bucket = SimDepot::new(seed);
            let node = Node::new(seed, &bucket);
            if let Some(operations) = cut {
                node.disk.crash_after(operations);
            }
            let mut seen = Seen::default();
            let ended = seen.script(&node, Random::new(seed), 15);
            assert!(ended.is_ok() || node.disk.is_dead(), "{ended:?}");
            let (operations, left) = (node.disk.operations(), node.disk.crash());
            go_on(&node, left, &bucket, &mut seen, &mut random);
            operations
        };
        let operations = run(None);
        for cut in 0..operations {
            run(Some(cut));
        }
    });
}

#[test]
fn a_bucket_that_answers_badly_loses_nothing_acknowledged() {
    for_seeds(30, |mut random| {
        let bucket = SimDepot::new(random.next());
        let mut node = Node::new(random.next(), &bucket);
        let mut seen = Seen::default();
        seen.script(&node, Random::new(random.next()), 2).expect("the bucket works");
        for _ in 0..3 {
            bucket.set_faults(DepotFaults::MANY);
            // It may fail, and the next goes on from what is there.
            let left = match random.one_in(2) {
                true => node.disk.kill(),
                false => node.disk.crash(),
            };
            node = match random.one_in(2) {
                true => node.again(left),
                false => Node::successor(random.next(), &bucket),
            };
            let before = seen.unknown.clone();
            let Ok(engine) = node.open() else {
                assert_eq!(seen.unknown.is_some(), before.is_some());
                node = Node::successor(random.next(), &bucket);
                continue;
            };
            bucket.set_faults(DepotFaults::default());
            seen.check(&engine);
            bucket.set_faults(DepotFaults::MANY);
            for _ in 0..12 {
                if seen.write(&engine, &mut random).is_err() {
                    break;
                }
                if random.one_in(6) {
                    let _ = engine.flush();
                }
            }
        }
        bucket.settle();
        bucket.set_faults(DepotFaults::default());
        lose(&bucket, &mut seen, &mut random);
    });
}

#[test]
fn a_deposed_leader_acknowledges_nothing() {
    for_seeds(20, |mut random| {
        let bucket = SimDepot::new(random.next());
        let first = Node::new(random.next(), &bucket).open().expect("it is new");
        let mut seen = Seen::default();
        for _ in 0..random.below(10) {
            seen.write(&first, &mut random).expect("it leads");
        }
        let second = Node::successor(random.next(), &bucket).open().expect("it takes over");
        seen.check(&second);
        let mut lost = Seen { trees: seen.trees.clone(), ..Seen::default() };
        for _ in 0..3 {
            lost.write(&first, &mut random).expect_err("it was deposed");
        }
        assert!(first.fault().is_some(), "it steps down");
        for _ in 0..3 {
            seen.write(&second, &mut random).expect("it leads");
        }
        drop(second);
        let third = Node::successor(random.next(), &bucket).open().expect("it takes over");
        seen.check(&third);
    });
}

#[test]
fn slots_that_no_one_needs_go_and_tombstones_stay() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(random.next());
    let names = || {
        let names = bucket.objects().into_keys();
        names.filter(|name| name.starts_with("lines/main/log/")).collect::<Vec<_>>()
    };
    let options = EngineOptions { fold_threads: 0, ..quiet() };
    let engine = Node::new(random.next(), &bucket).open_with(options).expect("it is new");
    let mut seen = Seen::default();
    for _ in 0..5 {
        seen.write(&engine, &mut random).expect("it leads");
    }
    assert!(4 < names().len(), "each is a slot until it is flushed: {:?}", names());
    engine.send_all().expect("the bucket answers");
    assert_eq!(names(), [""; 0]);
    drop(engine);
    let second = Node::successor(random.next(), &bucket).open().expect("it takes over");
    seen.check(&second);
    seen.write(&second, &mut random).expect("it leads");
    second.send_all().expect("the bucket answers");
    let tombstones = names();
    assert_eq!(tombstones.len(), 1, "{tombstones:?}");
    drop(second);
    let third = Node::successor(random.next(), &bucket).open().expect("it takes over");
    seen.check(&third);
    assert!(names().contains(&tombstones[0]), "{:?}", names());
}
