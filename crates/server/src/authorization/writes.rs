//! What writes, and commands that name collections in their own ways, need.

use frond_db::Error;
use frond_doc::{Document, Value};

use super::{Asked, At, pipelines, split_namespace};
use crate::access::Action;

impl Asked<'_> {
    /// Checks actions on the collection that the command's own field names.
    fn named(&self, actions: &[Action]) -> Result<(), Error> {
        self.here(actions, self.argument().as_str())
    }

    /// Checks what an option asks for that lets documents pass a validator.
    fn passing_validators(&self) -> Result<(), Error> {
        match self.says("bypassDocumentValidation") {
            true => self.named(&[Action::BypassDocumentValidation]),
            false => Ok(()),
        }
    }

    /// Checks actions on `database.collection`.
    fn on_namespace(&self, actions: &[Action], namespace: &str) -> Result<(), Error> {
        let (database, collection) = split_namespace(namespace)?;
        self.on(actions, database, At::Open, Some(collection))
    }
}

fn says(document: Document<'_>, name: &str) -> bool {
    document.iter().any(|(field, value)| field == name && value.is_truthy())
}

/// `insert`
///
/// # Errors
/// `Unauthorized` (13).
pub fn insert(asked: &Asked<'_>) -> Result<(), Error> {
    asked.named(&[Action::Insert])?;
    asked.passing_validators()
}

