//! A log in one file: records behind one another (`format`), written at the end and synced there.
//!
//! *Invariants*
//! 1. Nothing is written before the end. Where an entry takes another's place, both are in the
//!    file, and the later one counts.
//! 2. A vote is in a file of its own ([`Vote`]) before it is here.
//! 3. A batch is there as a whole or not at all.
//! 4. A cut makes another file of it ([`compact`]); what is being read goes on in the old one.
//! 5. After a failure nothing is appended any more: what is durable is unknown (`broken`). Where
//!    there was no room, the file ends as it did before.

mod compact;

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use frond_store::StoreError;
use frond_store::io::{DiskFile, Machine};

use super::format::{
    Beginning, Chain, END_BYTES, FILE_NAME, HEADER_BYTES, Header, NEW_FILE_NAME,
    RECORD_HEADER_BYTES, RESERVED, RESERVED_BYTES, Record, RecordHeader, damaged, encode_batch,
    record_bytes,
};
use super::vote::Vote;
use super::{Ballot, Batch, Log, Recovered, recovery};
use crate::configuration::{Change, Configuration};
use crate::entry::{Content, Entry};
use crate::ids::{EntryIndex, MemberId, SetId, Term};

/// A member's log on a disk.
pub struct FileLog {
    machine: Machine,
    header: Header,
    state: Mutex<State>,
}

/// The file, and what lies where in it.
pub(super) struct State {
    pub file: Arc<dyn DiskFile>,
    pub end: u64,
    /// The length of the file: the zeros behind the end, and what is reserved.
    pub file_bytes: u64,
    pub chain: Chain,
    pub synced: u64,
    /// The entry before the first, and its term.
    pub before: EntryIndex,
    pub before_term: Term,
    /// The offset of each entry's record.
    pub offsets: VecDeque<u64>,
    /// The last ballot, and where its record begins.
    pub ballot: Option<(u64, Ballot)>,
    /// The vote in the file beside the log.
    pub vote: Vote,
    /// The configuration before the first entry, and the changes among the entries.
    pub beginning: Configuration,
    pub changes: Vec<(EntryIndex, Change)>,
    /// The number of compactions.
    pub cuts: u64,
    /// An append or sync failed.
    pub broken: bool,
}

impl State {
    fn last(&self) -> EntryIndex {
        EntryIndex(self.before.0 + self.offsets.len() as u64)
    }

    /// The configuration once all entries up to `up_to` are applied.
    fn configuration(&self, up_to: EntryIndex) -> Configuration {
        let changes = self.changes.iter().take_while(|(index, _)| *index <= up_to);
        changes
            .into_iter()
            .try_fold(self.beginning.clone(), |set, (_, change)| set.after(*change))
            .expect("what is committed can be applied")
    }
}

impl FileLog {
    /// Makes the log of a new member, durably. All members of a set begin with the same
    /// configuration, those too that are not in it and are added later.
    ///
    /// # Errors
    /// `AlreadyExists` if there is one; what the disk says.
    pub fn create(
        machine: &Machine,
        member: MemberId,
        set: SetId,
        beginning: &Configuration,
    ) -> Result<(), StoreError> {
        if FileLog::exists(machine)? {
            return Err(StoreError::io(FILE_NAME, io::ErrorKind::AlreadyExists.into()));
        }
        let (before, term) = (EntryIndex::ZERO, Term::default());
        let beginning = Beginning { before, term, configuration: beginning.clone() };
        FileLog::replace(machine, member, set, beginning, Ballot::default())
    }

    /// Makes the log of a member that has all up to an entry, and none of the entries, durably. It
    /// takes the place of one that there is, where that may be ([`Recovered::continuation`]), or is
    /// a new member's.
    ///
    /// # Errors
    /// An error of the disk; the log is as before.
    pub fn replace(
        machine: &Machine,
        member: MemberId,
        set: SetId,
        beginning: Beginning,
        ballot: Ballot,
    ) -> Result<(), StoreError> {
        assert!(member != MemberId(0), "0 is no member");
        let disk = &*machine.disk;
        let io = |error| StoreError::io(FILE_NAME, error);
        compact::remove_new(machine)?;
        let mut nonce = [0; size_of::<u64>()];
        machine.chance.fill(&mut nonce);
        let header = Header { nonce: u64::from_le_bytes(nonce), member, set };
        let (bytes, chain) = header.encode();
        let mut bytes = bytes.to_vec();
        assert!(ballot.committed <= beginning.before, "what it knows to be committed is replaced");
        let goes_on = beginning.term <= ballot.term && ballot != Ballot::default();
        let mut records = vec![Record::Beginning(beginning)];
        records.extend(goes_on.then_some(Record::Ballot(ballot)));
        encode_batch(&mut bytes, &records, chain, 0, header.nonce);
        bytes.extend([0; END_BYTES]);
        let file = disk.create(NEW_FILE_NAME).map_err(io)?;
        file.write_all_at(0, &bytes)
            .and_then(|()| file.sync())
            .and_then(|()| disk.rename(NEW_FILE_NAME, FILE_NAME))
            .and_then(|()| disk.sync_directory())
            .map_err(io)?;
        // A damaged one was another member's, whose place this one takes: it would be damage again.
        match Vote::read(machine, member, set) {
            Ok(_) => Ok(()),
            Err(_) => Vote::of(&ballot).write(machine, member, set),
        }
    }

