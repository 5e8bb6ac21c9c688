//! The table of recent writers: the first committer wins.
//!
//! The table maps what was written to the last Sequence that wrote it. Keys are named by
//! fingerprints of 64 bits with a random seed, computed before the queue's lock is taken: two keys
//! with one fingerprint would only cost a needless retry.
//!
//! *Forgetting*: there are two generations of fingerprints. When the younger has grown and no open
//! transaction can conflict with anything in the older, the older is thrown away as a whole and the
//! younger takes its place; so forgetting costs nothing for each key.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::fingerprint::{IdentityHasher, fingerprint};
use crate::ids::{Sequence, TreeId};
use crate::log::record::Record;
use crate::log::retained::RetentionTerm;
use crate::queue::key_locks::Owner;
use crate::queue::queued_reads::QueuedReads;

/// A generation has at least so many fingerprints before it is the older one: some 100 KB.
const GENERATION_COUNT_MIN: usize = 4096;
/// A table that once was so many times larger than it must be gives its memory back.
const SPARE_TIMES_MAX: usize = 8;
/// The number of trees above which those that no transaction can conflict over are forgotten.
const TREE_COUNT_MIN: usize = 1024;

/// The state at which a transaction began.
#[derive(Clone, Copy)]
pub(crate) struct TransactionStart<'a> {
    /// Its snapshot.
    pub sequence: Sequence,
    /// Whether its writes may depend on what it saw there. One that saw nothing loses no update,
    /// whatever was put since.
    pub has_read: bool,
    /// The transaction, if it hasn't locked all keys that it writes: it must not write those that
    /// others have locked.
    pub without_claims: Option<Owner>,
    /// Whether it gives space back, so that it may use what is held back for that.
    pub gives_back: bool,
    /// The queued reads, if its snapshot shows what was queued.
    pub ahead: Option<&'a QueuedReads>,
    /// The term of keeping the log in which it recorded what it changed.
    pub term: RetentionTerm,
    /// An earlier transaction without which it isn't to be: if that is refused, this one is, too.
    pub requires: Option<Sequence>,
}

/// The fingerprints of what a transaction wrote and of what it wants unchanged.
pub(crate) struct ConflictSet {
    /// The hashes of the record's keys, in its order.
    written: Vec<u64>,
    /// The keys that it wants unchanged.
    validated: Vec<(TreeId, Vec<u8>, u64)>,
    /// Trees that must have every key unchanged.
    validated_trees: Vec<TreeId>,
}

impl ConflictSet {
    /// Computes the fingerprints, with the seed of the table.
    pub fn new(
        seed: u64,
        record: &Record,
        validated: Vec<(TreeId, Vec<u8>)>,
        validated_trees: Vec<TreeId>,
    ) -> ConflictSet {
        let count = record.writes.iter().map(|(_, entries)| entries.len()).sum();
        let mut written = Vec::with_capacity(count);
        for (tree, entries) in &record.writes {
            written.extend(entries.iter().map(|(key, _)| fingerprint(seed, *tree, key)));
        }
        let validated = validated.into_iter().map(|(tree, key)| {
            let found = fingerprint(seed, tree, &key);
            (tree, key, found)
        });
        ConflictSet { written, validated: validated.collect(), validated_trees }
    }

    /// The first key of `record` whose fingerprint `is_meant`.
    pub fn written_key<'a>(
        &self,
        record: &'a Record,
        is_meant: impl Fn(u64) -> bool,
    ) -> Option<(TreeId, &'a [u8])> {
        let position = self.written.iter().position(|fingerprint| is_meant(*fingerprint))?;
        let keys = record.writes.iter();
        let mut keys =
            keys.flat_map(|(tree, entries)| entries.iter().map(|(key, _)| (*tree, &key[..])));
        keys.nth(position)
    }
}

type Writers = HashMap<u64, Sequence, BuildHasherDefault<IdentityHasher>>;

/// The last changes of a tree.
#[derive(Clone, Copy, Default)]
struct TreeChanges {
    /// The last Sequence at which any key of it was written.
    any_key: Sequence,
    /// It got another base, or was dropped.
    whole: Sequence,
}

