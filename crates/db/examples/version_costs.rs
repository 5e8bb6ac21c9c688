//! Measures what versions cost at N documents and at ten times as many: a branch, a commit of 100 changed
//! documents (five trees), a merge of 1,000 changed documents on each side with four indexes, diffs, the log
//! of one document.
//!
//! `cargo run --release --example version_costs -p frond-db -- 100000`. Each step is run several times and the
//! median is told; so are the chunks that it read and wrote, which don't depend on the machine.

use std::path::PathBuf;

use frond_db::catalog::IndexSpec;
use frond_db::collection::UpdateStatement;
use frond_db::version::{DiffRequest, LogRequest, MergeOutcome, MergeRequest};
use frond_db::{Database, Durability, Error, Frond, FrondOptions};
use frond_doc::{DocumentBuf, Value, ValueBuf, document};
use frond_store::io::{Clock, SystemClock};

const ROUNDS: usize = 7;
const BATCH: usize = 5_000;

/// What one step took, in each round.
struct Step {
    name: &'static str,
    micros: Vec<i64>,
    chunks_read: u64,
    chunks_written: u64,
}

fn thing(id: i64, round: i64) -> DocumentBuf {
    let text = format!("{:0>80}", id * 7_919);
    document! {
        "_id": id, "a": id.wrapping_mul(2_654_435_761) % 1_000_003 + round, "b": id % 997,
        "c": text.as_str(), "d": (id * 31 + round) % 10_007, "text": text.as_str(),
    }
}

fn change(database: &Database, ids: &[i64], round: i64) -> Result<(), Error> {
    for ids in ids.chunks(500) {
        let statement = |id: &i64| UpdateStatement {
            filter: document! { "_id": *id },
            update: ValueBuf::from(document! {
                "$set": &document! { "a": round * 13 + *id, "d": round + *id % 50 },
            }),
            upsert: false,
            multi: false,
            sort: None,
            array_filters: None,
            constants: None,
            hint: None,
            variables: None,
            collation: None,
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
    let (before, start) = (frond.counters().1, SystemClock.now_micros());
    work()?;
    let (micros, after) = (SystemClock.now_micros() - start, frond.counters().1);
    let position = steps.iter().position(|step| step.name == name).unwrap_or_else(|| {
        steps.push(Step { name, micros: Vec::new(), chunks_read: 0, chunks_written: 0 });
        steps.len() - 1
    });
    let step = &mut steps[position];
    step.micros.push(micros);
    step.chunks_read = after.chunks_read - before.chunks_read;
    step.chunks_written = after.chunks_written - before.chunks_written;
    Ok(())
}

fn run(documents: i64) -> Result<Vec<Step>, Error> {
    let directory: PathBuf =
        std::env::temp_dir().join(format!("frond-version-costs-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    let frond = Frond::open(&directory, FrondOptions::default())?;
    let main = frond.database("shop")?;
    let ids: Vec<i64> = (0..documents).collect();
    for ids in ids.chunks(BATCH) {
        let batch: Vec<DocumentBuf> = ids.iter().map(|id| thing(*id, 0)).collect();
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
    for round in 0..ROUNDS as i64 {
        let name = format!("side{round}");
        measured(&frond, &mut steps, "branch", || main.create_branch(&name, None).map(|_| ()))?;
        let side = frond.database(&format!("shop@{name}"))?;
        change(&main, &spread(documents, 100, round * 17), round + 1)?;
        measured(&frond, &mut steps, "commit of 100", || main.commit("100", "").map(|_| ()))?;
        measured(&frond, &mut steps, "diff of 100", || {
            let request = DiffRequest { from: Some("HEAD~1".to_owned()), ..DiffRequest::default() };
            assert_eq!(main.diff_rows(&request)?.count(), 100);
            Ok(())
        })?;
        change(&main, &spread(documents, 10, round * 29 + 1), round + 7)?;
        main.commit("10", "")?;
        measured(&frond, &mut steps, "diff of 10", || {
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
        measured(&frond, &mut steps, "log of a document", || {
            assert!(main.log_of(wanted)?.count() > 0);
            Ok(())
        })?;
        change(&side, &spread(documents, 1_000, round * 19 + 3), round + 1)?;
        side.commit("theirs", "")?;
        change(&main, &spread(documents, 1_000, round * 23 + 11), round + 1)?;
        main.commit("ours", "")?;
        measured(&frond, &mut steps, "merge of 1,000 a side", || {
            let request = MergeRequest { merge_in: name.clone(), ..MergeRequest::default() };
            let outcome = main.merge(&request)?;
            assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
            Ok(())
        })?;
    }
    frond.close()?;
    drop(main);
    drop(frond);
    let _ = std::fs::remove_dir_all(&directory);
    Ok(steps)
}

fn main() -> Result<(), Error> {
    let small: i64 =
        std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(100_000);
    let results = [run(small)?, run(small * 10)?];
    println!("documents: {small} and {}", small * 10);
    println!("{:<24} {:>10} {:>10} {:>6}   chunks read, written", "", "ms", "ms", "ratio");
    for (small, large) in results[0].iter().zip(&results[1]) {
        let median = |step: &Step| {
            let mut micros = step.micros.clone();
            micros.sort_unstable();
            micros[micros.len() / 2] as f64 / 1e3
        };
        let (first, second) = (median(small), median(large));
        println!(
            "{:<24} {first:>10.2} {second:>10.2} {:>6.2}   {}, {} and {}, {}",
            small.name,
            second / first,
            small.chunks_read,
            small.chunks_written,
            large.chunks_read,
            large.chunks_written
        );
    }
    Ok(())
}
