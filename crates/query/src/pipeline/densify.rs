//! `$densify`: documents for the values that a sequence of numbers or dates lacks.
//!
//! 1. Documents are put into partitions, each sorted by the field; those without a value come
//!    first, and stay as they are.
//! 2. A partition's values are compared with the grid of the range (its low end, and steps from
//!    there): where no document has a grid's value, one is made, with the partition's fields and
//!    the value.
//!
//! Partitions come out one after the other, in the order of their fields.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use frond_doc::path::Path;
use frond_doc::{Document, DocumentBuf, Value, ValueBuf, order};

use super::Documents;
use super::parse::{StageParser, failed_to_parse, one};
use super::set_path::set_path;
use super::stage::{Context, Stage, lazily};
use super::time_unit::TimeUnit;
use crate::code::Code;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::expression::number::Number;
use crate::expression::{failure, parse_path};

/// More documents than these aren't made: MongoDB's limit.
const MADE_MAX: usize = 500_000;

/// `$densify`
#[derive(Debug)]
struct Densify {
    field: Vec<String>,
    partition: Vec<Vec<String>>,
    step: Step,
    bounds: Range,
}

/// From a value of the grid to another one.
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

/// The documents of a partition.
#[derive(Default)]
struct Members {
    without: Vec<DocumentBuf>,
    with: Vec<(ValueBuf, DocumentBuf)>,
}

impl Stage for Densify {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let bytes_max = context.resources.memory_bytes_max;
        let collation = context.variables.collation().clone();
        Ok(lazily(move || {
            let partitions = self.partitions(input, bytes_max, &collation)?;
            let mut made = 0;
            let mut out = Vec::new();
            let full = full_range(&partitions);
            for members in partitions.into_values() {
                self.fill(members, full.as_ref(), &mut out, &mut made)?;
            }
            Ok(Box::new(out.into_iter().map(Ok)))
        }))
    }
}

/// The least and the greatest value of all partitions.
fn full_range(partitions: &BTreeMap<Vec<u8>, Members>) -> Option<(ValueBuf, ValueBuf)> {
    let values = || partitions.values().flat_map(|members| members.with.iter().map(|pair| &pair.0));
    let by_order =
        |left: &&ValueBuf, right: &&ValueBuf| order::compare(left.as_value(), right.as_value());
    Some((values().min_by(by_order)?.clone(), values().max_by(by_order)?.clone()))
}

