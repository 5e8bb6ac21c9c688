//! Goal: a flipped bit in an open pack is reported when the directory is opened, wherever it hits
//! data that an acknowledged transaction needs; and the traces of a crash are never reported as
//! damage.
//!
//! *Method*: transactions that name values in packs, bring values, or give trees their content;
//! the power fails at a random operation, or the process is killed; then a bit of a pack turns
//! over, or none.

use bytes::Bytes;
use frond_engine::{Durability, Engine, EngineError, TreeId};
use frond_store::StoreError;
use frond_store::io::Disk;
use frond_testkit::random::{assert_met, for_seeds};
use frond_testkit::{Random, SimDisk};
use frond_tree::{Bounds, Content, Direction, Entry, Tree, Value};

use crate::large::{Parts, brought, chunks_of, value_of};
use crate::rig::{make_trees, open, quiet, small_nodes};

#[derive(Default, Debug)]
struct Reached {
    /// Openings that found what a crash leaves, without a bit that turned over.
    torn: u64,
    /// Values that couldn't be read, and were reported.
    reported: u64,
    /// Values that could be read though a bit was flipped.
    right: u64,
    /// Directories that didn't open, for damage.
    closed: u64,
}

/// The acknowledged writes.
#[derive(Default)]
struct Acknowledged {
    values: Vec<(Bytes, Parts)>,
    trees: Vec<(TreeId, Vec<(Bytes, Bytes)>)>,
}

fn new_parts(random: &mut Random) -> Parts {
    (0..1 + random.below(5)).map(|_| Bytes::from(random.bytes(100))).collect()
}

fn transact(
    engine: &Engine,
    tree: TreeId,
    (key, random): (Bytes, &mut Random),
    done: &mut Acknowledged,
) -> Result<(), EngineError> {
    let mut transaction = engine.begin();
    let parts = new_parts(random);
    match random.below(3) {
        0 => {
            engine.store().put_many(&chunks_of(&parts))?;
            transaction.put(tree, key.clone(), value_of(&parts))?;
            transaction.commit(Durability::Synced)?;
            done.values.push((key, parts));
        }
        1 => {
            let value = brought(&mut transaction, &parts, None);
            transaction.put(tree, key.clone(), value)?;
            transaction.commit(Durability::Synced)?;
            done.values.push((key, parts));
        }
        _ => {
            let content: Vec<(Bytes, Bytes)> = (0..20u8)
                .map(|number| (Bytes::from(vec![number]), Bytes::from(random.bytes(60))))
                .collect();
            let entry = |(key, bytes): &(Bytes, Bytes)| {
                Ok(Entry { key: key.clone(), value: Value::inline(bytes.clone()) })
            };
            let mut entries = content.iter().map(entry);
            let base = Tree::build(&**engine.store(), small_nodes(), &mut entries)?;
            let new = engine.reserve_tree_id();
            transaction.set_base(new, base)?;
            transaction.commit(Durability::Synced)?;
            done.trees.push((new, content));
        }
    }
    Ok(())
}

fn read_value(engine: &Engine, tree: TreeId, key: &[u8]) -> Result<Parts, EngineError> {
    let value = engine.snapshot().get(tree, key)?.expect("what was acknowledged is there");
    let Content::Chunk { hash, .. } = value.content else { panic!("{value:?}") };
    let below = |hash| -> Result<Vec<_>, StoreError> {
        Ok(engine.store().get(hash)?.references().collect())
    };
    let mut parts = Parts::new();
    for pair in below(hash)? {
        for part in below(pair)? {
            parts.push(engine.store().get(part)?.payload_bytes());
        }
    }
    Ok(parts)
}

fn read_tree(engine: &Engine, tree: TreeId) -> Result<Vec<(Bytes, Bytes)>, EngineError> {
    let snapshot = engine.snapshot();
    let mut content = Vec::new();
    for entry in snapshot.range(tree, Bounds::all(), Direction::Ascending)? {
        let entry = entry?;
        content.push((entry.key, snapshot.read(&entry.value)?));
    }
    Ok(content)
}

/// Turns a bit of a pack over, mostly of what was written last.
fn rot(disk: &SimDisk, random: &mut Random) -> bool {
    let mut packs = disk.list().unwrap_or_default();
    packs.retain(|name| name.ends_with(".pack"));
    let Some(name) = packs.get(random.below(packs.len().max(1))) else { return false };
    let bytes = disk.contents(name).map_or(0, |contents| contents.len());
    if bytes == 0 {
        return false;
    }
    let newest = if random.one_in(4) { bytes } else { bytes.div_ceil(2) };
    let byte = bytes - 1 - random.below(newest);
    disk.flip_bit(name, byte as u64 * 8 + random.below(8) as u64);
    true
}

fn run(mut random: Random, reached: &mut Reached) {
    let disk = SimDisk::new(random.next());
    let engine = open(&disk, quiet()).unwrap();
    let tree = make_trees(&engine, 1).unwrap()[0];
    engine.checkpoint().unwrap();
    if random.one_in(2) {
        disk.crash_after(random.below(80) as u64);
    }
    let mut done = Acknowledged::default();
    for number in 0..1 + random.below(12) {
        let key = Bytes::from(format!("{number:02}"));
        if transact(&engine, tree, (key, &mut random), &mut done).is_err() {
            assert!(disk.is_dead());
            break;
        }
    }
    let disk = if disk.is_dead() || random.one_in(2) { disk.crash() } else { disk.kill() };
    drop(engine);
    let is_rotten = random.one_in(2) && rot(&disk, &mut random);
    let engine = match open(&disk, quiet()) {
        Ok(engine) => engine,
        Err(error) => {
            assert!(is_rotten, "{error:?}");
            reached.closed += 1;
            return;
        }
    };
    let store = engine.store().maintenance();
    let damages = store.damages();
    let findings = store.take_findings();
    assert!(is_rotten || damages.is_empty() && findings.is_empty(), "{findings:?}");
    assert!(damages.is_empty() || !findings.is_empty());
    reached.torn += u64::from(store.has_doubts() && !is_rotten);
    let mut check = |is_right: Result<bool, EngineError>| match is_right {
        Ok(is_right) => {
            assert!(is_right);
            reached.right += u64::from(is_rotten);
        }
        Err(error) => {
            assert!(!damages.is_empty(), "{error:?} isn't told at the opening");
            reached.reported += 1;
        }
    };
    for (key, parts) in &done.values {
        check(read_value(&engine, tree, key).map(|found| found == *parts));
    }
    for (tree, content) in &done.trees {
        check(read_tree(&engine, *tree).map(|found| found == *content));
    }
}

#[test]
fn opening_reports_lost_chunks_that_acknowledged_transactions_need() {
    let mut reached = Reached::default();
    for_seeds(1500, |random| run(random, &mut reached));
    println!("{reached:?}");
    assert_met("what was told", reached.reported, 20);
    assert_met("what was right", reached.right, 100);
    assert_met("what a crash tore", reached.torn, 1);
}
