//! YCSB's workloads A, B and C: reads and updates of records of 1 KB, skewed.
//!
//! C reads only, B updates 5 % and A 50 %; an update replaces the whole record in a synced
//! transaction. Keys are spread over the tree (scrambled Zipf). C comes first, on data at rest. Two
//! sizes have the same records; the cache holds all of them with room, or a quarter. The file
//! system's cache isn't limited then, on any side: a miss costs a call, not a seek. The third has
//! ten times as many, and a quarter of their bytes is all the memory that there is, for the process
//! and for the file system's cache of its files, from before the load on. A miss is a read from the
//! disk. There
//!
//! - each engine's own cache gets the share of the memory with which the engine reads fastest, as
//!   an operator would choose it (`--cache-eighths` gives all the same share); write buffers are
//!   small;
//! - each reads as many records as there are before anything is measured: in the first seconds most
//!   misses are of records that were not read before, which no cache can help.

use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::figures::{Figures, Latencies};
use crate::measure::{self, Meter};
use crate::random::{Random, Zipf, scramble};
use crate::target::{Failure, Put, Settings, Target};
use crate::targets;
use crate::workload::{Context, Scale};

const THREADS: [u64; 3] = [1, 8, 32];
const VALUE_BYTES: usize = 1_000;
const KEY_BYTES: usize = 23;
const RECORD_BYTES: u64 = (VALUE_BYTES + KEY_BYTES) as u64;
/// Workload and share of updates, in percent.
const MIXES: [(&str, u64); 3] = [("C", 0), ("B", 5), ("A", 50)];
const READS_WARMING: u64 = 3;
/// The factor for the number of records where all memory is limited.
const LIMITED_RECORDS: u64 = 10;
/// The number of threads that read as many records as there are before anything is measured.
const LIMITED_WARMING_THREADS: u64 = 32;
const WARMING_SEED: u64 = 1;
const MEASURED_SEED: u64 = 0;
/// The size of a write buffer, of which RocksDB may have five, Frond four.
const LIMITED_WRITE_BUFFER_BYTES: u64 = 16 << 20;

/// The cache holds everything.
pub fn run_in_memory(context: &Context<'_>, figures: &mut Figures) -> Result<bool, Failure> {
    run(context, data_bytes(context) * 3, figures)
}

/// The cache holds a quarter.
pub fn run_beyond_memory(context: &Context<'_>, figures: &mut Figures) -> Result<bool, Failure> {
    run(context, data_bytes(context) / 4, figures)
}

/// All memory is a quarter, and the cache of that what the target does best with.
pub fn run_in_limits(context: &Context<'_>, figures: &mut Figures) -> Result<bool, Failure> {
    let records = context.scale.records * LIMITED_RECORDS;
    let limited = Context { scale: Scale { records, ..context.scale }, ..*context };
    let eighths = context.scale.cache_eighths.unwrap_or(targets::limited_eighths(context.target));
    let cache_bytes = limit_bytes(&context.scale) / 8 * eighths;
    let settings = Settings {
        write_buffer_bytes: LIMITED_WRITE_BUFFER_BYTES,
        ..Settings::new(context.directory, 1, cache_bytes)
    };
    let Some(target) = targets::open(context.target, &settings)? else {
        return Ok(false);
    };
    load(&*target, records)?;
    let warming = Until::Count(records / LIMITED_WARMING_THREADS);
    work(&*target, &limited, WARMING_SEED, LIMITED_WARMING_THREADS, 0, warming)?;
    measure_all(&*target, &limited, cache_bytes, figures)?;
    Ok(true)
}

/// Returns how much memory there is for `run_in_limits`.
pub fn limit_bytes(scale: &Scale) -> u64 {
    scale.records * LIMITED_RECORDS * RECORD_BYTES / 4
}

fn data_bytes(context: &Context<'_>) -> u64 {
    context.scale.records * RECORD_BYTES
}

fn run(context: &Context<'_>, cache_bytes: u64, figures: &mut Figures) -> Result<bool, Failure> {
    let settings = Settings::new(context.directory, 1, cache_bytes);
    let Some(target) = targets::open(context.target, &settings)? else {
        return Ok(false);
    };
    load(&*target, context.scale.records)?;
    warm(&*target, context)?;
    measure_all(&*target, context, cache_bytes, figures)?;
    Ok(true)
}

