//! The log as the Raft library reads it: the newest entries from memory, older ones from the
//! [`Log`].

use std::collections::VecDeque;
use std::sync::Arc;

use raft::eraftpb::{self, HardState, Snapshot};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

use crate::configuration::Configuration;
use crate::convert;
use crate::entry::Entry;
use crate::ids::{EntryIndex, Term};
use crate::log::{Ballot, Log, Terms};

/// Entries that are durable stay in memory up to so many bytes: a follower that isn't far behind
/// costs no read.
const RECENT_BYTES_MAX: usize = if cfg!(test) { 512 } else { 16 << 20 };

/// The Raft library's storage.
///
/// *Invariants*
/// 1. `recent` are the last entries, without a gap, and all that aren't durable are among them.
pub(crate) struct LogView {
    log: Arc<dyn Log>,
    terms: Terms,
    recent: VecDeque<Entry>,
    recent_bytes: usize,
    /// The entry up to which entries are durable.
    synced: EntryIndex,
    /// The ballot that the library starts from.
    ballot: Ballot,
    configuration: Configuration,
}

impl LogView {
    pub fn new(
        log: Arc<dyn Log>,
        terms: Terms,
        ballot: Ballot,
        configuration: Configuration,
    ) -> LogView {
        let (recent, recent_bytes, synced) = (VecDeque::new(), 0, terms.last());
        LogView { log, terms, recent, recent_bytes, synced, ballot, configuration }
    }

    /// Takes entries that are about to be written.
    pub fn append(&mut self, entries: &[Entry]) {
        let Some(first) = entries.first() else { return };
        while self.recent.back().is_some_and(|last| first.index <= last.index) {
            let void = self.recent.pop_back().expect("one was found");
            self.recent_bytes -= void.bytes();
        }
        self.synced = self.synced.min(EntryIndex(first.index.0 - 1));
        for entry in entries {
            let pushed = self.terms.push(entry.index, entry.term);
            pushed.expect("the library appends without gaps, in rising terms");
            self.recent_bytes += entry.bytes();
            self.recent.push_back(entry.clone());
        }
    }

    /// Forgets the entries up to this one, which are durable.
    pub fn compact(&mut self, up_to: EntryIndex) {
        assert!(up_to <= self.synced, "only what is durable is cut");
        if up_to <= self.terms.before() {
            return;
        }
        self.terms.compact(up_to);
        while self.recent.front().is_some_and(|first| first.index <= up_to) {
            let old = self.recent.pop_front().expect("one was found");
            self.recent_bytes -= old.bytes();
        }
    }

    /// The entry before the first.
    pub fn before(&self) -> EntryIndex {
        self.terms.before()
    }

    /// The term of an entry, if there is one.
    pub fn term_of(&self, index: EntryIndex) -> Option<Term> {
        self.terms.of(index)
    }

    /// Entries up to `up_to` are durable, if they are still the ones that were written.
    pub fn synced(&mut self, up_to: EntryIndex) {
        self.synced = self.synced.max(up_to.min(self.terms.last()));
        while RECENT_BYTES_MAX < self.recent_bytes
            && self.recent.front().is_some_and(|first| first.index <= self.synced)
        {
            let old = self.recent.pop_front().expect("one was found");
            self.recent_bytes -= old.bytes();
        }
    }

    /// The first entry of `recent`, or the one that would be.
    fn recent_start(&self) -> u64 {
        self.recent.front().map_or(self.terms.last().0 + 1, |first| first.index.0)
    }
}

impl Storage for LogView {
    fn initial_state(&self) -> raft::Result<RaftState> {
        let Ballot { term, vote, committed, .. } = self.ballot;
        let vote = vote.map_or(0, |member| member.0);
        let hard_state =
            HardState { term: term.0, vote, commit: committed.0, ..HardState::default() };
        Ok(RaftState::new(hard_state, convert::raft_configuration(&self.configuration)))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _: GetEntriesContext,
    ) -> raft::Result<Vec<eraftpb::Entry>> {
        if low <= self.terms.before().0 {
            return Err(raft::Error::Store(StorageError::Compacted));
        }
        let bytes_max = max_size.into().unwrap_or(u64::MAX);
        let start = self.recent_start();
        if low < start {
            let end = EntryIndex(high.min(start));
            let entries = self
                .log
                .read(EntryIndex(low), end, bytes_max)
                .map_err(|error| raft::Error::Store(StorageError::Other(Box::new(error))))?;
            return Ok(entries.iter().map(convert::raft_entry).collect());
        }
        let mut bytes = 0;
        let wanted = self.recent.range((low - start) as usize..(high - start) as usize);
        let mut entries = Vec::new();
        for entry in wanted {
            bytes += entry.bytes() as u64;
            if bytes_max < bytes && !entries.is_empty() {
                break;
            }
            entries.push(convert::raft_entry(entry));
        }
        Ok(entries)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        let error = match index < self.terms.before().0 {
            true => StorageError::Compacted,
            false => StorageError::Unavailable,
        };
        let term = self.terms.of(EntryIndex(index));
        term.map(|term| term.0).ok_or(raft::Error::Store(error))
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.terms.before().next().0)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.terms.last().0)
    }

    /// There are none: a member that lacks it asks for a copy.
    fn snapshot(&self, _: u64, _: u64) -> raft::Result<Snapshot> {
        Err(raft::Error::Store(StorageError::SnapshotTemporarilyUnavailable))
    }
}
