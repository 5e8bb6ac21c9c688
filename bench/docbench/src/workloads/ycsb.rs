//! YCSB (Cooper and others: Benchmarking Cloud Serving Systems with YCSB, 2010), workloads A to F.
//!
//! Records have ten fields of 100 bytes. Each value says which record and field it belongs to and
//! how often the record was written, and the rest of it follows from that: so every read can be
//! checked, whatever was updated meanwhile, and all are.
//!
//! 1. The records are loaded and the database settles.
//! 2. Each mix runs in a closed loop with eight clients.
//! 3. The mix A (half updates) runs with 1, 8, 35, 70, 105 ... clients until the 95th percentile
//!    passes 5 ms, or further if that was asked for: the publication's curve, with the last point
//!    below it.
//! 4. The mix A runs in an open loop over 500 connections; the highest rate whose 95th percentile
//!    is below 5 ms is found by bisection.
//! 5. Cold: the database is stopped, the operating system's caches are dropped, the database is
//!    started again, and one client reads random records.

mod client;
mod record;

use std::sync::Arc;
use std::time::Duration;

use crate::drive::{Client, Measured, Span, closed_loop, open_loop};
use crate::query::{CollectionSpec, Kind};
use crate::results::{Better, Case};
use crate::target::{Capabilities, Failure};
use crate::workload::{Context, Original, Workload};

use self::client::{MIXES, Mix, Shared, YcsbClient};

/// The collection.
const RECORDS: &str = "usertable";
const BATCH: u64 = 500;
const CLIENTS_OF_MIXES: usize = 8;
/// Few enough that most of them find nothing that an earlier one has read.
const COLD_READS: u64 = 300;
const LATENCY_MILLIS_MAX: f64 = 5.0;
/// The open loop's search ends when the rate is known within this factor.
const RATE_PRECISION: f64 = 1.1;
const PROBES_MAX: u32 = 8;
/// The least rate: fewer arrivals a second show nothing in the time that a probe has.
const RATE_MIN: f64 = 30.0;

/// The workload.
pub struct Ycsb;

impl Workload for Ycsb {
    fn name(&self) -> &'static str {
        "ycsb"
    }

    fn title(&self) -> &'static str {
        "reads and updates of records, six mixes; how many clients and what rate stay below 5 ms"
    }

    fn original(&self) -> Original {
        Original {
            source: "Couchbase: Benchmarking Couchbase Server and MongoDB with YCSB",
            finding: "95th percentile below 5 ms up to 525 clients on Couchbase and up to 245 on \
                      MongoDB, half updates",
        }
    }

    fn refuses(&self, capabilities: &Capabilities) -> Option<&'static str> {
        (!capabilities.documents).then_some("it has no documents")
    }

    fn run(&self, context: &mut Context<'_>) -> Result<(), Failure> {
        let shared = load(context)?;
        client::check_updates(context, &shared)?;
        mixes(context, &shared)?;
        curve(context, &shared)?;
        open_rate(context, &shared)?;
        client::check_all(context, &shared)?;
        context.recorder.checked(context.subject, shared.checked());
        context.cold = Some(Box::new(move |context| cold(context, &shared)));
        Ok(())
    }
}

fn records(context: &Context<'_>) -> Result<u64, Failure> {
    let own = context.scale.pick(1_000, 20_000, 1_000_000);
    context.parameters.number("ycsb.records", own)
}

fn connections(context: &Context<'_>) -> Result<usize, Failure> {
    let own = context.scale.pick(50, 500, 500);
    let count = context.parameters.number("ycsb.connections", own)?;
    usize::try_from(count).map_err(Failure::other)
}

fn load(context: &Context<'_>) -> Result<Arc<Shared>, Failure> {
    let target = context.target()?;
    let count = records(context)?;
    let mut session = target.session()?;
    session.create(&CollectionSpec::new(RECORDS, Kind::Text))?;
    for first in (0..count).step_by(BATCH as usize) {
        context.progress.say(&format!("loading record {first} of {count}"));
        let mut batch = Vec::new();
        for number in first..(first + BATCH).min(count) {
            batch.push(record::encoded(target, number)?);
        }
        session.insert(RECORDS, &batch)?;
    }
    target.settle()?;
    Ok(Arc::new(Shared::new(count)))
}

fn clients<'a>(
    context: &Context<'a>,
    shared: &Arc<Shared>,
    mix: &'static Mix,
    count: usize,
) -> Result<Vec<Box<dyn Client + 'a>>, Failure> {
    let target = context.target()?;
    let mut clients: Vec<Box<dyn Client + 'a>> = Vec::with_capacity(count);
    for _ in 0..count {
        clients.push(Box::new(YcsbClient::new(target, shared.clone(), mix)?));
    }
    Ok(clients)
}

fn span(context: &Context<'_>, parts: u64) -> Span {
    Span {
        warm_up: context.scale.millis(100, 300, 10_000),
        measured: context.scale.millis(300, 800, 60_000),
        seed: context.seed ^ parts,
    }
}

fn mixes(context: &mut Context<'_>, shared: &Arc<Shared>) -> Result<(), Failure> {
    for mix in MIXES {
        context.progress.say(&format!("mix {}, {CLIENTS_OF_MIXES} clients", mix.name));
        let span = span(context, mix.name.len() as u64);
        let mut clients = clients(context, shared, mix, CLIENTS_OF_MIXES)?;
        let case = Case::new()
            .with("mix", mix.name)
            .with("clients", CLIENTS_OF_MIXES as u64)
            .with("loop", "closed")
            .headline();
        context.load(&case, &span, || closed_loop(&mut clients, span))?;
    }
    Ok(())
}

