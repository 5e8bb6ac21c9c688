//! A running member: its threads, and what they pass to each other.
//!
//! 1. A thread that has something for the [`Member`] (a frame, a request, a sync that has ended, a
//!    tick) leaves it in the inbox and *steps* the member, unless another thread does, which finds
//!    it there ([`stepping`]). So nothing waits for a thread to be woken that would only pass it
//!    on. A step never waits for a disk or a peer.
//! 2. `frond-quorum` ticks, and steps where much arrives: the others have work of their own.
//! 3. `frond-quorum-log` appends and syncs batches: all that wait, with one sync.
//! 4. `frond-quorum-apply` hands committed entries to the [`Applier`], in their order. If that is
//!    slow, entries aren't kept in memory for it: it gets them from the log.
//!
//! After a write or sync that failed the member stops for good: what its disk holds is unknown. The
//! process must end, and open the log anew.

mod applying;
mod stepping;

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use frond_store::StoreError;

use crate::configuration::Change;
use crate::entry::Entry;
use crate::ids::{EntryIndex, MemberId};
use crate::log::{Batch, Log};
use crate::member::{BatchNumber, Member, Refused, Status};
use applying::{Unapplied, apply_entries};
use stepping::{Inbox, Stepper, tick_until_stopped};

const NO_PANIC: &str = "no panic while the lock is held";
const PANICKED: &str = "a thread of the quorum panicked";

/// The way to other members.
pub trait Peers: Send + Sync {
    /// Sends a frame, or drops it; never waits.
    fn send(&self, to: MemberId, frame: Bytes);
}

/// Applies committed entries.
pub trait Applier: Send {
    /// Takes an entry: each once, in their order, from the one after those that the [`Member`]
    /// considers applied. A leader's may come a tick late: its proposer has applied them.
    fn apply(&mut self, entry: Entry);
}

/// The reason why a request has no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RequestError {
    /// Nothing was done.
    #[error("{0}")]
    Refused(#[from] Refused),
    /// It was begun, and this member doesn't lead any more, or was stopped: it may be done yet, or
    /// never.
    #[error("this member ceased to lead: what became of it isn't known")]
    Unknown,
}

type Answer = SyncSender<Result<EntryIndex, RequestError>>;

/// A proposal on its way.
pub struct Proposal(Receiver<Result<EntryIndex, RequestError>>);

impl Proposal {
    /// Waits until it is committed; returns where.
    ///
    /// # Errors
    /// [`RequestError`], which says whether it may be committed yet.
    pub fn wait(self) -> Result<EntryIndex, RequestError> {
        // Without an answer its thread has ended.
        self.0.recv().unwrap_or(Err(RequestError::Unknown))
    }

    /// The same, for so long at most; `None`: there is no answer yet.
    pub fn wait_for(&self, longest: Duration) -> Option<Result<EntryIndex, RequestError>> {
        match self.0.recv_timeout(longest) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Disconnected) => Some(Err(RequestError::Unknown)),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }
}

/// A member that runs.
///
/// *Thread safety*: all methods may be called at once. No lock is taken while another is held.
pub struct Running {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    log: Arc<dyn Log>,
    peers: Arc<dyn Peers>,
    tick: Duration,
    inbox: Mutex<Inbox>,
    /// The thread that ticks is to step, or all are to stop; or no thread steps any more.
    called: Condvar,
    batches: Mutex<Batches>,
    batch_came: Condvar,
    unapplied: Mutex<Unapplied>,
    committed: Condvar,
    status: Mutex<Status>,
    status_changed: Condvar,
}

enum Request {
    Propose(Bytes),
    Change(Change),
    Read,
    HandOver(MemberId),
    Lost(MemberId),
    StandLate(bool),
    Announce,
    /// Forget entries up to this one: the log is about to be cut.
    Compact(EntryIndex),
}

#[derive(Default)]
struct Batches {
    waiting: Vec<(BatchNumber, Batch)>,
    stopped: bool,
}

