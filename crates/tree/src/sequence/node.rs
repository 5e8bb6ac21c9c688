//! A sequence's node as it is stored, and how it is read in place.
//!
//! The authority is docs/format/sequence-node.md. All numbers are little-endian. As with a map's
//! node, [`SequenceNode::open`] checks the layout once, and afterwards accessors can't fail.

use std::ops::Range;

use bytes::Bytes;
use frond_store::chunk::HASH_BYTES;
use frond_store::{Chunk, ChunkHash, ChunkKind, ChunkStore};

use crate::error::TreeError;
use crate::sequence::entry::Entry;

const OFFSET_LEVEL: usize = 0;
const OFFSET_RESERVED: usize = OFFSET_LEVEL + size_of::<u8>();
const OFFSET_ENTRY_COUNT: usize = OFFSET_RESERVED + RESERVED_BYTES;
const OFFSET_COUNT: usize = OFFSET_ENTRY_COUNT + size_of::<u32>();
const OFFSET_BYTES: usize = OFFSET_COUNT + size_of::<u64>();
const HEADER_BYTES: usize = OFFSET_BYTES + size_of::<u64>();
const RESERVED_BYTES: usize = 3;
const _: () = assert!(HEADER_BYTES == 24); // Stored: change only with a new version.

/// In a leaf a table of ends (counted from the end of the table) follows, then the items, without
/// the names that they end with.
pub(super) const ITEM_END_BYTES: usize = size_of::<u32>();
/// The bit in the table that the item ends with the leaf's next reference.
const ITEM_REFERS: u32 = 1 << 31;
// In an interior node the count and the bytes of each child follow: four bytes each, or eight if
// the node's need them.
pub(super) const CHILD_ENTRY_BYTES: usize = 2 * size_of::<u32>();
const WIDE_CHILD_ENTRY_BYTES: usize = 2 * size_of::<u64>();

const KIND: ChunkKind = ChunkKind::SequenceNode;
/// The mark of a chunk of that kind whose layout was checked.
const MARK_CHECKED: u64 = 1;

/// An opened node. Cloning shares the bytes.
#[derive(Clone, Debug)]
pub(super) struct SequenceNode {
    chunk: Chunk,
    entry_count: usize,
    /// The number of bytes that the sums of each child of an interior node take.
    child_bytes: usize,
}

/// The number of items, and their bytes without the names that they end with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Sums {
    pub(super) count: u64,
    pub(super) bytes: u64,
}

impl Sums {
    /// Sums of what is damaged stop at the largest number.
    pub(super) fn add(&mut self, other: &Sums) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    /// Returns how many bytes the sums of each child take in an interior node with these.
    fn child_bytes(&self) -> usize {
        match u32::try_from(self.count.max(self.bytes)) {
            Ok(_) => CHILD_ENTRY_BYTES,
            Err(_) => WIDE_CHILD_ENTRY_BYTES,
        }
    }

    /// Lays a child's sums out: half of `place` each.
    fn put(&self, place: &mut [u8]) {
        let (count, bytes) = place.split_at_mut(place.len() / 2);
        count.copy_from_slice(&self.count.to_le_bytes()[..count.len()]);
        bytes.copy_from_slice(&self.bytes.to_le_bytes()[..bytes.len()]);
    }

    /// Takes `come` in the place of `gone`.
    fn exchange(&mut self, gone: &Sums, come: &Sums) {
        self.count = self.count.saturating_sub(gone.count).saturating_add(come.count);
        self.bytes = self.bytes.saturating_sub(gone.bytes).saturating_add(come.bytes);
    }
}

/// A parent's record of a child node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SequenceChild {
    pub(super) hash: ChunkHash,
    pub(super) sums: Sums,
}

impl SequenceChild {
    pub(super) fn entry(&self) -> Entry<'_> {
        Entry { front: &[], reference: Some(&self.hash.0) }
    }
}

impl SequenceNode {
    /// Reads the node named `hash`.
    pub(super) fn load(store: &dyn ChunkStore, hash: ChunkHash) -> Result<SequenceNode, TreeError> {
        SequenceNode::open(store.get(hash)?)
    }

    /// Reads the child at `position`: each step down lowers the level by one, so that no damage
    /// makes a walk endless.
    pub(super) fn load_child(
        &self,
        store: &dyn ChunkStore,
        position: usize,
    ) -> Result<SequenceNode, TreeError> {
        let child = SequenceNode::load(store, self.chunk.reference(position))?;
        if child.level() + 1 != self.level() || child.sums() != self.child(position).sums {
            let what = "not the node that the one above describes";
            return Err(TreeError::damaged(child.hash(), what));
        }
        Ok(child)
    }

