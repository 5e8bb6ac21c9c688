//! The memtable: recent writes of all trees, ordered by (tree, key, newest first).
//!
//! *Invariants*
//! 1. Entries are inserted by one thread at a time (under the commit lock) and read by any number.
//! 2. An entry is visible to a reader whose Sequence is at least its own. Entries are inserted
//!    before their Sequence becomes visible, so a reader that may see one always finds it.
//! 3. The journal names, for each (tree, Sequence), exactly the keys that were written then. It
//!    makes "what has changed since" cost what has changed since, not the memtable's size.
//!
//! Both maps are lock-free skip lists, so a reader never waits for a writer.

use std::borrow::Borrow;
use std::cmp::{Ordering, Reverse};
use std::ops::Bound;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering as Atomic};

use bytes::Bytes;
use crossbeam_skiplist::SkipMap;
use crossbeam_skiplist::map::Entry;
use frond_tree::{Bounds, Content, Direction, Value};

use crate::ids::{Sequence, TreeId};

/// Memory of an entry besides its key's and value's bytes: two `Bytes`, a skip list's node, the
/// journal's share. Measured roughly; it only decides when a memtable is full.
const ENTRY_OVERHEAD_BYTES: u64 = 200;

/// A key and what became of it: a value, or a deletion.
pub(crate) type OverlayEntry = (Bytes, Option<Value>);

/// The moments of which a reader wants to see the entries: `after < sequence <= upto`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    /// What the base already contains.
    pub after: Sequence,
    /// The reader's Sequence.
    pub upto: Sequence,
}

impl Window {
    fn contains(self, sequence: Sequence) -> bool {
        self.after < sequence && sequence <= self.upto
    }
}

/// Recent writes of all trees.
#[derive(Default)]
pub(crate) struct Memtable {
    entries: SkipMap<EntryKey, Option<Value>>,
    journal: SkipMap<(TreeId, Sequence), Touched>,
    totals: SkipMap<TreeId, Totals>,
    bytes: AtomicU64,
}

/// What was done to one tree in all: never less than what is there, so that a look at it often
/// saves walking the journal.
#[derive(Default)]
struct Totals {
    writes: AtomicU64,
    /// Of keys and inline values.
    bytes: AtomicU64,
    flags: AtomicU8,
}

/// What one transaction did to one tree.
struct Touched {
    keys: Box<[Bytes]>,
    flags: u8,
}

impl Memtable {
    /// Adds the writes of one transaction to one tree; their keys are distinct.
    pub fn insert(&self, tree: TreeId, sequence: Sequence, writes: Vec<OverlayEntry>) {
        let mut flags = 0;
        let mut bytes = 0;
        let count = writes.len() as u64;
        let mut keys = Vec::with_capacity(writes.len());
        for (key, value) in writes {
            flags |= value.as_ref().map_or(0, |value| value.flags);
            bytes += entry_bytes(&key, value.as_ref());
            keys.push(key.clone());
            self.entries.insert(EntryKey::new(tree, key, sequence), value);
        }
        let totals = self.totals.get_or_insert_with(tree, Totals::default);
        totals.value().writes.fetch_add(count, Atomic::Relaxed);
        let written = bytes - count * ENTRY_OVERHEAD_BYTES;
        totals.value().bytes.fetch_add(written, Atomic::Relaxed);
        totals.value().flags.fetch_or(flags, Atomic::Relaxed);
        self.journal.insert((tree, sequence), Touched { keys: keys.into(), flags });
        self.bytes.fetch_add(bytes, Atomic::Relaxed);
    }

    /// Takes back what `insert` did, for a transaction that was refused and never visible.
    pub fn remove(&self, tree: TreeId, sequence: Sequence, writes: &[OverlayEntry]) {
        for (key, _) in writes {
            let place = Sought::new(tree, key, sequence);
            self.entries.remove(&place as &dyn Place);
        }
        self.journal.remove(&(tree, sequence));
        let bytes = writes.iter().map(|(key, value)| entry_bytes(key, value.as_ref())).sum();
        self.bytes.fetch_sub(bytes, Atomic::Relaxed);
    }

    /// Tells `take` of every value, of whatever Sequence.
    pub fn for_each_value(&self, mut take: impl FnMut(&Value)) {
        self.entries.iter().for_each(|entry| {
            if let Some(value) = entry.value() {
                take(value);
            }
        });
    }

