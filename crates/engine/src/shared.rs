//! What all handles of an engine share: the current state, and who is looking at it.
//!
//! *Locks, in the order in which they may be taken*: `flusher`, `publisher`, `queue`,
//! `group` (its own), `transactions` (a lane's), `intents` (two of its own), `current`, `unpublished`, `logged_bases`, `work`, `signals`, that of `troubles`. None but the first two is
//! held across a write or sync; these only keep two flushes, and two publications, apart, and no
//! writer or reader waits for them.
//!
//! *Visibility*: [`crate::current`] gives a snapshot the State and the visible Sequence of one moment.
//! The visible Sequence only rises, and only under the queue's lock.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};

use frond_store::io::Machine;
use frond_store::{ChunkHash, ChunkStore, StoreError};
use frond_tree::TreeFormat;

use crate::conflict;
use crate::courtesy::Courtesy;
use crate::current::Current;
use crate::engine::EngineOptions;
use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::intents::Intents;
use crate::log::format::SegmentNumber;
use crate::log::spares::Spares;
use crate::open_transactions::OpenTransactions;
use crate::overlay::born::StoreWithBorn;
use crate::overlay::memtable::Memtable;
use crate::overlay::recycle::Recycler;
use crate::pace::Pace;
use crate::queue::{Queue, Refusal};
use crate::slow::Slowest;
use crate::snapshot::Snapshot;
use crate::state::State;
use crate::state::format::EngineState;
use crate::statistics::Recorder;
use crate::trouble::Troubles;
use crate::work::Work;

/// The engine behind its handles.
pub(crate) struct Shared {
    pub machine: Machine,
    /// Packs, and what is born and not in them yet.
    pub store: Arc<dyn ChunkStore>,
    /// The same.
    pub born: Arc<StoreWithBorn>,
    pub options: EngineOptions,
    /// Files of the log for segments to come.
    pub spares: Arc<Spares>,
    pub local_format: TreeFormat,
    /// Every reserved id is less.
    pub next_tree_id: AtomicU64,
    /// What is visible now.
    pub current: Current,
    /// Where transactions line up; see `commit`.
    pub queue: Mutex<Queue>,
    /// Something in the queue was written, refused or closed, and somebody who is no member of a
    /// group waits for that.
    pub queue_changed: Condvar,
    /// What fingerprints of keys are computed with; see `conflict`.
    pub conflict_seed: u64,
    /// Which transactions are open.
    pub transactions: OpenTransactions,
    /// Which keys they have claimed.
    pub intents: Intents,
    /// Memory for memtables.
    pub recycler: Arc<Recycler>,
    /// Held by the one flush that runs: memtables that were flushed and may still be read.
    pub flusher: Mutex<Vec<Arc<Memtable>>>,
    /// What is published; see `publish`.
    pub publisher: Mutex<Publisher>,
    /// Trees that got another base, or were dropped, and whose published base is not that yet. A
    /// tree that was only written to is found in the memtables.
    pub unpublished: Mutex<BTreeSet<TreeId>>,
    /// The bases that trees got by records of the log which a restart would read, whatever became of these
    /// trees since: it may lay what differs over them.
    pub logged_bases: Mutex<Vec<(Sequence, ChunkHash)>>,
    /// Which trees have runs, and who works on them; see `work`.
    pub work: Mutex<Work>,
    pub signals: Mutex<Signals>,
    /// Something in `signals` changed, or work was installed.
    pub signalled: Condvar,
    /// How fast writers may go; see `pace`.
    pub pace: Pace,
    /// Whether background threads let others go first.
    pub courtesy: Arc<Courtesy>,
    /// Read by background threads at work, which hold the State with which they began.
    pub at_work: RwLock<()>,
    pub counters: Counters,
    /// What failed in the background.
    pub troubles: Troubles,
    pub slowest: Slowest,
}

/// What is published: only who holds its lock may change it.
pub(crate) struct Publisher {
    pub root: ChunkHash,
    pub published: EngineState,
    /// Log segments below this one are gone. It trails `published.segment`.
    pub first_segment: SegmentNumber,
}

