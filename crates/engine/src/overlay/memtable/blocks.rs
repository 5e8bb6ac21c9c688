//! The entries of one tree in order, in blocks of a few dozen.
//!
//! A skip list of entries spends most of its time waiting for memory: each step is another node.
//! Here a skip list holds only the first place of each block, and so stays in the processor's
//! cache; within a block the beginnings of the keys lie side by side and are searched by halves.
//!
//! *Thread safety*: any number of threads may insert and read at once. A block has a lock of its
//! own, held for a search and a few copies; no thread holds two, or waits for anything with one.
//! The skip list is read under a guard of its collector instead of a counted reference to each
//! node: pinning one within another, as a caller of many may hold it, costs a few instructions.
//!
//! *Invariants*
//! 1. A block has the places from its first place (its key in the skip list, which never changes)
//!    up to `end`, which is the next block's first. `end` only falls: where a full block is
//!    divided, under its lock, and the new block is in the skip list before `end` says so. Blocks
//!    never go.
//! 2. So a thread that finds the block for a place, locks it, and sees that the place is beyond its
//!    end looks again and finds another; and a reader that has read a block goes on at the end that
//!    it saw.

mod key_count;

use std::borrow::Borrow;
use std::cmp::{Ordering, Reverse};
use std::ops::Bound;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use crossbeam_epoch::{Guard, default_collector, pin};
use crossbeam_skiplist::SkipList;

use crate::ids::Sequence;
use crate::overlay::recycled::Recycler;
use crate::overlay::stored::Stored;
pub(crate) use key_count::{KeyCount, Unknown};

/// Entries of a full block: with 32 searching takes longer, with 128 inserting.
const BLOCK_COUNT_MAX: usize = 64;
const NO_PANIC: &str = "no panic while the lock is held";

/// The entries of one tree, ordered by key, of one key the newest first.
pub(crate) struct Blocks {
    blocks: SkipList<OwnedPlace, LockedBlock>,
    recycler: Arc<Recycler>,
}

/// An entry of a moment.
#[derive(Clone)]
pub(crate) struct Versioned {
    /// The time when it was written.
    pub sequence: Sequence,
    /// The entry.
    pub stored: Stored,
}

#[derive(Default)]
struct LockedBlock(RwLock<BlockEntries>);

#[derive(Default)]
struct BlockEntries {
    own: Block,
    /// The next block's first place; `None`: this is the last.
    end: Option<OwnedPlace>,
}

