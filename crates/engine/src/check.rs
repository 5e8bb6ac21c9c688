//! Folds everything on request, and checks an engine's invariants.

use std::sync::Arc;

use frond_store::{Lifetime, StoreError};
use frond_tree::{Bounds, Direction};

use crate::compaction::publish::ROOT_NAME;
use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::shared::Shared;
use crate::snapshot::{KeepGoing, Snapshot};
use crate::state::State;

impl Shared {
    /// Writes all memtables out and empties the log.
    ///
    /// # Errors
    /// [`EngineError::Closed`] if the engine is; [`EngineError::Store`] and [`EngineError::Tree`]
    /// if a run or tree can't be read or written. Entries that were not written out stay in their
    /// memtable and in the log.
    pub fn flush(&self) -> Result<(), EngineError> {
        let mut queue = self.queue();
        queue.check_open()?;
        if queue.segment_bytes > 0 {
            self.seal(&mut queue);
        }
        drop(queue);
        while self.flush_sealed()? {}
        Ok(())
    }

    /// Folds everything and empties the log.
    ///
    /// # Errors
    /// As `flush`, and as `fold_whole`.
    pub fn checkpoint(&self) -> Result<(), EngineError> {
        self.checkpoint_at(Shared::snapshot)
    }

    /// As `checkpoint`, while `keep_going` says so.
    ///
    /// # Errors
    /// As `checkpoint`; [`EngineError::Interrupted`].
    pub fn checkpoint_while(&self, keep_going: &Arc<KeepGoing>) -> Result<(), EngineError> {
        self.checkpoint_at(|shared| shared.snapshot().asking(Arc::clone(keep_going)))
    }

    fn checkpoint_at(&self, take: impl FnOnce(&Shared) -> Snapshot) -> Result<(), EngineError> {
        self.flush()?;
        let trees = self.trees_with_runs();
        let snapshot = take(self);
        let exists = |tree: &TreeId| snapshot.has_tree(*tree);
        let trees: Vec<TreeId> = trees.into_iter().filter(exists).collect();
        let _session = self.store.session();
        let (_, outcomes) = self.fold_whole(&snapshot, &trees, Lifetime::Working)?;
        if outcomes.is_empty() { Ok(()) } else { self.publish_work(&outcomes) }
    }

    /// Checks the State, the published root, and every tree's base.
    ///
    /// # Errors
    /// [`EngineError::Store`] with `Damaged` names the first invariant that doesn't hold; otherwise
    /// as the reads that the check consists of.
    pub fn check(&self) -> Result<(), EngineError> {
        let (state, visible) = self.current();
        check_state(&state, visible).map_err(|what| damaged(&what))?;
        self.queue().check().map_err(|what| damaged(&what))?;
        {
            // No other thread publishes meanwhile.
            let publisher = self.publisher();
            if self.store.root(ROOT_NAME)? != Some(publisher.root) {
                return Err(damaged("the root is not the one that was published").into());
            }
            publisher.published.bases.check(&*self.store)?;
        }
        self.check_held()?;
        for (_, generations) in state.trees.iter() {
            for base in generations.iter().filter_map(|generation| generation.base.as_ref()) {
                base.tree.check(&*self.store)?;
                for run in &base.runs {
                    run.check(&self.store)?;
                }
            }
        }
        self.check_counts()
    }
}

impl Shared {
    /// Checks that what is known of keys counts each tree as reading it does.
    fn check_counts(&self) -> Result<(), EngineError> {
        let snapshot = self.snapshot();
        for tree in snapshot.trees() {
            let counted = snapshot.count(tree)?;
            let mut read = 0;
            for entry in snapshot.range(tree, Bounds::all(), Direction::Ascending)? {
                entry?;
                read += 1;
            }
            if counted != read {
                let what = format!("tree {}: {counted} keys by counts, {read} by reading", tree.0);
                return Err(damaged(&what).into());
            }
        }
        Ok(())
    }

    /// Checks that what collections keep is in packs.
    fn check_held(&self) -> Result<(), EngineError> {
        let roots = self.held_roots()?;
        let is_there = self.pending.store.has_many(&roots)?;
        match roots.into_iter().zip(is_there).find(|(_, is_there)| !is_there) {
            Some((hash, _)) => Err(StoreError::Missing(hash).into()),
            None => Ok(()),
        }
    }
}

/// Checks what `state` says of its invariants.
fn check_state(state: &State, visible: Sequence) -> Result<(), String> {
    if !state.sealed.is_sorted_by(|left, right| left.last <= right.last) {
        return Err("sealed memtables are not in order".to_owned());
    }
    for memtable in state.memtables() {
        memtable.check()?;
    }
    for (tree, generations) in state.trees.iter() {
        if !generations.is_sorted_by(|left, right| left.from < right.from) {
            return Err(format!("the generations of tree {} don't ascend", tree.0));
        }
        for base in generations.iter().filter_map(|generation| generation.base.as_ref()) {
            base.check().map_err(|what| format!("tree {}: {what}", tree.0))?;
        }
        let newest_visible = generations.iter().rev().find(|generation| generation.from <= visible);
        let base = newest_visible.and_then(|generation| generation.base.as_ref());
        if base.is_some_and(|base| visible < base.folded_to) {
            return Err(format!("the base of tree {} is ahead of what is visible", tree.0));
        }
    }
    Ok(())
}

fn damaged(what: &str) -> StoreError {
    let file = "the engine's state".to_owned();
    StoreError::Damaged { file, offset: 0, what: what.to_owned() }
}
