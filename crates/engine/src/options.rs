//! The options of an engine, and how a memory budget is divided among them.

use frond_store::local::LocalOptions;

use crate::background::backpressure::SEALED_COUNT_MAX;
use crate::disk_reserve::Reserve;

/// Settings of an [`Engine`](crate::Engine).
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Bytes of decompressed chunks kept in memory.
    pub cache_bytes: u64,
    /// Bytes of pages of packs' indexes kept in memory: 40 bytes a chunk of those that are looked
    /// for often.
    pub index_cache_bytes: u64,
    /// Bytes of memory for the keys that show which pack may hold a chunk, 10 for each; the rest
    /// lies in a file without a name in the data directory, 8 bytes for each.
    pub keys_memory_max: u64,
    /// A read of a chunk that takes so many microseconds came from a disk, not from the system's
    /// cache: what it was for is worth more memory.
    pub slow_read_micros: i64,
    /// The memtable is sealed and flushed when it, or its log, has grown to this.
    pub memtable_bytes_max: u64,
    /// The runs over a tree are folded into it so fast that they are about so many hundredths of it
    /// at most. Less makes ranges faster, more makes writing cheaper: each round of folding
    /// rewrites most of a tree whose keys come in no order.
    pub overlay_percent_max: u64,
    /// The number of runs above which some of those of a tree that is read much are merged; one
    /// that is read seldom may have half as many more, one that isn't read, six times as many.
    pub run_count_max: usize,
    /// The most bytes a second that background collections read and write; `None`: there are none.
    pub reclaim_bytes_a_second: Option<u64>,
    /// The milliseconds in which hardly anything was committed after which memtables are flushed,
    /// runs folded and history packed at that rate, until commits come again. `None`: only
    /// [`Engine::reclaim`](crate::Engine::reclaim) does that.
    pub quiet_millis: Option<u64>,
    /// The most bytes a second that are read again in the background to find damage: all in about
    /// three weeks if that is enough. `None`: none are.
    pub scrub_bytes_a_second: Option<u64>,
    /// The interval at which relaxed commits are synced, in milliseconds: a crash loses at most the
    /// writes of this time, and of that of the sync itself.
    pub relaxed_sync_millis: u64,
    /// The seconds for which a snapshot, or a cursor or transaction on one, can be read after a
    /// flush or a fold has replaced what it shows: then it gives back memory and disk, and reading
    /// it fails with [`SnapshotTooOld`](crate::EngineError::SnapshotTooOld). Folding and collection
    /// go on beside it all the time. `None`: as long as it is held.
    pub snapshot_seconds_max: Option<u64>,
    /// The memory that memtables may take which were flushed and are kept for open snapshots only;
    /// above it the oldest snapshots become too old, as above.
    pub snapshots_bytes_max: u64,
    /// The memory that large writes may take together, from when they are prepared until they are
    /// in the log; one that takes more is written alone.
    pub writes_bytes_max: u64,
    /// The number of threads that fold and merge in the background, beside the one that flushes.
    /// Without any, a committer flushes and folds first where that is due: for tests that must
    /// repeat.
    pub fold_threads: usize,
    /// The time for which transactions' events can be read from the log, if at all.
    pub changes: ChangeRetention,
    /// The part of the disk that is kept for operations that give space back: deletes, drops,
    /// collections.
    pub reserve: Reserve,
}

/// The time, and the size, for which the log is retained for change streams. Nothing by default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChangeRetention {
    /// The time from which on the log is kept.
    pub begins: RetentionBegins,
    /// Segments that ended before so many seconds go.
    pub seconds: u64,
    /// They take at most so many bytes, and a tenth of the disk: the oldest go before.
    pub bytes: u64,
}

/// The time from which on the log is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RetentionBegins {
    /// From the opening on.
    #[default]
    AtOnce,
    /// From when it is first asked for ([`Engine::keep_changes`](crate::Engine::keep_changes)),
    /// over restarts, until it was not read for [`ChangeRetention::seconds`].
    WhenRequested,
}

impl ChangeRetention {
    /// Keeps records that an earlier opening kept until an opening that has limits: for callers
    /// that open a directory for a moment.
    pub const AS_FOUND: ChangeRetention = ChangeRetention {
        begins: RetentionBegins::WhenRequested,
        seconds: u64::MAX,
        bytes: u64::MAX,
    };
    /// Once a client follows, for a day, and 2 GB at most.
    pub const OF_A_DAY: ChangeRetention = ChangeRetention {
        begins: RetentionBegins::WhenRequested,
        seconds: 24 * 3600,
        bytes: 2 << 30,
    };

