//! Von Neumann documents (DoltHub: JSON Showdown): large documents that are made of each other.
//!
//! Document k of the family holds all earlier ones as values, so that its size doubles with k. A
//! collection holds as many documents of one size as make its whole size, equal but for `level`,
//! which is the document's number. For each size:
//!
//! 1. *import*: the documents are inserted, in durable steps of 4 MB at most, until the database
//!    has settled; *export*: all are read, whole;
//! 2. *copy*: the collection is copied inside the database, with `level` changed in each document;
//! 3. *extract*, *filter*, *order*: `level` of all, of one, of all in its order; first without,
//!    then with an index on `level`;
//! 4. *disk*: the bytes on it with the first collection alone, settled, before the copy.
//!
//! Imports and exports are rates of the documents' bytes as BSON, so that formats are measured by
//! what they carry.

mod family;

use std::time::Instant;

use bson::{Bson, Document};

use crate::query::{Change, CollectionSpec, Comparison, Direction, IndexSpec, Kind, Query};
use crate::results::{Better, Case};
use crate::scale::Scale;
use crate::target::{Capabilities, Encoded, Failure, Session, Target};
use crate::workload::{Context, Original, Workload};

const DOCUMENTS: &str = "showdown";
const COPIES: &str = "showdown_copy";
const LEVEL: &str = "level";
/// A durable step of an import holds so many bytes at most, or one document.
const STEP_BYTES: usize = 4 << 20;
/// The value of `level` in copies.
const LEVEL_OF_COPIES: i64 = -1;
/// Queries are repeated until so much time has passed.
const QUERY_SECONDS: f64 = 0.3;
const QUERIES_MAX: u32 = 50;

/// The workload.
pub struct Showdown;

impl Workload for Showdown {
    fn name(&self) -> &'static str {
        "showdown"
    }

    fn title(&self) -> &'static str {
        "large documents made of each other: import, export, copy, extract, filter, order, disk"
    }

    fn original(&self) -> Original {
        Original {
            source: "DoltHub: JSON Showdown, Dolt against MySQL, PostgreSQL, SQLite and MongoDB (2024)",
            finding: "Dolt copies and extracts from documents of megabytes in milliseconds where the \
                      others' time grows with the document, and keeps 512 MB of them in a few megabytes; \
                      its imports and indexed look-ups are slower than MongoDB's",
        }
    }

    fn refuses(&self, capabilities: &Capabilities) -> Option<&'static str> {
        (!capabilities.documents).then_some("it has no documents")
    }

    fn run(&self, context: &mut Context<'_>) -> Result<(), Failure> {
        for bytes in sizes(context.scale) {
            let case = Case::new().with("bytes", *bytes as u64);
            match run_size(context, *bytes, &case) {
                Ok(()) => {}
                Err(failure @ Failure::Wrong(_)) => return Err(failure),
                // A database that can't hold a document of this size may hold the smaller ones.
                Err(failure) => {
                    let reason = failure.to_string();
                    context.recorder.not_run(context.subject, &case.headline(), "copy", &reason);
                }
            }
        }
        Ok(())
    }
}

/// The largest document of each family member is at most so large, as BSON.
fn sizes(scale: Scale) -> &'static [usize] {
    const SIZES: [usize; 5] = [64 << 10, 256 << 10, 1 << 20, 4 << 20, 16_000_000];
    scale.pick(&SIZES[..2], &SIZES[..4], &SIZES)
}

fn total_bytes(scale: Scale) -> usize {
    scale.pick(1 << 20, 32 << 20, 512 << 20)
}

fn run_size(context: &mut Context<'_>, bytes: usize, case: &Case) -> Result<(), Failure> {
    let target = context.target()?;
    let document = family::largest_within(bytes)?;
    let size = document.to_vec()?.len();
    let count = (total_bytes(context.scale) / size).max(2) as i64;
    let mut run = Run { context, target, session: target.session()?, case, document, size, count };
    run.import()?;
    run.export()?;
    run.disk()?;
    run.queries("")?;
    run.copy()?;
    run.session.create_index(DOCUMENTS, &IndexSpec::new(&[(LEVEL, Kind::Integer)]))?;
    run.target.settle()?;
    run.queries("_indexed")?;
    let checked = run.count as u64 * 3;
    run.context.recorder.checked(run.context.subject, checked);
    Ok(())
}

/// One size on one target.
struct Run<'r, 'c> {
    context: &'r mut Context<'c>,
    target: &'c dyn Target,
    session: Box<dyn Session>,
    case: &'r Case,
    /// The member of the family, without `_id`.
    document: Document,
    /// Its bytes, as BSON.
    size: usize,
    /// Documents of the collection.
    count: i64,
}

impl Run<'_, '_> {
    fn whole(&self, number: i64) -> Document {
        let mut whole = Document::new();
        whole.insert("_id", number);
        whole.extend(self.document.clone());
        whole.insert(LEVEL, number);
        whole
    }

    fn say(&self, what: &str) {
        self.context
            .progress
            .say(&format!("{} documents of {} bytes: {what}", self.count, self.size));
    }

    fn record(&mut self, metric: &str, unit: (&str, Better), value: f64) {
        let headline = matches!(metric, "copy" | "extract" | "extract_indexed" | "disk" | "import");
        let case = if headline { self.case.clone().headline() } else { self.case.clone() };
        self.context.recorder.value(self.context.subject, &case, metric, unit, value);
    }

    fn record_rate(&mut self, metric: &str, start: Instant) {
        let rate = (self.size as f64 * self.count as f64) / start.elapsed().as_secs_f64() / 1e6;
        self.record(metric, ("MB/s", Better::Higher), rate);
    }

