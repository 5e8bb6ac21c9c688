//! Flushes sealed memtables as runs, so that their memory and log segments can be given back.
//!
//! 1. Fix a horizon: the last Sequence of the sealed memtables. All up to it is made durable.
//! 2. For each tree that they touch: write the newest edits up to the horizon as a run, or fold
//!    them (with all older runs) into the tree at once, where that writes little more.
//! 3. Pack the chunks that were born in them and that the log's later records need.
//! 4. Publish (see `publish`), which takes the memtables out, and remove their log segments.
//!
//! *Run or fold*: a run is read and written again by a later fold, so a direct fold is better where
//! it rewrites not much more than the edits themselves: where the part of the tree between the
//! least and the greatest edited key is small, as with small trees and with keys that rise.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use frond_store::{ChunkHash, Headroom, Lifetime};
use frond_tree::{Bounds, Direction, Tree};

use crate::compaction::publish::{Advance, Outcome};
use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::overlay::interleave::Interleave;
use crate::overlay::memtable::Memtable;
use crate::overlay::run::{RUN_ENTRY_OVERHEAD_BYTES, Run};
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::snapshot::current::View;
use crate::state::{Base, NewRunCounts, VersionEdit};
use crate::statistics::counters::Counters;

/// A part of a tree up to this share of the memtable's limit is folded directly, whatever the
/// edits: 2 MB of 32, a hundredth of a second or two.
const DIRECT_SHARE: u64 = 16;
/// Edits that rewrite at most so small a part of their bytes are appended, as a clock's keys are.
const APPENDED_DIVISOR: u64 = 8;
/// The number of memtables at once that are flushed by two threads: writers may soon have to wait
/// for this. One alone isn't worth a second processor, which committing threads want too.
const SHARED_COUNT_MIN: usize = 2;

impl Shared {
    /// Flushes all sealed memtables, and bounds what readers keep of them. Returns whether there
    /// were any.
    ///
    /// # Errors
    /// As [`Engine::flush`](crate::Engine::flush).
    pub fn flush_sealed(&self) -> Result<bool, EngineError> {
        let were_any = self.write_sealed()?;
        if were_any {
            self.expire_states_above(self.options.snapshots_bytes_max);
        }
        Ok(were_any)
    }

    fn write_sealed(&self) -> Result<bool, EngineError> {
        let _session = self.store.session();
        let _at = Headroom::of_flush().enter();
        let mut flusher = self.published.flusher();
        flusher.retain(|memtable| Arc::strong_count(memtable) > 1);
        let (state, _) = self.current();
        let Some((last, segment)) =
            state.sealed.last().map(|sealed| (sealed.last, sealed.segment_end))
        else {
            self.remove_segments()?;
            return Ok(false);
        };
        let sealed_count = state.sealed.len();
        self.make_durable(last)?;

        // Writes that were refused for want of room are gone from the State after settling. The
        // list of unpublished trees is taken before the State, so that an generation is in the
        // State if its tree is in the list.
        let mut trees = self.published.unpublished.take();
        let (state, visible) = self.current();
        let horizon = last.min(visible);
        let begun = self.machine.clock.steady_micros();
        let sealed = &state.sealed[..sealed_count];
        let memtables: Vec<Arc<Memtable>> =
            sealed.iter().map(|sealed| Arc::clone(&sealed.memtable)).collect();
        let bytes: u64 = sealed.iter().map(|sealed| sealed.memtable.bytes()).sum();
        trees.extend(sealed.iter().flat_map(|sealed| sealed.memtable.trees()));
        let snapshot = Snapshot::new(Arc::new(View::new(Arc::clone(&self.store), state)), horizon);
        let advance = Advance { horizon, segment, sealed_count, trees };
        self.keep_state(&memtables, bytes);
        let flushed = self
            .flush_trees(&snapshot, &advance)
            .and_then(|outcomes| self.pack_needed(&memtables, horizon).map(|()| outcomes))
            .and_then(|outcomes| self.publish_flush(&outcomes, &advance).map(|()| outcomes));
        let outcomes = match flushed {
            Ok(outcomes) => outcomes,
            Err(error) => {
                self.published.unpublished.note(advance.trees);
                return Err(error);
            }
        };
        let micros = self.micros_since(begun);
        self.background.backpressure.note_flush(bytes, micros);
        self.counters.flush_micros.add(micros);
        Counters::count(&self.counters.flushes);
        flusher.extend(memtables);
        // The flushing thread frees them, whichever thread flushed.
        self.signals.want_flush();
        self.note_runs(&outcomes);
        self.remove_segments()?;
        Ok(true)
    }

