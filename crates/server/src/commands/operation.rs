//! `currentOp` and `killOp`.

use std::sync::Arc;

use frond_db::Error;
use frond_db::catalog::IndexBuild;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::{Code, Filter};
use frond_vcs::remote::Moved;

use crate::access::{Action, Target};
use crate::authorization::{self, AuthorizationRequest};
use crate::commands::reply::long;
use crate::log::shortened;
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
    let filter = Filter::parse_test(filter.view())?;
    let only_own = shows_own_only(request.body);
    let mut answer = DocumentBuilder::new();
    answer.begin_array("inprog");
    for operation in list(request, only_own) {
        if filter.matches(operation.view()) {
            answer.push(Value::from(&operation));
        }
    }
    answer.end();
    Ok(answer)
}

/// Whether a `currentOp` asks for the client's own commands only.
fn shows_own_only(command: Document<'_>) -> bool {
    command.get("$ownOps").is_some_and(|only_own| only_own.is_truthy())
}

/// Checks the rights for `currentOp`: a client's own operations are no secret.
///
/// # Errors
/// `Unauthorized` (13).
pub fn needs(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    if shows_own_only(request.body) { Ok(()) } else { request.cluster(Action::Inprog) }
}

/// Describes the commands that run, the oldest first, and then the index builds; or only the
/// client's own commands.
pub fn list(request: &Request<'_>, only_own: bool) -> Vec<DocumentBuf> {
    let user = request.peer.digest();
    let operations = request.server.operations.list();
    let is_wanted = |operation: &&Arc<Operation>| !only_own || operation.peer.digest() == user;
    let host = &request.server.member.host;
    let operations = operations.iter().filter(is_wanted);
    let mut described: Vec<DocumentBuf> =
        operations.map(|operation| describe(operation, host)).collect();
    if !only_own {
        described.extend(request.server.frond.index_builds().iter().map(describe_build));
    }
    described
}

fn describe_build(build: &IndexBuild) -> DocumentBuf {
    let number = |number: u64| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX));
    let IndexBuild { namespace, names, done, total } = build;
    let percent = done.saturating_mul(100).checked_div(*total).unwrap_or(100);
    let collection = namespace.split_once('.').map_or("", |(_, collection)| collection);
    let message = "Index Build: scanning collection";
    let mut built = DocumentBuilder::new();
    built
        .append("type", Value::String("op"))
        .append("desc", Value::String("index build"))
        .append("active", Value::Boolean(true))
        .append("op", Value::String("command"))
        .append("ns", Value::String(namespace));
    built.begin_document("command").append("createIndexes", Value::String(collection));
    built.begin_array("indexes");
    for name in names {
        built.push(Value::String(name));
    }
    built.end().end();
    built.append("msg", Value::String(&format!("{message} {message}: {done}/{total} {percent}%")));
    built
        .begin_document("progress")
        .append("done", number(*done))
        .append("total", number(*total))
        .end();
    built.build()
}

fn describe(operation: &Operation, host: &str) -> DocumentBuf {
    let micros = i64::try_from(operation.elapsed().as_micros()).unwrap_or(i64::MAX);
    let (peer, mut description) = (&operation.peer, DocumentBuilder::new());
    description.append("type", Value::String("op")).append("host", Value::String(host));
    if peer.is_own() {
        description.append("desc", Value::String("commit policy"));
    } else {
        description
            .append("desc", Value::String(&format!("conn{}", peer.id)))
            .append("connectionId", Value::Int32(peer.id))
            .append("client", Value::String(&peer.address.to_string()));
    }
    if let Some(name) = peer.app_name() {
        description.append("appName", Value::String(&name));
    }
    if let Some(client) = peer.client() {
        description.append("clientMetadata", Value::Document(client.view()));
    }
    description.append("active", Value::Boolean(true));
    if let Some(login) = peer.login() {
        description.begin_array("effectiveUsers").push_begin_document();
        login.user.append(&mut description);
        description.end().end();
    }
    description.append("threaded", Value::Boolean(true)).append("opid", Value::Int32(operation.id));
    if let Some(session) = operation.sent.get("lsid") {
        description.append("lsid", session);
    }
    let command = authorization::without_secrets(operation.sent.view());
    description
        .append("secs_running", Value::Int64(micros / 1_000_000))
        .append("microsecs_running", Value::Int64(micros))
        .append("op", Value::String(operation.kind()))
        .append("ns", Value::String(&operation.namespace()))
        .append("redacted", Value::Boolean(false))
        .append("command", Value::Document(shortened(command.view()).view()));
    let number = |number: u64| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX));
    if let Some(plan) = operation.live.plan().summary() {
        let (keys, documents) = operation.live.counts();
        description
            .append("planSummary", Value::String(&plan))
            .append("keysExamined", number(keys))
            .append("docsExamined", number(documents));
    }
    if let Some(progress) = operation.progress() {
        description
            .append("msg", Value::String(&progress.message))
            .begin_document("progress")
            .append("done", number(progress.done))
            .append("total", number(progress.total))
            .end();
        if let Some(moved) = progress.moved {
            append_moved(&mut description, &moved);
        }
    }
    description.build()
}

/// Appends what a transfer has moved so far, by the names of its answer and more.
fn append_moved(description: &mut DocumentBuilder, moved: &Moved) {
    let counts = [
        ("commits", moved.commits),
        ("commitsDone", moved.commits_done),
        ("chunks", moved.chunks),
        ("bytes", moved.bytes),
        ("chunksKnown", moved.known),
        ("chunksFound", moved.found),
    ];
    description.begin_document("moved");
    for (name, count) in counts {
        description.append(name, Value::Int64(long(count)));
    }
    description.end();
}

/// Checks that the client may stop a command: another user's only with the right to.
fn check_owner(request: &Request<'_>, id: i32) -> Result<(), Error> {
    let Some(rights) = &request.rights else { return Ok(()) };
    let running = request.server.operations.list();
    let is_own = running
        .iter()
        .any(|operation| operation.id == id && operation.peer.digest() == rights.login.digest);
    if is_own || rights.grants.allow(Action::Killop, Target::Cluster) {
        return Ok(());
    }
    let message = format!("not authorized on admin to execute command {{ killOp: 1, op: {id} }}");
    Err(Error::invalid(Code::Unauthorized, message))
}

/// Interrupts a command at its next document. Like MongoDB, it doesn't say whether it was there.
pub fn kill_op(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let id = fields.integer("op")?.ok_or_else(|| fields.missing("op"))?;
    fields.finish()?;
    let id = i32::try_from(id).expect("the table takes numbers of 32 bits");
    check_owner(request, id)?;
    request.server.operations.kill(id);
    let mut answer = DocumentBuilder::new();
    answer.append("info", Value::String("attempting to kill op"));
    Ok(answer)
}
