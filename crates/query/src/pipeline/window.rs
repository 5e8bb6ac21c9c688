//! Window functions: one value for each document of a sorted partition.
//!
//! Reading order: this file (what a function is, and its parsing), `bounds` (which documents are in
//! the window of one), `series` (functions over the sequence as a whole: `$derivative`,
//! `$integral`, `$expMovingAvg`, `$linearFill`, `$locf`), `edge` and `stream` (partitions that
//! don't fit into memory). Accumulators move along: what enters a window is added, what leaves it
//! is removed.

mod bounds;
mod edge;
mod series;
mod stream;

use frond_doc::{Decimal128, Document, DocumentBuf, Value, ValueBuf, decimal};
use frond_store::budget::{Exceeded, Reservation};

use super::parse::{StageParser, failed_to_parse};
use super::spill::Resources;
use super::time_unit::TimeUnit;
use crate::accumulator::{Accumulator, Place};
use crate::error::QueryError;
use crate::expression::{Evaluated, Expression, Scope, Variables, failure};
use crate::feature::Feature;
use crate::number::any_type::{Number, as_i32};
use crate::sort::SortPattern;
use bounds::Bounds;

pub(super) use stream::Stream;

/// One value a document.
pub(super) type Column = Vec<Evaluated<'static>>;

/// A parsed window function.
#[derive(Debug)]
pub(super) struct WindowFunction {
    kind: Kind,
    bounds: Bounds,
}

#[derive(Debug)]
enum Kind {
    Accumulator(Accumulator),
    DocumentNumber,
    Rank { is_dense: bool },
    Shift { output: Expression, by: i64, default: ValueBuf },
    Derivative { input: Expression, unit: Option<TimeUnit> },
    Integral { input: Expression, unit: Option<TimeUnit> },
    MovingAverage { input: Expression, alpha: Decimal128 },
    LinearFill(Expression),
    LastFill(Expression),
}

/// The documents of a partition, in their order.
pub(super) struct Partition<'p> {
    documents: &'p [DocumentBuf],
    sort: Option<&'p SortPattern>,
    variables: &'p Variables,
    /// Asked whether to go on.
    resources: &'p Resources,
    /// The reservation of the documents, and of what is made of them.
    reservation: &'p mut Reservation,
    /// The memory held for it.
    bytes: usize,
}

/// Returns the memory of a document of a partition.
pub(super) fn bytes_of(document: &DocumentBuf) -> usize {
    size_of::<DocumentBuf>() + document.as_bytes().len()
}

/// The reason why what a partition's documents get isn't computed in memory.
pub(super) enum PartitionError {
    /// It doesn't fit: each document may get all that is in the partition.
    Exceeded(Exceeded),
    /// It fails.
    Failed(QueryError),
}

impl From<Exceeded> for PartitionError {
    fn from(exceeded: Exceeded) -> PartitionError {
        PartitionError::Exceeded(exceeded)
    }
}

impl From<QueryError> for PartitionError {
    fn from(error: QueryError) -> PartitionError {
        PartitionError::Failed(error)
    }
}

/// The documents between two checks whether to stop.
const CHECK_COUNT: usize = 256;

impl<'p> Partition<'p> {
    /// Makes a partition of documents that are sorted, and that `reservation` holds.
    pub(super) fn new(
        documents: &'p [DocumentBuf],
        sort: Option<&'p SortPattern>,
        variables: &'p Variables,
        resources: &'p Resources,
        reservation: &'p mut Reservation,
    ) -> Partition<'p> {
        let bytes = documents.iter().map(bytes_of).sum();
        Partition { documents, sort, variables, resources, reservation, bytes }
    }

    /// Charges a value: it is in its column, and will be in its document.
    fn hold(&mut self, value: &Evaluated<'_>) -> Result<(), Exceeded> {
        self.bytes = self.bytes.saturating_add(2 * value.bytes());
        self.reservation.hold(self.bytes)
    }

    /// Checks whether to go on; called at each document's position.
    fn check(&self, position: usize) -> Result<(), QueryError> {
        if position.is_multiple_of(CHECK_COUNT) { self.resources.check() } else { Ok(()) }
    }

    /// The values of an expression.
    fn values(&self, expression: &Expression) -> Result<Column, QueryError> {
        let mut values = Vec::with_capacity(self.documents.len());
        for (position, document) in self.documents.iter().enumerate() {
            self.check(position)?;
            let scope = Scope::new(document.view(), self.variables);
            values.push(expression.evaluate_in(&scope)?.detach(scope.memory())?);
        }
        Ok(values)
    }

    /// The values by which the documents are sorted, if that is one field.
    fn sort_values(&self) -> Vec<Option<Value<'p>>> {
        let field = self.sort.and_then(|sort| sort.fields.first());
        let path = frond_doc::path::Path::new(field.map_or("", |field| field.path.as_str()));
        self.documents.iter().map(|document| path.get(document.view())).collect()
    }
}

