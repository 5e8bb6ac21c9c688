//! Percentiles, by the method that MongoDB calls approximate.
//!
//! The value at percentile p of n sorted numbers is the one at rank ceil(p * n), counted from 1:
//! always one of the numbers. NaN and what is no number don't count.

use frond_doc::Value;

use super::evaluated::{Elements, Evaluated};
use crate::error::QueryError;
use crate::number::any_type::Number;

/// Numbers whose percentiles are asked for.
pub(crate) struct Sorted(pub(crate) Vec<f64>);

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
pub(crate) fn answer(
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
pub(crate) fn number(value: Value<'_>) -> Option<f64> {
    Number::of(value).map(Number::double).filter(|number| !number.is_nan())
}

fn at_rank(sorted: &[f64], percentile: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let rank = (sorted.len() as f64 * percentile).ceil() as usize;
    sorted.get(rank.saturating_sub(1).min(last)).copied()
}
