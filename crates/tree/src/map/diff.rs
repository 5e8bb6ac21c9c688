//! Finds how two maps differ, reading only where they do.
//!
//! Both trees are walked side by side in key order. Each side stands before a subtree that is not
//! read yet, or before an entry.
//! 1. Two subtrees of the same name are equal: both sides step over them unread.
//! 2. Otherwise the higher subtree is opened, or both if they are equally high; before an entry, a
//!    subtree on the other side is opened.
//! 3. Two entries are compared like the heads of two sorted lists.
//!
//! After a difference the sides stand within leaves that begin at different keys; new boundaries
//! fall in step with the old ones soon, and from there on both stand before equal subtrees again,
//! low ones at first, then higher ones. Trees of different heights need nothing more.
//!
//! A caller that *passes by* once ([`Tree::diff_passing`]) has leaves read ahead: twice as many
//! each time while all of them are opened, and one again after some were equal and stepped over.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use frond_store::{ChunkHash, ChunkStore, Prefetched, ReadOptions};

use crate::error::TreeError;
use crate::map::node::MapNode;
use crate::map::{Change, Tree};

/// The number of leaves that are read ahead at most.
const AHEAD_COUNT_MAX: usize = 8;

/// An iterator over the differences of two trees, in key order. Ends after an error.
pub struct Diff {
    store: Arc<dyn ChunkStore>,
    from: Side,
    to: Side,
    passes: bool,
}

impl Tree {
    /// Returns how `to` differs from `self`, in key order; equal subtrees are not read. Both trees
    /// have the same format, or equal long values may count as different.
    pub fn diff(&self, store: &Arc<dyn ChunkStore>, to: &Tree) -> Diff {
        let (from, to) = (Side::new(self.root), Side::new(to.root));
        Diff { store: store.clone(), from, to, passes: false }
    }

    /// As [`Tree::diff`], for a caller that hardly comes back to what it has read, however much
    /// that is: leaves aren't kept in memory for other readers.
    pub fn diff_passing(&self, store: &Arc<dyn ChunkStore>, to: &Tree) -> Diff {
        Diff { passes: true, ..self.diff(store, to) }
    }
}

/// One of the two walks.
struct Side {
    /// The root, until it is opened or stepped over.
    root: Option<ChunkHash>,
    /// The nodes from the root down, and the position where each stands. A node stands at the child
    /// that its successor in the path is, or at what comes next. Never at its end.
    path: Vec<(MapNode, usize)>,
    /// Leaves that were read ahead, and how many were asked for the last time.
    ahead: VecDeque<(ChunkHash, Prefetched)>,
    ahead_count: usize,
}

/// The next item of one side.
enum Head {
    End,
    /// A subtree that is not read yet; `above` is the level of the node that holds it, or none.
    Subtree {
        hash: ChunkHash,
        above: Option<u8>,
    },
    Entry,
}

impl Side {
    fn new(root: ChunkHash) -> Side {
        Side { root: Some(root), ..Side::ended() }
    }

    fn ended() -> Side {
        Side { root: None, path: Vec::new(), ahead: VecDeque::new(), ahead_count: 0 }
    }

    fn head(&self) -> Head {
        match (self.root, self.path.last()) {
            (Some(hash), _) => Head::Subtree { hash, above: None },
            (None, None) => Head::End,
            (None, Some((node, _))) if node.is_leaf() => Head::Entry,
            (None, Some((node, position))) => {
                Head::Subtree { hash: node.child_hash(*position), above: Some(node.level()) }
            }
        }
    }

    /// The entry that the side stands before.
    fn entry(&self) -> (&MapNode, usize) {
        let (node, position) = self.path.last().expect("the side stands before an entry");
        (node, *position)
    }

    /// Steps over what the side stands before.
    fn step(&mut self) {
        if self.root.take().is_some() {
            return;
        }
        while let Some((node, position)) = self.path.last_mut() {
            *position += 1;
            if *position < node.entry_count() {
                return;
            }
            self.path.pop();
        }
    }

    /// Opens the subtree that the side stands before.
    fn open(&mut self, store: &dyn ChunkStore, passes: bool) -> Result<(), TreeError> {
        let ahead = if passes { self.take_ahead(store) } else { None };
        let node = match (self.root.take(), self.path.last()) {
            (Some(root), _) => MapNode::load(store, root)?,
            (None, Some((node, position))) => match ahead {
                Some(leaf) => {
                    node.open_child(store.open_prefetched(leaf, ReadOptions::TO_REPLACE)?)?
                }
                None => node.load_child(store, *position)?,
            },
            (None, None) => return Ok(()),
        };
        let is_empty = node.entry_count() == 0;
        self.path.push((node, 0));
        if is_empty {
            self.path.pop();
            self.step_after_empty();
        }
        Ok(())
    }

