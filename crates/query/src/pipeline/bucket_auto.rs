//! `$bucketAuto`: groups of about as many documents each, by ranges of a value.
//!
//! Documents are sorted by the value (on disk where they are many), then cut: a bucket takes its
//! share, and whatever follows with the same value. It says from where it reaches and where the
//! next one begins; the last one says its greatest value.

use std::iter::Peekable;
use std::sync::Arc;

use frond_doc::{DocumentBuf, DocumentBuilder, Value, ValueBuf, order};
use frond_store::budget::Reservation;

use super::division::{Division, ParallelStage, PartialResult, of_same_stage};
use super::granularity::Granularity;
use super::group::{Group, OneGroup, group};
use super::parse::{StageParser, one};
use super::rows::{Input, Rows};
use super::sorter::{Sorted, Sorter};
use super::stage::{Context, Stage, lazily};
use super::{Documents, MEMORY_BYTES_MAX};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::{Scope, Variables, failure};
use crate::large::NeededPaths;
use crate::number::any_type::Number;

/// `$bucketAuto`
#[derive(Debug)]
struct BucketAuto {
    group: Group,
    buckets: u64,
    granularity: Option<Granularity>,
}

impl Stage for BucketAuto {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        Ok(self.over(input.into(), context))
    }

    fn run_over<'a>(
        self: Arc<Self>,
        rows: Box<dyn Rows + 'a>,
        context: &Context,
    ) -> Result<Input<'a>, QueryError> {
        Ok(Input::Documents(self.over(Input::Rows(rows), context)))
    }

    fn division(self: Arc<Self>) -> Division {
        Division::Gathers(self)
    }

    fn needed_paths(&self) -> NeededPaths {
        self.group.needed_paths()
    }

    fn needs(&self) -> Option<Vec<String>> {
        self.group.needs()
    }
}

/// Parts, each sorted by the value.
struct SortedParts {
    stage: Arc<BucketAuto>,
    parts: Vec<Sorted>,
    count: u64,
}

impl ParallelStage for BucketAuto {
    fn gather(
        self: Arc<Self>,
        input: Input<'_>,
        context: &Context,
    ) -> Result<Box<dyn PartialResult>, QueryError> {
        let (sorted, count) = self.sorted(input, context)?;
        Ok(Box::new(SortedParts { stage: self, parts: vec![sorted], count }))
    }
}

impl PartialResult for SortedParts {
    fn append(&mut self, next: Box<dyn PartialResult>) -> Result<(), QueryError> {
        let SortedParts { parts, count, .. } = *of_same_stage::<SortedParts>(next);
        self.parts.extend(parts);
        self.count += count;
        Ok(())
    }

    fn documents(self: Box<Self>, context: &Context) -> Result<Documents<'static>, QueryError> {
        let sorted = Sorted::interleaved(self.parts, usize::MAX)?;
        Ok(self.stage.cut(sorted, self.count, context))
    }
}

impl BucketAuto {
    fn over<'a>(self: Arc<Self>, input: Input<'a>, context: &Context) -> Documents<'a> {
        let context = context.clone();
        lazily(move || {
            let (sorted, count) = self.sorted(input, &context)?;
            Ok(self.cut(sorted, count, &context))
        })
    }

    /// The documents by the value, and how many they are.
    fn sorted(&self, input: Input<'_>, context: &Context) -> Result<(Sorted, u64), QueryError> {
        let variables = &context.variables;
        let mut sorter = Sorter::new("$bucketAuto", &context.resources, usize::MAX);
        let mut count = 0;
        input.visit(&mut |document| {
            let by = self.group.id(&Scope::new(document, variables))?;
            self.check(by.or_null())?;
            sorter.add_view(&variables.collation().key_of(by.or_null()), document)?;
            count += 1;
            Ok(true)
        })?;
        Ok((sorter.finish()?, count))
    }

    fn cut(self: Arc<Self>, sorted: Sorted, count: u64, context: &Context) -> Documents<'static> {
        let mut cutter = Cutter {
            rest: sorted.peekable(),
            share: ((count as f64 / self.buckets as f64).round() as u64).max(1),
            number: 0,
            low: None,
            stage: self,
            variables: context.variables.clone(),
            bytes: 0,
            reservation: context.resources.reservation_of(MEMORY_BYTES_MAX),
        };
        Box::new(std::iter::from_fn(move || cutter.next().transpose()))
    }

    /// Refuses what can't be rounded to a series.
    fn check(&self, value: Value<'_>) -> Result<(), QueryError> {
        if self.granularity.is_none() {
            return Ok(());
        }
        let Some(number) = Number::of(value) else {
            let found = value.element_type().alias();
            let message = format!(
                "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a \
                 value with type: {found}"
            );
            return Err(failure(40258, message));
        };
        let number = number.double();
        if number.is_nan() {
            let message = "$bucketAuto can specify a 'granularity' with numeric boundaries only, \
                           but found a NaN";
            return Err(failure(40259, message));
        }
        if number < 0.0 {
            let message = "$bucketAuto can specify a 'granularity' with non-negative numbers only, \
                           but found a negative number";
            return Err(failure(40260, message));
        }
        Ok(())
    }
}

