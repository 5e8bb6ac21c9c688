//! Frond's prolly tree by itself, over its store: what each operation costs, without a log.
//!
//! Entries of 116 bytes, as `scan` has them, in the nodes' standard size, everything in the cache.
//! Rates are by processor time of one thread.

use std::time::Instant;

use bytes::Bytes;
use frond_store::ChunkStore;
use frond_tree::{Bounds, Direction, Edit, Tree, TreeError, Value};

use crate::figures::Figures;
use crate::measure;
use crate::random::{Random, scramble};
use crate::target::{Failure, Settings, Target};
use crate::targets::Frond;
use crate::workload::Context;

const VALUE_BYTES: usize = 100;
const READS: u64 = 200_000;
const KEYS_AT_ONCE: usize = 1_000;
const SPARSE_EDITS: u64 = 100;
const SPARSE_ROUNDS: u64 = 20;
/// One edit for so many entries.
const DENSE_SHARE: u64 = 10;

/// Measures Frond.
pub fn run(context: &Context<'_>, figures: &mut Figures) -> Result<bool, Failure> {
    if context.target != "frond" {
        return Ok(false);
    }
    let count = context.scale.scan_entries;
    let cache_bytes = count * 116 * 4;
    let settings = Settings::new(context.directory, 1, cache_bytes);
    let frond = Frond::open(&settings)?;
    frond.load(0, &mut (0..count).map(|number| (key(number), value(number))))?;
    let engine = frond.engine();
    // The edited tree is no engine tree's base, so the session must protect its chunks.
    let _session = engine.store().session();
    let tree = engine.fold(&engine.snapshot(), &[frond.trees()[0]])?.remove(0);
    reads(engine.store(), &tree, count, figures)?;
    edits(engine.store(), &tree, count, figures)?;
    Ok(true)
}

fn key(number: u64) -> Bytes {
    let key = [number.to_be_bytes(), scramble(number).to_be_bytes()];
    Bytes::copy_from_slice(key.as_flattened())
}

fn value(seed: u64) -> Bytes {
    let mut value = Vec::with_capacity(VALUE_BYTES);
    Random::new(seed).letters(VALUE_BYTES / 2, &mut value);
    value.resize(VALUE_BYTES, b'a' + (seed % 26) as u8);
    value.into()
}

/// Processor seconds of `work`, which nothing else runs beside.
fn timed<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<(T, f64), Failure> {
    let before = measure::cpu_seconds_of_threads()?;
    let done = work()?;
    Ok((done, measure::cpu_seconds_of_threads()? - before))
}

fn reads(
    shared: &std::sync::Arc<dyn ChunkStore>,
    tree: &Tree,
    count: u64,
    figures: &mut Figures,
) -> Result<(), Failure> {
    let store = &**shared;
    let mut random = Random::new(4);
    let mut keys: Vec<Bytes> = (0..READS).map(|_| key(random.below(count))).collect();
    for (name, direction) in
        [("ascending", Direction::Ascending), ("descending", Direction::Descending)]
    {
        let (passed, seconds) = timed(|| {
            let mut passed = 0;
            for entry in tree.range(shared, Bounds::all(), direction) {
                passed += u64::from(!entry?.key.is_empty());
            }
            Ok(passed)
        })?;
        figures.rate(format!("scan, {name}: entries/s"), passed as f64 / seconds);
    }
    let (passed, seconds) = timed(|| {
        let mut passed = 0;
        let mut cursor = tree.range(shared, Bounds::all(), Direction::Ascending);
        while cursor.step()? {
            passed += u64::from(cursor.entry_ref().is_some_and(|entry| !entry.key.is_empty()));
        }
        Ok(passed)
    })?;
    figures.rate("scan, borrowed: entries/s", passed as f64 / seconds);
    let (_, seconds) = timed(|| {
        for key in &keys {
            tree.get(store, key)?.ok_or("a key is missing")?;
        }
        Ok(())
    })?;
    figures.cost("get, µs", seconds / READS as f64 * 1e6);
    let (_, seconds) = timed(|| {
        for key in &keys {
            tree.rank(store, key)?;
        }
        Ok(())
    })?;
    figures.cost("rank, µs", seconds / READS as f64 * 1e6);
    let (_, seconds) = timed(|| {
        for position in 0..READS {
            let position = scramble(position) % count;
            tree.select(store, position)?.ok_or("a position is missing")?;
        }
        Ok(())
    })?;
    figures.cost("select, µs", seconds / READS as f64 * 1e6);
    let (_, seconds) = timed(|| {
        for keys in keys.chunks_mut(KEYS_AT_ONCE) {
            keys.sort_unstable();
            let mut keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            keys.dedup();
            tree.get_many(store, &keys)?;
        }
        Ok(())
    })?;
    figures.cost("get_many of 1,000, µs a key", seconds / READS as f64 * 1e6);
    Ok(())
}

fn edits(
    shared: &std::sync::Arc<dyn ChunkStore>,
    tree: &Tree,
    count: u64,
    figures: &mut Figures,
) -> Result<(), Failure> {
    let store = &**shared;
    let mut random = Random::new(5);
    let mut sparse = 0.0;
    let mut wall = 0.0;
    for _ in 0..SPARSE_ROUNDS {
        let edits = edits_of(&mut random, count, SPARSE_EDITS);
        let begin = Instant::now();
        let (_, seconds) = timed(|| apply(store, tree, &edits))?;
        wall += begin.elapsed().as_secs_f64();
        sparse += seconds;
    }
    let sparse_edits = (SPARSE_ROUNDS * SPARSE_EDITS) as f64;
    figures.cost("apply 100 edits, CPU µs an edit", sparse / sparse_edits * 1e6);
    figures.cost("apply 100 edits, wall ms", wall / SPARSE_ROUNDS as f64 * 1e3);

    let edits = edits_of(&mut random, count, count / DENSE_SHARE);
    let written = store.counters().bytes_put;
    let begin = Instant::now();
    let (to, seconds) = timed(|| apply(store, tree, &edits))?;
    let wall = begin.elapsed().as_secs_f64();
    let put = (store.counters().bytes_put - written) as f64;
    let dense = edits.len() as f64;
    figures.cost("apply an edit for each 10 entries, CPU µs an edit", seconds / dense * 1e6);
    figures.cost("the same, wall µs an edit", wall / dense * 1e6);
    figures.rate("the same, MB of nodes a CPU second", put / seconds / 1e6);
    let (found, seconds) = timed(|| {
        let mut found = 0u64;
        for change in tree.diff(shared, &to) {
            change?;
            found += 1;
        }
        Ok(found)
    })?;
    figures.cost("diff of them, CPU µs a change", seconds / found as f64 * 1e6);
    Ok(())
}

type Edits = Vec<(Bytes, Edit)>;

/// Half new keys, half new values.
fn edits_of(random: &mut Random, count: u64, edits: u64) -> Edits {
    let edit = |_| {
        let number = random.below(count);
        let mut key = key(number).to_vec();
        if number.is_multiple_of(2) {
            key.push(0);
        }
        (Bytes::from(key), Edit::Put(Value::inline(value(random.next()))))
    };
    let mut edits: Edits = (0..edits).map(edit).collect();
    edits.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
    edits.dedup_by(|(left, _), (right, _)| left == right);
    edits
}

fn apply(store: &dyn ChunkStore, tree: &Tree, edits: &Edits) -> Result<Tree, Failure> {
    let mut edits = edits.iter().cloned().map(Ok::<_, TreeError>);
    Ok(tree.apply(store, &mut edits)?)
}
