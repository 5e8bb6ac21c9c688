//! `distinct`.
//!
//! Where an index's keys give the field's values back and decide which documents pass, no documents
//! are read, and of the many entries with one value only some: then the scan goes on behind all of
//! them.

use std::collections::HashSet;

use frond_doc::path::Path;
use frond_doc::{Document, Value, ValueBuf};
use frond_query::index::decode;
use frond_query::large::{Depth, NeededPaths};
use frond_query::{Code, Collation};
use frond_store::budget::Reservation;

use crate::catalog::{Catalog, index_entry};
use crate::collection::FindRequest;
use crate::collection::deferred_errors::DeferredErrors;
use crate::collection::handles::{LazyLargeDocuments, handles};
use crate::collection::parse::{collation_of, parse_request};
use crate::collection::plan::{Access, Order, Source};
use crate::collection::scan::{Scan, gathered};
use crate::collection::search::Search;
use crate::collection::view::filter_view;
use crate::collection::walk::{Walk, WalkCounts};
use crate::database::Database;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::reader::Reader;
use crate::request_profile::{self, Plan, ScanSummary};
use crate::schema::Collection;

/// The answer is one document, so its values have to fit into one.
const DISTINCT_BYTES_MAX: usize = frond_doc::document::DOCUMENT_BYTES_MAX;
/// MongoDB's code of an answer that doesn't.
const DISTINCT_TOO_BIG: Code = Code::Location(17217);

/// Entries with one value that are read before the scan goes on behind all of them.
const READ_ON_COUNT: usize = 4;
/// The entries between two checks whether to stop.
const CHECK_COUNT: usize = 64;

/// The values met so far.
pub(crate) struct Values {
    collation: Collation,
    seen: HashSet<Vec<u8>>,
    values: Vec<ValueBuf>,
    bytes: usize,
    reservation: Reservation,
    /// The key of the value that is added; kept for its memory.
    key: Vec<u8>,
}

/// The distinct values at `path` (elements of arrays on their own) of what a `find` would give,
/// in their order. Values that are equal, numbers of different types too,
/// count once; under a collation, of strings that are equal the one that came first.
pub(crate) fn distinct(
    database: &Database,
    collection: &str,
    path: &str,
    request: &FindRequest,
) -> Result<Vec<ValueBuf>, Error> {
    let reader = database.reader();
    if Catalog::of(&reader, database).is_made(collection)? {
        return distinct_in_view(database, &reader, collection, path, request);
    }
    let found = Catalog::of(&reader, database).collection(collection)?;
    let deferred = DeferredErrors::default();
    let large = handles(&reader, &deferred);
    let (filter, variables) = parse_request(database, request, found.as_deref(), &large)?;
    let collation = variables.collation();
    let search = Search {
        needs: Some(vec![path.to_owned()]),
        distinct: Some(path),
        ..Search::of(&filter, request.hint.as_ref())
    };
    let Some((collection, access)) = search.access(database.frond(), &reader, found)? else {
        return Ok(Vec::new());
    };
    if let Some(place) = scanned_part(&collection, &access, path) {
        let mut values = Values::new(database, collation.clone());
        let walks =
            scan_keys(&reader, &collection, access, place, &request.interrupt, &mut values)?;
        debug_assert!(walks.iter().all(|walk| walk.documents_examined == 0));
        return Ok(values.sorted());
    }
    let mut scan = Scan::new(reader, &collection, access, filter, &Order::Any)
        .interrupted_by(&request.interrupt);
    if large.may_have_references() {
        let mut needed = NeededPaths::default();
        needed.add(path, Depth::Whole);
        scan = scan.lazily(LazyLargeDocuments::new(&large, true).with_needed(&needed).only(&[]));
    }
    let path = Path::new(path);
    let values_of = |scan: &mut Scan<'_>| {
        let mut values = Values::new(database, collation.clone());
        scan.visit_fields(&mut |document| values.add_at(&path, document).map(|()| true))?;
        Ok(values)
    };
    let parts = gathered(database.frond().cores(), &mut scan, |part, _| values_of(part));
    let values = match parts.and_then(Values::of_parts) {
        Some(values) => values,
        None => values_of(&mut scan).map_err(|error| deferred.restore(error))?,
    };
    Ok(values.sorted())
}

/// The same of a view, or of a time series' buckets.
fn distinct_in_view(
    database: &Database,
    reader: &Reader<'_>,
    name: &str,
    path: &str,
    request: &FindRequest,
) -> Result<Vec<ValueBuf>, Error> {
    let compared = Catalog::of(reader, database).compared(name)?;
    let collation = collation_of(request.collation.as_ref(), compared.as_deref())?;
    let mut values = Values::new(database, collation);
    let path = Path::new(path);
    for document in filter_view(database, name, request)? {
        values.add_at(&path, document?.view())?;
    }
    Ok(values.sorted())
}

