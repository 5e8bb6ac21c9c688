//! The open transactions: the oldest of their snapshots limits what may be forgotten.
//!
//! Each stripe of threads has a list of its own, so that threads that begin and end transactions on
//! several processors don't wait for one another.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use frond_store::stripe::{STRIPE_COUNT, Stripe, stripe};

use crate::ids::Sequence;
use crate::snapshot::Snapshot;
use crate::snapshot::current::Current;

/// Counts of the open transactions at each Sequence, by stripe.
#[derive(Default)]
pub(crate) struct OpenTransactions {
    stripes: [Stripe<Mutex<BTreeMap<Sequence, u64>>>; STRIPE_COUNT],
}

/// A transaction in the list.
pub(crate) struct OpenTransaction {
    /// The snapshot at which it was begun.
    pub snapshot: Snapshot,
    stripe: usize,
}

impl OpenTransactions {
    /// Begins a transaction at what is visible now; it must end with `end`.
    pub fn begin(&self, current: &Current) -> OpenTransaction {
        let stripe = stripe();
        let mut open = self.stripe(stripe);
        // Within the lock, so that `oldest` never misses one that is about to begin.
        let (view, visible) = current.view();
        *open.entry(visible).or_default() += 1;
        OpenTransaction { snapshot: Snapshot::new(view, visible), stripe }
    }

    /// Begins a transaction at a snapshot that shows no less than what is visible. The caller holds
    /// the queue's lock, so that what is visible doesn't rise above it first: see `oldest`.
    pub fn begin_at(&self, snapshot: Snapshot) -> OpenTransaction {
        let stripe = stripe();
        *self.stripe(stripe).entry(snapshot.sequence()).or_default() += 1;
        OpenTransaction { snapshot, stripe }
    }

    /// Ends a transaction.
    pub fn end(&self, transaction: &OpenTransaction) {
        let sequence = transaction.snapshot.sequence();
        let mut open = self.stripe(transaction.stripe);
        if let Some(count) = open.get_mut(&sequence) {
            *count -= 1;
            if *count == 0 {
                open.remove(&sequence);
            }
        }
    }

    /// Returns the oldest Sequence of a snapshot of a transaction that is open now, or begins
    /// later.
    pub fn oldest(&self, current: &Current) -> Sequence {
        // First: one that begins in a stripe after this has looked there begins at this or later.
        let visible = current.visible();
        let oldest = |stripe| self.stripe(stripe).keys().next().copied();
        (0..STRIPE_COUNT).filter_map(oldest).fold(visible, Sequence::min)
    }

    fn stripe(&self, stripe: usize) -> MutexGuard<'_, BTreeMap<Sequence, u64>> {
        self.stripes[stripe].0.lock().expect("no panic while the lock is held")
    }
}
