//! Getting a collection into trees of the engine, so that it can be written.
//!
//! A collection that was not touched on this branch since HEAD has no trees of its own. The first
//! write *adopts* it: new tree ids, whose bases are HEAD's committed trees, and a working entry, in
//! the transaction of the write. Nothing is copied.
//!
//! *Conflicts*: every transaction asks that the records by which it found its collection be
//! unchanged: the repository's, the working entry's or its absence, and the ref's where HEAD was
//! consulted. Whatever creates, drops or renames writes one of them.

use std::sync::Arc;

use frond_doc::DocumentBuf;
use frond_engine::{Durability, Transaction, TreeId};
use frond_query::Code;
use frond_tree::{Tree, TreeFormat, Value};

use crate::catalog::record::{creation, record_event};
use crate::catalog::view::CatalogView;
use crate::contention::{LatchMode, Scope};
use crate::database::Database;
use crate::definition::capped;
use crate::error::Error;
use crate::event::EventKind;
use crate::reader::Reader;
use crate::schema::{CatalogEpoch, Collection, TreeRef};
use crate::system::{self, BranchRef, LiveCollection, LiveIndex, RepositoryRecord, WorkingEntry};
use crate::transact::Outcome;

/// Finds the collection called `name` for a transaction that may write it, and validates the
/// records by which it was found (invariant: also if it was not found).
///
/// # Errors
/// As `CatalogView::collection`.
pub fn find(
    transaction: &mut Transaction,
    database: &Database,
    branch: &str,
    name: &str,
) -> Result<Option<Collection>, Error> {
    let repository = database.repository_name();
    let (found, used_head) = {
        let reader = Reader::within(database.frond().engine(), transaction);
        let catalog = CatalogView::open(&reader, database)?;
        match catalog.working_entry(name)? {
            Some(WorkingEntry::Live(live)) => (Some(Collection::live(&live)), false),
            Some(WorkingEntry::Dropped) => (None, false),
            None => (catalog.committed(name)?, true),
        }
    };
    validate(transaction, repository, branch, name, used_head);
    Ok(found)
}

/// As `find`, in a transaction that has written nothing and began after `moment` was noted: the
/// collection may be known.
pub(crate) fn find_known(
    moment: Option<CatalogEpoch>,
    transaction: &mut Transaction,
    database: &Database,
    branch: &str,
    name: &str,
) -> Result<Option<Arc<Collection>>, Error> {
    let known = moment.and_then(|moment| database.known_at(moment));
    if let Some(collection) = known.and_then(|known| known.collection(name)) {
        // A collection that has a working entry lies in trees of the engine, any other in HEAD's.
        let used_head = matches!(collection.documents, TreeRef::Committed(_));
        validate(transaction, database.repository_name(), branch, name, used_head);
        return Ok(Some(collection));
    }
    let found = find(transaction, database, branch, name)?.map(Arc::new);
    if let (Some(known), Some(found)) = (known, &found) {
        known.keep_collection(name, found);
    }
    Ok(found)
}

/// Asks that the records by which a collection was found be unchanged.
fn validate(
    transaction: &mut Transaction,
    repository: &str,
    branch: &str,
    name: &str,
    used_head: bool,
) {
    transaction.validate(TreeId::SYSTEM, system::repository_key(repository));
    transaction.validate(TreeId::SYSTEM, system::working_key(repository, branch, name));
    if used_head {
        transaction.validate(TreeId::SYSTEM, system::branch_key(repository, branch));
    }
}

/// The working entry of a collection that `find` found: the one there is, or a new one by adopting.
///
/// # Errors
/// As the transaction's `set_base` and `put`: what it wrote is too large, or another locked the
/// entry.
pub fn adopt(
    transaction: &mut Transaction,
    database: &Database,
    branch: &str,
    name: &str,
    collection: &Collection,
) -> Result<LiveCollection, Error> {
    let mut adopted = false;
    let mut live = |transaction: &mut Transaction, place: TreeRef| match place {
        TreeRef::Live(id) => Ok(id),
        TreeRef::Committed(tree) => {
            adopted = true;
            // It is HEAD's, which is on all members of a set.
            transaction.note_shared(tree.root);
            let id = database.frond().engine().reserve_tree_id();
            transaction.set_base(id, tree)?;
            Ok::<TreeId, Error>(id)
        }
    };
    let documents = live(transaction, collection.documents)?;
    let mut indexes = Vec::new();
    for index in &collection.indexes {
        let tree = live(transaction, index.tree)?;
        indexes.push(LiveIndex { spec: index.spec.clone(), tree });
    }
    let order = match collection.order {
        Some(TreeRef::Live(order)) => Some(order),
        _ => None,
    };
    assert_eq!(
        order.is_some(),
        collection.order.is_some(),
        "a capped collection is in no commit: it has no trees but the engine's"
    );
    let (uuid, options) = (collection.uuid, collection.options.clone());
    let live = LiveCollection { uuid, options, documents, indexes, order };
    if adopted {
        put_entry(transaction, database, branch, name, &WorkingEntry::Live(live.clone()))?;
    }
    Ok(live)
}

