//! Who wrote what since when: the first committer wins.
//!
//! The table maps what was written to the last Sequence that wrote it, and forgets what no open
//! transaction can conflict with. What was written is named by a fingerprint of 128 bits with a
//! random seed: two different keys with one fingerprint would only cost a needless retry.

use std::collections::{HashMap, VecDeque};

use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::ids::{Sequence, TreeId};

/// Where a transaction began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beginning {
    /// Its snapshot.
    pub sequence: Sequence,
    /// Whether its writes may depend on what it saw there. One that saw nothing loses no update,
    /// whatever was put since.
    pub has_read: bool,
}

/// What a transaction wrote, or wants unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Subject<'a> {
    /// The value of a key.
    Key(TreeId, &'a [u8]),
    /// Any key of the tree: written whenever one is.
    AnyKey(TreeId),
    /// The tree as a whole: it got another base, or was dropped.
    Whole(TreeId),
}

/// The last writers.
pub(crate) struct ConflictTable {
    seed: u64,
    last: HashMap<u128, Sequence>,
    /// Every entry made, in the order of Sequences, so that forgetting costs what it forgets.
    order: VecDeque<(Sequence, u128)>,
}

impl ConflictTable {
    /// An empty table.
    pub fn new(seed: u64) -> ConflictTable {
        ConflictTable { seed, last: HashMap::new(), order: VecDeque::new() }
    }

    /// Whether `subject` was written after `since`.
    pub fn changed(&self, subject: Subject<'_>, since: Sequence) -> bool {
        let last = self.last.get(&self.fingerprint(subject));
        last.is_some_and(|last| since < *last)
    }

    /// Notes that the transaction `sequence`, the last so far, wrote `subject`.
    pub fn note(&mut self, subject: Subject<'_>, sequence: Sequence) {
        let fingerprint = self.fingerprint(subject);
        self.last.insert(fingerprint, sequence);
        self.order.push_back((sequence, fingerprint));
    }

    /// Forgets what was written up to `oldest`, the snapshot of the oldest open transaction.
    pub fn forget(&mut self, oldest: Sequence) {
        while let Some((sequence, fingerprint)) = self.order.front().copied()
            && sequence <= oldest
        {
            self.order.pop_front();
            if self.last.get(&fingerprint) == Some(&sequence) {
                self.last.remove(&fingerprint);
            }
        }
    }

    fn fingerprint(&self, subject: Subject<'_>) -> u128 {
        // The kind is part of the seed, the tree too: nothing has to be copied for hashing.
        let (kind, tree, key) = match subject {
            Subject::Key(tree, key) => (1, tree, key),
            Subject::AnyKey(tree) => (2, tree, &[][..]),
            Subject::Whole(tree) => (3, tree, &[][..]),
        };
        let mut seed = [0; 17];
        seed[..8].copy_from_slice(&self.seed.to_le_bytes());
        seed[8..16].copy_from_slice(&tree.0.to_le_bytes());
        seed[16] = kind;
        xxh3_128_with_seed(key, xxhash_rust::xxh3::xxh3_64(&seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_changed_if_it_was_written_after_the_snapshot() {
        let mut table = ConflictTable::new(4);
        let tree = TreeId(8);
        table.note(Subject::Key(tree, b"a"), Sequence(5));
        table.note(Subject::AnyKey(tree), Sequence(5));
        table.note(Subject::Whole(tree), Sequence(6));
        table.note(Subject::Key(tree, b"a"), Sequence(7));
        let check = |table: &ConflictTable, subject, since, expected| {
            assert_eq!(table.changed(subject, Sequence(since)), expected, "{subject:?} {since}");
        };
        check(&table, Subject::Key(tree, b"a"), 6, true);
        check(&table, Subject::Key(tree, b"a"), 7, false);
        check(&table, Subject::Key(tree, b"b"), 0, false);
        check(&table, Subject::Key(TreeId(9), b"a"), 0, false);
        check(&table, Subject::Key(tree, b""), 0, false);
        check(&table, Subject::AnyKey(tree), 4, true);
        check(&table, Subject::Whole(tree), 5, true);
        table.forget(Sequence(6));
        check(&table, Subject::Key(tree, b"a"), 6, true);
        check(&table, Subject::Whole(tree), 5, false);
        table.forget(Sequence(7));
        assert!(table.last.is_empty() && table.order.is_empty());
    }
}
