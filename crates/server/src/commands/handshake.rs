//! What clients send when they connect: hello, isMaster, ping, buildInfo, connectionStatus,
//! whatsmyuri, logout.
//!
//! The server is announced as a standalone: no replica set's name, so drivers use sessions but
//! neither transactions nor retryable writes, which aren't there yet.

use frond_doc::{DocumentBuilder, Value};

use crate::limits::{DOCUMENT_BYTES_MAX, SESSION_TIMEOUT_MINUTES, WRITE_BATCH_MAX};
use crate::request::{Answer, Request};
use crate::wire::MESSAGE_BYTES_MAX;

/// The version of MongoDB whose behaviour is offered.
pub const MONGODB_VERSION: &str = "8.0.0";
const MONGODB_VERSION_PARTS: [i32; 4] = [8, 0, 0, 0];
/// The wire version of that MongoDB.
const WIRE_VERSION_MAX: i32 = 25;
/// Frond's own version.
pub const FROND_VERSION: &str = env!("CARGO_PKG_VERSION");

/// `hello`.
pub fn hello(request: &Request<'_>) -> Answer {
    greet(request, "isWritablePrimary")
}

/// `isMaster`, its old name.
pub fn is_master(request: &Request<'_>) -> Answer {
    greet(request, "ismaster")
}

fn greet(request: &Request<'_>, primary_name: &str) -> Answer {
    let mut fields = request.fields()?;
    let knows_hello = fields.boolean("helloOk")?;
    fields.document("client")?;
    // Other fields are passed over, as MongoDB does it here alone: a newer driver may offer what
    // an older server has never heard of. What isn't in the answer isn't agreed on.
    let mut answer = DocumentBuilder::new();
    if knows_hello {
        answer.append("helloOk", Value::Boolean(true));
    }
    answer
        .append(primary_name, Value::Boolean(true))
        .append("maxBsonObjectSize", Value::Int32(DOCUMENT_BYTES_MAX as i32))
        .append("maxMessageSizeBytes", Value::Int32(MESSAGE_BYTES_MAX as i32))
        .append("maxWriteBatchSize", Value::Int32(WRITE_BATCH_MAX as i32))
        .append("localTime", Value::DateTime(request.server.frond.now_millis()))
        .append("logicalSessionTimeoutMinutes", Value::Int32(SESSION_TIMEOUT_MINUTES))
        .append("connectionId", Value::Int32(request.peer.id))
        .append("minWireVersion", Value::Int32(0))
        .append("maxWireVersion", Value::Int32(WIRE_VERSION_MAX))
        .append("readOnly", Value::Boolean(false));
    Ok(answer)
}

/// `ping`.
pub fn ping(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    Ok(DocumentBuilder::new())
}

/// `buildInfo`.
pub fn build_info(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    let mut answer = DocumentBuilder::new();
    answer
        .append("version", Value::String(MONGODB_VERSION))
        .append("gitVersion", Value::String("unknown"))
        .begin_array("modules")
        .end()
        .append("allocator", Value::String("system"))
        .append("javascriptEngine", Value::String("none"))
        .append("sysInfo", Value::String("deprecated"))
        .begin_array("versionArray");
    for part in MONGODB_VERSION_PARTS {
        answer.push(Value::Int32(part));
    }
    answer
        .end()
        .append("bits", Value::Int32(usize::BITS as i32))
        .append("debug", Value::Boolean(cfg!(debug_assertions)))
        .append("maxBsonObjectSize", Value::Int32(DOCUMENT_BYTES_MAX as i32))
        .begin_array("storageEngines")
        .push(Value::String("frond"))
        .end()
        .begin_document("frond")
        .append("version", Value::String(FROND_VERSION))
        .end();
    Ok(answer)
}

/// `connectionStatus`: nobody is logged in, since there are no users yet.
pub fn connection_status(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let shows_privileges = fields.boolean("showPrivileges")?;
    fields.finish()?;
    let mut answer = DocumentBuilder::new();
    answer.begin_document("authInfo");
    answer.begin_array("authenticatedUsers").end();
    answer.begin_array("authenticatedUserRoles").end();
    if shows_privileges {
        answer.begin_array("authenticatedUserPrivileges").end();
    }
    answer.end();
    Ok(answer)
}

/// `whatsmyuri`: the client's address as the server sees it.
pub fn whatsmyuri(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    let mut answer = DocumentBuilder::new();
    answer.append("you", Value::String(&request.peer.address.to_string()));
    Ok(answer)
}

/// `logout`: nobody is logged in.
pub fn logout(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    Ok(DocumentBuilder::new())
}
