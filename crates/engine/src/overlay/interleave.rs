//! Reads several sources of recent writes as one ordered stream.
//!
//! Each source gives a key at most once, in the same direction; an earlier source is newer and
//! hides the same key in later ones. Deletions come out too: a caller that lays the stream over a
//! base needs them. Nothing is read before the first entry is asked for, and nothing follows an
//! error.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use frond_tree::{Bounds, Direction, TreeError};

use super::memtable::{Memtable, Window};
use super::run::RunCursor;
use crate::entry::OverlayEntry;
use crate::ids::TreeId;

/// First and last size of the batches in which a memtable is read: a short range copies little, a
/// long one searches seldom.
const BATCH_COUNT_FIRST: usize = 16;
const BATCH_COUNT_MAX: usize = 512;

/// A source of recent writes.
pub(crate) enum Source {
    /// Copied writes, in the cursor's direction.
    Copied(VecDeque<OverlayEntry>),
    /// A memtable, read batch by batch.
    Memtable(MemtableCursor),
    /// A run.
    Run(RunCursor),
}

impl Source {
    fn next(&mut self) -> Result<Option<OverlayEntry>, TreeError> {
        match self {
            Source::Copied(entries) => Ok(entries.pop_front()),
            Source::Memtable(cursor) => Ok(cursor.next()),
            Source::Run(cursor) => cursor.next().transpose(),
        }
    }
}

/// A range of one tree in a memtable; owns what it needs.
pub(crate) struct MemtableCursor {
    memtable: Arc<Memtable>,
    tree: TreeId,
    /// The bounds that remain beyond `batch`.
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

