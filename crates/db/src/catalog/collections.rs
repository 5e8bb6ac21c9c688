//! Making, dropping, renaming and listing collections; dropping a database.

use frond_doc::{Binary, Document, DocumentBuf, DocumentBuilder, Value as BsonValue, order};
use frond_engine::{Durability, Transaction, TreeId};
use frond_query::{Code, Collation};
use frond_tree::{Bounds, Direction};

use crate::catalog::tell::{tell_collection, tell_of};
use crate::catalog::{CatalogView, adopt, view_cycle};
use crate::contention::{LatchMode, Scope};
use crate::database::Database;
use crate::definition::validation::Validator;
use crate::definition::view::View;
use crate::definition::{self, capped, clustered, images, merge_rules};
use crate::error::Error;
use crate::event::EventKind;
use crate::frond::Notice;
use crate::reader::Reader;
use crate::refs::policy;
use crate::schema::{Collection, TreeRef};
use crate::system::{self, WorkingEntry};
use crate::timeseries::options as series;
use crate::transact::Outcome;
use crate::{name, refs};

/// Options of `create` that are kept but ask for nothing that isn't so anyway.
const ACCEPTED_OPTIONS: &[&str] = &["autoIndexId", "flags", "storageEngine", "indexOptionDefaults"];
/// Options that say something.
const KEPT_OPTIONS: &[&str] = &[
    "capped",
    clustered::OPTION,
    clustered::EXPIRE_OPTION,
    images::OPTION,
    "max",
    "pipeline",
    "size",
    series::OPTION,
    "validationAction",
    "validationLevel",
    "validator",
    "versioned",
    "viewOn",
];

