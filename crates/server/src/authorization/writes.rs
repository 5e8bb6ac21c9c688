//! The rights that writes need, and commands that name collections in their own ways.

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
        match self.is_set("bypassDocumentValidation")? {
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
fn is_set(document: Document<'_>, name: &str) -> bool {
    document.iter().any(|(field, value)| field == name && value.is_truthy())
}

/// `insert`
///
/// # Errors
/// `Unauthorized` (13).
pub fn insert(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.named(&[Action::Insert])?;
    request.passing_validators()
}

/// `update`: an upsert inserts, too.
///
/// # Errors
/// `Unauthorized` (13).
pub fn update(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.named(&[Action::Update])?;
    if request.documents("updates").any(|statement| is_set(statement, "upsert")) {
        request.named(&[Action::Insert])?;
    }
    request.passing_validators()
}

/// `findAndModify`: it returns the document, too.
///
/// # Errors
/// `Unauthorized` (13).
pub fn find_and_modify(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.named(&[Action::Find])?;
    let mut fields = request.fields()?;
    if fields.boolean("remove")? {
        request.named(&[Action::Remove])?;
    } else {
        request.named(&[Action::Update])?;
    }
    if fields.boolean("upsert")? {
        request.named(&[Action::Insert])?;
    }
    request.passing_validators()
}

/// `create`: a user who may insert may do so, as the first insert does it. A view is made of what
/// its maker may read.
///
/// # Errors
/// `Unauthorized` (13).
pub fn create(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let collection = request.argument().as_str();
    let may_insert =
        request.may(Action::Insert, request.database, VersionScope::Open, collection)?;
    if !may_insert || request.fields()?.string("viewOn")?.is_some() {
        request.named(&[Action::CreateCollection])?;
    }
    pipelines::of_view(request)
}

/// `collMod`
///
/// # Errors
/// `Unauthorized` (13); `InvalidOptions` (72).
pub fn coll_mod(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.named(&[Action::CollMod])?;
    let mut fields = request.fields()?;
    // With one of them alone a client could show itself more of what the other one names.
    if fields.value("viewOn").is_some() != fields.value("pipeline").is_some() {
        let message =
            "Must specify both 'viewOn' and 'pipeline' when modifying a view and auth is enabled";
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    pipelines::of_view(request)
}

/// `cloneCollectionAsCapped`
///
/// # Errors
/// `Unauthorized` (13).
pub fn clone_capped(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.named(&[Action::Find])?;
    if let Some(to) = request.fields()?.string("toCollection")? {
        let make = [Action::Insert, Action::CreateIndex, Action::CreateCollection];
        request.here(&make, Some(to))?;
    }
    Ok(())
}

/// `renameCollection`: within a database it has an action of its own, between two it is a copy and
/// a drop. A collection that can't be read doesn't become one that can.
///
/// # Errors
/// `Unauthorized` (13).
pub fn rename(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let Some(from) = request.argument().as_str() else { return request.cluster(Action::Internal) };
    let (from_database, from_collection) = split_namespace(from)?;
    let mut fields = request.fields()?;
    if let Some(to) = fields.string("to")? {
        let (to_database, to_collection) = split_namespace(to)?;
        if from_database == to_database {
            request.on_namespace(&[Action::RenameCollectionSameDB], from)?;
            request.on_namespace(&[Action::RenameCollectionSameDB], to)?;
            let reads = |database, collection| {
                request.may(Action::Find, database, VersionScope::Open, Some(collection))
            };
            if reads(to_database, to_collection)? && !reads(from_database, from_collection)? {
                return Err(request.refused(from_database));
            }
        } else {
            request.on_namespace(&[Action::Find, Action::DropCollection], from)?;
            request.on_namespace(&[Action::Insert, Action::CreateIndex], to)?;
        }
        if fields.boolean("dropTarget")? {
            request.on_namespace(&[Action::DropCollection], to)?;
        }
    }
    Ok(())
}

/// `dataSize`, which names a collection with its database.
///
/// # Errors
/// `Unauthorized` (13).
pub fn data_size(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    match request.argument() {
        Value::String(namespace) => request.on_namespace(&[Action::Find], namespace),
        _ => request.here(&[Action::Find], None),
    }
}

/// `listCollections`: a user who may not list all may ask for the names of those they may read.
///
/// # Errors
/// `Unauthorized` (13).
pub fn list_collections(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let mut fields = request.fields()?;
    if fields.boolean("nameOnly")? && fields.boolean("authorizedCollections")? {
        return Ok(());
    }
    request.here(&[Action::ListCollections], None)
}

/// `listDatabases`: the same, unless all are asked for.
///
/// # Errors
/// `Unauthorized` (13).
pub fn list_databases(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    match request.fields()?.optional_boolean("authorizedDatabases")? {
        Some(false) => request.cluster(Action::ListDatabases),
        Some(true) | None => Ok(()),
    }
}

/// `killAllSessions`, of all users.
///
/// # Errors
/// `Unauthorized` (13).
pub fn kill_all_sessions(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.cluster(Action::KillAnySession)
}

/// `profile`: reading the level needs less than setting it.
///
/// # Errors
/// `Unauthorized` (13).
pub fn profile(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let mut fields = request.fields()?;
    let sets = request.argument().as_integer() != Some(-1)
        || ["slowms", "sampleRate", "filter"].iter().any(|name| fields.value(name).is_some());
    match sets {
        true => request.here(&[Action::EnableProfiler], None),
        false => request.here(&[Action::Find], Some("system.profile")),
    }
}
