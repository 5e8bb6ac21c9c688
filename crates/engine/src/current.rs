//! What is visible now: the State and the visible Sequence, taken together at one moment.
//!
//! Readers take snapshots all the time, on all processors; the visible Sequence rises once a group
//! of commits, the State changes seldom. So each stripe of threads has a copy of its own of what a
//! snapshot holds, with its own count of references, behind a lock that hardly anybody else takes.
//!
//! *Invariants*
//! 1. `visible` only rises, and neither it nor the State changes but under `latest`.
//! 2. While `latest` isn't locked, every stripe has the latest State. While a change goes through
//!    the stripes, some have the one before: both fit the visible Sequence, which stays what it is.
//! 3. A reader loads `visible` with its stripe locked. A State that came before a rise is in the
//!    stripe by then, and one that comes after it waits for the stripe: the two belong together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use frond_store::ChunkStore;
use frond_store::io::steady_now;
use frond_store::stripe::{STRIPE_COUNT, Stripe, stripe};

use crate::ids::Sequence;
use crate::state::State;

const NO_PANIC: &str = "no panic while the lock is held";

/// What every snapshot needs, behind one count of references.
pub(crate) struct View {
    pub store: Arc<dyn ChunkStore>,
    pub state: Arc<State>,
}

/// What is visible now.
pub(crate) struct Current {
    store: Arc<dyn ChunkStore>,
    latest: Mutex<Latest>,
    visible: AtomicU64,
    stripes: [Stripe<Mutex<Arc<View>>>; STRIPE_COUNT],
}

struct Latest {
    state: Arc<State>,
    /// Every State that somebody may still read, the latest last, and when it was replaced.
    held: Vec<(Weak<State>, Option<Instant>)>,
}

impl Current {
    /// Begins with a State.
    pub fn new(store: Arc<dyn ChunkStore>, state: State, visible: Sequence) -> Current {
        let state = Arc::new(state);
        let held = vec![(Arc::downgrade(&state), None)];
        let view = |_| {
            let (store, state) = (Arc::clone(&store), Arc::clone(&state));
            Stripe(Mutex::new(Arc::new(View { store, state })))
        };
        let stripes = std::array::from_fn(view);
        let visible = AtomicU64::new(visible.0);
        Current { store, latest: Mutex::new(Latest { state, held }), visible, stripes }
    }

    /// What a snapshot of this moment holds, and its Sequence.
    pub fn view(&self) -> (Arc<View>, Sequence) {
        let view = self.stripes[stripe()].0.lock().expect(NO_PANIC);
        (Arc::clone(&view), self.visible())
    }

    /// The latest State, and the visible Sequence.
    pub fn state(&self) -> (Arc<State>, Sequence) {
        let latest = self.latest();
        (Arc::clone(&latest.state), self.visible())
    }

    /// The visible Sequence.
    pub fn visible(&self) -> Sequence {
        Sequence(self.visible.load(Ordering::Acquire))
    }

    /// Makes everything up to `sequence` visible.
    pub fn make_visible(&self, sequence: Sequence) {
        let _latest = self.latest();
        self.visible.fetch_max(sequence.0, Ordering::AcqRel);
    }

    /// Replaces the State by a changed copy. `change` is told the visible Sequence.
    pub fn change(&self, change: impl FnOnce(&mut State, Sequence)) {
        // Dropped after the locks are released: it may be the last to hold what takes long to free.
        let mut before = Vec::with_capacity(STRIPE_COUNT + 1);
        let mut latest = self.latest();
        let mut state = State::clone(&latest.state);
        change(&mut state, self.visible());
        let state = Arc::new(state);
        for stripe in &self.stripes {
            let (store, state) = (Arc::clone(&self.store), Arc::clone(&state));
            let view = Arc::new(View { store, state });
            before.push(std::mem::replace(&mut *stripe.0.lock().expect(NO_PANIC), view));
        }
        latest.held.retain(|(state, _)| state.strong_count() > 0);
        if let Some((_, replaced)) = latest.held.last_mut() {
            replaced.get_or_insert_with(steady_now);
        }
        latest.held.push((Arc::downgrade(&state), None));
        latest.state = state;
    }

    /// Every State that somebody may still read, the latest last; those that expired aren't read.
    pub fn held_states(&self) -> Vec<Arc<State>> {
        // The stripes have the latest while this is locked: no snapshot begins with another.
        let latest = self.latest();
        let held = latest.held.iter().filter_map(|(state, _)| state.upgrade());
        held.filter(|state| !state.expiry.is_expired()).collect()
    }

    /// Marks the States that were replaced at least `expiry` ago; returns those that are held yet.
    pub fn expire(&self, age: Duration) -> Vec<Arc<State>> {
        let latest = self.latest();
        let is_old = |replaced: &Option<Instant>| replaced.is_some_and(|at| age <= at.elapsed());
        let old = latest.held.iter().filter(|(_, replaced)| is_old(replaced));
        let expired: Vec<Arc<State>> = old.filter_map(|(state, _)| state.upgrade()).collect();
        expired.iter().for_each(|state| state.expiry.expire());
        expired
    }

    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().expect(NO_PANIC)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use frond_store::memory::MemoryStore;

    use super::*;
    use crate::ids::TreeId;
    use crate::state::TreeGeneration;

    const TREE: TreeId = TreeId(2);

    /// In a State made for `sequence` this is the last generation's beginning.
    fn last_era(state: &State) -> Sequence {
        state.trees.get(TREE).last().map_or(Sequence::ZERO, |generation| generation.from)
    }

    #[test]
    fn state_and_sequence_are_of_one_moment_in_every_lane() {
        let current = Current::new(MemoryStore::new(), State::default(), Sequence::ZERO);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let (current, stop) = (&current, &stop);
            let readers: Vec<_> = (0..STRIPE_COUNT + 2)
                .map(|_| {
                    scope.spawn(move || {
                        let mut seen = Sequence::ZERO;
                        let mut reads = 0;
                        while reads == 0 || !stop.load(Ordering::Relaxed) {
                            let (view, visible) = current.view();
                            // An generation begins one ahead of what is visible, and that is made
                            // visible before the next one begins.
                            let generation = last_era(&view.state);
                            assert!(
                                generation == visible || generation == Sequence(visible.0 + 1),
                                "{generation:?} {visible:?}"
                            );
                            assert!(seen <= visible);
                            seen = visible;
                            reads += 1;
                        }
                    })
                })
                .collect();
            for number in 1..=3000 {
                let sequence = Sequence(number);
                current.change(|state, visible| {
                    assert_eq!(visible, sequence.preceding());
                    state.begin_generation(TREE, TreeGeneration::begun(sequence, None), visible);
                });
                current.make_visible(sequence);
                assert_eq!(last_era(&current.view().0.state), sequence);
            }
            stop.store(true, Ordering::Relaxed);
            readers.into_iter().for_each(|reader| reader.join().unwrap());
        });
        assert_eq!(current.state().1, Sequence(3000));
        assert_eq!(current.held_states().len(), 1);
    }

    #[test]
    fn states_are_held_as_long_as_a_view_of_them() {
        let current = Current::new(MemoryStore::new(), State::default(), Sequence::ZERO);
        let first = current.view().0;
        current.change(|_, _| {});
        current.change(|_, _| {});
        let held = current.held_states();
        assert_eq!(held.len(), 2);
        assert!(Arc::ptr_eq(&held[0], &first.state));
        assert!(Arc::ptr_eq(&held[1], &current.state().0));
    }
}
