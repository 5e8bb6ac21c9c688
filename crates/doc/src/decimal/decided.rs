//! Results rounded to 34 digits once that is decided (Ziv's strategy).
//!
//! 1. A function is computed in fixed point, with the first of [`PRECISIONS`].
//! 2. Both ends of what its error allows ([`LOST_BITS`]) are rounded, half to even. Where they give
//!    the same decimal, it is the one nearest to the exact result.
//! 3. Otherwise, and where zeros follow so long that the result may be exact, it is computed with
//!    the next precision. What is so even by the last is exact, or exactly between two decimals: no
//!    function here but powers and logarithms has rational results of rational arguments other than
//!    0 and 1 (Lindemann), and those that these two have are short.
//!
//! A result with few digits (`log10(1000)`) has no zeros behind them.

use bigdecimal::num_bigint::{BigInt, BigUint, Sign};

use super::arithmetic::rounded;
use super::{Parts, from_i64, from_parts, parts};
use crate::document::value::Decimal128;

/// Bits behind the point. The first decide all but one of 10^20 results that aren't small; the
/// last, those as small as 10^-80, too.
const PRECISIONS: [u64; 2] = [384, 832];
/// A result is right but for so many of its last bits: a tangent is as great as 2^133 near its
/// poles and loses as many, and so does a power with an exponent that is as great.
const LOST_BITS: u64 = 192;
/// Digits of a result that are looked at, and as many at their end as are zeros if it is exact: by
/// the first precision, which is good for 57 digits, and by the last.
const DIGITS: (i64, u32) = (54, 20);
const DIGITS_AT_LAST: (i64, u32) = (80, 40);

/// A number: an integer over 2^`bits`.
pub(super) struct Scaled {
    integer: BigInt,
    bits: i64,
}

impl Scaled {
    /// `integer` / 2^`bits`.
    pub(super) fn new(integer: BigInt, bits: i64) -> Scaled {
        Scaled { integer, bits }
    }

    /// The number with the other sign, if `negates`.
    pub(super) fn negated_if(self, negates: bool) -> Scaled {
        Scaled { integer: if negates { -self.integer } else { self.integer }, ..self }
    }
}

/// A fixed-point number of `bits` bits behind the point.
pub(super) fn fixed_point(integer: BigInt, bits: u64) -> Scaled {
    Scaled::new(integer, bits as i64)
}

/// The decimal nearest to what `compute` computes with so many bits behind the point.
pub(super) fn decided(compute: impl Fn(u64) -> Scaled) -> Decimal128 {
    let mut found = Scaled::new(BigInt::from(0), 0);
    for bits in PRECISIONS {
        found = compute(bits);
        let share = found.integer.magnitude() >> (bits - LOST_BITS);
        let error = BigInt::from((BigUint::from(1_u8) << LOST_BITS) + share);
        let least = cut(&(&found.integer - &error), found.bits);
        let most = cut(&(&found.integer + &error), found.bits);
        if least == most && !is_short(&nearest(&found, DIGITS.0).0, DIGITS.1) {
            return least;
        }
    }
    exact(&found)
}

/// Whether a number ends in so many zeros.
fn is_short(digits: &BigUint, zeros: u32) -> bool {
    digits % BigUint::from(10_u8).pow(zeros) == BigUint::from(0_u8)
}

/// The digits of the decimal of so many digits that is nearest to a number, and how many of them
/// are behind the point.
fn nearest(number: &Scaled, count: i64) -> (BigUint, i64) {
    let (above, below, places) = digits(&number.integer, number.bits, count);
    (((above << 1_u32) + &below) / (below << 1_u32), places)
}

/// The decimal nearest to `integer` / 2^`bits`.
fn cut(integer: &BigInt, bits: i64) -> Decimal128 {
    let (above, below, places) = digits(integer, bits, DIGITS_AT_LAST.0);
    let quotient = &above / &below;
    let is_cut = &quotient * &below != above;
    rounded(integer.sign() == Sign::Minus, quotient, -places, is_cut)
}

/// The decimal nearest to a number that is exact but for its last bits.
fn exact(number: &Scaled) -> Decimal128 {
    if number.integer.sign() == Sign::NoSign {
        return from_i64(0);
    }
    let (digits, places) = nearest(number, DIGITS_AT_LAST.0);
    let is_short = is_short(&digits, DIGITS_AT_LAST.1);
    let rounded = rounded(number.integer.sign() == Sign::Minus, digits, -places, false);
    if is_short { stripped(rounded, 0) } else { rounded }
}

/// |`integer`| / 2^`bits` as a fraction of `count` digits before the point, over 10^places.
fn digits(integer: &BigInt, bits: i64, count: i64) -> (BigUint, BigUint, i64) {
    let magnitude = integer.magnitude();
    // Log10 of 2 is 30103 / 100000.
    let digits = (magnitude.bits() as i64 - bits) * 30_103 / 100_000;
    let places = count - digits;
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
    (above, below, places)
}

/// Returns an exact result with the exponent that is nearest to the preferred one. A rounded result
/// has all 34 digits, trailing zeros included.
pub(super) fn stripped(number: Decimal128, preferred: i32) -> Decimal128 {
    let Parts::Finite { negative, mut coefficient, mut exponent } = parts(number) else {
        return number;
    };
    while exponent < preferred && coefficient != 0 && coefficient % 10 == 0 {
        (coefficient, exponent) = (coefficient / 10, exponent + 1);
    }
    from_parts(negative, coefficient, exponent)
}
