//! Replacing a collection's whole content at once: `$out`.
//!
//! 1. All documents are read, sorted by their keys in bounded memory ([`content`]), and put into a
//!    tree in the store, where no reader sees them. From there they are checked by the collection's
//!    validator, and the trees of indexes built. Values that documents have references for are
//!    there already: the cost follows the change, not the copy.
//! 2. One transaction makes them the bases of new trees, names these in the working entry, and
//!    drops the old ones. It conflicts with every concurrent write to the collection, and ends
//!    where something was erased since the documents were read ([`EraseCount`]).
//!
//! The collection keeps its options and indexes, as MongoDB's `$out` does. Should they have changed
//! meanwhile, the second step asks for the first again.

pub(super) mod content;

use bytes::Bytes;
use frond_doc::pieces::whole_bytes;
use frond_doc::{Document, DocumentBuf, Value, document, normalise};
use frond_engine::{Durability, Transaction};
use frond_query::Code;
use frond_query::pipeline::Documents;
use frond_tree::{Bounds, Direction, Tree};

use crate::catalog::build::Builder;
use crate::catalog::record::{self, record_branch_event, record_event};
use crate::catalog::{Catalog, CatalogView, adopt};
use crate::collection::new_document::{check_id, check_size, check_valid};
use crate::collection::parse::variables_in;
use crate::collection::parts::collation_of_collection;
use crate::collection::reference_translator::{ReferenceTranslator, Referring};
use crate::collection::replace::content::Content;
use crate::contention::{LatchMode, Scope};
use crate::database::Database;
use crate::definition::validation::Validator;
use crate::definition::{IndexSpec, images, view};
use crate::error::Error;
use crate::event::EventKind;
use crate::large;
use crate::name;
use crate::reader::Reader;
use crate::refs::erased::EraseCount;
use crate::rewritten::{Rewriting, record_rewrite};
use crate::schema::{Index, TreeRef};
use crate::system::{LiveCollection, LiveIndex, WorkingEntry};
use crate::timeseries::options::{OPTION, check, kept};
use crate::timeseries::{Series, lie_alike};
use crate::transact::Outcome;

/// The number of documents after which it is asked whether something was erased: one that is bound
/// to end holds what was erased for no longer.
const CHECK_EVERY: usize = 1_024;

/// Documents in a tree that no reader sees, which are to be a collection's.
pub(in crate::collection) struct StagedDocuments<'a> {
    database: &'a Database,
    /// The collection's name.
    name: &'a str,
    documents: Tree,
}

/// Documents, the kind of references that they have, and the count of erases where they are read.
pub(in crate::collection) type ReadDocuments<'a> = (Documents<'a>, Referring, EraseCount);

/// The trees that were made for staged documents, for a collection with these options, if there is
/// one.
struct Built {
    options: Option<DocumentBuf>,
    /// The options of one that is made.
    made: Option<DocumentBuf>,
    indexes: Vec<(IndexSpec, Tree)>,
}

/// Replaces the content of `collection`, made where it is absent, by `documents`, which may
/// have references, to what lies in the same repository or elsewhere.
pub(crate) fn replace_collection(
    database: &Database,
    collection: &str,
    series: Option<Document<'_>>,
    (documents, referring, erases): ReadDocuments<'_>,
    durability: Durability,
) -> Result<(), Error> {
    name::check_collection(database.repository_name(), collection)?;
    let made = series.map(series_options).transpose()?;
    let series = series_of(database, collection, made.as_ref())?;
    let resources = database.frond().resources(false);
    let mut content = Content::new(&resources, database.interrupt(), series);
    // Chunks that are put must survive a garbage collection that begins before the transaction
    // names them.
    let _session = database.frond().engine().store().session();
    let mut moving = ReferenceTranslator::new(database, referring, durability);
    for (position, document) in documents.enumerate() {
        if position % CHECK_EVERY == 0 {
            erases.check_at(&Reader::now(database.frond().engine()))?;
        }
        let document = moving.document(document?)?;
        let document = normalise::for_insert(&document, || database.frond().new_object_id())?;
        check_size(database, whole_bytes(document.view()))?;
        check_id(document.view())?;
        content.add(&document)?;
    }
    moving.flush()?;
    replace_content(database, collection, made, (content, erases), durability)
}

