//! The engine: one data directory, open.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use frond_store::io::Machine;
use frond_store::local::{LocalOptions, LocalStore};
use frond_store::{ChunkStore, Collected};
use frond_tree::{Tree, TreeFormat};

use crate::background::Threads;
use crate::claims::Manner;
use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::image::Image;
use crate::opening;
use crate::pace::SEALED_COUNT_MAX;
use crate::publish::ROOT_NAME;
use crate::reclaim::ReclaimOptions;
use crate::shared::Shared;
use crate::slow::SlowCommit;
use crate::snapshot::Snapshot;
use crate::statistics::Histogram;
use crate::transaction::Transaction;
use crate::trouble::Failure;

/// Settings of an [`Engine`].
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Bytes of decompressed chunks kept in memory.
    pub cache_bytes: u64,
    /// Bytes of pages of packs' indexes kept in memory: 40 bytes a chunk of those that are looked for often.
    pub index_cache_bytes: u64,
    /// A read of a chunk that takes so many microseconds came from a disk, not from the system's cache: what it was for
    /// is worth more memory.
    pub slow_read_micros: i64,
    /// The memtable is sealed and flushed when it, or its log, has grown to this.
    pub memtable_bytes_max: u64,
    /// The runs over a tree are folded into it so fast that they are about so many hundredths of it at most. Less
    /// makes ranges faster, more makes writing cheaper: each round of folding rewrites most of a tree whose keys
    /// come in no order.
    pub overlay_percent_max: u64,
    /// With more runs than this, some of those of a tree that is read much are merged; one that is read seldom may have half as
    /// many more, one that nobody reads six times as many.
    pub run_count_max: usize,
    /// Most bytes a second that background collections read and write; `None`: there are none.
    pub reclaim_bytes_a_second: Option<u64>,
    /// How often relaxed commits are synced, in milliseconds: a crash loses at most what they wrote in
    /// this time, and in that of the sync itself.
    pub relaxed_sync_millis: u64,
    /// For how many seconds a snapshot, or a cursor or transaction on one, can be read after a flush or
    /// a fold has replaced what it shows: then it gives back memory and disk, and reading it fails with
    /// [`EngineError::SnapshotTooOld`]. Folding and collection go on beside it all the time. `None`:
    /// as long as it is held.
    pub snapshot_seconds_max: Option<u64>,
    /// How much memory memtables may take that were flushed and are kept for open snapshots only; above it
    /// the oldest snapshots become too old, as above.
    pub snapshots_bytes_max: u64,
    /// How many threads fold and merge in the background, beside the one that flushes. Without any,
    /// whoever commits flushes and folds first where that is due: for tests that must repeat.
    pub fold_threads: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            cache_bytes: 128 << 20,
            index_cache_bytes: 8 << 20,
            slow_read_micros: LocalOptions::default().slow_read_micros,
            memtable_bytes_max: MEMTABLE_BYTES_MAX,
            overlay_percent_max: 25,
            run_count_max: 8,
            reclaim_bytes_a_second: Some(64 << 20),
            relaxed_sync_millis: 100,
            snapshot_seconds_max: Some(3600),
            snapshots_bytes_max: 1 << 30,
            fold_threads: 2,
        }
    }
}

/// Least bytes of a memtable: with less, flushes would be all that is done.
const MEMTABLE_BYTES_MIN: u64 = 1 << 20;
/// No memtable is larger than this, however much memory there is: with 64 MB inserts take a third more memory, and
/// are no faster (docs/findings.md).
const MEMTABLE_BYTES_MAX: u64 = 32 << 20;
/// What a process takes whatever the options are, measured under load: the program, buffers of writes that are
/// under way, chunks of open packs by name, what the allocator keeps.
const PROCESS_BYTES: u64 = 32 << 20;
/// The share of the memory of each of the memtables that make a quarter of it together: the active one and the
/// sealed ones that may wait.
const MEMTABLES_SHARE: u64 = 4 * (SEALED_COUNT_MAX as u64 + 1);
/// What flushed memtables may take for readers is this part of the memory: as much as one snapshot can keep,
/// so that one alone is never too old.
const SNAPSHOTS_SHARE: u64 = 4;

