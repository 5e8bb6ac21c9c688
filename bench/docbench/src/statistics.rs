//! Medians with bootstrap intervals.
//!
//! The interval is the percentile bootstrap's (Efron): the median of as many samples drawn with
//! replacement, 2,000 times; its 2.5th and 97.5th percentile. With three repetitions it is their
//! range, or close to it, and claims no more.

use crate::random::Random;

const DRAWS: usize = 2_000;
const SEED: u64 = 0x5eed;

/// The middle one, or the mean of the two in the middle; `None` of nothing.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted.get(middle).copied()
    } else {
        Some((sorted.get(middle.checked_sub(1)?)? + sorted.get(middle)?) / 2.0)
    }
}

/// The 95 % interval of the median.
pub fn interval(samples: &[f64]) -> Option<(f64, f64)> {
    interval_of(&[samples], |drawn| median(drawn[0]))
}

/// The 95 % interval of any statistic of independent sets of samples, such as a ratio of medians.
pub fn interval_of(
    sets: &[&[f64]],
    statistic: impl Fn(&[&[f64]]) -> Option<f64>,
) -> Option<(f64, f64)> {
    if sets.iter().any(|set| set.is_empty()) {
        return None;
    }
    let mut random = Random::new(SEED);
    let mut values = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        let drawn: Vec<Vec<f64>> = sets
            .iter()
            .map(|set| set.iter().map(|_| set[random.below(set.len() as u64) as usize]).collect())
            .collect();
        let drawn: Vec<&[f64]> = drawn.iter().map(Vec::as_slice).collect();
        values.push(statistic(&drawn)?);
    }
    values.sort_unstable_by(f64::total_cmp);
    Some((values[DRAWS * 25 / 1_000], values[DRAWS * 975 / 1_000 - 1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        for (samples, expected) in [
            (&[][..], None),
            (&[3.0], Some(3.0)),
            (&[3.0, 1.0], Some(2.0)),
            (&[9.0, 1.0, 2.0], Some(2.0)),
        ] {
            assert_eq!(median(samples), expected);
        }
    }

    #[test]
    fn an_interval_holds_the_median() {
        let samples = [10.0, 11.0, 12.0, 30.0, 9.0];
        let (low, high) = interval(&samples).expect("there are samples");
        assert!(low <= 11.0 && 11.0 <= high && 9.0 <= low && high <= 30.0, "{low} {high}");
        assert_eq!(interval(&[]), None);
        assert_eq!(interval(&[5.0]), Some((5.0, 5.0)));
    }
}