    /// Whether a directory has a log.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn exists(machine: &Machine) -> Result<bool, StoreError> {
        let names = machine.disk.list().map_err(|error| StoreError::io("the directory", error))?;
        Ok(names.iter().any(|name| name == FILE_NAME))
    }

    /// Returns the member and the set that own the log of a directory; `None` if there is no log,
    /// or one that doesn't say.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn owner(machine: &Machine) -> Result<Option<(MemberId, SetId)>, StoreError> {
        if !FileLog::exists(machine)? {
            return Ok(None);
        }
        let io = |error| StoreError::io(FILE_NAME, error);
        let file = machine.disk.open(FILE_NAME).map_err(io)?;
        let mut header = [0; HEADER_BYTES];
        if file.bytes().map_err(io)? < HEADER_BYTES as u64 {
            return Ok(None);
        }
        file.read_exact_at(0, &mut header).map_err(io)?;
        let header = Header::decode(&header).ok();
        Ok(header.map(|(header, _)| (header.member, header.set)))
    }

    /// Opens a log and reads all of it. A torn write at its end is cut off, and everything else in
    /// it is durable from then on.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if something in it was durable and is broken;
    /// [`StoreError::Version`] if another version wrote it; what the disk says.
    pub fn open(machine: &Machine) -> Result<(FileLog, Recovered), StoreError> {
        let io = |error| StoreError::io(FILE_NAME, error);
        let file = machine.disk.open(FILE_NAME).map_err(io)?;
        // A cut may have renamed it and not have come further, or have come less far.
        machine.disk.sync_directory().map_err(io)?;
        compact::remove_new(machine)?;
        let (header, recovered, state) = recovery::recover(machine, &file)?;
        let machine = machine.clone();
        Ok((FileLog { machine, header, state: Mutex::new(state) }, recovered))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the lock is held")
    }

    /// Keeps the vote of a batch that is to be appended, if it is another than before.
    fn keep_vote(&self, batch: &Batch) -> Result<(), StoreError> {
        let kept = self.state().vote;
        let Some(vote) = batch.ballot.as_ref().map(Vote::of).filter(|vote| *vote != kept) else {
            return Ok(());
        };
        let written = vote.write(&self.machine, self.header.member, self.header.set);
        let mut state = self.state();
        match written {
            Ok(()) => state.vote = vote,
            Err(_) => state.broken = true,
        }
        written
    }

    /// Reads the entry whose record begins at `offset`.
    fn read_at(
        &self,
        file: &dyn DiskFile,
        offset: u64,
        index: EntryIndex,
    ) -> Result<Entry, StoreError> {
        let io = |error| StoreError::io(FILE_NAME, error);
        let mut header = [0; RECORD_HEADER_BYTES];
        file.read_exact_at(offset, &mut header).map_err(io)?;
        let header = RecordHeader::decode(&header, self.header.nonce)
            .ok_or_else(|| damaged(offset, "the checksum of a record is wrong"))?;
        let mut payload = vec![0; header.payload_bytes];
        file.read_exact_at(offset + RECORD_HEADER_BYTES as u64, &mut payload).map_err(io)?;
        if !header.is_of(&payload) {
            return Err(damaged(offset, "the checksum of an entry is wrong"));
        }
        match header.record(Bytes::from(payload)) {
            Ok(Record::Entry(entry)) if entry.index == index => Ok(entry),
            Ok(_) => Err(damaged(offset, "another record than was written")),
            Err(what) => Err(damaged(offset, what)),
        }
    }
}

impl Log for FileLog {
    fn before(&self) -> EntryIndex {
        self.state().before
    }

    fn behind(&self, before: EntryIndex) -> Result<Beginning, StoreError> {
        let (file, offset, mut beginning) = {
            let state = self.state();
            assert!(state.before <= before && before <= state.last(), "it is there");
            let configuration = state.configuration(before);
            let beginning = Beginning { before, term: state.before_term, configuration };
            let offset = (state.before < before).then(|| state.offset_of(before));
            (Arc::clone(&state.file), offset, beginning)
        };
        if let Some(offset) = offset {
            let old = compact::Old { file: &file, nonce: self.header.nonce };
            beginning.term = old.record_at(offset)?.0.term();
        }
        Ok(beginning)
    }

