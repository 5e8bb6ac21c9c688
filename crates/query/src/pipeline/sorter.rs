//! Sorting any number of documents by their keys' bytes, stable, in bounded memory.
//!
//! 1. Entries are copied into blocks ([`buffer`]) until they take the memory that is allowed; then
//!    they are sorted and written to a file, a *run* ([`run`]).
//! 2. [`FAN_IN`] runs of one level that follow one another are merged into one of the next level,
//!    so that few are ever read at once, and each entry is written once a level.
//! 3. In the end what is still in memory is written too if anything was, and the runs are
//!    interleaved: the least key first, of equal keys the one of the earlier run, so that equal
//!    documents keep their order.
//! 4. Where memory is short for all queries, what is sorted is written in any case, as one run: it
//!    may wait for a client for long, and takes a few kilobytes then.
//! 5. Where only the first so many are wanted, the worse half is dropped before anything is
//!    written, and what is no better than the worst of those that are left is not even copied.

mod buffer;
mod pieces;
mod run;

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use frond_doc::{Document, DocumentBuf};

use self::buffer::SortBuffer;
pub(super) use self::pieces::SortedPieces;
use self::run::{Run, RunWriter};
use super::spill::{Resources, Spill};
use crate::error::QueryError;

/// The number of runs that are merged at once: each takes a buffer.
const FAN_IN: usize = 32;
/// Documents that take less than this are sorted in memory, however short that is.
pub(super) const RESTING_BYTES_MIN: usize = 16 << 10;
/// The entries written between two checks whether to stop.
const CHECK_COUNT: usize = 1024;

/// A document and the key by which it is sorted.
type Entry = (Bytes, DocumentBuf);

/// Collects documents to be sorted.
pub struct Sorter<'r> {
    /// The stage that sorts, for messages.
    stage: &'static str,
    resources: &'r Resources,
    /// The number of documents that are wanted.
    wanted: usize,
    kept: SortBuffer,
    /// As many as wanted are known whose keys aren't above it: none from it on is wanted.
    bar: Option<Vec<u8>>,
    /// The runs in the order of their entries; levels never rise.
    runs: Vec<Run>,
}

impl<'r> Sorter<'r> {
    /// Sorts for `stage`; only the first `wanted` documents will be asked for.
    pub fn new(stage: &'static str, resources: &'r Resources, wanted: usize) -> Sorter<'r> {
        let kept = SortBuffer::new(resources.reservation());
        Sorter { stage, resources, wanted, kept, bar: None, runs: Vec::new() }
    }

    /// Takes a document.
    ///
    /// # Errors
    /// An error of writing a run; 292 if none may be written.
    pub fn add(&mut self, key: Bytes, document: DocumentBuf) -> Result<(), QueryError> {
        self.add_view(&key, document.view())
    }

    /// As [`add`](Self::add), of a document that is lent.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_view(&mut self, key: &[u8], document: Document<'_>) -> Result<(), QueryError> {
        if self.bar.as_ref().is_some_and(|bar| **bar <= *key) {
            return Ok(());
        }
        self.kept.push(key, document.as_bytes());
        if self.wanted.saturating_mul(2).max(64) <= self.kept.count() {
            self.sort();
        }
        if self.kept.check().is_ok() {
            return Ok(());
        }
        self.sort();
        match self.kept.check() {
            Ok(()) => Ok(()),
            Err(exceeded) => self.write_run(self.resources.spill_of(self.stage, exceeded)?),
        }
    }

    fn sort(&mut self) {
        self.kept.sort();
        if self.wanted < self.kept.count() {
            self.kept.truncate(self.wanted);
        }
        // There is no worst where nothing is wanted.
        if self.wanted == self.kept.count()
            && let Some(worst) = self.kept.last_key()
        {
            self.bar = Some(worst.to_vec());
        }
    }

    /// Writes what is kept, which is sorted.
    fn write_run(&mut self, spill: &Arc<dyn Spill>) -> Result<(), QueryError> {
        let mut writer = RunWriter::new(spill.create()?);
        for position in 0..self.kept.count() {
            if position.is_multiple_of(CHECK_COUNT) {
                self.resources.check()?;
            }
            let (key, document) = self.kept.entry(position);
            writer.add(key, document)?;
        }
        self.kept.clear();
        self.runs.push(writer.finish(0)?);
        while let Some(level) = self.full_level() {
            let runs = self.runs.split_off(self.runs.len() - FAN_IN);
            let merged = self.merge(runs, level + 1, spill)?;
            self.runs.push(merged);
        }
        Ok(())
    }

    /// Makes one run of several.
    fn merge(&self, runs: Vec<Run>, level: u32, spill: &Arc<dyn Spill>) -> Result<Run, QueryError> {
        let nothing = SortBuffer::new(self.resources.reservation());
        let merged = Sorted::of(runs, nothing, self.wanted)?;
        let mut writer = RunWriter::new(spill.create()?);
        for (count, entry) in merged.enumerate() {
            let (key, document) = entry?;
            if count.is_multiple_of(CHECK_COUNT) {
                self.resources.check()?;
            }
            writer.add(&key, document.as_bytes())?;
        }
        writer.finish(level)
    }

    /// The level of the last runs, if there are enough of it to be merged.
    fn full_level(&self) -> Option<u32> {
        let first = self.runs.len().checked_sub(FAN_IN)?;
        let level = self.runs.last()?.level();
        (self.runs[first].level() == level).then_some(level)
    }

    /// The documents in the order of their keys.
    ///
    /// # Errors
    /// An error of reading a run.
    pub fn finish(mut self) -> Result<Sorted, QueryError> {
        self.sort();
        let Some(spill) = &self.resources.spill else {
            return Sorted::of(self.runs, self.kept, self.wanted);
        };
        // The reader of what is sorted may need the memory: a window does, and a cursor stays open.
        let is_strained = self.resources.is_strained();
        if !self.runs.is_empty() || is_strained && RESTING_BYTES_MIN <= self.kept.bytes() {
            self.write_run(spill)?;
        }
        if is_strained && !self.runs.is_empty() {
            let runs = std::mem::take(&mut self.runs);
            let level = runs.iter().map(Run::level).max().unwrap_or(0);
            let one = match <[Run; 1]>::try_from(runs) {
                Ok([run]) => run,
                Err(runs) => self.merge(runs, level, spill)?,
            };
            self.runs.push(one.resting());
        }
        Sorted::of(self.runs, self.kept, self.wanted)
    }
}

