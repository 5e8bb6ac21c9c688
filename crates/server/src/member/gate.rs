//! The requests that a member refuses while it doesn't lead.

use std::time::Duration;

use frond_db::{Error, Interrupt};
use frond_doc::{Document, Value};
use frond_query::Code;

use crate::commands::{Command, Run};
use crate::common_fields::{Common, Level, Part};
use crate::concerns;
use crate::replica::status::State;
use crate::shared::Shared;
use crate::tables::{self, Reads};

/// Commands that a client doesn't want to read from a secondary, unless it says so.
const LISTS: &[&str] =
    &["collStats", "dbStats", "listCollections", "listDatabases", "listIndexes", "validate"];

/// Commands of versions that only read, though they take a write concern as all of them do.
const READ_VERSIONS: &[&str] = &[
    "frondBlame",
    "frondConflicts",
    "frondDiff",
    "frondHistory",
    "frondLog",
    "frondShow",
    "frondStatus",
];

/// Checks that this member may run a command, if it is one of several, or takes no writes.
///
/// # Errors
/// `NotWritablePrimary` (10107) for a write, a linearizable read or part of a transaction, where it
/// doesn't lead;
/// `NotPrimaryNoSecondaryOk` (13435) for a read that wants the primary; `NotPrimaryOrSecondary`
/// (13436) for any while it is recovering.
pub fn check(
    server: &Shared,
    command: &Command,
    body: Document<'_>,
    common: &Common,
) -> Result<(), Error> {
    if server.replica.is_none() && !server.reads_only && !server.awaits_set() {
        return Ok(());
    }
    if !matches!(command.run, Run::Handler(_)) {
        return Ok(());
    }
    if server.is_primary() {
        return Ok(());
    }
    let reads_versions = READ_VERSIONS.contains(&command.name);
    let writes = concerns::writes(command.name, body) && !reads_versions;
    if matches!(common.part, Some(Part::Statement { .. })) || writes {
        let message = match server.awaits_set() {
            true => "not primary: the replica set waits for rs.initiate()",
            false => "not primary",
        };
        return Err(Error::invalid(Code::NotWritablePrimary, message));
    }
    if common.level == Level::Linearizable {
        // A secondary's data may be old.
        let message = "cannot satisfy linearizable read concern on non-primary node";
        return Err(Error::invalid(Code::NotWritablePrimary, message));
    }
    let reads = tables::find(command.name).is_some_and(|table| table.reads != Reads::Local);
    let reads = reads || reads_versions || LISTS.contains(&command.name);
    let refusal = match &server.replica {
        Some(replica) => read_refusal(replica.state()),
        None if server.awaits_set() && allows_secondary(body) => {
            Some("node is not in primary or recovering state")
        }
        None => None,
    };
    if reads && let Some(message) = refusal {
        return Err(Error::invalid(Code::NotPrimaryOrSecondary, message));
    }
    if reads && !allows_secondary(body) {
        let message = "not primary and secondaryOk=false";
        return Err(Error::invalid(Code::NotPrimaryNoSecondaryOk, message));
    }
    Ok(())
}

/// The interval at which a read that waits for a majority checks whether it may go on waiting.
const CONFIRM_STEP: Duration = Duration::from_millis(50);

/// Waits until a majority has said, since this was called, that this member leads: a snapshot that
/// is taken then has all that any member has acknowledged before. A leader that is cut off doesn't
/// know yet that another one leads.
///
/// # Errors
/// `NotWritablePrimary` (10107) if it ceases to lead first; what `interrupt` says.
pub fn confirm_leads(server: &Shared, interrupt: &Interrupt) -> Result<(), Error> {
    let Some(replica) = &server.replica else { return Ok(()) };
    let deposed = || {
        let message = "No longer primary when waiting for linearizable read concern";
        Error::invalid(Code::NotWritablePrimary, message)
    };
    let read = replica.running().ok_or_else(deposed)?.begin_read();
    loop {
        if let Some(answer) = read.wait_for(CONFIRM_STEP) {
            return answer.map(drop).map_err(|_| deposed());
        }
        interrupt.check()?;
    }
}

fn read_refusal(state: State) -> Option<&'static str> {
    match state {
        State::Recovering => Some(
            "node is recovering: it lacks entries, as the server's log tells, and gets a copy; not \
             primary or secondary",
        ),
        State::Removed => Some("the replica set doesn't have this node; not primary or secondary"),
        _ => None,
    }
}

/// Whether the client has said that it reads from secondaries too.
fn allows_secondary(body: Document<'_>) -> bool {
    let preference = body.get("$readPreference").and_then(|preference| preference.as_document());
    let mode = preference.and_then(|preference| preference.get("mode"));
    mode.is_some_and(|mode| mode != Value::String("primary"))
}
