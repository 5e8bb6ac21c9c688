//! Numbers of four types: whole parts, and the arithmetic of `$inc` and `$mul`.

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
