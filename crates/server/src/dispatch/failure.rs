//! Errors as they are answered: with labels, and what a failed write concern adds.

use std::panic::{AssertUnwindSafe, catch_unwind};

use frond_db::{Error, ErrorKind};
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;

use crate::cluster_time;
use crate::commands::{Command, handshake};
use crate::common_fields::Part;
use crate::errors::error_builder;
use crate::shared::Shared;
use crate::transactions;
use crate::usage::Failed;

/// An error, and the labels by which drivers decide what to send again.
pub(super) struct Failure {
    error: Error,
    /// Apart, since results are handed on by value.
    marks: Box<Marks>,
}

struct Marks {
    labels: Vec<String>,
    /// Whether a fail point made it: drivers take errors of a topology that they know for old news.
    is_injected: bool,
}

impl Failure {
    pub fn new(error: Error, labels: &[&str]) -> Failure {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        Failure { error, marks: Box::new(Marks { labels, is_injected: false }) }
    }

    /// One that a fail point made.
    pub fn injected(error: Error, labels: Vec<String>) -> Failure {
        Failure { error, marks: Box::new(Marks { labels, is_injected: true }) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::new(error, &[])
    }
}

/// Runs a command's work and turns its errors, and a panic, into an answer.
pub(super) fn guarded(
    server: &Shared,
    work: impl FnOnce() -> Result<DocumentBuilder, Failure>,
) -> DocumentBuf {
    // Handlers own what they work on and the shared tables stay whole when a handler panics, so
    // nothing half done can be seen afterwards.
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        server.usage.count_failure(Failed::Panic);
        let message = "the command met a defect in Frond: see the server's standard error";
        Err(Error::internal(message).into())
    });
    let mut answer = result.unwrap_or_else(|failure| {
        server.usage.count_failure(match failure.error.kind {
            ErrorKind::Internal => Failed::Internal,
            _ => Failed::User,
        });
        let mut answer = error_builder(&failure.error);
        append_labels(&mut answer, &failure.marks.labels);
        if !failure.marks.is_injected && transactions::is_of_topology(failure.error.code) {
            handshake::append_topology_version(&mut answer, server);
        }
        if let Some(rest) = server.drain.rest()
            && failure.error.code == Code::ShutdownInProgress
        {
            let millis = i64::try_from(rest.as_millis()).unwrap_or(i64::MAX);
            answer.append("remainingQuiesceTimeMillis", Value::Int64(millis));
        }
        answer
    });
    let key = server.cluster_time_key.as_ref();
    cluster_time::append(&mut answer, server.operation_time(), key);
    answer.build()
}

/// The labels of a command's error. A change stream whose server goes is opened again by its driver
/// only if the label says so; a client of another cursor doesn't look at it.
pub(super) fn labels(command: &Command, part: Option<Part>, error: &Error) -> Vec<&'static str> {
    let mut labels = transactions::labels(part, command.ends_transaction, error).to_vec();
    if command.name == "getMore" && transactions::is_resumable(error.code) {
        labels.push("ResumableChangeStreamError");
    }
    labels
}

pub(super) fn append_labels(answer: &mut DocumentBuilder, labels: &[String]) {
    if labels.is_empty() {
        return;
    }
    answer.begin_array("errorLabels");
    for label in labels {
        answer.push(Value::String(label));
    }
    answer.end();
}

/// Returns the part of an answer about a write concern that can't be had.
pub(super) fn concern_error(failure: &Error) -> DocumentBuf {
    let mut error = DocumentBuilder::new();
    error
        .append("code", Value::Int32(failure.code.number()))
        .append("codeName", Value::String(&failure.code.name()))
        .append("errmsg", Value::String(&failure.message));
    for (name, value) in failure.details.iter().flat_map(DocumentBuf::iter) {
        error.append(name, value);
    }
    error.build()
}

/// An error that also says that what was written before isn't where the client wanted it.
pub(super) fn with_concern_error(mut error: Error, concern_error: Option<&DocumentBuf>) -> Error {
    let Some(concern_error) = concern_error else { return error };
    let mut details = DocumentBuilder::new();
    for (name, value) in error.details.iter().flat_map(DocumentBuf::iter) {
        details.append(name, value);
    }
    details.append("writeConcernError", Value::from(concern_error));
    error.details = Some(details.build());
    error
}
