//! The ratio by which one row is better than another.
//!
//! Above 1 is better, whichever way the metric counts. The interval is the bootstrap's, of the
//! ratio of medians. A ratio whose interval holds 1 is *inside the noise* and isn't ranked. An
//! interval claims too much with fewer than three repetitions a side: then it is widened by a
//! tenth.

use crate::results::{Better, Row, Status};
use crate::statistics;

const REPETITIONS_MIN: usize = 3;
const WIDENED: f64 = 1.1;

/// A ratio of two medians.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ratio {
    /// The ratio; above 1 the first is better.
    pub value: f64,
    /// Its 95 % interval.
    pub interval: (f64, f64),
}

impl Ratio {
    /// Returns how much better `ours` is; `None` if one of them has no figure, or it is no merit.
    pub fn of(ours: &Row, theirs: &Row) -> Option<Ratio> {
        if [ours, theirs].iter().any(|row| row.status != Status::Ok) {
            return None;
        }
        let divided = |one: f64, other: f64| {
            let value = one / other;
            (value.is_finite() && value > 0.0).then_some(value)
        };
        let of = |sets: &[&[f64]]| {
            let (ours_median, theirs_median) =
                (statistics::median(sets[0])?, statistics::median(sets[1])?);
            match ours.better {
                Better::Higher => divided(ours_median, theirs_median),
                Better::Lower => divided(theirs_median, ours_median),
                Better::Neither => None,
            }
        };
        let sets = [ours.samples.as_slice(), theirs.samples.as_slice()];
        let value = of(&sets)?;
        let (low, high) = statistics::interval_of(&sets, of)?;
        let few = sets.iter().any(|set| set.len() < REPETITIONS_MIN);
        let interval = if few { (low / WIDENED, high * WIDENED) } else { (low, high) };
        Some(Ratio { value, interval })
    }

    /// Whether it is open which is better.
    pub fn is_noise(&self) -> bool {
        self.interval.0 <= 1.0 && 1.0 <= self.interval.1
    }
}

/// The geometric mean; `None` of nothing.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some((values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(better: Better, samples: &[f64]) -> Row {
        let line = serde_json::json!({
            "workload": "w", "target": "t", "parameters": {}, "metric": "m", "unit": "u",
            "better": "higher", "status": "ok", "samples": samples,
        });
        Row { better, ..serde_json::from_value(line).expect("a row") }
    }

    #[test]
    fn a_ratio_above_one_is_better_whichever_way_it_counts() {
        let (small, large) = ([10.0, 11.0, 12.0], [20.0, 22.0, 24.0]);
        for (better, ours, theirs, expected) in [
            (Better::Higher, &large, &small, Some(2.0)),
            (Better::Lower, &small, &large, Some(2.0)),
            (Better::Lower, &large, &small, Some(0.5)),
            (Better::Neither, &large, &small, None),
        ] {
            let ratio = Ratio::of(&row(better, ours), &row(better, theirs));
            assert_eq!(ratio.map(|ratio| ratio.value), expected, "{better:?}");
            assert!(ratio.is_none_or(|ratio| !ratio.is_noise()), "{ratio:?}");
        }
    }

    #[test]
    fn overlapping_ranges_are_noise_and_wrong_results_have_no_ratio() {
        let (one, other) =
            (row(Better::Higher, &[9.0, 10.0, 12.0]), row(Better::Higher, &[8.0, 11.0, 12.0]));
        assert!(Ratio::of(&one, &other).expect("both have figures").is_noise());
        // One repetition a side says nothing about a difference of five in a hundred.
        let (one, other) = (row(Better::Higher, &[105.0]), row(Better::Higher, &[100.0]));
        assert!(Ratio::of(&one, &other).expect("both have figures").is_noise());
        let wrong = Row { status: Status::Wrong, ..one.clone() };
        assert_eq!(Ratio::of(&wrong, &other), None);
        assert_eq!(Ratio::of(&row(Better::Higher, &[]), &other), None);
        assert_eq!(Ratio::of(&one, &row(Better::Higher, &[0.0])), None);
    }

    #[test]
    fn geometric_means() {
        assert_eq!(geometric_mean(&[]), None);
        let mean = geometric_mean(&[0.5, 2.0, 8.0]).expect("there are some");
        assert!((mean - 2.0).abs() < 1e-9, "{mean}");
    }
}