/// Cuts sorted documents into buckets.
struct Cutter {
    stage: Arc<BucketAuto>,
    variables: Variables,
    rest: Peekable<Sorted>,
    /// The number of documents a bucket takes, without those of equal values.
    share: u64,
    /// The number of buckets there were.
    number: u64,
    /// The beginning of the next bucket, if that isn't its first value.
    low: Option<ValueBuf>,
    /// The memory that the bucket's accumulators keep.
    bytes: usize,
    reservation: Reservation,
}

impl Cutter {
    fn next(&mut self) -> Result<Option<DocumentBuf>, QueryError> {
        if self.number == self.stage.buckets {
            return Ok(None);
        }
        let Some(first) = self.rest.next() else { return Ok(None) };
        self.number += 1;
        self.bytes = 0;
        self.reservation.release();
        let is_last = self.number == self.stage.buckets;
        let first = first?.1;
        let first_value = self.value(&first)?;
        let mut group = self.stage.group.start(Value::Null, &self.variables)?;
        self.add(&mut group, &first)?;
        let mut high = first_value.clone();
        let mut taken = 1;
        while (is_last || taken < self.share)
            && let Some(next) = self.rest.next()
        {
            let next = next?.1;
            high = self.value(&next)?;
            self.add(&mut group, &next)?;
            taken += 1;
        }
        let low = match (self.low.take(), self.stage.granularity) {
            (Some(low), _) => low,
            (None, Some(series)) => rounded(first_value.as_value(), |n| series.below(n)),
            (None, None) => first_value,
        };
        let high = self.boundary(&mut group, &low, high)?;
        let mut id = DocumentBuilder::new();
        id.append("min", low.as_value()).append("max", high.as_value());
        group.id = ValueBuf::from(id.build());
        self.low = self.stage.granularity.is_some().then_some(high);
        self.stage.group.finish(group).map(Some)
    }

    /// Takes what still belongs to the bucket, and says where it ends.
    fn boundary(
        &mut self,
        group: &mut OneGroup,
        low: &ValueBuf,
        mut high: ValueBuf,
    ) -> Result<ValueBuf, QueryError> {
        let series = self.stage.granularity;
        let mut limit =
            series.map(|series| rounded(high.as_value(), |number| series.above(number)));
        let mut next_value = None;
        let by = self.variables.collation().clone();
        while let Some(next) = self.rest.peek() {
            let next = match next {
                Ok((_, document)) => document.clone(),
                Err(error) => return Err(error.clone()),
            };
            let value = self.value(&next)?;
            let is_equal = by.equal(value.as_value(), high.as_value());
            let is_below = limit
                .as_ref()
                .is_some_and(|limit| by.compare(value.as_value(), limit.as_value()).is_lt());
            if !is_equal && !is_below {
                next_value = Some(value);
                break;
            }
            self.rest.next();
            self.add(group, &next)?;
            high = value;
        }
        match (next_value, series) {
            (Some(next), None) => Ok(next),
            (Some(next), Some(series)) => {
                let limit = limit.take().unwrap_or_else(|| next.clone());
                // Above 0 no number is the next: the bucket of zeros ends below the next value.
                if order::equal(limit.as_value(), low.as_value()) {
                    return Ok(rounded(next.as_value(), |number| series.below(number)));
                }
                Ok(limit)
            }
            (None, _) => Ok(limit.unwrap_or(high)),
        }
    }

    fn value(&self, document: &DocumentBuf) -> Result<ValueBuf, QueryError> {
        let scope = Scope::new(document.view(), &self.variables);
        Ok(self.stage.group.id(&scope)?.or_null().to_buf())
    }

