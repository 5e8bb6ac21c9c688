//! Which transactions are open: the oldest of their snapshots says what may be forgotten.
//!
//! Each lane of threads has a list of its own, so that those who begin and end transactions on
//! several processors don't wait for one another.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use frond_store::lane::{LANE_COUNT, Lane, lane};

use crate::current::Current;
use crate::ids::Sequence;
use crate::snapshot::Snapshot;

/// How many transactions are open at each Sequence, by lane.
#[derive(Default)]
pub(crate) struct OpenTransactions {
    lanes: [Lane<Mutex<BTreeMap<Sequence, u64>>>; LANE_COUNT],
}

/// A transaction in the list.
pub(crate) struct OpenTransaction {
    /// What it was begun at.
    pub snapshot: Snapshot,
    lane: usize,
}

impl OpenTransactions {
    /// Begins a transaction at what is visible now; it must end with `end`.
    pub fn begin(&self, current: &Current) -> OpenTransaction {
        let lane = lane();
        let mut open = self.lane(lane);
        // Within the lock, so that `oldest` never misses one that is about to begin.
        let (view, visible) = current.view();
        *open.entry(visible).or_default() += 1;
        OpenTransaction { snapshot: Snapshot::new(view, visible), lane }
    }

    /// Ends a transaction.
    pub fn end(&self, transaction: &OpenTransaction) {
        let sequence = transaction.snapshot.sequence();
        let mut open = self.lane(transaction.lane);
        if let Some(count) = open.get_mut(&sequence) {
            *count -= 1;
            if *count == 0 {
                open.remove(&sequence);
            }
        }
    }

    /// No transaction that is open now, or begins later, has an older snapshot.
    pub fn oldest(&self, current: &Current) -> Sequence {
        // First: one that begins in a lane after this has looked there begins at this or later.
        let visible = current.visible();
        let oldest = |lane| self.lane(lane).keys().next().copied();
        (0..LANE_COUNT).filter_map(oldest).fold(visible, Sequence::min)
    }

    fn lane(&self, lane: usize) -> MutexGuard<'_, BTreeMap<Sequence, u64>> {
        self.lanes[lane].0.lock().expect("no panic while the lock is held")
    }
}
