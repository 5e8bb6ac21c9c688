//! The naive history: commits as whole copies, merge bases by their definition.

use std::collections::BTreeSet;

use frond_vcs::CommitId;

use super::naive::{BASE, Whole, merge_wholes};

/// A commit as the model knows it; its parents come before it.
pub struct ModelCommit {
    pub whole: Whole,
    pub parents: Vec<usize>,
    pub id: CommitId,
    generation: u64,
}

/// All commits, by their position.
#[derive(Default)]
pub struct History(Vec<ModelCommit>);

impl std::ops::Index<usize> for History {
    type Output = ModelCommit;

    fn index(&self, commit: usize) -> &ModelCommit {
        &self.0[commit]
    }
}

impl History {
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Adds a commit. The clock may stand still: the same commit made on two branches is one
    /// commit.
    pub fn add(&mut self, whole: Whole, parents: Vec<usize>, id: CommitId) -> usize {
        if let Some(known) = self.0.iter().position(|commit| commit.id == id) {
            assert_eq!(self.0[known].parents, parents);
            return known;
        }
        let generations = parents.iter().map(|parent| self.0[*parent].generation);
        let generation = 1 + generations.max().unwrap_or(0);
        self.0.push(ModelCommit { whole, parents, id, generation });
        self.0.len() - 1
    }

    /// Returns the committed state of a branch at `head`.
    pub fn whole(&self, head: Option<usize>) -> Whole {
        head.map_or_else(Whole::new, |head| self.0[head].whole.clone())
    }

    pub fn ancestors(&self, commit: usize) -> BTreeSet<usize> {
        let (mut found, mut open) = (BTreeSet::new(), vec![commit]);
        while let Some(commit) = open.pop() {
            if found.insert(commit) {
                open.extend(&self.0[commit].parents);
            }
        }
        found
    }

    /// The best common ancestors, by the definition and in the order of the rule for ties.
    pub fn bases(&self, ours: usize, theirs: usize) -> Vec<usize> {
        self.bases_of(&[ours], theirs)
    }

    /// The same of what would be made from several commits, and another one.
    fn bases_of(&self, ours: &[usize], theirs: usize) -> Vec<usize> {
        let ours: BTreeSet<usize> = ours.iter().flat_map(|ours| self.ancestors(*ours)).collect();
        let common: BTreeSet<usize> = ours.intersection(&self.ancestors(theirs)).copied().collect();
        let is_best = |commit: &&usize| {
            !common.iter().any(|other| other != *commit && self.ancestors(*other).contains(commit))
        };
        let turn = |commit: &&usize| {
            let found = &self.0[**commit];
            (found.generation, std::cmp::Reverse(found.id))
        };
        let mut best: Vec<&usize> = common.iter().filter(is_best).collect();
        best.sort_by_key(|commit| std::cmp::Reverse(turn(commit)));
        best.into_iter().copied().collect()
    }

    /// Returns the state that a merge compares with: the best common ancestors, merged.
    pub fn base_whole(&self, bases: &[usize]) -> Whole {
        let mut merged = self.whole(bases.first().copied());
        for (done, other) in bases.iter().enumerate().skip(1) {
            let before = self.base_whole(&self.bases_of(&bases[..done], *other));
            let sides = [&before, &merged, &self.0[*other].whole];
            if let Some((found, _)) = merge_wholes(sides, BASE, Some(BASE)) {
                merged = found;
            }
        }
        merged
    }
}
