//! Differences are logged instead of whole values, and give the same values again, whatever
//! happened meanwhile.
//!
//! *Method*: transactions change plain values by little, and *large* ones (`large`); they also
//! replace and drop trees, are rolled back in part, and write blindly. In between trees are folded
//! and flushed, chunks are collected, and the engine is opened anew. The power fails at each
//! operation of such runs: each time the values must be those of a transaction that was tried last,
//! or of one before that no acknowledged one follows. All chunks of large values are read.

use std::collections::BTreeMap;

use bytes::Bytes;
use frond_engine::{Durability, Engine, EngineError, EngineOptions, Snapshot, Transaction, TreeId};
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDisk};
use frond_tree::{Bounds, Direction, Entry, Tree, Value};

use crate::large;
use crate::rig::{QUICK, THOROUGH, changed, churning, make_trees, open, quiet, small_nodes};

const KEY_COUNT: usize = 12;

#[derive(Clone, PartialEq, Eq, Debug)]
enum Item {
    Plain(Bytes),
    Large(large::Parts),
}

type Items = BTreeMap<Bytes, Item>;

/// The content of each tree; `None` once it was dropped.
type World = Vec<Option<Items>>;

impl Item {
    fn new(random: &mut Random) -> Item {
        let mut bytes = |count| Bytes::from(random.bytes(count));
        match bytes(1)[0] % 8 {
            0 => Item::Plain(bytes(30)),
            1..=3 => Item::Plain(bytes(300)),
            4 => Item::Plain(bytes(2500)),
            _ => Item::Large(vec![bytes(400), bytes(90), bytes(700)]),
        }
    }

    fn changed(&self, random: &mut Random) -> Item {
        match self {
            Item::Plain(bytes) => Item::Plain(changed(bytes, random)),
            Item::Large(parts) => {
                let mut parts = parts.clone();
                for _ in 0..1 + random.below(2) {
                    let position = random.below(parts.len());
                    parts[position] = changed(&parts[position], random);
                }
                match random.below(10) {
                    0 | 1 => parts.push(random.bytes(300).into()),
                    2 if parts.len() > 1 => drop(parts.remove(0)),
                    _ => {}
                }
                Item::Large(parts)
            }
        }
    }

    /// The value, its chunks taken along but for those that the value before has.
    fn value(&self, before: Option<&Item>, transaction: &mut Transaction) -> Value {
        match (self, before) {
            (Item::Plain(bytes), _) => Value::inline(bytes.clone()),
            (Item::Large(parts), Some(Item::Large(before))) => {
                large::brought(transaction, parts, Some(before))
            }
            (Item::Large(parts), _) => large::brought(transaction, parts, None),
        }
    }
}

fn items(snapshot: &Snapshot, tree: TreeId, engine: &Engine) -> Items {
    let store = &**engine.store();
    let entries = snapshot.range(tree, Bounds::all(), Direction::Ascending).unwrap();
    entries
        .map(|entry| {
            let Entry { key, value } = entry.unwrap();
            let item = match large::read(store, &value) {
                Some(parts) => Item::Large(parts),
                None => Item::Plain(snapshot.read(&value).unwrap()),
            };
            (key, item)
        })
        .collect()
}

fn world(engine: &Engine, trees: &[TreeId]) -> World {
    let snapshot = engine.snapshot();
    let content = |tree: &TreeId| items(&snapshot, *tree, engine);
    trees.iter().map(|tree| snapshot.has_tree(*tree).then(|| content(tree))).collect()
}

#[derive(Default)]
struct Notes {
    trees: Vec<TreeId>,
    /// The worlds after each transaction.
    worlds: Vec<World>,
    acknowledged: usize,
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
    notes.worlds = vec![vec![Some(Items::new()); 2]];
    for _ in 0..steps {
        match random.below(14) {
            0 => engine.checkpoint()?,
            1 | 2 => {
                let snapshot = engine.snapshot();
                let trees = notes.trees.iter().filter(|tree| snapshot.has_tree(**tree));
                let trees: Vec<TreeId> = trees.copied().collect();
                engine.fold(&snapshot, &trees)?;
            }
            3 | 4 => drop(engine.reclaim(if random.one_in(3) { THOROUGH } else { QUICK })?),
            5 => {
                engine.close()?;
                drop(engine);
                engine = open(disk, options)?;
            }
            _ => transact(&engine, random, notes)?,
        }
    }
    Ok(())
}

