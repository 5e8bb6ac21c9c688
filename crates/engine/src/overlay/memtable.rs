//! The memtable: recent writes of all trees, each tree's ordered by (key, newest first).
//!
//! *Invariants*
//! 1. An entry is visible to a reader whose Sequence is at least its own. Entries are inserted
//!    before their Sequence becomes visible, so a reader that may see one always finds it. Any
//!    number of transactions are inserted at once.
//! 2. A tree's journal names, for each Sequence, exactly the keys that were written then. It
//!    makes "what has changed since" cost what has changed since, not the memtable's size.
//!
//! Trees are found by a lock-free skip list, entries in [`blocks`]: a reader waits for a writer
//! only while it puts one entry into the very block that is read.

mod blocks;

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering as Atomic};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use crossbeam_epoch::{Guard, default_collector, pin};
use crossbeam_skiplist::SkipList;
use frond_tree::{Bounds, Content, Direction, Value};

use crate::entry::OverlayEntry;
use crate::ids::{Sequence, TreeId};
use crate::overlay::pending::{MemtableChunks, NewChunks, PendingChunks};
use crate::overlay::recycled::Recycler;
use crate::overlay::stored::{TreeWrites, writes_of};
pub(crate) use blocks::Block;
use blocks::{Blocks, Versioned};

/// Memory of an entry besides its bytes in the payload: its place in a block of which seven tenths
/// are used, and a share of the block's own.
const ENTRY_OVERHEAD_BYTES: u64 = 100;
/// Memory that a transaction takes for each tree: its journal, and the payload's own fields.
const TOUCHED_OVERHEAD_BYTES: u64 = 120;

/// Memory of an entry of an open transaction besides its key's and value's bytes, measured roughly.
const OWN_ENTRY_OVERHEAD_BYTES: u64 = 200;

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
pub(crate) struct Memtable {
    trees: SkipList<TreeId, TreeTable>,
    /// A bit for each tree that was ever written, shared with some others: most reads need look no
    /// further.
    written: AtomicU64,
    bytes: AtomicU64,
    recycler: Arc<Recycler>,
    pending: MemtableChunks,
}

/// Recent writes of one tree.
struct TreeTable {
    blocks: Blocks,
    /// By Sequence, ascending.
    journal: Mutex<Vec<Touched>>,
    /// The least and the greatest Sequence of the journal: a look at them often saves its lock.
    /// These and what follows change under it.
    first: AtomicU64,
    last: AtomicU64,
    /// What was done in all: never less than what is there.
    writes: AtomicU64,
    bytes: AtomicU64,
    flags: AtomicU8,
}

/// What one transaction did.
struct Touched {
    sequence: Sequence,
    writes: TreeWrites,
    flags: u8,
}

impl TreeTable {
    fn new(recycler: &Arc<Recycler>) -> TreeTable {
        TreeTable {
            blocks: Blocks::new(recycler),
            journal: Mutex::default(),
            first: AtomicU64::new(u64::MAX),
            last: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            flags: AtomicU8::new(0),
        }
    }

    /// Returns the bytes of keys and values, and the memory taken.
    fn insert(&self, sequence: Sequence, writes: TreeWrites) -> u64 {
        let (mut flags, mut written) = (0, 0);
        for stored in writes.iter() {
            flags |= stored.flags();
            written += stored.len() as u64;
            self.blocks.insert(Versioned { sequence, stored });
        }
        let count = u64::from(writes.count);
        let mut journal = self.journal();
        // Transactions are inserted side by side, nearly in their order: the place is near the end.
        let before = journal.iter().rposition(|touched| touched.sequence < sequence);
        journal.insert(before.map_or(0, |before| before + 1), Touched { sequence, writes, flags });
        self.note_ends(&journal);
        let add =
            |sum: &AtomicU64, more| sum.store(sum.load(Atomic::Relaxed) + more, Atomic::Relaxed);
        add(&self.writes, count);
        add(&self.bytes, written);
        self.flags.store(self.flags.load(Atomic::Relaxed) | flags, Atomic::Relaxed);
        drop(journal);
        written + count * ENTRY_OVERHEAD_BYTES + TOUCHED_OVERHEAD_BYTES
    }

    fn remove(&self, sequence: Sequence) -> u64 {
        let mut journal = self.journal();
        let Ok(position) = journal.binary_search_by_key(&sequence, |touched| touched.sequence)
        else {
            return 0;
        };
        let Touched { writes, .. } = journal.remove(position);
        self.note_ends(&journal);
        drop(journal);
        let mut bytes = TOUCHED_OVERHEAD_BYTES;
        for stored in writes.iter() {
            self.blocks.remove(stored.key(), sequence);
            bytes += stored.len() as u64 + ENTRY_OVERHEAD_BYTES;
        }
        bytes
    }

