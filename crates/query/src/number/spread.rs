//! The variance of numbers, or of pairs of them.
//!
//! Squares of distances are summed about the mean as it moves (Welford's method, which loses no
//! digits where the mean is large); two spreads are merged as Chan, Golub and LeVeque do (1979).

/// The variances and the covariance of pairs of numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spread {
    count: u64,
    means: (f64, f64),
    /// Sum of the products of the distances from the means.
    products: f64,
    /// The number of pairs that aren't finite: the result is NaN then.
    non_finite_count: u64,
}

impl Spread {
    /// Adds a number: it varies with itself.
    pub(crate) fn add(&mut self, number: f64) {
        self.add_pair(number, number);
    }

    /// Adds a pair.
    pub(crate) fn add_pair(&mut self, left: f64, right: f64) {
        if !left.is_finite() || !right.is_finite() {
            self.non_finite_count += 1;
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
    pub(crate) fn merge(&self, other: &Spread) -> Spread {
        let non_finite_count = self.non_finite_count + other.non_finite_count;
        if self.count == 0 {
            return Spread { non_finite_count, ..*other };
        }
        if other.count == 0 {
            return Spread { non_finite_count, ..*self };
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
            non_finite_count,
        }
    }

    /// The covariance of the pairs as a whole population, or as a sample of one; `None` of too
    /// few.
    pub(crate) fn covariance(&self, is_sample: bool) -> Option<f64> {
        let count = self.count + self.non_finite_count;
        let degrees = count.checked_sub(u64::from(is_sample)).filter(|count| 0 < *count)?;
        Some(if 0 < self.non_finite_count { f64::NAN } else { self.products / degrees as f64 })
    }

    /// The standard deviation of the numbers.
    pub(crate) fn deviation(&self, is_sample: bool) -> Option<f64> {
        self.covariance(is_sample).map(f64::sqrt)
    }
}
