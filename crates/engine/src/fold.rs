//! Folding: the overlay's entries go into the trees.
//!
//! *The fold of sealed memtables* (in the background, and by `checkpoint`)
//! 1. Fix a horizon: the last Sequence of the sealed memtables. All up to it is made durable.
//! 2. For each tree that they touch, or that got another base: apply the newest entries up to the
//!    horizon to the base of the era at the horizon.
//! 3. Publish: new base chunks into the base map, an engine-state chunk, one swap of the root
//!    `engine`, which syncs everything first.
//! 4. Install a State without the sealed memtables; remove their log segments.
//!
//! *The fold for a version commit* applies what a snapshot shows of some trees, and installs the
//! results as bases, but publishes nothing: the log still has the entries.
//!
//! *Why both can run at once, and again after a crash*: a base says up to where it was folded, and
//! readers take from the overlay only what is above that. A fold starts from the base that it finds
//! and replaces it only if that reaches less far and is of the same era. A base that reaches beyond
//! the horizon is published with its own Sequence; the log is synced that far first, so that a
//! recovery, which replays everything above the horizon, always reaches it and never shows half a
//! transaction.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use frond_store::{Chunk, ChunkHash, ChunkStore, Lifetime, StoreError};
use frond_tree::{Edit, Tree, TreeError};

use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::log::format::SegmentNumber;
use crate::shared::{Counters, Folder, Shared};
use crate::snapshot::Snapshot;
use crate::state::format::{EngineState, base_key, base_value, encode_base};
use crate::state::{Base, Era};

/// The root that names the engine-state chunk.
pub(crate) const ROOT_NAME: &str = "engine";
/// A log segment of this size is closed by a version commit: small against any history, and large
/// enough that publishing (a few syncs) is rare.
const LOG_BYTES_AFTER_FOLD: u64 = 1 << 20;

/// A tree as it is to be published.
struct FoldedTree {
    tree: TreeId,
    /// Absent if the tree has no era at the horizon.
    era: Option<Era>,
    /// Whether a newer era has begun, which a later fold publishes.
    has_later_era: bool,
}

impl Shared {
    /// Folds `trees` as they are in `snapshot`, makes the results durable and makes them the bases.
    pub fn fold(&self, snapshot: &Snapshot, trees: &[TreeId]) -> Result<Vec<Tree>, EngineError> {
        self.queue().check_open()?;
        let _session = self.store.session();
        let mut folded = Vec::with_capacity(trees.len());
        let mut improved: Vec<(TreeId, Sequence, Base)> = Vec::new();
        for tree in trees {
            let (era, base) = self.best_base(snapshot, *tree)?;
            let better = snapshot.fold(*tree, &base, Lifetime::Lasting)?;
            if let Some(better) = better {
                Counters::count(&self.counters.folds);
                improved.push((*tree, era.from, better));
            }
            folded.push(better.unwrap_or(base).tree);
        }
        if improved.is_empty() {
            return Ok(folded);
        }
        self.store_synced(self.store.sync())?;
        self.change_state(|state, _| {
            for (tree, from, base) in improved {
                state.install_base(tree, from, base);
            }
        });
        self.seal_folded();
        Ok(folded)
    }

    /// After a version commit most of the memtable is folded already, so closing it costs little
    /// and gives the log's bytes back: a history of many small commits doesn't lie on the disk twice.
    fn seal_folded(&self) {
        let mut queue = self.queue();
        let (state, _) = self.current();
        if queue.segment_bytes >= LOG_BYTES_AFTER_FOLD && state.sealed.is_empty() {
            self.seal(&mut queue);
        }
    }

    /// The base from which a fold of `tree` at `snapshot` has the least to do: the current one, if
    /// it is of the same era and not beyond the snapshot.
    fn best_base(&self, snapshot: &Snapshot, tree: TreeId) -> Result<(Era, Base), EngineError> {
        let (era, base) = snapshot.era(tree)?;
        let (state, _) = self.current();
        let current = state
            .era(tree, snapshot.sequence())
            .filter(|current| current.from == era.from)
            .and_then(|current| current.base)
            .filter(|current| current.folded_to <= snapshot.sequence());
        let newer = current.filter(|current| base.folded_to < current.folded_to);
        if let Some(newer) = newer {
            // The caller's snapshot doesn't keep this one: asking for it protects it from collection
            // as long as the caller's session lasts. `state` keeps it until then.
            self.store.has_many(&[newer.tree.root])?;
        }
        Ok((era, newer.unwrap_or(base)))
    }

