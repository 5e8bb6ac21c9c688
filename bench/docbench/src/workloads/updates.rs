//! Updates inside documents, one client, each durable (DocBench: Oracle's comparison of OSON and
//! BSON on servers).
//!
//! 1. *set*: one field of documents with 100, 500 and 1,000 fields; 3, 5 and 10 fields of one with
//!    1,000; one field in the middle of documents of 10 KB to 4 MB.
//! 2. *push* and *pull*: a scalar or an object in front of, in the middle of and behind an array of
//!    100 KB, 1 MB and 4 MB.
//!
//! Every operation has its latency; after each case the document is read and must be what the same
//! operations make of a plain value. A database that can't do an operation inside the document says
//! so in its row.

mod subject;

use std::time::{Duration, Instant};

use bson::Bson;

use crate::drive::new_histogram;
use crate::query::{Change, CollectionSpec, Kind};
use crate::random::Random;
use crate::results::{Better, Case};
use crate::scale::Scale;
use crate::target::{Capabilities, Encoded, Failure, Session, Target};
use crate::workload::{Context, Original, Workload};

use self::subject::{Subject, apply};

const COLLECTION: &str = "updated";
const ID: i64 = 1;
const OPERATIONS_MIN: u32 = 5;
const OPERATIONS_MAX: u32 = 400;

/// The workload.
pub struct Updates;

impl Workload for Updates {
    fn name(&self) -> &'static str {
        "updates"
    }

    fn title(&self) -> &'static str {
        "one field, a push, a pull in documents of 10 KB to 4 MB, one client, durable"
    }

    fn original(&self) -> Original {
        Original {
            source: "Oracle: DocBench, OSON against BSON",
            finding: "an update of OSON does not grow with the document's size or the field's position; \
                      one of BSON grows with both",
        }
    }

    fn refuses(&self, capabilities: &Capabilities) -> Option<&'static str> {
        (!capabilities.documents).then_some("it has no documents")
    }

    fn run(&self, context: &mut Context<'_>) -> Result<(), Failure> {
        for trial in trials(context.scale) {
            match run_trial(context, &trial) {
                Ok(()) => {}
                Err(failure @ Failure::Wrong(_)) => return Err(failure),
                Err(failure) => {
                    let reason = failure.to_string();
                    context.recorder.not_run(context.subject, &trial.case, LATENCY, &reason);
                }
            }
        }
        Ok(())
    }
}

const LATENCY: &str = "update_time";

/// An action that is repeated on one document.
struct Trial {
    case: Case,
    subject: Subject,
    action: Action,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    /// Sets so many fields, evenly apart, or one in the middle.
    Set(u64),
    /// Pushes at a place in the array, and pulls from it, in turns.
    PushPull(Place, bool),
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Front,
    Middle,
    End,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Place::Front => "front",
            Place::Middle => "middle",
            Place::End => "end",
        }
    }

    fn position(self, length: u64) -> u64 {
        match self {
            Place::Front => 0,
            Place::Middle => length / 2,
            Place::End => length,
        }
    }
}

fn trials(scale: Scale) -> Vec<Trial> {
    let mut trials = Vec::new();
    let set = |fields: u64| Action::Set(fields);
    for fields in [100, 500, 1_000] {
        let case = Case::new().with("kind", "one field").with("fields", fields);
        let case = if fields == 1_000 { case.headline() } else { case };
        trials.push(Trial { case, subject: Subject::fields(fields), action: set(1) });
    }
    for changed in [3, 5, 10] {
        let case = Case::new().with("kind", "several fields of 1,000").with("changed", changed);
        trials.push(Trial { case, subject: Subject::fields(1_000), action: set(changed) });
    }
    let sizes: &[u64] = &[10_000, 50_000, 100_000, 1_000_000, 4_000_000];
    for bytes in scale.pick(&sizes[..3], sizes, sizes) {
        let case = Case::new().with("kind", "field by size").with("bytes", *bytes).headline();
        trials.push(Trial { case, subject: Subject::bytes(*bytes), action: set(1) });
    }
    let sizes: &[u64] = &[100_000, 1_000_000, 4_000_000];
    for bytes in scale.pick(&sizes[..1], &sizes[..2], sizes) {
        for place in [Place::Front, Place::Middle, Place::End] {
            for is_object in [false, true] {
                let element = if is_object { "object" } else { "scalar" };
                let case = Case::new().with("kind", "array").with("bytes", *bytes);
                let case = case.with("place", place.name()).with("element", element);
                let subject = Subject::array(*bytes, is_object);
                let case = if is_object { case } else { case.headline() };
                trials.push(Trial { case, subject, action: Action::PushPull(place, is_object) });
            }
        }
    }
    trials
}

