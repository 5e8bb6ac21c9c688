//! Applies fail points to a command, before it runs and to its answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use frond_db::Error;
use frond_doc::{Document, DocumentBuilder, Value};
use frond_query::Code;

use super::failure::{Failure, append_labels};
use crate::commands::{CONFIGURE_FAIL_POINT, Command};
use crate::common_fields::Part;
use crate::concerns::GET_MORE;
use crate::fail_points::{CommandFault, FaultedCommand};
use crate::operations::{Operation, collection_of};
use crate::peer::Peer;
use crate::shared::Shared;
use crate::transactions;
use crate::wire::DocumentSequence;

const ON_WRITE: &str = "onPrimaryTransactionalWrite";
/// The interval at which a blocked command checks whether it must stop.
const BLOCK_STEP: Duration = Duration::from_millis(10);

/// A command that fail points are asked for.
pub(super) struct FaultCheck<'a> {
    pub server: &'a Shared,
    pub peer: &'a Arc<Peer>,
    pub command: &'a Command,
    pub body: Document<'a>,
    pub sequences: &'a [DocumentSequence],
    pub part: Option<Part>,
}

/// The faults that are left when the command has run.
#[derive(Default)]
pub(super) struct FaultsAfterRun {
    hit: CommandFault,
}

/// Does what comes before a command runs.
///
/// # Errors
/// The error that a fail point has, or that the operation was killed meanwhile. A connection that
/// is to be closed is noted in the peer.
pub(super) fn before(
    check: &FaultCheck<'_>,
    operation: &Operation,
) -> Result<FaultsAfterRun, Failure> {
    let points = &check.server.fail_points;
    if !points.are_on() {
        return Ok(FaultsAfterRun::default());
    }
    let mut rest = FaultsAfterRun::default();
    let collection = collection_of(check.body).unwrap_or("$cmd");
    let namespace = [&operation.database, ".", collection].concat();
    let app_name = check.peer.app_name().or_else(|| introduced_name(check.body));
    let asking = FaultedCommand {
        names: (check.command.name, check.command.aliases),
        namespace: &namespace,
        app_name: app_name.as_deref(),
    };
    limit_time(check, operation)?;
    if let Some(mut hit) = points.on_command(&asking) {
        if let Some(time) = hit.block {
            block(operation, time)?;
        }
        if hit.closes {
            return Err(closing(check.peer, "failCommand"));
        }
        if let Some(error) = hit.error.take() {
            let labels = hit.labels.unwrap_or_else(|| labels_of(check, &error));
            return Err(Failure::injected(error, labels));
        }
        rest.hit = hit;
    }
    if matches!(check.part, Some(Part::Write { .. }))
        && let Some(write) = points.before_write(statements_sent(check))
        && let Some(code) = write.code_before
    {
        if write.closes {
            return Err(closing(check.peer, ON_WRITE));
        }
        let message = format!("Failing write via '{ON_WRITE}' failpoint");
        let error = Error::invalid(code, message);
        let labels = labels_of(check, &error);
        return Err(Failure::injected(error, labels));
    }
    Ok(rest)
}

/// Has a command with `maxTimeMS` be out of time at once, or never. Not so a `getMore`: its field
/// says how long it waits.
///
/// # Errors
/// `MaxTimeMSExpired` (50).
fn limit_time(check: &FaultCheck<'_>, operation: &Operation) -> Result<(), Error> {
    if [CONFIGURE_FAIL_POINT, GET_MORE].contains(&check.command.name)
        || operation.time_left().is_none()
    {
        return Ok(());
    }
    let Some(fault) = check.server.fail_points.on_time_limit() else { return Ok(()) };
    operation.set_time_limit_fault(fault);
    operation.check()
}

/// Does what comes with the answer of a command that has run.
///
/// # Errors
/// That the connection is closed instead.
pub(super) fn after(
    check: &FaultCheck<'_>,
    rest: FaultsAfterRun,
    mut answer: DocumentBuilder,
    has_concern_error: bool,
) -> Result<DocumentBuilder, Failure> {
    let points = &check.server.fail_points;
    if points.are_on()
        && matches!(check.part, Some(Part::Write { .. }))
        && points.after_write(statements_done(check, &answer))
    {
        return Err(closing(check.peer, ON_WRITE));
    }
    let Some(concern_error) = rest.hit.concern_error.filter(|_| !has_concern_error) else {
        return Ok(answer);
    };
    answer.append("writeConcernError", Value::from(&concern_error));
    let code = concern_error.get("code").and_then(|code| code.as_integer());
    let code = code.and_then(|code| i32::try_from(code).ok()).map(Code::of);
    let labels = rest.hit.labels.unwrap_or_else(|| {
        let Some(code) = code else { return Vec::new() };
        let (part, ends) = (check.part, check.command.ends_transaction);
        let labels = transactions::concern_labels(part, ends, &Error::invalid(code, ""));
        labels.iter().map(|label| (*label).to_owned()).collect()
    });
    append_labels(&mut answer, &labels);
    Ok(answer)
}

/// Returns the application's name that a client tells with its first command, a `hello`.
fn introduced_name(body: Document<'_>) -> Option<String> {
    let client = body.get("client")?.as_document()?;
    let application = client.get("application")?.as_document()?;
    application.get("name")?.as_str().map(str::to_owned)
}

/// Returns how many statements a write has.
fn statements_sent(check: &FaultCheck<'_>) -> usize {
    let list = match check.command.name {
        "insert" => "documents",
        "update" => "updates",
        "delete" => "deletes",
        "bulkWrite" => "ops",
        _ => return 1,
    };
    match check.sequences.iter().find(|sequence| sequence.name == list) {
        Some(sequence) => sequence.documents.len(),
        None => check.body.get(list).map_or(0, count_of),
    }
}

/// Returns how many statements of a write were done; one whose record answers for it isn't done.
fn statements_done(check: &FaultCheck<'_>, answer: &DocumentBuilder) -> usize {
    let answer = answer.clone().build();
    let retried = answer.get("retriedStmtIds").or_else(|| answer.get("retriedStmtId"));
    statements_sent(check).saturating_sub(retried.map_or(0, count_of))
}

fn count_of(value: Value<'_>) -> usize {
    value.as_array().map_or(1, |list| list.iter().count())
}

fn labels_of(check: &FaultCheck<'_>, error: &Error) -> Vec<String> {
    let labels = transactions::labels(check.part, check.command.ends_transaction, error);
    labels.iter().map(|label| (*label).to_owned()).collect()
}

/// Has the connection closed; the client is never sent this error.
fn closing(peer: &Peer, by: &str) -> Failure {
    peer.hang_up();
    let message = format!("the connection is closed by the fail point {by}");
    let error = Error::invalid(Code::HostUnreachable, message);
    Failure::injected(error, Vec::new())
}

/// Waits, unless the operation is killed, its client is gone, or the server stops.
fn block(operation: &Operation, time: Duration) -> Result<(), Error> {
    let until = Instant::now() + time;
    loop {
        operation.check_killed()?;
        let rest = until.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Ok(());
        }
        std::thread::sleep(rest.min(BLOCK_STEP));
    }
}
