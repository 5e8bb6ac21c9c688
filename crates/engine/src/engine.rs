//! The engine: one data directory, open.

mod counters;

pub use self::counters::EngineCounters;

use std::sync::Arc;
use std::time::Duration;

use frond_store::io::{Disk, Machine};
use frond_store::local::{LocalOptions, LocalStore};
use frond_store::{ChunkStore, EMPTY_LOG_BYTES_MAX, GcReport, Headroom, NewDirectory, StoreError};
use frond_tree::{Tree, TreeFormat};

use crate::background::errors::Failure;
use crate::changes::Changes;
use crate::compaction::publish::ROOT_NAME;
use crate::disk_reserve::DiskStatus;
use crate::error::EngineError;
use crate::fault::Fault;
use crate::gc::reclaim::ReclaimOptions;
use crate::ids::{Sequence, TreeId};
use crate::image::Image;
use crate::log::format::SEGMENT_HEADER_BYTES;
use crate::options::{ChangeRetention, EngineOptions, RetentionBegins};
use crate::order::{Order, SetEntry, SlotOrder};
use crate::rebuilt_snapshots::RebuildError;
use crate::recovery;
use crate::shared::Shared;
use crate::slow_commits::SlowCommit;
use crate::snapshot::{KeepGoing, Snapshot};
use crate::threads::Threads;
use crate::transaction::Transaction;
use crate::transaction::held_locks::LockMode;

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
    /// The directory, if the engine may have begun it.
    directory: Option<Arc<NewDirectory>>,
}

/// A pack is this part of the reserve at most.
const PACK_SHARE: u64 = 4;

// By this a directory in which nothing was acknowledged is recognised.
const _: () = assert!(SEGMENT_HEADER_BYTES as u64 <= EMPTY_LOG_BYTES_MAX);

impl Engine {
    /// Opens the data directory, recovering from its log; makes an empty one where there is none.
    ///
    /// # Errors
    /// [`EngineError::Store`]: the disk fails, another process has the directory, its format is
    /// of another version, or what is stored there is damaged.
    pub fn open(machine: &Machine, options: EngineOptions) -> Result<Engine, EngineError> {
        let directory = NewDirectory::over(&machine.disk);
        let disk = Arc::clone(&directory) as Arc<dyn Disk>;
        let machine = &Machine { disk, ..machine.clone() };
        let store = Engine::open_store(machine, options)?;
        let _opening = Headroom::Opening.enter();
        let shared = recovery::open(machine, store, options)?;
        Engine::start(shared, Some(directory))
    }

    fn open_store(
        machine: &Machine,
        options: EngineOptions,
    ) -> Result<Arc<dyn ChunkStore>, EngineError> {
        let room = machine.disk.space().ok().flatten();
        let reserve_bytes = room.map_or(0, |room| options.reserve.of(room.bytes));
        let own = LocalOptions::default();
        // A pack can go only if there is room to move what of it is needed.
        let pack_bytes_target = match reserve_bytes {
            0 => own.pack_bytes_target,
            reserve => own.pack_bytes_target.min((reserve / PACK_SHARE).max(1 << 20)),
        };
        let local = LocalOptions {
            pack_bytes_target,
            reserve_bytes,
            cache_bytes: options.cache_bytes,
            index_cache_bytes: options.index_cache_bytes,
            keys_memory_max: options.keys_memory_max,
            slow_read_micros: options.slow_read_micros,
        };
        Ok(LocalStore::open(machine, local)?)
    }

