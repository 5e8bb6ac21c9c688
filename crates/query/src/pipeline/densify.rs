//! `$densify`: documents for the values that a sequence of numbers or dates lacks.
//!
//! 1. Documents are sorted by their partition's fields and then by the field, on disk where they
//!    are many; those without a value come first, and stay as they are.
//! 2. A partition's values are compared with the grid of the range (its low end, and steps from
//!    there): where no document has a grid's value, one is made, with the partition's fields and
//!    the value. One document is looked at and made at a time ([`Filler`]).
//! 3. A step goes on from the value before, as `$add` and `$dateAdd` do: a month after January 31
//!    is February 28, and the next one March 28. Sums of doubles are rounded at each step.
//! 4. Explicit bounds are filled where there is no document at all, but a partition is one by a
//!    value.
//!
//! Partitions come out one after the other, in the order of their fields.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::sync::Arc;

use bytes::Bytes;
use frond_doc::path::Path;
use frond_doc::{Document, DocumentBuf, Value, ValueBuf, key, order};

use super::Documents;
use super::parse::{StageParser, failed_to_parse, one, typed, wrong_type};
use super::set_path::set_path;
use super::sorter::{Sorted, Sorter};
use super::spill::Resources;
use super::stage::{Context, Stage, lazily};
use super::time_unit::TimeUnit;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::expression::{failure, parse_path};
use crate::large::{Depth, NeededPaths};
use crate::number::any_type::Number;

/// More documents than these aren't made: MongoDB's limit.
const MADE_MAX: usize = 500_000;
/// Whether to stop is asked once for so many steps.
const CHECK_COUNT: usize = 1024;

/// `$densify`
#[derive(Debug)]
struct Densify {
    field: Vec<String>,
    partition: Vec<Vec<String>>,
    step: Step,
    bounds: Range,
}

/// A step from one value of the grid to the next.
#[derive(Clone, Debug)]
enum Step {
    Number(ValueBuf),
    Time(i64, TimeUnit),
}

/// Between which values there are no gaps.
#[derive(Clone, Debug)]
enum Range {
    /// Those of all documents, in each partition.
    Full,
    /// Those of the partition.
    Partition,
    /// From the first to before the second.
    Explicit(ValueBuf, ValueBuf),
}

/// Makes the documents that lack, one after the other.
struct Filler {
    stage: Arc<Densify>,
    resources: Resources,
    sorted: Peekable<Sorted>,
    /// The least and the greatest value of all partitions.
    full: Option<(ValueBuf, ValueBuf)>,
    /// The partition that is read; `None` between two.
    current: Option<Current>,
    /// Whether there was one.
    has_begun: bool,
    made: usize,
    steps: usize,
}

/// A partition on its way.
struct Current {
    key: Vec<u8>,
    /// Its fields.
    template: DocumentBuf,
    /// The grid's low end and its end, which may be on the grid; `None` before the first value.
    grid: Option<(ValueBuf, End)>,
    /// The next value of the grid; `None` at its end.
    point: Option<ValueBuf>,
    /// Whether a document has the point's value.
    is_there: bool,
    /// Whether a document has any value.
    has_value: bool,
}

/// The end of a grid.
#[derive(Clone)]
enum End {
    /// At the partition's last value.
    WithDocuments,
    At(ValueBuf),
    Before(ValueBuf),
}

impl Stage for Densify {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let resources = context.resources.clone();
        let collation = context.variables.collation().clone();
        Ok(lazily(move || {
            let (sorted, full) = self.sort(input, &resources, &collation)?;
            let mut filler = Filler {
                stage: self,
                resources,
                sorted: sorted.peekable(),
                full,
                current: None,
                has_begun: false,
                made: 0,
                steps: 0,
            };
            let mut has_failed = false;
            Ok(Box::new(std::iter::from_fn(move || {
                let next = (!has_failed).then(|| filler.next().transpose())?;
                has_failed = matches!(next, Some(Err(_)));
                next
            })))
        }))
    }

    fn needed_paths(&self) -> NeededPaths {
        let mut asked = NeededPaths::default();
        for path in std::iter::once(&self.field).chain(&self.partition) {
            asked.add(&path.join("."), Depth::Whole);
        }
        asked
    }
}

/// The sorted documents, and the least and the greatest of all values.
type SortedValues = (Sorted, Option<(ValueBuf, ValueBuf)>);

