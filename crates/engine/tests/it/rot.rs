//! Bits rot in packs while an engine is written, folded, collected, packed, and loses its power.
//!
//! *Method*: random steps on a simulated disk: transactions, flushes, folds, collections, restarts,
//! power cuts at any operation, and bits of packs that turn over. A model knows what every key
//! holds. After each restart, and now and then:
//! 1. what is read of a key is what the model says, or an error that names damage: never anything
//!    else;
//! 2. a key that was written after the last bit turned over can be read;
//! 3. a transaction that a power cut ended is there, or not, as a whole;
//! 4. a directory that doesn't open, since a chunk of the engine's own state is damaged or one that
//!    the log changes, opens when these bits are right again, and what was acknowledged is there;
//! 5. at the end the same content, put again, makes everything whole.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use frond_engine::{Durability, Engine, EngineError, EngineOptions, TreeId};
use frond_store::StoreError;
use frond_store::io::Disk;
use frond_testkit::random::{assert_met, for_seeds};
use frond_testkit::{Random, SimDisk};
use frond_tree::{Bounds, Direction, Entry, Tree, TreeError, Value};

use crate::rig::{
    Content, churning, collect, content, make_trees, new_bytes, open, quiet, small_nodes,
};

const KEY_COUNT: usize = 60;
const STEP_COUNT: usize = 70;

/// The counts of steps, of all seeds.
#[derive(Default, Debug)]
struct Reached {
    crashes: u64,
    flips: u64,
    /// Reads that reported damage, and that were right after the first bit had turned over.
    damaged: u64,
    right: u64,
    /// Directories that opened only without the damage.
    closed: u64,
    /// Engines that took no writes in the end: a chunk of their own state was damaged.
    stuck: u64,
    healed: u64,
}

/// A bit that turned over: the file, the byte, and what it was before and since.
type Flip = (String, usize, u8, u8);

struct Rotting {
    disk: SimDisk,
    options: EngineOptions,
    tree: TreeId,
    now: Content,
    /// The content that a transaction wrote whose caller didn't learn whether it is there.
    pending: Option<Content>,
    /// Keys that were written since the last bit turned over.
    fresh: BTreeSet<Bytes>,
    /// Keys that a transaction wrote for which that never became known.
    unknown: BTreeSet<Bytes>,
    flips: Vec<Flip>,
    logs_differences: bool,
}

fn key(number: usize) -> Bytes {
    Bytes::from(format!("{number:02}"))
}

#[track_caller]
fn assert_damage(error: &EngineError) {
    let is_damage = matches!(
        error,
        EngineError::Store(StoreError::Damaged { .. })
            | EngineError::Tree(
                TreeError::Damaged { .. } | TreeError::Store(StoreError::Damaged { .. })
            )
    );
    assert!(is_damage, "{error:?}");
}

impl Rotting {
    fn transact(&mut self, engine: &Engine, random: &mut Random) {
        let mut transaction = engine.begin();
        let mut after = self.now.clone();
        let mut written = BTreeSet::new();
        for _ in 0..1 + random.below(8) {
            let key = key(random.below(KEY_COUNT));
            written.insert(key.clone());
            if random.one_in(5) {
                after.remove(&key);
                transaction.delete(self.tree, key).unwrap();
                continue;
            }
            let bytes = new_bytes(random);
            after.insert(key.clone(), bytes.clone());
            let put = match self.logs_differences && random.one_in(2) {
                // The log gets the difference from the old value, which may not be readable.
                true => transaction.put_changed(self.tree, key, Value::inline(bytes)),
                false => transaction.put(self.tree, key, Value::inline(bytes)),
            };
            if let Err(error) = put {
                return assert_damage(&error);
            }
        }
        match transaction.commit(Durability::Synced) {
            Ok(_) => {
                self.now = after;
                self.unknown.retain(|key| !written.contains(key));
                self.fresh.extend(written);
            }
            Err(error) if !self.disk.is_dead() => assert_damage(&error),
            Err(_) => self.pending = Some(after),
        }
    }

    fn rot(&mut self, random: &mut Random, reached: &mut Reached) {
        let mut names = self.disk.list().unwrap_or_default();
        names.retain(|name| name.ends_with(".pack"));
        let bytes = |name: &String| self.disk.contents(name).map_or(0, |contents| contents.len());
        names.retain(|name| bytes(name) > 0);
        if names.is_empty() {
            return;
        }
        for _ in 0..1 + random.below(3) {
            let name = random.choose(&names).clone();
            let (at, bit) = (random.below(bytes(&name)), random.below(8));
            let before = self.disk.contents(&name).unwrap()[at];
            self.disk.flip_bit(&name, at as u64 * 8 + bit as u64);
            self.flips.push((name, at, before, before ^ (1 << bit)));
            reached.flips += 1;
        }
        self.fresh.clear();
    }

