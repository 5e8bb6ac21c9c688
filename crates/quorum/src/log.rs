//! A member's own log: the entries that it holds, and its vote.
//!
//! Entries lie behind one another, from index 1 on until the log is *cut*: what this member has
//! applied is given up, if all hold it or it has become too much ([`Log::compact`]). One that is
//! appended at an index that there is already takes that place, and those behind it are void: they
//! were never committed.

mod file;
mod format;
mod recovery;
mod terms;
mod vote;

use frond_store::StoreError;

use crate::configuration::{Change, Configuration};
use crate::entry::Entry;
use crate::ids::{EntryIndex, MemberId, SetId, Term};

pub use file::FileLog;
pub use format::Beginning;
#[cfg(test)]
pub(crate) use format::RESERVED;
pub(crate) use terms::Terms;
#[cfg(test)]
pub(crate) use vote::FILE_NAME as VOTE_FILE_NAME;

/// The state that a member must not forget, besides its entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ballot {
    /// The newest term that it knows of.
    pub term: Term,
    /// The candidate that it voted for in that term.
    pub vote: Option<MemberId>,
    /// The index up to which it knows entries to be committed; it may be lower after a crash.
    pub committed: EntryIndex,
    /// The term up to which what it acknowledged may be lost with the log's end.
    pub doubt: Option<Term>,
}

/// Records that are appended as one: a crash keeps all of them or none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    /// The ballot, if it is another than before.
    pub ballot: Option<Ballot>,
    /// Entries, in their order. The first may be at an index that there is already.
    pub entries: Vec<Entry>,
}

/// The log of a member.
///
/// *Thread safety*: one thread appends and syncs, another reads. Entries that are read have been
/// synced.
pub trait Log: Send + Sync {
    /// Entries from `from` on, before `end`: at least one, and no further once there are
    /// `bytes_max` bytes.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if there are others than were appended; what the disk says.
    fn read(
        &self,
        from: EntryIndex,
        end: EntryIndex,
        bytes_max: u64,
    ) -> Result<Vec<Entry>, StoreError>;

    /// Appends a batch. It is durable after `sync`.
    ///
    /// # Errors
    /// An error of the disk. Nothing may be appended or synced any more then.
    fn append(&self, batch: &Batch) -> Result<(), StoreError>;

    /// The entry before the first that it has.
    fn before(&self) -> EntryIndex;

    /// Returns how a log would begin that has none of the entries up to this one, which is here and
    /// committed, or is the one before the first.
    ///
    /// # Errors
    /// As `read`.
    fn behind(&self, before: EntryIndex) -> Result<Beginning, StoreError>;

    /// Returns the entry up to which a cut gives back much, at or before `up_to`; `None` if none
    /// does. `held` is the index up to which all members hold entries; entries that others lack are
    /// kept up to `bytes_max`.
    fn compaction_point(
        &self,
        up_to: EntryIndex,
        held: EntryIndex,
        bytes_max: u64,
    ) -> Option<EntryIndex>;

    /// Gives up the entries up to this one, which are durable and committed. An append waits for
    /// the end of it only.
    ///
    /// # Errors
    /// An error of the disk; the log is as before, or nothing can be appended any more.
    fn compact(&self, up_to: EntryIndex) -> Result<(), StoreError>;

    /// Makes durable what was appended.
    ///
    /// # Errors
    /// An error of the disk. Nothing may be appended or synced any more then: what is durable shows
    /// at the next opening.
    fn sync(&self) -> Result<(), StoreError>;
}

/// The continuation of a log whose member got a copy of the others' state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Continuation {
    /// It has the copy's last entry.
    AsItIs,
    /// It begins behind the copy: that is of no use.
    Further,
    /// It is to be [replaced](FileLog::replace), with this ballot.
    Replaced(Ballot),
}

/// The result of opening a log.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// The member that owns the log.
    pub member: MemberId,
    /// The set that the member belongs to.
    pub set: SetId,
    /// The configuration before the first entry that there is.
    pub beginning: Configuration,
    pub(crate) ballot: Ballot,
    pub(crate) terms: Terms,
    /// The changes among its entries, ascending.
    pub(crate) changes: Vec<(EntryIndex, Change)>,
}

impl Recovered {
    /// The entry before the first.
    pub fn before(&self) -> EntryIndex {
        self.terms.before()
    }

    /// The last entry.
    pub fn last(&self) -> EntryIndex {
        self.terms.last()
    }

    /// Returns the entry up to which entries count as applied, where all up to `applied` seem to
    /// be: if the end of the log is in doubt others may have been at these places, and only those
    /// that are known to be committed are the same. To apply one again must change nothing.
    pub fn applied_at_least(&self, applied: EntryIndex) -> EntryIndex {
        match self.ballot.doubt {
            Some(_) => applied.min(self.ballot.committed),
            None => applied,
        }
    }

    /// Returns how the log goes on once all is here that led to the end of `beginning`.
    ///
    /// It may have acknowledged the entries behind that one, so it keeps them: where it has the
    /// entry itself, those behind it may be committed. Otherwise all that may be is before it.
    pub fn continuation(&self, beginning: &Beginning) -> Continuation {
        match self.terms.of(beginning.before) {
            Some(term) if term == beginning.term => Continuation::AsItIs,
            None if beginning.before < self.before() => Continuation::Further,
            _ => Continuation::Replaced(self.ballot),
        }
    }

    /// The configuration once all entries up to `up_to` are applied.
    ///
    /// # Errors
    /// Says which change can't be one.
    pub(crate) fn configuration(&self, up_to: EntryIndex) -> Result<Configuration, &'static str> {
        let changes = self.changes.iter().take_while(|(index, _)| *index <= up_to);
        changes.into_iter().try_fold(self.beginning.clone(), |set, (_, change)| set.after(*change))
    }
}