    /// Folds all sealed memtables and publishes the result. Returns whether there were any.
    pub fn fold_sealed(&self) -> Result<bool, EngineError> {
        let _session = self.store.session();
        let mut folder = self.folder();
        let (state, _) = self.current();
        let Some((last, end)) = state.sealed.last().map(|sealed| (sealed.last, sealed.segment_end))
        else {
            return Ok(false);
        };
        let sealed_count = state.sealed.len();
        self.settle(last)?;

        // Taken after settling: what was refused for want of room is gone from it.
        let (state, visible) = self.current();
        let horizon = last.min(visible);
        let mut trees = std::mem::take(&mut *self.unpublished());
        let sealed = &state.sealed[..sealed_count];
        trees.extend(sealed.iter().flat_map(|sealed| sealed.memtable.trees()));
        let snapshot = Snapshot::new(Arc::clone(&self.store), Arc::clone(&state), horizon);
        let result = self.fold_trees(&snapshot, &trees).and_then(|folded| {
            let begun = folder.published.segment;
            self.publish(&mut folder, &folded, horizon, end)?;
            Ok((begun, folded))
        });
        let (begun, folded) = match result {
            Ok(done) => done,
            Err(error) => {
                self.unpublished().extend(trees);
                return Err(error);
            }
        };
        self.install(&folded, sealed_count, horizon);
        self.remove_segments(begun, end)?;
        Ok(true)
    }

    /// Brings each of `trees` to what it is at the snapshot.
    fn fold_trees(
        &self,
        snapshot: &Snapshot,
        trees: &BTreeSet<TreeId>,
    ) -> Result<Vec<FoldedTree>, EngineError> {
        let (state, _) = self.current();
        let horizon = snapshot.sequence();
        let mut folded = Vec::with_capacity(trees.len());
        for tree in trees {
            let eras = state.trees.get(*tree);
            let has_later_era = eras.iter().any(|era| horizon < era.from);
            let mut era = state.era(*tree, horizon);
            if let Some(Era { base: Some(base), .. }) = &mut era
                && base.folded_to < horizon
                && let Some(better) = snapshot.fold(*tree, base, Lifetime::Working)?
            {
                Counters::count(&self.counters.folds);
                *base = better;
            }
            folded.push(FoldedTree { tree: *tree, era, has_later_era });
        }
        Ok(folded)
    }

    /// Makes the folded trees what a restart finds.
    fn publish(
        &self,
        folder: &mut Folder,
        folded: &[FoldedTree],
        horizon: Sequence,
        segment: SegmentNumber,
    ) -> Result<(), EngineError> {
        let mut chunks: Vec<Chunk> = Vec::new();
        let mut edits: Vec<Result<(Bytes, Edit), TreeError>> = Vec::new();
        let mut newest = horizon;
        for tree in folded {
            let edit = match tree.era.and_then(|era| era.base) {
                Some(base) => {
                    newest = newest.max(base.folded_to);
                    let chunk = encode_base(&base);
                    let value = base_value(&chunk);
                    chunks.push(chunk);
                    Edit::Put(value)
                }
                None => Edit::Delete,
            };
            edits.push(Ok((base_key(tree.tree), edit)));
        }
        let store = &*self.store;
        store.put_many(&chunks)?;
        let published = EngineState {
            bases: folder.published.bases.apply(store, &mut edits.into_iter())?,
            horizon: horizon.max(folder.published.horizon),
            segment,
            next_tree_id: TreeId(self.next_tree_id.load(Ordering::Relaxed)),
        };
        self.settle(newest)?;
        let chunk = published.encode();
        store.put_many(std::slice::from_ref(&chunk))?;
        self.store_synced(swap(store, Some(folder.root), &chunk))?;
        folder.root = chunk.hash();
        folder.published = published;
        Ok(())
    }

    /// Lets readers use what was published instead of the memtables that it came from.
    fn install(&self, folded: &[FoldedTree], sealed_count: usize, horizon: Sequence) {
        self.change_state(|state, _| {
            state.sealed.drain(..sealed_count);
            for tree in folded {
                if let Some(Era { from, base: Some(base) }) = tree.era {
                    state.install_base(tree.tree, from, base);
                }
                state.forget_eras_below(tree.tree, horizon);
            }
        });
        let later = folded.iter().filter(|tree| tree.has_later_era).map(|tree| tree.tree);
        self.unpublished().extend(later);
        self.signalled.notify_all();
    }

    /// Removes log segments that are not needed any more.
    fn remove_segments(&self, begun: SegmentNumber, end: SegmentNumber) -> Result<(), StoreError> {
        let mut number = begun;
        while number < end {
            let name = number.file_name();
            match self.machine.disk.remove(&name) {
                Ok(()) => {}
                // A segment that took no record was never created.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(StoreError::io(name, error)),
            }
            number = number.next();
        }
        Ok(())
    }
}

/// Points the root at `chunk`, which was put before.
pub(crate) fn swap(
    store: &dyn ChunkStore,
    expected: Option<ChunkHash>,
    chunk: &Chunk,
) -> Result<(), StoreError> {
    store.swap_root(ROOT_NAME, expected, Some(chunk.hash()))
}

#[cfg(test)]
mod tests;
