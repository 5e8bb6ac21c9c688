//! Functions of Decimal128 without exact results: exponentials, logarithms, roots, angles. Each
//! result is the decimal nearest to the exact one.
//!
//! 1. A finite argument becomes a fixed-point number ([`super::fixed`]), whose function is computed
//!    with so many bits that all 34 digits are decided ([`super::decided`]).
//! 2. Arguments so small that the series' second term doesn't show ([`TINY`]), and so great that
//!    the result is an end of the range, are answered without.
//! 3. What MongoDB composes of rounded results is composed of them here, too: a logarithm to
//!    another base than 10 is the quotient of two.
//!
//! Whether a function has a value at a number is the caller's to ask; where it hasn't, NaN comes
//! out. MongoDB's own functions (Intel's library) compute with 113 bits, so their last digit may be
//! one that isn't the nearest.

use std::cmp::Ordering;

use bigdecimal::num_bigint::{BigInt, BigUint, Sign};

use super::arithmetic::rounded;
use super::decided::{Scaled, decided, fixed_point, stripped};
use super::{EXPONENT_BIAS, NAN, Parts, fixed, from_i64, from_parts, infinity, negate, parts};
use crate::document::value::Decimal128;

/// Below 10^-40, x^3 changes no digit of x.
const TINY: i64 = -40;
/// From 10^40 on, 1 changes no digit of x^2.
const GREAT: i64 = 40;
/// e^x is above the greatest decimal from here on, and e^-x below the least.
const EXP_MAX: i64 = 14_300;
/// A whole power of at most so many factors is computed exactly, and then rounded.
const EXACT_POWER_MAX: u32 = 300;

/// A finite number.
#[derive(Clone, Copy)]
struct Finite {
    negative: bool,
    coefficient: u128,
    exponent: i32,
}

impl Finite {
    /// The power of ten of its first digit.
    fn magnitude(self) -> i64 {
        let digits = self.coefficient.checked_ilog10().map_or(0, i64::from);
        digits + i64::from(self.exponent)
    }

    /// As a fixed-point number; what is behind its bits is cut off.
    fn fixed(self, bits: u64) -> BigInt {
        let power = BigUint::from(10_u8).pow(self.exponent.unsigned_abs());
        let scaled = BigUint::from(self.coefficient) << bits;
        let scaled = if self.exponent < 0 { scaled / power } else { scaled * power };
        BigInt::from_biguint(if self.negative { Sign::Minus } else { Sign::Plus }, scaled)
    }

    fn decimal(self) -> Decimal128 {
        from_parts(self.negative, self.coefficient, self.exponent)
    }

    fn is_tiny(self) -> bool {
        self.coefficient == 0 || self.magnitude() < TINY
    }
}

/// Applies a function by cases: to an infinity of this sign, or to a finite number.
fn of(
    number: Decimal128,
    of_infinity: impl Fn(bool) -> Decimal128,
    of_finite: impl Fn(Finite) -> Decimal128,
) -> Decimal128 {
    match parts(number) {
        Parts::NaN => NAN,
        Parts::Infinity { negative } => of_infinity(negative),
        Parts::Finite { negative, coefficient, exponent } => {
            of_finite(Finite { negative, coefficient, exponent })
        }
    }
}

fn signed_infinity(negative: bool) -> Decimal128 {
    infinity(negative)
}

fn not_a_number(_: bool) -> Decimal128 {
    NAN
}

/// Pi times `eighths` / 8.
fn turn(eighths: u32, negative: bool) -> Decimal128 {
    decided(|bits| Scaled::new(fixed::pi(bits) * eighths, bits as i64 + 3).negated_if(negative))
}

fn quarter_turn(negative: bool) -> Decimal128 {
    turn(4, negative)
}

/// What is too small for a decimal. (MongoDB: `0E-6176`.)
fn underflow() -> Decimal128 {
    from_parts(false, 0, -EXPONENT_BIAS)
}

