//! A pipeline: what its search does, as in `find`, and the stages that are left.
//!
//! The search is the one that `aggregate` makes: by the conditions that moved to the front, in the
//! order of a leading `$sort`, for as many documents as a `$limit` wants, and of these only for
//! what a `$group` needs, so that an index may cover it. A leading `$geoNear` is a search for the
//! nearest.

use frond_doc::{Array, DocumentBuf, DocumentBuilder, Value};
use frond_query::pipeline::{Pipeline, explained};
use frond_query::{Collation, Filter, SortPattern};

use super::{Effort, Purpose, explain_query};
use crate::catalog::Catalog;
use crate::collection::aggregate::near::geo_path;
use crate::collection::parse::{collation_of, variables_in};
use crate::collection::plan::Order;
use crate::collection::query::Query;
use crate::collection::search::Search;
use crate::collection::{AggregateRequest, FindRequest};
use crate::database::Database;
use crate::error::Error;

/// Returns how the search of a pipeline over `collection` would go, as [`Database::explain_as`]
/// shows it, and the stages that its documents go through; `stages` are those of `request`. A view
/// is no collection here.
pub(crate) fn explain_aggregate(
    database: &Database,
    collection: &str,
    stages: Array<'_>,
    request: &AggregateRequest,
    effort: Effort,
) -> Result<(DocumentBuf, Vec<DocumentBuf>), Error> {
    let reader = database.reader();
    let found = Catalog::of(&reader, database).collection(collection)?;
    let collation = collation_of(request.collation.as_ref(), found.as_deref())?;
    let variables = variables_in(database, request.variables.as_ref(), &request.interrupt)?;
    let variables = variables.with_collation(collation.clone());
    let mut pipeline = Pipeline::parse_collated(stages, &collation)?;
    pipeline.compute_constants(&variables)?;
    let near = pipeline.take_geo_near(&variables)?;
    let filter = match &near {
        Some(near) => {
            let path = geo_path(found.as_deref(), near, &database.namespace(collection))?;
            near.filter(&path, &variables)
        }
        None => pipeline.take_filter().with_variables(variables),
    };
    let (sorted, limit) = pipeline.leading_order();
    let order = order_of(&filter, sorted, &collation);
    let needs = if near.is_some() { None } else { pipeline.needs() };
    let search = || Search {
        order: &order,
        limit: limit.and_then(|limit| u64::try_from(limit).ok()),
        needs: needs.clone(),
        ..Search::of(&filter, request.hint.as_ref())
    };
    let rejected = match &found {
        Some(found) => search().rejected(database.frond(), &reader, found)?,
        None => Vec::new(),
    };
    let allowed = found.as_ref().and_then(|found| search().allowed(database.frond(), found));
    let access = search().access(database.frond(), &reader, found)?;
    let sorts = order.pattern().is_some();
    let (leading, rest) =
        split(explained(stages, &collation)?, request, sorts, pipeline.leading_skip());
    let leading = FindRequest { projection: needs.as_deref().map(projection_of), ..leading };
    let query = Query {
        collection: access,
        filter,
        order,
        projection: None,
        rejected,
        has_index_filter: allowed.is_some(),
    };
    if query.collection.as_ref().is_some_and(|(_, access)| access.gives_order) {
        pipeline.drop_order();
    }
    let purpose = purpose_of(&pipeline, near.is_some());
    let explanation =
        explain_query(database, &reader, collection, (&leading, &query), purpose, effort)?;
    Ok((explanation, rest))
}

/// Returns the order in which the search finds documents that a pipeline wants `sorted`.
fn order_of(filter: &Filter, sorted: Option<&SortPattern>, collation: &Collation) -> Order {
    match (filter.distance(), sorted) {
        (Some(distance), _) => Order::Near(distance),
        (None, Some(order)) => Order::By(order.clone()).with_collation(collation),
        (None, None) => Order::Any,
    }
}

fn purpose_of(pipeline: &Pipeline, is_near: bool) -> Purpose {
    match (pipeline.counts_only(), !is_near && pipeline.divides()) {
        (true, _) => Purpose::CountedStages,
        (false, true) => Purpose::DividedStages,
        (false, false) => Purpose::Stages,
    }
}

/// Splits the stages into those that the search does, in the form of a `find`, and the others; a
/// `$sort` belongs to the former only if it sorts, and a `$skip` if it passes over `skip`.
fn split(
    stages: Vec<DocumentBuf>,
    request: &AggregateRequest,
    sorts: bool,
    skip: u64,
) -> (FindRequest, Vec<DocumentBuf>) {
    let mut stages = stages.into_iter().peekable();
    let mut document_of = |name: &str| {
        let argument = |stage: &DocumentBuf| {
            stage.get(name).and_then(|stage| stage.as_document()).map(|stage| stage.to_buf())
        };
        let found = stages.peek().and_then(argument);
        if found.is_some() {
            stages.next();
        }
        found
    };
    let filter = match document_of("$geoNear") {
        Some(near) => near.get("query").and_then(|query| query.as_document()).map(|q| q.to_buf()),
        None => document_of("$match"),
    };
    let sort = if sorts { document_of("$sort") } else { None };
    if 0 < skip {
        stages.next_if(|stage| stage.get("$skip").is_some());
    }
    let limit = stages.peek().and_then(|stage| stage.get("$limit")?.as_integer());
    let limit = limit.and_then(|limit| u64::try_from(limit).ok());
    if limit.is_some() {
        stages.next();
    }
    let (hint, collation) = (request.hint.clone(), request.collation.clone());
    let find = FindRequest { filter, sort, hint, skip, limit, collation, ..FindRequest::default() };
    (find, stages.collect())
}

/// The paths that are needed, as a projection.
fn projection_of(needs: &[String]) -> DocumentBuf {
    let mut projection = DocumentBuilder::new();
    let mut paths: Vec<&str> = needs.iter().map(String::as_str).collect();
    paths.sort_unstable();
    paths.dedup();
    for path in &paths {
        projection.append(path, Value::Int32(1));
    }
    if !paths.contains(&"_id") {
        projection.append("_id", Value::Int32(0));
    }
    projection.build()
}
