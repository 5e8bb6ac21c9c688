//! `$sample`: so many documents, chosen at random.

use std::sync::Arc;

use frond_doc::{DocumentBuf, Value};

use super::Documents;
use super::parse::{StageParser, one};
use super::stage::{Context, Stage, lazily};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::{failure, random, random_share};
use crate::large::NeededPaths;
use crate::metadata::{self, MetadataKind};
use crate::number::any_type::Number;
use frond_store::budget::Reservation;

/// `$sample`
#[derive(Debug)]
struct Sample(usize);

impl Stage for Sample {
    fn needed_paths(&self) -> NeededPaths {
        NeededPaths::default()
    }

    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let mut reservation = context.resources.reservation();
        let is_needed = context.metadata.contains(MetadataKind::RandVal);
        Ok(lazily(move || {
            let chosen = choose(input, self.0, &mut reservation)?;
            let mut numbers = Vec::new();
            if is_needed {
                numbers.extend(chosen.iter().map(|_| random_share()));
                numbers.sort_by(|left: &f64, right| right.total_cmp(left));
            }
            let mut numbers = numbers.into_iter();
            Ok(Box::new(chosen.into_iter().map(move |document| {
                // As long as there are documents, the memory is taken.
                let _held = &reservation;
                Ok(match numbers.next() {
                    Some(number) => {
                        let value = (MetadataKind::RandVal, Value::Double(number));
                        metadata::append(document.view(), &[value])
                    }
                    None => document,
                })
            })))
        }))
    }
}

/// A random number below `bound`, which is at least 1.
fn below(bound: usize) -> usize {
    (random() % bound as u64) as usize
}

/// Keeps each document with the same probability (Vitter's algorithm R), then shuffles.
fn choose(
    input: Documents<'_>,
    size: usize,
    reservation: &mut Reservation,
) -> Result<Vec<DocumentBuf>, QueryError> {
    let mut chosen: Vec<DocumentBuf> = Vec::new();
    let mut bytes = 0;
    for (position, document) in input.enumerate() {
        let document = document?;
        let new_bytes = document.as_bytes().len();
        if chosen.len() < size {
            bytes += new_bytes;
            chosen.push(document);
        } else if let Some(replaced) = chosen.get_mut(below(position + 1)) {
            bytes = bytes + new_bytes - replaced.as_bytes().len();
            *replaced = document;
        }
        reservation.hold(bytes).map_err(|exceeded| {
            let message = format!("$sample exceeded memory limit of {exceeded}");
            QueryError::new(Code::QueryExceededMemoryLimitNoDiskUseAllowed, message)
        })?;
    }
    for position in (1..chosen.len()).rev() {
        chosen.swap(position, below(position + 1));
    }
    Ok(chosen)
}

pub(super) fn parse(
    argument: Value<'_>,
    _: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(specification) = argument else {
        return Err(failure(28745, "the $sample stage specification must be an object"));
    };
    let mut size = None;
    for (name, value) in specification.iter() {
        if name != "size" {
            return Err(failure(28748, format!("unrecognized option to $sample: {name}")));
        }
        let number = Number::of(value)
            .ok_or_else(|| failure(28746, "size argument to $sample must be a number"))?;
        size = Some(number.double());
    }
    let size = size.ok_or_else(|| failure(28749, "$sample stage must specify a size"))?;
    if size.is_nan() || size < 1.0 {
        return Err(failure(28747, "size argument to $sample must be a positive integer"));
    }
    one(Sample(size as usize))
}