impl EngineOptions {
    /// The default options with one budget of memory. Of what the process leaves of it
    /// (about 32 MB are needed in any case; of a small budget half), three eighths are for decompressed chunks, a sixteenth for pages of packs' indexes, and a
    /// quarter at most for memtables (the active one and those that wait to be flushed). The rest
    /// is for what can't be told ahead: filters of runs (about 10 bits for each key that was written
    /// since its tree was folded), 8 bytes for each chunk that is stored, what folds have in hand,
    /// and what the layers above need.
    pub fn for_memory(bytes: u64) -> EngineOptions {
        let shared = bytes.saturating_sub(PROCESS_BYTES).max(bytes / 2);
        let memtable = (shared / MEMTABLES_SHARE).clamp(MEMTABLE_BYTES_MIN, MEMTABLE_BYTES_MAX);
        EngineOptions {
            cache_bytes: shared / 8 * 3,
            index_cache_bytes: shared / 16,
            memtable_bytes_max: memtable,
            snapshots_bytes_max: bytes / SNAPSHOTS_SHARE,
            ..EngineOptions::default()
        }
    }
}

/// One data directory, open. Cloning shares it; the last clone to go closes it.
///
/// *Thread safety*: every method may be called from any number of threads at once.
///
/// *Invariants*
/// 1. A transaction is visible as a whole or not at all, to every snapshot and after every crash.
/// 2. A commit that was acknowledged as synced is there after every crash.
/// 3. Sequences rise, over crashes too.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
    threads: Arc<Threads>,
}

impl Engine {
    /// Opens the data directory, recovering from its log; makes an empty one where there is none.
    ///
    /// # Errors
    /// [`EngineError::Store`]: the disk fails, another process has the directory, its format is
    /// of another version, or what is stored there is damaged.
    pub fn open(machine: &Machine, options: EngineOptions) -> Result<Engine, EngineError> {
        let local = LocalOptions {
            cache_bytes: options.cache_bytes,
            index_cache_bytes: options.index_cache_bytes,
            slow_read_micros: options.slow_read_micros,
            ..LocalOptions::default()
        };
        let store = LocalStore::open(machine, local)?;
        Engine::open_over(machine, store, options)
    }

    /// Opens the engine whose log lies in `machine`'s disk and whose chunks lie in `store`. They
    /// belong together: a log is of no use with another store.
    pub fn open_over(
        machine: &Machine,
        store: Arc<dyn ChunkStore>,
        options: EngineOptions,
    ) -> Result<Engine, EngineError> {
        let shared = Arc::new(opening::open(machine, store, options)?);
        let threads = Arc::new(Threads::start(&shared)?);
        Ok(Engine { shared, threads })
    }

    /// Whether `store` is that of a data directory already.
    pub fn is_in(store: &dyn ChunkStore) -> Result<bool, EngineError> {
        Ok(store.root(ROOT_NAME)?.is_some())
    }

    /// Where chunks lie.
    pub fn store(&self) -> &Arc<dyn ChunkStore> {
        &self.shared.store
    }

    /// The format of the trees that are local to this data directory.
    pub fn local_format(&self) -> TreeFormat {
        self.shared.local_format
    }

