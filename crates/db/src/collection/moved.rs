//! `renameCollection` into another database: the collection is copied, and dropped where it was.
//!
//! 1. The documents are read in the order of their `_id`s and put into trees in the store, where no
//!    reader sees them: another database has another salt, so none of the old trees can be shared.
//!    The indexes are built from these. Those of a capped collection are inserted one by one, in
//!    their order.
//! 2. The same transaction names the new trees and drops the old ones. A write to the collection
//!    since the transaction began is a conflict, and all begins again.
//!
//! Collections that were dropped, here or there, can be brought back, as after any drop.

use frond_doc::DocumentBuf;
use frond_engine::{Durability, Transaction};
use frond_query::Code;
use frond_tree::{Direction, Tree, TreeFormat};

use crate::catalog::drop::remove_entry;
use crate::catalog::record::{self, record_branch_event, record_event};
use crate::catalog::rename::{check_target, refuse_to_rename_view};
use crate::catalog::{adopt, drop};
use crate::collection::replace::StagedDocuments;
use crate::collection::replace::content::Content;
use crate::collection::scan::all_documents;
use crate::collection::write::CollectionWriter;
use crate::contention::{LatchMode, Scope};
use crate::database::Database;
use crate::definition::capped;
use crate::error::Error;
use crate::event::EventKind;
use crate::name;
use crate::reader::Reader;
use crate::rewritten::{Rewriting, record_rewrite};
use crate::schema::Collection;
use crate::system::{LiveCollection, LiveIndex, WorkingEntry};
use crate::timeseries::Series;
use crate::transact::Outcome;

/// Moves a collection into another database, under the name `to`.
pub(crate) fn move_collection(
    database: &Database,
    from: &str,
    target: &Database,
    to: &str,
    drop_target: bool,
) -> Result<(), Error> {
    let (branch, target_branch) = (database.writable_branch()?, target.writable_branch()?);
    name::check_collection(target.repository_name(), to)?;
    let scope = Scope::collection(database.repository_name(), branch, from);
    let other = Scope::collection(target.repository_name(), target_branch, to);
    // Chunks that are put must survive a garbage collection that begins before the transaction
    // names them.
    let _session = database.frond().engine().store().session();
    let (mode, synced) = (LatchMode::Replacer, Durability::Synced);
    let done = database.frond().transact_over(scope, &[other], mode, synced, |transaction| {
        database.refuse_closed(transaction)?;
        target.refuse_closed(transaction)?;
        let Some(found) = adopt::find(transaction, database, branch, from)? else {
            let message = format!("Source collection {} does not exist", database.namespace(from));
            return Err(Error::invalid(Code::NamespaceNotFound, message));
        };
        refuse_to_rename_view(database, &found, from)?;
        if let Some(there) = adopt::find(transaction, target, target_branch, to)? {
            check_target(target, &there, to, drop_target)?;
            target.versions()?.remember_collection(target, transaction, target_branch, to)?;
            drop::drop_trees(transaction, &there)?;
            record_branch_event(target, transaction, target_branch, to, EventKind::Drop);
        }
        if capped::is_capped(found.options.view()) {
            copy_in_order(database, transaction, &found, (target, target_branch, to))?;
        } else {
            copy_trees(database, transaction, &found, (target, target_branch, to))?;
        }
        database.versions()?.remember_collection(database, transaction, branch, from)?;
        drop::drop_trees(transaction, &found)?;
        remove_entry(database, transaction, branch, from)?;
        record_branch_event(database, transaction, branch, from, EventKind::Drop);
        Ok(Outcome::Commit(()))
    });
    database.frond().note_definitions_changed();
    [database, target].iter().for_each(|database| database.note_written(1));
    done
}

/// Makes the collection of copies of all documents, and of new trees of its indexes.
fn copy_trees(
    database: &Database,
    transaction: &mut Transaction,
    found: &Collection,
    (target, branch, to): (&Database, &str, &str),
) -> Result<(), Error> {
    let format = adopt::ensure_repository(transaction, target, branch)?.format();
    let documents = copied(database, transaction, found, format, &target.namespace(to))?;
    let staged = StagedDocuments::of(target, to, documents);
    let indexes = staged.build_indexes(&found.indexes)?;
    let engine = database.frond().engine();
    let scope = (target.repository_name(), branch, to);
    let uuid = database.frond().new_uuid();
    let of = (branch, to, Some(&uuid));
    let made = record::creation(found.options.view());
    record_event(target, transaction, of, EventKind::Create, made.view());
    // Streams tell nothing of the points of a time series.
    if Series::of(found.options.view()).is_none() {
        let rewriting = Rewriting { before: None, after: Some(documents), keeps_images: false };
        record_rewrite(engine, transaction, scope, rewriting)?;
    }
    let specs = || found.indexes.iter().map(|index| &index.spec);
    if specs().next().is_some() {
        let made = record::indexes(specs());
        record_event(target, transaction, of, EventKind::CreateIndexes, made.view());
    }
    let mut place = |tree: Tree| {
        let id = engine.reserve_tree_id();
        transaction.set_base(id, tree).map(|()| id)
    };
    let documents = place(documents)?;
    let mut live_indexes = Vec::new();
    for (spec, tree) in indexes {
        live_indexes.push(LiveIndex { spec, tree: place(tree)? });
    }
    let live = LiveCollection {
        uuid,
        options: found.options.clone(),
        documents,
        indexes: live_indexes,
        order: None,
    };
    adopt::put_entry(transaction, target, branch, to, &WorkingEntry::Live(live))
}

/// A tree in the store of copies of all documents.
fn copied(
    database: &Database,
    transaction: &Transaction,
    found: &Collection,
    format: TreeFormat,
    namespace: &str,
) -> Result<Tree, Error> {
    let reader = Reader::within(database.frond().engine(), transaction);
    let resources = database.frond().resources(false);
    let mut content = Content::new(&resources, database.interrupt(), None);
    for document in all_documents(&reader, found, Direction::Ascending) {
        content.add(&document?)?;
    }
    content.load(&**database.frond().engine().store(), format, (namespace, &found.collation()?))
}

/// Makes the capped collection, and inserts copies of all documents in their order.
fn copy_in_order(
    database: &Database,
    transaction: &mut Transaction,
    found: &Collection,
    (target, branch, to): (&Database, &str, &str),
) -> Result<(), Error> {
    let documents: Vec<DocumentBuf> = {
        let reader = Reader::within(database.frond().engine(), transaction);
        all_documents(&reader, found, Direction::Ascending).collect::<Result<_, Error>>()?
    };
    let mut live = adopt::create(transaction, target, branch, to, found.options.clone())?;
    for index in found.secondary_indexes() {
        let engine = database.frond().engine();
        let format = adopt::ensure_repository(transaction, target, branch)?.format();
        let tree = engine.reserve_tree_id();
        let format = index.spec.tree_format(format);
        transaction.set_base(tree, Tree::empty(&**engine.store(), format)?)?;
        live.indexes.push(LiveIndex { spec: index.spec.clone(), tree });
    }
    adopt::put_entry(transaction, target, branch, to, &WorkingEntry::Live(live))?;
    // They were there before: what they must be is asked of what is written from now on.
    let unchecked = target.without_validation();
    let mut writer = CollectionWriter::open(transaction, &unchecked, branch, to)?;
    for document in &documents {
        writer.insert(document)?;
    }
    Ok(())
}