/// The functions that are no accumulators.
const FUNCTIONS: &[&str] = &[
    "$denseRank",
    "$derivative",
    "$documentNumber",
    "$expMovingAvg",
    "$integral",
    "$linearFill",
    "$locf",
    "$rank",
    "$shift",
];

/// Returns every function of windows, for the list of what works.
pub(crate) fn features() -> impl Iterator<Item = Feature> {
    let own = FUNCTIONS.iter().copied().map(Feature::works);
    own.chain(crate::accumulator::features(Place::Window))
}

impl WindowFunction {
    /// The paths of what an accumulator sorts documents by.
    pub(super) fn sort_paths(&self) -> impl Iterator<Item = String> {
        let accumulator = match &self.kind {
            Kind::Accumulator(accumulator) => Some(accumulator),
            _ => None,
        };
        let order = accumulator.and_then(Accumulator::order);
        order.into_iter().flat_map(|order| order.fields.iter().map(|field| field.path.clone()))
    }

    /// Parses `{$sum: "$x", window: {documents: [-1, 0]}}`.
    pub(super) fn parse(
        specification: Document<'_>,
        sort: Option<&SortPattern>,
        parser: &mut StageParser,
    ) -> Result<WindowFunction, QueryError> {
        let mut function = None;
        let mut window = None;
        for (name, value) in specification.iter() {
            if name == "window" {
                let Value::Document(bounds) = value else {
                    return Err(failed_to_parse("'window' field must be an object"));
                };
                window = Some(bounds);
            } else if name.starts_with('$') && function.is_none() {
                function = Some((name, value));
            } else {
                let message = format!("Window function found an unknown argument: {name}");
                return Err(failed_to_parse(message));
            }
        }
        let Some((name, argument)) = function else {
            return Err(failed_to_parse("Expected a $-prefixed window function"));
        };
        let kind = Kind::parse(name, argument, sort, parser)?;
        if window.is_some() && !kind.has_window() {
            let message = format!("{name} does not accept a 'window' field");
            return Err(failure(kind.window_code(), message));
        }
        if window.is_none() && matches!(kind, Kind::Derivative { .. }) {
            return Err(failed_to_parse("$derivative requires explicit window bounds"));
        }
        let bounds = match window {
            Some(window) => Bounds::parse(window, sort)?,
            None => Bounds::ALL,
        };
        Ok(WindowFunction { kind, bounds })
    }

    /// The function's values for the documents of a partition.
    pub(super) fn column(&self, partition: &mut Partition<'_>) -> Result<Column, PartitionError> {
        // The values of the others are charged as they are evaluated, or small.
        let column = match &self.kind {
            Kind::Accumulator(accumulator) => return self.moving(accumulator, partition),
            Kind::DocumentNumber => Ok((1..=partition.documents.len()).map(whole).collect()),
            Kind::Rank { is_dense } => Ok(ranks(partition, *is_dense)),
            Kind::Shift { output, by, default } => {
                let values = partition.values(output)?;
                let shifted = (0..values.len()).map(|place| {
                    let place = i64::try_from(place).ok().and_then(|place| place.checked_add(*by));
                    let place = place.and_then(|place| usize::try_from(place).ok());
                    match place.and_then(|place| values.get(place)) {
                        Some(value) => value.borrow(),
                        None => Evaluated::Borrowed(default.as_value()),
                    }
                });
                let memory = partition.variables.memory();
                shifted.map(|value| value.detach(memory)).collect()
            }
            Kind::Derivative { input, unit } => {
                series::derivative(partition, input, *unit, &self.bounds)
            }
            Kind::Integral { input, unit } => {
                series::integral(partition, input, *unit, &self.bounds)
            }
            Kind::MovingAverage { input, alpha } => {
                series::moving_average(partition, input, *alpha)
            }
            Kind::LinearFill(input) => series::linear_fill(partition, input),
            Kind::LastFill(input) => series::last_fill(partition, input),
        };
        Ok(column?)
    }