    /// Checks the layout of a chunk.
    pub(super) fn open(chunk: Chunk) -> Result<SequenceNode, TreeError> {
        let entry_count = if chunk.kind() == KIND && chunk.mark() & MARK_CHECKED != 0 {
            u32_at(chunk.payload(), OFFSET_ENTRY_COUNT) as usize
        } else {
            let checked = check_layout(&chunk, chunk.payload());
            let entry_count = checked.map_err(|what| TreeError::damaged(chunk.hash(), what))?;
            chunk.set_mark(MARK_CHECKED);
            entry_count
        };
        let child_bytes = sums_of(chunk.payload()).child_bytes();
        Ok(SequenceNode { chunk, entry_count, child_bytes })
    }

    pub(super) fn hash(&self) -> ChunkHash {
        self.chunk.hash()
    }

    pub(super) fn chunk(&self) -> &Chunk {
        &self.chunk
    }

    fn payload(&self) -> &[u8] {
        self.chunk.payload()
    }

    pub(super) fn level(&self) -> u8 {
        self.payload()[OFFSET_LEVEL]
    }

    pub(super) fn is_leaf(&self) -> bool {
        self.level() == 0
    }

    pub(super) fn entry_count(&self) -> usize {
        self.entry_count
    }

    /// The sums of the whole subtree.
    pub(super) fn sums(&self) -> Sums {
        sums_of(self.payload())
    }

    fn item_range(&self, position: usize) -> Range<usize> {
        item_range(self.payload(), self.entry_count, position)
    }

    /// A leaf's item, shared with the chunk if it doesn't end with a reference.
    pub(super) fn item_bytes(&self, position: usize) -> Bytes {
        match self.entry(position) {
            Entry { reference: None, .. } => self.chunk.payload_slice(self.item_range(position)),
            entry => entry.to_bytes(),
        }
    }

