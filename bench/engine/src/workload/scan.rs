//! Bulk load of sorted entries, full scans, size on disk; point reads beside a scan.
//!
//! Each scan passes all entries and adds up their bytes; the figure is the best of three. The cache
//! holds twice the data, or a quarter: then most is read from the file system's cache and
//! decompressed each time.

use std::time::Instant;

use bytes::Bytes;

use crate::figures::Figures;
use crate::measure::{self, Meter};
use crate::random::{Random, scramble};
use crate::target::{Failure, Session, Settings, Target};
use crate::targets;
use crate::workload::Context;

const VALUE_BYTES: usize = 100;
const KEY_BYTES: usize = 16;
const SCANS: usize = 3;
const READS: u64 = 200_000;

/// The cache holds everything.
pub fn run_in_memory(context: &Context<'_>, figures: &mut Figures) -> Result<bool, Failure> {
    run(context, data_bytes(context) * 2, figures)
}

/// The cache holds a quarter.
pub fn run_beyond_memory(context: &Context<'_>, figures: &mut Figures) -> Result<bool, Failure> {
    run(context, data_bytes(context) / 4, figures)
}

fn data_bytes(context: &Context<'_>) -> u64 {
    context.scale.scan_entries * (KEY_BYTES + VALUE_BYTES) as u64
}

fn run(context: &Context<'_>, cache_bytes: u64, figures: &mut Figures) -> Result<bool, Failure> {
    let (count, data_bytes) = (context.scale.scan_entries, data_bytes(context));
    let settings = Settings::new(context.directory, 1, cache_bytes);
    let generated = {
        let meter = Meter::start()?;
        entries(count).for_each(drop);
        meter.cost()?
    };
    let Some(target) = targets::open(context.target, &settings)? else {
        return Ok(false);
    };
    let meter = Meter::start()?;
    target.load(0, &mut entries(count))?;
    target.rest()?;
    let load = meter.cost()?;
    let count = count as f64;
    figures.rate("load: entries/s", count / (load.wall_seconds - generated.wall_seconds));
    let load_cpu = (load.cpu_seconds - generated.cpu_seconds) / count;
    figures.cost("load: CPU an entry, µs", load_cpu * 1e6);
    let disk = measure::disk_bytes(context.directory)?;
    figures.cost("size on disk / bytes given", disk as f64 / data_bytes as f64);

    let mut session = target.session()?;
    let mut best = f64::INFINITY;
    for _ in 0..SCANS {
        best = best.min(scan(&mut *session, context)?);
    }
    figures.rate("scan: entries a CPU second", count / best);
    figures.cost("uniform point read, µs", reads(&*target, context)?);
    figures.cost("memory at most, MB", measure::memory_bytes_max()? as f64 / 1e6);
    figures.fact("entries", count);
    Ok(true)
}

/// Keys of 16 bytes that ascend; values of letters, half of which repeat, as in text.
fn entries(count: u64) -> impl Iterator<Item = (Bytes, Bytes)> {
    let mut random = Random::new(3);
    (0..count).map(move |number| {
        let mut value = Vec::with_capacity(VALUE_BYTES);
        random.letters(VALUE_BYTES / 2, &mut value);
        value.resize(VALUE_BYTES, b'a' + (number % 26) as u8);
        (key(number), Bytes::from(value))
    })
}

fn key(number: u64) -> Bytes {
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key[8..].copy_from_slice(&scramble(number).to_be_bytes());
    Bytes::copy_from_slice(&key)
}

/// Processor seconds of one scan.
fn scan(session: &mut dyn Session, context: &Context<'_>) -> Result<f64, Failure> {
    let (mut count, mut bytes) = (0, 0);
    let before = measure::cpu_seconds_of_threads()?;
    session.range(0, &[0], &mut |key, value| {
        count += 1;
        bytes += key.len() + value.len();
        true
    })?;
    let after = measure::cpu_seconds_of_threads()?;
    let expected = context.scale.scan_entries;
    if count != expected || bytes as u64 != expected * (KEY_BYTES + VALUE_BYTES) as u64 {
        return Err(format!("a scan passes {count} entries, {bytes} bytes").into());
    }
    Ok(after - before)
}

/// Microseconds of a point read, uniform.
fn reads(target: &dyn Target, context: &Context<'_>) -> Result<f64, Failure> {
    let mut session = target.session()?;
    let mut random = Random::new(4);
    let keys: Vec<Bytes> =
        (0..READS).map(|_| key(random.below(context.scale.scan_entries))).collect();
    let mut found = 0;
    let begin = Instant::now();
    for key in &keys {
        session.get(0, key, &mut |value| found += value.len())?;
    }
    let taken = begin.elapsed();
    if found as u64 != READS * VALUE_BYTES as u64 {
        return Err("a point read found nothing".into());
    }
    Ok(taken.as_secs_f64() / READS as f64 * 1e6)
}
