//! The progress of folding a tree by key range.
//!
//! Folding goes round and round: each step brings all runs of its moment into the tree, from the
//! key where the step before ended up to another, and behind the last key it begins again at the
//! first. Each step notes up to which Sequence there are runs, and where it begins: a *mark*. When
//! a step comes round to a mark, all keys were folded since, so runs up to it can go. (A pass that
//! folds the same runs from the first key to the last would fold about a fifth more often for the
//! same most bytes of runs, and everything at once.)
//!
//! *A reader* asks only those runs for a key that have something to say of it that isn't in the
//! tree.
//!
//! *Invariants*
//! 1. Of the keys that were passed since a mark, the tree has what content(X) has (`state::base`),
//!    where `mark.horizon <= X` and X is at most the newest mark's horizon. So if a run up to
//!    `mark.horizon` is the newest that names such a key, the tree has what it says: the run may be
//!    asked or not.
//! 2. Horizons and places of marks ascend; no horizon is there twice, no mark is a round old. So
//!    what was passed since a mark was passed since every older one: a reader that doesn't ask a
//!    run asks no older one.

use std::collections::VecDeque;

use bytes::Bytes;
use frond_tree::Bounds;

use crate::ids::Sequence;

/// The parts of a tree's entries in which the progress of a round is counted.
pub(crate) const PARTS: u64 = 1 << 16;

/// A place on the way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct RoundPosition {
    /// The number of rounds that are done.
    round: u64,
    /// The key below which keys are done in this one.
    key: Option<Bytes>,
    /// About so many parts of it.
    parts: u64,
}

/// Runs up to `horizon` were folded from `place` on.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Mark {
    horizon: Sequence,
    place: RoundPosition,
}

/// The progress of folding a tree.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct CompactionProgress {
    at: RoundPosition,
    /// The oldest first.
    marks: VecDeque<Mark>,
}

impl CompactionProgress {
    /// Whether steps have folded something that lies over the tree yet.
    pub fn have_begun(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Returns where the next step begins.
    pub fn cursor(&self) -> Option<&Bytes> {
        self.at.key.as_ref()
    }

    /// Returns the progress after a step that folded all runs, which reach up to `horizon`, from
    /// the cursor to `end` (`None`: behind the last key), where so many parts of a round are done;
    /// and up to which Sequence no run is needed then (zero: all are).
    pub fn stepped(
        &self,
        horizon: Sequence,
        end: Option<&Bytes>,
        parts: u64,
    ) -> (CompactionProgress, Sequence) {
        let mut marks = self.marks.clone();
        if marks.back().is_none_or(|newest| newest.horizon < horizon) {
            marks.push_back(Mark { horizon, place: self.at.clone() });
        }
        let at = match end {
            Some(end) => {
                let parts = parts.clamp(self.at.parts, PARTS);
                RoundPosition { round: self.at.round, key: Some(end.clone()), parts }
            }
            None => RoundPosition { round: self.at.round + 1, ..RoundPosition::default() },
        };
        let mut whole_to = Sequence::ZERO;
        while let Some(mark) = marks.pop_front_if(|mark| mark.is_a_round_before(&at)) {
            whole_to = mark.horizon;
        }
        (CompactionProgress { at, marks }, whole_to)
    }

    /// Whether a step that had runs up to `horizon` makes this of `before`: it wasn't overtaken.
    pub fn follows(&self, before: &CompactionProgress, horizon: Sequence) -> bool {
        let is_ahead = (before.at.round, &before.at.key) < (self.at.round, &self.at.key);
        is_ahead && before.stepped(horizon, self.at.key.as_ref(), self.at.parts).0 == *self
    }

    /// The first mark whose steps had a run that ends at `up_to`.
    fn mark_of(&self, up_to: Sequence) -> Option<&Mark> {
        self.marks.iter().find(|mark| up_to <= mark.horizon)
    }

    /// About how many parts of a run that ends at `up_to` are in the tree.
    pub fn parts_done(&self, up_to: Sequence) -> u64 {
        let Some(Mark { place, .. }) = self.mark_of(up_to) else { return 0 };
        let at = self.at.round * PARTS + self.at.parts;
        at.saturating_sub(place.round * PARTS + place.parts).min(PARTS)
    }

    /// Returns the Sequence up to which the tree has what runs say of `key`; zero if that isn't
    /// known of any.
    pub fn done_to(&self, key: &[u8]) -> Sequence {
        let is_ahead = self.at.key.as_ref().is_none_or(|at| at <= key);
        let was_passed = |mark: &&Mark| {
            let is_behind = mark.place.key.as_ref().is_none_or(|from| from <= key);
            let is_of_now = mark.place.round == self.at.round;
            if is_of_now { is_behind && !is_ahead } else { is_behind || !is_ahead }
        };
        self.marks.iter().rev().find(was_passed).map_or(Sequence::ZERO, |mark| mark.horizon)
    }

    /// Returns where within `bounds` a run that ends at `up_to` may have edits that aren't in the
    /// tree. An older run's places lie in those of a newer one.
    pub fn left(&self, up_to: Sequence, bounds: &Bounds) -> impl Iterator<Item = Bounds> + use<> {
        let parts = match self.mark_of(up_to).map(|mark| &mark.place) {
            None => [Some(bounds.clone()), None],
            Some(place) => {
                let (at, from) = (self.at.key.as_ref(), place.key.as_ref());
                if place.round == self.at.round {
                    let before = from.and_then(|from| between(bounds, None, Some(from)));
                    [before, between(bounds, at, None)]
                } else {
                    [between(bounds, at, from), None]
                }
            }
        };
        parts.into_iter().flatten()
    }
}

/// Returns the part of `bounds` that lies between two keys, if it isn't empty.
fn between(bounds: &Bounds, start: Option<&Bytes>, end: Option<&Bytes>) -> Option<Bounds> {
    let start = bounds.start.as_ref().max(start).cloned();
    let end = match (&bounds.end, end) {
        (Some(left), Some(right)) => Some(left.min(right).clone()),
        (left, right) => left.as_ref().or(right).cloned(),
    };
    let is_empty = end.is_some() && end <= start;
    (!is_empty).then_some(Bounds { start, end })
}

impl Mark {
    fn is_a_round_before(&self, place: &RoundPosition) -> bool {
        (self.place.round + 1, &self.place.key) <= (place.round, &place.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &'static str) -> Option<Bytes> {
        Some(Bytes::from_static(text.as_bytes()))
    }

    /// Does a step that has runs up to `horizon`; returns what can go then.
    fn step(
        progress: &mut CompactionProgress,
        horizon: u64,
        end: Option<Bytes>,
        parts: u64,
    ) -> u64 {
        let (after, whole_to) = progress.stepped(Sequence(horizon), end.as_ref(), parts);
        *progress = after;
        whole_to.0
    }

    #[test]
    fn runs_go_when_the_steps_come_round_to_where_they_were_first_folded() {
        let mut progress = CompactionProgress::default();
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
            assert_eq!(step(&mut progress, horizon, end, 0), expected, "step {position}");
        }
        assert!(!progress.have_begun());
    }

