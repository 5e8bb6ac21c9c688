//! The arguments of `$densify`, with MongoDB's codes.

use std::sync::Arc;

use frond_doc::{Document, DocumentBuf, Value, order};

use super::Densify;
use super::grid::{Range, Step};
use crate::collation::Collation;
use crate::error::QueryError;
use crate::expression::{failure, parse_path};
use crate::known_fields::check_fields;
use crate::number::any_type::Number;
use crate::pipeline::parse::{StageParser, failed_to_parse, one, typed, wrong_type};
use crate::pipeline::set_path::set_path;
use crate::pipeline::stage::Stage;
use crate::pipeline::time_unit::TimeUnit;
use crate::sort::{SortField, SortPattern};

/// Whether a path is another one or leads through it.
fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn missing(name: &str) -> QueryError {
    failure(40414, format!("BSON field '$densify.{name}' is missing but a required field"))
}

/// Parses `range`.
fn range(range: Document<'_>, has_partition: bool) -> Result<(Step, Range), QueryError> {
    check_fields("$densify.range", range, &["step", "unit", "bounds"])?;
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

/// Parses the stage.
///
/// # Errors
/// MongoDB's codes for what it refuses.
pub(in crate::pipeline) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(specification) = argument else {
        let message = "The $densify stage specification must be an object";
        return Err(failed_to_parse(message));
    };
    check_fields("$densify", specification, &["field", "partitionByFields", "range"])?;
    let field = typed(specification, "field").ok_or_else(|| missing("field"))?;
    let Value::String(field) = field else {
        return Err(wrong_type("$densify.field", field, "string"));
    };
    if field.starts_with('$') {
        return Err(failure(16410, "FieldPath field names may not start with '$'."));
    }
    let (partition_paths, object) = partition(specification, field)?;
    let partition = match partition_paths.is_empty() {
        true => None,
        false => Some(parser.expression(Value::Document(object.view()))?),
    };
    let given = typed(specification, "range").ok_or_else(|| missing("range"))?;
    let Value::Document(given) = given else {
        return Err(wrong_type("$densify.range", given, "object"));
    };
    let (step, bounds) = range(given, partition.is_some())?;
    let sorted = match bounds {
        Range::Full => &[],
        Range::Partition | Range::Explicit(..) => partition_paths.as_slice(),
    };
    let paths = sorted.iter().map(String::as_str).chain([field]);
    let fields =
        paths.map(|path| SortField { path: path.to_string(), descending: false }).collect();
    let sort = SortPattern { fields, collation: Collation::default() };
    one(Densify { field: parse_path(field)?, partition, partition_paths, sort, step, bounds })
}

/// The paths of `partitionByFields`, and an object of what lies there.
fn partition(
    specification: Document<'_>,
    field: &str,
) -> Result<(Vec<String>, DocumentBuf), QueryError> {
    let paths = match typed(specification, "partitionByFields") {
        None => return Ok((Vec::new(), DocumentBuf::empty())),
        Some(Value::Array(paths)) => paths,
        Some(other) => return Err(wrong_type("$densify.partitionByFields", other, "array")),
    };
    let mut partition = Vec::new();
    let mut object = DocumentBuf::empty();
    for path in paths.iter() {
        let Value::String(path) = path else {
            return Err(wrong_type("$densify.partitionByFields", path, "string"));
        };
        if is_within(path, field) {
            let message = format!(
                "partitionByFields '{path}' cannot include field '{field}' that is being densified."
            );
            return Err(failure(8_993_000, message));
        }
        if is_within(field, path) {
            let message = format!(
                "field '{field}' that is being densified cannot include partitionByFields '{path}'."
            );
            return Err(failure(9_554_500, message));
        }
        let parts = parse_path(path)?;
        let reference = format!("${path}");
        object = set_path(object.view(), &parts, Some(Value::String(&reference)));
        partition.push(path.to_string());
    }
    Ok((partition, object))
}
