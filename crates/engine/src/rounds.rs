//! Where the folding of a tree by key range is, and what it has brought into the tree so far.
//!
//! Folding goes round and round: each step brings all runs of its moment into the tree, from the key where the
//! step before ended up to another, and behind the last key it begins again at the first. Each step notes up to
//! which Sequence there are runs, and where it begins: a *mark*. When a step comes round to a mark, all
//! keys were folded since, so runs up to it can go. (A pass that folds the same runs from the first key to the last
//! would fold about a fifth more often for the same most bytes of runs, and everything at once.)
//!
//! *Invariants*
//! 1. Of the keys that were passed since a mark, the tree with the root `root` has what content(X)
//!    has (`state::base`), where `mark.horizon <= X` and X is at most the newest mark's horizon. That is a fact about an
//!    immutable tree and the history of one era: it stays true whatever else becomes of the base.
//! 2. Horizons and places of marks ascend; no horizon is there twice, no mark is a round old.

use std::collections::VecDeque;

use bytes::Bytes;
use frond_store::ChunkHash;
use frond_tree::Bounds;

use crate::ids::Sequence;
use crate::state::Base;

/// How far a round is, is told in so many parts of the tree's entries.
pub(crate) const PARTS: u64 = 1 << 16;

/// A place on the way.
#[derive(Clone, Debug, Default)]
struct Place {
    /// How many rounds are done.
    round: u64,
    /// In this one, keys less than this are done.
    key: Option<Bytes>,
    /// About so many parts of it.
    parts: u64,
}

/// Runs up to `horizon` were folded from `place` on.
#[derive(Clone, Debug)]
struct Mark {
    horizon: Sequence,
    place: Place,
}

/// How far a tree is folded. Cloning costs a few dozen words.
#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    /// When the tree's era began.
    from: Sequence,
    /// The tree as the last step left it.
    root: ChunkHash,
    at: Place,
    /// The oldest first.
    marks: VecDeque<Mark>,
}

impl Rounds {
    /// Begins at the first key of the tree of an era that began at `from`.
    pub fn begin(from: Sequence, base: &Base) -> Rounds {
        Rounds { from, root: base.tree.root, at: Place::default(), marks: VecDeque::new() }
    }

    /// Whether the tree of `base`, whose era began at `from`, is as the last step left it.
    pub fn goes_on(&self, from: Sequence, base: &Base) -> bool {
        self.from == from && self.root == base.tree.root
    }

    /// Whether all that is in the tree is in the content for which `base` stands: a step that changed
    /// nothing left the root of a base of earlier.
    pub fn is_within(&self, base: &Base) -> bool {
        self.marks.back().is_none_or(|newest| newest.horizon <= base.folded_to)
    }

    /// Where the next step begins.
    pub fn cursor(&self) -> Option<&Bytes> {
        self.at.key.as_ref()
    }

    /// Notes that the next step has all runs of `base`.
    pub fn mark(&mut self, base: &Base) {
        let horizon = base.folded_to;
        if self.marks.back().is_none_or(|newest| newest.horizon < horizon) {
            self.marks.push_back(Mark { horizon, place: self.at.clone() });
        }
    }

    /// Up to which Sequence no run is needed once the next step has ended at `end`; zero if all are.
    pub fn whole_to(&self, end: Option<&Bytes>) -> Sequence {
        let after = self.after(end, 0);
        let come_round = |mark: &&Mark| mark.is_a_round_before(&after);
        self.marks.iter().take_while(come_round).last().map_or(Sequence::ZERO, |mark| mark.horizon)
    }

    /// Notes that the step ended at `end` (`None`: behind the last key), with so many parts of a round done, and made the
    /// tree with this root. Returns whether that was a round's last.
    pub fn advance(&mut self, root: ChunkHash, end: Option<&Bytes>, parts: u64) -> bool {
        self.root = root;
        self.at = self.after(end, parts);
        let at = &self.at;
        self.marks.retain(|mark| !mark.is_a_round_before(at));
        end.is_none()
    }

    fn after(&self, end: Option<&Bytes>, parts: u64) -> Place {
        match end {
            Some(end) => {
                let parts = parts.clamp(self.at.parts, PARTS);
                Place { round: self.at.round, key: Some(end.clone()), parts }
            }
            None => Place { round: self.at.round + 1, ..Place::default() },
        }
    }

