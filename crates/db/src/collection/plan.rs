//! How the documents of a request are found: the planner's choice, a hint's, or a sort's by `_id`.
//!
//! The planner works on facts about indexes and on the sizes of key ranges. What it doesn't know:
//! the documents' own tree *is* the index of `_id`, so a sort by `_id`, in either direction, costs
//! nothing wherever the documents' tree is scanned. A time series' own tree is an index of source
//! and time ([`crate::timeseries`]).

mod fit;
mod request;
mod text;

pub use request::{Between, Hint, Order, OwnFacts, Request};
pub(crate) use text::no_index as no_text_index;

use std::sync::Arc;

use frond_doc::{ValueBuf, key};
use frond_query::index::{FieldKind, IndexShape};
use frond_query::memory::RequestMemory;
use frond_query::planner::{self, FieldBounds, IndexFacts, PartCheck, Plan, Question};
use frond_query::{Code, Filter, Near};
use frond_tree::{Bounds, Direction};

use crate::collection::capped;
use crate::collection::covered::{Cover, Needs};
use crate::definition::IndexSpec;
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::{Collection, Index, TreeRef};
use crate::timeseries::{self, Series};

/// Whether to stop is asked once for so many ranges that are counted.
const CHECK_COUNT: usize = 64;

/// Where documents are found, and in which order.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// The scans, one after the other or merged; each document comes once.
    pub paths: Vec<AccessPath>,
    /// Whether all scans are merged, since each is in the order that was asked for.
    pub is_merged: bool,
    /// Whether documents come in the order that was asked for.
    pub gives_order: bool,
    /// Whether everything that is found passes the filter.
    pub is_exact: bool,
    /// The filter as it is to be asked, if that isn't how it was given.
    pub filter: Option<Filter>,
}

/// Ranges of one tree.
#[derive(Clone, Debug)]
pub(crate) struct AccessPath {
    /// Which tree is scanned.
    pub source: Source,
    /// Disjoint, in the order in which they are scanned.
    pub ranges: Vec<Bounds>,
    /// What parts of an index's keys must be.
    pub checks: Vec<PartCheck>,
    /// Within each range.
    pub direction: Direction,
    /// Whether one document may be met several times.
    pub may_repeat: bool,
    /// The flags of the index's entries.
    pub flags: u8,
    /// What of documents comes out of the entries.
    pub cover: Cover,
    /// What each part of a key may be, to be told.
    pub fields: Vec<FieldBounds>,
    /// What keys must lie between by `min` and `max`, where the ranges are wider than that.
    pub between: Option<Bounds>,
}

/// Which tree is scanned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// The documents, all of them.
    Collection,
    /// The documents of a capped collection, in the order of their insertion.
    Natural,
    /// The documents, by their `_id`.
    Id,
    /// The points of a time series, by source and time.
    Place,
    /// The index at this position among the collection's.
    Index(usize),
}

/// Chooses how to find the documents of `collection` that pass a filter; where all of a capped
/// collection are read, in the order of their insertion.
pub(crate) fn choose(
    reader: &Reader<'_>,
    collection: &Collection,
    own: &OwnFacts,
    request: Request<'_>,
) -> Result<Access, Error> {
    let access = choose_trees(reader, collection, own, request)?;
    Ok(match request.order {
        Order::By(_) => access,
        Order::Any | Order::Natural(_) | Order::Near(_) => access.in_order_of(collection),
    })
}

