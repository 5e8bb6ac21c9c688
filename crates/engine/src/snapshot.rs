//! Snapshots: all trees as they were at one moment.

mod count;
pub(crate) mod current;
pub mod cursor;
mod cuts;
pub(crate) mod open_transactions;
pub(crate) mod read_set;
pub(crate) mod since;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use frond_store::{ChunkStore, Lifetime};
use frond_tree::{Bounds, ContentRef, Direction, Edit, Edits, Tree, TreeError, TreeFormat, Value};

use crate::background::throttle::yielding;
use crate::background::throttled_store::ThrottledStore;
use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::overlay::interleave::{Interleave, MemtableCursor, Source};
use crate::overlay::memtable::{KeyBefores, Window};
use crate::overlay::run::RunCursor;
use crate::queue::queued_reads::QueuedReads;
use crate::snapshot::current::View;
use crate::snapshot::cursor::EntryCursor;
use crate::state::{Base, State, TreeGeneration};

/// The number of entries of the overlay that are counted for an estimate.
const ESTIMATE_COUNT_MAX: usize = 512;
/// A fold asks whether to go on once for so many edits, which take some milliseconds at most.
const CHECK_EVERY_EDITS: usize = 1024;

/// All trees as they were at one moment. Cloning is cheap; writers and folds never disturb it.
///
/// *Thread safety*: immutable, read by any number of threads at once. It keeps the memtables of its
/// moment in memory, and the bases and runs of its moment on the disk, until it is dropped or is
/// older than `EngineOptions::snapshot_seconds_max` allows; then reading fails.
#[derive(Clone)]
pub struct Snapshot {
    view: Arc<View>,
    sequence: Sequence,
    /// Asked while it is folded.
    keep_going: Option<Arc<KeepGoing>>,
}

/// Asks whether to go on with what is given up otherwise.
pub type KeepGoing = dyn Fn() -> bool + Send + Sync;

impl Snapshot {
    pub(crate) fn new(view: Arc<View>, sequence: Sequence) -> Snapshot {
        Snapshot { view, sequence, keep_going: None }
    }

    /// Returns a snapshot of `view` with all queued commits.
    pub(crate) fn ahead(view: &View, ahead: QueuedReads) -> Snapshot {
        let (store, state) = (Arc::clone(&view.store), Arc::clone(&view.state));
        let sequence = ahead.sequence;
        Snapshot::new(Arc::new(View { store, state, ahead: Some(ahead) }), sequence)
    }

    /// The same; folding it ends with [`EngineError::Interrupted`] once `keep_going` says no. What
    /// was folded by then is garbage.
    pub fn asking(self, keep_going: Arc<KeepGoing>) -> Snapshot {
        Snapshot { keep_going: Some(keep_going), ..self }
    }

    /// Returns how it shows what was queued, if it does.
    pub(crate) fn as_ahead(&self) -> Option<&QueuedReads> {
        self.view.ahead.as_ref()
    }

    /// The moment.
    pub fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// Whether the tree exists.
    pub fn has_tree(&self, tree: TreeId) -> bool {
        self.generation(tree).is_ok()
    }

    /// The format of a tree.
    ///
    /// # Errors
    /// [`EngineError::NoTree`] if the snapshot has no such tree.
    pub fn format(&self, tree: TreeId) -> Result<TreeFormat, EngineError> {
        Ok(self.base(tree)?.tree.format)
    }

    /// Returns the value of `key`.
    ///
    /// # Errors
    /// [`EngineError::NoTree`] if the snapshot has no such tree; [`EngineError::SnapshotTooOld`];
    /// [`EngineError::Store`] and [`EngineError::Tree`] if a chunk can't be read or is damaged.
    pub fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Value>, EngineError> {
        self.aged(|| self.find(tree, key))
    }

