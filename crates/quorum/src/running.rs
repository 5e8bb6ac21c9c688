//! A running member: its threads, and what they pass to each other.
//!
//! 1. `frond-quorum` owns the [`Member`]. It ticks, takes frames and requests, and never waits for
//!    a disk or a peer.
//! 2. `frond-quorum-log` appends and syncs batches: all that wait, with one sync.
//! 3. `frond-quorum-apply` hands committed entries to the [`Applier`], in their order. If that is
//!    slow, entries aren't kept in memory for it: it gets them from the log.
//!
//! After a write or sync that failed the member stops for good: what its disk holds is unknown. The
//! process must end, and open the log anew.

mod applying;

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use frond_store::StoreError;
use frond_store::io::steady_now;

use crate::configuration::Change;
use crate::entry::Entry;
use crate::ids::{EntryIndex, MemberId, Term};
use crate::log::{Batch, Log};
use crate::member::{BatchNumber, Member, ReadId, Refused, Role, Status, Work};
use applying::{Unapplied, apply_entries};

/// Frames that wait hold so many bytes at most; more are dropped, and sent again some time.
const FRAMES_BYTES_MAX: usize = 64 << 20;
const NO_PANIC: &str = "no panic while the lock is held";

/// The way to other members.
pub trait Peers: Send + Sync {
    /// Sends a frame, or drops it; never waits.
    fn send(&self, to: MemberId, frame: Bytes);
}

/// Applies committed entries.
pub trait Applier: Send {
    /// Takes an entry: each once, in their order, from the one after those that the [`Member`]
    /// considers applied.
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
    arrived: Condvar,
    batches: Mutex<Batches>,
    batch_came: Condvar,
    unapplied: Mutex<Unapplied>,
    committed: Condvar,
    status: Mutex<Status>,
    status_changed: Condvar,
}

#[derive(Default)]
struct Inbox {
    frames: VecDeque<(MemberId, Bytes)>,
    frames_bytes: usize,
    requests: VecDeque<(Request, Answer)>,
    synced: Option<BatchNumber>,
    stopped: bool,
    fault: Option<String>,
}

enum Request {
    Propose(Bytes),
    Change(Change),
    Read,
    HandOver(MemberId),
    Lost(MemberId),
    StandLate(bool),
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
            arrived: Condvar::new(),
            batches: Mutex::default(),
            batch_came: Condvar::new(),
            unapplied: Mutex::new(Unapplied::behind(applied)),
            committed: Condvar::new(),
            status: Mutex::new(member.status()),
            status_changed: Condvar::new(),
        });
        let running = Running { shared, threads: Mutex::default() };
        let step =
            MemberThread { member, pending: BTreeMap::new(), reads: BTreeMap::new(), next_read: 1 };
        running.spawn("frond-quorum", move |shared| step.run(shared))?;
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
        let mut inbox = self.shared.inbox();
        if inbox.frames.is_empty() || inbox.frames_bytes + frame.len() <= FRAMES_BYTES_MAX {
            inbox.frames_bytes += frame.len();
            inbox.frames.push_back((from, frame));
            drop(inbox);
            self.shared.arrived.notify_one();
        }
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
        let mut inbox = self.shared.inbox();
        if !inbox.stopped {
            inbox.requests.push_back((request, answer));
        }
        drop(inbox);
        self.shared.arrived.notify_one();
        Proposal(answers)
    }

    /// Returns the member's status.
    pub fn status(&self) -> Status {
        self.shared.status.lock().expect(NO_PANIC).clone()
    }

    /// Waits until things are as `wanted`, for so long at most. Returns how they are.
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
                self.shared.stop(Some("a thread of the quorum panicked"));
            }
        }
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
        self.0.stop(panics.then_some("a thread of the quorum panicked"));
    }
}

impl Shared {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().expect(NO_PANIC)
    }

    fn stop(&self, fault: Option<&str>) {
        let mut inbox = self.inbox();
        inbox.stopped = true;
        inbox.requests.clear();
        if let Some(fault) = fault {
            inbox.fault.get_or_insert_with(|| fault.to_owned());
        }
        drop(inbox);
        self.arrived.notify_all();
        self.batches.lock().expect(NO_PANIC).stopped = true;
        self.batch_came.notify_all();
        let mut unapplied = self.unapplied.lock().expect(NO_PANIC);
        unapplied.stopped = true;
        unapplied.reads.clear();
        drop(unapplied);
        self.committed.notify_all();
    }
}

/// The thread that owns the member.
struct MemberThread {
    member: Member,
    /// The proposals of this member's present term that aren't committed.
    pending: BTreeMap<EntryIndex, (Term, Answer)>,
    reads: BTreeMap<ReadId, Answer>,
    next_read: u64,
}

