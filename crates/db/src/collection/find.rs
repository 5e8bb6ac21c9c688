//! `find`.

use std::sync::Arc;

use frond_doc::DocumentBuf;
use frond_query::large::Large;
use frond_query::metadata::MetadataKind;
use frond_query::pipeline::{Resources, Sorted, Sorter};
use frond_query::{Code, Filter, Projection};

use crate::catalog::Catalog;
use crate::collection::ending::Ending;
use crate::collection::handles::{Lazily, handles};
use crate::collection::parse::{
    asked_metadata, collation_of, parse_filter, parse_searched, parse_variables,
};
use crate::collection::plan::{self, Access, Between, Order};
use crate::collection::put_aside::PutAside;
use crate::collection::scan::{Scan, gathered, tells_keys};
use crate::collection::search::Search;
use crate::collection::shown::Shown;
use crate::collection::skip::{behind, pass_over};
use crate::collection::view::find_in_view;
use crate::collection::{Cursor, FindRequest, Purpose, by_id, nearest};
use crate::database::Database;
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::Collection;

/// What sorts, in messages.
const SORT: &str = "Executor error during find command :: caused by :: Sort";
/// Whether to stop is asked once for so many documents.
const CHECK_COUNT: usize = 64;

/// A `find` whose parts are parsed and whose plan is made.
pub(crate) struct Query {
    /// The collection; `None`: there is none, nothing is found.
    pub collection: Option<(Arc<Collection>, Access)>,
    /// Which documents.
    pub filter: Filter,
    /// In which order.
    pub order: Order,
    /// What of them.
    pub projection: Option<Projection>,
    /// Where they could have been found by other indexes, the best way first; none unless it was
    /// asked for.
    pub rejected: Vec<Access>,
    /// Whether an operator has said which indexes may be used.
    pub has_index_filter: bool,
}

/// What of a query's plans is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Detail {
    /// The one that was chosen.
    Chosen,
    /// Those that were considered, too.
    Considered,
}

/// Finds documents.
pub(crate) fn find(
    database: &Database,
    collection: &str,
    request: &FindRequest,
) -> Result<Cursor, Error> {
    let reader = database.reader();
    if let Some(found) = by_id::find(database, &reader, collection, request)? {
        return Ok(found);
    }
    if Catalog::of(&reader, database).is_made(collection)? {
        return find_in_view(database, collection, request);
    }
    let name = collection;
    let put_aside = PutAside::default();
    let large = handles(&reader, &put_aside);
    let Query { collection, filter, order, projection, .. } =
        query(database, &reader, collection, request, &large)?;
    let Some((collection, mut access)) = collection else {
        return Ok(Cursor::empty());
    };
    if request.gives_keys {
        access.walk_keys_of_id(&order, request.hint.as_ref(), &collection)?;
        refuse_untold_keys(&access, &collection)?;
    }
    let wanted = request.limit.map(|limit| limit.saturating_add(request.skip));
    let nearest = match order {
        Order::Near(_) => {
            let by = (&filter, request.hint.as_ref());
            let found = (&collection, &access);
            nearest::find(database, &reader, found, by, wanted, &request.interrupt)?
        }
        _ => None,
    };
    let in_order = access.gives_order;
    let is_sorted = match order {
        Order::By(_) => !in_order,
        Order::Near(_) => true,
        Order::Any | Order::Natural(_) => false,
    };
    let mut skip = request.skip;
    if !is_sorted {
        skip = pass_over(&reader, &collection, &mut access, skip)?;
    }
    let skip = usize::try_from(skip).unwrap_or(usize::MAX);
    let ending = Ending::of(database, name, &collection, &access);
    let mut scan = Scan::new(reader, &collection, access, filter.clone(), &order)
        .interrupted_by(&request.interrupt)
        .ended_by(ending);
    // Of a few the scores are computed faster than all are read.
    if is_sorted || request.limit.is_none() {
        scan = scan.scored_by_entries(database.frond().resources(true).reservation());
    }
    let shows_all = request.tells_key || request.gives_keys;
    if let Some(projection) = projection.as_ref().filter(|_| large.is_met() && !shows_all)
        && !matches!(order, Order::Near(_))
    {
        scan = scan.lazily(asked_lazily(&large, projection, &filter, &order));
    }
    let limit = request.limit.map_or(usize::MAX, |limit| limit.try_into().unwrap_or(usize::MAX));
    let shown = Shown::of(request, &order, filter, projection, large);
    let project = move |document| shown.show(document);
    if let Some(nearest) = nearest {
        let found = nearest.found.into_iter().skip(skip).take(limit);
        return Ok(Cursor::new(found.map(move |found| project(found.document))));
    }
    if is_sorted {
        let resources = database.frond().resources(request.in_memory_only);
        let wanted = skip.saturating_add(limit);
        let sorted = sort_in_parts(database, &mut scan, &order, &resources, wanted);
        let sorted = behind(sorted.map_err(|error| put_aside.restore(error))?, skip);
        return Ok(Cursor::new(
            sorted.map(move |entry| project(entry?.1).map_err(|error| put_aside.restore(error))),
        ));
    }
    let found = behind(scan, skip).take(limit);
    Ok(Cursor::new(found.map(move |found| {
        let found = found.and_then(|found| project(found.into_asked()));
        found.map_err(|error| put_aside.restore(error))
    })))
}

