//! Compacts a log: what is kept is copied to a new file, which then replaces the old one.
//!
//! 1. The new file begins with a record that says behind which entry, and with the ballot if that
//!    was cast before the first record that is kept.
//! 2. Records from the first kept entry on are moved as they are, chained anew, and synced, while
//!    batches are appended to the old file. All entries that count lie there: one that takes
//!    another's place lies behind it.
//! 3. Appending waits while what came meanwhile is moved too, and the new file is renamed.
//!
//! Memory: two megabytes, or twice one entry. Before the renaming a failure leaves the log as it
//! was.

use std::sync::Arc;

use frond_store::StoreError;
use frond_store::io::{DiskFile, Machine};

use super::{FileLog, State};
use crate::ids::EntryIndex;
use crate::log::Ballot;
use crate::log::format::{
    Beginning, Chain, END_BYTES, FILE_NAME, Header, NEW_FILE_NAME, RECORD_HEADER_BYTES, Record,
    RecordHeader, chain_anew, damaged, encode_batch, record_bytes,
};

/// The bytes that are kept though all members hold them: a member that has lost the end of its log,
/// as by damage there, gets it again.
const KEPT_BYTES: u64 = if cfg!(test) { 300 } else { 64 << 20 };
/// A cut gives back so much at least: it costs a copy of what is kept.
const COMPACTED_BYTES_MIN: u64 = if cfg!(test) { 200 } else { 128 << 20 };
/// The size of the parts in which records are copied.
const PART_BYTES: usize = 1 << 20;

impl State {
    /// Returns where the record of an entry, or of the one behind the last, begins.
    pub(super) fn offset_of(&self, index: EntryIndex) -> u64 {
        let position = (index.0 - self.before.next().0) as usize;
        self.offsets.get(position).copied().unwrap_or(self.end)
    }

    /// The last entry that lies wholly before the last so many bytes.
    pub(super) fn before_last(&self, bytes: u64) -> EntryIndex {
        let last_kept = self.end.saturating_sub(bytes);
        let before_kept = self.offsets.partition_point(|offset| *offset < last_kept) as u64;
        EntryIndex((self.before.0 + before_kept).saturating_sub(1))
    }

    /// As [`Log::compaction_point`](crate::log::Log::compaction_point).
    pub(super) fn compaction_point(&self, up_to: EntryIndex) -> Option<EntryIndex> {
        let up_to = up_to.min(self.before_last(KEPT_BYTES));
        if up_to <= self.before {
            return None;
        }
        let given_back = self.offset_of(up_to.next()) - self.offset_of(self.before.next());
        (COMPACTED_BYTES_MIN <= given_back).then_some(up_to)
    }

    /// Returns the records at the beginning of the new file.
    fn records_to_begin_with(
        &self,
        up_to: EntryIndex,
        old: &Old<'_>,
    ) -> Result<Vec<Record>, StoreError> {
        let configuration = self.configuration(up_to);
        let (header, _) = old.record_at(self.offset_of(up_to))?;
        let (before, term) = (up_to, header.term());
        let mut records = vec![Record::Beginning(Beginning { before, term, configuration })];
        let first_kept = self.offset_of(up_to.next());
        let ballot = self.ballot.filter(|(offset, _)| *offset < first_kept);
        let ballot = ballot.map(|(_, ballot)| match ballot.term < term {
            // A later one was lost with the end of the log: the file beside it has that vote.
            true => Ballot { term, vote: None, ..ballot },
            false => ballot,
        });
        records.extend(ballot.map(Record::Ballot));
        Ok(records)
    }
}

impl FileLog {
    pub(super) fn compact_to(&self, up_to: EntryIndex) -> Result<(), StoreError> {
        let disk = &*self.machine.disk;
        let (old, first_kept, end, records) = {
            let state = self.state();
            if up_to <= state.before {
                return Ok(());
            }
            assert!(up_to <= state.last(), "what is cut is there");
            let old = Old { file: &state.file, nonce: self.header.nonce };
            let records = state.records_to_begin_with(up_to, &old)?;
            (Arc::clone(&state.file), state.offset_of(up_to.next()), state.end, records)
        };
        let old = Old { file: &old, nonce: self.header.nonce };
        remove_new(&self.machine)?;
        let file = disk.create(NEW_FILE_NAME).map_err(io_new)?;
        let mut new = New::begin(file, &self.header, &records);
        let moved_to = new.end();
        let moved = new.take(&old, first_kept, end).and_then(|()| new.make_durable());
        if let Err(error) = moved {
            let _ = remove_new(&self.machine);
            return Err(error);
        }
        let mut state = self.state();
        if state.broken {
            return Err(super::broken());
        }
        let moved = new.take(&old, end, state.end).and_then(|()| new.make_durable());
        if let Err(error) = moved {
            let _ = remove_new(&self.machine);
            return Err(error);
        }
        let renamed = disk.rename(NEW_FILE_NAME, FILE_NAME).and_then(|()| disk.sync_directory());
        if let Err(error) = renamed {
            // The next opening shows which of the two files is in force.
            state.broken = true;
            return Err(StoreError::io(FILE_NAME, error));
        }
        state.adopt(new, up_to, records, first_kept, moved_to);
        Ok(())
    }
}

