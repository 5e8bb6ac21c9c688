//! From BSON to [`Accumulator`]s: `{$sum: "$x"}`, `{$topN: {n: 3, sortBy: {x: 1}, output: "$y"}}`.

use frond_doc::{Document, Value};

use super::table::{self, Place};
use super::{Accumulator, Input, Kind};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::{Evaluated, Expression, Parser, Variables, failure};
use crate::number::any_type::Number;
use crate::sort::SortPattern;
use crate::text;

/// MongoDB's code for an unknown accumulator.
const UNKNOWN: i32 = 15952;

impl Accumulator {
    /// Parses the argument of the accumulator that is named.
    ///
    /// # Errors
    /// 15952 for one that isn't there or isn't supported in `place`, and MongoDB's codes for
    /// arguments that are wrong.
    pub(crate) fn parse(
        name: &str,
        argument: Value<'_>,
        place: Place,
        parser: &mut Parser,
    ) -> Result<Accumulator, QueryError> {
        let Some(row) = table::find(name, place) else {
            return Err(failure(UNKNOWN, format!("unknown group operator '{name}'")));
        };
        let Some(kind) = row.kind else {
            let message = format!("unknown group operator '{name}': not supported by Frond");
            return Err(failure(UNKNOWN, message));
        };
        match kind {
            Kind::Count => counted(argument),
            Kind::FirstN | Kind::LastN | Kind::MaxN | Kind::MinN => several(kind, argument, parser),
            Kind::Bottom | Kind::BottomN | Kind::Top | Kind::TopN => {
                sorted(kind, row.name, argument, parser)
            }
            Kind::Median | Kind::Percentile => percentile(kind, row.name, argument, parser),
            _ => {
                let argument = match place {
                    Place::Group => only(row.name, argument)?,
                    // A window function's argument is the whole expression: an array is one.
                    Place::Window => argument,
                };
                let expression = Expression::parse_with(argument, parser)?;
                Ok(Accumulator { kind, input: Input::One(expression), parameter: None })
            }
        }
    }

    /// Whether there is an accumulator of the name in `place`, supported or not: another code is
    /// for others there.
    pub(crate) fn is_known(name: &str, place: Place) -> bool {
        table::find(name, place).is_some()
    }
}

/// The one argument, which may stand in brackets as an operator's may.
fn only<'v>(name: &str, argument: Value<'v>) -> Result<Value<'v>, QueryError> {
    let Value::Array(array) = argument else { return Ok(argument) };
    let mut elements = array.iter();
    match (elements.next(), elements.next()) {
        (Some(only), None) => Ok(only),
        _ => Err(failure(40237, format!("The {name} accumulator is a unary operator"))),
    }
}

fn counted(argument: Value<'_>) -> Result<Accumulator, QueryError> {
    if !argument.as_document().is_some_and(|document| document.is_empty()) {
        let message = "$count takes no arguments, i.e. $count:{}";
        return Err(QueryError::new(Code::TypeMismatch, message));
    }
    Ok(Accumulator { kind: Kind::Count, input: Input::Nothing, parameter: None })
}

fn specification<'v>(code: i32, argument: Value<'v>) -> Result<Document<'v>, QueryError> {
    argument.as_document().ok_or_else(|| {
        let found = text::value(argument);
        failure(code, format!("specification must be an object; found {found}"))
    })
}

/// `n` and `input` of `$firstN`, `$lastN`, `$maxN`, `$minN`, also as expressions.
pub(crate) fn parameter_names<'v>(
    code: i32,
    argument: Value<'v>,
) -> Result<(Value<'v>, Value<'v>), QueryError> {
    let (mut count, mut input) = (None, None);
    for (name, value) in specification(code, argument)?.iter() {
        match name {
            "n" => count = Some(value),
            "input" => input = Some(value),
            _ => {
                let message = format!("Unknown argument for 'n' operator: {name}");
                return Err(failure(5_787_901, message));
            }
        }
    }
    let count = count.ok_or_else(|| failure(5_787_906, "Missing value for 'n'"))?;
    let input = input.ok_or_else(|| failure(5_787_907, "Missing value for 'input'"))?;
    Ok((count, input))
}

