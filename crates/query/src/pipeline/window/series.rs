//! Window functions over the sequence as a whole, or between documents that follow each other.

use std::cmp::Ordering;

use frond_doc::{Decimal128, Document, Value, decimal, order};

use super::bounds::Bounds;
use super::{Column, Partition};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::{Evaluated, Expression, Scope, failure};
use crate::number::any_type::{Number, Sum};
use crate::pipeline::time_unit::TimeUnit;

/// A document's place on the line: its sort value, of a date the milliseconds, and its input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    x: Number,
    y: Number,
}

fn minus(left: Number, right: Number) -> Number {
    left.combine(right, i64::checked_sub, |left, right| left - right, decimal::subtract)
}

fn plus(left: Number, right: Number) -> Number {
    left.combine(right, i64::checked_add, |left, right| left + right, decimal::add)
}

fn times(left: Number, right: Number) -> Number {
    left.combine(right, i64::checked_mul, |left, right| left * right, decimal::multiply)
}

/// `None` of a divisor that is zero.
fn over(left: Number, right: Number) -> Option<Number> {
    if order::compare(right.value(), Value::Int32(0)).is_eq() {
        return None;
    }
    Some(match left.is_decimal() || right.is_decimal() {
        true => Number::Decimal(decimal::divide(left.decimal(), right.decimal())),
        false => Number::Double(left.double() / right.double()),
    })
}

fn mismatch(message: String) -> QueryError {
    QueryError::new(Code::TypeMismatch, message)
}

fn millis(unit: Option<TimeUnit>) -> Option<Number> {
    unit.and_then(TimeUnit::fixed_millis).map(Number::Long)
}

/// The sort value of an end of a `$derivative`.
fn end(value: Option<Value<'_>>, unit: Option<TimeUnit>) -> Result<Number, QueryError> {
    match (value, unit) {
        (Some(Value::DateTime(date)), Some(_)) => Ok(Number::Long(date)),
        (_, Some(_)) => {
            let message = "$derivative with 'unit' expects the sortBy field to be a Date";
            Err(failure(5_624_900, message))
        }
        (Some(Value::DateTime(_)), None) => {
            Err(failure(5_624_901, "$derivative where the sortBy is a Date requires an 'unit'"))
        }
        (value, None) => value.and_then(Number::of).ok_or_else(|| {
            let message = "$derivative (with no 'unit') expects the sortBy field to be numeric";
            failure(5_624_902, message)
        }),
    }
}

/// Returns the increase of the input: of dates in milliseconds.
fn rise(from: &Evaluated<'_>, to: &Evaluated<'_>) -> Result<Number, QueryError> {
    if from.is_nullish() || to.is_nullish() {
        return Err(failure(5_624_903, "$derivative input must not be null or missing"));
    }
    match (from.or_null(), to.or_null()) {
        (Value::DateTime(from), Value::DateTime(to)) => {
            Ok(minus(Number::Long(to), Number::Long(from)))
        }
        (from_value, to_value) => match (Number::of(from_value), Number::of(to_value)) {
            (Some(from), Some(to)) => Ok(minus(to, from)),
            _ => {
                let (from, to) = (from.type_name(), to.type_name());
                Err(mismatch(format!("can't $subtract {from} from {to}")))
            }
        },
    }
}

/// Returns how steep the line from one document to another is: their sort values and inputs. Null
/// if it has no length.
pub(super) fn slope(
    from: (Option<Value<'_>>, Evaluated<'_>),
    to: (Option<Value<'_>>, Evaluated<'_>),
    unit: Option<TimeUnit>,
) -> Result<Evaluated<'static>, QueryError> {
    let (begin, stop) = (end(from.0, unit)?, end(to.0, unit)?);
    let slope = over(rise(&from.1, &to.1)?, minus(stop, begin));
    let slope = slope.map(|slope| millis(unit).map_or(slope, |millis| times(slope, millis)));
    Ok(slope.map_or(Evaluated::NULL, Evaluated::from))
}