/// The next entry of a run, the least first.
struct Head {
    entry: Entry,
    run: usize,
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        (&self.entry.0, self.run).cmp(&(&other.entry.0, other.run))
    }
}

/// A source of sorted entries.
enum Source {
    Run(Run),
    Sorted(Sorted),
}

impl Source {
    fn next(&mut self) -> Result<Option<Entry>, QueryError> {
        match self {
            Source::Run(run) => run.next(),
            Source::Sorted(sorted) => sorted.next().transpose(),
        }
    }
}

/// Sorted documents with their keys.
pub struct Sorted {
    /// Empty where there are no runs, since all is in `kept` then, or a single one.
    heap: BinaryHeap<Reverse<Head>>,
    runs: Vec<Source>,
    /// The documents in memory, if there are no runs.
    kept: Option<Arc<SortBuffer>>,
    /// The positions that didn't come out yet, of what is kept.
    positions: Range<usize>,
    left: usize,
}

impl Sorted {
    fn of(runs: Vec<Run>, kept: SortBuffer, wanted: usize) -> Result<Sorted, QueryError> {
        let runs = runs.into_iter().map(Source::Run).collect();
        let positions = 0..kept.count();
        Sorted::of_sources(runs, Some((Arc::new(kept), positions)), wanted)
    }

    /// The first `wanted` of what was sorted in parts that follow one another.
    ///
    /// # Errors
    /// An error of reading a run.
    pub fn interleaved(parts: Vec<Sorted>, wanted: usize) -> Result<Sorted, QueryError> {
        Sorted::of_sources(parts.into_iter().map(Source::Sorted).collect(), None, wanted)
    }

    fn of_sources(
        runs: Vec<Source>,
        kept: Option<(Arc<SortBuffer>, Range<usize>)>,
        wanted: usize,
    ) -> Result<Sorted, QueryError> {
        let (kept, positions) = kept.map_or((None, 0..0), |(kept, range)| (Some(kept), range));
        let mut sorted = Sorted { heap: BinaryHeap::new(), runs, kept, positions, left: wanted };
        if 1 < sorted.runs.len() {
            for run in 0..sorted.runs.len() {
                sorted.push_next(run)?;
            }
        }
        Ok(sorted)
    }

    fn push_next(&mut self, run: usize) -> Result<(), QueryError> {
        let entry = self.runs[run].next()?;
        self.heap.extend(entry.map(|entry| Reverse(Head { entry, run })));
        Ok(())
    }

    fn next_kept(&mut self) -> Option<Entry> {
        let kept = self.kept.as_ref()?;
        let (key, document) = kept.entry(self.positions.next()?);
        let document = DocumentBuf::from_validated(Bytes::copy_from_slice(document));
        Some((Bytes::copy_from_slice(key), document))
    }
}

impl Iterator for Sorted {
    type Item = Result<Entry, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        match self.runs.as_mut_slice() {
            [] => return self.next_kept().map(Ok),
            [run] => return run.next().transpose(),
            _ => {}
        }
        let Reverse(Head { entry, run }) = self.heap.pop()?;
        Some(self.push_next(run).map(|()| entry))
    }
}
