//! Measures operations that only Frond has: branch, version commit of 100 random edits, diff of 10
//! edits, at two sizes, in a tree as collections have for documents (leaves of 8 KB) and one as
//! they have for indexes (4 KB).
//!
//! A tree of entries of 116 bytes is loaded. *Branch*: a new tree with the same base, in a synced
//! transaction. *Commit*: 100 edits at random keys are written in a synced transaction, then folded
//! into the tree; the processor time of both, without the syncs' wall time. Garbage collection does
//! not run meanwhile, or isn't counted. *Diff*: between two versions that differ in 10 edits. Each
//! is the median of many.

use std::time::{Duration, Instant};

use bytes::Bytes;
use frond_engine::{Durability, Engine, TreeId};
use frond_tree::{Tree, TreeFormat, Value};

use crate::figures::Figures;
use crate::measure;
use crate::random::{Random, scramble};
use crate::target::{Failure, Settings};
use crate::targets::Frond;
use crate::workload::Context;

const CACHE_BYTES: u64 = 512 << 20;
const VALUE_BYTES: usize = 100;
const ROUNDS: usize = 25;
const COMMIT_EDITS: u64 = 100;
const DIFF_EDITS: u64 = 10;
const COLLECTING_THREAD: &str = "frond-reclaim";
/// It looks each second whether there is something to collect.
const COLLECTING_LOOK: Duration = Duration::from_millis(1_200);
const COLLECTING_QUIET_SECONDS: f64 = 0.005;

/// Measures Frond.
pub fn run(context: &Context<'_>, figures: &mut Figures) -> Result<bool, Failure> {
    if context.target != "frond" {
        return Ok(false);
    }
    let settings = Settings::new(context.directory, 0, CACHE_BYTES);
    let frond = Frond::open(&settings)?;
    let engine = frond.engine();
    let documents = engine.local_format();
    for count in [context.scale.version_entries / 10, context.scale.version_entries] {
        for format in [documents, documents.for_scattered_edits()] {
            let tree = engine.reserve_tree_id();
            let mut sorted = (0..count).map(|number| (key(number), value(number)));
            frond.load_tree(tree, format, &mut sorted)?;
            wait_for_collection()?;
            measure_tree(engine, tree, format, count, figures)?;
        }
    }
    Ok(true)
}

fn key(number: u64) -> Bytes {
    let key = [number.to_be_bytes(), scramble(number).to_be_bytes()];
    Bytes::copy_from_slice(key.as_flattened())
}

fn value(seed: u64) -> Bytes {
    let mut value = Vec::with_capacity(VALUE_BYTES);
    Random::new(seed).letters(VALUE_BYTES, &mut value);
    value.into()
}

fn measure_tree(
    engine: &Engine,
    tree: TreeId,
    format: TreeFormat,
    count: u64,
    figures: &mut Figures,
) -> Result<(), Failure> {
    let mut random = Random::new(count);
    let (mut branches, mut commits, mut walls, mut diffs) = (vec![], vec![], vec![], vec![]);
    let mut written = 0;
    for _ in 0..ROUNDS {
        branches.push(branch(engine, tree)?);
        let bytes_before = engine.store().counters().bytes_written;
        let (cpu, wall) = commit(engine, tree, count, COMMIT_EDITS, &mut random)?;
        written += engine.store().counters().bytes_written - bytes_before;
        commits.push(cpu / COMMIT_EDITS as f64 * 1e6);
        walls.push(wall * 1e3);
        diffs.push(diff(engine, tree, count, &mut random)?);
    }
    let (millions, thousands) = (count / 1_000_000, count / 1_000 % 1_000);
    let leaves = format.chunk_bytes_target >> 10;
    let size = format!("{millions},{thousands:03},000 entries, leaves of {leaves} KB");
    figures.cost(format!("{size}: branch, ms"), median(branches));
    figures.cost(format!("{size}: commit of 100 edits, CPU an edit, µs"), median(commits));
    figures.cost(format!("{size}: commit of 100 edits, wall, ms"), median(walls));
    let kilobytes = written as f64 / (ROUNDS as u64 * COMMIT_EDITS) as f64 / 1e3;
    figures.cost(format!("{size}: commit of 100 edits, KB written an edit"), kilobytes);
    figures.cost(format!("{size}: diff of 10 edits, ms"), median(diffs));
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Milliseconds.
fn branch(engine: &Engine, tree: TreeId) -> Result<f64, Failure> {
    let begin = Instant::now();
    let base = engine.fold(&engine.snapshot(), &[tree])?;
    let mut transaction = engine.begin();
    transaction.set_base(engine.reserve_tree_id(), base[0])?;
    transaction.commit(Durability::Synced)?;
    Ok(begin.elapsed().as_secs_f64() * 1e3)
}

/// Waits until what loading has left is collected, which takes a processor from whatever is
/// measured beside it.
fn wait_for_collection() -> Result<(), Failure> {
    let used = || measure::cpu_seconds_of_threads_named(|name| name == COLLECTING_THREAD);
    let mut before = used()?;
    loop {
        std::thread::sleep(COLLECTING_LOOK);
        let after = used()?;
        if after - before < COLLECTING_QUIET_SECONDS {
            return Ok(());
        }
        before = after;
    }
}

/// Processor time of all threads but the one that collects.
fn cpu_seconds() -> Result<f64, Failure> {
    measure::cpu_seconds_of_threads_named(|name| name != COLLECTING_THREAD)
}

/// Processor seconds and wall seconds of writing and folding `edits` edits.
fn commit(
    engine: &Engine,
    tree: TreeId,
    count: u64,
    edits: u64,
    random: &mut Random,
) -> Result<(f64, f64), Failure> {
    let (begin, before) = (Instant::now(), cpu_seconds()?);
    let mut transaction = engine.begin();
    for _ in 0..edits {
        let value = Value::inline(value(random.next()));
        transaction.put(tree, key(random.below(count)), value)?;
    }
    transaction.commit(Durability::Synced)?;
    engine.fold(&engine.snapshot(), &[tree])?;
    let cpu = cpu_seconds()? - before;
    Ok((cpu, begin.elapsed().as_secs_f64()))
}

/// Milliseconds.
fn diff(engine: &Engine, tree: TreeId, count: u64, random: &mut Random) -> Result<f64, Failure> {
    let version =
        || -> Result<Tree, Failure> { Ok(engine.fold(&engine.snapshot(), &[tree])?.remove(0)) };
    let from = version()?;
    commit(engine, tree, count, DIFF_EDITS, random)?;
    let to = version()?;
    let begin = Instant::now();
    let mut found = 0;
    for change in from.diff(engine.store(), &to) {
        change?;
        found += 1;
    }
    let taken = begin.elapsed();
    // Two edits may fall on one key.
    if found == 0 || found > DIFF_EDITS {
        return Err(format!("{found} changes of {DIFF_EDITS}").into());
    }
    Ok(taken.as_secs_f64() * 1e3)
}