/// `collection` is as `reader`'s snapshot has it: its trees are counted. In a transaction that has
/// written, the places of its indexes are the same as in what is then scanned.
fn choose_trees(
    reader: &Reader<'_>,
    collection: &Collection,
    own: &OwnFacts,
    request: Request<'_>,
) -> Result<Access, Error> {
    let Request { order, hint, .. } = request;
    if let Some((search, place)) = request.filter.text() {
        return text::choose(reader, collection, own, request, (search, place));
    }
    text::check_hint(collection, hint)?;
    let natural = match (order, hint) {
        (_, Some(Hint::Natural(direction))) => Some(direction),
        (Order::Natural(direction), None) => Some(*direction),
        (Order::Natural(_), Some(_)) => {
            let message = "a hint on an index can't be given together with a $natural sort";
            return Err(Error::invalid(Code::BadValue, message));
        }
        _ => None,
    };
    if request.between.is_given() && !matches!(hint, Some(Hint::Index(_) | Hint::Id)) {
        let message = "When using min()/max() a hint of which index to use must be provided";
        return Err(Error::invalid(Code::Location(51173), message));
    }
    if request.between.is_given() && hint == Some(Hint::Id) {
        let shape = IndexSpec::of_id().shape()?;
        let direction = request.id_direction().unwrap_or(Direction::Ascending);
        let mut access = Access::all(direction, request);
        access.paths[0].source = Source::Id;
        access.paths[0].ranges = vec![request.between.range(&shape)?];
        access.is_exact &= !access.paths[0].fit(&|_| false, request);
        return Ok(access);
    }
    if let Some(direction) = natural {
        return Ok(Access::all(direction, request));
    }
    if hint.is_none()
        && let Some(access) = by_ids(request)
    {
        return Ok(access);
    }
    let candidates = candidates(reader, collection, request)?;
    let needs = asked(request);
    let facts = facts_of(reader, collection, own, &candidates, &needs)?;
    let indexes = &collection.indexes;
    let found = Found { indexes, candidates: &candidates, facts: &facts, needs: &needs };
    if let Some(Hint::Index(_) | Hint::Place) = hint
        && !facts.is_empty()
    {
        return found.hinted(request);
    }
    let plan = found.counting(reader, collection, request, &mut |range_count| {
        planner::plan(found.question(request), range_count)
    })?;
    Ok(found.access(plan, request))
}

/// The ways by indexes that were considered for a request and not chosen, the best first.
pub(crate) fn rejected(
    reader: &Reader<'_>,
    collection: &Collection,
    request: Request<'_>,
) -> Result<Vec<Access>, Error> {
    // A search by text has but one way.
    if request.filter.text().is_some() {
        return Ok(Vec::new());
    }
    let is_told = request.hint.is_some()
        || request.between.is_given()
        || matches!(request.order, Order::Natural(_));
    if is_told || by_ids(request).is_some() {
        return Ok(Vec::new());
    }
    let candidates = candidates(reader, collection, request)?;
    let needs = asked(request);
    let facts = facts_of(reader, collection, &OwnFacts::default(), &candidates, &needs)?;
    let indexes = &collection.indexes;
    let found = Found { indexes, candidates: &candidates, facts: &facts, needs: &needs };
    let plans = found.counting(reader, collection, request, &mut |range_count| {
        planner::rejected(found.question(request), range_count)
    })?;
    Ok(plans.into_iter().map(|plan| found.access(plan, request)).collect())
}

/// The indexes that may be used.
fn candidates(
    reader: &Reader<'_>,
    collection: &Collection,
    request: Request<'_>,
) -> Result<Vec<Source>, Error> {
    let candidates: Vec<Source> = match request.hint {
        Some(Hint::Index(position)) => vec![Source::Index(position)],
        Some(Hint::Place) => own_index(reader, collection)?.into_iter().collect(),
        Some(Hint::Id) => Vec::new(),
        _ => {
            let is_used = |position: &usize| !collection.indexes[*position].spec.hidden;
            let indexes = (0..collection.indexes.len()).filter(is_used).map(Source::Index);
            own_index(reader, collection)?.into_iter().chain(indexes).collect()
        }
    };
    match request.filter.near() {
        Some((path, near)) => of_places(collection, candidates, path, near),
        None => Ok(candidates),
    }
}

/// The documents' own tree, if it is an index of other fields than `_id`.
fn own_index(reader: &Reader<'_>, collection: &Collection) -> Result<Option<Source>, Error> {
    if collection.series.is_none() {
        return Ok(None);
    }
    let mut arrays =
        reader.range(collection.documents, timeseries::with_arrays(), Direction::Ascending)?;
    let is_index = arrays.next().transpose()?.is_none();
    Ok(is_index.then_some(Source::Place))
}

/// What the planner is told of the candidates.
fn facts_of(
    reader: &Reader<'_>,
    collection: &Collection,
    own: &OwnFacts,
    candidates: &[Source],
    needs: &Needs,
) -> Result<Vec<IndexFacts>, Error> {
    let mut facts = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        if let (Source::Place, Some(series)) = (candidate, &collection.series) {
            facts.push(facts_of_places(series));
        }
        let Source::Index(position) = candidate else { continue };
        let index = &collection.indexes[*position];
        let flags = own.flags.get(*position).copied().unwrap_or(0) | reader.flags(index.tree)?;
        facts.push(IndexFacts {
            name: index.spec.name.clone(),
            shape: Arc::clone(&index.shape),
            flags,
            covers: Cover::of(index, flags, needs) != Cover::Nothing,
            is_documents: false,
        });
    }
    Ok(facts)
}

