//! Inserts documents with four indexes into a cache that is too small, until all debt is paid.
//!
//! One thread, a synced transaction a batch of 1,000 documents, a range query of 1,000 documents by
//! the clustered index after every 20th batch. Then the target comes to rest: its deferred work
//! counts. A target that runs out of time has inserted less: compare the rates at equal counts. The
//! generator's own processor time is measured first, and taken away. Its speed beside the insertion
//! shows how fast the machine is just then: it always does the same.

use std::time::Instant;

use crate::document::{self, CLUSTERED, TREE_COUNT};
use crate::figures::{Figures, Latencies};
use crate::measure::{self, Meter, ThreadSeconds};
use crate::random::Random;
use crate::target::{Failure, Put, Session, Settings, Target};
use crate::targets;
use crate::workload::Context;

const CACHE_BYTES: u64 = 128 << 20;
const BATCH: u64 = 1_000;
const BATCHES_A_RANGE: u64 = 20;
const RANGE: usize = 1_000;
/// The rate over time is reported up to these sixteenths of the planned count.
const PART_ENDS: [u64; 6] = [1, 2, 4, 8, 12, 16];
/// The exit rate is that of the last tenth of the batches.
const EXIT_DIVISOR: usize = 10;
const SEED: u64 = 20;
/// The number of slowest batches that are shown with what they waited for.
const SLOW_COUNT: usize = 5;
/// The aim for the slowest batch.
const SLOW_SECONDS: f64 = 0.05;

/// The results of the insertion.
struct Inserted {
    batches: Latencies,
    ranges: Latencies,
    documents: u64,
    given_bytes: u64,
    /// The times of each batch.
    took: Vec<BatchSeconds>,
    /// The number of documents at its end and the processor seconds up to there, for each part.
    parts: Vec<(u64, f64)>,
}

/// The times of one batch.
struct BatchSeconds {
    /// The time when it began.
    begun: f64,
    all: f64,
    /// The part of it in which the thread was on a processor, or waited for one; the rest it waited
    /// for other threads or for the disk.
    own: ThreadSeconds,
    /// The processor time of making its documents.
    making: f64,
}

/// Measures one target.
pub fn run(context: &Context<'_>, figures: &mut Figures) -> Result<bool, Failure> {
    let settings = Settings::new(context.directory, TREE_COUNT, CACHE_BYTES);
    let generator = generator_cpu_seconds()?;
    let Some(target) = targets::open(context.target, &settings)? else {
        return Ok(false);
    };
    let written_before = measure::written_bytes()?;
    let meter = Meter::start()?;
    let mut inserted = insert(&*target, context)?;
    let insertion = meter.cost()?;
    target.rest()?;
    let all = meter.cost()?;
    let written = measure::written_bytes()? - written_before;
    let counters = target.counters();
    let share = disk_share(context, &inserted)?;
    check(&*target, inserted.documents)?;
    report_rates(&inserted, figures);

    let documents = inserted.documents as f64;
    let own = generator * documents;
    figures.cost("worst batch, ms", inserted.batches.micros_at(1.0) / 1e3);
    figures.cost("p99 of the batches, ms", inserted.batches.micros_at(0.99) / 1e3);
    figures.cost("CPU a document before rest, µs", (insertion.cpu_seconds - own) / documents * 1e6);
    figures.cost("CPU a document, rest included, µs", (all.cpu_seconds - own) / documents * 1e6);
    figures.rate("documents a CPU second, rest included", documents / (all.cpu_seconds - own));
    figures.cost("coming to rest, s", all.wall_seconds - insertion.wall_seconds);
    figures.cost("bytes written / bytes given", written as f64 / inserted.given_bytes as f64);
    figures.cost("size on disk / bytes given", share);
    figures.cost("range of 1,000 documents, p50, ms", inserted.ranges.micros_at(0.5) / 1e3);
    figures.cost("range of 1,000 documents, p99, ms", inserted.ranges.micros_at(0.99) / 1e3);
    let mut rested = Latencies::default();
    ranges(&mut *target.session()?, 200, &mut rested)?;
    figures.cost("the same at rest, p50, ms", rested.micros_at(0.5) / 1e3);
    figures.cost("the same at rest, p99, ms", rested.micros_at(0.99) / 1e3);
    let meter = Meter::start()?;
    if target.fold_all()? {
        let more = meter.cost()?.cpu_seconds;
        let folded = (all.cpu_seconds + more - own) / documents * 1e6;
        figures.cost("CPU a document, everything folded, µs", folded);
        let share = disk_share(context, &inserted)?;
        figures.cost("size on disk / bytes given, everything folded", share);
    }
    if target.pack()? {
        let share = disk_share(context, &inserted)?;
        figures.cost("size on disk / bytes given, packed with zstd", share);
    }
    figures.cost("memory at most, MB", measure::memory_bytes_max()? as f64 / 1e6);
    figures.fact("documents inserted", documents);
    figures.fact("MB given", inserted.given_bytes as f64 / 1e6);
    report_slowest(&mut inserted.took, figures);
    for (name, value) in counters {
        figures.fact(format!("counted: {name}"), value);
    }
    Ok(true)
}

