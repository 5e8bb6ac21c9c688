//! A run: recent writes of one tree, immutable, in the store.
//!
//! *Invariants*
//! 1. A run holds, for every key that was written in `after < sequence <= up_to`, the newest of
//!    these edits, and nothing else. So laying it over the tree's content at any moment from
//!    `after` to `up_to` gives the content at `up_to`.
//! 2. It is a prolly map of a format that follows from the base's ([`format_of_run`]): values lie
//!    where they would in the base, so that a fold moves no value. A deletion is an entry with
//!    [`DELETION_FLAG`] and an empty value.
//! 3. The filter holds every key of the run.
//!
//! Its nodes are put as [`Lifetime::Brief`]; what its values refer to as [`Lifetime::Working`],
//! since the base will refer to the same chunks. The filter is read when the run is first asked,
//! and stays in memory as long as the run is open.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use frond_store::{Chunk, ChunkHash, ChunkKind, ChunkStore, Lifetime};
use frond_tree::{
    Bounds, CachedLevels, Content, Cursor, Direction, Entry, Tree, TreeError, TreeFormat, Value,
};

use super::filter::{Filter, KeyHash};
use crate::background::throttle::yielding;
use crate::background::throttled_store::ThrottledStore;
use crate::entry::OverlayEntry;
use crate::ids::Sequence;

/// The one flag of a value that is the engine's: in a run, it marks a deletion.
pub(crate) const DELETION_FLAG: u8 = 0x80;

/// The number of reads of a tree that are counted while a run is its newest: then it is read much.
pub(crate) const READS_COUNTED: u32 = 64;

/// The bytes that count for an entry besides its key and value: its share of a node.
pub(crate) const RUN_ENTRY_OVERHEAD_BYTES: u64 = 8;

/// The newest edits of one tree's keys in a stretch of time.
pub(crate) struct Run {
    /// The edits by key.
    pub tree: CachedLevels,
    /// The blob with the filter.
    pub filter: ChunkHash,
    /// The edits are younger than this.
    pub after: Sequence,
    /// The Sequence that it is not younger than.
    pub up_to: Sequence,
    /// The number of keys.
    pub count: u64,
    /// Bytes of keys and values, those out of line too, and something for each entry.
    pub bytes: u64,
    loaded: OnceLock<Filter>,
    /// The number of times the tree was read while this was its newest run, as far as that is
    /// counted.
    reads: AtomicU32,
}

impl PartialEq for Run {
    fn eq(&self, other: &Run) -> bool {
        let identity = |run: &Run| (*run.tree, run.filter, run.after, run.up_to);
        identity(self) == identity(other)
    }
}

impl Eq for Run {}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "run of {} keys ({}, {}]", self.count, self.after.0, self.up_to.0)
    }
}

impl Run {
    /// A run that is in the store.
    pub fn stored(
        root: ChunkHash,
        base_format: TreeFormat,
        filter: ChunkHash,
        (after, up_to): (Sequence, Sequence),
        count: u64,
        bytes: u64,
    ) -> Run {
        let tree = CachedLevels::new(Tree { root, format: format_of_run(base_format) });
        let (loaded, reads) = Default::default();
        Run { tree, filter, after, up_to, count, bytes, loaded, reads }
    }

