//! A sequence's node as it is stored, and how it is read in place.
//!
//! The authority is docs/format/sequence-node.md. All numbers are little-endian. As with a map's
//! node, [`SequenceNode::open`] checks the layout once, and afterwards accessors can't fail.

use std::ops::Range;

use bytes::Bytes;
use frond_store::chunk::HASH_BYTES;
use frond_store::{Chunk, ChunkHash, ChunkKind, ChunkStore};

use crate::error::TreeError;

const OFFSET_LEVEL: usize = 0;
const OFFSET_RESERVED: usize = OFFSET_LEVEL + size_of::<u8>();
const OFFSET_ENTRY_COUNT: usize = OFFSET_RESERVED + RESERVED_BYTES;
const OFFSET_COUNT: usize = OFFSET_ENTRY_COUNT + size_of::<u32>();
const OFFSET_BYTES: usize = OFFSET_COUNT + size_of::<u64>();
const HEADER_BYTES: usize = OFFSET_BYTES + size_of::<u64>();
const RESERVED_BYTES: usize = 3;
const _: () = assert!(HEADER_BYTES == 24); // Stored: change only with a new version.

/// In a leaf a table of ends (counted from the end of the table) follows, then the items.
pub(super) const ITEM_END_BYTES: usize = size_of::<u32>();
// In an interior node the sums of each child follow.
const CHILD_COUNT: usize = 0;
const CHILD_BYTES: usize = CHILD_COUNT + size_of::<u64>();
pub(super) const CHILD_ENTRY_BYTES: usize = CHILD_BYTES + size_of::<u64>();
const _: () = assert!(CHILD_ENTRY_BYTES == 16);

/// An opened node. Cloning shares the bytes.
#[derive(Clone, Debug)]
pub(super) struct SequenceNode {
    chunk: Chunk,
    payload: Bytes,
    entry_count: usize,
}

/// How many items, and their bytes.
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

    /// Takes `come` in the place of `gone`.
    fn exchange(&mut self, gone: &Sums, come: &Sums) {
        self.count = self.count.saturating_sub(gone.count).saturating_add(come.count);
        self.bytes = self.bytes.saturating_sub(gone.bytes).saturating_add(come.bytes);
    }
}

/// What a parent knows of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SequenceChild {
    pub(super) hash: ChunkHash,
    pub(super) sums: Sums,
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
        let payload = chunk.payload_bytes();
        let entry_count = check_layout(&chunk, &payload)
            .map_err(|what| TreeError::damaged(chunk.hash(), what))?;
        Ok(SequenceNode { chunk, payload, entry_count })
    }

    pub(super) fn hash(&self) -> ChunkHash {
        self.chunk.hash()
    }

    pub(super) fn chunk(&self) -> &Chunk {
        &self.chunk
    }

    pub(super) fn level(&self) -> u8 {
        self.payload[OFFSET_LEVEL]
    }

    pub(super) fn is_leaf(&self) -> bool {
        self.level() == 0
    }

    pub(super) fn entry_count(&self) -> usize {
        self.entry_count
    }

    /// The sums of the whole subtree.
    pub(super) fn sums(&self) -> Sums {
        let count = u64_at(&self.payload, OFFSET_COUNT);
        Sums { count, bytes: u64_at(&self.payload, OFFSET_BYTES) }
    }

    fn item_range(&self, position: usize) -> Range<usize> {
        item_range(&self.payload, self.entry_count, position)
    }

    /// A leaf's item.
    pub(super) fn item(&self, position: usize) -> &[u8] {
        &self.payload[self.item_range(position)]
    }

    /// A leaf's item, shared with the chunk.
    pub(super) fn item_bytes(&self, position: usize) -> Bytes {
        self.payload.slice(self.item_range(position))
    }

    /// What an interior node knows of its child at `position`.
    pub(super) fn child(&self, position: usize) -> SequenceChild {
        SequenceChild { hash: self.chunk.reference(position), sums: self.child_sums(position) }
    }

    fn child_sums(&self, position: usize) -> Sums {
        debug_assert!(!self.is_leaf());
        let entry = HEADER_BYTES + position * CHILD_ENTRY_BYTES;
        let count = u64_at(&self.payload, entry + CHILD_COUNT);
        Sums { count, bytes: u64_at(&self.payload, entry + CHILD_BYTES) }
    }

    /// The entry that holds the item at `position`, counted from the node's first, and how many items lie before it.
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

    /// How long `entry_content` is.
    pub(super) fn entry_content_bytes(&self, position: usize) -> u64 {
        match self.is_leaf() {
            true => self.item_range(position).len() as u64,
            false => HASH_BYTES as u64,
        }
    }

    /// What the boundary rule takes the entry at `position` for: an item, or a child's name.
    pub(super) fn entry_content(&self, position: usize) -> &[u8] {
        match self.is_leaf() {
            true => self.item(position),
            false => &self.chunk.references_bytes()[position * HASH_BYTES..][..HASH_BYTES],
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
        let chunk = self.chunk.changed(|references, payload| {
            references[position * HASH_BYTES..][..HASH_BYTES].copy_from_slice(&child.hash.0);
            put_sums(payload, HEADER_BYTES + position * CHILD_ENTRY_BYTES, &child.sums);
            put_sums(payload, OFFSET_COUNT, &sums);
        });
        let child = SequenceChild { hash: chunk.hash(), sums };
        (chunk, child)
    }

    /// This leaf with `item` in the place of the one at `position`, and what it refers to in the place of what that
    /// did, which is the leaf's reference of that position.
    pub(super) fn with_item(
        &self,
        position: usize,
        item: &[u8],
        reference: Option<(usize, ChunkHash)>,
    ) -> (Chunk, SequenceChild) {
        let range = self.item_range(position);
        if range.len() != item.len() {
            return self.with_resized_item(position, item, reference);
        }
        let chunk = self.chunk.changed(|references, payload| {
            payload[range].copy_from_slice(item);
            if let Some((position, name)) = reference {
                references[position * HASH_BYTES..][..HASH_BYTES].copy_from_slice(&name.0);
            }
        });
        let child = SequenceChild { hash: chunk.hash(), sums: self.sums() };
        (chunk, child)
    }

    fn with_resized_item(
        &self,
        position: usize,
        item: &[u8],
        reference: Option<(usize, ChunkHash)>,
    ) -> (Chunk, SequenceChild) {
        let table_end = HEADER_BYTES + self.entry_count * ITEM_END_BYTES;
        let mut items = Vec::with_capacity(self.payload.len() - table_end + item.len());
        let mut ends = Vec::with_capacity(self.entry_count);
        for at in 0..self.entry_count {
            items.extend_from_slice(if at == position { item } else { self.item(at) });
            ends.push(u32::try_from(items.len()).expect("a node is far smaller than 4 GB"));
        }
        let mut references: Vec<ChunkHash> = self.chunk.references().collect();
        if let Some((position, name)) = reference {
            references[position] = name;
        }
        let payload = encode_leaf(&ends, &items);
        let chunk = Chunk::new(ChunkKind::SequenceNode, &references, &payload);
        let sums = Sums { count: self.entry_count as u64, bytes: items.len() as u64 };
        let child = SequenceChild { hash: chunk.hash(), sums };
        (chunk, child)
    }
}

