//! Writes the nodes of one level of a map.

use std::ops::Range;

use bytes::Bytes;
use frond_store::{Chunk, ChunkHash, ChunkKind};

use crate::boundary::{self, BoundaryRule, Seeded};
use crate::error::TreeError;
use crate::format::TreeFormat;
use crate::levels::NodeWriter;
use crate::map::Summary;
use crate::map::node::{self, EntryRef, MapChild, MapNode};
use crate::value::ContentRef;

/// A node that grows entry by entry.
pub(crate) struct MapWriter {
    rule: BoundaryRule,
    seed: u64,
    level: u8,
    /// The offset of each entry in `body`.
    starts: Vec<u32>,
    body: Vec<u8>,
    references: Vec<ChunkHash>,
    summary: Summary,
    /// The node's size for the boundary rule: its entries, without the header.
    bytes: u64,
    /// The bytes before the entries, needed while the node is finished; kept to reuse its memory.
    head: Vec<u8>,
    /// The place of the last key in `body`.
    last_key: Range<usize>,
    /// The last key of the node before.
    key_before: Option<Bytes>,
}

impl MapWriter {
    /// Adds an entry to a leaf and returns whether it ends it.
    pub(crate) fn push_entry(&mut self, entry: &EntryRef<'_>) -> Result<bool, TreeError> {
        self.begin(entry.key)?;
        node::write_entry(&mut self.body, entry, self.references.len());
        let value_bytes = match entry.content {
            ContentRef::Inline(bytes) => bytes.len() as u64,
            ContentRef::Chunk { hash, bytes } | ContentRef::Sequence { root: hash, bytes } => {
                self.references.push(hash);
                bytes
            }
        };
        let key_bytes = entry.key.len() as u64;
        self.summary.add(&Summary { count: 1, key_bytes, value_bytes, flags: entry.flags });
        Ok(self.end(entry.key, node::LEAF_KEY))
    }

    /// Adds entries of an old leaf, which is movable, until one ends this node: as they lie, in one
    /// piece. Returns how many were added and whether the last of them ended the node.
    ///
    /// Their order among themselves was checked when the old leaf was written. Where this node
    /// began with the old one, its entries up to here are the old one's, so that the rule's answers
    /// are known: the old leaf went on.
    pub(crate) fn push_run(
        &mut self,
        leaf: &MapNode,
        positions: Range<usize>,
    ) -> Result<(usize, bool), TreeError> {
        if positions.is_empty() {
            return Ok((0, false));
        }
        let entries = leaf.raw_entries(&positions);
        let known = if self.starts.is_empty() && positions.start == 0 {
            (leaf.entry_count() - 1).min(positions.len())
        } else {
            0
        };
        self.check_order(entries.entry(0).key)?;
        let base = self.body.len();
        let (mut count, mut ended, mut end) = (0, false, 0);
        let (mut key_bytes, mut value_bytes, mut last_key) = (0, 0, 0..0);
        while count < positions.len() && !ended {
            let entry = entries.entry(count);
            self.starts.push(start_of(base + entry.start));
            self.summary.flags |= entry.flags;
            key_bytes += entry.key.len() as u64;
            value_bytes += entry.value_bytes as u64;
            end = entry.end;
            let key_start = base + entry.start + node::LEAF_KEY;
            last_key = key_start..key_start + entry.key.len();
            ended = self.grow_to(base + end, entry.key, count < known);
            count += 1;
        }
        self.body.extend_from_slice(entries.bytes(end));
        let flags = self.summary.flags;
        self.summary.add(&Summary { count: count as u64, key_bytes, value_bytes, flags });
        self.last_key = last_key;
        Ok((count, ended))
    }

    /// Checks the order and notes where an entry starts.
    fn begin(&mut self, key: &[u8]) -> Result<(), TreeError> {
        self.check_order(key)?;
        self.starts.push(start_of(self.body.len()));
        Ok(())
    }