/// What the background threads are told, and what they tell.
#[derive(Default)]
pub(crate) struct Signals {
    /// The threads are to end.
    pub stop: bool,
    /// A memtable was sealed.
    pub flush_wanted: bool,
    /// Rises whenever there may be something to fold or merge.
    pub work_generation: u64,
    /// A relaxed transaction waits to be synced.
    pub sync_wanted: bool,
    /// Why the last flush failed, until one succeeds.
    pub flush_failure: Option<Refusal>,
    /// How many flushes have failed.
    pub flush_failure_count: u64,
}

/// Counts since the engine was opened.
#[derive(Default)]
pub(crate) struct Counters {
    pub commits: AtomicU64,
    pub conflicts: AtomicU64,
    /// Waits for a key that another transaction had claimed, and those of them that were circles.
    pub intent_waits: AtomicU64,
    pub deadlocks: AtomicU64,
    /// Snapshots that moved, and those that could not.
    pub snapshots_moved: AtomicU64,
    pub snapshots_kept: AtomicU64,
    pub folds: AtomicU64,
    pub flushes: AtomicU64,
    pub runs_written: AtomicU64,
    pub steps: AtomicU64,
    pub merges: AtomicU64,
    /// Bytes of keys, values and chunks of committed transactions.
    pub bytes_given: AtomicU64,
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

    /// Every State that somebody may still read, the current one last.
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

    /// How much time has gone by since the clock said `begun`; nothing if it was set back.
    pub fn micros_since(&self, begun: i64) -> u64 {
        u64::try_from(self.machine.clock.now_micros().saturating_sub(begun)).unwrap_or(0)
    }

    /// Reserves a tree's id.
    pub fn reserve_tree_id(&self) -> TreeId {
        TreeId(self.next_tree_id.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether an id was reserved once.
    pub fn is_reserved(&self, tree: TreeId) -> bool {
        tree >= TreeId::SYSTEM && tree.0 < self.next_tree_id.load(Ordering::Relaxed)
    }

    /// Names a key among intents and conflicts.
    pub fn fingerprint(&self, tree: TreeId, key: &[u8]) -> u64 {
        conflict::fingerprint(self.conflict_seed, tree, key)
    }

    /// Changes the signals and wakes whoever waits for one.
    pub fn signal(&self, change: impl FnOnce(&mut Signals)) {
        change(&mut self.signals());
        self.signalled.notify_all();
    }

    /// Locks the signals.
    pub fn signals(&self) -> MutexGuard<'_, Signals> {
        self.signals.lock().expect(NO_PANIC)
    }

    /// Locks the queue.
    pub fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect(NO_PANIC)
    }

    /// Locks the set of trees that are to be published.
    pub fn unpublished(&self) -> MutexGuard<'_, BTreeSet<TreeId>> {
        self.unpublished.lock().expect(NO_PANIC)
    }

    /// Locks the list of bases that the log names.
    pub fn logged_bases(&self) -> MutexGuard<'_, Vec<(Sequence, ChunkHash)>> {
        self.logged_bases.lock().expect(NO_PANIC)
    }

    /// Locks what is published.
    pub fn publisher(&self) -> MutexGuard<'_, Publisher> {
        self.publisher.lock().expect(NO_PANIC)
    }

    /// Locks the list of what is worked on.
    pub fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().expect(NO_PANIC)
    }

    /// Notes that `work` failed in the background.
    pub fn note_failure(&self, work: &'static str, error: &EngineError) {
        self.troubles.note(work, error, self.machine.clock.now_micros());
    }

    /// Passes on what the store answered to a sync. Any failure but a full disk poisons the engine:
    /// what is on the disk is unknown.
    pub fn store_synced(&self, result: Result<(), StoreError>) -> Result<(), EngineError> {
        result.map_err(|error| {
            if !is_full(&error) {
                self.poison(&error.to_string());
            }
            error.into()
        })
    }
}

/// Whether the disk is full: the one failure that leaves everything as it was.
fn is_full(error: &StoreError) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let StoreError::Io { source, .. } = error else { return false };
    matches!(source.kind(), StorageFull | QuotaExceeded)
}
