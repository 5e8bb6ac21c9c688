//! Decimal128 as text, as the BSON specification writes it.

use super::arithmetic::rounded;
use super::{NAN, Parts, infinity, parts};
use crate::document::value::Decimal128;
use bigdecimal::num_bigint::BigUint;

/// The longest text taken, so that no client makes us multiply a megabyte of digits.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// Reads a decimal: `-1.50E+3`, `Infinity`, `nan`. More than 34 digits are rounded half to even;
/// `None` if this is no decimal, or too great for one.
pub fn parse(text: &str) -> Option<Decimal128> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if unsigned.eq_ignore_ascii_case("infinity") || unsigned.eq_ignore_ascii_case("inf") {
        return Some(infinity(negative));
    }
    if unsigned.eq_ignore_ascii_case("nan") {
        return Some(NAN);
    }
    if unsigned.len() > TEXT_BYTES_MAX {
        return None;
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        None => (unsigned, 0),
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let coefficient: BigUint = digits.parse().ok()?;
    let result = rounded(negative, coefficient, exponent - fraction.len() as i64, false);
    matches!(parts(result), Parts::Finite { .. }).then_some(result)
}

/// Whether a text that [`parse`] reads lies so near to zero that digits of it are lost.
pub fn underflows(text: &str) -> bool {
    /// The exponent of the least number with all digits, and that of the least there is.
    const NORMAL: i64 = -6143;
    const LEAST: i64 = -6176;
    let unsigned = text.trim_start_matches(['+', '-']);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let significant = digits.trim_start_matches('0');
    let without_zeros = significant.trim_end_matches('0');
    let (Some(exponent), false) = (parse_exponent(exponent), without_zeros.is_empty()) else {
        return false;
    };
    let last = exponent - fraction.len() as i64;
    let first = last + significant.len() as i64 - 1;
    first < NORMAL && last + ((significant.len() - without_zeros.len()) as i64) < LEAST
}

/// Exponents of any length are read; beyond a million they all mean too great or too small.
fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let magnitude = digits.parse().unwrap_or(i64::MAX).min(1_000_000);
    Some(if text.starts_with('-') { -magnitude } else { magnitude })
}

/// Writes a decimal so that `parse` gives the same bytes back (of numbers that are canonical).
pub fn to_string(number: Decimal128) -> String {
    let (negative, coefficient, exponent) = match parts(number) {
        Parts::NaN => return "NaN".to_owned(),
        Parts::Infinity { negative: true } => return "-Infinity".to_owned(),
        Parts::Infinity { negative: false } => return "Infinity".to_owned(),
        Parts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
    };
    let sign = if negative { "-" } else { "" };
    let digits = coefficient.to_string();
    let adjusted = exponent + digits.len() as i32 - 1;
    if exponent > 0 || adjusted < -6 {
        let (first, others) = digits.split_at(1);
        let point = if others.is_empty() { "" } else { "." };
        return format!("{sign}{first}{point}{others}E{adjusted:+}");
    }
    let places = exponent.unsigned_abs() as usize;
    if places == 0 {
        return format!("{sign}{digits}");
    }
    let padded = format!("{digits:0>width$}", width = places + 1);
    let (whole, fraction) = padded.split_at(padded.len() - places);
    format!("{sign}{whole}.{fraction}")
}
