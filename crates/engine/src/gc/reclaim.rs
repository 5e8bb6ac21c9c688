//! Gives back the disk space of what is no longer needed, while writers and readers go on.
//!
//! The store marks and sweeps ([`frond_store::ChunkStore::collect`]); the engine names what must
//! stay:
//!
//! 1. Published chunks. That is the store's named root: its base map refers to each tree's base,
//!    the system tree among them, whose values refer to the commits of all databases.
//! 2. Chunks of a State that a reader may still use: bases that are not published yet, or not any
//!    more, the bases that the log names, and the values in its memtables that lie out of line. Of
//!    chunks that aren't in packs yet, what they refer to there (`overlay::pending`), and what the
//!    log makes them of. A snapshot keeps its State, and so a cursor isn't disturbed before it is
//!    too old (`expiry`).
//! 3. Chunks that are being made. A writer that puts chunks holds a session of the store meanwhile:
//!    a transaction from its beginning to its end, folds and flushes until what they made is in a
//!    State.
//!
//! *In the background*: garbage isn't counted while it is made, so a collection runs when the packs
//! have grown by half of what the last one left, and somewhat more. It marks by reading what refers
//! to other chunks only (a hundredth of the data or so), moves packs that are mostly dead, and
//! keeps to a rate, so that it doesn't take the disk from others, unless the packs grow a quarter
//! beyond that meanwhile: writers that make garbage so fast take the disk anyway. Such a collection
//! leaves at most a third more than is needed, so that never more waits than as much as is needed,
//! and that. The garbage that it leaves goes when it is quiet ([`super::idle`]).

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use frond_store::io::steady_now;
use frond_store::{ChunkHash, GarbageCollection, GcOptions, GcReport, Headroom, StoreError};
use frond_tree::Content;

use crate::background::throttle::yield_now;
use crate::error::EngineError;
use crate::gc::idle::IdleCollection;
use crate::log::recycled::RecyclingPaused;
use crate::shared::Shared;
use crate::snapshot::KeepGoing;
use crate::state::{Base, State};

/// The interval at which the background checks whether a collection is due: a fast ingest makes 100
/// MB of garbage meanwhile.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The number of looks after which the holder gives up the values that are read, if there was no
/// room for them. To make it all again takes milliseconds.
const LOOKS_A_RENEWAL: u64 = 10;
/// A collection is due when the packs have grown by half of what the last one left, and by so much.
/// Growth that never makes a collection due would cost more to find than it wins.
const GROWTH_BYTES_MIN: u64 = 64 << 20;
/// A pause shorter than this isn't worth making: it is made up for later.
const PAUSE_MIN: Duration = Duration::from_millis(5);
/// A pause is so long at most before it is asked whether to go on.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// A share above all of a pack: none stays as it is.
const PURGE_PERCENT: u8 = 101;

/// Options of a collection.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReclaimOptions {
    /// Whether everything is folded first and history is packed in groups of related chunks: the
    /// smallest disk, for the time that it takes to read and write it once.
    pub thorough: bool,
    /// The most bytes read and written a second; `None`: as fast as it goes.
    pub bytes_a_second: Option<u64>,
    /// Whether nothing dead may stay on the disk, not even beside what lives: every pack is written
    /// again, and the log begins anew. For bytes that must be gone; as dear as it sounds.
    pub purge: bool,
}

