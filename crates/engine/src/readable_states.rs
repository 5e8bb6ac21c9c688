//! The States that readers may still use, and the moments that each of them shows.
//!
//! A State comes when some Sequence is the visible one and is replaced at a later one. The visible
//! state at any moment from the first to the second is the one that the State shows at that
//! Sequence: in between nothing was taken out of it, and its memtables have every version of each
//! entry. So a moment is shown exactly, or not at all.
//!
//! *Leases.* A State goes with the last snapshot of it. A reader that wants to return to a moment,
//! without holding a snapshot meanwhile, leases the State of that moment: it is held for some time.
//! All moments that a State shows are kept by the same lease, so leases are as many as flushes and
//! folds in that time, not as readers. The memory they keep counts as that of snapshots
//! ([`crate::gc::expiry`]): above that budget the oldest States expire, leased or not, and beyond
//! [`LEASES_MAX`] the oldest lease ends.
//!
//! *Forgetting.* What is erased lies in the memtables as an older version. So an erasure forgets
//! all moments before it: no State shows them from then on.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use frond_store::io::steady_now;

use crate::ids::Sequence;
use crate::state::State;

/// States that are leased at one time.
const LEASES_MAX: usize = 1_000;

/// The States that a reader may still use.
pub(crate) struct ReadableStates {
    /// The latest last.
    states: Vec<ReadableState>,
    /// The moment before which none is shown.
    shown_from: Sequence,
}

/// A State that a reader may still use.
struct ReadableState {
    state: Weak<State>,
    /// The Sequence that was visible when it came.
    from: Sequence,
    /// The Sequence that was visible when it was replaced, and when that was.
    replaced: Option<(Sequence, Instant)>,
    lease: Option<Lease>,
}

struct Lease {
    state: Arc<State>,
    end: Instant,
}

impl ReadableState {
    fn shows(&self, moment: Sequence) -> bool {
        self.from <= moment && self.replaced.is_none_or(|(up_to, _)| moment <= up_to)
    }
}

impl ReadableStates {
    /// Begins with a State that comes when `visible` is.
    pub fn new(state: &Arc<State>, visible: Sequence) -> ReadableStates {
        let mut held = ReadableStates { states: Vec::new(), shown_from: visible };
        held.push(state, visible);
        held
    }

    fn push(&mut self, state: &Arc<State>, visible: Sequence) {
        let state = Arc::downgrade(state);
        self.states.push(ReadableState { state, from: visible, replaced: None, lease: None });
    }

    /// Puts `state` in the place of the latest when `visible` is. The caller holds the one that is
    /// replaced until after its locks.
    pub fn replace(&mut self, state: &Arc<State>, visible: Sequence) {
        self.states.retain(|held| held.state.strong_count() > 0);
        if let Some(last) = self.states.last_mut() {
            last.replaced.get_or_insert_with(|| (visible, steady_now()));
        }
        self.push(state, visible);
    }

    /// Those that didn't expire, the latest last.
    pub fn readable(&self) -> Vec<Arc<State>> {
        let held = self.states.iter().filter_map(|held| held.state.upgrade());
        held.filter(|state| !state.expiry.is_expired()).collect()
    }

    /// Those that were replaced at least `age` ago.
    pub fn replaced_for(&self, age: Duration) -> Vec<Arc<State>> {
        let is_old =
            |held: &&ReadableState| held.replaced.is_some_and(|(_, at)| age <= at.elapsed());
        self.states.iter().filter(is_old).filter_map(|held| held.state.upgrade()).collect()
    }

    /// Returns the moment from which on every one is shown by the latest.
    pub fn latest_from(&self) -> Sequence {
        let from = self.states.last().map_or(self.shown_from, |held| held.from);
        from.max(self.shown_from)
    }

    /// The State that shows a moment which was visible once.
    pub fn at(&self, moment: Sequence) -> Option<Arc<State>> {
        if moment < self.shown_from {
            return None;
        }
        let shown = self.states.iter().rev().filter(|held| held.shows(moment));
        let mut readable = shown.filter_map(|held| held.state.upgrade());
        readable.find(|state| !state.expiry.is_expired())
    }

    /// Leases the State that `moment` is read in for `time` from now.
    pub fn lease(&mut self, state: &Arc<State>, time: Duration) -> ReleasedStates {
        let end = steady_now() + time;
        let is_it =
            |held: &&mut ReadableState| std::ptr::eq(held.state.as_ptr(), Arc::as_ptr(state));
        if let Some(held) = self.states.iter_mut().rev().find(is_it) {
            let end = held.lease.as_ref().map_or(end, |lease| lease.end.max(end));
            held.lease = Some(Lease { state: Arc::clone(state), end });
        }
        self.end_leases(steady_now())
    }

