//! `find`.

use std::sync::Arc;

use frond_doc::DocumentBuf;
use frond_query::large::Large;
use frond_query::outermost::OutermostNames;
use frond_query::pipeline::{Sorted, Sorter};
use frond_query::script_batches::BatchReader;
use frond_query::{Code, examined};

use crate::catalog::Catalog;
use crate::collection::cursor_validity::CursorValidity;
use crate::collection::deferred_errors::DeferredErrors;
use crate::collection::handles::{LazyLargeDocuments, handles};
use crate::collection::nearest::{self, Nearest};
use crate::collection::plan::{self, Access, Order};
use crate::collection::query::{Detail, Query, query_of};
use crate::collection::result_shape::ResultShape;
use crate::collection::scan::{DividedScan, Scan, gathered, has_reversible_keys};
use crate::collection::skip::{behind, pass_over};
use crate::collection::view::find_in_view;
use crate::collection::{Cursor, FindRequest, Purpose, by_id, by_ids, express};
use crate::database::Database;
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::Collection;

/// The name of the sorter, in messages.
const SORT: &str = "Executor error during find command :: caused by :: Sort";
/// The documents between two checks whether to stop.
const CHECK_COUNT: usize = 64;

/// Finds documents.
pub(crate) fn find(
    database: &Database,
    collection: &str,
    request: &FindRequest,
) -> Result<Cursor, Error> {
    let reader = database.reader();
    let by_id = by_id::find(database, &reader, collection, request).transpose();
    let by_ids = || by_ids::find(database, &reader, collection, request).transpose();
    if let Some(found) = by_id.or_else(by_ids) {
        return found;
    }
    if Catalog::of(&reader, database).is_made(collection)? {
        return find_in_view(database, collection, request);
    }
    let deferred = DeferredErrors::default();
    let large = handles(&reader, &deferred);
    let purpose = (Purpose::Find, Detail::Chosen);
    let mut query = query_of(database, &reader, collection, request, purpose, &large)?;
    let Some((found, mut access)) = query.collection.take() else {
        return Ok(Cursor::empty());
    };
    if request.gives_keys {
        access.walk_keys_of_id(&query.order, request.hint.as_ref(), &found)?;
        refuse_irreversible_keys(&access, &found)?;
    }
    let nearest = nearest_of(database, &reader, (&found, &access), request, &query)?;
    let is_sorted = must_sort(&query.order, &access);
    let mut skip = request.skip;
    if !is_sorted {
        skip = pass_over(&reader, &found, &mut access, skip)?;
    }
    let skip = usize::try_from(skip).unwrap_or(usize::MAX);
    let ending = CursorValidity::of(database, collection, &found, &access);
    if let (Order::Any, Some(_)) = (&query.order, &request.hint) {
        query.order = access.key_order(&found)?.unwrap_or(Order::Any);
    }
    let scan = scan_of(reader, (&found, access), request, &query, &large).ended_by(ending);
    // The scores of a few are computed faster than all are read.
    let mut scan = match is_sorted || request.limit.is_none() {
        true => scan.scored_by_entries(database.frond().resources(true).reservation()),
        false => scan,
    };
    let limit = request.limit.map_or(usize::MAX, |limit| limit.try_into().unwrap_or(usize::MAX));
    let kept = kept_names(request, &query);
    let Query { filter, order, projection, .. } = query;
    let shown = ResultShape::of(request, &order, filter, projection, large);
    if let Some(nearest) = nearest {
        let found = nearest.found.into_iter().skip(skip).take(limit);
        return Ok(cursor_of(shown, found.map(|found| Ok(found.document)), deferred));
    }
    if is_sorted {
        let (wanted, in_memory_only) = (skip.saturating_add(limit), request.in_memory_only);
        let sorting = Sorting { order: &order, kept, in_memory_only, wanted };
        let sorted = sort_in_parts(database, &mut scan, &sorting);
        let found = behind(sorted.map_err(|error| deferred.restore(error))?, skip);
        return Ok(cursor_of(shown, found, deferred));
    }
    let scan = DividedScan::new(scan, Some(Arc::clone(database.frond().cores())));
    Ok(cursor_of(shown, behind(scan, skip).take(limit), deferred))
}

/// Returns a cursor over the shown form of the documents; several are shown at once where that runs
/// scripts.
fn cursor_of(
    shown: ResultShape,
    mut found: impl Iterator<Item = Result<DocumentBuf, Error>> + Send + 'static,
    deferred: DeferredErrors,
) -> Cursor {
    let Some(memory) = shown.memory_of_scripts() else {
        let show = move |document: Result<_, Error>| Ok(shown.show(document?)?);
        return Cursor::new(
            found.map(move |document| {
                show(document).map_err(|error: Error| deferred.restore(error))
            }),
        );
    };
    let mut ahead: BatchReader<DocumentBuf, DocumentBuf, Error> = BatchReader::default();
    let mut read = move || {
        let document = found.next().transpose()?;
        Ok(document.map(|document| (document.clone(), document.as_bytes().len())))
    };
    let show = move |document: &DocumentBuf| shown.show(document.clone());
    Cursor::new(std::iter::from_fn(move || {
        let next = ahead.next(&memory, &mut read, &show).transpose()?;
        Some(next.map(|(_, document)| document).map_err(|error| deferred.restore(error)))
    }))
}