    /// What is visible now.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot()
    }

    /// Begins a transaction at what is visible now.
    pub fn begin(&self) -> Transaction {
        self.begin_as(Manner::Optimistic)
    }

    /// Begins a transaction that deals with others in this manner.
    pub fn begin_as(&self, manner: Manner) -> Transaction {
        Transaction::begin(Arc::clone(&self.shared), manner)
    }

    /// The Sequence of the last visible transaction.
    pub fn visible(&self) -> Sequence {
        self.shared.current.visible()
    }

    /// Reserves an id for a new tree. It exists once a transaction that called
    /// [`Transaction::set_base`] for it has committed.
    pub fn reserve_tree_id(&self) -> TreeId {
        self.shared.reserve_tree_id()
    }

    /// Folds `trees` as they are at `snapshot` and returns, for each, the resulting tree; its
    /// chunks are durable. Writers go on. The cost follows what changed since the last fold: the
    /// result becomes the base.
    pub fn fold(&self, snapshot: &Snapshot, trees: &[TreeId]) -> Result<Vec<Tree>, EngineError> {
        self.shared.fold(snapshot, trees)
    }

    /// Writes what lies in memtables to runs and trees, and empties the log; runs stay as long as
    /// their share of a tree allows.
    pub fn flush(&self) -> Result<(), EngineError> {
        self.shared.flush()
    }

    /// Folds everything and empties the log; for tests and a clean shutdown.
    pub fn checkpoint(&self) -> Result<(), EngineError> {
        self.shared.checkpoint()
    }

    /// Whether the background has nothing left to do: no flush, fold or merge is due or under way, and the memory
    /// of what was flushed is given back. Collections don't count.
    ///
    /// # Errors
    /// [`EngineError::Store`]: how large a tree is can't be read.
    pub fn is_at_rest(&self) -> Result<bool, EngineError> {
        self.shared.is_at_rest()
    }

    /// Gives back the disk space of what no tree, snapshot or transaction needs any more. Readers and
    /// writers go on; closing the engine stops it.
    ///
    /// # Errors
    /// [`EngineError::Store`]: something reachable is missing or damaged (nothing that can be read was
    /// removed), or the disk is full.
    pub fn reclaim(&self, options: ReclaimOptions) -> Result<Collected, EngineError> {
        self.shared.reclaim(options)
    }

    /// Makes an image of all that is visible now, for a backup, while writers go on.
    ///
    /// # Errors
    /// As `fold`.
    pub fn image(&self) -> Result<Image, EngineError> {
        self.shared.image()
    }

    /// Finds out how much of the store is needed, by following references; changes nothing.
    ///
    /// # Errors
    /// As `reclaim`.
    pub fn weigh(&self) -> Result<Collected, EngineError> {
        self.shared.weigh()
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Checks every invariant that can be checked at rest.
    pub fn check(&self) -> Result<(), EngineError> {
        self.shared.check()
    }

    /// What the engine has done since it was opened.
    pub fn counters(&self) -> EngineCounters {
        let shared = &self.shared;
        let (state, _) = shared.current();
        let writer = shared.queue().writer_counters;
        EngineCounters {
            commits: shared.counters.commits.load(Ordering::Relaxed),
            conflicts: shared.counters.conflicts.load(Ordering::Relaxed),
            intent_waits: shared.counters.intent_waits.load(Ordering::Relaxed),
            waiting: shared.intents.waiting_count(),
            deadlocks: shared.counters.deadlocks.load(Ordering::Relaxed),
            snapshots_moved: shared.counters.snapshots_moved.load(Ordering::Relaxed),
            snapshots_kept: shared.counters.snapshots_kept.load(Ordering::Relaxed),
            log_syncs: writer.syncs,
            log_bytes: writer.bytes,
            log_record_bytes: writer.record_bytes,
            folds: shared.counters.folds.load(Ordering::Relaxed),
            flushes: shared.counters.flushes.load(Ordering::Relaxed),
            runs_written: shared.counters.runs_written.load(Ordering::Relaxed),
            pass_steps: shared.counters.steps.load(Ordering::Relaxed),
            merges: shared.counters.merges.load(Ordering::Relaxed),
            filter_bytes: state.filter_bytes(),
            runs: state.run_count(),
            run_bytes: state.run_bytes(),
            bytes_given: shared.counters.bytes_given.load(Ordering::Relaxed),
            bytes_flushed: shared.counters.bytes_flushed.load(Ordering::Relaxed),
            bytes_merged: shared.counters.bytes_merged.load(Ordering::Relaxed),
            group_sizes: shared.counters.group_sizes.read(),
            sync_micros: shared.counters.sync_micros.read(),
            flush_micros: shared.counters.flush_micros.read(),
            work_micros: shared.counters.work_micros.read(),
            delay_micros: shared.counters.delay_micros.read(),
            background_failures: shared.troubles.count(),
            memtable_bytes: state.memtables().map(|memtable| memtable.bytes()).sum(),
        }
    }

    /// Has `sink` told of what fails in the background and is tried again: a line each, once until that
    /// work succeeds. Only the first sink is.
    pub fn on_failure(&self, sink: impl Fn(&str) + Send + Sync + 'static) {
        self.shared.troubles.tell(sink);
    }

    /// What failed last in the background since the opening.
    pub fn last_failure(&self) -> Option<Failure> {
        self.shared.troubles.last()
    }

    /// The slowest commits since the opening, the slowest of all first: what each waited for.
    pub fn slowest_commits(&self) -> Vec<SlowCommit> {
        self.shared.slowest.read()
    }

    /// Syncs, stops the background threads and lets go of the directory. Later calls fail with
    /// [`EngineError::Closed`]; snapshots that are held can still be read, and keep the directory
    /// locked as long as they live.
    pub fn close(&self) -> Result<(), EngineError> {
        self.threads.close()
    }
}