impl Densify {
    /// Sorts by an array of the partition's values, then by the value; none is below null.
    fn sort(
        &self,
        input: Documents<'_>,
        resources: &Resources,
        collation: &Collation,
    ) -> Result<SortedValues, QueryError> {
        let mut sorter = Sorter::new("$densify", resources, usize::MAX);
        let mut full: Option<(ValueBuf, ValueBuf)> = None;
        for document in input {
            let document = document?;
            let mut sort_key = Vec::new();
            for path in &self.partition {
                let value = at(document.view(), path);
                collation.append_key(&mut sort_key, value.unwrap_or(Value::Null), false);
            }
            let value = self.value(document.view());
            if let Some(value) = value {
                self.check(value)?;
                let (least, greatest) =
                    full.get_or_insert_with(|| (value.to_buf(), value.to_buf()));
                if order::compare(value, least.as_value()).is_lt() {
                    *least = value.to_buf();
                }
                if order::compare(value, greatest.as_value()).is_gt() {
                    *greatest = value.to_buf();
                }
            }
            collation.append_key(&mut sort_key, value.unwrap_or(Value::Null), false);
            sorter.add_view(&sort_key, document.view())?;
        }
        Ok((sorter.finish()?, full))
    }

    /// Whether the bounds are filled where no document has a value.
    fn is_filled_always(&self) -> bool {
        self.partition.is_empty() && matches!(self.bounds, Range::Explicit(..))
    }

    /// The value of the field, if there is one.
    fn value<'d>(&self, document: Document<'d>) -> Option<Value<'d>> {
        at(document, &self.field).filter(|value| !matches!(value, Value::Null | Value::Undefined))
    }

    /// The partition's part of a sort key.
    fn partition_of<'k>(&self, sort_key: &'k [u8]) -> &'k [u8] {
        let mut rest = sort_key;
        for _ in &self.partition {
            key::skip(&mut rest, false).expect("the keys were made here");
        }
        &sort_key[..sort_key.len() - rest.len()]
    }

    fn check(&self, value: Value<'_>) -> Result<(), QueryError> {
        match (&self.step, value) {
            (Step::Time(..), Value::DateTime(_)) => Ok(()),
            (Step::Number(_), value) if value.is_number() => Ok(()),
            (Step::Number(_), Value::DateTime(_)) => {
                let message =
                    "Encountered date densify value in collection when step does not have a unit.";
                Err(failure(6_053_600, message))
            }
            (Step::Time(..), value) if value.is_number() => {
                let message =
                    "Encountered numeric densify value in collection when step has a date unit.";
                Err(failure(6_053_600, message))
            }
            _ => Err(failure(5_733_201, "Densify field type must be numeric or a date")),
        }
    }
}

impl Filler {
    /// The next document.
    fn next(&mut self) -> Result<Option<DocumentBuf>, QueryError> {
        loop {
            self.steps += 1;
            if self.steps.is_multiple_of(CHECK_COUNT) {
                self.resources.check()?;
            }
            if self.current.is_none() && !self.begin()? {
                return Ok(None);
            }
            if let Some(document) = self.step()? {
                return Ok(Some(document));
            }
        }
    }

    /// Begins the next partition, if there is one.
    fn begin(&mut self) -> Result<bool, QueryError> {
        let stage = Arc::clone(&self.stage);
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let mut template = DocumentBuf::empty();
        let key = match peeked(&mut self.sorted)? {
            Some((sort_key, first)) => {
                for path in &stage.partition {
                    if let Some(value) = at(first.view(), path) {
                        template = set_path(template.view(), path, Some(value));
                    }
                }
                stage.partition_of(sort_key).to_vec()
            }
            None if is_first && stage.is_filled_always() => Vec::new(),
            None => return Ok(false),
        };
        let grid = match (&stage.bounds, &self.full) {
            (Range::Explicit(low, high), _) => Some((low.clone(), End::Before(high.clone()))),
            (Range::Full, Some((low, high))) => Some((low.clone(), End::At(high.clone()))),
            // Begins with the first value.
            (Range::Full, None) | (Range::Partition, _) => None,
        };
        let low = grid.as_ref().map(|(low, _)| low.clone());
        let has_value = stage.is_filled_always();
        let mut current = Current { key, template, grid, point: None, is_there: false, has_value };
        current.move_to(low);
        self.current = Some(current);
        Ok(true)
    }

    /// Goes on to the next value of the grid.
    fn move_on(&mut self) {
        let Some(current) = &mut self.current else { return };
        let next = current.point.take();
        let next = next.and_then(|point| self.stage.step.after(point.as_value()));
        current.move_to(next);
    }

