//! A map's node as it is stored, and how it is read in place.
//!
//! The authority is docs/format/map-node.md. All numbers are little-endian.
//!
//! *Invariants*: 1. [`MapNode::open`] checks once that every offset, length and reference lies
//! inside the chunk; afterwards accessors can't fail. The chunk's mark remembers that, so that a
//! cached chunk is checked once. 2. It doesn't check that keys ascend or that
//! sums add up: a chunk's name vouches for the writer, `Tree::check` for the rest; a search in a
//! node that lies about its order ends with a wrong answer, never with a panic.

mod layout;

use std::ops::Range;

use bytes::Bytes;
use frond_store::chunk::HASH_BYTES;
use frond_store::{Chunk, ChunkHash, ChunkStore};

use crate::error::TreeError;
use crate::map::key_prefixes::{self, KeyPrefixes};
use crate::map::{Entry, Summary};
use crate::value::{Content, ContentRef, Value};

use self::layout::{
    CHILD_COUNT, CHILD_KEY_BYTES, CHILD_VALUE_BYTES, ENTRY_FLAGS, ENTRY_KEY_BYTES, ENTRY_TAG,
    OFFSET_COUNT, OFFSET_ENTRY_COUNT, OFFSET_FLAGS, OFFSET_KEY_BYTES, OFFSET_LEVEL,
    OFFSET_VALUE_BYTES, TAG_INLINE, check_entry, check_table, entry_range, u16_at, u32_at, u64_at,
};
pub(super) use self::layout::{
    CHILD_KEY, HEADER_BYTES, LEAF_KEY, OFFSET_TABLE_ENTRY_BYTES, encode_head, read_entry,
    write_child, write_entry,
};

// The mark that a map node's chunk carries in memory: bits, the level and the number of entries.
const MARK_TABLE_CHECKED: u64 = 1;
const MARK_ENTRIES_CHECKED: u64 = 2;
const MARK_SEARCHED: u64 = 4;
const MARK_HEADS_REFUSED: u64 = 8;
const MARK_LEVEL_SHIFT: u32 = 8;
const MARK_ENTRY_COUNT_SHIFT: u32 = 32;

/// An opened node. Cloning shares the bytes.
#[derive(Clone, Debug)]
pub(crate) struct MapNode {
    chunk: Chunk,
    entry_count: usize,
    level: u8,
}

/// The keys of a node, for searching: its layout taken apart once.
struct Keys<'a> {
    payload: &'a [u8],
    offsets: &'a [[u8; OFFSET_TABLE_ENTRY_BYTES]],
    /// The offsets from the table once more, packed closer; empty if there are none.
    starts: &'a [[u8; size_of::<u16>()]],
    key_offset: usize,
}

impl<'a> Keys<'a> {
    /// Returns where the entry at `position` starts.
    #[inline]
    fn start(&self, position: usize) -> usize {
        match self.starts.get(position) {
            Some(start) => usize::from(u16::from_le_bytes(*start)),
            None => u32::from_le_bytes(self.offsets[position]) as usize,
        }
    }

    /// Returns where the entry at `position` lies.
    fn entry_range(&self, position: usize) -> Range<usize> {
        let is_last = position + 1 == self.offsets.len();
        let end = if is_last { self.payload.len() } else { self.start(position + 1) };
        self.start(position)..end
    }

    /// The key at `position`.
    #[inline]
    fn key(&self, position: usize) -> &'a [u8] {
        let entry = &self.payload[self.start(position)..];
        let start = self.key_offset.min(entry.len());
        // Only an entry that a search passed unchecked can reach beyond the payload.
        let end = (start + u16_at(entry, ENTRY_KEY_BYTES) as usize).min(entry.len());
        &entry[start..end]
    }

    /// The first of `positions` whose key is not less than `key`, or their end.
    fn lower_bound(&self, key: &[u8], positions: Range<usize>) -> usize {
        let (mut lo, mut hi) = (positions.start, positions.end);
        while lo < hi {
            let middle = lo + (hi - lo) / 2;
            if self.is_less(middle, key) { lo = middle + 1 } else { hi = middle }
        }
        lo
    }

    /// Whether the key at `position` is less than `key`. The first eight bytes are compared as one
    /// number: most keys differ there, and a call costs more.
    #[inline]
    fn is_less(&self, position: usize, key: &[u8]) -> bool {
        let found = self.key(position);
        if let (Some((found_head, found_rest)), Some((head, rest))) =
            (found.split_first_chunk::<8>(), key.split_first_chunk::<8>())
        {
            let (found_head, head) = (u64::from_be_bytes(*found_head), u64::from_be_bytes(*head));
            return found_head < head || found_head == head && found_rest < rest;
        }
        found < key
    }
}