    /// Puts a run over a base of `base_format`: of `entries`, whose keys ascend strictly; `None` if
    /// there are none. Chunks are put, not synced.
    ///
    /// # Errors
    /// The error of `entries`; [`TreeError::OutOfOrder`] if their keys don't ascend;
    /// [`TreeError::Store`] if the store takes no chunks.
    pub fn build(
        store: &dyn ChunkStore,
        base_format: TreeFormat,
        (after, up_to): (Sequence, Sequence),
        entries: &mut dyn Iterator<Item = Result<OverlayEntry, TreeError>>,
    ) -> Result<Option<Run>, TreeError> {
        let mut hashes: Vec<KeyHash> = Vec::new();
        let mut marked = yielding(entries).map(|entry| {
            let (key, value) = entry?;
            hashes.push(KeyHash::new(&key));
            Ok(Entry { key, value: value.unwrap_or_else(deletion) })
        });
        let format = format_of_run(base_format);
        let tree = Tree::build(&ThrottledStore::for_run(store), format, &mut marked)?;
        if hashes.is_empty() {
            return Ok(None);
        }
        let filter = Chunk::new(ChunkKind::Blob, &[], &Filter::build(&hashes));
        store.put_many_for(Lifetime::Brief, std::slice::from_ref(&filter))?;
        let summary = tree.summary(store)?;
        let bytes = summary.key_bytes.saturating_add(summary.value_bytes);
        let overhead = summary.count.saturating_mul(RUN_ENTRY_OVERHEAD_BYTES);
        let run = Run {
            tree: CachedLevels::new(tree),
            filter: filter.hash(),
            after,
            up_to,
            count: summary.count,
            bytes: bytes.saturating_add(overhead),
            loaded: OnceLock::new(),
            reads: AtomicU32::new(0),
        };
        run.keep_filter(&filter)?;
        Ok(Some(run))
    }

    /// Returns the run's entry of `key`: nothing, a value, or a deletion.
    ///
    /// # Errors
    /// [`TreeError::Store`] or [`TreeError::Damaged`] if the filter or a node can't be read.
    pub fn get(
        &self,
        store: &dyn ChunkStore,
        key: &[u8],
        hash: KeyHash,
    ) -> Result<Option<Option<Value>>, TreeError> {
        if !self.filter(store)?.may_hold(hash) {
            return Ok(None);
        }
        Ok(self.tree.get(store, key)?.map(unmarked))
    }

    /// Notes a read of the tree whose newest run this is.
    pub fn note_read(&self) {
        // Processors needn't write what all of them read.
        if self.read_count() < READS_COUNTED {
            self.reads.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns how often the tree was read while this was its newest run; [`READS_COUNTED`] or a
    /// few more if that was more often.
    pub fn read_count(&self) -> u32 {
        self.reads.load(Ordering::Relaxed)
    }

    /// The OR of the flags of all values.
    ///
    /// # Errors
    /// [`TreeError::Store`] or [`TreeError::Damaged`] if the root can't be read.
    pub fn flags(&self, store: &dyn ChunkStore) -> Result<u8, TreeError> {
        Ok(self.tree.flags(store)? & !DELETION_FLAG)
    }

    /// Checks invariants 2 and 3, and what is counted.
    ///
    /// # Errors
    /// [`TreeError::Damaged`] names what doesn't hold; [`TreeError::Store`] if a chunk can't be
    /// read.
    pub fn check(&self, store: &Arc<dyn ChunkStore>) -> Result<(), TreeError> {
        self.tree.check(&**store)?;
        let damaged = |what: String| TreeError::Damaged { hash: self.tree.root, what };
        let filter = self.filter(&**store)?;
        let mut count = 0;
        for entry in self.tree.range(store, Bounds::all(), Direction::Ascending) {
            let entry = entry?;
            count += 1;
            if !filter.may_hold(KeyHash::new(&entry.key)) {
                return Err(damaged("a key that the filter of the run lacks".to_owned()));
            }
            if entry.value.flags & DELETION_FLAG != 0 && entry.value != deletion() {
                return Err(damaged("a deletion with a value".to_owned()));
            }
        }
        if count == self.count { Ok(()) } else { Err(damaged(format!("a run of {count} keys"))) }
    }

    /// Memory that the filter takes now.
    pub fn filter_bytes(&self) -> u64 {
        self.loaded.get().map_or(0, Filter::bytes)
    }

    fn filter(&self, store: &dyn ChunkStore) -> Result<&Filter, TreeError> {
        match self.loaded.get() {
            Some(filter) => Ok(filter),
            None => self.keep_filter(&store.get(self.filter)?),
        }
    }

    fn keep_filter(&self, chunk: &Chunk) -> Result<&Filter, TreeError> {
        let opened = Filter::open(chunk.payload_bytes());
        let filter = opened.filter(|_| chunk.kind() == ChunkKind::Blob).ok_or_else(|| {
            TreeError::Damaged { hash: self.filter, what: "not a run's filter".to_owned() }
        })?;
        Ok(self.loaded.get_or_init(|| filter))
    }
}

/// The format of runs over a base of `base_format`. Runs are no part of history, and are read in
/// order to be folded: small nodes would only cost.
pub(crate) fn format_of_run(base_format: TreeFormat) -> TreeFormat {
    base_format.for_passing()
}

fn deletion() -> Value {
    Value { flags: DELETION_FLAG, content: Content::Inline(Bytes::new()) }
}

fn unmarked(value: Value) -> Option<Value> {
    (value.flags & DELETION_FLAG == 0).then_some(value)
}

/// A range of a run; owns what it needs.
pub(crate) struct RunCursor(Cursor);

impl RunCursor {
    /// Opens a cursor.
    pub fn new(
        run: &Run,
        store: &Arc<dyn ChunkStore>,
        bounds: Bounds,
        direction: Direction,
    ) -> RunCursor {
        RunCursor(run.tree.range(store, bounds, direction))
    }
}

impl Iterator for RunCursor {
    type Item = Result<OverlayEntry, TreeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.0.next()?;
        Some(entry.map(|entry| (entry.key, unmarked(entry.value))))
    }
}

#[cfg(test)]
mod tests {
    use frond_store::memory::MemoryStore;

