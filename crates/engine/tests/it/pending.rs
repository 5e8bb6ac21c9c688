//! Chunks that are born in transactions are found wherever they lie, and reach packs only if they
//! are needed there.
//!
//! *Method*: a script of random steps changes *large* values (`large`), also back to what they
//! were, copies them from key to key by transactions that began long before, and holds snapshots.
//! Some put chunks into the store themselves. In between trees are folded, memtables flushed and
//! chunks collected; the process is killed and the power cut. After each step everything that can
//! be asked for is read, and everything that collections keep must be there. The power also fails
//! at each operation of such runs.

use std::collections::BTreeMap;

use bytes::Bytes;
use frond_engine::{Durability, Engine, EngineError, EngineOptions, Snapshot, Transaction, TreeId};
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDisk};
use frond_tree::{Bounds, Direction, Value};

use crate::large::{self, Parts, brought, chunks_of, value_of};
use crate::rig::{QUICK, THOROUGH, changed, churning, collect, make_trees, open, quiet};

const KEY_COUNT: usize = 5;

/// The values by tree and key.
type World = BTreeMap<(usize, Bytes), Parts>;

fn read(engine: &Engine, value: &Value) -> Parts {
    large::read(&**engine.store(), value).expect("a large value")
}

fn world(engine: &Engine, trees: &[TreeId], snapshot: &Snapshot) -> World {
    let mut world = World::new();
    for (position, tree) in trees.iter().enumerate() {
        for entry in snapshot.range(*tree, Bounds::all(), Direction::Ascending).unwrap() {
            let entry = entry.unwrap();
            world.insert((position, entry.key), read(engine, &entry.value));
        }
    }
    world
}

/// The knowledge of a run about itself.
#[derive(Default)]
struct Notes {
    trees: Vec<TreeId>,
    /// The worlds after the last step that was acknowledged, and after the one that was tried.
    acknowledged: World,
    tried: World,
    /// The former values of any key.
    earlier: Vec<Parts>,
}

/// The things that are open in a process.
#[derive(Default)]
struct Held {
    snapshots: Vec<(Snapshot, World)>,
    transactions: Vec<(Transaction, World)>,
}

fn any_key(random: &mut Random) -> (usize, Bytes) {
    (random.below(2), Bytes::from(vec![b'a' + random.below(KEY_COUNT) as u8]))
}

fn write(engine: &Engine, random: &mut Random, notes: &mut Notes) -> Result<(), EngineError> {
    let mut transaction = engine.begin();
    for _ in 0..1 + random.below(2) {
        let (position, key) = any_key(random);
        let before = notes.tried.get(&(position, key.clone())).cloned();
        let parts = match &before {
            Some(_) if random.one_in(4) => random.choose(&notes.earlier).clone(),
            Some(before) if !random.one_in(10) => {
                let mut parts = before.clone();
                let place = random.below(parts.len());
                parts[place] = changed(&parts[place], random);
                parts
            }
            _ => (0..5).map(|_| Bytes::from(random.bytes(400))).collect(),
        };
        let tree = notes.trees[position];
        if random.one_in(6) {
            engine.store().put_many(&chunks_of(&parts))?;
            transaction.put(tree, key.clone(), value_of(&parts))?;
        } else {
            let value = brought(&mut transaction, &parts, before.as_ref());
            transaction.put_changed(tree, key.clone(), value)?;
        }
        notes.earlier.push(parts.clone());
        notes.tried.insert((position, key), parts);
    }
    transaction.commit(Durability::Synced)?;
    notes.acknowledged = notes.tried.clone();
    Ok(())
}

/// Ends a transaction: it gives a key what another one had when it began.
fn copy(
    (mut transaction, seen): (Transaction, World),
    random: &mut Random,
    notes: &mut Notes,
) -> Result<(), EngineError> {
    let Some((_, parts)) = seen.iter().nth(random.below(seen.len().max(1))) else { return Ok(()) };
    let (position, key) = any_key(random);
    transaction.put(notes.trees[position], key.clone(), value_of(parts))?;
    notes.tried.insert((position, key), parts.clone());
    match transaction.commit(Durability::Synced) {
        Ok(_) => notes.acknowledged = notes.tried.clone(),
        Err(EngineError::Conflict { .. }) => notes.tried = notes.acknowledged.clone(),
        Err(error) => return Err(error),
    }
    Ok(())
}

