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

mod befores;
mod blocks;
mod tree_table;
mod window;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};

use bytes::Bytes;
use crossbeam_epoch::{Guard, default_collector, pin};
use crossbeam_skiplist::SkipList;
use frond_tree::{Bounds, Content, Direction, Value};

use crate::entry::OverlayEntry;
use crate::ids::{Sequence, TreeId};
use crate::overlay::before::Befores;
use crate::overlay::pending::{MemtableChunks, NewChunks, PendingChunks};
use crate::overlay::recycled::Recycler;
use crate::overlay::stored::writes_of;
pub(crate) use befores::KeyBefores;
pub(crate) use blocks::{Block, KeyCount, OwnedPlace, Unknown};
use tree_table::{TreeTable, each_touched};
pub(crate) use window::Window;

/// Memory of an entry of an open transaction besides its key's and value's bytes, measured roughly.
const OWN_ENTRY_OVERHEAD_BYTES: u64 = 200;

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

fn bit_of(tree: TreeId) -> u64 {
    1 << (tree.0 % u64::from(u64::BITS))
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

    /// Returns the pending chunks of this memtable.
    pub fn pending(&self) -> &MemtableChunks {
        &self.pending
    }

    /// Adds the writes of one transaction, as they lie in its record's payload.
    pub fn insert(&self, sequence: Sequence, payload: &Bytes) {
        self.insert_knowing(sequence, payload, &Befores::default());
    }

    /// As `insert`, where something is known of the keys.
    pub fn insert_knowing(&self, sequence: Sequence, payload: &Bytes, befores: &Befores) {
        let (mut bytes, mut position, guard) = (0, 0, pin());
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
            let count = writes.count as usize;
            bytes += table.insert(sequence, writes, |own| befores.of(position + own));
            position += count;
        }
        self.bytes.fetch_add(bytes, Atomic::Relaxed);
    }

    /// Takes back what `insert` did, for a transaction that was refused and never visible.
    pub fn remove(&self, sequence: Sequence) {
        let bytes = self.tables(&pin()).map(|(_, table)| table.remove(sequence)).sum();
        self.bytes.fetch_sub(bytes, Atomic::Relaxed);
    }

    /// Calls `take` with every value, of whatever Sequence.
    pub fn for_each_value(&self, mut take: impl FnMut(&Value)) {
        for (_, table) in self.tables(&pin()) {
            table.blocks.ascend(None, |entry| {
                entry.stored.value().iter().for_each(&mut take);
                true
            });
        }
    }

    /// Gives the memory back; for when no reader may use it any more. Entries taken out of the skip
    /// list are freed when its collector comes to them, which can be long after: so the entries are
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
        let found = table.blocks.newest(key, window.up_to)?;
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

    /// Returns how many writes of `tree` there are at most, several to one key counted.
    pub fn writes_max(&self, tree: TreeId) -> u64 {
        self.table(tree, &pin()).map_or(0, |table| table.writes.load(Atomic::Relaxed))
    }

    /// Returns how many bytes of keys and inline values were written to `tree` at most.
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
        let table = self.table(tree, &guard);
        table.is_some_and(|table| table.batch(bounds, direction, window, count, out))
    }

    /// Counts what the entries of `tree` change ([`KeyCount`]).
    pub fn count(
        &self,
        tree: TreeId,
        bounds: &Bounds,
        window: Window,
        start: Option<OwnedPlace>,
        unknown_max: usize,
    ) -> KeyCount {
        let guard = pin();
        let table = self.table(tree, &guard);
        table.map_or_else(KeyCount::default, |table| {
            table.blocks.count(bounds, window, start, unknown_max)
        })
    }

    /// Keeps what `entries` of `tree`, which are in order, know of what was just before them.
    pub fn note_replaces(&self, tree: TreeId, entries: &[Unknown]) {
        if let Some(table) = self.table(tree, &pin()) {
            table.blocks.note_replaces(entries);
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

/// About how much memory an entry takes.
pub(crate) fn entry_bytes(key: &[u8], value: Option<&Value>) -> u64 {
    let inline = value.map_or(0, |value| match &value.content {
        Content::Inline(bytes) => bytes.len(),
        _ => 0,
    });
    (key.len() + inline) as u64 + OWN_ENTRY_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests;
