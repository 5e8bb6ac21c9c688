//! What `$group` computes for each group.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use frond_doc::{DocumentBuilder, Value, ValueBuf, key, order};

use crate::error::QueryError;
use crate::expression::number::{Number, Sum};
use crate::expression::{Elements, Evaluated, Spread, not_mergeable};

/// What an entry of a list or a set costs besides its value.
const ENTRY_BYTES: usize = 64;

/// An accumulator of `$group`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Accumulator {
    AddToSet,
    Avg,
    Count,
    First,
    Last,
    Max,
    MergeObjects,
    Min,
    Push,
    StdDevPop,
    StdDevSamp,
    Sum,
}

/// Every accumulator, `None` for those that MongoDB has and Frond doesn't, in the order of their
/// names.
#[rustfmt::skip]
static ACCUMULATORS: &[(&str, Option<Accumulator>)] = &[
    ("$accumulator", None),
    ("$addToSet", Some(Accumulator::AddToSet)),
    ("$avg", Some(Accumulator::Avg)),
    ("$bottom", None),
    ("$bottomN", None),
    ("$count", Some(Accumulator::Count)),
    ("$first", Some(Accumulator::First)),
    ("$firstN", None),
    ("$last", Some(Accumulator::Last)),
    ("$lastN", None),
    ("$max", Some(Accumulator::Max)),
    ("$maxN", None),
    ("$median", None),
    ("$mergeObjects", Some(Accumulator::MergeObjects)),
    ("$min", Some(Accumulator::Min)),
    ("$minN", None),
    ("$percentile", None),
    ("$push", Some(Accumulator::Push)),
    ("$stdDevPop", Some(Accumulator::StdDevPop)),
    ("$stdDevSamp", Some(Accumulator::StdDevSamp)),
    ("$sum", Some(Accumulator::Sum)),
    ("$top", None),
    ("$topN", None),
];

/// Finds an accumulator by its name: `None` if nobody knows it, `Some(None)` if Frond lacks it.
pub(super) fn find(name: &str) -> Option<Option<Accumulator>> {
    let position = ACCUMULATORS.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    ACCUMULATORS.get(position).map(|(_, accumulator)| *accumulator)
}

/// What an accumulator knows of one group.
pub(super) enum State {
    Sum(Sum),
    Avg(Sum),
    Count(i64),
    First(Option<Option<ValueBuf>>),
    Last(Option<ValueBuf>),
    Min(Option<ValueBuf>),
    Max(Option<ValueBuf>),
    Push(Elements),
    AddToSet { keys: HashSet<Bytes>, values: Vec<ValueBuf> },
    MergeObjects { positions: HashMap<String, usize>, fields: Vec<(String, ValueBuf)> },
    StdDev { spread: Spread, is_sample: bool },
}

impl State {
    /// Of a group without documents.
    pub(super) fn new(accumulator: Accumulator) -> State {
        match accumulator {
            Accumulator::AddToSet => State::AddToSet { keys: HashSet::new(), values: Vec::new() },
            Accumulator::Avg => State::Avg(Sum::default()),
            Accumulator::Count => State::Count(0),
            Accumulator::First => State::First(None),
            Accumulator::Last => State::Last(None),
            Accumulator::Max => State::Max(None),
            Accumulator::MergeObjects => {
                State::MergeObjects { positions: HashMap::new(), fields: Vec::new() }
            }
            Accumulator::Min => State::Min(None),
            Accumulator::Push => State::Push(Elements::new()),
            Accumulator::StdDevPop => State::StdDev { spread: Spread::default(), is_sample: false },
            Accumulator::StdDevSamp => State::StdDev { spread: Spread::default(), is_sample: true },
            Accumulator::Sum => State::Sum(Sum::default()),
        }
    }