    /// The leaf that the side stands before, if it can be read ahead, with some of those behind it.
    fn take_ahead(&mut self, store: &dyn ChunkStore) -> Option<Prefetched> {
        let (node, position) = self.path.last().filter(|(node, _)| node.level() == 1)?;
        let wanted = node.child_hash(*position);
        while self.ahead.pop_front_if(|(hash, _)| *hash != wanted).is_some() {
            self.ahead_count = 0;
        }
        if self.ahead.is_empty() {
            self.ahead_count = (self.ahead_count * 2).clamp(1, AHEAD_COUNT_MAX);
            let end = node.entry_count().min(position + self.ahead_count);
            let hashes: Vec<ChunkHash> =
                (*position..end).map(|position| node.child_hash(position)).collect();
            // A leaf that can't be read fails when it is its turn.
            let read = store.prefetch(&hashes).ok()?;
            self.ahead = hashes.into_iter().zip(read).collect();
        }
        self.ahead.pop_front().map(|(_, leaf)| leaf)
    }

    /// An empty leaf is only ever a root; below another node it is damage that reads as nothing.
    fn step_after_empty(&mut self) {
        if !self.path.is_empty() {
            self.step();
        }
    }
}

impl Diff {
    fn advance(&mut self) -> Result<Option<Change>, TreeError> {
        loop {
            match (self.from.head(), self.to.head()) {
                (Head::End, Head::End) => return Ok(None),
                (
                    Head::Subtree { hash: from, above: from_above },
                    Head::Subtree { hash: to, above: to_above },
                ) => {
                    if from == to {
                        self.from.step();
                        self.to.step();
                        continue;
                    }
                    self.open_higher(from_above, to_above)?;
                }
                (Head::Subtree { .. }, _) => self.from.open(&*self.store, self.passes)?,
                (_, Head::Subtree { .. }) => self.to.open(&*self.store, self.passes)?,
                (Head::Entry, Head::End) => return Ok(Some(self.removed())),
                (Head::End, Head::Entry) => return Ok(Some(self.added())),
                (Head::Entry, Head::Entry) => {
                    if let Some(change) = self.compare_entries() {
                        return Ok(Some(change));
                    }
                }
            }
        }
    }

    /// Opens the higher of two different subtrees, or both. A root's height isn't known before it
    /// is open: it is opened alone.
    fn open_higher(&mut self, from: Option<u8>, to: Option<u8>) -> Result<(), TreeError> {
        let order = match (from, to) {
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (from, to) => from.cmp(&to),
        };
        if order != Ordering::Less {
            self.from.open(&*self.store, self.passes)?;
        }
        if order != Ordering::Greater {
            self.to.open(&*self.store, self.passes)?;
        }
        Ok(())
    }

    fn compare_entries(&mut self) -> Option<Change> {
        let ((from, from_position), (to, to_position)) = (self.from.entry(), self.to.entry());
        match from.key(from_position).cmp(to.key(to_position)) {
            Ordering::Less => Some(self.removed()),
            Ordering::Greater => Some(self.added()),
            Ordering::Equal => {
                let change = (from.entry(from_position) != to.entry(to_position)).then(|| Change {
                    key: from.key_bytes(from_position),
                    from: Some(from.value(from_position)),
                    to: Some(to.value(to_position)),
                });
                self.from.step();
                self.to.step();
                change
            }
        }
    }

    fn removed(&mut self) -> Change {
        let (node, position) = self.from.entry();
        let key = node.key_bytes(position);
        let change = Change { key, from: Some(node.value(position)), to: None };
        self.from.step();
        change
    }

    fn added(&mut self) -> Change {
        let (node, position) = self.to.entry();
        let key = node.key_bytes(position);
        let change = Change { key, from: None, to: Some(node.value(position)) };
        self.to.step();
        change
    }
}

impl Iterator for Diff {
    type Item = Result<Change, TreeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let change = self.advance();
        if change.is_err() {
            (self.from, self.to) = (Side::ended(), Side::ended());
        }
        change.transpose()
    }
}
