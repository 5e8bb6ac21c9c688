//! One item in the place of another where no boundary moves: on each level one node comes in the place of another, with
//! one entry changed.
//!
//! 1. The way down to the item is remembered.
//! 2. From the leaf up, the entry is exchanged in a copy of its node, if each entry whose window has it, itself
//!    counted, still ends its node or doesn't. If it takes more or less of the node than before, this is asked of all that
//!    follow it there.
//! 3. Where a boundary moves, nothing was put, and `splice` walks.

use frond_store::chunk::HASH_BYTES;
use frond_store::{ChunkHash, ChunkStore};

use crate::boundary::BoundaryRule;
use crate::error::TreeError;
use crate::format::TreeFormat;
use crate::sequence::neighbours::{Path, fill_window, next_node};
use crate::sequence::node::SequenceNode;
use crate::sequence::window::Window;
use crate::sequence::writer::{self, reference_bytes, reference_of};
use crate::sequence::{Refers, Sequence};

impl Sequence {
    /// The root with `item` in the place of the one at `position`; `None` if a boundary moves.
    pub(super) fn exchange(
        &self,
        store: &dyn ChunkStore,
        root: &SequenceNode,
        position: u64,
        item: &[u8],
        refers: Refers,
    ) -> Result<Option<ChunkHash>, TreeError> {
        let mut path = way_to(store, root, position)?;
        let (leaf, entry) = &path[path.len() - 1];
        let (old, new) = (reference_of(leaf.item(*entry), refers), reference_of(item, refers));
        let reference_position =
            (0..*entry).filter(|at| reference_of(leaf.item(*at), refers).is_some()).count();
        let reference = new.map(|new| (reference_position, new));
        if old.is_some() != new.is_some()
            || old.is_some() && leaf.chunk().reference_count() <= reference_position
            || self.format.item_bytes_max() < item.len()
            || !Boundaries::stay(store, &self.format, &path, item, refers)?
        {
            return Ok(None);
        }
        let (leaf, mut child) = leaf.with_item(*entry, item, reference);
        let mut chunks = vec![leaf];
        path.pop();
        while let Some((node, entry)) = path.last() {
            if !Boundaries::stay(store, &self.format, &path, &child.hash.0, refers)? {
                return Ok(None);
            }
            let (node, above) = node.with_child(*entry, &child);
            chunks.push(node);
            child = above;
            path.pop();
        }
        store.put_many(&chunks)?;
        Ok(Some(child.hash))
    }
}

/// From the root down to the item at `position`.
fn way_to(
    store: &dyn ChunkStore,
    root: &SequenceNode,
    position: u64,
) -> Result<Vec<(SequenceNode, usize)>, TreeError> {
    let (mut way, mut node, mut rest) = (Vec::new(), root.clone(), position);
    loop {
        let found = node.entry_with(rest);
        let (entry, before) = found
            .ok_or_else(|| TreeError::damaged(node.hash(), "less than its sums say".to_owned()))?;
        rest -= before;
        let child = (!node.is_leaf()).then(|| node.load_child(store, entry)).transpose()?;
        way.push((node, entry));
        match child {
            Some(child) => node = child,
            None => return Ok(way),
        }
    }
}

/// The boundaries of one level behind an entry that changes.
struct Boundaries {
    rule: BoundaryRule,
    window: Window,
    refers: Refers,
    /// Whether the entry takes as much of its node as before.
    is_size_kept: bool,
    /// What was passed behind it.
    passed_count: usize,
    passed_bytes: u64,
}