/// Sorts what a scan finds, on the cores that are idle; at least the first `wanted`.
fn sort_in_parts(
    database: &Database,
    scan: &mut Scan<'_>,
    order: &Order,
    resources: &Resources,
    wanted: usize,
) -> Result<Sorted, Error> {
    let sorted_of = |scan: &mut Scan<'_>, part_count: usize| {
        let resources = match part_count {
            1 => resources.clone(),
            several => resources.of_part(several),
        };
        sorted(scan, order, Sorter::new(SORT, &resources, wanted))
    };
    match gathered(database.frond().cores(), scan, sorted_of) {
        Some(parts) => Ok(Sorted::interleaved(parts, wanted)?),
        None => sorted_of(scan, 1),
    }
}

/// Parses a `find` and chooses its plan.
fn query(
    database: &Database,
    reader: &Reader<'_>,
    collection: &str,
    request: &FindRequest,
    large: &Large,
) -> Result<Query, Error> {
    let purpose = (Purpose::Find, Detail::Chosen);
    query_of(database, reader, collection, request, purpose, large)
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
fn query_of(
    database: &Database,
    reader: &Reader<'_>,
    collection: &str,
    request: &FindRequest,
    (purpose, detail): (Purpose, Detail),
    large: &Large,
) -> Result<Query, Error> {
    let found = Catalog::of(reader, database).collection(collection)?;
    let collation = collation_of(request.collation.as_ref(), found.as_deref())?;
    let variables =
        parse_variables(database.frond(), request.variables.as_ref(), &request.interrupt)?;
    let variables = variables.with_collation(collation.clone()).with_large(large.clone());
    let filter = parse_filter(request.filter.as_ref().map(DocumentBuf::view), &variables)?;
    let order = Order::parse_search(request.sort.as_ref().map(DocumentBuf::view))?;
    let order = match (order.with_collation(&collation), filter.distance()) {
        (Order::Any, Some(distance)) => Order::Near(distance),
        (order, _) => order,
    };
    let projection = request.projection.as_ref().map(DocumentBuf::view);
    let projection = parse_searched(projection, variables)?;
    let filter = asked_metadata(filter, &order, projection.as_ref())?;
    let filter = match request.gives_keys {
        true => filter.also_with_metadata(MetadataKind::IndexKey),
        false => filter,
    };
    let needs = match purpose {
        Purpose::Count | Purpose::CountedStages => Some(Vec::new()),
        Purpose::Find | Purpose::Distinct if request.tells_key || request.gives_keys => None,
        Purpose::Find | Purpose::Distinct => projection.as_ref().and_then(Projection::paths),
        Purpose::Stages | Purpose::DividedStages => None,
        Purpose::Update | Purpose::Delete => None,
    };
    let search = Search {
        filter: &filter,
        order: &order,
        hint: request.hint.as_ref(),
        limit: request.limit.map(|limit| limit.saturating_add(request.skip)),
        between: Between {
            min: request.min.as_ref().map(DocumentBuf::view),
            max: request.max.as_ref().map(DocumentBuf::view),
        },
        needs,
        projection: match purpose {
            Purpose::Find => request.projection.as_ref().map(DocumentBuf::view),
            _ => None,
        },
        distinct: match (purpose, &request.projection) {
            (Purpose::Distinct, Some(projection)) => {
                projection.iter().map(|(name, _)| name).find(|name| *name != "_id")
            }
            _ => None,
        },
        placed: request.placed,
    };
    let rejected = match (detail, &found) {
        (Detail::Considered, Some(found)) => search.rejected(database.frond(), reader, found)?,
        _ => Vec::new(),
    };
    let allowed = found.as_ref().and_then(|found| search.allowed(database.frond(), found));
    let collection = search.access(database.frond(), reader, found)?;
    let has_index_filter = allowed.is_some();
    Ok(Query { collection, filter, order, projection, rejected, has_index_filter })
}

/// What a search reads of large documents: the filter, the order and the projection ask for it.
fn asked_lazily(large: &Large, projection: &Projection, filter: &Filter, order: &Order) -> Lazily {
    let mut lazily = Lazily::new(large, true).asking(&projection.asked(filter));
    if let Order::By(pattern) = order {
        lazily = lazily.asking(&pattern.asked());
    }
    match projection.paths() {
        Some(paths) => lazily.only(&paths),
        None => lazily,
    }
}

/// What a scan finds, in its order.
fn sorted(scan: &mut Scan<'_>, order: &Order, mut sorter: Sorter<'_>) -> Result<Sorted, Error> {
    let interrupt = scan.interrupt().clone();
    let (mut count, mut key) = (0_usize, Vec::new());
    scan.visit_asked(&mut |document| {
        if count.is_multiple_of(CHECK_COUNT) {
            interrupt.check()?;
        }
        count += 1;
        key.clear();
        match order {
            Order::By(pattern) => pattern.append(&mut key, document)?,
            Order::Near(distance) => key.extend_from_slice(&distance.key(document)),
            Order::Any | Order::Natural(_) => {}
        }
        sorter.add_view(&key, document)?;
        Ok(true)
    })?;
    Ok(sorter.finish()?)
}

/// Refuses to give keys of an index from whose entries they can't be told.
fn refuse_untold_keys(access: &Access, collection: &Collection) -> Result<(), Error> {
    let indexes = access.paths.iter().filter_map(|path| match path.source {
        plan::Source::Index(position) => collection.indexes.get(position),
        _ => None,
    });
    for index in indexes {
        if !tells_keys(index) {
            let message = format!(
                "returnKey with the index {} is not supported by Frond: it has places, terms or a \
                 collation",
                index.spec.name
            );
            return Err(Error::invalid(Code::CommandNotSupported, message));
        }
    }
    Ok(())
}
