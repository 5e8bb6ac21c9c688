//! Several sources of recent writes read as one ordered stream.
//!
//! Each source gives a key at most once, in the same direction; an earlier source is newer and
//! hides the same key in later ones. Deletions come out too: whoever lays the stream over a base
//! needs them.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use frond_tree::{Bounds, Direction};

use super::memtable::{Memtable, OverlayEntry, Window};
use crate::ids::TreeId;

/// First and last size of the batches in which a memtable is read: a short range copies little, a
/// long one searches seldom.
const BATCH_COUNT_FIRST: usize = 16;
const BATCH_COUNT_MAX: usize = 512;

/// Where recent writes come from.
pub(crate) enum Source {
    /// Copied writes, in the cursor's direction.
    Copied(VecDeque<OverlayEntry>),
    /// A memtable, read batch by batch.
    Memtable(MemtableCursor),
}

impl Source {
    fn peek(&mut self) -> Option<&OverlayEntry> {
        match self {
            Source::Copied(entries) => entries.front(),
            Source::Memtable(cursor) => cursor.peek(),
        }
    }

    fn next(&mut self) -> Option<OverlayEntry> {
        match self {
            Source::Copied(entries) => entries.pop_front(),
            Source::Memtable(cursor) => cursor.next(),
        }
    }
}

/// A range of one tree in a memtable; owns what it needs.
pub(crate) struct MemtableCursor {
    memtable: Arc<Memtable>,
    tree: TreeId,
    /// What remains beyond `batch`.
    bounds: Bounds,
    direction: Direction,
    window: Window,
    batch: VecDeque<OverlayEntry>,
    batch_count: usize,
    exhausted: bool,
}

impl MemtableCursor {
    /// Opens a cursor.
    pub fn new(
        memtable: Arc<Memtable>,
        tree: TreeId,
        bounds: Bounds,
        direction: Direction,
        window: Window,
    ) -> MemtableCursor {
        MemtableCursor {
            memtable,
            tree,
            bounds,
            direction,
            window,
            batch: VecDeque::new(),
            batch_count: BATCH_COUNT_FIRST,
            exhausted: false,
        }
    }

    fn peek(&mut self) -> Option<&OverlayEntry> {
        if self.batch.is_empty() && !self.exhausted {
            self.fill();
        }
        self.batch.front()
    }

    fn next(&mut self) -> Option<OverlayEntry> {
        self.peek()?;
        self.batch.pop_front()
    }

    fn fill(&mut self) {
        let (tree, direction, count) = (self.tree, self.direction, self.batch_count);
        let (bounds, window) = (&self.bounds, self.window);
        let more = self.memtable.batch(tree, bounds, direction, window, count, &mut self.batch);
        self.exhausted = !more;
        self.batch_count = (count * 2).min(BATCH_COUNT_MAX);
        let Some((last, _)) = self.batch.back() else { return };
        match direction {
            Direction::Ascending => self.bounds.start = Some(successor(last)),
            Direction::Descending => self.bounds.end = Some(last.clone()),
        }
    }
}

/// The least key greater than `key`.
fn successor(key: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(key.len() + 1);
    bytes.extend_from_slice(key);
    bytes.push(0);
    bytes.into()
}

/// The sources as one stream.
pub(crate) struct Interleave {
    /// The newest first.
    sources: Vec<Source>,
    direction: Direction,
}

impl Interleave {
    /// `sources` stand the newest first.
    pub fn new(sources: Vec<Source>, direction: Direction) -> Interleave {
        Interleave { sources, direction }
    }

    /// The key that comes next.
    pub fn peek_key(&mut self) -> Option<Bytes> {
        let position = self.winner()?;
        self.sources[position].peek().map(|(key, _)| key.clone())
    }

    /// The position of the newest source among those whose key comes next. Forgets sources at
    /// their end.
    fn winner(&mut self) -> Option<usize> {
        self.sources.retain_mut(|source| source.peek().is_some());
        let direction = self.direction;
        let mut winner: Option<(usize, Bytes)> = None;
        for (position, source) in self.sources.iter_mut().enumerate() {
            let Some((key, _)) = source.peek() else { continue };
            if winner.as_ref().is_none_or(|(_, best)| precedes(direction, key, best)) {
                winner = Some((position, key.clone()));
            }
        }
        winner.map(|(position, _)| position)
    }
}

impl Iterator for Interleave {
    type Item = OverlayEntry;

    fn next(&mut self) -> Option<OverlayEntry> {
        let position = self.winner()?;
        let entry = self.sources[position].next()?;
        for source in &mut self.sources[position + 1..] {
            if source.peek().is_some_and(|(key, _)| *key == entry.0) {
                source.next();
            }
        }
        Some(entry)
    }
}

/// Whether `left` comes strictly before `right` in `direction`.
pub(crate) fn precedes(direction: Direction, left: &[u8], right: &[u8]) -> bool {
    match direction {
        Direction::Ascending => left < right,
        Direction::Descending => right < left,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use frond_testkit::random::for_seeds;
    use frond_tree::Value;

    use super::*;
    use crate::ids::Sequence;

    #[test]
    fn newer_sources_hide_older_ones_in_both_directions() {
        for_seeds(40, |mut random| {
            let mut model: BTreeMap<Bytes, Option<Value>> = BTreeMap::new();
            let mut memtables = Vec::new();
            let mut sequence = 0;
            for _ in 0..1 + random.below(4) {
                let memtable = Arc::new(Memtable::default());
                for _ in 0..random.below(300) {
                    sequence += 1;
                    let key = Bytes::from(format!("{:03}", random.below(200)));
                    let value = (!random.one_in(4)).then(|| Value::inline(random.bytes(3)));
                    model.insert(key.clone(), value.clone());
                    memtable.insert(TreeId(9), Sequence(sequence), &[(key, value)]);
                }
                memtables.push(memtable);
            }
            let window = Window { after: Sequence::ZERO, upto: Sequence(sequence) };
            for direction in [Direction::Ascending, Direction::Descending] {
                let sources = memtables.iter().rev().map(|memtable| {
                    let memtable = Arc::clone(memtable);
                    let all = Bounds::all();
                    let cursor = MemtableCursor::new(memtable, TreeId(9), all, direction, window);
                    Source::Memtable(cursor)
                });
                let mut found: Vec<_> = Interleave::new(sources.collect(), direction).collect();
                if direction == Direction::Descending {
                    found.reverse();
                }
                let expected: Vec<_> = model.clone().into_iter().collect();
                assert_eq!(found, expected);
            }
        });
    }
}