impl Shared {
    /// Removes what isn't needed, until `keep_going` says no; see the module.
    ///
    /// # Errors
    /// As [`Engine::reclaim`](crate::Engine::reclaim).
    pub fn reclaim_while(
        &self,
        options: ReclaimOptions,
        keep_going: &Arc<KeepGoing>,
    ) -> Result<GcReport, EngineError> {
        if options.purge {
            self.forget_changes()?;
        }
        let _no_spares = match options.thorough || options.purge {
            true => Some(self.no_spares()?),
            false => None,
        };
        if options.purge {
            // States that leases keep would stay on the disk.
            self.current.forget_past();
        }
        self.space.release_reserve();
        let _collecting = Headroom::Collection.enter();
        if options.thorough || options.purge {
            // Bases that are published only because newer ones aren't yet would be kept.
            if let Err(error) = self.checkpoint_while(keep_going) {
                if !error.is_full() {
                    return Err(error);
                }
                self.fold_beside_collections(options.bytes_a_second)?;
            }
            // Nor is what a flush or fold reads that began before: it would keep all that was
            // deleted since.
            self.background.workers.await_present();
        }
        self.queue().check_open()?;
        let is_purge_beyond = options.purge && self.store.maintenance().is_tiered();
        if is_purge_beyond {
            // What a directory without this log begins with would keep what it had.
            self.send_all()?;
        }
        let mut throttle = GcThrottle::new(self, options.bytes_a_second);
        let collected = self.collect_throttled(options, &mut |bytes| {
            throttle.throttle_while(bytes, &mut || keep_going())
        })?;
        if is_purge_beyond && !collected.stopped {
            self.store.maintenance().purge_tier()?;
        }
        Ok(collected)
    }

    /// Gives back the disk space of the log's spares, and makes none while the answer lives.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn no_spares(&self) -> Result<RecyclingPaused<'_>, EngineError> {
        let paused = self.recycled.none();
        Ok(paused.map_err(|error| StoreError::io("a spare of the log", error))?)
    }

    /// Folds as much as there is room for, step by step, collecting what each replaces.
    fn fold_beside_collections(&self, bytes_a_second: Option<u64>) -> Result<(), EngineError> {
        loop {
            let quick = ReclaimOptions::default();
            self.reclaim_throttled(quick, GcThrottle::new(self, bytes_a_second))?;
            let mut steps = 0;
            let folded = self.flush().and_then(|()| {
                let _fold = Headroom::FoldForCollection.enter();
                self.fold_in_steps(&mut steps)
            });
            match folded {
                Err(error) if !error.is_full() => return Err(error),
                Err(_) if steps > 0 => {}
                _ => return Ok(()),
            }
        }
    }

    fn reclaim_throttled(
        &self,
        options: ReclaimOptions,
        mut limiter: GcThrottle<'_>,
    ) -> Result<GcReport, EngineError> {
        self.collect_throttled(options, &mut |bytes| limiter.throttle(bytes))
    }

    /// Collects as fast as `throttle` has it.
    ///
    /// # Errors
    /// As [`Engine::reclaim`](crate::Engine::reclaim).
    pub fn collect_throttled(
        &self,
        options: ReclaimOptions,
        throttle: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<GcReport, EngineError> {
        let collected = self.store.maintenance().collect(&mut GarbageCollection {
            roots: &mut || self.held_roots(),
            throttle,
            options: GcOptions {
                pack_history: options.thorough || options.purge,
                live_percent_min: if options.purge { PURGE_PERCENT } else { 50 },
                ..Default::default()
            },
        });
        // A failed sync has poisoned the store; the engine's next sync of it finds that.
        let collected = collected?;
        if options.thorough || options.purge {
            let publisher = self.publisher();
            if let Some(copies) = self.store.maintenance().copies().filter(|_| options.purge) {
                copies.clear()?;
            }
            self.copy_metadata(publisher.root, true);
        }
        Ok(collected)
    }

    /// Finds out how much of the store is needed; changes nothing.
    ///
    /// # Errors
    /// [`EngineError::Store`] if something reachable is missing or damaged.
    pub fn gc_dry_run(&self) -> Result<GcReport, EngineError> {
        let options = GcOptions { dry_run: true, ..Default::default() };
        let mut limiter = GcThrottle::new(self, None);
        Ok(self.store.maintenance().collect(&mut GarbageCollection {
            roots: &mut || self.held_roots(),
            throttle: &mut |bytes| limiter.throttle(bytes),
            options,
        })?)
    }

    /// Returns the chunks that are needed besides the store's named roots.
    ///
    /// # Errors
    /// As `PendingView::keep`: the pending chunks can't be packed.
    pub fn held_roots(&self) -> Result<Vec<ChunkHash>, StoreError> {
        let logged = self.published.unpublished.logged_roots();
        let mut roots: HashSet<ChunkHash> = logged.into_iter().collect();
        let mut pending = self.pending.view()?;
        let mut memtables = HashSet::new();
        for state in self.readable_states() {
            add_bases(&state, &mut roots);
            for memtable in state.memtables() {
                // States share most memtables.
                if memtables.insert(Arc::as_ptr(memtable)) {
                    let mut needs = memtable.pending().needs();
                    memtable.for_each_value(|value| match value.content {
                        Content::Inline(_) => {}
                        Content::Chunk { hash, .. } => needs.push(hash),
                        Content::Sequence { root, .. } => needs.push(root),
                    });
                    needs.into_iter().try_for_each(|hash| pending.keep(hash))?;
                }
            }
        }
        roots.extend(pending.into_kept());
        Ok(roots.into_iter().collect())
    }
}