    /// As `get`, with the value's bytes lent to `look` wherever they lie. Its result counts only if
    /// this does not fail.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn look<T>(
        &self,
        tree: TreeId,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, EngineError> {
        self.aged(|| {
            let (base, store) = (self.base(tree)?, &*self.view.store);
            let mut written = self.view.state.find_recent((tree, base), key, self.sequence);
            if written.is_none() {
                written = base.find_in_runs(store, key)?;
            }
            if let Some(written) = written {
                let bytes = written.map(|value| value.read(store)).transpose()?;
                return Ok(bytes.map(|bytes| look(&bytes)));
            }
            let looked = base.tree.look(store, key, |entry| match entry.content {
                ContentRef::Inline(bytes) => Ok(look(bytes)),
                content => Err((look, Value { flags: entry.flags, content: content.owned() })),
            })?;
            Ok(match looked {
                Some(Ok(looked)) => Some(looked),
                Some(Err((look, value))) => Some(look(&value.read(store)?)),
                None => None,
            })
        })
    }

    /// Reads, and passes on what was found, unless it may be incomplete.
    fn aged<T>(&self, read: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
        let found = read();
        self.unless_expired(found)
    }

    /// Passes on what was read, unless it may have been incomplete.
    fn unless_expired<T>(&self, found: Result<T, EngineError>) -> Result<T, EngineError> {
        self.view.check()?;
        found
    }

    /// Fails if the snapshot is too old for what was read from it so far to count, or showed what
    /// was refused.
    pub(crate) fn check_age(&self) -> Result<(), EngineError> {
        self.unless_expired(Ok(()))
    }

    fn find(&self, tree: TreeId, key: &[u8]) -> Result<Option<Value>, EngineError> {
        let base = self.base(tree)?;
        Ok(self.view.state.find(&*self.view.store, (tree, base), key, self.sequence)?)
    }

    /// Returns the entries within `bounds`, in `direction`. The cursor owns what it needs.
    ///
    /// # Errors
    /// [`EngineError::NoTree`] if the snapshot has no such tree. Chunks are read by the cursor.
    pub fn range(
        &self,
        tree: TreeId,
        bounds: Bounds,
        direction: Direction,
    ) -> Result<EntryCursor, EngineError> {
        self.range_under(tree, bounds, direction, None)
    }

    /// As `range`, with `newest` over everything.
    pub(crate) fn range_under(
        &self,
        tree: TreeId,
        bounds: Bounds,
        direction: Direction,
        newest: Option<Source>,
    ) -> Result<EntryCursor, EngineError> {
        let base = self.base(tree)?;
        base.note_read();
        let mut sources: Vec<Source> = newest.into_iter().collect();
        sources.extend(self.overlay_sources(tree, base, &bounds, direction));
        let cursor = base.tree.range(&self.view.store, bounds, direction);
        Ok(EntryCursor::new(
            Interleave::new(sources, direction),
            Some(cursor),
            direction,
            Some(Arc::clone(&self.view)),
        ))
    }

