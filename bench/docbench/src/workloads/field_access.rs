//! One field of a document in memory, in several formats (Oracle's DocBench, its client side).
//!
//! The shapes are the publication's: 100, 500 and 1,000 fields, of which the first, middle or last
//! one is asked for, and documents that are nested. For each shape and format, nanoseconds a get:
//!
//! 1. *opened*: whatever the format does once for a document is done before: the same field again
//!    and again; a random field each time; a field that isn't there;
//! 2. *bytes*: each get begins with the bytes, as they come from a disk or a wire that checked
//!    them;
//! 3. *scan*: all values are read, the nested ones too; nanoseconds a document;
//! 4. *size*: the bytes of the encoded document.
//!
//! Formats are no databases: each is a subject of its own, and a module with one function. Every
//! get answers the length of the text that it found, and their sum must be right.

mod bson_format;
#[cfg(feature = "frond")]
mod frond_format;
#[cfg(feature = "formats")]
mod jsonb_format;
mod oson_format;
mod shape;

use std::time::Duration;

use crate::random::Random;
use crate::results::{Better, Case};
use crate::target::{Capabilities, Failure};
use crate::workload::{Context, Original, Subjects, Workload};

use self::shape::{SHAPES, Shape};

/// Paths that are asked for in random order.
const RANDOM_PATHS: usize = 256;

/// The ways of asking for fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// Opened before; one path after the other, from the first again.
    Opened,
    /// From the bytes, each time.
    Bytes,
    /// All values of the document.
    Scan,
}

/// A task for a format.
struct Task<'a> {
    document: &'a bson::Document,
    way: Way,
    /// Dotted paths.
    paths: &'a [String],
    times: u64,
}

/// The result of a task.
struct Done {
    elapsed: Duration,
    /// The lengths of all texts that were found.
    letters: u64,
    /// Bytes of the encoded document.
    size: u64,
}

/// A format: does a task, timing nothing but the gets.
type Format = fn(&Task<'_>) -> Result<Done, Failure>;

const FORMATS: &[(&str, Format)] = &[
    #[cfg(feature = "frond")]
    ("frond-doc", frond_format::run),
    ("bson-raw", bson_format::run_raw),
    ("bson-decoded", bson_format::run_decoded),
    #[cfg(feature = "formats")]
    ("jsonb-databend", jsonb_format::run),
    ("oson", oson_format::run),
];

/// Does `get` as often as the task says, over its paths in turn.
fn repeat(task: &Task<'_>, size: usize, mut get: impl FnMut(usize) -> u64) -> Done {
    let start = std::time::Instant::now();
    let (mut letters, mut position) = (0, 0);
    for _ in 0..task.times {
        letters += get(std::hint::black_box(position));
        position = if position + 1 < task.paths.len() { position + 1 } else { 0 };
    }
    Done { elapsed: start.elapsed(), letters, size: size as u64 }
}

/// The workload.
pub struct FieldAccess;

impl Workload for FieldAccess {
    fn name(&self) -> &'static str {
        "field-access"
    }

    fn title(&self) -> &'static str {
        "one field of a document in memory, by format, position, depth and whether it was opened"
    }

    fn original(&self) -> Original {
        Original {
            source: "Oracle: DocBench, OSON against BSON on the client",
            finding: "BSON takes longer the further behind a field lies, OSON takes the same everywhere; \
                      on machines like ours OSON's driver takes 165 ns opened and 22,000 ns from bytes \
                      for field 1,000 of 1,000, the bson crate 30,000 ns",
        }
    }

    fn subjects(&self) -> Subjects {
        Subjects::Own(FORMATS.iter().map(|(name, _)| (*name).to_owned()).collect())
    }

    fn refuses(&self, _: &Capabilities) -> Option<&'static str> {
        None
    }

    fn run(&self, context: &mut Context<'_>) -> Result<(), Failure> {
        let format = FORMATS.iter().find(|(name, _)| *name == context.subject);
        let (_, format) = format.ok_or_else(|| Failure::Other("no such format".into()))?;
        for shape in SHAPES {
            context.progress.say(shape.name);
            run_shape(context, *format, shape)?;
        }
        Ok(())
    }
}

fn run_shape(context: &mut Context<'_>, format: Format, shape: &Shape) -> Result<(), Failure> {
    let document = shape.document();
    let fixed = [shape.path()];
    let absent = ["absent_field".to_owned()];
    let mut random = Random::new(context.seed);
    let all = shape.paths();
    let anywhere: Vec<String> =
        (0..RANDOM_PATHS).map(|_| all[random.below(all.len() as u64) as usize].clone()).collect();
    let mut size = 0;
    for (column, way, paths) in [
        ("opened", Way::Opened, &fixed[..]),
        ("opened, random field", Way::Opened, &anywhere),
        ("opened, absent field", Way::Opened, &absent),
        ("bytes", Way::Bytes, &fixed),
        ("scan", Way::Scan, &all),
    ] {
        let case = Case::new().with("shape", shape.name).with("column", column);
        let case = if matches!(column, "opened" | "bytes") { case.headline() } else { case };
        let (nanos, found) = nanos(context, format, &document, way, paths)?;
        size = found;
        let unit = ("ns", Better::Lower);
        context.recorder.value(context.subject, &case, "time", unit, nanos);
        context.recorder.checked(context.subject, 1);
    }
    let case = Case::new().with("shape", shape.name);
    let unit = ("bytes", Better::Lower);
    context.recorder.value(context.subject, &case, "size", unit, size as f64);
    Ok(())
}

/// Nanoseconds a get, and the document's size. The number of gets is found first, so that the
/// measured ones take long enough.
fn nanos(
    context: &Context<'_>,
    format: Format,
    document: &bson::Document,
    way: Way,
    paths: &[String],
) -> Result<(f64, u64), Failure> {
    let enough = context.scale.millis(3, 60, 500);
    let mut times = paths.len() as u64;
    loop {
        let done = format(&Task { document, way, paths, times })?;
        let expected = shape::letters(document, way == Way::Scan, paths, times);
        if done.letters != expected {
            let message = format!("{} letters in all, {expected} expected", done.letters);
            return Err(Failure::Wrong(message));
        }
        if done.elapsed >= enough {
            return Ok((done.elapsed.as_nanos() as f64 / times as f64, done.size));
        }
        let missing = enough.as_secs_f64() / done.elapsed.as_secs_f64().max(1e-7);
        times = (times as f64 * (missing * 1.2).clamp(1.5, 100.0)) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_finds_every_field() {
        for (name, format) in FORMATS {
            for shape in SHAPES {
                let document = shape.document();
                for (way, paths) in [
                    (Way::Opened, shape.paths()),
                    (Way::Opened, vec!["absent_field".to_owned()]),
                    (Way::Bytes, vec![shape.path()]),
                    (Way::Scan, shape.paths()),
                ] {
                    let times = paths.len() as u64 * 2;
                    let task = Task { document: &document, way, paths: &paths, times };
                    let done = match format(&task) {
                        // Java or its library isn't on every machine.
                        Err(Failure::Missing(reason)) if *name == "oson" => {
                            assert!(!reason.is_empty());
                            continue;
                        }
                        done => done.expect("the format knows all that we have"),
                    };
                    let expected = shape::letters(&document, way == Way::Scan, &paths, times);
                    assert_eq!(done.letters, expected, "{name}, {}, {way:?}", shape.name);
                    assert!(done.size > 100, "{name}");
                }
            }
        }
    }
}