/// Returns the time series that a collection is, or becomes with the options that it is made with.
///
/// # Errors
/// 7268700 if the collection exists and is none; 7268702 if it is another one.
fn series_of(
    database: &Database,
    collection: &str,
    made: Option<&DocumentBuf>,
) -> Result<Option<Series>, Error> {
    let found = Catalog::of(&database.reader(), database).collection(collection)?;
    let Some(found) = found else {
        return Ok(made.and_then(|made| Series::of(made.view())));
    };
    let Some(made) = made else { return Ok(found.series.as_deref().cloned()) };
    let (code, message) = match &found.series {
        None => (7_268_700, "Cannot create a time-series collection from a non time-series"),
        Some(_) if found.options.get(OPTION) != made.get(OPTION) => {
            (7_268_702, "the 'timeseries' options of $out are others than those of the")
        }
        Some(series) => return Ok(Some(Series::clone(series))),
    };
    let message = format!("{message} collection: {}", database.namespace(collection));
    Err(Error::invalid(Code::Location(code), message))
}

/// As `replace_collection`, of documents that were checked.
fn replace_content(
    database: &Database,
    collection: &str,
    made: Option<DocumentBuf>,
    (content, erases): (Content<'_>, EraseCount),
    durability: Durability,
) -> Result<(), Error> {
    let series = content.series().cloned();
    let branch = database.writable_branch()?;
    let format = adopt::ensure_format(database, branch, durability)?;
    let store = &**database.frond().engine().store();
    let collation = collation_of_collection(database, collection)?;
    let namespace = database.namespace(collection);
    let documents = content.load(store, format, (&namespace, &collation))?;
    let staged = StagedDocuments::of(database, collection, documents);
    loop {
        let reader = database.reader();
        let found = CatalogView::open(&reader, database)?.collection(collection)?;
        let (options, indexes) = match found {
            Some(found) => (Some(found.options), found.indexes),
            None => (None, Vec::new()),
        };
        let is_as_before = match options.as_ref().or(made.as_ref()) {
            Some(options) => lie_alike(series.as_ref(), Series::of(options.view()).as_ref()),
            None => series.is_none(),
        };
        if !is_as_before {
            let message = format!("{} has become another", database.namespace(collection));
            return Err(Error::invalid(Code::OperationFailed, message));
        }
        if let Some(options) = &options {
            staged.check(options)?;
        }
        let indexes = staged.build_indexes(&indexes)?;
        let built = Built { options, made: made.clone(), indexes };
        let scope = Scope::collection(database.repository_name(), branch, collection);
        let number = database.frond().begin_to_end();
        let swapped = database.transact(scope, LatchMode::Replacer, durability, |transaction| {
            erases.check(database.frond().engine(), transaction)?;
            let done = staged.swap_in(transaction, branch, &built)?;
            Ok(Outcome::commit_if(done, done))
        })?;
        if swapped {
            let repository = database.repository_name();
            database.frond().end_cursors(repository, branch, Some(collection), number);
            return Ok(());
        }
    }
}

impl<'a> StagedDocuments<'a> {
    pub fn of(database: &'a Database, name: &'a str, documents: Tree) -> StagedDocuments<'a> {
        StagedDocuments { database, name, documents }
    }

    /// Checks all by the validator that the options name.
    fn check(&self, options: &DocumentBuf) -> Result<(), Error> {
        let database = self.database;
        let variables = || variables_in(database, None, database.interrupt());
        let validator = Validator::of_options(options.view(), variables)?;
        let Some(validator) = validator.filter(|_| database.validates()) else { return Ok(()) };
        for document in self.read(validator.outermost_names()) {
            check_valid((database, self.name), &validator, None, document?.1.view())?;
        }
        Ok(())
    }

    /// The documents by the keys of their `_id`s, large ones with the outermost fields of these
    /// names at least, and `_id`; `None`: all.
    fn read<'b>(
        &'b self,
        mut names: Option<Vec<&'b [u8]>>,
    ) -> impl Iterator<Item = Result<(Bytes, DocumentBuf), Error>> + 'b {
        if let Some(names) = names.as_mut().filter(|names| !names.contains(&&b"_id"[..])) {
            names.push(b"_id");
        }
        let store = self.database.frond().engine().store();
        self.documents.range(store, Bounds::all(), Direction::Ascending).map(move |entry| {
            let entry = entry?;
            let document = match (large::head(&entry.value), &names) {
                (Some(large), Some(names)) => large.project(&**store, names)?,
                _ => large::read_document(&**store, &entry.value)?,
            };
            Ok((entry.key, document))
        })
    }

    /// The trees of the indexes.
    ///
    /// # Errors
    /// `DuplicateKey`; what an index can't file a document for; what the disk says.
    pub fn build_indexes(&self, indexes: &[Index]) -> Result<Vec<(IndexSpec, Tree)>, Error> {
        let (database, documents) = (self.database, self.documents);
        let store = &**database.frond().engine().store();
        let builder = Builder {
            frond: database.frond(),
            format: documents.format,
            namespace: &database.namespace(self.name),
            interrupt: database.interrupt(),
            progress: None,
        };
        let mut built = Vec::new();
        for index in indexes {
            let find = |id_key: &[u8]| {
                let value = documents.get(store, id_key)?;
                Ok(value.map(|value| large::read_document(store, &value)).transpose()?)
            };
            let mut read = self.read(index.outermost_names());
            let tree = builder.index_tree(index, &mut read, &find)?;
            built.push((index.spec.clone(), tree));
        }
        Ok(built)
    }

    /// Swaps the new trees in; `false` if options or indexes are others than those that they were
    /// built for.
    fn swap_in(
        &self,
        transaction: &mut Transaction,
        branch: &str,
        built: &Built,
    ) -> Result<bool, Error> {
        let (database, name) = (self.database, self.name);
        let engine = database.frond().engine();
        adopt::ensure_repository(transaction, database, branch)?;
        let found = adopt::find(transaction, database, branch, name)?;
        let (uuid, options, old) = match found {
            Some(found) => {
                view::refuse(found.options.view(), &database.namespace(name))?;
                if found.order.is_some() {
                    let message = format!(
                        "namespace '{}' is capped so it can't be used for $out",
                        database.namespace(name)
                    );
                    return Err(Error::invalid(Code::Location(17152), message));
                }
                let specs = found.indexes.iter().map(|index| &index.spec);
                if built.options.as_ref() != Some(&found.options) {
                    return Ok(false);
                }
                if !specs.eq(built.indexes.iter().map(|(spec, _)| spec)) {
                    return Ok(false);
                }
                (found.uuid, found.options.clone(), found.trees())
            }
            None if built.indexes.is_empty() => {
                let options = built.made.clone().unwrap_or_else(DocumentBuf::empty);
                (self.begin(transaction, branch, options.view()), options, Vec::new())
            }
            None => return Ok(false),
        };
        // Streams tell nothing of the points of a time series.
        if Series::of(options.view()).is_none() {
            let keeps_images = images::are_kept(options.view());
            self.record_swap(transaction, branch, old.first(), keeps_images)?;
        }
        for tree in old {
            if let TreeRef::Live(id) = tree {
                transaction.drop_tree(id)?;
            }
        }
        let mut place = |tree: Tree| {
            let id = engine.reserve_tree_id();
            transaction.set_base(id, tree).map(|()| id)
        };
        let documents = place(self.documents)?;
        let mut indexes = Vec::new();
        for (spec, tree) in &built.indexes {
            indexes.push(LiveIndex { spec: spec.clone(), tree: place(*tree)? });
        }
        let live = LiveCollection { uuid, options, documents, indexes, order: None };
        adopt::put_entry(transaction, database, branch, name, &WorkingEntry::Live(live))?;
        Ok(true)
    }

    /// Records for change streams that the collection is new; returns its UUID.
    fn begin(
        &self,
        transaction: &mut Transaction,
        branch: &str,
        options: Document<'_>,
    ) -> [u8; 16] {
        let uuid = self.database.frond().new_uuid();
        let (of, facts) = ((branch, self.name, Some(&uuid)), record::creation(options));
        record_event(self.database, transaction, of, EventKind::Create, facts.view());
        uuid
    }

    /// Records for change streams that a collection has other documents: of committed ones the
    /// difference can be had when it is asked for.
    fn record_swap(
        &self,
        transaction: &mut Transaction,
        branch: &str,
        before: Option<&TreeRef>,
        keeps_images: bool,
    ) -> Result<(), Error> {
        let (database, name) = (self.database, self.name);
        let before = match before {
            None => None,
            Some(TreeRef::Committed(tree)) => Some(*tree),
            Some(TreeRef::Live(_)) => {
                record_branch_event(database, transaction, branch, name, EventKind::Rewritten);
                return Ok(());
            }
        };
        let scope = (database.repository_name(), branch, name);
        let rewriting = Rewriting { before, after: Some(self.documents), keeps_images };
        record_rewrite(database.frond().engine(), transaction, scope, rewriting)
    }
}

/// The options of a time series that `$out` makes.
fn series_options(series: Document<'_>) -> Result<DocumentBuf, Error> {
    let options = document! { "timeseries": Value::Document(series) };
    check(options.view())?;
    let kept = kept(series)?;
    Ok(document! { "timeseries": &kept })
}
