//! Frond alone: an opening whose log has many small changes of records in a tree much larger than
//! the cache.
//!
//! Of a small change the log has what differs, and the opening makes the record again from the one
//! before. Records of 1 KB are loaded, then a number at random ones is changed, in synced
//! transactions of a hundred, and nothing is flushed. The engine is left as a crash leaves it and
//! opened again: once with the system's cache of the files as it is, and once without (which only
//! root may ask for).

use std::time::Instant;

use bytes::Bytes;
use frond_engine::{Durability, Engine, EngineOptions, TreeId};
use frond_store::io::Machine;
use frond_tree::Value;

use crate::figures::Figures;
use crate::random::Random;
use crate::target::Failure;
use crate::workload::Context;
use crate::workload::records::{key, load};

const VALUE_BYTES: usize = 1_000;
/// A byte of each is changed.
const CHANGED_AT: usize = 500;
/// The records, as a multiple of `ycsb`'s, of which a part is changed.
const RECORDS_TIMES: u64 = 5;
const CHANGED_SHARE: u64 = 10;
const CHANGES_TOGETHER: u64 = 100;
/// A size above all changes: nothing is flushed.
const MEMTABLE_BYTES: u64 = 1 << 30;

/// Measures Frond.
pub fn run(context: &Context<'_>, figures: &mut Figures) -> Result<bool, Failure> {
    if context.target != "frond" {
        return Ok(false);
    }
    let count = context.scale.records * RECORDS_TIMES;
    let options = EngineOptions {
        memtable_bytes_max: MEMTABLE_BYTES,
        reclaim_bytes_a_second: None,
        ..EngineOptions::default()
    };
    let open = |options| -> Result<Engine, Failure> {
        Ok(Engine::open(&Machine::system(context.directory)?, options)?)
    };
    let engine = open(options)?;
    let tree = load(&engine, count, |number| value(number, 0))?;
    let changed = change(&engine, tree, count)?;
    figures.fact("records", count as f64);
    figures.fact("changes", changed as f64);
    figures.fact("log, MB", engine.counters().log_record_bytes as f64 / 1e6);
    for state in ["cached", "not cached"] {
        if state == "not cached" && std::fs::write("/proc/sys/vm/drop_caches", "3").is_err() {
            continue;
        }
        leave(context)?;
        let begin = Instant::now();
        let opened = open(options)?;
        figures.cost(format!("opening, files {state}, ms"), begin.elapsed().as_secs_f64() * 1e3);
        // Its log is as it was: it isn't closed.
        std::mem::forget(opened);
    }
    std::mem::forget(engine);
    Ok(true)
}

/// Lets another have the directory, as the end of a process does.
fn leave(context: &Context<'_>) -> Result<(), Failure> {
    Ok(std::fs::remove_file(context.directory.join("LOCK"))?)
}

fn change(engine: &Engine, tree: TreeId, count: u64) -> Result<u64, Failure> {
    let mut random = Random::new(3);
    let changes = count / CHANGED_SHARE;
    for _ in 0..changes / CHANGES_TOGETHER {
        let mut transaction = engine.begin();
        for _ in 0..CHANGES_TOGETHER {
            let number = random.below(count);
            transaction.put_changed(tree, key(number), Value::inline(value(number, 1)))?;
        }
        transaction.commit(Durability::Synced)?;
    }
    Ok(changes)
}

fn value(number: u64, version: u8) -> Bytes {
    let mut value = Vec::with_capacity(VALUE_BYTES);
    Random::new(number).letters(VALUE_BYTES, &mut value);
    value[CHANGED_AT] = b'0' + version;
    value.into()
}
