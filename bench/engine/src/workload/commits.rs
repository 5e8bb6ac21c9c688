//! Durable commits of five entries each, from 1 to 128 threads.
//!
//! Each transaction writes one entry of 100 bytes with a random key to each of five trees, and is
//! synced before it returns. Beside it the disk's own sync of 4 KB appended to a file.

use std::time::Instant;

use bytes::Bytes;

use crate::figures::{Figures, Latencies};
use crate::measure::{self, Meter};
use crate::random::Random;
use crate::target::{Failure, Put, Settings, Target};
use crate::targets;
use crate::workload::Context;

const THREADS: [u64; 4] = [1, 8, 32, 128];
const TREE_COUNT: usize = 5;
const CACHE_BYTES: u64 = 128 << 20;
const VALUE_BYTES: usize = 100;

/// Measures one target.
pub fn run(context: &Context<'_>, figures: &mut Figures) -> Result<bool, Failure> {
    let settings = Settings::new(context.directory, TREE_COUNT, CACHE_BYTES);
    let Some(target) = targets::open(context.target, &settings)? else {
        return Ok(false);
    };
    for threads in context.scale.threads(THREADS) {
        let bare = measure::sync_probe_micros(context.directory)?;
        let meter = Meter::start()?;
        let mut latencies = commit_from(&*target, threads, context)?;
        let cost = meter.cost()?;
        let count = latencies.count() as f64;
        let title = if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
        figures.rate(format!("{title}: commits/s"), count / cost.wall_seconds);
        figures.cost(format!("{title}: p50, µs"), latencies.micros_at(0.5));
        figures.cost(format!("{title}: p99, µs"), latencies.micros_at(0.99));
        figures.cost(format!("{title}: CPU a commit, µs"), cost.cpu_seconds / count * 1e6);
        figures.fact(format!("{title}: the disk's own sync, µs"), bare);
    }
    for (name, value) in target.counters() {
        figures.fact(format!("counted: {name}"), value);
    }
    Ok(true)
}

fn commit_from(
    target: &dyn Target,
    threads: u64,
    context: &Context<'_>,
) -> Result<Latencies, Failure> {
    let time = context.scale.rate_time;
    std::thread::scope(|scope| {
        let commit = |thread: u64| {
            move || -> Result<Latencies, Failure> {
                let mut session = target.session()?;
                let mut random = Random::new(threads << 32 | thread);
                let mut latencies = Latencies::default();
                let mut value = Vec::new();
                random.letters(VALUE_BYTES, &mut value);
                let value = Bytes::from(value);
                let begin = Instant::now();
                while begin.elapsed() < time {
                    let puts: Vec<Put> = (0..TREE_COUNT)
                        .map(|tree| {
                            let key = [random.next().to_be_bytes(), random.next().to_be_bytes()];
                            let key = Bytes::copy_from_slice(key.as_flattened());
                            Put { tree, key, value: value.clone() }
                        })
                        .collect();
                    let begin = Instant::now();
                    session.write(&puts)?;
                    latencies.add(begin.elapsed());
                }
                Ok(latencies)
            }
        };
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(commit(thread))).collect();
        let mut all = Latencies::default();
        for handle in handles {
            all.add_all(handle.join().map_err(|_| "a thread panicked")??);
        }
        Ok(all)
    })
}