fn step(
    engine: &Engine,
    random: &mut Random,
    notes: &mut Notes,
    held: &mut Held,
) -> Result<(), EngineError> {
    match random.below(16) {
        0 => engine.checkpoint()?,
        1 | 2 => engine.flush()?,
        3 => {
            let count = 1 + random.below(2);
            engine.fold(&engine.snapshot(), &notes.trees[..count]).map(drop)?;
        }
        4 if random.one_in(2) => drop(engine.reclaim(THOROUGH)?),
        4 | 5 => collect(engine, random)?,
        6 => held.snapshots.push((engine.snapshot(), notes.acknowledged.clone())),
        7 if !held.snapshots.is_empty() => {
            let position = random.below(held.snapshots.len());
            let (snapshot, expected) = held.snapshots.swap_remove(position);
            assert_eq!(world(engine, &notes.trees, &snapshot), expected);
        }
        8 => {
            let transaction = engine.begin();
            // A transaction that reads conflicts with those that write the same meanwhile.
            assert!(transaction.get(notes.trees[0], b"nothing")?.is_none());
            held.transactions.push((transaction, notes.acknowledged.clone()));
        }
        9 if !held.transactions.is_empty() => {
            let position = random.below(held.transactions.len());
            copy(held.transactions.swap_remove(position), random, notes)?;
        }
        _ => write(engine, random, notes)?,
    }
    Ok(())
}

fn run(
    disk: &mut SimDisk,
    options: EngineOptions,
    random: &mut Random,
    steps: usize,
    notes: &mut Notes,
) -> Result<(), EngineError> {
    let mut engine = open(disk, options)?;
    notes.trees = make_trees(&engine, 2)?;
    let mut held = Held::default();
    for _ in 0..steps {
        if random.one_in(20) {
            held = Held::default();
            drop(engine);
            *disk = if random.one_in(2) { disk.kill() } else { disk.crash() };
            engine = open(disk, options)?;
        } else {
            step(&engine, random, notes, &mut held)?;
        }
        check(&engine, notes);
    }
    for (snapshot, expected) in &held.snapshots {
        assert_eq!(world(&engine, &notes.trees, snapshot), *expected);
    }
    Ok(())
}

fn check(engine: &Engine, notes: &Notes) {
    engine.check().unwrap();
    let snapshot = engine.snapshot();
    if notes.trees.iter().all(|tree| snapshot.has_tree(*tree)) {
        let found = world(engine, &notes.trees, &snapshot);
        assert!(found == notes.acknowledged || found == notes.tried);
    }
}

#[test]
fn whatever_is_asked_for_is_found() {
    for_seeds(60, |mut random| {
        let mut disk = SimDisk::new(random.next());
        let options = if random.one_in(2) { quiet() } else { churning(*random.choose(&[15, 90])) };
        run(&mut disk, options, &mut random, 80, &mut Notes::default()).unwrap();
    });
}

#[test]
fn a_power_cut_at_any_operation_loses_nothing() {
    for_seeds(2, |mut random| {
        let seed = random.next();
        let options = if random.one_in(2) { quiet() } else { churning(15) };
        let mut whole = SimDisk::new(seed);
        // Restarts would make disks of their own.
        let steps = 14;
        run(&mut whole, options, &mut random.clone(), steps, &mut Notes::default()).unwrap();
        for operation in 0..whole.operations() {
            let mut disk = SimDisk::new(seed);
            disk.crash_after(operation);
            let mut notes = Notes::default();
            let _ = run_until_dead(&mut disk, options, &mut random.clone(), steps, &mut notes);
            let mut disk = disk.crash();
            for _ in 0..2 {
                let engine = open(&disk, options).unwrap();
                check(&engine, &notes);
                engine.reclaim(QUICK).unwrap();
                check(&engine, &notes);
                drop(engine);
                disk = disk.kill();
            }
        }
    });
}

/// As `run`, without restarts, and without checks of what the dead disk can't give.
fn run_until_dead(
    disk: &mut SimDisk,
    options: EngineOptions,
    random: &mut Random,
    steps: usize,
    notes: &mut Notes,
) -> Result<(), EngineError> {
    let engine = open(disk, options)?;
    notes.trees = make_trees(&engine, 2)?;
    let mut held = Held::default();
    for _ in 0..steps {
        step(&engine, random, notes, &mut held)?;
        held.snapshots.clear();
    }
    Ok(())
}

/// Changes the value at "a" once.
fn change(engine: &Engine, tree: TreeId, parts: &mut Parts, number: usize) {
    let before = parts.clone();
    let mut bytes = parts[number % before.len()].to_vec();
    bytes[number % 300] ^= 1 + (number / 300) as u8;
    parts[number % before.len()] = bytes.into();
    let mut transaction = engine.begin();
    let value = brought(&mut transaction, parts, Some(&before));
    transaction.put_changed(tree, Bytes::from("a"), value).unwrap();
    transaction.commit(Durability::Synced).unwrap();
}

fn inserted(engine: &Engine, tree: TreeId) -> Parts {
    let parts: Parts = (0..5).map(|number| Bytes::from(vec![number; 400])).collect();
    let mut transaction = engine.begin();
    let value = brought(&mut transaction, &parts, None);
    transaction.put(tree, Bytes::from("a"), value).unwrap();
    transaction.commit(Durability::Synced).unwrap();
    parts
}

