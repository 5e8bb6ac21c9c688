//! Reads of a map that follow one path, or one path for each of many keys.

use std::ops::Range;

use frond_store::{ChunkHash, ChunkStore};

use crate::error::TreeError;
use crate::map::search::SearchNode;
use crate::map::{Bounds, Entry, Summary, Tree};
use crate::value::Value;

impl Tree {
    /// Returns the value of `key`. O(log n) chunks.
    ///
    /// # Errors
    /// As the store; [`TreeError::Damaged`].
    pub fn get(&self, store: &dyn ChunkStore, key: &[u8]) -> Result<Option<Value>, TreeError> {
        SearchNode::load(store, self.root)?.get(store, key)
    }

    /// Returns the value of each of `keys`, which ascend strictly, in their order. Each node is
    /// read once however many keys fall into it.
    ///
    /// # Errors
    /// As the store; [`TreeError::Damaged`].
    pub fn get_many(
        &self,
        store: &dyn ChunkStore,
        keys: &[&[u8]],
    ) -> Result<Vec<Option<Value>>, TreeError> {
        debug_assert!(keys.is_sorted_by(|left, right| left < right));
        let mut values = Vec::with_capacity(keys.len());
        if !keys.is_empty() {
            get_many_under(store, &SearchNode::load(store, self.root)?, keys, &mut values)?;
        }
        Ok(values)
    }

    /// Returns the number of entries. One chunk read.
    ///
    /// # Errors
    /// As the store; [`TreeError::Damaged`].
    pub fn count(&self, store: &dyn ChunkStore) -> Result<u64, TreeError> {
        Ok(self.summary(store)?.count)
    }

    /// The OR of the flags of all values. One chunk read.
    ///
    /// # Errors
    /// As the store; [`TreeError::Damaged`].
    pub fn flags(&self, store: &dyn ChunkStore) -> Result<u8, TreeError> {
        Ok(self.summary(store)?.flags)
    }

    /// Returns the number of entries, their bytes and their flags. One chunk read.
    ///
    /// # Errors
    /// As the store; [`TreeError::Damaged`].
    pub fn summary(&self, store: &dyn ChunkStore) -> Result<Summary, TreeError> {
        Ok(SearchNode::load(store, self.root)?.summary())
    }

    /// Returns how many keys are less than `key`. O(log n) chunks.
    ///
    /// # Errors
    /// As the store; [`TreeError::Damaged`].
    pub fn rank(&self, store: &dyn ChunkStore, key: &[u8]) -> Result<u64, TreeError> {
        let mut node = SearchNode::load(store, self.root)?;
        let mut rank = 0u64;
        while !node.is_leaf() {
            let position = node.lower_bound(key);
            for before in node.child_counts().take(position) {
                // A damaged node's counts may exceed anything.
                rank = rank.saturating_add(before);
            }
            if position == node.entry_count() {
                return Ok(rank);
            }
            node = node.load_child(store, position)?;
        }
        Ok(rank.saturating_add(node.lower_bound(key) as u64))
    }

    /// Returns how many keys lie within `bounds`. O(log n) chunks.
    ///
    /// # Errors
    /// As the store; [`TreeError::Damaged`].
    pub fn count_range(&self, store: &dyn ChunkStore, bounds: &Bounds) -> Result<u64, TreeError> {
        let ranks = self.ranks(store, bounds)?;
        // Bounds whose end lies before their start hold nothing.
        Ok(ranks.end.saturating_sub(ranks.start))
    }

    /// Returns the positions in key order at which the entries within `bounds` stand. O(log n)
    /// chunks.
    ///
    /// # Errors
    /// As the store; [`TreeError::Damaged`].
    pub fn ranks(&self, store: &dyn ChunkStore, bounds: &Bounds) -> Result<Range<u64>, TreeError> {
        let start = match &bounds.start {
            Some(key) => self.rank(store, key)?,
            None => 0,
        };
        let end = match &bounds.end {
            Some(key) => self.rank(store, key)?,
            None => self.count(store)?,
        };
        Ok(start..end)
    }

    /// Cuts `bounds` into at most `part_count` ranges, in key order, that hold equally many
    /// entries: for threads that read them at once. One part at least; none is empty if `bounds`
    /// aren't. O(part_count log n) chunks.
    ///
    /// # Errors
    /// As the store; [`TreeError::Damaged`].
    pub fn split(
        &self,
        store: &dyn ChunkStore,
        bounds: &Bounds,
        part_count: usize,
    ) -> Result<Vec<Bounds>, TreeError> {
        let first = match &bounds.start {
            Some(key) => self.rank(store, key)?,
            None => 0,
        };
        let count = u128::from(self.count_range(store, bounds)?);
        let mut parts = Vec::new();
        let (mut start, mut from) = (bounds.start.clone(), first);
        for part in 1..part_count as u128 {
            let position = first.saturating_add((count * part / part_count as u128) as u64);
            if position <= from {
                continue;
            }
            let Some(Entry { key, .. }) = self.select(store, position)? else {
                break;
            };
            parts.push(Bounds { start: start.replace(key.clone()), end: Some(key) });
            from = position;
        }
        parts.push(Bounds { start, end: bounds.end.clone() });
        Ok(parts)
    }

    /// The entry at `position` in key order. O(log n) chunks.
    ///
    /// # Errors
    /// As the store; [`TreeError::Damaged`].
    pub fn select(
        &self,
        store: &dyn ChunkStore,
        position: u64,
    ) -> Result<Option<Entry>, TreeError> {
        let mut node = SearchNode::load(store, self.root)?;
        if position >= node.summary().count {
            return Ok(None);
        }
        let mut left = position;
        while !node.is_leaf() {
            let child = node.child_counts().position(|count| {
                let is_it = left < count;
                left -= if is_it { 0 } else { count };
                is_it
            });
            let child = child.ok_or_else(|| wrong_count(node.hash()))?;
            node = node.load_child(store, child)?;
        }
        if left >= node.entry_count() as u64 {
            return Err(wrong_count(node.hash()));
        }
        Ok(Some(node.entry(left as usize)?))
    }
}

fn wrong_count(hash: ChunkHash) -> TreeError {
    TreeError::damaged(hash, "fewer entries than the node above counts")
}

/// Looks `keys` up under `node`; recursion goes down one level a step. The children that keys fall
/// into are asked for in one batch.
fn get_many_under(
    store: &dyn ChunkStore,
    node: &SearchNode,
    keys: &[&[u8]],
    values: &mut Vec<Option<Value>>,
) -> Result<(), TreeError> {
    if node.is_leaf() {
        for key in keys {
            values.push(node.find(key)?);
        }
        return Ok(());
    }
    let (mut groups, mut hashes) = (Vec::new(), Vec::new());
    let mut rest = keys;
    while let Some(first) = rest.first() {
        let child = node.lower_bound(first);
        if child == node.entry_count() {
            break;
        }
        let last = node.key(child);
        let (group, behind) = rest.split_at(rest.partition_point(|key| *key <= last));
        if group.is_empty() {
            return Err(TreeError::OutOfOrder); // Of a sound node `first` is not above `last`.
        }
        groups.push(group);
        hashes.push(node.child_hash(child));
        rest = behind;
    }
    for (group, chunk) in groups.into_iter().zip(store.get_many(&hashes)?) {
        get_many_under(store, &node.open_child(chunk)?, group, values)?;
    }
    values.extend(rest.iter().map(|_| None));
    Ok(())
}
