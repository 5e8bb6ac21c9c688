//! Sums of numbers of any types, from which numbers can be taken back.
//!
//! Integers add up in 128 bits and doubles with their rounding errors kept, so that the order of
//! the operands doesn't matter ([`Exactness`] says when that is certain). Infinities and NaNs are
//! only counted, since they would stay for ever in a sum. The result has the widest type among the
//! numbers that are in.

use frond_doc::{Decimal128, decimal};

use super::{Exactness, Number};

/// A sum of numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    count: u64,
    long_count: u64,
    double_count: u64,
    decimal_count: u64,
    integers: i128,
    doubles: DoubleSum,
    decimals: Option<Decimal128>,
    nan_count: u64,
    infinite_count: u64,
    minus_infinite_count: u64,
}

/// The kind of a number, apart from its size.
enum Size {
    Finite,
    NaN,
    Infinite,
    MinusInfinite,
}

fn size(number: f64) -> Size {
    if number.is_nan() {
        Size::NaN
    } else if number.is_finite() {
        Size::Finite
    } else if 0.0 < number {
        Size::Infinite
    } else {
        Size::MinusInfinite
    }
}

fn size_of_decimal(number: Decimal128) -> Size {
    match decimal::parts(number) {
        decimal::Parts::NaN => Size::NaN,
        decimal::Parts::Infinity { negative: false } => Size::Infinite,
        decimal::Parts::Infinity { negative: true } => Size::MinusInfinite,
        decimal::Parts::Finite { .. } => Size::Finite,
    }
}

impl Sum {
    /// Adds a number.
    pub(crate) fn add(&mut self, number: Number) {
        self.count += 1;
        match number {
            Number::Int(number) => self.integers += i128::from(number),
            Number::Long(number) => {
                self.long_count += 1;
                self.integers += i128::from(number);
            }
            Number::Double(number) => {
                self.double_count += 1;
                match self.odd(size(number)) {
                    Some(count) => *count += 1,
                    None => self.doubles.add(number),
                }
            }
            Number::Decimal(number) => {
                self.decimal_count += 1;
                match self.odd(size_of_decimal(number)) {
                    Some(count) => *count += 1,
                    None => {
                        let sum = self.decimals.map(|sum| decimal::add(sum, number));
                        self.decimals = Some(sum.unwrap_or(number));
                    }
                }
            }
        }
    }

    /// Adds a number `count` times, if one product is exactly what so many additions come to:
    /// false, and nothing is added, if it may not be.
    pub(crate) fn add_times(&mut self, number: Number, count: u64) -> bool {
        match number {
            Number::Int(number) => self.integers += i128::from(number) * i128::from(count),
            Number::Long(number) => {
                self.long_count += count;
                self.integers += i128::from(number) * i128::from(count);
            }
            Number::Double(number) => {
                let product = number * count as f64;
                // Below 2^53 each partial sum of whole numbers is exact.
                if number.fract() != 0.0 || (1_u64 << 53) as f64 <= product.abs() {
                    return false;
                }
                self.double_count += count;
                self.doubles.add(product);
            }
            Number::Decimal(_) => return false,
        }
        self.count += count;
        true
    }

    /// Adds the numbers of `next`. Where `exactness`, of both, says so, that is what adding them
    /// one by one comes to.
    pub(crate) fn append(&mut self, next: &Sum) {
        self.count += next.count;
        self.long_count += next.long_count;
        self.double_count += next.double_count;
        self.decimal_count += next.decimal_count;
        self.integers += next.integers;
        self.doubles.append(next.doubles);
        self.nan_count += next.nan_count;
        self.infinite_count += next.infinite_count;
        self.minus_infinite_count += next.minus_infinite_count;
        debug_assert!(next.decimals.is_none(), "the order of decimals matters");
    }

    /// Notes in `exactness` what is to be added; whether the order of all is known not to matter.
    pub(crate) fn note(exactness: &mut Exactness, number: Number) -> bool {
        match number {
            Number::Int(_) | Number::Long(_) => true,
            Number::Double(number) => !number.is_finite() || exactness.add(number),
            Number::Decimal(_) => false,
        }
    }

    /// Whether the order of all that is in doesn't matter, as `exactness` says of its doubles.
    pub(crate) fn is_exact(&self, mut exactness: Exactness) -> bool {
        // In the end the integers meet the doubles in two parts.
        let high = self.integers as f64;
        let low = (self.integers - high as i128) as f64;
        self.double_count == 0 || exactness.add(high) && exactness.add(low)
    }

