//! `$ceil`, `$floor`, `$round` (half to even), `$trunc`.
//!
//! *Surprises*: a decimal gets exactly the digits after the point that are asked for, zeros too.
//! Where these are more than a decimal holds, `$round` and `$trunc` give the number with all its
//! digits, `$ceil` and `$floor` NaN, as they do of infinite decimals.

use frond_doc::Decimal128;
use frond_doc::decimal::{self, Parts, Rounding};

use super::arithmetic::one_number;
use super::evaluated::Evaluated;
use super::failure;
use super::node::Answer;
use crate::error::QueryError;
use crate::number::any_type::{Number, as_i32};

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
        Some(Number::Decimal(number)) => {
            quantized(number, 0, rounding).unwrap_or(decimal::NAN).into()
        }
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
    let Some(argument) = arguments.first().filter(|argument| !argument.is_nullish()) else {
        return Ok(Evaluated::NULL); // The parser wants at least one.
    };
    let number = Number::of(argument.or_null()).ok_or_else(|| {
        let name = argument.type_name();
        failure(51081, format!("{operator} only supports numeric types, not {name}"))
    })?;
    let places = match arguments.get(1) {
        Some(places) if places.is_nullish() => return Ok(Evaluated::NULL),
        Some(places) => checked_places(operator, places)?,
        None => 0,
    };
    Ok(match number {
        Number::Double(number) => round_double(number, places, rounding).into(),
        Number::Decimal(number) if matches!(decimal::parts(number), Parts::Finite { .. }) => {
            quantized(number, places, rounding).unwrap_or_else(|| with_all_digits(number)).into()
        }
        Number::Decimal(number) => number.into(),
        integer if places >= 0 => integer.into(),
        Number::Int(number) => {
            let rounded = round_integer(i128::from(number), places, rounding);
            // A result too large for an int is a long; one too large for a long is an error.
            match i64::try_from(rounded) {
                Ok(rounded) if i64::from(i32::MAX) < rounded => rounded.into(),
                Ok(rounded) => (rounded as i32).into(),
                Err(_) => return Err(too_large(operator)),
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
    let number = Number::of(places.or_null()).ok_or_else(|| {
        let name = places.type_name();
        failure(16004, format!("can't convert from BSON type {name} to long"))
    })?;
    // Such numbers have no long at all.
    let double = number.double();
    if double.is_nan() || (number.integer().is_none() && 2_f64.powi(63) <= double.abs()) {
        let text = places.text();
        return Err(failure(31109, format!("Can't coerce out of range value {text} to long")));
    }
    let whole = as_i32(places.or_null()).ok_or_else(|| {
        failure(51082, format!("precision argument to {operator} must be a integral value"))
    })?;
    if (-20..=100).contains(&whole) {
        return Ok(whole);
    }
    let message =
        format!("cannot apply {operator} with precision value {whole} value must be in [-20, 100]");
    Err(failure(51083, message))
}

/// A decimal with exactly so many digits after the point, tens before it where negative. `None`
/// where that takes more digits than there are, or where the number isn't finite.
fn quantized(number: Decimal128, places: i32, rounding: Rounding) -> Option<Decimal128> {
    let rounded = decimal::round_to_places(number, places, rounding);
    let Parts::Finite { negative, coefficient, exponent } = decimal::parts(rounded) else {
        return None;
    };
    let zeros = u32::try_from(exponent.checked_add(places)?).ok()?;
    let scaled = match coefficient {
        0 => 0,
        _ => coefficient.checked_mul(10_u128.checked_pow(zeros)?)?,
    };
    (scaled < TEN_TO_34).then(|| decimal::from_parts(negative, scaled, -places))
}

/// The same decimal, written with all the digits that there are.
pub(super) fn with_all_digits(number: Decimal128) -> Decimal128 {
    let Parts::Finite { negative, mut coefficient, mut exponent } = decimal::parts(number) else {
        return number;
    };
    if coefficient == 0 {
        return decimal::from_parts(false, 0, EXPONENT_MIN);
    }
    while coefficient < TEN_TO_34 / 10 && EXPONENT_MIN < exponent {
        (coefficient, exponent) = (coefficient * 10, exponent - 1);
    }
    decimal::from_parts(negative, coefficient, exponent)
}

/// A coefficient has 34 digits at most.
const TEN_TO_34: u128 = 10_u128.pow(34);
const EXPONENT_MIN: i32 = -6176;

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