impl MemberThread {
    fn run(mut self, shared: &Shared) {
        let mut tick_at = steady_now() + shared.tick;
        while let Some(arrived) = await_arrivals(shared, tick_at) {
            for (from, frame) in arrived.frames {
                // A frame that isn't understood is as good as lost.
                let _ = self.member.receive(from, &frame);
            }
            if let Some(number) = arrived.synced {
                self.member.synced(number);
            }
            if tick_at <= steady_now() {
                // Ticks that were missed are: what wasn't heard meanwhile is still in the inbox.
                tick_at = steady_now() + shared.tick;
                self.member.tick();
            }
            for (request, answer) in arrived.requests {
                self.take(request, answer);
            }
            while let Some(work) = self.member.take() {
                self.hand_out(shared, work);
            }
            self.answer(shared);
        }
    }

    fn take(&mut self, request: Request, answer: Answer) {
        let place = match request {
            Request::Propose(bytes) => self.member.propose(bytes),
            Request::Change(change) => self.member.change(change),
            Request::Read => {
                let read = ReadId(self.next_read);
                self.next_read += 1;
                match self.member.read(read) {
                    Ok(()) => {
                        self.reads.insert(read, answer);
                        return;
                    }
                    Err(refused) => Err(refused),
                }
            }
            Request::Compact(up_to) => {
                self.member.compact(up_to);
                answer_once(&answer, Ok(up_to));
                return;
            }
            // No caller waits for an answer to these.
            Request::Lost(lost) => return self.member.lost(lost),
            Request::StandLate(late) => return self.member.stand_late(late),
            Request::HandOver(to) => match self.member.hand_over(to) {
                Ok(()) => {
                    answer_once(&answer, Ok(EntryIndex::ZERO));
                    return;
                }
                Err(refused) => Err(refused),
            },
        };
        match place {
            Ok((index, term)) => {
                self.pending.insert(index, (term, answer));
            }
            Err(refused) => answer_once(&answer, Err(refused.into())),
        }
    }

    fn hand_out(&mut self, shared: &Shared, work: Work) {
        let Work { frames, batch, committed, reads } = work;
        for (to, frame) in frames {
            shared.peers.send(to, frame);
        }
        if let Some(batch) = batch {
            shared.batches.lock().expect(NO_PANIC).waiting.push(batch);
            shared.batch_came.notify_one();
        }
        if committed.is_empty() && reads.is_empty() {
            return;
        }
        let mut unapplied = shared.unapplied.lock().expect(NO_PANIC);
        committed.into_iter().for_each(|entry| unapplied.add(entry));
        for (read, index) in reads {
            let answer = self.reads.remove(&read);
            unapplied.reads.extend(answer.map(|answer| (index, answer)));
        }
        drop(unapplied);
        shared.committed.notify_one();
    }

    /// Answers reads and proposals that are committed, or can't be decided any more; reports the
    /// status.
    fn answer(&mut self, shared: &Shared) {
        let status = self.member.status();
        let leads = status.role == Role::Leader;
        while let Some(first) = self.pending.first_entry() {
            let still_leads = leads && first.get().0 == status.term;
            let answer = match (still_leads, *first.key() <= status.committed) {
                (true, true) => Ok(*first.key()),
                (true, false) => break,
                (false, _) => Err(RequestError::Unknown),
            };
            let (_, sender) = first.remove();
            answer_once(&sender, answer);
        }
        if !leads {
            self.reads.clear();
        }
        let mut published = shared.status.lock().expect(NO_PANIC);
        if *published != status {
            *published = status;
            drop(published);
            shared.status_changed.notify_all();
        }
    }
}

/// Gives the one answer that there is; the caller may have gone.
fn answer_once(answer: &Answer, given: Result<EntryIndex, RequestError>) {
    let _ = answer.try_send(given);
}

/// Waits until something arrives or it is time to tick, and returns the arrivals; `None` when it is
/// time to stop.
fn await_arrivals(shared: &Shared, tick_at: Instant) -> Option<Inbox> {
    let mut inbox = shared.inbox();
    loop {
        if inbox.stopped {
            return None;
        }
        let is_empty =
            inbox.frames.is_empty() && inbox.requests.is_empty() && inbox.synced.is_none();
        let left = tick_at.saturating_duration_since(steady_now());
        if !is_empty || left.is_zero() {
            return Some(std::mem::take(&mut *inbox));
        }
        inbox = shared.arrived.wait_timeout(inbox, left).expect(NO_PANIC).0;
    }
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
        shared.inbox().synced = waiting.last().map(|(number, _)| *number);
        shared.arrived.notify_one();
    }
}

#[cfg(test)]
mod tests;
