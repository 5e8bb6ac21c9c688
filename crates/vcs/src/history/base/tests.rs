//! Merge bases against the definition: common ancestors that are no ancestor of another one.

use std::collections::{BTreeMap, BTreeSet};

use frond_testkit::random::for_seeds;
use frond_tree::{Tree, TreeFormat};

use super::*;

/// A history: the parents of each commit, which come before it.
struct History(Vec<Vec<usize>>);

impl History {
    fn hash(commit: usize) -> ChunkHash {
        // Hashes must not sort as ages do.
        let mut hash = [(commit * 151 % 256) as u8; 32];
        hash[31] = commit as u8;
        ChunkHash(hash)
    }

    fn load(&self, hash: ChunkHash) -> Commit {
        let mut generations: Vec<u64> = Vec::new();
        for parents in &self.0 {
            let parents = parents.iter().map(|parent| generations[*parent]);
            generations.push(1 + parents.max().unwrap_or(0));
        }
        let commit = usize::from(hash.0[31]);
        Commit {
            catalog: Tree { root: ChunkHash([0; 32]), format: TreeFormat::new(0) },
            parents: self.0[commit].iter().map(|parent| History::hash(*parent)).collect(),
            author: String::new(),
            message: String::new(),
            committer: None,
            authored_millis: None,
            timestamp_millis: 0,
            generation: generations[commit],
            automatic: false,
            reverts: None,
        }
    }

    fn ancestors(&self, commit: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::from([commit]);
        for parent in &self.0[commit] {
            found.extend(self.ancestors(*parent));
        }
        found
    }

    fn expected(&self, ours: usize, theirs: usize) -> BTreeSet<ChunkHash> {
        let common: BTreeSet<usize> =
            self.ancestors(ours).intersection(&self.ancestors(theirs)).copied().collect();
        let is_best = |commit: &usize| {
            !common.iter().any(|other| other != commit && self.ancestors(*other).contains(commit))
        };
        common
            .iter()
            .filter(|commit| is_best(commit))
            .map(|commit| History::hash(*commit))
            .collect()
    }

    fn found(&self, ours: usize, theirs: usize) -> Vec<ChunkHash> {
        let mut reads: BTreeMap<ChunkHash, u32> = BTreeMap::new();
        let mut load = |hash| {
            *reads.entry(hash).or_default() += 1;
            Ok(self.load(hash))
        };
        let (ours, theirs) = (History::hash(ours), History::hash(theirs));
        let bases = merge_bases(&[ours], theirs, &mut load).expect("nothing fails in memory");
        assert!(reads.values().all(|count| *count == 1), "a commit was read twice");
        bases
    }
}

#[test]
fn known_histories() {
    // 0 - 1 - 2, and 3 from 1.
    let fork = History(vec![vec![], vec![0], vec![1], vec![1]]);
    assert_eq!(fork.found(2, 3), [History::hash(1)]);
    assert_eq!(fork.found(2, 1), [History::hash(1)]);
    assert_eq!(fork.found(2, 2), [History::hash(2)]);
    let apart = History(vec![vec![], vec![]]);
    assert!(apart.found(0, 1).is_empty());
    // Criss-cross: two best ones.
    let cross = History(vec![vec![], vec![0], vec![0], vec![1, 2], vec![2, 1]]);
    assert_eq!(cross.found(3, 4).len(), 2);
    assert_eq!(cross.found(3, 4), cross.found(4, 3));
}

/// Ours has a parent that is an ancestor of the base, and waits as long as that isn't found.
#[test]
fn commits_below_the_base_are_not_read() {
    let mut line: Vec<Vec<usize>> =
        (0..200_usize).map(|it| it.checked_sub(1).into_iter().collect()).collect();
    line.extend([vec![199, 197], vec![199]]);
    let (history, mut reads) = (History(line), 0);
    let bases = merge_bases(&[History::hash(200)], History::hash(201), &mut |hash| {
        reads += 1;
        Ok(history.load(hash))
    });
    assert_eq!(bases.expect("nothing fails in memory"), [History::hash(199)]);
    assert_eq!(reads, 5, "the two, the base, and what leads to the other parent");
}

#[test]
fn random_histories() {
    for_seeds(40, |mut random| {
        let mut history = History(Vec::new());
        for commit in 0..2 + random.below(12) {
            let mut parents = BTreeSet::new();
            for _ in 0..random.below(3).min(commit) {
                parents.insert(commit - 1 - random.below(commit.min(4)));
            }
            history.0.push(parents.into_iter().collect());
        }
        for ours in 0..history.0.len() {
            for theirs in 0..history.0.len() {
                let found = history.found(ours, theirs);
                let set: BTreeSet<ChunkHash> = found.iter().copied().collect();
                assert_eq!(set.len(), found.len());
                assert_eq!(set, history.expected(ours, theirs), "{ours} and {theirs}");
                assert_eq!(found, history.found(theirs, ours));
                let is_ancestor =
                    is_ancestor(History::hash(ours), History::hash(theirs), &mut |hash| {
                        Ok(history.load(hash))
                    });
                let expected = history.ancestors(theirs).contains(&ours);
                assert_eq!(is_ancestor.expect("nothing fails in memory"), expected);
            }
        }
    });
}
