//! Commands that clients send when they connect: hello, isMaster, ping, buildInfo, whatsmyuri.
//!
//! A server by itself is announced as the primary of a replica set of one member, so that drivers
//! allow transactions and retryable writes. That changes once at most: when a failed sync, or
//! another fault, closes the databases for writing, it is a secondary. Reads that allow one go on,
//! and drivers wait for a primary before they write, which is there when the server was started
//! again. A client that asks for news (`topologyVersion` and `maxAwaitTimeMS`, as drivers' monitors
//! do) waits until there is some, or the time is up.

use std::time::Duration;

use frond_db::Error;
use frond_doc::{Array, Document, DocumentBuilder, ObjectId, Value};
use frond_query::Code;

use crate::commands::replica_set::{self, SetDescription};
use crate::commands::{certificate_login, login};
use crate::limits::{HELLO_WAIT_MAX, SESSION_TIMEOUT_MINUTES, WRITE_BATCH_MAX};
use crate::replica::members::{Host, Members};
use crate::request::{Answer, Request};
use crate::shared::Shared;
use crate::wire::{Compressor, MESSAGE_BYTES_MAX};

/// The version of MongoDB whose behaviour is offered.
pub const MONGODB_VERSION: &str = "8.0.0";
const MONGODB_VERSION_PARTS: [i32; 4] = [8, 0, 0, 0];
/// The wire version of that MongoDB.
pub const WIRE_VERSION_MAX: i32 = 25;
/// Returns the id of an election: of two primaries clients believe the one with the greater term.
fn election(term: i64) -> ObjectId {
    let mut id = [0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0];
    id[4..].copy_from_slice(&term.to_be_bytes());
    ObjectId(id)
}

/// Frond's own version.
pub const FROND_VERSION: &str = env!("CARGO_PKG_VERSION");

/// `hello`.
///
/// # Errors
/// Wrong fields, by MongoDB's codes.
pub fn hello(request: &Request<'_>) -> Answer {
    greet(request, "isWritablePrimary")
}

/// `isMaster`, its old name.
///
/// # Errors
/// As [`hello`].
pub fn is_master(request: &Request<'_>) -> Answer {
    greet(request, "ismaster")
}

fn greet(request: &Request<'_>, primary_name: &str) -> Answer {
    let mut fields = request.fields()?;
    let takes_hello = fields.boolean("helloOk")?;
    let client = fields.document("client")?.filter(|client| request.peer.note_client(*client));
    let mechanisms_of = fields.string("saslSupportedMechs")?;
    let speculates = fields.document("speculativeAuthenticate")?;
    let awaits = (fields.document("topologyVersion")?, fields.integer("maxAwaitTimeMS")?);
    check_awaits(awaits)?;
    let offered = fields.array("compression")?;
    // Other fields are passed over, as MongoDB does it here alone: a newer driver may offer what an
    // older server has never heard of. A feature that isn't in the answer isn't agreed on.
    let mut answer = DocumentBuilder::new();
    if takes_hello {
        answer.append("helloOk", Value::Boolean(true));
    }
    let server = request.server;
    let is_primary = server.is_primary();
    append_standing(&mut answer, server, primary_name, is_primary);
    answer
        .append("maxBsonObjectSize", Value::Int32(document_bytes_max(server)))
        .append("maxMessageSizeBytes", Value::Int32(MESSAGE_BYTES_MAX as i32))
        .append("maxWriteBatchSize", Value::Int32(WRITE_BATCH_MAX as i32))
        .append("localTime", Value::DateTime(server.frond.now_millis()))
        .append("logicalSessionTimeoutMinutes", Value::Int32(SESSION_TIMEOUT_MINUTES))
        .append("connectionId", Value::Int32(request.peer.id))
        .append("minWireVersion", Value::Int32(0))
        .append("maxWireVersion", Value::Int32(WIRE_VERSION_MAX))
        .append("readOnly", Value::Boolean(!is_primary));
    let agreed = append_compression(&mut answer, server, offered);
    if let Some(client) = client {
        server.log.write_client(request.peer, client, &agreed);
    }
    if let Some(user) = mechanisms_of {
        login::append_mechanisms(request, user, &mut answer)?;
    }
    if let Some(speculation) = speculates {
        match speculation.iter().next() {
            Some(("authenticate", _)) => {
                certificate_login::speculate(request, speculation, &mut answer)
            }
            _ => login::speculate(request, speculation, &mut answer),
        }
    }
    Ok(answer)
}