    /// Whether anything may be kept.
    pub fn is_on(self) -> bool {
        self.seconds > 0 && self.bytes > 0
    }
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            cache_bytes: 128 << 20,
            index_cache_bytes: 8 << 20,
            keys_memory_max: LocalOptions::default().keys_memory_max,
            slow_read_micros: LocalOptions::default().slow_read_micros,
            memtable_bytes_max: MEMTABLE_BYTES_MAX,
            overlay_percent_max: 25,
            run_count_max: 8,
            reclaim_bytes_a_second: Some(64 << 20),
            quiet_millis: Some(15_000),
            scrub_bytes_a_second: Some(8 << 20),
            relaxed_sync_millis: 100,
            snapshot_seconds_max: Some(3600),
            snapshots_bytes_max: 1 << 30,
            writes_bytes_max: WRITES_BYTES_MAX,
            fold_threads: 2,
            changes: ChangeRetention::AS_FOUND,
            reserve: Reserve::default(),
        }
    }
}

/// Least bytes of a memtable: with less, flushes would be all that is done.
const MEMTABLE_BYTES_MIN: u64 = 1 << 20;
/// The largest memtable, however much memory there is: with 64 MB inserts take a third more memory,
/// and are no faster (docs/notes/2026-11-22-what-measurements-taught.md).
const MEMTABLE_BYTES_MAX: u64 = 32 << 20;
/// The memory of a process whatever the options are, measured under load: the program, buffers of
/// writes that are under way, chunks of open packs by name, memory that the allocator keeps.
const PROCESS_BYTES: u64 = 32 << 20;
/// The share of the memory of each of the memtables that make a quarter of it together: the active
/// one and the sealed ones that may wait.
const MEMTABLES_SHARE: u64 = 4 * (SEALED_COUNT_MAX as u64 + 1);
/// The part of the memory that flushed memtables may take for readers: as much as one snapshot can
/// keep, so that one alone is never too old.
const SNAPSHOTS_SHARE: u64 = 4;
/// The part of the memory that large writes may take, within these bounds.
const WRITES_SHARE: u64 = 8;
const WRITES_BYTES_MIN: u64 = 16 << 20;
const WRITES_BYTES_MAX: u64 = 512 << 20;

/// The part of the memory for the keys of chunks, 10 bytes each.
const KEYS_SHARE: u64 = 8;

impl EngineOptions {
    /// The default options with one budget of memory. Of what the process leaves of it (about 32 MB
    /// are needed in any case; of a small budget half), three eighths are for decompressed chunks,
    /// a sixteenth for pages of packs' indexes, and a quarter at most for memtables (the active one
    /// and those that wait to be flushed). The rest is for what isn't known ahead: filters of runs
    /// (about 10 bits for each key that was written since its tree was folded), an eighth at most
    /// for what shows where chunks lie, what folds have in hand, and what the layers above need.
    pub fn for_memory(bytes: u64) -> EngineOptions {
        let shared = bytes.saturating_sub(PROCESS_BYTES).max(bytes / 2);
        let memtable = (shared / MEMTABLES_SHARE).clamp(MEMTABLE_BYTES_MIN, MEMTABLE_BYTES_MAX);
        EngineOptions {
            cache_bytes: shared / 8 * 3,
            index_cache_bytes: shared / 16,
            keys_memory_max: shared / KEYS_SHARE,
            memtable_bytes_max: memtable,
            snapshots_bytes_max: bytes / SNAPSHOTS_SHARE,
            writes_bytes_max: (bytes / WRITES_SHARE).clamp(WRITES_BYTES_MIN, WRITES_BYTES_MAX),
            ..EngineOptions::default()
        }
    }

    /// The default options as far as they are within [`EngineOptions::for_memory`].
    pub fn within_memory(bytes: u64) -> EngineOptions {
        let (own, most) = (EngineOptions::default(), EngineOptions::for_memory(bytes));
        EngineOptions {
            cache_bytes: own.cache_bytes.min(most.cache_bytes),
            index_cache_bytes: own.index_cache_bytes.min(most.index_cache_bytes),
            keys_memory_max: own.keys_memory_max.min(most.keys_memory_max),
            memtable_bytes_max: own.memtable_bytes_max.min(most.memtable_bytes_max),
            snapshots_bytes_max: own.snapshots_bytes_max.min(most.snapshots_bytes_max),
            writes_bytes_max: own.writes_bytes_max.min(most.writes_bytes_max),
            ..own
        }
    }
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
            let caches = options.cache_bytes + options.index_cache_bytes + options.keys_memory_max;
            let left = (bytes - (memtables + caches)) >> 20;
            assert!(
                PROCESS_BYTES.min(bytes / 16 * 7) >> 20 <= left,
                "{megabytes} MB: {left} MB left"
            );
            assert!(bytes < caches * 5 || megabytes < 64, "{megabytes} MB");
            assert!(options.snapshots_bytes_max.max(options.writes_bytes_max) <= bytes);
        }
        assert_eq!(EngineOptions::for_memory(288 << 20).memtable_bytes_max >> 20, 16);
        assert_eq!(EngineOptions::default().scrub_bytes_a_second, Some(8 << 20));
    }
}
