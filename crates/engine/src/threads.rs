//! The engine's threads: one flushes memtables, some fold and merge runs, one syncs relaxed
//! transactions, one leads groups of commits that no thread waits for, one collects garbage, one
//! scrubs, and one sends packs to the store's tier, if it has one.
//!
//! Flushing has a thread of its own, so that no fold, however long, holds it up. Flushing, folding
//! and reclaiming let others go first where processors are short (`throttle`), as long as they
//! don't fall behind. The syncing thread doesn't: commits wait for it.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use frond_store::StoreError;
use frond_tree::TreeError;

use crate::background::errors::Backoff;
use crate::commit::PoisonOnPanic;
use crate::error::EngineError;
use crate::gc::reclaim::reclaim_until_stopped;
use crate::gc::scrub::scrub_until_stopped;
use crate::ids::Sequence;
use crate::queue::Refusal;
use crate::shared::Shared;

/// A flush that failed is tried again so soon: writers wait for it, and get the error after the
/// second failure.
const FLUSH_PAUSE_MAX: Duration = Duration::from_secs(1);

/// The end of the log is marked when nothing was written for so long, or twice that.
const MARK_AFTER: Duration = Duration::from_secs(1);

/// The interval at which the flushing thread looks for flushed memtables that no other thread holds
/// any more.
const FREE_EVERY: Duration = Duration::from_millis(20);

/// The running threads; dropping it stops them.
pub(crate) struct Threads {
    shared: Arc<Shared>,
    handles: Mutex<Vec<JoinHandle<()>>>,
}

impl Threads {
    /// Starts the threads.
    ///
    /// # Errors
    /// [`EngineError::Store`] if the system gives no thread.
    pub fn start(shared: &Arc<Shared>) -> Result<Threads, EngineError> {
        let threads = Threads { shared: Arc::clone(shared), handles: Mutex::new(Vec::new()) };
        if shared.options.fold_threads > 0 {
            threads.spawn("frond-flush", flush_until_stopped)?;
        }
        for _ in 0..shared.options.fold_threads {
            threads.spawn("frond-fold", fold_until_stopped)?;
        }
        let beside_max = shared.queue().beside_max;
        for _ in 0..beside_max.unwrap_or(0) {
            threads.spawn("frond-put", Shared::lead_until_closed)?;
        }
        if beside_max.is_none() {
            threads.spawn("frond-lead", Shared::lead_handed_on_until_closed)?;
        }
        threads.spawn("frond-sync", sync_until_stopped)?;
        threads.spawn("frond-reclaim", reclaim_until_stopped)?;
        threads.spawn("frond-scrub", scrub_until_stopped)?;
        if shared.options.fold_threads > 0 && shared.store.maintenance().is_tiered() {
            threads.spawn("frond-send", send_until_stopped)?;
        }
        Ok(threads)
    }

    #[expect(clippy::disallowed_methods, reason = "these outlive the call: `close` joins them")]
    fn spawn(&self, name: &str, run: fn(&Shared)) -> Result<(), EngineError> {
        let shared = Arc::clone(&self.shared);
        let handle = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(&shared))
            .map_err(|error| StoreError::io(format!("thread {name}"), error))?;
        self.handles.lock().expect("no panic while the lock is held").push(handle);
        Ok(())
    }

    /// Has a bucket that has the log waited for only for moments from now on.
    pub fn begin_close(&self) {
        if self.shared.queue().beside_max.is_some() {
            // Without it the close takes as long as the bucket is silent.
            let _ = self.spawn("frond-close", Shared::give_up_when_silent);
        }
    }

    /// Makes everything durable, refuses later writes and waits for the threads to end.
    ///
    /// # Errors
    /// [`EngineError::Closed`] if a sync failed before or now, or a thread panicked;
    /// [`EngineError::Store`] if the disk is full, or spare segments can't be removed. The threads
    /// have ended all the same.
    pub fn close(&self) -> Result<(), EngineError> {
        self.begin_close();
        let made_durable = self.shared.make_durable(Sequence(u64::MAX));
        self.shared.mark_log();
        self.shared.end("the engine was closed");
        self.shared.signals.stop();
        self.shared.store.maintenance().stop_sending();
        let handles =
            std::mem::take(&mut *self.handles.lock().expect("no panic while the lock is held"));
        for handle in handles {
            if handle.join().is_err() {
                let reason = "a background thread panicked".to_owned();
                return Err(EngineError::Closed(reason));
            }
        }
        // An opening would only remove them.
        let removed = self.shared.recycled.none().map(drop);
        made_durable?;
        Ok(removed.map_err(|error| StoreError::io("a spare of the log", error))?)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // A caller that wants to know whether this worked calls `close` before.
        let _ = self.close();
    }
}

