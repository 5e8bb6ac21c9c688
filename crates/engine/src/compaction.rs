//! Compaction: folds runs into their trees by key range, and merges runs.
//!
//! *Folding* goes round and round a tree (`compaction_progress`), in steps of a key range each, so
//! that no step takes long and each publishes what it won:
//! 1. A step is due when what the runs have and the tree hasn't is a share of the tree. So steps
//!    come as fast as runs do, and a round takes as long as so many runs need to come as may lie
//!    over the tree.
//! 2. It applies the runs' edits from the cursor to the step's end, publishes the tree, and moves
//!    the cursor there. The runs stay, so that it doesn't matter whether a reader meets the old
//!    tree or the new (`state::base`, invariant 2).
//! 3. It drops the runs that have been folded all the way round.
//!
//! If anything else replaces the tree (a version commit, a new generation), steps begin again at
//! the first key. A version commit takes over what steps have done, and leaves no runs. A crash
//! forgets the cursor: what was applied is applied once more.
//!
//! *A merge* makes one run of some neighbours when there are too many to look into: of those for
//! which the fewest bytes are written for each run less, so that an edit is written again O(log n)
//! times at most before it is folded. A tree that is read seldom may have more runs, and one that
//! isn't read, many; once it is read, they are merged soon.
//!
//! One worker at a time works on a tree; different trees are worked on in parallel. *What fails*
//! for a tree is put off, longer each time, and the cursor stays; other work goes on, for other
//! trees and for this one, and no writer is slowed down because of runs that can't be folded.

mod flush;
mod fold;
pub(crate) mod publish;
mod self_contained;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use frond_tree::{Bounds, Direction, Tree};

use crate::background::compaction_scheduler::Kind;
use crate::background::throttled_store::ThrottledStore;
use crate::compaction::publish::Outcome;
use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::overlay::interleave::{Interleave, Source};
use crate::overlay::run::{READS_COUNTED, RUN_ENTRY_OVERHEAD_BYTES, Run, RunCursor};
use crate::shared::Shared;
use crate::snapshot::{edits, run_sources};
use crate::state::compaction_progress::PARTS;
use crate::state::{Base, State, VersionEdit};
use crate::statistics::counters::Counters;

/// A tree that is read seldom may have so many hundredths of the runs of one that is read much: to
/// merge four runs takes some tenths of a second, to look into four more some 70 microseconds a
/// range.
const SELDOM_PERCENT: usize = 150;
/// The same for a tree that isn't read: its next reader looks into so many, for a while. That is
/// about what trees of 5 million documents with four indexes would have without any merge.
const UNREAD_PERCENT: usize = 600;
/// A step takes about this share of the memtable's limit of the tree, or of one of its runs.
const STEP_SHARE: u64 = 2;
/// The number of runs that are merged at once at most: what they have can be dropped only together.
const MERGE_COUNT_MAX: usize = 4;

/// The work that a tree needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Need {
    /// A step, there being so many hundredths of what makes one due.
    Step(u64),
    /// A merge.
    Merge,
}

impl Need {
    fn kind(self) -> Kind {
        match self {
            Need::Step(_) => Kind::Fold,
            Need::Merge => Kind::Merge,
        }
    }
}

/// Bytes of a tree, counted as those of a run are.
fn tree_bytes(shared: &Shared, tree: &Tree) -> Result<u64, EngineError> {
    let summary = tree.summary(&*shared.store)?;
    let bytes = summary.key_bytes.saturating_add(summary.value_bytes);
    Ok(bytes.saturating_add(summary.count.saturating_mul(RUN_ENTRY_OVERHEAD_BYTES)))
}

/// About how many bytes of the runs aren't in the tree.
fn unfolded_bytes(base: &Base) -> u64 {
    base.runs.iter().fold(0, |sum, run| {
        let parts_left = PARTS - base.progress.parts_done(run.up_to);
        sum.saturating_add(run.bytes.saturating_mul(parts_left) / PARTS)
    })
}

/// The newest generation's base, if it has runs.
fn base_with_runs(state: &State, tree: TreeId) -> Option<(Sequence, &Base)> {
    let generation = state.trees.get(tree).last()?;
    let base = generation.base.as_ref().filter(|base| !base.runs.is_empty())?;
    Some((generation.from, base))
}

impl Shared {
    /// Notes which trees have runs now.
    pub fn note_runs(&self, outcomes: &[Outcome]) {
        let is_run = |outcome: &&Outcome| matches!(outcome.edit, VersionEdit::Flushed { .. });
        let trees: Vec<TreeId> =
            outcomes.iter().filter(is_run).map(|outcome| outcome.tree).collect();
        if !trees.is_empty() {
            self.background.scheduler.note_runs(trees);
            self.signals.note_work();
        }
    }