fn disk_share(context: &Context<'_>, inserted: &Inserted) -> Result<f64, Failure> {
    let disk = measure::disk_bytes(context.directory)?;
    Ok(disk as f64 / inserted.given_bytes as f64)
}

fn insert(target: &dyn Target, context: &Context<'_>) -> Result<Inserted, Failure> {
    let mut session = target.session()?;
    let mut random = Random::new(SEED);
    let mut inserted = Inserted {
        batches: Latencies::default(),
        ranges: Latencies::default(),
        documents: 0,
        given_bytes: 0,
        took: Vec::new(),
        parts: Vec::new(),
    };
    let planned = context.scale.documents.next_multiple_of(BATCH);
    let part_end = |sixteenths: &u64| (planned * sixteenths / 16).next_multiple_of(BATCH);
    let part_ends = PART_ENDS.map(|sixteenths| part_end(&sixteenths));
    let (begin, cpu_before) = (Instant::now(), measure::cpu_seconds()?);
    let mut puts: Vec<Put> = Vec::new();
    while inserted.documents < planned && begin.elapsed() < context.scale.insert_time {
        let before_making = ThreadSeconds::now()?;
        puts.clear();
        let numbers = inserted.documents..inserted.documents + BATCH;
        inserted.documents = numbers.end;
        numbers.for_each(|number| document::puts(number, &mut random, &mut puts));
        inserted.given_bytes += puts.iter().map(Put::bytes).sum::<u64>();
        let before = ThreadSeconds::now()?;
        let making = before.since(before_making).running;
        let (begun, start) = (begin.elapsed().as_secs_f64(), Instant::now());
        session.write(&puts)?;
        let taken = start.elapsed();
        inserted.batches.add(taken);
        let own = ThreadSeconds::now()?.since(before);
        inserted.took.push(BatchSeconds { begun, all: taken.as_secs_f64(), own, making });
        if inserted.documents.is_multiple_of(BATCH * BATCHES_A_RANGE) {
            ranges(&mut *session, 1, &mut inserted.ranges)?;
        }
        if part_ends.contains(&inserted.documents) {
            inserted.parts.push((inserted.documents, measure::cpu_seconds()? - cpu_before));
        }
    }
    Ok(inserted)
}

/// Reads ranges from random places.
fn ranges(session: &mut dyn Session, count: u64, latencies: &mut Latencies) -> Result<(), Failure> {
    let mut random = Random::new(latencies.count() as u64 + 1);
    for _ in 0..count {
        let from = document::clustered_key(&mut random);
        let (mut found, mut bytes) = (0, 0);
        let begin = Instant::now();
        session.range(CLUSTERED, &from, &mut |_, document| {
            found += 1;
            bytes += document.len();
            found < RANGE
        })?;
        latencies.add(begin.elapsed());
        if found != RANGE || bytes < RANGE * 200 {
            return Err(format!("a range has {found} documents, {bytes} bytes").into());
        }
    }
    Ok(())
}

