//! `serverStatus`: sections, each of which a client may leave out
//! (`{serverStatus: 1, network: 0}`).
//!
//! Fields that the server doesn't count are left out: a field that stands here is measured.

mod activity;
mod engine;
mod frond;
mod metrics;
mod process;
mod security;

use std::time::Duration;

use frond_doc::{DocumentBuilder, Value};

pub use self::frond::FAULT_ADVICE;
use crate::commands::handshake::MONGODB_VERSION;
use crate::commands::{latches, latencies, reply};
use crate::request::{Answer, Request};
use crate::shared::Shared;

/// Appends a section.
type Append = fn(&mut DocumentBuilder, &Shared);

/// The sections, in their order in the answer.
const SECTIONS: &[(&str, Append)] = &[
    ("asserts", activity::append_asserts),
    ("connections", activity::append_connections),
    ("extra_info", process::append_extra_info),
    ("globalLock", activity::append_global_lock),
    ("locks", |answer, server| latches::append(answer, server.usage.work().latches())),
    ("logicalSessionRecordCache", activity::append_sessions),
    ("mem", process::append_mem),
    ("metrics", metrics::append),
    ("network", activity::append_network),
    ("opcounters", activity::append_counters),
    ("opcountersRepl", activity::append_replicated),
    ("repl", activity::append_member),
    ("security", security::append),
    ("storageEngine", |answer, _| {
        answer
            .begin_document("storageEngine")
            .append("name", Value::String("frond"))
            .append("supportsCommittedReads", Value::Boolean(true))
            .append("persistent", Value::Boolean(true))
            .end();
    }),
    ("transactions", activity::append_transactions),
    ("wiredTiger", engine::append_cache),
    ("frond", frond::append),
];

/// Runs a `serverStatus`. Names of sections that there aren't are passed over: tools of all
/// versions of MongoDB name theirs.
pub fn run(request: &Request<'_>) -> Answer {
    let server = request.server;
    let uptime = server.started.elapsed();
    let mut answer = DocumentBuilder::new();
    answer
        .append("host", Value::String(&server.address.to_string()))
        .append("version", Value::String(MONGODB_VERSION))
        .append("process", Value::String("frond"))
        .append("pid", Value::Int64(i64::from(std::process::id())))
        .append("uptime", Value::Double(uptime.as_secs() as f64))
        .append("uptimeMillis", Value::Int64(millis(uptime)))
        .append("uptimeEstimate", Value::Int64(reply::long(uptime.as_secs())))
        .append("localTime", Value::DateTime(server.frond.now_millis()));
    let wanted = |name: &str| request.body.get(name);
    for (name, append) in SECTIONS {
        if wanted(name).is_none_or(|wanted| wanted.is_truthy()) {
            append(&mut answer, server);
        }
    }
    let wanted = wanted("opLatencies");
    if wanted.is_none_or(|wanted| wanted.is_truthy()) {
        let options = wanted.and_then(|wanted| wanted.as_document());
        let histograms = options.and_then(|options| options.get("histograms"));
        let histograms = histograms.is_some_and(|histograms| histograms.is_truthy());
        answer.begin_document("opLatencies");
        latencies::append(&mut answer, server.usage.latencies(), histograms);
        answer.end();
    }
    Ok(answer)
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
