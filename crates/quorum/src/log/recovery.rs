//! Reads a member's log when it is opened.
//!
//! 1. Records count as long as their checksums are right and each continues the chain, up to the
//!    last that ends a batch.
//! 2. Bytes behind these are a torn write, unless a later record says that so much of the file was
//!    durable once: then the log is damaged, and the member must not take part.
//! 3. Where it doesn't end as it is left by each batch, the member notes that it doubts its end
//!    ([`Ballot::doubt`]) before it cuts that off: what seems torn may have been durable.
//! 4. Records behind the last `synced` are written again: after a failed sync a page may be clean
//!    in memory and old on the disk. Then all is synced.
//!
//! A new file that a compaction left is of no use: the old one is in force until it is renamed.
//!
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use frond_store::StoreError;
use frond_store::io::{DiskFile, Machine};

use super::file::{State, end_well};
use super::format::{
    Beginning, Chain, END_BYTES, FILE_NAME, HEADER_BYTES, Header, RECORD_ALIGNMENT,
    RECORD_HEADER_BYTES, RESERVED, Record, RecordHeader, damaged, record_bytes,
};
use super::vote::Vote;
use super::{Ballot, Recovered, Terms};
use crate::entry::Content;

/// The number of bytes that are looked at, and written again, at once.
const STEP_BYTES: usize = 1 << 20;
const _: () = assert!(STEP_BYTES.is_multiple_of(RECORD_ALIGNMENT));

/// Reads a log, and leaves it durable and without a torn end.
pub(super) fn recover(
    machine: &Machine,
    opened: &Arc<dyn DiskFile>,
) -> Result<(Header, Recovered, State), StoreError> {
    let file = &**opened;
    let file_bytes = file.bytes().map_err(io)?;
    let mut header = [0; HEADER_BYTES];
    file.read_exact_at(0, &mut header).map_err(io)?;
    let (header, chain) = Header::decode(&header)?;
    let (beginning, mut chain, mut end) = read_beginning(file, &header, chain, file_bytes)?;
    let (before, term) = (beginning.before, beginning.term);
    let mut recovered = recovered_of(&header, beginning);
    let (mut synced, mut offsets, mut ballot) = (end, VecDeque::new(), None);
    // The state of a batch whose last record hasn't been met.
    let (mut batch, mut at, mut last) = (Vec::new(), end, chain);
    while let Some(((found, payload), bytes)) = read_record(file, &header, at, last, file_bytes)? {
        batch.push((at, found.record(payload).map_err(|what| damaged(at, what))?));
        synced = synced.max(found.synced);
        last = found.chain;
        at += bytes;
        if !found.is_last {
            continue;
        }
        for (at, record) in batch.drain(..) {
            match take(&mut recovered, record).map_err(|what| damaged(at, what))? {
                Some(kept) => {
                    offsets.truncate(kept);
                    offsets.push_back(at);
                }
                None => ballot = Some((at, recovered.ballot)),
            }
        }
        (end, chain) = (at, last);
    }
    check_torn(file, header.nonce, end, file_bytes)?;
    recovered.ballot.committed = recovered.ballot.committed.max(before);
    let vote = take_vote(machine, &header, &mut recovered, ends_well(file, end, file_bytes)?)?;
    make_durable(file, synced, end)?;
    let state = State {
        file: Arc::clone(opened),
        end,
        file_bytes: end + END_BYTES as u64,
        chain,
        synced: end,
        before,
        before_term: term,
        offsets,
        ballot,
        vote,
        beginning: recovered.beginning.clone(),
        changes: recovered.changes.clone(),
        cuts: 0,
        broken: false,
    };
    Ok((header, recovered, state))
}

/// Reads the first record; also what the next is chained to, and where it lies.
fn read_beginning(
    file: &dyn DiskFile,
    header: &Header,
    chain: Chain,
    file_bytes: u64,
) -> Result<(Beginning, Chain, u64), StoreError> {
    let at = HEADER_BYTES as u64;
    let Some(((first, payload), bytes)) = read_record(file, header, at, chain, file_bytes)? else {
        return Err(damaged(at, "the first record is broken"));
    };
    let Ok(Record::Beginning(beginning)) = first.record(payload) else {
        return Err(damaged(at, "the first record isn't a configuration"));
    };
    Ok((beginning, first.chain, at + bytes))
}

/// Returns the state of a log with this beginning and no other records.
fn recovered_of(header: &Header, beginning: Beginning) -> Recovered {
    let Beginning { before, term, configuration } = beginning;
    Recovered {
        member: header.member,
        set: header.set,
        beginning: configuration,
        // Entries that were cut off were committed.
        ballot: Ballot { term, vote: None, committed: before, doubt: None },
        terms: Terms::behind(before, term),
        changes: Vec::new(),
    }
}