fn report_rates(inserted: &Inserted, figures: &mut Figures) {
    let rate = |batches: &[BatchSeconds]| {
        let documents = batches.len() as f64 * BATCH as f64;
        documents / batches.iter().map(|batch| batch.all).sum::<f64>()
    };
    let (mut from, mut cpu_before) = (0, 0.0);
    for (to, cpu) in &inserted.parts {
        let batches = &inserted.took[(from / BATCH) as usize..(to / BATCH) as usize];
        figures.rate(format!("documents/s to {}", thousands(*to)), rate(batches));
        let micros = (cpu - cpu_before) / (to - from) as f64 * 1e6;
        figures.cost(format!("CPU a document to {}, µs", thousands(*to)), micros);
        (from, cpu_before) = (*to, *cpu);
    }
    let exit_start = inserted.took.len() - inserted.took.len().div_ceil(EXIT_DIVISOR);
    let (mean, exit) = (rate(&inserted.took), rate(&inserted.took[exit_start..]));
    figures.rate("documents/s, mean", mean);
    figures.rate("documents/s, exit", exit);
    figures.rate("exit / mean", exit / mean);
    let making = |batches: &[BatchSeconds]| {
        batches.iter().map(|batch| batch.making).sum::<f64>() / batches.len() as f64
    };
    let machine = making(&inserted.took) / making(&inserted.took[exit_start..]);
    figures.fact("the machine's own exit / mean: its speed at making documents", machine);
}

/// Reports the waits of the slowest batches. Leaves all in that order.
fn report_slowest(took: &mut [BatchSeconds], figures: &mut Figures) {
    let slow_count = took.iter().filter(|batch| SLOW_SECONDS < batch.all).count();
    figures.fact(format!("batches above {} ms", SLOW_SECONDS * 1e3), slow_count as f64);
    took.sort_unstable_by(|left, right| right.all.total_cmp(&left.all));
    for (position, batch) in took.iter().take(SLOW_COUNT).enumerate() {
        let name = |what| format!("slow batch {}: {what}", position + 1);
        figures.fact(name("began after s"), batch.begun);
        figures.fact(name("all, ms"), batch.all * 1e3);
        figures.fact(name("on a processor, ms"), batch.own.running * 1e3);
        figures.fact(name("waiting for a processor, ms"), batch.own.waiting * 1e3);
    }
}

fn thousands(count: u64) -> String {
    if count < 1_000_000 {
        return format!("{},{:03}", count / 1_000, count % 1_000);
    }
    format!("{},{:03},{:03}", count / 1_000_000, count / 1_000 % 1_000, count % 1_000)
}

/// Returns the processor time of making one document.
fn generator_cpu_seconds() -> Result<f64, Failure> {
    const DOCUMENTS: u64 = 200_000;
    let mut random = Random::new(SEED);
    let mut puts = Vec::new();
    let meter = Meter::start()?;
    for number in 0..DOCUMENTS {
        if number.is_multiple_of(BATCH) {
            puts.clear();
        }
        document::puts(number, &mut random, &mut puts);
    }
    Ok(meter.cost()?.cpu_seconds / DOCUMENTS as f64)
}

/// Reads some documents back, by `_id` and by URI.
fn check(target: &dyn Target, documents: u64) -> Result<(), Failure> {
    let mut random = Random::new(SEED);
    let mut session = target.session()?;
    let mut puts = Vec::new();
    let step = documents.div_ceil(500);
    for number in 0..documents {
        puts.clear();
        document::puts(number, &mut random, &mut puts);
        if !number.is_multiple_of(step) {
            continue;
        }
        for put in &puts {
            let mut right = false;
            session.get(put.tree, &put.key, &mut |value| right = value == put.value)?;
            if !right {
                return Err(format!("document {number} is wrong in tree {}", put.tree).into());
            }
        }
    }
    Ok(())
}
