//! Steps of the [`Member`]: one thread at a time takes what has arrived, and hands out the work.
//!
//! 1. What arrives is put into the [`Inbox`], under its lock, by the thread that has it. That
//!    thread takes the [`Stepper`] out of the inbox, if it is there, and steps until the inbox is
//!    empty; then it puts the stepper back. If it isn't there another thread steps, and finds what
//!    has arrived when it looks again.
//! 2. A thread steps a few times only ([`STEPS_MAX`]): then it calls the one that ticks.
//! 3. A step hands out frames, batches, committed entries and answers with no lock held. What is
//!    called for that may bring something for the inbox: it stays there until the step has ended.
//!
//! *Invariants*
//! 1. At most one thread has the stepper, so work is handed out in the order in which the member
//!    gave it.
//! 2. Where the stepper is in the inbox, either that is empty, or `frond-quorum` was called.
//! 3. A thread that panics while it steps stops all of them: the stepper is gone with it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::MutexGuard;

use bytes::Bytes;
use frond_store::io::steady_now;

use super::{Answer, NO_PANIC, PANICKED, Request, RequestError, Shared, answer_once};
use crate::ids::{EntryIndex, MemberId, Term};
use crate::member::{BatchNumber, Member, ReadId, Role, Work};

/// Frames that wait hold so many bytes at most; more are dropped, and sent again some time.
const FRAMES_BYTES_MAX: usize = 64 << 20;
/// A thread that has other things to do steps so often.
const STEPS_MAX: u32 = 4;

/// What waits for the member, and the member itself.
#[derive(Default)]
pub(super) struct Inbox {
    /// Absent while a thread steps, and once all is stopped.
    pub stepper: Option<Box<Stepper>>,
    arrivals: Arrivals,
    /// Whether a thread steps.
    is_stepping: bool,
    /// Whether the thread that ticks is to step.
    is_called: bool,
    pub stopped: bool,
    pub fault: Option<String>,
}

/// What has arrived since the last step.
#[derive(Default)]
struct Arrivals {
    frames: VecDeque<(MemberId, Bytes)>,
    frames_bytes: usize,
    requests: VecDeque<(Request, Answer)>,
    synced: Option<BatchNumber>,
    is_tick_due: bool,
}

impl Arrivals {
    fn is_empty(&self) -> bool {
        let is_silent = self.frames.is_empty() && self.requests.is_empty();
        is_silent && self.synced.is_none() && !self.is_tick_due
    }
}

impl Inbox {
    /// Takes a frame, or drops it.
    pub fn take_frame(&mut self, from: MemberId, frame: Bytes) {
        let arrivals = &mut self.arrivals;
        if arrivals.frames.is_empty() || arrivals.frames_bytes + frame.len() <= FRAMES_BYTES_MAX {
            arrivals.frames_bytes += frame.len();
            arrivals.frames.push_back((from, frame));
        }
    }

    /// Takes a request; without an answer, if all is stopped.
    pub fn take_request(&mut self, request: Request, answer: Answer) {
        if !self.stopped {
            self.arrivals.requests.push_back((request, answer));
        }
    }

    /// All batches up to this one are durable.
    pub fn take_synced(&mut self, number: Option<BatchNumber>) {
        self.arrivals.synced = number.or(self.arrivals.synced);
    }

    /// Takes no more. Returns the stepper, if no thread has it.
    pub fn stop(&mut self, fault: Option<&str>) -> Option<Box<Stepper>> {
        self.stopped = true;
        self.arrivals = Arrivals::default();
        if let Some(fault) = fault {
            self.fault.get_or_insert_with(|| fault.to_owned());
        }
        self.stepper.take()
    }
}

impl Shared {
    /// Puts something into the inbox, and steps, unless another thread does.
    pub(super) fn step_with(&self, put: impl FnOnce(&mut Inbox)) {
        let mut inbox = self.inbox();
        put(&mut inbox);
        self.step(inbox, STEPS_MAX);
    }

