//! Numbers of four types: whole parts, and the arithmetic of `$inc` and `$mul`.
//!
//! The result has the wider of the two types (int, long, double, decimal); an int that overflows
//! becomes a long, a long that overflows is refused.

pub(crate) mod any_type;
pub(crate) mod spread;

use frond_doc::{Decimal128, Value, decimal, order};

/// The number without its fraction; `None` for NaN, infinities, what doesn't fit 64 bits, and what
/// is no number.
pub(crate) fn truncate(value: Value<'_>) -> Option<i64> {
    match value {
        // Above 2^63 - 1024 no double lies below 2^63.
        Value::Double(number) if (-(2.0_f64.powi(63))..2.0_f64.powi(63)).contains(&number) => {
            Some(number as i64)
        }
        Value::Int32(_) | Value::Int64(_) => value.as_integer(),
        Value::Decimal128(number) => {
            let toward_zero = decimal::Rounding::Down;
            decimal::to_i64(decimal::round_to_places(number, 0, toward_zero))
        }
        _ => None,
    }
}

/// The number where MongoDB takes any for an integer: doubles are cut, decimals rounded half to
/// even; `None` as of [`truncate`].
pub(crate) fn rounded(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Decimal128(number) => {
            decimal::to_i64(decimal::round_to_places(number, 0, decimal::Rounding::HalfEven))
        }
        _ => truncate(value),
    }
}

/// The number, if it is whole and fits 64 bits.
pub(crate) fn whole(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Decimal128(_) => {
            truncate(value).filter(|whole| order::equal(Value::Int64(*whole), value))
        }
        _ => value.as_integer(),
    }
}

/// One operation on each type.
struct Operation {
    integers: fn(i64, i64) -> Option<i64>,
    doubles: fn(f64, f64) -> f64,
    decimals: fn(Decimal128, Decimal128) -> Decimal128,
}

/// The sum of two numbers; `None` if 64 bits don't hold it, or one is no number.
pub(crate) fn add(left: Value<'_>, right: Value<'_>) -> Option<Value<'static>> {
    let operation = Operation {
        integers: i64::checked_add,
        doubles: |left, right| left + right,
        decimals: decimal::add,
    };
    operation.calculate(left, right)
}

/// The product of two numbers; `None` if 64 bits don't hold it, or one is no number.
pub(crate) fn multiply(left: Value<'_>, right: Value<'_>) -> Option<Value<'static>> {
    let operation = Operation {
        integers: i64::checked_mul,
        doubles: |left, right| left * right,
        decimals: decimal::multiply,
    };
    operation.calculate(left, right)
}

impl Operation {
    fn calculate(&self, left: Value<'_>, right: Value<'_>) -> Option<Value<'static>> {
        match (left, right) {
            (Value::Int32(left), Value::Int32(right)) => {
                let result = (self.integers)(i64::from(left), i64::from(right))?;
                Some(i32::try_from(result).map_or(Value::Int64(result), Value::Int32))
            }
            (Value::Int32(_) | Value::Int64(_), Value::Int32(_) | Value::Int64(_)) => {
                Some(Value::Int64((self.integers)(left.as_integer()?, right.as_integer()?)?))
            }
            (Value::Decimal128(_), _) | (_, Value::Decimal128(_)) => {
                Some(Value::Decimal128((self.decimals)(to_decimal(left)?, to_decimal(right)?)))
            }
            _ => Some(Value::Double((self.doubles)(to_double(left)?, to_double(right)?))),
        }
    }
}

fn to_double(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(number),
        Value::Int32(number) => Some(f64::from(number)),
        Value::Int64(number) => Some(number as f64),
        _ => None,
    }
}

fn to_decimal(value: Value<'_>) -> Option<Decimal128> {
    match value {
        Value::Decimal128(number) => Some(number),
        Value::Double(number) => Some(decimal::from_f64(number)),
        _ => value.as_integer().map(decimal::from_i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_have_the_wider_type() {
        let five = Value::Decimal128(decimal::from_i64(5));
        for (left, right, expected) in [
            (Value::Int32(2), Value::Int32(3), Some(Value::Int32(5))),
            (Value::Int32(i32::MAX), Value::Int32(1), Some(Value::Int64(1 << 31))),
            (Value::Int32(2), Value::Int64(3), Some(Value::Int64(5))),
            (Value::Int64(i64::MAX), Value::Int32(1), None),
            (Value::Int64(2), Value::Double(0.5), Some(Value::Double(2.5))),
            (Value::Int32(2), Value::Decimal128(decimal::from_i64(3)), Some(five)),
            (Value::Int32(2), Value::Null, None),
        ] {
            assert_eq!(add(left, right), expected, "{left:?} + {right:?}");
            assert_eq!(add(right, left), expected, "{right:?} + {left:?}");
        }
        assert_eq!(multiply(Value::Int64(i64::MIN), Value::Int32(-1)), None);
        assert_eq!(
            multiply(Value::Int32(1 << 20), Value::Int32(1 << 20)),
            Some(Value::Int64(1 << 40))
        );
    }

    #[test]
    fn fractions_are_cut_off() {
        for (value, expected) in [
            (Value::Double(2.9), Some(2)),
            (Value::Double(-2.9), Some(-2)),
            (Value::Double(f64::NAN), None),
            (Value::Double(9.3e18), None),
            (Value::Decimal128(decimal::parse("-7.5").expect("a decimal")), Some(-7)),
            (Value::String("2"), None),
        ] {
            assert_eq!(truncate(value), expected, "{value:?}");
        }
    }

    #[test]
    fn decimals_are_rounded_half_to_even() {
        let of = |text: &str| rounded(Value::Decimal128(decimal::parse(text).expect("a decimal")));
        let texts = ["0.5", "1.5", "2.5", "2.51", "-1.5", "-0.4", "9E+18", "1E+19", "NaN"];
        let expected = [0, 2, 2, 3, -2, 0, 9_000_000_000_000_000_000].map(Some);
        let found: Vec<Option<i64>> = texts.into_iter().map(of).collect();
        assert_eq!(found[..7], expected);
        assert_eq!(found[7..], [None, None]);
        assert_eq!(rounded(Value::Double(1.9)), Some(1));
    }
}
