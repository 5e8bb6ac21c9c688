//! The immutable State that readers hold: the bases of all trees (trees with the runs over them)
//! and the memtables above them.
//!
//! *Invariants*
//! 1. A tree's generations ascend strictly by `from`; the first that a reader can need is always
//!    there.
//! 2. An entry of tree T belongs to an generation's content if `base.folded_to < entry.sequence`
//!    and it is below the next generation's `from`. Entries at or below `folded_to` are in the base
//!    already, or were replaced with it.
//! 3. `folded_to` of the newest visible generation never exceeds the visible Sequence.
//! 4. Every entry with a Sequence above all `folded_to` lies in one of the memtables.
//!
//! A new State replaces the old one when a memtable is sealed, a fold is installed or a tree is
//! replaced; a snapshot keeps the State that it was taken in, and so is never disturbed.

pub(crate) mod base;
pub(crate) mod compaction_progress;
mod expiry;
pub(crate) mod format;
pub(crate) mod metadata_chunks;
pub(crate) mod published;
pub(crate) mod table;
pub(crate) mod unpublished;

use std::sync::Arc;

use frond_store::ChunkStore;
use frond_tree::{CachedLevels, Tree, TreeError, Value};

use self::expiry::Expiry;
use crate::ids::{Sequence, TreeId};
use crate::log::format::SegmentNumber;
use crate::overlay::memtable::{Memtable, Window};
use crate::overlay::run::Run;
pub(crate) use base::{Base, NewRunCounts, VersionEdit};
use table::TreeTable;

/// A tree from one replacement of its content to the next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TreeGeneration {
    /// The time when the generation began.
    pub from: Sequence,
    /// The base under the overlay; `None` if the tree was dropped.
    pub base: Option<Base>,
}

impl TreeGeneration {
    /// The generation that a transaction began by giving the tree a base, or by dropping it.
    pub fn begun(from: Sequence, tree: Option<Tree>) -> TreeGeneration {
        // The transaction's own writes lie over the base: they have its Sequence.
        TreeGeneration { from, base: tree.map(|tree| Base::whole(tree, from.preceding())) }
    }
}

/// A full memtable, which waits to be flushed.
#[derive(Clone)]
pub(crate) struct Sealed {
    /// Its entries.
    pub memtable: Arc<Memtable>,
    /// The last Sequence of its entries; none of a later memtable is at or below it.
    pub last: Sequence,
    /// Its log segments are those below this one.
    pub segment_end: SegmentNumber,
}

/// All trees: bases and memtables.
#[derive(Clone, Default)]
pub(crate) struct State {
    /// The generations of each tree.
    pub trees: TreeTable,
    /// Full memtables, the oldest first.
    pub sealed: Vec<Sealed>,
    /// The memtable that takes writes.
    pub active: Arc<Memtable>,
    /// Says whether it is too old to be read.
    pub expiry: Expiry,
}

impl State {
    /// The generation of `tree` at `sequence`.
    pub fn generation(&self, tree: TreeId, sequence: Sequence) -> Option<&TreeGeneration> {
        let generations = self.trees.get(tree);
        generations.iter().rev().find(|generation| generation.from <= sequence)
    }

    /// The base of the generation of `tree` that began at `from`.
    pub fn base_of(&self, tree: TreeId, from: Sequence) -> Option<&Base> {
        let generations = self.trees.get(tree);
        generations
            .iter()
            .find(|generation| generation.from == from)
            .and_then(|generation| generation.base.as_ref())
    }

