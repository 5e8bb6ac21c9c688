//! A tree's base, and the rules by which concurrent background work replaces parts of it.
//!
//! *What a base is*: a tree, runs over it, and `folded_to`. Call *content(X)* what the tree of this
//! id holds at Sequence X, within one generation. A base stands for content(`folded_to`).
//!
//! *Invariants*
//! 1. The runs stand the newest first; each begins no later than the next older one ends, and the
//!    newest ends at `folded_to`. So together they have the newest edit of each key written in
//!    (`whole_to`, `folded_to`], where `whole_to` is what the oldest one begins after, or
//!    `folded_to` if there is none.
//! 2. For each key by itself, the tree has what content(X) has at some X from `whole_to` to
//!    `folded_to`; X may differ between keys.
//!
//! *Why that is enough*: take a key. If it was written in (`whole_to`, `folded_to`], the newest run
//! that names it decides, whatever the tree says. If it was not, all X give the same. So laying the
//! runs over the tree gives content(`folded_to`), and it goes on doing so if any edit of a run that
//! is the newest up to some X is applied to the tree, at any time, twice, or in any order of keys,
//! as long as the runs stay. That is why a fold by key range may stop anywhere.
//!
//! *The rules* ([`Base::improved`]). Work takes minutes and locks nothing; when it is done, its
//! result is laid over what the base has become meanwhile. Each rule keeps both invariants, and
//! answers `None` where nothing would be won:
//!
//! | result | what it claims | kept if | then |
//! |---|---|---|---|
//! | `Folded(tree, S)` | the tree is content(S) | `whole_to < S` | the tree replaces the tree; runs up to S go; `folded_to` is at least S |
//! | `Flushed { run, .. }` | invariant 1 of a run | `folded_to < run.up_to` (`run.after <= folded_to` always) | it becomes the newest run |
//! | `Stepped(from, tree, H, W)` | `from` with edits that are the newest up to H; by 2, X is at least W | the tree is `from` still and `whole_to <= H` | the tree replaces it; runs up to W go |
//! | `Merged(runs, run)` | the run has what `runs` have | they are all there still | it takes their place |
//!
//! `folded_to` never falls within an generation, so a run that was made over an older base still
//! begins no later than the newest run ends. Two results for one base may come in either order.
//!
//! `whole_to <= H` is asked because a tree may come back: if all that was edited since is undone
//! again, a version commit at S > H gives the very `from`, and drops the runs that would decide
//! over the step.
//!
//! *What of the runs is in the tree* (`compaction_progress`) is a fact about one tree, so it goes
//! with it, and only `Stepped`, which knows of the tree that it makes, brings it along. Other runs
//! than those of then may lie over the tree, merged or newer ones: the fact is stated in Sequences.
//!
//! A surprise: a run may lie over a tree that has its edits already (a version commit folded
//! further than the run began); by 2 that is harmless, and its end drops it.

mod run_counts;

use std::sync::Arc;

use frond_store::{ChunkHash, ChunkStore};
use frond_tree::{CachedLevels, Tree, TreeError, Value};

use crate::ids::Sequence;
use crate::overlay::filter::KeyHash;
use crate::overlay::run::Run;
use crate::state::compaction_progress::CompactionProgress;
pub(crate) use run_counts::NewRunCounts;
use run_counts::RunCounts;

/// A tree and its runs, which lie under the memtables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Base {
    /// The tree.
    pub tree: CachedLevels,
    /// The runs over it, the newest first.
    pub runs: Vec<Arc<Run>>,
    /// Entries up to this Sequence are in these, or were replaced with them.
    pub folded_to: Sequence,
    /// The part of the runs that is in the tree; memory of this process only.
    pub progress: Arc<CompactionProgress>,
    /// The tree has of no key what it was after this; memory of this process only.
    tree_upto: Sequence,
    /// The changes of each run to the count of keys below it; memory of this process only.
    counts: Vec<RunCounts>,
}

/// A result of background work on a base.
#[derive(Clone, Debug)]
pub(crate) enum VersionEdit {
    /// All of the overlay up to a moment is in this tree.
    Folded {
        /// The tree.
        tree: Tree,
        /// The moment.
        up_to: Sequence,
    },
    /// The entries of memtables are in a run.
    Flushed {
        /// The run.
        run: Arc<Run>,
        /// What was known of its keys when it was written.
        counts: RunCounts,
    },
    /// A part of the runs is in this tree.
    Stepped {
        /// The root of the tree that it was made from.
        from: ChunkHash,
        /// The tree.
        tree: Tree,
        /// The edits in it are the newest up to this Sequence.
        up_to: Sequence,
        /// The Sequence whose content, or a later one's, the tree has of all keys.
        whole_to: Sequence,
        /// The part of the runs that is in it.
        progress: CompactionProgress,
    },
    /// Neighbouring runs are in one.
    Merged {
        /// The runs, the newest first; at least two.
        runs: Vec<Arc<Run>>,
        /// The one.
        into: Arc<Run>,
    },
}

impl Base {
    /// A tree without runs.
    pub fn whole(tree: Tree, folded_to: Sequence) -> Base {
        Base::new(tree, Vec::new(), folded_to)
    }

