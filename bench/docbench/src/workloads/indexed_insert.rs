//! Inserts under four secondary indexes, to the end ("exit velocity"), with range queries beside
//! them.
//!
//! After TokuMX's benchmark: documents {URI, name, origin, creation, expiration}, an index on the
//! URI, which is clustered where the database has that, and on name, origin and expiration. All
//! these are random, so that each insert touches as many places as there are indexes.
//!
//! 1. Writers insert batches, each in a durable step, until the count is reached or the time is
//!    over: a database that slows down is measured as far as it came, and the row `inserted` says
//!    how far.
//! 2. Beside them one reader asks again and again for 1,000 documents from a random URI on, in
//!    order.
//! 3. The exit velocity is the rate of the last tenth of the documents. The disk space is reported
//!    at the end.
//! 4. Cold: the database is stopped, the operating system's caches are dropped, the database is
//!    started again, and one client reads such ranges.
//!
//! The data are a multiple of the cache, except at `smoke`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bson::{Document, doc};
use hdrhistogram::Histogram;

use crate::drive::new_histogram;
use crate::query::{CollectionSpec, Comparison, Direction, Kind, Query};
use crate::random::Random;
use crate::results::{Better, Case};
use crate::scale::Scale;
use crate::target::{Capabilities, Encoded, Failure, Session, Target};
use crate::workload::{Context, Original, Parameters, Workload};

const DOCUMENTS: &str = "documents";
const BATCH: u64 = 100;
const WRITERS: u64 = 4;
const RANGE: u64 = 1_000;
const READER_PAUSE: Duration = Duration::from_millis(50);
const CHECKED: u64 = 200;
/// Few enough that most of them find nothing that an earlier one has read.
const COLD_RANGES: u64 = 20;

/// The workload.
pub struct IndexedInsert;

impl Workload for IndexedInsert {
    fn name(&self) -> &'static str {
        "indexed-insert"
    }

    fn title(&self) -> &'static str {
        "inserts under four secondary indexes to the end, range queries beside them, disk used"
    }

    fn original(&self) -> Original {
        Original {
            source: "Tokutek: TokuMX and MongoDB, inserts with four secondary indexes",
            finding: "exit velocity after 49 million documents: TokuMX 4.7 times MongoDB's",
        }
    }

    fn refuses(&self, capabilities: &Capabilities) -> Option<&'static str> {
        (!capabilities.documents || !capabilities.indexes).then_some("it has no indexes on fields")
    }

    fn cache_bytes(&self, scale: Scale, parameters: &Parameters) -> Result<u64, Failure> {
        Ok(parameters.number("indexed-insert.cache-mb", scale.pick(64, 32, 1_024))? << 20)
    }

    fn run(&self, context: &mut Context<'_>) -> Result<(), Failure> {
        let target = context.target()?;
        let mut spec = CollectionSpec::new(DOCUMENTS, Kind::Integer)
            .index(&[("uri", Kind::Text)])
            .index(&[("name", Kind::Text)])
            .index(&[("origin", Kind::Text)])
            .index(&[("expiration", Kind::Integer)]);
        // The publication's clustered index; the others are secondary everywhere.
        spec.indexes[0].clustered = target.about().capabilities.clustered_indexes;
        target.session()?.create(&spec)?;
        let inserting = Inserting::new(context)?;
        let done = inserting.run(context)?;
        check(target, context.seed, done.documents)?;
        report(context, &done);
        context.cold = Some(Box::new(cold));
        Ok(())
    }
}

/// The document called `number`; the same for each run of a seed.
fn document(seed: u64, number: u64) -> Document {
    let mut random = Random::of(seed, &[number]);
    doc! {
        "_id": number as i64,
        "uri": format!("https://{}.example/{}", random.letters(12), random.letters(40)),
        "name": random.letters(40),
        "origin": random.letters(24),
        "creation": 1_700_000_000_000_i64 + number as i64 * 10,
        "expiration": 1_700_000_000_000_i64 + random.below(1 << 40) as i64,
    }
}

fn encoded(target: &dyn Target, seed: u64, number: u64) -> Result<Encoded, Failure> {
    let bytes = target.encode(&document(seed, number))?;
    Ok(Encoded { id: (number as i64).into(), bytes })
}

/// The state that the writers and the reader share.
struct Inserting<'a> {
    target: &'a dyn Target,
    seed: u64,
    count: u64,
    time_max: Duration,
    next: AtomicU64,
    stop: AtomicBool,
}

/// The results of the insertion.
struct Done {
    documents: u64,
    seconds: f64,
    /// The times when each batch was acknowledged, in order, since the start.
    ends: Vec<Duration>,
    ranges: Histogram<u64>,
    batches: Histogram<u64>,
}

