//! Measures what versions cost at N documents and at ten times as many: a branch, a commit of 100
//! changed documents (five trees), a merge of 1,000 changed documents on each side with four
//! indexes, diffs, the log of one document.
//!
//! `cargo run --release --example version_costs -p frond-db -- 100000 [BYTES [FACTOR]]`: documents,
//! bytes a document (about 400 if nothing is said; with 1000, a million is a database of 1 GB), and
//! how many times as many they are the second time (10; with 1 there is none). Each step is run
//! several times and the median is printed, and the means of its processor time, of all threads,
//! and of the chunks that it read, fetched from files and wrote, which don't depend on what else
//! the machine does.

#![allow(clippy::disallowed_methods)]

use std::path::PathBuf;

use frond_db::catalog::IndexSpec;
use frond_db::collection::UpdateStatement;
use frond_db::{Durability, Error, Frond, FrondOptions};
use frond_doc::{DocumentBuf, Value, ValueBuf, document};
use frond_store::io::{Clock, SystemClock};
use frond_vcs::Repository;
use frond_vcs::{DiffRequest, LogRequest, MergeOutcome, MergeRequest};

const ROUNDS: usize = 7;
const BATCH: usize = 5_000;
/// Bytes of a document beside its text.
const OTHER_BYTES: usize = 160;

/// The command's allocator: the system's costs a tenth more.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The cost of one step, in each round.
struct Step {
    name: &'static str,
    micros: Vec<i64>,
    /// The processor time of all rounds.
    processor_micros: i64,
    chunks_read: u64,
    /// The number of these that were not in memory.
    chunks_fetched: u64,
    chunks_written: u64,
    bytes_written: u64,
}

impl Step {
    /// The mean of all rounds.
    fn processor_millis(&self) -> f64 {
        self.processor_micros as f64 / 1e3 / ROUNDS as f64
    }
}

/// Processor time of this process so far, from Linux, which gives it in hundredths of a second.
fn processor_micros() -> i64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name before them may hold blanks, within brackets.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks = fields.skip(11).take(2).filter_map(|field| field.parse::<i64>().ok());
    ticks.sum::<i64>() * 10_000
}

/// A document of about `bytes`, whose text doesn't compress to nothing.
fn thing(id: i64, bytes: usize) -> DocumentBuf {
    let mut text = format!("{:0>80}", id * 7_919);
    let (long, mut seed) = (bytes.saturating_sub(OTHER_BYTES + 80), id as u64);
    let mut body = String::new();
    while body.len() < long {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        body.push_str(["amber ", "basalt ", "cedar ", "dune "][(seed >> 33) as usize % 4]);
        body.push_str(&(seed >> 48).to_string());
        body.push(' ');
    }
    let round = 0;
    text.truncate(80);
    document! {
        "_id": id, "a": id.wrapping_mul(2_654_435_761) % 1_000_003 + round, "b": id % 997,
        "c": text.as_str(), "d": (id * 31 + round) % 10_007, "text": text.as_str(), "body": body.as_str(),
    }
}

fn change(database: &Repository, ids: &[i64], round: i64) -> Result<(), Error> {
    for ids in ids.chunks(500) {
        let statement = |id: &i64| {
            UpdateStatement::new(
                document! { "_id": *id },
                document! {
                    "$set": &document! { "a": round * 13 + *id, "d": round + *id % 50 },
                },
            )
        };
        let statements: Vec<_> = ids.iter().map(statement).collect();
        let report = database.update("things", &statements, true, Durability::Relaxed)?;
        assert!(report.errors.is_empty(), "{:?}", report.errors);
    }
    Ok(())
}

/// `count` ids spread over all, others in each round.
fn spread(documents: i64, count: i64, shift: i64) -> Vec<i64> {
    (0..count).map(|position| (position * (documents / count) + shift) % documents).collect()
}

fn measured(
    frond: &Frond,
    steps: &mut Vec<Step>,
    name: &'static str,
    work: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    let (before, processor, start) =
        (frond.counters().1, processor_micros(), SystemClock.now_micros());
    work()?;
    let (micros, after) = (SystemClock.now_micros() - start, frond.counters().1);
    let processor = processor_micros() - processor;
    let position = steps.iter().position(|step| step.name == name).unwrap_or_else(|| {
        steps.push(Step {
            name,
            micros: Vec::new(),
            processor_micros: 0,
            chunks_read: 0,
            chunks_fetched: 0,
            chunks_written: 0,
            bytes_written: 0,
        });
        steps.len() - 1
    });
    let step = &mut steps[position];
    step.micros.push(micros);
    step.processor_micros += processor;
    step.chunks_read += after.chunks_read - before.chunks_read;
    step.chunks_fetched += after.chunks_fetched - before.chunks_fetched;
    step.chunks_written += after.chunks_written - before.chunks_written;
    step.bytes_written += after.bytes_written - before.bytes_written;
    Ok(())
}

