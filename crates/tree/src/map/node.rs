//! A map's node as it is stored, and how it is read in place.
//!
//! The authority is docs/format/map-node.md. All numbers are little-endian.
//!
//! *Invariants*: 1. [`MapNode::open`] checks once that every offset, length and reference lies
//! inside the chunk; afterwards accessors can't fail. The chunk's mark remembers that, so that a
//! cached chunk is checked once. 2. It doesn't check that keys ascend or that
//! sums add up: a chunk's name vouches for the writer, `Tree::check` for the rest; a search in a
//! node that lies about its order ends with a wrong answer, never with a panic.

use std::ops::Range;

use bytes::Bytes;
use frond_store::chunk::HASH_BYTES;
use frond_store::{Chunk, ChunkHash, ChunkKind, ChunkStore};

use crate::error::TreeError;
use crate::format::KEY_BYTES_MAX;
use crate::map::key_prefixes::{self, KeyPrefixes};
use crate::map::{Entry, Summary};
use crate::value::{Content, ContentRef, Value};

const OFFSET_LEVEL: usize = 0;
const OFFSET_FLAGS: usize = OFFSET_LEVEL + size_of::<u8>();
const OFFSET_RESERVED: usize = OFFSET_FLAGS + size_of::<u8>();
const OFFSET_ENTRY_COUNT: usize = OFFSET_RESERVED + size_of::<u16>();
const OFFSET_COUNT: usize = OFFSET_ENTRY_COUNT + size_of::<u32>();
const OFFSET_KEY_BYTES: usize = OFFSET_COUNT + size_of::<u64>();
const OFFSET_VALUE_BYTES: usize = OFFSET_KEY_BYTES + size_of::<u64>();
/// The offset table follows: a `u32` an entry.
pub(super) const HEADER_BYTES: usize = OFFSET_VALUE_BYTES + size_of::<u64>();
const _: () = assert!(HEADER_BYTES == 32); // Stored: change only with a new version.
pub(super) const OFFSET_TABLE_ENTRY_BYTES: usize = size_of::<u32>();

// An entry begins alike on all levels.
const ENTRY_KEY_BYTES: usize = 0;
const ENTRY_FLAGS: usize = ENTRY_KEY_BYTES + size_of::<u16>();
const ENTRY_TAG: usize = ENTRY_FLAGS + size_of::<u8>();
const ENTRY_HEADER_BYTES: usize = ENTRY_TAG + size_of::<u8>();
// In a leaf the key and the content follow; content out of line is:
pub(super) const LEAF_KEY: usize = ENTRY_HEADER_BYTES;
const OUTLINE_REFERENCE: usize = 0;
const OUTLINE_BYTES: usize = OUTLINE_REFERENCE + size_of::<u32>();
const OUTLINE_CONTENT_BYTES: usize = OUTLINE_BYTES + size_of::<u64>();
// In an interior node the sums of the subtree, then the key.
const CHILD_COUNT: usize = ENTRY_HEADER_BYTES;
const CHILD_KEY_BYTES: usize = CHILD_COUNT + size_of::<u64>();
const CHILD_VALUE_BYTES: usize = CHILD_KEY_BYTES + size_of::<u64>();
pub(super) const CHILD_KEY: usize = CHILD_VALUE_BYTES + size_of::<u64>();
const _: () = assert!(LEAF_KEY == 4 && CHILD_KEY == 28 && OUTLINE_CONTENT_BYTES == 12);
const _: () = assert!(KEY_BYTES_MAX <= u16::MAX as usize);

// Where a leaf's content lies. Stored: never renumber. Interior entries have zero.
const TAG_INLINE: u8 = 0;
const TAG_CHUNK: u8 = 1;
const TAG_SEQUENCE: u8 = 2;

// What a chunk's mark says of a map's node: bits, the level and the number of entries.
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
    /// What the table tells, nearer; or nothing.
    starts: &'a [[u8; size_of::<u16>()]],
    key_offset: usize,
}

impl<'a> Keys<'a> {
    /// Where the entry at `position` starts.
    #[inline]
    fn start(&self, position: usize) -> usize {
        match self.starts.get(position) {
            Some(start) => usize::from(u16::from_le_bytes(*start)),
            None => u32::from_le_bytes(self.offsets[position]) as usize,
        }
    }

    /// Where the entry at `position` lies.
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
    /// From the first entry's to the node's last.
    offsets: &'a [[u8; OFFSET_TABLE_ENTRY_BYTES]],
    /// Where the first entry starts.
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

/// What a parent knows of a node.
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

    /// Where the entry of `key` lies in the payload of a leaf, if it is there.
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

    /// How large the boundary rule takes the entry at `position` to be: its place in the offset
    /// table and its reference belong to it.
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

    /// Where the entry of `key` lies in the payload of a leaf whose entries may be unchecked, if it
    /// is there.
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