/// What the engine has done since it was opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineCounters {
    /// Transactions committed.
    pub commits: u64,
    /// Transactions refused because another was first.
    pub conflicts: u64,
    /// Waits for a key that another transaction had claimed.
    pub intent_waits: u64,
    /// Transactions that wait for one now.
    pub waiting: u64,
    /// Transactions that lost because they waited for one another.
    pub deadlocks: u64,
    /// Snapshots of transactions that moved on, where these would have lost otherwise.
    pub snapshots_moved: u64,
    /// Those that could not, because what was read before had changed.
    pub snapshots_kept: u64,
    /// Syncs of the log: `commits / log_syncs` is the mean size of a group.
    pub log_syncs: u64,
    /// Bytes written to the log.
    pub log_bytes: u64,
    /// Of these, bytes of records: a file of the log grows ahead of them, or is used again.
    pub log_record_bytes: u64,
    /// Folds of a tree: at once by a flush or a version commit, or by a round of steps that ended.
    pub folds: u64,
    /// Flushes of sealed memtables.
    pub flushes: u64,
    /// Runs written by flushes.
    pub runs_written: u64,
    /// Steps, each of which folded a key range of a tree's runs.
    pub pass_steps: u64,
    /// Merges of runs.
    pub merges: u64,
    /// Runs over all trees now.
    pub runs: u64,
    /// Their bytes, uncompressed.
    pub run_bytes: u64,
    /// What committed transactions gave: keys, values and chunks, with some bytes for each entry.
    /// Compared with what log and store have written it tells the write amplification.
    pub bytes_given: u64,
    /// Uncompressed bytes of runs that flushes wrote.
    pub bytes_flushed: u64,
    /// Uncompressed bytes of runs that merges wrote.
    pub bytes_merged: u64,
    /// Transactions written by one sync of the log.
    pub group_sizes: Histogram,
    /// Microseconds of writing and syncing a group.
    pub sync_micros: Histogram,
    /// Microseconds of a flush.
    pub flush_micros: Histogram,
    /// Microseconds of a merge, or of a step of a fold.
    pub work_micros: Histogram,
    /// Microseconds that a commit was delayed or stopped, where it was.
    pub delay_micros: Histogram,
    /// Bytes of filters in memory now.
    pub filter_bytes: u64,
    /// Flushes, folds, merges, syncs and collections in the background that failed.
    pub background_failures: u64,
    /// Bytes in memtables now.
    pub memtable_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_of_memory_is_kept() {
        for megabytes in [16, 64, 256, 4096, 1 << 20] {
            let bytes = megabytes << 20;
            let options = EngineOptions::for_memory(bytes);
            let memtables = options.memtable_bytes_max * (SEALED_COUNT_MAX as u64 + 1);
            let caches = options.cache_bytes + options.index_cache_bytes;
            let left = (bytes - (memtables + caches)) >> 20;
            assert!(PROCESS_BYTES.min(bytes / 2) >> 20 <= left, "{megabytes} MB: {left} MB left");
            assert!(bytes < caches * 5 || megabytes < 64, "{megabytes} MB");
        }
        assert_eq!(EngineOptions::for_memory(288 << 20).memtable_bytes_max >> 20, 16);
    }
}
