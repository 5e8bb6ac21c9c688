//! Many threads that each add one to the same entry, one transaction after the other, as clients
//! of a server do that count in one document; and read it, and put it, as `$inc` does.
//!
//! Each is run as the layer above the engine runs it: optimistically, then, once it has lost, with
//! the key claimed. Frond alone. The entry must be the number of commits in the end.

use std::time::{Duration, Instant};

use bytes::Bytes;
use frond_engine::{Durability, Engine, EngineError, LockMode, Transaction, TreeId};
use frond_tree::Value;

use crate::figures::{Figures, Latencies};
use crate::measure::{self, Meter};
use crate::target::{Failure, Settings};
use crate::targets::Frond;
use crate::workload::Context;

const THREADS: [u64; 3] = [1, 8, 32];
const CACHE_BYTES: u64 = 128 << 20;
const KEY: &[u8] = b"counter";
/// As long as a small document.
const VALUE_BYTES: usize = 100;
const WAIT_STEP: Duration = Duration::from_millis(100);

/// Measures Frond.
pub fn run(context: &Context<'_>, figures: &mut Figures) -> Result<bool, Failure> {
    if context.target != "frond" {
        return Ok(false);
    }
    let frond = Frond::open(&Settings::new(context.directory, 0, CACHE_BYTES))?;
    let engine = frond.engine();
    for threads in context.scale.threads(THREADS) {
        let bare = measure::sync_probe_micros(context.directory)?;
        let (before, counters) = (count(&engine.begin())?, engine.counters());
        let meter = Meter::start()?;
        let mut latencies = add_from(engine, threads, context.scale.rate_time)?;
        let cost = meter.cost()?;
        let commits = latencies.count() as u64;
        if count(&engine.begin())? != before + commits {
            return Err("an addition was lost".into());
        }
        let syncs = engine.counters().log_syncs - counters.log_syncs;
        let title = if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
        let seconds = cost.wall_seconds;
        figures.rate(format!("{title}: additions/s"), commits as f64 / seconds);
        figures.fact(format!("{title}: syncs/s"), syncs as f64 / seconds);
        figures.fact(format!("{title}: additions a sync"), commits as f64 / syncs.max(1) as f64);
        figures.cost(format!("{title}: p50, µs"), latencies.micros_at(0.5));
        figures.cost(format!("{title}: p99, µs"), latencies.micros_at(0.99));
        figures.fact(format!("{title}: the disk's own sync, µs"), bare);
    }
    Ok(true)
}

fn add_from(engine: &Engine, threads: u64, time: Duration) -> Result<Latencies, Failure> {
    std::thread::scope(|scope| {
        let add = || {
            scope.spawn(|| -> Result<Latencies, EngineError> {
                let mut latencies = Latencies::default();
                let begin = Instant::now();
                while begin.elapsed() < time {
                    let begin = Instant::now();
                    add_one(engine)?;
                    latencies.add(begin.elapsed());
                }
                Ok(latencies)
            })
        };
        let handles: Vec<_> = (0..threads).map(|_| add()).collect();
        let mut all = Latencies::default();
        for handle in handles {
            all.add_all(handle.join().map_err(|_| "a thread panicked")??);
        }
        Ok(all)
    })
}

/// Runs a transaction until it is committed.
fn add_one(engine: &Engine) -> Result<(), EngineError> {
    let mut transaction = engine.begin();
    loop {
        match add(&mut transaction) {
            Ok(()) => match transaction.commit(Durability::Synced) {
                Ok(_) => return Ok(()),
                Err(EngineError::Conflict { .. }) => {
                    transaction = engine.begin_as(LockMode::Locking);
                }
                Err(error) => return Err(error),
            },
            Err(EngineError::Conflict { .. }) => {
                if let Some(wait) = transaction.blocked() {
                    while !wait.wait(WAIT_STEP) {}
                    transaction.unblock();
                }
                transaction.restart()?;
            }
            Err(error) => return Err(error),
        }
    }
}

fn add(transaction: &mut Transaction) -> Result<(), EngineError> {
    let mut bytes = (count(transaction)? + 1).to_be_bytes().to_vec();
    bytes.resize(VALUE_BYTES, b'.');
    transaction.put(TreeId::SYSTEM, Bytes::from_static(KEY), Value::inline(bytes))
}

fn count(transaction: &Transaction) -> Result<u64, EngineError> {
    let Some(value) = transaction.get(TreeId::SYSTEM, KEY)? else { return Ok(0) };
    let bytes = transaction.read(&value)?;
    Ok(bytes.first_chunk().map_or(0, |count| u64::from_be_bytes(*count)))
}
