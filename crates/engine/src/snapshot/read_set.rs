//! The read set of a transaction: while it is unchanged, the snapshot may move.
//!
//! A transaction that writes what another has changed since its snapshot would lose. Instead it may
//! go on at a newer snapshot, if everything that it has read so far would be read there too: then
//! it is as if it had begun later. (CockroachDB calls it a read refresh.) So an interactive
//! transaction keeps a list of what it reads, and before it moves asks the memtables whether
//! anything of that was written since.
//!
//! 1. A key counts as changed if it was written, whatever the value. So does a range, as far as its
//!    cursor has come; all of it while the cursor is there, which goes on at the snapshot at which
//!    it began.
//! 2. The list is bounded, and what was read from the snapshot directly isn't in it: then the
//!    snapshot stays where it is.
//! 3. Entries that were flushed since the snapshot aren't in memtables any more, and the
//!    transaction doesn't look for them elsewhere: the snapshot stays where it is.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use frond_tree::{Bounds, Direction};

use crate::cursor_progress::CursorProgress;
use crate::error::EngineError;
use crate::ids::TreeId;
use crate::snapshot::Snapshot;
use crate::snapshot::since::TreeState;

/// The number of reads that are remembered: some 100 bytes each.
const READS_MAX: usize = 4096;

/// Something that was read.
enum Read {
    Key(Bytes),
    Range(Arc<CursorProgress>),
    /// The flags of all entries, and what they were.
    Flags(u8),
    /// Whether the tree exists.
    Tree,
}

/// The read set of a transaction.
#[derive(Default)]
pub(crate) struct ReadSet {
    list: Vec<(TreeId, Read)>,
    /// Whether something was read that isn't in the list.
    is_incomplete: bool,
}

/// A point within the list to which it can go back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadSetMark {
    count: usize,
    is_incomplete: bool,
}

impl ReadSet {
    /// Marks this point.
    pub fn mark(&self) -> ReadSetMark {
        ReadSetMark { count: self.list.len(), is_incomplete: self.is_incomplete }
    }

    /// Forgets what was read since `mark`, which no client was shown.
    pub fn forget_since(&mut self, mark: ReadSetMark) {
        self.list.truncate(mark.count);
        self.is_incomplete = mark.is_incomplete;
    }

    /// A key was read.
    pub fn key(&mut self, tree: TreeId, key: &[u8]) {
        self.add(tree, |_| Read::Key(Bytes::copy_from_slice(key)));
    }

    /// A range is read, by a cursor that notes how far it has come; `None` if there is no room for
    /// it.
    pub fn range(
        &mut self,
        tree: TreeId,
        bounds: &Bounds,
        direction: Direction,
    ) -> Option<Arc<CursorProgress>> {
        let mut noted = None;
        self.add(tree, |_| {
            let reach = Arc::new(CursorProgress::new(bounds.clone(), direction));
            noted = Some(Arc::clone(&reach));
            Read::Range(reach)
        });
        noted
    }

    /// A range was read as a whole: it was counted.
    pub fn whole_range(&mut self, tree: TreeId, bounds: &Bounds) {
        if let Some(reach) = self.range(tree, bounds, Direction::Ascending) {
            reach.note(None);
        }
    }

    /// The flags of a tree's entries were read.
    pub fn flags(&mut self, tree: TreeId, flags: u8) {
        self.add(tree, |_| Read::Flags(flags));
    }

    /// It was asked whether there is such a tree.
    pub fn tree(&mut self, tree: TreeId) {
        self.add(tree, |_| Read::Tree);
    }

    /// Something was read that can't be noted.
    pub fn anything(&mut self) {
        self.is_incomplete = true;
    }

    fn add(&mut self, tree: TreeId, read: impl FnOnce(TreeId) -> Read) {
        if self.list.len() < READS_MAX {
            self.list.push((tree, read(tree)));
        } else {
            self.is_incomplete = true;
        }
    }

    /// Whether everything in the list is at `after` what it was at `before`, which is older.
    ///
    /// # Errors
    /// As a read of `after`, where flags or a range must be read again to decide.
    pub fn are_unchanged(&self, before: &Snapshot, after: &Snapshot) -> Result<bool, EngineError> {
        if self.is_incomplete {
            return Ok(false);
        }
        let mut states: HashMap<TreeId, TreeState> = HashMap::new();
        for (tree, read) in &self.list {
            let state =
                *states.entry(*tree).or_insert_with(|| TreeState::find(before, after, *tree));
            let is_unchanged = match (state, read) {
                (TreeState::Unchanged, _) | (TreeState::Written(_), Read::Tree) => true,
                (TreeState::Unknown, _) => false,
                (TreeState::Written(window), Read::Key(key)) => {
                    !after.is_key_written(*tree, key, window)
                }
                (TreeState::Written(window), Read::Range(reach)) => match reach.read() {
                    Some(bounds) => !after.is_range_written(*tree, &bounds, window)?,
                    None => true,
                },
                (TreeState::Written(_), Read::Flags(flags)) => after.flags(*tree)? == *flags,
            };
            if !is_unchanged {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