/// e^x.
pub fn exp(x: Decimal128) -> Decimal128 {
    of(
        x,
        |negative| if negative { from_i64(0) } else { infinity(false) },
        |number| {
            if number.is_tiny() {
                return from_i64(1);
            }
            exponential(number.magnitude() > 5, number.negative, |bits| number.fixed(bits))
        },
    )
}

/// e^x of a fixed-point number, which may be any; it is known by its sign if it is great.
fn exponential(is_great: bool, negative: bool, x: impl Fn(u64) -> BigInt) -> Decimal128 {
    if is_great {
        return if negative { underflow() } else { infinity(false) };
    }
    decided(|bits| {
        let end = BigInt::from(EXP_MAX) << bits;
        let (mantissa, power) = fixed::exp(&x(bits).clamp(-&end, end), bits);
        Scaled::new(mantissa, bits as i64 - power)
    })
}

/// The natural logarithm, as a fixed-point number.
fn ln_of(number: Finite, bits: u64) -> BigInt {
    let coefficient = BigInt::from(number.coefficient) << bits;
    fixed::ln(&coefficient, bits) + ln_ten(bits) * number.exponent
}

fn ln_ten(bits: u64) -> BigInt {
    fixed::ln(&(BigInt::from(10) << bits), bits)
}

/// A logarithm, of which `of_finite` gives that of a positive number.
fn logarithm(x: Decimal128, of_finite: impl Fn(Finite, u64) -> BigInt) -> Decimal128 {
    of(
        x,
        |negative| if negative { NAN } else { infinity(false) },
        |number| match number.negative || number.coefficient == 0 {
            true => NAN,
            false => decided(|bits| fixed_point(of_finite(number, bits), bits)),
        },
    )
}

/// The natural logarithm.
pub fn ln(x: Decimal128) -> Decimal128 {
    logarithm(x, ln_of)
}

/// The logarithm to the base ten.
pub fn log10(x: Decimal128) -> Decimal128 {
    logarithm(x, |number, bits| fixed::divide(&ln_of(number, bits), &ln_ten(bits), bits))
}

/// The logarithm to a base: the quotient of two natural ones that were rounded, as MongoDB has it.
pub fn log(x: Decimal128, base: Decimal128) -> Decimal128 {
    super::divide(ln(x), ln(base))
}

/// The square root.
pub fn sqrt(x: Decimal128) -> Decimal128 {
    of(
        x,
        |negative| if negative { NAN } else { infinity(false) },
        |number| {
            let Finite { negative, coefficient, exponent } = number;
            if coefficient == 0 {
                return from_parts(negative, 0, exponent / 2);
            }
            if negative {
                return NAN;
            }
            // With 80 digits more the root has 40 at least; an odd exponent gives one of them away.
            let more = if exponent % 2 == 0 { 80 } else { 81 };
            let scaled = BigUint::from(coefficient) * BigUint::from(10_u8).pow(more);
            let root = scaled.sqrt();
            let is_exact = &root * &root == scaled;
            let half = (i64::from(exponent) - i64::from(more)) / 2;
            let number = rounded(false, root, half, !is_exact);
            if is_exact { stripped(number, exponent.div_euclid(2)) } else { number }
        },
    )
}

/// x to the power of y. Of zero to a negative power, and of negative numbers to powers that aren't
/// whole: NaN.
pub fn power(x: Decimal128, y: Decimal128) -> Decimal128 {
    let one = from_i64(1);
    if super::compare(y, from_i64(0)).is_eq() || super::compare(x, one).is_eq() {
        return one;
    }
    let (Parts::Finite { .. }, Parts::Finite { .. }) = (parts(x), parts(y)) else {
        // Zero, an infinity or NaN, as doubles have it too.
        return super::from_f64(super::to_f64(x).powf(super::to_f64(y)));
    };
    of(x, not_a_number, |base| of(y, not_a_number, |exponent| power_of(base, exponent)))
}

