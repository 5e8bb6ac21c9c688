//! A t-digest: the percentiles of any number of numbers in a few kilobytes.
//!
//! Numbers are gathered into clusters, small ones near the ends and larger ones in the middle, so
//! that the extreme percentiles are as good as exact: Dunning and Ertl, "Computing extremely
//! accurate quantiles using t-digests" (2019), the merging digest with scale function k1. Infinite
//! numbers are only counted, since a mean with one of them is no number.

use std::f64::consts::PI;

/// The number of clusters at most, about: a rank is off by at most a thousandth in the middle.
const COMPRESSION: f64 = 2_000.0;
/// The number of numbers that wait before they are merged into the clusters.
const WAITING_COUNT_MAX: usize = 8_192;

/// A cluster of numbers that are near each other.
#[derive(Clone, Copy, Debug)]
struct Cluster {
    mean: f64,
    count: f64,
}

/// The numbers, in clusters.
#[derive(Debug, Default)]
pub(super) struct Digest {
    /// The clusters in the order of their means.
    clusters: Vec<Cluster>,
    waiting: Vec<f64>,
    lowest_count: u64,
    highest_count: u64,
    /// The number of those that are finite.
    finite_count: u64,
    least: f64,
    greatest: f64,
}

impl Digest {
    /// Adds a number, which isn't NaN.
    pub(super) fn add(&mut self, number: f64) {
        if number == f64::INFINITY {
            self.highest_count += 1;
        } else if number == f64::NEG_INFINITY {
            self.lowest_count += 1;
        } else {
            let is_first = self.finite_count == 0;
            self.least = if is_first { number } else { self.least.min(number) };
            self.greatest = if is_first { number } else { self.greatest.max(number) };
            self.finite_count += 1;
            self.waiting.push(number);
            if WAITING_COUNT_MAX <= self.waiting.len() {
                self.merge();
            }
        }
    }

    /// Merges what waits into the clusters.
    fn merge(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        let mut all = std::mem::take(&mut self.clusters);
        all.extend(waiting.into_iter().map(|mean| Cluster { mean, count: 1.0 }));
        all.sort_unstable_by(|left, right| left.mean.total_cmp(&right.mean));
        let total: f64 = all.iter().map(|cluster| cluster.count).sum();
        let scale =
            |share: f64| COMPRESSION / (2.0 * PI) * (2.0 * share - 1.0).clamp(-1.0, 1.0).asin();
        let mut before = 0.0;
        for cluster in all {
            let Some(last) = self.clusters.last_mut() else {
                self.clusters.push(cluster);
                continue;
            };
            let count = last.count + cluster.count;
            if scale((before + count) / total) - scale(before / total) <= 1.0 {
                last.mean += (cluster.mean - last.mean) * cluster.count / count;
                last.count = count;
            } else {
                before += last.count;
                self.clusters.push(cluster);
            }
        }
    }

    /// About the number at rank `ceil(percentile * count)`; `None` without numbers.
    pub(super) fn at(&mut self, percentile: f64) -> Option<f64> {
        self.merge();
        let count = self.lowest_count + self.finite_count + self.highest_count;
        if count == 0 {
            return None;
        }
        let rank = (count as f64 * percentile).ceil().max(1.0);
        if rank <= self.lowest_count as f64 {
            return Some(f64::NEG_INFINITY);
        }
        let rank = rank - self.lowest_count as f64;
        if self.finite_count as f64 + 0.5 < rank {
            return Some(f64::INFINITY);
        }
        if rank <= 1.0 {
            return Some(self.least);
        }
        if self.finite_count as f64 <= rank {
            return Some(self.greatest);
        }
        // A cluster's mean stands for the rank in its middle; between two middles the value rises
        // evenly.
        let (mut middle_before, mut mean_before, mut seen) = (1.0, self.least, 0.0);
        for cluster in &self.clusters {
            let middle = seen + (cluster.count + 1.0) / 2.0;
            if rank <= middle {
                let width = middle - middle_before;
                let share = if width > 0.0 { (rank - middle_before) / width } else { 1.0 };
                return Some(mean_before + (cluster.mean - mean_before) * share);
            }
            seen += cluster.count;
            (middle_before, mean_before) = (middle, cluster.mean);
        }
        Some(self.greatest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_right_to_a_thousandth() {
        let count = 200_000_u64;
        let mut digest = Digest::default();
        for position in 0..count {
            // All numbers below `count`, mixed.
            digest.add((position * 7_919 % count) as f64);
        }
        for percentile in [0.0, 0.001, 0.01, 0.25, 0.5, 0.9, 0.999, 1.0] {
            let expected = (count as f64 * percentile).ceil().max(1.0) - 1.0;
            let found = digest.at(percentile).unwrap();
            assert!((found - expected).abs() <= count as f64 / 1_000.0, "{percentile}: {found}");
        }
        assert!(digest.clusters.len() < 2 * COMPRESSION as usize, "{}", digest.clusters.len());
    }

    #[test]
    fn infinite_numbers_have_their_ranks() {
        let mut digest = Digest::default();
        assert_eq!(digest.at(0.5), None);
        for number in [f64::INFINITY, 1.0, f64::NEG_INFINITY, 2.0] {
            digest.add(number);
        }
        let found: Vec<Option<f64>> =
            [0.0, 0.5, 0.75, 1.0].iter().map(|percentile| digest.at(*percentile)).collect();
        let expected = [f64::NEG_INFINITY, 1.0, 2.0, f64::INFINITY];
        assert_eq!(found, expected.map(Some));
    }
}