impl Running {
    /// Starts a member, whose entries up to `applied` were applied. It is ticked once each `tick`:
    /// a tenth of a second, but for tests.
    ///
    /// # Errors
    /// [`StoreError::Io`] if there can't be more threads.
    pub fn start(
        member: Member,
        log: Arc<dyn Log>,
        applied: EntryIndex,
        peers: Arc<dyn Peers>,
        applier: Box<dyn Applier>,
        tick: Duration,
    ) -> Result<Running, StoreError> {
        let shared = Arc::new(Shared {
            log,
            peers,
            tick,
            inbox: Mutex::default(),
            called: Condvar::new(),
            batches: Mutex::default(),
            batch_came: Condvar::new(),
            unapplied: Mutex::new(Unapplied::behind(applied)),
            committed: Condvar::new(),
            status: Mutex::new(member.status()),
            status_changed: Condvar::new(),
        });
        shared.inbox().stepper = Some(Box::new(Stepper::new(member)));
        let running = Running { shared, threads: Mutex::default() };
        running.spawn("frond-quorum", tick_until_stopped)?;
        running.spawn("frond-quorum-log", write_batches)?;
        running
            .spawn("frond-quorum-apply", move |shared| apply_entries(shared, applied, applier))?;
        Ok(running)
    }

    #[expect(clippy::disallowed_methods, reason = "these outlive the call: `stop` joins them")]
    fn spawn(
        &self,
        name: &str,
        run: impl FnOnce(&Shared) + Send + 'static,
    ) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        let handle = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let stop = StopAll(&shared);
                run(&shared);
                drop(stop);
            })
            .map_err(|error| StoreError::io(format!("thread {name}"), error))?;
        self.threads.lock().expect(NO_PANIC).push(handle);
        Ok(())
    }

    /// Takes a frame from the authenticated member `from`.
    pub fn receive(&self, from: MemberId, frame: Bytes) {
        self.shared.step_with(|inbox| inbox.take_frame(from, frame));
    }

    /// Proposes an entry. Proposals of one thread are committed in their order.
    pub fn propose(&self, bytes: Bytes) -> Proposal {
        self.request(Request::Propose(bytes))
    }

    /// Proposes a change of the members.
    ///
    /// # Errors
    /// As [`Proposal::wait`].
    pub fn change(&self, change: Change) -> Result<EntryIndex, RequestError> {
        self.request(Request::Change(change)).wait()
    }

    /// Waits until all that was committed before this call is applied here.
    ///
    /// # Errors
    /// [`RequestError`] if this member doesn't lead, or not until there is an answer.
    pub fn read(&self) -> Result<EntryIndex, RequestError> {
        self.begin_read().wait()
    }

    /// As [`Running::read`], and doesn't wait.
    pub fn begin_read(&self) -> Proposal {
        self.request(Request::Read)
    }

    /// Notes that a member's process has ended, as far as its connections show: see
    /// [`Member::lost`]. Doesn't wait.
    pub fn lost(&self, member: MemberId) {
        drop(self.request(Request::Lost(member)));
    }

    /// Has this member stand for election late, or as others: see [`Member::stand_late`]. Doesn't
    /// wait.
    pub fn stand_late(&self, late: bool) {
        drop(self.request(Request::StandLate(late)));
    }

    /// Has the others learn at once what is committed, where no proposal follows soon: see
    /// [`Member::announce`]. Doesn't wait.
    pub fn announce(&self) {
        drop(self.request(Request::Announce));
    }

    /// Begins to hand over to another member.
    ///
    /// # Errors
    /// [`RequestError::Refused`].
    pub fn hand_over(&self, to: MemberId) -> Result<(), RequestError> {
        self.request(Request::HandOver(to)).wait().map(drop)
    }

    /// Whether a cut would give back much.
    pub fn is_long(&self, bytes_max: u64) -> bool {
        let held = self.status().held_by_all;
        self.shared.log.compaction_point(self.handed_out(), held, bytes_max).is_some()
    }

    /// Returns the entry up to which entries were handed to the applier: these are in the log,
    /// durably.
    pub fn handed_out(&self) -> EntryIndex {
        self.shared.unapplied.lock().expect(NO_PANIC).applied
    }

    /// Cuts the log where that gives back much: up to `applied` at most, where what was applied is
    /// durable without the log, and up to where all members hold it, or else it would be longer
    /// than `bytes_max`. To be called by one thread.
    ///
    /// # Errors
    /// An error of the disk; the log is as it was, or the member stops.
    pub fn compact(&self, applied: EntryIndex, bytes_max: u64) -> Result<(), StoreError> {
        let handed_out = self.handed_out();
        let (up_to, held) = (applied.min(handed_out), self.status().held_by_all);
        match self.shared.log.compaction_point(up_to, held, bytes_max) {
            Some(place) if self.request(Request::Compact(place)).wait().is_ok() => {
                self.shared.log.compact(place)
            }
            _ => Ok(()),
        }
    }

    /// Cuts the log up to an entry that was handed out, wherever it is held, and however little
    /// that gives back. A member that lacks it needs a copy. To be called by the thread that cuts.
    ///
    /// # Errors
    /// As [`Running::compact`].
    pub fn compact_to(&self, up_to: EntryIndex) -> Result<(), StoreError> {
        let up_to = up_to.min(self.handed_out());
        match self.request(Request::Compact(up_to)).wait() {
            Ok(_) => self.shared.log.compact(up_to),
            Err(_) => Ok(()),
        }
    }

    fn request(&self, request: Request) -> Proposal {
        let (answer, answers) = sync_channel(1);
        self.shared.step_with(|inbox| inbox.take_request(request, answer));
        Proposal(answers)
    }

    /// Returns the member's status.
    pub fn status(&self) -> Status {
        self.shared.status.lock().expect(NO_PANIC).clone()
    }

    /// Waits until things are as `wanted`, for so long at most. Returns how they are. What is
    /// `wanted` mustn't depend on how far entries are alone ([`Status::is_other_than`]).
    pub fn await_status(&self, longest: Duration, wanted: impl Fn(&Status) -> bool) -> Status {
        let status = self.shared.status.lock().expect(NO_PANIC);
        let waited = self
            .shared
            .status_changed
            .wait_timeout_while(status, longest, |status| !wanted(status));
        waited.expect(NO_PANIC).0.clone()
    }

    /// Returns why the member has stopped of its own accord, if it has.
    pub fn fault(&self) -> Option<String> {
        self.shared.inbox().fault.clone()
    }

    /// Ends the threads. Requests that wait for an answer get [`RequestError::Unknown`].
    pub fn stop(&self) {
        self.shared.stop(None);
        let threads = std::mem::take(&mut *self.threads.lock().expect(NO_PANIC));
        for thread in threads {
            if thread.join().is_err() {
                self.shared.stop(Some(PANICKED));
            }
        }
        self.shared.await_steps();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Stops all threads when one of them ends.
struct StopAll<'a>(&'a Shared);