    /// Opens what is there; without the damage if that keeps it closed.
    fn open(&mut self, reached: &mut Reached) -> Engine {
        let names = self.disk.list().unwrap();
        let files: Vec<(String, Vec<u8>)> = names
            .into_iter()
            .map(|name| (name.clone(), self.disk.contents(&name).unwrap()))
            .collect();
        match open(&self.disk, self.options) {
            Ok(engine) => return engine,
            Err(error) => {
                assert!(!self.flips.is_empty(), "{error:?}");
                assert_damage(&error);
            }
        }
        reached.closed += 1;
        // Another one each time: a segment of an older process must never have a younger's nonce.
        self.disk = SimDisk::new(reached.closed);
        for (name, mut bytes) in files {
            for (_, at, before, since) in self.flips.iter().rev().filter(|flip| flip.0 == name) {
                if let Some(byte) = bytes.get_mut(*at).filter(|byte| **byte == *since) {
                    *byte = *before;
                }
            }
            self.disk.set_contents(&name, &bytes);
        }
        open(&self.disk, self.options).unwrap()
    }

    fn read(&self, engine: &Engine, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let snapshot = engine.snapshot();
        let value = snapshot.get(self.tree, key)?;
        value.map(|value| snapshot.read(&value)).transpose()
    }

    fn check(&mut self, engine: &Engine, reached: &mut Reached) {
        let mut found = BTreeMap::new();
        for key in (0..KEY_COUNT).map(key) {
            match self.read(engine, &key) {
                Ok(value) => drop(found.insert(key, value)),
                Err(_) if self.disk.is_dead() => return,
                Err(error) => {
                    assert!(
                        !self.flips.is_empty() && !self.fresh.contains(&key),
                        "{key:?}: {error:?}"
                    );
                    assert_damage(&error);
                    reached.damaged += 1;
                }
            }
        }
        if let Some(pending) = self.pending.take() {
            let fits = |content: &Content| {
                found.iter().all(|(key, value)| {
                    content.get(key) == value.as_ref() || self.unknown.contains(key)
                })
            };
            match (fits(&self.now), fits(&pending)) {
                (true, true) => {
                    let differs = |key: &Bytes| self.now.get(key) != pending.get(key);
                    self.unknown.extend((0..KEY_COUNT).map(key).filter(differs));
                }
                (true, false) => {}
                (false, is_there) => {
                    assert!(is_there, "a transaction is half there, or lost");
                    self.now = pending;
                }
            }
        }
        for (key, value) in &found {
            assert!(self.now.get(key) == value.as_ref() || self.unknown.contains(key), "{key:?}");
            reached.right += u64::from(!self.flips.is_empty());
        }
        let snapshot = engine.snapshot();
        let mut expected = self.now.iter();
        for entry in snapshot.range(self.tree, Bounds::all(), Direction::Ascending).unwrap() {
            let read = entry.and_then(|entry| Ok((entry.key, snapshot.read(&entry.value)?)));
            match read {
                Ok((key, value)) if self.unknown.is_empty() => {
                    assert!(expected.next() == Some((&key, &value)), "{key:?}");
                }
                Ok(_) => {}
                Err(_) if self.disk.is_dead() => return,
                Err(error) => {
                    assert!(!self.flips.is_empty(), "{error:?}");
                    return assert_damage(&error);
                }
            }
        }
        assert!(expected.next().is_none() || !self.unknown.is_empty());
    }

    /// The content, put again as a whole.
    fn heal(&mut self, engine: &Engine) -> bool {
        let mut transaction = engine.begin();
        let mut entries = self.now.iter().map(|(key, value)| {
            Ok(Entry { key: key.clone(), value: Value::inline(value.clone()) })
        });
        let base = Tree::build(&**engine.store(), small_nodes(), &mut entries).unwrap();
        transaction.set_base(self.tree, base).unwrap();
        if let Err(error) = transaction.commit(Durability::Synced) {
            assert_damage(&error);
            return false;
        }
        self.unknown.clear();
        assert!(content(&engine.snapshot(), self.tree) == self.now);
        true
    }
}

