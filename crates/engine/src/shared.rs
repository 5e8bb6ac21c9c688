//! What all handles of an engine share: the current state, and who is looking at it.
//!
//! *Locks, in the order in which they may be taken*: `flusher`, `publisher`, `queue`, `group` (its
//! own), `transactions` (a stripe's), `key_locks` (two of its own), `current`, `unpublished` (two),
//! `scheduler`, `signals`, that of `background::errors`. None but the first two is held across a
//! write or sync; these only keep two flushes, and two publications, apart, and no writer or reader
//! waits for them. Those after `queue` lie in their owners, which take them for moments.
//!
//! *Visibility*: [`crate::snapshot::current`] gives a snapshot the State and the visible Sequence
//! of one moment. The visible Sequence only rises, and only under the queue's lock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use frond_store::io::Machine;
use frond_store::{ChunkHash, ChunkStore, Layered, StoreError};
use frond_tree::{TreeError, TreeFormat};

use crate::background::backpressure::Backpressure;
use crate::background::compaction_scheduler::CompactionScheduler;
use crate::background::errors::BackgroundErrors;
use crate::background::throttle::Throttle;
use crate::background::workers::Workers;
use crate::error::EngineError;
use crate::fault::FaultCell;
use crate::fingerprint;
use crate::horizon::Horizon;
use crate::ids::{Sequence, TreeId, TreeIds};
use crate::log::format::SegmentNumber;
use crate::log::kept::KeptSegments;
use crate::log::recycled::RecycledSegments;
use crate::options::EngineOptions;
use crate::order::Order;
use crate::overlay::memtable::Memtable;
use crate::overlay::pending::StoreWithPending;
use crate::overlay::recycled::Recycler;
use crate::queue::Queue;
use crate::queue::key_locks::KeyLocks;
use crate::signals::Signals;
use crate::slow::Slowest;
use crate::snapshot::Snapshot;
use crate::snapshot::current::Current;
use crate::snapshot::open_transactions::OpenTransactions;
use crate::space::Space;
use crate::state::State;
use crate::state::format::EngineState;
use crate::state::unpublished::UnpublishedBases;
use crate::statistics::Recorder;
use crate::write_memory::WriteMemory;

/// The engine behind its handles.
pub(crate) struct Shared {
    pub machine: Machine,
    /// Packs, and what is born and not in them yet.
    pub store: Arc<dyn ChunkStore>,
    /// The same.
    pub pending: Arc<Layered<StoreWithPending>>,
    pub options: EngineOptions,
    /// Files of the log for segments to come.
    pub recycled: Arc<RecycledSegments>,
    /// Those that are kept for who follows the log.
    pub kept: Arc<KeptSegments>,
    /// How far the log is durable.
    pub horizon: Horizon,
    /// Disk space that is held back.
    pub space: Space,
    pub local_format: TreeFormat,
    pub tree_ids: TreeIds,
    /// What is visible now.
    pub current: Current,
    /// The last Sequence that the opening found, and the last that it skipped.
    pub skipped: (Sequence, Sequence),
    /// Who agrees on their order, in a set.
    pub order: Option<Arc<dyn Order>>,
    /// How many chunks were staged in this process; see `commit::staging`.
    pub staged: AtomicU64,
    /// Where transactions line up; see `commit`.
    pub queue: Mutex<Queue>,
    /// Something in the queue was written, refused or closed, and a thread that isn't waiting in a
    /// group waits for that.
    pub queue_changed: Condvar,
    /// What fingerprints of keys are computed with; see `conflicts`.
    pub conflict_seed: u64,
    /// Which transactions are open.
    pub transactions: OpenTransactions,
    /// Which keys they have claimed.
    pub key_locks: KeyLocks,
    /// Memory for memtables.
    pub recycler: Arc<Recycler>,
    /// Held by the one flush that runs: memtables that were flushed and may still be read.
    pub flusher: Mutex<Vec<Arc<Memtable>>>,
    /// What is published; see `publish`.
    pub publisher: Mutex<Publisher>,
    /// Bases that trees got and that are not published yet.
    pub unpublished: UnpublishedBases,
    /// Which trees have runs, and who works on them; see `compaction`.
    pub scheduler: CompactionScheduler,
    /// What the background threads wait for, and who waits for them.
    pub signals: Signals,
    /// How fast writers may go; see `backpressure`.
    pub backpressure: Backpressure,
    /// Whether background threads let others go first.
    pub throttle: Arc<Throttle>,
    /// Background threads at work, which hold the State with which they began.
    pub workers: Workers,
    pub counters: Counters,
    /// What failed in the background.
    pub background_errors: BackgroundErrors,
    /// What closed the engine for writing.
    pub fault: FaultCell,
    pub slowest: Slowest,
    /// What large writes take until they are in the log.
    pub write_memory: WriteMemory,
}