impl Drop for StopAll<'_> {
    fn drop(&mut self) {
        let panics = std::thread::panicking();
        self.0.stop(panics.then_some(PANICKED));
    }
}

impl Shared {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().expect(NO_PANIC)
    }

    fn stop(&self, fault: Option<&str>) {
        let stepper = self.inbox().stop(fault);
        // Its requests have no answer from now on.
        drop(stepper);
        self.called.notify_all();
        self.batches.lock().expect(NO_PANIC).stopped = true;
        self.batch_came.notify_all();
        let mut unapplied = self.unapplied.lock().expect(NO_PANIC);
        unapplied.stopped = true;
        unapplied.reads.clear();
        drop(unapplied);
        self.committed.notify_all();
    }
}

/// Gives the one answer that there is; the caller may have gone.
fn answer_once(answer: &Answer, given: Result<EntryIndex, RequestError>) {
    let _ = answer.try_send(given);
}

fn write_batches(shared: &Shared) {
    loop {
        let mut batches = shared.batches.lock().expect(NO_PANIC);
        while batches.waiting.is_empty() && !batches.stopped {
            batches = shared.batch_came.wait(batches).expect(NO_PANIC);
        }
        if batches.stopped {
            return;
        }
        let waiting = std::mem::take(&mut batches.waiting);
        drop(batches);
        let written = waiting.iter().try_for_each(|(_, batch)| shared.log.append(batch));
        if let Err(error) = written.and_then(|()| shared.log.sync()) {
            return shared.stop(Some(&format!("the quorum's log: {error}")));
        }
        let number = waiting.last().map(|(number, _)| *number);
        shared.step_with(|inbox| inbox.take_synced(number));
    }
}

#[cfg(test)]
mod tests;
