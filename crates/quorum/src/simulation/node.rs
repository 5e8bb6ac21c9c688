//! One member with its disk and its clock.

use std::collections::VecDeque;
use std::sync::Arc;

use frond_testkit::net::Packet;
use frond_testkit::{Random, SimDisk};

use super::SET;
use super::observer::{Observer, Violation};
use crate::configuration::Configuration;
use crate::defect::Defect;
use crate::ids::{EntryIndex, MemberId};
use crate::log::{
    Ballot, Batch, Beginning, Continuation, FileLog, Log, RESERVED, Recovered, VOTE_FILE_NAME,
};
use crate::member::{BatchNumber, Member, Status};

pub(super) struct Node {
    pub id: MemberId,
    pub disk: SimDisk,
    beginning: Configuration,
    pub up: Option<RunningNode>,
    /// The index up to which its applied entries are durable: of their own accord, behind the log.
    applied: EntryIndex,
    /// The point where it goes on when it starts: the entries before were copied from another.
    pub incoming: Option<Beginning>,
    /// The end of its log is lost, and it may lack what it acknowledged.
    pub has_lost: bool,
    /// It was removed and is switched off, for ever.
    pub is_retired: bool,
    pub starts_at: u64,
    pub paused_until: u64,
    pub tick_millis: u64,
    pub ticks_at: u64,
    pub sync_millis: u64,
    pub arrived: VecDeque<Packet>,
}

/// A member that runs.
pub(super) struct RunningNode {
    pub member: Member,
    pub log: Arc<FileLog>,
    /// The batches to be written.
    pub batches: VecDeque<(BatchNumber, Batch)>,
    /// The batches that count as durable without being written.
    unwritten: Vec<Batch>,
    /// The batch that was written and is being synced, and when the sync ends.
    syncing: Option<(u64, BatchNumber, EntryIndex)>,
    pub applied: EntryIndex,
    /// The last entry that was appended.
    pub written: EntryIndex,
}

impl Node {
    pub fn new(id: MemberId, beginning: &Configuration, random: &mut Random) -> Node {
        let disk = SimDisk::new(random.next());
        FileLog::create(&disk.machine(), id, SET, beginning).expect("a disk that is well");
        Node {
            id,
            disk,
            beginning: beginning.clone(),
            up: None,
            applied: EntryIndex::ZERO,
            incoming: None,
            has_lost: false,
            is_retired: false,
            starts_at: 0,
            paused_until: 0,
            tick_millis: 8 + random.below(6) as u64,
            ticks_at: 0,
            sync_millis: 1 + random.below(10) as u64,
            arrived: VecDeque::new(),
        }
    }

    /// Returns the id and the status.
    pub fn reported(&self) -> (MemberId, Option<Status>) {
        (self.id, self.up.as_ref().map(|up| up.member.status()))
    }

    /// Ends the process, and if asked the machine too.
    pub fn stop(&mut self, starts_at: u64, power: bool) {
        self.up = None;
        self.starts_at = starts_at;
        self.disk = if power { self.disk.crash() } else { self.disk.kill() };
    }

    pub fn retire(&mut self) {
        self.up = None;
        (self.is_retired, self.has_lost) = (true, false);
    }

    /// Starts the member on what its disk holds.
    ///
    /// # Errors
    /// The promise that this breaks.
    pub fn start(
        &mut self,
        defect: Option<Defect>,
        may_lose: bool,
        random: &mut Random,
    ) -> Result<(), Violation> {
        if defect == Some(Defect::ReusedId) && random.one_in(4) {
            let (starts_at, paused_until) = (self.starts_at, self.paused_until);
            *self = Node::new(self.id, &self.beginning, random);
            (self.starts_at, self.paused_until) = (starts_at, paused_until);
        }
        if may_lose && random.one_in(3) {
            self.has_lost = self.lose_end(random);
        }
        if defect == Some(Defect::VoteInLog) {
            let _ = self.disk.machine().disk.remove(VOTE_FILE_NAME);
        }
        let Some((log, mut recovered)) = self.open(defect)? else { return Ok(()) };
        self.applied = recovered.applied_at_least(self.applied);
        if defect == Some(Defect::EndTrusted) {
            recovered.ballot.doubt = None;
        }
        if defect == Some(Defect::ForgottenVote) {
            recovered.ballot.vote = None;
        }
        if defect == Some(Defect::ForgottenCommit) {
            recovered.ballot.committed = EntryIndex::ZERO;
        }
        if defect == Some(Defect::StaleConfiguration) {
            recovered.changes.clear();
        }
        let log = Arc::new(log);
        let (applied, written) = (self.applied, recovered.last());
        let as_log: Arc<dyn Log> = Arc::<FileLog>::clone(&log);
        let mut member = Member::new(recovered, as_log, applied, random.next())
            .map_err(|error| Violation(format!("{}: {error}", self.id)))?;
        member.defect = defect;
        let (batches, unwritten, syncing) = (VecDeque::new(), Vec::new(), None);
        self.up = Some(RunningNode { member, log, batches, unwritten, syncing, applied, written });
        Ok(())
    }

