//! Numbers of all four types as bytes that order by mathematical value, exactly.
//!
//! 1. The tag stands for the class: NaN, -Infinity, huge negatives, negatives, zero, positives,
//!    huge positives, Infinity. Huge means 2^1024 and above, where only decimals are.
//! 2. A positive number is cut towards zero to the 77 bits of a double with 14 more bits of
//!    mantissa: 11 of exponent, 66 of fraction, subnormals included. Every double, int32 and int64
//!    is exact there.
//! 3. The 77 bits are written in groups of seven, each in the high bits of a byte; the lowest bit
//!    says that something other than zero follows. So small integers take two bytes, and what has
//!    more sorts higher.
//! 4. If all eleven bytes say that more follows, the number is a decimal between two of those
//!    values. Then the decimal follows: exponent, and the 34 digits in pairs, cut in the same way.
//!    A huge number is that alone.
//! 5. The bytes after a negative number's tag are inverted.
//!
//! Many decimals are exact in 77 bits (2.5); they share the bytes of the equal double.

use bigdecimal::num_bigint::BigUint;

use super::decode::Reader;
use super::tag::NUMBER_FIRST;
use crate::decimal::{self, Parts};
use crate::document::value::Decimal128;
use crate::error::DocError;

const NAN: u8 = NUMBER_FIRST;
const NEGATIVE_INFINITY: u8 = NUMBER_FIRST + 1;
const NEGATIVE_HUGE: u8 = NUMBER_FIRST + 2;
const NEGATIVE: u8 = NUMBER_FIRST + 3;
const ZERO: u8 = NUMBER_FIRST + 4;
const POSITIVE: u8 = NUMBER_FIRST + 5;
const POSITIVE_HUGE: u8 = NUMBER_FIRST + 6;
const POSITIVE_INFINITY: u8 = NUMBER_FIRST + 7;
const _: () = assert!(POSITIVE_INFINITY == super::tag::NUMBER_LAST);

/// Bits of the fraction: a double's and 14 more.
const FRACTION_BITS: u32 = 66;
const EXTRA_BITS: u32 = FRACTION_BITS - 52;
const GROUP_BITS: u32 = 7;
const GROUP_COUNT: u32 = (11 + FRACTION_BITS) / GROUP_BITS;
const _: () = assert!(GROUP_COUNT * GROUP_BITS == 11 + FRACTION_BITS);
const EXPONENT_BIAS: i32 = 1023;
/// 2 to this power is the unit of subnormal numbers in 77 bits, negated.
const SUBNORMAL_SHIFT: u32 = 1022 + FRACTION_BITS;
/// Added to the exponent of 34 digits, which begins at -6176 - 33.
const TAIL_BIAS: i32 = 6176 + 33;
const TAIL_PAIRS: u32 = 17;

/// A number as it is in its key.
pub(super) enum Number {
    NaN,
    Infinity {
        negative: bool,
    },
    Zero,
    /// Exactly the 77 bits.
    Binary {
        negative: bool,
        bits: u128,
    },
    /// Exactly these 34 digits and this exponent.
    Decimal {
        negative: bool,
        exponent: i32,
        coefficient: u128,
    },
}

pub(super) fn append_double(key: &mut Vec<u8>, number: f64) {
    if number.is_nan() {
        return key.push(NAN);
    }
    let negative = number.is_sign_negative();
    if number.is_infinite() {
        return key.push(if negative { NEGATIVE_INFINITY } else { POSITIVE_INFINITY });
    }
    let bits = u128::from(number.abs().to_bits()) << EXTRA_BITS;
    if bits == 0 {
        return key.push(ZERO);
    }
    append_binary(key, negative, bits);
}

pub(super) fn append_integer(key: &mut Vec<u8>, number: i64) {
    if number == 0 {
        return key.push(ZERO);
    }
    append_binary(key, number < 0, bits_of_mantissa(u128::from(number.unsigned_abs()), 0));
}

