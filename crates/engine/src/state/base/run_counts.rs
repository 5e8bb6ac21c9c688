//! Counts by how many keys the runs of a base change the count of its tree.
//!
//! Of a key within a run it is asked whether the run gives it a value, and whether it had one below
//! the run: as the newest of the older runs that names it says, or else the tree. Laid upon each
//! other these changes add up to what all runs change: where two runs name a key, what the older
//! one made of it is what the newer one begins with. Runs whose edits of the key are in the tree
//! are asked neither way: the tree may have what a merged run above them says.
//!
//! 1. The keys of a run stand in blocks, by their order in it. The tree below a run is looked up
//!    for a block at a time, when a count needs most of it, and the results are kept: two bits a
//!    key. Of a block whose count needs little it looks up just that.
//! 2. A count subtracts the ranks of its bounds in the run, and adds the blocks between them.
//! 3. Of a run that a flush made it is often known from the beginning: memtables' entries know what
//!    was before them ([`NewRunCounts`]).
//!
//! *Why what is kept stays right* while a tree under the runs is replaced: a step folds all runs up
//! to a moment H into a key range of it. Runs that end by H aren't asked for that range any more
//! ([`CompactionProgress`]). Of a run that begins at H or later the keys have below it what they
//! had when it began, before as after, as long as the tree had nothing newer than H. The results of
//! any other run go. So does all where a step was overtaken, and where a fold replaces the tree:
//! that may undo steps.
//!
//! The results of the base before a step are copied for the base after it, and not shared: results
//! looked up then are right where the step was only for readers that know of it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use frond_store::ChunkStore;
use frond_tree::{Bounds, Direction, TreeError};

use super::Base;
use crate::ids::Sequence;
use crate::overlay::filter::KeyHash;
use crate::overlay::run::{Run, RunCursor};
use crate::state::compaction_progress::CompactionProgress;

/// Keys of a block, a bit of a mask each. Tests have small runs.
const BLOCK_KEYS: u64 = if cfg!(test) { 4 } else { 128 };

/// The amount by which one run changes the count of what lies below it, as far as that is known.
#[derive(Clone, Default)]
pub(crate) struct RunCounts(Arc<Mutex<BTreeMap<u64, BlockCounts>>>);

/// A bit for each key of a block.
#[derive(Clone, Copy, Default)]
struct BlockCounts {
    /// Keys that have a value, and have none below the run.
    come: u128,
    /// The other way round.
    gone: u128,
}

impl PartialEq for RunCounts {
    /// Knowledge about a run doesn't make it another.
    fn eq(&self, _: &RunCounts) -> bool {
        true
    }
}

impl Eq for RunCounts {}

impl std::fmt::Debug for RunCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "counts of {} blocks", self.known().len())
    }
}

impl RunCounts {
    fn known(&self) -> MutexGuard<'_, BTreeMap<u64, BlockCounts>> {
        self.0.lock().expect("no panic while the lock is held")
    }

    fn copied(&self) -> RunCounts {
        RunCounts(Arc::new(Mutex::new(self.known().clone())))
    }
}

/// Gathers the counts of a run that is being written, as far as they are known.
#[derive(Default)]
pub(crate) struct NewRunCounts {
    blocks: BTreeMap<u64, BlockCounts>,
    /// The block of the next key; `None`: one of its keys isn't known.
    open: Option<BlockCounts>,
    rank: u64,
}

impl NewRunCounts {
    /// Notes whether the run's next key has a value, and whether it had one before, if that is
    /// known.
    pub fn note(&mut self, has_value: bool, had_value: Option<bool>) {
        let bit = self.rank % BLOCK_KEYS;
        if bit == 0 {
            self.close();
            self.open = Some(BlockCounts::default());
        }
        match (&mut self.open, had_value) {
            (Some(open), Some(had_value)) => {
                open.come |= u128::from(has_value && !had_value) << bit;
                open.gone |= u128::from(!has_value && had_value) << bit;
            }
            (open, _) => *open = None,
        }
        self.rank += 1;
    }

    fn close(&mut self) {
        let last = self.rank.saturating_sub(1) / BLOCK_KEYS;
        self.blocks.extend(self.open.take().map(|open| (last, open)));
    }

    /// Returns what is known of the whole run.
    pub fn finish(mut self) -> RunCounts {
        self.close();
        RunCounts(Arc::new(Mutex::new(self.blocks)))
    }
}

impl BlockCounts {
    /// Returns the change of the count by the keys within `positions`.
    fn within(self, positions: Range<u64>) -> i64 {
        let count = (positions.end - positions.start) as u32;
        let mask = (u128::MAX >> (u128::BITS - count)) << positions.start;
        let ones = |bits: u128| i64::from((bits & mask).count_ones());
        ones(self.come) - ones(self.gone)
    }
}

impl Base {
    /// This base with other runs, the tree being the same; what is known of those that stay is
    /// shared.
    pub(super) fn with_runs(&self, runs: Vec<Arc<Run>>) -> Base {
        let counts = runs.iter().map(|run| self.counts_of(run).cloned().unwrap_or_default());
        Base { counts: counts.collect(), runs, ..self.clone() }
    }