    /// Packs what was born in memtables that are flushed, and is needed by what the log goes on to
    /// have. (What the trees need is packed with them.) That is what memtables of now refer to. A
    /// transaction that isn't there yet refers to what its snapshot shows: to what it replaces,
    /// which is the newest and so in a tree; to anything else it refers only after having it
    /// packed. An old one isn't relied on.
    fn pack_needed(&self, flushed: &[Arc<Memtable>], horizon: Sequence) -> Result<(), EngineError> {
        let pending: HashSet<ChunkHash> =
            flushed.iter().flat_map(|memtable| memtable.pending().chunks()).collect();
        if pending.is_empty() {
            return Ok(());
        }
        if self.oldest_transaction() < horizon {
            return Ok(self.pending.pack(pending)?);
        }
        let (state, _) = self.current();
        let is_flushed =
            |memtable: &&Arc<Memtable>| flushed.iter().any(|other| Arc::ptr_eq(memtable, other));
        let later = state.memtables().filter(|memtable| !is_flushed(memtable));
        let needs = later.flat_map(|memtable| memtable.pending().all_needs());
        Ok(self.pending.pack(needs.filter(|hash| pending.contains(hash)))?)
    }

    /// Frees flushed memtables that no reader or writer holds any more; returns whether others are
    /// left. Freeing takes a good part of a second: if the list didn't hold them, the last reader
    /// or writer to let go would wait for that.
    pub fn free_flushed(&self) -> bool {
        let mut flusher = self.published.flusher();
        flusher.retain(|memtable| Arc::strong_count(memtable) > 1);
        !flusher.is_empty()
    }

