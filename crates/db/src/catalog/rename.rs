//! Renaming a collection within its database. The conflicts that wait for it go with it.

use frond_doc::{Binary, DocumentBuilder, Value as BsonValue};
use frond_engine::Durability;
use frond_query::Code;

use crate::catalog::adopt;
use crate::catalog::drop::{drop_trees, remove_entry};
use crate::catalog::record::record_event;
use crate::contention::{LatchMode, Scope};
use crate::database::Database;
use crate::error::Error;
use crate::event::EventKind;
use crate::name;
use crate::schema::Collection;
use crate::system::WorkingEntry;
use crate::transact::Outcome;

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
        database.versions()?.rename_collection(database, transaction, branch, (from, to))?;
        let mut facts = DocumentBuilder::new();
        facts.append("to", BsonValue::String(to));
        if let Some(uuid) = &dropped {
            let uuid = Binary { subtype: 4, bytes: uuid };
            facts.append("dropTarget", BsonValue::Binary(uuid));
        }
        let of = (branch, from, Some(&found.uuid));
        record_event(database, transaction, of, EventKind::Rename, facts.build().view());
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