/// Appends the facts about the set for `serverStatus`: the same as for `hello`.
pub fn append_member(answer: &mut DocumentBuilder, server: &Shared) {
    append_standing(answer, server, "isWritablePrimary", server.is_primary());
}

fn append_standing(
    answer: &mut DocumentBuilder,
    server: &Shared,
    primary_name: &str,
    is_primary: bool,
) {
    append_topology_version(answer, server);
    append_set(answer, server, primary_name, is_primary);
    append_last_write(answer, server);
}

/// Appends what the replica set is, and what this member is in it.
fn append_set(answer: &mut DocumentBuilder, server: &Shared, primary_name: &str, is_primary: bool) {
    if server.awaits_set() {
        answer
            .append(primary_name, Value::Boolean(false))
            .append("secondary", Value::Boolean(false))
            .append("info", Value::String("Does not have a valid replica set config"))
            .append("isreplicaset", Value::Boolean(true));
        return;
    }
    let standing = SetDescription::of(server);
    append_hosts(answer, &standing.members);
    answer
        .append("setName", Value::String(&server.member.set))
        .append("setVersion", Value::Int32(standing.members.version))
        .append(primary_name, Value::Boolean(is_primary))
        .append("secondary", Value::Boolean(!is_primary && standing.is_ready))
        .append("me", Value::String(&server.member.host));
    if let Some(primary) = &standing.primary {
        answer.append("primary", Value::String(primary));
    }
    if let Some(own) = standing.members.at(&server.member.host) {
        append_own(answer, own);
    }
    if is_primary {
        answer.append("electionId", Value::ObjectId(election(standing.term)));
    }
}

/// Appends the members that clients may know: those that can be the primary, and those that can't.
fn append_hosts(answer: &mut DocumentBuilder, members: &Members) {
    let shown = || members.all.iter().filter(|host| !host.hidden);
    answer.begin_array("hosts");
    for host in shown().filter(|host| host.is_electable()) {
        answer.push(Value::String(&host.address));
    }
    answer.end();
    if shown().any(|host| !host.is_electable()) {
        answer.begin_array("passives");
        for host in shown().filter(|host| !host.is_electable()) {
            answer.push(Value::String(&host.address));
        }
        answer.end();
    }
}

/// Appends what the configuration says of this member, where that isn't as for most.
fn append_own(answer: &mut DocumentBuilder, own: &Host) {
    if !own.is_electable() {
        answer.append("passive", Value::Boolean(true));
    }
    if own.hidden {
        answer.append("hidden", Value::Boolean(true));
    }
    if !own.tags.is_empty() {
        own.append_tags(answer);
    }
}

/// Appends how messages may be compressed: what the client offered and the server takes, in the
/// client's order. Returns the ways.
fn append_compression(
    answer: &mut DocumentBuilder,
    server: &Shared,
    offered: Option<Array<'_>>,
) -> Vec<Compressor> {
    let mut agreed = Vec::new();
    let names = offered.iter().flat_map(|offered| offered.iter());
    for name in names.filter_map(|name| name.as_str()) {
        let known = server.compressors.iter().find(|known| known.name() == name);
        agreed.extend(known.copied().filter(|known| !agreed.contains(known)));
    }
    if !agreed.is_empty() {
        answer.begin_array("compression");
        for compressor in &agreed {
            answer.push(Value::String(compressor.name()));
        }
        answer.end();
    }
    agreed
}