/// Whether what is behind `end` is what each batch leaves there.
fn ends_well(file: &dyn DiskFile, end: u64, file_bytes: u64) -> Result<bool, StoreError> {
    let mut found = [0; END_BYTES];
    let mut at = end + found.len() as u64;
    if file_bytes < at {
        return Ok(false);
    }
    file.read_exact_at(end, &mut found).map_err(io)?;
    let mut is_well = found == [0; END_BYTES];
    let mut buffer = vec![0; STEP_BYTES];
    while is_well && at < file_bytes {
        let bytes = buffer.len().min(usize::try_from(file_bytes - at).unwrap_or(usize::MAX));
        file.read_exact_at(at, &mut buffer[..bytes]).map_err(io)?;
        is_well = buffer[..bytes].iter().all(|byte| *byte == RESERVED);
        at += bytes as u64;
    }
    Ok(is_well)
}

/// Has the vote count that the file beside the log says, and notes there whether the log's end is
/// in doubt. Returns what it says.
fn take_vote(
    machine: &Machine,
    header: &Header,
    recovered: &mut Recovered,
    ends_well: bool,
) -> Result<Vote, StoreError> {
    let (member, set) = (header.member, header.set);
    let kept = Vote::read(machine, member, set)?.unwrap_or_default();
    let ballot = kept.and(recovered.ballot);
    // In term 0 there is nothing to acknowledge.
    let doubt = if ends_well { ballot.doubt } else { Some(ballot.term).filter(|term| 0 < term.0) };
    recovered.ballot = Ballot { doubt, ..ballot };
    let vote = Vote::of(&recovered.ballot);
    if vote != kept {
        vote.write(machine, member, set)?;
    }
    Ok(vote)
}

/// Notes what a record says. Returns of an entry how many lie before it in the log.
fn take(recovered: &mut Recovered, record: Record) -> Result<Option<usize>, &'static str> {
    match record {
        Record::Beginning(_) => Err("a second configuration to begin with"),
        Record::Ballot(ballot) => {
            if ballot.term < recovered.ballot.term {
                return Err("a term falls");
            }
            recovered.ballot = ballot;
            Ok(None)
        }
        Record::Entry(entry) => {
            if entry.index <= recovered.ballot.committed {
                return Err("an entry takes the place of one that was committed");
            }
            recovered.terms.push(entry.index, entry.term)?;
            recovered.changes.retain(|(index, _)| *index < entry.index);
            if let Content::Change(change) = entry.content {
                recovered.changes.push((entry.index, change));
            }
            let behind = entry.index.0 - recovered.before().next().0;
            Ok(Some(usize::try_from(behind).map_err(|_| "too many entries")?))
        }
    }
}

/// A record's header and payload, and how many bytes it takes.
pub(super) type Found = ((RecordHeader, Bytes), u64);

/// The record at `at`, if it continues the chain and is whole.
pub(super) fn read_record(
    file: &dyn DiskFile,
    header: &Header,
    at: u64,
    chain: Chain,
    file_bytes: u64,
) -> Result<Option<Found>, StoreError> {
    if file_bytes.saturating_sub(at) < RECORD_HEADER_BYTES as u64 {
        return Ok(None);
    }
    let mut bytes = [0; RECORD_HEADER_BYTES];
    file.read_exact_at(at, &mut bytes).map_err(io)?;
    let Some(found) = RecordHeader::decode(&bytes, header.nonce) else { return Ok(None) };
    let taken = record_bytes(found.payload_bytes);
    if found.previous != chain || file_bytes - at < taken {
        return Ok(None);
    }
    let mut payload = vec![0; found.payload_bytes];
    file.read_exact_at(at + RECORD_HEADER_BYTES as u64, &mut payload).map_err(io)?;
    Ok(found.is_of(&payload).then(|| ((found, Bytes::from(payload)), taken)))
}

/// Fails if a record behind `end` says that the file was durable beyond it.
fn check_torn(
    file: &dyn DiskFile,
    nonce: u64,
    end: u64,
    file_bytes: u64,
) -> Result<(), StoreError> {
    let mut at = end;
    let mut buffer = vec![0; STEP_BYTES + RECORD_HEADER_BYTES];
    while RECORD_HEADER_BYTES as u64 <= file_bytes - at {
        let bytes = buffer.len().min(usize::try_from(file_bytes - at).unwrap_or(usize::MAX));
        file.read_exact_at(at, &mut buffer[..bytes]).map_err(io)?;
        for window in buffer[..bytes].windows(RECORD_HEADER_BYTES).step_by(RECORD_ALIGNMENT) {
            let window = window.first_chunk().expect("a window is so long");
            if RecordHeader::decode(window, nonce).is_some_and(|found| end < found.synced) {
                return Err(damaged(end, "a record that was durable is broken"));
            }
        }
        at += STEP_BYTES.min(bytes) as u64;
    }
    Ok(())
}

/// Cuts off what lies behind `end`, and makes the rest durable.
fn make_durable(file: &dyn DiskFile, synced: u64, end: u64) -> Result<(), StoreError> {
    end_well(file, end).map_err(io)?;
    let mut at = synced;
    let mut buffer = vec![0; STEP_BYTES];
    while at < end {
        let bytes = buffer.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
        file.read_exact_at(at, &mut buffer[..bytes]).map_err(io)?;
        file.write_all_at(at, &buffer[..bytes]).map_err(io)?;
        at += bytes as u64;
    }
    file.sync().map_err(io)
}

fn io(error: std::io::Error) -> StoreError {
    StoreError::io(FILE_NAME, error)
}
