//! Folds whole trees, as a snapshot shows them, for a version commit.
//!
//! It applies all that lies over each tree at the snapshot, memtables and runs, syncs the results,
//! and lays them over the bases of then (`state::base` says why that is right whatever happened
//! meanwhile), but publishes nothing: the log still has the entries, and the next flush publishes.
//! Parts of the runs that steps have folded already (`compaction_progress`) aren't folded again. A
//! base so folded may reach beyond the horizon of the published state; it is then published with
//! its own Sequence, after the log was synced that far, so that a recovery, which replays
//! everything above the horizon, always reaches it and never shows half a transaction.

use std::sync::Arc;

use frond_store::{ChunkHash, Lifetime};
use frond_tree::Tree;

use crate::compaction::publish::Outcome;
use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::state::{Base, VersionEdit};
use crate::statistics::counters::Counters;

/// A log segment of this size is closed by a version commit: small against any history, and large
/// enough that publishing (a few syncs) is rare.
const LOG_BYTES_AFTER_FOLD: u64 = 1 << 20;

impl Shared {
    /// Folds `trees` as they are in `snapshot`, makes the results durable and makes them the bases.
    ///
    /// # Errors
    /// As [`Engine::fold`](crate::Engine::fold).
    pub fn fold(&self, snapshot: &Snapshot, trees: &[TreeId]) -> Result<Vec<Tree>, EngineError> {
        let _session = self.store.session();
        if !Arc::ptr_eq(snapshot.store(), &self.store) {
            return self.fold_past(snapshot, trees);
        }
        let (folded, outcomes) = self.fold_whole(snapshot, trees, Lifetime::Lasting)?;
        if outcomes.is_empty() {
            return Ok(folded);
        }
        self.store_synced(self.store.sync())?;
        self.change_state(|state, _| {
            for outcome in &outcomes {
                state.improve(outcome.tree, outcome.from, &outcome.edit);
            }
        });
        self.published.unpublished.note(outcomes.iter().map(|outcome| outcome.tree));
        self.seal_folded();
        Ok(folded)
    }

    /// Folds `trees` as they were at a moment that was made of the log again
    /// ([`crate::rebuilt_snapshots`]): the results are durable, and no tree's bases.
    fn fold_past(&self, snapshot: &Snapshot, trees: &[TreeId]) -> Result<Vec<Tree>, EngineError> {
        let bases: Result<Vec<(TreeId, &Base)>, EngineError> =
            trees.iter().map(|tree| Ok((*tree, snapshot.generation(*tree)?.1))).collect();
        let bases = bases?;
        let folded = snapshot.fold_many(&bases, Lifetime::Lasting)?;
        self.store_synced(self.store.sync())?;
        let trees = bases.iter().zip(folded);
        Ok(trees.map(|((_, base), folded)| folded.unwrap_or(*base.tree)).collect())
    }

    /// Brings each of `trees` to what `snapshot` shows; new chunks are needed for `lifetime`. The
    /// second list has those that changed. The caller holds a session of the store.
    ///
    /// # Errors
    /// As `fold`, but that nothing is synced.
    pub fn fold_whole(
        &self,
        snapshot: &Snapshot,
        trees: &[TreeId],
        lifetime: Lifetime,
    ) -> Result<(Vec<Tree>, Vec<Outcome>), EngineError> {
        self.queue().check_open()?;
        let best: Result<Vec<(Sequence, Base)>, EngineError> =
            trees.iter().map(|tree| self.best_base(snapshot, *tree)).collect();
        let best = best?;
        let bases = trees.iter().zip(&best).map(|(tree, (_, base))| (*tree, base));
        let bases: Vec<(TreeId, &Base)> = bases.collect();
        let mut folded = Vec::with_capacity(trees.len());
        let mut outcomes: Vec<Outcome> = Vec::new();
        let better = snapshot.fold_many(&bases, lifetime)?;
        for ((tree, (from, base)), better) in trees.iter().zip(&best).zip(better) {
            if let Some(better) = better {
                Counters::count(&self.counters.folds);
                let edit = VersionEdit::Folded { tree: better, up_to: snapshot.sequence() };
                outcomes.push(Outcome { tree: *tree, from: *from, edit });
            }
            folded.push(better.unwrap_or(*base.tree));
        }
        Ok((folded, outcomes))
    }

    /// Seals the memtable after a version commit: most of it is folded already, so closing it costs
    /// little and gives the log's bytes back: a history of many small commits doesn't lie on the
    /// disk twice.
    fn seal_folded(&self) {
        let mut queue = self.queue();
        let (state, _) = self.current();
        if queue.segment_bytes >= LOG_BYTES_AFTER_FOLD && state.sealed.is_empty() {
            self.seal(&mut queue);
        }
    }

    /// The base from which a fold of `tree` at `snapshot` has the least to do, and when its
    /// generation began: the current base, if it is of the same generation and not beyond the
    /// snapshot.
    fn best_base(
        &self,
        snapshot: &Snapshot,
        tree: TreeId,
    ) -> Result<(Sequence, Base), EngineError> {
        let (generation, base) = snapshot.generation(tree)?;
        let (state, _) = self.current();
        let current = state
            .base_of(tree, generation.from)
            .filter(|current| current.folded_to <= snapshot.sequence())
            .filter(|current| base.whole_to() <= current.whole_to());
        let Some(current) = current else { return Ok((generation.from, base.clone())) };
        // The caller's snapshot doesn't keep this one: asking for it protects it from collection as
        // long as the caller's session lasts. `state` keeps it until then.
        let roots: Vec<ChunkHash> = current.roots().collect();
        self.store.has_many(&roots)?;
        Ok((generation.from, current.clone()))
    }
}

#[cfg(test)]
mod tests;
