//! Window functions over the sequence as a whole, or between documents that follow each other.

use frond_doc::Value;

use super::bounds::Bounds;
use super::{Column, Partition};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::number::Number;
use crate::expression::{Evaluated, Expression, failure};
use crate::pipeline::time_unit::TimeUnit;

/// The sort values as numbers; dates in units of time.
fn abscissas(partition: &Partition<'_>, unit: Option<TimeUnit>) -> Result<Vec<f64>, QueryError> {
    let millis = unit.and_then(TimeUnit::fixed_millis);
    let values = partition.sort_values().into_iter().map(|value| match (value, millis) {
        (Some(Value::DateTime(date)), Some(millis)) => Ok(date as f64 / millis as f64),
        (Some(Value::DateTime(_)), None) => {
            Err(failure(5_624_901, "a sortBy of dates requires a 'unit'"))
        }
        (value, None) => match value.and_then(Number::of) {
            Some(number) => Ok(number.double()),
            None => {
                Err(failure(5_624_902, "the sortBy value must be numeric, or a date with a 'unit'"))
            }
        },
        (_, Some(_)) => Err(failure(5_624_900, "with a 'unit', the sortBy value must be a date")),
    });
    values.collect()
}

fn ordinates(partition: &Partition<'_>, input: &Expression) -> Result<Vec<f64>, QueryError> {
    let values = partition.values(input)?;
    let numbers = values.iter().map(|value| {
        value.value().and_then(Number::of).map(Number::double).ok_or_else(|| {
            let found = value.type_name();
            failure(5_624_903, format!("the input must be numeric, found {found}"))
        })
    });
    numbers.collect()
}

/// `$derivative`: how steep the line from the first to the last of a window is.
pub(super) fn derivative(
    partition: &Partition<'_>,
    input: &Expression,
    unit: Option<TimeUnit>,
    bounds: &Bounds,
) -> Result<Column, QueryError> {
    let (x, y) = (abscissas(partition, unit)?, ordinates(partition, input)?);
    let ranges = bounds.ranges(partition)?;
    Ok(ranges
        .into_iter()
        .map(|(from, to)| {
            if to < from + 2 || x[to - 1] == x[from] {
                return Evaluated::NULL;
            }
            Evaluated::from((y[to - 1] - y[from]) / (x[to - 1] - x[from]))
        })
        .collect())
}

/// `$integral`: the area under the lines between the documents of a window.
pub(super) fn integral(
    partition: &Partition<'_>,
    input: &Expression,
    unit: Option<TimeUnit>,
    bounds: &Bounds,
) -> Result<Column, QueryError> {
    let (x, y) = (abscissas(partition, unit)?, ordinates(partition, input)?);
    // The area from the first document to each.
    let mut areas = vec![0.0; x.len()];
    for position in 1..x.len() {
        let width = x[position] - x[position - 1];
        areas[position] = areas[position - 1] + width * (y[position] + y[position - 1]) / 2.0;
    }
    let ranges = bounds.ranges(partition)?;
    Ok(ranges
        .into_iter()
        .map(|(from, to)| match to > from {
            true => Evaluated::from(areas[to - 1] - areas[from]),
            false => Evaluated::NULL,
        })
        .collect())
}

/// `$expMovingAvg`: what isn't a number leaves the average as it is.
pub(super) fn moving_average(
    partition: &Partition<'_>,
    input: &Expression,
    alpha: f64,
) -> Result<Column, QueryError> {
    let mut average: Option<Number> = None;
    let mut column = Vec::with_capacity(partition.documents.len());
    for value in partition.values(input)? {
        if let Some(number) = value.value().and_then(Number::of) {
            average = Some(averaged(average, number, alpha));
        }
        column.push(average.map_or(Evaluated::NULL, Evaluated::from));
    }
    Ok(column)
}

/// The moving average after one more number.
pub(super) fn averaged(before: Option<Number>, number: Number, alpha: f64) -> Number {
    let Some(before) = before else { return number };
    let weighted = |number: Number, weight: f64| {
        number.combine(
            Number::Double(weight),
            |_, _| None,
            |left, right| left * right,
            frond_doc::decimal::multiply,
        )
    };
    weighted(number, alpha).combine(
        weighted(before, 1.0 - alpha),
        |_, _| None,
        |left, right| left + right,
        frond_doc::decimal::add,
    )
}

/// `$locf`: the last value that isn't null.
pub(super) fn last_fill(
    partition: &Partition<'_>,
    input: &Expression,
) -> Result<Column, QueryError> {
    let mut last = Evaluated::NULL;
    let mut column = Vec::with_capacity(partition.documents.len());
    for value in partition.values(input)? {
        if !value.is_nullish() {
            last = value;
        }
        column.push(last.clone());
    }
    Ok(column)
}

/// `$linearFill`: where there is nothing, the line between the nearest values before and after.
pub(super) fn linear_fill(
    partition: &Partition<'_>,
    input: &Expression,
) -> Result<Column, QueryError> {
    let is_date = |value: &Option<Value<'_>>| matches!(value, Some(Value::DateTime(_)));
    let dates = partition.sort_values().iter().any(is_date);
    let x = abscissas(partition, dates.then_some(TimeUnit::Millis(1)))?;
    if x.windows(2).any(|pair| pair[0] == pair[1]) {
        let message = "There can be no repeated values in the sort field";
        return Err(failure(6_050_106, message));
    }
    let mut column = partition.values(input)?;
    let mut before: Option<(usize, f64)> = None;
    for position in 0..column.len() {
        if column[position].is_nullish() {
            column[position] = Evaluated::NULL;
            continue;
        }
        let Some(number) = column[position].value().and_then(Number::of) else {
            let found = column[position].type_name();
            let message = format!("Value to be filled must be numeric or nullish, found {found}");
            return Err(QueryError::new(Code::TypeMismatch, message));
        };
        let here = number.double();
        if let Some((first, value)) = before {
            for between in first + 1..position {
                let share = (x[between] - x[first]) / (x[position] - x[first]);
                column[between] = Evaluated::from(value + (here - value) * share);
            }
        }
        before = Some((position, here));
    }
    Ok(column)
}
