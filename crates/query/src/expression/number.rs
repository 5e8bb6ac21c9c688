//! How the four number types combine.
//!
//! The result has the widest type among the operands (int, long, double, decimal); an int that
//! overflows becomes a long, a long that overflows becomes a double. Sums are exact in between:
//! integers add up in 128 bits and doubles with their rounding errors kept, so that the order of
//! the operands doesn't matter.

use frond_doc::{Decimal128, Value, decimal};

use super::Evaluated;

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

/// A sum of numbers of any types.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    count: u64,
    integers: i128,
    doubles: DoubleSum,
    decimals: Option<Decimal128>,
    has_long: bool,
    has_double: bool,
}

impl Sum {
    /// Adds a number.
    pub(crate) fn add(&mut self, number: Number) {
        self.count += 1;
        match number {
            Number::Int(number) => self.integers += i128::from(number),
            Number::Long(number) => {
                self.has_long = true;
                self.integers += i128::from(number);
            }
            Number::Double(number) => {
                self.has_double = true;
                self.doubles.add(number);
            }
            Number::Decimal(number) => {
                self.decimals = Some(match self.decimals {
                    Some(sum) => decimal::add(sum, number),
                    None => number,
                });
            }
        }
    }

    /// The sum: 0 of no numbers.
    pub(crate) fn total(&self) -> Number {
        if let Some(total) = self.decimals {
            return Number::Decimal(decimal::add(total, self.others()));
        }
        if self.has_double {
            return Number::Double(self.double());
        }
        match (i64::try_from(self.integers), i32::try_from(self.integers)) {
            (Ok(_), Ok(total)) if !self.has_long => Number::Int(total),
            (Ok(total), _) => Number::Long(total),
            _ => Number::Double(self.integers as f64),
        }
    }

    /// The mean; `None` of no numbers.
    pub(crate) fn mean(&self) -> Option<Number> {
        if self.count == 0 {
            return None;
        }
        Some(match self.total() {
            Number::Decimal(total) => {
                let count = decimal::from_i64(i64::try_from(self.count).unwrap_or(i64::MAX));
                Number::Decimal(decimal::divide(total, count))
            }
            _ => Number::Double(self.double() / self.count as f64),
        })
    }

    /// The sum of integers and doubles.
    fn double(&self) -> f64 {
        let mut doubles = self.doubles;
        // In two parts, so that integers beyond 2^53 lose nothing before they meet the doubles.
        let high = self.integers as f64;
        doubles.add(high);
        doubles.add((self.integers - high as i128) as f64);
        doubles.total()
    }

    /// The sum of integers and doubles as a decimal.
    fn others(&self) -> Decimal128 {
        let integers = match i64::try_from(self.integers) {
            Ok(integers) => decimal::from_i64(integers),
            Err(_) => decimal::from_f64(self.integers as f64),
        };
        if !self.has_double {
            return integers;
        }
        decimal::add(integers, decimal::from_f64(self.doubles.total()))
    }
}

/// Doubles summed with the errors of rounding kept (Neumaier's variant of Kahan's sum).
#[derive(Clone, Copy, Debug, Default)]
struct DoubleSum {
    sum: f64,
    error: f64,
}

impl DoubleSum {
    fn add(&mut self, number: f64) {
        let sum = self.sum + number;
        if sum.is_finite() {
            self.error += if self.sum.abs() >= number.abs() {
                (self.sum - sum) + number
            } else {
                (number - sum) + self.sum
            };
        }
        self.sum = sum;
    }

    fn total(&self) -> f64 {
        if self.sum.is_finite() { self.sum + self.error } else { self.sum }
    }
}

impl From<Number> for Evaluated<'_> {
    fn from(number: Number) -> Self {
        Evaluated::Borrowed(number.value())
    }
}