/// Checks that every offset lies inside the chunk; returns the entry count.
fn check_layout(chunk: &Chunk, payload: &[u8]) -> Result<usize, String> {
    if chunk.kind() != ChunkKind::SequenceNode {
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
    let entry_bytes = if is_leaf { ITEM_END_BYTES } else { CHILD_ENTRY_BYTES };
    let table_end = entry_count
        .checked_mul(entry_bytes)
        .and_then(|bytes| bytes.checked_add(HEADER_BYTES))
        .filter(|end| *end <= payload.len())
        .ok_or_else(|| format!("{entry_count} entries exceed the node"))?;
    // A leaf has a reference for each item that refers to a chunk.
    let found = chunk.reference_count();
    if found > entry_count || !is_leaf && (found != entry_count || entry_count == 0) {
        return Err(format!("{found} references of {entry_count} entries"));
    }
    let mut end = table_end;
    for position in 0..if is_leaf { entry_count } else { 0 } {
        let range = item_range(payload, entry_count, position);
        if range.end < end || range.end > payload.len() {
            return Err(format!("item {position} lies outside of the node"));
        }
        end = range.end;
    }
    if end != payload.len() {
        return Err("bytes after the last entry".to_owned());
    }
    let sums = (u64_at(payload, OFFSET_COUNT), u64_at(payload, OFFSET_BYTES));
    if is_leaf && sums != (entry_count as u64, (payload.len() - table_end) as u64) {
        return Err("a leaf's sums are wrong".to_owned());
    }
    Ok(entry_count)
}

fn item_range(payload: &[u8], entry_count: usize, position: usize) -> Range<usize> {
    let table_end = HEADER_BYTES + entry_count * ITEM_END_BYTES;
    let end =
        |position| table_end + u32_at(payload, HEADER_BYTES + position * ITEM_END_BYTES) as usize;
    let start = if position == 0 { table_end } else { end(position - 1) };
    start..end(position)
}

/// Lays a leaf out; `ends` count from the beginning of `items`.
pub(super) fn encode_leaf(ends: &[u32], items: &[u8]) -> Vec<u8> {
    let sums = Sums { count: ends.len() as u64, bytes: items.len() as u64 };
    let mut payload = Vec::with_capacity(HEADER_BYTES + ends.len() * ITEM_END_BYTES + items.len());
    encode_header(&mut payload, 0, ends.len(), &sums);
    ends.iter().for_each(|end| payload.extend_from_slice(&end.to_le_bytes()));
    payload.extend_from_slice(items);
    payload
}

/// Lays an interior node out.
pub(super) fn encode_interior(level: u8, sums: &Sums, children: &[Sums]) -> Vec<u8> {
    let mut payload = Vec::with_capacity(HEADER_BYTES + children.len() * CHILD_ENTRY_BYTES);
    encode_header(&mut payload, level, children.len(), sums);
    for child in children {
        payload.extend_from_slice(&child.count.to_le_bytes());
        payload.extend_from_slice(&child.bytes.to_le_bytes());
    }
    payload
}

fn encode_header(payload: &mut Vec<u8>, level: u8, entry_count: usize, sums: &Sums) {
    let entry_count = u32::try_from(entry_count).expect("a node is far smaller than 4 GB");
    payload.extend_from_slice(&[level, 0, 0, 0]);
    payload.extend_from_slice(&entry_count.to_le_bytes());
    payload.extend_from_slice(&sums.count.to_le_bytes());
    payload.extend_from_slice(&sums.bytes.to_le_bytes());
}

fn put_sums(payload: &mut [u8], offset: usize, sums: &Sums) {
    let parts = payload[offset..].split_at_mut(size_of::<u64>());
    parts.0.copy_from_slice(&sums.count.to_le_bytes());
    parts.1[..size_of::<u64>()].copy_from_slice(&sums.bytes.to_le_bytes());
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