/// Returns the format of the repository's trees; makes the repository if it isn't there.
///
/// # Errors
/// As a commit.
pub(crate) fn ensure_format(
    database: &Database,
    branch: &str,
    durability: Durability,
) -> Result<TreeFormat, Error> {
    let scope = Scope::branch(database.repository_name(), branch);
    database.transact(scope, LatchMode::Writer, durability, |transaction| {
        let repository = ensure_repository(transaction, database, branch)?;
        Ok(Outcome::Commit(repository.format()))
    })
}

/// Creates an empty collection that `find` did not find; the repository too, if it isn't there.
pub(crate) fn create(
    transaction: &mut Transaction,
    database: &Database,
    branch: &str,
    name: &str,
    options: DocumentBuf,
) -> Result<LiveCollection, Error> {
    let repository = ensure_repository(transaction, database, branch)?;
    let engine = database.frond().engine();
    let documents = engine.reserve_tree_id();
    transaction.set_base(documents, Tree::empty(&**engine.store(), repository.format())?)?;
    let mut order = None;
    if capped::is_capped(options.view()) {
        let id = engine.reserve_tree_id();
        transaction.set_base(id, Tree::empty(&**engine.store(), repository.format())?)?;
        order = Some(id);
    }
    let uuid = database.frond().new_uuid();
    let mut live = LiveCollection { uuid, options, documents, indexes: Vec::new(), order };
    if let Some(spec) = Collection::live(&live).needed_id_index()? {
        let tree = engine.reserve_tree_id();
        let format = spec.tree_format(repository.format());
        transaction.set_base(tree, Tree::empty(&**engine.store(), format)?)?;
        live.indexes.push(LiveIndex { spec, tree });
    }
    put_entry(transaction, database, branch, name, &WorkingEntry::Live(live.clone()))?;
    let of = (branch, name, Some(&live.uuid));
    record_event(
        database,
        transaction,
        of,
        EventKind::Create,
        creation(live.options.view()).view(),
    );
    Ok(live)
}

/// Writes a working entry.
///
/// # Errors
/// As the transaction's `put`.
pub fn put_entry(
    transaction: &mut Transaction,
    database: &Database,
    branch: &str,
    name: &str,
    entry: &WorkingEntry,
) -> Result<(), Error> {
    if let WorkingEntry::Live(live) = entry {
        assert!(live.has_trees_of_its_own(), "no two of a collection's trees are the same");
        assert!(!live.trees().contains(&TreeId::SYSTEM), "a collection isn't the system tree");
    }
    let key = system::working_key(database.repository_name(), branch, name);
    Ok(transaction.put(TreeId::SYSTEM, key, Value::inline(entry.encode()))?)
}

/// The repository, made with its default branch if it isn't there.
///
/// # Errors
/// `NamespaceNotFound` if the branch is gone: it was deleted since the database was opened;
/// `DatabaseDifferCase` (13297) for a name that differs from another's in nothing but case.
pub fn ensure_repository(
    transaction: &mut Transaction,
    database: &Database,
    branch: &str,
) -> Result<RepositoryRecord, Error> {
    let name = database.repository_name();
    let reader = Reader::within(database.frond().engine(), transaction);
    let found = crate::refs::repository(&reader, name)?;
    let branch_exists = crate::refs::branch_ref(&reader, name, branch)?.is_some();
    drop(reader);
    transaction.validate(TreeId::SYSTEM, system::branch_key(name, branch));
    match found {
        Some(repository) if branch_exists => return Ok(repository),
        None if branch == system::DEFAULT_BRANCH => {}
        _ => {
            let message = format!("branch {branch} of {name} is gone");
            return Err(Error::invalid(Code::NamespaceNotFound, message));
        }
    }
    crate::refs::claim_name(database.frond().engine(), transaction, name)?;
    let mut salt = [0; 8];
    database.frond().chance().fill(&mut salt);
    let repository = RepositoryRecord {
        salt: u64::from_le_bytes(salt),
        uuid: database.frond().new_uuid(),
        created_millis: database.frond().time_millis(),
        default_branch: system::DEFAULT_BRANCH.to_owned(),
    };
    let record = Value::inline(repository.encode());
    transaction.put(TreeId::SYSTEM, system::repository_key(name), record)?;
    let head = Value::inline(BranchRef::default().encode());
    transaction.put(TreeId::SYSTEM, system::branch_key(name, branch), head)?;
    Ok(repository)
}
