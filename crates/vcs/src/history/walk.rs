//! Visits commits, newest first, each once; those that other tips reach are left out.
//!
//! The walk keeps the commits whose children were all visited or that a tip named, and visits the
//! one with the latest time; of one time, the one of the greatest generation. No commit is older
//! than its parents and its generation is greater, so a commit always comes before them. Nothing is
//! read beyond what is asked for.
//!
//! *Left out* (`a..b`): the tips on the left mark their ancestors as they are visited. A commit is
//! only visited when all its children were, so the mark is there in time. The walk ends once only
//! marked commits wait.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use frond_db::inside::{Commit, Error};
use frond_store::{ChunkHash, ChunkStore};

use crate::history;

/// The place of a commit in the order of visits: the last is visited first.
pub(crate) type VisitOrder = (i64, u64, Reverse<ChunkHash>);

/// The place of a commit in the order of visits.
pub(crate) fn visit_order_of(hash: ChunkHash, commit: &Commit) -> VisitOrder {
    (commit.timestamp_millis, commit.generation, Reverse(hash))
}

/// Visits commits, newest first, each once.
pub(crate) struct Walk {
    store: Arc<dyn ChunkStore>,
    waiting: BTreeMap<VisitOrder, Commit>,
    /// Each commit that was seen, and whether it is left out.
    left_out: HashMap<ChunkHash, bool>,
    /// The number of those that wait and are not left out.
    wanted: usize,
    first_parent: bool,
}

impl Walk {
    /// Visits what `tips` reach and `without` don't; with `first_parent` merges are followed to
    /// their first parent only.
    ///
    /// # Errors
    /// `Damaged` if a tip is absent or no commit.
    pub fn begin(
        store: &Arc<dyn ChunkStore>,
        tips: &[ChunkHash],
        without: &[ChunkHash],
        first_parent: bool,
    ) -> Result<Walk, Error> {
        let mut walk = Walk {
            store: store.clone(),
            waiting: BTreeMap::new(),
            left_out: HashMap::new(),
            wanted: 0,
            first_parent,
        };
        for tip in without {
            walk.add(*tip, true)?;
        }
        for tip in tips {
            walk.add(*tip, false)?;
        }
        Ok(walk)
    }

    fn add(&mut self, hash: ChunkHash, leaves_out: bool) -> Result<(), Error> {
        if let Some(known) = self.left_out.get_mut(&hash) {
            // It still waits: it comes after all that were made from it.
            if leaves_out && !*known {
                *known = true;
                self.wanted -= 1;
            }
            return Ok(());
        }
        let commit = history::load(&*self.store, hash)?;
        self.left_out.insert(hash, leaves_out);
        self.wanted += usize::from(!leaves_out);
        self.waiting.insert(visit_order_of(hash, &commit), commit);
        Ok(())
    }

    /// The next commit; the parents of the one before are looked at only now.
    ///
    /// # Errors
    /// `Damaged` if a parent is absent, not known to be, or no commit.
    pub fn next(&mut self) -> Result<Option<(ChunkHash, Commit)>, Error> {
        while self.wanted > 0 {
            let Some(((_, _, Reverse(hash)), commit)) = self.waiting.pop_last() else { break };
            let leaves_out = self.left_out.get(&hash).copied().unwrap_or_default();
            self.wanted -= usize::from(!leaves_out);
            // A commit that is left out is so with all its parents, whatever the others follow.
            let parents = if self.first_parent && !leaves_out { 1 } else { usize::MAX };
            for parent in commit.parents.iter().take(parents) {
                self.add(*parent, leaves_out)?;
            }
            if !leaves_out {
                return Ok(Some((hash, commit)));
            }
        }
        Ok(None)
    }
}
