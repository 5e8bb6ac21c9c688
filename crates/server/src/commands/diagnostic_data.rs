//! `getDiagnosticData`: what `serverStatus` and `replSetGetStatus` answer, in one document.
//! Percona's exporter for Prometheus reads nothing else of a server's counters.
//!
//! MongoDB answers with what it last collected for itself, once a second; here it is collected when
//! it is asked for.

use frond_doc::{Document, DocumentBuilder, Value};

use crate::commands::{replica_set, server_status};
use crate::request::{Answer, Request};

/// Answers with the state of the server and of its set, if it is in one.
pub fn run(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    let now = || Value::DateTime(request.server.frond.now_millis());
    let mut answer = DocumentBuilder::new();
    answer.begin_document("data").append("start", now());
    let start = now();
    let status = server_status::run(request)?.build();
    append(&mut answer, "serverStatus", status.view(), (start, now()));
    let start = now();
    // There is none yet where a set waits to be initiated.
    if let Ok(status) = replica_set::status(request) {
        let status = status.build();
        append(&mut answer, "replSetGetStatus", status.view(), (start, now()));
    }
    answer.append("end", now()).end();
    Ok(answer)
}

/// Appends a part, and when it was collected.
fn append(
    answer: &mut DocumentBuilder,
    name: &str,
    part: Document<'_>,
    (start, end): (Value<'_>, Value<'_>),
) {
    answer.begin_document(name).append("start", start);
    for (field, value) in part.iter() {
        answer.append(field, value);
    }
    answer.append("end", end).end();
}
