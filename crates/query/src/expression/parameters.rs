//! The parameters of operators that are accumulators and expressions both: `n`, `input`, `p`,
//! `method`.

use frond_doc::{Document, Value};

use super::evaluated::Evaluated;
use super::parse::Parser;
use super::scope::Variables;
use super::{Expression, failure};
use crate::code::Code;
use crate::error::QueryError;
use crate::known_fields::check_fields;
use crate::number::any_type::Number;
use crate::text;

/// The document that such an operator's argument must be.
pub(crate) fn specification<'v>(
    code: i32,
    argument: Value<'v>,
) -> Result<Document<'v>, QueryError> {
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

/// `input` and `p` of `$percentile` and `$median`, also as expressions: `p` is there for the first
/// of them. A `p` that needs no variable is checked at once.
pub(crate) fn percentiles_node<'v>(
    code: i32,
    name: &str,
    argument: Value<'v>,
    parser: &mut Parser,
) -> Result<(Value<'v>, Option<Expression>), QueryError> {
    let given = specification(code, argument)?;
    let known: &[&str] =
        if name == "$percentile" { &["input", "p", "method"] } else { &["input", "method"] };
    check_fields(name, given, known)?;
    let (input, percentiles, method) = (given.get("input"), given.get("p"), given.get("method"));
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
    let mut own = parser.another();
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