fn run(mut random: Random, reached: &mut Reached) {
    let mut disk = SimDisk::new(random.next());
    let options = if random.one_in(3) { quiet() } else { churning(*random.choose(&[15, 5000])) };
    let engine = open(&disk, options).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    drop(engine);
    disk = disk.kill();
    let logs_differences = random.one_in(2);
    let (now, flips) = Default::default();
    let (pending, fresh, unknown) = Default::default();
    let mut rotting =
        Rotting { disk, options, tree, now, pending, fresh, unknown, flips, logs_differences };
    let mut engine = rotting.open(reached);
    for _ in 0..STEP_COUNT {
        // A step that meets damage, or the end of power, fails and changes nothing.
        match random.below(20) {
            0 => drop(engine.checkpoint()),
            1 => drop(engine.fold(&engine.snapshot(), &[tree])),
            2 => drop(collect(&engine, &mut random)),
            9 => drop(engine.repack_while(&mut || !random.one_in(30))),
            3 | 4 => rotting.rot(&mut random, reached),
            5 => rotting.check(&engine, reached),
            6 | 7 => rotting.disk.crash_after(random.below(30) as u64),
            8 => {
                rotting.disk = rotting.disk.kill();
                drop(engine);
                engine = rotting.open(reached);
                rotting.check(&engine, reached);
            }
            _ => rotting.transact(&engine, &mut random),
        }
        if rotting.disk.is_dead() {
            reached.crashes += 1;
            rotting.disk = rotting.disk.crash();
            drop(engine);
            engine = rotting.open(reached);
            rotting.check(&engine, reached);
        }
    }
    rotting.disk = rotting.disk.kill();
    drop(engine);
    engine = rotting.open(reached);
    rotting.check(&engine, reached);
    if !rotting.heal(&engine) {
        reached.stuck += 1;
        return;
    }
    reached.healed += 1;
    reached.crashes += 1;
    rotting.disk = rotting.disk.crash();
    drop(engine);
    let engine = rotting.open(reached);
    assert!(content(&engine.snapshot(), tree) == rotting.now);
}

#[test]
fn bit_rot_is_reported_and_writes_survive() {
    let mut reached = Reached::default();
    for_seeds(60, |random| run(random, &mut reached));
    println!("{reached:?}");
    assert_met("crashes", reached.crashes, 50);
    assert_met("damages", reached.damaged, 50);
    assert_met("healed directories", reached.healed, 20);
}

/// A bit of what packing wrote turns over while what it was written from still lies there, and the
/// power may fail at any operation: nothing is lost.
#[test]
fn packed_chunks_are_verified_before_their_source_goes() {
    let (mut flips, mut ends, mut crashes) = (0, 0, 0);
    for_seeds(60, |mut random| {
        let disk = SimDisk::new(random.next());
        let options = if random.one_in(2) { quiet() } else { churning(15) };
        let engine = open(&disk, options).unwrap();
        let tree = make_trees(&engine, 1).unwrap()[0];
        let mut now = Content::new();
        for step in 0..20 + random.below(20) {
            let mut transaction = engine.begin();
            for _ in 0..1 + random.below(8) {
                let (key, bytes) = (key(random.below(KEY_COUNT)), new_bytes(&mut random));
                transaction.put(tree, key.clone(), Value::inline(bytes.clone())).unwrap();
                now.insert(key, bytes);
            }
            transaction.commit(Durability::Synced).unwrap();
            if step % 5 == 4 {
                engine.checkpoint().unwrap();
            }
        }
        let packs = || {
            let mut names = disk.list().unwrap_or_default();
            names.retain(|name| name.ends_with(".pack"));
            names
        };
        let old = packs();
        let moved = engine.store().counters().bytes_moved;
        let mut has_flipped = false;
        let crashes_in = random.one_in(2).then(|| random.below(60) as u64);
        crashes_in.into_iter().for_each(|operations| disk.crash_after(operations));
        let packed = engine.repack_while(&mut || {
            let has_moved = moved < engine.store().counters().bytes_moved;
            let new = packs().into_iter().rfind(|name| !old.contains(name));
            if let Some(name) = new.filter(|_| has_moved && !has_flipped) {
                has_flipped = true;
                let bits = disk.contents(&name).unwrap().len() * 8;
                disk.flip_bit(&name, random.below(bits) as u64);
                flips += 1;
            }
            !disk.is_dead()
        });
        let is_dead = disk.is_dead();
        assert!(is_dead || matches!(packed, Ok(true)), "{packed:?}");
        if !is_dead {
            ends += 1;
            assert!(content(&engine.snapshot(), tree) == now);
        }
        crashes += u64::from(is_dead);
        let disk = if is_dead { disk.crash() } else { disk.kill() };
        drop(engine);
        let engine = open(&disk, options).unwrap();
        assert!(content(&engine.snapshot(), tree) == now);
        engine.check().unwrap();
    });
    assert_met("flips", flips, 8);
    assert_met("ends", ends, 8);
    assert_met("crashes", crashes, 8);
}
