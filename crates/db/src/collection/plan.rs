//! Plans how the documents of a request are found: by the planner's choice, a hint's, or a sort's
//! by `_id`.
//!
//! The planner works on facts about indexes and on the sizes of key ranges. It doesn't know that
//! the documents' own tree *is* the index of `_id`, so that a sort by `_id`, in either direction,
//! costs nothing wherever the documents' tree is scanned. A time series' own tree is an index of
//! source and time ([`crate::timeseries`]).

mod access;
mod candidates;
mod fit;
mod request;
mod scans;
mod text;

pub(crate) use access::{Access, AccessPath, Source};
pub use request::{Hint, MinMaxBounds, Order, OwnFacts, Request};
pub(crate) use text::no_index as no_text_index;

use candidates::Candidates;
use frond_doc::key;
use frond_query::Code;
use frond_query::planner::{self, Plan, PlanRequest};
use frond_tree::{Bounds, Direction};

use crate::definition::IndexSpec;
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::Collection;

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
    let candidates = Candidates::of(reader, collection, own, request)?;
    if let Some(Hint::Index(_) | Hint::Place) = hint
        && !candidates.facts.is_empty()
    {
        return candidates.hinted(request);
    }
    let plan = candidates.counting(reader, collection, request, &mut |range_count| {
        planner::plan(candidates.question(request), range_count)
    })?;
    Ok(candidates.access(plan, request))
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
    let is_forced = request.hint.is_some()
        || request.between.is_given()
        || matches!(request.order, Order::Natural(_));
    if is_forced || by_ids(request).is_some() {
        return Ok(Vec::new());
    }
    let candidates = Candidates::of(reader, collection, &OwnFacts::default(), request)?;
    let plans = candidates.counting(reader, collection, request, &mut |range_count| {
        planner::rejected(candidates.question(request), range_count)
    })?;
    Ok(plans.into_iter().map(|plan| candidates.access(plan, request)).collect())
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
    let sort = request.order.pattern();
    if let Some(scan) = planner::only_ids(request.filter, sort) {
        return Some(Candidates::default().access(Plan::IdScan(scan), request));
    }
    let mut names = request.filter.outermost_names()?;
    if !names.any(|name| name == b"_id") {
        return None;
    }
    let filter = request.filter;
    let (indexes, is_by_id) = (&[], true);
    let question =
        PlanRequest { filter, sort, limit: None, skip: 0, distinct: None, indexes, is_by_id };
    let plan = planner::plan(question, &mut |_, _| 0);
    let Plan::IdScan(scan) = &plan else { return None };
    scan.ranges.iter().all(is_one_key).then(|| Candidates::default().access(plan, request))
}

/// Whether a range has one key at most: the beginnings of strings make ranges that look alike.
fn is_one_key(range: &Bounds) -> bool {
    let Some(start) = &range.start else { return false };
    let mut rest = &start[..];
    key::skip(&mut rest, false).is_ok() && rest.is_empty() && range.is_of_prefix()
}