pub(super) fn append_decimal(key: &mut Vec<u8>, number: Decimal128) {
    let (negative, coefficient, exponent) = match decimal::parts(number) {
        Parts::NaN => return key.push(NAN),
        Parts::Infinity { negative } => {
            return key.push(if negative { NEGATIVE_INFINITY } else { POSITIVE_INFINITY });
        }
        Parts::Finite { coefficient: 0, .. } => return key.push(ZERO),
        Parts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
    };
    match cut(coefficient, exponent) {
        Cut::Exact(bits) => append_binary(key, negative, bits),
        Cut::Inexact(bits) => {
            let start = begin(key, if negative { NEGATIVE } else { POSITIVE });
            append_groups(key, bits, GROUP_COUNT, true);
            append_tail(key, coefficient, exponent);
            end(key, start, negative);
        }
        Cut::Huge => {
            let start = begin(key, if negative { NEGATIVE_HUGE } else { POSITIVE_HUGE });
            append_tail(key, coefficient, exponent);
            end(key, start, negative);
        }
    }
}

/// Appends the number whose 77 bits are exactly `bits`, which aren't 0.
fn append_binary(key: &mut Vec<u8>, negative: bool, bits: u128) {
    let start = begin(key, if negative { NEGATIVE } else { POSITIVE });
    append_groups(key, bits, GROUP_COUNT - bits.trailing_zeros() / GROUP_BITS, false);
    end(key, start, negative);
}

fn begin(key: &mut Vec<u8>, tag: u8) -> usize {
    key.push(tag);
    key.len()
}

fn end(key: &mut [u8], start: usize, negative: bool) {
    if negative {
        super::invert(&mut key[start..]);
    }
}

fn append_groups(key: &mut Vec<u8>, bits: u128, count: u32, more: bool) {
    let mut bytes = [0; GROUP_COUNT as usize];
    for (position, byte) in bytes.iter_mut().enumerate() {
        let shift = GROUP_BITS * (GROUP_COUNT - 1 - position as u32);
        *byte = ((bits >> shift) as u8 & 0x7f) << 1 | 1;
    }
    let written = &mut bytes[..count as usize];
    if let (Some(last), false) = (written.last_mut(), more) {
        *last &= !1;
    }
    key.extend_from_slice(written);
}

/// The exponent of the 34 digits, then the digits in pairs.
fn append_tail(key: &mut Vec<u8>, coefficient: u128, exponent: i32) {
    let (exponent, mut digits) = decimal::normalised(coefficient, exponent);
    key.extend_from_slice(&((exponent + TAIL_BIAS) as u16).to_be_bytes());
    let mut pairs = [0; TAIL_PAIRS as usize];
    for pair in pairs.iter_mut().rev() {
        *pair = (digits % 100) as u8;
        digits /= 100;
    }
    let last = pairs.iter().rposition(|pair| *pair != 0).unwrap_or(0);
    for (position, pair) in pairs[..=last].iter().enumerate() {
        key.push(pair << 1 | u8::from(position < last));
    }
}

/// A decimal above zero, cut towards zero to 77 bits.
enum Cut {
    Exact(u128),
    Inexact(u128),
    Huge,
}

fn cut(coefficient: u128, exponent: i32) -> Cut {
    // Far outside of the doubles there is nothing to compute; 10^-328 is below 2^-1088.
    let digits_before_point = coefficient.ilog10() as i32 + 1 + exponent;
    if 310 < digits_before_point {
        return Cut::Huge;
    }
    if digits_before_point < -328 {
        return Cut::Inexact(0);
    }
    match u32::try_from(-exponent) {
        Ok(places @ 0..=38) => cut_short(coefficient, 10_u128.pow(places)),
        Ok(places) => cut_fraction(&coefficient.into(), &BigUint::from(10_u8).pow(places)),
        Err(_) => {
            let tens = BigUint::from(10_u8).pow(exponent.unsigned_abs());
            cut_fraction(&(tens * coefficient), &BigUint::from(1_u8))
        }
    }
}