/// A point of an `$integral`.
pub(super) fn point(
    x: Option<Value<'_>>,
    y: &Evaluated<'_>,
    unit: Option<TimeUnit>,
) -> Result<Point, QueryError> {
    let place = match x {
        Some(Value::DateTime(date)) => Some(Number::Long(date)),
        x => x.and_then(Number::of),
    };
    let (Some(place), Some(y)) = (place, y.value().and_then(Number::of)) else {
        let message = "The input value of $integral window function must be a vector of 2 value, \
                       the first value must be numeric or date type and the second must be numeric.";
        return Err(failure(5_423_900, message));
    };
    match (x, unit) {
        (Some(Value::DateTime(_)), None) => {
            let message = "$integral (with no 'unit') expects the sortBy field to be numeric";
            Err(failure(5_423_902, message))
        }
        (Some(Value::DateTime(_)), Some(_)) | (_, None) => Ok(Point { x: place, y }),
        (_, Some(_)) => {
            let message = "$integral with 'unit' expects the sortBy field to be a Date";
            Err(failure(5_423_901, message))
        }
    }
}

fn is_nan(number: Number) -> bool {
    match number {
        Number::Double(number) => number.is_nan(),
        Number::Decimal(number) => matches!(decimal::parts(number), decimal::Parts::NaN),
        _ => false,
    }
}

impl Point {
    fn is_nan(self) -> bool {
        is_nan(self.x) || is_nan(self.y)
    }

    /// The area under the line to the next point; none beside NaN.
    fn area_to(self, next: Point) -> Number {
        if self.is_nan() || next.is_nan() {
            return Number::Int(0);
        }
        let twice = times(plus(next.y, self.y), minus(next.x, self.x));
        over(twice, Number::Double(2.0)).unwrap_or(twice)
    }
}

/// The area under the points of a window, as it moves along.
#[derive(Debug, Default)]
pub(super) struct Area {
    sum: Sum,
    count: usize,
    nan_count: usize,
}

impl Area {
    /// A point enters, behind the last one that is in.
    pub(super) fn enter(&mut self, last: Option<Point>, point: Point) {
        self.nan_count += usize::from(point.is_nan());
        if let Some(last) = last.filter(|_| 0 < self.count) {
            self.sum.add(last.area_to(point));
        }
        self.count += 1;
    }

    /// The first point leaves; `next` is the one behind it.
    pub(super) fn leave(&mut self, point: Point, next: Option<Point>) {
        self.nan_count -= usize::from(point.is_nan());
        self.count -= 1;
        if let Some(next) = next.filter(|_| 0 < self.count) {
            self.sum.remove(point.area_to(next));
        }
    }

    /// The area in units of time; null where no point is in.
    pub(super) fn value(&self, unit: Option<TimeUnit>) -> Evaluated<'static> {
        if self.count == 0 {
            return Evaluated::NULL;
        }
        if 0 < self.nan_count {
            return Evaluated::from(f64::NAN);
        }
        let total = self.sum.total();
        let in_units = millis(unit).and_then(|millis| over(total, millis));
        Evaluated::from(in_units.unwrap_or(total))
    }
}

/// An input of `$linearFill`; `None` where it is to be filled.
pub(super) fn fixed(value: &Evaluated<'_>) -> Result<Option<Number>, QueryError> {
    if value.is_nullish() {
        return Ok(None);
    }
    let number = value.value().and_then(Number::of);
    let found = value.type_name();
    number.map(Some).ok_or_else(|| {
        mismatch(format!("Value to be filled must be numeric or nullish, but found {found}"))
    })
}

/// The places of the documents of a `$linearFill`.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The last one, and whether it is a date.
    last: Option<(Number, bool)>,
}

impl Places {
    /// The place of a document's sort value.
    pub(super) fn place(value: Option<Value<'_>>) -> Result<(Number, bool), QueryError> {
        match value {
            Some(Value::DateTime(date)) => Ok((Number::Long(date), true)),
            value => value.and_then(Number::of).map(|number| (number, false)).ok_or_else(|| {
                let found = value.map_or("missing", |value| value.element_type().alias());
                mismatch(format!(
                    "Value of the sortBy field must be numeric or a date, but found {found}"
                ))
            }),
        }
    }

    /// The place of the next document: another one, of the same kind.
    pub(super) fn next(&mut self, value: Option<Value<'_>>) -> Result<Number, QueryError> {
        let (place, is_date) = Places::place(value)?;
        match self.last.replace((place, is_date)) {
            Some((_, was_date)) if was_date != is_date => {
                let kind = |is_date| if is_date { "date" } else { "number" };
                Err(mismatch(format!(
                    "Conflicting sort value types, previously received type {}, but found {}",
                    kind(was_date),
                    kind(is_date),
                )))
            }
            Some((last, _)) if order::compare(last.value(), place.value()) == Ordering::Equal => {
                Err(failure(6_050_106, "There can be no repeated values in the sort field"))
            }
            _ => Ok(place),
        }
    }
}