    /// An accumulator whose window moves along.
    fn moving(
        &self,
        accumulator: &Accumulator,
        partition: &mut Partition<'_>,
    ) -> Result<Column, PartitionError> {
        let mut values: Column = Vec::with_capacity(partition.documents.len());
        for (position, document) in partition.documents.iter().enumerate() {
            partition.check(position)?;
            let scope = Scope::new(document.view(), partition.variables);
            values.push(accumulator.value(&scope)?.detach(scope.memory())?);
        }
        let mut window = accumulator.start_window(Document::empty(), partition.variables)?;
        let (mut begin, mut end) = (0, 0);
        let mut column: Column = Vec::with_capacity(values.len());
        let mut before = None;
        for (from, to) in self.bounds.ranges(partition)? {
            let is_as_before = before.replace((from, to)) == Some((from, to));
            while end < to {
                partition.check(end)?;
                window.add(values[end].clone())?;
                end += 1;
            }
            while begin < from {
                window.remove(values[begin].clone());
                begin += 1;
            }
            let value = match column.last() {
                Some(value) if is_as_before => value.clone(),
                _ => {
                    // Some accumulators go through all that is in.
                    partition.variables.memory().work(to - from)?;
                    window.current()?
                }
            };
            partition.variables.memory().read(value.bytes())?;
            partition.hold(&value)?;
            column.push(value);
        }
        Ok(column)
    }
}

/// A count as an int.
fn whole(number: usize) -> Evaluated<'static> {
    match i32::try_from(number) {
        Ok(number) => Evaluated::from(number),
        Err(_) => Evaluated::from(i64::try_from(number).unwrap_or(i64::MAX)),
    }
}

fn ranks(partition: &Partition<'_>, is_dense: bool) -> Column {
    let values = partition.sort_values();
    let mut rank = 0;
    let mut column = Vec::with_capacity(values.len());
    for (position, value) in values.iter().enumerate() {
        let is_peer = position > 0 && {
            let before = values[position - 1].unwrap_or(Value::Null);
            partition.variables.collation().equal(before, value.unwrap_or(Value::Null))
        };
        if !is_peer {
            rank = if is_dense { rank + 1 } else { position + 1 };
        }
        column.push(whole(rank));
    }
    column
}

impl Kind {
    fn has_window(&self) -> bool {
        matches!(self, Kind::Accumulator(_) | Kind::Derivative { .. } | Kind::Integral { .. })
    }

    /// The code for a window where there is none.
    fn window_code(&self) -> i32 {
        match self {
            Kind::DocumentNumber | Kind::Rank { .. } => 5_371_601,
            _ => 9,
        }
    }

    fn parse(
        name: &str,
        argument: Value<'_>,
        sort: Option<&SortPattern>,
        parser: &mut StageParser,
    ) -> Result<Kind, QueryError> {
        let sorts_by_one = sort.is_some_and(|sort| sort.fields.len() == 1);
        match name {
            "$documentNumber" | "$rank" | "$denseRank" => {
                let is_sorted = sort.is_some() && (name == "$documentNumber" || sorts_by_one);
                check_rank(name, argument, is_sorted)?;
                Ok(match name {
                    "$documentNumber" => Kind::DocumentNumber,
                    _ => Kind::Rank { is_dense: name == "$denseRank" },
                })
            }
            "$shift" => shift(argument, sort, parser),
            "$derivative" | "$integral" => {
                if !sorts_by_one {
                    let message = format!("{name} requires a sortBy with a single field");
                    return Err(failed_to_parse(message));
                }
                let [input, unit] = named(name, argument, ["input", "unit"])?;
                let input = required(name, "input", input)?;
                let input = parser.expression(input)?;
                let unit = unit.map(TimeUnit::parse).transpose()?;
                if unit.is_some_and(|unit| unit.fixed_millis().is_none()) {
                    let message = "unit must be 'week' or smaller";
                    return Err(failure(5_490_710, message));
                }
                Ok(match name {
                    "$derivative" => Kind::Derivative { input, unit },
                    _ => Kind::Integral { input, unit },
                })
            }
            "$expMovingAvg" => moving_average(argument, sort, parser),
            "$linearFill" => {
                if !sorts_by_one {
                    let message = "$linearFill must be specified with a top level sortBy \
                                   expression with exactly one element";
                    return Err(failure(605_001, message));
                }
                Ok(Kind::LinearFill(parser.expression(argument)?))
            }
            "$locf" => Ok(Kind::LastFill(parser.expression(argument)?)),
            _ if !Accumulator::is_known(name, Place::Window) => {
                Err(failed_to_parse(format!("Unrecognized window function, {name}")))
            }
            _ => {
                let expressions = &mut parser.expressions;
                let accumulator = Accumulator::parse(name, argument, Place::Window, expressions)?;
                Ok(Kind::Accumulator(accumulator))
            }
        }
    }
}

