//! Defects that tests plant, to prove that the simulation would find them.

/// A planted defect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Defect {
    /// A batch counts as durable once it was written.
    AckBeforeSync,
    /// A ballot isn't synced, entries are.
    UnsyncedVote,
    /// A member that starts doesn't know its vote.
    ForgottenVote,
    /// A leader commits entries of an earlier term by counting who holds them.
    PriorTermCommit,
    /// A leader counts a member without a vote.
    LearnerCounted,
    /// A member whose disk was lost comes back under its id.
    ReusedId,
    /// A member whose log doesn't end well counts on what it finds.
    EndTrusted,
    /// The vote of a member that doubts the end of its log counts as any other.
    DoubtCounted,
    /// Votes are kept in the log only.
    VoteInLog,
    /// The committed index isn't written along with entries.
    ForgottenCommit,
    /// A member that starts goes on with the configuration of the beginning.
    StaleConfiguration,
    /// A member goes on behind an entry that another has, and that isn't committed.
    CopyAhead,
    /// A member that got a copy doesn't know its vote.
    ForgottenBallot,
    /// A leader answers reads without asking whether it still leads.
    StaleRead,
    /// A leader acknowledges what it alone holds.
    AckedByOne,
    /// A leader counts what a member holds whose own removal it is, and what isn't confirmed.
    RemovedCounted,
    /// A change has settled once it is applied.
    Unconfirmed,
    /// A proposal without an answer is made again, without a record of it.
    ProposedAgain,
}