fn run(documents: i64, bytes: usize) -> Result<Vec<Step>, Error> {
    let directory: PathBuf =
        std::env::temp_dir().join(format!("frond-version-costs-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    let frond = frond_vcs::open(&directory, FrondOptions::default())?;
    let main = Repository::open(&frond, "shop")?;
    let ids: Vec<i64> = (0..documents).collect();
    for ids in ids.chunks(BATCH) {
        let batch: Vec<DocumentBuf> = ids.iter().map(|id| thing(*id, bytes)).collect();
        main.insert("things", &batch, true, Durability::Relaxed)?;
    }
    let index = |key: DocumentBuf| IndexSpec::parse(document! { "key": &key }.view());
    let specs = [
        index(document! { "a": 1_i32 })?,
        index(document! { "b": 1_i32, "a": -1_i32 })?,
        index(document! { "c": 1_i32 })?,
        index(document! { "d": 1_i32 })?,
    ];
    main.create_indexes("things", &specs)?;
    main.commit("all", "")?;
    frond.engine().checkpoint()?;
    let mut steps = Vec::new();
    for number in 0..ROUNDS as i64 {
        round(&frond, &main, &mut steps, (documents, number))?;
    }
    frond.close()?;
    drop(main);
    drop(frond);
    let _ = std::fs::remove_dir_all(&directory);
    Ok(steps)
}

/// Measures each operation once.
fn round(
    frond: &Frond,
    main: &Repository,
    steps: &mut Vec<Step>,
    (documents, round): (i64, i64),
) -> Result<(), Error> {
    let name = format!("side{round}");
    measured(frond, steps, "branch", || main.create_branch(&name, None).map(|_| ()))?;
    let side = Repository::open(frond, &format!("shop@{name}"))?;
    change(main, &spread(documents, 100, round * 17), round + 1)?;
    measured(frond, steps, "commit of 100", || main.commit("100", "").map(|_| ()))?;
    measured(frond, steps, "diff of 100", || {
        let request = DiffRequest { from: Some("HEAD~1".to_owned()), ..DiffRequest::default() };
        assert_eq!(main.diff_rows(&request)?.count(), 100);
        Ok(())
    })?;
    change(main, &spread(documents, 10, round * 29 + 1), round + 7)?;
    main.commit("10", "")?;
    measured(frond, steps, "diff of 10", || {
        let request = DiffRequest { from: Some("HEAD~1".to_owned()), ..DiffRequest::default() };
        assert_eq!(main.diff_rows(&request)?.count(), 10);
        Ok(())
    })?;
    // Touched by the first commit and by two of this round's, at most.
    let wanted = LogRequest {
        collection: Some("things".to_owned()),
        document: Some(ValueBuf::from(Value::Int64(documents / 2 + 5))),
        ..LogRequest::default()
    };
    measured(frond, steps, "log of a document", || {
        assert!(main.log_of(wanted)?.count() > 0);
        Ok(())
    })?;
    change(&side, &spread(documents, 1_000, round * 19 + 3), round + 1)?;
    side.commit("theirs", "")?;
    change(main, &spread(documents, 1_000, round * 23 + 11), round + 1)?;
    main.commit("ours", "")?;
    measured(frond, steps, "merge of 1,000 a side", || {
        let request = MergeRequest { merge_in: name.clone(), ..MergeRequest::default() };
        let outcome = main.merge(&request)?;
        assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
        Ok(())
    })?;
    Ok(())
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: i64| {
        arguments.next().and_then(|argument| argument.parse().ok()).unwrap_or(default)
    };
    let (documents, bytes, factor) = (number(100_000), number(400), number(10));
    let mut before: Option<Vec<Step>> = None;
    for documents in [documents, documents * factor] {
        let steps = run(documents, usize::try_from(bytes).unwrap_or(0))?;
        println!("{documents} documents of {bytes} bytes");
        println!(
            "{:<22} {:>9} {:>9} {:>14} {:>8} {:>8} {:>8} {:>8}",
            "", "ms", "CPU ms", "ratios", "read", "fetched", "written", "KB"
        );
        for (position, step) in steps.iter().enumerate() {
            let (wall, processor) = (median(&step.micros), step.processor_millis());
            let ratios = before.as_ref().map_or(String::new(), |before| {
                let before = &before[position];
                let (wall, processor) =
                    (wall / median(&before.micros), processor / before.processor_millis());
                format!("{wall:.2} {processor:.2}")
            });
            let [read, fetched, written, kilobytes] = [
                step.chunks_read,
                step.chunks_fetched,
                step.chunks_written,
                step.bytes_written >> 10,
            ]
            .map(|sum| sum / ROUNDS as u64);
            println!(
                "{:<22} {wall:>9.2} {processor:>9.2} {ratios:>14} {read:>8} {fetched:>8} {written:>8} \
                 {kilobytes:>8}",
                step.name
            );
        }
        before = Some(steps);
        if factor <= 1 {
            break;
        }
    }
    Ok(())
}

fn median(micros: &[i64]) -> f64 {
    let mut sorted = micros.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2] as f64 / 1e3
}