    fn note_ends(&self, journal: &[Touched]) {
        let end =
            |touched: Option<&Touched>, none| touched.map_or(none, |touched| touched.sequence.0);
        self.first.store(end(journal.first(), u64::MAX), Atomic::Relaxed);
        self.last.store(end(journal.last(), 0), Atomic::Relaxed);
    }

    fn touches(&self, window: Window) -> bool {
        let first = Sequence(self.first.load(Atomic::Relaxed));
        let last = Sequence(self.last.load(Atomic::Relaxed));
        if last <= window.after || window.upto < first {
            return false;
        }
        if window.contains(first) || window.contains(last) {
            return true;
        }
        let journal = self.journal();
        let end = journal.partition_point(|touched| touched.sequence <= window.upto);
        journal[..end].last().is_some_and(|touched| window.contains(touched.sequence))
    }

    fn journal(&self) -> MutexGuard<'_, Vec<Touched>> {
        self.journal.lock().expect("no panic while the lock is held")
    }
}

fn bit_of(tree: TreeId) -> u64 {
    1 << (tree.0 % u64::from(u64::BITS))
}

/// Tells `take` of the transactions within `window`, until it says that it has enough.
fn each_touched(journal: &[Touched], window: Window, mut take: impl FnMut(&Touched) -> bool) {
    let start = journal.partition_point(|touched| touched.sequence <= window.after);
    let touched = journal[start..].iter().take_while(|touched| touched.sequence <= window.upto);
    for touched in touched {
        if !take(touched) {
            return;
        }
    }
}

impl Default for Memtable {
    fn default() -> Memtable {
        Memtable {
            trees: SkipList::new(default_collector().clone()),
            written: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            recycler: Arc::default(),
            pending: MemtableChunks::default(),
        }
    }
}

impl Memtable {
    /// An empty one, whose memory comes from `recycler` and goes back there, and whose chunks
    /// others find in `pending`.
    pub fn new(recycler: &Arc<Recycler>, pending: &Arc<PendingChunks>) -> Memtable {
        let (recycler, pending) = (Arc::clone(recycler), MemtableChunks::new(pending));
        Memtable { recycler, pending, ..Memtable::default() }
    }

    fn table<'g>(&'g self, tree: TreeId, guard: &'g Guard) -> Option<&'g TreeTable> {
        self.trees.get(&tree, guard).map(|found| found.value())
    }