    fn add(&mut self, group: &mut OneGroup, document: &DocumentBuf) -> Result<(), QueryError> {
        let scope = Scope::new(document.view(), &self.variables);
        self.bytes += self.stage.group.add_to(group, &scope)?.0;
        self.reservation.hold(self.bytes).map_err(|exceeded| {
            let message = format!(
                "one bucket used too much memory and cannot spill to disk. Memory limit: {exceeded}"
            );
            QueryError::new(Code::ExceededMemoryLimit, message)
        })
    }
}

/// A number of the series, as a double unless the value is a decimal.
fn rounded(value: Value<'_>, round: impl Fn(f64) -> f64) -> ValueBuf {
    match Number::of(value) {
        Some(number @ Number::Decimal(_)) => ValueBuf::from(
            Number::Decimal(Number::Double(round(number.double())).decimal()).value(),
        ),
        Some(number) => ValueBuf::from(Value::Double(round(number.double()))),
        None => value.to_buf(),
    }
}

fn buckets(value: Value<'_>) -> Result<u64, QueryError> {
    if !value.is_number() {
        let found = value.element_type().alias();
        let message = format!(
            "The $bucketAuto 'buckets' field must be a numeric value, but found type: {found}."
        );
        return Err(failure(40241, message));
    }
    let whole = value.as_integer().and_then(|number| i32::try_from(number).ok());
    let Some(whole) = whole else {
        let message = format!(
            "The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found \
             {}",
            crate::text::value(value)
        );
        return Err(failure(40242, message));
    };
    u64::try_from(whole).ok().filter(|buckets| *buckets > 0).ok_or_else(|| {
        let message =
            format!("The $bucketAuto 'buckets' field must be greater than 0, but found: {whole}");
        failure(40243, message)
    })
}

pub(super) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(options) = argument else {
        let found = argument.element_type().alias();
        let message =
            format!("The argument to $bucketAuto must be an object, but found type: {found}.");
        return Err(failure(40240, message));
    };
    let known = ["groupBy", "buckets", "output", "granularity"];
    if let Some((name, _)) = options.iter().find(|(name, _)| !known.contains(name)) {
        return Err(failure(40245, format!("Unrecognized option to $bucketAuto: {name}.")));
    }
    let (Some(by), Some(count)) = (options.get("groupBy"), options.get("buckets")) else {
        let message = "$bucketAuto requires 'groupBy' and 'buckets' to be specified.";
        return Err(failure(40246, message));
    };
    let is_expression = match by {
        Value::String(path) => path.starts_with('$'),
        Value::Document(_) => true,
        _ => false,
    };
    if !is_expression {
        let message = format!(
            "The $bucketAuto 'groupBy' field must be defined as a $-prefixed path or an \
             expression object, but found: {}",
            crate::text::value(by)
        );
        return Err(failure(40239, message));
    }
    let specification = group_specification(by, options.get("output"))?;
    let granularity = options.get("granularity").map(granularity).transpose()?;
    let group = group(specification.view(), parser)?;
    one(BucketAuto { group, buckets: buckets(count)?, granularity })
}

/// The specification of the `$group` that each bucket is made by.
fn group_specification(
    by: Value<'_>,
    output: Option<Value<'_>>,
) -> Result<DocumentBuf, QueryError> {
    let mut specification = DocumentBuilder::new();
    specification.append("_id", by);
    match output {
        None => {
            specification.begin_document("count").append("$sum", Value::Int32(1)).end();
        }
        Some(Value::Document(output)) => output.iter().for_each(|(name, value)| {
            specification.append(name, value);
        }),
        Some(other) => {
            let found = other.element_type().alias();
            let message = format!(
                "The $bucketAuto 'output' field must be an object, but found type: {found}."
            );
            return Err(failure(40244, message));
        }
    }
    Ok(specification.build())
}

fn granularity(name: Value<'_>) -> Result<Granularity, QueryError> {
    let Value::String(name) = name else {
        let found = name.element_type().alias();
        let message = format!(
            "The $bucketAuto 'granularity' field must be a string, but found type: {found}."
        );
        return Err(failure(40261, message));
    };
    Granularity::named(name)
        .ok_or_else(|| failure(40257, format!("Unknown rounding granularity '{name}'")))
}