fn add_bases(state: &State, roots: &mut HashSet<ChunkHash>) {
    for (_, generations) in state.trees.iter() {
        roots.extend(
            generations
                .iter()
                .filter_map(|generation| generation.base.as_ref())
                .flat_map(Base::roots),
        );
    }
}

/// Slows a collection down to a rate, and stops it when the engine closes.
pub(crate) struct GcThrottle<'a> {
    shared: &'a Shared,
    bytes_a_second: Option<u64>,
    begun: Instant,
    bytes: u64,
    /// The number of bytes stored with which there is no rate.
    urgent_from: u64,
}

impl<'a> GcThrottle<'a> {
    pub fn new(shared: &'a Shared, bytes_a_second: Option<u64>) -> GcThrottle<'a> {
        GcThrottle { shared, bytes_a_second, begun: steady_now(), bytes: 0, urgent_from: u64::MAX }
    }

    /// As `throttle`; stops where `keep_going` says no, too.
    pub fn throttle_while(
        &mut self,
        bytes: u64,
        keep_going: &mut dyn FnMut() -> bool,
    ) -> ControlFlow<()> {
        yield_now();
        self.bytes += bytes;
        while keep_going() {
            let early = self.early();
            let pause = if early < PAUSE_MIN { Duration::ZERO } else { early.min(PAUSE_MAX) };
            if !self.shared.signals.pause(pause) {
                break;
            }
            if pause == Duration::ZERO {
                return ControlFlow::Continue(());
            }
        }
        ControlFlow::Break(())
    }

    pub fn throttle(&mut self, bytes: u64) -> ControlFlow<()> {
        self.throttle_while(bytes, &mut || true)
    }

    /// Returns how long it takes until what was done is as much as the rate allows.
    fn early(&self) -> Duration {
        let is_urgent = || self.urgent_from <= self.shared.store.counters().bytes_stored;
        let rate = self.bytes_a_second.filter(|_| !is_urgent());
        let due = |rate: u64| Duration::try_from_secs_f64(self.bytes as f64 / rate.max(1) as f64);
        let due = rate.map_or(Duration::ZERO, |rate| due(rate).unwrap_or(Duration::MAX));
        due.saturating_sub(self.begun.elapsed())
    }
}

/// The background thread: lets snapshots that are too old go, renews what reads keep, and collects.
pub(crate) fn reclaim_until_stopped(shared: &Shared) {
    shared.background.throttle.begin();
    let bytes_a_second = shared.options.reclaim_bytes_a_second;
    let options = ReclaimOptions { bytes_a_second, ..ReclaimOptions::default() };
    let age = shared.options.snapshot_seconds_max.map(Duration::from_secs);
    let stored = || shared.store.counters().bytes_stored;
    // The garbage at the opening of the directory is not known: growth alone makes the first
    // collection due.
    let mut due = stored().saturating_add(GROWTH_BYTES_MIN);
    let mut quiet = IdleCollection::new(shared);
    for look in 1u64.. {
        if !shared.signals.pause(LOOK_EVERY.min(quiet.check_interval())) {
            return;
        }
        if let Some(age) = age {
            shared.expire_states(age);
        }
        shared.current.end_leases();
        shared.retained_states.end_idle();
        if look.is_multiple_of(LOOKS_A_RENEWAL) {
            shared.renew_trunks_if_refused();
        }
        match bytes_a_second.map_or(Ok(false), |_| quiet.pack_if_due(shared)) {
            Ok(false) => {}
            Ok(true) => {
                shared.background.errors.end("collection");
                due = stored() + stored() / 2 + GROWTH_BYTES_MIN;
            }
            Err(error) => shared.note_failure("collection", &error),
        }
        if bytes_a_second.is_none() || stored() < due {
            continue;
        }
        let limiter =
            GcThrottle { urgent_from: due + due / 4, ..GcThrottle::new(shared, bytes_a_second) };
        due = match shared.reclaim_throttled(options, limiter) {
            Ok(collected) => {
                shared.background.errors.end("collection");
                collected.bytes_after + collected.bytes_after / 2
            }
            // A full disk or damage: tried again after more growth.
            Err(error) => {
                shared.note_failure("collection", &error);
                stored()
            }
        }
        .saturating_add(GROWTH_BYTES_MIN);
    }
}

impl Shared {
    /// Begins the trees' cached levels anew if one of them was refused room.
    fn renew_trunks_if_refused(&self) {
        let Some(cache) = self.store.read_cache() else { return };
        // Both are asked, so that each begins anew.
        if cache.link_budget().take_refused() | cache.pin_budget().take_refused() {
            self.current.change(|state, _| state.renew_cached_levels());
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use frond_tree::{Entry, Tree, Value};

    use super::*;
    use crate::{Durability, Engine, EngineOptions};

    #[test]
    fn room_goes_to_what_is_read_now() {
        let disk = frond_testkit::SimDisk::new(0);
        let options = EngineOptions { cache_bytes: 1 << 20, ..EngineOptions::default() };
        let engine = Engine::open(&disk.machine(), options).unwrap();
        let key = |number: u32| Bytes::from(format!("{number:06}"));
        let value = Value::inline(vec![7; 1000]);
        let trees = [engine.reserve_tree_id(), engine.reserve_tree_id()];
        let mut transaction = engine.begin();
        for tree in trees {
            let entry = |number| Ok(Entry { key: key(number), value: value.clone() });
            let store = &**engine.store();
            let base = Tree::build(store, engine.local_format(), &mut (0..5000).map(entry));
            transaction.set_base(tree, base.unwrap()).unwrap();
        }
        transaction.commit(Durability::Synced).unwrap();
        let read = |tree| {
            let snapshot = engine.snapshot();
            for number in 0..5000 {
                assert_eq!(snapshot.get(tree, &key(number)).unwrap().as_ref(), Some(&value));
            }
        };
        let is_grown = |tree| {
            let (state, _) = engine.shared().current.state();
            let base = state.trees.get(tree)[0].base.as_ref().unwrap();
            base.tree.is_grown()
        };
        read(trees[0]);
        read(trees[1]);
        assert!(is_grown(trees[0]), "the first takes the room");
        engine.shared().renew_trunks_if_refused();
        assert!(!is_grown(trees[0]) && !is_grown(trees[1]));
        read(trees[1]);
        assert!(is_grown(trees[1]));
        let store = &engine.shared().store;
        _ = (
            store.read_cache().unwrap().link_budget().take_refused(),
            store.read_cache().unwrap().pin_budget().take_refused(),
        );
        engine.shared().renew_trunks_if_refused();
        assert!(is_grown(trees[1]), "no tree was refused");
    }

    #[test]
    fn a_rate_is_kept() {
        let disk = frond_testkit::SimDisk::new(0);
        let engine = crate::Engine::open(&disk.machine(), Default::default()).unwrap();
        let begun = Instant::now();
        let mut limiter = GcThrottle::new(engine.shared(), Some(1 << 20));
        for _ in 0..10 {
            assert_eq!(limiter.throttle(10 << 10), ControlFlow::Continue(()));
        }
        assert!(Duration::from_millis(90) <= begun.elapsed(), "100 KB at 1 MB a second");
        let mut slow = GcThrottle::new(engine.shared(), Some(1));
        let mut times = 0;
        let stopped = slow.throttle_while(8 << 20, &mut || {
            times += 1;
            times < 3
        });
        assert_eq!((stopped, times), (ControlFlow::Break(()), 3), "a pause of 97 days ends");
        engine.close().unwrap();
        assert_eq!(limiter.throttle(1), ControlFlow::Break(()));
    }
}
