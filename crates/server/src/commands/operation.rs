//! `currentOp` and `killOp`.

use frond_db::catalog::IndexBuild;
use frond_doc::{DocumentBuf, DocumentBuilder, Value, document};
use frond_query::Filter;

use crate::operations::Operation;
use crate::request::{Answer, Request};

/// Lists the commands that run; fields that aren't the command's own are a filter.
pub fn current_op(request: &Request<'_>) -> Answer {
    let mut filter = DocumentBuilder::new();
    for (name, value) in request.body.iter().skip(1) {
        let is_own = name.starts_with('$') && !["$or", "$and", "$nor", "$expr"].contains(&name);
        if !is_own && !["lsid", "comment", "maxTimeMS", "apiVersion"].contains(&name) {
            filter.append(name, value);
        }
    }
    let filter = filter.build();
    let filter = Filter::parse(filter.view())?;
    let mut answer = DocumentBuilder::new();
    answer.begin_array("inprog");
    for operation in list(request) {
        if filter.matches(operation.view()) {
            answer.push(Value::from(&operation));
        }
    }
    answer.end();
    Ok(answer)
}

/// Describes the commands that run, the oldest first, and then the index builds.
pub fn list(request: &Request<'_>) -> Vec<DocumentBuf> {
    let operations = request.server.operations.list();
    let operations = operations.iter().map(|operation| describe(operation));
    operations.chain(request.server.frond.index_builds().iter().map(describe_build)).collect()
}

fn describe_build(build: &IndexBuild) -> DocumentBuf {
    let number = |number: u64| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX));
    let IndexBuild { namespace, names, done, total } = build;
    let percent = done.saturating_mul(100).checked_div(*total).unwrap_or(100);
    let collection = namespace.split_once('.').map_or("", |(_, collection)| collection);
    let message = "Index Build: scanning collection";
    let mut told = DocumentBuilder::new();
    told.append("type", Value::String("op"))
        .append("desc", Value::String("index build"))
        .append("active", Value::Boolean(true))
        .append("op", Value::String("command"))
        .append("ns", Value::String(namespace));
    told.begin_document("command").append("createIndexes", Value::String(collection));
    told.begin_array("indexes");
    for name in names {
        told.push(Value::String(name));
    }
    told.end().end();
    told.append("msg", Value::String(&format!("{message} {message}: {done}/{total} {percent}%")));
    told.begin_document("progress")
        .append("done", number(*done))
        .append("total", number(*total))
        .end();
    told.build()
}

fn describe(operation: &Operation) -> DocumentBuf {
    let micros = i64::try_from(operation.elapsed().as_micros()).unwrap_or(i64::MAX);
    let mut command = DocumentBuilder::new();
    command.append(operation.command, Value::Int32(1));
    let command = command.build();
    let told = document! {
        "type": "op",
        "desc": &format!("conn{}", operation.connection),
        "connectionId": operation.connection,
        "active": true,
        "opid": operation.id,
        "secs_running": micros / 1_000_000,
        "microsecs_running": micros,
        "op": "command",
        "ns": &format!("{}.$cmd", operation.database),
        "command": &command,
    };
    let Some(progress) = operation.progress() else { return told };
    let number = |number: u64| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX));
    let mut builder = DocumentBuilder::new();
    for (name, value) in told.iter() {
        builder.append(name, value);
    }
    builder.append("msg", Value::String(&progress.message));
    builder
        .begin_document("progress")
        .append("done", number(progress.done))
        .append("total", number(progress.total))
        .end();
    builder.build()
}

/// Tells a command to stop at its next document. Like MongoDB, it doesn't tell whether it was there.
pub fn kill_op(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let id = fields.integer("op")?.ok_or_else(|| fields.missing("op"))?;
    fields.finish()?;
    if let Ok(id) = i32::try_from(id) {
        request.server.operations.kill(id);
    }
    let mut answer = DocumentBuilder::new();
    answer.append("info", Value::String("attempting to kill op"));
    Ok(answer)
}