/// Commits a transaction; the first key of the first tree counts them.
fn transact(engine: &Engine, random: &mut Random, notes: &mut Notes) -> Result<(), EngineError> {
    let mut transaction = engine.begin();
    let mut after = notes.worlds.last().unwrap().clone();
    let mut undone = None;
    for _ in 0..1 + random.below(4) {
        let position = random.below(2);
        let tree = notes.trees[position];
        match random.below(24) {
            0 | 1 => rebuild(engine, &mut transaction, tree, &mut after[position])?,
            2 if position == 1 && after[1].is_some() => {
                transaction.drop_tree(tree)?;
                after[1] = None;
            }
            3 => undone = Some((transaction.savepoint(), after.clone())),
            4 | 5 if undone.is_some() => {
                let (savepoint, before) = undone.take().unwrap();
                transaction.rollback_to(savepoint);
                after = before;
            }
            _ => {
                if let Some(items) = &mut after[position] {
                    write(&mut transaction, tree, items, random)?;
                }
            }
        }
    }
    let relaxed = random.one_in(4);
    notes.worlds.push(after);
    transaction.commit(if relaxed { Durability::Relaxed } else { Durability::Synced })?;
    if !relaxed {
        notes.acknowledged = notes.worlds.len() - 1;
    }
    Ok(())
}

fn write(
    transaction: &mut Transaction,
    tree: TreeId,
    items: &mut Items,
    random: &mut Random,
) -> Result<(), EngineError> {
    for _ in 0..1 + random.below(4) {
        let key = Bytes::from(format!("{:02}", random.below(KEY_COUNT)));
        if random.one_in(12) {
            items.remove(&key);
            transaction.delete(tree, key)?;
            continue;
        }
        let item = match items.get(&key).filter(|_| !random.one_in(8)) {
            Some(before) => before.changed(random),
            None => Item::new(random),
        };
        let value = item.value(items.get(&key).filter(|_| !random.one_in(6)), transaction);
        match random.one_in(8) {
            true => transaction.put(tree, key.clone(), value)?,
            false => transaction.put_changed(tree, key.clone(), value)?,
        }
        items.insert(key, item);
    }
    Ok(())
}

/// Gives the tree another base with the same entries but one.
fn rebuild(
    engine: &Engine,
    transaction: &mut Transaction,
    tree: TreeId,
    content: &mut Option<Items>,
) -> Result<(), EngineError> {
    let items = content.get_or_insert_default();
    items.pop_first();
    let mut entries = Vec::new();
    for (key, item) in items {
        if let Item::Large(parts) = item {
            engine.store().put_many(&large::chunks_of(parts))?;
        }
        // Its chunks are in the store by now.
        let value = item.value(Some(item), transaction);
        entries.push(Ok(Entry { key: key.clone(), value }));
    }
    let base = Tree::build(&**engine.store(), small_nodes(), &mut entries.into_iter())?;
    transaction.set_base(tree, base)
}

fn check(engine: &Engine, notes: &Notes) -> usize {
    engine.check().unwrap();
    if notes.trees.is_empty() || !engine.snapshot().has_tree(notes.trees[0]) {
        return 0;
    }
    let found = world(engine, &notes.trees);
    let acknowledged = notes.acknowledged;
    let newer = notes.worlds[acknowledged..].iter().rposition(|world| *world == found);
    acknowledged + newer.expect("the state after a transaction that was not lost")
}

/// Opens what a crash left, again and again, with collections and more transactions in between.
fn check_restart(disk: &SimDisk, options: EngineOptions, notes: &mut Notes, random: &mut Random) {
    let mut disk = disk.clone();
    for _ in 0..random.below(3) {
        disk.crash_after(random.below(12) as u64);
        drop(open(&disk, options));
        disk = disk.crash();
    }
    for round in 0..3 {
        let engine = open(&disk, options).unwrap();
        let found = check(&engine, notes);
        if notes.trees.is_empty() || !engine.snapshot().has_tree(notes.trees[0]) {
            return;
        }
        notes.worlds.truncate(found + 1);
        notes.acknowledged = found;
        if round % 2 == 1 {
            engine.reclaim(QUICK).unwrap();
        }
        for _ in 0..random.below(3) {
            transact(&engine, random, notes).unwrap();
        }
        if random.one_in(2) {
            engine.fold(&engine.snapshot(), &notes.trees[..1]).unwrap();
            engine.reclaim(QUICK).unwrap();
        }
        let after = if random.one_in(2) { disk.crash() } else { disk.kill() };
        drop(engine);
        disk = after;
    }
}

fn check_every_crash(seeds: u64, steps: usize, options: EngineOptions) {
    for_seeds(seeds, |random| {
        let seed = random.clone().next();
        let mut disk = SimDisk::new(seed);
        let mut notes = Notes::default();
        run(&mut disk, options, &mut random.clone(), steps, &mut notes).unwrap();
        let operations = disk.operations();
        println!("{operations} crashes");
        for operation in 0..operations {
            let mut disk = SimDisk::new(seed);
            disk.crash_after(operation);
            let mut notes = Notes::default();
            let mut random = random.clone();
            let _ = run(&mut disk, options, &mut random, steps, &mut notes);
            check_restart(&disk.crash(), options, &mut notes, &mut random);
        }
    });
}

