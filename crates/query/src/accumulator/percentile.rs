//! `$percentile` and `$median`, by the method that MongoDB calls approximate.
//!
//! The value at percentile p of n sorted numbers is the one at rank ceil(p * n), counted from 1:
//! always one of the numbers. NaN and what is no number don't count. A group's numbers are all
//! kept, and the answer exact, up to [`EXACT_COUNT_MAX`]; more are gathered in a [`Digest`], whose
//! size doesn't grow.

use frond_doc::Value;

use super::digest::Digest;
use super::{State, Window};
use crate::error::QueryError;
use crate::expression::{Elements, Evaluated};
use crate::number::any_type::Number;

/// How many numbers of a group are kept.
const EXACT_COUNT_MAX: usize = 65_536;

/// Numbers of which percentiles are asked.
pub(crate) struct Sorted(Vec<f64>);

impl Sorted {
    /// The numbers among values.
    pub(crate) fn of<'v>(values: impl Iterator<Item = Value<'v>>) -> Sorted {
        let mut numbers: Vec<f64> = values.filter_map(number).collect();
        numbers.sort_unstable_by(f64::total_cmp);
        Sorted(numbers)
    }

    /// One number by itself, which may be NaN.
    pub(crate) fn of_one(number: f64) -> Sorted {
        Sorted(vec![number])
    }

    /// The values at percentiles, null without numbers; one value by itself for `$median`.
    pub(crate) fn at(&self, percentiles: Option<&[f64]>) -> Result<Evaluated<'static>, QueryError> {
        answer(percentiles, |percentile| at_rank(&self.0, percentile))
    }
}

/// The values that `at` gives for percentiles; one by itself for `$median`.
fn answer(
    percentiles: Option<&[f64]>,
    mut at: impl FnMut(f64) -> Option<f64>,
) -> Result<Evaluated<'static>, QueryError> {
    match percentiles {
        None => Ok(at(0.5).map_or(Evaluated::NULL, Evaluated::from)),
        Some(percentiles) => {
            let mut elements = Elements::uncounted();
            for percentile in percentiles {
                elements.push(at(*percentile).map_or(Value::Null, Value::Double))?;
            }
            elements.finish()
        }
    }
}

/// The number that counts of a value.
fn number(value: Value<'_>) -> Option<f64> {
    Number::of(value).map(Number::double).filter(|number| !number.is_nan())
}

fn at_rank(sorted: &[f64], percentile: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let rank = (sorted.len() as f64 * percentile).ceil() as usize;
    sorted.get(rank.saturating_sub(1).min(last)).copied()
}

/// `$percentile` or `$median` of a group.
pub(super) struct Numbers {
    /// `None` for `$median`.
    percentiles: Option<Vec<f64>>,
    /// Until there are too many.
    numbers: Vec<f64>,
    digest: Option<Box<Digest>>,
}

impl Numbers {
    pub(super) fn new(percentiles: Option<Vec<f64>>) -> Numbers {
        Numbers { percentiles, numbers: Vec::new(), digest: None }
    }
}

impl State for Numbers {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        let Some(number) = value.value().and_then(number) else { return Ok(0) };
        if let Some(digest) = &mut self.digest {
            digest.add(number);
            return Ok(0);
        }
        self.numbers.push(number);
        if EXACT_COUNT_MAX < self.numbers.len() {
            let mut digest = Box::<Digest>::default();
            std::mem::take(&mut self.numbers).into_iter().for_each(|number| digest.add(number));
            self.digest = Some(digest);
        }
        Ok(size_of::<f64>())
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        if let Some(mut digest) = self.digest {
            return answer(self.percentiles.as_deref(), |percentile| digest.at(percentile));
        }
        let mut numbers = self.numbers;
        numbers.sort_unstable_by(f64::total_cmp);
        Sorted(numbers).at(self.percentiles.as_deref())
    }
}

/// `$percentile` or `$median` of a window: its numbers are always in order.
pub(super) struct WindowNumbers {
    /// `None` for `$median`.
    percentiles: Option<Vec<f64>>,
    numbers: Sorted,
}

impl WindowNumbers {
    pub(super) fn new(percentiles: Option<Vec<f64>>) -> WindowNumbers {
        WindowNumbers { percentiles, numbers: Sorted(Vec::new()) }
    }

    /// Where a number is, or would be.
    fn position(&self, number: f64) -> Result<usize, usize> {
        self.numbers.0.binary_search_by(|other| other.total_cmp(&number))
    }
}

impl State for WindowNumbers {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        let Some(number) = value.value().and_then(number) else { return Ok(0) };
        let position = self.position(number).unwrap_or_else(|position| position);
        self.numbers.0.insert(position, number);
        Ok(size_of::<f64>())
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.current()
    }
}

impl Window for WindowNumbers {
    fn remove(&mut self, value: Evaluated<'_>) {
        let Some(number) = value.value().and_then(number) else { return };
        if let Ok(position) = self.position(number) {
            self.numbers.0.remove(position);
        }
    }

    fn current(&self) -> Result<Evaluated<'static>, QueryError> {
        self.numbers.at(self.percentiles.as_deref())
    }
}
