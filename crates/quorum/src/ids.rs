//! Ids and positions, each a type of its own so that they can't be confused.

use std::fmt;

/// A set of members: drawn once, when the set is made. Members of another set aren't listened to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SetId(pub u64);

/// A member, that is, one data directory: drawn when the directory is made, never 0, never reused.
/// A directory that was lost and is made anew is another member: it doesn't know what the lost one
/// has acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MemberId(pub u64);

/// A leader's reign. At most one member leads in a term.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Term(pub u64);

/// An entry's place in the log, from 1 on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct EntryIndex(pub u64);

impl EntryIndex {
    /// The index before the first entry.
    pub const ZERO: EntryIndex = EntryIndex(0);

    /// The one after this.
    pub fn next(self) -> EntryIndex {
        EntryIndex(self.0 + 1)
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "member {:016x}", self.0)
    }
}
