//! Who wrote what since when: the first committer wins.
//!
//! The table maps what was written to the last Sequence that wrote it. Keys are named by fingerprints
//! of 64 bits with a random seed, computed before the queue's lock is taken: two keys with one
//! fingerprint would only cost a needless retry.
//!
//! *Forgetting*: there are two generations of fingerprints. When the younger has grown and no open
//! transaction can conflict with anything in the older, the older is thrown away as a whole and the
//! younger takes its place; so forgetting costs nothing for each key.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::ids::{Sequence, TreeId};
use crate::intents::Owner;
use crate::log::record::Record;

/// A generation has at least so many fingerprints before it is the older one: some 100 KB.
const GENERATION_COUNT_MIN: usize = 4096;
/// A table that once was so many times larger than it must be gives its memory back.
const SPARE_TIMES_MAX: usize = 8;
/// With more trees than this, those that nobody can conflict over are forgotten.
const TREE_COUNT_MIN: usize = 1024;
/// Spreads tree ids over a fingerprint's seeds.
const TREE_FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Where a transaction began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beginning {
    /// Its snapshot.
    pub sequence: Sequence,
    /// Whether its writes may depend on what it saw there. One that saw nothing loses no update,
    /// whatever was put since.
    pub has_read: bool,
    /// Who it is, if it hasn't claimed all that it writes: it must not write what others have claimed.
    pub without_claims: Option<Owner>,
}

/// The fingerprints of what a transaction wrote and of what it wants unchanged.
pub(crate) struct Footprint {
    /// Of the record's keys, in its order.
    written: Vec<u64>,
    /// What it wants unchanged.
    validated: Vec<(TreeId, Vec<u8>, u64)>,
}

impl Footprint {
    /// Computes the fingerprints, with the seed of the table.
    pub fn new(seed: u64, record: &Record, validated: Vec<(TreeId, Vec<u8>)>) -> Footprint {
        let count = record.writes.iter().map(|(_, entries)| entries.len()).sum();
        let mut written = Vec::with_capacity(count);
        for (tree, entries) in &record.writes {
            written.extend(entries.iter().map(|(key, _)| fingerprint(seed, *tree, key)));
        }
        let validated = validated.into_iter().map(|(tree, key)| {
            let found = fingerprint(seed, tree, &key);
            (tree, key, found)
        });
        Footprint { written, validated: validated.collect() }
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

/// Names a key.
pub(crate) fn fingerprint(seed: u64, tree: TreeId, key: &[u8]) -> u64 {
    // The tree is part of the seed: nothing has to be copied for hashing.
    xxh3_64_with_seed(key, seed.wrapping_add(tree.0.wrapping_mul(TREE_FACTOR)))
}

/// Fingerprints are hashes already.
#[derive(Default)]
pub(crate) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only fingerprints are hashed, by the method below; this would be right too.
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }
}

type Writers = HashMap<u64, Sequence, BuildHasherDefault<AsItIs>>;

/// When a tree was last changed.
#[derive(Clone, Copy, Default)]
struct TreeChanges {
    /// Any key of it was written.
    any_key: Sequence,
    /// It got another base, or was dropped.
    whole: Sequence,
}

/// The last writers.
#[derive(Default)]
pub(crate) struct ConflictTable {
    younger: Writers,
    older: Writers,
    /// Nothing in `older` was written after this.
    older_upto: Sequence,
    trees: HashMap<TreeId, TreeChanges>,
    /// The last Sequence noted.
    last: Sequence,
}

impl ConflictTable {
    /// What was changed that the transaction should have seen, if anything: the first key, or a tree
    /// with an empty key. Where a tree got another base, or was dropped, the transaction may have
    /// meant the one before: even one that has read nothing conflicts with that.
    pub fn conflict<'a>(
        &self,
        beginning: Beginning,
        record: &'a Record,
        footprint: &'a Footprint,
    ) -> Option<(TreeId, &'a [u8])> {
        let since = beginning.sequence;
        let changes = |tree: TreeId| self.trees.get(&tree).copied().unwrap_or_default();
        for (tree, _) in &record.bases {
            if since < changes(*tree).any_key.max(changes(*tree).whole) {
                return Some((*tree, &[]));
            }
        }
        let written = record.writes.iter().map(|(tree, _)| *tree);
        for tree in written.chain(footprint.validated.iter().map(|(tree, ..)| *tree)) {
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
            .zip(footprint.written.iter().copied());
        let validated = footprint.validated.iter();
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
    pub fn note(&mut self, record: &Record, footprint: &Footprint, sequence: Sequence) {
        for (tree, _) in &record.bases {
            self.trees.entry(*tree).or_default().whole = sequence;
        }
        for (tree, _) in &record.writes {
            self.trees.entry(*tree).or_default().any_key = sequence;
        }
        self.younger.extend(footprint.written.iter().map(|fingerprint| (*fingerprint, sequence)));
        self.last = sequence;
    }

    /// Whether it is worth while to ask for the oldest open transaction and `forget`.
    pub fn is_forgetting_due(&self) -> bool {
        self.younger.len() >= GENERATION_COUNT_MIN || self.trees.len() >= TREE_COUNT_MIN
    }

    /// Forgets what only transactions could conflict with that began before `oldest`, the snapshot of
    /// the oldest open one.
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

    fn beginning(since: u64, has_read: bool) -> Beginning {
        Beginning { sequence: Sequence(since), has_read, without_claims: None }
    }

    fn writing(keys: &[&str]) -> Record {
        let entries = keys.iter().map(|key| (Bytes::copy_from_slice(key.as_bytes()), None));
        Record { writes: vec![(TREE, entries.collect())], ..Record::default() }
    }

    fn replacing() -> Record {
        Record { bases: vec![(TREE, None)], ..Record::default() }
    }

    fn footprint(record: &Record, validated: &[&str]) -> Footprint {
        let validated = validated.iter().map(|key| (TREE, key.as_bytes().to_vec()));
        Footprint::new(SEED, record, validated.collect())
    }

    fn note(table: &mut ConflictTable, record: &Record, sequence: u64) {
        table.note(record, &footprint(record, &[]), Sequence(sequence));
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
            let footprint = footprint(&record, validated);
            let found = table.conflict(begun, &record, &footprint);
            let expected = expected.map(|key| (TREE, key.as_bytes()));
            assert_eq!(found, expected, "{record:?} {validated:?} {has_read} since {since}");
        }
        let elsewhere =
            Record { writes: vec![(TreeId(9), vec![("a".into(), None)])], ..writing(&[]) };
        let begun = beginning(0, true);
        assert_eq!(table.conflict(begun, &elsewhere, &footprint(&elsewhere, &[])), None);
    }

    #[test]
    fn forgetting_keeps_what_an_open_transaction_can_conflict_with() {
        let mut table = ConflictTable::default();
        let keys: Vec<String> = (0..GENERATION_COUNT_MIN).map(|key| key.to_string()).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let conflicts = |table: &ConflictTable, since| {
            let record = writing(&["7"]);
            table.conflict(beginning(since, true), &record, &footprint(&record, &[])).is_some()
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