    /// Takes back a number that was added.
    pub(crate) fn remove(&mut self, number: Number) {
        self.count -= 1;
        match number {
            Number::Int(number) => self.integers -= i128::from(number),
            Number::Long(number) => {
                self.long_count -= 1;
                self.integers -= i128::from(number);
            }
            Number::Double(number) => {
                self.double_count -= 1;
                match self.odd(size(number)) {
                    Some(count) => *count -= 1,
                    None => self.doubles.add(-number),
                }
            }
            Number::Decimal(number) => {
                self.decimal_count -= 1;
                match self.odd(size_of_decimal(number)) {
                    Some(count) => *count -= 1,
                    None => self.decimals = self.decimals.map(|sum| decimal::subtract(sum, number)),
                }
            }
        }
        // Rounding errors must not outlive the numbers that they came from.
        if self.double_count == 0 {
            self.doubles = DoubleSum::default();
        }
        if self.decimal_count == 0 {
            self.decimals = None;
        }
    }

    /// Returns where numbers are counted that aren't finite.
    fn odd(&mut self, size: Size) -> Option<&mut u64> {
        match size {
            Size::Finite => None,
            Size::NaN => Some(&mut self.nan_count),
            Size::Infinite => Some(&mut self.infinite_count),
            Size::MinusInfinite => Some(&mut self.minus_infinite_count),
        }
    }

    /// The sum, if it isn't finite.
    fn odd_total(&self) -> Option<f64> {
        if 0 < self.nan_count || (0 < self.infinite_count && 0 < self.minus_infinite_count) {
            return Some(f64::NAN);
        }
        if 0 < self.infinite_count {
            return Some(f64::INFINITY);
        }
        (0 < self.minus_infinite_count).then_some(f64::NEG_INFINITY)
    }

    /// The sum: 0 of no numbers.
    pub(crate) fn total(&self) -> Number {
        if 0 < self.decimal_count {
            if let Some(odd) = self.odd_total() {
                return Number::Decimal(decimal::from_f64(odd));
            }
            let others = self.others();
            return Number::Decimal(match self.decimals {
                Some(total) => decimal::add(total, others),
                None => others,
            });
        }
        if 0 < self.double_count {
            return Number::Double(self.double());
        }
        match (i64::try_from(self.integers), i32::try_from(self.integers)) {
            (Ok(_), Ok(total)) if self.long_count == 0 => Number::Int(total),
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
        if let Some(odd) = self.odd_total() {
            return odd;
        }
        let mut doubles = self.doubles;
        // In two parts, so that integers beyond 2^53 lose nothing before they meet the doubles.
        let high = self.integers as f64;
        doubles.add(high);
        doubles.add((self.integers - high as i128) as f64);
        doubles.total()
    }

    /// The sum of integers and finite doubles as a decimal.
    fn others(&self) -> Decimal128 {
        let integers = match i64::try_from(self.integers) {
            Ok(integers) => decimal::from_i64(integers),
            Err(_) => decimal::from_f64(self.integers as f64),
        };
        if self.double_count == 0 {
            return integers;
        }
        decimal::add(integers, decimal::from_f64(self.doubles.total()))
    }
}

/// Doubles summed with the errors of rounding kept, and those of summing up these (Neumaier's
/// variant of Kahan's sum, twice). Where [`Exactness`] holds the three together are the true sum.
#[derive(Clone, Copy, Debug, Default)]
struct DoubleSum {
    sum: f64,
    error: f64,
    rest: f64,
}

impl DoubleSum {
    fn add(&mut self, number: f64) {
        let (sum, error) = two_sum(self.sum, number);
        self.sum = sum;
        if sum.is_finite() {
            self.add_error(error);
        }
    }

    fn add_error(&mut self, number: f64) {
        let (error, rest) = two_sum(self.error, number);
        self.error = error;
        self.rest += rest;
    }

    fn append(&mut self, next: DoubleSum) {
        self.add(next.sum);
        self.add_error(next.error);
        self.rest += next.rest;
    }

    /// The double that is nearest to all three, whatever each has of it: the last step is that of
    /// Python's `math.fsum`.
    fn total(&self) -> f64 {
        if !self.sum.is_finite() {
            return self.sum;
        }
        let (high, middle) = two_sum(self.sum, self.error);
        let (middle, low) = two_sum(middle, self.rest);
        let (high, middle) = two_sum(high, middle);
        let (middle, low) = two_sum(middle, low);
        let (high, middle) = two_sum(high, middle);
        // In the middle between two doubles the even one was taken; what is left may decide.
        let other = high + 2.0 * middle;
        let decides = 0.0 < middle && 0.0 < low || middle < 0.0 && low < 0.0;
        if decides && other - high == 2.0 * middle { other } else { high }
    }
}

/// The rounded sum of two doubles, and what it was rounded by.
#[inline]
fn two_sum(left: f64, right: f64) -> (f64, f64) {
    let sum = left + right;
    let (greater, less) = if left.abs() >= right.abs() { (left, right) } else { (right, left) };
    (sum, (greater - sum) + less)
}