impl Densify {
    fn partitions(
        &self,
        input: Documents<'_>,
        bytes_max: usize,
        collation: &Collation,
    ) -> Result<BTreeMap<Vec<u8>, Members>, QueryError> {
        let mut partitions: BTreeMap<Vec<u8>, Members> = BTreeMap::new();
        let mut bytes = 0;
        for document in input {
            let document = document?;
            bytes += size_of::<DocumentBuf>() * 2 + document.as_bytes().len();
            if bytes_max < bytes {
                let message = format!("$densify exceeded memory limit of {bytes_max} bytes");
                let code = Code::QueryExceededMemoryLimitNoDiskUseAllowed;
                return Err(QueryError::new(code, message));
            }
            let mut partition = Vec::new();
            for path in &self.partition {
                let value = at(document.view(), path);
                collation.append_key(&mut partition, value.unwrap_or(Value::Null), false);
            }
            let members = partitions.entry(partition).or_default();
            match at(document.view(), &self.field) {
                None | Some(Value::Null | Value::Undefined) => members.without.push(document),
                Some(value) => {
                    self.check(value)?;
                    let value = value.to_buf();
                    members.with.push((value, document));
                }
            }
        }
        for members in partitions.values_mut() {
            members
                .with
                .sort_by(|left, right| order::compare(left.0.as_value(), right.0.as_value()));
        }
        Ok(partitions)
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

    fn fill(
        &self,
        members: Members,
        full: Option<&(ValueBuf, ValueBuf)>,
        out: &mut Vec<DocumentBuf>,
        made: &mut usize,
    ) -> Result<(), QueryError> {
        let example = members.without.first().or(members.with.first().map(|(_, first)| first));
        let mut template = DocumentBuf::empty();
        for path in &self.partition {
            let value = example.and_then(|example| at(example.view(), path));
            if let Some(value) = value {
                template = set_path(template.view(), path, Some(value));
            }
        }
        let own = members.with.first().zip(members.with.last());
        let range = match &self.bounds {
            Range::Explicit(low, high) => Some((low.clone(), high.clone(), false)),
            Range::Full => full.map(|(low, high)| (low.clone(), high.clone(), true)),
            Range::Partition => own.map(|(low, high)| (low.0.clone(), high.0.clone(), true)),
        };
        out.extend(members.without);
        let Some((low, high, is_closed)) = range else { return Ok(()) };
        let mut documents = members.with.into_iter().peekable();
        for position in 0_i64.. {
            let Some(point) = self.step.from(low.as_value(), position) else { break };
            let to_end = order::compare(point.as_value(), high.as_value());
            if to_end == Ordering::Greater || (to_end.is_eq() && !is_closed) {
                break;
            }
            let mut is_there = false;
            while let Some((value, document)) = documents
                .next_if(|(value, _)| order::compare(value.as_value(), point.as_value()).is_le())
            {
                is_there |= order::equal(value.as_value(), point.as_value());
                out.push(document);
            }
            if !is_there {
                *made += 1;
                if MADE_MAX < *made {
                    let message = format!(
                        "Generated {made} documents in $densify, which is over the limit of \
                         {MADE_MAX}. Increase the 'internalQueryMaxAllowedDensifyDocs' parameter \
                         to allow more generated documents"
                    );
                    return Err(failure(5_897_900, message));
                }
                out.push(set_path(template.view(), &self.field, Some(point.as_value())));
            }
        }
        out.extend(documents.map(|(_, document)| document));
        Ok(())
    }
}

impl Step {
    /// The grid's value at a position; `None` where numbers or dates end.
    fn from(&self, low: Value<'_>, position: i64) -> Option<ValueBuf> {
        match (self, low) {
            (Step::Number(step), low) => {
                let position = Value::Int64(position);
                let offset = crate::number::multiply(step.as_value(), position)?;
                let point = crate::number::add(low, offset)?;
                // The factor is a long; the point has the type of what it is made of.
                let both_small =
                    matches!((low, step.as_value()), (Value::Int32(_), Value::Int32(_)));
                let small = point.as_integer().and_then(|whole| i32::try_from(whole).ok());
                Some(match small.filter(|_| both_small) {
                    Some(small) => ValueBuf::from(Value::Int32(small)),
                    None => point.to_buf(),
                })
            }
            (Step::Time(count, unit), Value::DateTime(low)) => {
                let date = unit.add(low, count.checked_mul(position)?)?;
                Some(ValueBuf::from(Value::DateTime(date)))
            }
            _ => None,
        }
    }
}

/// The value at a path through documents.
fn at<'d>(document: Document<'d>, parts: &[String]) -> Option<Value<'d>> {
    Path::new(&parts.join(".")).get(document)
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
    let unit = range.get("unit").map(TimeUnit::parse).transpose()?;
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
            let message = "one may not specify the bounds as 'partition' without specifying a \
                           non-empty array of partitionByFields. You may have meant to specify \
                           'full' bounds.";
            return Err(failure(5_733_402, message));
        }
        Value::Array(array) => explicit(array.iter().collect::<Vec<_>>().as_slice(), &step)?,
        _ => {
            let message = "the bounds in a range statement must be the string 'full', \
                           'partition', or an ascending array of two numbers or two dates";
            return Err(failure(5_733_403, message));
        }
    };
    Ok((step, bounds))
}

fn explicit(bounds: &[Value<'_>], step: &Step) -> Result<Range, QueryError> {
    let [low, high] = bounds else {
        let message = "a bounding array in a range statement must have exactly two elements";
        return Err(failure(5_733_403, message));
    };
    let fits = |value: &Value<'_>| match step {
        Step::Number(_) => value.is_number(),
        Step::Time(..) => matches!(value, Value::DateTime(_)),
    };
    if !fits(low) || !fits(high) {
        return Err(match step {
            Step::Number(_) => failure(
                5_733_406,
                "a bounding array in a range statement must contain numbers if no unit is given",
            ),
            Step::Time(..) => failure(
                5_733_402,
                "a bounding array in a range statement must contain dates if a unit is given",
            ),
        });
    }
    if order::compare(*low, *high).is_gt() {
        let message = "the bounds in a range statement must be ascending";
        return Err(failure(5_733_402, message));
    }
    Ok(Range::Explicit(low.to_buf(), high.to_buf()))
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
    let field = specification.get("field").ok_or_else(|| missing("field"))?;
    let Value::String(field) = field else {
        return Err(failed_to_parse("$densify 'field' must be a string"));
    };
    if field.starts_with('$') {
        return Err(failure(16410, "FieldPath field names may not start with '$'."));
    }
    let mut partition = Vec::new();
    match specification.get("partitionByFields") {
        None => {}
        Some(Value::Array(paths)) => {
            for path in paths.iter() {
                let Value::String(path) = path else {
                    let message = "$densify 'partitionByFields' must hold strings";
                    return Err(failed_to_parse(message));
                };
                if path == field {
                    let message = "BSON field '$densify.partitionByFields' contains the field that \
                                   is being densified";
                    return Err(failure(8_993_000, message));
                }
                partition.push(parse_path(path)?);
            }
        }
        Some(_) => return Err(failed_to_parse("$densify 'partitionByFields' must be an array")),
    }
    let given = specification.get("range").ok_or_else(|| missing("range"))?;
    let Value::Document(given) = given else {
        return Err(failed_to_parse("$densify 'range' must be an object"));
    };
    let (step, bounds) = range(given, !partition.is_empty())?;
    one(Densify { field: parse_path(field)?, partition, step, bounds })
}