/// Appends the topology's version: clients ignore facts about an earlier one.
pub fn append_topology_version(answer: &mut DocumentBuilder, server: &Shared) {
    answer
        .begin_document("topologyVersion")
        .append("processId", Value::ObjectId(server.member.process))
        .append("counter", Value::Int64(*server.topology.borrow()))
        .end();
}

fn append_last_write(answer: &mut DocumentBuilder, server: &Shared) {
    let (time, term) = (server.operation_time(), SetDescription::of(server).term);
    answer.begin_document("lastWrite");
    replica_set::append_optime(answer, "opTime", time, term);
    answer.append("lastWriteDate", replica_set::date_of(time));
    replica_set::append_optime(answer, "majorityOpTime", time, term);
    answer.append("majorityWriteDate", replica_set::date_of(time)).end();
}

fn check_awaits(awaits: (Option<Document<'_>>, Option<i64>)) -> Result<(), Error> {
    let (code, message) = match awaits {
        (Some(_), None) => {
            (31368, "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'")
        }
        (None, Some(_)) => {
            (31368, "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'")
        }
        (Some(_), Some(millis)) if millis < 0 => {
            (31373, "'maxAwaitTimeMS' must be a non-negative integer")
        }
        _ => return Ok(()),
    };
    Err(Error::invalid(Code::Location(code), message))
}

/// Returns how long a message waits before it is answered, and since which topology it asks for
/// news: `None` unless it is a `hello` that asks for news since the one that there is, or for one
/// answer after the other (`repeats`).
pub fn wait(server: &Shared, command: Document<'_>, repeats: bool) -> Option<(Duration, i64)> {
    let (name, _) = command.iter().next()?;
    if !["hello", "isMaster", "ismaster"].contains(&name) {
        return None;
    }
    let known = command.get("topologyVersion")?.as_document()?;
    let counter = known.get("counter").and_then(|counter| counter.as_integer())?;
    let is_ours = known.get("processId") == Some(Value::ObjectId(server.member.process));
    // It knows none that there is here of another process.
    let counter = if is_ours { counter } else { -1 };
    let is_current = counter == *server.topology.borrow();
    let millis = command.get("maxAwaitTimeMS")?.as_integer()?;
    let time = Duration::from_millis(u64::try_from(millis).ok()?).min(HELLO_WAIT_MAX);
    (is_current || repeats).then_some((time, counter))
}

/// The largest document that a client may store: [`DOCUMENT_BYTES_LIMIT`](crate::limits) at most.
fn document_bytes_max(server: &Shared) -> i32 {
    i32::try_from(server.frond.document_bytes_max()).unwrap_or(i32::MAX)
}

/// `ping`.
///
/// # Errors
/// 40415 for any field.
pub fn ping(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    Ok(DocumentBuilder::new())
}

/// `buildInfo`.
///
/// # Errors
/// 40415 for any field.
pub fn build_info(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    let mut answer = DocumentBuilder::new();
    answer
        .append("version", Value::String(MONGODB_VERSION))
        .append("gitVersion", Value::String("unknown"))
        .begin_array("modules")
        .end()
        .append("allocator", Value::String("system"))
        .append("javascriptEngine", Value::String("quickjs"))
        .append("sysInfo", Value::String("deprecated"))
        .begin_array("versionArray");
    for part in MONGODB_VERSION_PARTS {
        answer.push(Value::Int32(part));
    }
    let server = request.server;
    answer
        .end()
        .append("bits", Value::Int32(usize::BITS as i32))
        .append("debug", Value::Boolean(cfg!(debug_assertions)))
        .append("maxBsonObjectSize", Value::Int32(document_bytes_max(server)))
        .begin_array("storageEngines")
        .push(Value::String("frond"))
        .end()
        .begin_document("frond")
        .append("version", Value::String(FROND_VERSION))
        .end();
    Ok(answer)
}

/// `whatsmyuri`: the client's address as the server sees it.
///
/// # Errors
/// 40415 for any field.
pub fn whatsmyuri(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    let mut answer = DocumentBuilder::new();
    answer.append("you", Value::String(&request.peer.address.to_string()));
    Ok(answer)
}