/// What the planner is told of a time series' own tree: its entries are the documents.
fn facts_of_places(series: &Series) -> IndexFacts {
    IndexFacts {
        name: series.index.name.clone(),
        shape: Arc::clone(&series.shape),
        flags: 0,
        covers: true,
        is_documents: true,
    }
}

/// Tells how many entries of a candidate (or of the documents) lie in ranges.
type RangeCount<'c> = &'c mut dyn FnMut(Option<usize>, &[Bounds]) -> u64;

/// Those of the candidates that file the places at `path`.
///
/// # Errors
/// `NoQueryExecutionPlans` (291) if there is none: MongoDB doesn't search without an index either.
fn of_places(
    collection: &Collection,
    candidates: Vec<Source>,
    path: &str,
    near: &Near,
) -> Result<Vec<Source>, Error> {
    let files = |candidate: &Source| {
        let Source::Index(position) = candidate else { return false };
        let mut fields = collection.indexes[*position].shape.fields().iter();
        fields.any(|field| field.kind.suits(near) && field.path == path)
    };
    let found: Vec<Source> = candidates.into_iter().filter(files).collect();
    if found.is_empty() {
        let message = "error processing query: planner returned error :: caused by :: unable to find \
                       index for $geoNear query";
        return Err(Error::invalid(Code::NoQueryExecutionPlans, message));
    }
    Ok(found)
}

/// What a request needs of documents to be answered, its filter and sort included.
fn asked(request: Request<'_>) -> Needs {
    let mut needs = request.needs.clone()?;
    needs.extend(request.filter.paths()?.into_iter().map(str::to_owned));
    if let Order::By(pattern) = request.order {
        needs.extend(pattern.fields.iter().map(|field| field.path.clone()));
    }
    needs.sort_unstable();
    needs.dedup();
    Some(needs)
}

/// What was found of a collection's indexes.
struct Found<'a> {
    indexes: &'a [Index],
    /// Those that may be used.
    candidates: &'a [Source],
    facts: &'a [IndexFacts],
    needs: &'a Needs,
}

