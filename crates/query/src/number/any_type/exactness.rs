//! Decides whether doubles add up to the same in any order: then parts of them may be added up
//! apart.
//!
//! [`Sum`](super::Sum) keeps a sum `s`, the sum `e` of its rounding errors, and the sum `r` of
//! those of `e`. Let every number be a multiple of `u`, a power of two, and let the sizes of all
//! `n` add up to `S`. Then
//!
//! 1. each of `s`, `e` and `r` and each rounding error is a multiple of `u`, too: what is rounded
//!    to coarser steps than `u` stays one, and what isn't is exact;
//! 2. a rounding error of `s` is at most `S / 2^53`, so that in whatever order they come, they add
//!    up to at most `n S / 2^53`; those of `e` in the same way to at most `n^2 S / 2^106`;
//! 3. multiples of `u` up to `2^53 u` are doubles, so that `r` is exact as long as
//!    `n^2 S / 2^106 <= 2^53 u`.
//!
//! So where `n^2 S <= 2^158 u` (half of that, for what is rounded here), `s + e + r` is the true
//! sum, and what it is rounded to in the end says nothing of the order. A hundred million prices
//! with cents pass by far; numbers of very different sizes don't.

/// The most that is allowed of `n^2 S`: beyond it sums may overflow.
const POWER_MAX: i32 = 1000;
/// The power in `2^158 u`, if `u` is 1.
const POWER: i32 = 158;
const MANTISSA_BITS: i32 = 52;
/// The power of two of the last bit of the numbers whose exponent is stored as 1.
const LAST_BIT_MIN: i32 = -1074;

/// The range and precision of the doubles that were added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exactness {
    count: f64,
    /// The sum of their sizes.
    sizes: f64,
    /// All are multiples of two to this power.
    last_bit: i32,
    /// The upper limit for the square of the count times the sizes.
    most: f64,
}

impl Default for Exactness {
    fn default() -> Exactness {
        Exactness { count: 0.0, sizes: 0.0, last_bit: POWER_MAX - POWER, most: power(POWER_MAX) }
    }
}

impl Exactness {
    /// Adds a finite number; whether any order of all is known to come to the same.
    #[inline]
    pub(crate) fn add(&mut self, number: f64) -> bool {
        self.count += 1.0;
        if number != 0.0 {
            self.sizes += number.abs();
            self.reach(last_bit(number));
        }
        self.holds()
    }

    /// Adds those of others; whether any order of all is known to come to the same.
    pub(crate) fn append(&mut self, others: Exactness) -> bool {
        self.count += others.count;
        self.sizes += others.sizes;
        self.reach(others.last_bit);
        self.holds()
    }

    #[inline]
    fn reach(&mut self, last_bit: i32) {
        if last_bit < self.last_bit {
            self.last_bit = last_bit;
            self.most = power(last_bit + POWER);
        }
    }

    fn holds(&self) -> bool {
        self.count * self.count * self.sizes <= self.most
    }
}

/// The power of two of the last bit of a finite number that isn't 0.
fn last_bit(number: f64) -> i32 {
    let bits = number.to_bits();
    let mantissa = bits & ((1 << MANTISSA_BITS) - 1);
    // The exponent has eleven bits of the whole.
    let exponent = (bits >> MANTISSA_BITS) as i32 & 0x7FF;
    let (first, mantissa) = match exponent {
        0 => (LAST_BIT_MIN, mantissa),
        _ => (LAST_BIT_MIN - 1 + exponent, mantissa | 1 << MANTISSA_BITS),
    };
    first + mantissa.trailing_zeros() as i32
}

fn power(exponent: i32) -> f64 {
    2.0_f64.powi(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::any_type::{Number, Sum};

    #[test]
    fn the_last_bit_of_numbers_is_found() {
        for (number, expected) in [
            (1.0, 0),
            (-3.0, 0),
            (0.5, -1),
            (0.75, -2),
            (96.0, 5),
            (0.1, -55),
            (f64::MIN_POSITIVE, -1022),
            (5e-324, -1074),
            (f64::MAX, 971),
        ] {
            assert_eq!(last_bit(number), expected, "{number}");
        }
    }

    /// Numbers in some order, by a seed.
    fn shuffled(numbers: &[f64], seed: u64) -> Vec<f64> {
        let mut state = seed;
        let mut keyed: Vec<(u64, f64)> = numbers
            .iter()
            .map(|number| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
                (state >> 11, *number)
            })
            .collect();
        keyed.sort_by_key(|(key, _)| *key);
        keyed.into_iter().map(|(_, number)| number).collect()
    }

    fn total(numbers: &[f64]) -> u64 {
        let mut sum = Sum::default();
        numbers.iter().for_each(|number| sum.add(Number::Double(*number)));
        sum.total().double().to_bits()
    }

    #[test]
    fn exact_sums_are_the_same_in_any_order() {
        let prices: Vec<f64> = (0..20_000).map(|n| f64::from(n * 7919 % 9999) / 100.0).collect();
        let signed: Vec<f64> = (0..5000).map(|n| f64::from(n % 17 - 8) * 0.1).collect();
        let whole: Vec<f64> = (0..5000).map(|n| f64::from(n) * 1e15).collect();
        // Beyond what a sum and one sum of its errors hold.
        let wide: Vec<f64> = (0..2000)
            .map(|n| f64::from(n * 7919 % 9999 - 5000) * 2.0_f64.powi(n * 31 % 70 - 30))
            .collect();
        for numbers in [prices, signed, whole, wide] {
            let mut exactness = Exactness::default();
            assert!(numbers.iter().all(|number| exactness.add(*number)));
            let expected = total(&numbers);
            for seed in 0..20 {
                assert_eq!(total(&shuffled(&numbers, seed)), expected);
            }
        }
    }

    #[test]
    fn a_sum_is_the_double_that_is_nearest() {
        let tiny = 2.0_f64.powi(-100);
        let half = 2.0_f64.powi(-53);
        for (numbers, expected) in [
            (vec![1.0, half, tiny], 1.0 + 2.0 * half),
            (vec![tiny, half, 1.0], 1.0 + 2.0 * half),
            (vec![1.0, half, -tiny], 1.0),
            (vec![1.0, half], 1.0),
            (vec![-1.0, -half, -tiny], -1.0 - 2.0 * half),
            (vec![1e30, 1.0, -1e30, 1e-20], 1.0),
            (vec![0.1; 10], 1.0),
            (vec![], 0.0),
        ] {
            assert_eq!(f64::from_bits(total(&numbers)), expected, "{numbers:?}");
        }
    }

    #[test]
    fn order_dependent_sums_are_not_called_exact() {
        let mixed = [1e100, 1.0, -1e100, 1e-100, 3.0];
        let mut exactness = Exactness::default();
        assert!(!mixed.iter().all(|number| exactness.add(*number)));
        let mut exactness = Exactness::default();
        assert!(![1e308, 1e308, -1e308].iter().all(|number| exactness.add(*number)));
        let mut parts = [Exactness::default(); 2];
        assert!(parts[0].add(1e50) && parts[1].add(1.0));
        let [mut first, second] = parts;
        assert!(!first.append(second));
    }
}