    fn tables<'g>(&'g self, guard: &'g Guard) -> impl Iterator<Item = (TreeId, &'g TreeTable)> {
        self.trees.iter(guard).map(|found| (*found.key(), found.value()))
    }

    /// Adds what a transaction brings besides its writes; before these, which refer to it. It stays
    /// if they are taken back.
    pub fn add_new_chunks(&self, new_chunks: &NewChunks) {
        self.bytes.fetch_add(self.pending.add(new_chunks), Atomic::Relaxed);
    }

    /// What was born here.
    pub fn pending(&self) -> &MemtableChunks {
        &self.pending
    }

    /// Adds the writes of one transaction, as they lie in its record's payload.
    pub fn insert(&self, sequence: Sequence, payload: &Bytes) {
        let (mut bytes, guard) = (0, pin());
        for writes in writes_of(payload) {
            if self.written.load(Atomic::Relaxed) & bit_of(writes.tree) == 0 {
                self.written.fetch_or(bit_of(writes.tree), Atomic::Relaxed);
            }
            let table = loop {
                match self.table(writes.tree, &guard) {
                    Some(table) => break table,
                    None => {
                        let table = || TreeTable::new(&self.recycler);
                        self.trees.get_or_insert_with(writes.tree, table, &guard).release(&guard);
                    }
                }
            };
            bytes += table.insert(sequence, writes);
        }
        self.bytes.fetch_add(bytes, Atomic::Relaxed);
    }

    /// Takes back what `insert` did, for a transaction that was refused and never visible.
    pub fn remove(&self, sequence: Sequence) {
        let bytes = self.tables(&pin()).map(|(_, table)| table.remove(sequence)).sum();
        self.bytes.fetch_sub(bytes, Atomic::Relaxed);
    }

    /// Tells `take` of every value, of whatever Sequence.
    pub fn for_each_value(&self, mut take: impl FnMut(&Value)) {
        for (_, table) in self.tables(&pin()) {
            table.blocks.ascend(None, |entry| {
                entry.stored.value().iter().for_each(&mut take);
                true
            });
        }
    }

    /// Gives the memory back; for when no reader may use it any more. What is taken out of the skip
    /// list is freed when its collector comes to it, which can be long after: so the entries are
    /// freed first, by themselves.
    pub fn clear(&self) {
        let mut guard = pin();
        for (_, table) in self.tables(&guard) {
            table.blocks.clear();
            *table.journal() = Vec::new();
        }
        self.trees.clear(&mut guard);
        self.pending.clear();
    }

    /// About how much memory the entries take.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Atomic::Relaxed)
    }

    /// Returns the newest entry of `key` within `window`.
    pub fn get(&self, tree: TreeId, key: &[u8], window: Window) -> Option<Option<Value>> {
        if self.written.load(Atomic::Relaxed) & bit_of(tree) == 0 {
            return None;
        }
        let guard = pin();
        let table = self.table(tree, &guard)?;
        if table.last.load(Atomic::Relaxed) <= window.after.0 {
            return None;
        }
        let found = table.blocks.newest(key, window.upto)?;
        window.contains(found.sequence).then(|| found.stored.value())
    }

    /// Whether `tree` was written within `window`.
    pub fn touches(&self, tree: TreeId, window: Window) -> bool {
        self.table(tree, &pin()).is_some_and(|table| table.touches(window))
    }

    /// The OR of the flags of all values written to `tree` within `window`.
    pub fn flags(&self, tree: TreeId, window: Window) -> u8 {
        let guard = pin();
        let Some(table) = self.table(tree, &guard) else { return 0 };
        let most = table.flags.load(Atomic::Relaxed);
        let mut flags = 0;
        if most != 0 {
            each_touched(&table.journal(), window, |touched| {
                flags |= touched.flags;
                flags != most
            });
        }
        flags
    }

    /// How many writes of `tree` there are at most, several to one key counted.
    pub fn writes_max(&self, tree: TreeId) -> u64 {
        self.table(tree, &pin()).map_or(0, |table| table.writes.load(Atomic::Relaxed))
    }

    /// How many bytes of keys and inline values were written to `tree` at most.
    pub fn written_bytes(&self, tree: TreeId) -> u64 {
        self.table(tree, &pin()).map_or(0, |table| table.bytes.load(Atomic::Relaxed))
    }

    /// Adds the keys of `tree` written within `window` to `keys`; one written twice comes twice.
    /// Stops and returns false where these become more than `count_max`.
    pub fn touched_keys(
        &self,
        tree: TreeId,
        window: Window,
        count_max: usize,
        keys: &mut Vec<Bytes>,
    ) -> bool {
        let guard = pin();
        let Some(table) = self.table(tree, &guard) else { return true };
        let mut fits = true;
        each_touched(&table.journal(), window, |touched| {
            fits = keys.len() + touched.writes.count as usize <= count_max;
            if fits {
                keys.extend(touched.writes.iter().map(|stored| stored.owned_key()));
            }
            fits
        });
        fits
    }

    /// The trees that have entries, in order.
    pub fn trees(&self) -> Vec<TreeId> {
        let guard = pin();
        let written = self.tables(&guard).filter(|(_, table)| !table.journal().is_empty());
        written.map(|(tree, _)| tree).collect()
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
        let guard = pin();
        let Some(table) = self.table(tree, &guard) else { return false };
        let blocks = &table.blocks;
        match direction {
            Direction::Ascending => ascend(blocks, bounds, window, count, out),
            Direction::Descending => descend(blocks, bounds, window, count, out),
        }
    }

    /// Checks invariant 2, and the order of the entries.
    ///
    /// # Errors
    /// Says what doesn't hold.
    pub fn check(&self) -> Result<(), String> {
        for (TreeId(tree), table) in self.tables(&pin()) {
            let mut journalled = 0;
            for touched in table.journal().iter() {
                for stored in touched.writes.iter() {
                    let found = table.blocks.newest(stored.key(), touched.sequence);
                    if found.is_none_or(|found| found.sequence != touched.sequence) {
                        return Err(format!("tree {tree} lacks a journalled entry"));
                    }
                    journalled += 1;
                }
            }
            let count = table.blocks.check()?;
            if count != journalled {
                return Err(format!("{count} entries of tree {tree}, {journalled} in its journal"));
            }
        }
        Ok(())
    }
}

fn ascend(
    blocks: &Blocks,
    bounds: &Bounds,
    window: Window,
    count: usize,
    out: &mut impl Extend<OverlayEntry>,
) -> bool {
    // The last key that was added.
    let mut last: Option<Bytes> = None;
    let (mut added, mut more) = (0, false);
    blocks.ascend(bounds.start.as_deref(), |entry| {
        let key = entry.stored.key();
        if bounds.end.as_deref().is_some_and(|end| end <= key) {
            return false;
        }
        if !window.contains(entry.sequence) || last.as_deref() == Some(key) {
            return true;
        }
        if added == count {
            more = true;
            return false;
        }
        let (key, value) = entry.stored.entry();
        last = Some(key.clone());
        out.extend([(key, value)]);
        added += 1;
        true
    });
    more
}