/// Whether what `access` finds is sorted afterwards.
fn must_sort(order: &Order, access: &Access) -> bool {
    match order {
        Order::By(_) => !access.gives_order,
        Order::Near(_) => true,
        Order::Any | Order::Natural(_) => false,
    }
}

/// The scan of what was chosen, shown as MongoDB's planner would run it.
fn scan_of(
    reader: Reader<'static>,
    (found, access): (&Arc<Collection>, Access),
    request: &FindRequest,
    query: &Query,
    large: &Large,
) -> Scan<'static> {
    let is_express = express::of(found, &access, request, Purpose::Find).is_some();
    let scan = Scan::new(reader, found, access, query.filter.clone(), &query.order);
    if is_express {
        scan.note_express();
    }
    let scan = scan.interrupted_by(&request.interrupt);
    match needed_pieces(request, query, large) {
        Some(lazily) => scan.lazily(lazily),
        None => scan,
    }
}

/// The nearest documents, if that is what is asked for and they need no scan of all.
fn nearest_of(
    database: &Database,
    reader: &Reader<'static>,
    found: (&Arc<Collection>, &Access),
    request: &FindRequest,
    query: &Query,
) -> Result<Option<Nearest>, Error> {
    if !matches!(query.order, Order::Near(_)) {
        return Ok(None);
    }
    let wanted = request.limit.map(|limit| limit.saturating_add(request.skip));
    let by = (&query.filter, request.hint.as_ref());
    nearest::find(database, reader, found, by, wanted, &request.interrupt)
}

/// What is asked of an order.
struct Sorting<'a> {
    order: &'a Order,
    /// The outermost fields that are shown or sorted by; all if there are none.
    kept: Option<OutermostNames>,
    in_memory_only: bool,
    /// The number of first documents that are wanted, at least.
    wanted: usize,
}

/// Sorts what a scan finds, on the cores that are idle.
fn sort_in_parts(
    database: &Database,
    scan: &mut Scan<'_>,
    sorting: &Sorting<'_>,
) -> Result<impl Iterator<Item = Result<DocumentBuf, Error>> + Send + use<>, Error> {
    if sorting.order.pattern().is_some() {
        examined::note_sort();
    }
    let resources = database.frond().resources(sorting.in_memory_only);
    let sorted_of = |scan: &mut Scan<'_>, part_count: usize| {
        let resources = match part_count {
            1 => resources.clone(),
            several => resources.of_part(several),
        };
        sorted(scan, sorting, Sorter::new(SORT, &resources, sorting.wanted))
    };
    let sorted = match gathered(database.frond().cores(), scan, sorted_of) {
        Some(parts) => Sorted::interleaved(parts, sorting.wanted)?,
        None => sorted_of(scan, 1)?,
    };
    Ok(sorted.map(|entry| Ok(entry?.1)))
}

/// Returns the outermost fields that the answer and its order are made of, where others aren't.
fn kept_names(request: &FindRequest, query: &Query) -> Option<OutermostNames> {
    let (Order::By(pattern), Some(projection)) = (&query.order, &query.projection) else {
        return None;
    };
    if request.shows_record_id || request.gives_keys {
        return None;
    }
    let mut names = OutermostNames::of(projection.paths()?.iter().map(String::as_str));
    names.extend(pattern.fields.iter().map(|field| &*field.path));
    Some(names)
}

/// Returns the parts of large documents to read, where not all are needed: those of the order and
/// the projection.
fn needed_pieces(
    request: &FindRequest,
    query: &Query,
    large: &Large,
) -> Option<LazyLargeDocuments> {
    let Query { order, projection: Some(projection), .. } = query else { return None };
    let shows_all = request.shows_record_id || request.gives_keys;
    if shows_all || !large.may_have_references() || matches!(order, Order::Near(_)) {
        return None;
    }
    let mut lazily = LazyLargeDocuments::new(large, true).with_needed(&projection.needed_paths());
    if let Order::By(pattern) = order {
        lazily = lazily.with_needed(&pattern.needed_paths());
    }
    Some(match projection.paths() {
        Some(paths) => lazily.only(&paths),
        None => lazily,
    })
}

/// Sorts the documents that a scan finds.
fn sorted(
    scan: &mut Scan<'_>,
    sorting: &Sorting<'_>,
    mut sorter: Sorter<'_>,
) -> Result<Sorted, Error> {
    let interrupt = scan.interrupt().clone();
    let (mut count, mut key) = (0_usize, Vec::new());
    scan.visit_fields(&mut |document| {
        if count.is_multiple_of(CHECK_COUNT) {
            interrupt.check()?;
        }
        count += 1;
        key.clear();
        match sorting.order {
            Order::By(pattern) => pattern.append(&mut key, document)?,
            Order::Near(distance) => key.extend_from_slice(&distance.key(document)),
            Order::Any | Order::Natural(_) => {}
        }
        let cut = sorting.kept.as_ref().and_then(|kept| kept.cut(document));
        sorter.add_view(&key, cut.as_ref().map_or(document, DocumentBuf::view))?;
        Ok(true)
    })?;
    Ok(sorter.finish()?)
}

/// Refuses to give keys of an index from whose entries they can't be read.
fn refuse_irreversible_keys(access: &Access, collection: &Collection) -> Result<(), Error> {
    let indexes = access.paths.iter().filter_map(|path| match path.source {
        plan::Source::Index(position) => collection.indexes.get(position),
        _ => None,
    });
    for index in indexes {
        if !has_reversible_keys(index) {
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
