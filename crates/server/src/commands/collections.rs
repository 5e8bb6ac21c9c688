//! `drop` and `renameCollection`.

use frond_db::{Error, name};
use frond_doc::{DocumentBuilder, Value};
use frond_query::Code;
use frond_vcs::Repository;

use crate::commands::catalog::VIEWS;
use crate::commands::reply;
use crate::profiler::{self, Level};
use crate::request::{Answer, Request, check_collection_name, check_writable, split_namespace};

/// Drops a collection. One that isn't there is dropped already, as MongoDB has it.
pub fn drop(request: &Request<'_>) -> Answer {
    let collection = request.collection()?;
    // Databases that only show Frond's own state have no collection that could be dropped.
    if name::is_internal(request.database_name) {
        check_writable(request.database_name, collection)?;
    }
    request.no_fields()?;
    let database = request.database()?;
    if collection == VIEWS {
        return drop_views(request, &database);
    }
    let indexes = database.list_indexes(collection).map(|indexes| indexes.len() as u64);
    if collection == profiler::COLLECTION && indexes.is_ok() {
        if request.server.profiler.level(request.database_name) != Level::Off {
            let message = "turn off profiling before dropping system.profile collection";
            return Err(Error::invalid(Code::IllegalOperation, message));
        }
    } else if collection.starts_with("system.") && collection != "system.js" && indexes.is_ok() {
        let message = format!("can't drop system collection {}", request.namespace(collection));
        return Err(Error::invalid(Code::IllegalOperation, message));
    }
    let mut answer = DocumentBuilder::new();
    let namespace = request.namespace(collection);
    if database.drop_collection(collection)? {
        request.server.usage.forget(&namespace);
        if let Ok(indexes) = indexes {
            answer.append("nIndexesWas", reply::number(indexes));
        }
        answer.append("ns", Value::String(&namespace));
    }
    Ok(answer)
}

/// Drops all views of a database, which is what dropping their collection comes to.
fn drop_views(request: &Request<'_>, database: &Repository) -> Answer {
    let collections = database.list_collections()?;
    if collections.iter().any(|collection| collection.is_series()) {
        let message =
            "cannot drop collection system.views when time-series collections are present";
        return Err(Error::invalid(Code::CommandFailed, message));
    }
    let mut has_dropped = false;
    for view in collections.iter().filter(|collection| collection.is_view()) {
        has_dropped |= database.drop_collection(&view.name)?;
    }
    let mut answer = DocumentBuilder::new();
    if has_dropped {
        answer
            .append("nIndexesWas", Value::Int32(1))
            .append("ns", Value::String(&request.namespace(VIEWS)));
    }
    Ok(answer)
}

/// Renames a collection, within its database or into another.
pub fn rename(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let from = request.own_text();
    let to = fields.required_string("to")?;
    let drops_target = match fields.value("dropTarget") {
        Some(Value::Binary(_)) => {
            let message = "'dropTarget' as a UUID, which servers say to one another, is not \
                           supported by Frond";
            return Err(Error::invalid(Code::CommandNotSupported, message));
        }
        drops => drops.is_some_and(|drops| drops.is_truthy()),
    };
    fields.boolean("stayTemp")?;
    fields.finish()?;
    let (from_database, from) = split_namespace(from)?;
    let (to_database, to) = split_namespace(to)?;
    for (database, name) in [(from_database, from), (to_database, to)] {
        check_collection_name(database, name)?;
        check_writable(database, name)?;
        if name == "system.js" {
            let message = "renaming system.js collection or renaming to system.js is not allowed";
            return Err(Error::invalid(Code::IllegalOperation, message));
        }
    }
    if (from_database, from) == (to_database, to) {
        let message = "Can't rename a collection to itself";
        return Err(Error::invalid(Code::IllegalOperation, message));
    }
    let frond = &request.server.frond;
    let source = frond.database(from_database)?;
    if from_database == to_database {
        source.rename_collection(from, to, drops_target)?;
    } else {
        source.move_collection(from, &frond.database(to_database)?, to, drops_target)?;
    }
    for (database, name) in [(from_database, from), (to_database, to)] {
        request.server.usage.forget(&format!("{database}.{name}"));
    }
    Ok(DocumentBuilder::new())
}