impl State {
    /// Goes on with the new file, where what lay at `first_kept` lies at `moved_to`.
    fn adopt(
        &mut self,
        new: New,
        up_to: EntryIndex,
        records: Vec<Record>,
        first_kept: u64,
        moved_to: u64,
    ) {
        let gone = (up_to.0 - self.before.0) as usize;
        self.offsets.drain(..gone);
        for offset in &mut self.offsets {
            *offset = *offset - first_kept + moved_to;
        }
        if let Some((offset, _)) = &mut self.ballot {
            // For one that was moved to the beginning, only that it lies there counts.
            *offset = (*offset + moved_to).saturating_sub(first_kept);
        }
        self.changes.retain(|(index, _)| up_to < *index);
        for record in records {
            if let Record::Beginning(beginning) = record {
                self.before_term = beginning.term;
                self.beginning = beginning.configuration;
            }
        }
        self.before = up_to;
        self.end = new.end();
        self.file_bytes = new.end() + END_BYTES as u64;
        self.chain = new.chain;
        self.synced = new.end();
        self.file = new.file;
        self.cuts += 1;
    }
}

/// The file that is read.
pub(super) struct Old<'a> {
    pub file: &'a Arc<dyn DiskFile>,
    pub nonce: u64,
}

impl Old<'_> {
    /// A record's header, checked and as it lies there.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if its checksum is wrong; what the disk says.
    pub fn record_at(
        &self,
        offset: u64,
    ) -> Result<(RecordHeader, [u8; RECORD_HEADER_BYTES]), StoreError> {
        let mut bytes = [0; RECORD_HEADER_BYTES];
        let io = |error| StoreError::io(FILE_NAME, error);
        self.file.read_exact_at(offset, &mut bytes).map_err(io)?;
        let header = RecordHeader::decode(&bytes, self.nonce)
            .ok_or_else(|| damaged(offset, "the checksum of a record is wrong"))?;
        Ok((header, bytes))
    }
}

/// The file that is written.
struct New {
    file: Arc<dyn DiskFile>,
    nonce: u64,
    /// The bytes that aren't written yet, and their offset.
    part: Vec<u8>,
    part_at: u64,
    chain: Chain,
}

impl New {
    fn begin(file: Arc<dyn DiskFile>, header: &Header, records: &[Record]) -> New {
        let (bytes, chain) = header.encode();
        let mut part = bytes.to_vec();
        let chain = encode_batch(&mut part, records, chain, 0, header.nonce);
        New { file, nonce: header.nonce, part, part_at: 0, chain }
    }

    fn end(&self) -> u64 {
        self.part_at + self.part.len() as u64
    }

    /// Takes the records of the old file from `at` on, before `end`.
    fn take(&mut self, old: &Old<'_>, mut at: u64, end: u64) -> Result<(), StoreError> {
        while at < end {
            let (header, mut bytes) = old.record_at(at)?;
            self.chain = chain_anew(&mut bytes, self.chain, 0, self.nonce);
            self.part.extend_from_slice(&bytes);
            let begins = self.part.len();
            let taken = record_bytes(header.payload_bytes);
            let rest = taken as usize - RECORD_HEADER_BYTES;
            self.part.resize(begins + rest, 0);
            old.file
                .read_exact_at(at + RECORD_HEADER_BYTES as u64, &mut self.part[begins..])
                .map_err(|error| StoreError::io(FILE_NAME, error))?;
            if !header.is_of(&self.part[begins..begins + header.payload_bytes]) {
                return Err(damaged(at, "the checksum of an entry is wrong"));
            }
            at += taken;
            self.write(PART_BYTES)?;
        }
        Ok(())
    }

    fn make_durable(&mut self) -> Result<(), StoreError> {
        self.write(0)?;
        self.file.write_all_at(self.end(), &[0; END_BYTES]).map_err(io_new)?;
        self.file.sync().map_err(io_new)
    }

    /// Writes what waits, if it is more than so much.
    fn write(&mut self, bytes_max: usize) -> Result<(), StoreError> {
        if bytes_max < self.part.len() {
            self.file.write_all_at(self.part_at, &self.part).map_err(io_new)?;
            self.part_at = self.end();
            self.part.clear();
        }
        Ok(())
    }
}

/// Removes what an earlier cut has left.
pub(super) fn remove_new(machine: &Machine) -> Result<(), StoreError> {
    let names = machine.disk.list().map_err(io_new)?;
    match names.iter().any(|name| name == NEW_FILE_NAME) {
        true => machine.disk.remove(NEW_FILE_NAME).map_err(io_new),
        false => Ok(()),
    }
}

fn io_new(error: std::io::Error) -> StoreError {
    StoreError::io(NEW_FILE_NAME, error)
}
