//! Observes all members and reports violations of Raft's guarantees.

use std::collections::{BTreeMap, BTreeSet};

use frond_testkit::Random;

use super::number_of;
use crate::entry::Entry;
use crate::ids::{EntryIndex, MemberId, Term};
use crate::member::ReadId;

/// A violation of Raft's guarantees.
#[derive(Debug)]
pub(super) struct Violation(pub String);

#[derive(Default)]
pub(super) struct Observer {
    /// The committed entries, from entry 1 on.
    pub chosen: Vec<Entry>,
    numbers: BTreeSet<u64>,
    leaders: BTreeMap<Term, MemberId>,
    /// The unanswered proposals: the member that took each, and its index.
    open: BTreeMap<(MemberId, EntryIndex), (Term, u64)>,
    /// The acknowledged proposals, and their indexes.
    pub acknowledged: BTreeMap<u64, EntryIndex>,
    newest: EntryIndex,
    /// Reads, and what had been acknowledged when they were asked for.
    newest_at_read: BTreeMap<(MemberId, ReadId), EntryIndex>,
    pub read_count: u64,
    /// A read that was answered at once was stale.
    pub stale: bool,
}

impl Observer {
    /// Returns how many terms had a leader.
    pub fn leader_count(&self) -> usize {
        self.leaders.len()
    }

    /// Returns how often another member took the lead than the one before.
    pub fn failover_count(&self) -> usize {
        let leaders: Vec<MemberId> = self.leaders.values().copied().collect();
        leaders.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }

    /// Notes who leads a term.
    ///
    /// # Errors
    /// The promise that this breaks.
    pub fn leads(&mut self, member: MemberId, term: Term) -> Result<(), Violation> {
        let first = *self.leaders.entry(term).or_insert(member);
        if first == member {
            return Ok(());
        }
        Err(Violation(format!("{first} and {member} lead in {term:?}")))
    }

    /// Notes what a member applied.
    ///
    /// # Errors
    /// The promise that this breaks.
    pub fn commits(&mut self, member: MemberId, entry: Entry) -> Result<(), Violation> {
        let position = entry.index.0 as usize - 1;
        match self.chosen.get(position) {
            Some(chosen) if *chosen != entry => {
                return Err(Violation(format!("{member} has {entry:?} where {chosen:?} is")));
            }
            Some(_) => {}
            None => {
                if let Some(number) = number_of(&entry.content)
                    && !self.numbers.insert(number)
                {
                    return Err(Violation(format!("{number} is there twice")));
                }
                self.chosen.push(entry.clone());
            }
        }
        if let Some((term, number)) = self.open.get(&(member, entry.index)).copied()
            && term == entry.term
        {
            self.open.remove(&(member, entry.index));
            self.acknowledge(number, entry.index);
        }
        Ok(())
    }

    pub fn acknowledge(&mut self, number: u64, index: EntryIndex) {
        self.acknowledged.insert(number, index);
        self.newest = self.newest.max(index);
    }

    pub fn proposed(&mut self, member: MemberId, index: EntryIndex, term: Term, number: u64) {
        self.open.insert((member, index), (term, number));
    }

    /// Something that was proposed and isn't answered.
    pub fn unanswered(&self, random: &mut Random) -> Option<u64> {
        let open: Vec<u64> = self.open.values().map(|(_, number)| *number).collect();
        (!open.is_empty()).then(|| *random.choose(&open))
    }

    /// The proposals that `member` took, up to an entry.
    pub fn taken_by(&self, member: MemberId, up_to: EntryIndex) -> Vec<(u64, EntryIndex)> {
        let range = (member, EntryIndex::ZERO)..=(member, up_to);
        self.open.range(range).map(|((_, index), (_, number))| (*number, *index)).collect()
    }

    pub fn begin_read(&mut self, member: MemberId, read: ReadId) {
        self.newest_at_read.insert((member, read), self.newest);
    }

    /// Notes what a read answered.
    ///
    /// # Errors
    /// The promise that this breaks.
    pub fn reads(
        &mut self,
        member: MemberId,
        read: ReadId,
        index: EntryIndex,
    ) -> Result<(), Violation> {
        let newest = self.newest_at_read.remove(&(member, read));
        let newest = newest.ok_or_else(|| Violation("a read that wasn't asked for".to_owned()))?;
        self.read_count += 1;
        if newest <= index {
            return Ok(());
        }
        Err(Violation(format!("{member} reads at {index:?}, {newest:?} was acknowledged")))
    }

    /// Checks that every acknowledged proposal was committed.
    ///
    /// # Errors
    /// The promise that is broken.
    pub fn check_end(&self) -> Result<(), Violation> {
        for (number, index) in &self.acknowledged {
            let chosen = self.chosen.get(index.0 as usize - 1);
            if chosen.and_then(|entry| number_of(&entry.content)) != Some(*number) {
                return Err(Violation(format!(
                    "{number} was acknowledged at {index:?}: {chosen:?}"
                )));
            }
        }
        if self.stale {
            return Err(Violation("a read was stale".to_owned()));
        }
        Ok(())
    }
}
