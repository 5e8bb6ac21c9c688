//! Which trees have runs, which of them a worker has in hand, and what was put off since it failed.

use std::collections::{BTreeMap, BTreeSet};

use crate::background::errors::Backoff;
use crate::ids::TreeId;

/// Who works on what.
#[derive(Default)]
pub(crate) struct CompactionScheduler {
    /// Trees that had runs when they were last looked at.
    pub with_runs: BTreeSet<TreeId>,
    /// Trees that a worker has in hand.
    pub busy: BTreeSet<TreeId>,
    /// Whether a tree has more runs than it may have once it is read much.
    pub has_many: bool,
    /// What failed when it was last tried, and until when that is put off.
    pub failed: BTreeMap<(TreeId, Kind), Backoff>,
}

impl CompactionScheduler {
    /// Whether work of this kind failed on the tree and isn't due again.
    pub fn is_put_off(&self, tree: TreeId, kind: Kind) -> bool {
        self.failed.get(&(tree, kind)).is_some_and(|pause| pause.left().is_some())
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
    /// As failures are told.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Look | Kind::Fold => "fold",
            Kind::Merge => "merge",
        }
    }
}
