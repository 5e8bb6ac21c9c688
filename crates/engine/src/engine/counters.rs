//! The counters of an engine.

use std::sync::atomic::Ordering;

use crate::shared::Shared;
use crate::statistics::Histogram;

/// Counts of what the engine has done since it was opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineCounters {
    /// Transactions committed.
    pub commits: u64,
    /// Transactions refused because another was first.
    pub conflicts: u64,
    /// Waits for a key that another transaction had locked.
    pub key_lock_waits: u64,
    /// Transactions that wait for one now.
    pub waiting: u64,
    /// Transactions that lost because they waited for one another.
    pub deadlocks: u64,
    /// Snapshots of transactions that moved on, where these would have lost otherwise.
    pub snapshots_refreshed: u64,
    /// Those that could not, because what was read before had changed.
    pub snapshots_kept: u64,
    /// Syncs of the log: `commits / log_syncs` is the mean size of a group.
    pub log_syncs: u64,
    /// Bytes written to the log.
    pub log_bytes: u64,
    /// The number of these bytes that are of records: a file of the log grows ahead of them, or is
    /// used again.
    pub log_record_bytes: u64,
    /// Bits at the log's end that had turned over, and were turned back at the opening.
    pub log_bits_turned_back: u64,
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
    /// The bytes that committed transactions gave: keys, values and chunks, with some bytes for
    /// each entry. Compared with the bytes that log and store have written it gives the write
    /// amplification.
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
    /// States that are kept now so that moments can be read again.
    pub leased_states: u64,
    /// Bytes that were read again in the background to find damage.
    pub scrubbed_bytes: u64,
    /// Chunks that are damaged now, and damaged places in packs whose former content is unknown.
    pub damages: u64,
}

/// Returns the engine's counts by now.
pub(super) fn read(shared: &Shared) -> EngineCounters {
    let counters = &shared.counters;
    let (state, _) = shared.current();
    let writer = shared.queue().writer_counters;
    EngineCounters {
        commits: counters.commits.load(Ordering::Relaxed),
        conflicts: counters.conflicts.load(Ordering::Relaxed),
        key_lock_waits: counters.key_lock_waits.load(Ordering::Relaxed),
        waiting: shared.key_locks.waiting_count(),
        deadlocks: counters.deadlocks.load(Ordering::Relaxed),
        snapshots_refreshed: counters.snapshots_refreshed.load(Ordering::Relaxed),
        snapshots_kept: counters.snapshots_kept.load(Ordering::Relaxed),
        log_syncs: writer.syncs,
        log_bytes: writer.bytes,
        log_record_bytes: writer.record_bytes,
        log_bits_turned_back: counters.log_bits_turned_back.load(Ordering::Relaxed),
        folds: counters.folds.load(Ordering::Relaxed),
        flushes: counters.flushes.load(Ordering::Relaxed),
        runs_written: counters.runs_written.load(Ordering::Relaxed),
        pass_steps: counters.steps.load(Ordering::Relaxed),
        merges: counters.merges.load(Ordering::Relaxed),
        filter_bytes: state.filter_bytes(),
        runs: state.run_count(),
        run_bytes: state.run_bytes(),
        bytes_given: counters.bytes_given.load(Ordering::Relaxed),
        bytes_flushed: counters.bytes_flushed.load(Ordering::Relaxed),
        bytes_merged: counters.bytes_merged.load(Ordering::Relaxed),
        group_sizes: counters.group_sizes.read(),
        sync_micros: counters.sync_micros.read(),
        flush_micros: counters.flush_micros.read(),
        work_micros: counters.work_micros.read(),
        delay_micros: counters.delay_micros.read(),
        background_failures: shared.background.errors.count(),
        scrubbed_bytes: counters.scrubbed_bytes.load(Ordering::Relaxed),
        damages: shared.store.maintenance().damages().len() as u64,
        memtable_bytes: state.memtables().map(|memtable| memtable.bytes()).sum(),
        leased_states: shared.current.leased_count() as u64,
    }
}
