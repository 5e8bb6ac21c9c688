//! Chooses the commit to test next, among those that are left.
//!
//! A bad commit's ancestors hold the first bad one, and so may itself; a good commit's ancestors
//! and itself are good. Of the commits in question the one is tested next that has as many of them
//! among its ancestors as not. Many of them are too many to count that for each: then the middle
//! one of their order is taken, which halves a straight history as well.

/// The number of commits up to which it is counted for each how well it halves them.
const COUNTED_MAX: usize = 2_000;

/// The commits in question.
pub struct Search {
    /// The positions of each commit's parents.
    parents: Vec<Vec<usize>>,
    is_suspect: Vec<bool>,
    /// The commits that no test can judge.
    is_skipped: Vec<bool>,
    /// The commit that is known to be bad.
    bad: usize,
}

impl Search {
    /// Searches among commits given by their parents' positions, the bad commit first.
    pub fn new(parents: Vec<Vec<usize>>) -> Search {
        let count = parents.len();
        Search { parents, is_suspect: vec![true; count], is_skipped: vec![false; count], bad: 0 }
    }

    /// The commit to test next; `None` if nothing is left to decide.
    pub fn next(&self) -> Option<usize> {
        let left = self.left();
        let open: Vec<usize> = left
            .iter()
            .copied()
            .filter(|position| *position != self.bad && !self.is_skipped[*position])
            .collect();
        if left.len() > COUNTED_MAX {
            return open.get(open.len() / 2).copied();
        }
        let halves = |position: &usize| {
            let below = self.ancestors(*position);
            let below = below.iter().zip(&self.is_suspect).filter(|(a, b)| **a && **b).count();
            below.min(left.len() - below)
        };
        open.into_iter().max_by_key(halves)
    }

    /// The commit is bad.
    pub fn bad(&mut self, position: usize) {
        let ancestors = self.ancestors(position);
        for (suspect, is_ancestor) in self.is_suspect.iter_mut().zip(ancestors) {
            *suspect &= is_ancestor;
        }
        self.bad = position;
    }

    /// The commit is good.
    pub fn good(&mut self, position: usize) {
        let ancestors = self.ancestors(position);
        for (suspect, is_ancestor) in self.is_suspect.iter_mut().zip(ancestors) {
            *suspect &= !is_ancestor;
        }
    }

    /// Notes that the commit can't be tested.
    pub fn skip(&mut self, position: usize) {
        self.is_skipped[position] = true;
    }

    /// The commits that may be the first bad one.
    pub fn left(&self) -> Vec<usize> {
        (0..self.parents.len()).filter(|position| self.is_suspect[*position]).collect()
    }

    /// Returns for each commit whether `position` comes from it, or is it.
    fn ancestors(&self, position: usize) -> Vec<bool> {
        let mut found = vec![false; self.parents.len()];
        let mut waiting = vec![position];
        while let Some(position) = waiting.pop() {
            if !std::mem::replace(&mut found[position], true) {
                waiting.extend(&self.parents[position]);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches where `first` is the first bad commit; returns what is left, and after how many
    /// tests.
    fn find(parents: &[Vec<usize>], first: usize, skipped: &[usize]) -> (Vec<usize>, usize) {
        let mut search = Search::new(parents.to_vec());
        let whole = Search::new(parents.to_vec());
        let mut tested = 0;
        while let Some(position) = search.next() {
            tested += 1;
            if skipped.contains(&position) {
                search.skip(position);
            } else if whole.ancestors(position)[first] {
                search.bad(position);
            } else {
                search.good(position);
            }
        }
        (search.left(), tested)
    }

    fn straight(count: usize) -> Vec<Vec<usize>> {
        (1..=count).map(|parent| if parent < count { vec![parent] } else { vec![] }).collect()
    }

    #[test]
    fn a_straight_history_is_halved() {
        for (count, tests_max) in [(1, 0), (2, 1), (3, 2), (16, 4), (100, 7)] {
            for first in 0..count {
                let (left, tested) = find(&straight(count), first, &[]);
                assert_eq!(left, [first], "{count} commits");
                assert!(tested <= tests_max, "{count} commits: {tested} tests");
            }
        }
        let (left, tested) = find(&straight(5_000), 1_234, &[]);
        assert_eq!(left, [1_234]);
        assert!(tested <= 13, "{tested}");
    }

    #[test]
    fn merges_are_followed() {
        // 0 merges 1 (of 3) and 2 (of 4), which both come from 5.
        let merged = vec![vec![1, 2], vec![3], vec![4], vec![5], vec![5], vec![]];
        for first in 0..merged.len() {
            assert_eq!(find(&merged, first, &[]).0, [first]);
        }
    }

    #[test]
    fn undecided_commits_stay() {
        assert_eq!(find(&straight(5), 2, &[4]).0, [2]);
        assert_eq!(find(&straight(5), 2, &[3]).0, [2, 3]);
        assert_eq!(find(&straight(5), 2, &[2]).0, [1, 2]);
        assert_eq!(find(&straight(3), 0, &[0, 1, 2]).0, [0, 1, 2]);
    }
}