    /// The entry at `position`: an item, or a child's name.
    pub(super) fn entry(&self, position: usize) -> Entry<'_> {
        self.entry_referring(position, self.reference_position(position))
    }

    /// The entries from `position` on.
    pub(super) fn entries(&self, position: usize) -> impl Iterator<Item = Entry<'_>> {
        let mut reference = self.reference_position(position);
        (position..self.entry_count).map(move |position| {
            let entry = self.entry_referring(position, reference);
            reference += usize::from(entry.reference.is_some());
            entry
        })
    }

    /// Returns how large the boundary rule takes the entries before `position` to be.
    pub(super) fn bytes_before(&self, position: usize) -> u64 {
        if !self.is_leaf() {
            return (position * (CHILD_ENTRY_BYTES + HASH_BYTES)) as u64;
        }
        let table_end = HEADER_BYTES + self.entry_count * ITEM_END_BYTES;
        let items = self.item_range(position).start - table_end;
        let references = self.reference_position(position) * HASH_BYTES;
        (position * ITEM_END_BYTES + items + references) as u64
    }

    /// An entry, given how many references the entries before it have.
    fn entry_referring(&self, position: usize, reference_position: usize) -> Entry<'_> {
        let reference = || {
            let names = &self.chunk.references_bytes()[reference_position * HASH_BYTES..];
            names.first_chunk()
        };
        if !self.is_leaf() {
            return Entry { front: &[], reference: reference() };
        }
        let refers = item_refers(self.payload(), position);
        let front = &self.payload()[self.item_range(position)];
        Entry { front, reference: refers.then(reference).flatten() }
    }

    /// Returns how many references the entries before `position` have.
    fn reference_position(&self, position: usize) -> usize {
        match self.chunk.reference_count() {
            0 => 0,
            all if all == self.entry_count => position,
            _ => (0..position).filter(|at| item_refers(self.payload(), *at)).count(),
        }
    }

    /// Returns an interior node's record of its child at `position`.
    pub(super) fn child(&self, position: usize) -> SequenceChild {
        SequenceChild { hash: self.chunk.reference(position), sums: self.child_sums(position) }
    }

    fn child_sums(&self, position: usize) -> Sums {
        debug_assert!(!self.is_leaf());
        let (payload, at) = (self.payload(), HEADER_BYTES + position * self.child_bytes);
        match self.child_bytes {
            CHILD_ENTRY_BYTES => {
                let (count, bytes) = (u32_at(payload, at), u32_at(payload, at + 4));
                Sums { count: u64::from(count), bytes: u64::from(bytes) }
            }
            _ => Sums { count: u64_at(payload, at), bytes: u64_at(payload, at + 8) },
        }
    }

    /// The entry that holds the item at `position`, counted from the node's first, and how many
    /// items lie before it.
    pub(super) fn entry_with(&self, position: u64) -> Option<(usize, u64)> {
        if self.is_leaf() {
            let entry = usize::try_from(position).ok().filter(|entry| *entry < self.entry_count)?;
            return Some((entry, position));
        }
        let mut before = 0_u64;
        for entry in 0..self.entry_count {
            let end = before.saturating_add(self.child_sums(entry).count);
            if position < end {
                return Some((entry, before));
            }
            before = end;
        }
        None
    }

    /// The sums of the entry at `position`: an item's, or a child's.
    pub(super) fn entry_sums(&self, position: usize) -> Sums {
        if self.is_leaf() {
            Sums { count: 1, bytes: self.item_range(position).len() as u64 }
        } else {
            self.child_sums(position)
        }
    }

    /// This interior node with `child` in the place of the one at `position`.
    pub(super) fn with_child(
        &self,
        position: usize,
        child: &SequenceChild,
    ) -> (Chunk, SequenceChild) {
        let mut sums = self.sums();
        sums.exchange(&self.child_sums(position), &child.sums);
        let chunk = if sums.child_bytes() == self.child_bytes {
            let mut change = self.chunk.change();
            change.put_reference(position, child.hash);
            if sums != self.sums() {
                let mut place = [0; WIDE_CHILD_ENTRY_BYTES];
                sums.put(&mut place);
                change.put_payload(OFFSET_COUNT, &place);
            }
            let place = &mut [0; WIDE_CHILD_ENTRY_BYTES][..self.child_bytes];
            child.sums.put(place);
            change.put_payload(HEADER_BYTES + position * self.child_bytes, place);
            change.finish()
        } else {
            let mut references: Vec<ChunkHash> = self.chunk.references().collect();
            references[position] = child.hash;
            let mut children: Vec<Sums> =
                (0..self.entry_count).map(|entry| self.child_sums(entry)).collect();
            children[position] = child.sums;
            let payload = encode_interior(self.level(), &sums, &children);
            Chunk::new(KIND, &references, &payload)
        };
        let child = SequenceChild { hash: chunk.hash(), sums };
        (chunk, child)
    }

    /// This leaf with `item` in the place of the one at `position`. Both end with a reference, or
    /// neither does.
    pub(super) fn with_item(&self, position: usize, item: &Entry<'_>) -> (Chunk, SequenceChild) {
        let range = self.item_range(position);
        if range.len() != item.front.len() {
            return self.with_resized_item(position, item);
        }
        let mut change = self.chunk.change();
        if let Some(name) = item.reference {
            change.put_reference(self.reference_position(position), ChunkHash(*name));
        }
        change.put_payload(range.start, item.front);
        let chunk = change.finish();
        let child = SequenceChild { hash: chunk.hash(), sums: self.sums() };
        (chunk, child)
    }

    fn with_resized_item(&self, position: usize, item: &Entry<'_>) -> (Chunk, SequenceChild) {
        let mut leaf = Leaf::default();
        for (at, entry) in self.entries(0).enumerate() {
            leaf.push(if at == position { item } else { &entry });
        }
        let chunk = Chunk::new(KIND, &leaf.references, &leaf.payload());
        let sums = Sums { count: self.entry_count as u64, bytes: leaf.items.len() as u64 };
        let child = SequenceChild { hash: chunk.hash(), sums };
        (chunk, child)
    }
}

/// A leaf while it is made.
#[derive(Default)]
pub(super) struct Leaf {
    items: Vec<u8>,
    /// As in the table.
    ends: Vec<u32>,
    pub(super) references: Vec<ChunkHash>,
}

impl Leaf {
    pub(super) fn push(&mut self, item: &Entry<'_>) {
        self.items.extend_from_slice(item.front);
        let end = u32::try_from(self.items.len()).expect("a node is far smaller than 4 GB");
        self.ends.push(end | if item.reference.is_some() { ITEM_REFERS } else { 0 });
        self.references.extend(item.reference.copied().map(ChunkHash));
    }

