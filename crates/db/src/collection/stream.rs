//! Large documents in and out without being whole in memory.
//!
//! In: the document's pieces are put into the store as they come, many together
//! ([`gathered`](crate::large::batching_store)), under a session that keeps them from being
//! collected, and synced; then one transaction puts the head. So a document of a gigabyte isn't
//! logged, and is visible as a whole or not at all. Chunks that were put are garbage if it fails.
//!
//! Out: a large document is shown as its pieces, which write themselves.

use std::io::Write;

use frond_doc::pieces::{Edited, JsonWriter, LargeDocument, PiecesError, Writer};
use frond_doc::{Document, DocumentBuf, Value, ValueBuf};
use frond_engine::Durability;
use frond_store::ChunkStore;

use crate::catalog::{Catalog, adopt};
use crate::collection::new_document::{check_id, check_size};
use crate::collection::parse::{parse_filter, variables_in};
use crate::collection::plan::Order;
use crate::collection::scan::{Row, Scan, VisitedRow};
use crate::collection::search::Search;
use crate::collection::stored_functions::prepare_scripts;
use crate::collection::write::CollectionWriter;
use crate::contention::{LatchMode, Scope};
use crate::database::Database;
use crate::definition::view;
use crate::error::Error;
use crate::large::batching_store::BatchingStore;
use crate::large::damaged;
use crate::name;
use crate::transact::Outcome;

/// A document of a collection that is being exported.
pub struct StoredDocument<'a>(Stored<'a>);

enum Stored<'a> {
    Whole(Document<'a>),
    Pieces(LargeDocument, &'a dyn ChunkStore),
}

impl StoredDocument<'_> {
    /// Returns how long its BSON is.
    pub fn bytes(&self) -> u64 {
        match &self.0 {
            Stored::Whole(document) => document.as_bytes().len() as u64,
            Stored::Pieces(large, _) => large.bytes(),
        }
    }

    /// Writes its BSON.
    ///
    /// # Errors
    /// If `out` fails; damage.
    pub fn write_bson(&self, out: &mut dyn Write) -> Result<(), Error> {
        match &self.0 {
            Stored::Whole(document) => Ok(out.write_all(document.as_bytes())?),
            Stored::Pieces(large, store) => {
                large.write_bson(*store, out).map_err(|error| of_pieces(large, error))
            }
        }
    }

    /// Writes it as one line of extended JSON, without a line's end; some of it may wait in `json`
    /// for what follows ([`JsonWriter::finish`]).
    ///
    /// # Errors
    /// As [`StoredDocument::write_bson`].
    pub fn write_json(&self, json: &mut JsonWriter, out: &mut dyn Write) -> Result<(), Error> {
        match &self.0 {
            Stored::Whole(document) => Ok(json.write(*document, out)?),
            Stored::Pieces(large, store) => {
                json.write_pieces(large, *store, out).map_err(|error| of_pieces(large, error))
            }
        }
    }
}

/// Inserts the document whose elements `fill` writes, and returns its `_id`. It is never whole
/// in memory, unless it is short or the collection has a validator.
pub(crate) fn insert_streamed(
    database: &Database,
    collection: &str,
    fill: &mut dyn FnMut(&mut Writer<'_>) -> Result<(), PiecesError>,
    durability: Durability,
) -> Result<ValueBuf, Error> {
    let branch = database.writable_branch()?;
    name::check_collection(database.repository_name(), collection)?;
    let repository = adopt::ensure_format(database, branch, durability)?;
    let engine = database.frond().engine();
    let session = engine.store().session();
    let store = &**engine.store();
    let gathered = BatchingStore::new(store);
    let mut writer = Writer::new(&gathered, repository, engine.visible().0);
    fill(&mut writer)?;
    let large = match writer.finish(|| database.frond().new_object_id())? {
        Edited::Large(large) => large,
        Edited::Small(document) => return insert_one(database, collection, document, durability),
    };
    gathered.flush()?;
    check_size(database, large.bytes())?;
    let id = large.project(store, &[b"_id"])?;
    check_id(id.view())?;
    store.sync()?;
    let scope = Scope::collection(database.repository_name(), branch, collection);
    database.transact(scope, LatchMode::Writer, durability, |transaction| {
        let mut writer = CollectionWriter::open(transaction, database, branch, collection)?;
        writer.insert_stored(&large, id.view())?;
        Ok(Outcome::Commit(()))
    })?;
    drop(session);
    Ok(id.get("_id").unwrap_or(Value::Null).to_buf())
}

fn insert_one(
    database: &Database,
    collection: &str,
    document: DocumentBuf,
    durability: Durability,
) -> Result<ValueBuf, Error> {
    let report = database.insert(collection, std::slice::from_ref(&document), true, durability)?;
    match report.errors.into_iter().next() {
        Some(error) => Err(error.error),
        None => Ok(document.get("_id").unwrap_or(Value::Null).to_buf()),
    }
}

/// Shows each document of `collection` that passes `filter` to `visit`, by `_id`. Large ones
/// are not put together.
pub(crate) fn export<E: From<Error>>(
    database: &Database,
    collection: &str,
    filter: Option<Document<'_>>,
    visit: &mut dyn FnMut(&StoredDocument<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let reader = database.reader();
    let Some(found) = Catalog::of(&reader, database).collection(collection)? else { return Ok(()) };
    view::refuse(found.options.view(), &database.namespace(collection))?;
    let variables =
        variables_in(database, None, database.interrupt())?.with_collation(found.collation()?);
    let filter = parse_filter(filter, &variables)?;
    prepare_scripts(database, &filter)?;
    let search = Search::of(&filter, None);
    let Some((found, access)) = search.access(database.frond(), &reader, Some(found))? else {
        return Ok(());
    };
    let mut scan = Scan::new(reader.clone(), &found, access, filter.clone(), &Order::Any)
        .in_part(std::iter::empty());
    let store = database.frond().engine().store().clone();
    let mut visited = Ok(());
    scan.visit_rows(&mut |shown| {
        visited = match shown {
            VisitedRow::InPlace(document) => visit(&StoredDocument(Stored::Whole(document))),
            VisitedRow::Owned(Row { large: Some(large), .. }) => {
                visit(&StoredDocument(Stored::Pieces(large, &*store)))
            }
            VisitedRow::Owned(row) => {
                let document = row.into_whole(&reader, found.documents)?.document;
                visit(&StoredDocument(Stored::Whole(document.view())))
            }
        };
        Ok(visited.is_ok())
    })?;
    visited
}

fn of_pieces(large: &LargeDocument, error: PiecesError) -> Error {
    match error {
        PiecesError::Input(error) => error.into(),
        error => damaged(&large.value(), error).into(),
    }
}

impl From<PiecesError> for Error {
    fn from(error: PiecesError) -> Error {
        match error {
            PiecesError::Tree(error) => error.into(),
            PiecesError::Document(error) => error.into(),
            PiecesError::Input(error) => error.into(),
        }
    }
}

impl From<std::io::Error> for Error {
    /// Converts the error of what a document is read from, or written to.
    fn from(error: std::io::Error) -> Error {
        Error::unavailable(error.to_string())
    }
}
