//! Window functions over the sequence as a whole, or between documents that follow each other.

use frond_doc::Value;

use super::bounds::Bounds;
use super::{Column, Partition};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::{Evaluated, Expression, failure};
use crate::number::any_type::Number;
use crate::pipeline::time_unit::TimeUnit;

/// A sort value as a number; a date in units of time.
pub(super) fn abscissa(
    value: Option<Value<'_>>,
    unit: Option<TimeUnit>,
) -> Result<f64, QueryError> {
    match (value, unit.and_then(TimeUnit::fixed_millis)) {
        (Some(Value::DateTime(date)), Some(millis)) => Ok(date as f64 / millis as f64),
        (Some(Value::DateTime(_)), None) => {
            Err(failure(5_624_901, "a sortBy of dates requires a 'unit'"))
        }
        (value, None) => value.and_then(Number::of).map(Number::double).ok_or_else(|| {
            failure(5_624_902, "the sortBy value must be numeric, or a date with a 'unit'")
        }),
        (_, Some(_)) => Err(failure(5_624_900, "with a 'unit', the sortBy value must be a date")),
    }
}

/// An input as a number.
pub(super) fn ordinate(value: &Evaluated<'_>) -> Result<f64, QueryError> {
    value.value().and_then(Number::of).map(Number::double).ok_or_else(|| {
        let found = value.type_name();
        failure(5_624_903, format!("the input must be numeric, found {found}"))
    })
}

/// What is wrong with a point of a `$derivative`, in the codes of `$integral`.
pub(super) fn of_integral(error: QueryError) -> QueryError {
    let code = match error.code {
        Code::Location(5_624_900) => 5_423_901,
        Code::Location(5_624_901) => 5_423_902,
        Code::Location(5_624_902 | 5_624_903) => 5_423_900,
        _ => return error,
    };
    failure(code, error.message)
}

/// An input of `$linearFill` as a number; `None` where it is to be filled.
pub(super) fn fixed(value: &Evaluated<'_>) -> Result<Option<f64>, QueryError> {
    if value.is_nullish() {
        return Ok(None);
    }
    match value.value().and_then(Number::of) {
        Some(number) => Ok(Some(number.double())),
        None => {
            let found = value.type_name();
            let message = format!("Value to be filled must be numeric or nullish, found {found}");
            Err(QueryError::new(Code::TypeMismatch, message))
        }
    }
}

/// What is told of two documents at one place of the line.
pub(super) fn repeated() -> QueryError {
    failure(6_050_106, "There can be no repeated values in the sort field")
}

/// The point at `x` of the line between two points.
pub(super) fn between(before: (f64, f64), after: (f64, f64), x: f64) -> f64 {
    let share = (x - before.0) / (after.0 - before.0);
    before.1 + (after.1 - before.1) * share
}

/// The area under the line between two points.
pub(super) fn area(before: (f64, f64), after: (f64, f64)) -> f64 {
    (after.0 - before.0) * (after.1 + before.1) / 2.0
}

/// How steep the line from one point to another is; `None` if it has no length.
pub(super) fn slope(before: (f64, f64), after: (f64, f64)) -> Option<f64> {
    (after.0 != before.0).then(|| (after.1 - before.1) / (after.0 - before.0))
}

fn abscissas(partition: &Partition<'_>, unit: Option<TimeUnit>) -> Result<Vec<f64>, QueryError> {
    partition.sort_values().into_iter().map(|value| abscissa(value, unit)).collect()
}

/// The points of a series: sort values and inputs.
fn points(
    partition: &Partition<'_>,
    input: &Expression,
    unit: Option<TimeUnit>,
) -> Result<Vec<(f64, f64)>, QueryError> {
    let x = abscissas(partition, unit)?;
    let inputs = partition.values(input)?;
    x.into_iter().zip(&inputs).map(|(x, input)| Ok((x, ordinate(input)?))).collect()
}

/// `$derivative`: how steep the line from the first to the last of a window is.
pub(super) fn derivative(
    partition: &Partition<'_>,
    input: &Expression,
    unit: Option<TimeUnit>,
    bounds: &Bounds,
) -> Result<Column, QueryError> {
    let points = points(partition, input, unit)?;
    let ranges = bounds.ranges(partition)?;
    Ok(ranges
        .into_iter()
        .map(|(from, to)| {
            let slope = (from + 2 <= to).then(|| slope(points[from], points[to - 1])).flatten();
            slope.map_or(Evaluated::NULL, Evaluated::from)
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
    let points = points(partition, input, unit).map_err(of_integral)?;
    // The area from the first document to each.
    let mut areas = vec![0.0; points.len()];
    for position in 1..points.len() {
        areas[position] = areas[position - 1] + area(points[position - 1], points[position]);
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
        return Err(repeated());
    }
    let mut column = partition.values(input)?;
    let mut before: Option<(usize, f64)> = None;
    for position in 0..column.len() {
        let Some(here) = fixed(&column[position])? else {
            column[position] = Evaluated::NULL;
            continue;
        };
        if let Some((first, value)) = before {
            for place in first + 1..position {
                let filled = between((x[first], value), (x[position], here), x[place]);
                column[place] = Evaluated::from(filled);
            }
        }
        before = Some((position, here));
    }
    Ok(column)
}