fn power_of(base: Finite, exponent: Finite) -> Decimal128 {
    let whole = whole(exponent);
    if base.coefficient == 0 {
        return if exponent.negative { NAN } else { from_i64(0) };
    }
    if base.negative && whole.is_none() {
        return NAN;
    }
    let negative = base.negative && whole == Some(Parity::Odd);
    let times = u32::try_from(exponent.coefficient).ok().filter(|_| exponent.exponent == 0);
    if let Some(times) = times.filter(|times| *times <= EXACT_POWER_MAX) {
        return exact_power(base, exponent.negative, times, negative);
    }
    let base = Finite { negative: false, ..base };
    let growth = super::compare(base.decimal(), from_i64(1));
    if growth.is_eq() {
        return if negative { from_i64(-1) } else { from_i64(1) };
    }
    let magnitude = if exponent.magnitude() < 2 * TINY {
        from_i64(1)
    } else {
        exponential(exponent.magnitude() > GREAT, growth.is_lt() != exponent.negative, |bits| {
            fixed::multiply(&ln_of(base, bits), &exponent.fixed(bits), bits)
        })
    };
    if negative { negate(magnitude) } else { magnitude }
}

/// The power of at most [`EXACT_POWER_MAX`] factors, rounded once.
fn exact_power(base: Finite, is_inverse: bool, times: u32, negative: bool) -> Decimal128 {
    let coefficient = BigUint::from(base.coefficient).pow(times);
    let exponent = i64::from(base.exponent) * i64::from(times);
    if !is_inverse {
        return rounded(negative, coefficient, exponent, false);
    }
    // 1 / c with 45 digits: as many more as c has.
    let places = coefficient.bits() as i64 * 30_103 / 100_000 + 46;
    let one = BigUint::from(10_u8).pow(places as u32);
    let quotient = &one / &coefficient;
    let is_exact = &quotient * &coefficient == one;
    let number = rounded(negative, quotient, -places - exponent, !is_exact);
    if is_exact { stripped(number, 0) } else { number }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Parity {
    Even,
    Odd,
}

/// The parity of a number that is whole; `None` for others.
fn whole(number: Finite) -> Option<Parity> {
    let parity = |units: u128| if units.is_multiple_of(2) { Parity::Even } else { Parity::Odd };
    if number.exponent > 0 {
        return Some(Parity::Even);
    }
    let unit = 10_u128.checked_pow(number.exponent.unsigned_abs()).unwrap_or(u128::MAX);
    number.coefficient.is_multiple_of(unit).then(|| parity(number.coefficient / unit))
}

/// Applies an odd function: of what is tiny, itself.
fn odd(
    x: Decimal128,
    of_infinity: impl Fn(bool) -> Decimal128,
    function: impl Fn(Finite) -> Decimal128,
) -> Decimal128 {
    of(x, of_infinity, |number| if number.is_tiny() { x } else { function(number) })
}

fn turned(number: Finite, bits: u64) -> (BigInt, BigInt) {
    fixed::sine_and_cosine(&number.fixed(bits), bits)
}

/// The sine.
pub fn sin(x: Decimal128) -> Decimal128 {
    odd(x, not_a_number, |number| decided(|bits| fixed_point(turned(number, bits).0, bits)))
}

/// The cosine.
pub fn cos(x: Decimal128) -> Decimal128 {
    of(x, not_a_number, |number| match number.is_tiny() {
        true => from_i64(1),
        false => decided(|bits| fixed_point(turned(number, bits).1, bits)),
    })
}

/// The tangent.
pub fn tan(x: Decimal128) -> Decimal128 {
    odd(x, not_a_number, |number| {
        decided(|bits| {
            let (sine, cosine) = turned(number, bits);
            debug_assert!(cosine.sign() != Sign::NoSign, "no decimal is so near to a pole");
            fixed_point(fixed::divide(&sine, &cosine, bits), bits)
        })
    })
}

/// The arc tangent.
pub fn atan(x: Decimal128) -> Decimal128 {
    odd(x, quarter_turn, |number| match number.magnitude() > GREAT {
        true => quarter_turn(number.negative),
        false => decided(|bits| fixed_point(fixed::arc_tangent(&number.fixed(bits), bits), bits)),
    })
}

/// The angle of the point (x, y); a zero's sign says on which side of an axis it lies.
pub fn atan2(y: Decimal128, x: Decimal128) -> Decimal128 {
    match (parts(y), parts(x)) {
        (Parts::NaN, _) | (_, Parts::NaN) => NAN,
        (Parts::Infinity { negative }, Parts::Infinity { negative: is_left }) => {
            turn(if is_left { 6 } else { 2 }, negative)
        }
        (Parts::Infinity { negative }, Parts::Finite { .. }) => quarter_turn(negative),
        (Parts::Finite { negative, .. }, Parts::Infinity { negative: is_left }) => {
            flat_angle(negative, is_left)
        }
        (
            Parts::Finite { negative, coefficient, exponent },
            Parts::Finite { negative: is_left, coefficient: width, exponent: width_exponent },
        ) => {
            let y = Finite { negative, coefficient, exponent };
            let x = Finite { negative: is_left, coefficient: width, exponent: width_exponent };
            angle_of(y, x)
        }
    }
}

/// The angle of a point on the x axis. (MongoDB's zero is `0E-6176`.)
fn flat_angle(negative: bool, is_left: bool) -> Decimal128 {
    if is_left { turn(8, negative) } else { from_parts(negative, 0, -EXPONENT_BIAS) }
}

fn angle_of(y: Finite, x: Finite) -> Decimal128 {
    if y.coefficient == 0 {
        return flat_angle(y.negative, x.negative);
    }
    let steepness = y.magnitude() - x.magnitude();
    if x.coefficient == 0 || GREAT < steepness {
        return quarter_turn(y.negative);
    }
    let is_flat = steepness < TINY;
    if is_flat && !x.negative {
        return super::divide(y.decimal(), x.decimal());
    }
    decided(|bits| {
        let slope = if is_flat { BigInt::from(0) } else { quotient(y, x, bits) };
        let angle = fixed::arc_tangent(&slope, bits);
        let angle = if x.negative { fixed::pi(bits) - angle } else { angle };
        fixed_point(angle, bits).negated_if(y.negative)
    })
}

/// |y| / |x| as a fixed-point number.
fn quotient(y: Finite, x: Finite, bits: u64) -> BigInt {
    let tens = BigUint::from(10_u8).pow(y.exponent.abs_diff(x.exponent));
    let (mut above, mut below) = (BigUint::from(y.coefficient), BigUint::from(x.coefficient));
    if y.exponent < x.exponent {
        below *= tens
    } else {
        above *= tens
    }
    BigInt::from_biguint(Sign::Plus, (above << bits) / below)
}

/// 1 - x^2 of a number.
fn rest_of_square(number: Finite, bits: u64) -> BigInt {
    let x = number.fixed(bits);
    fixed::one(bits) - fixed::multiply(&x, &x, bits)
}

fn magnitude_to_one(number: Finite) -> Ordering {
    super::compare(Finite { negative: false, ..number }.decimal(), from_i64(1))
}

/// The arc sine of a number from -1 to 1, as a fixed-point number.
fn arc_sine(number: Finite, bits: u64) -> BigInt {
    if magnitude_to_one(number).is_eq() {
        let quarter = fixed::pi(bits) >> 1_u32;
        return if number.negative { -quarter } else { quarter };
    }
    let rest = fixed::root(&rest_of_square(number, bits), bits);
    fixed::arc_tangent(&fixed::divide(&number.fixed(bits), &rest, bits), bits)
}

/// The arc sine.
pub fn asin(x: Decimal128) -> Decimal128 {
    odd(x, not_a_number, |number| match magnitude_to_one(number).is_gt() {
        true => NAN,
        false => decided(|bits| fixed_point(arc_sine(number, bits), bits)),
    })
}

/// The arc cosine.
pub fn acos(x: Decimal128) -> Decimal128 {
    of(x, not_a_number, |number| match magnitude_to_one(number).is_gt() {
        true => NAN,
        false => {
            decided(|bits| fixed_point((fixed::pi(bits) >> 1_u32) - arc_sine(number, bits), bits))
        }
    })
}

/// e^x and e^-x, where both are fixed-point numbers: up to 100.
fn exponentials(number: Finite, bits: u64) -> (BigInt, BigInt) {
    let (mantissa, power) = fixed::exp(&number.fixed(bits), bits);
    let up =
        if power < 0 { mantissa >> power.unsigned_abs() } else { mantissa << power.unsigned_abs() };
    let down = fixed::divide(&fixed::one(bits), &up, bits);
    (up, down)
}

/// Half of e^|x|, where e^-|x| doesn't show.
fn half_exponential(number: Finite, negative: bool) -> Decimal128 {
    let x = Finite { negative: false, ..number };
    let end = from_i64(EXP_MAX);
    if super::compare(x.decimal(), end).is_gt() {
        return infinity(negative);
    }
    decided(|bits| {
        let (mantissa, power) = fixed::exp(&x.fixed(bits), bits);
        Scaled::new(mantissa, bits as i64 - power + 1).negated_if(negative)
    })
}

/// The hyperbolic sine.
pub fn sinh(x: Decimal128) -> Decimal128 {
    odd(x, signed_infinity, |number| match number.magnitude() > 1 {
        true => half_exponential(number, number.negative),
        false => decided(|bits| {
            let (up, down) = exponentials(number, bits);
            Scaled::new(up - down, bits as i64 + 1)
        }),
    })
}

/// The hyperbolic cosine.
pub fn cosh(x: Decimal128) -> Decimal128 {
    of(
        x,
        |_| infinity(false),
        |number| {
            if number.is_tiny() {
                return from_i64(1);
            }
            if number.magnitude() > 1 {
                return half_exponential(number, false);
            }
            decided(|bits| {
                let (up, down) = exponentials(number, bits);
                Scaled::new(up + down, bits as i64 + 1)
            })
        },
    )
}

/// The hyperbolic tangent.
pub fn tanh(x: Decimal128) -> Decimal128 {
    let end = |negative| from_i64(if negative { -1 } else { 1 });
    odd(x, end, |number| {
        if number.magnitude() > 1 {
            return end(number.negative);
        }
        decided(|bits| {
            let (up, down) = exponentials(number, bits);
            fixed_point(fixed::divide(&(&up - &down), &(&up + &down), bits), bits)
        })
    })
}

/// The inverse of [`sinh`].
pub fn asinh(x: Decimal128) -> Decimal128 {
    odd(x, signed_infinity, |number| {
        let positive = Finite { negative: false, ..number };
        decided(|bits| {
            let logarithm = if GREAT < number.magnitude() {
                ln_of(positive, bits) + fixed::ln_two(bits)
            } else {
                let x = positive.fixed(bits);
                let square = fixed::multiply(&x, &x, bits) + fixed::one(bits);
                fixed::ln(&(x + fixed::root(&square, bits)), bits)
            };
            fixed_point(logarithm, bits).negated_if(number.negative)
        })
    })
}

/// The inverse of [`cosh`].
pub fn acosh(x: Decimal128) -> Decimal128 {
    of(
        x,
        |negative| if negative { NAN } else { infinity(false) },
        |number| {
            if super::compare(x, from_i64(1)).is_lt() {
                return NAN;
            }
            decided(|bits| {
                if GREAT < number.magnitude() {
                    return fixed_point(ln_of(number, bits) + fixed::ln_two(bits), bits);
                }
                let root = fixed::root(&-rest_of_square(number, bits), bits);
                fixed_point(fixed::ln(&(number.fixed(bits) + root), bits), bits)
            })
        },
    )
}

/// The inverse of [`tanh`].
pub fn atanh(x: Decimal128) -> Decimal128 {
    odd(x, not_a_number, |number| match magnitude_to_one(number) {
        Ordering::Greater => NAN,
        Ordering::Equal => infinity(number.negative),
        Ordering::Less => decided(|bits| {
            let (x, one) = (number.fixed(bits), fixed::one(bits));
            let logarithm = fixed::ln(&fixed::divide(&(&one + &x), &(&one - &x), bits), bits);
            Scaled::new(logarithm, bits as i64 + 1)
        }),
    })
}

#[cfg(test)]
mod tests;
