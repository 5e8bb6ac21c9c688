//! Work on runs: folding them into their trees by key range, and merging them.
//!
//! *A pass* brings all runs up to a horizon into a tree, in steps of a key range each, so that no
//! step takes long and each publishes what it won:
//! 1. It begins when a tree's runs reach a share of the tree; the horizon is what the newest reaches.
//! 2. A step applies the runs' edits from the cursor to the step's end, publishes the tree, and moves
//!    the cursor there. The runs stay, so that it doesn't matter whether a reader meets the old tree
//!    or the new (`state::base`, invariant 2).
//! 3. The last step drops the runs.
//!
//! Newer runs may come meanwhile; they belong to the next pass. If anything but the pass replaces
//! the tree (a version commit, a new era), the next step sees another root, and the pass begins
//! again. A crash forgets the cursor: what was applied is applied once more.
//!
//! *A merge* makes one run of the youngest runs of similar size when there are too many to look into,
//! so that an edit is written again O(log n) times at most before it is folded.
//!
//! One worker at a time works on a tree; different trees are worked on in parallel.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use frond_store::{ChunkHash, Lifetime};
use frond_tree::{Bounds, Direction, Tree};

use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::overlay::interleave::Interleave;
use crate::overlay::run::{RUN_ENTRY_OVERHEAD_BYTES, Run};
use crate::publish::Outcome;
use crate::shared::{Counters, Shared};
use crate::snapshot::{edits, run_sources};
use crate::state::{Base, Improvement, State};
use crate::steady::SteadyStore;

/// With more runs than this, a tree's youngest are merged.
pub(crate) const RUN_COUNT_MAX: usize = 8;
/// A step takes about this share of the memtable's limit of the tree, or of one of its runs.
const STEP_SHARE: u64 = 2;
/// A run is merged with younger ones that have together at least this share of its size.
const MERGE_SHARE: u64 = 2;

/// Who works on what.
#[derive(Default)]
pub(crate) struct Work {
    /// Trees that had runs when they were last looked at.
    with_runs: BTreeSet<TreeId>,
    /// Trees that a worker has in hand.
    busy: BTreeSet<TreeId>,
    /// Passes that have begun.
    passes: BTreeMap<TreeId, Pass>,
}

/// Where a pass is.
struct Pass {
    /// When the tree's era began.
    from: Sequence,
    /// Runs up to this are folded.
    horizon: Sequence,
    /// The tree as the last step left it.
    root: ChunkHash,
    /// Keys less than this are done.
    cursor: Option<Bytes>,
}

/// What a tree needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Need {
    /// A step, so many hundredths being the runs' share of the tree.
    Step(u64),
    /// A step of a pass that has begun.
    NextStep,
    /// A merge.
    Merge,
}

/// Gives the tree back when the worker is done with it, whatever happened.
struct InHand<'a> {
    shared: &'a Shared,
    tree: TreeId,
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.shared.work().busy.remove(&self.tree);
    }
}

/// Bytes of a tree, counted as those of a run are.
fn tree_bytes(shared: &Shared, tree: &Tree) -> Result<u64, EngineError> {
    let summary = tree.summary(&*shared.store)?;
    let bytes = summary.key_bytes.saturating_add(summary.value_bytes);
    Ok(bytes.saturating_add(summary.count.saturating_mul(RUN_ENTRY_OVERHEAD_BYTES)))
}

fn runs_bytes(base: &Base) -> u64 {
    base.runs.iter().fold(0, |sum, run| sum.saturating_add(run.bytes))
}

/// The newest era's base, if it has runs.
fn base_with_runs(state: &State, tree: TreeId) -> Option<(Sequence, &Base)> {
    let era = state.trees.get(tree).last()?;
    let base = era.base.as_ref().filter(|base| !base.runs.is_empty())?;
    Some((era.from, base))
}

impl Shared {
    /// Notes which trees have runs now.
    pub fn note_runs(&self, outcomes: &[Outcome]) {
        let is_run = |outcome: &&Outcome| matches!(outcome.improvement, Improvement::Flushed(_));
        let trees: Vec<TreeId> =
            outcomes.iter().filter(is_run).map(|outcome| outcome.tree).collect();
        if !trees.is_empty() {
            self.work().with_runs.extend(trees);
            self.signal(|signals| signals.work_generation += 1);
        }
    }