    /// Brings each tree that the memtables touch to the horizon. The outcomes stand in the order of
    /// the trees.
    fn flush_trees(
        &self,
        snapshot: &Snapshot,
        advance: &Advance,
    ) -> Result<Vec<Outcome>, EngineError> {
        let left = Mutex::new(advance.trees.iter());
        let next = || left.lock().expect("no panic while the lock is held").next().copied();
        let headroom = Headroom::now();
        let work = || -> Result<Vec<Outcome>, EngineError> {
            let _at = headroom.enter();
            let mut outcomes = Vec::new();
            while let Some(tree) = next() {
                outcomes.extend(self.flush_tree(snapshot, tree, advance.horizon)?);
            }
            Ok(outcomes)
        };
        if self.options.fold_threads == 0 || advance.sealed_count < SHARED_COUNT_MIN {
            return work();
        }
        let (own, other) = std::thread::scope(|scope| {
            let other = scope.spawn(work);
            // A panic of the other thread is one of this.
            (work(), other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let mut outcomes = own?;
        outcomes.extend(other?);
        outcomes.sort_unstable_by_key(|outcome| outcome.tree);
        Ok(outcomes)
    }

    /// Brings a tree to the horizon, if it was written since its base.
    fn flush_tree(
        &self,
        snapshot: &Snapshot,
        tree: TreeId,
        horizon: Sequence,
    ) -> Result<Option<Outcome>, EngineError> {
        let Ok((generation, base)) = snapshot.generation(tree) else { return Ok(None) };
        if horizon <= base.folded_to || !snapshot.is_written_since(tree, base) {
            return Ok(None);
        }
        let edit = self.improve(snapshot, tree, base)?;
        Ok(edit.map(|edit| Outcome { tree, from: generation.from, edit }))
    }

    /// Folds the memtables into the tree, or makes a run of them.
    fn improve(
        &self,
        snapshot: &Snapshot,
        tree: TreeId,
        base: &Base,
    ) -> Result<Option<VersionEdit>, EngineError> {
        let up_to = snapshot.sequence();
        match self.fold_directly(snapshot, tree, base) {
            // The overlay is written as a run: the log can be given back, and the tree is folded
            // when it is healed.
            Err(error) if error.is_damage() => self.note_failure("fold", &error),
            Ok(Some(folded)) => {
                return Ok(folded.map(|tree| VersionEdit::Folded { tree, up_to }));
            }
            Ok(None) => {}
            Err(error) => return Err(error),
        }
        let sources = snapshot.recent_changes(tree, base);
        let (mut befores, mut counts) = (snapshot.befores(tree, base), NewRunCounts::default());
        let mut entries = Interleave::new(sources, Direction::Ascending).inspect(|entry| {
            if let Ok((key, value)) = entry {
                counts.note(value.is_some(), befores.of(key));
            }
        });
        let times: (Sequence, Sequence) = (base.folded_to, up_to);
        let run = Run::build(&*self.store, base.tree.format, times, &mut entries)?;
        snapshot.check_age()?;
        Counters::count(&self.counters.runs_written);
        Ok(run.map(|run| {
            self.counters.bytes_flushed.fetch_add(run.bytes, Ordering::Relaxed);
            VersionEdit::Flushed { run: Arc::new(run), counts: counts.finish() }
        }))
    }

    /// Folds the overlay into the tree, if that rewrites little; `None` if it doesn't.
    fn fold_directly(
        &self,
        snapshot: &Snapshot,
        tree: TreeId,
        base: &Base,
    ) -> Result<Option<Option<Tree>>, EngineError> {
        let Some(lifetime) = self.direct_fold(snapshot, tree, base)? else { return Ok(None) };
        Counters::count(&self.counters.folds);
        Ok(Some(snapshot.fold(tree, base, lifetime)?))
    }

    /// Decides whether the overlay is folded into the tree now, which should rewrite little, and
    /// how long its leaves are expected to stay then. `None` if a run is better.
    fn direct_fold(
        &self,
        snapshot: &Snapshot,
        tree: TreeId,
        base: &Base,
    ) -> Result<Option<Lifetime>, EngineError> {
        let store = &*self.store;
        let summary = base.tree.summary(store)?;
        let bytes = summary.key_bytes.saturating_add(summary.value_bytes);
        let small = self.options.memtable_bytes_max / DIRECT_SHARE;
        if small < bytes && self.is_folding(tree, base) {
            return Ok(None); // The steps would have worked in vain.
        }
        let memtables = snapshot.state().memtables();
        let edited: u64 = memtables.map(|memtable| memtable.written_bytes(tree)).sum();
        let entry_bytes = bytes / summary.count.max(1) + RUN_ENTRY_OVERHEAD_BYTES;
        let rewritten = match snapshot.overlay_ends(tree, base)? {
            Some((start, end)) => {
                let bounds = Bounds { start: Some(start), end: Some(end) };
                base.tree.count_range(store, &bounds)?.saturating_mul(entry_bytes)
            }
            None => 0,
        };
        // Half of what steps rewrite at most for so many edits: by a run and steps it would cost a
        // third more; rewriting more here would hold up the threads that wait for the flush.
        let share = self.options.overlay_percent_max.max(1);
        let limit = small.max(edited.saturating_mul(50) / share);
        if small < bytes && limit < rewritten {
            return Ok(None);
        }
        // Leaves with old entries among the new are rewritten by the next fold as well.
        let stays = rewritten <= edited / APPENDED_DIVISOR;
        Ok(Some(if stays { Lifetime::Working } else { Lifetime::Rewritten }))
    }
}