    /// About how many entries lie in `bounds`, for choosing between ways to find them: O(log n).
    /// The overlay's share is an upper bound, or, beyond some entries, half of what it has of the
    /// tree.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn estimate_range(&self, tree: TreeId, bounds: &Bounds) -> Result<u64, EngineError> {
        self.aged(|| {
            let base = self.base(tree)?;
            let mut below = base.tree.count_range(&*self.view.store, bounds)?;
            for run in &base.runs {
                below = below.saturating_add(run.tree.count_range(&*self.view.store, bounds)?);
            }
            let window = self.window(base);
            let touching =
                self.view.state.memtables().filter(|memtable| memtable.touches(tree, window));
            let writes: u64 = touching.map(|memtable| memtable.writes_max(tree)).sum();
            if writes == 0 || *bounds == Bounds::all() {
                return Ok(below.saturating_add(writes));
            }
            let sources = self.memtable_sources(tree, window, bounds, Direction::Ascending);
            let counted = Interleave::new(sources, Direction::Ascending).take(ESTIMATE_COUNT_MAX);
            let counted = counted.count();
            let overlay = if counted < ESTIMATE_COUNT_MAX {
                counted as u64
            } else {
                (writes / 2).max(counted as u64)
            };
            Ok(below.saturating_add(overlay))
        })
    }

    /// Cuts `bounds` into at most `count` ranges, in the order of keys, that hold about equally
    /// many entries of the tree and its runs together. O(count log n) for each of them.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn split(
        &self,
        tree: TreeId,
        bounds: &Bounds,
        count: usize,
    ) -> Result<Vec<Bounds>, EngineError> {
        self.aged(|| {
            let (base, store) = (self.base(tree)?, &*self.view.store);
            let tree: &Tree = &base.tree;
            let runs = base.runs.iter().map(|run| -> &Tree { &run.tree });
            let mut sources = Vec::with_capacity(1 + base.runs.len());
            for source in std::iter::once(tree).chain(runs) {
                sources.push((source, source.count_range(store, bounds)?));
            }
            sources.retain(|(_, entries)| 0 < *entries);
            if let [(source, _)] = sources[..] {
                return Ok(source.split(store, bounds, count)?);
            }
            Ok(cuts::of_several(&sources, store, bounds, count)?)
        })
    }

    /// Bytes of all keys and values, those out of line too: costs as `count` does.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn bytes(&self, tree: TreeId) -> Result<u64, EngineError> {
        self.aged(|| {
            let base = self.base(tree)?;
            let summary = base.tree.summary(&*self.view.store)?;
            let mut bytes = summary.key_bytes.saturating_add(summary.value_bytes);
            for change in self.changes(tree, base) {
                let (key, written) = change?;
                let size = |value: &Value| value.bytes() + key.len() as u64;
                let found = base.tree.get(&*self.view.store, &key)?;
                bytes = bytes.saturating_sub(found.as_ref().map_or(0, size));
                bytes = bytes.saturating_add(written.as_ref().map_or(0, size));
            }
            Ok(bytes)
        })
    }

    /// The OR of all entries' flags; may include those of entries deleted since the last fold.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn flags(&self, tree: TreeId) -> Result<u8, EngineError> {
        self.aged(|| {
            let base = self.base(tree)?;
            let window = self.window(base);
            let mut flags = base.tree.flags(&*self.view.store)?;
            for run in &base.runs {
                flags |= run.flags(&*self.view.store)?;
            }
            let overlay = self.view.state.memtables().map(|memtable| memtable.flags(tree, window));
            Ok(overlay.fold(flags, |all, flags| all | flags))
        })
    }

    /// Reads a value's bytes, wherever they lie.
    ///
    /// # Errors
    /// [`EngineError::SnapshotTooOld`]; [`EngineError::Store`] and [`EngineError::Tree`] if a chunk
    /// can't be read or is damaged.
    pub fn read(&self, value: &Value) -> Result<Bytes, EngineError> {
        self.unless_expired(value.read(&*self.view.store).map_err(EngineError::from))
    }

    /// Returns the tree's base if the overlay holds nothing for it in this snapshot.
    ///
    /// # Errors
    /// [`EngineError::NoTree`] if the snapshot has no such tree; [`EngineError::SnapshotTooOld`].
    pub fn clean_base(&self, tree: TreeId) -> Result<Option<Tree>, EngineError> {
        let base = self.base(tree)?;
        let dirty = !base.runs.is_empty() || self.view.state.touches(tree, self.window(base));
        self.unless_expired(Ok((!dirty).then_some(*base.tree)))
    }

    /// Returns where chunks lie, those too that aren't in packs yet.
    pub fn store(&self) -> &Arc<dyn ChunkStore> {
        &self.view.store
    }

    /// All trees, ascending.
    pub(crate) fn trees(&self) -> Vec<TreeId> {
        let trees = self.view.state.trees.iter().map(|(tree, _)| tree);
        let mut trees: Vec<TreeId> = trees.filter(|tree| self.has_tree(*tree)).collect();
        trees.sort_unstable();
        trees
    }

    /// The generation that `tree` is in, and its base.
    pub(crate) fn generation(&self, tree: TreeId) -> Result<(&TreeGeneration, &Base), EngineError> {
        self.view
            .state
            .generation(tree, self.sequence)
            .and_then(|generation| generation.base.as_ref().map(|base| (generation, base)))
            .ok_or(EngineError::NoTree(tree))
    }

    fn base(&self, tree: TreeId) -> Result<&Base, EngineError> {
        self.generation(tree).map(|(_, base)| base)
    }

    /// Returns the window of the memtables' entries over `base`.
    fn window(&self, base: &Base) -> Window {
        Window { after: base.folded_to, up_to: self.sequence }
    }

    fn memtable_sources(
        &self,
        tree: TreeId,
        window: Window,
        bounds: &Bounds,
        direction: Direction,
    ) -> Vec<Source> {
        self.view
            .state
            .memtables()
            .filter(|memtable| memtable.touches(tree, window))
            .map(|memtable| {
                let (memtable, bounds) = (Arc::clone(memtable), bounds.clone());
                Source::Memtable(MemtableCursor::new(memtable, tree, bounds, direction, window))
            })
            .collect()
    }

    /// Everything that lies over the tree of `base`, the newest first.
    fn overlay_sources(
        &self,
        tree: TreeId,
        base: &Base,
        bounds: &Bounds,
        direction: Direction,
    ) -> Vec<Source> {
        let mut sources = self.memtable_sources(tree, self.window(base), bounds, direction);
        sources.extend(run_sources(&self.view.store, base, bounds, direction));
        sources
    }

    /// Returns the changes of the memtables since `base`, which is the tree's or one folded from
    /// it: the newest entry of each key, ascending. The cost is in proportion to these changes.
    pub(crate) fn recent_changes(&self, tree: TreeId, base: &Base) -> Vec<Source> {
        let window = self.window(base);
        let folded = Window { after: Sequence::ZERO, up_to: base.folded_to };
        let memtables = || self.view.state.memtables();
        if !memtables().any(|memtable| memtable.touches(tree, folded)) {
            // Everything in the memtables counts: reading them in order is the fastest.
            return self.memtable_sources(tree, window, &Bounds::all(), Direction::Ascending);
        }
        let mut keys = Vec::new();
        for memtable in memtables() {
            memtable.touched_keys(tree, window, usize::MAX, &mut keys);
        }
        keys.sort_unstable();
        keys.dedup();
        let newest = |key: Bytes| {
            let value = memtables().find_map(|memtable| memtable.get(tree, &key, window))?;
            Some((key, value))
        };
        vec![Source::Copied(keys.into_iter().filter_map(newest).collect())]
    }

    /// What is known of the keys of `recent_changes` before these.
    pub(crate) fn befores(&self, tree: TreeId, base: &Base) -> KeyBefores {
        let window = self.window(base);
        let memtables = self.view.state.memtables();
        KeyBefores::new(memtables.filter(|it| it.touches(tree, window)), tree, window)
    }

    /// Returns the overlay's changes of the tree of `base`: the newest entry of each key,
    /// ascending.
    fn changes(&self, tree: TreeId, base: &Base) -> Interleave {
        let mut sources = self.recent_changes(tree, base);
        let ascending = Direction::Ascending;
        sources.extend(run_sources(&self.view.store, base, &Bounds::all(), ascending));
        Interleave::new(sources, ascending)
    }

    /// Whether the memtables have something to say over `base`.
    pub(crate) fn is_written_since(&self, tree: TreeId, base: &Base) -> bool {
        self.view.state.touches(tree, self.window(base))
    }

    /// Folds everything that lies over the tree of `base` into it; new chunks are needed for
    /// `lifetime`. `None` if nothing changes.
    pub(crate) fn fold(
        &self,
        tree: TreeId,
        base: &Base,
        lifetime: Lifetime,
    ) -> Result<Option<Tree>, EngineError> {
        Ok(self.fold_many(&[(tree, base)], lifetime)?[0])
    }

    /// As `fold`, for several trees at once: other threads help. The results come in their order.
    pub(crate) fn fold_many(
        &self,
        trees: &[(TreeId, &Base)],
        lifetime: Lifetime,
    ) -> Result<Vec<Option<Tree>>, EngineError> {
        let is_changed = |(tree, base): &&(TreeId, &Base)| {
            !base.runs.is_empty() || self.is_written_since(*tree, base)
        };
        let changed = trees.iter().filter(is_changed);
        let is_stopped = AtomicBool::new(false);
        let changed = changed.map(|(tree, base)| {
            let edits = edits(self.changes(*tree, base));
            let edits: Edits<'_> = match &self.keep_going {
                Some(keep_going) => Box::new(until_stopped(edits, &**keep_going, &is_stopped)),
                None => Box::new(edits),
            };
            (*base.tree, edits)
        });
        let store = ThrottledStore::new(&*self.view.store, lifetime);
        let folded = Tree::apply_many(&store, changed.collect()).map_err(EngineError::from);
        if is_stopped.load(Ordering::Relaxed) {
            return Err(EngineError::Interrupted);
        }
        let mut folded = self.unless_expired(folded)?.into_iter();
        let results = trees.iter().map(|tree| is_changed(&tree).then(|| folded.next()).flatten());
        Ok(results.collect())
    }

    /// The least and the greatest key that the overlay of `base` names.
    pub(crate) fn overlay_ends(
        &self,
        tree: TreeId,
        base: &Base,
    ) -> Result<Option<(Bytes, Bytes)>, EngineError> {
        let end = |direction| {
            let sources = self.overlay_sources(tree, base, &Bounds::all(), direction);
            Interleave::new(sources, direction).peek_key()
        };
        let (least, greatest) = (end(Direction::Ascending)?, end(Direction::Descending)?);
        Ok(least.zip(greatest))
    }

    pub(crate) fn state(&self) -> &Arc<State> {
        &self.view.state
    }
}

