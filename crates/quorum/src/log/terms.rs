//! The term of each entry, run-length encoded: most entries have the term of the one before.

use crate::ids::{EntryIndex, Term};

/// The terms of a log's entries.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Terms {
    /// The entry before the first that there is, and its term: it and those before it were cut.
    before: (EntryIndex, Term),
    /// First entries of a term, ascending in both; the first of all is the one after `before`.
    starts: Vec<(EntryIndex, Term)>,
    last: EntryIndex,
}

impl Terms {
    /// Those of a log that begins behind an entry.
    pub fn behind(before: EntryIndex, term: Term) -> Terms {
        Terms { before: (before, term), starts: Vec::new(), last: before }
    }

    /// The entry before the first.
    pub fn before(&self) -> EntryIndex {
        self.before.0
    }

    /// The last entry.
    pub fn last(&self) -> EntryIndex {
        self.last
    }

    /// The term of an entry, or of the one before the first; `None` where there is none.
    pub fn of(&self, index: EntryIndex) -> Option<Term> {
        if index == self.before.0 {
            return Some(self.before.1);
        }
        if index < self.before.0 || self.last < index {
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
        if index <= self.before.0 || self.last.next() < index {
            return Err("an entry is missing");
        }
        self.starts.truncate(self.starts.partition_point(|(start, _)| *start < index));
        let term_before = self.starts.last().map_or(self.before.1, |(_, term)| *term);
        if term < term_before {
            return Err("a term falls");
        }
        if self.starts.is_empty() || term_before < term {
            self.starts.push((index, term));
        }
        self.last = index;
        Ok(())
    }

    /// Forgets the entries up to this one, which there is.
    pub fn compact(&mut self, up_to: EntryIndex) {
        let term = self.of(up_to).expect("what is cut is there");
        self.starts.retain(|(start, _)| up_to < *start);
        let next = self.starts.first().map_or(self.last.next(), |(start, _)| *start);
        if up_to.next() < next {
            self.starts.insert(0, (up_to.next(), term));
        }
        self.before = (up_to, term);
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
        let terms_of = |terms: &Terms| {
            (0..7).map(|n| terms.of(EntryIndex(n)).map(|term| term.0)).collect::<Vec<_>>()
        };
        assert_eq!(terms_of(&terms), [Some(0), Some(1), Some(1), Some(2), Some(5), Some(5), None]);
        terms.push(EntryIndex(3), Term(6)).expect("it takes the place");
        assert_eq!(terms_of(&terms), [Some(0), Some(1), Some(1), Some(6), None, None, None]);
        assert!(terms.push(EntryIndex(5), Term(6)).is_err());
        assert!(terms.push(EntryIndex(4), Term(5)).is_err());
        assert!(terms.push(EntryIndex(0), Term(9)).is_err());
    }

    #[test]
    fn compaction_leaves_the_other_terms_unchanged() {
        for up_to in 0..=6 {
            let mut whole = Terms::default();
            for (index, term) in [(1, 1), (2, 1), (3, 2), (4, 5), (5, 5), (6, 5)] {
                whole.push(EntryIndex(index), Term(term)).expect("in order");
            }
            let mut compacted = whole.clone();
            compacted.compact(EntryIndex(up_to));
            assert_eq!(compacted.before(), EntryIndex(up_to));
            for index in 0..9 {
                let expected = whole.of(EntryIndex(index)).filter(|_| up_to <= index);
                assert_eq!(compacted.of(EntryIndex(index)), expected, "{index} behind {up_to}");
            }
            assert!(compacted.push(EntryIndex(up_to), Term(9)).is_err());
            compacted.push(EntryIndex(7), Term(5)).expect("the next one");
            assert!(compacted.push(EntryIndex(8), Term(4)).is_err());
        }
    }
}
