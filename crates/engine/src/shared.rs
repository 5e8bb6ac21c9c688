//! The shared parts of all handles of an engine: the current state, and the owners of each concern.
//!
//! *Locks, in the order in which they may be taken*: `flusher`, `publisher`, `queue`, `group` (its
//! own), `transactions` (a stripe's), `key_locks` (two of its own), `current`, `unpublished` (two),
//! `scheduler`, `signals`, that of `background::errors`. None but the first two is held across a
//! write or sync; these only keep two flushes, and two publications, apart, and no writer or reader
//! waits for them. All lie in their owners, which take those after `queue` for moments.
//!
//! *Visibility*: [`crate::snapshot::current`] gives a snapshot the State and the visible Sequence
//! of one moment. The visible Sequence only rises, and only under the queue's lock.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, MutexGuard};

use frond_store::io::Machine;
use frond_store::{ChunkStore, Layered, StoreError};
use frond_tree::{TreeError, TreeFormat};

use crate::background::Background;
use crate::disk_reserve::DiskReserve;
use crate::durable_horizon::DurableHorizon;
use crate::error::EngineError;
use crate::fault::FaultCell;
use crate::fingerprint;
use crate::ids::{Sequence, TreeId, TreeIds};
use crate::log::recycled::RecycledSegments;
use crate::log::retained::RetainedSegments;
use crate::options::EngineOptions;
use crate::order::Order;
use crate::overlay::pending::StoreWithPending;
use crate::overlay::recycled::Recycler;
use crate::queue::Queue;
use crate::queue::commits::CommitQueue;
use crate::queue::key_locks::KeyLocks;
use crate::retained_states::RetainedStates;
use crate::signals::Signals;
use crate::slow_commits::Slowest;
use crate::snapshot::Snapshot;
use crate::snapshot::current::Current;
use crate::snapshot::open_transactions::OpenTransactions;
use crate::state::State;
use crate::state::published::{Published, Publisher};
use crate::statistics::counters::Counters;
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
    /// The segments kept for change streams.
    pub kept: Arc<RetainedSegments>,
    /// The offset up to which the log is durable.
    pub horizon: DurableHorizon,
    /// Disk space that is held back.
    pub space: DiskReserve,
    pub local_format: TreeFormat,
    pub tree_ids: TreeIds,
    /// The visible state.
    pub current: Current,
    /// The last Sequence that the opening found, and the last that it skipped.
    pub skipped: (Sequence, Sequence),
    /// Decides the order of commits, in a replica set or with the log in a bucket.
    pub order: Option<Arc<dyn Order>>,
    /// The number of chunks that were staged in this process; see `commit::staging`.
    pub staged: AtomicU64,
    /// The commit queue; see `commit`.
    pub commits: CommitQueue,
    /// The seed of keys' fingerprints; see `conflicts`.
    pub conflict_seed: u64,
    /// The open transactions.
    pub transactions: OpenTransactions,
    /// The keys they have locked.
    pub key_locks: KeyLocks,
    /// Published states that are kept, and what was made of them.
    pub retained_states: RetainedStates,
    /// Memory for memtables.
    pub recycler: Arc<Recycler>,
    /// The state that the store's root names; see `compaction::publish`.
    pub published: Published,
    /// The signals that background threads wait for.
    pub signals: Signals,
    /// The state that background threads share.
    pub background: Background,
    pub counters: Counters,
    /// The fault that closed the engine for writing.
    pub fault: FaultCell,
    pub slowest: Slowest,
    /// The memory that large writes take until they are in the log.
    pub write_memory: WriteMemory,
}

impl Shared {
    /// Returns a snapshot of the visible state.
    pub fn snapshot(&self) -> Snapshot {
        let (view, visible) = self.current.view();
        Snapshot::new(view, visible)
    }

    /// The current State and the visible Sequence.
    pub fn current(&self) -> (Arc<State>, Sequence) {
        self.current.state()
    }

    /// Replaces the State by a changed copy. `change` is given the visible Sequence.
    pub fn change_state(&self, change: impl FnOnce(&mut State, Sequence)) {
        self.current.change(change);
    }

    /// Returns every State that a reader may still use, the current one last.
    pub fn readable_states(&self) -> Vec<Arc<State>> {
        self.current.readable_states()
    }

    /// Makes everything up to `sequence` visible. The caller holds the queue's lock.
    pub fn make_visible(&self, sequence: Sequence) {
        self.current.make_visible(sequence);
    }

    /// Returns the oldest Sequence of a snapshot of a transaction that is open now, or begins
    /// later.
    pub fn oldest_transaction(&self) -> Sequence {
        self.transactions.oldest(&self.current)
    }

    /// Returns how much time has gone by since the steady clock said `begun`.
    pub fn micros_since(&self, begun: i64) -> u64 {
        u64::try_from(self.machine.clock.steady_micros().saturating_sub(begun)).unwrap_or(0)
    }

    /// Names a key among key locks and conflicts.
    pub fn fingerprint(&self, tree: TreeId, key: &[u8]) -> u64 {
        fingerprint::fingerprint(self.conflict_seed, tree, key)
    }

    /// Locks the queue.
    pub fn queue(&self) -> MutexGuard<'_, Queue> {
        self.commits.lock()
    }

    /// Locks what is published.
    pub fn publisher(&self) -> MutexGuard<'_, Publisher> {
        self.published.publisher()
    }

    /// Whether other machines apply what is committed.
    pub fn is_in_set(&self) -> bool {
        self.order.as_ref().is_some_and(|order| order.is_set())
    }

    /// Notes that `compaction` failed in the background. Where that left a store that takes no more
    /// writes, the engine takes none either: the log would only grow until there is no room for
    /// memtables.
    pub fn note_failure(&self, work: &'static str, error: &EngineError) {
        self.background.errors.note(work, error, self.machine.clock.now_micros());
        if let EngineError::Store(StoreError::Poisoned { reason })
        | EngineError::Tree(TreeError::Store(StoreError::Poisoned { reason })) = error
        {
            self.poison(&format!("the packs take nothing more: {reason}"));
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
