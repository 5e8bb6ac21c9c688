//! The upper nodes of one tree in memory, linked with each other: point reads of what is cached.
//!
//! Where all of a tree is in memory, a read spends its time on the way: at each level the child's
//! name is fetched from the node, looked up in the store's cache and its chunk counted up and down,
//! all in other places of memory, which other processors write at the same time. A cached levels
//! keeps the interior nodes that reads have passed, each with links to its children:
//!
//! 1. A read borrows its way down to the last interior node: it neither asks the store nor counts
//!    references.
//! 2. There it finds a link to the leaf, which is weak: leaves belong to the store's cache, which
//!    may drop them, or not keep them at all. It is asked for a leaf when it isn't in memory any
//!    more, and for the first use after it has looked for what to drop.
//! 3. A leaf that is read again and again is pinned in the cache and linked for good, as long as
//!    the store's [leaf room](ChunkStore::pin_budget) lasts. A read borrows it, too: then it writes
//!    nothing that others read. (Each way to a weak link's leaf counts up and down, and locks: six
//!    writes to lines that other processors want.)
//! 4. Where a node isn't linked yet, the store is asked for it, and it is linked if the store's
//!    [`CacheBudget`](frond_store::CacheBudget) has memory left for it. If not, the read goes on as
//!    [`Tree::get`] does. The node's bytes stay in the store's cache, too, and are counted there;
//!    the room is a quarter of the cache at most, which holds the interior nodes of some twelve
//!    times the cache in records of 1 KB.
//! 5. Of a leaf that the store doesn't keep it may have single entries. They aren't linked: the
//!    store is asked for them, and pins no leaves meanwhile.
//!
//! *Thread safety*: read by any number of threads. Links between interior nodes are made once, so
//! they are read without a lock; each leaf's link has one, held for a pointer's copy, and a reader
//! that finds it taken asks the store.
//!
//! *Surprise*: what was linked stays until its owner begins a new cached levels, even if it is read
//! no more: room is given to those that come first, which are those that are read most, or nearly.

use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock};

use frond_store::chunk::CHUNK_FIELDS_BYTES;
use frond_store::{CacheReservation, Chunk, ChunkStore, WeakChunk};

use crate::error::TreeError;
use crate::map::Tree;
use crate::map::entry::{FoundEntry, LeafLookup};
use crate::map::key_prefixes::{self, KeyPrefixes};
use crate::map::node::{EntryRef, MapNode};
use crate::map::search::SearchNode;
use crate::value::Value;

/// A tree whose upper nodes stay in memory once [`CachedLevels::get`] has read them. Cloning shares
/// them.
#[derive(Clone)]
pub struct CachedLevels {
    tree: Tree,
    root: Arc<BranchLink>,
}

/// Empty until the node is read and there is room for it; then it never changes.
#[derive(Default)]
struct BranchLink(OnceLock<Box<Branch>>);

/// An interior node.
struct Branch {
    prefixes: Box<[u8]>,
    children: Children,
    node: MapNode,
    taken: CacheReservation,
}

enum Children {
    Branches(Box<[BranchLink]>),
    Leaves(LeafLinks),
}

/// Apart from each other: what is read by all isn't in a line with what is written.
struct LeafLinks {
    pinned: Box<[OnceLock<PinnedLeaf>]>,
    weak: Box<[LeafLink]>,
    budget: Option<CacheReservation>,
}

struct PinnedLeaf(MapNode);

#[derive(Default)]
struct LeafLink(Mutex<WeakChunk>);

const LEAF_LINK_BYTES: usize = size_of::<OnceLock<PinnedLeaf>>() + size_of::<LeafLink>();

/// The place where a read goes on.
enum Next<'a> {
    Branch(&'a Branch),
    /// A root that is a leaf, or what there was no room for.
    Node(SearchNode),
}

impl PartialEq for CachedLevels {
    fn eq(&self, other: &CachedLevels) -> bool {
        self.tree == other.tree
    }
}

impl Eq for CachedLevels {}

impl std::fmt::Debug for CachedLevels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cached_levels of {:?}", self.tree)
    }
}

impl Deref for CachedLevels {
    type Target = Tree;

    fn deref(&self) -> &Tree {
        &self.tree
    }
}

impl CachedLevels {
    /// Keeps nothing of `tree` yet.
    pub fn new(tree: Tree) -> CachedLevels {
        CachedLevels { tree, root: Arc::default() }
    }

    /// Whether something is kept.
    pub fn is_grown(&self) -> bool {
        self.root.0.get().is_some()
    }

    /// As [`Tree::get`]; `store` is the same each time.
    ///
    /// # Errors
    /// As there.
    pub fn get(&self, store: &dyn ChunkStore, key: &[u8]) -> Result<Option<Value>, TreeError> {
        self.find(store, key, |found| found.value())
    }