    /// Opens the engine whose log lies in `machine`'s disk and whose chunks lie in `store`. They
    /// belong together: a log is of no use with another store.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_over(
        machine: &Machine,
        store: Arc<dyn ChunkStore>,
        options: EngineOptions,
    ) -> Result<Engine, EngineError> {
        let _opening = Headroom::Opening.enter();
        Engine::start(recovery::open(machine, store, options)?, None)
    }

    fn start(shared: Shared, directory: Option<Arc<NewDirectory>>) -> Result<Engine, EngineError> {
        let shared = Arc::new(shared);
        shared.begin_log()?;
        shared.publish_before_retention();
        {
            // Second copies that a crash or damage took are made again.
            let publisher = shared.publisher();
            shared.copy_metadata(publisher.root, false);
        }
        if let Some(directory) = &directory {
            directory.end_creation();
        }
        let threads = Arc::new(Threads::start(&shared)?);
        Ok(Engine { shared, threads, directory })
    }

    /// Opens the data directory of a member of a set, or one whose log lies in a bucket, where
    /// `order` is how transactions are agreed on. It follows, and takes none: [`Engine::apply`],
    /// [`Engine::lead`]. Changes by members are kept from the opening on: a client that follows one
    /// member's log may go on with another's.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_in_set(
        machine: &Machine,
        options: EngineOptions,
        order: Arc<dyn Order>,
    ) -> Result<Engine, EngineError> {
        let begins = match order.is_set() {
            true => RetentionBegins::AtOnce,
            false => options.changes.begins,
        };
        let changes = ChangeRetention { begins, ..options.changes };
        let options = EngineOptions { changes, ..options };
        let store = Engine::open_store(machine, options)?;
        Engine::open_over_in_set(machine, store, options, order)
    }

    /// As [`Engine::open_in_set`]; the chunks lie in `store`. The log is kept as `options` say.
    ///
    /// # Errors
    /// As [`Engine::open_over`].
    pub fn open_over_in_set(
        machine: &Machine,
        store: Arc<dyn ChunkStore>,
        options: EngineOptions,
        order: Arc<dyn Order>,
    ) -> Result<Engine, EngineError> {
        let _opening = Headroom::Opening.enter();
        let mut shared = recovery::open(machine, store, options)?;
        let beside_max = order.slots().map(SlotOrder::groups_max);
        shared.order = Some(order);
        let mut queue = shared.queue();
        queue.beside_max = beside_max;
        queue.leads_from = None;
        // Those that an opening skips may be others', and come yet.
        queue.last = queue.last_live;
        let last = queue.last;
        drop(queue);
        shared.skipped = (last, last);
        Engine::start(shared, None)
    }

    /// Applies an entry of the set's log: its transactions are visible then, all at once. One that
    /// was applied before changes nothing. Entries are applied one at a time, in their order.
    ///
    /// # Errors
    /// [`EngineError::Closed`] if this engine leads, or is closed; [`EngineError::Store`] and
    /// [`EngineError::Tree`] if the entry is none, or what it changes can't be read or written. The
    /// engine is closed then, and applies the entry when it was opened again.
    pub fn apply(&self, entry: SetEntry) -> Result<(), EngineError> {
        self.shared.apply(entry)
    }

    /// Makes durable in the own log of a member of a set what is visible.
    ///
    /// # Errors
    /// [`EngineError::Closed`] if the engine is, or the sync fails.
    pub fn sync_log(&self) -> Result<(), EngineError> {
        self.shared.sync_own_log()
    }

    /// Takes transactions from now on. All entries that were committed before have been applied,
    /// and whatever is proposed otherwise comes to nothing.
    pub fn lead(&self) {
        self.shared.take_lead();
    }

    /// Ends all snapshots that show trees of before: a caller that reads on finds them too old. So
    /// what only they keep goes with the next collection.
    pub fn expire_old_snapshots(&self) {
        self.shared.expire_states(Duration::ZERO);
    }

    /// Has the members of a set keep no longer what leaders before this one have staged for
    /// transactions that came to nothing. Returns how many chunks that led to all of it.
    ///
    /// # Errors
    /// As a commit's: it stays until another process leads.
    pub fn remove_left_staging(&self) -> Result<usize, EngineError> {
        self.shared.remove_left_staging()
    }

    /// Closes the engine for writing: it led, and doesn't any more. Commits that wait for agreement
    /// learn that their outcome is unknown. It is to be opened again.
    pub fn depose(&self) {
        self.shared.poison("this member of the replica set doesn't lead it any more");
    }

    /// Whether `store` is that of a data directory already.
    ///
    /// # Errors
    /// [`EngineError::Store`] if the root can't be read.
    pub fn is_in(store: &dyn ChunkStore) -> Result<bool, EngineError> {
        Ok(store.root(ROOT_NAME)?.is_some())
    }

    /// Returns where chunks lie.
    pub fn store(&self) -> &Arc<dyn ChunkStore> {
        &self.shared.store
    }

    /// The format of the trees that are local to this data directory.
    pub fn local_format(&self) -> TreeFormat {
        self.shared.local_format
    }

    /// A snapshot of what is visible now.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot()
    }

    /// A snapshot of what is visible now, to be read again for `time` by its Sequence: with
    /// [`Engine::snapshot_at`].
    pub fn lease(&self, time: Duration) -> Snapshot {
        self.shared.lease(time)
    }

    /// A snapshot of what was visible at `moment`: exact, however often it is asked for. A moment
    /// can be read if it is leased, or if nothing has replaced it in memory since. A moment of the
    /// future becomes one that no transaction writes at any more: clocks must have come to it.
    ///
    /// # Errors
    /// [`EngineError::SnapshotTooOld`] if it can't be read any more; as [`Engine::await_visible`].
    pub fn snapshot_at(&self, moment: Sequence) -> Result<Snapshot, EngineError> {
        self.shared.snapshot_at(moment)
    }

    /// A snapshot of `moment`: as [`Engine::snapshot_at`], or else rebuilt from the retained
    /// log. The first reader of a moment waits until the log is read from the last retained state
    /// on, which is as much as a memtable or two; others, also of moments near it, don't.
    /// `keep_going` is asked all the while.
    ///
    /// # Errors
    /// [`RebuildError::Gone`] if the log doesn't reach it; [`RebuildError::Interrupted`] if
    /// `keep_going` says no; as [`Engine::await_visible`], and what reading meets.
    pub fn rebuild_snapshot_at(
        &self,
        moment: Sequence,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Snapshot, RebuildError> {
        self.shared.rebuild_snapshot_at(moment, keep_going)
    }

    /// Returns the moment from which on every one can be read.
    ///
    /// # Errors
    /// An error of the store.
    pub fn oldest_rebuildable(&self) -> Result<Sequence, EngineError> {
        self.shared.oldest_rebuildable()
    }

    /// Waits until all is visible that will ever have its place up to `moment`, to which clocks
    /// must have come: what is written later has its place behind it.
    ///
    /// # Errors
    /// As [`Engine::await_visible`].
    pub fn await_settled(&self, moment: Sequence) -> Result<(), EngineError> {
        self.shared.await_settled(moment)
    }

    /// Lets no caller read a moment before now again, leased or not. Snapshots that are held stay.
    pub fn forget_past(&self) {
        self.shared.current.forget_past();
        self.shared.retained_states.forget_ranges(|_| false);
    }

    /// Begins a transaction at what is visible now.
    pub fn begin(&self) -> Transaction {
        self.begin_as(LockMode::Optimistic)
    }

    /// Begins a transaction that deals with others in this manner.
    pub fn begin_as(&self, lock_mode: LockMode) -> Transaction {
        Transaction::begin(Arc::clone(&self.shared), lock_mode)
    }

    /// Begins a transaction that locks what it writes, and sees queued commits too: commits that
    /// have their place in the log and that no sync has made durable yet. So it waits for none of
    /// them, and its commit may share their sync.
    ///
    /// Data it reads must leave the process only when [`Transaction::commit`] or
    /// [`Transaction::end`] has returned; their answers count then, whatever was read. So it is for
    /// transactions of a single statement.
    pub fn begin_ahead(&self) -> Transaction {
        Transaction::begin_ahead(Arc::clone(&self.shared))
    }

    /// The Sequence of the last visible transaction.
    pub fn visible(&self) -> Sequence {
        self.shared.current.visible()
    }

    /// Reserves an id for a new tree. It exists once a transaction that called
    /// [`Transaction::set_base`] for it has committed.
    pub fn reserve_tree_id(&self) -> TreeId {
        self.shared.tree_ids.reserve()
    }

    /// Folds `trees` as they are at `snapshot` and returns, for each, the resulting tree; its
    /// chunks are durable. Writers go on. The cost follows what changed since the last fold: the
    /// result becomes the base.
    ///
    /// # Errors
    /// [`EngineError::Closed`] if the engine is, or the sync fails now; [`EngineError::NoTree`] if
    /// the snapshot has no such tree; [`EngineError::SnapshotTooOld`]; [`EngineError::Store`] and
    /// [`EngineError::Tree`] if a tree or run can't be read, or the result can't be written.
    pub fn fold(&self, snapshot: &Snapshot, trees: &[TreeId]) -> Result<Vec<Tree>, EngineError> {
        self.shared.fold(snapshot, trees)
    }

    /// Writes what lies in memtables to runs and trees, and empties the log; runs stay as long as
    /// their share of a tree allows.
    ///
    /// # Errors
    /// [`EngineError::Closed`] if the engine is; [`EngineError::Store`] and [`EngineError::Tree`]
    /// if a run or tree can't be read or written. Entries that were not written out stay in their
    /// memtable and in the log.
    pub fn flush(&self) -> Result<(), EngineError> {
        self.shared.flush()
    }

    /// Folds everything and empties the log; for tests and a clean shutdown.
    ///
    /// # Errors
    /// As [`Engine::flush`] and [`Engine::fold`].
    pub fn checkpoint(&self) -> Result<(), EngineError> {
        self.shared.checkpoint()
    }

    /// Whether the background has nothing left to do: no flush, fold or merge is due or under way,
    /// and the memory of what was flushed is given back. Collections don't count.
    ///
    /// # Errors
    /// [`EngineError::Store`]: how large a tree is can't be read.
    pub fn is_at_rest(&self) -> Result<bool, EngineError> {
        self.shared.is_at_rest()
    }

    /// Whether the background does nothing: it is at rest ([`Engine::is_at_rest`]), or all that is
    /// left has failed, as on a full disk, and waits until it is tried again.
    ///
    /// # Errors
    /// [`EngineError::Store`]: how large a tree is can't be read.
    pub fn is_idle(&self) -> Result<bool, EngineError> {
        self.shared.is_idle()
    }

    /// Gives back the disk space of what no tree, snapshot or transaction needs any more. Readers
    /// and writers go on; closing the engine stops it.
    ///
    /// # Errors
    /// [`EngineError::Store`]: something reachable is missing or damaged (nothing that can be read
    /// was removed), or the disk is full.
    pub fn reclaim(&self, options: ReclaimOptions) -> Result<GcReport, EngineError> {
        let keep_going: Arc<KeepGoing> = Arc::new(|| true);
        self.reclaim_while(options, &keep_going)
    }

    /// As [`Engine::reclaim`], until `keep_going` says no: asked again and again. What was done
    /// stays done, and the report says `stopped`.
    ///
    /// # Errors
    /// As there; [`EngineError::Interrupted`] amid the fold that a thorough one begins with.
    pub fn reclaim_while(
        &self,
        options: ReclaimOptions,
        keep_going: &Arc<KeepGoing>,
    ) -> Result<GcReport, EngineError> {
        self.shared.reclaim_while(options, keep_going)
    }

    /// Flushes, folds and packs all, at the rate of background collections, as the engine does by
    /// itself when it is quiet ([`EngineOptions::quiet_millis`]). Asks `keep_going` between two
    /// steps; returns whether it came to its end.
    ///
    /// # Errors
    /// As `flush`, `fold` and `reclaim`; what was done before stays done.
    pub fn repack_while(&self, keep_going: &mut dyn FnMut() -> bool) -> Result<bool, EngineError> {
        self.shared.repack_while(keep_going)
    }

    /// The memory that large writes may take, and what they take now.
    pub fn write_memory_bytes(&self) -> (u64, u64) {
        self.shared.write_memory.bytes()
    }

    /// Lets large writes take so much less, until another number is set; one at a time goes on.
    pub fn withhold_write_memory(&self, bytes: u64) {
        self.shared.write_memory.withhold(bytes);
    }

    /// Returns the disk's status; `None` if it doesn't report one.
    pub fn disk_status(&self) -> Option<DiskStatus> {
        self.shared.space.disk_status()
    }

    /// Has a file hold a part of the reserve, if there is room, so that other programs that fill
    /// the disk leave it: for servers that run for long. Costs little when it is held already; to
    /// be called from time to time.
    pub fn hold_reserve(&self) {
        self.shared.space.hold();
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
    pub fn gc_dry_run(&self) -> Result<GcReport, EngineError> {
        self.shared.gc_dry_run()
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Checks every invariant that can be checked at rest.
    ///
    /// # Errors
    /// [`EngineError::Store`] with `Damaged` names the first invariant that doesn't hold; otherwise
    /// as the reads that the check consists of.
    pub fn check(&self) -> Result<(), EngineError> {
        self.shared.check()
    }

    /// Counts of what the engine has done since it was opened.
    pub fn counters(&self) -> EngineCounters {
        counters::read(&self.shared)
    }

    /// Calls `sink` with what fails in the background and is tried again: a line each, once until
    /// that work succeeds. Only the first sink counts.
    pub fn on_failure(&self, sink: impl Fn(&str) + Send + Sync + 'static) {
        self.shared.background.errors.report_to(sink);
    }

    /// The last failure in the background since the opening.
    pub fn last_failure(&self) -> Option<Failure> {
        self.shared.background.errors.last()
    }

    /// The time, in milliseconds since 1970.
    pub fn now_millis(&self) -> i64 {
        self.shared.machine.clock.now_micros().div_euclid(1000)
    }

    /// Has transactions record what they change from now on, where that may be kept
    /// ([`ChangeRetention`]); returns whether it may. Those that have begun are withdrawn when they
    /// commit. Returns once all that is visible is durable.
    ///
    /// # Errors
    /// [`EngineError::Closed`] if the engine is; [`EngineError::Store`] if the disk is full.
    pub fn keep_changes(&self) -> Result<bool, EngineError> {
        self.shared.keep_changes()
    }

    /// Whether transactions can record what they change, and that is kept for a while: in a set by
    /// other members, if not here.
    pub fn records_events(&self) -> bool {
        self.is_in_set() || self.shared.kept.is_on()
    }

    /// Whether its transactions come from elsewhere: it is in a set, and another member leads.
    pub fn follows(&self) -> bool {
        self.shared.queue().leads_from.is_none()
    }

    /// Whether what is written goes to other members of a set.
    pub fn is_in_set(&self) -> bool {
        self.shared.is_in_set()
    }

    /// Whether what is written goes elsewhere, with all that it refers to: to the members of a set,
    /// or to the log in a bucket.
    pub fn is_carried(&self) -> bool {
        self.shared.order.is_some()
    }

    /// Flushes all, and has that sent to the store's tier: a log in a bucket begins behind it.
    ///
    /// # Errors
    /// As [`Engine::flush`]; [`EngineError::Store`] if it can't be sent.
    pub fn send_all(&self) -> Result<(), EngineError> {
        self.shared.send_all()
    }

    /// The events of the transactions after `after`.
    pub fn changes(&self, after: Sequence) -> Changes {
        Changes::new(Arc::clone(&self.shared), after)
    }

    /// The last Sequence that is durable and visible: what followers of the log see.
    pub fn horizon(&self) -> Sequence {
        self.shared.horizon.end().sequence
    }

    /// Whether a Sequence may have been that once: here, before the last opening, or on another
    /// member of the set, which may have come further.
    pub fn is_possible_horizon(&self, sequence: Sequence) -> bool {
        self.is_carried() || sequence <= self.horizon().max(self.shared.skipped.1)
    }

    /// Waits until that lies behind `after`, for so long at most; returns whether it does.
    pub fn await_horizon(&self, after: Sequence, at_most: Duration) -> bool {
        self.await_horizon_unless(after, at_most, self.horizon_waits_ended())
    }

    /// The same, until waits were ended more often than `ended` says.
    pub fn await_horizon_unless(&self, after: Sequence, at_most: Duration, ended: u64) -> bool {
        self.shared.horizon.wait(after, at_most, ended)
    }

    /// Returns how often [`Engine::end_horizon_waits`] was called.
    pub fn horizon_waits_ended(&self) -> u64 {
        self.shared.horizon.waits_ended()
    }

    /// Ends the waits for the horizon, and those that are about to begin: a caller that waits asks
    /// before it looks for a reason not to ([`Engine::await_horizon_unless`]).
    pub fn end_horizon_waits(&self) {
        self.shared.horizon.end_waits();
    }

    /// Removes what is kept of the log for its followers, after all that a restart needs of it has
    /// been written elsewhere: no follower reads again what was recorded before now.
    ///
    /// # Errors
    /// As [`Engine::flush`]; [`EngineError::Store`] if a file can't be removed.
    pub fn forget_changes(&self) -> Result<(), EngineError> {
        self.shared.forget_changes()
    }

    /// Waits until all that has its place up to `up_to` is visible.
    ///
    /// # Errors
    /// [`EngineError::Closed`] if some of it never will be in this process.
    pub fn await_visible(&self, up_to: Sequence) -> Result<(), EngineError> {
        self.shared.await_visible(up_to)
    }

    /// The fault that closed the engine for writing, if anything but [`Engine::close`] did: reads
    /// go on, and only opening the directory again leads back.
    pub fn fault(&self) -> Option<&Fault> {
        self.shared.fault.get()
    }

    /// Calls `sink` with that, once; at once where it has happened. Only the first sink counts.
    pub fn on_fault(&self, sink: impl Fn(&Fault) + Send + Sync + 'static) {
        self.shared.fault.on_fault(sink);
    }

    /// The slowest commits since the opening, the slowest of all first: what each waited for.
    pub fn slowest_commits(&self) -> Vec<SlowCommit> {
        self.shared.slowest.read()
    }

    /// Syncs, stops the background threads and lets go of the directory. Later calls fail with
    /// [`EngineError::Closed`]; snapshots that are held can still be read, and keep the directory
    /// locked as long as they live.
    ///
    /// # Errors
    /// [`EngineError::Closed`] if a sync failed before or now, or a thread panicked;
    /// [`EngineError::Store`] if the disk is full. The engine is closed all the same.
    pub fn close(&self) -> Result<(), EngineError> {
        self.threads.close()?;
        let settled = self.directory.as_ref().map(|directory| directory.sync_creation());
        let settled = settled.unwrap_or(Ok(()));
        Ok(settled.map_err(|error| StoreError::io("the directory", error))?)
    }

    /// Says that the engine is about to be closed: where a bucket that has the log is silent, what
    /// waits for it ends within seconds, as a thing unknown, and the engine is closed for writing.
    pub fn begin_close(&self) {
        self.threads.begin_close();
    }
}
