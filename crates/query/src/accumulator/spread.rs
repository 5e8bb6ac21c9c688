//! `$stdDevPop`, `$stdDevSamp`, `$covariancePop`, `$covarianceSamp`: what is no number, or no pair
//! of numbers, doesn't count.
//!
//! Squares of distances are summed about the mean as it moves (Welford's method, which loses no
//! digits where the mean is large). Taking a number back the same way would lose them: what is left
//! of a large number's square is rounding. So a window never takes back. It keeps two stacks: the
//! numbers that came since the last turn with their spread, and for each number before that the
//! spread of itself and all younger ones before the turn. A number that leaves is the top of the
//! second stack; when that is empty, the first is turned over into it. The result merges the two
//! spreads (Chan, Golub, LeVeque, 1979). That is a constant number of steps a value.

use frond_doc::Value;

use super::{State, Window};
use crate::error::QueryError;
use crate::expression::Evaluated;
use crate::number::any_type::Number;

/// How pairs of numbers vary together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spread {
    count: u64,
    means: (f64, f64),
    /// Sum of the products of the distances from the means.
    products: f64,
    /// How many pairs aren't finite: the result is NaN then.
    odd_count: u64,
}

impl Spread {
    /// Adds a number: it varies with itself.
    pub(crate) fn add(&mut self, number: f64) {
        self.add_pair(number, number);
    }

    fn add_pair(&mut self, left: f64, right: f64) {
        if !left.is_finite() || !right.is_finite() {
            self.odd_count += 1;
            return;
        }
        self.count += 1;
        let count = self.count as f64;
        let distance = left - self.means.0;
        self.means.0 += distance / count;
        self.means.1 += (right - self.means.1) / count;
        self.products += distance * (right - self.means.1);
    }

    /// The spread of the pairs of both.
    fn merge(&self, other: &Spread) -> Spread {
        let odd_count = self.odd_count + other.odd_count;
        if self.count == 0 {
            return Spread { odd_count, ..*other };
        }
        if other.count == 0 {
            return Spread { odd_count, ..*self };
        }
        let (own, others) = (self.count as f64, other.count as f64);
        let count = own + others;
        let distances = (other.means.0 - self.means.0, other.means.1 - self.means.1);
        Spread {
            count: self.count + other.count,
            means: (
                self.means.0 + distances.0 * others / count,
                self.means.1 + distances.1 * others / count,
            ),
            products: self.products
                + other.products
                + distances.0 * distances.1 * own * others / count,
            odd_count,
        }
    }

    /// The covariance of the pairs as a whole population, or as a sample of one; `None` of too
    /// few.
    fn covariance(&self, is_sample: bool) -> Option<f64> {
        let count = self.count + self.odd_count;
        let degrees = count.checked_sub(u64::from(is_sample)).filter(|count| 0 < *count)?;
        Some(if 0 < self.odd_count { f64::NAN } else { self.products / degrees as f64 })
    }

    /// The standard deviation of the numbers.
    pub(crate) fn deviation(&self, is_sample: bool) -> Option<f64> {
        self.covariance(is_sample).map(f64::sqrt)
    }
}

/// What is asked of a spread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    Deviation,
    Covariance,
}

/// Of a group or a window.
pub(super) struct Spreading {
    measure: Measure,
    is_sample: bool,
    /// Of the pairs that came since the last turn.
    young: Spread,
    young_pairs: Vec<(f64, f64)>,
    /// Of each older pair and all younger ones before the turn, the oldest last.
    old: Vec<Spread>,
    keeps_pairs: bool,
}

impl Spreading {
    /// Of a group, which keeps no pairs.
    pub(super) fn of_group(measure: Measure, is_sample: bool) -> Spreading {
        Spreading {
            measure,
            is_sample,
            young: Spread::default(),
            young_pairs: Vec::new(),
            old: Vec::new(),
            keeps_pairs: false,
        }
    }

    /// Of a window.
    pub(super) fn of_window(measure: Measure, is_sample: bool) -> Spreading {
        Spreading { keeps_pairs: true, ..Spreading::of_group(measure, is_sample) }
    }

    /// What counts of a value: a number twice, or the two numbers of an array.
    fn pair(&self, value: &Evaluated<'_>) -> Option<(f64, f64)> {
        let double = |value: Value<'_>| Number::of(value).map(Number::double);
        match (self.measure, value.value()?) {
            (Measure::Deviation, value) => double(value).map(|number| (number, number)),
            (Measure::Covariance, Value::Array(array)) => {
                let mut elements = array.iter();
                let pair = (double(elements.next()?)?, double(elements.next()?)?);
                elements.next().is_none().then_some(pair)
            }
            _ => None,
        }
    }
}

impl State for Spreading {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        let Some((left, right)) = self.pair(&value) else { return Ok(0) };
        self.young.add_pair(left, right);
        if !self.keeps_pairs {
            return Ok(0);
        }
        self.young_pairs.push((left, right));
        Ok(size_of::<Spread>())
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.current()
    }
}

impl Window for Spreading {
    fn remove(&mut self, value: Evaluated<'_>) {
        if self.pair(&value).is_none() {
            return;
        }
        if self.old.is_empty() {
            let mut spread = Spread::default();
            while let Some((left, right)) = self.young_pairs.pop() {
                spread.add_pair(left, right);
                self.old.push(spread);
            }
            self.young = Spread::default();
        }
        self.old.pop();
    }

    fn current(&self) -> Result<Evaluated<'static>, QueryError> {
        let spread = match self.old.last() {
            Some(old) => old.merge(&self.young),
            None => self.young,
        };
        let measured = match self.measure {
            Measure::Deviation => spread.deviation(self.is_sample),
            Measure::Covariance => spread.covariance(self.is_sample),
        };
        Ok(measured.map_or(Evaluated::NULL, Evaluated::from))
    }
}