    /// About how much memory the entries take.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Atomic::Relaxed)
    }

    /// Returns the newest entry of `key` within `window`.
    pub fn get(&self, tree: TreeId, key: &[u8], window: Window) -> Option<Option<Value>> {
        let place = Sought::new(tree, key, window.upto);
        let entry = self.entries.lower_bound(Bound::Included(&place as &dyn Place))?;
        let found = entry.key();
        let same_key = found.tree == tree && found.key == key;
        (same_key && window.contains(found.sequence)).then(|| entry.value().clone())
    }

    /// Whether `tree` was written within `window`.
    pub fn touches(&self, tree: TreeId, window: Window) -> bool {
        self.journal_range(tree, window).next().is_some()
    }

    /// The OR of the flags of all values written to `tree` within `window`.
    pub fn flags(&self, tree: TreeId, window: Window) -> u8 {
        let Some(totals) = self.totals.get(&tree) else {
            return 0;
        };
        let most = totals.value().flags.load(Atomic::Relaxed);
        let mut flags = 0;
        let mut touched = self.journal_range(tree, window);
        while flags != most
            && let Some(entry) = touched.next()
        {
            flags |= entry.value().flags;
        }
        flags
    }

    /// How many writes of `tree` there are at most, several to one key counted.
    pub fn writes_max(&self, tree: TreeId) -> u64 {
        self.totals.get(&tree).map_or(0, |totals| totals.value().writes.load(Atomic::Relaxed))
    }

    /// How many bytes of keys and inline values were written to `tree` at most.
    pub fn written_bytes(&self, tree: TreeId) -> u64 {
        self.totals.get(&tree).map_or(0, |totals| totals.value().bytes.load(Atomic::Relaxed))
    }

    /// Adds the keys of `tree` written within `window` to `keys`; one written twice comes twice.
    pub fn touched_keys(&self, tree: TreeId, window: Window, keys: &mut Vec<Bytes>) {
        for entry in self.journal_range(tree, window) {
            keys.extend_from_slice(&entry.value().keys);
        }
    }

    /// The trees that have entries, in order.
    pub fn trees(&self) -> Vec<TreeId> {
        let mut trees = Vec::new();
        let mut next = Bound::Included((TreeId(0), Sequence::ZERO));
        while let Some(entry) = self.journal.lower_bound(next.as_ref()) {
            let tree = entry.key().0;
            trees.push(tree);
            next = Bound::Excluded((tree, Sequence(u64::MAX)));
        }
        trees
    }

    /// Appends to `out` the newest entry within `window` of each key within `bounds`, in
    /// `direction`, until `count` were added. Returns whether there may be more beyond the last.
    pub fn batch(
        &self,
        tree: TreeId,
        bounds: &Bounds,
        direction: Direction,
        window: Window,
        count: usize,
        out: &mut impl Extend<OverlayEntry>,
    ) -> bool {
        if let (Some(start), Some(end)) = (&bounds.start, &bounds.end)
            && start >= end
        {
            return false;
        }
        // Within a key the newest comes first: the greatest Sequence opens a key's entries, also
        // those of the key that ends the range, which so are all left out.
        let newest = Sequence(u64::MAX);
        let start = Sought::new(tree, bounds.start.as_deref().unwrap_or_default(), newest);
        let end = match &bounds.end {
            Some(end) => Sought::new(tree, end, newest),
            None => Sought::new(TreeId(tree.0 + 1), &[], newest),
        };
        let range = self.entries.range::<dyn Place, _>((
            Bound::Included(&start as &dyn Place),
            Bound::Excluded(&end as &dyn Place),
        ));
        let in_window = |key: &EntryKey| window.contains(key.sequence);
        match direction {
            Direction::Ascending => {
                let entries = range.filter(|entry| in_window(entry.key()));
                let mut last: Option<Entry<'_, EntryKey, Option<Value>>> = None;
                let mut added = 0;
                for entry in entries {
                    if last.is_some_and(|last| last.key().has_key_of(entry.key())) {
                        last = Some(entry);
                        continue;
                    }
                    if added == count {
                        return true;
                    }
                    out.extend([(entry.key().key.clone(), entry.value().clone())]);
                    added += 1;
                    last = Some(entry);
                }
            }
            Direction::Descending => {
                // The oldest version of a key comes first here: the last one seen counts.
                let mut candidate: Option<OverlayEntry> = None;
                let mut added = 0;
                for entry in range.rev().filter(|entry| in_window(entry.key())) {
                    let key = &entry.key().key;
                    if let Some(done) = candidate.take_if(|(last, _)| last != key) {
                        out.extend([done]);
                        added += 1;
                        if added == count {
                            return true;
                        }
                    }
                    candidate = Some((key.clone(), entry.value().clone()));
                }
                out.extend(candidate);
            }
        }
        false
    }

    fn journal_range(
        &self,
        tree: TreeId,
        window: Window,
    ) -> impl Iterator<Item = Entry<'_, (TreeId, Sequence), Touched>> {
        let end = window.upto.max(window.after); // An inverted range is empty, not an error.
        self.journal.range((Bound::Excluded((tree, window.after)), Bound::Included((tree, end))))
    }

    /// Checks invariant 3.
    pub fn check(&self) -> Result<(), String> {
        let mut journalled = 0;
        for touched in self.journal.iter() {
            let (tree, sequence) = *touched.key();
            for key in &touched.value().keys {
                let place = Sought::new(tree, key, sequence);
                if !self.entries.contains_key(&place as &dyn Place) {
                    return Err(format!("tree {} lacks a journalled entry", tree.0));
                }
                journalled += 1;
            }
        }
        let count = self.entries.iter().count();
        if count != journalled {
            return Err(format!("{count} entries in a memtable, {journalled} in its journal"));
        }
        Ok(())
    }
}

