//! Making, changing and listing collections.

use frond_doc::{Binary, Document, DocumentBuf, DocumentBuilder, Value as BsonValue, order};
use frond_engine::Durability;
use frond_query::{Code, text};

use crate::catalog::options::{changed_options, check_options, kept_options};
use crate::catalog::record::record_event;
use crate::catalog::{CatalogView, adopt, view_cycle};
use crate::contention::{LatchMode, Scope};
use crate::database::Database;
use crate::definition::validation::Validator;
use crate::definition::view::View;
use crate::definition::{capped, clustered, images};
use crate::error::Error;
use crate::event::EventKind;
use crate::name;
use crate::schema::Collection;
use crate::system::WorkingEntry;
use crate::timeseries::options as series;
use crate::transact::Outcome;

/// The facts about a collection for `listCollections`.
#[derive(Clone, Debug)]
pub struct CollectionInfo {
    /// Its name.
    pub name: String,
    /// Its options as given to `create`.
    pub options: DocumentBuf,
    /// Sixteen random bytes, local to this data directory.
    pub uuid: [u8; 16],
}

impl CollectionInfo {
    /// Whether it is a view.
    pub fn is_view(&self) -> bool {
        self.options.get("viewOn").is_some()
    }

    /// Whether it is a time series.
    pub fn is_series(&self) -> bool {
        self.options.get(series::OPTION).is_some()
    }
}

/// Makes a collection. `NamespaceExists` (48) if it is there with other options.
pub(crate) fn create_collection(
    database: &Database,
    name: &str,
    options: Document<'_>,
) -> Result<(), Error> {
    let branch = database.writable_branch()?;
    name::check_collection(database.repository_name(), name)?;
    check_options(options)?;
    series::check(options)?;
    clustered::check(options)?;
    capped::check(options)?;
    images::check(options)?;
    let options = &kept_options(options)?;
    let options = options.view();
    let view = View::of_options(options)?;
    if view.is_some() && database.transaction().is_some() {
        let message = "Cannot create a view in a multi-document transaction.";
        return Err(Error::invalid(Code::OperationNotSupportedInTransaction, message));
    }
    Validator::check_options(options)?;
    let scope = Scope::collection(database.repository_name(), branch, name);
    database.transact(scope, LatchMode::Writer, Durability::Synced, |transaction| {
        if let Some(found) = adopt::find(transaction, database, branch, name)? {
            let is_same = order::compare_documents(found.options.view(), options).is_eq();
            // A transaction is shown what is there whatever it is.
            if is_same && database.transaction().is_none() {
                return Ok(Outcome::Discard(()));
            }
            if is_same {
                let message = format!("Collection {} already exists.", database.namespace(name));
                return Err(Error::invalid(Code::NamespaceExists, message));
            }
            let message = format!(
                "namespace {} already exists, but with different options: {}",
                database.namespace(name),
                text::value(BsonValue::from(&found.options))
            );
            return Err(Error::invalid(Code::NamespaceExists, message));
        }
        if let Some(view) = &view {
            view_cycle::refuse(transaction, database, branch, name, view)?;
        }
        adopt::create(transaction, database, branch, name, options.to_buf())?;
        Ok(Outcome::Commit(()))
    })
}

/// Changes options of a collection (`validator`, `validationLevel`, `validationAction`) or of a
/// view (`viewOn`, `pipeline`): those of `changes` take the place of what was there.
pub(crate) fn change_collection(
    database: &Database,
    name: &str,
    changes: Document<'_>,
) -> Result<(), Error> {
    check_options(changes)?;
    change_options(database, name, changes, &[])
}

/// Changes when the documents of a clustered collection expire; `None`: never.
pub(crate) fn change_expiry(
    database: &Database,
    name: &str,
    seconds: Option<i64>,
) -> Result<(), Error> {
    let mut changes = DocumentBuilder::new();
    if let Some(seconds) = seconds {
        changes.append(clustered::EXPIRE_OPTION, BsonValue::Int64(seconds));
    }
    let goes: &[&str] = if seconds.is_none() { &[clustered::EXPIRE_OPTION] } else { &[] };
    change_options(database, name, changes.build().view(), goes)
}

/// Puts options in the place of those that were there, and takes those that are named away.
fn change_options(
    database: &Database,
    name: &str,
    changes: Document<'_>,
    gone: &[&str],
) -> Result<(), Error> {
    let branch = database.writable_branch()?;
    if changes.get("collation").is_some() {
        let message = "the collation of a collection can't be changed";
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    let scope = Scope::collection(database.repository_name(), branch, name);
    database.transact(scope, LatchMode::Replacer, Durability::Synced, |transaction| {
        let Some(found) = adopt::find(transaction, database, branch, name)? else {
            let message = format!("ns does not exist: {}", database.namespace(name));
            return Err(Error::invalid(Code::NamespaceNotFound, message));
        };
        let changes = series::of_change(found.options.view(), changes)?;
        let changes = changes.view();
        let options = changed_options(found.options.view(), changes, gone);
        clustered::check(options.view())?;
        capped::check(options.view())?;
        images::check(options.view())?;
        let was_view = found.options.get("viewOn").is_some();
        let view = View::of_options(options.view())?;
        if view.is_some() != was_view {
            let message = "a collection can't become a view, nor a view a collection";
            return Err(Error::invalid(Code::InvalidOptions, message));
        }
        if let Some(view) = &view {
            view_cycle::refuse(transaction, database, branch, name, view)?;
        }
        Validator::check_options(options.view())?;
        let mut live = adopt::adopt(transaction, database, branch, name, &found)?;
        let of = (branch, name, Some(&live.uuid));
        let facts = facts_of(changes, &live.uuid, found.options.view());
        record_event(database, transaction, of, EventKind::Modify, facts.view());
        live.options = options;
        adopt::put_entry(transaction, database, branch, name, &WorkingEntry::Live(live))?;
        Ok(Outcome::Commit(()))
    })
}

/// Refuses what can't be done with a time series.
///
/// # Errors
/// `CommandNotSupportedOnView` (166).
pub(crate) fn refuse_series(
    database: &Database,
    found: &Collection,
    name: &str,
) -> Result<(), Error> {
    if found.series.is_none() {
        return Ok(());
    }
    let message = format!("Namespace {} is a timeseries collection", database.namespace(name));
    Err(Error::invalid(Code::CommandNotSupportedOnView, message))
}

/// All collections, by name.
pub(crate) fn list_collections(database: &Database) -> Result<Vec<CollectionInfo>, Error> {
    let reader = database.reader();
    let catalog = CatalogView::open(&reader, database)?;
    let mut collections = Vec::new();
    for name in catalog.names()? {
        if let Some(collection) = catalog.collection(&name)? {
            let Collection { options, uuid, .. } = collection;
            collections.push(CollectionInfo { name, options, uuid });
        }
    }
    Ok(collections)
}

/// Returns the facts about a collection with changed options for change streams.
fn facts_of(changes: Document<'_>, uuid: &[u8; 16], before: Document<'_>) -> DocumentBuf {
    let mut facts = DocumentBuilder::new();
    facts.append("what", BsonValue::Document(changes));
    facts.begin_document("was").begin_document("collectionOptions");
    facts.append("uuid", BsonValue::Binary(Binary { subtype: 4, bytes: uuid }));
    before.iter().for_each(|(option, value)| {
        facts.append(option, value);
    });
    facts.end().end();
    facts.build()
}