/// The entries of a block.
#[derive(Default)]
pub(crate) struct Block {
    /// The beginnings of the keys of `entries`.
    heads: Vec<u128>,
    entries: Vec<Versioned>,
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Blocks {
    /// Begins with no entries. Blocks come from `recycler`, and go back there.
    pub fn new(recycler: &Arc<Recycler>) -> Blocks {
        let (blocks, guard) = (SkipList::new(default_collector().clone()), pin());
        let first = OwnedPlace { head: 0, key: Bytes::new(), sequence: Sequence(u64::MAX) };
        blocks.insert(first, LockedBlock::default(), &guard).release(&guard);
        Blocks { blocks, recycler: Arc::clone(recycler) }
    }

    /// Inserts an entry; there is none of the same key and Sequence.
    #[cfg(test)]
    pub fn insert(&self, entry: Versioned) {
        self.insert_ascending(std::iter::once(entry));
    }

    /// Inserts entries whose places ascend; there are none of the same keys and Sequence. Where
    /// they lie near one another, the block of the one before is mostly the next one's.
    pub fn insert_ascending(&self, entries: impl Iterator<Item = Versioned>) {
        let guard = pin();
        // The block of the entry before, and whether the one before that had the same.
        let mut last: Option<&LockedBlock> = None;
        let mut is_near = false;
        for entry in entries {
            loop {
                let place = BorrowedPlace::new(entry.stored.key(), entry.sequence);
                let near = last.filter(|_| is_near);
                let block = near.unwrap_or_else(|| self.block_of(&place, &guard));
                let found = block.0.write().expect(NO_PANIC);
                if found.is_beyond(&place) {
                    is_near = false;
                    continue;
                }
                is_near = last.is_some_and(|last| std::ptr::eq(last, block));
                last = Some(block);
                self.insert_into(found, entry, &guard);
                break;
            }
        }
    }

    /// Inserts an entry into the block that has its place.
    fn insert_into(
        &self,
        mut found: RwLockWriteGuard<'_, BlockEntries>,
        entry: Versioned,
        guard: &Guard,
    ) {
        let place = BorrowedPlace::new(entry.stored.key(), entry.sequence);
        let position = found.position(&place);
        if found.own.entries.len() < BLOCK_COUNT_MAX {
            found.insert(position, place.head, entry);
            return;
        }
        // Where keys rise, full blocks stay full.
        let at_end = position == found.own.entries.len() && found.end.is_none();
        let middle = if at_end { position } else { BLOCK_COUNT_MAX / 2 };
        let mut upper = found.divide(middle, self.recycler.block());
        let first = if at_end { place.to_owned() } else { upper.first_place() };
        let in_upper = first.place() <= place;
        if in_upper {
            upper.insert(position - middle, place.head, entry);
        } else {
            found.insert(position, place.head, entry);
        }
        let upper = LockedBlock(RwLock::new(upper));
        self.blocks.insert(first.clone(), upper, guard).release(guard);
        found.end = Some(first);
    }

    /// Removes an entry, if it is there.
    pub fn remove(&self, key: &[u8], sequence: Sequence) {
        let place = BorrowedPlace::new(key, sequence);
        let guard = pin();
        loop {
            let block = self.block_of(&place, &guard);
            let mut found = block.0.write().expect(NO_PANIC);
            if found.is_beyond(&place) {
                continue;
            }
            let position = found.position(&place);
            if found.own.entries.get(position).is_some_and(|entry| entry.place() == place) {
                found.own.entries.remove(position);
                found.own.heads.remove(position);
            }
            return;
        }
    }

    /// Gives the memory of all entries back. The empty blocks stay.
    pub fn clear(&self) {
        for block in self.blocks.iter(&pin()) {
            let own = std::mem::take(&mut block.value().0.write().expect(NO_PANIC).own);
            if own.is_of_full_size() {
                self.recycler.keep_block(own.emptied());
            }
        }
    }

    /// Returns the newest entry of `key` up to `up_to`.
    pub fn newest(&self, key: &[u8], up_to: Sequence) -> Option<Versioned> {
        let mut place = BorrowedPlace::new(key, up_to);
        let guard = pin();
        let mut end;
        loop {
            let block = self.block_of(&place, &guard);
            let found = block.0.read().expect(NO_PANIC);
            if found.is_beyond(&place) {
                continue;
            }
            if let Some(entry) = found.own.entries.get(found.position(&place)) {
                return (entry.stored.key() == key).then(|| entry.clone());
            }
            // The versions of one key may reach into the next block.
            end = found.end.clone().filter(|end| end.key == key)?;
            drop(found);
            place = BorrowedPlace { sequence: Reverse(end.sequence), ..place };
        }
    }

    /// Calls `take` with the entries from `start` on, ascending, until it says that it has enough.
    pub fn ascend(&self, start: Option<&[u8]>, mut take: impl FnMut(&Versioned) -> bool) {
        let newest = Sequence(u64::MAX);
        let mut next = BorrowedPlace::new(start.unwrap_or_default(), newest).to_owned();
        let guard = pin();
        loop {
            let block = self.block_of(&next.place(), &guard);
            let found = block.0.read().expect(NO_PANIC);
            if found.is_beyond(&next.place()) {
                continue;
            }
            let position = found.position(&next.place());
            if !found.own.entries[position..].iter().all(&mut take) {
                return;
            }
            let Some(end) = found.end.clone() else { return };
            next = end;
        }
    }

    /// Calls `take` with the entries before `end`, descending, until it says that it has enough.
    pub fn descend(&self, end: Option<&[u8]>, mut take: impl FnMut(&Versioned) -> bool) {
        let mut before = end.map(|end| BorrowedPlace::new(end, Sequence(u64::MAX)).to_owned());
        let guard = pin();
        loop {
            let bound = before
                .as_ref()
                .map_or(Bound::Unbounded, |before| Bound::Excluded(before as &dyn EntryKey));
            let Some(block) = self.blocks.upper_bound(bound, &guard) else { return };
            let found = block.value().0.read().expect(NO_PANIC);
            let is_whole = match (&before, &found.end) {
                (Some(before), Some(end)) => before.place() <= end.place(),
                (None, Some(_)) => false,
                (_, None) => true,
            };
            if !is_whole {
                continue; // It was divided since it was looked for.
            }
            let position = before
                .as_ref()
                .map_or(found.own.entries.len(), |before| found.position(&before.place()));
            if !found.own.entries[..position].iter().rev().all(&mut take) {
                return;
            }
            before = Some(block.key().clone());
        }
    }

    fn block_of<'g>(&'g self, place: &BorrowedPlace<'_>, guard: &'g Guard) -> &'g LockedBlock {
        let found = self.blocks.upper_bound(Bound::Included(place as &dyn EntryKey), guard);
        found.expect("the first block begins before everything").value()
    }
}

impl BlockEntries {
    fn is_beyond(&self, place: &BorrowedPlace<'_>) -> bool {
        self.end.as_ref().is_some_and(|end| end.place() <= *place)
    }

    /// Returns where the first entry stands whose place isn't before `place`.
    fn position(&self, place: &BorrowedPlace<'_>) -> usize {
        let start = self.own.heads.partition_point(|head| *head < place.head);
        let is_before = |entry: &Versioned| entry.behind_head() < place.behind_head();
        // The newest entry of a key that is written again and again is sought, or comes before it.
        let is_shared = self.own.heads.get(start) == Some(&place.head);
        if !is_shared || !is_before(&self.own.entries[start]) {
            return start;
        }
        let equal = self.own.heads[start..].partition_point(|head| *head == place.head);
        start + self.own.entries[start..start + equal].partition_point(is_before)
    }

