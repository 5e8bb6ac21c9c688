//! The entries of a level that stand before a place, and those behind it, in whichever nodes they
//! are.

use frond_store::ChunkStore;

use crate::error::TreeError;
use crate::sequence::node::SequenceNode;
use crate::sequence::window::Window;

/// Nodes from the root down, each with the entry that leads to the next one.
pub(super) type Path = [(SequenceNode, usize)];

/// Fills an empty window of `level` with what the next entry needs of those before it: under
/// `path`, before its entries.
pub(super) fn fill_window(
    store: &dyn ChunkStore,
    path: &Path,
    level: u8,
    window: &mut Window,
) -> Result<(), TreeError> {
    let mut before = Before { store, level, window, items: Vec::new(), bytes: 0 };
    for (node, entry) in path.iter().rev() {
        before.collect(node, *entry)?;
    }
    let Before { window, items, .. } = before;
    for (hash, bytes) in items.into_iter().rev() {
        window.push_hashed(hash, bytes, true);
    }
    Ok(())
}

/// The entries of a level that stand before a node, the last one first: those that a window needs
/// beside its newest item.
struct Before<'a> {
    store: &'a dyn ChunkStore,
    level: u8,
    window: &'a mut Window,
    /// Hashes and bytes.
    items: Vec<(u64, u64)>,
    bytes: u64,
}

impl Before<'_> {
    /// Collects those under the entries of `node` before `end`.
    fn collect(&mut self, node: &SequenceNode, end: usize) -> Result<(), TreeError> {
        for entry in (0..end).rev() {
            if self.window.is_filled_by(self.items.len(), self.bytes) {
                break;
            }
            if node.level() == self.level {
                let content = node.entry(entry);
                self.bytes += content.bytes() as u64;
                self.items.push((self.window.hash(&content), content.bytes() as u64));
            } else {
                let child = node.load_child(self.store, entry)?;
                self.collect(&child, child.entry_count())?;
            }
        }
        Ok(())
    }
}

/// The way to the node that follows in its level on the one that `path` leads to, with its first
/// entry; `None` if that is the last.
pub(super) fn next_node(
    store: &dyn ChunkStore,
    path: &Path,
) -> Result<Option<Vec<(SequenceNode, usize)>>, TreeError> {
    let Some((_, above)) = path.split_last() else { return Ok(None) };
    let Some(turn) = above.iter().rposition(|(node, entry)| entry + 1 < node.entry_count()) else {
        return Ok(None);
    };
    let mut next = above[..=turn].to_vec();
    next[turn].1 += 1;
    while next.len() < path.len() {
        let (node, entry) = &next[next.len() - 1];
        let child = node.load_child(store, *entry)?;
        next.push((child, 0));
    }
    Ok(Some(next))
}
