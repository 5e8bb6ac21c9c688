//! Series of preferred numbers, to which `$bucketAuto` rounds its boundaries: Renard's (`R5` to
//! `R80`), those of IEC 60063 (`E6` to `E192`), `1-2-5`, and powers of two.

/// The first decade of a series, from 10 on, or powers of two.
#[derive(Clone, Copy, Debug)]
pub(super) enum Granularity {
    PowersOfTwo,
    /// The numbers between 10 and 100, ascending.
    Series(&'static [f64]),
    /// A series of this many numbers a decade, of two digits after the first: 10^(position /
    /// count).
    Geometric(u32),
}

#[rustfmt::skip]
const R80: &[f64] = &[
    10.0, 10.3, 10.6, 10.9, 11.2, 11.5, 11.8, 12.2, 12.5, 12.8, 13.2, 13.6, 14.0, 14.5, 15.0, 15.5,
    16.0, 16.5, 17.0, 17.5, 18.0, 18.5, 19.0, 19.5, 20.0, 20.6, 21.2, 21.8, 22.4, 23.0, 23.6, 24.3,
    25.0, 25.8, 26.5, 27.2, 28.0, 29.0, 30.0, 30.7, 31.5, 32.5, 33.5, 34.5, 35.5, 36.5, 37.5, 38.7,
    40.0, 41.2, 42.5, 43.7, 45.0, 46.2, 47.5, 48.7, 50.0, 51.5, 53.0, 54.5, 56.0, 58.0, 60.0, 61.5,
    63.0, 65.0, 67.0, 69.0, 71.0, 73.0, 75.0, 77.5, 80.0, 82.5, 85.0, 87.5, 90.0, 92.5, 95.0, 97.5,
];
#[rustfmt::skip]
const R40: &[f64] = &[
    10.0, 10.6, 11.2, 11.8, 12.5, 13.2, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0, 20.0, 21.2, 22.4, 23.6,
    25.0, 26.5, 28.0, 30.0, 31.5, 33.5, 35.5, 37.5, 40.0, 42.5, 45.0, 47.5, 50.0, 53.0, 56.0, 60.0,
    63.0, 67.0, 71.0, 75.0, 80.0, 85.0, 90.0, 95.0,
];
#[rustfmt::skip]
const R20: &[f64] = &[
    10.0, 11.2, 12.5, 14.0, 16.0, 18.0, 20.0, 22.4, 25.0, 28.0, 31.5, 35.5, 40.0, 45.0, 50.0, 56.0,
    63.0, 71.0, 80.0, 90.0,
];
const R10: &[f64] = &[10.0, 12.5, 16.0, 20.0, 25.0, 31.5, 40.0, 50.0, 63.0, 80.0];
const R5: &[f64] = &[10.0, 16.0, 25.0, 40.0, 63.0];
#[rustfmt::skip]
const E24: &[f64] = &[
    10.0, 11.0, 12.0, 13.0, 15.0, 16.0, 18.0, 20.0, 22.0, 24.0, 27.0, 30.0, 33.0, 36.0, 39.0, 43.0,
    47.0, 51.0, 56.0, 62.0, 68.0, 75.0, 82.0, 91.0,
];
const E12: &[f64] = &[10.0, 12.0, 15.0, 18.0, 22.0, 27.0, 33.0, 39.0, 47.0, 56.0, 68.0, 82.0];
const E6: &[f64] = &[10.0, 15.0, 22.0, 33.0, 47.0, 68.0];

impl Granularity {
    /// The series of a name.
    pub(super) fn named(name: &str) -> Option<Granularity> {
        Some(match name {
            "1-2-5" => Granularity::Series(&[10.0, 20.0, 50.0]),
            "POWERSOF2" => Granularity::PowersOfTwo,
            "R5" => Granularity::Series(R5),
            "R10" => Granularity::Series(R10),
            "R20" => Granularity::Series(R20),
            "R40" => Granularity::Series(R40),
            "R80" => Granularity::Series(R80),
            "E6" => Granularity::Series(E6),
            "E12" => Granularity::Series(E12),
            "E24" => Granularity::Series(E24),
            "E48" => Granularity::Geometric(48),
            "E96" => Granularity::Geometric(96),
            "E192" => Granularity::Geometric(192),
            _ => return None,
        })
    }

    /// The least preferred number above `number`, which isn't negative; 0 for 0.
    pub(super) fn above(self, number: f64) -> f64 {
        if number == 0.0 {
            return 0.0;
        }
        if let Granularity::PowersOfTwo = self {
            return (number.log2().floor() + 1.0).exp2();
        }
        let (scaled, scale) = scaled(number);
        let found = self.decade().into_iter().find(|preferred| scaled < *preferred);
        found.unwrap_or(100.0) * scale
    }

    /// The greatest preferred number below `number`, which isn't negative; 0 for 0.
    pub(super) fn below(self, number: f64) -> f64 {
        if number == 0.0 {
            return 0.0;
        }
        if let Granularity::PowersOfTwo = self {
            return (number.log2().ceil() - 1.0).exp2();
        }
        let (scaled, scale) = scaled(number);
        let decade = self.decade();
        let found = decade.iter().rev().find(|preferred| **preferred < scaled);
        // Below the first of a decade is the last of the one before.
        let last = decade.last().copied().unwrap_or(10.0) / 10.0;
        found.copied().unwrap_or(last) * scale
    }

    fn decade(self) -> Vec<f64> {
        match self {
            Granularity::Series(series) => series.to_vec(),
            Granularity::PowersOfTwo => Vec::new(),
            Granularity::Geometric(count) => (0..count)
                .map(|position| {
                    let exact = 10_f64.powf(f64::from(position) / f64::from(count));
                    let rounded = (exact * 100.0).round();
                    // The one number of the standard that isn't the rounded power.
                    let number = if count == 192 && rounded == 919.0 { 920.0 } else { rounded };
                    number / 10.0
                })
                .collect(),
        }
    }
}

/// The number brought between 10 and 100, and what it must be multiplied by to be itself.
fn scaled(number: f64) -> (f64, f64) {
    let scale = 10_f64.powf(number.log10().floor() - 1.0);
    (number / scale, scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_the_next_preferred_one() {
        let check = |name: &str, number: f64, below: f64, above: f64| {
            let series = Granularity::named(name).expect("a series");
            let near =
                |found: f64, expected: f64| (found - expected).abs() < 1e-9 * expected.max(1.0);
            assert!(near(series.above(number), above), "{name} {number} {}", series.above(number));
            assert!(near(series.below(number), below), "{name} {number} {}", series.below(number));
        };
        check("R5", 10.0, 6.3, 16.0);
        check("R5", 0.3, 0.25, 0.4);
        check("1-2-5", 6.0, 5.0, 10.0);
        check("1-2-5", 0.0, 0.0, 0.0);
        check("E6", 70.0, 68.0, 100.0);
        check("E192", 9.15, 9.09, 9.20);
        check("POWERSOF2", 8.0, 4.0, 16.0);
        check("POWERSOF2", 9.0, 8.0, 16.0);
        assert!(Granularity::named("R6").is_none());
    }
}
