//! `listDatabases` and `dropDatabase`.

use frond_db::Error;
use frond_db::catalog::DatabaseInfo;
use frond_doc::{DocumentBuilder, Value, document};
use frond_query::{Code, Filter};

use crate::access::{Action, Target};
use crate::commands::reply;
use crate::request::{Answer, Request};

/// Lists the databases. Branches and versions of a database are not listed: they are reached by
/// name (`shop@feature`).
pub fn list(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let filter = fields.document("filter")?.map(Filter::parse_test).transpose()?;
    let names_only = fields.boolean("nameOnly")?;
    // A user who may not list all databases sees those that they may look into.
    let only_own = fields.optional_boolean("authorizedDatabases")?;
    let is_visible = |name: &str| match &request.rights {
        Some(rights) => {
            let lists_all = rights.grants.allow(Action::ListDatabases, Target::Cluster);
            (lists_all && only_own != Some(true))
                || rights.grants.allow_somewhere(Action::Find, name)
        }
        None => true,
    };
    fields.finish()?;
    let mut answer = DocumentBuilder::new();
    let mut total = 0;
    answer.begin_array("databases");
    let mut databases = request.server.frond.list_databases()?;
    let has_users = !request.server.accounts.directory(&request.server.frond)?.users.is_empty();
    if has_users && databases.iter().all(|known| known.name != "admin") {
        // Its users are in it, where tools look for them.
        let position = databases.partition_point(|known| known.name.as_str() < "admin");
        let admin = DatabaseInfo { name: "admin".to_owned(), bytes: 0, empty: false };
        databases.insert(position, admin);
    }
    for database in databases {
        if !is_visible(&database.name) {
            continue;
        }
        let bytes = reply::long(database.bytes);
        let document = document! {
            "name": &database.name, "sizeOnDisk": bytes, "empty": database.empty,
        };
        if filter.as_ref().is_some_and(|filter| !filter.matches(document.view())) {
            continue;
        }
        total += bytes;
        if names_only {
            answer.push(Value::Document(document! { "name": &database.name }.view()));
        } else {
            answer.push(Value::Document(document.view()));
        }
    }
    answer.end();
    if !names_only {
        answer.append("totalSize", Value::Int64(total));
        answer.append("totalSizeMb", Value::Int64(total >> 20));
    }
    Ok(answer)
}

/// Refuses to drop what the server keeps for itself, whatever version of it.
fn check_droppable(database: &str) -> Result<(), Error> {
    let message = match database.split('@').next() {
        Some("admin") => "Dropping the 'admin' database is prohibited.",
        Some("local") => "Cannot drop 'local' database while replication is active",
        _ => return Ok(()),
    };
    Err(Error::invalid(Code::IllegalOperation, message))
}

/// Drops a database with its history.
pub fn drop(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    if request.argument().as_integer() != Some(1) {
        let message = "Have to pass 1 as 'dropDatabase' parameter";
        return Err(Error::invalid(Code::Location(5_255_100), message));
    }
    check_droppable(request.database_name)?;
    let exists = request
        .server
        .frond
        .list_databases()?
        .iter()
        .any(|info| info.name == request.database_name);
    request.database()?.drop_database()?;
    request.server.usage.forget_database(request.database_name);
    request.server.profiler.forget(request.database_name);
    let mut answer = DocumentBuilder::new();
    if exists {
        answer.append("dropped", Value::String(request.database_name));
    }
    Ok(answer)
}