    /// A tree under runs.
    pub fn new(tree: Tree, runs: Vec<Arc<Run>>, folded_to: Sequence) -> Base {
        let counts = runs.iter().map(|_| RunCounts::default()).collect();
        let (tree, progress) = (CachedLevels::new(tree), Arc::default());
        Base { tree, runs, folded_to, progress, tree_upto: folded_to, counts }
    }

    /// Names of chunks from which all of it can be reached.
    pub fn roots(&self) -> impl Iterator<Item = ChunkHash> {
        let runs = self.runs.iter().flat_map(|run| [run.tree.root, run.filter]);
        std::iter::once(self.tree.root).chain(runs)
    }

    /// Returns the value of `key` in the runs and the tree.
    ///
    /// # Errors
    /// [`TreeError::Store`] and [`TreeError::Damaged`] if a node or a run's filter can't be read.
    pub fn get(&self, store: &dyn ChunkStore, key: &[u8]) -> Result<Option<Value>, TreeError> {
        match self.find_in_runs(store, key)? {
            Some(written) => Ok(written),
            None => self.tree.get(store, key),
        }
    }

    /// Returns the entry of `key` in the runs.
    ///
    /// # Errors
    /// As [`Base::get`].
    pub fn find_in_runs(
        &self,
        store: &dyn ChunkStore,
        key: &[u8],
    ) -> Result<Option<Option<Value>>, TreeError> {
        if !self.runs.is_empty() {
            self.note_read();
            let hash = KeyHash::new(key);
            let done_to = self.progress.done_to(key);
            for run in self.runs.iter().take_while(|run| done_to < run.up_to) {
                let found = run.get(store, key, hash)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    /// Notes a read: runs are kept few for readers.
    pub fn note_read(&self) {
        if let Some(newest) = self.runs.first() {
            newest.note_read();
        }
    }

    /// Returns how often it was read while one of the runs of now was the newest: of the run for
    /// which that is most.
    pub fn read_count(&self) -> u32 {
        self.runs.iter().map(|run| run.read_count()).max().unwrap_or(0)
    }

    /// Returns the Sequence up to which no run is needed.
    pub fn whole_to(&self) -> Sequence {
        self.runs.last().map_or(self.folded_to, |oldest| oldest.after)
    }

    /// Returns the base after `edit`; `None` if nothing is won by it (any more).
    pub fn improved(&self, edit: &VersionEdit) -> Option<Base> {
        match edit {
            VersionEdit::Folded { tree, up_to } => {
                let runs = self.runs_above(*up_to);
                let folded_to = self.folded_to.max(*up_to);
                (self.whole_to() < *up_to).then(|| Base::new(*tree, runs, folded_to))
            }
            VersionEdit::Flushed { run, counts } => {
                assert!(run.after <= self.folded_to, "folded_to never falls");
                let runs = std::iter::once(run).chain(&self.runs).cloned().collect();
                let mut flushed = Base { folded_to: run.up_to, ..self.with_runs(runs) };
                // What lies below it is what its keys had when it began.
                if run.after == self.folded_to && self.tree_upto <= run.after {
                    flushed.counts[0] = counts.clone();
                }
                (self.folded_to < run.up_to).then_some(flushed)
            }
            VersionEdit::Stepped { from, tree, up_to, whole_to, progress } => {
                let stepped = Base::new(*tree, self.runs_above(*whole_to), self.folded_to);
                let counts = self.counts_after_step(&stepped.runs, progress, *up_to);
                let (progress, tree_upto) =
                    (Arc::new(progress.clone()), self.tree_upto.max(*up_to));
                let stepped = Base { progress, tree_upto, counts, ..stepped };
                (self.tree.root == *from && self.whole_to() <= *up_to).then_some(stepped)
            }
            VersionEdit::Merged { runs, into } => {
                let first = runs.first()?;
                let start = self.runs.iter().position(|run| Arc::ptr_eq(run, first))?;
                let replaced = self.runs.get(start..start + runs.len())?;
                if !replaced.iter().zip(runs).all(|(left, right)| Arc::ptr_eq(left, right)) {
                    return None;
                }
                let mut runs = self.runs.clone();
                runs.splice(start..start + replaced.len(), [Arc::clone(into)]);
                Some(self.with_runs(runs))
            }
        }
    }

    fn runs_above(&self, up_to: Sequence) -> Vec<Arc<Run>> {
        self.runs.iter().filter(|run| up_to < run.up_to).cloned().collect()
    }

    /// Checks invariant 1.
    ///
    /// # Errors
    /// Says which runs don't join.
    pub fn check(&self) -> Result<(), String> {
        if self.runs.first().is_some_and(|newest| newest.up_to != self.folded_to) {
            return Err("the newest run doesn't end where the base does".to_owned());
        }
        if self.runs.iter().any(|run| run.up_to <= run.after) {
            return Err("a run that ends before it begins".to_owned());
        }
        let joins = |newer: &Arc<Run>, older: &Arc<Run>| {
            older.up_to < newer.up_to && newer.after <= older.up_to
        };
        if !self.runs.is_sorted_by(joins) {
            return Err("runs that leave a gap".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