/// What `listCollections` tells of a collection.
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
    Validator::check_options(options)?;
    let scope = Scope::collection(database.repository_name(), branch, name);
    database.transact(scope, LatchMode::Writer, Durability::Synced, |transaction| {
        if let Some(found) = adopt::find(transaction, database, branch, name)? {
            let is_same = order::compare_documents(found.options.view(), options).is_eq();
            // A transaction is told of what is there whatever it is.
            if is_same && database.transaction().is_none() {
                return Ok(Outcome::Discard(()));
            }
            if is_same {
                let message = format!("Collection {} already exists.", database.namespace(name));
                return Err(Error::invalid(Code::NamespaceExists, message));
            }
            let message = format!(
                "namespace {} already exists, but with different options: {:?}",
                database.namespace(name),
                found.options
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
        tell_collection(database, transaction, of, EventKind::Modify, facts.view());
        live.options = options;
        adopt::put_entry(transaction, database, branch, name, &WorkingEntry::Live(live))?;
        Ok(Outcome::Commit(()))
    })
}

/// Drops a collection; tells whether it was there.
pub(crate) fn drop_collection(database: &Database, name: &str) -> Result<bool, Error> {
    let branch = database.writable_branch()?;
    let scope = Scope::collection(database.repository_name(), branch, name);
    let done = database.transact(scope, LatchMode::Replacer, Durability::Synced, |transaction| {
        let Some(found) = adopt::find(transaction, database, branch, name)? else {
            return Ok(Outcome::Discard(false));
        };
        transaction.give_back();
        let remembered =
            database.versions()?.remember_collection(database, transaction, branch, name);
        unless_full(database, name, remembered)?;
        drop_trees(transaction, &found)?;
        remove_entry(database, transaction, branch, name)?;
        let of = (branch, name, Some(&found.uuid));
        tell_collection(database, transaction, of, EventKind::Drop, Document::empty());
        Ok(Outcome::Commit(true))
    });
    database.frond().note_definitions_changed();
    done
}

/// What is dropped is remembered by what it is folded to, which needs room. Where there is
/// none, dropping is what helps: it goes for good, and that is told.
fn unless_full(
    database: &Database,
    name: &str,
    remembered: Result<(), Error>,
) -> Result<(), Error> {
    match remembered {
        Err(error) if error.code == Code::OutOfDiskSpace => {
            let message = &error.message;
            database.frond().notice(
                Notice::Warning,
                &format!("{name} is dropped for good, it can't be undone: {message}"),
            );
            Ok(())
        }
        other => other,
    }
}

/// Renames a collection within this database.
pub(crate) fn rename_collection(
    database: &Database,
    from: &str,
    to: &str,
    drop_target: bool,
) -> Result<(), Error> {
    let branch = database.writable_branch()?;
    name::check_collection(database.repository_name(), to)?;
    if from == to {
        let message = "Can't rename a collection to itself";
        return Err(Error::invalid(Code::IllegalOperation, message));
    }
    // Writers pass the latch of the name by which they know the collection: the old one.
    let scope = Scope::collection(database.repository_name(), branch, from);
    let done = database.transact(scope, LatchMode::Replacer, Durability::Synced, |transaction| {
        let Some(found) = adopt::find(transaction, database, branch, from)? else {
            let message = format!("Source collection {} does not exist", database.namespace(from));
            return Err(Error::invalid(Code::NamespaceNotFound, message));
        };
        refuse_to_rename_view(database, &found, from)?;
        let target = adopt::find(transaction, database, branch, to)?;
        let dropped = target.as_ref().map(|target| target.uuid);
        if let Some(target) = target {
            check_target(database, &target, to, drop_target)?;
            database.versions()?.remember_collection(database, transaction, branch, to)?;
            drop_trees(transaction, &target)?;
        }
        let live = adopt::adopt(transaction, database, branch, from, &found)?;
        remove_entry(database, transaction, branch, from)?;
        adopt::put_entry(transaction, database, branch, to, &WorkingEntry::Live(live))?;
        let mut facts = DocumentBuilder::new();
        facts.append("to", BsonValue::String(to));
        if let Some(uuid) = &dropped {
            let uuid = Binary { subtype: 4, bytes: uuid };
            facts.append("dropTarget", BsonValue::Binary(uuid));
        }
        let of = (branch, from, Some(&found.uuid));
        tell_collection(database, transaction, of, EventKind::Rename, facts.build().view());
        Ok(Outcome::Commit(()))
    });
    database.frond().note_definitions_changed();
    done
}

/// Refuses to rename a view, or a time series, which MongoDB takes for one.
///
/// # Errors
/// `CommandNotSupportedOnView` (166).
pub(crate) fn refuse_to_rename_view(
    database: &Database,
    found: &Collection,
    from: &str,
) -> Result<(), Error> {
    if found.options.get("viewOn").is_none() && found.series.is_none() {
        return Ok(());
    }
    let message = format!("cannot rename view: {}", database.namespace(from));
    Err(Error::invalid(Code::CommandNotSupportedOnView, message))
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

/// Checks that what is there may make room for a collection that is renamed.
///
/// # Errors
/// `NamespaceExists` (48).
pub(crate) fn check_target(
    database: &Database,
    target: &Collection,
    to: &str,
    drops: bool,
) -> Result<(), Error> {
    if target.options.get("viewOn").is_some() {
        let message = format!("a view already exists with that name: {}", database.namespace(to));
        return Err(Error::invalid(Code::NamespaceExists, message));
    }
    if !drops {
        return Err(Error::invalid(Code::NamespaceExists, "target namespace exists"));
    }
    Ok(())
}

/// Drops the database with its whole history if this is the default branch; a branch's working
/// state otherwise can't be dropped this way (an error that names `frondBranch`).
pub(crate) fn drop_database(database: &Database) -> Result<(), Error> {
    let branch = database.writable_branch()?;
    let name = database.repository_name();
    let scope = Scope::branch(name, branch);
    let done = database.transact(scope, LatchMode::Remover, Durability::Synced, |transaction| {
        let mut policies = Vec::new();
        let names = match database.frond().engine().tells() {
            true => CatalogView::open(
                &Reader::within(database.frond().engine(), transaction),
                database,
            )?
            .names()?,
            false => Vec::new(),
        };
        let (keys, trees, repository) = {
            let reader = Reader::within(database.frond().engine(), transaction);
            let Some(repository) = refs::repository(&reader, name)? else {
                return Ok(Outcome::Discard(()));
            };
            if branch != repository.default_branch {
                let message = format!(
                    "{} is a branch: dropDatabase drops a database with its history, \
                     frondBranch with delete drops a branch",
                    database.name()
                );
                return Err(Error::invalid(Code::IllegalOperation, message));
            }
            for branch in refs::branches(&reader, name)? {
                let policy = policy::read(&reader, name, &branch)?;
                policy::refuse_protected(&policy, &branch, &format!("dropping {name}"))?;
                policies.push(system::policy_key(name, &branch));
            }
            let (keys, trees) = records_of(&reader, name)?;
            (keys, trees, repository)
        };
        for key in policies {
            transaction.validate(TreeId::SYSTEM, key);
        }
        transaction.give_back();
        let remembered = database.versions()?.remember_database(database, transaction, &repository);
        unless_full(database, name, remembered)?;
        for tree in trees {
            transaction.drop_tree(tree)?;
        }
        for key in keys {
            transaction.delete(TreeId::SYSTEM, key)?;
        }
        transaction.delete(TreeId::SYSTEM, system::repository_key(name))?;
        for collection in names {
            tell_of(database, transaction, branch, &collection, EventKind::Drop, Document::empty());
        }
        tell_of(database, transaction, branch, "", EventKind::DropDatabase, Document::empty());
        Ok(Outcome::Commit(()))
    });
    database.frond().note_definitions_changed();
    done
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

/// Makes the branch be without the collection: no entry where HEAD has none either.
pub(crate) fn remove_entry(
    database: &Database,
    transaction: &mut Transaction,
    branch: &str,
    name: &str,
) -> Result<(), Error> {
    let in_head = {
        let reader = Reader::within(database.frond().engine(), transaction);
        CatalogView::open(&reader, database)?.committed(name)?.is_some()
    };
    // HEAD was consulted: a commit in between would make another entry right.
    transaction.validate(TreeId::SYSTEM, system::branch_key(database.repository_name(), branch));
    if in_head {
        return adopt::put_entry(transaction, database, branch, name, &WorkingEntry::Dropped);
    }
    let key = system::working_key(database.repository_name(), branch, name);
    Ok(transaction.delete(TreeId::SYSTEM, key)?)
}

/// Drops the trees that a collection has in the engine.
pub(crate) fn drop_trees(
    transaction: &mut Transaction,
    collection: &Collection,
) -> Result<(), Error> {
    for tree in collection.trees() {
        if let TreeRef::Live(id) = tree {
            transaction.drop_tree(id)?;
        }
    }
    Ok(())
}

/// The keys of all records of a database but the repository's own, and the trees that its working
/// entries name.
fn records_of(
    reader: &Reader<'_>,
    database: &str,
) -> Result<(Vec<bytes::Bytes>, Vec<TreeId>), Error> {
    let (mut keys, mut trees) = (Vec::new(), Vec::new());
    let working = system::working_of_database_prefix(database);
    for prefix in system::database_prefixes(database) {
        let place = TreeRef::Live(TreeId::SYSTEM);
        for entry in reader.range(place, Bounds::prefix(&prefix), Direction::Ascending)? {
            let entry = entry?;
            if prefix == working
                && let WorkingEntry::Live(live) = WorkingEntry::decode(reader.read(&entry.value)?)?
            {
                trees.extend(live.trees());
            }
            keys.push(entry.key);
        }
    }
    Ok((keys, trees))
}

/// The options as they are kept: with every option of their collation, of which the simple one goes
/// without saying, and with the size that is meant.
pub(crate) fn kept_options(options: Document<'_>) -> Result<DocumentBuf, Error> {
    let mut builder = DocumentBuilder::new();
    for (option, value) in options.iter() {
        match (option, value) {
            ("collation", BsonValue::Document(specification)) => {
                if specification.is_empty() {
                    let message = "'collation' cannot be an empty document";
                    return Err(Error::invalid(Code::BadValue, message));
                }
                if let Some(full) = Collation::parse(specification)?.specification() {
                    builder.append(option, BsonValue::Document(full));
                }
            }
            (clustered::OPTION, BsonValue::Document(index)) => {
                builder.append(option, BsonValue::Document(clustered::told(index).view()));
            }
            (series::OPTION, BsonValue::Document(series)) => {
                builder.append(option, BsonValue::Document(series::kept(series)?.view()));
            }
            ("capped", value) if !value.is_truthy() => {}
            (images::OPTION, _) if !images::are_kept(options) => {}
            // No number of documents is no limit, and isn't told.
            ("max", value) if value.as_integer() == Some(0) => {}
            ("size", value) => {
                let size = value.as_integer().unwrap_or_default();
                builder.append(option, BsonValue::Int64(capped::rounded(size)));
            }
            _ => {
                builder.append(option, value);
            }
        }
    }
    Ok(builder.build())
}

/// Options with others in their place, or beside them, and without those that are named.
fn changed_options(options: Document<'_>, changes: Document<'_>, gone: &[&str]) -> DocumentBuf {
    let mut changed = DocumentBuilder::new();
    for (option, value) in options.iter().filter(|(option, _)| !gone.contains(option)) {
        changed.append(option, changes.get(option).unwrap_or(value));
    }
    for (option, value) in changes.iter().filter(|(option, _)| options.get(option).is_none()) {
        changed.append(option, value);
    }
    changed.build()
}

/// What change streams tell of a collection whose options changed.
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

fn check_options(options: Document<'_>) -> Result<(), Error> {
    for (option, value) in options.iter() {
        let harmless = match option {
            "collation" => value.as_document().is_some(),
            // How its documents are merged; refused here if it isn't proper.
            definition::VERSIONED => matches!(value, BsonValue::Boolean(_)),
            merge_rules::OPTION => merge_rules::DocumentRules::parse(value).map(|_| true)?,
            _ => ACCEPTED_OPTIONS.contains(&option) || KEPT_OPTIONS.contains(&option),
        };
        if !harmless {
            let message = format!("the option '{option}' of create is not supported yet");
            return Err(Error::invalid(Code::InvalidOptions, message));
        }
    }
    Ok(())
}
