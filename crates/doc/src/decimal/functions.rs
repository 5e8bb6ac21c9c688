//! Functions of Decimal128 without exact results, to all 34 digits: exponentials, logarithms,
//! roots, angles.
//!
//! 1. A finite argument becomes a fixed-point number of [`BITS`] bits behind the point
//!    ([`super::fixed`]).
//! 2. The function is computed to [`DIGITS`] digits at least, and these are rounded: half to even
//!    where nothing but zeros follows the half. So many nines or zeros are an exact result's, since
//!    none of these functions but powers and logarithms has other rational results, and those that
//!    powers and logarithms have are short. A result with few digits (`log10(1000)`, `sqrt(6.25)`)
//!    has no zeros behind them.
//! 3. Arguments so small that the series' second term doesn't show ([`TINY`]), and so great that
//!    the result is an end of the range, are answered without.
//!
//! Whether a function has a value at a number is the caller's to ask; where it hasn't, NaN comes
//! out.

use bigdecimal::num_bigint::{BigInt, BigUint, Sign};

use super::arithmetic::rounded;
use super::{NAN, Parts, fixed, from_i64, from_parts, infinity, negate, parts};
use crate::document::value::Decimal128;

/// Bits behind the point: 34 digits of a result as small as 10^-40, and some to spare.
const BITS: u64 = 448;
/// Digits that are right of each result.
const DIGITS: i64 = 80;
/// Zeros at the end of these are an exact result's.
const DIGITS_BEHIND: u32 = 40;
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

/// The decimal nearest to `number` / 2^`bits`.
fn decimal(number: &BigInt, bits: i64) -> Decimal128 {
    if number.sign() == Sign::NoSign {
        return from_i64(0);
    }
    let (sign, magnitude) = (number.sign(), number.magnitude());
    // Log10 of 2 is 30103 / 100000.
    let digits = (magnitude.bits() as i64 - bits) * 30_103 / 100_000;
    let places = DIGITS - digits;
    let power = BigUint::from(10_u8).pow(places.unsigned_abs() as u32);
    let (mut above, mut below) = (magnitude.clone(), BigUint::from(1_u8));
    if places < 0 {
        below = power
    } else {
        above *= power
    }
    if bits < 0 {
        above <<= bits.unsigned_abs()
    } else {
        below <<= bits.unsigned_abs()
    }
    let nearest = ((above << 1_u32) + &below) / (below << 1_u32);
    let is_exact = &nearest % BigUint::from(10_u8).pow(DIGITS_BEHIND) == BigUint::from(0_u8);
    let number = rounded(sign == Sign::Minus, nearest, -places, false);
    if is_exact { stripped(number, 0) } else { number }
}

/// Returns an exact result with the exponent that is nearest to the preferred one. A rounded result
/// has all 34 digits, trailing zeros included.
fn stripped(number: Decimal128, preferred: i32) -> Decimal128 {
    let Parts::Finite { negative, mut coefficient, mut exponent } = parts(number) else {
        return number;
    };
    while exponent < preferred && coefficient != 0 && coefficient % 10 == 0 {
        (coefficient, exponent) = (coefficient / 10, exponent + 1);
    }
    from_parts(negative, coefficient, exponent)
}