    use super::*;

    const FORMAT: TreeFormat =
        TreeFormat { chunk_bytes_target: 512, inline_bytes_max: 64, salt: 1 };

    fn build(entries: &[OverlayEntry]) -> (Arc<dyn ChunkStore>, Option<Run>) {
        let store: Arc<dyn ChunkStore> = MemoryStore::new();
        let times = (Sequence(3), Sequence(9));
        let entries = &mut entries.iter().cloned().map(Ok);
        let run = Run::build(&*store, FORMAT, times, entries).unwrap();
        (store, run)
    }

    fn key(number: u32) -> Bytes {
        Bytes::from(format!("{number:06}"))
    }

    #[test]
    fn a_run_gives_back_values_and_deletions() {
        let value =
            |number: u32| Value { flags: 2, ..Value::inline(vec![7; number as usize % 200]) };
        let entries: Vec<OverlayEntry> = (0..1000)
            .map(|number| (key(number * 2), (number % 3 > 0).then(|| value(number))))
            .collect();
        let (store, run) = build(&entries);
        let run = run.unwrap();
        assert_eq!((run.count, run.flags(&*store).unwrap()), (1000, 2));
        // As a restart finds it: the filter is read when it is needed.
        let times = (run.after, run.up_to);
        let again = Run::stored(run.tree.root, FORMAT, run.filter, times, run.count, run.bytes);
        assert_eq!((again.filter_bytes(), &again), (0, &run));
        for (position, (key, written)) in entries.iter().enumerate() {
            let found = again.get(&*store, key, KeyHash::new(key)).unwrap().unwrap();
            let read = |value: &Value| value.read(&*store).unwrap();
            assert_eq!(found.as_ref().map(read), written.as_ref().map(read), "{position}");
        }
        assert_eq!(again.get(&*store, b"000001", KeyHash::new(b"000001")).unwrap(), None);
        assert!(again.filter_bytes() > 0);
        let cursor = RunCursor::new(&run, &store, Bounds::all(), Direction::Descending);
        let found: Vec<bool> = cursor.map(|entry| entry.unwrap().1.is_some()).collect();
        let expected: Vec<bool> = entries.iter().rev().map(|(_, value)| value.is_some()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn no_entries_make_no_run_and_a_wrong_filter_is_damage() {
        assert!(build(&[]).1.is_none());
        let (store, run) = build(&[(key(1), None)]);
        let run = run.unwrap();
        let times = (run.after, run.up_to);
        let wrong = Run::stored(run.tree.root, FORMAT, run.tree.root, times, run.count, run.bytes);
        let error = wrong.get(&*store, b"000001", KeyHash::new(b"000001")).unwrap_err();
        assert!(matches!(error, TreeError::Damaged { .. }), "{error}");
    }
}