    /// Notes which trees have runs in the State that an opening found.
    pub fn note_all_runs(&self) {
        let (state, _) = self.current();
        let has_runs = |tree: &TreeId| base_with_runs(&state, *tree).is_some();
        let trees: Vec<TreeId> =
            state.trees.iter().map(|(tree, _)| tree).filter(has_runs).collect();
        self.background.scheduler.note_runs(trees);
    }

    /// The trees that may have runs.
    pub fn trees_with_runs(&self) -> Vec<TreeId> {
        let (state, _) = self.current();
        self.background.scheduler.trees_with_runs(|tree| {
            let mut bases = state.trees.get(tree).iter().flat_map(|generation| &generation.base);
            bases.any(|base| !base.runs.is_empty())
        })
    }

    /// Whether steps have folded a part of the runs of `base` into it, or one is at it.
    pub fn is_folding(&self, tree: TreeId, base: &Base) -> bool {
        base.progress.have_begun() || self.background.scheduler.is_in_hand(tree)
    }

    /// Does the most urgent piece of work that no thread has in hand. Returns whether there was
    /// any.
    ///
    /// # Errors
    /// The error of the piece of work; it is put off before it is tried again.
    pub fn work_once(&self) -> Result<bool, EngineError> {
        loop {
            let (need, tree) = match self.most_urgent() {
                Ok(None) => return Ok(false),
                Ok(Some(most)) => most,
                Err((tree, error)) => return Err(self.put_off(tree, Kind::Look, error)),
            };
            let Some(in_hand) = self.background.scheduler.take(tree) else {
                continue; // Another worker was faster; it will not be looked at again.
            };
            let _session = self.store.session();
            let begun = self.machine.clock.steady_micros();
            let kind = need.kind();
            let done = match kind {
                Kind::Merge => self.merge(tree),
                Kind::Look | Kind::Fold => self.step(tree),
            };
            self.counters.work_micros.add(self.micros_since(begun));
            let done = match done {
                Ok(()) => {
                    self.background.scheduler.succeeded(tree, kind);
                    Ok(())
                }
                Err(error) => Err(self.put_off(tree, kind, error)),
            };
            drop(in_hand);
            self.signals.note_work();
            return done.map(|()| true);
        }
    }

    /// Folds all runs step by step, each published before the next; counts `steps`. A tree that a
    /// worker has in hand is left to it.
    ///
    /// # Errors
    /// As a fold: a tree or run can't be read, its result can't be written or published. Steps that
    /// were published before stay.
    pub fn fold_in_steps(&self, steps: &mut u64) -> Result<(), EngineError> {
        self.fold_in_steps_while(steps, &mut || true)
    }

    /// As `fold_in_steps`, until `keep_going` says no: asked between two steps.
    ///
    /// # Errors
    /// As `fold_in_steps`.
    pub fn fold_in_steps_while(
        &self,
        steps: &mut u64,
        keep_going: &mut dyn FnMut() -> bool,
    ) -> Result<(), EngineError> {
        for tree in self.trees_with_runs() {
            let Some(_in_hand) = self.background.scheduler.take(tree) else { continue };
            while base_with_runs(&self.current().0, tree).is_some() {
                if !keep_going() {
                    return Ok(());
                }
                let _session = self.store.session();
                self.step(tree)?;
                *steps += 1;
            }
        }
        Ok(())
    }

    /// Notes that work on a tree failed: where the background does it, it is put off. Returns the
    /// error.
    fn put_off(&self, tree: TreeId, kind: Kind, error: EngineError) -> EngineError {
        if self.options.fold_threads > 0 {
            self.background.scheduler.put_off(tree, kind);
            self.note_failure(kind.name(), &error);
        }
        error
    }

    /// Returns the time until the first of what was put off is due, or it may be that a tree is
    /// read more than it was.
    pub fn next_try(&self) -> Option<Duration> {
        let next = self.background.scheduler.next_try();
        if !self.background.scheduler.has_failures() {
            for kind in [Kind::Fold, Kind::Merge] {
                self.background.errors.end(kind.name());
            }
        }
        next
    }

    /// Whether nothing is due or in hand, flushes included.
    ///
    /// # Errors
    /// [`EngineError::Tree`] if the size of a tree can't be read.
    pub fn is_at_rest(&self) -> Result<bool, EngineError> {
        let flushed = self.current().0.sealed.is_empty() && !self.free_flushed();
        Ok(flushed && self.has_no_work()? && !self.background.scheduler.has_failures())
    }

    /// Whether nothing is in hand, and nothing is due but what has failed and is put off.
    ///
    /// # Errors
    /// As `is_at_rest`.
    pub fn is_idle(&self) -> Result<bool, EngineError> {
        let flushed = self.current().0.sealed.is_empty() && !self.free_flushed();
        let fails = self.signals.is_flush_failing();
        Ok((flushed || fails) && self.has_no_work()?)
    }

