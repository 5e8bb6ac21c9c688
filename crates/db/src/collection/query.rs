//! A search whose parts are parsed and whose plan is made, for `find` and `explain`.

use std::sync::Arc;

use frond_doc::DocumentBuf;
use frond_query::large::Large;
use frond_query::metadata::MetadataKind;
use frond_query::{Filter, Projection};

use crate::catalog::Catalog;
use crate::collection::covered::NeededPaths;
use crate::collection::parse::{parse_request, parse_searched, with_metadata};
use crate::collection::plan::{Access, MinMaxBounds, Order};
use crate::collection::search::Search;
use crate::collection::{FindRequest, Purpose};
use crate::database::Database;
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::Collection;

/// A `find` whose parts are parsed and whose plan is made.
pub(crate) struct Query {
    /// The collection; `None`: there is none, nothing is found.
    pub collection: Option<(Arc<Collection>, Access)>,
    /// The filter of the documents.
    pub filter: Filter,
    /// The order.
    pub order: Order,
    /// The projection of them.
    pub projection: Option<Projection>,
    /// The accesses by other indexes, the best first; none unless they were asked for.
    pub rejected: Vec<Access>,
    /// Whether an operator has said which indexes may be used.
    pub has_index_filter: bool,
}

/// The plans of a query that are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Detail {
    /// The one that was chosen.
    Chosen,
    /// The same, of a search that has run already.
    Executed,
    /// Those that were considered, too.
    Considered,
}

/// Parses a search, and chooses its plan as the command does that it is for.
pub(crate) fn query_for(
    database: &Database,
    reader: &Reader<'_>,
    collection: &str,
    request: &FindRequest,
    purpose: Purpose,
    detail: Detail,
) -> Result<Query, Error> {
    query_of(database, reader, collection, request, (purpose, detail), &Large::default())
}

/// The same for documents whose references `large` reads.
pub(super) fn query_of(
    database: &Database,
    reader: &Reader<'_>,
    collection: &str,
    request: &FindRequest,
    (purpose, detail): (Purpose, Detail),
    large: &Large,
) -> Result<Query, Error> {
    let found = Catalog::of(reader, database).collection(collection)?;
    let (filter, variables) = parse_request(database, request, found.as_deref(), large)?;
    let order = Order::parse_search(request.sort.as_ref().map(DocumentBuf::view))?;
    let order = match (order.with_collation(variables.collation()), filter.distance()) {
        (Order::Any, Some(distance)) => Order::Near(distance),
        (order, _) => order,
    };
    let projection = request.projection.as_ref().map(DocumentBuf::view);
    let projection = parse_searched(projection, variables)?;
    let filter = with_metadata(filter, &order, projection.as_ref())?;
    filter.compute_constants()?;
    if let Some(projection) = &projection {
        projection.compute_constants()?;
    }
    let filter = match request.gives_keys {
        true => filter.also_with_metadata(MetadataKind::IndexKey),
        false => filter,
    };
    let search = Search {
        filter: &filter,
        order: &order,
        hint: request.hint.as_ref(),
        limit: request.limit.map(|limit| limit.saturating_add(request.skip)),
        skip: request.skip,
        between: MinMaxBounds::of(request.min.as_ref(), request.max.as_ref())?,
        needs: needs_of(request, purpose, projection.as_ref()),
        projection: match purpose {
            Purpose::Find => request.projection.as_ref().map(DocumentBuf::view),
            _ => None,
        },
        distinct: distinct_of(request, purpose),
        placed: request.placed,
    };
    let rejected = match (detail, &found) {
        (Detail::Considered, Some(found)) => search.rejected(database.frond(), reader, found)?,
        _ => Vec::new(),
    };
    let allowed = found.as_ref().and_then(|found| search.allowed(database.frond(), found));
    let collection = match detail {
        Detail::Executed => search.access_again(database.frond(), reader, found)?,
        Detail::Chosen | Detail::Considered => search.access(database.frond(), reader, found)?,
    };
    let has_index_filter = allowed.is_some();
    Ok(Query { collection, filter, order, projection, rejected, has_index_filter })
}

/// The paths that are needed of documents; `None`: all of them.
fn needs_of(
    request: &FindRequest,
    purpose: Purpose,
    projection: Option<&Projection>,
) -> NeededPaths {
    match purpose {
        Purpose::Count | Purpose::CountedStages => Some(Vec::new()),
        Purpose::Find | Purpose::Distinct if request.shows_record_id || request.gives_keys => None,
        Purpose::Find | Purpose::Distinct => projection.and_then(Projection::paths),
        Purpose::Stages | Purpose::DividedStages => None,
        Purpose::Update | Purpose::Delete => None,
    }
}

/// The field whose distinct values alone are wanted.
fn distinct_of(request: &FindRequest, purpose: Purpose) -> Option<&str> {
    match (purpose, &request.projection) {
        (Purpose::Distinct, Some(projection)) => {
            projection.iter().map(|(name, _)| name).find(|name| *name != "_id")
        }
        _ => None,
    }
}
