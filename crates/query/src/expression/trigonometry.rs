//! `$sin`, `$acosh`, `$atan2`, `$degreesToRadians` and their like.
//!
//! Null where an argument is null or missing, 50989 for a number that the function has no value of,
//! NaN of NaN. A decimal gives a decimal, with all its digits.

use std::cmp::Ordering;
use std::f64::consts::PI;

use frond_doc::decimal::functions;
use frond_doc::{Decimal128, decimal};

use super::arithmetic::{one_number, slow};
use super::evaluated::Evaluated;
use super::failure;
use super::node::Answer;
use super::scope::Variables;
use crate::number::any_type::Number;

/// The domain of a function, and how MongoDB prints it.
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

    /// Whether a number is in it; a decimal by all of its digits, and not as the nearest double.
    fn holds(&self, number: Number) -> bool {
        let Number::Decimal(exact) = number else { return self.contains(number.double()) };
        if decimal::to_f64(exact).is_infinite() && !is_infinite(exact) {
            return self.most.is_infinite();
        }
        let is_within = |end: f64, wanted: Ordering| {
            end.is_infinite() || decimal::compare(exact, decimal::from_f64(end)) != wanted
        };
        self.contains(number.double())
            && is_within(self.least, Ordering::Less)
            && is_within(self.most, Ordering::Greater)
    }

    fn text(&self) -> String {
        let (open, close) = if self.has_ends { ('[', ']') } else { ('(', ')') };
        format!("{open}{},{}{close}", self.least, self.most)
    }
}

fn is_infinite(number: Decimal128) -> bool {
    matches!(decimal::parts(number), decimal::Parts::Infinity { .. })
}

fn apply(
    operator: &str,
    (argument, variables): (&Evaluated<'_>, &Variables),
    domain: &Domain,
    of_double: fn(f64) -> f64,
    of_decimal: fn(Decimal128) -> Decimal128,
) -> Answer<'static> {
    let Some(number) = one_number(operator, argument)? else { return Ok(Evaluated::NULL) };
    let double = number.double();
    if !double.is_nan() && !domain.holds(number) {
        let (text, bounds) = (argument.text(), domain.text());
        let message = format!("cannot apply {operator} to {text}, value must be in {bounds}");
        return Err(failure(50989, message));
    }
    match number {
        Number::Decimal(number) => slow(variables, || of_decimal(number)),
        _ => Ok(of_double(double).into()),
    }
}

macro_rules! functions {
    ($($function:ident, $name:literal, $domain:expr;)*) => {
        $(
            #[doc = concat!("`", $name, "`")]
            pub(super) fn $function<'a>(
                argument: Evaluated<'a>,
                variables: &Variables,
            ) -> Answer<'a> {
                let argument = (&argument, variables);
                apply($name, argument, &$domain, f64::$function, functions::$function)
            }
        )*
    };
}

functions! {
    acos, "$acos", UNIT;
    acosh, "$acosh", FROM_ONE;
    asin, "$asin", UNIT;
    asinh, "$asinh", ANY;
    atan, "$atan", ANY;
    atanh, "$atanh", UNIT;
    cos, "$cos", FINITE;
    cosh, "$cosh", ANY;
    sin, "$sin", FINITE;
    sinh, "$sinh", ANY;
    tan, "$tan", FINITE;
    tanh, "$tanh", ANY;
}

/// `$atan2`
pub(super) fn atan2<'a>(y: Evaluated<'a>, x: Evaluated<'a>, variables: &Variables) -> Answer<'a> {
    let number = |value: &Evaluated<'_>, code| {
        Number::of(value.or_null()).ok_or_else(|| {
            let name = value.type_name();
            failure(code, format!("$atan2 only supports numeric types, not {name}"))
        })
    };
    if y.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let y_number = number(&y, 51044)?;
    if x.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let x_number = number(&x, 51045)?;
    match (y_number, x_number) {
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) => {
            slow(variables, || functions::atan2(y_number.decimal(), x_number.decimal()))
        }
        _ => Ok(y_number.double().atan2(x_number.double()).into()),
    }
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