/// Checks a function that numbers documents.
fn check_rank(name: &str, argument: Value<'_>, is_sorted: bool) -> Result<(), QueryError> {
    if !argument.as_document().is_some_and(|argument| argument.is_empty()) {
        let message = format!("{name} must be specified with '{{}}' as the value");
        return Err(failure(5_371_603, message));
    }
    if !is_sorted {
        let message = format!(
            "{name} must be specified with a top level sortBy expression with exactly one element"
        );
        return Err(failure(5_371_602, message));
    }
    Ok(())
}

/// The arguments of a function that takes them by name.
fn named<'v, const COUNT: usize>(
    function: &str,
    argument: Value<'v>,
    names: [&str; COUNT],
) -> Result<[Option<Value<'v>>; COUNT], QueryError> {
    let Value::Document(document) = argument else {
        let shown = crate::text::value(argument);
        return Err(failed_to_parse(format!("{function} expects an object, but got: {shown}")));
    };
    let mut found = [None; COUNT];
    for (name, value) in document.iter() {
        let Some(place) = names.iter().position(|known| *known == name) else {
            return Err(failed_to_parse(format!("{function} got unexpected argument: {name}")));
        };
        found[place] = Some(value);
    }
    Ok(found)
}

fn required<'v>(
    function: &str,
    name: &str,
    value: Option<Value<'v>>,
) -> Result<Value<'v>, QueryError> {
    value.ok_or_else(|| failed_to_parse(format!("{function} requires an '{name}' expression")))
}

fn shift(
    argument: Value<'_>,
    sort: Option<&SortPattern>,
    parser: &mut StageParser,
) -> Result<Kind, QueryError> {
    if sort.is_none() {
        return Err(failed_to_parse("'$shift' requires a sortBy"));
    }
    let [output, by, default] = named("$shift", argument, ["output", "by", "default"])?;
    let output = required("$shift", "output", output)?;
    let by = by
        .and_then(as_i32)
        .ok_or_else(|| failed_to_parse("'$shift:by' field must be an integer"))?;
    let default = match default {
        None => ValueBuf::from(Value::Null),
        Some(default) => {
            let expression = Expression::parse(default)?;
            let value = expression.evaluate(Document::empty(), &Variables::default())?;
            value.ok_or_else(|| {
                failed_to_parse("'$shift:default' expression must yield a constant value.")
            })?
        }
    };
    Ok(Kind::Shift { output: parser.expression(output)?, by: i64::from(by), default })
}

fn moving_average(
    argument: Value<'_>,
    sort: Option<&SortPattern>,
    parser: &mut StageParser,
) -> Result<Kind, QueryError> {
    if sort.is_none() {
        return Err(failed_to_parse("$expMovingAvg requires an explicit 'sortBy'"));
    }
    let [input, count, alpha] = named("$expMovingAvg", argument, ["input", "N", "alpha"])?;
    let input = required("$expMovingAvg", "input", input)?;
    let alpha = match (count, alpha) {
        (Some(count), None) => {
            let whole = Number::of(count).and_then(Number::whole).filter(|count| 0 < *count);
            let Some(whole) = whole else {
                let shown = crate::text::value(count);
                return Err(failed_to_parse(format!(
                    "'N' field must be an integer greater than 0, but found {shown}"
                )));
            };
            let one = decimal::from_i64(1);
            decimal::divide(decimal::from_i64(2), decimal::add(decimal::from_i64(whole), one))
        }
        (None, Some(alpha)) => {
            let (zero, one) = (decimal::from_i64(0), decimal::from_i64(1));
            let is_between = |alpha: &Decimal128| {
                decimal::compare(zero, *alpha).is_lt() && decimal::compare(*alpha, one).is_lt()
            };
            Number::of(alpha).map(Number::decimal).filter(is_between).ok_or_else(|| {
                let shown = crate::text::value(alpha);
                failed_to_parse(format!(
                    "'alpha' must be between 0 and 1 (exclusive), found {shown}"
                ))
            })?
        }
        _ => {
            return Err(failed_to_parse(
                "$expMovingAvg sub object must have exactly two fields: an 'input' field, and \
                 either an 'N' field or an 'alpha' field",
            ));
        }
    };
    Ok(Kind::MovingAverage { input: parser.expression(input)?, alpha })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_the_list_is_known() {
        let parser = || StageParser::new(crate::pipeline::table::find, &crate::Collation::SIMPLE);
        for name in FUNCTIONS {
            assert!(!Accumulator::is_known(name, Place::Window), "{name} is an accumulator");
            let parsed = Kind::parse(name, Value::Null, None, &mut parser());
            let unknown = format!("Unrecognized window function, {name}");
            assert!(
                parsed.is_ok_and(|kind| !matches!(kind, Kind::Accumulator(_)))
                    || Kind::parse(name, Value::Null, None, &mut parser())
                        .is_err_and(|error| error.message != unknown),
                "{name}"
            );
        }
    }
}