    /// Steps so often at most, unless another thread does.
    fn step<'a>(&'a self, mut inbox: MutexGuard<'a, Inbox>, steps_max: u32) {
        let Some(mut stepper) = inbox.stepper.take() else { return };
        inbox.is_stepping = true;
        let mut steps = 0;
        while !inbox.stopped && !inbox.arrivals.is_empty() {
            if steps == steps_max {
                inbox.is_called = true;
                break;
            }
            steps += 1;
            let arrivals = std::mem::take(&mut inbox.arrivals);
            drop(inbox);
            let stops = StopAtPanic(self);
            stepper.step(self, arrivals);
            drop(stops);
            inbox = self.inbox();
        }
        inbox.is_stepping = false;
        let notifies = inbox.is_called || inbox.stopped;
        let ended = match inbox.stopped {
            true => Some(stepper),
            false => {
                inbox.stepper = Some(stepper);
                None
            }
        };
        drop(inbox);
        drop(ended);
        if notifies {
            self.called.notify_all();
        }
    }

    /// Waits until no thread steps any more; once all is stopped, by a thread that doesn't.
    pub(super) fn await_steps(&self) {
        let mut inbox = self.inbox();
        while inbox.is_stepping {
            inbox = self.called.wait(inbox).expect(NO_PANIC);
        }
    }
}

/// Stops everything if the thread panics while it steps.
struct StopAtPanic<'a>(&'a Shared);

impl Drop for StopAtPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.inbox().is_stepping = false;
            self.0.stop(Some(PANICKED));
        }
    }
}

/// Ticks, and steps when it is called to.
pub(super) fn tick_until_stopped(shared: &Shared) {
    let mut tick_at = steady_now() + shared.tick;
    loop {
        let mut inbox = shared.inbox();
        loop {
            if inbox.stopped {
                return;
            }
            let now = steady_now();
            if tick_at <= now {
                // Ticks that were missed are: what wasn't heard meanwhile is still in the inbox.
                tick_at = now + shared.tick;
                inbox.arrivals.is_tick_due = true;
                break;
            }
            if inbox.is_called {
                break;
            }
            inbox = shared.called.wait_timeout(inbox, tick_at - now).expect(NO_PANIC).0;
        }
        inbox.is_called = false;
        shared.step(inbox, u32::MAX);
    }
}

/// The member, and what it owes answers to.
pub(super) struct Stepper {
    member: Member,
    /// The proposals of this member's present term that aren't committed.
    pending: BTreeMap<EntryIndex, (Term, Answer)>,
    reads: BTreeMap<ReadId, Answer>,
    next_read: u64,
    /// Whether there are entries to be applied of which the thread that does so wasn't notified.
    owes_notice: bool,
}

impl Stepper {
    /// Steps a member that owes nothing.
    pub fn new(member: Member) -> Stepper {
        let (pending, reads) = (BTreeMap::new(), BTreeMap::new());
        Stepper { member, pending, reads, next_read: 1, owes_notice: false }
    }

    fn step(&mut self, shared: &Shared, arrivals: Arrivals) {
        for (from, frame) in arrivals.frames {
            // A frame that isn't understood is as good as lost.
            let _ = self.member.receive(from, &frame);
        }
        if let Some(number) = arrivals.synced {
            self.member.synced(number);
        }
        if arrivals.is_tick_due {
            self.member.tick();
        }
        for (request, answer) in arrivals.requests {
            self.take(request, answer);
        }
        while let Some(work) = self.member.take() {
            self.hand_out(shared, work);
        }
        self.answer(shared);
        if arrivals.is_tick_due && std::mem::take(&mut self.owes_notice) {
            shared.committed.notify_one();
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
            Request::Announce => return self.member.announce(),
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
        // What a leader has committed its proposer applies.
        self.owes_notice = self.member.role() == Role::Leader && reads.is_empty();
        let mut unapplied = shared.unapplied.lock().expect(NO_PANIC);
        committed.into_iter().for_each(|entry| unapplied.add(entry));
        for (read, index) in reads {
            let answer = self.reads.remove(&read);
            unapplied.reads.extend(answer.map(|answer| (index, answer)));
        }
        drop(unapplied);
        if !self.owes_notice {
            shared.committed.notify_one();
        }
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
        let is_other = status.is_other_than(&published);
        *published = status;
        drop(published);
        // How far entries are changes with each of them, and no thread waits for that.
        if is_other {
            shared.status_changed.notify_all();
        }
    }
}