fn flush_until_stopped(shared: &Shared) {
    shared.background.throttle.begin();
    let _panics = PoisonOnPanic(shared);
    let mut free_every = None;
    let mut pause = None;
    while shared.signals.wait_for_flush(free_every) {
        free_every = shared.free_flushed().then_some(FREE_EVERY);
        let flushed = shared.background.workers.run(|| shared.flush_sealed());
        match flushed {
            Ok(_) => {
                pause = None;
                shared.signals.flush_succeeded();
                shared.background.errors.end("flush");
            }
            Err(error) => {
                shared.note_failure("flush", &error);
                if error.is_full() {
                    // A follower of the log learns that it is gone.
                    let _ = shared.trim_log_to(0);
                }
                shared.signals.flush_failed(refusal(&error));
                let length = pause.insert(Backoff::after(pause, FLUSH_PAUSE_MAX)).length();
                if !shared.signals.pause(length) {
                    return;
                }
            }
        }
    }
}

fn send_until_stopped(shared: &Shared) {
    let maintenance = shared.store.maintenance();
    let mut is_failing = false;
    maintenance.send_until_stopped(&mut |sent| match sent {
        Ok(()) => {
            if std::mem::take(&mut is_failing) {
                shared.background.errors.report_line("the store takes packs again");
            }
        }
        Err(error) => {
            shared.note_failed_send(error, !std::mem::replace(&mut is_failing, true));
        }
    });
}

fn fold_until_stopped(shared: &Shared) {
    shared.background.throttle.begin();
    let _panics = PoisonOnPanic(shared);
    // The generation at the time when there was nothing to do.
    let mut idle_since = None;
    while shared.signals.wait_for_work(idle_since, shared.next_try()) {
        let generation = shared.signals.work_generation();
        // A tree for which it failed is put off; there may be others.
        let is_idle = matches!(shared.background.workers.run(|| shared.work_once()), Ok(false));
        idle_since = is_idle.then_some(generation);
    }
}

fn sync_until_stopped(shared: &Shared) {
    let interval = Duration::from_millis(shared.options.relaxed_sync_millis);
    let mut durable = None;
    loop {
        if !shared.signals.wait_for_sync(MARK_AFTER) {
            return;
        }
        let is_wanted = shared.signals.take_sync();
        if !is_wanted {
            // At the end only where nothing was written for as long: the next record says so.
            let now = shared.queue().durable;
            match durable.replace(now) == Some(now) {
                true => shared.mark_log(),
                false => shared.mark_log_ahead(),
            }
            if let Err(error) = shared.trim_log() {
                shared.note_failure("trim", &error.into());
            }
            continue;
        }
        if !shared.signals.pause(interval) {
            return; // Closing has synced already.
        }
        match shared.make_durable(Sequence(u64::MAX)) {
            Ok(()) => shared.background.errors.end("sync"),
            // A full disk: try again after the interval. A closed engine: stopped soon.
            Err(error) => {
                shared.note_failure("sync", &error);
                shared.signals.want_sync();
            }
        }
    }
}

fn refusal(error: &EngineError) -> Refusal {
    match error {
        EngineError::Store(error) | EngineError::Tree(TreeError::Store(error)) => {
            Refusal::new(error)
        }
        other => Refusal::new(&StoreError::io("folding", std::io::Error::other(other.to_string()))),
    }
}