    /// Returns the counts of `runs` that are still valid once a step has folded the runs' entries
    /// up to `up_to`, and made `progress`.
    pub(super) fn counts_after_step(
        &self,
        runs: &[Arc<Run>],
        progress: &CompactionProgress,
        up_to: Sequence,
    ) -> Vec<RunCounts> {
        let is_next = self.tree_upto <= up_to && progress.follows(&self.progress, up_to);
        let counts = runs.iter().map(|run| {
            let is_apart = run.up_to <= up_to || up_to <= run.after;
            let known = self.counts_of(run).filter(|_| is_next && is_apart);
            known.map(RunCounts::copied).unwrap_or_default()
        });
        counts.collect()
    }

    fn counts_of(&self, run: &Arc<Run>) -> Option<&RunCounts> {
        let position = self.runs.iter().position(|other| Arc::ptr_eq(other, run));
        position.map(|position| &self.counts[position])
    }

    /// Returns by how much the runs change how many keys the tree has within `bounds`.
    ///
    /// # Errors
    /// [`TreeError::Store`] and [`TreeError::Damaged`] if a node or a run's filter can't be read.
    pub fn run_change(
        &self,
        store: &Arc<dyn ChunkStore>,
        bounds: &Bounds,
    ) -> Result<i64, TreeError> {
        let mut change = 0;
        for (position, run) in self.runs.iter().enumerate() {
            for left in self.progress.left(run.up_to, bounds) {
                let ranks = run.tree.ranks(&**store, &left)?;
                change += self.change_within(store, position, ranks)?;
            }
        }
        Ok(change)
    }

    /// Returns the change of the count by the keys within `ranks` of the run at `position`.
    fn change_within(
        &self,
        store: &Arc<dyn ChunkStore>,
        position: usize,
        ranks: Range<u64>,
    ) -> Result<i64, TreeError> {
        let (mut change, mut rank) = (0, ranks.start);
        while rank < ranks.end {
            let block = rank / BLOCK_KEYS;
            let first = block * BLOCK_KEYS;
            let end = (first + BLOCK_KEYS).min(ranks.end);
            let known = self.counts[position].known().get(&block).copied();
            change += match known {
                Some(known) => known.within(rank - first..end - first),
                None if end - rank < BLOCK_KEYS / 2 => {
                    self.look_below(store, position, rank..end)?.within(0..end - rank)
                }
                None => {
                    let all = first..(first + BLOCK_KEYS).min(self.runs[position].count).max(end);
                    let found = self.look_below(store, position, all)?;
                    self.counts[position].known().insert(block, found);
                    found.within(rank - first..end - first)
                }
            };
            rank = end;
        }
        Ok(change)
    }

    /// Looks up what lies below the keys within `ranks` of the run at `position`, a block's at
    /// most.
    fn look_below(
        &self,
        store: &Arc<dyn ChunkStore>,
        position: usize,
        ranks: Range<u64>,
    ) -> Result<BlockCounts, TreeError> {
        let run = &self.runs[position];
        let first = run.tree.select(&**store, ranks.start)?;
        let bounds = Bounds { start: first.map(|entry| entry.key), end: None };
        let count = (ranks.end - ranks.start) as usize;
        let entries = RunCursor::new(run, store, bounds, Direction::Ascending).take(count);
        let entries: Vec<(Bytes, bool)> = entries
            .map(|entry| entry.map(|(key, value)| (key, value.is_some())))
            .collect::<Result<_, TreeError>>()?;
        if entries.len() < count {
            let what = "a run with fewer keys than it counts".to_owned();
            return Err(TreeError::Damaged { hash: run.tree.root, what });
        }
        let keys: Vec<&[u8]> = entries.iter().map(|(key, _)| &key[..]).collect();
        let mut counts = BlockCounts::default();
        let below = self.have(&**store, position + 1, &keys)?;
        for (bit, ((_, has_value), had)) in entries.iter().zip(below).enumerate() {
            counts.come |= u128::from(*has_value && !had) << bit;
            counts.gone |= u128::from(!has_value && had) << bit;
        }
        Ok(counts)
    }

    /// Returns whether each of `keys`, which ascend strictly, has a value in the runs from the one
    /// at `position` on, the tree below them included.
    ///
    /// # Errors
    /// As [`Base::run_change`].
    pub fn have(
        &self,
        store: &dyn ChunkStore,
        position: usize,
        keys: &[&[u8]],
    ) -> Result<Vec<bool>, TreeError> {
        let runs = &self.runs[position..];
        let mut had: Vec<Option<bool>> = vec![None; keys.len()];
        if !runs.is_empty() {
            for (key, had) in keys.iter().zip(&mut had) {
                let hash = KeyHash::new(key);
                let done_to = self.progress.done_to(key);
                for run in runs.iter().take_while(|run| done_to < run.up_to) {
                    if let Some(written) = run.get(store, key, hash)? {
                        *had = Some(written.is_some());
                        break;
                    }
                }
            }
        }
        let left = keys.iter().zip(&had).filter(|(_, had)| had.is_none());
        let left: Vec<&[u8]> = left.map(|(key, _)| *key).collect();
        let mut found = self.tree.get_many(store, &left)?.into_iter();
        let mut in_tree = || found.next().is_some_and(|value| value.is_some());
        Ok(had.into_iter().map(|had| had.unwrap_or_else(&mut in_tree)).collect())
    }
}
