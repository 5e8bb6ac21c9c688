//! Combines the four number types.
//!
//! The result has the widest type among the operands (int, long, double, decimal); an int that
//! overflows becomes a long, a long that overflows becomes a double. Many numbers are added up by
//! [`Sum`].

mod exactness;
mod sum;

use frond_doc::{Decimal128, Value, decimal};

pub(crate) use exactness::Exactness;
pub(crate) use sum::Sum;

/// A number of one of the four types.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Int(i32),
    Long(i64),
    Double(f64),
    Decimal(Decimal128),
}

impl Number {
    /// The number that a value is.
    pub(crate) fn of(value: Value<'_>) -> Option<Number> {
        Some(match value {
            Value::Int32(number) => Number::Int(number),
            Value::Int64(number) => Number::Long(number),
            Value::Double(number) => Number::Double(number),
            Value::Decimal128(number) => Number::Decimal(number),
            _ => return None,
        })
    }

    /// The value of this number.
    pub(crate) fn value(self) -> Value<'static> {
        match self {
            Number::Int(number) => Value::Int32(number),
            Number::Long(number) => Value::Int64(number),
            Number::Double(number) => Value::Double(number),
            Number::Decimal(number) => Value::Decimal128(number),
        }
    }

    /// The nearest double.
    pub(crate) fn double(self) -> f64 {
        match self {
            Number::Int(number) => f64::from(number),
            Number::Long(number) => number as f64,
            Number::Double(number) => number,
            Number::Decimal(number) => decimal::to_f64(number),
        }
    }

    /// The nearest decimal.
    pub(crate) fn decimal(self) -> Decimal128 {
        match self {
            Number::Int(number) => decimal::from_i64(i64::from(number)),
            Number::Long(number) => decimal::from_i64(number),
            Number::Double(number) => decimal::from_f64(number),
            Number::Decimal(number) => number,
        }
    }

    /// Whether this is of the widest type.
    pub(crate) fn is_decimal(&self) -> bool {
        matches!(self, Number::Decimal(_))
    }

    /// The integer, if this is of an integer type.
    pub(crate) fn integer(self) -> Option<i64> {
        match self {
            Number::Int(number) => Some(i64::from(number)),
            Number::Long(number) => Some(number),
            _ => None,
        }
    }

    /// The integer that this number is, of whichever type.
    pub(crate) fn whole(self) -> Option<i64> {
        match self {
            Number::Decimal(number) => decimal::to_i64(number)
                .filter(|whole| decimal::compare(decimal::from_i64(*whole), number).is_eq()),
            other => other.value().as_integer(),
        }
    }

    /// The result of an operation on two numbers: `on_integers` where both are integers (`None`
    /// where it overflows, which goes on with doubles).
    pub(crate) fn combine(
        self,
        other: Number,
        on_integers: fn(i64, i64) -> Option<i64>,
        on_doubles: fn(f64, f64) -> f64,
        on_decimals: fn(Decimal128, Decimal128) -> Decimal128,
    ) -> Number {
        if matches!(self, Number::Decimal(_)) || matches!(other, Number::Decimal(_)) {
            return Number::Decimal(on_decimals(self.decimal(), other.decimal()));
        }
        let (Some(left), Some(right)) = (self.integer(), other.integer()) else {
            return Number::Double(on_doubles(self.double(), other.double()));
        };
        match on_integers(left, right) {
            Some(result) => self.of_width(other, result),
            None => Number::Double(on_doubles(left as f64, right as f64)),
        }
    }

    /// `result` as an int if both operands are, and it fits; as a long otherwise.
    fn of_width(self, other: Number, result: i64) -> Number {
        match (self, other, i32::try_from(result)) {
            (Number::Int(_), Number::Int(_), Ok(small)) => Number::Int(small),
            _ => Number::Long(result),
        }
    }
}

/// The whole number that a value is, if it fits 32 bits: what positions and lengths must be.
pub(crate) fn as_i32(value: Value<'_>) -> Option<i32> {
    Number::of(value)?.whole().and_then(|whole| i32::try_from(whole).ok())
}
