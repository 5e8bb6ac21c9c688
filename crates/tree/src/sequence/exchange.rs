//! One item in the place of another where no boundary moves: on each level one node comes in the
//! place of another, with one entry changed.
//!
//! 1. The way down to the item is remembered.
//! 2. From the leaf up, the entry is exchanged in a copy of its node, if each entry whose window
//!    has it, itself counted, still ends its node or doesn't. If it takes more or less of the node
//!    than before, this is asked of all that follow it there. Where entries are names that don't
//!    repeat near it, it is asked of the entry alone (`is_alone`).
//! 3. Where a boundary moves, nothing was put, and `splice` walks.

use frond_store::{ChunkHash, ChunkStore};

use crate::boundary::BoundaryRule;
use crate::error::TreeError;
use crate::format::TreeFormat;
use crate::sequence::entry::Entry;
use crate::sequence::neighbours::{Path, fill_window, next_node};
use crate::sequence::node::SequenceNode;
use crate::sequence::window::{WINDOW_ITEMS, Window};
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
        let item = Entry::of_item(item, refers);
        if leaf.entry(*entry).reference.is_some() != item.reference.is_some()
            || self.format.item_bytes_max() < item.bytes()
            || !Boundaries::stay(store, &self.format, &path, &item)?
        {
            return Ok(None);
        }
        let (leaf, mut child) = leaf.with_item(*entry, &item);
        let mut chunks = vec![leaf];
        path.pop();
        while let Some((node, entry)) = path.last() {
            if !Boundaries::stay(store, &self.format, &path, &child.entry())? {
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

/// Returns the way from the root down to the item at `position`.
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
    /// Whether the entry takes as much of its node as before.
    is_size_kept: bool,
    /// The number of entries passed behind the changed one.
    passed_count: usize,
    passed_bytes: u64,
}

impl Boundaries {
    /// Checks whether all nodes of the level keep their ends if the entry at the end of `path` gets
    /// this content.
    fn stay(
        store: &dyn ChunkStore,
        format: &TreeFormat,
        path: &Path,
        content: &Entry<'_>,
    ) -> Result<bool, TreeError> {
        let (node, entry) = &path[path.len() - 1];
        let rule = BoundaryRule::new(format, node.level());
        let mut window = Window::new(format, node.level());
        let is_size_kept = node.entry(*entry).bytes() == content.bytes();
        let mut is_last = is_last(path);
        if is_size_kept && is_alone(node, *entry, content) {
            let before = node.bytes_before(*entry);
            let after = before + content.bytes_in_node(node.level());
            let ends = rule.ends_node(*entry + 1, window.hash(content), before, after);
            let is_end = *entry + 1 == node.entry_count();
            return Ok(ends == is_end || is_end && is_last);
        }
        fill_window(store, path, node.level(), &mut window)?;
        let mut boundaries =
            Boundaries { rule, window, is_size_kept, passed_count: 0, passed_bytes: 0 };
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
        content: Option<&Entry<'_>>,
        is_last: bool,
    ) -> bool {
        let mut before = node.bytes_before(from);
        for (entry, old) in (from..).zip(node.entries(from)) {
            let is_end = entry + 1 == node.entry_count();
            let changed = content.filter(|_| entry == from);
            let content = changed.unwrap_or(&old);
            let after = before + content.bytes_in_node(node.level());
            let hash = self.window.push(content, true);
            let ends = self.rule.ends_node(entry + 1, hash, before, after);
            // A level's last node ends in any case.
            if ends != is_end && !(is_end && is_last) {
                return false;
            }
            if changed.is_none() {
                self.passed_count += 1;
                self.passed_bytes += content.bytes() as u64;
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

/// Whether surely nothing that follows the entry, nor its new content, has an equal in a window
/// that has the entry: then all of them have their own hashes, with its new content as with its old
/// one, and only that of the entry changes.
fn is_alone(node: &SequenceNode, entry: usize, content: &Entry<'_>) -> bool {
    // The windows of the entries up to `last` have the entry; the first of these begins behind
    // `first`.
    const NEAR: usize = WINDOW_ITEMS - 1;
    let (first, last) = (entry.wrapping_sub(NEAR), entry + NEAR);
    if entry < NEAR || node.entry_count() <= last {
        return false;
    }
    let mark = |entry: &Entry<'_>| {
        let mark = entry.reference.and_then(|name| name.first_chunk());
        mark.map(|mark| u32::from_le_bytes(*mark))
    };
    let Some(new) = mark(content) else { return false };
    let mut marks = [0; 2 * NEAR + 1];
    for (place, entry) in marks.iter_mut().zip(node.entries(first)) {
        let Some(mark) = mark(&entry) else { return false };
        *place = mark;
    }
    // Without branches: compared several at a time.
    let has = |marks: &[u32], mark: u32| marks.iter().fold(false, |has, it| has | (*it == mark));
    // Those before the entry have windows without it.
    !has(&marks, new) && !(NEAR + 1..marks.len()).any(|at| has(&marks[at - NEAR..at], marks[at]))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use frond_store::memory::MemoryStore;
    use frond_testkit::Random;
    use frond_testkit::random::{assert_met, for_seeds};

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

    /// Goal: an exchange gives what a fresh build gives, or none; and gives it mostly, where items
    /// differ.
    #[test]
    fn an_exchange_gives_the_root_of_a_fresh_build() {
        let mut done_count = 0;
        for_seeds(200, |mut random| {
            let store = MemoryStore::new();
            // In the larger nodes most entries have all that shares a window with them beside them.
            let chunk_bytes_target = *random.choose(&[512, 4096]);
            let salt = random.next();
            let format = TreeFormat { chunk_bytes_target, inline_bytes_max: 128, salt };
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
                done_count += usize::from(kinds > 20 && found.is_some());
            }
        });
        assert_met("exchanges", done_count, 500);
    }
}
