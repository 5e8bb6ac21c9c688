//! Walking the entries of one tree that an access asks for.
//!
//! 1. Ranges are read one after the other; one that is a single whole key is looked up.
//! 2. In an index's keys the parts behind the ranges are checked. A key that fails is passed over;
//!    when [`MISSES_MAX`] fail in a row, the walk goes on behind what can't fit, by a new cursor.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use frond_doc::key;
use frond_query::examined;
use frond_query::index::IndexShape;
use frond_query::planner::{KeyPlacement, PartCheck};
use frond_tree::{Bounds, Direction, Entry};

use crate::collection::covered::Cover;
use crate::collection::plan::{AccessPath, Source};
use crate::definition::IndexSpec;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::reader::{Entries, Reader};
use crate::request_profile::ScanSummary;
use crate::schema::{Collection, Index, TreeRef};
use crate::timeseries;

/// The number of ranges, thousands of which a filter may make, between two checks whether to stop.
const CHECK_COUNT: usize = 64;

/// A walk of more ranges isn't cut into parts.
const CUT_RANGES_MAX: usize = 64;

/// Reading on is cheaper than a new cursor for so many entries.
const MISSES_MAX: usize = 8;

/// A walk over the entries of one tree.
pub(crate) struct Walk {
    tree: TreeRef,
    /// The index, if it isn't the documents' own tree.
    pub index: Option<Index>,
    /// The parts of keys that are places of a time series, behind their first byte.
    parts_of_place: Option<Arc<IndexShape>>,
    /// Whether it is shown as a walk of the index of `_id`.
    pub is_of_id: bool,
    /// Whether entries are the places of a capped collection's documents.
    pub is_natural: bool,
    /// The fields of documents that the entries hold.
    pub cover: Cover,
    /// The flags of the index's entries.
    pub flags: u8,
    /// The bounds that keys must lie between besides.
    pub between: Option<Bounds>,
    ranges: VecDeque<Bounds>,
    checks: Vec<PartCheck>,
    direction: Direction,
    /// The range that is read, and what is left of it.
    current: Option<(Bounds, Entries)>,
    misses: usize,
    /// Entries of the index that were read.
    pub keys_examined: u64,
    /// Documents that were read.
    pub documents_examined: u64,
    /// Documents that came out.
    pub returned: u64,
}

/// A callback for an entry's key, and the value of the entry if its key was cut; says whether to go
/// on.
pub type VisitKey<'v> = dyn FnMut(&[u8], Option<Bytes>) -> Result<bool, Error> + 'v;

/// The counts of a walk, as they are shown.
#[derive(Clone, Copy, Default)]
pub(crate) struct WalkCounts {
    /// Entries of an index.
    pub keys: u64,
    /// Documents that were read.
    pub documents: u64,
    /// Documents that came out.
    pub returned: u64,
}

impl Walk {
    /// Begins to walk along `path`, which was chosen for `collection`.
    pub fn new(collection: &Collection, path: AccessPath) -> Walk {
        let index = match path.source {
            Source::Index(position) => Some(collection.indexes[position].clone()),
            Source::Collection | Source::Id | Source::Natural | Source::Place => None,
        };
        let series = collection.series.as_ref().filter(|_| path.source == Source::Place);
        Walk {
            parts_of_place: series.map(|series| Arc::clone(&series.shape)),
            tree: path.tree(collection),
            is_of_id: path.source == Source::Id,
            is_natural: path.source == Source::Natural,
            index,
            cover: path.cover,
            flags: path.flags,
            between: path.between,
            ranges: path.ranges.into(),
            checks: path.checks,
            direction: path.direction,
            current: None,
            misses: 0,
            keys_examined: 0,
            documents_examined: 0,
            returned: 0,
        }
    }

    /// Another walk along the entries that this one, which hasn't begun, will give.
    pub fn twin(&self) -> Walk {
        Walk {
            tree: self.tree,
            index: self.index.clone(),
            parts_of_place: self.parts_of_place.clone(),
            is_of_id: self.is_of_id,
            is_natural: self.is_natural,
            cover: self.cover.clone(),
            flags: self.flags,
            between: self.between.clone(),
            ranges: self.ranges.clone(),
            checks: self.checks.clone(),
            direction: self.direction,
            current: None,
            misses: 0,
            keys_examined: 0,
            documents_examined: 0,
            returned: 0,
        }
    }