    /// Takes one document's value; returns about how many bytes that took.
    pub(super) fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        let number = value.value().and_then(Number::of);
        match self {
            State::Sum(sum) | State::Avg(sum) => {
                number.into_iter().for_each(|number| sum.add(number));
                Ok(0)
            }
            State::StdDev { spread, .. } => {
                number.into_iter().for_each(|number| spread.add(number.double()));
                Ok(0)
            }
            State::Count(count) => {
                *count += 1;
                Ok(0)
            }
            State::First(Some(_)) => Ok(0),
            State::First(first) => {
                let cost = cost(value.or_null());
                *first = Some(value.into_buf());
                Ok(cost)
            }
            State::Last(last) => {
                let cost = replaced(last, value.or_null());
                *last = value.into_buf();
                Ok(cost)
            }
            State::Min(least) => Ok(extreme(least, value, std::cmp::Ordering::Less)),
            State::Max(greatest) => Ok(extreme(greatest, value, std::cmp::Ordering::Greater)),
            State::Push(elements) => match value.value() {
                None => Ok(0),
                Some(value) => {
                    elements.push(value)?;
                    Ok(cost(value))
                }
            },
            State::AddToSet { keys, values } => {
                let Some(borrowed) = value.value() else { return Ok(0) };
                let key = key::of_value(borrowed);
                let cost = key.len() + cost(borrowed);
                if !keys.insert(key) {
                    return Ok(0);
                }
                values.extend(value.into_buf());
                Ok(cost)
            }
            State::MergeObjects { positions, fields } => merge(positions, fields, &value),
        }
    }

    /// The result, null where it is missing.
    pub(super) fn finish(self) -> Result<Evaluated<'static>, QueryError> {
        let owned = |value: Option<ValueBuf>| value.map_or(Evaluated::NULL, Evaluated::Owned);
        Ok(match self {
            State::Sum(sum) => sum.total().into(),
            State::Avg(sum) => sum.mean().map_or(Evaluated::NULL, Evaluated::from),
            State::Count(count) => match i32::try_from(count) {
                Ok(count) => count.into(),
                Err(_) => count.into(),
            },
            State::First(first) => owned(first.flatten()),
            State::Last(value) | State::Min(value) | State::Max(value) => owned(value),
            State::Push(elements) => elements.finish(),
            State::AddToSet { values, .. } => {
                Elements::collect(values.iter().map(ValueBuf::as_value))?
            }
            State::MergeObjects { fields, .. } => {
                let mut builder = DocumentBuilder::new();
                for (name, value) in &fields {
                    builder.append(name, value.as_value());
                }
                Evaluated::document(builder.build())?
            }
            State::StdDev { spread, is_sample } => {
                spread.deviation(is_sample).map_or(Evaluated::NULL, Evaluated::from)
            }
        })
    }
}

/// About what a value takes in memory.
pub(super) fn cost(value: Value<'_>) -> usize {
    ENTRY_BYTES
        + match value {
            Value::String(text) | Value::Symbol(text) | Value::JavaScript(text) => text.len(),
            Value::Document(document) => document.as_bytes().len(),
            Value::Array(array) => array.as_bytes().len(),
            Value::Binary(binary) => binary.bytes.len(),
            Value::JavaScriptWithScope { code, scope } => code.len() + scope.as_bytes().len(),
            _ => 0,
        }
}

/// What a value takes more than the one that it replaces.
fn replaced(old: &Option<ValueBuf>, new: Value<'_>) -> usize {
    cost(new).saturating_sub(old.as_ref().map_or(0, |old| cost(old.as_value())))
}

fn extreme(best: &mut Option<ValueBuf>, value: Evaluated<'_>, better: std::cmp::Ordering) -> usize {
    if value.is_nullish() {
        return 0;
    }
    let is_better =
        best.as_ref().is_none_or(|best| order::compare(value.or_null(), best.as_value()) == better);
    if !is_better {
        return 0;
    }
    let cost = replaced(best, value.or_null());
    *best = value.into_buf();
    cost
}

fn merge(
    positions: &mut HashMap<String, usize>,
    fields: &mut Vec<(String, ValueBuf)>,
    value: &Evaluated<'_>,
) -> Result<usize, QueryError> {
    if value.is_nullish() {
        return Ok(0);
    }
    let Some(Value::Document(document)) = value.value() else {
        return Err(not_mergeable(value));
    };
    let mut bytes = 0;
    for (name, value) in document.iter() {
        match positions.get(name) {
            Some(position) => {
                let old = &mut fields[*position].1;
                bytes += cost(value).saturating_sub(cost(old.as_value()));
                *old = value.to_buf();
            }
            None => {
                positions.insert(name.to_owned(), fields.len());
                fields.push((name.to_owned(), value.to_buf()));
                bytes += name.len() * 2 + cost(value);
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_ascend_so_that_they_can_be_searched() {
        for pair in ACCUMULATORS.windows(2) {
            assert!(pair[0].0 < pair[1].0, "{} before {}", pair[0].0, pair[1].0);
        }
    }
}
