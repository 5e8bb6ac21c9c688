//! Decimal128: its parts, comparison, conversion, text and arithmetic.
//!
//! A number is coefficient * 10^exponent with at most 34 digits, and 1.0 and 1.00 are different
//! bytes with the same value. Results that need more digits are rounded half to even.

mod arithmetic;
mod decided;
mod fixed;
pub mod functions;
mod text;

use std::cmp::Ordering;

pub use arithmetic::{Rounding, add, divide, multiply, remainder, round_to_places, subtract};
pub use text::{parse, to_string, underflows};

use crate::document::value::Decimal128;

/// The greatest significand: 34 nines.
pub const COEFFICIENT_MAX: u128 = 9_999_999_999_999_999_999_999_999_999_999_999;
/// The difference between the stored exponent and the real one.
pub const EXPONENT_BIAS: i32 = 6176;
/// The greatest exponent; the least is the bias negated.
pub const EXPONENT_MAX: i32 = 6111;

/// A Decimal128 taken apart: sign, coefficient and power of ten, or a value that is not a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parts {
    /// Not a number, of any payload and sign.
    NaN,
    /// Infinity.
    Infinity {
        /// Whether below all numbers.
        negative: bool,
    },
    /// coefficient * 10^exponent.
    Finite {
        /// Its sign; a zero has one too.
        negative: bool,
        /// At most [`COEFFICIENT_MAX`].
        coefficient: u128,
        /// Between -6176 and 6111.
        exponent: i32,
    },
}

/// Takes a number apart. A significand that isn't canonical counts as 0, as IEEE 754 says.
pub fn parts(number: Decimal128) -> Parts {
    let bits = u128::from_le_bytes(number.0);
    let negative = bits >> 127 == 1;
    let combination = (bits >> 122) as u8 & 0x1f;
    if combination == 0x1f {
        return Parts::NaN;
    }
    if combination == 0x1e {
        return Parts::Infinity { negative };
    }
    let (biased, coefficient) = if combination >> 3 == 3 {
        ((bits >> 111) & 0x3fff, 0) // The second form: always above 10^34 - 1.
    } else {
        let significand = bits & ((1 << 113) - 1);
        let is_canonical = significand <= COEFFICIENT_MAX;
        ((bits >> 113) & 0x3fff, if is_canonical { significand } else { 0 })
    };
    Parts::Finite { negative, coefficient, exponent: biased as i32 - EXPONENT_BIAS }
}

/// Puts a number together. `coefficient` and `exponent` are within their bounds (asserted).
pub fn from_parts(negative: bool, coefficient: u128, exponent: i32) -> Decimal128 {
    assert!(coefficient <= COEFFICIENT_MAX, "a coefficient has at most 34 digits");
    assert!((-EXPONENT_BIAS..=EXPONENT_MAX).contains(&exponent), "exponent {exponent}");
    let biased = (exponent + EXPONENT_BIAS) as u128;
    Decimal128((u128::from(negative) << 127 | biased << 113 | coefficient).to_le_bytes())
}

/// Converts an integer, exactly.
pub fn from_i64(number: i64) -> Decimal128 {
    from_parts(number < 0, u128::from(number.unsigned_abs()), 0)
}

/// Compares by mathematical value: zeros are equal, NaN equals NaN and is less than all others.
pub fn compare(left: Decimal128, right: Decimal128) -> Ordering {
    rank(parts(left)).cmp(&rank(parts(right))).then_with(|| match (parts(left), parts(right)) {
        (
            Parts::Finite { negative, coefficient: left, exponent: left_exponent },
            Parts::Finite { coefficient: right, exponent: right_exponent, .. },
        ) if left != 0 => {
            let order = normalised(left, left_exponent).cmp(&normalised(right, right_exponent));
            if negative { order.reverse() } else { order }
        }
        _ => Ordering::Equal,
    })
}

/// NaN, -Infinity, below zero, zero, above zero, Infinity.
fn rank(parts: Parts) -> u8 {
    match parts {
        Parts::NaN => 0,
        Parts::Infinity { negative } => 1 + 4 * u8::from(!negative),
        Parts::Finite { coefficient: 0, .. } => 3,
        Parts::Finite { negative, .. } => 2 + 2 * u8::from(!negative),
    }
}

/// Shifts a coefficient that isn't 0 to 34 digits: magnitudes compare as (exponent, coefficient).
pub(crate) fn normalised(coefficient: u128, exponent: i32) -> (i32, u128) {
    let missing = 33 - coefficient.ilog10();
    (exponent - missing as i32, coefficient * 10_u128.pow(missing))
}

/// Not a number.
pub const NAN: Decimal128 = Decimal128((0x1f_u128 << 122).to_le_bytes());

/// Infinity of either sign.
pub fn infinity(negative: bool) -> Decimal128 {
    Decimal128((u128::from(negative) << 127 | 0x1e_u128 << 122).to_le_bytes())
}

/// The same number with the other sign.
pub fn negate(number: Decimal128) -> Decimal128 {
    Decimal128((u128::from_le_bytes(number.0) ^ 1 << 127).to_le_bytes())
}

/// Converts a double as MongoDB does: to 15 significant digits, which are what a double is good
/// for.
/// 5.5 gives 5.50000000000000.
pub fn from_f64(number: f64) -> Decimal128 {
    if number == 0.0 {
        return from_parts(number.is_sign_negative(), 0, 0);
    }
    from_digits_of(number, 14)
}

/// Converts a double to the nearest Decimal128, 34 digits of it.
pub fn from_f64_nearest(number: f64) -> Decimal128 {
    from_digits_of(number, 33)
}

fn from_digits_of(number: f64, digits_after_point: usize) -> Decimal128 {
    if number.is_nan() {
        return NAN;
    }
    if number.is_infinite() {
        return infinity(number < 0.0);
    }
    let digits = format!("{number:.digits_after_point$e}");
    parse(&digits).expect("the digits of a double are a decimal in range")
}

/// Converts to the nearest double, Infinity if that is too small.
pub fn to_f64(number: Decimal128) -> f64 {
    to_string(number).parse().expect("a decimal is written as a double can be")
}

/// Converts to an integer, cut towards zero; `None` if that doesn't fit, or isn't a number.
pub fn to_i64(number: Decimal128) -> Option<i64> {
    let Parts::Finite { negative, coefficient, exponent } = parts(number) else { return None };
    let magnitude = match u32::try_from(exponent) {
        Ok(_) if coefficient == 0 => 0,
        Ok(tens) => coefficient.checked_mul(10_u128.checked_pow(tens)?)?,
        Err(_) => 10_u128.checked_pow(exponent.unsigned_abs()).map_or(0, |unit| coefficient / unit),
    };
    let magnitude = i128::try_from(magnitude).ok()?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

#[cfg(test)]
mod tests;