    #[test]
    fn the_rest_of_a_run_is_where_no_step_folded_it() {
        type Ends = (Option<Bytes>, Option<Bytes>);
        let mut progress = CompactionProgress::default();
        let check = |progress: &CompactionProgress, up_to, parts, expected: Vec<Ends>| {
            let left = progress.left(Sequence(up_to), &Bounds::all());
            let left: Vec<_> = left.map(|left| (left.start, left.end)).collect();
            assert_eq!(left, expected, "{up_to}");
            assert_eq!(progress.parts_done(Sequence(up_to)), parts, "{up_to}");
            for text in ["", "a", "b", "c", "d", "e", "h", "z"] {
                let is_within = |(start, end): &Ends| {
                    start.as_ref().is_none_or(|start| start <= text.as_bytes())
                        && end.as_ref().is_none_or(|end| text.as_bytes() < &end[..])
                };
                let is_left = expected.iter().any(is_within);
                let done_to = progress.done_to(text.as_bytes());
                assert_eq!(done_to < Sequence(up_to), is_left, "{text} {up_to}");
                let single = Bytes::from_static(text.as_bytes());
                let after = Bytes::from(format!("{text}\0"));
                let bounds = Bounds { start: Some(single), end: Some(after) };
                assert_eq!(progress.left(Sequence(up_to), &bounds).next().is_some(), is_left);
            }
        };
        step(&mut progress, 10, key("d"), 100);
        step(&mut progress, 20, key("h"), 300);
        check(&progress, 7, 300, vec![(key("h"), None)]);
        check(&progress, 10, 300, vec![(key("h"), None)]);
        check(&progress, 11, 200, vec![(None, key("d")), (key("h"), None)]);
        check(&progress, 21, 0, vec![(None, None)]);
        step(&mut progress, 20, None, 0);
        check(&progress, 20, PARTS - 100, vec![(None, key("d"))]);
        step(&mut progress, 30, key("b"), 40);
        check(&progress, 20, PARTS - 60, vec![(key("b"), key("d"))]);
        check(&progress, 30, 40, vec![(key("b"), None)]);
    }
}
