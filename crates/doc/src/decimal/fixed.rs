//! Fixed-point arithmetic in big integers: a number is an integer over 2^bits.
//!
//! The functions are good to a few units of the last bit; a caller has a hundred bits to
//! spare.
//! 1. exp: x = n ln 2 + r, then r is divided by 2^16, the Taylor series, and 16 squarings.
//! 2. ln: x = 2^j t with t from 3/4 to 3/2, then 2 artanh((t - 1) / (t + 1)).
//! 3. atan: three halvings, x / (1 + sqrt(1 + x^2)), then the series. Pi by Machin's formula.
//! 4. sin, cos: x = q pi/2 + r, then the Taylor series of r. As many bits of pi as the greatest
//!    decimal takes are computed once, by divisions by small numbers only: 10^6144 costs one long
//!    division, and no more terms than 1 does.

use std::sync::OnceLock;

use bigdecimal::num_bigint::{BigInt, Sign};

/// Halvings of the argument of exp, and of atan.
const EXP_HALVINGS: u64 = 16;
const ATAN_HALVINGS: u64 = 3;
/// Bits beyond those that are asked for, for what halving and doubling loses.
const GUARD: u64 = 40;
/// Bits of pi that are kept: 10^6145 has 20,414, and 986 are right behind it.
const PI_BITS: u64 = 21_400;

/// 1.
pub(super) fn one(bits: u64) -> BigInt {
    BigInt::from(1) << bits
}

pub(super) fn multiply(left: &BigInt, right: &BigInt, bits: u64) -> BigInt {
    (left * right) >> bits
}

/// `right` isn't zero.
pub(super) fn divide(left: &BigInt, right: &BigInt, bits: u64) -> BigInt {
    (left << bits) / right
}

/// The root of a number that isn't negative.
pub(super) fn root(number: &BigInt, bits: u64) -> BigInt {
    (number << bits).sqrt()
}

fn is_zero(number: &BigInt) -> bool {
    number.sign() == Sign::NoSign
}

/// z + z^3/3 + z^5/5 ..., with alternating signs if `alternates`: artanh z, or arctan z.
fn odd_series(z: &BigInt, alternates: bool, bits: u64) -> BigInt {
    let square = multiply(z, z, bits);
    let (mut power, mut sum) = (z.clone(), z.clone());
    let mut divisor = 1_u32;
    while !is_zero(&power) {
        power = multiply(&power, &square, bits);
        if alternates {
            power = -power;
        }
        divisor += 2;
        let term = &power / divisor;
        if is_zero(&term) {
            break;
        }
        sum += term;
    }
    sum
}

/// ln 2.
pub(super) fn ln_two(bits: u64) -> BigInt {
    let inner = bits + GUARD;
    (odd_series(&(one(inner) / 3), false, inner) << 1) >> GUARD
}

/// Pi.
pub(super) fn pi(bits: u64) -> BigInt {
    static PI: OnceLock<BigInt> = OnceLock::new();
    debug_assert!(bits <= PI_BITS);
    PI.get_or_init(|| {
        let inner = PI_BITS + GUARD;
        let whole = arc_tangent_of_inverse(5, inner) * 16 - arc_tangent_of_inverse(239, inner) * 4;
        whole >> GUARD
    }) >> PI_BITS.saturating_sub(bits)
}

/// The arc tangent of 1 / `divisor`, whose terms take divisions by small numbers only.
fn arc_tangent_of_inverse(divisor: u32, bits: u64) -> BigInt {
    let mut power = one(bits) / divisor;
    let mut sum = power.clone();
    let mut nth = 1_u32;
    while !is_zero(&power) {
        power = -power / (divisor * divisor);
        nth += 2;
        sum += &power / nth;
    }
    sum
}