    /// A document of the partition, or one that is made; `None` if this step gives none.
    fn step(&mut self) -> Result<Option<DocumentBuf>, QueryError> {
        let Some(current) = &mut self.current else { return Ok(None) };
        let stage = Arc::clone(&self.stage);
        let mut is_begun = false;
        let is_next = match peeked(&mut self.sorted)? {
            Some((sort_key, document)) if stage.partition_of(sort_key) == current.key => {
                let value = stage.value(document.view());
                current.has_value |= value.is_some();
                match (value, &current.point) {
                    (None, _) => true,
                    (Some(value), None) => {
                        is_begun = current.grid.is_none();
                        if is_begun {
                            current.grid = Some((value.to_buf(), End::WithDocuments));
                            current.move_to(Some(value.to_buf()));
                        }
                        true
                    }
                    (Some(value), Some(point)) => {
                        let ordering = order::compare(value, point.as_value());
                        current.is_there |= ordering.is_eq();
                        ordering.is_le()
                    }
                }
            }
            _ => {
                let ends_here = matches!(&current.grid, None | Some((_, End::WithDocuments)));
                if ends_here || current.point.is_none() || !current.has_value {
                    self.current = None;
                    return Ok(None);
                }
                false
            }
        };
        if is_next {
            // The first value is the grid's first point, and is there.
            current.is_there |= is_begun;
            let (_, document) = self.sorted.next().expect("it was seen")?;
            return Ok(Some(document));
        }
        let made = match (&current.point, current.is_there) {
            (Some(point), false) => {
                Some(set_path(current.template.view(), &stage.field, Some(point.as_value())))
            }
            _ => None,
        };
        self.move_on();
        self.made += usize::from(made.is_some());
        if MADE_MAX < self.made {
            let message = format!(
                "Generated {} documents in $densify, which is over the limit of {MADE_MAX}. \
                 Increase the 'internalQueryMaxAllowedDensifyDocs' parameter to allow more \
                 generated documents",
                self.made
            );
            return Err(failure(5_897_900, message));
        }
        Ok(made)
    }
}

/// The next entry, which stays.
fn peeked(sorted: &mut Peekable<Sorted>) -> Result<Option<&(Bytes, DocumentBuf)>, QueryError> {
    if let Some(error) = sorted.next_if(Result::is_err) {
        return Err(error.expect_err("it was seen"));
    }
    Ok(sorted.peek().and_then(|entry| entry.as_ref().ok()))
}

impl Current {
    fn move_to(&mut self, point: Option<ValueBuf>) {
        self.is_there = false;
        let end = self.grid.as_ref().map(|(_, end)| end);
        self.point = point.filter(|point| end.is_none_or(|end| end.is_behind(point.as_value())));
    }
}

impl End {
    /// Whether a point lies before the end.
    fn is_behind(&self, point: Value<'_>) -> bool {
        match self {
            End::WithDocuments => true,
            End::At(high) => order::compare(point, high.as_value()) != Ordering::Greater,
            End::Before(high) => order::compare(point, high.as_value()) == Ordering::Less,
        }
    }
}

impl Step {
    /// The grid's value after one; `None` where numbers or dates end.
    fn after(&self, point: Value<'_>) -> Option<ValueBuf> {
        match (self, point) {
            (Step::Number(step), point) => {
                crate::number::add(point, step.as_value()).map(|next| next.to_buf())
            }
            (Step::Time(count, unit), Value::DateTime(date)) => {
                unit.add(date, *count).map(|date| ValueBuf::from(Value::DateTime(date)))
            }
            _ => None,
        }
    }
}

/// The value at a path through documents.
fn at<'d>(document: Document<'d>, parts: &[String]) -> Option<Value<'d>> {
    Path::new(&parts.join(".")).get(document)
}

/// Whether a path is another one or leads through it.
fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn missing(name: &str) -> QueryError {
    failure(40414, format!("BSON field '$densify.{name}' is missing but a required field"))
}