impl<'a> Inserting<'a> {
    fn new(context: &Context<'a>) -> Result<Inserting<'a>, Failure> {
        Ok(Inserting {
            target: context.target()?,
            seed: context.seed,
            count: context.parameters.number(
                "indexed-insert.documents",
                context.scale.pick(4_000, 150_000, 49_000_000),
            )?,
            time_max: Duration::from_secs(
                context
                    .parameters
                    .number("indexed-insert.seconds", context.scale.pick(3, 10, 36_000))?,
            ),
            next: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        })
    }

    fn run(&self, context: &Context<'_>) -> Result<Done, Failure> {
        let begin = Instant::now();
        let (mut ends, mut batches) = (Vec::new(), new_histogram());
        let mut ranges = Ok(new_histogram());
        let mut failure = None;
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| self.read());
            let writers = (0..WRITERS).map(|_| scope.spawn(move || self.write(begin)));
            let writers: Vec<_> = writers.collect();
            while writers.iter().any(|writer| !writer.is_finished()) {
                std::thread::sleep(Duration::from_millis(100));
                let done = self.next.load(Ordering::Relaxed).min(self.count);
                let rate = done as f64 / begin.elapsed().as_secs_f64();
                let text = format!("{done} of {} documents, {rate:.0} a second", self.count);
                context.progress.say(&text);
            }
            for writer in writers {
                match writer.join() {
                    Ok(Ok((times, latencies))) => {
                        ends.extend(times);
                        batches.add(latencies).expect("all histograms have the same bounds");
                    }
                    Ok(Err(error)) => failure = Some(error),
                    Err(_) => failure = Some(Failure::Other("a writer panicked".into())),
                }
            }
            self.stop.store(true, Ordering::Relaxed);
            let panicked = |_| Err(Failure::Other("the reader panicked".into()));
            ranges = reader.join().unwrap_or_else(panicked);
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        ends.sort_unstable();
        let seconds = ends.last().map_or(0.0, Duration::as_secs_f64);
        Ok(Done { documents: ends.len() as u64 * BATCH, seconds, ends, ranges: ranges?, batches })
    }