impl Boundaries {
    /// Whether all nodes of the level end where they do if the entry that `path` ends at gets this content.
    fn stay(
        store: &dyn ChunkStore,
        format: &TreeFormat,
        path: &Path,
        content: &[u8],
        refers: Refers,
    ) -> Result<bool, TreeError> {
        let (node, entry) = &path[path.len() - 1];
        let mut window = Window::new(format, node.level());
        fill_window(store, path, node.level(), &mut window)?;
        let mut boundaries = Boundaries {
            rule: BoundaryRule::new(format, node.level()),
            window,
            refers,
            is_size_kept: node.entry_content(*entry).len() == content.len(),
            passed_count: 0,
            passed_bytes: 0,
        };
        let mut is_last = is_last(path);
        if !boundaries.stay_in(node, *entry, Some(content), is_last) {
            return Ok(false);
        }
        let mut next = None;
        while !is_last && !boundaries.are_passed() {
            next = next_node(store, next.as_deref().unwrap_or(path))?;
            let Some(path) = &next else { break };
            is_last = self::is_last(path);
            if !boundaries.stay_in(&path[path.len() - 1].0, 0, None, is_last) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same of one node, from an entry on, which has changed if there is `content`.
    fn stay_in(
        &mut self,
        node: &SequenceNode,
        from: usize,
        content: Option<&[u8]>,
        is_last: bool,
    ) -> bool {
        let mut before = bytes_before(node, from, self.refers);
        for entry in from..node.entry_count() {
            let is_end = entry + 1 == node.entry_count();
            let changed = content.filter(|_| entry == from);
            let content = changed.unwrap_or_else(|| node.entry_content(entry));
            let after = before + entry_bytes(node, content, self.refers);
            let hash = self.window.push(content, true);
            let ends = self.rule.ends_node(entry + 1, hash, before, after);
            // A level's last node ends in any case.
            if ends != is_end && !(is_end && is_last) {
                return false;
            }
            if changed.is_none() {
                self.passed_count += 1;
                self.passed_bytes += content.len() as u64;
            }
            if self.is_size_kept && self.are_passed() {
                return true;
            }
            before = after;
        }
        self.is_size_kept = true; // The next node begins where it did.
        true
    }

    /// Whether no window has the changed entry any more.
    fn are_passed(&self) -> bool {
        self.window.is_filled_by(self.passed_count, self.passed_bytes)
    }
}

/// Whether the node that `path` leads to is its level's last.
fn is_last(path: &Path) -> bool {
    path[..path.len() - 1].iter().all(|(node, entry)| entry + 1 == node.entry_count())
}

/// How large the boundary rule takes an entry of a node to be.
fn entry_bytes(node: &SequenceNode, content: &[u8], refers: Refers) -> u64 {
    let reference = reference_of(content, refers).filter(|_| node.is_leaf());
    writer::entry_bytes(node.level(), content.len()) + reference_bytes(reference.as_ref())
}

/// The same of all before one.
fn bytes_before(node: &SequenceNode, entry: usize, refers: Refers) -> u64 {
    match node.is_leaf() {
        true => (0..entry).map(|entry| entry_bytes(node, node.item(entry), refers)).sum(),
        false => entry as u64 * writer::entry_bytes(node.level(), HASH_BYTES),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use frond_store::memory::MemoryStore;
    use frond_testkit::Random;
    use frond_testkit::random::for_seeds;

    use super::*;

    /// An odd first byte says that an item refers.
    fn refers(item: &[u8]) -> bool {
        item.first().is_some_and(|first| first % 2 == 1)
    }

    fn item(random: &mut Random, kinds: usize, bytes: usize) -> Bytes {
        let kind = random.below(kinds);
        let bytes = if random.one_in(3) { random.below(bytes + 1) } else { bytes };
        (kind as u32).to_le_bytes().repeat(20)[..bytes].to_vec().into()
    }

    /// Goal: an exchange gives what a fresh build gives, or none; and gives it mostly, where items differ.
    #[test]
    fn an_exchange_gives_the_root_of_a_fresh_build() {
        let (mut done_count, mut all_count) = (0, 0);
        for_seeds(200, |mut random| {
            let store = MemoryStore::new();
            let format =
                TreeFormat { chunk_bytes_target: 512, inline_bytes_max: 128, salt: random.next() };
            let kinds = *random.choose(&[2, 20, 1 << 20]);
            let bytes = *random.choose(&[4, 40, 70]);
            let mut items: Vec<Bytes> =
                (0..random.below(2000) + 1).map(|_| item(&mut random, kinds, bytes)).collect();
            let build = |items: &[Bytes]| {
                let mut items = items.iter().cloned().map(Ok);
                Sequence::build_referring(&*store, format, &mut items, refers).unwrap()
            };
            let mut sequence = build(&items);
            for _ in 0..40 {
                let position = random.below(items.len());
                let new = item(&mut random, kinds, bytes);
                let root = SequenceNode::load(&*store, sequence.root).unwrap();
                let found =
                    sequence.exchange(&*store, &root, position as u64, &new, refers).unwrap();
                items[position] = new;
                let expected = build(&items);
                assert!(found.is_none_or(|found| found == expected.root));
                sequence = expected;
                all_count += usize::from(kinds > 20);
                done_count += usize::from(kinds > 20 && found.is_some());
            }
        });
        assert!(all_count < 2 * done_count, "{done_count} of {all_count}");
    }
}