/// `update`: an upsert inserts, too.
///
/// # Errors
/// `Unauthorized` (13).
pub fn update(asked: &Asked<'_>) -> Result<(), Error> {
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
pub fn find_and_modify(asked: &Asked<'_>) -> Result<(), Error> {
    asked.named(&[Action::Find])?;
    if asked.says("remove") {
        asked.named(&[Action::Remove])?;
    } else {
        asked.named(&[Action::Update])?;
    }
    if asked.says("upsert") {
        asked.named(&[Action::Insert])?;
    }
    asked.passing_validators()
}

/// `bulkWrite`: each operation on its own collection.
///
/// # Errors
/// `Unauthorized` (13).
pub fn bulk_write(asked: &Asked<'_>) -> Result<(), Error> {
    // Which list counts, that beside the command or that in it, is the handler's business: both do
    // here.
    let beside = asked.sequences.iter().filter(|sequence| sequence.name == "nsInfo");
    let beside = beside.flat_map(|sequence| sequence.documents.iter().map(|of| of.view()));
    let within = asked.values("nsInfo").filter_map(|value| value.as_array());
    let within = within.flat_map(|array| array.iter()).filter_map(|value| value.as_document());
    let name =
        |info: Document<'_>| info.get("ns").and_then(|name| name.as_str()).map(str::to_owned);
    let namespaces: [Vec<Option<String>>; 2] =
        [beside.map(name).collect(), within.map(name).collect()];
    for operation in asked.documents("ops") {
        let Some((kind, position)) = operation.iter().next() else { continue };
        let mut actions = match kind {
            "insert" => vec![Action::Insert],
            "update" => vec![Action::Update],
            "delete" => vec![Action::Remove],
            // It is refused for that.
            _ => continue,
        };
        if says(operation, "upsert") {
            actions.push(Action::Insert);
        }
        if asked.says("bypassDocumentValidation") {
            actions.push(Action::BypassDocumentValidation);
        }
        let position = position.as_integer().and_then(|number| usize::try_from(number).ok());
        for list in &namespaces {
            if let Some(Some(namespace)) = position.and_then(|position| list.get(position)) {
                asked.on_namespace(&actions, namespace)?;
            }
        }
    }
    Ok(())
}

/// `create`: who may insert may do so, as the first insert does it. A view is made of what its
/// maker may read.
///
/// # Errors
/// `Unauthorized` (13).
pub fn create(asked: &Asked<'_>) -> Result<(), Error> {
    let collection = asked.argument().as_str();
    let may_insert = asked.may(Action::Insert, asked.database, At::Open, collection)?;
    if !may_insert || asked.values("viewOn").next().is_some() {
        asked.named(&[Action::CreateCollection])?;
    }
    pipelines::of_view(asked)
}

/// `collMod`
///
/// # Errors
/// `Unauthorized` (13).
pub fn coll_mod(asked: &Asked<'_>) -> Result<(), Error> {
    asked.named(&[Action::CollMod])?;
    pipelines::of_view(asked)
}

/// `cloneCollectionAsCapped`
///
/// # Errors
/// `Unauthorized` (13).
pub fn clone_capped(asked: &Asked<'_>) -> Result<(), Error> {
    asked.named(&[Action::Find])?;
    for to in asked.values("toCollection").filter_map(|value| value.as_str()) {
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
pub fn rename(asked: &Asked<'_>) -> Result<(), Error> {
    let Some(from) = asked.argument().as_str() else { return asked.cluster(Action::Internal) };
    let (from_database, from_collection) = split_namespace(from)?;
    for to in asked.values("to").filter_map(|value| value.as_str()) {
        let (to_database, to_collection) = split_namespace(to)?;
        if from_database == to_database {
            asked.on_namespace(&[Action::RenameCollectionSameDB], from)?;
            asked.on_namespace(&[Action::RenameCollectionSameDB], to)?;
            let reads = |database, collection| {
                asked.may(Action::Find, database, At::Open, Some(collection))
            };
            if reads(to_database, to_collection)? && !reads(from_database, from_collection)? {
                return Err(asked.refused(from_database));
            }
        } else {
            asked.on_namespace(&[Action::Find, Action::DropCollection], from)?;
            asked.on_namespace(&[Action::Insert, Action::CreateIndex], to)?;
        }
        if asked.says("dropTarget") {
            asked.on_namespace(&[Action::DropCollection], to)?;
        }
    }
    Ok(())
}

/// `dataSize`, which names a collection with its database.
///
/// # Errors
/// `Unauthorized` (13).
pub fn data_size(asked: &Asked<'_>) -> Result<(), Error> {
    match asked.argument() {
        Value::String(namespace) => asked.on_namespace(&[Action::Find], namespace),
        _ => asked.here(&[Action::Find], None),
    }
}

/// `listCollections`: who may not list all may ask for the names of those that they may read.
///
/// # Errors
/// `Unauthorized` (13).
pub fn list_collections(asked: &Asked<'_>) -> Result<(), Error> {
    if asked.says("nameOnly") && asked.says("authorizedCollections") {
        return Ok(());
    }
    asked.here(&[Action::ListCollections], None)
}

/// `listDatabases`: the same, unless all are asked for.
///
/// # Errors
/// `Unauthorized` (13).
pub fn list_databases(asked: &Asked<'_>) -> Result<(), Error> {
    let mut only_own = asked.values("authorizedDatabases");
    match only_own.any(|value| !value.is_truthy()) {
        true => asked.cluster(Action::ListDatabases),
        false => Ok(()),
    }
}

/// `currentOp`: one's own operations are no secret.
///
/// # Errors
/// `Unauthorized` (13).
pub fn current_op(asked: &Asked<'_>) -> Result<(), Error> {
    if asked.says("$ownOps") { Ok(()) } else { asked.cluster(Action::Inprog) }
}

/// `killAllSessions`, of all users.
///
/// # Errors
/// `Unauthorized` (13).
pub fn kill_all_sessions(asked: &Asked<'_>) -> Result<(), Error> {
    asked.cluster(Action::KillAnySession)
}

/// `profile`: reading the level needs less than setting it.
///
/// # Errors
/// `Unauthorized` (13).
pub fn profile(asked: &Asked<'_>) -> Result<(), Error> {
    let sets = asked.argument().as_integer() != Some(-1)
        || asked.body.iter().any(|(name, _)| ["slowms", "sampleRate", "filter"].contains(&name));
    match sets {
        true => asked.here(&[Action::EnableProfiler], None),
        false => asked.here(&[Action::Find], Some("system.profile")),
    }
}
