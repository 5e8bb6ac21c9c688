//! A log in one file: records behind one another (`format`), written at the end and synced there.
//!
//! *Invariants*
//! 1. Nothing is written before the end. Where an entry takes another's place, both are in the
//!    file, and the later one counts.
//! 2. A batch is there as a whole or not at all.
//! 3. After a failure nothing is appended any more: what is durable is unknown (`broken`).

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use frond_store::StoreError;
use frond_store::io::{DiskFile, Machine};

use super::format::{
    Chain, FILE_NAME, Header, NEW_FILE_NAME, RECORD_HEADER_BYTES, Record, RecordHeader, damaged,
    encode_batch, record_bytes,
};
use super::{Batch, Log, Recovered, recovery};
use crate::configuration::Configuration;
use crate::entry::Entry;
use crate::ids::{EntryIndex, MemberId, SetId};

/// A member's log on a disk.
pub struct FileLog {
    file: Arc<dyn DiskFile>,
    nonce: u64,
    state: Mutex<State>,
}

/// Where the file ends.
pub(super) struct State {
    pub end: u64,
    pub chain: Chain,
    pub synced: u64,
    /// Where the record of each entry begins, from entry 1 on.
    pub offsets: Vec<u64>,
    /// An append or sync failed.
    pub broken: bool,
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
        assert!(member != MemberId(0), "0 is no member");
        let disk = &*machine.disk;
        let io = |error| StoreError::io(FILE_NAME, error);
        let names = disk.list().map_err(io)?;
        if names.iter().any(|name| name == FILE_NAME) {
            return Err(io(std::io::ErrorKind::AlreadyExists.into()));
        }
        if names.iter().any(|name| name == NEW_FILE_NAME) {
            disk.remove(NEW_FILE_NAME).map_err(io)?;
        }
        let mut nonce = [0; size_of::<u64>()];
        machine.chance.fill(&mut nonce);
        let header = Header { nonce: u64::from_le_bytes(nonce), member, set };
        let (bytes, chain) = header.encode();
        let mut bytes = bytes.to_vec();
        let beginning = [Record::Beginning(beginning.clone())];
        encode_batch(&mut bytes, &beginning, chain, 0, header.nonce);
        let file = disk.create(NEW_FILE_NAME).map_err(io)?;
        file.write_all_at(0, &bytes)
            .and_then(|()| file.sync())
            .and_then(|()| disk.rename(NEW_FILE_NAME, FILE_NAME))
            .and_then(|()| disk.sync_directory())
            .map_err(io)
    }

    /// Whether a directory has a log.
    ///
    /// # Errors
    /// What the disk says.
    pub fn exists(machine: &Machine) -> Result<bool, StoreError> {
        let names = machine.disk.list().map_err(|error| StoreError::io("the directory", error))?;
        Ok(names.iter().any(|name| name == FILE_NAME))
    }

    /// Opens a log and reads all of it. A torn write at its end is cut off, and everything else in
    /// it is durable from then on.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if something in it was durable and is broken;
    /// [`StoreError::Version`] if another version wrote it; what the disk says.
    pub fn open(machine: &Machine) -> Result<(FileLog, Recovered), StoreError> {
        let file =
            machine.disk.open(FILE_NAME).map_err(|error| StoreError::io(FILE_NAME, error))?;
        let (header, recovered, state) = recovery::recover(&*file)?;
        Ok((FileLog { file, nonce: header.nonce, state: Mutex::new(state) }, recovered))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the lock is held")
    }

    /// Reads the entry whose record begins at `offset`.
    fn read_at(&self, offset: u64, index: EntryIndex) -> Result<Entry, StoreError> {
        let io = |error| StoreError::io(FILE_NAME, error);
        let mut header = [0; RECORD_HEADER_BYTES];
        self.file.read_exact_at(offset, &mut header).map_err(io)?;
        let header = RecordHeader::decode(&header, self.nonce)
            .ok_or_else(|| damaged(offset, "the checksum of a record is wrong"))?;
        let mut payload = vec![0; header.payload_bytes];
        self.file.read_exact_at(offset + RECORD_HEADER_BYTES as u64, &mut payload).map_err(io)?;
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
    fn read(
        &self,
        from: EntryIndex,
        end: EntryIndex,
        bytes_max: u64,
    ) -> Result<Vec<Entry>, StoreError> {
        assert!(EntryIndex::ZERO < from && from < end, "entries are counted from 1");
        let offsets = self.state().offsets[from.0 as usize - 1..end.0 as usize - 1].to_vec();
        let mut entries = Vec::new();
        let mut bytes = 0;
        for (offset, index) in offsets.into_iter().zip(from.0..) {
            let entry = self.read_at(offset, EntryIndex(index))?;
            bytes += entry.bytes() as u64;
            if bytes_max < bytes && !entries.is_empty() {
                break;
            }
            entries.push(entry);
        }
        Ok(entries)
    }

    fn append(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut state = self.state();
        assert!(!state.broken, "nothing is appended after a failure");
        let mut records: Vec<Record> = batch.entries.iter().cloned().map(Record::Entry).collect();
        records.extend(batch.ballot.map(Record::Ballot));
        let mut bytes = Vec::new();
        let chain = encode_batch(&mut bytes, &records, state.chain, state.synced, self.nonce);
        if let Err(error) = self.file.write_all_at(state.end, &bytes) {
            state.broken = true;
            return Err(StoreError::io(FILE_NAME, error));
        }
        if let Some(first) = batch.entries.first() {
            let kept = usize::try_from(first.index.0 - 1).expect("entries are kept in memory");
            assert!(kept <= state.offsets.len(), "entries have no gaps");
            state.offsets.truncate(kept);
        }
        let mut at = state.end;
        for entry in &batch.entries {
            state.offsets.push(at);
            at += record_bytes(entry.bytes());
        }
        state.end += bytes.len() as u64;
        state.chain = chain;
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        let end = {
            let state = self.state();
            assert!(!state.broken, "nothing is synced after a failure");
            state.end
        };
        // Without the lock: who reads goes on.
        let synced = self.file.sync();
        let mut state = self.state();
        match synced {
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

#[cfg(test)]
mod tests;