/// An entry, borrowed from its leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryRef<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value's flags.
    pub flags: u8,
    /// The value's bytes, or where they lie.
    pub content: ContentRef<'a>,
}

impl EntryRef<'_> {
    /// The value; `inline` gives as many bytes, the entry's last, if they are its content.
    pub(super) fn value(&self, inline: impl FnOnce(usize) -> Bytes) -> Value {
        let content = match self.content {
            ContentRef::Inline(bytes) => Content::Inline(inline(bytes.len())),
            ContentRef::Chunk { hash, bytes } => Content::Chunk { hash, bytes },
            ContentRef::Sequence { root, bytes } => Content::Sequence { root, bytes },
        };
        Value { flags: self.flags, content }
    }
}

/// Entries of a leaf as they lie, without values out of line.
pub(crate) struct RawEntries<'a> {
    payload: &'a [u8],
    /// The offsets from the first entry's to the node's last.
    offsets: &'a [[u8; OFFSET_TABLE_ENTRY_BYTES]],
    /// The offset of the first entry.
    start: usize,
}

/// One of them.
pub(crate) struct RawEntry<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) flags: u8,
    pub(crate) value_bytes: usize,
    /// Counted from the first entry's start.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl<'a> RawEntries<'a> {
    /// The one at `position`, counted from the first.
    pub(crate) fn entry(&self, position: usize) -> RawEntry<'a> {
        let offset = |position: usize| {
            let offset = self.offsets.get(position).copied().map(u32::from_le_bytes);
            offset.map_or(self.payload.len(), |offset| offset as usize)
        };
        let (start, end) = (offset(position), offset(position + 1));
        let entry = &self.payload[start..end];
        let key_bytes = u16_at(entry, ENTRY_KEY_BYTES) as usize;
        RawEntry {
            key: &entry[LEAF_KEY..LEAF_KEY + key_bytes],
            flags: entry[ENTRY_FLAGS],
            value_bytes: entry.len() - LEAF_KEY - key_bytes,
            start: start - self.start,
            end: end - self.start,
        }
    }

    /// The bytes from the first entry's start, so many of them.
    pub(crate) fn bytes(&self, bytes: usize) -> &'a [u8] {
        &self.payload[self.start..self.start + bytes]
    }
}

/// A parent's record of a child node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MapChild {
    /// The last key in the subtree.
    pub(crate) key: Bytes,
    pub(crate) hash: ChunkHash,
    pub(crate) summary: Summary,
}

impl MapNode {
    /// Reads the node named `hash`.
    pub(crate) fn load(store: &dyn ChunkStore, hash: ChunkHash) -> Result<MapNode, TreeError> {
        MapNode::open(store.get(hash)?)
    }

    fn damaged(&self, what: impl Into<String>) -> TreeError {
        TreeError::damaged(self.hash(), what)
    }

    /// Reads the child at `position`.
    pub(crate) fn load_child(
        &self,
        store: &dyn ChunkStore,
        position: usize,
    ) -> Result<MapNode, TreeError> {
        self.open_child(store.get(self.child_hash(position))?)
    }

    /// Opens a chunk that is a child of this node.
    pub(crate) fn open_child(&self, chunk: Chunk) -> Result<MapNode, TreeError> {
        let child = MapNode::open(chunk)?;
        self.check_level_of(&child)?;
        Ok(child)
    }

    /// Each step down lowers the level by one, so that no damage makes a walk endless.
    pub(super) fn check_level_of(&self, child: &MapNode) -> Result<(), TreeError> {
        if child.level().checked_add(1) == Some(self.level()) {
            return Ok(());
        }
        let (found, above) = (child.level(), self.level());
        Err(child.damaged(format!("a node of level {found} under one of level {above}")))
    }