    /// Whether no worker has a tree in hand, and none is due but what is put off.
    fn has_no_work(&self) -> Result<bool, EngineError> {
        let most_urgent = self.most_urgent().map_err(|(_, error)| error)?;
        Ok(most_urgent.is_none() && !self.background.scheduler.is_at_work())
    }

    /// Returns the most urgent work that isn't put off, or the tree for which that can't be found
    /// out.
    fn most_urgent(&self) -> Result<Option<(Need, TreeId)>, (TreeId, EngineError)> {
        let (state, _) = self.current();
        let mut most: Option<(Need, TreeId)> = None;
        let (mut excess, mut share) = (0u64, self.options.memtable_bytes_max);
        let mut has_many = false;
        let most_runs = self.options.run_count_max;
        for tree in self.trees_with_runs() {
            let Some((_, base)) = base_with_runs(&state, tree) else { continue };
            if self.background.scheduler.is_put_off(tree, Kind::Look) {
                continue;
            }
            has_many |= most_runs < base.runs.len() && base.read_count() < READS_COUNTED;
            let bytes = tree_bytes(self, &base.tree).map_err(|error| (tree, error))?;
            let unfolded = unfolded_bytes(base);
            let due = self.due_bytes(bytes);
            // Asked before: what is given back meanwhile is looked at the next time.
            let is_in_hand = self.background.scheduler.is_in_hand(tree);
            if !self.background.scheduler.is_put_off(tree, Kind::Fold) {
                excess = excess.saturating_add(unfolded.saturating_sub(due));
                share = share.saturating_add(self.allowed_bytes(bytes));
            }
            if is_in_hand {
                continue;
            }
            let need = if is_mergeable(base, most_runs) {
                Some(Need::Merge)
            } else {
                let hundredths = unfolded.saturating_mul(100) / due.max(1);
                (due <= unfolded).then_some(Need::Step(hundredths))
            };
            let need = need.filter(|need| !self.background.scheduler.is_put_off(tree, need.kind()));
            most = most.max(need.map(|need| (need, tree)));
        }
        // The run of the latest flush counts as normal.
        let excess = excess.saturating_sub(self.options.memtable_bytes_max);
        self.background.backpressure.note_folding(excess, share);
        self.background.scheduler.note_many(has_many);
        Ok(most)
    }

    /// Returns how large the runs over a tree of so many bytes may be.
    fn allowed_bytes(&self, tree_bytes: u64) -> u64 {
        tree_bytes.saturating_mul(self.options.overlay_percent_max) / 100
    }

    /// Returns from how many bytes on that aren't in a tree of so many bytes a step is due. Where a
    /// round has many steps, the oldest runs are nearly all in the tree and the youngest hardly:
    /// half of what they have. Where one step is a round, it is all.
    fn due_bytes(&self, tree_bytes: u64) -> u64 {
        self.allowed_bytes(tree_bytes.midpoint(tree_bytes.min(self.step_bytes())))
    }

    /// Returns the size of a step: on a small disk no more than there is room for beside what the
    /// step replaces.
    fn step_bytes(&self) -> u64 {
        let bytes = self.options.memtable_bytes_max / STEP_SHARE;
        self.space.reserve_bytes().map_or(bytes, |reserve| bytes.min((reserve / 4).max(1 << 20)))
    }

    /// Makes one run of some of a tree.
    fn merge(&self, tree: TreeId) -> Result<(), EngineError> {
        let (state, _) = self.current();
        let Some((from, base)) = base_with_runs(&state, tree) else { return Ok(()) };
        let runs = cheapest_merge(young_runs(base)).to_vec();
        let (Some(newest), Some(oldest)) = (runs.first(), runs.last()) else { return Ok(()) };
        let times = (oldest.after, newest.up_to);
        let ascending = Direction::Ascending;
        // Whole: what is in the tree of now may not be in the one that they lie over then.
        let whole = |run| RunCursor::new(run, &self.store, Bounds::all(), ascending);
        let sources = runs.iter().map(|run| Source::Run(whole(run))).collect();
        let mut entries = Interleave::new(sources, ascending);
        let run = Run::build(&*self.store, base.tree.format, times, &mut entries)?;
        let Some(run) = run else { return Ok(()) };
        Counters::count(&self.counters.merges);
        self.counters.bytes_merged.fetch_add(run.bytes, Ordering::Relaxed);
        let edit = VersionEdit::Merged { runs, into: Arc::new(run) };
        self.publish_work(&[Outcome { tree, from, edit }])
    }