fn descend(
    blocks: &Blocks,
    bounds: &Bounds,
    window: Window,
    count: usize,
    out: &mut impl Extend<OverlayEntry>,
) -> bool {
    // The oldest version of a key comes first here: the last one seen counts.
    let mut candidate: Option<Versioned> = None;
    let (mut added, mut more) = (0, false);
    blocks.descend(bounds.end.as_deref(), |entry| {
        let key = entry.stored.key();
        if bounds.start.as_deref().is_some_and(|start| key < start) {
            return false;
        }
        if !window.contains(entry.sequence) {
            return true;
        }
        if let Some(done) = candidate.take_if(|last| last.stored.key() != key) {
            out.extend([done.stored.entry()]);
            added += 1;
            if added == count {
                more = true;
                return false;
            }
        }
        candidate = Some(entry.clone());
        true
    });
    out.extend(candidate.filter(|_| !more).map(|last| last.stored.entry()));
    more
}

/// About how much memory an entry takes.
pub(crate) fn entry_bytes(key: &[u8], value: Option<&Value>) -> u64 {
    let inline = value.map_or(0, |value| match &value.content {
        Content::Inline(bytes) => bytes.len(),
        _ => 0,
    });
    (key.len() + inline) as u64 + OWN_ENTRY_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::record::Record;

    const TREE: TreeId = TreeId(4);

    fn put(memtable: &Memtable, sequence: u64, writes: &[(&'static str, Option<&'static str>)]) {
        let writes: Vec<OverlayEntry> = writes
            .iter()
            .map(|(key, value)| (Bytes::from(*key), value.map(Value::inline)))
            .collect();
        insert(memtable, TREE, sequence, writes);
    }

    fn insert(memtable: &Memtable, tree: TreeId, sequence: u64, writes: Vec<OverlayEntry>) {
        let record = Record { writes: vec![(tree, writes)], ..Record::default() };
        memtable.insert(Sequence(sequence), &record.encode().into());
    }

    fn sample() -> Memtable {
        let memtable = Memtable::default();
        put(&memtable, 1, &[("a", Some("a1")), ("b", Some("b1")), ("c", Some("c1"))]);
        put(&memtable, 2, &[("b", Some("b2"))]);
        put(&memtable, 3, &[("a", None), ("d", Some("d3"))]);
        insert(&memtable, TreeId(5), 4, vec![(Bytes::from("a"), None)]);
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
        memtable.touched_keys(TREE, window(1, 3), usize::MAX, &mut keys);
        assert_eq!(keys, ["b", "a", "d"]);
        memtable.check().unwrap();
    }

    #[test]
    fn the_journal_is_in_order_whatever_order_transactions_come_in() {
        let memtable = Memtable::default();
        for sequence in [4, 6, 5, 9, 2, 1, 7, 3, 8] {
            let key = Bytes::from(sequence.to_string());
            insert(&memtable, TREE, sequence, vec![(key, None)]);
            memtable.check().unwrap();
        }
        let mut keys = Vec::new();
        memtable.touched_keys(TREE, window(0, 9), usize::MAX, &mut keys);
        assert_eq!(keys, ["1", "2", "3", "4", "5", "6", "7", "8", "9"]);
        memtable.remove(Sequence(1));
        memtable.remove(Sequence(9));
        assert!(memtable.touches(TREE, window(1, 2)) && memtable.touches(TREE, window(7, 8)));
        assert!(!memtable.touches(TREE, window(0, 1)) && !memtable.touches(TREE, window(8, 9)));
        assert_eq!(memtable.writes_max(TREE), 9);
    }

    #[test]
    fn a_removed_transaction_leaves_nothing() {
        let memtable = sample();
        let bytes = memtable.bytes();
        let writes = [(Bytes::from("b"), Some(Value::inline("b7"))), (Bytes::from("z"), None)];
        insert(&memtable, TREE, 7, writes.to_vec());
        assert!(memtable.touches(TREE, window(3, 9)));
        memtable.remove(Sequence(7));
        assert_eq!(memtable.bytes(), bytes);
        assert!(!memtable.touches(TREE, window(3, 9)));
        assert_eq!(memtable.get(TREE, b"z", window(0, 9)), None);
        memtable.check().unwrap();
    }

    #[test]
    fn a_cleared_memtable_keeps_no_payload() {
        let memtable = sample();
        let entry = (Bytes::from("b"), Some(Value::inline("b7")));
        let record = Record { writes: vec![(TREE, vec![entry])], ..Record::default() };
        let payload = Bytes::from(record.encode());
        memtable.insert(Sequence(7), &payload);
        assert!(!payload.is_unique());
        memtable.clear();
        assert!(payload.is_unique(), "whatever the skip list keeps for how long");
        assert!(memtable.trees().is_empty());
    }
}
