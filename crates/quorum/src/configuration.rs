//! The configuration: which members there are. It changes by one member at a time.
//!
//! Majorities of two configurations that differ by one voter overlap, so no agreement between an
//! old and a new majority is needed (Ongaro's dissertation, 4.2). A new member first learns
//! ([`Change::AddLearner`]): it gets the log, and counts for nothing until it is promoted.

use std::collections::BTreeSet;

use crate::ids::MemberId;

/// The greatest number of voters: as in MongoDB.
pub const VOTERS_MAX: usize = 7;
/// The greatest number of members: as in MongoDB.
pub const MEMBERS_MAX: usize = 50;

/// The members of a set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Configuration {
    /// The members whose majority elects and commits.
    pub voters: BTreeSet<MemberId>,
    /// Those that only get the log.
    pub learners: BTreeSet<MemberId>,
}

/// One step from a configuration to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// A new member begins to get the log.
    AddLearner(MemberId),
    /// A learner gets a vote.
    Promote(MemberId),
    /// A voter or learner is none any more.
    Remove(MemberId),
}

// Stored: never renumber.
const TAG_ADD_LEARNER: u8 = 0;
const TAG_PROMOTE: u8 = 1;
const TAG_REMOVE: u8 = 2;

impl Configuration {
    /// A set of these voters.
    pub fn of(voters: impl IntoIterator<Item = MemberId>) -> Configuration {
        Configuration { voters: voters.into_iter().collect(), learners: BTreeSet::new() }
    }

    /// The configuration after a change.
    ///
    /// # Errors
    /// Says why there can't be one.
    pub fn after(&self, change: Change) -> Result<Configuration, &'static str> {
        let mut after = self.clone();
        match change {
            Change::AddLearner(MemberId(0)) => return Err("a member's id isn't 0"),
            Change::AddLearner(member) => {
                if self.voters.contains(&member) || self.learners.contains(&member) {
                    return Err("it is a member already");
                }
                if self.voters.len() + self.learners.len() >= MEMBERS_MAX {
                    return Err("a set has at most 50 members");
                }
                after.learners.insert(member);
            }
            Change::Promote(member) => {
                if !after.learners.remove(&member) {
                    return Err("it isn't a member without a vote");
                }
                if self.voters.len() >= VOTERS_MAX {
                    return Err("a set has at most seven members with a vote");
                }
                after.voters.insert(member);
            }
            Change::Remove(member) => {
                if !after.voters.remove(&member) && !after.learners.remove(&member) {
                    return Err("it isn't a member");
                }
                if after.voters.is_empty() {
                    return Err("one member with a vote must stay");
                }
            }
        }
        Ok(after)
    }
}

impl Change {
    /// The number of bytes a change is encoded in.
    pub const BYTES: usize = 9;

    /// Tag and member.
    pub(crate) fn encode(self) -> [u8; Change::BYTES] {
        let (tag, member) = match self {
            Change::AddLearner(member) => (TAG_ADD_LEARNER, member),
            Change::Promote(member) => (TAG_PROMOTE, member),
            Change::Remove(member) => (TAG_REMOVE, member),
        };
        let mut bytes = [0; Change::BYTES];
        bytes[0] = tag;
        bytes[1..].copy_from_slice(&member.0.to_le_bytes());
        bytes
    }

    /// Reads what `encode` made; `None`: that isn't one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Change> {
        let (&tag, member) = bytes.split_first()?;
        let member = MemberId(u64::from_le_bytes(member.try_into().ok()?));
        match tag {
            TAG_ADD_LEARNER => Some(Change::AddLearner(member)),
            TAG_PROMOTE => Some(Change::Promote(member)),
            TAG_REMOVE => Some(Change::Remove(member)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_one_step_and_what_is_none_is_refused() {
        let [one, two, new] = [1, 2, 3].map(MemberId);
        let set = Configuration::of([one, two]);
        let learning = set.after(Change::AddLearner(new)).expect("a new member");
        assert_eq!(learning.voters, set.voters);
        let three = learning.after(Change::Promote(new)).expect("it learns");
        assert_eq!(three, Configuration::of([one, two, new]));
        assert_eq!(three.after(Change::Remove(new)), Ok(set.clone()));
        assert_eq!(learning.after(Change::Remove(new)), Ok(set.clone()));
        for refused in [
            Change::AddLearner(one),
            Change::AddLearner(MemberId(0)),
            Change::Promote(one),
            Change::Promote(new),
            Change::Remove(new),
        ] {
            assert!(set.after(refused).is_err(), "{refused:?}");
        }
        assert!(Configuration::of([one]).after(Change::Remove(one)).is_err());
        let mut seven = Configuration::of((1..=7).map(MemberId));
        seven.learners.insert(MemberId(8));
        assert!(seven.after(Change::Promote(MemberId(8))).is_err());
    }

    #[test]
    fn a_change_reads_back() {
        for change in [Change::AddLearner(MemberId(1)), Change::Promote(MemberId(u64::MAX))] {
            assert_eq!(Change::decode(&change.encode()), Some(change));
        }
        assert_eq!(Change::decode(&[3; Change::BYTES]), None);
        assert_eq!(Change::decode(&Change::Remove(MemberId(1)).encode()[..8]), None);
    }
}