    /// Does the next step of folding a tree.
    fn step(&self, tree: TreeId) -> Result<(), EngineError> {
        let (state, _) = self.current();
        let Some((from, base)) = base_with_runs(&state, tree) else { return Ok(()) };
        let progress = &*base.progress;
        let (end, parts) = self.step_end(base, progress.cursor())?;
        let bounds = Bounds { start: progress.cursor().cloned(), end: end.clone() };
        let ascending = Direction::Ascending;
        let sources = run_sources(&self.store, base, &bounds, ascending).collect();
        let mut edits = edits(Interleave::new(sources, ascending));
        let store = ThrottledStore::for_step(&*self.store);
        let folded = base.tree.apply(&store, &mut edits)?;
        Counters::count(&self.counters.steps);
        let up_to = base.folded_to;
        let (progress, whole_to) = progress.stepped(up_to, end.as_ref(), parts);
        let from_root = base.tree.root;
        let edit =
            VersionEdit::Stepped { from: from_root, tree: folded, up_to, whole_to, progress };
        self.publish_work(&[Outcome { tree, from, edit }])?;
        if end.is_none() {
            Counters::count(&self.counters.folds);
        }
        Ok(())
    }

    /// The key at which a step from `cursor` ends: about the same number of bytes further in the
    /// tree, or in the run where that comes first; and how many parts of the tree lie before it.
    /// `None`: it ends behind the last key.
    fn step_end(
        &self,
        base: &Base,
        cursor: Option<&Bytes>,
    ) -> Result<(Option<Bytes>, u64), EngineError> {
        let store = &*self.store;
        let mut least: Option<Bytes> = None;
        for tree in std::iter::once(&base.tree).chain(base.runs.iter().map(|run| &run.tree)) {
            let count = tree.count(store)?;
            let entry_bytes = tree_bytes(self, tree)? / count.max(1);
            let step_count = (self.step_bytes() / entry_bytes.max(1)).max(1);
            let done = cursor.map_or(Ok(0), |cursor| tree.rank(store, cursor))?;
            let end = tree.select(store, done.saturating_add(step_count))?.map(|entry| entry.key);
            least = match (least, end) {
                (Some(left), Some(right)) => Some(left.min(right)),
                (left, right) => left.or(right),
            };
        }
        let Some(end) = least else { return Ok((None, PARTS)) };
        let below = base.tree.rank(store, &end)?;
        let parts = below.saturating_mul(PARTS) / base.tree.count(store)?.max(1);
        Ok((Some(end), parts))
    }
}

/// The runs that are to stay for another half of a round at least. An older one would be kept
/// longer for the younger ones with which it was merged.
fn young_runs(base: &Base) -> &[Arc<Run>] {
    let is_old = |run: &Arc<Run>| PARTS / 2 < base.progress.parts_done(run.up_to);
    let count = base.runs.iter().position(is_old);
    &base.runs[..count.unwrap_or(base.runs.len())]
}

/// Whether there are too many runs, and enough of them that can be merged: some few would be merged
/// again and again.
fn is_mergeable(base: &Base, run_count_max: usize) -> bool {
    let percent = match base.read_count() {
        0 => UNREAD_PERCENT,
        1..READS_COUNTED => SELDOM_PERCENT,
        _ => 100,
    };
    run_count_max * percent / 100 < base.runs.len() && young_runs(base).len() > MERGE_COUNT_MAX
}

/// The neighbours that are merged with the fewest bytes written for each run less; none of fewer
/// than two runs.
fn cheapest_merge(runs: &[Arc<Run>]) -> &[Arc<Run>] {
    let bytes = |runs: &&[Arc<Run>]| runs.iter().map(|run| run.bytes).sum::<u64>();
    let cost = |runs: &&[Arc<Run>]| bytes(runs) / (runs.len() as u64 - 1);
    let windows = (2..=MERGE_COUNT_MAX).flat_map(|count| runs.windows(count));
    windows.min_by_key(cost).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use frond_store::ChunkHash;
    use frond_tree::TreeFormat;

    use super::*;

    #[test]
    fn the_more_a_tree_is_read_the_fewer_runs_it_may_have() {
        let (root, format) = (ChunkHash([1; 32]), TreeFormat::new(1));
        let run = |up_to| {
            let times = (Sequence(up_to - 1), Sequence(up_to));
            Arc::new(Run::stored(root, format, root, times, 1, 1))
        };
        let check = |run_count: u64, read_count: u32, expected: bool| {
            let runs = (1..=run_count).rev().map(run).collect();
            let base = Base::new(Tree { root, format }, runs, Sequence(run_count));
            (0..read_count).for_each(|_| base.note_read());
            assert_eq!(
                is_mergeable(&base, 8),
                expected,
                "{run_count} runs, read {read_count} times"
            );
        };
        for (read_count, most) in [(0, 48), (1, 12), (63, 12), (64, 8), (1000, 8)] {
            check(most, read_count, false);
            check(most + 1, read_count, true);
        }
    }
}