/// Cursors over what the runs of `base` have and its tree hasn't, in their order.
pub(crate) fn run_sources<'a>(
    store: &'a Arc<dyn ChunkStore>,
    base: &'a Base,
    bounds: &'a Bounds,
    direction: Direction,
) -> impl Iterator<Item = Source> + 'a {
    base.runs.iter().flat_map(move |run| {
        let left = base.progress.left(run.up_to, bounds);
        left.map(move |bounds| Source::Run(RunCursor::new(run, store, bounds, direction)))
    })
}

/// `edits`, cut short once `keep_going` says no, which `is_stopped` passes on to all threads of a
/// fold.
fn until_stopped<'a, T>(
    edits: impl Iterator<Item = T> + 'a,
    keep_going: &'a KeepGoing,
    is_stopped: &'a AtomicBool,
) -> impl Iterator<Item = T> + 'a {
    edits.enumerate().map_while(move |(position, edit)| {
        if position.is_multiple_of(CHECK_EVERY_EDITS) && !keep_going() {
            is_stopped.store(true, Ordering::Relaxed);
        }
        (!is_stopped.load(Ordering::Relaxed)).then_some(edit)
    })
}

/// The overlay's entries as a tree takes them.
pub(crate) fn edits(entries: Interleave) -> impl Iterator<Item = Result<(Bytes, Edit), TreeError>> {
    yielding(entries).map(|entry| {
        let (key, value) = entry?;
        Ok((key, value.map_or(Edit::Delete, Edit::Put)))
    })
}
