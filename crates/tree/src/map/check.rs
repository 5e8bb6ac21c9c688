//! Walks a whole map and checks every invariant of `map` (see there), and what lies out of line.

use bytes::Bytes;
use frond_store::{ChunkHash, ChunkStore};

use crate::boundary::{self, BoundaryRule, Seeded};
use crate::error::TreeError;
use crate::format::TreeFormat;
use crate::map::node::MapNode;
use crate::map::{Summary, Tree};
use crate::sequence::Sequence;
use crate::value::{ContentRef, OWN_LENGTH_FLAG};

impl Tree {
    /// Walks the whole tree and checks every invariant: order, boundaries, counts, flags, sizes,
    /// and that values out of line are there.
    ///
    /// # Errors
    /// [`TreeError::Damaged`] for the first node that breaks one; as the store.
    pub fn check(&self, store: &dyn ChunkStore) -> Result<(), TreeError> {
        let root = MapNode::load(store, self.root)?;
        if !root.is_leaf() && root.entry_count() < 2 {
            return Err(TreeError::damaged(self.root, "a root with a single child"));
        }
        Check { store, format: self.format, last_key: None }.node(&root, true)?;
        Ok(())
    }
}

struct Check<'a> {
    store: &'a dyn ChunkStore,
    format: TreeFormat,
    /// The last key seen in any leaf.
    last_key: Option<Bytes>,
}

impl Check<'_> {
    /// Checks a node and all below it; recursion goes down one level a step.
    fn node(&mut self, node: &MapNode, is_last: bool) -> Result<(), TreeError> {
        let damaged = |what: String| Err(TreeError::damaged(node.hash(), what));
        if node.chunk().encoded().len() as u64 > self.format.chunk_bytes_max() {
            return damaged(format!("a node of {} bytes", node.chunk().encoded().len()));
        }
        self.boundaries(node, is_last)?;
        let mut summary = Summary::default();
        for position in 0..node.entry_count() {
            if node.is_leaf() {
                summary.add(&self.entry(node, position)?);
                continue;
            }
            let child = node.load_child(self.store, position)?;
            let known = node.child(position);
            if child.summary() != known.summary || child.entry_count() == 0 {
                return damaged(format!("sums of child {position} are wrong"));
            }
            self.node(&child, is_last && position + 1 == node.entry_count())?;
            if self.last_key.as_ref() != Some(&known.key) {
                return damaged(format!("key of child {position} is not its last"));
            }
            summary.add(&known.summary);
        }
        if summary != node.summary() {
            return damaged(format!("sums are {:?}, expected {summary:?}", node.summary()));
        }
        Ok(())
    }

    /// Checks that the node ends where the rule says, and nowhere before.
    fn boundaries(&self, node: &MapNode, is_last: bool) -> Result<(), TreeError> {
        let seed = boundary::seed(&self.format, Seeded::Map, node.level());
        let rule = BoundaryRule::new(&self.format, node.level());
        let mut bytes = 0;
        for position in 0..node.entry_count() {
            let before = bytes;
            bytes += node.entry_bytes(position);
            let hash = boundary::hash(node.key(position), seed);
            let ends = rule.ends_node(position + 1, hash, before, bytes);
            let is_end = position + 1 == node.entry_count();
            if ends && !is_end || is_end && !ends && !is_last {
                let what = format!("entry {position} is on the wrong side of a boundary");
                return Err(TreeError::damaged(node.hash(), what));
            }
        }
        Ok(())
    }

    fn entry(&mut self, node: &MapNode, position: usize) -> Result<Summary, TreeError> {
        let entry = node.entry(position);
        if self.last_key.as_ref().is_some_and(|before| before[..] >= *entry.key) {
            return Err(TreeError::damaged(node.hash(), format!("key {position} is out of order")));
        }
        self.last_key = Some(node.key_bytes(position));
        let value_bytes = match entry.content {
            ContentRef::Inline(bytes) => {
                if bytes.len() > self.format.inline_bytes_max() as usize {
                    let what = format!("value {position} should lie out of line");
                    return Err(TreeError::damaged(node.hash(), what));
                }
                bytes.len() as u64
            }
            // The length is checked by the value's owner; the chunk must be there.
            ContentRef::Chunk { hash, bytes } if entry.flags & OWN_LENGTH_FLAG != 0 => {
                self.store.get(hash)?;
                bytes
            }
            ContentRef::Chunk { hash, bytes } => {
                self.outline_bytes(hash, self.store.get(hash)?.payload().len() as u64, bytes)?
            }
            ContentRef::Sequence { root, bytes } => {
                let sequence = Sequence { root, format: self.format.of_values() };
                sequence.check(self.store)?;
                self.outline_bytes(root, sequence.bytes(self.store)?, bytes)?
            }
        };
        Ok(Summary { count: 1, key_bytes: entry.key.len() as u64, value_bytes, flags: entry.flags })
    }

    fn outline_bytes(&self, hash: ChunkHash, found: u64, bytes: u64) -> Result<u64, TreeError> {
        if found != bytes {
            let what = format!("a value of {found} bytes, expected {bytes}");
            return Err(TreeError::damaged(hash, what));
        }
        Ok(bytes)
    }
}