    fn compaction_point(
        &self,
        up_to: EntryIndex,
        held: EntryIndex,
        bytes_max: u64,
    ) -> Option<EntryIndex> {
        let state = self.state();
        state.compaction_point(up_to.min(held.max(state.before_last(bytes_max))))
    }

    fn compact(&self, up_to: EntryIndex) -> Result<(), StoreError> {
        self.compact_to(up_to)
    }

    fn read(
        &self,
        from: EntryIndex,
        end: EntryIndex,
        bytes_max: u64,
    ) -> Result<Vec<Entry>, StoreError> {
        let (file, offsets) = {
            let state = self.state();
            assert!(state.before < from && from < end, "what was cut isn't asked for");
            let first = state.before.next().0;
            let wanted = (from.0 - first) as usize..(end.0 - first) as usize;
            let offsets: Vec<u64> = state.offsets.range(wanted).copied().collect();
            (Arc::clone(&state.file), offsets)
        };
        let mut entries = Vec::new();
        let mut bytes = 0;
        for (offset, index) in offsets.into_iter().zip(from.0..) {
            let entry = self.read_at(&*file, offset, EntryIndex(index))?;
            bytes += entry.bytes() as u64;
            if bytes_max < bytes && !entries.is_empty() {
                break;
            }
            entries.push(entry);
        }
        Ok(entries)
    }

    fn append(&self, batch: &Batch) -> Result<(), StoreError> {
        self.keep_vote(batch)?;
        let mut state = self.state();
        if state.broken {
            return Err(broken());
        }
        let mut records: Vec<Record> = batch.entries.iter().cloned().map(Record::Entry).collect();
        records.extend(batch.ballot.map(Record::Ballot));
        let mut bytes = Vec::new();
        let chain =
            encode_batch(&mut bytes, &records, state.chain, state.synced, self.header.nonce);
        let bytes_taken = bytes.len() as u64;
        bytes.extend([0; END_BYTES]);
        let mut written_to = state.end + bytes.len() as u64;
        if state.file_bytes < written_to {
            bytes.resize(bytes.len() + RESERVED_BYTES, RESERVED);
            written_to += RESERVED_BYTES as u64;
        }
        if let Err(error) = state.file.write_all_at(state.end, &bytes) {
            state.broken = true;
            let error = StoreError::io(FILE_NAME, error);
            if error.is_full() {
                // Nothing of it was acknowledged. With a part of it at its end the log would look
                // like one that may have lost what was, and the member would decide no election.
                let _ = end_well(&*state.file, state.end);
            }
            return Err(error);
        }
        if let Some(first) = batch.entries.first() {
            assert!(state.before < first.index, "what was cut was committed");
            let kept = usize::try_from(first.index.0 - state.before.next().0);
            let kept = kept.expect("offsets are kept in memory");
            assert!(kept <= state.offsets.len(), "entries have no gaps");
            state.offsets.truncate(kept);
            state.changes.retain(|(index, _)| *index < first.index);
        }
        let mut at = state.end;
        for entry in &batch.entries {
            state.offsets.push_back(at);
            if let Content::Change(change) = entry.content {
                state.changes.push((entry.index, change));
            }
            at += record_bytes(entry.bytes());
        }
        if let Some(ballot) = batch.ballot {
            state.ballot = Some((at, ballot));
        }
        state.end += bytes_taken;
        state.file_bytes = state.file_bytes.max(written_to);
        state.chain = chain;
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        let (file, end, cuts) = {
            let state = self.state();
            if state.broken {
                return Err(broken());
            }
            (Arc::clone(&state.file), state.end, state.cuts)
        };
        // Without the lock: readers go on.
        let synced = file.sync();
        let mut state = self.state();
        match synced {
            // A cut meanwhile has synced all in another file.
            Ok(()) if state.cuts != cuts => Ok(()),
            Ok(()) => {
                state.synced = end;
                Ok(())
            }
            Err(error) => {
                state.broken = true;
                Err(StoreError::io(FILE_NAME, error))
            }
        }
    }
}

/// Cuts off the bytes behind `end`, and leaves there what each batch leaves, zeros. Called after a
/// failure.
///
/// # Errors
/// An error of the disk.
pub(super) fn end_well(file: &dyn DiskFile, end: u64) -> io::Result<()> {
    file.set_bytes(end + END_BYTES as u64)?;
    file.write_all_at(end, &[0; END_BYTES])
}

fn broken() -> StoreError {
    StoreError::io(FILE_NAME, io::Error::other("a write or sync before has failed"))
}

#[cfg(test)]
mod tests;
