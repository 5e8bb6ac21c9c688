//! `$ceil`, `$floor`, `$round` (half to even), `$trunc`.

use frond_doc::decimal::{self, Rounding};

use super::arithmetic::one_number;
use super::evaluated::Evaluated;
use super::failure;
use super::node::Answer;
use super::number::Number;
use crate::error::QueryError;

/// `$ceil`
pub(super) fn ceil(argument: Evaluated<'_>) -> Answer<'_> {
    whole("$ceil", argument, f64::ceil, Rounding::Ceiling)
}

/// `$floor`
pub(super) fn floor(argument: Evaluated<'_>) -> Answer<'_> {
    whole("$floor", argument, f64::floor, Rounding::Floor)
}

fn whole<'a>(
    operator: &str,
    argument: Evaluated<'a>,
    function: fn(f64) -> f64,
    rounding: Rounding,
) -> Answer<'a> {
    Ok(match one_number(operator, &argument)? {
        None => Evaluated::NULL,
        Some(Number::Double(number)) => function(number).into(),
        Some(Number::Decimal(number)) => decimal::round_to_places(number, 0, rounding).into(),
        Some(integer) => integer.into(),
    })
}

/// `$round`
pub(super) fn round(arguments: Vec<Evaluated<'_>>) -> Answer<'_> {
    at_places("$round", arguments, Rounding::HalfEven)
}

/// `$trunc`
pub(super) fn trunc(arguments: Vec<Evaluated<'_>>) -> Answer<'_> {
    at_places("$trunc", arguments, Rounding::Down)
}

fn at_places<'a>(operator: &str, arguments: Vec<Evaluated<'a>>, rounding: Rounding) -> Answer<'a> {
    if arguments.iter().any(Evaluated::is_nullish) {
        return Ok(Evaluated::NULL);
    }
    let Some(argument) = arguments.first() else {
        return Ok(Evaluated::NULL); // The parser wants at least one.
    };
    let number = Number::of(argument.or_null()).ok_or_else(|| {
        let name = argument.type_name();
        failure(51081, format!("{operator} only supports numeric types, not {name}"))
    })?;
    let places = match arguments.get(1) {
        Some(places) => checked_places(operator, places)?,
        None => 0,
    };
    Ok(match number {
        Number::Double(number) => round_double(number, places, rounding).into(),
        Number::Decimal(number) => decimal::round_to_places(number, places, rounding).into(),
        integer if places >= 0 => integer.into(),
        Number::Int(number) => {
            let rounded = round_integer(i128::from(number), places, rounding);
            match (i32::try_from(rounded), i64::try_from(rounded)) {
                (Ok(rounded), _) => rounded.into(),
                (_, Ok(rounded)) => rounded.into(),
                _ => return Err(too_large(operator)),
            }
        }
        Number::Long(number) => {
            let rounded = round_integer(i128::from(number), places, rounding);
            i64::try_from(rounded).map_err(|_| too_large(operator))?.into()
        }
    })
}

fn too_large(operator: &str) -> QueryError {
    failure(51080, format!("the result of {operator} doesn't fit 64 bits"))
}

fn checked_places(operator: &str, places: &Evaluated<'_>) -> Result<i32, QueryError> {
    let whole = Number::of(places.or_null()).and_then(Number::whole).ok_or_else(|| {
        failure(51082, format!("precision argument to {operator} must be a integral value"))
    })?;
    match i32::try_from(whole) {
        Ok(places) if (-20..=100).contains(&places) => Ok(places),
        _ => {
            let message = format!(
                "cannot apply {operator} with precision value {whole} value must be in [-20, 100]"
            );
            Err(failure(51083, message))
        }
    }
}

/// Through the decimal expansion of 34 digits, as MongoDB does.
fn round_double(number: f64, places: i32, rounding: Rounding) -> f64 {
    if !number.is_finite() {
        return number;
    }
    if places == 0 {
        return match rounding {
            Rounding::Down => number.trunc(),
            _ => number.round_ties_even(),
        };
    }
    decimal::to_f64(decimal::round_to_places(decimal::from_f64_nearest(number), places, rounding))
}

/// `places` is negative.
fn round_integer(number: i128, places: i32, rounding: Rounding) -> i128 {
    let unit = 10_i128.pow(places.unsigned_abs());
    let down = number / unit * unit;
    let rest = (number - down).abs() * 2;
    let is_odd = (down / unit) % 2 != 0;
    let away = matches!(rounding, Rounding::HalfEven) && (rest > unit || (rest == unit && is_odd));
    if away { down + unit * number.signum() } else { down }
}