/// Parses `range`.
fn range(range: Document<'_>, has_partition: bool) -> Result<(Step, Range), QueryError> {
    for (name, _) in range.iter() {
        if !["step", "unit", "bounds"].contains(&name) {
            let message = format!("BSON field '$densify.range.{name}' is an unknown field.");
            return Err(failure(40415, message));
        }
    }
    let step = range.get("step").ok_or_else(|| missing("range.step"))?;
    let is_positive = Number::of(step).is_some_and(|number| 0.0 < number.double());
    if !step.is_number() || !is_positive {
        let message = "The step parameter in a range statement must be a strictly positive numeric \
                       value";
        return Err(failure(5_733_401, message));
    }
    let unit = typed(range, "unit").map(TimeUnit::parse).transpose()?;
    let step = match unit {
        None => Step::Number(step.to_buf()),
        Some(unit) => {
            let whole = step.as_integer().ok_or_else(|| {
                let message = "The step parameter in a range statement must be a whole number when \
                               densifying a date range";
                failure(6_586_400, message)
            })?;
            Step::Time(whole, unit)
        }
    };
    let bounds = match range.get("bounds").ok_or_else(|| missing("range.bounds"))? {
        Value::String("full") => Range::Full,
        Value::String("partition") if has_partition => Range::Partition,
        Value::String("partition") => {
            let message = "One cannot specify the bounds as 'partition' without specifying a \
                           non-empty array of partitionByFields. You may have meant to specify \
                           'full' bounds.";
            return Err(failure(5_733_408, message));
        }
        Value::Array(array) => explicit(array.iter().collect::<Vec<_>>().as_slice(), &step)?,
        Value::String(_) => {
            let message = "Bounds string must either be 'full' or 'partition'";
            return Err(failure(5_946_802, message));
        }
        _ => {
            let message = "The bounds in a range statement must be the string 'full', \
                           'partition', or an ascending array of two numbers or two dates";
            return Err(failure(5_733_404, message));
        }
    };
    Ok((step, bounds))
}

fn explicit(bounds: &[Value<'_>], step: &Step) -> Result<Range, QueryError> {
    let [low, high] = bounds else {
        let message = "A bounding array in a range statement must have exactly two elements";
        return Err(failure(5_733_403, message));
    };
    let mixed = "A bounding array must contain either both dates or both numeric types";
    let (code, message) = match (*low, *high, step) {
        (low, high, _) if order::compare(low, high).is_gt() => (
            5_733_402,
            "A bounding array must be an ascending array of either two dates or two numbers",
        ),
        (low, _, Step::Time(..)) if low.is_number() => {
            (5_733_409, "Numeric bounds may not have unit parameter")
        }
        (low, high, _) if low.is_number() && !high.is_number() => (5_733_406, mixed),
        (low, high, Step::Number(step)) if low.is_number() => {
            let step = step.as_value().element_type();
            if low.element_type() == high.element_type() && low.element_type() == step {
                return Ok(Range::Explicit(low.to_buf(), high.to_buf()));
            }
            (5_876_900, "Upper bound, lower bound, and step must all have the same type")
        }
        (Value::DateTime(_), Value::DateTime(_), Step::Number(_)) => {
            (5_733_410, "A bounding array of dates must specify a unit")
        }
        (Value::DateTime(_), Value::DateTime(_), Step::Time(..)) => {
            return Ok(Range::Explicit(low.to_buf(), high.to_buf()));
        }
        (Value::DateTime(_), ..) => (5_733_405, mixed),
        _ => (5_946_800, "Explicit bounds must be numeric or dates"),
    };
    Err(failure(code, message))
}

pub(super) fn parse(
    argument: Value<'_>,
    _: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(specification) = argument else {
        let message = "The $densify stage specification must be an object";
        return Err(failed_to_parse(message));
    };
    for (name, _) in specification.iter() {
        if !["field", "partitionByFields", "range"].contains(&name) {
            let message = format!("BSON field '$densify.{name}' is an unknown field.");
            return Err(failure(40415, message));
        }
    }
    let field = typed(specification, "field").ok_or_else(|| missing("field"))?;
    let Value::String(field) = field else {
        return Err(wrong_type("$densify.field", field, "string"));
    };
    if field.starts_with('$') {
        return Err(failure(16410, "FieldPath field names may not start with '$'."));
    }
    let mut partition = Vec::new();
    match typed(specification, "partitionByFields") {
        None => {}
        Some(Value::Array(paths)) => {
            for path in paths.iter() {
                let Value::String(path) = path else {
                    return Err(wrong_type("$densify.partitionByFields", path, "string"));
                };
                if is_within(path, field) {
                    let message = format!(
                        "partitionByFields '{path}' cannot include field '{field}' that is being \
                         densified."
                    );
                    return Err(failure(8_993_000, message));
                }
                if is_within(field, path) {
                    let message = format!(
                        "field '{field}' that is being densified cannot include partitionByFields \
                         '{path}'."
                    );
                    return Err(failure(9_554_500, message));
                }
                partition.push(parse_path(path)?);
            }
        }
        Some(other) => return Err(wrong_type("$densify.partitionByFields", other, "array")),
    }
    let given = typed(specification, "range").ok_or_else(|| missing("range"))?;
    let Value::Document(given) = given else {
        return Err(wrong_type("$densify.range", given, "object"));
    };
    let (step, bounds) = range(given, !partition.is_empty())?;
    one(Densify { field: parse_path(field)?, partition, step, bounds })
}