    /// Ends the leases that are over at `now`, those of States that expired, and the oldest of too
    /// many.
    pub fn end_leases(&mut self, now: Instant) -> ReleasedStates {
        let count = self.states.iter().filter(|held| held.lease.is_some()).count();
        let mut excess = count.saturating_sub(LEASES_MAX);
        let mut ended = Vec::new();
        for held in &mut self.states {
            let is_over = |lease: &Lease| lease.end <= now || lease.state.expiry.is_expired();
            if held.lease.as_ref().is_some_and(|lease| excess > 0 || is_over(lease)) {
                ended.extend(held.lease.take().map(|lease| lease.state));
                excess = excess.saturating_sub(1);
            }
        }
        ReleasedStates(ended)
    }

    /// Shows no moment before `visible` any more.
    pub fn forget_before(&mut self, visible: Sequence) -> ReleasedStates {
        self.shown_from = self.shown_from.max(visible);
        let leases = self.states.iter_mut().filter_map(|held| held.lease.take());
        ReleasedStates(leases.map(|lease| lease.state).collect())
    }

    /// Returns how many are leased.
    pub fn leased_count(&self) -> usize {
        self.states.iter().filter(|held| held.lease.is_some()).count()
    }
}

/// The States of ended leases, to be dropped where no lock is held, since that can take long.
#[must_use = "it is dropped after the lock is released"]
pub(crate) struct ReleasedStates(
    #[allow(dead_code, reason = "held to be dropped")] Vec<Arc<State>>,
);

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(number: u64) -> Sequence {
        Sequence(number)
    }

    #[test]
    fn a_moment_is_shown_by_the_state_of_that_moment_or_by_none() {
        let states: Vec<Arc<State>> = (0..4).map(|_| Arc::default()).collect();
        let mut held = ReadableStates::new(&states[0], at(5));
        held.replace(&states[1], at(8));
        held.replace(&states[2], at(8));
        held.replace(&states[3], at(12));
        for (moment, expected) in [
            (4, None),
            (5, Some(0)),
            (7, Some(0)),
            (8, Some(2)),
            (11, Some(2)),
            (12, Some(3)),
            (99, Some(3)),
        ] {
            let found = held.at(at(moment));
            let found =
                found.and_then(|found| states.iter().position(|it| Arc::ptr_eq(it, &found)));
            assert_eq!(found, expected, "at {moment}");
        }
        states[2].expiry.expire();
        assert!(held.at(at(11)).is_none(), "no other shows it");
        assert!(Arc::ptr_eq(&held.at(at(8)).unwrap(), &states[1]), "another does");
    }

    #[test]
    fn a_lease_keeps_a_state_until_its_end() {
        let minute = Duration::from_secs(60);
        let first: Arc<State> = Arc::default();
        let mut held = ReadableStates::new(&first, at(1));
        drop(held.lease(&first, minute));
        drop(held.lease(&first, Duration::ZERO));
        let second: Arc<State> = Arc::default();
        held.replace(&second, at(3));
        drop(first);
        assert!(held.at(at(2)).is_some());
        drop(held.end_leases(steady_now()));
        assert!(held.at(at(2)).is_some(), "a shorter lease ends no longer one");
        drop(held.end_leases(steady_now() + minute));
        assert!(held.at(at(2)).is_none());
        assert!(held.at(at(3)).is_some());
    }

    #[test]
    fn leases_are_bounded_and_the_oldest_ends_first() {
        let minute = Duration::from_secs(60);
        let mut latest: Arc<State> = Arc::default();
        let mut held = ReadableStates::new(&latest, at(0));
        for number in 1..=LEASES_MAX as u64 + 10 {
            drop(held.lease(&latest, minute));
            let next: Arc<State> = Arc::default();
            held.replace(&next, at(number));
            latest = next;
        }
        assert_eq!(held.leased_count(), LEASES_MAX);
        assert!(held.at(at(3)).is_none());
        assert!(held.at(at(500)).is_some());
    }

    #[test]
    fn forgotten_moments_are_shown_by_no_state() {
        let first: Arc<State> = Arc::default();
        let mut held = ReadableStates::new(&first, at(1));
        drop(held.lease(&first, Duration::from_secs(60)));
        drop(held.forget_before(at(7)));
        assert!(held.at(at(6)).is_none(), "though the State is the latest");
        assert!(held.at(at(7)).is_some());
        assert_eq!(held.leased_count(), 0);
    }
}
