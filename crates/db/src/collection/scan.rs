//! Running an access: entries walked, documents fetched or made of the entries, filtered.
//!
//! 1. An index's entry leads to its document by the key of `_id`. Where the entries hold all that
//!    is asked for ([`Cover`]) nothing is fetched; where the key shows that the filter fails,
//!    neither.
//! 2. A document with an array on an indexed path has several entries, and several scans may find
//!    one document: it comes out at the first, `seen` remembers it.
//! 3. Documents that lie in their tree's leaves are filtered where they lie, and only those that
//!    pass are shared, or lent to a caller that only looks at them ([`Scan::visit_fields`]): most
//!    of a scan's cost would be counting the holders of a leaf.
//! 4. Scans that are merged each give the order that was asked for: the least of what they have
//!    next comes out ([`Merge`]).
//! 5. Where scripts run to ask the filter, what passes without them waits for a script with others
//!    ([`BatchReader`]).
//! 6. Entries whose keys were cut have no order among those that begin alike: where an order was
//!    asked for, these are read together and sorted ([`Runs`]).

mod all;
mod divided;
mod fetch;
mod metadata;
mod parts;
mod pieces;
mod row;
mod runs;
pub(super) mod seen;
mod text_scores;

use std::cell::Cell;
use std::collections::BTreeMap;

use bytes::Bytes;
use frond_doc::{Document, key};
use frond_query::index::FieldKind;
use frond_query::large::NeededPaths;
use frond_query::metadata::MetadataKind;
use frond_query::script_batches::BatchReader;
use frond_query::{Filter, SortPattern, examined};
use frond_store::budget::Reservation;

use crate::collection::covered::Cover;
use crate::collection::cursor_validity::CursorValidity;
use crate::collection::handles::LazyLargeDocuments;
use crate::collection::plan::{Access, Order};
use crate::collection::walk::Walk;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::reader::Reader;
use crate::request_profile::{self, Plan, ScanSummary};
use crate::schema::Collection;
pub use all::all_documents;
pub(crate) use divided::DividedScan;
use fetch::{Fetch, Scores};
pub(crate) use fetch::{known_to_pass, passing};
pub use metadata::has_reversible_keys;
pub(crate) use parts::{ScanPieces, gathered};
pub use row::{FetchedDocument, FoundRows, Row, VisitedRow};
use runs::{Runs, Shared};
use seen::SeenDocuments;
use text_scores::TextScores;

/// The documents of an access that pass a filter. Owns what it needs if its reader does.
pub(crate) struct Scan<'a> {
    fetch: Fetch<'a>,
    /// Begun, the first of those that aren't done; done ones stay, to be shown.
    walks: Vec<Walk>,
    current: usize,
    /// Keys of the documents that came out, if one may come again.
    seen: Option<SeenDocuments>,
    merge: Option<Merge>,
    /// For each walk, what waits for scripts; none where no script is run.
    waiting: Vec<Waiting>,
    /// Sorts the runs that the walks give in order.
    runs: Option<Runs>,
    /// Along the entries that hold scores, and memory for them, until they were read.
    scoring: Option<(Walk, Reservation)>,
    /// The things that must be there for it to go on.
    ending: Option<CursorValidity>,
    /// Whether its plan is shown as the request's.
    is_profiled: bool,
}

/// The documents that wait for scripts, and whether they pass.
type Waiting = BatchReader<(Row, Shared), bool, Error>;

/// The next documents of scans that are merged, by their places in the order.
struct Merge {
    pattern: SortPattern,
    next: BTreeMap<(Bytes, usize), Row>,
    has_begun: bool,
}

