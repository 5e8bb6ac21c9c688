//! The current State and the visible Sequence, always taken together.
//!
//! Readers take snapshots all the time, on all processors; the visible Sequence rises once a group
//! of commits, the State changes seldom. So each stripe of threads has a copy of its own of what a
//! snapshot holds, with its own count of references, behind a lock that few others take.
//!
//! *Invariants*
//! 1. `visible` only rises, and neither it nor the State changes but under `latest`.
//! 2. While `latest` isn't locked, every stripe has the latest State. While a change goes through
//!    the stripes, some have the one before: both fit the visible Sequence, which stays what it is.
//! 3. A reader loads `visible` with its stripe locked. A State that came before a rise is in the
//!    stripe by then, and one that comes after it waits for the stripe: the two belong together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use frond_store::ChunkStore;
use frond_store::io::steady_now;
use frond_store::stripe::{STRIPE_COUNT, Stripe, stripe};

use crate::error::EngineError;
use crate::ids::Sequence;
use crate::queue::queued_reads::QueuedReads;
use crate::readable_states::ReadableStates;
use crate::state::State;

const NO_PANIC: &str = "no panic while the lock is held";

/// The data of a snapshot, behind one reference count.
pub(crate) struct View {
    pub store: Arc<dyn ChunkStore>,
    pub state: Arc<State>,
    /// The queued reads, if it shows more than what was visible.
    pub ahead: Option<QueuedReads>,
}

impl View {
    /// A view of what is visible.
    pub fn new(store: Arc<dyn ChunkStore>, state: Arc<State>) -> View {
        View { store, state, ahead: None }
    }

    /// Fails if what was read so far may have been incomplete.
    ///
    /// # Errors
    /// [`EngineError::SnapshotTooOld`]; [`EngineError::Withdrawn`] if it was read ahead.
    pub fn check(&self) -> Result<(), EngineError> {
        if self.state.expiry.is_expired() {
            return Err(EngineError::SnapshotTooOld);
        }
        match &self.ahead {
            Some(ahead) if ahead.is_refused() => Err(EngineError::Withdrawn),
            _ => Ok(()),
        }
    }
}

/// The current view.
pub(crate) struct Current {
    store: Arc<dyn ChunkStore>,
    latest: Mutex<Latest>,
    visible: AtomicU64,
    stripes: [Stripe<Mutex<Arc<View>>>; STRIPE_COUNT],
}

struct Latest {
    state: Arc<State>,
    /// Every State that a reader may still read.
    held: ReadableStates,
}

impl Current {
    /// Begins with a State.
    pub fn new(store: Arc<dyn ChunkStore>, state: State, visible: Sequence) -> Current {
        let state = Arc::new(state);
        let held = ReadableStates::new(&state, visible);
        let view = |_| {
            let (store, state) = (Arc::clone(&store), Arc::clone(&state));
            Stripe(Mutex::new(Arc::new(View::new(store, state))))
        };
        let stripes = std::array::from_fn(view);
        let visible = AtomicU64::new(visible.0);
        Current { store, latest: Mutex::new(Latest { state, held }), visible, stripes }
    }

    /// Returns the view of a snapshot of this moment, and its Sequence.
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

    /// Replaces the State by a changed copy. `change` is given the visible Sequence.
    pub fn change(&self, change: impl FnOnce(&mut State, Sequence)) {
        // Dropped after the locks are released: it may be the last to hold what takes long to free.
        let mut before = Vec::with_capacity(STRIPE_COUNT + 1);
        let mut latest = self.latest();
        let mut state = State::clone(&latest.state);
        let visible = self.visible();
        change(&mut state, visible);
        let state = Arc::new(state);
        for stripe in &self.stripes {
            let (store, state) = (Arc::clone(&self.store), Arc::clone(&state));
            let view = Arc::new(View::new(store, state));
            before.push(std::mem::replace(&mut *stripe.0.lock().expect(NO_PANIC), view));
        }
        latest.held.replace(&state, visible);
        latest.state = state;
    }

    /// Returns every State that a reader may still use, the latest last; those that expired aren't
    /// read.
    pub fn readable_states(&self) -> Vec<Arc<State>> {
        // The stripes have the latest while this is locked: no snapshot begins with another.
        self.latest().held.readable()
    }

    /// Marks the States that were replaced at least `expiry` ago; returns those that are held yet.
    pub fn expire(&self, age: Duration) -> Vec<Arc<State>> {
        let expired = self.latest().held.replaced_for(age);
        expired.iter().for_each(|state| state.expiry.expire());
        expired
    }

    /// Returns the visible state, which can be read again for `time`.
    pub fn lease(&self, time: Duration) -> (Arc<View>, Sequence) {
        let (state, visible, ended) = {
            let mut latest = self.latest();
            let state = Arc::clone(&latest.state);
            let ended = latest.held.lease(&state, time);
            (state, self.visible(), ended)
        };
        drop(ended);
        (self.view_of(state), visible)
    }

    /// Returns the view of `moment`, which was visible once; `None` if nothing shows it any more.
    pub fn view_at(&self, moment: Sequence) -> Option<Arc<View>> {
        let state = self.latest().held.at(moment);
        state.map(|state| self.view_of(state))
    }

    /// Returns the moment from which on every one is shown by the State of now.
    pub fn shown_from(&self) -> Sequence {
        self.latest().held.latest_from()
    }

    fn view_of(&self, state: Arc<State>) -> Arc<View> {
        Arc::new(View::new(Arc::clone(&self.store), state))
    }

    /// Ends the leases that are over, and those of States that expired.
    pub fn end_leases(&self) {
        let ended = self.latest().held.end_leases(steady_now());
        drop(ended);
    }

    /// Shows no moment before the visible one any more, and ends all leases.
    pub fn forget_past(&self) {
        let ended = {
            let mut latest = self.latest();
            let visible = self.visible();
            latest.held.forget_before(visible)
        };
        drop(ended);
    }

    /// Returns how many States are leased.
    pub fn leased_count(&self) -> usize {
        self.latest().held.leased_count()
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

    /// Returns the last generation's beginning in a State made for `sequence`.
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
        assert_eq!(current.readable_states().len(), 1);
    }

    #[test]
    fn states_are_held_as_long_as_a_view_of_them() {
        let current = Current::new(MemoryStore::new(), State::default(), Sequence::ZERO);
        let first = current.view().0;
        current.change(|_, _| {});
        current.change(|_, _| {});
        let held = current.readable_states();
        assert_eq!(held.len(), 2);
        assert!(Arc::ptr_eq(&held[0], &first.state));
        assert!(Arc::ptr_eq(&held[1], &current.state().0));
    }
}