fn several(
    kind: Kind,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Accumulator, QueryError> {
    let code = if matches!(kind, Kind::FirstN | Kind::LastN) { 5_787_801 } else { 5_787_900 };
    let (count, input) = parameter_names(code, argument)?;
    let parameter = Some(Expression::parse_with(count, parser)?);
    let input = Input::One(Expression::parse_with(input, parser)?);
    Ok(Accumulator { kind, input, parameter })
}

fn sorted(
    kind: Kind,
    name: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Accumulator, QueryError> {
    let has_count = matches!(kind, Kind::BottomN | Kind::TopN);
    let (mut count, mut output, mut by) = (None, None, None);
    for (field, value) in specification(5_788_001, argument)?.iter() {
        match field {
            "n" if has_count => count = Some(value),
            "output" => output = Some(value),
            "sortBy" => by = Some(value),
            _ => {
                return Err(failure(5_788_002, format!("Unknown argument to {name} '{field}'")));
            }
        }
    }
    if has_count && count.is_none() {
        return Err(failure(5_788_003, "Missing value for 'n'"));
    }
    let output = output.ok_or_else(|| failure(5_788_004, "Missing value for 'output'"))?;
    let by = by.ok_or_else(|| failure(5_788_005, "Missing value for 'sortBy'"))?;
    let Value::Document(by) = by else {
        let found = by.element_type().alias();
        let message = format!("Expected an object for 'sortBy' of {name}, found: {found}");
        return Err(failure(10065, message));
    };
    let parameter = count.map(|count| Expression::parse_with(count, parser)).transpose()?;
    let output = Expression::parse_with(output, parser)?;
    Ok(Accumulator { kind, input: Input::Sorted(output, SortPattern::parse(by)?), parameter })
}

/// `input`, and `p` of `$percentile`; `method` must be the one that there is.
fn percentile(
    kind: Kind,
    name: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Accumulator, QueryError> {
    let code = if kind == Kind::Percentile { 7_429_703 } else { 7_436_100 };
    let (input, parameter) = percentiles_node(code, name, argument, parser)?;
    let input = Input::One(Expression::parse_with(input, parser)?);
    Ok(Accumulator { kind, input, parameter })
}

/// `input` and `p` of `$percentile` and `$median`, also as expressions: `p` is there for the first
/// of them. A `p` that needs no variable is checked at once.
pub(crate) fn percentiles_node<'v>(
    code: i32,
    name: &str,
    argument: Value<'v>,
    parser: &mut Parser,
) -> Result<(Value<'v>, Option<Expression>), QueryError> {
    let (mut input, mut percentiles, mut method) = (None, None, None);
    for (field, value) in specification(code, argument)?.iter() {
        match field {
            "input" => input = Some(value),
            "p" if name == "$percentile" => percentiles = Some(value),
            "method" => method = Some(value),
            _ => {
                let message = format!("BSON field '{name}.{field}' is an unknown field.");
                return Err(failure(40415, message));
            }
        }
    }
    let missing = |field: &str| {
        let message = format!("BSON field '{name}.{field}' is missing but a required field");
        failure(40414, message)
    };
    let input = input.ok_or_else(|| missing("input"))?;
    if name == "$percentile" && percentiles.is_none() {
        return Err(missing("p"));
    }
    match method.ok_or_else(|| missing("method"))? {
        Value::String("approximate") => {}
        Value::String(_) => {
            let message = "Currently only 'approximate' can be used as percentile 'method'.";
            return Err(QueryError::new(Code::BadValue, message));
        }
        other => {
            let found = other.element_type().alias();
            let message = format!(
                "BSON field '{name}.method' is the wrong type '{found}', expected type 'string'"
            );
            return Err(QueryError::new(Code::TypeMismatch, message));
        }
    }
    let percentiles = percentiles.map(|value| constant(value, parser)).transpose()?;
    Ok((input, percentiles))
}

/// An expression that reads no document.
fn constant(value: Value<'_>, parser: &mut Parser) -> Result<Expression, QueryError> {
    let mut own = Parser::default();
    let expression = Expression::parse_with(value, &mut own)?;
    if own.reads_document() {
        let found = text::value(value);
        let message = format!(
            "The $percentile 'p' field must be an array of constant values, \
             but found value: {found}."
        );
        return Err(failure(7_750_300, message));
    }
    if own.free().is_empty() {
        let evaluated = expression.evaluate(Document::empty(), &Variables::default())?;
        percentiles_from(&evaluated.map_or(Evaluated::Missing, Evaluated::kept))?;
    }
    own.free().iter().for_each(|name| parser.add_free(name));
    Ok(expression)
}

/// Checks the value of `p`.
pub(crate) fn percentiles_from(value: &Evaluated<'_>) -> Result<Vec<f64>, QueryError> {
    let refuse = |code, found: String| {
        let rule = "The $percentile 'p' field must be an array of numbers from [0.0, 1.0]";
        failure(code, format!("{rule}, but found: {found}"))
    };
    let Some(Value::Array(array)) = value.value() else {
        return Err(refuse(7_750_301, value.text()));
    };
    let mut percentiles = Vec::new();
    for element in array.iter() {
        let number =
            Number::of(element).ok_or_else(|| refuse(7_750_302, text::value(element)))?.double();
        if !(0.0..=1.0).contains(&number) {
            return Err(refuse(7_750_303, text::value(element)));
        }
        percentiles.push(number);
    }
    if percentiles.is_empty() {
        return Err(refuse(7_750_301, value.text()));
    }
    Ok(percentiles)
}

/// Checks the value of `n`.
pub(crate) fn count_from(value: &Evaluated<'_>) -> Result<usize, QueryError> {
    let refuse = |code| {
        let found = value.text();
        failure(code, format!("Value for 'n' must be of integral type, but found {found}"))
    };
    let number = value.value().and_then(Number::of).ok_or_else(|| refuse(5_787_902))?;
    let whole = number.whole().ok_or_else(|| refuse(5_787_903))?;
    usize::try_from(whole)
        .ok()
        .filter(|count| 0 < *count)
        .ok_or_else(|| failure(5_787_908, format!("'n' must be greater than 0, found {whole}")))
}