    /// This walk, which hasn't begun, with what `before` has counted.
    pub fn counting_on(self, before: &Walk) -> Walk {
        Walk {
            keys_examined: before.keys_examined,
            documents_examined: before.documents_examined,
            returned: before.returned,
            ..self
        }
    }

    /// Returns how many entries the walk, which hasn't begun, will give, if the tree counts them:
    /// O(log n) a range, and what the overlay holds in the ranges.
    ///
    /// # Errors
    /// As [`Reader::count_range`]; what `interrupt` fails with.
    pub fn count(&self, reader: &Reader<'_>, interrupt: &Interrupt) -> Result<Option<u64>, Error> {
        // The place of an erased document has an entry.
        if !self.checks.is_empty() || self.is_natural || self.current.is_some() {
            return Ok(None);
        }
        let mut count = 0_u64;
        for (position, range) in self.ranges.iter().enumerate() {
            if position.is_multiple_of(CHECK_COUNT) {
                interrupt.check()?;
            }
            count = count.saturating_add(reader.count_range(self.tree, range)?);
        }
        Ok(Some(count))
    }

    /// The walk, which hasn't begun, in parts that follow one another and have about equally many
    /// entries; as many as `wanted` says for how many entries there are. `None` if that isn't worth
    /// it, or it can't be cut.
    ///
    /// # Errors
    /// As [`Reader::estimate_range`].
    pub fn parts(
        &self,
        reader: &Reader<'_>,
        wanted: impl FnOnce(u64) -> usize,
    ) -> Result<Option<Vec<Walk>>, Error> {
        if self.is_natural || self.current.is_some() || CUT_RANGES_MAX < self.ranges.len() {
            return Ok(None);
        }
        let mut counts = Vec::with_capacity(self.ranges.len());
        for range in &self.ranges {
            counts.push(match self.as_point(range) {
                Some(_) => 1,
                None => reader.estimate_range(self.tree, range)?,
            });
        }
        let total: u64 = counts.iter().sum();
        let part_count = wanted(total);
        if part_count < 2 || total == 0 {
            return Ok(None);
        }
        let share = |count: u64| u128::from(count) * part_count as u128 / u128::from(total);
        let mut parts: Vec<VecDeque<Bounds>> = vec![VecDeque::new(); part_count];
        let mut before = 0;
        for (range, count) in self.ranges.iter().zip(counts) {
            let mut pieces =
                reader.split(self.tree, range, usize::try_from(share(count) + 1).unwrap_or(1))?;
            if self.direction == Direction::Descending {
                pieces.reverse();
            }
            let piece_count = pieces.len() as u64;
            for (position, piece) in pieces.into_iter().enumerate() {
                let begins = before + count * position as u64 / piece_count;
                let part = usize::try_from(share(begins)).unwrap_or(usize::MAX);
                parts[part.min(part_count - 1)].push_back(piece);
            }
            before += count;
        }
        parts.retain(|ranges| !ranges.is_empty());
        let walk = |ranges| Walk { ranges, ..self.twin() };
        Ok((1 < parts.len()).then(|| parts.into_iter().map(walk).collect()))
    }

    /// Returns what was read, as it is shown: a document read by its `_id`, or by its place in a
    /// time series, counts as a key, too.
    pub fn examined(&self) -> WalkCounts {
        let has_keys = self.is_of_id || self.parts_of_place.is_some();
        let keys = if has_keys { self.documents_examined } else { self.keys_examined };
        WalkCounts { keys, documents: self.documents_examined, returned: self.returned }
    }

    /// Whether the walk, which hasn't begun, gives the document of one `_id`.
    pub fn is_of_one_id(&self) -> bool {
        self.is_of_id
            && self.ranges.len() == 1
            && self.ranges.front().is_some_and(|range| self.as_point(range).is_some())
    }

    /// Counts for the request what was read since it had read so much.
    pub fn count_since(&self, before: WalkCounts) {
        let now = self.examined();
        examined::add_scanned(
            now.keys - before.keys,
            now.documents - before.documents,
            now.returned - before.returned,
        );
    }