fn measure_all(
    target: &dyn Target,
    context: &Context<'_>,
    cache_bytes: u64,
    figures: &mut Figures,
) -> Result<(), Failure> {
    for (mix, updates) in MIXES {
        for threads in context.scale.threads(THREADS) {
            let (meter, read_before) = (Meter::start()?, measure::disk_read_bytes()?);
            let until = Until::Time(context.scale.rate_time);
            let mut latencies = work(target, context, MEASURED_SEED, threads, updates, until)?;
            let read = measure::disk_read_bytes()? - read_before;
            let cost = meter.cost()?;
            let count = latencies.count() as f64;
            let title = format!("{mix}, {threads} thread{}", if threads == 1 { "" } else { "s" });
            figures.rate(format!("{title}: operations/s"), count / cost.wall_seconds);
            figures.cost(format!("{title}: p99, µs"), latencies.micros_at(0.99));
            let micros = cost.cpu_seconds / count * 1e6;
            figures.cost(format!("{title}: CPU an operation, µs"), micros);
            if read > 0 {
                figures.cost(format!("{title}: KB read an operation"), read as f64 / 1e3 / count);
            }
        }
    }
    figures.cost("memory at most, MB", measure::memory_bytes_max()? as f64 / 1e6);
    figures.fact("records", context.scale.records as f64);
    figures.fact("cache, MB", cache_bytes as f64 / 1e6);
    for (name, value) in target.counters() {
        figures.fact(format!("counted: {name}"), value);
    }
    Ok(())
}

/// The key of a record, as long as YCSB's: `user` and a number.
fn key(rank: u64) -> Bytes {
    Bytes::from(format!("user{:019}", scramble(rank) >> 1))
}

fn load(target: &dyn Target, records: u64) -> Result<(), Failure> {
    let mut ranks: Vec<u64> = (0..records).collect();
    ranks.sort_unstable_by_key(|rank| scramble(*rank) >> 1);
    let mut random = Random::new(1);
    let mut entries = ranks.into_iter().map(|rank| {
        let mut value = Vec::with_capacity(VALUE_BYTES);
        random.letters(VALUE_BYTES, &mut value);
        (key(rank), Bytes::from(value))
    });
    target.load(0, &mut entries)?;
    target.rest()
}

/// Fills the cache.
fn warm(target: &dyn Target, context: &Context<'_>) -> Result<(), Failure> {
    let mut session = target.session()?;
    let (records, mut random) = (context.scale.records, Random::new(2));
    for _ in 0..records * READS_WARMING / 2 {
        session.get(0, &key(random.below(records)), &mut |_| {})?;
    }
    Ok(())
}

/// The time when each thread is done.
#[derive(Clone, Copy)]
enum Until {
    Time(Duration),
    Count(u64),
}

impl Until {
    fn is_over(self, begin: Instant, count: u64) -> bool {
        match self {
            Until::Time(time) => time <= begin.elapsed(),
            Until::Count(all) => all <= count,
        }
    }
}

fn work(
    target: &dyn Target,
    context: &Context<'_>,
    seed: u64,
    threads: u64,
    updates: u64,
    until: Until,
) -> Result<Latencies, Failure> {
    let records = context.scale.records;
    let zipf = &Zipf::new(records);
    std::thread::scope(|scope| {
        let work = |thread: u64| {
            move || -> Result<Latencies, Failure> {
                let mut session = target.session()?;
                let mut random = Random::new(seed << 48 | threads << 32 | updates << 16 | thread);
                let mut latencies = Latencies::default();
                let begin = Instant::now();
                while !until.is_over(begin, latencies.count() as u64) {
                    let key = key(zipf.next(&mut random));
                    let is_update = random.below(100) < updates;
                    let mut value = Vec::new();
                    if is_update {
                        random.letters(VALUE_BYTES, &mut value);
                    }
                    let begin = Instant::now();
                    if is_update {
                        session.write(&[Put { tree: 0, key, value: Bytes::from(value) }])?;
                    } else {
                        let mut bytes = 0;
                        session.get(0, &key, &mut |value| bytes = value.len())?;
                        if bytes != VALUE_BYTES {
                            return Err(format!("a record of {bytes} bytes").into());
                        }
                    }
                    latencies.add(begin.elapsed());
                }
                Ok(latencies)
            }
        };
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(work(thread))).collect();
        let mut all = Latencies::default();
        for handle in handles {
            all.add_all(handle.join().map_err(|_| "a thread panicked")??);
        }
        Ok(all)
    })
}
