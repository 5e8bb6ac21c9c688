//! Plans how documents are found that a `$text` searches for: by the collection's text index,
//! always.
//!
//! 1. The text index decides which texts are asked, so that the filter can be asked of documents.
//! 2. A `$text` that each document must pass is looked up in that index alone, whatever other
//!    indexes there are, as MongoDB does; the filter must fix what the index files before the
//!    terms.
//! 3. Below an `$or` each branch has an index of its own, or the search is refused.

use frond_query::index::FieldKind;
use frond_query::planner::{self, Plan, PlanRequest};
use frond_query::search::{TextMatcher, TextSearch};
use frond_query::{Code, TextPosition};

use super::access::{Access, Source};
use super::candidates::Candidates;
use super::request::{Hint, Order, OwnFacts, Request};
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::Collection;

/// Chooses how to find what is searched for.
///
/// # Errors
/// `IndexNotFound` (27) without a text index, `NoQueryExecutionPlans` (291) if it can't answer,
/// `BadValue` for what doesn't go together with a `$text`.
pub(super) fn choose(
    reader: &Reader<'_>,
    collection: &Collection,
    own: &OwnFacts,
    request: Request<'_>,
    (search, place): (&TextSearch, TextPosition),
) -> Result<Access, Error> {
    refuse_beside_text(&request)?;
    let is_used = |position: &usize| !collection.indexes[*position].spec.hidden;
    let visible = || (0..collection.indexes.len()).filter(is_used);
    let text = visible().find_map(|position| {
        let spec = collection.indexes[position].shape.text()?;
        Some((position, spec))
    });
    let (position, spec) = text.ok_or_else(no_index)?;
    let matcher = TextMatcher::new(search, spec)?;
    let (matcher, sources) = match place {
        TextPosition::Top => (matcher.found_by_index(), vec![Source::Index(position)]),
        TextPosition::Branch => (matcher, visible().map(Source::Index).collect()),
    };
    let filter = request.filter.clone().with_text(matcher);
    let request = Request { filter: &filter, ..request };
    let candidates = Candidates::among(reader, collection, own, sources, request)?;
    let sort = request.order.pattern();
    let plan = match place {
        TextPosition::Top => {
            let is_fixed =
                planner::fixes_fields_before_terms(&filter, &collection.indexes[position].shape);
            let scan = candidates.facts.first().filter(|_| is_fixed);
            let scan = scan.and_then(|facts| planner::whole_scan(&filter, sort, facts));
            scan.map(Plan::IndexScan).ok_or_else(|| {
                no_plan(
                    "failed to use text index to satisfy $text query (if text index is compound, are \
                     equality predicates given for all prefix fields?)",
                )
            })?
        }
        TextPosition::Branch => {
            let question = PlanRequest { distinct: None, ..candidates.question(request) };
            let plan = candidates.counting(reader, collection, request, &mut |range_count| {
                planner::union_of_indexes(question, range_count)
            })?;
            plan.ok_or_else(|| {
                no_plan(
                    "Failed to produce a solution for TEXT under OR - other non-TEXT clauses under OR \
                     have to be indexed as well.",
                )
            })?
        }
    };
    let access = candidates.access(plan, request);
    Ok(Access { filter: Some(filter), ..access })
}

/// Refuses what doesn't go together with a `$text`.
fn refuse_beside_text(request: &Request<'_>) -> Result<(), Error> {
    let refuse = |message: &str| Err(Error::invalid(Code::BadValue, message));
    if request.hint.is_some() {
        return refuse("text and hint not allowed in same query");
    }
    if matches!(request.order, Order::Natural(_)) {
        return refuse("text expression not allowed with $natural sort order");
    }
    if request.between.is_given() {
        let message = "When using min()/max() a hint of which index to use must be provided";
        return Err(Error::invalid(Code::Location(51173), message));
    }
    Ok(())
}

/// Refuses a hint on a text index for a search without `$text`.
pub(super) fn check_hint(collection: &Collection, hint: Option<Hint>) -> Result<(), Error> {
    match hint {
        Some(Hint::Index(position))
            if collection.indexes[position].shape.has_kind(FieldKind::Text) =>
        {
            Err(no_plan("No query solutions"))
        }
        _ => Ok(()),
    }
}

/// There is no text index that could be asked.
pub(crate) fn no_index() -> Error {
    Error::invalid(Code::IndexNotFound, "text index required for $text query")
}

fn no_plan(why: &str) -> Error {
    let message = format!("error processing query: planner returned error :: caused by :: {why}");
    Error::invalid(Code::NoQueryExecutionPlans, message)
}
