//! Arithmetic of Decimal128: exact in big integers, then rounded once.
//!
//! Exponents of results are those that IEEE 754 prefers: 1.20 + 1 is 2.20, 1.20 * 2 is 2.40, and
//! 6 / 2 is 3.

use bigdecimal::num_bigint::{BigInt, BigUint, Sign};

use super::{
    COEFFICIENT_MAX, EXPONENT_BIAS, EXPONENT_MAX, NAN, Parts, from_parts, infinity, parts,
};
use crate::document::value::Decimal128;

/// The direction in which digits are rounded off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// To the nearer one, from the middle to the even one.
    HalfEven,
    /// Towards zero.
    Down,
    /// Towards -Infinity.
    Floor,
    /// Towards Infinity.
    Ceiling,
}

/// A finite number.
#[derive(Clone, Copy)]
struct Finite {
    negative: bool,
    coefficient: u128,
    exponent: i32,
}

impl Finite {
    /// The coefficient with its sign, as if the exponent were `exponent`, which is no greater.
    fn scaled(&self, exponent: i32) -> BigInt {
        let scaled = power_of_ten((self.exponent - exponent) as u32) * self.coefficient;
        BigInt::from_biguint(if self.negative { Sign::Minus } else { Sign::Plus }, scaled)
    }
}

/// Adds. Infinities of both signs give NaN.
pub fn add(left: Decimal128, right: Decimal128) -> Decimal128 {
    let (left, right) = match (parts(left), parts(right)) {
        (Parts::NaN, _) | (_, Parts::NaN) => return NAN,
        (Parts::Infinity { negative: left }, Parts::Infinity { negative: right }) => {
            return if left == right { infinity(left) } else { NAN };
        }
        (Parts::Infinity { negative }, _) | (_, Parts::Infinity { negative }) => {
            return infinity(negative);
        }
        (left, right) => (finite(left), finite(right)),
    };
    let exponent = left.exponent.min(right.exponent);
    let (sign, coefficient) = (left.scaled(exponent) + right.scaled(exponent)).into_parts();
    let negative = match sign {
        Sign::Minus => true,
        Sign::Plus => false,
        Sign::NoSign => left.negative && right.negative,
    };
    rounded(negative, coefficient, exponent.into(), false)
}

/// Subtracts.
pub fn subtract(left: Decimal128, right: Decimal128) -> Decimal128 {
    add(left, super::negate(right))
}

/// Multiplies. Zero times an infinity is NaN.
pub fn multiply(left: Decimal128, right: Decimal128) -> Decimal128 {
    let (left, right) = match (parts(left), parts(right)) {
        (Parts::NaN, _) | (_, Parts::NaN) => return NAN,
        (Parts::Infinity { negative }, other) | (other, Parts::Infinity { negative }) => {
            return match other {
                Parts::Finite { coefficient: 0, .. } => NAN,
                other => infinity(negative != is_negative(other)),
            };
        }
        (left, right) => (finite(left), finite(right)),
    };
    let product = BigUint::from(left.coefficient) * right.coefficient;
    let exponent = i64::from(left.exponent) + i64::from(right.exponent);
    rounded(left.negative != right.negative, product, exponent, false)
}

/// Divides. By zero: NaN for zero and NaN, otherwise an infinity.
pub fn divide(left: Decimal128, right: Decimal128) -> Decimal128 {
    let (left_parts, right_parts) = (parts(left), parts(right));
    let negative = is_negative(left_parts) != is_negative(right_parts);
    let (left, right) = match (left_parts, right_parts) {
        (Parts::NaN, _) | (_, Parts::NaN) => return NAN,
        (Parts::Infinity { .. }, Parts::Infinity { .. }) => return NAN,
        (Parts::Infinity { .. }, _) => return infinity(negative),
        (_, Parts::Infinity { .. }) => return from_parts(negative, 0, -EXPONENT_BIAS),
        (left, right) => (finite(left), finite(right)),
    };
    if right.coefficient == 0 {
        return if left.coefficient == 0 { NAN } else { infinity(negative) };
    }
    let preferred = i64::from(left.exponent) - i64::from(right.exponent);
    if left.coefficient == 0 {
        return rounded(negative, BigUint::from(0_u8), preferred, false);
    }
    // With 70 more digits the quotient has at least 36, enough to round from.
    const MORE_DIGITS: u32 = 70;
    let divisor = BigUint::from(right.coefficient);
    let numerator = power_of_ten(MORE_DIGITS) * left.coefficient;
    let mut quotient = &numerator / &divisor;
    let is_exact = &quotient * &divisor == numerator;
    let mut exponent = preferred - i64::from(MORE_DIGITS);
    let ten = BigUint::from(10_u8);
    while is_exact && exponent < preferred && (&quotient % &ten) == BigUint::from(0_u8) {
        quotient /= &ten;
        exponent += 1;
    }
    rounded(negative, quotient, exponent, !is_exact)
}