    /// Inserts batches until there are none, or the time is over, or a writer failed.
    fn write(&self, begin: Instant) -> Result<(Vec<Duration>, Histogram<u64>), Failure> {
        let mut session = self.target.session()?;
        let (mut ends, mut latencies) = (Vec::new(), new_histogram());
        while begin.elapsed() < self.time_max && !self.stop.load(Ordering::Relaxed) {
            let first = self.next.fetch_add(BATCH, Ordering::Relaxed);
            if first >= self.count {
                break;
            }
            let batch: Result<Vec<_>, _> = (first..first + BATCH)
                .map(|number| encoded(self.target, self.seed, number))
                .collect();
            let batch = batch?;
            let begun = Instant::now();
            // A writer that lost to another tries again; that takes its time.
            while let Err(error) = session.insert(DOCUMENTS, &batch) {
                if !matches!(error, Failure::Conflict(_)) {
                    self.stop.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            latencies.saturating_record(begun.elapsed().as_micros() as u64);
            ends.push(begin.elapsed());
        }
        Ok((ends, latencies))
    }

    /// Reads ranges beside the writers, each answer checked.
    fn read(&self) -> Result<Histogram<u64>, Failure> {
        let mut session = self.target.session()?;
        let (mut latencies, mut random) = (new_histogram(), Random::of(self.seed, &[u64::MAX]));
        while !self.stop.load(Ordering::Relaxed) {
            std::thread::sleep(READER_PAUSE);
            let (taken, _) = read_range(self.target, &mut *session, &mut random)?;
            latencies.saturating_record(taken.as_micros() as u64);
        }
        Ok(latencies)
    }
}

/// Reads documents from a random URI on, and checks their order; returns how long reading took, and
/// how many there were.
fn read_range(
    target: &dyn Target,
    session: &mut dyn Session,
    random: &mut Random,
) -> Result<(Duration, usize), Failure> {
    let least = format!("https://{}", random.letters(3));
    let query = Query::all(DOCUMENTS)
        .filter("uri", Comparison::AtLeast, least.clone())
        .sort("uri", Kind::Text, Direction::Ascending)
        .limit(RANGE);
    let mut found = Vec::with_capacity(RANGE as usize);
    let begun = Instant::now();
    session.find(&query, &mut |bytes| {
        found.push(bytes.to_vec());
        Ok(())
    })?;
    let taken = begun.elapsed();
    let mut before = least;
    for bytes in &found {
        let document = target.decode(bytes)?;
        let uri = document.get_str("uri").unwrap_or_default().to_owned();
        if uri < before || found.len() as u64 > RANGE {
            return Err(Failure::Wrong(format!("a range has {uri:?} after {before:?}")));
        }
        before = uri;
    }
    Ok((taken, found.len()))
}

/// Ranges from a database that has nothing in memory.
fn cold(context: &mut Context<'_>) -> Result<(), Failure> {
    context.progress.say("cold ranges");
    let target = context.target()?;
    let mut session = target.session()?;
    let (mut latencies, mut random) = (new_histogram(), Random::of(context.seed, &[2]));
    let mut found = 0;
    for _ in 0..context.scale.pick(3, COLD_RANGES, COLD_RANGES) {
        let (taken, count) = read_range(target, &mut *session, &mut random)?;
        latencies.saturating_record(taken.as_micros() as u64);
        found += count;
    }
    if found == 0 {
        return Err(Failure::Wrong("after a restart no range has a document".into()));
    }
    let case = Case::new().with("caches", "cold").with("clients", 1_u64);
    context.recorder.latency(context.subject, &case, "range", &latencies);
    let p50 = latencies.value_at_quantile(0.5) as f64 / 1e3;
    let unit = ("ms", Better::Lower);
    context.recorder.value(context.subject, &case.headline(), "cold_range_p50", unit, p50);
    Ok(())
}

/// Reads documents back, by `_id` and by each index.
fn check(target: &dyn Target, seed: u64, count: u64) -> Result<(), Failure> {
    let mut session = target.session()?;
    let mut random = Random::of(seed, &[1]);
    for _ in 0..CHECKED.min(count) {
        // Batches that were acknowledged last may have gaps before them only if the time was over.
        let number = random.below(count.saturating_sub(WRITERS * BATCH).max(1));
        let expected = document(seed, number);
        let found = session.get(DOCUMENTS, &(number as i64).into())?;
        let found = found.map(|bytes| target.decode(&bytes)).transpose()?;
        if found.as_ref() != Some(&expected) {
            return Err(Failure::Wrong(format!("document {number} is {found:?}")));
        }
        let (path, value) = [
            ("uri", expected.get("uri")),
            ("name", expected.get("name")),
            ("origin", expected.get("origin")),
            ("expiration", expected.get("expiration")),
        ][(number % 4) as usize];
        let value = value.cloned().unwrap_or_default();
        let count =
            session.find(&Query::all(DOCUMENTS).equal(path, value).count(), &mut |_| Ok(()))?;
        if count != 1 {
            return Err(Failure::Wrong(format!(
                "document {number} is found {count} times by {path}"
            )));
        }
    }
    Ok(())
}

fn report(context: &mut Context<'_>, done: &Done) {
    const STEP: f64 = 0.5;
    let subject = context.subject;
    let case = Case::new().with("indexes", 4).with("batch", BATCH).with("writers", WRITERS);
    let rate = ("documents/s", Better::Higher);
    let mean = done.documents as f64 / done.seconds.max(1e-9);
    let recorder = &mut *context.recorder;
    recorder.value(subject, &case, "insert_rate", rate, mean);
    let steps = (done.seconds / STEP).ceil() as usize;
    let mut series = vec![0.0; steps.max(1)];
    for end in &done.ends {
        let step = ((end.as_secs_f64() / STEP) as usize).min(series.len() - 1);
        series[step] += BATCH as f64;
    }
    recorder.series(subject, &case, "insert_rate", series, STEP);
    let tenth = (done.ends.len() / 10).max(1);
    let before = done.ends.len().checked_sub(tenth + 1).and_then(|at| done.ends.get(at));
    let seconds = done.seconds - before.map_or(0.0, Duration::as_secs_f64);
    let exit = (tenth as u64 * BATCH) as f64 / seconds.max(1e-9);
    let headline = case.clone().headline();
    recorder.value(subject, &headline, "exit_velocity", rate, exit);
    let inserted = ("documents", Better::Neither);
    recorder.value(subject, &case, "inserted", inserted, done.documents as f64);
    recorder.latency(subject, &case, "insert", &done.batches);
    recorder.latency(subject, &case, "range", &done.ranges);
    let p50 = done.ranges.value_at_quantile(0.5) as f64 / 1e3;
    recorder.value(subject, &headline, "range_p50", ("ms", Better::Lower), p50);
    if let Some(bytes) = context.database.and_then(|target| target.disk_bytes()) {
        let each = bytes as f64 / done.documents.max(1) as f64;
        recorder.value(subject, &headline, "disk_a_document", ("bytes", Better::Lower), each);
    }
    recorder.checked(subject, CHECKED * 2 + done.ranges.len());
}
