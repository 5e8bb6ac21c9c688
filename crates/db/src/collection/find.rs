//! `find`.

use std::sync::Arc;

use frond_doc::{Document, DocumentBuf, ValueBuf};
use frond_query::expression::Variables;
use frond_query::large::Large;
use frond_query::memory::RequestMemory;
use frond_query::metadata::MetadataKind;
use frond_query::pipeline::{Resources, Sorted, Sorter};
use frond_query::{Code, Collation, Filter, Projection, SortPattern};
use frond_tree::Direction;

use crate::catalog::CatalogView;
use crate::collection::covered::Needs;
use crate::collection::ending::Ending;
use crate::collection::handles::{Lazily, handles};
use crate::collection::plan::{self, Access, Between, Hint, Order, OwnFacts};
use crate::collection::put_aside::PutAside;
use crate::collection::scan::{Scan, gathered, tells_keys};
use crate::collection::shown::Shown;
use crate::collection::skip::{behind, pass_over};
use crate::collection::{Cursor, FindRequest, Purpose, by_id, capped, nearest};
use crate::database::Database;
use crate::definition::ID_INDEX_NAME;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::name;
use crate::reader::Reader;
use crate::schema::{Collection, IndexFilter, TreeRef};

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

/// What is looked for in a collection.
pub(crate) struct Search<'a> {
    /// Which documents.
    pub filter: &'a Filter,
    /// In which order.
    pub order: &'a Order,
    /// Index name or key.
    pub hint: Option<&'a ValueBuf>,
    /// At most how many, those that are passed over counted.
    pub limit: Option<u64>,
    /// What of them.
    pub needs: Needs,
    /// Between which keys of the hinted index.
    pub between: Between<'a>,
    /// The projection, as far as it is a part of the query's shape.
    pub projection: Option<Document<'a>>,
    /// The field whose distinct values alone are wanted.
    pub distinct: Option<&'a str>,
    /// The first and the last place of a capped collection's documents.
    pub placed: Option<(u64, u64)>,
}

impl<'a> Search<'a> {
    /// All documents that pass `filter`, whole and in any order.
    pub fn of(filter: &'a Filter, hint: Option<&'a ValueBuf>) -> Search<'a> {
        Search {
            filter,
            order: &Order::Any,
            hint,
            limit: None,
            needs: None,
            between: Between::default(),
            projection: None,
            distinct: None,
            placed: None,
        }
    }
}

impl Search<'_> {
    /// What is asked of this collection.
    ///
    /// # Errors
    /// `BadValue` for a hint on an index that it hasn't.
    pub(crate) fn on(&self, collection: &Collection) -> Result<plan::Request<'_>, Error> {
        let hint = match self.hint {
            Some(hint) => Hint::parse(hint, collection)?,
            None => None,
        };
        let Search { filter, order, limit, needs, between, distinct, .. } = self;
        let (limit, between, distinct) = (*limit, *between, *distinct);
        let is_by_id = collection.series.is_none();
        let allowed = None;
        Ok(plan::Request {
            filter,
            order,
            hint,
            limit,
            needs,
            between,
            distinct,
            is_by_id,
            allowed,
        })
    }
}

/// What of a query's plans is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Detail {
    /// The one that was chosen.
    Chosen,
    /// Those that were considered, too.
    Considered,
}