    /// Notes which trees have runs in the State that an opening found.
    pub fn note_all_runs(&self) {
        let (state, _) = self.current();
        let has_runs = |tree: &TreeId| base_with_runs(&state, *tree).is_some();
        let trees: Vec<TreeId> =
            state.trees.iter().map(|(tree, _)| tree).filter(has_runs).collect();
        self.work().with_runs.extend(trees);
    }

    /// The trees that may have runs.
    pub fn trees_with_runs(&self) -> Vec<TreeId> {
        let (state, _) = self.current();
        let mut work = self.work();
        work.with_runs.retain(|tree| {
            state
                .trees
                .get(*tree)
                .iter()
                .flat_map(|era| &era.base)
                .any(|base| !base.runs.is_empty())
        });
        work.with_runs.iter().copied().collect()
    }

    /// Whether a pass over `tree` has begun.
    pub fn is_passing(&self, tree: TreeId) -> bool {
        let work = self.work();
        work.passes.contains_key(&tree) || work.busy.contains(&tree)
    }

    /// Does the most urgent piece of work that nobody has in hand. Returns whether there was any.
    pub fn work_once(&self) -> Result<bool, EngineError> {
        loop {
            let Some((need, tree)) = self.most_urgent()? else { return Ok(false) };
            if !self.work().busy.insert(tree) {
                continue; // Another worker was faster; it will not be looked at again.
            }
            let in_hand = InHand { shared: self, tree };
            let _session = self.store.session();
            let begun = self.machine.clock.now_micros();
            match need {
                Need::Merge => self.merge(tree)?,
                Need::Step(_) | Need::NextStep => self.step(tree)?,
            }
            self.counters.work_micros.add(self.micros_since(begun));
            drop(in_hand);
            self.signal(|signals| signals.work_generation += 1);
            return Ok(true);
        }
    }

    /// Whether nothing is due or in hand, flushes included.
    pub fn is_at_rest(&self) -> Result<bool, EngineError> {
        let flushed = self.current().0.sealed.is_empty() && !self.free_flushed();
        Ok(flushed && self.most_urgent()?.is_none() && self.work().busy.is_empty())
    }

    fn most_urgent(&self) -> Result<Option<(Need, TreeId)>, EngineError> {
        let (state, _) = self.current();
        let mut most: Option<(Need, TreeId)> = None;
        let (mut excess, mut share) = (0u64, self.options.memtable_bytes_max);
        for tree in self.trees_with_runs() {
            let Some((_, base)) = base_with_runs(&state, tree) else { continue };
            let runs = runs_bytes(base);
            let allowed = self.allowed_bytes(base)?;
            excess = excess.saturating_add(runs.saturating_sub(allowed));
            share = share.saturating_add(allowed);
            let horizon = {
                let work = self.work();
                if work.busy.contains(&tree) {
                    continue;
                }
                work.passes.get(&tree).map(|pass| pass.horizon)
            };
            most = most.max(self.need(base, horizon)?.map(|need| (need, tree)));
        }
        self.pace.note_folding(excess, share);
        Ok(most)
    }

    /// How large the runs over a base may be before they are folded.
    fn allowed_bytes(&self, base: &Base) -> Result<u64, EngineError> {
        let tree = tree_bytes(self, &base.tree)?;
        Ok(tree.saturating_mul(self.options.overlay_percent_max) / 100)
    }

    /// `passing` is the horizon of the pass that has begun.
    fn need(&self, base: &Base, passing: Option<Sequence>) -> Result<Option<Need>, EngineError> {
        let mergeable = mergeable(&base.runs, passing).len();
        if base.runs.len() > RUN_COUNT_MAX && mergeable > RUN_COUNT_MAX / 2 {
            return Ok(Some(Need::Merge));
        }
        if passing.is_some() {
            return Ok(Some(Need::NextStep));
        }
        let share = self.runs_share_percent(base)?;
        Ok((share >= self.options.overlay_percent_max).then_some(Need::Step(share)))
    }

    /// How many hundredths of their tree the runs are.
    fn runs_share_percent(&self, base: &Base) -> Result<u64, EngineError> {
        Ok(runs_bytes(base).saturating_mul(100) / tree_bytes(self, &base.tree)?.max(1))
    }