    /// Checks the layout of a chunk (invariant 1).
    pub(crate) fn open(chunk: Chunk) -> Result<MapNode, TreeError> {
        let node = MapNode::open_unchecked_entries(chunk)?;
        if !node.are_entries_checked() {
            node.check_entries().map_err(|what| node.damaged(what))?;
            node.chunk.set_mark(MARK_ENTRIES_CHECKED);
        }
        Ok(node)
    }

    /// Checks the header and the offset table of a chunk, not its entries: until they are, only
    /// what `SearchNode` uses can't fail.
    pub(super) fn open_unchecked_entries(chunk: Chunk) -> Result<MapNode, TreeError> {
        if chunk.mark() & MARK_TABLE_CHECKED == 0 {
            check_table(&chunk).map_err(|what| TreeError::damaged(chunk.hash(), what))?;
            let level = u64::from(chunk.payload()[OFFSET_LEVEL]) << MARK_LEVEL_SHIFT;
            let entry_count = u64::from(u32_at(chunk.payload(), OFFSET_ENTRY_COUNT));
            let entry_count = entry_count << MARK_ENTRY_COUNT_SHIFT;
            chunk.set_mark(MARK_TABLE_CHECKED | level | entry_count);
        }
        let mark = chunk.mark();
        let entry_count = (mark >> MARK_ENTRY_COUNT_SHIFT) as usize;
        Ok(MapNode { chunk, entry_count, level: (mark >> MARK_LEVEL_SHIFT) as u8 })
    }

    fn are_entries_checked(&self) -> bool {
        self.chunk.mark() & MARK_ENTRIES_CHECKED != 0
    }

    /// Checks the entry at `position` of a leaf.
    pub(super) fn check_entry(&self, position: usize) -> Result<(), TreeError> {
        self.check_entry_in(&self.entry_range(position))
    }

    /// Checks the entry of a leaf that lies at `range`.
    fn check_entry_in(&self, range: &Range<usize>) -> Result<(), TreeError> {
        if self.are_entries_checked() {
            return Ok(());
        }
        match check_entry(&self.payload()[range.clone()], 0) {
            Ok(reference) if reference.is_none_or(|at| at < self.chunk.reference_count()) => Ok(()),
            Ok(_) => Err(self.damaged(format!("entry at {}: no such reference", range.start))),
            Err(what) => Err(self.damaged(format!("entry at {}: {what}", range.start))),
        }
    }

    /// Checks every entry, and that values out of line use the references in their order.
    fn check_entries(&self) -> Result<(), String> {
        let mut references = 0;
        for position in 0..self.entry_count {
            let entry = &self.payload()[self.entry_range(position)];
            let reference = check_entry(entry, self.level())
                .map_err(|what| format!("entry {position}: {what}"))?;
            if reference.is_some_and(|reference| reference != references) {
                return Err(format!("entry {position}: not the next reference"));
            }
            references += usize::from(reference.is_some());
        }
        if self.is_leaf() && references != self.chunk.reference_count() {
            let found = self.chunk.reference_count();
            return Err(format!("{found} references, but {references} values out of line"));
        }
        Ok(())
    }

    pub(crate) fn hash(&self) -> ChunkHash {
        self.chunk.hash()
    }

    fn payload(&self) -> &[u8] {
        self.chunk.payload()
    }

    /// The bytes of the payload at `range`.
    pub(super) fn bytes_in(&self, range: Range<usize>) -> &[u8] {
        &self.payload()[range]
    }

    pub(crate) fn chunk(&self) -> &Chunk {
        &self.chunk
    }

    pub(crate) fn level(&self) -> u8 {
        self.level
    }

    pub(crate) fn is_leaf(&self) -> bool {
        self.level() == 0
    }

    pub(crate) fn entry_count(&self) -> usize {
        self.entry_count
    }

    /// The sums of the whole subtree.
    pub(crate) fn summary(&self) -> Summary {
        Summary {
            count: u64_at(self.payload(), OFFSET_COUNT),
            key_bytes: u64_at(self.payload(), OFFSET_KEY_BYTES),
            value_bytes: u64_at(self.payload(), OFFSET_VALUE_BYTES),
            flags: self.payload()[OFFSET_FLAGS],
        }
    }

