//! The values that a member returns: work to be done, its status, and refusals.

use bytes::Bytes;

use crate::configuration::Configuration;
use crate::entry::Entry;
use crate::ids::{EntryIndex, MemberId, Term};
use crate::log::Batch;

/// The number of a batch; it rises by at least one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BatchNumber(pub(super) u64);

/// Work to be done for a member.
#[derive(Debug, Default)]
pub struct Work {
    /// The frames to be sent.
    pub frames: Vec<(MemberId, Bytes)>,
    /// The batch to be written and synced.
    pub batch: Option<(BatchNumber, Batch)>,
    /// The entries to be applied.
    pub committed: Vec<Entry>,
    /// Reads that were asked for, and up to where entries must be applied for each: then what is
    /// read is no older than the request.
    pub reads: Vec<(ReadId, EntryIndex)>,
}

/// The id of a read, chosen by the reader.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ReadId(pub u64);

/// The role of a member at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It takes what a leader sends.
    Follower,
    /// It stands for election.
    Candidate,
    /// It takes proposals.
    Leader,
}

/// Data that a member lacks and no leader sends it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lack {
    /// Entries that the leader has cut off its log: it needs a copy of what they have led to, and
    /// goes on behind that ([`FileLog::replace`](crate::FileLog::replace)).
    Compacted,
    /// Entries that it has acknowledged: the end of its log is lost. It takes no part any more, and
    /// only another member, with another id, may take its place.
    Acknowledged,
    /// What the set has in place of entries that it knows to be committed: members began on older
    /// copies of their data. It takes no part any more, and keeps its entries.
    Replaced,
}

impl Lack {
    /// Whether a member that lacks this takes no part any more.
    #[must_use]
    pub fn is_final(self) -> bool {
        self != Lack::Compacted
    }
}

/// The status of a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// The member's role.
    pub role: Role,
    /// The newest term that it knows.
    pub term: Term,
    /// The leader, if it knows one.
    pub leader: Option<MemberId>,
    /// The index up to which it knows entries to be committed.
    pub committed: EntryIndex,
    /// Its last entry.
    pub last: EntryIndex,
    /// The set, as of the last change that it applied.
    pub configuration: Configuration,
    /// A leader's record of the entry up to which each member holds the log, durably.
    pub held: Vec<(MemberId, EntryIndex)>,
    /// The entry up to which all members hold what is committed, durably, as far as is known.
    pub held_by_all: EntryIndex,
    /// The entries it lacks and isn't sent.
    pub lacks: Option<Lack>,
    /// Whether it may have lost the end of its log: its vote hardly counts until it has compared.
    pub doubts: bool,
    /// Whether it leads, and the last change of the voters has settled: a member that was removed
    /// isn't needed any more.
    pub settled: bool,
}

impl Status {
    /// Whether something differs besides how far entries are (committed, held, its last).
    pub fn is_other_than(&self, other: &Status) -> bool {
        let of = |it: &Status| (it.role, it.term, it.leader, it.lacks, it.doubts, it.settled);
        of(self) != of(other) || self.configuration != other.configuration
    }
}

/// The reason why a member refuses a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// Only a leader does that.
    #[error("this member doesn't lead")]
    NotLeader,
    /// It leads, and hasn't committed an entry of its own yet; or it hands over.
    #[error("the leader isn't ready")]
    NotReady,
    /// Too much is proposed and not committed.
    #[error("too much is under way")]
    Full,
    /// A change of the members must be committed before the next.
    #[error("another change of the members is under way")]
    ChangeUnderWay,
    /// There is no such change or entry.
    #[error("{0}")]
    Invalid(&'static str),
}