impl Found<'_> {
    /// What the planner is asked.
    fn question<'q>(&'q self, request: Request<'q>) -> Question<'q> {
        let (filter, sort) = (request.filter, request.order.pattern());
        let (limit, distinct) = (request.limit, request.distinct);
        let (indexes, is_by_id) = (self.facts, request.is_by_id);
        Question { filter, sort, limit, distinct, indexes, is_by_id }
    }

    /// What `ask` answers, which may ask how large ranges are.
    fn counting<A>(
        &self,
        reader: &Reader<'_>,
        collection: &Collection,
        request: Request<'_>,
        ask: &mut dyn FnMut(RangeCount<'_>) -> A,
    ) -> Result<A, Error> {
        let mut failure = None;
        let answer = ask(&mut |candidate, ranges| {
            if failure.is_some() {
                return u64::MAX;
            }
            let candidate = candidate.and_then(|candidate| self.candidates.get(candidate));
            let mut of_tree = None;
            let tree = match candidate {
                Some(Source::Index(position)) => self.indexes[*position].tree,
                Some(Source::Place) => {
                    of_tree = Some(timeseries::ranges(ranges.to_vec()));
                    collection.documents
                }
                _ => collection.documents,
            };
            let ranges = of_tree.as_deref().unwrap_or(ranges);
            count_ranges(reader, tree, ranges, request.filter.memory()).unwrap_or_else(|error| {
                failure = Some(error);
                u64::MAX
            })
        });
        failure.map_or(Ok(answer), Err)
    }

    /// The access of a hint: its index, whatever it costs.
    fn hinted(&self, request: Request<'_>) -> Result<Access, Error> {
        let sort = request.order.pattern();
        let facts = &self.facts[0];
        let all = IndexFacts {
            shape: Arc::new(IndexShape::of_values(facts.shape.sort_fields(), false)),
            ..facts.clone()
        };
        if request.between.is_given() {
            let range = request.between.range(&facts.shape)?;
            let scan = planner::whole_scan(&Filter::all(), sort, &all);
            let mut scan = scan.ok_or_else(|| Error::internal("an index can't be scanned"))?;
            scan.ranges = vec![range];
            scan.fields.clear();
            scan.is_exact &= request.filter.is_all();
            return Ok(self.access(Plan::IndexScan(scan), request));
        }
        if let Some(scan) = planner::whole_scan(request.filter, sort, facts) {
            return Ok(self.access(Plan::IndexScan(scan), request));
        }
        if facts.shape.has_kind(FieldKind::Wildcard) {
            let message = "error processing query: planner returned error :: caused by :: No query \
                           solutions: the hinted index can't answer this query";
            return Err(Error::invalid(Code::NoQueryExecutionPlans, message));
        }
        // Any other index that is asked for by name answers with what it has.
        let scan = planner::whole_scan(&Filter::all(), None, &all);
        let scan = scan.ok_or_else(|| Error::internal("an index can't be scanned"))?;
        let mut access = self.access(Plan::IndexScan(scan), request);
        access.is_exact = false;
        access.gives_order = request.order.pattern().is_none();
        Ok(access)
    }

    fn access(&self, plan: Plan, request: Request<'_>) -> Access {
        match plan {
            Plan::CollectionScan => {
                let direction = request.id_direction();
                Access::all(direction.unwrap_or(Direction::Ascending), request)
            }
            Plan::IdScan(_) | Plan::IndexScan(_) => self.scan(plan, request),
            Plan::Union { branches, is_merged } => {
                let branches = branches.into_iter().map(|branch| self.scan(branch, request));
                let paths: Vec<AccessPath> = branches.flat_map(|branch| branch.paths).collect();
                let gives_order = is_merged || request.order.pattern().is_none();
                Access { paths, is_merged, gives_order, is_exact: false, filter: None }
            }
        }
    }

    fn scan(&self, plan: Plan, request: Request<'_>) -> Access {
        let (source, scan, flags, cover, gives_order) = match plan {
            Plan::IndexScan(mut scan) => {
                let source = self.candidates[scan.index];
                let flags = self.facts[scan.index].flags;
                let gives_order = scan.sorted || request.order.pattern().is_none();
                let cover = match source {
                    Source::Index(position) => {
                        Cover::of(&self.indexes[position], flags, self.needs)
                    }
                    _ => {
                        scan.ranges = timeseries::ranges(scan.ranges);
                        // Where a source is absent no key tells.
                        scan.is_exact = false;
                        Cover::Nothing
                    }
                };
                (source, scan, flags, cover, gives_order)
            }
            Plan::IdScan(scan) => {
                let gives_order =
                    request.order.pattern().is_none() || request.id_direction().is_some();
                (Source::Id, scan, 0, Cover::Nothing, gives_order)
            }
            Plan::CollectionScan | Plan::Union { .. } => {
                unreachable!("only scans of ranges are branches")
            }
        };
        let direction = if scan.descending { Direction::Descending } else { Direction::Ascending };
        let is_unique = match source {
            Source::Index(position) => self.indexes[position].spec.unique,
            _ => true,
        };
        let is_whole = |key: &[u8]| {
            let mut rest = key;
            let is_read = match source {
                Source::Index(position) => self.indexes[position].skip_key(&mut rest).is_ok(),
                _ => key::skip(&mut rest, false).is_ok(),
            };
            is_unique && is_read && rest.is_empty()
        };
        let mut path = AccessPath {
            source,
            ranges: scan.ranges,
            checks: scan.checks,
            direction,
            may_repeat: scan.may_repeat,
            flags,
            cover,
            fields: scan.fields,
            between: None,
        };
        let is_wider = path.fit(&is_whole, request);
        let is_exact = scan.is_exact && !is_wider;
        // What were several ranges, each in order, may be one that isn't.
        if !scan.is_merged || is_wider {
            return Access {
                paths: vec![path],
                is_merged: false,
                gives_order: gives_order && !scan.is_merged,
                is_exact,
                filter: None,
            };
        }
        let one = |range: &Bounds| AccessPath { ranges: vec![range.clone()], ..path.clone() };
        let paths = path.ranges.iter().map(one).collect();
        Access { paths, is_merged: true, gives_order, is_exact, filter: None }
    }
}

/// The access of a filter that names `_id`s one by one: nothing can be better, so nothing is asked
/// about indexes.
fn by_ids(request: Request<'_>) -> Option<Access> {
    if !request.is_by_id {
        return None;
    }
    if let Some(key) = planner::only_id(request.filter) {
        let direction = request.id_direction();
        let mut access = Access::all(direction.unwrap_or(Direction::Ascending), request);
        access.paths[0].source = Source::Id;
        access.paths[0].ranges = vec![Bounds::prefix(&key)];
        access.is_exact = true;
        // One document is in any order.
        access.gives_order = true;
        return Some(access);
    }
    let mut names = request.filter.outermost_names()?;
    if !names.any(|name| name == b"_id") {
        return None;
    }
    let sort = request.order.pattern();
    let filter = request.filter;
    let (indexes, is_by_id) = (&[], true);
    let question = Question { filter, sort, limit: None, distinct: None, indexes, is_by_id };
    let plan = planner::plan(question, &mut |_, _| 0);
    let Plan::IdScan(scan) = &plan else { return None };
    let found = Found { indexes: &[], candidates: &[], facts: &[], needs: &None };
    scan.ranges.iter().all(is_one_key).then(|| found.access(plan, request))
}