    /// How many entries lie under each child of an interior node, in order.
    pub(crate) fn child_counts(&self) -> impl Iterator<Item = u64> + '_ {
        let Keys { payload, offsets, .. } = self.keys();
        let offsets = offsets.iter().map(|offset| u32::from_le_bytes(*offset) as usize);
        offsets.map(|offset| u64_at(payload, offset + CHILD_COUNT))
    }

    /// What this node knows of its child at `position`.
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

/// Checks that the header is a map node's, that the entries lie inside the chunk without gaps, and
/// that each has room for its fixed part.
fn check_table(chunk: &Chunk) -> Result<(), String> {
    let payload = chunk.payload();
    if chunk.kind() != ChunkKind::MapNode {
        return Err(format!("a {:?}, not a node of a map", chunk.kind()));
    }
    if payload.len() < HEADER_BYTES {
        return Err(format!("a map's node of {} bytes", payload.len()));
    }
    if u16_at(payload, OFFSET_RESERVED) != 0 {
        return Err("reserved bytes of a map's node are not zero".to_owned());
    }
    let level = payload[OFFSET_LEVEL];
    let entry_count = u32_at(payload, OFFSET_ENTRY_COUNT) as usize;
    let entries_start = entry_count
        .checked_mul(OFFSET_TABLE_ENTRY_BYTES)
        .and_then(|bytes| bytes.checked_add(HEADER_BYTES))
        .filter(|start| *start <= payload.len())
        .ok_or_else(|| format!("{entry_count} entries exceed the node"))?;
    if level > 0 && (entry_count == 0 || entry_count != chunk.reference_count()) {
        let references = chunk.reference_count();
        return Err(format!("{entry_count} children, but {references} references"));
    }
    let entry_bytes_min = if level == 0 { LEAF_KEY } else { CHILD_KEY };
    if offsets_fit(&payload[HEADER_BYTES..entries_start], payload.len(), entry_bytes_min) {
        return Ok(());
    }
    Err("entries that overlap, leave gaps or lie outside of the node".to_owned())
}

/// Checks that the first entry begins behind `table`, that each has room for its fixed part before
/// the next one, and the last one before the node's end.
///
/// Without a branch an entry, so that the compiler takes many at once: each node on the way of each
/// point read passes here (a quarter of a read by index before).
fn offsets_fit(table: &[u8], payload_bytes: usize, entry_bytes_min: usize) -> bool {
    let (offsets, _) = table.as_chunks::<OFFSET_TABLE_ENTRY_BYTES>();
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
        return payload_bytes == HEADER_BYTES;
    };
    let offset = |bytes: &[u8; OFFSET_TABLE_ENTRY_BYTES]| u64::from(u32::from_le_bytes(*bytes));
    let mut ordered = true;
    for (this, next) in offsets.iter().zip(&offsets[1..]) {
        ordered &= offset(this) + entry_bytes_min as u64 <= offset(next);
    }
    ordered
        && offset(first) == (HEADER_BYTES + table.len()) as u64
        && offset(last) + entry_bytes_min as u64 <= payload_bytes as u64
}

/// Checks an entry that has room for its fixed part; returns its place in the references if its
/// value lies out of line.
fn check_entry(entry: &[u8], level: u8) -> Result<Option<usize>, &'static str> {
    let key_bytes = u16_at(entry, ENTRY_KEY_BYTES) as usize;
    if key_bytes > KEY_BYTES_MAX {
        return Err("key too long");
    }
    let tag = entry[ENTRY_TAG];
    if level > 0 {
        let exact = entry.len() == CHILD_KEY + key_bytes;
        return if exact && tag == 0 { Ok(None) } else { Err("not a child's shape") };
    }
    let content = entry.get(LEAF_KEY + key_bytes..).ok_or("key exceeds the entry")?;
    match tag {
        TAG_INLINE => Ok(None),
        TAG_CHUNK | TAG_SEQUENCE if content.len() == OUTLINE_CONTENT_BYTES => {
            Ok(Some(u32_at(content, OUTLINE_REFERENCE) as usize))
        }
        TAG_CHUNK | TAG_SEQUENCE => Err("not a reference's length"),
        _ => Err("unknown place of a value"),
    }
}

fn entry_range(payload: &[u8], entry_count: usize, position: usize) -> Range<usize> {
    let place = HEADER_BYTES + position * OFFSET_TABLE_ENTRY_BYTES;
    let start = u32_at(payload, place) as usize;
    let end = if position + 1 < entry_count {
        u32_at(payload, place + OFFSET_TABLE_ENTRY_BYTES) as usize
    } else {
        payload.len()
    };
    start..end
}