/// The part of an index's keys that gives all distinct values at `path` of what `access` finds;
/// `None` if documents have to be read.
pub(crate) fn scanned_part(collection: &Collection, access: &Access, path: &str) -> Option<usize> {
    let [only] = &access.paths[..] else { return None };
    let Source::Index(position) = only.source else { return None };
    let index = &collection.indexes[position];
    // Collated keys can't be turned back.
    let is_reversible = index.shape.is_of_values() && index.shape.collation().is_simple();
    if !access.is_exact || only.flags != 0 || !is_reversible {
        return None;
    }
    index.fields().iter().position(|field| field.path == path)
}

/// Collects the values of the part at `place`, passing over what has been seen.
pub(crate) fn scan_keys(
    reader: &Reader<'_>,
    collection: &Collection,
    access: Access,
    place: usize,
    interrupt: &Interrupt,
    values: &mut Values,
) -> Result<Vec<Walk>, Error> {
    let mut walks: Vec<Walk> =
        access.paths.into_iter().map(|path| Walk::new(collection, path)).collect();
    let summary = |walk: &Walk| ScanSummary { stage: "DISTINCT_SCAN", ..walk.summary(collection) };
    request_profile::note(|| Plan::Scans(walks.iter().map(summary).collect()));
    let scanned = scan_walks(reader, &mut walks, place, interrupt, values);
    walks.iter().for_each(|walk| walk.count_since(WalkCounts::default()));
    scanned?;
    Ok(walks)
}

fn scan_walks(
    reader: &Reader<'_>,
    walks: &mut [Walk],
    place: usize,
    interrupt: &Interrupt,
    values: &mut Values,
) -> Result<(), Error> {
    let mut read = 0_usize;
    for walk in walks {
        let Some(index) = walk.index.clone() else { continue };
        let mut same = 0;
        let mut before: Vec<u8> = Vec::new();
        while let Some(entry) = walk.next(reader)? {
            if read.is_multiple_of(CHECK_COUNT) {
                interrupt.check()?;
            }
            read += 1;
            let content = reader.read(&entry.value)?;
            let parts = index_entry::cut(&index, &entry.key, &content)?;
            let (mut rest, mut bits) = (&entry.key[..], &parts.bits[..]);
            let mut value = None;
            for field in &index.fields()[..=place] {
                value = decode::part(&mut rest, &mut bits, field.descending)
                    .map_err(|error| Error::damaged(format!("key of an index: {error}")))?;
            }
            // An absent field has null's key, and behind it there may be a real null.
            let Some(value) = value else { continue };
            walk.returned += u64::from(values.add(value.as_value()));
            values.check()?;
            let prefix = &entry.key[..entry.key.len() - rest.len()];
            if before == prefix {
                same += 1;
            } else {
                same = 0;
                before = prefix.to_vec();
            }
            if same >= READ_ON_COUNT {
                walk.pass_over(reader, &before)?;
            }
        }
    }
    Ok(())
}

impl Values {
    /// Begins without any.
    pub fn new(database: &Database, collation: Collation) -> Values {
        Values {
            collation,
            seen: HashSet::new(),
            values: Vec::new(),
            bytes: 0,
            reservation: database.frond().resources(true).reservation_of(2 * DISTINCT_BYTES_MAX),
            key: Vec::new(),
        }
    }

    /// The values of parts that follow one another; `None` if they are too many.
    fn of_parts(parts: Vec<Values>) -> Option<Values> {
        let mut parts = parts.into_iter();
        let mut all = parts.next()?;
        for part in parts {
            part.values.iter().for_each(|value| {
                all.add(value.as_value());
            });
            all.check().ok()?;
        }
        Some(all)
    }

    /// Adds what a document has at `path`, of arrays their elements.
    fn add_at(&mut self, path: &Path, document: Document<'_>) -> Result<(), Error> {
        path.visit(document, &mut |value| {
            match value {
                Some(Value::Array(array)) => {
                    for element in array.iter() {
                        self.add(element);
                    }
                }
                Some(value) => {
                    self.add(value);
                }
                None => {}
            }
            false
        });
        self.check()
    }

    /// Adds a value, and returns whether it is new.
    fn add(&mut self, value: Value<'_>) -> bool {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        self.collation.append_key(&mut key, value, false);
        let is_new = !self.seen.contains(&key);
        if is_new {
            self.bytes += key.len();
            self.seen.insert(key.clone());
            self.values.push(value.to_buf());
        }
        self.key = key;
        is_new
    }

    /// The values in the order of their keys.
    fn sorted(self) -> Vec<ValueBuf> {
        let Values { collation, mut values, .. } = self;
        values.sort_by_cached_key(|value| collation.key_of(value.as_value()));
        values
    }

    fn check(&mut self) -> Result<(), Error> {
        if self.bytes > DISTINCT_BYTES_MAX {
            return Err(Error::invalid(DISTINCT_TOO_BIG, "distinct too big, 16mb cap"));
        }
        // Each value is there twice: as it is, and as a key.
        self.reservation.hold(2 * self.bytes).map_err(|exceeded| {
            let message = format!("distinct exceeded memory limit of {exceeded}");
            Error::invalid(Code::QueryExceededMemoryLimitNoDiskUseAllowed, message)
        })
    }
}
