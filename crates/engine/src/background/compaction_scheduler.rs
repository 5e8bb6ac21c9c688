//! The compaction schedule: which trees have runs, which of them a worker is folding, and which are
//! put off because the last attempt failed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use crate::background::errors::Backoff;
use crate::ids::TreeId;

/// Within this time after a tree with many runs is read they begin to be merged.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The longest wait before a failed tree is tried again.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Assigns trees to workers.
#[derive(Default)]
pub(crate) struct CompactionScheduler {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Trees that had runs when they were last looked at.
    with_runs: BTreeSet<TreeId>,
    /// Trees that a worker has in hand.
    in_hand: BTreeSet<TreeId>,
    /// Whether a tree has more runs than it may have once it is read much.
    has_many: bool,
    /// The work that failed when it was last tried, and until when it is put off.
    failed: BTreeMap<(TreeId, Kind), Backoff>,
}

/// A tree that a worker has in hand; given back when dropped, whatever happened.
pub(crate) struct InHand<'a> {
    scheduler: &'a CompactionScheduler,
    tree: TreeId,
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.scheduler.known().in_hand.remove(&self.tree);
    }
}

impl CompactionScheduler {
    /// Notes trees that have runs.
    pub fn note_runs(&self, trees: impl IntoIterator<Item = TreeId>) {
        self.known().with_runs.extend(trees);
    }

    /// The trees that have runs, of those that had; what failed for others is forgotten.
    pub fn trees_with_runs(&self, has_runs: impl Fn(TreeId) -> bool) -> Vec<TreeId> {
        let mut known = self.known();
        let Known { with_runs, failed, .. } = &mut *known;
        with_runs.retain(|tree| has_runs(*tree));
        failed.retain(|(tree, _), _| with_runs.contains(tree));
        with_runs.iter().copied().collect()
    }

    /// Takes a tree in hand, unless another worker has it.
    pub fn take(&self, tree: TreeId) -> Option<InHand<'_>> {
        let is_free = self.known().in_hand.insert(tree);
        is_free.then(|| InHand { scheduler: self, tree })
    }

    /// Whether a worker has the tree in hand.
    pub fn is_in_hand(&self, tree: TreeId) -> bool {
        self.known().in_hand.contains(&tree)
    }

    /// Whether a worker has any tree in hand.
    pub fn is_at_work(&self) -> bool {
        !self.known().in_hand.is_empty()
    }

    /// Notes whether a tree has more runs than it may have once it is read much.
    pub fn note_many(&self, has_many: bool) {
        self.known().has_many = has_many;
    }

    /// Notes that work of this kind succeeded on the tree, which was looked at before.
    pub fn succeeded(&self, tree: TreeId, kind: Kind) {
        let failed = &mut self.known().failed;
        failed.remove(&(tree, Kind::Look));
        failed.remove(&(tree, kind));
    }

    /// Puts off what failed, longer each time.
    pub fn put_off(&self, tree: TreeId, kind: Kind) {
        let failed = &mut self.known().failed;
        let before = failed.get(&(tree, kind)).copied();
        failed.insert((tree, kind), Backoff::after(before, PAUSE_MAX));
    }

    /// Whether work of this kind failed on the tree and isn't due again.
    pub fn is_put_off(&self, tree: TreeId, kind: Kind) -> bool {
        self.known().failed.get(&(tree, kind)).is_some_and(|pause| pause.left().is_some())
    }

    /// Whether anything failed when it was last tried.
    pub fn has_failures(&self) -> bool {
        !self.known().failed.is_empty()
    }

    /// Returns the time until the first of what was put off is due, or it may be that a tree is
    /// read more than it was.
    pub fn next_try(&self) -> Option<Duration> {
        let known = self.known();
        let next = known.failed.values().filter_map(Backoff::left).min();
        next.into_iter().chain(known.has_many.then_some(LOOK_EVERY)).min()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("no panic while the lock is held")
    }
}

/// Kinds of work on a tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    /// Finding out what it needs.
    Look,
    /// A step.
    Fold,
    Merge,
}

impl Kind {
    /// As failures are reported.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Look | Kind::Fold => "fold",
            Kind::Merge => "merge",
        }
    }
}