/// The last writers.
#[derive(Default)]
pub(crate) struct ConflictTable {
    younger: Writers,
    older: Writers,
    /// The Sequence after which nothing in `older` was written.
    older_upto: Sequence,
    trees: HashMap<TreeId, TreeChanges>,
    /// The last Sequence noted.
    last: Sequence,
}

impl ConflictTable {
    /// Returns the change that the transaction should have seen, if there is one: the first key, or
    /// a tree with an empty key. Where a tree got another base, or was dropped, the transaction may
    /// have meant the one before: even one that has read nothing conflicts with that.
    pub fn conflict<'a>(
        &self,
        beginning: TransactionStart<'_>,
        record: &'a Record,
        conflict_set: &'a ConflictSet,
    ) -> Option<(TreeId, &'a [u8])> {
        let since = beginning.sequence;
        let changes = |tree: TreeId| self.trees.get(&tree).copied().unwrap_or_default();
        let replaced = record.bases.iter().map(|(tree, _)| tree);
        for tree in replaced.chain(&conflict_set.validated_trees) {
            if since < changes(*tree).any_key.max(changes(*tree).whole) {
                return Some((*tree, &[]));
            }
        }
        let written = record.writes.iter().map(|(tree, _)| *tree);
        for tree in written.chain(conflict_set.validated.iter().map(|(tree, ..)| *tree)) {
            if since < changes(tree).whole {
                return Some((tree, &[]));
            }
        }
        if !beginning.has_read {
            return None;
        }
        let keys = record
            .writes
            .iter()
            .flat_map(|(tree, entries)| entries.iter().map(|(key, _)| (*tree, &key[..])))
            .zip(conflict_set.written.iter().copied());
        let validated = conflict_set.validated.iter();
        let validated = validated.map(|(tree, key, found)| ((*tree, &key[..]), *found));
        let mut all = keys.chain(validated);
        all.find(|(_, fingerprint)| self.changed_at(*fingerprint, since).is_some())
            .map(|(key, _)| key)
    }

    /// The last that wrote a key, if that was after `since`.
    pub fn changed_at(&self, fingerprint: u64, since: Sequence) -> Option<Sequence> {
        let after =
            |writers: &Writers| writers.get(&fingerprint).copied().filter(|last| since < *last);
        let in_older = || (since < self.older_upto).then(|| after(&self.older)).flatten();
        after(&self.younger).or_else(in_older)
    }

    /// Notes what the transaction `sequence`, the last so far, wrote.
    pub fn note(&mut self, record: &Record, conflict_set: &ConflictSet, sequence: Sequence) {
        for (tree, _) in &record.bases {
            self.trees.entry(*tree).or_default().whole = sequence;
        }
        for (tree, _) in &record.writes {
            self.trees.entry(*tree).or_default().any_key = sequence;
        }
        self.younger
            .extend(conflict_set.written.iter().map(|fingerprint| (*fingerprint, sequence)));
        self.last = sequence;
    }

    /// Whether it is worth while to ask for the oldest open transaction and `forget`.
    pub fn is_forgetting_due(&self) -> bool {
        self.younger.len() >= GENERATION_COUNT_MIN || self.trees.len() >= TREE_COUNT_MIN
    }

    /// Forgets what only transactions could conflict with that began before `oldest`, the snapshot
    /// of the oldest open one.
    pub fn forget(&mut self, oldest: Sequence) {
        if self.older_upto <= oldest && self.younger.len() >= GENERATION_COUNT_MIN {
            self.older.clear();
            if self.older.capacity() > SPARE_TIMES_MAX * self.younger.len() {
                self.older = Writers::default();
            }
            std::mem::swap(&mut self.older, &mut self.younger);
            self.older_upto = self.last;
        }
        if self.trees.len() >= TREE_COUNT_MIN {
            self.trees.retain(|_, changes| oldest < changes.any_key.max(changes.whole));
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const SEED: u64 = 4;
    const TREE: TreeId = TreeId(8);

    fn beginning(since: u64, has_read: bool) -> TransactionStart<'static> {
        TransactionStart {
            sequence: Sequence(since),
            has_read,
            without_claims: None,
            gives_back: false,
            ahead: None,
            term: RetentionTerm::NONE,
            requires: None,
        }
    }

    fn writing(keys: &[&str]) -> Record {
        let entries = keys.iter().map(|key| (Bytes::copy_from_slice(key.as_bytes()), None));
        Record { writes: vec![(TREE, entries.collect())], ..Record::default() }
    }

    fn replacing() -> Record {
        Record { bases: vec![(TREE, None)], ..Record::default() }
    }

    fn conflict_set(record: &Record, validated: &[&str]) -> ConflictSet {
        let validated = validated.iter().map(|key| (TREE, key.as_bytes().to_vec()));
        ConflictSet::new(SEED, record, validated.collect(), Vec::new())
    }

    fn note(table: &mut ConflictTable, record: &Record, sequence: u64) {
        table.note(record, &conflict_set(record, &[]), Sequence(sequence));
    }

    /// The table after: keys a and b at 5, the whole tree at 6, a again at 7.
    fn sample() -> ConflictTable {
        let mut table = ConflictTable::default();
        note(&mut table, &writing(&["a", "b"]), 5);
        note(&mut table, &replacing(), 6);
        note(&mut table, &writing(&["a"]), 7);
        table
    }

    #[test]
    fn a_transaction_conflicts_with_what_was_written_after_its_snapshot() {
        // (writes, wants unchanged, has read, snapshot, what is in its way)
        type Case<'a> = (Record, &'a [&'a str], bool, u64, Option<&'a str>);
        let cases: [Case<'_>; 10] = [
            (writing(&["a"]), &[], true, 6, Some("a")),
            (writing(&["a"]), &[], true, 7, None),
            (writing(&["a"]), &[], false, 6, None),
            (writing(&["a"]), &[], false, 5, Some("")),
            (writing(&["c"]), &[], true, 6, None),
            (writing(&["c"]), &[], true, 5, Some("")),
            (writing(&["c"]), &["a"], true, 6, Some("a")),
            (Record::default(), &["b"], true, 6, None),
            (replacing(), &[], false, 6, Some("")),
            (replacing(), &[], false, 7, None),
        ];
        let table = sample();
        for (record, validated, has_read, since, expected) in cases {
            let begun = beginning(since, has_read);
            let conflict_set = conflict_set(&record, validated);
            let found = table.conflict(begun, &record, &conflict_set);
            let expected = expected.map(|key| (TREE, key.as_bytes()));
            assert_eq!(found, expected, "{record:?} {validated:?} {has_read} since {since}");
        }
        let elsewhere =
            Record { writes: vec![(TreeId(9), vec![("a".into(), None)])], ..writing(&[]) };
        let begun = beginning(0, true);
        assert_eq!(table.conflict(begun, &elsewhere, &conflict_set(&elsewhere, &[])), None);
    }

    #[test]
    fn a_tree_that_must_stay_as_it_is_conflicts_with_every_write_to_it() {
        let table = sample();
        let record = Record { writes: vec![(TreeId(9), vec![("z".into(), None)])], ..writing(&[]) };
        for (since, is_conflict) in [(4, true), (5, true), (6, true), (7, false)] {
            let conflict_set = ConflictSet::new(SEED, &record, Vec::new(), vec![TREE]);
            let found = table.conflict(beginning(since, true), &record, &conflict_set);
            assert_eq!(found, is_conflict.then_some((TREE, &[][..])), "since {since}");
        }
    }

    #[test]
    fn forgetting_keeps_what_an_open_transaction_can_conflict_with() {
        let mut table = ConflictTable::default();
        let keys: Vec<String> = (0..GENERATION_COUNT_MIN).map(|key| key.to_string()).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let conflicts = |table: &ConflictTable, since| {
            let record = writing(&["7"]);
            table.conflict(beginning(since, true), &record, &conflict_set(&record, &[])).is_some()
        };
        for round in 1..100 {
            note(&mut table, &writing(&keys), round);
            assert!(table.is_forgetting_due());
            // The oldest open transaction is always ten behind.
            let oldest = round.saturating_sub(10);
            table.forget(Sequence(oldest));
            assert!((oldest..round).all(|since| conflicts(&table, since)), "{round}");
            assert!(!conflicts(&table, round));
        }
        assert!(table.younger.len() + table.older.len() <= 2 * keys.len());
    }
}