/// Divides without big numbers: nearly all decimals in practice have a few places.
fn cut_short(coefficient: u128, divisor: u128) -> Cut {
    let mut mantissa = coefficient / divisor;
    let mut remainder = coefficient % divisor;
    let mut exponent = 0;
    while mantissa >> FRACTION_BITS == 0 && remainder != 0 {
        remainder <<= 1; // Fits: the divisor is below 2^127.
        mantissa = mantissa << 1 | u128::from(divisor <= remainder);
        if divisor <= remainder {
            remainder -= divisor;
        }
        exponent -= 1;
    }
    let excess = (128 - mantissa.leading_zeros()).saturating_sub(FRACTION_BITS + 1);
    let lost = remainder != 0 || mantissa & ((1 << excess) - 1) != 0;
    let bits = bits_of_mantissa(mantissa, exponent);
    if lost { Cut::Inexact(bits) } else { Cut::Exact(bits) }
}

/// The 77 bits of mantissa * 2^exponent, cut towards zero; the result is no subnormal.
fn bits_of_mantissa(mantissa: u128, exponent: i32) -> u128 {
    let top = 127 - mantissa.leading_zeros();
    let fraction = if top <= FRACTION_BITS {
        mantissa << (FRACTION_BITS - top)
    } else {
        mantissa >> (top - FRACTION_BITS)
    };
    let biased = (top as i32 + exponent + EXPONENT_BIAS) as u128;
    biased << FRACTION_BITS | (fraction & ((1 << FRACTION_BITS) - 1))
}

/// The general case. The number is between 10^-328 and 10^310.
fn cut_fraction(numerator: &BigUint, divisor: &BigUint) -> Cut {
    // Enough bits that the quotient has at least 67; they are what the division is shifted by.
    let shift = (divisor.bits() + u64::from(FRACTION_BITS) + 2).saturating_sub(numerator.bits());
    let quotient = (numerator << shift) / divisor;
    let exponent = quotient.bits() as i64 - 1 - shift as i64;
    if 1024 <= exponent {
        return Cut::Huge;
    }
    let (unit_shift, exponent_bits) = if exponent < -1022 {
        (i64::from(SUBNORMAL_SHIFT), 0)
    } else {
        let biased = (exponent + i64::from(EXPONENT_BIAS)) as u128;
        // The mantissa's own top bit adds the one that is missing here.
        (i64::from(FRACTION_BITS) - exponent, (biased - 1) << FRACTION_BITS)
    };
    let scaled = if 0 <= unit_shift { numerator << unit_shift as u64 } else { numerator.clone() };
    let divisor = if unit_shift < 0 { divisor << -unit_shift as u64 } else { divisor.clone() };
    let quotient = &scaled / &divisor;
    let is_exact = &quotient * &divisor == scaled;
    let bits = u128::try_from(&quotient).expect("a quotient cut to 67 bits") + exponent_bits;
    if is_exact { Cut::Exact(bits) } else { Cut::Inexact(bits) }
}

/// Reads the number whose tag was read already.
pub(super) fn read(tag: u8, reader: &mut Reader<'_>) -> Result<Number, DocError> {
    let negative = tag < ZERO;
    match tag {
        NAN => return Ok(Number::NaN),
        NEGATIVE_INFINITY | POSITIVE_INFINITY => return Ok(Number::Infinity { negative }),
        ZERO => return Ok(Number::Zero),
        _ => {}
    }
    let invert = if negative { 0xff } else { 0 };
    if tag == NEGATIVE || tag == POSITIVE {
        let mut bits = 0;
        let mut more = true;
        let mut count = 0;
        while more && count < GROUP_COUNT {
            let byte = reader.byte()? ^ invert;
            bits = bits << GROUP_BITS | u128::from(byte >> 1);
            more = byte & 1 == 1;
            count += 1;
        }
        if !more {
            return Ok(Number::Binary {
                negative,
                bits: bits << (GROUP_BITS * (GROUP_COUNT - count)),
            });
        }
    }
    let exponent = u16::from_be_bytes([reader.byte()? ^ invert, reader.byte()? ^ invert]);
    let mut coefficient = 0;
    let mut more = true;
    for _ in 0..TAIL_PAIRS {
        coefficient *= 100;
        if more {
            let byte = reader.byte()? ^ invert;
            coefficient += u128::from(byte >> 1);
            more = byte & 1 == 1;
        }
    }
    let exponent = i32::from(exponent) - TAIL_BIAS;
    let limit = decimal::COEFFICIENT_MAX;
    if more || coefficient > limit || coefficient == 0 || exponent > decimal::EXPONENT_MAX {
        return Err(DocError::Key("a decimal out of range".to_owned()));
    }
    Ok(Number::Decimal { negative, exponent, coefficient })
}