    /// Takes some of the end of its log, as a disk does that doesn't keep what it has synced.
    /// Returns whether there was enough.
    pub fn lose_end(&mut self, random: &mut Random) -> bool {
        const NAME: &str = "quorum-log";
        let mut contents = self.disk.contents(NAME).expect("it has a log");
        // What is only reserved is no loss.
        let reserved = contents.iter().rev().take_while(|byte| **byte == RESERVED).count();
        contents.truncate(contents.len() - reserved);
        // The first two records are left alone.
        let bytes_max = contents.len().saturating_sub(300).min(600);
        if bytes_max == 0 {
            return false;
        }
        if random.one_in(2) {
            // No record is shorter than that.
            let bit = contents.len() * 8 - 1 - random.below(400);
            self.disk.flip_bit(NAME, bit as u64);
        } else {
            let kept = contents.len() - 1 - random.below(bytes_max);
            self.disk.set_contents(NAME, &contents[..kept]);
        }
        true
    }

    /// Opens the log, after it was replaced if that was begun; `None`: the disk failed.
    fn open(&mut self, defect: Option<Defect>) -> Result<Option<(FileLog, Recovered)>, Violation> {
        let machine = self.disk.machine();
        let mut opened = FileLog::open(&machine);
        if let (Ok((_, recovered)), Some(beginning)) = (&opened, &self.incoming) {
            let (before, beginning) = (beginning.before, beginning.clone());
            let continuation = recovered.continuation(&beginning);
            if let Continuation::Replaced(ballot) = continuation {
                let ballot = match defect {
                    Some(Defect::ForgottenBallot) => {
                        let _ = machine.disk.remove(VOTE_FILE_NAME);
                        Ballot::default()
                    }
                    _ => ballot,
                };
                let replaced = FileLog::replace(&machine, self.id, SET, beginning, ballot);
                opened = replaced.and_then(|()| FileLog::open(&machine));
            }
            if opened.is_ok() {
                self.incoming = None;
                self.applied = self.applied.max(before);
            }
        }
        match opened {
            Ok(opened) => Ok(Some(opened)),
            Err(_) if self.disk.is_dead() => {
                self.disk = self.disk.crash();
                Ok(None)
            }
            Err(frond_store::StoreError::Io { .. }) => {
                // A sync failed: the process is started again.
                self.disk = self.disk.kill();
                Ok(None)
            }
            Err(error) => Err(Violation(format!("{}: {error}", self.id))),
        }
    }

    /// Cuts the log at what this one has applied for good, and all hold if that counts.
    pub fn compact(&mut self, now: u64, held_by_all: bool) {
        let Some(up) = &mut self.up else { return };
        let held = if held_by_all { up.member.status().held_by_all } else { self.applied };
        let up_to = self.applied.min(held);
        if up_to <= up.log.before() {
            return;
        }
        up.member.compact(up_to);
        if up.log.compact(up_to).is_err() {
            self.stop(now + 50, self.disk.is_dead());
        }
    }

    /// Ends a sync that has taken its time, and begins to write what waits.
    pub fn use_disk(
        &mut self,
        now: u64,
        defect: Option<Defect>,
        observer: &mut Observer,
        random: &mut Random,
    ) {
        let Some(up) = &mut self.up else { return };
        if let Some((ends_at, number, last)) = up.syncing
            && ends_at <= now
        {
            up.syncing = None;
            if up.log.sync().is_err() {
                return self.stop(now + 50, self.disk.is_dead());
            }
            up.member.synced(number);
            if defect == Some(Defect::AckedByOne) {
                for (number, index) in observer.taken_by(self.id, last) {
                    observer.acknowledge(number, index);
                }
            }
            if random.one_in(8) {
                // Applied entries are never lost: they rest on the log, which is durable up to
                // there.
                self.applied = up.applied.min(last.max(self.applied));
            }
        }
        let Some(up) = &mut self.up else { return };
        if up.syncing.is_some() {
            return;
        }
        let mut written = None;
        while let Some((number, batch)) = up.batches.pop_front() {
            let is_vote = batch.entries.is_empty();
            let last = batch.entries.last().map(|entry| entry.index);
            up.unwritten.push(batch);
            if defect == Some(Defect::UnsyncedVote) && is_vote && written.is_none() {
                up.member.synced(number);
                continue;
            }
            if up.unwritten.drain(..).try_for_each(|batch| up.log.append(&batch)).is_err() {
                return self.stop(now + 50, self.disk.is_dead());
            }
            if defect == Some(Defect::AckBeforeSync) {
                up.member.synced(number);
            }
            up.written = last.unwrap_or(up.written);
            written = Some((number, last.unwrap_or_default()));
        }
        up.syncing = written.map(|(number, last)| (now + self.sync_millis, number, last));
    }
}
