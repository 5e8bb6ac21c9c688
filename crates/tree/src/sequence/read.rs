//! Reads of a sequence: by position, by byte, from a position on, and as one string.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use frond_store::{ChunkHash, ChunkStore};

use crate::error::TreeError;
use crate::sequence::Sequence;
use crate::sequence::entry::Entry;
use crate::sequence::node::{SequenceNode, Sums};

impl Sequence {
    /// Returns the number of items. One chunk read.
    ///
    /// # Errors
    /// As the store; [`TreeError::Damaged`].
    pub fn count(&self, store: &dyn ChunkStore) -> Result<u64, TreeError> {
        Ok(SequenceNode::load(store, self.root)?.sums().count)
    }

    /// Bytes of all items. One chunk read.
    ///
    /// # Errors
    /// As the store; [`TreeError::Damaged`].
    pub fn bytes(&self, store: &dyn ChunkStore) -> Result<u64, TreeError> {
        Ok(SequenceNode::load(store, self.root)?.sums().bytes)
    }

    /// The item at `position`. O(log n) chunks.
    ///
    /// # Errors
    /// As the store; [`TreeError::Damaged`].
    pub fn get(&self, store: &dyn ChunkStore, position: u64) -> Result<Option<Bytes>, TreeError> {
        let found = self.seek(store, position, |sums| sums.count)?;
        Ok(found.map(|found| found.leaf.item_bytes(found.entry)))
    }

    /// The position of the item that holds `byte`, counted from the beginning of the first item,
    /// and where in the item it lies; `None` behind the end. O(log n) chunks.
    ///
    /// # Errors
    /// As the store; [`TreeError::Damaged`].
    pub fn seek_byte(
        &self,
        store: &dyn ChunkStore,
        byte: u64,
    ) -> Result<Option<(u64, usize)>, TreeError> {
        let found = self.seek(store, byte, |sums| sums.bytes)?;
        Ok(found.map(|found| (found.position, found.rest as usize)))
    }

    /// Finds the entry in which the sum of `measure` passes `target`.
    fn seek(
        &self,
        store: &dyn ChunkStore,
        target: u64,
        measure: impl Fn(&Sums) -> u64,
    ) -> Result<Option<FoundEntry>, TreeError> {
        let mut node = SequenceNode::load(store, self.root)?;
        if target >= measure(&node.sums()) {
            return Ok(None);
        }
        let (mut rest, mut position) = (target, 0u64);
        loop {
            let mut entry = 0;
            while entry < node.entry_count() {
                let sums = node.entry_sums(entry);
                if rest < measure(&sums) {
                    break;
                }
                rest -= measure(&sums);
                // A damaged node's counts may exceed anything.
                position = position.saturating_add(sums.count);
                entry += 1;
            }
            if entry == node.entry_count() {
                return Err(TreeError::damaged(node.hash(), "less than its sums say"));
            }
            if node.is_leaf() {
                return Ok(Some(FoundEntry { leaf: node, entry, position, rest }));
            }
            node = node.load_child(store, entry)?;
        }
    }

    /// Calls `visit` with each item from `position` on and its position, until it says `true`;
    /// returns whether it did.
    ///
    /// # Errors
    /// As the store; [`TreeError::Damaged`].
    pub fn visit(
        &self,
        store: &dyn ChunkStore,
        position: u64,
        visit: &mut dyn FnMut(u64, &[u8]) -> bool,
    ) -> Result<bool, TreeError> {
        let (root, mut bytes) = (SequenceNode::load(store, self.root)?, Vec::new());
        visit_node(store, &root, 0, position, &mut |position, item| {
            visit(position, item.whole(&mut bytes))
        })
    }

    /// The items from `position` on; none if it lies behind the end.
    pub fn items(&self, store: &Arc<dyn ChunkStore>, position: u64) -> Items {
        Items { store: store.clone(), start: Some((self.root, position)), path: Vec::new() }
    }
}