    fn insert(&mut self, position: usize, head: u128, entry: Versioned) {
        self.own.heads.insert(position, head);
        self.own.entries.insert(position, entry);
    }

    /// Moves what stands from `middle` on to an empty block, which gets this one's end.
    fn divide(&mut self, middle: usize, mut empty: Block) -> BlockEntries {
        empty.heads.extend(self.own.heads.drain(middle..));
        empty.entries.extend(self.own.entries.drain(middle..));
        BlockEntries { own: empty, end: self.end.take() }
    }

    fn first_place(&self) -> OwnedPlace {
        let first = self.own.entries.first().expect("half of a full block is not empty");
        first.place().to_owned()
    }
}

impl Block {
    /// Memory of a block of full size.
    pub const BYTES: usize = BLOCK_COUNT_MAX * (size_of::<u128>() + size_of::<Versioned>());

    /// An empty block of full size.
    pub fn with_capacity() -> Block {
        let heads = Vec::with_capacity(BLOCK_COUNT_MAX);
        Block { heads, entries: Vec::with_capacity(BLOCK_COUNT_MAX) }
    }

    /// Returns the number of entries.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Some first blocks have not grown so far.
    fn is_of_full_size(&self) -> bool {
        self.heads.capacity() == BLOCK_COUNT_MAX && self.entries.capacity() == BLOCK_COUNT_MAX
    }

    fn emptied(mut self) -> Block {
        self.heads.clear();
        self.entries.clear();
        self
    }
}

impl Versioned {
    fn place(&self) -> BorrowedPlace<'_> {
        BorrowedPlace::new(self.stored.key(), self.sequence)
    }

    /// Returns the order among entries of one head.
    fn behind_head(&self) -> (&[u8], Reverse<Sequence>) {
        (self.stored.key(), Reverse(self.sequence))
    }
}

/// The first sixteen bytes as a number; zeros where there are none.
fn head_of(key: &[u8]) -> u128 {
    let mut head = [0; size_of::<u128>()];
    let bytes = key.len().min(head.len());
    head[..bytes].copy_from_slice(&key[..bytes]);
    u128::from_be_bytes(head)
}

/// The place of an entry in the order.
#[derive(Clone, Debug)]
pub(crate) struct OwnedPlace {
    head: u128,
    key: Bytes,
    sequence: Sequence,
}

/// The same, borrowed: the order of the fields is the order of the entries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BorrowedPlace<'a> {
    head: u128,
    key: &'a [u8],
    sequence: Reverse<Sequence>,
}

impl<'a> BorrowedPlace<'a> {
    fn new(key: &'a [u8], sequence: Sequence) -> BorrowedPlace<'a> {
        BorrowedPlace { head: head_of(key), key, sequence: Reverse(sequence) }
    }

    /// Returns the order among places of one head.
    fn behind_head(&self) -> (&'a [u8], Reverse<Sequence>) {
        (self.key, self.sequence)
    }

    fn to_owned(self) -> OwnedPlace {
        // A copy, so that a block keeps no transaction's payload for its bounds.
        let key = Bytes::copy_from_slice(self.key);
        OwnedPlace { head: self.head, key, sequence: self.sequence.0 }
    }
}

/// Anything that has a place, so that a search needs no copy of its key.
trait EntryKey {
    fn place(&self) -> BorrowedPlace<'_>;
}

impl EntryKey for OwnedPlace {
    fn place(&self) -> BorrowedPlace<'_> {
        BorrowedPlace { head: self.head, key: &self.key, sequence: Reverse(self.sequence) }
    }
}

impl EntryKey for BorrowedPlace<'_> {
    fn place(&self) -> BorrowedPlace<'_> {
        *self
    }
}

impl<'a> Borrow<dyn EntryKey + 'a> for OwnedPlace {
    fn borrow(&self) -> &(dyn EntryKey + 'a) {
        self
    }
}

impl Ord for dyn EntryKey + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl PartialOrd for dyn EntryKey + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn EntryKey + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for dyn EntryKey + '_ {}

impl Ord for OwnedPlace {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl PartialOrd for OwnedPlace {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OwnedPlace {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for OwnedPlace {}

impl Blocks {
    /// Checks invariant 1, and returns how many entries there are. For when no thread inserts.
    ///
    /// # Errors
    /// Says that a block isn't in order.
    pub fn check(&self) -> Result<usize, String> {
        let (mut count, guard) = (0, pin());
        for block in self.blocks.iter(&guard) {
            let found: RwLockReadGuard<'_, BlockEntries> = block.value().0.read().expect(NO_PANIC);
            let next = block.next().map(|next| next.key().clone());
            let places: Vec<BorrowedPlace<'_>> =
                found.own.entries.iter().map(Versioned::place).collect();
            let in_order = places.is_sorted_by(|left, right| left < right)
                && places.iter().map(|place| place.head).eq(found.own.heads.iter().copied())
                && places.first().is_none_or(|first| block.key().place() <= *first)
                && places.last().is_none_or(|last| !found.is_beyond(last));
            if found.end != next || !in_order {
                return Err("a block of a memtable is not in order".to_owned());
            }
            count += places.len();
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
