//! Whether doubles add up to the same in whatever order: then parts of them may be added up apart.
//!
//! [`Sum`](super::Sum) keeps a sum `s` and the sum `e` of all rounding errors. Let every number be
//! a multiple of `u`, a power of two, and let their sizes add up to `S`. Then
//!
//! 1. each `s` and each rounding error is a multiple of `u`, too: what is rounded to coarser steps
//!    than `u` stays one, and what isn't is exact;
//! 2. a rounding error is at most `S / 2^53`, so that `n` of them, in whatever order they come, add
//!    up to at most `n S / 2^53`;
//! 3. multiples of `u` up to `2^53 u` are doubles, so that `e` is exact as long as
//!    `n S / 2^53 <= 2^53 u`.
//!
//! So where `n S <= 2^105 u` (half of that, for what `S` itself is rounded by), `s + e` is the true
//! sum, and what it is rounded to in the end says nothing of the order. A million prices with cents
//! pass by far; numbers of very different sizes don't.

/// The most that is asked of `n S`: beyond it sums may overflow.
const POWER_MAX: i32 = 1000;
/// Of `2^105 u`, if `u` is 1.
const POWER: i32 = 105;
const MANTISSA_BITS: i32 = 52;
/// The power of two of the last bit of the numbers whose exponent is stored as 1.
const LAST_BIT_MIN: i32 = -1074;

/// What is known of the doubles that were added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exactness {
    count: f64,
    /// The sum of their sizes.
    sizes: f64,
    /// All are multiples of two to this power.
    last_bit: i32,
    /// Two to the power of what `count * sizes` may be.
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
        self.count * self.sizes <= self.most
    }
}

/// The power of two of the last bit of a finite number that isn't 0.
fn last_bit(number: f64) -> i32 {
    let bits = number.to_bits();
    let mantissa = bits & ((1 << MANTISSA_BITS) - 1);
    // Of the whole, eleven bits are the exponent's.
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
    fn what_holds_comes_to_the_same_in_any_order() {
        let prices: Vec<f64> = (0..20_000).map(|n| f64::from(n * 7919 % 9999) / 100.0).collect();
        let signed: Vec<f64> = (0..5000).map(|n| f64::from(n % 17 - 8) * 0.1).collect();
        let whole: Vec<f64> = (0..5000).map(|n| f64::from(n) * 1e15).collect();
        for numbers in [prices, signed, whole] {
            let mut exactness = Exactness::default();
            assert!(numbers.iter().all(|number| exactness.add(*number)));
            let expected = total(&numbers);
            for seed in 0..20 {
                assert_eq!(total(&shuffled(&numbers, seed)), expected);
            }
        }
    }

    #[test]
    fn what_depends_on_the_order_does_not_hold() {
        let mixed = [1e100, 1.0, -1e100, 1e-100, 3.0];
        let mut exactness = Exactness::default();
        assert!(!mixed.iter().all(|number| exactness.add(*number)));
        let mut exactness = Exactness::default();
        assert!(![1e308, 1e308, -1e308].iter().all(|number| exactness.add(*number)));
        let mut parts = [Exactness::default(); 2];
        assert!(parts[0].add(1e40) && parts[1].add(1.0));
        let [mut first, second] = parts;
        assert!(!first.append(second));
    }
}