fn run_trial(context: &mut Context<'_>, trial: &Trial) -> Result<(), Failure> {
    let target = context.target()?;
    let mut session = target.session()?;
    session.create(&CollectionSpec::new(COLLECTION, Kind::Integer))?;
    let mut document = trial.subject.document(ID);
    let encoded = Encoded { id: Bson::Int64(ID), bytes: target.encode(&document)? };
    session.insert(COLLECTION, &[encoded])?;
    target.settle()?;
    context.progress.say(&format!("{} with {:?}", trial.subject, trial.action));
    let budget = context.scale.millis(40, 250, 5_000);
    let mut random = Random::of(context.seed, &[trial.subject.bytes_about()]);
    // The first repetition finds cold caches: it is run and checked, but not measured.
    let mut unmeasured = new_histogram();
    let mut step = |histogram: &mut hdrhistogram::Histogram<u64>, number: u32| {
        let changes = trial.changes(&document, number, &mut random);
        let start = Instant::now();
        update(&mut *session, &changes)?;
        histogram.saturating_record((start.elapsed().as_micros() as u64).max(1));
        changes.iter().try_for_each(|change| apply(&mut document, change))
    };
    (0..2).try_for_each(|number| step(&mut unmeasured, number))?;
    let (mut histogram, mut done, start) = (new_histogram(), 0, Instant::now());
    while done < OPERATIONS_MIN || (start.elapsed() < budget && done < OPERATIONS_MAX) {
        step(&mut histogram, done + 2)?;
        done += 1;
        if start.elapsed() > budget + Duration::from_secs(20) {
            break;
        }
    }
    check(&mut *session, target, &document)?;
    let millis = histogram.value_at_quantile(0.5) as f64 / 1e3;
    context.recorder.value(context.subject, &trial.case, LATENCY, ("ms", Better::Lower), millis);
    context.recorder.latency(context.subject, &trial.case, "update", &histogram);
    context.recorder.checked(context.subject, 1);
    Ok(())
}

fn update(session: &mut dyn Session, changes: &[Change]) -> Result<(), Failure> {
    match session.update(COLLECTION, &Bson::Int64(ID), changes)? {
        1 => Ok(()),
        matched => Err(Failure::Wrong(format!("an update matched {matched} documents"))),
    }
}

fn check(
    session: &mut dyn Session,
    target: &dyn Target,
    expected: &bson::Document,
) -> Result<(), Failure> {
    let found = session.get(COLLECTION, &Bson::Int64(ID))?;
    let found = found.ok_or_else(|| Failure::Wrong("the document is gone".into()))?;
    let mut found = target.decode(&found)?;
    let mut expected = expected.clone();
    // SQL keeps the key in a column of its own.
    found.remove("_id");
    expected.remove("_id");
    if subject::same(&found, &expected) {
        return Ok(());
    }
    Err(Failure::Wrong("the document isn't what the updates make of it".into()))
}

impl Trial {
    /// The changes of operation `number`: what is pushed by an even one is pulled by the next.
    fn changes(&self, document: &bson::Document, number: u32, random: &mut Random) -> Vec<Change> {
        let value = Bson::String(random.letters(subject::VALUE_LETTERS));
        match self.action {
            Action::Set(fields) => {
                let path = |position: u64| self.subject.path(position, fields);
                (0..fields).map(|position| Change::Set(path(position), value.clone())).collect()
            }
            Action::PushPull(place, is_object) => {
                let length = subject::array_length(document);
                let path = subject::ARRAY.to_owned();
                if number.is_multiple_of(2) {
                    let value = subject::element(is_object, i64::from(number), value);
                    vec![Change::InsertAt { path, position: place.position(length), value }]
                } else {
                    // The array is one longer than it was: the middle and the end are where the
                    // push put it.
                    let position = place.position(length - 1);
                    let value = subject::array_element(document, position);
                    vec![Change::RemoveAt { path, position, value }]
                }
            }
        }
    }
}
