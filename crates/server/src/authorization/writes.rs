//! What writes, and commands that name collections in their own ways, need.

use frond_db::Error;
use frond_doc::{Document, Value};
use frond_query::Code;

use super::{AuthorizationRequest, VersionScope, pipelines, split_namespace};
use crate::access::Action;

impl AuthorizationRequest<'_> {
    /// Checks actions on the collection that the command's own field names.
    fn named(&self, actions: &[Action]) -> Result<(), Error> {
        self.here(actions, self.argument().as_str())
    }

    /// Checks what an option asks for that lets documents pass a validator.
    fn passing_validators(&self) -> Result<(), Error> {
        match self.says("bypassDocumentValidation")? {
            true => self.named(&[Action::BypassDocumentValidation]),
            false => Ok(()),
        }
    }

    /// Checks actions on `database.collection`.
    fn on_namespace(&self, actions: &[Action], namespace: &str) -> Result<(), Error> {
        let (database, collection) = split_namespace(namespace)?;
        self.on(actions, database, VersionScope::Open, Some(collection))
    }
}

/// Whether a statement's field says yes, more generously than its reader takes it.
fn says(document: Document<'_>, name: &str) -> bool {
    document.iter().any(|(field, value)| field == name && value.is_truthy())
}

/// `insert`
///
/// # Errors
/// `Unauthorized` (13).
pub fn insert(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    asked.named(&[Action::Insert])?;
    asked.passing_validators()
}

/// `update`: an upsert inserts, too.
///
/// # Errors
/// `Unauthorized` (13).
pub fn update(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    asked.named(&[Action::Update])?;
    if asked.documents("updates").any(|statement| says(statement, "upsert")) {
        asked.named(&[Action::Insert])?;
    }
    asked.passing_validators()
}

/// `findAndModify`: it tells the document, too.
///
/// # Errors
/// `Unauthorized` (13).
pub fn find_and_modify(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    asked.named(&[Action::Find])?;
    let mut fields = asked.fields()?;
    if fields.boolean("remove")? {
        asked.named(&[Action::Remove])?;
    } else {
        asked.named(&[Action::Update])?;
    }
    if fields.boolean("upsert")? {
        asked.named(&[Action::Insert])?;
    }
    asked.passing_validators()
}

/// `create`: a user who may insert may do so, as the first insert does it. A view is made of what
/// its maker may read.
///
/// # Errors
/// `Unauthorized` (13).
pub fn create(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let collection = asked.argument().as_str();
    let may_insert = asked.may(Action::Insert, asked.database, VersionScope::Open, collection)?;
    if !may_insert || asked.fields()?.string("viewOn")?.is_some() {
        asked.named(&[Action::CreateCollection])?;
    }
    pipelines::of_view(asked)
}

/// `collMod`
///
/// # Errors
/// `Unauthorized` (13); `InvalidOptions` (72).
pub fn coll_mod(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    asked.named(&[Action::CollMod])?;
    let mut fields = asked.fields()?;
    // With one of them alone a client could show itself more of what the other one names.
    if fields.value("viewOn").is_some() != fields.value("pipeline").is_some() {
        let message =
            "Must specify both 'viewOn' and 'pipeline' when modifying a view and auth is enabled";
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    pipelines::of_view(asked)
}

/// `cloneCollectionAsCapped`
///
/// # Errors
/// `Unauthorized` (13).
pub fn clone_capped(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    asked.named(&[Action::Find])?;
    if let Some(to) = asked.fields()?.string("toCollection")? {
        let make = [Action::Insert, Action::CreateIndex, Action::CreateCollection];
        asked.here(&make, Some(to))?;
    }
    Ok(())
}

/// `renameCollection`: within a database it has an action of its own, between two it is a copy and
/// a drop. What can't be read doesn't become what can.
///
/// # Errors
/// `Unauthorized` (13).
pub fn rename(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let Some(from) = asked.argument().as_str() else { return asked.cluster(Action::Internal) };
    let (from_database, from_collection) = split_namespace(from)?;
    let mut fields = asked.fields()?;
    if let Some(to) = fields.string("to")? {
        let (to_database, to_collection) = split_namespace(to)?;
        if from_database == to_database {
            asked.on_namespace(&[Action::RenameCollectionSameDB], from)?;
            asked.on_namespace(&[Action::RenameCollectionSameDB], to)?;
            let reads = |database, collection| {
                asked.may(Action::Find, database, VersionScope::Open, Some(collection))
            };
            if reads(to_database, to_collection)? && !reads(from_database, from_collection)? {
                return Err(asked.refused(from_database));
            }
        } else {
            asked.on_namespace(&[Action::Find, Action::DropCollection], from)?;
            asked.on_namespace(&[Action::Insert, Action::CreateIndex], to)?;
        }
        if fields.boolean("dropTarget")? {
            asked.on_namespace(&[Action::DropCollection], to)?;
        }
    }
    Ok(())
}

/// `dataSize`, which names a collection with its database.
///
/// # Errors
/// `Unauthorized` (13).
pub fn data_size(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    match asked.argument() {
        Value::String(namespace) => asked.on_namespace(&[Action::Find], namespace),
        _ => asked.here(&[Action::Find], None),
    }
}

/// `listCollections`: a user who may not list all may ask for the names of those they may read.
///
/// # Errors
/// `Unauthorized` (13).
pub fn list_collections(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let mut fields = asked.fields()?;
    if fields.boolean("nameOnly")? && fields.boolean("authorizedCollections")? {
        return Ok(());
    }
    asked.here(&[Action::ListCollections], None)
}

/// `listDatabases`: the same, unless all are asked for.
///
/// # Errors
/// `Unauthorized` (13).
pub fn list_databases(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    match asked.fields()?.optional_boolean("authorizedDatabases")? {
        Some(false) => asked.cluster(Action::ListDatabases),
        Some(true) | None => Ok(()),
    }
}

/// `killAllSessions`, of all users.
///
/// # Errors
/// `Unauthorized` (13).
pub fn kill_all_sessions(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    asked.cluster(Action::KillAnySession)
}

/// `profile`: reading the level needs less than setting it.
///
/// # Errors
/// `Unauthorized` (13).
pub fn profile(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let mut fields = asked.fields()?;
    let sets = asked.argument().as_integer() != Some(-1)
        || ["slowms", "sampleRate", "filter"].iter().any(|name| fields.value(name).is_some());
    match sets {
        true => asked.here(&[Action::EnableProfiler], None),
        false => asked.here(&[Action::Find], Some("system.profile")),
    }
}
