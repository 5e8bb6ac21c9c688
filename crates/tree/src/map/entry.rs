//! Entries as point reads get them from a store: in a leaf, or alone.
//!
//! Where a tree is larger than the store's cache, its busy entries lie apart: a leaf holds one of
//! them and seven that no reader wants. So if a leaf came from a disk and the store doesn't keep
//! it, the store is given the entry that was read, under the leaf's name
//! ([`ChunkStore::keep_entry`]). The entry never changes either, so it is right as long as some
//! tree has that leaf, and no reader asks for it afterwards.
//!
//! *Surprise*: an entry that stands alone says nothing about other keys: for them the store is
//! asked for all of the leaf. That a key is absent isn't kept; a reader that looks for it again
//! reads the leaf.

use std::ops::Range;

use bytes::Bytes;
use frond_store::{Admission, ChunkHash, ChunkStore, EntryLookup, EntryName};

use crate::error::TreeError;
use crate::map::node::{EntryRef, MapNode, read_entry};
use crate::map::search::SearchNode;
use crate::value::{ContentRef, Value};

/// An entry that was found, where it lies.
pub(super) enum FoundEntry<'a> {
    /// In a leaf at this range; checked.
    InLeaf(&'a MapNode, Range<usize>),
    SingleEntry(&'a SingleEntry),
}

impl FoundEntry<'_> {
    pub(super) fn entry(&self) -> EntryRef<'_> {
        match self {
            FoundEntry::InLeaf(leaf, range) => leaf.entry_in(range.clone()),
            FoundEntry::SingleEntry(alone) => alone.entry(),
        }
    }

    /// The value, shared with what it lies in.
    pub(super) fn value(self) -> Value {
        match self {
            FoundEntry::InLeaf(leaf, range) => leaf.value_in(range),
            FoundEntry::SingleEntry(alone) => alone.value(),
        }
    }
}

/// An entry without its leaf: its bytes there, and behind them the name of what it refers to, if it
/// does.
pub(super) struct SingleEntry(Bytes);

impl SingleEntry {
    /// Has the store keep the entry of `leaf` at `range`, which is checked.
    fn keep(store: &dyn ChunkStore, part: EntryName, leaf: &MapNode, range: Range<usize>) {
        let reference = match leaf.entry_in(range.clone()).content {
            ContentRef::Inline(_) => None,
            ContentRef::Chunk { hash, .. } | ContentRef::Sequence { root: hash, .. } => Some(hash),
        };
        let name = reference.as_ref().map_or(&[][..], |hash| &hash.0);
        if let Some(cache) = store.read_cache() {
            cache.keep_entry(leaf.hash(), part, &[leaf.bytes_in(range), name]);
        }
    }

    fn entry(&self) -> EntryRef<'_> {
        let name = || self.0.last_chunk().expect("the name of what it refers to is the end");
        read_entry(&self.0, |_| ChunkHash(*name()))
    }

    fn value(&self) -> Value {
        self.entry().value(|inline| self.0.slice(self.0.len() - inline..))
    }
}

/// The result of looking up one key: its leaf, or the entry alone.
pub(super) enum LeafLookup {
    Leaf {
        leaf: SearchNode,
        /// The place of the entry in `leaf`, if there is one; checked.
        found: Option<Range<usize>>,
        /// Whether the store has `leaf` in memory for the next reader.
        is_kept: bool,
    },
    /// The entry.
    SingleEntry(SingleEntry),
}

impl LeafLookup {
    /// Reads what the child of `parent` at `position`, a leaf, has of `key`.
    pub(super) fn load(
        store: &dyn ChunkStore,
        parent: &MapNode,
        position: usize,
        key: &[u8],
    ) -> Result<LeafLookup, TreeError> {
        let (hash, part) = (parent.child_hash(position), EntryName::of(key));
        let (chunk, kept) = match store.look_up_entry(hash, part)? {
            EntryLookup::Chunk(chunk, kept) => (chunk, kept),
            EntryLookup::Entry(bytes) => {
                let alone = SingleEntry(bytes);
                if alone.entry().key == key {
                    return Ok(LeafLookup::SingleEntry(alone));
                }
                // It is that of another key, whose name happens to be the same.
                (store.get(hash)?, Admission::InMemory)
            }
        };
        let leaf = SearchNode::open_under(parent, chunk)?;
        let found = leaf.node().find_checked(key)?;
        if let Some(range) = found.clone().filter(|_| kept == Admission::EntryWanted) {
            SingleEntry::keep(store, part, leaf.node(), range);
        }
        Ok(LeafLookup::Leaf { leaf, found, is_kept: kept == Admission::InMemory })
    }