    pub(super) fn item_count(&self) -> usize {
        self.ends.len()
    }

    /// Makes room for a leaf that is about like `node`.
    pub(super) fn reserve(&mut self, node: &SequenceNode) {
        self.items.reserve(node.payload().len());
        self.ends.reserve(node.entry_count + 1);
        self.references.reserve(node.chunk.reference_count() + 1);
    }

    /// Lays it out.
    pub(super) fn payload(&self) -> Vec<u8> {
        let (ends, items) = (&self.ends, &self.items);
        let sums = Sums { count: ends.len() as u64, bytes: items.len() as u64 };
        let table_bytes = ends.len() * ITEM_END_BYTES;
        let mut payload = Vec::with_capacity(HEADER_BYTES + table_bytes + items.len());
        encode_header(&mut payload, 0, ends.len(), &sums);
        ends.iter().for_each(|end| payload.extend_from_slice(&end.to_le_bytes()));
        payload.extend_from_slice(items);
        payload
    }

    /// As if nothing was pushed.
    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.ends.clear();
        self.references.clear();
    }
}

/// Checks that every offset lies inside the chunk; returns the entry count.
fn check_layout(chunk: &Chunk, payload: &[u8]) -> Result<usize, String> {
    if chunk.kind() != KIND {
        return Err(format!("a {:?}, not a node of a sequence", chunk.kind()));
    }
    if payload.len() < HEADER_BYTES {
        return Err(format!("a sequence's node of {} bytes", payload.len()));
    }
    if payload[OFFSET_RESERVED..OFFSET_ENTRY_COUNT] != [0; RESERVED_BYTES] {
        return Err("reserved bytes of a sequence's node are not zero".to_owned());
    }
    let is_leaf = payload[OFFSET_LEVEL] == 0;
    let entry_count = u32_at(payload, OFFSET_ENTRY_COUNT) as usize;
    let sums = sums_of(payload);
    let entry_bytes = if is_leaf { ITEM_END_BYTES } else { sums.child_bytes() };
    let table_end = entry_count
        .checked_mul(entry_bytes)
        .and_then(|bytes| bytes.checked_add(HEADER_BYTES))
        .filter(|end| *end <= payload.len())
        .ok_or_else(|| format!("{entry_count} entries exceed the node"))?;
    let (mut end, mut refers_count) = (table_end, if is_leaf { 0 } else { entry_count });
    for position in 0..if is_leaf { entry_count } else { 0 } {
        let range = item_range(payload, entry_count, position);
        if range.end < end || range.end > payload.len() {
            return Err(format!("item {position} lies outside of the node"));
        }
        refers_count += usize::from(item_refers(payload, position));
        end = range.end;
    }
    let found = chunk.reference_count();
    if found != refers_count || !is_leaf && entry_count == 0 {
        return Err(format!("{found} references of {entry_count} entries"));
    }
    if end != payload.len() {
        return Err("bytes after the last entry".to_owned());
    }
    let (count, bytes) = (entry_count as u64, (payload.len() - table_end) as u64);
    if is_leaf && sums != (Sums { count, bytes }) {
        return Err("a leaf's sums are wrong".to_owned());
    }
    Ok(entry_count)
}

fn item_range(payload: &[u8], entry_count: usize, position: usize) -> Range<usize> {
    let table_end = HEADER_BYTES + entry_count * ITEM_END_BYTES;
    let end = |position| table_end + (item_end(payload, position) & !ITEM_REFERS) as usize;
    let start = if position == 0 { table_end } else { end(position - 1) };
    start..end(position)
}

fn item_refers(payload: &[u8], position: usize) -> bool {
    item_end(payload, position) & ITEM_REFERS != 0
}

fn item_end(payload: &[u8], position: usize) -> u32 {
    u32_at(payload, HEADER_BYTES + position * ITEM_END_BYTES)
}

/// Lays an interior node out.
pub(super) fn encode_interior(level: u8, sums: &Sums, children: &[Sums]) -> Vec<u8> {
    let child_bytes = sums.child_bytes();
    let mut payload = Vec::with_capacity(HEADER_BYTES + children.len() * child_bytes);
    encode_header(&mut payload, level, children.len(), sums);
    payload.resize(HEADER_BYTES + children.len() * child_bytes, 0);
    let places = payload[HEADER_BYTES..].chunks_exact_mut(child_bytes);
    children.iter().zip(places).for_each(|(child, place)| child.put(place));
    payload
}

