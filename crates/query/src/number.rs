//! Numbers of four types: whole parts, and the arithmetic of `$inc` and `$mul`.
//!
//! The result has the wider of the two types (int, long, double, decimal); an int that overflows
//! becomes a long, a long that overflows is refused.

use frond_doc::Value;

/// The number without its fraction; `None` for NaN, infinities, what doesn't fit 64 bits, and what
/// is no number.
pub(crate) fn truncate(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Double(number) if (-9.2e18..9.2e18).contains(&number) => Some(number as i64),
        Value::Int32(_) | Value::Int64(_) => value.as_integer(),
        _ => None,
    }
}

/// The sum of two numbers; `None` if 64 bits don't hold it.
pub(crate) fn add(left: Value<'_>, right: Value<'_>) -> Option<Value<'static>> {
    calculate(left, right, |left, right| left + right, i64::checked_add)
}

/// The product of two numbers; `None` if 64 bits don't hold it.
pub(crate) fn multiply(left: Value<'_>, right: Value<'_>) -> Option<Value<'static>> {
    calculate(left, right, |left, right| left * right, i64::checked_mul)
}

fn calculate(
    left: Value<'_>,
    right: Value<'_>,
    of_doubles: fn(f64, f64) -> f64,
    of_integers: fn(i64, i64) -> Option<i64>,
) -> Option<Value<'static>> {
    match (left, right) {
        (Value::Int32(left), Value::Int32(right)) => {
            let result = of_integers(i64::from(left), i64::from(right))?;
            Some(i32::try_from(result).map_or(Value::Int64(result), Value::Int32))
        }
        (Value::Int32(_) | Value::Int64(_), Value::Int32(_) | Value::Int64(_)) => {
            Some(Value::Int64(of_integers(left.as_integer()?, right.as_integer()?)?))
        }
        _ => Some(Value::Double(of_doubles(double(left)?, double(right)?))),
    }
}

fn double(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(number),
        Value::Int32(number) => Some(f64::from(number)),
        Value::Int64(number) => Some(number as f64),
        _ => None,
    }
}