/// What is published: only who holds its lock may change it.
pub(crate) struct Publisher {
    pub root: ChunkHash,
    pub published: EngineState,
    /// Log segments below this one are gone. It trails `published.segment`.
    pub first_segment: SegmentNumber,
    /// Trees whose published base reaches beyond the published horizon, and how far: while there
    /// are any, what is published is no moment without the log.
    pub beyond: BTreeMap<TreeId, Sequence>,
}

/// Counts since the engine was opened.
#[derive(Default)]
pub(crate) struct Counters {
    pub commits: AtomicU64,
    pub conflicts: AtomicU64,
    /// Waits for a key that another transaction had claimed, and those of them that were circles.
    pub key_lock_waits: AtomicU64,
    pub deadlocks: AtomicU64,
    /// Snapshots that moved, and those that could not.
    pub snapshots_refreshed: AtomicU64,
    pub snapshots_kept: AtomicU64,
    pub folds: AtomicU64,
    pub flushes: AtomicU64,
    pub runs_written: AtomicU64,
    pub steps: AtomicU64,
    pub merges: AtomicU64,
    /// Bytes of keys, values and chunks of committed transactions.
    pub bytes_given: AtomicU64,
    pub scrubbed_bytes: AtomicU64,
    pub log_bits_turned_back: AtomicU64,
    /// Bytes of runs that flushes wrote, and of those that merges wrote.
    pub bytes_flushed: AtomicU64,
    pub bytes_merged: AtomicU64,
    pub group_sizes: Recorder,
    pub sync_micros: Recorder,
    pub flush_micros: Recorder,
    pub work_micros: Recorder,
    pub delay_micros: Recorder,
}

impl Counters {
    /// Adds one.
    pub fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

const NO_PANIC: &str = "no panic while the lock is held";

impl Shared {
    /// What is visible now.
    pub fn snapshot(&self) -> Snapshot {
        let (view, visible) = self.current.view();
        Snapshot::new(view, visible)
    }

    /// The current State and the visible Sequence.
    pub fn current(&self) -> (Arc<State>, Sequence) {
        self.current.state()
    }

    /// Replaces the State by a changed copy. `change` is told the visible Sequence.
    pub fn change_state(&self, change: impl FnOnce(&mut State, Sequence)) {
        self.current.change(change);
    }

    /// Every State that a reader may still use, the current one last.
    pub fn held_states(&self) -> Vec<Arc<State>> {
        self.current.held_states()
    }

    /// Makes everything up to `sequence` visible. The caller holds the queue's lock.
    pub fn make_visible(&self, sequence: Sequence) {
        self.current.make_visible(sequence);
    }

    /// No transaction that is open now, or begins later, has an older snapshot.
    pub fn oldest_transaction(&self) -> Sequence {
        self.transactions.oldest(&self.current)
    }

    /// How much time has gone by since the steady clock said `begun`.
    pub fn micros_since(&self, begun: i64) -> u64 {
        u64::try_from(self.machine.clock.steady_micros().saturating_sub(begun)).unwrap_or(0)
    }

    /// Names a key among key locks and conflicts.
    pub fn fingerprint(&self, tree: TreeId, key: &[u8]) -> u64 {
        fingerprint::fingerprint(self.conflict_seed, tree, key)
    }

    /// Locks the queue.
    pub fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect(NO_PANIC)
    }

    /// Locks what is published.
    pub fn publisher(&self) -> MutexGuard<'_, Publisher> {
        self.publisher.lock().expect(NO_PANIC)
    }

    /// Notes that `compaction` failed in the background. Where that left a store that takes no more
    /// writes, the engine takes none either: the log would only grow until there is no room for
    /// memtables.
    pub fn note_failure(&self, work: &'static str, error: &EngineError) {
        self.background_errors.note(work, error, self.machine.clock.now_micros());
        if let EngineError::Store(StoreError::Poisoned)
        | EngineError::Tree(TreeError::Store(StoreError::Poisoned)) = error
        {
            self.poison("a sync of the packs failed");
        }
    }

    /// Passes on what the store answered to a sync. Any failure but a full disk poisons the engine:
    /// what is on the disk is unknown. Nothing of what needed the sync was written to the log.
    ///
    /// # Errors
    /// The store's own error if the disk is full, [`EngineError::Closed`] for every other.
    pub fn store_synced(&self, result: Result<(), StoreError>) -> Result<(), EngineError> {
        result.map_err(|error| {
            if error.is_full() {
                return error.into();
            }
            let reason = format!("the packs could not be synced: {error}");
            self.poison(&reason);
            EngineError::Closed(reason)
        })
    }
}
