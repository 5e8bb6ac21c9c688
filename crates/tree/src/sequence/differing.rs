//! The differences between two sequences: runs of items that one has and the other hasn't.
//!
//! 1. The nodes of a level of both are laid beside each other: equal ones, which are found by their
//!    names from the front, from the back, and in order between, are passed over; between them lie
//!    *gaps*, whose nodes below are compared in turn.
//! 2. In a gap of leaves the items that agree at its front and at its back are left out.
//!
//! So what both share isn't read: where few items differ this reads the paths to them. Gaps ascend,
//! and what lies between two is the same in both, in the same order. They aren't the smallest
//! possible differences: an item that moved counts as gone and come.

use std::collections::HashMap;

use bytes::Bytes;
use frond_store::{ChunkHash, ChunkStore};

use crate::error::TreeError;
use crate::sequence::Sequence;
use crate::sequence::node::{SequenceChild, SequenceNode};

/// A run of items that is another in the other sequence. Either may be empty, not both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hunk {
    /// Its position in the sequence before.
    pub before_at: u64,
    /// The replaced items.
    pub before: Vec<Bytes>,
    /// Its position in the sequence after.
    pub after_at: u64,
    /// The items in their place.
    pub after: Vec<Bytes>,
}

/// Nodes of one level that follow each other, and how many items lie before them.
struct Nodes {
    at: u64,
    nodes: Vec<SequenceNode>,
}

/// The same, not read yet.
struct Children {
    at: u64,
    /// The level of the nodes.
    level: u8,
    children: Vec<SequenceChild>,
}

impl Sequence {
    /// Returns the differences between this sequence and `after`, in order.
    ///
    /// # Errors
    /// As the store; [`TreeError::Damaged`].
    pub fn differing(
        &self,
        store: &dyn ChunkStore,
        after: &Sequence,
    ) -> Result<Vec<Hunk>, TreeError> {
        let mut hunks = Vec::new();
        if self.root != after.root {
            let root = |hash| -> Result<Nodes, TreeError> {
                Ok(Nodes { at: 0, nodes: vec![SequenceNode::load(store, hash)?] })
            };
            compare(store, root(self.root)?, root(after.root)?, &mut hunks)?;
        }
        Ok(hunks)
    }
}

/// Compares nodes of any levels; recursion goes down one level a step.
fn compare(
    store: &dyn ChunkStore,
    mut before: Nodes,
    mut after: Nodes,
    hunks: &mut Vec<Hunk>,
) -> Result<(), TreeError> {
    while after.level() < before.level() && !after.nodes.is_empty() {
        before = before.children().load(store)?;
    }
    while before.level() < after.level() && !before.nodes.is_empty() {
        after = after.children().load(store)?;
    }
    if before.level().max(after.level()) == 0 {
        hunks.extend(hunk(&before, &after));
        return Ok(());
    }
    for (before, after) in gaps(before.children(), after.children()) {
        compare(store, before.load(store)?, after.load(store)?, hunks)?;
    }
    Ok(())
}

impl Nodes {
    /// Returns the level of all of them; 0 if there are none.
    fn level(&self) -> u8 {
        self.nodes.first().map_or(0, SequenceNode::level)
    }

    /// Returns the children of nodes above the leaves.
    fn children(&self) -> Children {
        let of = |node: &SequenceNode| (0..node.entry_count()).map(|at| node.child(at)).collect();
        let children: Vec<Vec<SequenceChild>> = self.nodes.iter().map(of).collect();
        let level = self.level().saturating_sub(1);
        Children { at: self.at, level, children: children.concat() }
    }
}

impl Children {
    fn load(&self, store: &dyn ChunkStore) -> Result<Nodes, TreeError> {
        let nodes = self.children.iter().map(|child| {
            let node = SequenceNode::load(store, child.hash)?;
            match node.level() == self.level && node.sums() == child.sums {
                true => Ok(node),
                false => {
                    let what = "not the node that the one above describes";
                    Err(TreeError::damaged(node.hash(), what))
                }
            }
        });
        Ok(Nodes { at: self.at, nodes: nodes.collect::<Result<_, _>>()? })
    }

    /// Those from `from` to before `end`, with `at` items before the first.
    fn part(&self, (from, end): (usize, usize), at: u64) -> Children {
        Children { at, level: self.level, children: self.children[from..end].to_vec() }
    }

    fn items(&self, (from, end): (usize, usize)) -> u64 {
        let counts = self.children[from..end].iter().map(|child| child.sums.count);
        counts.fold(0, u64::saturating_add)
    }
}

/// Returns the gaps between equal children.
fn gaps(before: Children, after: Children) -> Vec<(Children, Children)> {
    let (old, new) = (&before.children, &after.children);
    let same = |(left, right): &(&SequenceChild, &SequenceChild)| left.hash == right.hash;
    let front = old.iter().zip(new).take_while(same).count();
    let rest = old.len().min(new.len()) - front;
    let back = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(same).count();
    let (old_end, new_end) = (old.len() - back, new.len() - back);
    // A child that occurs twice cannot be matched by its hash.
    let mut places: HashMap<ChunkHash, Option<usize>> = HashMap::new();
    for (place, child) in new.iter().enumerate().take(new_end).skip(front) {
        let place = Some(place);
        places.entry(child.hash).and_modify(|known| *known = None).or_insert(place);
    }
    let mut gaps = Vec::new();
    let (mut old_from, mut new_from) = (front, front);
    let (mut old_at, mut new_at) =
        (before.at + before.items((0, front)), after.at + after.items((0, front)));
    let mut close = |old_to: usize, new_to: usize, matched: usize| {
        let (gone, come) = ((old_from, old_to), (new_from, new_to));
        if old_from < old_to || new_from < new_to {
            gaps.push((before.part(gone, old_at), after.part(come, new_at)));
        }
        old_at = old_at.saturating_add(before.items((old_from, old_to + matched)));
        new_at = new_at.saturating_add(after.items((new_from, new_to + matched)));
        (old_from, new_from) = (old_to + matched, new_to + matched);
    };
    let mut least = front;
    for (place, child) in old.iter().enumerate().take(old_end).skip(front) {
        let found = places.get(&child.hash).copied().flatten();
        if let Some(found) = found.filter(|found| least <= *found) {
            close(place, found, 1);
            least = found + 1;
        }
    }
    close(old_end, new_end, 0);
    gaps
}

/// The items of leaves, without those that agree at the front and at the back.
fn hunk(before: &Nodes, after: &Nodes) -> Option<Hunk> {
    let items = |nodes: &Nodes| -> Vec<Bytes> {
        let of = |node: &SequenceNode| -> Vec<Bytes> {
            (0..node.entry_count()).map(|at| node.item_bytes(at)).collect()
        };
        nodes.nodes.iter().flat_map(of).collect()
    };
    let (mut old, mut new) = (items(before), items(after));
    let front = old.iter().zip(&new).take_while(|(left, right)| left == right).count();
    let rest = old.len().min(new.len()) - front;
    let back = old.iter().rev().zip(new.iter().rev()).take(rest);
    let back = back.take_while(|(left, right)| left == right).count();
    old.truncate(old.len() - back);
    new.truncate(new.len() - back);
    old.drain(..front);
    new.drain(..front);
    let front = front as u64;
    let hunk =
        Hunk { before_at: before.at + front, before: old, after_at: after.at + front, after: new };
    (!hunk.before.is_empty() || !hunk.after.is_empty()).then_some(hunk)
}
