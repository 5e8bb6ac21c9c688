//! Recent writes of one tree: its entries in blocks, and the journal of which transaction wrote
//! what.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering as Atomic};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use frond_tree::{Bounds, Direction};

use super::blocks::{Blocks, Versioned};
use super::window::Window;
use crate::entry::OverlayEntry;
use crate::ids::Sequence;
use crate::overlay::recycled::Recycler;
use crate::overlay::stored::TreeWrites;

/// Memory of an entry besides its bytes in the payload: its place in a block, seven tenths of which
/// are used, and a share of the block's own.
const ENTRY_OVERHEAD_BYTES: u64 = 100;
/// Memory that a transaction takes for each tree: its journal, and the payload's own fields.
const TOUCHED_OVERHEAD_BYTES: u64 = 120;

/// Recent writes of one tree.
pub(super) struct TreeTable {
    pub blocks: Blocks,
    /// The journal by Sequence, ascending.
    journal: Mutex<Vec<Touched>>,
    /// The least and the greatest Sequence of the journal: a look at them often saves its lock.
    /// These and what follows change under it.
    first: AtomicU64,
    pub last: AtomicU64,
    /// The number of all writes: never less than the entries that are there.
    pub writes: AtomicU64,
    pub bytes: AtomicU64,
    pub flags: AtomicU8,
}

/// The keys that one transaction wrote.
pub(super) struct Touched {
    pub sequence: Sequence,
    pub writes: TreeWrites,
    pub flags: u8,
}

impl TreeTable {
    pub fn new(recycler: &Arc<Recycler>) -> TreeTable {
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

    /// Adds what a transaction wrote, and returns the memory that it takes. `had_value` says
    /// whether the key of the entry at a position had a value before, if that is known.
    pub fn insert(
        &self,
        sequence: Sequence,
        writes: TreeWrites,
        had_value: impl Fn(usize) -> Option<bool>,
    ) -> u64 {
        let (mut flags, mut written) = (0, 0);
        let entries = writes.iter().enumerate().map(|(position, mut stored)| {
            if let Some(had_value) = had_value(position) {
                stored.note_replaces(had_value);
            }
            flags |= stored.flags();
            written += stored.len() as u64;
            Versioned { sequence, stored }
        });
        self.blocks.insert_ascending(entries);
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

    /// Takes back what a transaction did, and returns the memory that it took.
    pub fn remove(&self, sequence: Sequence) -> u64 {
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

    /// Whether anything was written within `window`.
    pub fn touches(&self, window: Window) -> bool {
        let first = Sequence(self.first.load(Atomic::Relaxed));
        let last = Sequence(self.last.load(Atomic::Relaxed));
        if last <= window.after || window.up_to < first {
            return false;
        }
        if window.contains(first) || window.contains(last) {
            return true;
        }
        let journal = self.journal();
        let end = journal.partition_point(|touched| touched.sequence <= window.up_to);
        journal[..end].last().is_some_and(|touched| window.contains(touched.sequence))
    }

    pub fn journal(&self) -> MutexGuard<'_, Vec<Touched>> {
        self.journal.lock().expect("no panic while the lock is held")
    }

    /// Appends to `out` the newest entry within `window` of each key within `bounds`, in
    /// `direction`, until `count` were added. Returns whether there may be more beyond the last.
    pub fn batch(
        &self,
        bounds: &Bounds,
        direction: Direction,
        window: Window,
        count: usize,
        out: &mut impl Extend<OverlayEntry>,
    ) -> bool {
        match direction {
            Direction::Ascending => ascend(&self.blocks, bounds, window, count, out),
            Direction::Descending => descend(&self.blocks, bounds, window, count, out),
        }
    }
}

/// Calls `take` with the transactions within `window`, until it says that it has enough.
pub(super) fn each_touched(
    journal: &[Touched],
    window: Window,
    mut take: impl FnMut(&Touched) -> bool,
) {
    let start = journal.partition_point(|touched| touched.sequence <= window.after);
    let touched = journal[start..].iter().take_while(|touched| touched.sequence <= window.up_to);
    for touched in touched {
        if !take(touched) {
            return;
        }
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
