//! Dropping a collection, or a database with its whole history.
//!
//! The layer of versions remembers what is dropped, so that it can come back.

use frond_doc::Document;
use frond_engine::{Durability, Transaction, TreeId};
use frond_query::Code;
use frond_tree::{Bounds, Direction};

use crate::catalog::record::{record_branch_event, record_event};
use crate::catalog::{CatalogView, adopt};
use crate::contention::{LatchMode, Scope};
use crate::database::Database;
use crate::error::Error;
use crate::event::EventKind;
use crate::frond::Notice;
use crate::reader::Reader;
use crate::refs;
use crate::refs::policy;
use crate::schema::{Collection, TreeRef};
use crate::system::{self, WorkingEntry};
use crate::transact::Outcome;

/// Drops a collection; returns whether it was there.
pub(crate) fn drop_collection(database: &Database, name: &str) -> Result<bool, Error> {
    let branch = database.writable_branch()?;
    let scope = Scope::collection(database.repository_name(), branch, name);
    let done = database.transact(scope, LatchMode::Replacer, Durability::Synced, |transaction| {
        let Some(found) = adopt::find(transaction, database, branch, name)? else {
            return Ok(Outcome::Discard(false));
        };
        transaction.give_back();
        database.pass_interrupt_to(transaction);
        let remembered =
            database.versions()?.remember_collection(database, transaction, branch, name);
        unless_full(database, name, remembered)?;
        drop_trees(transaction, &found)?;
        remove_entry(database, transaction, branch, name)?;
        let of = (branch, name, Some(&found.uuid));
        record_event(database, transaction, of, EventKind::Drop, Document::empty());
        Ok(Outcome::Commit(true))
    });
    database.frond().note_definitions_changed();
    done
}

/// Lets a collection be dropped although a full disk keeps it from being remembered. A dropped
/// collection is remembered by the tree it is folded to, which needs room. Where there is none,
/// dropping is what helps: the collection goes for good, and a notice says so.
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

/// Drops the database with its whole history if this is the default branch; a branch's working
/// state otherwise can't be dropped this way (an error that names `frondBranch`).
pub(crate) fn drop_database(database: &Database) -> Result<(), Error> {
    let branch = database.writable_branch()?;
    let name = database.repository_name();
    let scope = Scope::branch(name, branch);
    let done = database.transact(scope, LatchMode::Remover, Durability::Synced, |transaction| {
        let mut policies = Vec::new();
        let names = match database.frond().engine().records_events() {
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
        database.pass_interrupt_to(transaction);
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
            record_branch_event(database, transaction, branch, &collection, EventKind::Drop);
        }
        record_branch_event(database, transaction, branch, "", EventKind::DropDatabase);
        Ok(Outcome::Commit(()))
    });
    database.frond().note_definitions_changed();
    done
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