    fn import(&mut self) -> Result<(), Failure> {
        self.say("import");
        self.session.create(&CollectionSpec::new(DOCUMENTS, Kind::Integer))?;
        let per_step = (STEP_BYTES / self.size).max(1) as i64;
        let mut seconds = 0.0;
        for first in (0..self.count).step_by(per_step as usize) {
            let mut step = Vec::new();
            for number in first..(first + per_step).min(self.count) {
                let bytes = self.target.encode(&self.whole(number))?;
                step.push(Encoded { id: Bson::Int64(number), bytes });
            }
            // Making the documents isn't the database's work.
            let start = Instant::now();
            self.session.insert(DOCUMENTS, &step)?;
            seconds += start.elapsed().as_secs_f64();
        }
        let start = Instant::now();
        self.target.settle()?;
        seconds += start.elapsed().as_secs_f64();
        let rate = self.size as f64 * self.count as f64 / seconds / 1e6;
        self.record("import", ("MB/s", Better::Higher), rate);
        Ok(())
    }

    fn export(&mut self) -> Result<(), Failure> {
        self.say("export");
        let mut last = Vec::new();
        let start = Instant::now();
        let found = self.session.find(&Query::all(DOCUMENTS), &mut |bytes| {
            last.clear();
            last.extend_from_slice(bytes);
            Ok(())
        })?;
        self.record_rate("export", start);
        self.check_count("export", found)?;
        let mut exported = self.target.decode(&last)?;
        let number = integer(&exported, LEVEL)?;
        exported.remove("_id");
        let mut expected = self.document.clone();
        expected.insert(LEVEL, number);
        // Some databases order the names inside: equality of documents must not depend on that.
        if family::ordered(&exported) != family::ordered(&expected) {
            return Err(Failure::Wrong(format!("document {number} came back otherwise")));
        }
        Ok(())
    }

    fn disk(&mut self) -> Result<(), Failure> {
        if let Some(bytes) = self.target.disk_bytes() {
            self.record("disk", ("bytes", Better::Lower), bytes as f64);
        }
        Ok(())
    }

    fn copy(&mut self) -> Result<(), Failure> {
        self.say("copy");
        self.session.create(&CollectionSpec::new(COPIES, Kind::Integer))?;
        let change = Change::Set(LEVEL.into(), Bson::Int64(LEVEL_OF_COPIES));
        let start = Instant::now();
        self.session.copy(DOCUMENTS, COPIES, &change)?;
        let millis = start.elapsed().as_secs_f64() * 1e3;
        self.record("copy", ("ms", Better::Lower), millis);
        let mut levels = Vec::new();
        let found = self.levels(&Query::all(COPIES).fields(&[LEVEL]), &mut levels)?;
        self.check_count("copy", found)?;
        match levels.iter().all(|level| *level == LEVEL_OF_COPIES) {
            true => Ok(()),
            false => Err(Failure::Wrong("a copy has another level".into())),
        }
    }

    fn queries(&mut self, suffix: &str) -> Result<(), Failure> {
        self.say(&format!("queries{suffix}"));
        let all = Query::all(DOCUMENTS).fields(&[LEVEL]);
        let middle = self.count / 2;
        let ordered = all.clone().sort(LEVEL, Kind::Integer, Direction::Descending);
        let numbers = 0..self.count;
        for (name, query, expected) in [
            // With a condition that holds for all, so that an index can be used.
            (
                "extract",
                all.clone().filter(LEVEL, Comparison::AtLeast, 0_i64),
                numbers.clone().collect(),
            ),
            ("filter", all.equal(LEVEL, middle), vec![middle]),
            ("order", ordered, numbers.rev().collect::<Vec<i64>>()),
        ] {
            let millis = self.query(&query, expected, name == "order")?;
            self.record(&format!("{name}{suffix}"), ("ms", Better::Lower), millis);
        }
        Ok(())
    }

    /// The mean time of a query whose answers are checked each time.
    fn query(&mut self, query: &Query, expected: Vec<i64>, in_order: bool) -> Result<f64, Failure> {
        let (mut seconds, mut times) = (0.0, 0);
        while times == 0 || (seconds < QUERY_SECONDS && times < QUERIES_MAX) {
            let mut levels = Vec::new();
            let start = Instant::now();
            self.levels(query, &mut levels)?;
            seconds += start.elapsed().as_secs_f64();
            times += 1;
            if !in_order {
                levels.sort_unstable();
            }
            if levels != expected {
                let message = format!("{} levels, {} expected", levels.len(), expected.len());
                return Err(Failure::Wrong(message));
            }
        }
        Ok(seconds * 1e3 / f64::from(times))
    }

    fn levels(&mut self, query: &Query, levels: &mut Vec<i64>) -> Result<u64, Failure> {
        let target = self.target;
        self.session.find(query, &mut |bytes| {
            levels.push(integer(&target.decode(bytes)?, LEVEL)?);
            Ok(())
        })
    }

    fn check_count(&self, what: &str, found: u64) -> Result<(), Failure> {
        if found == self.count as u64 {
            return Ok(());
        }
        Err(Failure::Wrong(format!("{what}: {found} documents of {}", self.count)))
    }
}

fn integer(document: &Document, name: &str) -> Result<i64, Failure> {
    match document.get(name) {
        Some(Bson::Int64(value)) => Ok(*value),
        Some(Bson::Int32(value)) => Ok(i64::from(*value)),
        other => Err(Failure::Wrong(format!("{name} is {other:?}"))),
    }
}