/// About how much memory an entry takes.
pub(crate) fn entry_bytes(key: &[u8], value: Option<&Value>) -> u64 {
    let inline = value.map_or(0, |value| match &value.content {
        Content::Inline(bytes) => bytes.len(),
        _ => 0,
    });
    (key.len() + inline) as u64 + ENTRY_OVERHEAD_BYTES
}

/// Where an entry stands: by tree, then key, then newest first.
///
/// The key's first bytes lie in the skip list's node: most comparisons end there, and save following
/// the pointer to the key (an insertion's memory accesses are most of its cost).
struct EntryKey {
    tree: TreeId,
    head: u128,
    key: Bytes,
    sequence: Sequence,
}

impl EntryKey {
    fn new(tree: TreeId, key: Bytes, sequence: Sequence) -> EntryKey {
        EntryKey { tree, head: head_of(&key), key, sequence }
    }

    fn has_key_of(&self, other: &EntryKey) -> bool {
        self.head == other.head && self.key == other.key
    }
}

/// The first sixteen bytes as a number; zeros where there are none.
fn head_of(key: &[u8]) -> u128 {
    let mut head = [0; size_of::<u128>()];
    let bytes = key.len().min(head.len());
    head[..bytes].copy_from_slice(&key[..bytes]);
    u128::from_be_bytes(head)
}

/// Anything that has a place among entries, so that a search needs no copy of its key.
trait Place {
    fn place(&self) -> Sought<'_>;
}

/// A place, borrowed: the order of the fields is the order of the entries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Sought<'a> {
    tree: TreeId,
    head: u128,
    key: &'a [u8],
    sequence: Reverse<Sequence>,
}

impl<'a> Sought<'a> {
    fn new(tree: TreeId, key: &'a [u8], sequence: Sequence) -> Sought<'a> {
        Sought { tree, head: head_of(key), key, sequence: Reverse(sequence) }
    }
}

impl Place for EntryKey {
    fn place(&self) -> Sought<'_> {
        let sequence = Reverse(self.sequence);
        Sought { tree: self.tree, head: self.head, key: &self.key, sequence }
    }
}

impl Place for Sought<'_> {
    fn place(&self) -> Sought<'_> {
        *self
    }
}

impl<'a> Borrow<dyn Place + 'a> for EntryKey {
    fn borrow(&self) -> &(dyn Place + 'a) {
        self
    }
}

impl Ord for dyn Place + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl PartialOrd for dyn Place + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn Place + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for dyn Place + '_ {}