impl Database {
    /// Finds documents.
    ///
    /// # Errors
    /// `BadValue` (2) and MongoDB's other codes for a filter, sort, projection or hint that can't
    /// be; `Damaged` or `Unavailable` if the catalog can't be read. Documents fail one by one, when
    /// the cursor reads them; a sort has read them all before this returns.
    pub fn find(&self, collection: &str, request: &FindRequest) -> Result<Cursor, Error> {
        let reader = self.reader();
        if let Some(found) = by_id::find(self, &reader, collection, request)? {
            return Ok(found);
        }
        if self.is_made(&reader, collection)? {
            return self.find_in_view(collection, request);
        }
        let name = collection;
        let put_aside = PutAside::default();
        let large = handles(&reader, &put_aside);
        let Query { collection, filter, order, projection, .. } =
            self.query(&reader, collection, request, &large)?;
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
                nearest::find(self, &reader, found, by, wanted, &request.interrupt)?
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
        let ending = Ending::of(self, name, &collection, &access);
        let mut scan = Scan::new(reader, &collection, access, filter.clone(), &order)
            .interrupted_by(&request.interrupt)
            .ended_by(ending);
        // Of a few the scores are computed faster than all are read.
        if is_sorted || request.limit.is_none() {
            scan = scan.scored_by_entries(self.frond().resources(true).reservation());
        }
        let shows_all = request.tells_key || request.gives_keys;
        if let Some(projection) = projection.as_ref().filter(|_| large.is_met() && !shows_all)
            && !matches!(order, Order::Near(_))
        {
            scan = scan.lazily(asked_lazily(&large, projection, &filter, &order));
        }
        let limit =
            request.limit.map_or(usize::MAX, |limit| limit.try_into().unwrap_or(usize::MAX));
        let shown = Shown::of(request, &order, filter, projection, large);
        let project = move |document| shown.show(document);
        if let Some(nearest) = nearest {
            let found = nearest.found.into_iter().skip(skip).take(limit);
            return Ok(Cursor::new(found.map(move |found| project(found.document))));
        }
        if is_sorted {
            let resources = self.frond().resources(request.in_memory_only);
            let wanted = skip.saturating_add(limit);
            let sorted = self.sort_in_parts(&mut scan, &order, &resources, wanted);
            let sorted = behind(sorted.map_err(|error| put_aside.restore(error))?, skip);
            return Ok(Cursor::new(
                sorted
                    .map(move |entry| project(entry?.1).map_err(|error| put_aside.restore(error))),
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
        &self,
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
        match gathered(self.frond().cores(), scan, sorted_of) {
            Some(parts) => Ok(Sorted::interleaved(parts, wanted)?),
            None => sorted_of(scan, 1),
        }
    }

    /// Parses a `find` and chooses its plan.
    fn query(
        &self,
        reader: &Reader<'_>,
        collection: &str,
        request: &FindRequest,
        large: &Large,
    ) -> Result<Query, Error> {
        let purpose = (Purpose::Find, Detail::Chosen);
        self.query_of(reader, collection, request, purpose, large)
    }

    /// Parses a search, and chooses its plan as the command does that it is for.
    pub(crate) fn query_for(
        &self,
        reader: &Reader<'_>,
        collection: &str,
        request: &FindRequest,
        purpose: Purpose,
        detail: Detail,
    ) -> Result<Query, Error> {
        self.query_of(reader, collection, request, (purpose, detail), &Large::default())
    }

    /// The same for documents whose references `large` reads.
    fn query_of(
        &self,
        reader: &Reader<'_>,
        collection: &str,
        request: &FindRequest,
        (purpose, detail): (Purpose, Detail),
        large: &Large,
    ) -> Result<Query, Error> {
        let found = self.find_collection(reader, collection)?;
        let collation = collation_of(request.collation.as_ref(), found.as_deref())?;
        let variables = self.parse_variables(request.variables.as_ref(), &request.interrupt)?;
        let variables = variables.with_collation(collation.clone()).with_large(large.clone());
        let filter =
            self.parse_filter(request.filter.as_ref().map(DocumentBuf::view), &variables)?;
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
            (Detail::Considered, Some(found)) => self.rejected(reader, found, &search)?,
            _ => Vec::new(),
        };
        let allowed = found.as_ref().and_then(|found| self.allowed(found, &search));
        let collection = self.access(reader, found, search)?;
        let has_index_filter = allowed.is_some();
        Ok(Query { collection, filter, order, projection, rejected, has_index_filter })
    }

    /// The indexes that may be used, if an operator has said so.
    pub(crate) fn allowed(
        &self,
        collection: &Collection,
        search: &Search<'_>,
    ) -> Option<Arc<IndexFilter>> {
        self.index_filter(collection, (search.filter, search.order), search.projection)
    }

    /// The ways that were considered for a search and not chosen.
    pub(crate) fn rejected(
        &self,
        reader: &Reader<'_>,
        collection: &Collection,
        search: &Search<'_>,
    ) -> Result<Vec<Access>, Error> {
        let allowed = self.allowed(collection, search);
        plan::rejected(reader, collection, search.on(collection)?.among(allowed.as_deref()))
    }

    /// Chooses how to find the documents of a collection that pass `filter`; `None` if there is no
    /// collection.
    pub(crate) fn access(
        &self,
        reader: &Reader<'_>,
        collection: Option<Arc<Collection>>,
        search: Search<'_>,
    ) -> Result<Option<(Arc<Collection>, Access)>, Error> {
        let Some(collection) = collection else {
            return match search.filter.text() {
                Some(_) => Err(plan::no_text_index()),
                None => Ok(None),
            };
        };
        let allowed = self.allowed(&collection, &search);
        let request = search.on(&collection)?.among(allowed.as_deref());
        let access = match search.placed {
            Some(_) if request.filter.text().is_some() => {
                let message = "text and tailable cursor not allowed in same query";
                return Err(Error::invalid(Code::BadValue, message));
            }
            // Between two places nothing but the places is worth reading.
            Some((first, last)) => {
                let mut access = Access::natural(&collection, Direction::Ascending, request);
                for path in &mut access.paths {
                    path.ranges = vec![capped::places(first, last)];
                }
                access
            }
            None => plan::choose(reader, &collection, &OwnFacts::default(), request)?,
        };
        for path in &access.paths {
            let name = match path.source {
                plan::Source::Collection | plan::Source::Natural => continue,
                plan::Source::Id => ID_INDEX_NAME,
                plan::Source::Index(position) => &collection.indexes[position].spec.name,
                plan::Source::Place => match &collection.series {
                    Some(series) => &series.index.name,
                    None => continue,
                },
            };
            self.frond().usage().count(collection.uuid, name);
        }
        Ok(Some((collection, access)))
    }

    /// Finds a collection: where it was found before, if that is known to be right.
    pub(crate) fn find_collection(
        &self,
        reader: &Reader<'_>,
        name: &str,
    ) -> Result<Option<Arc<Collection>>, Error> {
        let known = self.known_to(reader);
        // A transaction whose snapshot may move has to read that a collection has no trees of its
        // own yet: in those that it reads nothing changes when it gets some.
        let is_enough = |found: &Arc<Collection>| {
            !reader.may_change() || matches!(found.documents, TreeRef::Live(_))
        };
        if let Some(collection) = known.and_then(|known| known.collection(name)).filter(is_enough) {
            return Ok(Some(collection));
        }
        let catalog = CatalogView::open(reader, self)?;
        let found = catalog.collection(name)?.map(Arc::new);
        // Who asks for MongoDB's buckets must not take them for empty.
        if found.is_none()
            && let Some(name) = name::of_buckets(name)
            && catalog.collection(name)?.is_some_and(|found| found.series.is_some())
        {
            let message = format!(
                "{} is a time-series collection, and Frond stores no buckets: this is done by its \
                 own name",
                self.namespace(name)
            );
            return Err(Error::invalid(Code::CommandNotSupported, message));
        }
        if let (Some(known), Some(found)) = (known, &found) {
            known.keep_collection(name, found);
        }
        Ok(found)
    }

    /// Evaluates a command's `let`, and notes the time for `$$NOW`.
    ///
    /// What the command evaluates is charged to one reservation, and stops when `interrupt` says
    /// so.
    ///
    /// # Errors
    /// MongoDB's codes for a name that no variable can have, and for what an expression fails with.
    #[doc(hidden)]
    pub fn parse_variables(
        &self,
        variables: Option<&DocumentBuf>,
        interrupt: &Interrupt,
    ) -> Result<Variables, Error> {
        let variables = variables.map(DocumentBuf::view);
        let frond = self.frond();
        let interrupt = interrupt.clone();
        let go_on = move || interrupt.check().map_err(|error| error.as_query());
        let memory = RequestMemory::new(frond.request_reservation(), Some(Arc::new(go_on)));
        let memory = if frond.runs_scripts() { memory } else { memory.without_scripts() };
        let (now, time) = (frond.now_millis(), frond.operation_time());
        Ok(Variables::in_cluster(now, time, memory, variables)?)
    }

    /// Parses a filter (`None`: everything passes), which sees `variables`.
    pub(crate) fn parse_filter(
        &self,
        filter: Option<Document<'_>>,
        variables: &Variables,
    ) -> Result<Filter, Error> {
        let filter = match filter.filter(|filter| !filter.is_empty()) {
            Some(filter) => {
                variables.memory().hold_parsed(filter.as_bytes().len())?;
                Filter::parse_search(filter)?
            }
            None => Filter::all(),
        };
        let filter = filter.with_variables(variables.clone());
        filter.check_scripts()?;
        Ok(filter)
    }
}

/// What a scan finds, in its order.
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

/// Parses a projection of what a search has found; `None` if documents go through unchanged.
pub(crate) fn parse_searched(
    projection: Option<Document<'_>>,
    variables: Variables,
) -> Result<Option<Projection>, Error> {
    let Some(projection) = projection.filter(|projection| !projection.is_empty()) else {
        return Ok(None);
    };
    let projection = Projection::parse_search(projection)?;
    let variables = match projection.metadata().is_empty() {
        true => variables,
        false => variables.with_metadata(),
    };
    let projection = projection.with_variables(variables);
    Ok(Some(projection).filter(|projection| !projection.is_identity()))
}

/// The filter, told what of the search is sorted by and shown.
pub(crate) fn asked_metadata(
    filter: Filter,
    order: &Order,
    projection: Option<&Projection>,
) -> Result<Filter, Error> {
    let mut metadata = projection.map(Projection::metadata).unwrap_or_default();
    metadata = metadata.union(order.pattern().map(SortPattern::metadata).unwrap_or_default());
    for (kind, is_there) in [
        (MetadataKind::TextScore, filter.text().is_some()),
        (MetadataKind::GeoNearDistance, filter.near().is_some()),
        (MetadataKind::GeoNearPoint, filter.near().is_some()),
    ] {
        if metadata.contains(kind) && !is_there {
            return Err(kind.unavailable().into());
        }
    }
    if metadata.contains(MetadataKind::SortKey) && order.pattern().is_none() {
        let message = "cannot use sortKey $meta projection without a sort";
        return Err(Error::invalid(Code::BadValue, message));
    }
    Ok(filter.with_metadata(metadata.of_search()))
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

/// How strings compare in a request that asks for `wanted` of a collection.
pub(crate) fn collation_of(
    wanted: Option<&Collation>,
    collection: Option<&Collection>,
) -> Result<Collation, Error> {
    match (wanted, collection) {
        (Some(wanted), _) => Ok(wanted.clone()),
        (None, Some(collection)) => collection.collation(),
        (None, None) => Ok(Collation::SIMPLE),
    }
}
