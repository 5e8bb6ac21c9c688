//! `$percentile` and `$median`: exact, where MongoDB promises an approximation.
//!
//! The value at percentile p of n sorted numbers is the one at rank ceil(p * n), counted from 1:
//! always one of the numbers. NaN and what is no number don't count.

use frond_doc::Value;

use super::{State, Window};
use crate::error::QueryError;
use crate::expression::number::Number;
use crate::expression::{Elements, Evaluated};

/// Numbers of which percentiles are asked.
pub(crate) struct Sorted(Vec<f64>);

impl Sorted {
    /// The numbers among values.
    pub(crate) fn of<'v>(values: impl Iterator<Item = Value<'v>>) -> Sorted {
        let mut numbers: Vec<f64> = values.filter_map(number).collect();
        numbers.sort_unstable_by(f64::total_cmp);
        Sorted(numbers)
    }

    /// The values at percentiles, null without numbers; one value by itself for `$median`.
    pub(crate) fn at(&self, percentiles: Option<&[f64]>) -> Result<Evaluated<'static>, QueryError> {
        let rank = |percentile: f64| at_rank(&self.0, percentile);
        match percentiles {
            None => Ok(rank(0.5).map_or(Evaluated::NULL, Evaluated::from)),
            Some(percentiles) => Elements::collect(
                percentiles
                    .iter()
                    .map(|percentile| rank(*percentile).map_or(Value::Null, Value::Double)),
            ),
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
    numbers: Vec<f64>,
}

impl Numbers {
    pub(super) fn new(percentiles: Option<Vec<f64>>) -> Numbers {
        Numbers { percentiles, numbers: Vec::new() }
    }
}

impl State for Numbers {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        let Some(number) = value.value().and_then(number) else { return Ok(0) };
        self.numbers.push(number);
        Ok(size_of::<f64>())
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
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
