//! Commands that the router answers itself: `hello` as a mongos does, and its own status.

use std::sync::atomic::Ordering;

use frond_doc::{Array, DocumentBuf, DocumentBuilder, Value, document};
use frond_store::io::{Clock, SystemClock};

use super::routed_request::RoutedRequest;
use super::shared::Shared;
use crate::commands::handshake::{FROND_VERSION, MONGODB_VERSION, WIRE_VERSION_MAX};
use crate::limits::{DOCUMENT_BYTES_MAX, SESSION_TIMEOUT_MINUTES, WRITE_BATCH_MAX};
use crate::scram::Mechanism;
use crate::wire::MESSAGE_BYTES_MAX;

fn now() -> Value<'static> {
    Value::DateTime(SystemClock.now_micros().div_euclid(1_000))
}

/// `hello` and its old names. No `topologyVersion`: a router has no news to wait for.
pub(super) fn hello(
    ask: &RoutedRequest<'_>,
    connection: i32,
    mechanisms: Option<Array<'_>>,
) -> DocumentBuf {
    let is_old = ask.name != "hello";
    let mut answer = DocumentBuilder::new();
    if ask.body.get("helloOk").is_some_and(|ok| ok.is_truthy()) {
        answer.append("helloOk", Value::Boolean(true));
    }
    answer
        .append(if is_old { "ismaster" } else { "isWritablePrimary" }, Value::Boolean(true))
        .append("msg", Value::String("isdbgrid"))
        .append("maxBsonObjectSize", Value::Int32(DOCUMENT_BYTES_MAX as i32))
        .append("maxMessageSizeBytes", Value::Int32(MESSAGE_BYTES_MAX as i32))
        .append("maxWriteBatchSize", Value::Int32(WRITE_BATCH_MAX as i32))
        .append("localTime", now())
        .append("logicalSessionTimeoutMinutes", Value::Int32(SESSION_TIMEOUT_MINUTES))
        .append("connectionId", Value::Int32(connection))
        .append("minWireVersion", Value::Int32(0))
        .append("maxWireVersion", Value::Int32(WIRE_VERSION_MAX));
    if let Some(mechanisms) = mechanisms {
        answer.append("saslSupportedMechs", Value::Array(mechanisms));
    }
    answer.append("ok", Value::Double(1.0));
    answer.build()
}

/// Returns every mechanism: the answer about users where the default line can't be asked.
pub(super) fn all_mechanisms() -> DocumentBuf {
    let mut all = DocumentBuilder::new();
    all.begin_array("all");
    for mechanism in Mechanism::ALL {
        all.push(Value::String(mechanism.name()));
    }
    all.end();
    all.build()
}

/// An answer that says no more than that all is well.
pub(super) fn ok_reply() -> DocumentBuf {
    document! { "ok": 1.0 }
}

/// `isdbgrid`, by which old clients ask whether this is a router.
pub(super) fn is_db_grid(shared: &Shared) -> DocumentBuf {
    document! { "isdbgrid": 1_i32, "hostname": &*shared.address.to_string(), "ok": 1.0 }
}

/// `serverStatus`, of the router.
pub(super) fn status(shared: &Shared) -> DocumentBuf {
    let mut answer = DocumentBuilder::new();
    let count = |counter: &std::sync::atomic::AtomicU64| {
        Value::Int64(i64::try_from(counter.load(Ordering::Relaxed)).unwrap_or(i64::MAX))
    };
    let uptime = shared.started.elapsed();
    answer
        .append("host", Value::String(&shared.address.to_string()))
        .append("version", Value::String(MONGODB_VERSION))
        .append("process", Value::String("mongos"))
        .append("pid", Value::Int64(i64::from(std::process::id())))
        .append("uptime", Value::Double(uptime.as_secs_f64().floor()))
        .append("uptimeMillis", Value::Int64(i64::try_from(uptime.as_millis()).unwrap_or(i64::MAX)))
        .append("localTime", now())
        .begin_document("connections")
        .append("current", count(&shared.counts.connections))
        .append("totalCreated", count(&shared.counts.connections_ever))
        .end()
        .begin_document("network")
        .append("numRequests", count(&shared.counts.messages))
        .end()
        .begin_document("frond")
        .append("version", Value::String(FROND_VERSION))
        .begin_document("router")
        .append("idle", Value::Int64(i64::try_from(shared.pool.idle_count()).unwrap_or(i64::MAX)))
        .append("refused", count(&shared.counts.refused))
        .begin_array("lines");
    if let Some(table) = shared.table_now() {
        for line in table.lines() {
            answer.push_begin_document().append("name", Value::String(&line.name));
            answer.append("uri", Value::String(&line.uri));
            match line.leader_now() {
                Some(leader) => answer.append("leader", Value::String(&leader)),
                None => answer.append("leader", Value::Null),
            };
            answer.end();
        }
        for (name, fault) in table.faults() {
            answer.push_begin_document().append("name", Value::String(name));
            answer.append("fault", Value::String(fault)).end();
        }
    }
    answer.end().end().end().append("ok", Value::Double(1.0));
    answer.build()
}