/// Returns the remainder of dividing `left` by `right`, with the sign of `left`.
pub fn remainder(left: Decimal128, right: Decimal128) -> Decimal128 {
    let (original, left, right) = match (parts(left), parts(right)) {
        (Parts::NaN | Parts::Infinity { .. }, _) | (_, Parts::NaN) => return NAN,
        (_, Parts::Infinity { .. }) => return left,
        (finite_left, right) => (left, finite(finite_left), finite(right)),
    };
    if right.coefficient == 0 {
        return NAN;
    }
    if left.coefficient == 0 {
        return original;
    }
    let exponent = left.exponent.min(right.exponent);
    let rest = left.scaled(exponent) % right.scaled(exponent);
    rounded(left.negative, rest.into_parts().1, exponent.into(), false)
}

/// Rounds to so many digits after the point, before it where negative. Numbers that have no more
/// than that stay as they are.
pub fn round_to_places(number: Decimal128, places: i32, rounding: Rounding) -> Decimal128 {
    let Parts::Finite { negative, coefficient, exponent } = parts(number) else { return number };
    let target = places.saturating_neg().clamp(-EXPONENT_BIAS, EXPONENT_MAX);
    let Some(surplus) = u32::try_from(target - exponent).ok().filter(|surplus| 0 < *surplus) else {
        return number;
    };
    // A unit above every coefficient serves as well as a greater one.
    let unit = 10_u128.pow(surplus.min(38));
    let (quotient, rest) = (coefficient / unit, coefficient % unit);
    let is_up = match rounding {
        Rounding::HalfEven => unit < rest * 2 || (rest * 2 == unit && quotient % 2 == 1),
        Rounding::Down => false,
        Rounding::Floor => negative && rest != 0,
        Rounding::Ceiling => !negative && rest != 0,
    };
    rounded(negative, BigUint::from(quotient + u128::from(is_up)), target.into(), false)
}

/// Rounds half to even to 34 digits and to the least exponent. `is_cut` says that the number is
/// greater than the coefficient, by less than one unit; then there are 35 digits or more.
pub(super) fn rounded(
    negative: bool,
    coefficient: BigUint,
    exponent: i64,
    is_cut: bool,
) -> Decimal128 {
    let (mut coefficient, mut exponent) = (coefficient, exponent);
    let digit_count = coefficient.to_string().len() as i64;
    let surplus = (digit_count - 34).max(-i64::from(EXPONENT_BIAS) - exponent);
    if digit_count < surplus {
        (coefficient, exponent) = (BigUint::from(0_u8), exponent + surplus);
    } else if 0 < surplus {
        let unit = power_of_ten(surplus as u32);
        let quotient = &coefficient / &unit;
        let twice = (coefficient - &quotient * &unit) << 1;
        let is_odd = quotient.bit(0);
        let is_up = unit < twice || (unit == twice && (is_odd || is_cut));
        coefficient = quotient + u8::from(is_up);
        exponent += surplus;
    }
    let mut coefficient = u128::try_from(&coefficient).expect("rounded to 34 digits");
    if COEFFICIENT_MAX < coefficient {
        (coefficient, exponent) = (coefficient / 10, exponent + 1); // 999.. went up to 1000..
    }
    if coefficient == 0 {
        exponent = exponent.clamp(-i64::from(EXPONENT_BIAS), EXPONENT_MAX.into());
    }
    while i64::from(EXPONENT_MAX) < exponent {
        if COEFFICIENT_MAX / 10 < coefficient {
            return infinity(negative);
        }
        (coefficient, exponent) = (coefficient * 10, exponent - 1);
    }
    from_parts(negative, coefficient, exponent as i32)
}

fn finite(parts: Parts) -> Finite {
    match parts {
        Parts::Finite { negative, coefficient, exponent } => {
            Finite { negative, coefficient, exponent }
        }
        _ => unreachable!("infinities and NaN were handled before"),
    }
}

fn is_negative(parts: Parts) -> bool {
    match parts {
        Parts::NaN => false,
        Parts::Infinity { negative } | Parts::Finite { negative, .. } => negative,
    }
}

fn power_of_ten(exponent: u32) -> BigUint {
    BigUint::from(10_u8).pow(exponent)
}
