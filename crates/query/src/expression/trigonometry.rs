//! `$sin`, `$acosh`, `$atan2`, `$degreesToRadians` and their like.
//!
//! Null where an argument is null or missing, 50989 for a number that the function has no value of,
//! NaN of NaN. A decimal gives a decimal, computed with a double's digits except where degrees and
//! radians are turned into each other.

use std::f64::consts::PI;

use frond_doc::{Decimal128, decimal};

use super::arithmetic::one_number;
use super::evaluated::Evaluated;
use super::failure;
use super::node::Answer;
use super::number::Number;

/// Which numbers a function takes, and how MongoDB prints that.
struct Domain {
    least: f64,
    most: f64,
    has_ends: bool,
}

const ANY: Domain = Domain { least: f64::NEG_INFINITY, most: f64::INFINITY, has_ends: true };
const FINITE: Domain = Domain { least: f64::NEG_INFINITY, most: f64::INFINITY, has_ends: false };
const UNIT: Domain = Domain { least: -1.0, most: 1.0, has_ends: true };
const FROM_ONE: Domain = Domain { least: 1.0, most: f64::INFINITY, has_ends: true };

impl Domain {
    fn contains(&self, number: f64) -> bool {
        match self.has_ends {
            true => self.least <= number && number <= self.most,
            false => self.least < number && number < self.most,
        }
    }

    fn text(&self) -> String {
        let (open, close) = if self.has_ends { ('[', ']') } else { ('(', ')') };
        format!("{open}{},{}{close}", self.least, self.most)
    }
}

fn apply(
    operator: &str,
    argument: &Evaluated<'_>,
    domain: &Domain,
    function: fn(f64) -> f64,
) -> Answer<'static> {
    let Some(number) = one_number(operator, argument)? else { return Ok(Evaluated::NULL) };
    let double = number.double();
    if !double.is_nan() && !domain.contains(double) {
        let (text, bounds) = (argument.text(), domain.text());
        let message = format!("cannot apply {operator} to {text}, value must be in {bounds}");
        return Err(failure(50989, message));
    }
    Ok(match number {
        Number::Decimal(_) => decimal::from_f64(function(double)).into(),
        _ => function(double).into(),
    })
}

macro_rules! functions {
    ($($function:ident, $name:literal, $domain:expr, $of:expr;)*) => {
        $(
            #[doc = concat!("`", $name, "`")]
            pub(super) fn $function(argument: Evaluated<'_>) -> Answer<'_> {
                apply($name, &argument, &$domain, $of)
            }
        )*
    };
}

functions! {
    acos, "$acos", UNIT, f64::acos;
    acosh, "$acosh", FROM_ONE, f64::acosh;
    asin, "$asin", UNIT, f64::asin;
    asinh, "$asinh", ANY, f64::asinh;
    atan, "$atan", ANY, f64::atan;
    atanh, "$atanh", UNIT, f64::atanh;
    cos, "$cos", FINITE, f64::cos;
    cosh, "$cosh", ANY, f64::cosh;
    sin, "$sin", FINITE, f64::sin;
    sinh, "$sinh", ANY, f64::sinh;
    tan, "$tan", FINITE, f64::tan;
    tanh, "$tanh", ANY, f64::tanh;
}

/// `$atan2`
pub(super) fn atan2<'a>(y: Evaluated<'a>, x: Evaluated<'a>) -> Answer<'a> {
    if y.is_nullish() || x.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let number = |value: &Evaluated<'_>, code| {
        Number::of(value.or_null()).ok_or_else(|| {
            let (y, x) = (y.type_name(), x.type_name());
            failure(code, format!("$atan2 only supports numeric types, not {y} and {x}"))
        })
    };
    let (y_number, x_number) = (number(&y, 51044)?, number(&x, 51045)?);
    let angle = y_number.double().atan2(x_number.double());
    Ok(match (y_number, x_number) {
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) => decimal::from_f64(angle).into(),
        _ => angle.into(),
    })
}

/// Multiplies by a constant, a decimal by all of its digits.
fn scale(operator: &str, argument: &Evaluated<'_>, by: f64, digits: &str) -> Answer<'static> {
    Ok(match one_number(operator, argument)? {
        None => Evaluated::NULL,
        Some(Number::Decimal(number)) => decimal::multiply(number, constant(digits)).into(),
        Some(number) => (number.double() * by).into(),
    })
}

fn constant(digits: &str) -> Decimal128 {
    decimal::parse(digits).expect("a constant's digits are a decimal")
}

/// `$degreesToRadians`
pub(super) fn degrees_to_radians(argument: Evaluated<'_>) -> Answer<'_> {
    let digits = "0.01745329251994329576923690768488613";
    scale("$degreesToRadians", &argument, PI / 180.0, digits)
}

/// `$radiansToDegrees`
pub(super) fn radians_to_degrees(argument: Evaluated<'_>) -> Answer<'_> {
    let digits = "57.29577951308232087679815481410517";
    scale("$radiansToDegrees", &argument, 180.0 / PI, digits)
}