#[test]
fn chunks_replaced_between_two_flushes_are_never_packed() {
    let disk = SimDisk::new(3);
    let engine = open(&disk, quiet()).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let mut parts = inserted(&engine, tree);
    let written = || engine.store().counters().chunks_written;
    let before = written();
    (0..100).for_each(|number| change(&engine, tree, &mut parts, number));
    assert_eq!(written(), before, "commits write the log only");
    let held = engine.snapshot();
    let shown = read(&engine, &held.get(tree, b"a").unwrap().unwrap());
    change(&engine, tree, &mut parts, 100);
    engine.flush().unwrap();
    // Five parts, three pairs and a head; the tree's node, its base, the map of bases and the
    // state.
    assert!(written() - before <= 16, "{} chunks", written() - before);
    let read_held = || read(&engine, &held.get(tree, b"a").unwrap().unwrap());
    assert_eq!(read_held(), shown);
    engine.reclaim(QUICK).unwrap();
    assert_eq!(read_held(), shown);
    let newest = engine.snapshot().get(tree, b"a").unwrap().unwrap();
    assert_eq!(read(&engine, &newest), parts);
    drop(engine);
    let engine = open(&disk.crash(), quiet()).unwrap();
    let newest = engine.snapshot().get(tree, b"a").unwrap().unwrap();
    assert_eq!(read(&engine, &newest), parts);
}

/// The log makes a chunk of one that only an earlier segment had, and nothing else refers to that
/// any more.
#[test]
fn origins_of_later_records_are_packed_before_their_segment_goes() {
    for folds in [0, 1, 2] {
        let disk = SimDisk::new(4);
        let engine = open(&disk, quiet()).unwrap();
        let tree = make_trees(&engine, 1).unwrap()[0];
        let mut parts = inserted(&engine, tree);
        (0..3).for_each(|number| change(&engine, tree, &mut parts, number));
        let old = engine.snapshot();
        engine.flush().unwrap();
        change(&engine, tree, &mut parts, 3);
        for number in 0..folds {
            // The bases stand for later moments than the log begins with.
            engine.fold(&engine.snapshot(), &[tree]).unwrap();
            change(&engine, tree, &mut parts, 4 + number);
        }
        engine.reclaim(QUICK).unwrap();
        engine.check().unwrap();
        drop(old);
        engine.reclaim(QUICK).unwrap();
        drop(engine);
        let mut disk = disk.crash();
        for _ in 0..3 {
            let engine = open(&disk, quiet()).unwrap();
            engine.check().unwrap();
            let newest = engine.snapshot().get(tree, b"a").unwrap().unwrap();
            assert_eq!(read(&engine, &newest), parts);
            engine.reclaim(QUICK).unwrap();
            change(&engine, tree, &mut parts, 17);
            drop(engine);
            disk = disk.kill();
        }
    }
}

/// A transaction copies a value that nothing else holds any more when it commits.
#[test]
fn a_copy_of_an_old_value_is_kept() {
    for is_flushed_before in [false, true] {
        let disk = SimDisk::new(5);
        let engine = open(&disk, quiet()).unwrap();
        let tree = make_trees(&engine, 1).unwrap()[0];
        let mut parts = inserted(&engine, tree);
        change(&engine, tree, &mut parts, 0);
        let old = parts.clone();
        let mut copying = engine.begin();
        let value = copying.get(tree, b"a").unwrap().unwrap();
        change(&engine, tree, &mut parts, 1);
        if is_flushed_before {
            engine.flush().unwrap();
        }
        copying.put(tree, Bytes::from("b"), value).unwrap();
        copying.commit(Durability::Synced).unwrap();
        engine.flush().unwrap();
        engine.reclaim(QUICK).unwrap();
        engine.check().unwrap();
        drop(engine);
        let engine = open(&disk.crash(), quiet()).unwrap();
        let found = |key: &[u8]| read(&engine, &engine.snapshot().get(tree, key).unwrap().unwrap());
        assert_eq!((found(b"a"), found(b"b")), (parts, old));
    }
}

/// A chunk lies in packs, and only there: a record of the log is a patch of it. Then it is born
/// once more, after that record.
#[test]
fn origins_of_later_records_stay_when_they_are_put_again() {
    let disk = SimDisk::new(6);
    let engine = open(&disk, quiet()).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let first: Parts = (0..5).map(|number| Bytes::from(vec![number; 400])).collect();
    let mut second = first.clone();
    second[0] = Bytes::from(vec![9; 400]);
    let session = engine.store().session();
    engine.store().put_many(&chunks_of(&first)).unwrap();
    let mut transaction = engine.begin();
    transaction.put(tree, Bytes::from("a"), value_of(&first)).unwrap();
    transaction.commit(Durability::Synced).unwrap();
    drop(session);
    for (before, after) in [(&first, &second), (&second, &first)] {
        let mut transaction = engine.begin();
        let value = brought(&mut transaction, after, Some(before));
        transaction.put_changed(tree, Bytes::from("a"), value).unwrap();
        transaction.commit(Durability::Synced).unwrap();
    }
    collect(&engine, &mut Random::new(6)).unwrap();
    engine.check().unwrap();
    drop(engine);
    let engine = open(&disk.crash(), quiet()).unwrap();
    let newest = engine.snapshot().get(tree, b"a").unwrap().unwrap();
    assert_eq!(read(&engine, &newest), first);
}