    /// The memtables, the newest first.
    pub fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        let sealed = self.sealed.iter().rev().map(|sealed| &sealed.memtable);
        std::iter::once(&self.active).chain(sealed)
    }

    /// The value of `key` at `up_to`, in the tree whose base of then is given.
    ///
    /// # Errors
    /// As [`Base::get`].
    pub fn find(
        &self,
        store: &dyn ChunkStore,
        (tree, base): (TreeId, &Base),
        key: &[u8],
        up_to: Sequence,
    ) -> Result<Option<Value>, TreeError> {
        match self.find_recent((tree, base), key, up_to) {
            Some(written) => Ok(written),
            None => base.get(store, key),
        }
    }

    /// Returns the memtables' entry of `key` at `up_to`, in the tree whose base at that time is
    /// given.
    pub fn find_recent(
        &self,
        (tree, base): (TreeId, &Base),
        key: &[u8],
        up_to: Sequence,
    ) -> Option<Option<Value>> {
        let window = Window { after: base.folded_to, up_to };
        self.memtables().find_map(|memtable| memtable.get(tree, key, window))
    }

    fn runs(&self) -> impl Iterator<Item = &Run> {
        let bases = self
            .trees
            .iter()
            .flat_map(|(_, generations)| generations)
            .filter_map(|generation| generation.base.as_ref());
        bases.flat_map(|base| &base.runs).map(|run| &**run)
    }

    /// Returns how many runs there are.
    pub fn run_count(&self) -> u64 {
        self.runs().count() as u64
    }

    /// Bytes of all runs.
    pub fn run_bytes(&self) -> u64 {
        self.runs().fold(0, |sum, run| sum.saturating_add(run.bytes))
    }

    /// Memory that filters of runs take.
    pub fn filter_bytes(&self) -> u64 {
        self.runs().map(Run::filter_bytes).sum()
    }

    /// Whether the overlay holds something of `tree` within `window`.
    pub fn touches(&self, tree: TreeId, window: Window) -> bool {
        window.after < window.up_to
            && self.memtables().any(|memtable| memtable.touches(tree, window))
    }

    /// Begins an generation of `tree`, and forgets those that neither a reader at `visible` or
    /// later nor a fold of a sealed memtable can ask for.
    pub fn begin_generation(
        &mut self,
        tree: TreeId,
        generation: TreeGeneration,
        visible: Sequence,
    ) {
        let mut moments: Vec<Sequence> = self.sealed.iter().map(|sealed| sealed.last).collect();
        moments.push(visible);
        self.trees.modify(tree, |generations| {
            generations.push(generation);
            forget_eras(generations, &moments);
        });
    }

    /// Takes back an generation that was refused and never visible.
    pub fn end_generation(&mut self, tree: TreeId, from: Sequence) {
        self.trees
            .modify(tree, |generations| generations.retain(|generation| generation.from != from));
    }

    /// Forgets the generations of `tree` that were over at `horizon`, and a dropped tree
    /// altogether.
    pub fn forget_generations_below(&mut self, tree: TreeId, horizon: Sequence) {
        self.trees.modify(tree, |generations| {
            let over =
                generations.iter().rposition(|generation| generation.from <= horizon).unwrap_or(0);
            generations.drain(..over);
            if generations
                .first()
                .is_some_and(|generation| generation.base.is_none() && generation.from <= horizon)
            {
                generations.remove(0);
            }
        });
    }

    /// Begins all cached levels anew: their memory goes to what is read from now on.
    pub fn renew_cached_levels(&mut self) {
        let is_grown = |generation: &TreeGeneration| {
            generation.base.as_ref().is_some_and(|base| base.tree.is_grown())
        };
        let grown = self.trees.iter().filter(|(_, generations)| generations.iter().any(is_grown));
        for tree in grown.map(|(tree, _)| tree).collect::<Vec<TreeId>>() {
            self.trees.modify(tree, |generations| {
                for base in generations.iter_mut().filter_map(|generation| generation.base.as_mut())
                {
                    base.tree = CachedLevels::new(*base.tree);
                }
            });
        }
    }

    /// Lays the result of background work over the base of the generation that began at `from`.
    /// Harmless if the tree was replaced, or improved by others, meanwhile.
    pub fn improve(&mut self, tree: TreeId, from: Sequence, edit: &VersionEdit) {
        let improved = self.base_of(tree, from).and_then(|base| base.improved(edit));
        let Some(mut improved) = improved.map(Some) else { return };
        self.trees.modify(tree, |generations| {
            if let Some(generation) =
                generations.iter_mut().find(|generation| generation.from == from)
            {
                generation.base = improved.take();
            }
        });
    }
}

/// Keeps the last generation, those that begin after the last moment, and those in force at a
/// moment. `moments` end with the visible Sequence, which no other exceeds by anything that has an
/// generation.
fn forget_eras(generations: &mut Vec<TreeGeneration>, moments: &[Sequence]) {
    let newest_moment = moments.iter().max().copied().unwrap_or_default();
    let mut position = 0;
    let all = generations.clone();
    generations.retain(|generation| {
        let end = all.get(position + 1).map(|next| next.from);
        position += 1;
        end.is_none_or(|end| {
            newest_moment < end || moments.iter().any(|at| generation.from <= *at && *at < end)
        })
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(froms: &[u64], moments: &[u64], expected: &[u64]) {
        let mut generations: Vec<TreeGeneration> =
            froms.iter().map(|from| TreeGeneration::begun(Sequence(*from), None)).collect();
        let moments: Vec<Sequence> = moments.iter().map(|moment| Sequence(*moment)).collect();
        forget_eras(&mut generations, &moments);
        let found: Vec<u64> = generations.iter().map(|generation| generation.from.0).collect();
        assert_eq!(found, expected, "{froms:?} at {moments:?}");
    }

    #[test]
    fn a_published_fold_forgets_older_eras_and_dropped_trees() {
        let hash = frond_store::ChunkHash([1; 32]);
        let tree = frond_tree::Tree { root: hash, format: frond_tree::TreeFormat::new(1) };
        let base = || Some(Base::whole(tree, Sequence(2)));
        let generation = |from, base| TreeGeneration { from: Sequence(from), base };
        // (generations, horizon, what remains)
        let cases: [(&[TreeGeneration], u64, &[TreeGeneration]); 5] = [
            (&[generation(0, base()), generation(3, base())], 5, &[generation(3, base())]),
            (
                &[generation(0, base()), generation(7, base())],
                5,
                &[generation(0, base()), generation(7, base())],
            ),
            (&[generation(0, base()), generation(3, None)], 5, &[]),
            (
                &[generation(0, base()), generation(3, None), generation(7, base())],
                5,
                &[generation(7, base())],
            ),
            (
                &[generation(0, base()), generation(7, None)],
                5,
                &[generation(0, base()), generation(7, None)],
            ),
        ];
        for (generations, horizon, expected) in cases {
            let mut state = State::default();
            state.trees.modify(TreeId(300), |found| found.extend_from_slice(generations));
            state.forget_generations_below(TreeId(300), Sequence(horizon));
            assert_eq!(state.trees.get(TreeId(300)), expected);
        }
    }

    #[test]
    fn unreachable_generations_are_forgotten() {
        check(&[0], &[5], &[0]);
        check(&[0, 3], &[5], &[3]);
        check(&[0, 3, 7], &[5], &[3, 7]);
        check(&[0, 3, 7, 9], &[5], &[3, 7, 9]);
        check(&[0, 3, 7], &[2, 8], &[0, 7]);
        check(&[0, 3, 5, 7], &[4, 8], &[3, 7]);
        check(&[4, 6], &[2, 5], &[4, 6]);
    }
}