impl<'a> Scan<'a> {
    /// Begins to scan `collection` by `access`, which was chosen for it, with `order`.
    pub fn new(
        reader: Reader<'a>,
        collection: &Collection,
        mut access: Access,
        filter: Filter,
        order: &Order,
    ) -> Scan<'a> {
        let filter = access.filter.take().unwrap_or(filter);
        assert!(filter.text().is_none(), "the planner of a search by text names its index");
        let may_repeat = access.paths.iter().any(|path| path.may_repeat)
            || access.paths.len() > 1 && !access.is_exact;
        let merge = match order {
            Order::By(pattern) if access.is_merged => {
                Some(Merge { pattern: pattern.clone(), next: BTreeMap::new(), has_begun: false })
            }
            _ => None,
        };
        let gives_order = access.gives_order;
        let walks: Vec<Walk> =
            access.paths.into_iter().map(|path| Walk::new(collection, path)).collect();
        let is_profiled =
            request_profile::note(|| plan_of(collection, &walks, access.is_exact, order));
        // A document that was found may be changed by its own transaction until it is fetched,
        // except for the `_id` by which it was found.
        let may_change = reader.may_change() && !walks.iter().all(|walk| walk.is_of_id);
        let may_fail = !filter.is_all() && (!access.is_exact || may_change);
        let cover_of = |walk: &Walk| {
            let index = walk.index.as_ref().filter(|_| may_fail && walk.cover == Cover::Nothing)?;
            let paths: Vec<String> = filter.paths()?.into_iter().map(str::to_owned).collect();
            Cover::of_key(index, walk.flags, &paths).map(Cover::Key)
        };
        let runs_scripts = may_fail && filter.runs_scripts();
        let waiting = walks.iter().filter(|_| runs_scripts).map(|_| Waiting::default()).collect();
        let fetch = Fetch {
            reader,
            without_scripts: runs_scripts.then(|| filter.without_scripts()),
            documents: collection.documents,
            covers: walks.iter().map(cover_of).collect(),
            metadata: filter.metadata(),
            filter,
            may_fail,
            in_part: None,
            lazily: None,
            counts_only: false,
            interrupt: Interrupt::default(),
            steps: Cell::new(0),
            scores: Scores::Texts,
        };
        let reservation = || fetch.filter.memory().another(usize::MAX);
        let seen = may_repeat.then(|| SeenDocuments::new(reservation()));
        let runs = match order {
            Order::By(pattern) if gives_order => {
                Some(Runs::new(pattern.clone(), walks.len(), reservation()))
            }
            _ => None,
        };
        let (scoring, ending) = (None, None);
        Scan { fetch, walks, current: 0, seen, merge, waiting, runs, scoring, ending, is_profiled }
    }

    /// Returns the filter that documents pass: a `$text` in it knows its terms.
    pub fn passing_filter(&self) -> &Filter {
        &self.fetch.filter
    }

    /// Has its plan shown as one that MongoDB runs beside its planner.
    pub fn note_express(&self) {
        if self.is_profiled {
            request_profile::note_express();
        }
    }

    /// Whether it finds the document of one `_id`, and asks nothing of it.
    pub fn is_of_one_id(&self) -> bool {
        let [walk] = &self.walks[..] else { return false };
        walk.is_of_one_id() && !self.fetch.may_fail
    }

    /// The walks, each with what it has done.
    pub fn walks(&self) -> &[Walk] {
        &self.walks
    }

    /// Fails once what `ending` needs is gone.
    pub fn ended_by(mut self, ending: Option<CursorValidity>) -> Scan<'a> {
        self.ending = ending;
        self
    }

    /// Is interrupted by `interrupt`.
    pub fn interrupted_by(mut self, interrupt: &Interrupt) -> Scan<'a> {
        self.fetch.interrupt = interrupt.clone();
        self
    }

    /// Takes scores from the entries of the text index by which documents are found, if they are
    /// asked for and the entries hold them. For several terms all entries are read first, as far as
    /// `reservation` allows.
    pub fn scored_by_entries(mut self, reservation: Reservation) -> Scan<'a> {
        let is_needed = self.fetch.metadata.contains(MetadataKind::TextScore);
        if let (Some(matcher), [walk]) = (self.fetch.filter.text_matcher(), &self.walks[..])
            && is_needed
            && walk.index.as_ref().is_some_and(|index| index.shape.text().is_some())
            && walk.is_ascending()
        {
            match matcher.terms_count() {
                1 => self.fetch.scores = Scores::Entry,
                _ => self.scoring = Some((walk.twin(), reservation)),
            }
        }
        self
    }

    /// Fetches no documents: all that is found passes, and nothing else is asked. The rows are
    /// empty.
    pub fn counting(mut self) -> Scan<'a> {
        self.fetch.counts_only = true;
        if self.is_profiled {
            request_profile::note_stage("COUNT_SCAN", "RECORD_STORE_FAST_COUNT");
        }
        self
    }

    /// Returns the number of documents that come out, if it is known without reading them: by the
    /// counts of a tree, or where only their number is wanted ([`Scan::counting`]) by the keys
    /// alone, no more of which are read than `enough` need. Nothing comes out afterwards.
    ///
    /// # Errors
    /// As the scan's own steps.
    pub fn remaining(&mut self, enough: u64) -> Result<Option<u64>, Error> {
        self.check_ending()?;
        let fetch = &self.fetch;
        let is_exact = fetch.counts_only || !fetch.may_fail && !fetch.reader.may_change();
        if let [walk] = &self.walks[..]
            && is_exact
            && self.seen.is_none()
            && let Some(count) = walk.count(&fetch.reader, &fetch.interrupt)?
        {
            self.current = 1;
            return Ok(Some(count));
        }
        let identifies = self.walks.iter().all(Walk::identifies_by_keys) && self.merge.is_none();
        if !identifies || !fetch.counts_only {
            return Ok(None);
        }
        let mut count = 0;
        while self.current < self.walks.len() && count < enough {
            let walk = &mut self.walks[self.current];
            let (index, seen) = (walk.index.clone(), &mut self.seen);
            let before = walk.examined();
            let visited = walk.visit_keys(&fetch.reader, &mut |key, content| {
                fetch.step()?;
                if let Some(seen) = seen {
                    let mut id_key = key;
                    let bytes_of_id = content.as_deref().and_then(key::id_bytes);
                    if let (Some(content), Some(bytes)) = (&content, bytes_of_id) {
                        id_key = &content[..bytes];
                    } else if let Some(index) = &index {
                        index.skip_key(&mut id_key)?;
                    }
                    count += u64::from(seen.insert(id_key)?);
                } else {
                    count += 1;
                }
                Ok(count < enough)
            });
            walk.count_since(before);
            visited?;
            self.current += 1;
        }
        Ok(Some(count))
    }

    /// Gives out large documents with references for what the caller doesn't ask for.
    pub fn lazily(mut self, lazily: LazyLargeDocuments) -> Scan<'a> {
        let lazily = match &self.merge {
            Some(merge) => lazily.with_needed(&merge.pattern.needed_paths()),
            None => lazily,
        };
        let needed = match self.fetch.may_fail {
            true => self.fetch.filter.needed_paths(),
            false => NeededPaths::default(),
        };
        // An expression doesn't say which fields it looks at: it opens them itself, if they are
        // there.
        let lazily = match self.fetch.may_fail && self.fetch.filter.paths().is_none() {
            true => lazily.of_all_fields(),
            false => lazily,
        };
        self.fetch.filter = self.fetch.filter.with_large(lazily.large());
        self.fetch.without_scripts =
            self.fetch.without_scripts.map(|filter| filter.with_large(lazily.large()));
        self.fetch.lazily = Some((lazily, needed));
        self
    }

    /// Reads of large documents only `_id`, what the filter asks for, and these outermost fields.
    pub fn in_part<'n>(mut self, names: impl Iterator<Item = &'n [u8]>) -> Scan<'a> {
        self.fetch.in_part = Some(names.map(Box::from).collect());
        self
    }

    /// Reads of large documents only `_id`, what the filter asks for, and these outermost fields:
    /// they will change.
    pub fn for_update<'n>(self, names: impl Iterator<Item = &'n [u8]>) -> Scan<'a> {
        let mut scan = self.in_part(names);
        scan.fetch.open_for_filter();
        scan
    }

    /// Shows what was asked for of the documents that are left, until `visit` answers false.
    ///
    /// # Errors
    /// The error of `visit`; as the scan's own steps.
    pub fn visit_fields(
        &mut self,
        visit: &mut dyn FnMut(Document<'_>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        self.visit_rows(&mut |visited| match visited {
            VisitedRow::InPlace(document) => visit(document),
            VisitedRow::Owned(row) => visit(row.fields()),
        })
    }

    /// As [`Scan::visit_fields`], for a caller that reads rows wholly.
    ///
    /// # Errors
    /// As [`Scan::visit_fields`].
    pub fn visit_rows(
        &mut self,
        visit: &mut dyn FnMut(VisitedRow<'_>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        self.check_ending()?;
        loop {
            if self.merge.is_none()
                && self.waiting.is_empty()
                && self.runs.is_none()
                && self.seen.is_none()
                && let Some(walk) = self.walks.get_mut(self.current)
            {
                let before = walk.examined();
                let continues = self.fetch.lend(walk, visit);
                walk.count_since(before);
                if !continues? {
                    return Ok(());
                }
            }
            // The first of a range, and what can't be lent.
            let Some(row) = self.step()? else { return Ok(()) };
            if !visit(VisitedRow::Owned(row))? {
                return Ok(());
            }
        }
    }

    /// Fails if what it needs is gone.
    fn check_ending(&mut self) -> Result<(), Error> {
        self.ending.as_mut().map_or(Ok(()), CursorValidity::check)
    }

    fn next_row(&mut self) -> Result<Option<Row>, Error> {
        self.check_ending()?;
        self.step()
    }

    fn step(&mut self) -> Result<Option<Row>, Error> {
        if self.merge.is_some() {
            return self.step_merged();
        }
        while self.current < self.walks.len() {
            if let Some(found) = self.next_in_order(self.current)? {
                return Ok(Some(found));
            }
            self.current += 1;
        }
        Ok(None)
    }

    /// The least of what the walks have next.
    fn step_merged(&mut self) -> Result<Option<Row>, Error> {
        let begins =
            self.merge.as_mut().is_some_and(|merge| !std::mem::replace(&mut merge.has_begun, true));
        if begins {
            for place in 0..self.walks.len() {
                self.refill(place)?;
            }
        }
        let least = self.merge.as_mut().and_then(|merge| merge.next.pop_first());
        let Some(((_, place), found)) = least else { return Ok(None) };
        self.refill(place)?;
        Ok(Some(found))
    }

    fn refill(&mut self, place: usize) -> Result<(), Error> {
        let found = self.next_in_order(place)?;
        if let (Some(merge), Some(found)) = (&mut self.merge, found) {
            let key = merge.pattern.key(found.fields())?;
            merge.next.insert((key, place), found);
        }
        Ok(())
    }

    /// The next document of one walk, in the order that was asked for.
    fn next_in_order(&mut self, place: usize) -> Result<Option<Row>, Error> {
        let Some(mut runs) = self.runs.take() else {
            return Ok(self.next_of(place)?.map(|(row, _)| row));
        };
        let (reader, documents) = (self.fetch.reader.clone(), self.fetch.documents);
        let key_of = |row: &Row, pattern: &SortPattern| {
            let whole = row.clone().into_whole(&reader, documents)?;
            Ok(pattern.key(whole.document.view())?)
        };
        let next = runs.next(place, &mut || self.next_of(place), &key_of);
        self.runs = Some(runs);
        next
    }

    /// The next document of one walk, and what its key shares with others if it may have been cut.
    fn next_of(&mut self, place: usize) -> Result<Option<(Row, Shared)>, Error> {
        let Some(waiting) = self.waiting.get_mut(place) else { return self.next_unasked(place) };
        let mut waiting = std::mem::take(waiting);
        let filter = self.fetch.filter.clone();
        let test = |(row, _): &(Row, Shared)| filter.try_matches(row.fields());
        let next = loop {
            let mut read = || {
                let next = self.next_unasked(place)?;
                Ok(next.map(|next| {
                    let bytes = next.0.fields().as_bytes().len();
                    (next, bytes)
                }))
            };
            match waiting.next(filter.memory(), &mut read, &test)? {
                Some((_, false)) => {
                    self.walks[place].returned -= 1;
                    examined::take_back();
                }
                next => break next,
            }
        };
        self.waiting[place] = waiting;
        Ok(next.map(|(next, _)| next))
    }

    /// As [`Scan::next_of`]: scripts weren't asked.
    fn next_unasked(&mut self, place: usize) -> Result<Option<(Row, Shared)>, Error> {
        let before = self.walks[place].examined();
        let next = self.read_next(place);
        self.walks[place].count_since(before);
        next
    }

    fn read_next(&mut self, place: usize) -> Result<Option<(Row, Shared)>, Error> {
        if let Some((walk, reservation)) = self.scoring.take() {
            let Fetch { reader, interrupt, .. } = &self.fetch;
            if let Some(scores) = TextScores::read(walk, reader, interrupt, reservation)? {
                self.fetch.scores = Scores::Entries(scores);
            }
        }
        let (fetch, walk) = (&self.fetch, &mut self.walks[place]);
        if self.seen.is_none()
            && let Some(found) = fetch.next_inline(walk)?
        {
            let shared = runs::shared(&found.id_key);
            return Ok(Some((found, shared)));
        }
        while let Some(entry) = walk.next(&fetch.reader)? {
            fetch.step()?;
            let (shared, between) = (runs::shared(&entry.key), walk.between.clone());
            let entry_key = between.is_some().then(|| entry.key.clone());
            let key = fetch.index_key(walk, &entry)?;
            let score = fetch.score_of_entry(walk, &entry)?;
            let found = match &walk.index {
                None if walk.is_natural => fetch.of_place(walk, &entry)?,
                None => fetch.of_document(walk, entry)?,
                Some(_) => fetch.of_entry(walk, place, entry, &mut self.seen)?,
            };
            if let Some(found) = found {
                if walk.index.is_none()
                    && let Some(seen) = &mut self.seen
                    && !seen.insert(&found.id_key)?
                {
                    continue;
                }
                if let (Some(between), Some(entry_key)) = (&between, &entry_key)
                    && !fetch.lies_between(between, walk.index.as_ref(), entry_key, &found)?
                {
                    continue;
                }
                walk.returned += 1;
                let key = key.or_else(|| fetch.key_of_id(walk, &found));
                return Ok(Some((fetch.with_metadata(found, key, score), shared)));
            }
        }
        Ok(None)
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<Row, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_row().transpose()
    }
}

/// Returns the plan to show; that of one `_id` as the planner finds it.
fn plan_of(collection: &Collection, walks: &[Walk], is_exact: bool, order: &Order) -> Plan {
    if let [walk] = walks
        && is_exact
        && walk.is_of_one_id()
    {
        return Plan::ById;
    }
    let mut scans: Vec<ScanSummary> = walks.iter().map(|walk| walk.summary(collection)).collect();
    if let (Order::Near(_), [walk], [scan]) = (order, walks, &mut scans[..])
        && let Some(index) = &walk.index
    {
        let is_plane = index.shape.has_kind(FieldKind::Plane);
        scan.stage = if is_plane { "GEO_NEAR_2D" } else { "GEO_NEAR_2DSPHERE" };
    }
    match scans.is_empty() {
        true => Plan::Nothing,
        false => Plan::Scans(scans),
    }
}