/// e^x as m and n: m * 2^n, m from 1/2 to 2. `x` is below 2^32.
pub(super) fn exp(x: &BigInt, bits: u64) -> (BigInt, i64) {
    let inner = bits + GUARD;
    let x = x << GUARD;
    let ln_two = ln_two(inner);
    let count: BigInt = &x / &ln_two;
    let rest: BigInt = (&x - &count * &ln_two) >> EXP_HALVINGS;
    let (mut term, mut sum) = (one(inner), one(inner));
    let mut divisor = 0_u32;
    while !is_zero(&term) {
        divisor += 1;
        term = multiply(&term, &rest, inner) / divisor;
        sum += &term;
    }
    for _ in 0..EXP_HALVINGS {
        sum = multiply(&sum, &sum, inner);
    }
    (sum >> GUARD, i64::try_from(&count).unwrap_or(i64::MAX))
}

/// The natural logarithm of a positive number.
pub(super) fn ln(x: &BigInt, bits: u64) -> BigInt {
    let inner = bits + GUARD;
    let one = one(inner);
    // The power of two that brings x between 3/4 and 3/2.
    let mut power = x.bits() as i64 - bits as i64;
    let shift = inner as i64 - bits as i64 - power;
    let mut scaled = if shift < 0 { x >> shift.unsigned_abs() } else { x << shift.unsigned_abs() };
    if &scaled << 2_u32 < &one * 3 {
        scaled <<= 1_u32;
        power -= 1;
    }
    let z = divide(&(&scaled - &one), &(&scaled + &one), inner);
    let sum = (odd_series(&z, false, inner) << 1_u32) + ln_two(inner) * power;
    sum >> GUARD
}

/// The arc tangent.
pub(super) fn arc_tangent(x: &BigInt, bits: u64) -> BigInt {
    if x.sign() == Sign::Minus {
        return -arc_tangent(&-x, bits);
    }
    let inner = bits + GUARD;
    let one = one(inner);
    let x = x << GUARD;
    if x > one {
        let inverse = divide(&one, &x, inner) >> GUARD;
        return (pi(bits) >> 1_u32) - arc_tangent(&inverse, bits);
    }
    let mut small = x;
    for _ in 0..ATAN_HALVINGS {
        let squares = &one + multiply(&small, &small, inner);
        small = divide(&small, &(&one + root(&squares, inner)), inner);
    }
    (odd_series(&small, true, inner) << ATAN_HALVINGS) >> GUARD
}

/// The sine and the cosine. `x` has so many bits that its fraction is right.
pub(super) fn sine_and_cosine(x: &BigInt, bits: u64) -> (BigInt, BigInt) {
    let inner = bits + GUARD;
    let (count, rest) = quarters(x, bits);
    let square = -multiply(&rest, &rest, inner);
    let series = |first: BigInt, mut divisor: u32| {
        let (mut term, mut sum) = (first.clone(), first);
        while !is_zero(&term) {
            term = multiply(&term, &square, inner) / (divisor * (divisor + 1));
            sum += &term;
            divisor += 2;
        }
        sum >> GUARD
    };
    let (sine, cosine) = (series(rest.clone(), 2), series(one(inner), 1));
    // The remainder has the sign of the count.
    let quadrant: BigInt = count % 4;
    match i8::try_from(&quadrant).unwrap_or(0) {
        0 => (sine, cosine),
        1 | -3 => (cosine, -sine),
        2 | -2 => (-sine, -cosine),
        _ => (-cosine, sine),
    }
}

/// Returns how many quarter turns are nearest to an angle, and what is left, with [`GUARD`] bits
/// more.
fn quarters(x: &BigInt, bits: u64) -> (BigInt, BigInt) {
    // A great x takes as many more bits of pi away.
    let more = x.bits().saturating_sub(bits);
    let x = x << (GUARD + more);
    let quarter: BigInt = pi(bits + GUARD + more) >> 1_u32;
    let half: BigInt = &quarter >> 1_u32;
    let mut count: BigInt = (&x + &half) / &quarter;
    if x.sign() == Sign::Minus {
        count = -((-&x + &half) / &quarter);
    }
    let rest = (x - &count * quarter) >> more;
    (count, rest)
}