/// Reads of one client from a database that has nothing in memory.
fn cold(context: &mut Context<'_>, shared: &Arc<Shared>) -> Result<(), Failure> {
    context.progress.say("cold reads");
    let reads = context.scale.pick(50, COLD_READS, COLD_READS);
    let latencies = client::read_cold(context, shared, reads)?;
    let case = Case::new().with("caches", "cold").with("clients", 1_u64);
    context.recorder.latency(context.subject, &case, "read", &latencies);
    let p50 = latencies.value_at_quantile(0.5) as f64 / 1e3;
    let unit = ("ms", Better::Lower);
    context.recorder.value(context.subject, &case.headline(), "cold_read_p50", unit, p50);
    Ok(())
}

/// Whether the 95th percentile is in time; not where nothing was done.
fn is_in_time(measured: &Measured) -> bool {
    measured.operations > 0 && measured.millis_at(0.95) <= LATENCY_MILLIS_MAX
}

/// Adds clients until the 95th percentile is too long.
fn curve(context: &mut Context<'_>, shared: &Arc<Shared>) -> Result<(), Failure> {
    let steps = [1, 8].into_iter().chain((1..).map(|step| step * 35));
    let clients_max = context.scale.pick(70, 700, 1_050);
    let clients_max = context.parameters.number("ycsb.clients-max", clients_max)?;
    // The curve goes on so far, however long the latencies are.
    let clients_shown = context.parameters.number("ycsb.clients-shown", 0)?;
    let (mut below, mut above) = (0, 0);
    for count in steps.take_while(|count| *count as u64 <= clients_max) {
        context.progress.say(&format!("mix A, {count} clients"));
        let span = span(context, 100 + count as u64);
        let mut clients = clients(context, shared, &MIXES[0], count)?;
        let case = Case::new()
            .with("mix", "A")
            .with("clients", count as u64)
            .with("loop", "closed")
            .with("part", "curve");
        let measured = context.load(&case, &span, || closed_loop(&mut clients, span))?;
        if is_in_time(&measured) {
            (below, above) = (count, 0);
            continue;
        }
        above += 1;
        // One late pass may have been another process's doing.
        if above >= 2 && clients_shown <= count as u64 {
            break;
        }
    }
    let case = Case::new().with("mix", "A").with("loop", "closed").headline();
    let unit = ("clients", Better::Higher);
    context.recorder.value(context.subject, &case, "clients_below_5_ms", unit, below as f64);
    Ok(())
}

/// A rate of arrivals that is tried, and what came of it.
struct Probe {
    span: Span,
    measured: Measured,
    is_in_time: bool,
}

/// Tries a rate; a second time if it wasn't answered in time, since one late pass may have been
/// another process's doing.
fn probe(
    context: &mut Context<'_>,
    connections: &mut [Box<dyn Client + '_>],
    case: &Case,
    rate: f64,
    seeds: u64,
) -> Result<Probe, Failure> {
    let count = connections.len();
    context.progress.say(&format!("mix A, {count} connections, {rate:.0} arrivals a second"));
    let mut attempt = 0;
    loop {
        let span = Span {
            warm_up: context.scale.millis(100, 300, 10_000),
            measured: context.scale.millis(400, 1_000, 30_000),
            seed: context.seed ^ (seeds + attempt),
        };
        let measured = open_loop(connections, rate, span)?;
        let is_in_time = is_in_time(&measured) && measured.rate() > rate * 0.8;
        attempt += 1;
        if is_in_time || attempt == 2 {
            let probed = case.clone().with("part", "probe").with("arrivals", rate.round());
            context.recorder.load(context.subject, &probed, &span, &measured);
            return Ok(Probe { span, measured, is_in_time });
        }
    }
}

/// The highest rate of arrivals that is answered in time.
fn open_rate(context: &mut Context<'_>, shared: &Arc<Shared>) -> Result<(), Failure> {
    let count = connections(context)?;
    let mut connections = clients(context, shared, &MIXES[0], count)?;
    // A connection's first operations prepare statements and fill caches: that isn't what is asked.
    let warming = Span {
        warm_up: Duration::ZERO,
        measured: context.scale.millis(200, 1_500, 5_000),
        seed: context.seed ^ 199,
    };
    context.progress.say(&format!("mix A, {count} connections, warming up"));
    closed_loop(&mut connections, warming)?;
    let case = Case::new().with("mix", "A").with("connections", count as u64).with("loop", "open");
    // A rate that is certainly too high is found first, then the interval is halved
    // (geometrically).
    let (mut low, mut high, mut rate) = (0.0, f64::INFINITY, 500.0);
    let mut best = None;
    for number in 0..PROBES_MAX {
        let seeds = 200 + u64::from(number) * 2;
        let probe = probe(context, &mut connections, &case, rate, seeds)?;
        if probe.is_in_time {
            low = rate;
            best = Some((probe.span, probe.measured));
        } else {
            high = rate;
        }
        if high / low < RATE_PRECISION {
            break;
        }
        rate = match (low > 0.0, high.is_finite()) {
            (true, true) => (low * high).sqrt(),
            (true, false) => low * 2.0,
            (false, _) => high / 4.0,
        };
        if rate < RATE_MIN {
            break;
        }
    }
    if let Some((span, measured)) = &best {
        context.recorder.load(context.subject, &case.clone().with("part", "best"), span, measured);
    }
    let unit = ("operations/s", Better::Higher);
    context.recorder.value(context.subject, &case.headline(), "rate_below_5_ms", unit, low);
    Ok(())
}
