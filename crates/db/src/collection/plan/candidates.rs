//! The indexes that may be used for a request, and what the planner knows of them.

use std::sync::Arc;

use frond_query::memory::RequestMemory;
use frond_query::planner::{IndexFacts, PlanRequest};
use frond_query::{Code, Filter, Near};
use frond_tree::{Bounds, Direction};

use super::access::Source;
use super::request::{Hint, Order, OwnFacts, Request};
use crate::collection::covered::{Cover, NeededPaths};
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::{Collection, Index, TreeRef};
use crate::timeseries::{self, Series};

/// The counted ranges between two checks whether to stop.
const CHECK_COUNT: usize = 64;

/// A function that returns how many entries of a candidate (or of the documents) lie in ranges.
pub(super) type RangeCount<'c> = &'c mut dyn FnMut(Option<usize>, &[Bounds]) -> u64;

/// The indexes of a collection that may be used for a request.
#[derive(Default)]
pub(super) struct Candidates<'a> {
    pub indexes: &'a [Index],
    /// Those that may be used.
    pub sources: Vec<Source>,
    /// The planner's facts about these.
    pub facts: Vec<IndexFacts>,
    /// The parts of documents that the request needs.
    pub needs: NeededPaths,
    /// The request's filter with what its expressions imply, if they do.
    filter: Option<Filter>,
}

impl<'a> Candidates<'a> {
    /// Those that a request may use: of a hint, that one.
    ///
    /// # Errors
    /// `NoQueryExecutionPlans` (291) for a search by distance without an index of places;
    /// `Damaged` if the store can't be read.
    pub fn of(
        reader: &Reader<'_>,
        collection: &'a Collection,
        own: &OwnFacts,
        request: Request<'_>,
    ) -> Result<Candidates<'a>, Error> {
        let sources = sources(reader, collection, request)?;
        Candidates::among(reader, collection, own, sources, request)
    }

    /// These.
    ///
    /// # Errors
    /// `Damaged` if the store can't be read.
    pub fn among(
        reader: &Reader<'_>,
        collection: &'a Collection,
        own: &OwnFacts,
        sources: Vec<Source>,
        request: Request<'_>,
    ) -> Result<Candidates<'a>, Error> {
        let needs = needs_of(request);
        let facts = facts_of(reader, collection, own, &sources, (&needs, request.order))?;
        let filter = request.filter.with_implied();
        Ok(Candidates { indexes: &collection.indexes, sources, facts, needs, filter })
    }

    /// Returns the request to the planner.
    pub fn question<'q>(&'q self, request: Request<'q>) -> PlanRequest<'q> {
        let filter = self.filter.as_ref().unwrap_or(request.filter);
        let sort = request.order.pattern();
        let (limit, skip, distinct) = (request.limit, request.skip, request.distinct);
        let (indexes, is_by_id) = (&self.facts, request.is_by_id);
        PlanRequest { filter, sort, limit, skip, distinct, indexes, is_by_id }
    }

    /// Returns the answer of `choose`, which may request the size of ranges.
    ///
    /// # Errors
    /// `Damaged` if the store can't be read; the error that interrupts the request.
    pub fn counting<A>(
        &self,
        reader: &Reader<'_>,
        collection: &Collection,
        request: Request<'_>,
        choose: &mut dyn FnMut(RangeCount<'_>) -> A,
    ) -> Result<A, Error> {
        let mut failure = None;
        let answer = choose(&mut |candidate, ranges| {
            if failure.is_some() {
                return u64::MAX;
            }
            let candidate = candidate.and_then(|candidate| self.sources.get(candidate));
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
}

/// The indexes that may be used.
fn sources(
    reader: &Reader<'_>,
    collection: &Collection,
    request: Request<'_>,
) -> Result<Vec<Source>, Error> {
    let sources: Vec<Source> = match request.hint {
        Some(Hint::Index(position)) => vec![Source::Index(position)],
        Some(Hint::Place) => own_index(reader, collection)?.into_iter().collect(),
        Some(Hint::Id) => Vec::new(),
        _ => {
            let is_allowed = |spec| request.allowed.is_none_or(|allowed| allowed.allows(spec));
            let is_used = |position: &usize| {
                let spec = &collection.indexes[*position].spec;
                !spec.hidden && is_allowed(spec)
            };
            let indexes = (0..collection.indexes.len()).filter(is_used).map(Source::Index);
            let own = own_index(reader, collection)?;
            let series = collection.series.as_ref();
            let is_own_used = series.is_none_or(|series| is_allowed(&series.index));
            own.into_iter().filter(|_| is_own_used).chain(indexes).collect()
        }
    };
    match request.filter.near() {
        Some((path, near)) => of_places(collection, sources, path, near),
        None => Ok(sources),
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

/// Returns the parts of documents that a request needs, its filter and sort included.
fn needs_of(request: Request<'_>) -> NeededPaths {
    let mut needs = request.needs.clone()?;
    needs.extend(request.filter.paths()?.into_iter().map(str::to_owned));
    if let Order::By(pattern) = request.order {
        needs.extend(pattern.fields.iter().map(|field| field.path.clone()));
    }
    needs.sort_unstable();
    needs.dedup();
    Some(needs)
}

/// Returns the planner's facts about indexes.
fn facts_of(
    reader: &Reader<'_>,
    collection: &Collection,
    own: &OwnFacts,
    sources: &[Source],
    (needs, order): (&NeededPaths, &Order),
) -> Result<Vec<IndexFacts>, Error> {
    let mut facts = Vec::with_capacity(sources.len());
    for source in sources {
        if let (Source::Place, Some(series)) = (source, &collection.series) {
            facts.push(facts_of_places(series));
        }
        let Source::Index(position) = source else { continue };
        let index = &collection.indexes[*position];
        let flags = own.flags.get(*position).copied().unwrap_or(0) | reader.flags(index.tree)?;
        facts.push(IndexFacts {
            name: index.spec.name.clone(),
            shape: Arc::clone(&index.shape),
            flags,
            covers: Cover::of(index, flags, needs, order.pattern()) != Cover::Nothing,
            is_documents: false,
        });
    }
    Ok(facts)
}

/// Returns the planner's facts about a time series' own tree: its entries are the documents.
fn facts_of_places(series: &Series) -> IndexFacts {
    IndexFacts {
        name: series.index.name.clone(),
        shape: Arc::clone(&series.shape),
        flags: 0,
        covers: true,
        is_documents: true,
    }
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