    /// Applies `look` to the entry that was found.
    pub(super) fn look<T>(self, look: impl FnOnce(FoundEntry<'_>) -> T) -> Option<T> {
        match self {
            LeafLookup::Leaf { leaf, found, .. } => {
                found.map(|range| look(FoundEntry::InLeaf(leaf.node(), range)))
            }
            LeafLookup::SingleEntry(alone) => Some(look(FoundEntry::SingleEntry(&alone))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use frond_store::ReadOptions;
    use frond_store::local::{LocalOptions, LocalStore};
    use frond_testkit::SimDisk;

    use super::*;
    use crate::format::TreeFormat;
    use crate::map::{Entry, Tree};
    use crate::value::Content;

    const FORMAT: TreeFormat =
        TreeFormat { chunk_bytes_target: 2048, inline_bytes_max: 100, salt: 1 };
    const COUNT: u32 = 120;

    fn key(number: u32) -> Bytes {
        Bytes::from(format!("key {number:03}"))
    }

    /// Two of three values lie out of line.
    fn value(number: u32) -> Value {
        let count = if number.is_multiple_of(3) { 20 } else { 200 };
        Value::inline(number.to_le_bytes().repeat(count))
    }

    /// A store whose small cache keeps single entries, and the root of a tree of two levels in it.
    fn build() -> (Arc<LocalStore>, MapNode) {
        let disk = SimDisk::new(1);
        let options =
            LocalOptions { cache_bytes: 32 << 10, slow_read_micros: 0, ..Default::default() };
        let open = || LocalStore::open(&disk.machine(), options).unwrap();
        let mut entries =
            (0..COUNT).map(|number| Ok(Entry { key: key(number), value: value(number) }));
        let store = open();
        let tree = Tree::build(&*store, FORMAT, &mut entries).unwrap();
        let values = (0..COUNT).map(|number| tree.get(&*store, &key(number)).unwrap().unwrap());
        let values: Vec<Value> = values.collect();
        drop(store);
        let store = open();
        let root = MapNode::load(&*store, tree.root).unwrap();
        assert_eq!(root.level(), 1);
        // Values out of line fill the cache; all of them are read from the disk.
        for value in values {
            if let Content::Chunk { hash, .. } = value.content {
                store.look_up_entry(hash, EntryName::of(b"")).unwrap();
            }
        }
        (store, root)
    }

    /// The value, and whether its entry stood alone.
    fn read(store: &LocalStore, root: &MapNode, key: &[u8]) -> (Option<Value>, bool) {
        let looked_up = LeafLookup::load(store, root, root.lower_bound(key), key).unwrap();
        let is_alone = matches!(looked_up, LeafLookup::SingleEntry(_));
        (looked_up.look(|found| found.value()), is_alone)
    }

    #[test]
    fn an_entry_alone_is_that_of_the_leaf() {
        let (store, root) = build();
        let mut alone_counts = [0; 2];
        for number in 0..COUNT {
            let leaf = store
                .read(root.child_hash(root.lower_bound(&key(number))), ReadOptions::TO_REPLACE);
            let leaf = MapNode::open(leaf.unwrap()).unwrap();
            let in_leaf = leaf.get(&key(number)).unwrap();
            let first = read(&store, &root, &key(number)).0;
            let (again, is_alone) = read(&store, &root, &key(number));
            assert!(in_leaf.is_some() && first == in_leaf && again == in_leaf);
            let bytes = again.unwrap().read(&*store).unwrap();
            assert_eq!(Value::inline(bytes), value(number));
            alone_counts[usize::from(number.is_multiple_of(3))] += u32::from(is_alone);
        }
        assert!(alone_counts.iter().all(|count| COUNT / 8 < *count), "{alone_counts:?}");
    }

    #[test]
    fn the_entry_of_another_key_with_the_same_name_is_not_taken_for_it() {
        let (store, root) = build();
        let mut alone_count = 0;
        for position in 0..root.entry_count() {
            let leaf = store.read(root.child_hash(position), ReadOptions::TO_REPLACE).unwrap();
            let leaf = MapNode::open(leaf).unwrap();
            let last = leaf.key(leaf.entry_count() - 1).to_vec();
            let absent = [&last[..last.len() - 1], b" "].concat();
            for other in [&last, &absent] {
                let range = leaf.find_checked(leaf.key(0)).unwrap().unwrap();
                SingleEntry::keep(&*store, EntryName::of(other), &leaf, range);
            }
            let expected = leaf.get(&last).unwrap();
            let (found, is_alone) = read(&store, &root, &last);
            assert_eq!(found, expected);
            alone_count += u32::from(is_alone);
            if root.lower_bound(&absent) == position {
                assert_eq!(read(&store, &root, &absent).0, leaf.get(&absent).unwrap());
            }
        }
        assert!(alone_count < root.entry_count() as u32 / 2, "most are kept for another");
    }
}