/// Reads an entry of a leaf, which is checked; `reference` gives the references of what has it.
#[inline]
pub(super) fn read_entry(entry: &[u8], reference: impl FnOnce(usize) -> ChunkHash) -> EntryRef<'_> {
    let (key, content) = entry[LEAF_KEY..].split_at(u16_at(entry, ENTRY_KEY_BYTES) as usize);
    let reference = || reference(u32_at(content, OUTLINE_REFERENCE) as usize);
    let content = match entry[ENTRY_TAG] {
        TAG_INLINE => ContentRef::Inline(content),
        TAG_CHUNK => ContentRef::Chunk { hash: reference(), bytes: u64_at(content, OUTLINE_BYTES) },
        _ => ContentRef::Sequence { root: reference(), bytes: u64_at(content, OUTLINE_BYTES) },
    };
    EntryRef { key, flags: entry[ENTRY_FLAGS], content }
}

/// Appends an entry of a leaf; `reference` is the place in the chunk's references of what lies out
/// of line.
pub(super) fn write_entry(body: &mut Vec<u8>, entry: &EntryRef<'_>, reference: usize) {
    let (tag, outline_bytes) = match entry.content {
        ContentRef::Inline(_) => (TAG_INLINE, 0),
        ContentRef::Chunk { bytes, .. } => (TAG_CHUNK, bytes),
        ContentRef::Sequence { bytes, .. } => (TAG_SEQUENCE, bytes),
    };
    write_entry_header(body, entry.key, entry.flags, tag);
    body.extend_from_slice(entry.key);
    if let ContentRef::Inline(bytes) = entry.content {
        body.extend_from_slice(bytes);
    } else {
        let reference = u32::try_from(reference).expect("a chunk holds far fewer references");
        body.extend_from_slice(&reference.to_le_bytes());
        body.extend_from_slice(&outline_bytes.to_le_bytes());
    }
}

/// Appends an entry of an interior node.
pub(super) fn write_child(body: &mut Vec<u8>, child: &MapChild) {
    write_entry_header(body, &child.key, child.summary.flags, 0);
    body.extend_from_slice(&child.summary.count.to_le_bytes());
    body.extend_from_slice(&child.summary.key_bytes.to_le_bytes());
    body.extend_from_slice(&child.summary.value_bytes.to_le_bytes());
    body.extend_from_slice(&child.key);
}

fn write_entry_header(body: &mut Vec<u8>, key: &[u8], flags: u8, tag: u8) {
    let key_bytes = u16::try_from(key.len()).expect("keys are at most 8 KB");
    let [low, high] = key_bytes.to_le_bytes();
    body.extend_from_slice(&[low, high, flags, tag]);
}

/// Lays out what stands before the entries: header and offset table (`starts` count from the
/// first entry's beginning).
pub(super) fn encode_head(level: u8, summary: &Summary, starts: &[u32], head: &mut Vec<u8>) {
    let entries_start = HEADER_BYTES + starts.len() * OFFSET_TABLE_ENTRY_BYTES;
    let shift = u32::try_from(entries_start).expect("a node is far smaller than 4 GB");
    let entry_count = u32::try_from(starts.len()).expect("a node is far smaller than 4 GB");
    head.clear();
    head.extend_from_slice(&[level, summary.flags, 0, 0]);
    head.extend_from_slice(&entry_count.to_le_bytes());
    head.extend_from_slice(&summary.count.to_le_bytes());
    head.extend_from_slice(&summary.key_bytes.to_le_bytes());
    head.extend_from_slice(&summary.value_bytes.to_le_bytes());
    head.resize(entries_start, 0);
    let (places, _) = head[HEADER_BYTES..].as_chunks_mut::<OFFSET_TABLE_ENTRY_BYTES>();
    for (place, start) in places.iter_mut().zip(starts) {
        *place = (start + shift).to_le_bytes();
    }
}

fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, offset))
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, offset))
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, offset))
}

fn array_at<const BYTES: usize>(bytes: &[u8], offset: usize) -> [u8; BYTES] {
    bytes[offset..offset + BYTES].try_into().expect("the slice has this length")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of these offsets before a payload that ends at `payload_bytes`.
    fn check(offsets: &[u32], payload_bytes: usize, expected: bool) {
        let table: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
        assert_eq!(offsets_fit(&table, payload_bytes, LEAF_KEY), expected, "{offsets:?}");
    }

    #[test]
    fn offsets_leave_no_gap_and_have_room() {
        let first = (HEADER_BYTES + 3 * OFFSET_TABLE_ENTRY_BYTES) as u32;
        check(&[first, first + 4, first + 9], first as usize + 13, true);
        check(&[first, first + 4, first + 9], first as usize + 12, false);
        check(&[first + 1, first + 5, first + 9], first as usize + 20, false);
        check(&[first, first + 3, first + 9], first as usize + 20, false);
        check(&[first, first + 9, first + 4], first as usize + 20, false);
        check(&[first, first + 4, u32::MAX], first as usize + 20, false);
        check(&[first, u32::MAX, 3], first as usize + 20, false);
        check(&[], HEADER_BYTES, true);
        check(&[], HEADER_BYTES + 1, false);
    }
}