fn of_fixed(number: &BigInt) -> Decimal128 {
    decimal(number, BITS as i64)
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

fn quarter_turn(negative: bool) -> Decimal128 {
    let quarter = decimal(&fixed::pi(BITS), BITS as i64 + 1);
    if negative { negate(quarter) } else { quarter }
}

/// e^x.
pub fn exp(x: Decimal128) -> Decimal128 {
    let end = |negative| if negative { from_i64(0) } else { infinity(false) };
    of(x, end, |number| {
        if number.is_tiny() {
            return from_i64(1);
        }
        if number.magnitude() > 5 {
            return end(number.negative);
        }
        exp_of(&number.fixed(BITS))
    })
}

/// e^x of a fixed-point number, which may be any.
fn exp_of(x: &BigInt) -> Decimal128 {
    if *x.magnitude() > (BigUint::from(EXP_MAX as u64) << BITS) {
        return if x.sign() == Sign::Minus { from_i64(0) } else { infinity(false) };
    }
    let (mantissa, power) = fixed::exp(x, BITS);
    decimal(&mantissa, BITS as i64 - power)
}

/// The natural logarithm, as a fixed-point number.
fn ln_of(number: Finite) -> BigInt {
    let coefficient = BigInt::from(number.coefficient) << BITS;
    let ten = fixed::ln(&(BigInt::from(10) << BITS), BITS);
    fixed::ln(&coefficient, BITS) + ten * number.exponent
}

fn has_no_logarithm(number: Finite) -> bool {
    number.negative || number.coefficient == 0
}

/// The natural logarithm.
pub fn ln(x: Decimal128) -> Decimal128 {
    of(
        x,
        |negative| if negative { NAN } else { infinity(false) },
        |number| {
            if has_no_logarithm(number) { NAN } else { of_fixed(&ln_of(number)) }
        },
    )
}

/// The logarithm to the base ten.
pub fn log10(x: Decimal128) -> Decimal128 {
    log(x, from_i64(10))
}

/// The logarithm to a base.
pub fn log(x: Decimal128, base: Decimal128) -> Decimal128 {
    let (Parts::Finite { .. }, Parts::Finite { .. }) = (parts(x), parts(base)) else {
        return super::divide(ln(x), ln(base));
    };
    of(x, not_a_number, |number| {
        of(base, not_a_number, |base| {
            if has_no_logarithm(number) || has_no_logarithm(base) {
                return NAN;
            }
            let base = ln_of(base);
            if base.sign() == Sign::NoSign {
                return NAN;
            }
            of_fixed(&fixed::divide(&ln_of(number), &base, BITS))
        })
    })
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
    let logarithm = ln_of(Finite { negative: false, ..base });
    let magnitude = if exponent.magnitude() > GREAT {
        let grows = (logarithm.sign() == Sign::Plus) != exponent.negative;
        if grows { infinity(false) } else { from_i64(0) }
    } else if exponent.magnitude() < 2 * TINY {
        from_i64(1)
    } else {
        exp_of(&fixed::multiply(&logarithm, &exponent.fixed(BITS), BITS))
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

fn turned(number: Finite) -> (BigInt, BigInt) {
    fixed::sine_and_cosine(&number.fixed(BITS), BITS)
}

/// The sine.
pub fn sin(x: Decimal128) -> Decimal128 {
    odd(x, not_a_number, |number| of_fixed(&turned(number).0))
}

/// The cosine.
pub fn cos(x: Decimal128) -> Decimal128 {
    of(x, not_a_number, |number| match number.is_tiny() {
        true => from_i64(1),
        false => of_fixed(&turned(number).1),
    })
}

/// The tangent.
pub fn tan(x: Decimal128) -> Decimal128 {
    odd(x, not_a_number, |number| {
        let (sine, cosine) = turned(number);
        if cosine.sign() == Sign::NoSign {
            return NAN;
        }
        of_fixed(&fixed::divide(&sine, &cosine, BITS))
    })
}

/// The arc tangent.
pub fn atan(x: Decimal128) -> Decimal128 {
    odd(x, quarter_turn, |number| match number.magnitude() > GREAT {
        true => quarter_turn(number.negative),
        false => of_fixed(&fixed::arc_tangent(&number.fixed(BITS), BITS)),
    })
}

/// The angle of the point (x, y).
pub fn atan2(y: Decimal128, x: Decimal128) -> Decimal128 {
    let (Parts::Finite { .. }, Parts::Finite { .. }) = (parts(y), parts(x)) else {
        return super::from_f64(super::to_f64(y).atan2(super::to_f64(x)));
    };
    let (up, right) = (sign_of(y), sign_of(x));
    match (right, up) {
        (0, 0) => super::from_f64(super::to_f64(y).atan2(super::to_f64(x))),
        (0, _) => quarter_turn(up < 0),
        (1, 0) => super::divide(y, x),
        _ => of(y, not_a_number, |y| of(x, not_a_number, |x| angle_of(y, x))),
    }
}

/// The angle of a point that lies on neither half of the y axis, nor on the right half of the x
/// axis.
fn angle_of(y: Finite, x: Finite) -> Decimal128 {
    let steepness = if y.coefficient == 0 { i64::MIN } else { y.magnitude() - x.magnitude() };
    if steepness > GREAT {
        return quarter_turn(y.negative);
    }
    let is_flat = steepness < TINY;
    if is_flat && !x.negative {
        return super::divide(y.decimal(), x.decimal());
    }
    let slope = if is_flat { BigInt::from(0) } else { quotient(y, x) };
    let mut angle = fixed::arc_tangent(&slope, BITS);
    if x.negative {
        angle = fixed::pi(BITS) - angle;
    }
    of_fixed(&if y.negative { -angle } else { angle })
}

/// |y| / |x| as a fixed-point number.
fn quotient(y: Finite, x: Finite) -> BigInt {
    let tens = BigUint::from(10_u8).pow(y.exponent.abs_diff(x.exponent));
    let (mut above, mut below) = (BigUint::from(y.coefficient), BigUint::from(x.coefficient));
    if y.exponent < x.exponent {
        below *= tens
    } else {
        above *= tens
    }
    BigInt::from_biguint(Sign::Plus, (above << BITS) / below)
}

fn sign_of(number: Decimal128) -> i32 {
    super::compare(number, from_i64(0)) as i32
}

/// 1 - x^2 of a number, and whether that is below zero.
fn rest_of_square(number: Finite) -> BigInt {
    let x = number.fixed(BITS);
    fixed::one(BITS) - fixed::multiply(&x, &x, BITS)
}

/// The arc sine, as a fixed-point number; `None` outside -1 to 1.
fn arc_sine(number: Finite) -> Option<BigInt> {
    if number.coefficient != 0 && number.magnitude() > 1 {
        return None;
    }
    let rest = rest_of_square(number);
    match rest.sign() {
        Sign::Minus => None,
        Sign::NoSign => {
            let quarter = fixed::pi(BITS) >> 1_u32;
            Some(if number.negative { -quarter } else { quarter })
        }
        Sign::Plus => {
            let tangent = fixed::divide(&number.fixed(BITS), &fixed::root(&rest, BITS), BITS);
            Some(fixed::arc_tangent(&tangent, BITS))
        }
    }
}

/// The arc sine.
pub fn asin(x: Decimal128) -> Decimal128 {
    odd(x, not_a_number, |number| arc_sine(number).map_or(NAN, |angle| of_fixed(&angle)))
}

/// The arc cosine.
pub fn acos(x: Decimal128) -> Decimal128 {
    of(x, not_a_number, |number| match arc_sine(number) {
        Some(angle) => of_fixed(&((fixed::pi(BITS) >> 1_u32) - angle)),
        None => NAN,
    })
}

/// e^x and e^-x, where both are fixed-point numbers: up to 100.
fn exponentials(number: Finite) -> (BigInt, BigInt) {
    let (mantissa, power) = fixed::exp(&number.fixed(BITS), BITS);
    let up =
        if power < 0 { mantissa >> power.unsigned_abs() } else { mantissa << power.unsigned_abs() };
    let down = fixed::divide(&fixed::one(BITS), &up, BITS);
    (up, down)
}

/// Half of e^|x|, where e^-|x| doesn't show.
fn half_exponential(number: Finite, negative: bool) -> Decimal128 {
    if number.magnitude() > 5 {
        return infinity(negative);
    }
    let x = Finite { negative: false, ..number }.fixed(BITS);
    if *x.magnitude() > (BigUint::from(EXP_MAX as u64) << BITS) {
        return infinity(negative);
    }
    let (mantissa, power) = fixed::exp(&x, BITS);
    let half = decimal(&mantissa, BITS as i64 - power + 1);
    if negative { negate(half) } else { half }
}

/// The hyperbolic sine.
pub fn sinh(x: Decimal128) -> Decimal128 {
    odd(x, signed_infinity, |number| {
        if number.magnitude() > 1 {
            return half_exponential(number, number.negative);
        }
        let (up, down) = exponentials(number);
        decimal(&(up - down), BITS as i64 + 1)
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
            let (up, down) = exponentials(number);
            decimal(&(up + down), BITS as i64 + 1)
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
        let (up, down) = exponentials(number);
        of_fixed(&fixed::divide(&(&up - &down), &(&up + &down), BITS))
    })
}

/// The logarithm of twice a great number.
fn ln_of_twice(number: Finite) -> Decimal128 {
    let logarithm = ln_of(Finite { negative: false, ..number }) + fixed::ln_two(BITS);
    of_fixed(&if number.negative { -logarithm } else { logarithm })
}

/// The inverse of [`sinh`].
pub fn asinh(x: Decimal128) -> Decimal128 {
    odd(x, signed_infinity, |number| {
        if number.magnitude() > GREAT {
            return ln_of_twice(number);
        }
        let x = Finite { negative: false, ..number }.fixed(BITS);
        let square = fixed::multiply(&x, &x, BITS) + fixed::one(BITS);
        let logarithm = fixed::ln(&(x + fixed::root(&square, BITS)), BITS);
        of_fixed(&if number.negative { -logarithm } else { logarithm })
    })
}

/// The inverse of [`cosh`].
pub fn acosh(x: Decimal128) -> Decimal128 {
    of(
        x,
        |negative| if negative { NAN } else { infinity(false) },
        |number| {
            if number.magnitude() > GREAT && !number.negative {
                return ln_of_twice(number);
            }
            let rest = -rest_of_square(number);
            if number.negative || rest.sign() == Sign::Minus {
                return NAN;
            }
            of_fixed(&fixed::ln(&(number.fixed(BITS) + fixed::root(&rest, BITS)), BITS))
        },
    )
}

/// The inverse of [`tanh`].
pub fn atanh(x: Decimal128) -> Decimal128 {
    odd(x, not_a_number, |number| {
        if number.magnitude() > 1 {
            return NAN;
        }
        let (x, one) = (number.fixed(BITS), fixed::one(BITS));
        let (above, below) = (&one + &x, &one - &x);
        match (above.sign(), below.sign()) {
            (_, Sign::NoSign) | (Sign::NoSign, _) => infinity(number.negative),
            (Sign::Plus, Sign::Plus) => {
                decimal(&fixed::ln(&fixed::divide(&above, &below, BITS), BITS), BITS as i64 + 1)
            }
            _ => NAN,
        }
    })
}

#[cfg(test)]
mod tests;