    /// Returns its form in a plan.
    pub fn summary(&self, collection: &Collection) -> ScanSummary {
        let series = collection.series.as_ref().filter(|_| self.parts_of_place.is_some());
        let key = match (&self.index, series) {
            (Some(index), _) => Some(index.spec.key.clone()),
            (None, Some(series)) => Some(series.index.key.clone()),
            (None, None) if self.is_of_id => Some(IndexSpec::of_id().key),
            (None, None) => None,
        };
        ScanSummary { stage: if key.is_some() { "IXSCAN" } else { "COLLSCAN" }, key }
    }

    /// Whether entries come in the order of their keys.
    pub fn is_ascending(&self) -> bool {
        self.direction == Direction::Ascending
    }

    /// The next entry that all checks let through.
    ///
    /// # Errors
    /// As [`Reader::range`]; `Damaged` if a key isn't one of the index.
    pub fn next(&mut self, reader: &Reader<'_>) -> Result<Option<Entry>, Error> {
        while let Some(entry) = self.step(reader)? {
            if self.index.is_some() {
                self.keys_examined += 1;
                examined::report(1, 0);
            }
            if self.checks.is_empty() || self.fits(reader, &entry.key)? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Shows the keys of the entries that are left, where none is checked, until `visit` answers
    /// false: a third of what entries of their own cost. Of keys that were cut also what the entry
    /// holds, which names the document.
    ///
    /// # Errors
    /// The error of `visit`; as [`Walk::next`].
    pub fn visit_keys(
        &mut self,
        reader: &Reader<'_>,
        visit: &mut VisitKey<'_>,
    ) -> Result<(), Error> {
        debug_assert!(self.checks.is_empty());
        let counted = u64::from(self.index.is_some());
        loop {
            if let Some((_, entries)) = &mut self.current {
                while entries.step()? {
                    let Some(entry) = entries.entry_ref() else { break };
                    self.keys_examined += counted;
                    examined::report(counted, 0);
                    let is_cut = self.index.as_ref().is_some_and(|it| it.is_cut(entry.key));
                    let whole = if is_cut { entries.entry() } else { None };
                    let content = whole.map(|whole| reader.read(&whole.value)).transpose()?;
                    if !visit(entry.key, content)? {
                        return Ok(());
                    }
                }
            }
            self.current = None;
            let Some(range) = self.ranges.pop_front() else { return Ok(()) };
            match self.as_point(&range) {
                Some(key) => {
                    if reader.get(self.tree, &key)?.is_some() {
                        self.keys_examined += counted;
                        examined::report(counted, 0);
                        if !visit(&key, None)? {
                            return Ok(());
                        }
                    }
                }
                None => {
                    let entries = reader.range(self.tree, range.clone(), self.direction)?;
                    self.current = Some((range, entries));
                }
            }
        }
    }

    /// Whether the entries' keys show which documents they are of, whatever they hold, and all of
    /// them are to be given.
    pub fn identifies_by_keys(&self) -> bool {
        let is_unique = self.index.as_ref().is_some_and(|index| index.spec.unique);
        !is_unique && !self.is_natural && self.checks.is_empty()
    }

    /// Whether the parts behind the ranges can't be checked in this key: it was cut.
    pub fn leaves_unchecked(&self, entry_key: &[u8]) -> bool {
        let is_cut = match &self.index {
            Some(index) => index.is_cut(entry_key),
            None => key::is_id_cut(entry_key),
        };
        !self.checks.is_empty() && is_cut
    }

    /// Returns the rest of the range of documents that is read, if nothing but the filter decides
    /// about them: the caller may then step through it by itself.
    pub fn documents_left(&mut self) -> Option<&mut Entries> {
        let is_bare = self.checks.is_empty() && self.between.is_none();
        let is_plain = self.index.is_none() && !self.is_natural && is_bare;
        self.current.as_mut().filter(|_| is_plain).map(|(_, entries)| entries)
    }

    /// Goes on behind all keys that begin with `prefix`.
    ///
    /// # Errors
    /// As [`Reader::range`].
    pub fn pass_over(&mut self, reader: &Reader<'_>, prefix: &[u8]) -> Result<(), Error> {
        self.seek(reader, prefix, None, self.direction == Direction::Descending)
    }

    fn step(&mut self, reader: &Reader<'_>) -> Result<Option<Entry>, Error> {
        loop {
            if let Some((_, entries)) = &mut self.current
                && let Some(entry) = entries.next()
            {
                return entry.map(Some);
            }
            self.current = None;
            let Some(range) = self.ranges.pop_front() else {
                return Ok(None);
            };
            if let Some(point) = self.as_point(&range) {
                if let Some(value) = reader.get(self.tree, &point)? {
                    return Ok(Some(Entry { key: point, value }));
                }
                continue;
            }
            let entries = reader.range(self.tree, range.clone(), self.direction)?;
            self.current = Some((range, entries));
        }
    }

    /// The key, if `range` is that of one whole key of a tree whose keys are no prefixes of one
    /// another: it can be looked up, which is cheaper than opening a cursor.
    fn as_point(&self, range: &Bounds) -> Option<Bytes> {
        if self.is_natural {
            return None;
        }
        let start = range.start.as_ref().filter(|_| range.is_of_prefix())?;
        // Ranges begin with no more than what is left of keys that are cut, whole ones apart.
        if start.len() > key::CUT_PREFIX_BYTES {
            return Some(start.clone());
        }
        let mut rest = &start[..];
        match &self.index {
            None => {
                key::skip(&mut rest, false).ok()?;
            }
            Some(index) if index.spec.unique => index.skip_key(&mut rest).ok()?,
            Some(_) => return None,
        }
        rest.is_empty().then(|| start.clone())
    }

    /// Whether the checks let `key` through. If they don't, the walk may move on.
    fn fits(&mut self, reader: &Reader<'_>, key: &[u8]) -> Result<bool, Error> {
        let (shape, is_cut, head_bytes) = match (&self.index, &self.parts_of_place) {
            (Some(index), _) => (&index.shape, index.is_cut(key), 0),
            (None, Some(shape)) => (shape, key::is_id_cut(key), timeseries::HEAD_BYTES),
            (None, None) => return Ok(true),
        };
        let backwards = self.direction == Direction::Descending;
        let key = key::known(key, is_cut);
        let mut rest = key.get(head_bytes..).unwrap_or_default();
        let mut checks = self.checks.iter().peekable();
        for (place, descending) in shape.parts().iter().enumerate() {
            let Some(check) = checks.peek() else { break };
            let before = key.len() - rest.len();
            let part = match key::skip(&mut rest, *descending) {
                Ok(part) => part,
                // Only the document decides.
                Err(_) if is_cut => break,
                Err(error) => return Err(Error::damaged(format!("key of an index: {error}"))),
            };
            if check.place != place {
                continue;
            }
            if let KeyPlacement::Outside(next) = check.standing(part, backwards) {
                self.misses += 1;
                if self.misses > MISSES_MAX {
                    let prefix = key[..before].to_vec();
                    self.seek(reader, &prefix, next, backwards)?;
                }
                return Ok(false);
            }
            checks.next();
        }
        self.misses = 0;
        Ok(true)
    }

    /// Goes on where, behind `prefix`, the next part fits that begins (backwards: ends) at `next`;
    /// behind all keys with that prefix if none does.
    fn seek(
        &mut self,
        reader: &Reader<'_>,
        prefix: &[u8],
        next: Option<Bytes>,
        backwards: bool,
    ) -> Result<(), Error> {
        self.misses = 0;
        let next_bytes = next.as_ref().map_or(0, Bytes::len);
        // Within what is left of keys that are cut no place can be named: the walk goes on here.
        if prefix.len() + next_bytes > key::CUT_PREFIX_BYTES {
            return Ok(());
        }
        let Some((range, _)) = self.current.take() else { return Ok(()) };
        let there = next.map(|next| Bytes::from([prefix, &next[..]].concat()));
        let left = match (backwards, there) {
            (false, Some(there)) => Bounds { start: Some(there), end: range.end },
            (false, None) => match Bounds::prefix(prefix).end {
                Some(behind) => Bounds { start: Some(behind), end: range.end },
                None => return Ok(()),
            },
            (true, Some(there)) => Bounds { start: range.start, end: Some(there) },
            (true, None) => {
                Bounds { start: range.start, end: Some(Bytes::copy_from_slice(prefix)) }
            }
        };
        if let (Some(start), Some(end)) = (&left.start, &left.end)
            && start >= end
        {
            return Ok(());
        }
        let entries = reader.range(self.tree, left.clone(), self.direction)?;
        self.current = Some((left, entries));
        Ok(())
    }
}