/// Whether a range has one key at most: the beginnings of strings make ranges that look alike.
fn is_one_key(range: &Bounds) -> bool {
    let Some(start) = &range.start else { return false };
    let mut rest = &start[..];
    key::skip(&mut rest, false).is_ok() && rest.is_empty() && Bounds::prefix(start) == *range
}

/// Asks now and then whether to go on: a filter may make thousands of ranges.
fn count_ranges(
    reader: &Reader<'_>,
    tree: TreeRef,
    ranges: &[Bounds],
    memory: &RequestMemory,
) -> Result<u64, Error> {
    let mut count = 0u64;
    for (number, range) in ranges.iter().enumerate() {
        if number.is_multiple_of(CHECK_COUNT) {
            memory.check()?;
        }
        count = count.saturating_add(reader.estimate_range(tree, range)?);
    }
    Ok(count)
}

impl AccessPath {
    /// Puts the ranges where entries are, and answers whether they are wider then.
    fn fit(&mut self, is_whole: &dyn Fn(&[u8]) -> bool, request: Request<'_>) -> bool {
        let between = self.ranges.first().filter(|_| request.between.is_given()).cloned();
        let is_wider = fit::fit(&mut self.ranges, self.direction, is_whole);
        self.between = between.filter(|_| is_wider);
        // Where one key of a document was within, several may be now.
        self.may_repeat |= is_wider && self.flags != 0;
        is_wider
    }

    /// Whether each entry within the ranges is another document.
    pub fn is_counted_by_ranges(&self) -> bool {
        self.checks.is_empty() && !self.may_repeat
    }

    /// The tree that is scanned.
    pub fn tree(&self, collection: &Collection) -> TreeRef {
        match self.source {
            Source::Index(position) => collection.indexes[position].tree,
            Source::Collection | Source::Id | Source::Place => collection.documents,
            Source::Natural => collection.order.unwrap_or(collection.documents),
        }
    }
}

impl Access {
    /// All documents, in an order that suits `order` if that is possible.
    pub fn everything(request: Request<'_>) -> Access {
        let direction = request.id_direction();
        Access::all(direction.unwrap_or(Direction::Ascending), request)
    }

    /// All documents in the order in which they lie, or its reverse.
    pub fn natural(collection: &Collection, direction: Direction, request: Request<'_>) -> Access {
        Access::all(direction, request).in_order_of(collection)
    }

    /// The same, by the order of insertion where all documents of a capped collection are read.
    fn in_order_of(mut self, collection: &Collection) -> Access {
        if let [path] = &mut self.paths[..]
            && path.source == Source::Collection
            && collection.order.is_some()
        {
            path.source = Source::Natural;
            path.ranges = vec![capped::all_places()];
        }
        self
    }

    /// Has all documents in the order of their `_id`s told as found by the index of `_id`, where
    /// MongoDB would walk that: for a sort by `_id` alone, or a hint.
    ///
    /// # Errors
    /// As [`Hint::parse`].
    pub fn walk_keys_of_id(
        &mut self,
        order: &Order,
        hint: Option<&ValueBuf>,
        collection: &Collection,
    ) -> Result<(), Error> {
        let is_hinted = match hint {
            Some(hint) => Hint::parse(hint, collection)? == Some(Hint::Id),
            None => false,
        };
        let is_sorted = order.pattern().is_some_and(|pattern| pattern.fields.len() == 1);
        if let [path] = &mut self.paths[..]
            && path.source == Source::Collection
            && (is_hinted || hint.is_none() && is_sorted && self.gives_order)
        {
            path.source = Source::Id;
        }
        Ok(())
    }

    fn all(direction: Direction, request: Request<'_>) -> Access {
        let gives_order = match request.order {
            Order::Any | Order::Natural(_) => true,
            Order::Near(_) => false,
            Order::By(_) => request.id_direction() == Some(direction),
        };
        let path = AccessPath {
            source: Source::Collection,
            ranges: vec![Bounds::all()],
            checks: Vec::new(),
            direction,
            may_repeat: false,
            flags: 0,
            cover: Cover::Nothing,
            fields: Vec::new(),
            between: None,
        };
        let is_exact = request.filter.is_all();
        Access { paths: vec![path], is_merged: false, gives_order, is_exact, filter: None }
    }
}