    fn entry_range(&self, position: usize) -> Range<usize> {
        entry_range(self.payload(), self.entry_count, position)
    }

    fn key_range(&self, position: usize) -> Range<usize> {
        let offset =
            u32_at(self.payload(), HEADER_BYTES + position * OFFSET_TABLE_ENTRY_BYTES) as usize;
        let start = offset + if self.is_leaf() { LEAF_KEY } else { CHILD_KEY };
        let end = start + u16_at(self.payload(), offset + ENTRY_KEY_BYTES) as usize;
        // Only an entry that a search passed unchecked can reach beyond the payload.
        start..end.min(self.payload().len())
    }

    /// The key at `position`: an entry's, or the last one under a child.
    pub(crate) fn key(&self, position: usize) -> &[u8] {
        &self.payload()[self.key_range(position)]
    }

    /// The key at `position`, shared with the chunk.
    pub(crate) fn key_bytes(&self, position: usize) -> Bytes {
        self.chunk.payload_slice(self.key_range(position))
    }

    /// The position of the first key that is not less than `key`; `entry_count` if there is none.
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        self.search(key).1
    }

    /// Returns where the entry of `key` lies in the payload of a leaf, if it is there.
    fn find(&self, key: &[u8]) -> Option<Range<usize>> {
        let (keys, position) = self.search(key);
        let is_it = position < self.entry_count && keys.key(position) == key;
        is_it.then(|| keys.entry_range(position))
    }

    /// As `lower_bound`, where it is known to be in `positions` or at their end.
    pub(super) fn lower_bound_in(&self, positions: Range<usize>, key: &[u8]) -> usize {
        self.keys().lower_bound(key, positions)
    }

    /// As `lower_bound`; also the keys, by what is known nearest of them.
    fn search(&self, key: &[u8]) -> (Keys<'_>, usize) {
        let mut keys = self.keys();
        let mut positions = 0..self.entry_count;
        if let Some(prefixes) = self.prefixes() {
            positions = prefixes.around(key);
            keys.starts = prefixes.starts();
        }
        let position = keys.lower_bound(key, positions);
        (keys, position)
    }

    /// The heads of this node's keys, if they are worth their memory. They are derived when a node
    /// is searched for the second time: many are read for one key.
    fn prefixes(&self) -> Option<KeyPrefixes<'_>> {
        if let Some(derived) = self.chunk.derived() {
            return Some(KeyPrefixes::new(derived, self.entry_count));
        }
        let mark = self.chunk.mark();
        if mark & MARK_HEADS_REFUSED != 0 {
            return None;
        }
        if mark & MARK_SEARCHED == 0 {
            self.chunk.set_mark(MARK_SEARCHED);
            return None;
        }
        let keys = (0..self.entry_count).map(|position| self.key(position));
        let derived = if self.is_leaf() {
            let starts = (0..self.entry_count).map(|position| self.keys().start(position));
            key_prefixes::of_entries(keys, starts, self.payload().len())
        } else {
            Some(key_prefixes::of_children(keys))
        };
        let Some(derived) = derived else {
            self.chunk.set_mark(MARK_HEADS_REFUSED);
            return None;
        };
        self.chunk.derive(&derived);
        self.chunk.derived().map(|derived| KeyPrefixes::new(derived, self.entry_count))
    }

    /// As `lower_bound`, where no key before `start` is looked for: cheap if the answer is near.
    pub(crate) fn lower_bound_from(&self, start: usize, key: &[u8]) -> usize {
        let keys = self.keys();
        let (mut lo, mut step) = (start, 1);
        let mut hi = start;
        while hi < self.entry_count && keys.is_less(hi, key) {
            lo = hi + 1;
            hi += step;
            step *= 2;
        }
        keys.lower_bound(key, lo..hi.min(self.entry_count))
    }

    fn keys(&self) -> Keys<'_> {
        let payload = self.payload();
        let table_end = HEADER_BYTES + self.entry_count * OFFSET_TABLE_ENTRY_BYTES;
        let (offsets, _) = payload[HEADER_BYTES..table_end].as_chunks();
        let key_offset = if self.is_leaf() { LEAF_KEY } else { CHILD_KEY };
        Keys { payload, offsets, starts: &[], key_offset }
    }

    /// Returns how large the boundary rule takes the entry at `position` to be: its place in the
    /// offset table and its reference belong to it.
    pub(crate) fn entry_bytes(&self, position: usize) -> u64 {
        let range = self.entry_range(position);
        let has_reference =
            !self.is_leaf() || self.payload()[range.start + ENTRY_TAG] != TAG_INLINE;
        let reference_bytes = if has_reference { HASH_BYTES } else { 0 };
        (range.len() + OFFSET_TABLE_ENTRY_BYTES + reference_bytes) as u64
    }

    /// A leaf's entry, borrowed.
    pub(crate) fn entry(&self, position: usize) -> EntryRef<'_> {
        debug_assert!(self.is_leaf());
        self.entry_in(self.entry_range(position))
    }

    #[inline]
    pub(super) fn entry_in(&self, range: Range<usize>) -> EntryRef<'_> {
        read_entry(&self.payload()[range], |position| self.chunk.reference(position))
    }

    /// Whether entries of this leaf mean the same wherever they stand: none refers to a chunk.
    pub(crate) fn is_movable(&self) -> bool {
        self.is_leaf() && self.chunk.reference_count() == 0
    }

    /// The bytes of the entries at `positions`, which follow one another, of a movable leaf.
    pub(crate) fn raw_entries(&self, positions: &Range<usize>) -> RawEntries<'_> {
        let payload = self.payload();
        let start = if positions.is_empty() { 0 } else { self.entry_range(positions.start).start };
        let table = HEADER_BYTES + positions.start * OFFSET_TABLE_ENTRY_BYTES;
        let table_end = HEADER_BYTES + self.entry_count * OFFSET_TABLE_ENTRY_BYTES;
        let (offsets, _) = payload[table..table_end].as_chunks();
        RawEntries { payload, offsets, start }
    }

    /// A leaf's value, shared with the chunk.
    pub(crate) fn value(&self, position: usize) -> Value {
        self.value_in(self.entry_range(position))
    }

    /// The value of `key` in a leaf whose entries may be unchecked, if it is there.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Value>, TreeError> {
        Ok(self.find_checked(key)?.map(|range| self.value_in(range)))
    }

    /// Returns where the entry of `key` lies in the payload of a leaf whose entries may be
    /// unchecked, if it is there.
    pub(super) fn find_checked(&self, key: &[u8]) -> Result<Option<Range<usize>>, TreeError> {
        let found = self.find(key);
        if let Some(range) = &found {
            self.check_entry_in(range)?;
        }
        Ok(found)
    }

    pub(super) fn value_in(&self, range: Range<usize>) -> Value {
        let entry = self.entry_in(range.clone());
        entry.value(|inline| self.chunk.payload_slice(range.end - inline..range.end))
    }

    /// A leaf's entry, shared with the chunk.
    pub(crate) fn owned_entry(&self, position: usize) -> Entry {
        Entry { key: self.key_bytes(position), value: self.value(position) }
    }

    pub(crate) fn child_hash(&self, position: usize) -> ChunkHash {
        self.chunk.reference(position)
    }

    /// Returns how many entries lie under each child of an interior node, in order.
    pub(crate) fn child_counts(&self) -> impl Iterator<Item = u64> + '_ {
        let Keys { payload, offsets, .. } = self.keys();
        let offsets = offsets.iter().map(|offset| u32::from_le_bytes(*offset) as usize);
        offsets.map(|offset| u64_at(payload, offset + CHILD_COUNT))
    }

    /// Returns this node's record of its child at `position`.
    pub(crate) fn child(&self, position: usize) -> MapChild {
        debug_assert!(!self.is_leaf());
        let entry = &self.payload()[self.entry_range(position)];
        let summary = Summary {
            count: u64_at(entry, CHILD_COUNT),
            key_bytes: u64_at(entry, CHILD_KEY_BYTES),
            value_bytes: u64_at(entry, CHILD_VALUE_BYTES),
            flags: entry[ENTRY_FLAGS],
        };
        MapChild { key: self.key_bytes(position), hash: self.child_hash(position), summary }
    }
}
