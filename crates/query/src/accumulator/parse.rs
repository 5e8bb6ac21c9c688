//! From BSON to [`Accumulator`]s: `{$sum: "$x"}`, `{$topN: {n: 3, sortBy: {x: 1}, output: "$y"}}`.

use frond_doc::Value;

use super::table::{self, Place};
use super::{Accumulator, Input, Kind, scripted};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::parameters::{parameter_names, percentiles_node, specification};
use crate::expression::{Expression, Parser, failure};
use crate::sort::SortPattern;

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
        let kind = row.kind;
        match kind {
            Kind::Count => counted(argument),
            Kind::FirstN | Kind::LastN | Kind::MaxN | Kind::MinN => several(kind, argument, parser),
            Kind::Bottom | Kind::BottomN | Kind::Top | Kind::TopN => {
                sorted(kind, row.name, argument, parser)
            }
            Kind::Median | Kind::Percentile => percentile(kind, row.name, argument, parser),
            Kind::Scripted if row.name == "$accumulator" => scripted::custom(argument, parser),
            Kind::Scripted => scripted::reduce(argument, parser),
            Kind::AddToSet
            | Kind::Avg
            | Kind::CovariancePop
            | Kind::CovarianceSamp
            | Kind::First
            | Kind::Last
            | Kind::Max
            | Kind::MergeObjects
            | Kind::Min
            | Kind::Push
            | Kind::StdDevPop
            | Kind::StdDevSamp
            | Kind::Sum => {
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