    fn check_order(&self, key: &[u8]) -> Result<(), TreeError> {
        let before = match &self.key_before {
            Some(key) if self.starts.is_empty() => Some(&key[..]),
            _ if self.starts.is_empty() => None,
            _ => Some(&self.body[self.last_key.clone()]),
        };
        // Cheap beside hashing the key, and a tree out of order would be lost data.
        before.is_none_or(|before| before < key).then_some(()).ok_or(TreeError::OutOfOrder)
    }

    /// Takes the entry's size and asks the rule.
    fn end(&mut self, key: &[u8], key_offset: usize) -> bool {
        let start = *self.starts.last().expect("begin pushed one") as usize;
        self.last_key = start + key_offset..start + key_offset + key.len();
        self.grow_to(self.body.len(), key, false)
    }

    /// Takes the size that the node has with the entry of `key`, whose bytes end at `body_bytes`,
    /// and asks the rule, unless the node is known to go on.
    fn grow_to(&mut self, body_bytes: usize, key: &[u8], keep_going: bool) -> bool {
        let before = self.bytes;
        self.bytes = (body_bytes
            + self.starts.len() * node::OFFSET_TABLE_ENTRY_BYTES
            + self.references.len() * frond_store::chunk::HASH_BYTES) as u64;
        if keep_going || !self.rule.may_end(self.bytes) {
            return false;
        }
        let hash = boundary::hash(key, self.seed);
        self.rule.ends_node(self.starts.len(), hash, before, self.bytes)
    }
}

fn start_of(offset: usize) -> u32 {
    u32::try_from(offset).expect("a node is far smaller than 4 GB")
}

impl NodeWriter for MapWriter {
    type Child = MapChild;

    fn new(format: &TreeFormat, level: u8) -> MapWriter {
        MapWriter {
            rule: BoundaryRule::new(format, level),
            seed: boundary::seed(format, Seeded::Map, level),
            level,
            starts: Vec::new(),
            body: Vec::with_capacity(format.target() as usize * 2),
            references: Vec::new(),
            summary: Summary::default(),
            bytes: 0,
            head: Vec::new(),
            last_key: 0..0,
            key_before: None,
        }
    }

    fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    fn is_in_step(&self) -> bool {
        self.is_empty()
    }

    fn push_child(&mut self, child: &MapChild, _old: bool) -> Result<bool, TreeError> {
        self.begin(&child.key)?;
        node::write_child(&mut self.body, child);
        self.references.push(child.hash);
        self.summary.add(&child.summary);
        Ok(self.end(&child.key, node::CHILD_KEY))
    }

    fn finish(&mut self) -> (Chunk, MapChild) {
        let EncodedNode { bytes, key, summary } = self.encode();
        let chunk = Chunk::from_encoded(bytes, ("a new node", 0)).expect("it was just encoded");
        let child = MapChild { key, hash: chunk.hash(), summary };
        (chunk, child)
    }

    fn child_hash(child: &MapChild) -> ChunkHash {
        child.hash
    }

    fn only_child(chunk: Chunk) -> Result<Option<ChunkHash>, TreeError> {
        let node = MapNode::open(chunk)?;
        let only = !node.is_leaf() && node.entry_count() == 1;
        Ok(only.then(|| node.child_hash(0)))
    }
}

/// A node that has no name yet.
pub(crate) struct EncodedNode {
    /// The chunk, encoded.
    pub(crate) bytes: Bytes,
    /// Its last key, which keeps no more in memory than itself.
    pub(crate) key: Bytes,
    pub(crate) summary: Summary,
}

impl MapWriter {
    /// Ends the node.
    pub(crate) fn encode(&mut self) -> EncodedNode {
        node::encode_head(self.level, &self.summary, &self.starts, &mut self.head);
        let parts = [&self.head[..], &self.body];
        let bytes = Chunk::encode(ChunkKind::MapNode, &self.references, &parts).into();
        let key = Bytes::copy_from_slice(&self.body[self.last_key.clone()]);
        self.key_before = Some(key.clone());
        let summary = self.summary;
        self.starts.clear();
        self.body.clear();
        self.references.clear();
        self.summary = Summary::default();
        self.bytes = 0;
        self.last_key = 0..0;
        EncodedNode { bytes, key, summary }
    }
}