    /// Makes one run of the youngest of a tree that are not part of a pass.
    fn merge(&self, tree: TreeId) -> Result<(), EngineError> {
        let (state, _) = self.current();
        let Some((from, base)) = base_with_runs(&state, tree) else { return Ok(()) };
        let passing = self.work().passes.get(&tree).map(|pass| pass.horizon);
        let mergeable = mergeable(&base.runs, passing);
        let runs = mergeable[..merge_count(mergeable)].to_vec();
        let (Some(newest), Some(oldest)) = (runs.first(), runs.last()) else { return Ok(()) };
        let times = (oldest.after, newest.upto);
        let ascending = Direction::Ascending;
        let sources = run_sources(&self.store, &runs, &Bounds::all(), ascending).collect();
        let mut entries = Interleave::new(sources, ascending);
        let run = Run::build(&*self.store, base.tree.format, times, &mut entries)?;
        let Some(run) = run else { return Ok(()) };
        Counters::count(&self.counters.merges);
        self.counters.bytes_merged.fetch_add(run.bytes, Ordering::Relaxed);
        let improvement = Improvement::Merged { runs, into: Arc::new(run) };
        self.publish_work(&[Outcome { tree, from, improvement }])
    }

    /// Does the next step of a tree's pass, beginning one where none has begun.
    fn step(&self, tree: TreeId) -> Result<(), EngineError> {
        let begun = self.work().passes.remove(&tree);
        let (state, _) = self.current();
        let Some((from, base)) = base_with_runs(&state, tree) else { return Ok(()) };
        let same = |pass: &Pass| pass.from == from && pass.root == base.tree.root;
        let mut pass = begun.filter(same).unwrap_or_else(|| Pass {
            from,
            horizon: base.folded_to,
            root: base.tree.root,
            cursor: None,
        });
        let runs: Vec<Arc<Run>> =
            base.runs.iter().filter(|run| run.upto <= pass.horizon).cloned().collect();
        let end = self.step_end(base, &runs, pass.cursor.as_deref())?;
        let bounds = Bounds { start: pass.cursor.take(), end: end.clone() };
        let ascending = Direction::Ascending;
        let sources = run_sources(&self.store, &runs, &bounds, ascending).collect();
        let mut edits = edits(Interleave::new(sources, ascending));
        let store = SteadyStore::new(&*self.store, Lifetime::Working);
        let folded = base.tree.apply(&store, &mut edits)?;
        let is_last = end.is_none();
        Counters::count(&self.counters.steps);
        let improvement = Improvement::Stepped {
            from: base.tree.root,
            tree: folded,
            upto: pass.horizon,
            is_last,
        };
        self.publish_work(&[Outcome { tree, from, improvement }])?;
        if !is_last {
            pass.root = folded.root;
            pass.cursor = end;
            self.work().passes.insert(tree, pass);
        } else {
            Counters::count(&self.counters.folds);
        }
        Ok(())
    }

    /// The key at which a step from `cursor` ends: about the same number of bytes further in the
    /// tree, or in the run where that comes first. `None`: it is the last step.
    fn step_end(
        &self,
        base: &Base,
        runs: &[Arc<Run>],
        cursor: Option<&[u8]>,
    ) -> Result<Option<Bytes>, EngineError> {
        let store = &*self.store;
        let step_bytes = self.options.memtable_bytes_max / STEP_SHARE;
        let mut least: Option<Bytes> = None;
        for tree in std::iter::once(&base.tree).chain(runs.iter().map(|run| &run.tree)) {
            let count = tree.count(store)?;
            let entry_bytes = tree_bytes(self, tree)? / count.max(1);
            let step_count = (step_bytes / entry_bytes.max(1)).max(1);
            let done = cursor.map_or(Ok(0), |cursor| tree.rank(store, cursor))?;
            let end = tree.select(store, done.saturating_add(step_count))?.map(|entry| entry.key);
            least = match (least, end) {
                (Some(left), Some(right)) => Some(left.min(right)),
                (left, right) => left.or(right),
            };
        }
        Ok(least)
    }
}

/// The runs that a pass doesn't fold anyway: `passing` is the horizon of the one that has begun.
fn mergeable(runs: &[Arc<Run>], passing: Option<Sequence>) -> &[Arc<Run>] {
    let in_pass = |run: &Arc<Run>| passing.is_some_and(|horizon| run.upto <= horizon);
    &runs[..runs.iter().position(in_pass).unwrap_or(runs.len())]
}

/// How many of the youngest runs to merge: at least two, and as many as are not much larger than
/// what is merged already.
fn merge_count(runs: &[Arc<Run>]) -> usize {
    let mut count = 0;
    let mut bytes = 0u64;
    for run in runs {
        if count >= 2 && bytes.saturating_mul(MERGE_SHARE) < run.bytes {
            break;
        }
        bytes = bytes.saturating_add(run.bytes);
        count += 1;
    }
    count
}
