//! Leaves as point reads get them from a store: whole, or the one entry that is wanted.
//!
//! Where a tree is larger than the store's cache, its busy entries lie apart: a leaf holds one of them and seven that
//! nobody wants. So of a leaf that the store doesn't keep though it came from a disk, it is given the entry that was read:
//! as a leaf with one entry, under the name of the whole one ([`Chunk::part`]). It never changes either, so it is right as
//! long as some tree has that leaf, and nobody asks for it afterwards.
//!
//! *Surprise*: a part tells nothing of other keys than its own: for them the store is asked for all of the leaf. That a key
//! is absent isn't kept; who looks for it again brings the leaf into the cache.

use std::ops::Range;

use frond_store::{Chunk, ChunkStore, Glimpse, Kept, PartName};

use crate::error::TreeError;
use crate::map::Summary;
use crate::map::node::{
    ContentRef, HEADER_BYTES, MapNode, OFFSET_TABLE_ENTRY_BYTES, encode_head, write_entry,
};
use crate::map::search::SearchNode;

/// As much of a leaf as one read wants.
pub(super) struct Glimpsed {
    /// The leaf, or a part of it.
    pub(super) leaf: SearchNode,
    /// Where in `leaf` the entry lies, if there is one; checked.
    pub(super) found: Option<Range<usize>>,
    /// Whether the store has `leaf` in memory for the next who asks.
    pub(super) is_kept: bool,
}

impl Glimpsed {
    /// Reads what the child of `parent` at `position`, a leaf, has of `key`.
    pub(super) fn load(
        store: &dyn ChunkStore,
        parent: &MapNode,
        position: usize,
        key: &[u8],
    ) -> Result<Glimpsed, TreeError> {
        let (hash, part) = (parent.child_hash(position), PartName::of(key));
        let Glimpse { chunk, kept } = store.glimpse(hash, part)?;
        let leaf = SearchNode::open_under(parent, chunk)?;
        let Some(found) = leaf.node().told(key)? else {
            // The part of another key, whose name happens to be the same.
            let leaf = SearchNode::open_under(parent, store.get(hash)?)?;
            let found = leaf.node().find_checked(key)?;
            return Ok(Glimpsed { leaf, found, is_kept: true });
        };
        match found {
            Some(range) if kept == Kept::PartWanted => {
                let chunk = part_of(leaf.node(), range);
                store.keep_part(part, &chunk);
                let leaf = SearchNode::open_under(parent, chunk)?;
                let found = leaf.node().find_checked(key)?;
                Ok(Glimpsed { leaf, found, is_kept: true })
            }
            found => Ok(Glimpsed { leaf, found, is_kept: kept == Kept::InMemory }),
        }
    }

    /// What `look` makes of the entry.
    pub(super) fn look<T>(self, look: impl FnOnce(&MapNode, Range<usize>) -> T) -> Option<T> {
        self.found.map(|range| look(self.leaf.node(), range))
    }
}

impl MapNode {
    /// Where the entry of `key` lies in the payload of this leaf, if it is there; `None` if this is a part of a leaf that
    /// doesn't tell.
    pub(super) fn told(&self, key: &[u8]) -> Result<Option<Option<Range<usize>>>, TreeError> {
        let found = self.find_checked(key)?;
        Ok((found.is_some() || !self.chunk().is_part()).then_some(found))
    }
}

/// The leaf that has of `leaf` only the entry at `range`, which is checked.
fn part_of(leaf: &MapNode, range: Range<usize>) -> Chunk {
    let bytes = range.len();
    let entry = leaf.entry_in(range);
    let (reference, value_bytes) = match entry.content {
        ContentRef::Inline(bytes) => (None, bytes.len() as u64),
        ContentRef::Chunk { hash, bytes } => (Some(hash), bytes),
        ContentRef::Sequence { root, bytes } => (Some(root), bytes),
    };
    let key_bytes = entry.key.len() as u64;
    let summary = Summary { count: 1, key_bytes, value_bytes, flags: entry.flags };
    let mut head = Vec::with_capacity(HEADER_BYTES + OFFSET_TABLE_ENTRY_BYTES);
    let mut body = Vec::with_capacity(bytes);
    encode_head(0, &summary, &[0], &mut head);
    write_entry(&mut body, &entry, 0);
    leaf.chunk().part(reference.as_slice(), &[&head, &body])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use frond_store::local::{LocalOptions, LocalStore};
    use frond_testkit::SimDisk;

    use super::*;
    use crate::format::TreeFormat;
    use crate::map::{Entry, Tree};
    use crate::value::Value;

    const FORMAT: TreeFormat =
        TreeFormat { chunk_bytes_target: 1024, inline_bytes_max: 100, salt: 1 };

    fn key(number: u32) -> Bytes {
        Bytes::from(format!("key {number:03}"))
    }

    /// A store whose cache has nothing yet, and the root of a tree of two levels in it.
    fn build() -> (Arc<LocalStore>, MapNode) {
        let disk = SimDisk::new(1);
        let open = || LocalStore::open(&disk.machine(), LocalOptions::default()).unwrap();
        let value = |number: u32| Value::inline(vec![7; number as usize % 2 * 200]);
        let mut entries =
            (0..100).map(|number| Ok(Entry { key: key(number), value: value(number) }));
        let tree = Tree::build(&*open(), FORMAT, &mut entries).unwrap();
        let store = open();
        let root = MapNode::load(&*store, tree.root).unwrap();
        assert_eq!(root.level(), 1);
        (store, root)
    }

    fn read(store: &LocalStore, root: &MapNode, key: &[u8]) -> (Option<Value>, bool) {
        let glimpsed = Glimpsed::load(store, root, 0, key).unwrap();
        let is_part = glimpsed.leaf.node().chunk().is_part();
        (glimpsed.look(MapNode::value_in), is_part)
    }

    /// Whether the value lies in the entry or out of line.
    #[test]
    fn a_part_has_its_entry() {
        let (store, root) = build();
        let leaf = MapNode::load(&*store, root.child_hash(0)).unwrap();
        for position in 0..2 {
            let key = leaf.key(position);
            let range = leaf.find_checked(key).unwrap().unwrap();
            let part = MapNode::open(part_of(&leaf, range)).unwrap();
            assert_eq!(part.value(0), leaf.value(position));
            assert_eq!(part.told(key).unwrap(), Some(part.find_checked(key).unwrap()));
            assert_eq!(part.told(b"another").unwrap(), None);
            assert_eq!(leaf.told(b"another").unwrap(), Some(None));
        }
    }

    #[test]
    fn the_part_of_another_key_with_the_same_name_is_not_taken_for_it() {
        let (store, root) = build();
        let leaf = MapNode::open(store.get_to_replace(root.child_hash(0)).unwrap()).unwrap();
        let range = leaf.find_checked(&key(0)).unwrap().unwrap();
        let part = part_of(&leaf, range);
        for other in [&key(0), &key(1), &Bytes::from_static(b"key 000a")] {
            store.keep_part(PartName::of(other), &part);
        }
        assert_eq!(read(&store, &root, &key(0)), (Some(leaf.value(0)), true));
        assert_eq!(read(&store, &root, b"key 000a"), (None, false));
        assert_eq!(read(&store, &root, &key(1)), (Some(leaf.value(1)), false));
    }
}
