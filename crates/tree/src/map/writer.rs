//! Writes the nodes of one level of a map.

use bytes::Bytes;
use frond_store::{Chunk, ChunkHash, ChunkKind};

use crate::boundary::{self, BoundaryRule, Seeded};
use crate::error::TreeError;
use crate::format::TreeFormat;
use crate::levels::NodeWriter;
use crate::map::Summary;
use crate::map::node::{self, ContentRef, EntryRef, MapChild, MapNode};

/// A node that grows entry by entry.
pub(crate) struct MapWriter {
    rule: BoundaryRule,
    seed: u64,
    level: u8,
    /// Where each entry starts in `body`.
    starts: Vec<u32>,
    body: Vec<u8>,
    references: Vec<ChunkHash>,
    summary: Summary,
    /// What the boundary rule takes for the node's size: its entries, without the header.
    bytes: u64,
    /// Where the last key lies in `body`.
    last_key: std::ops::Range<usize>,
    /// The last key of the node before.
    key_before: Option<Bytes>,
}

impl MapWriter {
    /// Adds an entry to a leaf and tells whether it ends it.
    pub(crate) fn push_entry(&mut self, entry: &EntryRef<'_>) -> bool {
        self.begin(entry.key);
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
        self.end(entry.key, node::LEAF_KEY)
    }

    /// Checks the order and notes where an entry starts.
    fn begin(&mut self, key: &[u8]) {
        let before = match &self.key_before {
            Some(key) if self.starts.is_empty() => Some(&key[..]),
            _ if self.starts.is_empty() => None,
            _ => Some(&self.body[self.last_key.clone()]),
        };
        // Cheap beside hashing the key, and a tree out of order would be lost data.
        assert!(before.is_none_or(|before| before < key), "keys ascend strictly");
        self.starts.push(u32::try_from(self.body.len()).expect("a node is far smaller than 4 GB"));
    }

    /// Takes the entry's size and asks the rule.
    fn end(&mut self, key: &[u8], key_offset: usize) -> bool {
        let start = *self.starts.last().expect("begin pushed one") as usize;
        self.last_key = start + key_offset..start + key_offset + key.len();
        let before = self.bytes;
        self.bytes = (self.body.len()
            + self.starts.len() * node::OFFSET_TABLE_ENTRY_BYTES
            + self.references.len() * frond_store::chunk::HASH_BYTES) as u64;
        let hash = boundary::hash(key, self.seed);
        self.rule.ends_node(self.level, self.starts.len(), hash, before, self.bytes)
    }
}

impl NodeWriter for MapWriter {
    type Child = MapChild;

    fn new(format: &TreeFormat, level: u8) -> MapWriter {
        MapWriter {
            rule: BoundaryRule::new(format),
            seed: boundary::seed(format, Seeded::Map, level),
            level,
            starts: Vec::new(),
            body: Vec::with_capacity(format.target() as usize * 2),
            references: Vec::new(),
            summary: Summary::default(),
            bytes: 0,
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

    fn push_child(&mut self, child: &MapChild, _old: bool) -> bool {
        self.begin(&child.key);
        node::write_child(&mut self.body, child);
        self.references.push(child.hash);
        self.summary.add(&child.summary);
        self.end(&child.key, node::CHILD_KEY)
    }

    fn finish(&mut self) -> (Chunk, MapChild) {
        let payload = node::encode(self.level, &self.summary, &self.starts, &self.body);
        let chunk = Chunk::new(ChunkKind::MapNode, &self.references, &payload);
        let shift = payload.len() - self.body.len();
        let key = self.last_key.start + shift..self.last_key.end + shift;
        let key = chunk.payload_bytes().slice(key);
        let child = MapChild { key: key.clone(), hash: chunk.hash(), summary: self.summary };
        self.key_before = Some(key);
        self.starts.clear();
        self.body.clear();
        self.references.clear();
        self.summary = Summary::default();
        self.bytes = 0;
        self.last_key = 0..0;
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