/// Visits the items under a node whose first is at `start`; recursion goes down one level a step.
fn visit_node(
    store: &dyn ChunkStore,
    node: &SequenceNode,
    mut start: u64,
    from: u64,
    visit: &mut dyn FnMut(u64, &Entry<'_>) -> bool,
) -> Result<bool, TreeError> {
    if node.is_leaf() {
        let skipped = from.saturating_sub(start).min(node.entry_count() as u64);
        let mut items = (start.saturating_add(skipped)..).zip(node.entries(skipped as usize));
        return Ok(items.any(|(position, item)| visit(position, &item)));
    }
    for entry in 0..node.entry_count() {
        let end = start.saturating_add(node.entry_sums(entry).count);
        if from < end && visit_node(store, &node.load_child(store, entry)?, start, from, visit)? {
            return Ok(true);
        }
        start = end;
    }
    Ok(false)
}

/// The place where `seek` ended.
struct FoundEntry {
    leaf: SequenceNode,
    entry: usize,
    /// The entry's position in the sequence.
    position: u64,
    /// The remaining distance to the target within the entry.
    rest: u64,
}

/// An iterator over a sequence's items. Ends after an error.
pub struct Items {
    store: Arc<dyn ChunkStore>,
    /// The root and where to begin, until the first item has been read.
    start: Option<(ChunkHash, u64)>,
    /// The nodes from the root down, and the entries still to come.
    path: Vec<(SequenceNode, Range<usize>)>,
}

impl Items {
    fn advance(&mut self) -> Result<Option<Bytes>, TreeError> {
        if let Some((root, position)) = self.start.take() {
            self.descend(SequenceNode::load(&*self.store, root)?, position)?;
        }
        while let Some((node, entries)) = self.path.last_mut() {
            match entries.next() {
                None => drop(self.path.pop()),
                Some(entry) if node.is_leaf() => return Ok(Some(node.item_bytes(entry))),
                Some(entry) => {
                    let child = node.load_child(&*self.store, entry)?;
                    let entries = 0..child.entry_count();
                    self.path.push((child, entries));
                }
            }
        }
        Ok(None)
    }

    /// Builds the path to the item at `position`.
    fn descend(&mut self, root: SequenceNode, position: u64) -> Result<(), TreeError> {
        let (mut node, mut rest) = (root, position);
        loop {
            let mut entry = 0;
            while entry < node.entry_count() && rest >= node.entry_sums(entry).count {
                rest -= node.entry_sums(entry).count;
                entry += 1;
            }
            let child = if node.is_leaf() || entry == node.entry_count() {
                None
            } else {
                Some(node.load_child(&*self.store, entry)?)
            };
            let entries = entry + usize::from(child.is_some())..node.entry_count();
            self.path.push((node, entries));
            match child {
                Some(child) => node = child,
                None => return Ok(()),
            }
        }
    }
}

impl Iterator for Items {
    type Item = Result<Bytes, TreeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.advance();
        if item.is_err() {
            self.path.clear();
        }
        item.transpose()
    }
}

/// Concatenates all items of the sequence at `root`, which are `bytes` long.
pub(crate) fn read_all(
    store: &dyn ChunkStore,
    root: ChunkHash,
    bytes: u64,
) -> Result<Bytes, TreeError> {
    let node = SequenceNode::load(store, root)?;
    if node.sums().bytes != bytes {
        let found = node.sums().bytes;
        let what = format!("a value of {found} bytes, expected {bytes}");
        return Err(TreeError::damaged(root, what));
    }
    // Grows as it is read: a damaged length reserves nothing.
    let mut value = Vec::new();
    append(store, &node, &mut value)?;
    if value.len() as u64 != bytes {
        let what = format!("a value of {} bytes, expected {bytes}", value.len());
        return Err(TreeError::damaged(root, what));
    }
    Ok(value.into())
}

/// Appends the items under `node`; recursion goes down one level a step.
fn append(
    store: &dyn ChunkStore,
    node: &SequenceNode,
    value: &mut Vec<u8>,
) -> Result<(), TreeError> {
    if node.is_leaf() {
        node.entries(0).for_each(|item| item.append_to(value));
        return Ok(());
    }
    for entry in 0..node.entry_count() {
        append(store, &node.load_child(store, entry)?, value)?;
    }
    Ok(())
}
