//! `convertToCapped` and `cloneCollectionAsCapped`: a capped collection of another's last
//! documents.
//!
//! Indexes are not taken over, as in MongoDB; the collation and the validator are. The documents
//! are read backwards as long as they fit the size, so that the copy costs what stays. It is one
//! transaction.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document};
use frond_engine::{Durability, Transaction};
use frond_query::Code;
use frond_tree::Direction;

use crate::catalog::collections::{change_collection, refuse_series};
use crate::catalog::record::record_branch_event;
use crate::catalog::{adopt, drop, options};
use crate::collection::scan::all_documents;
use crate::collection::write::CollectionWriter;
use crate::contention::{LatchMode, Scope};
use crate::database::Database;
use crate::definition::{capped, view};
use crate::error::Error;
use crate::event::EventKind;
use crate::name;
use crate::reader::Reader;
use crate::schema::Collection;
use crate::transact::Outcome;

/// The options of a collection that becomes capped: how it compares strings and what its documents
/// must be stays as it was.
fn with_limits(options: Document<'_>, limits: Document<'_>) -> Result<DocumentBuf, Error> {
    const KEPT: [&str; 4] = ["collation", "validator", "validationLevel", "validationAction"];
    let mut all = DocumentBuilder::new();
    for (option, value) in limits.iter() {
        all.append(option, value);
    }
    for (option, value) in options.iter().filter(|(option, _)| KEPT.contains(option)) {
        all.append(option, value);
    }
    options::kept_options(all.build().view())
}

/// Makes the collection `to` a capped one of `size` bytes with the last documents of `from`;
/// `to` may be `from`.
pub(crate) fn copy_capped(
    database: &Database,
    from: &str,
    to: &str,
    size: i64,
) -> Result<(), Error> {
    let branch = database.writable_branch()?;
    name::check_collection(database.repository_name(), to)?;
    let options = document! { "capped": true, "size": size };
    capped::check(options.view())?;
    let scope = Scope::collection(database.repository_name(), branch, from);
    database.transact(scope, LatchMode::Replacer, Durability::Synced, |transaction| {
        let Some(found) = adopt::find(transaction, database, branch, from)? else {
            let message = format!("source collection {} does not exist", database.namespace(from));
            return Err(Error::invalid(Code::NamespaceNotFound, message));
        };
        view::refuse(found.options.view(), &database.namespace(from))?;
        refuse_series(database, &found, from)?;
        let options = with_limits(found.options.view(), options.view())?;
        let documents = last_of(database, transaction, &found, capped::rounded(size))?;
        if from == to {
            database.versions()?.remember_collection(database, transaction, branch, from)?;
            drop::drop_trees(transaction, &found)?;
            record_branch_event(database, transaction, branch, from, EventKind::Drop);
        } else if adopt::find(transaction, database, branch, to)?.is_some() {
            let message = format!("target collection {} already exists", database.namespace(to));
            return Err(Error::invalid(Code::NamespaceExists, message));
        }
        adopt::create(transaction, database, branch, to, options)?;
        // They were there before: what they must be is asked of what is written from now on.
        let unchecked = database.without_validation();
        let mut writer = CollectionWriter::open(transaction, &unchecked, branch, to)?;
        for document in documents.iter().rev() {
            database.interrupt().check()?;
            writer.insert(document)?;
        }
        Ok(Outcome::Commit(()))
    })
}

/// The last documents of a collection in its natural order, backwards, as far as they fit.
fn last_of(
    database: &Database,
    transaction: &Transaction,
    collection: &Collection,
    size: i64,
) -> Result<Vec<DocumentBuf>, Error> {
    let reader = Reader::within(database.frond().engine(), transaction);
    let (mut documents, mut bytes) = (Vec::new(), 0);
    for document in all_documents(&reader, collection, Direction::Descending) {
        database.interrupt().check()?;
        let document = document?;
        bytes += i64::try_from(document.as_bytes().len()).unwrap_or(i64::MAX);
        if bytes > size {
            break;
        }
        documents.push(document);
    }
    Ok(documents)
}

/// Changes the limits of a capped collection. Documents above the limits go with the next
/// insertion.
pub(crate) fn change_limits(
    database: &Database,
    collection: &str,
    size: Option<i64>,
    max: Option<i64>,
) -> Result<(), Error> {
    let mut changes = DocumentBuilder::new();
    if let Some(size) = size {
        changes.append("size", Value::Int64(capped::rounded(size)));
    }
    if let Some(max) = max {
        changes.append("max", Value::Int64(max));
    }
    change_collection(database, collection, changes.build().view())
}
