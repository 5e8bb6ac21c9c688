//! The shared parts of the tests: opening engines, short names for keys and values, reading a tree
//! whole.

use std::collections::BTreeMap;

use bytes::Bytes;
use frond_engine::{
    Engine, EngineError, EngineOptions, ReclaimOptions, Snapshot, Transaction, TreeId,
};
use frond_store::{Chunk, ChunkKind};
use frond_testkit::{Random, SimDisk};
use frond_tree::{Bounds, Direction, Entry, Tree, TreeFormat, Value};

/// As the background collects, but at once.
pub const QUICK: ReclaimOptions =
    ReclaimOptions { thorough: false, bytes_a_second: None, purge: false };
/// As a user asks for.
pub const THOROUGH: ReclaimOptions = ReclaimOptions { thorough: true, ..QUICK };

/// A tree's content.
pub type Content = BTreeMap<Bytes, Bytes>;

/// Options under which only explicit checkpoints fold: with one thread, runs repeat exactly.
pub fn quiet() -> EngineOptions {
    EngineOptions { relaxed_sync_millis: 3_600_000, quiet_millis: None, ..EngineOptions::default() }
}

/// Options under which memtables are flushed after a few transactions, and runs are folded in small
/// steps and merged, by the committers: test runs repeat exactly. With a high share (in hundredths)
/// runs are merged more often than folded.
pub fn churning(overlay_percent_max: u64) -> EngineOptions {
    EngineOptions {
        memtable_bytes_max: 3_000,
        overlay_percent_max,
        run_count_max: 2,
        fold_threads: 0,
        ..quiet()
    }
}

/// Collects as the background does, at once and so that packs are moved: what isn't kept is on no
/// disk then.
pub fn collect(engine: &Engine, random: &mut Random) -> Result<(), EngineError> {
    let garbage = (0..40).map(|_| Chunk::new(ChunkKind::Blob, &[], &random.bytes(500)));
    engine.store().put_many(&garbage.collect::<Vec<_>>())?;
    engine.reclaim(QUICK).map(drop)
}

/// Adds the runs written, the steps of passes and the merges of an engine so far.
pub fn add_work(work: [u64; 3], engine: &Engine) -> [u64; 3] {
    let counters = engine.counters();
    let [runs, steps, merges] = work;
    [runs + counters.runs_written, steps + counters.pass_steps, merges + counters.merges]
}

/// Small nodes, so that trees have levels.
pub fn small_nodes() -> TreeFormat {
    TreeFormat { chunk_bytes_target: 512, inline_bytes_max: 128, salt: 5 }
}

/// Opens an engine on a simulated disk.
pub fn open(disk: &SimDisk, options: EngineOptions) -> Result<Engine, EngineError> {
    Engine::open(&disk.machine(), options)
}

/// Makes `count` empty trees in one transaction.
pub fn make_trees(engine: &Engine, count: usize) -> Result<Vec<TreeId>, EngineError> {
    let mut transaction = engine.begin();
    let mut trees = Vec::new();
    for _ in 0..count {
        let tree = engine.reserve_tree_id();
        transaction.set_base(tree, Tree::empty(&**engine.store(), small_nodes())?)?;
        trees.push(tree);
    }
    transaction.commit(Default::default())?;
    Ok(trees)
}

/// A value's bytes: often few, sometimes many.
pub fn new_bytes(random: &mut Random) -> Bytes {
    let count = match random.below(10) {
        0 => 3000,
        1..=3 => 200 + random.below(600),
        _ => random.below(40),
    };
    Bytes::from(random.bytes(count))
}

/// Bytes that are much like `before`.
pub fn changed(before: &[u8], random: &mut Random) -> Bytes {
    let mut after = before.to_vec();
    for _ in 0..random.below(4) {
        let start = random.below(after.len() + 1);
        let end = (start + random.below(12)).min(after.len());
        let count = if random.one_in(2) { end - start } else { random.below(12) };
        after.splice(start..end, random.bytes(count));
    }
    after.into()
}

/// Writes a small value.
pub fn put(transaction: &mut Transaction, tree: TreeId, key: &str, value: &str) {
    let (key, value) = (Bytes::copy_from_slice(key.as_bytes()), value.as_bytes().to_vec());
    transaction.put(tree, key, Value::inline(value)).unwrap();
}

/// Deletes a key.
pub fn delete(transaction: &mut Transaction, tree: TreeId, key: &str) {
    transaction.delete(tree, Bytes::copy_from_slice(key.as_bytes())).unwrap();
}

/// Reads a small value.
pub fn get(snapshot: &Snapshot, tree: TreeId, key: &str) -> Option<String> {
    let value = snapshot.get(tree, key.as_bytes()).unwrap();
    let bytes = value.map(|value| snapshot.read(&value).unwrap());
    let lent = snapshot.look(tree, key.as_bytes(), <[u8]>::to_vec).unwrap();
    assert_eq!(lent.as_deref(), bytes.as_deref());
    bytes.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

/// Reads a whole tree, both ways, by count and by point reads, and checks that they agree.
pub fn content(snapshot: &Snapshot, tree: TreeId) -> Content {
    let read = |direction| -> Vec<Entry> {
        let cursor = snapshot.range(tree, Bounds::all(), direction).unwrap();
        cursor.map(|entry| entry.unwrap()).collect()
    };
    let ascending = read(Direction::Ascending);
    let mut descending = read(Direction::Descending);
    descending.reverse();
    assert_eq!(ascending, descending);
    assert_eq!(snapshot.count(tree).unwrap(), ascending.len() as u64);
    let mut content = Content::new();
    for entry in ascending {
        assert_eq!(snapshot.get(tree, &entry.key).unwrap().as_ref(), Some(&entry.value));
        let bytes = snapshot.read(&entry.value).unwrap();
        assert_eq!(snapshot.look(tree, &entry.key, |lent| lent == bytes).unwrap(), Some(true));
        content.insert(entry.key, bytes);
    }
    content
}