impl Ord for EntryKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl PartialOrd for EntryKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for EntryKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for EntryKey {}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: TreeId = TreeId(4);

    fn put(memtable: &Memtable, sequence: u64, writes: &[(&'static str, Option<&'static str>)]) {
        let writes: Vec<OverlayEntry> = writes
            .iter()
            .map(|(key, value)| (Bytes::from(*key), value.map(Value::inline)))
            .collect();
        memtable.insert(TREE, Sequence(sequence), writes);
    }

    fn sample() -> Memtable {
        let memtable = Memtable::default();
        put(&memtable, 1, &[("a", Some("a1")), ("b", Some("b1")), ("c", Some("c1"))]);
        put(&memtable, 2, &[("b", Some("b2"))]);
        put(&memtable, 3, &[("a", None), ("d", Some("d3"))]);
        memtable.insert(TreeId(5), Sequence(4), vec![(Bytes::from("a"), None)]);
        memtable
    }

    fn window(after: u64, upto: u64) -> Window {
        Window { after: Sequence(after), upto: Sequence(upto) }
    }

    fn show(entry: &OverlayEntry) -> String {
        let key = String::from_utf8_lossy(&entry.0);
        match entry.1.as_ref().map(|value| &value.content) {
            Some(Content::Inline(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            _ => format!("-{key}"),
        }
    }

    fn check(after: u64, upto: u64, bounds: (&str, &str), expected: &str) {
        let memtable = sample();
        let bound =
            |text: &str| (!text.is_empty()).then(|| Bytes::copy_from_slice(text.as_bytes()));
        let bounds = Bounds { start: bound(bounds.0), end: bound(bounds.1) };
        for direction in [Direction::Ascending, Direction::Descending] {
            let mut found: Vec<OverlayEntry> = Vec::new();
            memtable.batch(TREE, &bounds, direction, window(after, upto), 100, &mut found);
            if direction == Direction::Descending {
                found.reverse();
            }
            let found: Vec<String> = found.iter().map(show).collect();
            assert_eq!(found.join(" "), expected, "{direction:?}");
        }
    }

    #[test]
    fn ranges_show_the_newest_entry_within_the_window() {
        check(0, 9, ("", ""), "-a b2 c1 d3");
        check(0, 1, ("", ""), "a1 b1 c1");
        check(0, 2, ("", ""), "a1 b2 c1");
        check(1, 9, ("", ""), "-a b2 d3");
        check(2, 2, ("", ""), "");
        check(0, 9, ("b", "d"), "b2 c1");
        check(0, 9, ("d", "b"), "");
    }

    #[test]
    fn batches_end_where_asked_and_tell_that_there_is_more() {
        let memtable = sample();
        for direction in [Direction::Ascending, Direction::Descending] {
            let mut found: Vec<OverlayEntry> = Vec::new();
            let all = Bounds::all();
            assert!(memtable.batch(TREE, &all, direction, window(0, 9), 2, &mut found));
            assert_eq!(found.len(), 2);
        }
    }

    #[test]
    fn point_reads_and_the_journal_follow_the_window() {
        let memtable = sample();
        let get = |key: &str, after, upto| {
            memtable
                .get(TREE, key.as_bytes(), window(after, upto))
                .map(|value| show(&(Bytes::copy_from_slice(key.as_bytes()), value)))
        };
        assert_eq!(get("b", 0, 9).as_deref(), Some("b2"));
        assert_eq!(get("b", 0, 1).as_deref(), Some("b1"));
        assert_eq!(get("b", 2, 9), None);
        assert_eq!(get("a", 0, 9).as_deref(), Some("-a"));
        assert_eq!(get("bb", 0, 9), None);
        assert!(memtable.touches(TREE, window(2, 9)));
        assert!(!memtable.touches(TREE, window(3, 9)));
        assert_eq!(memtable.trees(), [TREE, TreeId(5)]);
        let mut keys = Vec::new();
        memtable.touched_keys(TREE, window(1, 3), &mut keys);
        assert_eq!(keys, ["b", "a", "d"]);
        memtable.check().unwrap();
    }

    #[test]
    fn a_removed_transaction_leaves_nothing() {
        let memtable = sample();
        let bytes = memtable.bytes();
        let writes = [(Bytes::from("b"), Some(Value::inline("b7"))), (Bytes::from("z"), None)];
        memtable.insert(TREE, Sequence(7), writes.to_vec());
        memtable.remove(TREE, Sequence(7), &writes);
        assert_eq!(memtable.bytes(), bytes);
        assert!(!memtable.touches(TREE, window(3, 9)));
        assert_eq!(memtable.get(TREE, b"z", window(0, 9)), None);
        memtable.check().unwrap();
    }
}
