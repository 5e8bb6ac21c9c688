//! Finds the writes between two snapshots, as far as memtables show them.

use bytes::Bytes;
use frond_tree::{Bounds, Direction};

use super::Snapshot;
use crate::error::EngineError;
use crate::ids::TreeId;
use crate::overlay::interleave::Interleave;
use crate::overlay::memtable::Window;

/// The change of a tree between two snapshots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TreeState {
    /// Nothing, or it isn't there in either.
    Unchanged,
    /// Keys were written; which ones, memtables say within this window.
    Written(Window),
    /// It was replaced, dropped or made; or it isn't known any more what was written.
    Unknown,
}

impl TreeState {
    /// Finds out.
    pub fn find(before: &Snapshot, after: &Snapshot, tree: TreeId) -> TreeState {
        let (then, now) = match (before.generation(tree), after.generation(tree)) {
            (Err(_), Err(_)) => return TreeState::Unchanged,
            (Ok(then), Ok(now)) => (then, now),
            _ => return TreeState::Unknown,
        };
        if then.0.from != now.0.from || before.sequence() < now.1.folded_to {
            return TreeState::Unknown;
        }
        let window = Window { after: before.sequence(), up_to: after.sequence() };
        let is_written = after.state().touches(tree, window);
        if is_written { TreeState::Written(window) } else { TreeState::Unchanged }
    }
}

impl Snapshot {
    /// The keys of `tree` that were written after `before`, which is older; ascending. `None` if
    /// that isn't known any more: part of it was flushed, or the tree was replaced; and if these
    /// are more than `count_max` writes.
    ///
    /// # Errors
    /// [`EngineError::SnapshotTooOld`].
    pub fn keys_written_since(
        &self,
        before: &Snapshot,
        tree: TreeId,
        count_max: usize,
    ) -> Result<Option<Vec<Bytes>>, EngineError> {
        let window = match TreeState::find(before, self, tree) {
            TreeState::Unchanged => return Ok(Some(Vec::new())),
            TreeState::Unknown => return Ok(None),
            TreeState::Written(window) => window,
        };
        let mut keys = Vec::new();
        for memtable in self.view.state.memtables() {
            if !memtable.touched_keys(tree, window, count_max, &mut keys) {
                return Ok(None);
            }
        }
        keys.sort_unstable();
        keys.dedup();
        self.unless_expired(Ok(Some(keys)))
    }

    /// Whether the memtables have an entry of `key` within `window`.
    pub(crate) fn is_key_written(&self, tree: TreeId, key: &[u8], window: Window) -> bool {
        self.view.state.memtables().any(|memtable| memtable.get(tree, key, window).is_some())
    }

    /// Checks whether the memtables have an entry within `bounds` and `window`.
    pub(crate) fn is_range_written(
        &self,
        tree: TreeId,
        bounds: &Bounds,
        window: Window,
    ) -> Result<bool, EngineError> {
        let sources = self.memtable_sources(tree, window, bounds, Direction::Ascending);
        Ok(Interleave::new(sources, Direction::Ascending).peek_key()?.is_some())
    }
}