fn encode_header(payload: &mut Vec<u8>, level: u8, entry_count: usize, sums: &Sums) {
    let entry_count = u32::try_from(entry_count).expect("a node is far smaller than 4 GB");
    payload.extend_from_slice(&[level, 0, 0, 0]);
    payload.extend_from_slice(&entry_count.to_le_bytes());
    payload.extend_from_slice(&sums.count.to_le_bytes());
    payload.extend_from_slice(&sums.bytes.to_le_bytes());
}

fn sums_of(payload: &[u8]) -> Sums {
    Sums { count: u64_at(payload, OFFSET_COUNT), bytes: u64_at(payload, OFFSET_BYTES) }
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

    fn child(number: u8, count: u64, bytes: u64) -> SequenceChild {
        SequenceChild { hash: ChunkHash([number; HASH_BYTES]), sums: Sums { count, bytes } }
    }

    fn interior(children: &[SequenceChild]) -> SequenceNode {
        let mut sums = Sums::default();
        children.iter().for_each(|child| sums.add(&child.sums));
        let names: Vec<ChunkHash> = children.iter().map(|child| child.hash).collect();
        let children: Vec<Sums> = children.iter().map(|child| child.sums).collect();
        let payload = encode_interior(1, &sums, &children);
        SequenceNode::open(Chunk::new(ChunkKind::SequenceNode, &names, &payload)).unwrap()
    }

    /// Sums take eight bytes each where the node's need more than four, before and after a child
    /// was exchanged.
    #[test]
    fn sums_are_as_wide_as_the_node_needs() {
        const NARROW: u64 = u32::MAX as u64;
        let cases = [
            (child(2, 5, 70), 8),
            (child(2, 5, NARROW - 10), 8),
            (child(2, 5, NARROW - 9), 16),
            (child(2, u64::MAX / 2, 10), 16),
        ];
        for (before, _) in cases {
            let node = interior(&[child(1, 3, 10), before]);
            for (after, child_bytes) in cases {
                let (chunk, changed) = node.with_child(1, &after);
                let expected = interior(&[child(1, 3, 10), after]);
                assert_eq!(chunk, *expected.chunk(), "{before:?} to {after:?}");
                assert_eq!(changed.sums, expected.sums());
                assert_eq!(chunk.payload().len(), HEADER_BYTES + 2 * child_bytes);
                assert_eq!((expected.child(0), expected.child(1)), (child(1, 3, 10), after));
            }
        }
    }

    /// An item's name is kept apart and comes back, whatever stands before and behind it.
    #[test]
    fn items_are_as_they_were_put() {
        let names: Vec<[u8; HASH_BYTES]> = (0..4).map(|number| [number; HASH_BYTES]).collect();
        let item =
            |front, name: Option<usize>| Entry { front, reference: name.map(|at| &names[at]) };
        let items: [Entry<'_>; 5] = [
            item(b"a", Some(2)),
            item(b"", None),
            item(b"", Some(0)),
            item(b"bc", None),
            item(b"d", Some(2)),
        ];
        for count in 0..=items.len() {
            let mut leaf = Leaf::default();
            items[..count].iter().for_each(|item| leaf.push(item));
            let chunk = Chunk::new(ChunkKind::SequenceNode, &leaf.references, &leaf.payload());
            let node = SequenceNode::open(chunk).unwrap();
            let mut size = 0;
            for (position, item) in items[..count].iter().enumerate() {
                assert_eq!(node.bytes_before(position), size);
                assert_eq!(node.item_bytes(position), item.to_bytes());
                size += item.bytes_in_node(0);
                for from in 0..=position {
                    let found = node.entries(from).nth(position - from).unwrap();
                    assert_eq!(found.to_bytes(), item.to_bytes());
                }
            }
        }
    }

    /// One reference too many, or too few, is reported.
    #[test]
    fn references_are_those_of_the_items() {
        let (name, other) = ([1; HASH_BYTES], ChunkHash([2; HASH_BYTES]));
        let mut leaf = Leaf::default();
        leaf.push(&Entry { front: b"a", reference: Some(&name) });
        for references in [&[][..], &[other, other]] {
            let chunk = Chunk::new(ChunkKind::SequenceNode, references, &leaf.payload());
            assert!(SequenceNode::open(chunk).is_err());
        }
    }
}