#[test]
fn a_crash_at_any_operation_leaves_the_same_values() {
    check_every_crash(1, 24, quiet());
}

#[test]
fn a_crash_while_memtables_are_flushed_leaves_the_same_values() {
    check_every_crash(1, 24, churning(15));
}

#[test]
fn killed_processes_leave_the_same_values() {
    for_seeds(40, |mut random| {
        let mut disk = SimDisk::new(random.next());
        let mut notes = Notes::default();
        let options =
            if random.one_in(2) { quiet() } else { churning(*random.choose(&[15, 5000])) };
        let steps = random.below(50);
        run(&mut disk, options, &mut random, steps, &mut notes).unwrap();
        check_restart(&disk.kill(), options, &mut notes, &mut random);
    });
}

/// Bytes of the log that one transaction takes.
fn logged(engine: &Engine, write: impl FnOnce(&mut Transaction)) -> u64 {
    let mut transaction = engine.begin();
    write(&mut transaction);
    let before = engine.counters().log_record_bytes;
    transaction.commit(Durability::Synced).unwrap();
    engine.counters().log_record_bytes - before
}

#[test]
fn the_log_gets_what_differs() {
    let engine = open(&SimDisk::new(4), quiet()).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    let mut random = Random::new(4);
    let key = || Bytes::from("key");
    let mut bytes = random.bytes(10_000);
    let whole = logged(&engine, |it| it.put(tree, key(), Value::inline(bytes.clone())).unwrap());
    assert!(10_000 < whole);
    for round in 0..3 {
        bytes[5000 + round] ^= 1;
        let value = Value::inline(bytes.clone());
        let little = logged(&engine, |it| it.put_changed(tree, key(), value.clone()).unwrap());
        assert!(little < 200, "{little} bytes");
        engine.checkpoint().unwrap();
    }
    let mut item = Item::Large((0..5).map(|_| random.bytes(4000).into()).collect());
    let whole = logged(&engine, |it| {
        let value = item.value(None, it);
        it.put(tree, key(), value).unwrap();
    });
    assert!(20_000 < whole);
    for _ in 0..4 {
        let Item::Large(parts) = &item else { unreachable!("it was made large") };
        let mut parts = parts.clone();
        parts[3] = changed(&parts[3], &mut random);
        let after = Item::Large(parts);
        let little = logged(&engine, |it| {
            let value = after.value(Some(&item), it);
            it.put_changed(tree, key(), value).unwrap();
        });
        assert!(little < 600, "{little} bytes");
        item = after;
    }
}

/// More changes than are read ahead at once, some keys changed twice, some whose tree got another
/// base since.
#[test]
fn many_changes_are_made_again_after_a_crash() {
    const COUNT: u32 = 1_500;
    let (disk, mut random) = (SimDisk::new(77), Random::new(77));
    let engine = open(&disk, quiet()).unwrap();
    let trees = make_trees(&engine, 2).unwrap();
    let key = |number: u32| Bytes::copy_from_slice(&number.to_be_bytes());
    let mut model: BTreeMap<(TreeId, Bytes), Bytes> = BTreeMap::new();
    let mut transaction = engine.begin();
    for (tree, number) in trees.iter().flat_map(|tree| (0..COUNT).map(move |n| (*tree, n))) {
        let value = Bytes::from(random.bytes(300));
        transaction.put(tree, key(number), Value::inline(value.clone())).unwrap();
        model.insert((tree, key(number)), value);
    }
    transaction.commit(Durability::Synced).unwrap();
    engine.checkpoint().unwrap();
    let before = engine.counters().log_record_bytes;
    for round in 0..3 {
        let mut transaction = engine.begin();
        for (position, ((tree, key), value)) in model.iter_mut().enumerate() {
            if round == 0 || position % 3 == round {
                *value = changed(value, &mut random);
                let new = Value::inline(value.clone());
                transaction.put_changed(*tree, key.clone(), new).unwrap();
            }
        }
        transaction.commit(Durability::Synced).unwrap();
        if round == 0 {
            let base = engine.fold(&engine.snapshot(), &trees[1..]).unwrap()[0];
            let mut transaction = engine.begin();
            transaction.set_base(trees[1], base).unwrap();
            transaction.commit(Durability::Synced).unwrap();
        }
    }
    assert!(engine.counters().log_record_bytes - before < 900_000, "of 1,500,000 bytes");
    let engine = open(&disk.crash(), quiet()).unwrap();
    let snapshot = engine.snapshot();
    for ((tree, key), value) in &model {
        let found = snapshot.get(*tree, key).unwrap().unwrap();
        assert_eq!(snapshot.read(&found).unwrap(), value);
    }
    engine.check().unwrap();
}
