//! The term of each entry: few numbers, since most entries have the term of the one before.

use crate::ids::{EntryIndex, Term};

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Terms {
    /// First entries of a term, ascending in both; the first of all is entry 1.
    starts: Vec<(EntryIndex, Term)>,
    last: EntryIndex,
}

impl Terms {
    /// The last entry.
    pub fn last(&self) -> EntryIndex {
        self.last
    }

    /// The term of an entry; `None` where there is none.
    pub fn of(&self, index: EntryIndex) -> Option<Term> {
        if index == EntryIndex::ZERO || self.last < index {
            return None;
        }
        let behind = self.starts.partition_point(|(start, _)| *start <= index);
        behind.checked_sub(1).map(|position| self.starts[position].1)
    }

    /// The entry `index` has `term`, and is the last.
    ///
    /// # Errors
    /// Says what is wrong with it: entries have no gaps, and no smaller term than those before.
    pub fn push(&mut self, index: EntryIndex, term: Term) -> Result<(), &'static str> {
        if index == EntryIndex::ZERO || self.last.next() < index {
            return Err("an entry is missing");
        }
        self.starts.truncate(self.starts.partition_point(|(start, _)| *start < index));
        match self.starts.last() {
            Some((_, before)) if term < *before => return Err("a term falls"),
            Some((_, before)) if term == *before => {}
            _ => self.starts.push((index, term)),
        }
        self.last = index;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_of_entries_that_are_replaced() {
        let mut terms = Terms::default();
        for (index, term) in [(1, 1), (2, 1), (3, 2), (4, 5), (5, 5)] {
            terms.push(EntryIndex(index), Term(term)).expect("in order");
        }
        let told = |terms: &Terms| {
            (0..7).map(|n| terms.of(EntryIndex(n)).map(|term| term.0)).collect::<Vec<_>>()
        };
        assert_eq!(told(&terms), [None, Some(1), Some(1), Some(2), Some(5), Some(5), None]);
        terms.push(EntryIndex(3), Term(6)).expect("it takes the place");
        assert_eq!(told(&terms), [None, Some(1), Some(1), Some(6), None, None, None]);
        assert!(terms.push(EntryIndex(5), Term(6)).is_err());
        assert!(terms.push(EntryIndex(4), Term(5)).is_err());
        assert!(terms.push(EntryIndex(0), Term(9)).is_err());
    }
}