impl Number {
    /// The number as an integer, if it is one of at most 64 bits.
    pub(super) fn to_integer(&self) -> Option<i64> {
        let Number::Binary { negative, bits } = *self else {
            return matches!(self, Number::Zero).then_some(0);
        };
        let (mantissa, exponent) = split(bits);
        let shift = u32::try_from(-exponent).ok().filter(|shift| *shift < 128)?;
        let magnitude = mantissa >> shift;
        if magnitude << shift != mantissa {
            return None;
        }
        let signed = i128::try_from(magnitude).ok()?;
        i64::try_from(if negative { -signed } else { signed }).ok()
    }

    /// The number as a double, if it is one. NaN is the usual one, zero the positive one.
    pub(super) fn to_double(&self) -> Option<f64> {
        match *self {
            Number::NaN => Some(f64::NAN),
            Number::Infinity { negative } => {
                Some(if negative { f64::NEG_INFINITY } else { f64::INFINITY })
            }
            Number::Zero => Some(0.0),
            Number::Binary { negative, bits } => {
                let double = f64::from_bits((bits >> EXTRA_BITS) as u64);
                let is_exact = bits.trailing_zeros() >= EXTRA_BITS && double.is_finite();
                is_exact.then_some(if negative { -double } else { double })
            }
            Number::Decimal { .. } => None,
        }
    }

    /// The number as a decimal with that exponent, if it can be one. Zero is the positive one.
    pub(super) fn to_decimal(&self, exponent: i32) -> Option<Decimal128> {
        if !(-decimal::EXPONENT_BIAS..=decimal::EXPONENT_MAX).contains(&exponent) {
            return None;
        }
        let (negative, coefficient) = match *self {
            Number::Zero => (false, 0),
            Number::Binary { negative, bits } => (negative, coefficient_of(bits, exponent)?),
            Number::Decimal { negative, exponent: from, coefficient } => {
                let surplus = u32::try_from(exponent - from).ok()?;
                let unit =
                    10_u128.checked_pow(surplus).filter(|u| coefficient.is_multiple_of(*u))?;
                (negative, coefficient / unit)
            }
            Number::NaN | Number::Infinity { .. } => return None,
        };
        (coefficient <= decimal::COEFFICIENT_MAX)
            .then(|| decimal::from_parts(negative, coefficient, exponent))
    }
}

/// The integer and the power of two whose product 77 bits are.
fn split(bits: u128) -> (u128, i32) {
    let fraction = bits & ((1 << FRACTION_BITS) - 1);
    match (bits >> FRACTION_BITS) as i32 {
        0 => (fraction, -(SUBNORMAL_SHIFT as i32)),
        exponent => {
            (fraction | 1 << FRACTION_BITS, exponent - EXPONENT_BIAS - FRACTION_BITS as i32)
        }
    }
}

/// The integer which, times 10^exponent, is the number of 77 bits.
fn coefficient_of(bits: u128, exponent: i32) -> Option<u128> {
    let (mantissa, twos) = split(bits);
    // A double is below 10^309 and has at most 1100 digits behind the point.
    if !(-1200..=400).contains(&exponent) {
        return None;
    }
    let tens = BigUint::from(10_u8).pow(exponent.unsigned_abs());
    let mut numerator = BigUint::from(mantissa) << twos.max(0) as u32;
    let mut divisor = BigUint::from(1_u8) << (-twos).max(0) as u32;
    if exponent < 0 {
        numerator *= tens;
    } else {
        divisor *= tens;
    }
    let quotient = &numerator / &divisor;
    if &quotient * &divisor != numerator {
        return None;
    }
    u128::try_from(&quotient).ok()
}