    /// As `get`, without taking a share in the leaf: `look` is lent the entry where it lies.
    ///
    /// # Errors
    /// As there.
    pub fn look<T>(
        &self,
        store: &dyn ChunkStore,
        key: &[u8],
        look: impl FnOnce(EntryRef<'_>) -> T,
    ) -> Result<Option<T>, TreeError> {
        self.find(store, key, |found| look(found.entry()))
    }

    fn find<T>(
        &self,
        store: &dyn ChunkStore,
        key: &[u8],
        look: impl FnOnce(FoundEntry<'_>) -> T,
    ) -> Result<Option<T>, TreeError> {
        let load_root = || SearchNode::load(store, self.tree.root);
        let mut next = self.root.follow(store, load_root)?;
        loop {
            let branch = match next {
                Next::Branch(branch) => branch,
                Next::Node(node) => return node.look(store, key, look),
            };
            let position = branch.lower_bound(key);
            if position == branch.node.entry_count() {
                return Ok(None);
            }
            next = match &branch.children {
                Children::Branches(links) => {
                    links[position].follow(store, || branch.load_child(store, position))?
                }
                Children::Leaves(links) => {
                    return links.find(branch, store, position, key, look);
                }
            };
        }
    }
}

impl BranchLink {
    /// The node that this leads to. It is linked if it isn't yet.
    fn follow(
        &self,
        store: &dyn ChunkStore,
        load: impl FnOnce() -> Result<SearchNode, TreeError>,
    ) -> Result<Next<'_>, TreeError> {
        if let Some(branch) = self.0.get() {
            return Ok(Next::Branch(branch));
        }
        let node = load()?;
        Ok(match Branch::new(&node, store) {
            Some(branch) => Next::Branch(self.0.get_or_init(|| Box::new(branch))),
            None => Next::Node(node),
        })
    }
}

impl Branch {
    /// An interior node with links to none of its children; `None` for a leaf, and if there is no
    /// room.
    fn new(node: &SearchNode, store: &dyn ChunkStore) -> Option<Branch> {
        let (node, budget) = (node.node(), store.read_cache()?.link_budget());
        let (count, is_lowest) = (node.entry_count(), node.level() == 1);
        if node.is_leaf() {
            return None;
        }
        let link_bytes = if is_lowest { LEAF_LINK_BYTES } else { size_of::<BranchLink>() };
        let bytes = key_prefixes::bytes_max(count) + count * link_bytes;
        let fields_bytes = size_of::<Branch>() as u64 + CHUNK_FIELDS_BYTES;
        let taken = budget.take(bytes as u64 + fields_bytes)?;
        if !taken.share(node.chunk().encoded().len() as u64) {
            return None;
        }
        let prefixes = key_prefixes::of_children((0..count).map(|position| node.key(position)));
        let children = if is_lowest {
            Children::Leaves(LeafLinks {
                pinned: (0..count).map(|_| OnceLock::new()).collect(),
                weak: (0..count).map(|_| LeafLink::default()).collect(),
                budget: store.read_cache().and_then(|cache| cache.pin_budget().take(0)),
            })
        } else {
            Children::Branches((0..count).map(|_| BranchLink::default()).collect())
        };
        Some(Branch { prefixes: prefixes.into(), children, node: node.clone(), taken })
    }

    /// The position of the first child whose last key is not less than `key`.
    fn lower_bound(&self, key: &[u8]) -> usize {
        let positions = KeyPrefixes::new(&self.prefixes, self.node.entry_count()).around(key);
        if positions.is_empty() {
            // The node itself isn't looked at.
            return positions.start;
        }
        self.node.lower_bound_in(positions, key)
    }

    fn load_child(&self, store: &dyn ChunkStore, position: usize) -> Result<SearchNode, TreeError> {
        SearchNode::open_under(&self.node, store.get(self.node.child_hash(position))?)
    }
}

impl LeafLinks {
    /// Applies `look` to the entry of `key` in the leaf that this leads to, the child of `parent`
    /// at `position`; reads from the store if the entry isn't in memory any more.
    fn find<T>(
        &self,
        parent: &Branch,
        store: &dyn ChunkStore,
        position: usize,
        key: &[u8],
        look: impl FnOnce(FoundEntry<'_>) -> T,
    ) -> Result<Option<T>, TreeError> {
        if let Some(PinnedLeaf(leaf)) = self.pinned[position].get() {
            return Ok(leaf.find_checked(key)?.map(|range| look(FoundEntry::InLeaf(leaf, range))));
        }
        let link = &self.weak[position];
        let linked = link.0.try_lock().ok().and_then(|link| link.upgrade());
        if let Some(chunk) = linked.filter(Chunk::note_use) {
            let leaf = SearchNode::open_under(&parent.node, chunk)?;
            self.pin_if_busy(position, &leaf);
            let found = leaf.node().find_checked(key)?;
            return Ok(found.map(|range| look(FoundEntry::InLeaf(leaf.node(), range))));
        }
        let looked_up = LeafLookup::load(store, &parent.node, position, key)?;
        if let LeafLookup::Leaf { leaf, is_kept: true, .. } = &looked_up {
            link.set(leaf.node().chunk(), parent);
        }
        Ok(looked_up.look(look))
    }

    fn pin_if_busy(&self, position: usize, leaf: &SearchNode) {
        let leaf = leaf.node();
        let bytes = leaf.chunk().encoded().len() as u64 + CHUNK_FIELDS_BYTES;
        // A reader that gets there at the same moment reserves memory twice: the cached levels give
        // it back.
        if leaf.chunk().is_busy()
            && self.budget.as_ref().is_some_and(|budget| budget.more(bytes))
            && leaf.chunk().pin()
        {
            _ = self.pinned[position].set(PinnedLeaf(leaf.clone()));
        }
    }
}

impl Drop for PinnedLeaf {
    fn drop(&mut self) {
        self.0.chunk().unpin();
    }
}

impl LeafLink {
    fn set(&self, leaf: &Chunk, parent: &Branch) {
        if let Ok(mut link) = self.0.try_lock()
            // When the cache has dropped the leaf, its fields stay.
            && (!link.is_empty() || parent.taken.more(CHUNK_FIELDS_BYTES))
        {
            *link = leaf.downgrade();
        }
    }
}