    /// The next entry.
    pub fn next(&mut self) -> Option<OverlayEntry> {
        if self.batch.is_empty() && !self.exhausted {
            self.fill();
        }
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
///
/// A *tournament* finds the next of many sources with a comparison a level: leaf `n + i` of a
/// complete binary tree stands for the `i`th of `n` heads, each node above says which head wins
/// below it. Where a head has changed, only the path above its leaf is played again (Knuth, The Art
/// of Computer Programming 3, section 5.4.1).
pub(crate) struct Interleave {
    /// Sources not yet begun, the newest first; empty once `heads` is filled.
    unread: Vec<Source>,
    /// The newest first.
    heads: Vec<Head>,
    /// The position in `heads` of its winner for each node but the leaves; the root is node 1.
    winners: Vec<usize>,
    direction: Direction,
}

/// A source and the entry that it gives next; `None` once it has ended.
struct Head {
    entry: Option<OverlayEntry>,
    source: Source,
}

impl Interleave {
    /// `sources` stand the newest first.
    pub fn new(sources: Vec<Source>, direction: Direction) -> Interleave {
        Interleave { unread: sources, heads: Vec::new(), winners: Vec::new(), direction }
    }

    /// The key that comes next.
    ///
    /// # Errors
    /// The error of a source at its first or next entry.
    pub fn peek_key(&mut self) -> Result<Option<Bytes>, TreeError> {
        self.begin()?;
        Ok(self.next_head().map(|(_, key)| key.clone()))
    }

    /// Fills the heads, the first time.
    fn begin(&mut self) -> Result<(), TreeError> {
        if self.unread.is_empty() {
            return Ok(());
        }
        let mut heads = Vec::with_capacity(self.unread.len());
        for mut source in std::mem::take(&mut self.unread) {
            if let Some(entry) = source.next()? {
                heads.push(Head { entry: Some(entry), source });
            }
        }
        self.heads = heads;
        self.winners = vec![0; self.heads.len()];
        for node in (1..self.heads.len()).rev() {
            self.play(node);
        }
        Ok(())
    }

    /// The newest head among those whose key comes next, and that key.
    fn next_head(&self) -> Option<(usize, &Bytes)> {
        let position = if self.heads.len() > 1 { self.winners[1] } else { 0 };
        let entry = self.heads.get(position)?.entry.as_ref();
        entry.map(|(key, _)| (position, key))
    }

    /// The winner of `node`, which may be a leaf.
    fn winner(&self, node: usize) -> usize {
        node.checked_sub(self.heads.len()).unwrap_or_else(|| self.winners[node])
    }

    /// Finds the winner of a node that is no leaf, those below it being right.
    fn play(&mut self, node: usize) {
        let (left, right) = (self.winner(2 * node), self.winner(2 * node + 1));
        let key = |position: usize| self.heads[position].entry.as_ref().map(|(key, _)| key);
        let left_wins = match (key(left), key(right)) {
            (Some(left_key), Some(right_key)) => {
                precedes(self.direction, left_key, right_key)
                    || (left < right && left_key == right_key)
            }
            (left_key, _) => left_key.is_some(),
        };
        self.winners[node] = if left_wins { left } else { right };
    }

    /// Takes a head's entry; its source's next one takes the place.
    fn take(&mut self, position: usize) -> Result<Option<OverlayEntry>, TreeError> {
        let head = &mut self.heads[position];
        let following = head.source.next()?;
        let taken = std::mem::replace(&mut head.entry, following);
        let mut node = (self.heads.len() + position) / 2;
        while node > 0 {
            self.play(node);
            node /= 2;
        }
        Ok(taken)
    }

    fn step(&mut self) -> Result<Option<OverlayEntry>, TreeError> {
        self.begin()?;
        let Some((newest, _)) = self.next_head() else { return Ok(None) };
        let taken = self.take(newest)?;
        let key = taken.as_ref().map(|(key, _)| key);
        while let Some((older, hidden)) = self.next_head()
            && Some(hidden) == key
        {
            self.take(older)?;
        }
        Ok(taken)
    }
}

impl Iterator for Interleave {
    type Item = Result<OverlayEntry, TreeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let stepped = self.step();
        if stepped.is_err() {
            self.heads.clear();
        }
        stepped.transpose()
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

    use frond_store::ChunkStore;
    use frond_store::memory::MemoryStore;
    use frond_testkit::random::for_seeds;
    use frond_tree::{TreeFormat, Value};

    use super::*;
    use crate::ids::Sequence;
    use crate::log::record::Record;
    use crate::overlay::run::Run;

    const TREE: TreeId = TreeId(9);

    fn cursor(memtable: &Arc<Memtable>, direction: Direction) -> Source {
        let window = Window { after: Sequence::ZERO, up_to: Sequence(u64::MAX) };
        let all = Bounds::all();
        Source::Memtable(MemtableCursor::new(Arc::clone(memtable), TREE, all, direction, window))
    }

    #[test]
    fn newer_sources_hide_older_ones_in_both_directions() {
        for_seeds(40, |mut random| {
            let store: Arc<dyn ChunkStore> = MemoryStore::new();
            let mut model: BTreeMap<Bytes, Option<Value>> = BTreeMap::new();
            let mut layers: Vec<(Arc<Memtable>, Option<Run>)> = Vec::new();
            let mut sequence = 0;
            for _ in 0..1 + random.below(12) {
                let memtable = Arc::new(Memtable::default());
                for _ in 0..random.below(300) {
                    sequence += 1;
                    let key = Bytes::from(format!("{:03}", random.below(200)));
                    let value = (!random.one_in(4)).then(|| Value::inline(random.bytes(3)));
                    model.insert(key.clone(), value.clone());
                    let writes = vec![(TREE, vec![(key, value)])];
                    let record = Record { writes, ..Record::default() };
                    memtable.insert(Sequence(sequence), &record.encode().into());
                }
                let times = (Sequence::ZERO, Sequence(sequence));
                let sources = vec![cursor(&memtable, Direction::Ascending)];
                let mut entries = Interleave::new(sources, Direction::Ascending);
                let format = TreeFormat { chunk_bytes_target: 512, ..TreeFormat::new(3) };
                let run = Run::build(&*store, format, times, &mut entries).unwrap();
                layers.push((memtable, run.filter(|_| random.one_in(2))));
            }
            for direction in [Direction::Ascending, Direction::Descending] {
                let sources = layers.iter().rev().map(|(memtable, run)| match run {
                    Some(run) => Source::Run(RunCursor::new(run, &store, Bounds::all(), direction)),
                    None => cursor(memtable, direction),
                });
                let interleave = Interleave::new(sources.collect(), direction);
                let mut found: Vec<_> = interleave.map(|entry| entry.unwrap()).collect();
                if direction == Direction::Descending {
                    found.reverse();
                }
                let expected: Vec<_> = model.clone().into_iter().collect();
                assert_eq!(found, expected);
            }
        });
    }
}
