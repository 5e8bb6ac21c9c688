//! Frond alone: data of eighty times the memory that it is given, as 20 GB with 256 MB.
//!
//! Records of 1 KB are loaded, the engine is opened again, then records are read at random keys,
//! and written, ten in a synced transaction. The process's greatest memory is noted after each
//! step: memory that grows with the data beside the caches (the places of chunks) is in it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use frond_engine::{Durability, Engine, EngineOptions};
use frond_store::io::Machine;
use frond_tree::Value;

use crate::figures::Figures;
use crate::measure;
use crate::random::Random;
use crate::target::Failure;
use crate::workload::Context;
use crate::workload::records::{KEY_BYTES, key, load};

const VALUE_BYTES: usize = 1_000;
const DATA_PER_MEMORY: u64 = 80;
const MEMORY_BYTES_MIN: u64 = 16 << 20;
const READS: u64 = 50_000;
const COMMITS: u64 = 500;
const COMMIT_PUTS: u64 = 10;

/// Measures Frond.
pub fn run(context: &Context<'_>, figures: &mut Figures) -> Result<bool, Failure> {
    if context.target != "frond" {
        return Ok(false);
    }
    let count = context.scale.records;
    let data_bytes = count * (KEY_BYTES + VALUE_BYTES) as u64;
    let memory_bytes = (data_bytes / DATA_PER_MEMORY).max(MEMORY_BYTES_MIN);
    // As `frond serve --memory` does.
    rustix::thread::disable_transparent_huge_pages(true)?;
    let open = || -> Result<Engine, Failure> {
        let machine = Machine::system(context.directory)?;
        Ok(Engine::open(&machine, EngineOptions::for_memory(memory_bytes))?)
    };
    figures.fact("data, MB", data_bytes as f64 / 1e6);
    figures.fact("memory allowed, MB", memory_bytes as f64 / 1e6);
    let engine = open()?;
    let begin = Instant::now();
    let tree = load(&engine, count, value)?;
    figures.cost("load, s", begin.elapsed().as_secs_f64());
    figures.cost("memory at most after the load, MB", megabytes()?);
    engine.close()?;
    drop(engine);

    let begin = Instant::now();
    let engine = open()?;
    figures.cost("opening again, ms", begin.elapsed().as_secs_f64() * 1e3);
    let mut random = Random::new(7);
    let mut times = Vec::new();
    for _ in 0..READS {
        let begin = Instant::now();
        let found = engine.snapshot().get(tree, &key(random.below(count)))?;
        times.push(begin.elapsed());
        found.ok_or("a key is missing")?;
    }
    latencies(figures, "point read", &mut times);
    figures.cost("memory at most after the reads, MB", megabytes()?);
    let mut times = Vec::new();
    for _ in 0..COMMITS {
        let begin = Instant::now();
        let mut transaction = engine.begin();
        for _ in 0..COMMIT_PUTS {
            let (key, value) = (key(random.below(count)), value(random.next()));
            transaction.put(tree, key, Value::inline(value))?;
        }
        transaction.commit(Durability::Synced)?;
        times.push(begin.elapsed());
    }
    latencies(figures, "commit of 10 puts", &mut times);
    engine.flush()?;
    figures.cost("memory at most after the commits, MB", megabytes()?);
    let disk = measure::disk_bytes(context.directory)?;
    figures.cost("size on disk / bytes given", disk as f64 / data_bytes as f64);
    Ok(true)
}

/// Letters, a tenth of which don't repeat.
fn value(seed: u64) -> Bytes {
    let mut value = Vec::with_capacity(VALUE_BYTES);
    Random::new(seed).letters(VALUE_BYTES / 10, &mut value);
    value.resize(VALUE_BYTES, b'a' + (seed % 26) as u8);
    value.into()
}

fn latencies(figures: &mut Figures, what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    for (name, part) in [("p50", 50), ("p99", 99)] {
        let time = times.get(times.len() * part / 100).copied().unwrap_or_default();
        figures.cost(format!("{what}, {name}, µs"), time.as_secs_f64() * 1e6);
    }
}

fn megabytes() -> Result<f64, Failure> {
    Ok(measure::memory_bytes_max()? as f64 / 1e6)
}