/// The value at `x` of the line between two points.
pub(super) fn between(
    before: (Number, Number),
    after: (Number, Number),
    x: Number,
) -> Result<Number, QueryError> {
    let share = over(minus(after.1, before.1), minus(after.0, before.0));
    let share = share.ok_or_else(|| QueryError::new(Code::BadValue, "can't $divide by zero"))?;
    Ok(plus(before.1, times(minus(x, before.0), share)))
}

/// `$derivative`: how steep the line from the first to the last document of a window is. Documents
/// between them aren't looked at.
pub(super) fn derivative(
    partition: &Partition<'_>,
    input: &Expression,
    unit: Option<TimeUnit>,
    bounds: &Bounds,
) -> Result<Column, QueryError> {
    let x = partition.sort_values();
    let value = |position: usize| {
        let document: Document<'_> = partition.documents[position].view();
        input.evaluate_in(&Scope::new(document, partition.variables))
    };
    let mut column = Vec::with_capacity(x.len());
    for (position, (from, to)) in bounds.ranges(partition)?.into_iter().enumerate() {
        partition.check(position)?;
        column.push(match from < to {
            true => slope((x[from], value(from)?), (x[to - 1], value(to - 1)?), unit)?,
            false => Evaluated::NULL,
        });
    }
    Ok(column)
}

/// `$integral`: the area under the lines between the documents of a window.
pub(super) fn integral(
    partition: &Partition<'_>,
    input: &Expression,
    unit: Option<TimeUnit>,
    bounds: &Bounds,
) -> Result<Column, QueryError> {
    let x = partition.sort_values();
    let inputs = partition.values(input)?;
    let mut points: Vec<Point> = Vec::with_capacity(x.len());
    let (mut area, mut begin) = (Area::default(), 0);
    let mut column = Vec::with_capacity(x.len());
    for (from, to) in bounds.ranges(partition)? {
        while points.len() < to {
            let point = point(x[points.len()], &inputs[points.len()], unit)?;
            area.enter(points.last().copied(), point);
            points.push(point);
        }
        while begin < from.min(points.len()) {
            area.leave(points[begin], points.get(begin + 1).copied());
            begin += 1;
        }
        column.push(area.value(unit));
    }
    Ok(column)
}

/// An exponential moving average: decimals, rounded at each step, even where it is to be a double.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MovingAverage {
    result: Option<Decimal128>,
    is_decimal: bool,
}

impl MovingAverage {
    /// Adds one more value: what isn't a number leaves the average as it is.
    pub(super) fn add(&mut self, value: &Evaluated<'_>, alpha: Decimal128) {
        let Some(number) = value.value().and_then(Number::of) else { return };
        self.is_decimal |= number.is_decimal();
        let number = number.decimal();
        self.result = Some(match self.result {
            None => number,
            Some(before) => {
                let rest = decimal::subtract(decimal::from_i64(1), alpha);
                let weighted = decimal::multiply(number, alpha);
                decimal::add(weighted, decimal::multiply(before, rest))
            }
        });
    }

    /// The average: a double until a decimal came.
    pub(super) fn value(&self) -> Evaluated<'static> {
        match self.result {
            None => Evaluated::NULL,
            Some(result) if self.is_decimal => Evaluated::from(result),
            Some(result) => Evaluated::from(decimal::to_f64(result)),
        }
    }
}

/// `$expMovingAvg`
pub(super) fn moving_average(
    partition: &Partition<'_>,
    input: &Expression,
    alpha: Decimal128,
) -> Result<Column, QueryError> {
    let mut average = MovingAverage::default();
    let mut column = Vec::with_capacity(partition.documents.len());
    for value in partition.values(input)? {
        average.add(&value, alpha);
        column.push(average.value());
    }
    Ok(column)
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
    let mut places = Places::default();
    let mut x = Vec::with_capacity(partition.documents.len());
    let mut column = partition.values(input)?;
    let mut before: Option<(usize, Number)> = None;
    for (position, value) in partition.sort_values().into_iter().enumerate() {
        let here = fixed(&column[position])?;
        x.push(places.next(value)?);
        let Some(here) = here else {
            column[position] = Evaluated::NULL;
            continue;
        };
        if let Some((first, value)) = before {
            for place in first + 1..position {
                let filled = between((x[first], value), (x[position], here), x[place])?;
                column[place] = Evaluated::from(filled);
            }
        }
        before = Some((position, here));
    }
    Ok(column)
}