    /// The first mark whose steps had a run that ends at `upto`.
    fn mark_of(&self, upto: Sequence) -> Option<&Mark> {
        self.marks.iter().find(|mark| upto <= mark.horizon)
    }

    /// About how many parts of a run that ends at `upto` are in the tree.
    pub fn parts_done(&self, upto: Sequence) -> u64 {
        let Some(Mark { place, .. }) = self.mark_of(upto) else { return 0 };
        let at = self.at.round * PARTS + self.at.parts;
        at.saturating_sub(place.round * PARTS + place.parts).min(PARTS)
    }

    /// Where a run that ends at `upto` may have edits that aren't in the tree. An older run's ranges lie in those of a newer one.
    pub fn left(&self, upto: Sequence) -> Vec<Bounds> {
        let Some(Mark { place, .. }) = self.mark_of(upto) else { return vec![Bounds::all()] };
        if place.round == self.at.round {
            let before = place.key.clone().map(|end| Bounds { start: None, end: Some(end) });
            let behind = Bounds { start: self.at.key.clone(), end: None };
            return before.into_iter().chain([behind]).collect();
        }
        let between = Bounds { start: self.at.key.clone(), end: place.key.clone() };
        vec![between]
    }
}

impl Mark {
    fn is_a_round_before(&self, place: &Place) -> bool {
        (self.place.round + 1, &self.place.key) <= (place.round, &place.key)
    }
}

#[cfg(test)]
mod tests {
    use frond_tree::{Tree, TreeFormat};

    use super::*;

    fn key(text: &'static str) -> Option<Bytes> {
        Some(Bytes::from_static(text.as_bytes()))
    }

    fn base(folded_to: u64) -> Base {
        let tree = Tree { root: ChunkHash([1; 32]), format: TreeFormat::new(1) };
        Base::whole(tree, Sequence(folded_to))
    }

    /// Does a step that has runs up to `horizon`; returns what can go then.
    fn step(rounds: &mut Rounds, horizon: u64, end: Option<Bytes>, parts: u64) -> u64 {
        rounds.mark(&base(horizon));
        let whole_to = rounds.whole_to(end.as_ref());
        rounds.advance(ChunkHash([1; 32]), end.as_ref(), parts);
        whole_to.0
    }

    #[test]
    fn runs_go_when_the_steps_come_round_to_where_they_were_first_folded() {
        let mut rounds = Rounds::begin(Sequence(0), &base(0));
        // (there are runs up to, the step's end, runs up to this can go)
        let steps = [
            (10, key("d"), 0),
            (20, key("h"), 0),
            (20, key("p"), 0),
            (30, None, 10),
            (30, key("c"), 0),
            (30, key("d"), 20),
            (40, key("o"), 0),
            (40, key("q"), 30),
            (50, None, 0),
            (50, key("d"), 40),
            (50, None, 50),
        ];
        for (position, (horizon, end, expected)) in steps.into_iter().enumerate() {
            assert_eq!(step(&mut rounds, horizon, end, 0), expected, "step {position}");
        }
        assert!(rounds.marks.is_empty());
    }

    #[test]
    fn what_is_left_of_a_run_is_where_no_step_had_it() {
        let mut rounds = Rounds::begin(Sequence(0), &base(0));
        let check = |rounds: &Rounds, upto, parts, expected: &[(Option<Bytes>, Option<Bytes>)]| {
            let left = rounds.left(Sequence(upto));
            let left: Vec<_> = left.into_iter().map(|left| (left.start, left.end)).collect();
            assert_eq!((&left[..], rounds.parts_done(Sequence(upto))), (expected, parts), "{upto}");
        };
        step(&mut rounds, 10, key("d"), 100);
        step(&mut rounds, 20, key("h"), 300);
        check(&rounds, 7, 300, &[(key("h"), None)]);
        check(&rounds, 10, 300, &[(key("h"), None)]);
        check(&rounds, 11, 200, &[(None, key("d")), (key("h"), None)]);
        check(&rounds, 21, 0, &[(None, None)]);
        step(&mut rounds, 20, None, 0);
        check(&rounds, 20, PARTS - 100, &[(None, key("d"))]);
        step(&mut rounds, 30, key("b"), 40);
        check(&rounds, 20, PARTS - 60, &[(key("b"), key("d"))]);
        check(&rounds, 30, 40, &[(key("b"), None)]);
    }
}
