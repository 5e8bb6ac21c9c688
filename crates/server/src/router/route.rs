//! Routes a command: to the router itself, to one line, or to all of them.
//!
//! A database's line is what [`Table`] says, and a cursor's is its namespace's. A command that
//! names a second database, or a branch that is led elsewhere, is refused unless both lie on one
//! line: no snapshot and no transaction spans two.

use std::sync::Arc;

use bytes::Bytes;
use frond_db::Error;
use frond_doc::{Document, Value};
use frond_query::Code;

use super::line::Line;
use super::named_databases;
use super::routed_request::RoutedRequest;
use super::table::Table;
use crate::wire::Message;

/// The destination of a command.
pub(super) enum Route {
    /// To the line of a database.
    Line(Arc<Line>),
    /// The router answers.
    LocalCommand(LocalCommand),
    /// To every line.
    Broadcast(Broadcast),
}

impl Route {
    /// Whether it leads to this line.
    pub fn is_line(&self, line: &Line) -> bool {
        matches!(self, Route::Line(own) if own.name == line.name)
    }
}

/// A command that the router answers itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LocalCommand {
    Hello,
    Ping,
    IsDbGrid,
    BalancerStatus,
    ServerStatus,
    SaslStart,
    SaslContinue,
    LogOut,
    /// To the line that the operation's name has in front.
    KillOp,
    /// To the line where the transaction began.
    EndTransaction,
    /// Of a database, from one line to another.
    Move,
}

/// A command that goes to every line, by how the answers are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Broadcast {
    /// `databases`, of each line those that it leads.
    Databases,
    /// `inprog`.
    Operations,
    /// The first batch of a cursor.
    Rows,
    /// As far as lines answer soon: sessions that others don't hear of end by themselves.
    Sessions,
    /// One line after the other, the default one first, until one refuses.
    Users,
}

/// The commands that the router answers, or gives to every line, whatever the database.
const KNOWN: &[(&str, Known)] = &[
    ("abortTransaction", Known::LocalCommand(LocalCommand::EndTransaction)),
    ("balancerStatus", Known::LocalCommand(LocalCommand::BalancerStatus)),
    ("commitTransaction", Known::LocalCommand(LocalCommand::EndTransaction)),
    ("createRole", Known::Broadcast(Broadcast::Users)),
    ("createUser", Known::Broadcast(Broadcast::Users)),
    ("currentOp", Known::Broadcast(Broadcast::Operations)),
    ("dropAllRolesFromDatabase", Known::Broadcast(Broadcast::Users)),
    ("dropAllUsersFromDatabase", Known::Broadcast(Broadcast::Users)),
    ("dropRole", Known::Broadcast(Broadcast::Users)),
    ("dropUser", Known::Broadcast(Broadcast::Users)),
    ("endSessions", Known::Broadcast(Broadcast::Sessions)),
    ("frondAbortMove", Known::LocalCommand(LocalCommand::Move)),
    ("grantPrivilegesToRole", Known::Broadcast(Broadcast::Users)),
    ("grantRolesToRole", Known::Broadcast(Broadcast::Users)),
    ("grantRolesToUser", Known::Broadcast(Broadcast::Users)),
    ("hello", Known::LocalCommand(LocalCommand::Hello)),
    ("isMaster", Known::LocalCommand(LocalCommand::Hello)),
    ("isdbgrid", Known::LocalCommand(LocalCommand::IsDbGrid)),
    ("ismaster", Known::LocalCommand(LocalCommand::Hello)),
    ("killAllSessions", Known::Broadcast(Broadcast::Sessions)),
    ("killAllSessionsByPattern", Known::Broadcast(Broadcast::Sessions)),
    ("killOp", Known::LocalCommand(LocalCommand::KillOp)),
    ("killSessions", Known::Broadcast(Broadcast::Sessions)),
    ("listDatabases", Known::Broadcast(Broadcast::Databases)),
    ("logout", Known::LocalCommand(LocalCommand::LogOut)),
    ("movePrimary", Known::LocalCommand(LocalCommand::Move)),
    ("moveprimary", Known::LocalCommand(LocalCommand::Move)),
    ("ping", Known::LocalCommand(LocalCommand::Ping)),
    ("refreshSessions", Known::Broadcast(Broadcast::Sessions)),
    ("revokePrivilegesFromRole", Known::Broadcast(Broadcast::Users)),
    ("revokeRolesFromRole", Known::Broadcast(Broadcast::Users)),
    ("revokeRolesFromUser", Known::Broadcast(Broadcast::Users)),
    ("saslContinue", Known::LocalCommand(LocalCommand::SaslContinue)),
    ("saslStart", Known::LocalCommand(LocalCommand::SaslStart)),
    ("serverStatus", Known::LocalCommand(LocalCommand::ServerStatus)),
    ("updateRole", Known::Broadcast(Broadcast::Users)),
    ("updateUser", Known::Broadcast(Broadcast::Users)),
];

#[derive(Clone, Copy)]
enum Known {
    LocalCommand(LocalCommand),
    Broadcast(Broadcast),
}

/// Commands that concern a server by itself: clients send them to its members, not to a router.
const OF_SERVERS: &[&str] = &[
    "compact",
    "configureFailPoint",
    "frondHandOver",
    "fsync",
    "fsyncUnlock",
    "getDiagnosticData",
    "logRotate",
    "replSetGetConfig",
    "replSetGetStatus",
    "replSetInitiate",
    "replSetReconfig",
    "replSetStepDown",
    "rotateCertificates",
    "setParameter",
    "shutdown",
    "top",
];

/// Checks whether a router answers a command before the client has logged in.
pub(super) fn is_open_to_all(name: &str) -> bool {
    matches!(name, "buildInfo" | "buildinfo" | "connectionStatus")
}

/// Returns the command that the router answers without the table, if this is one.
pub(super) fn own(name: &str) -> Option<LocalCommand> {
    match known(name) {
        Some(Known::LocalCommand(own)) => Some(own),
        _ => None,
    }
}

fn known(name: &str) -> Option<Known> {
    let position = KNOWN.binary_search_by_key(&name, |(known, _)| *known).ok()?;
    Some(KNOWN[position].1)
}

/// Returns where a command goes.
///
/// # Errors
/// `CommandNotSupported` for what a router can't do; `IllegalOperation` for what needs two lines.
pub(super) fn route_for(
    ask: &RoutedRequest<'_>,
    message: &[u8],
    table: &Table,
) -> Result<Route, Error> {
    match known(ask.name) {
        Some(Known::LocalCommand(own)) => return Ok(Route::LocalCommand(own)),
        Some(Known::Broadcast(each)) => return Ok(Route::Broadcast(each)),
        None => {}
    }
    if OF_SERVERS.contains(&ask.name) {
        let text =
            format!("{} is not supported through a router: ask the line's members", ask.name);
        return Err(Error::invalid(Code::CommandNotSupported, text));
    }
    let line = match ask.name {
        "aggregate" => return of_aggregate(ask, table),
        "renameCollection" => of_rename(ask, table)?,
        "bulkWrite" => of_bulk_write(ask, message, table)?,
        _ => table.line_of(ask.database)?,
    };
    named_databases::check(ask, table, line)?;
    Ok(Route::Line(Arc::clone(line)))
}

fn of_aggregate(ask: &RoutedRequest<'_>, table: &Table) -> Result<Route, Error> {
    let line = table.line_of(ask.database)?;
    let pipeline = ask.body.get("pipeline").and_then(|pipeline| pipeline.as_array());
    let Some(pipeline) = pipeline else { return Ok(Route::Line(Arc::clone(line))) };
    let mut stages = pipeline.iter().filter_map(|stage| stage.as_document()?.iter().next());
    let has_several = table.lines().nth(1).is_some();
    if let Some((first, options)) = stages.next().filter(|_| has_several) {
        let options = options.as_document().unwrap_or(Document::empty());
        let watches_all = options.get("allChangesForCluster").is_some_and(|all| all.is_truthy());
        if first == "$changeStream" && watches_all {
            let text = "a change stream of all databases would need one order of all lines' \
                        changes: watch a database, or a line by itself";
            return Err(Error::invalid(Code::CommandNotSupported, text));
        }
        if matches!(first, "$currentOp" | "$listLocalSessions") {
            let is_by_row = |(stage, _): (&str, Value<'_>)| {
                matches!(stage, "$match" | "$project" | "$set" | "$addFields" | "$unset")
            };
            if !stages.all(is_by_row) {
                let text = format!("through a router {first} takes stages of one row only");
                return Err(Error::invalid(Code::CommandNotSupported, text));
            }
            return Ok(Route::Broadcast(Broadcast::Rows));
        }
    }
    named_databases::check(ask, table, line)?;
    Ok(Route::Line(Arc::clone(line)))
}

/// It is sent to `admin`, and names both places in full.
fn of_rename<'t>(ask: &RoutedRequest<'_>, table: &'t Table) -> Result<&'t Arc<Line>, Error> {
    let database_of = |field: &str| {
        let namespace = ask.body.get(field).and_then(|namespace| namespace.as_str());
        namespace.and_then(|namespace| namespace.split_once('.')).map(|(database, _)| database)
    };
    let from = database_of("renameCollection").unwrap_or(ask.database);
    let line = table.line_of(from)?;
    table.check_same("renameCollection", (from, line), database_of("to").unwrap_or(from))?;
    Ok(line)
}

/// It is sent to `admin`, and lists its namespaces beside the command.
fn of_bulk_write<'t>(
    ask: &RoutedRequest<'_>,
    message: &[u8],
    table: &'t Table,
) -> Result<&'t Arc<Line>, Error> {
    // A broken message is left to a server, which reports it.
    let Ok(message) = Message::decode(Bytes::copy_from_slice(message)) else {
        return table.line_of(ask.database);
    };
    let beside = message.sequences.iter().filter(|sequence| sequence.name == "nsInfo");
    let beside = beside.flat_map(|sequence| sequence.documents.iter().map(|info| info.view()));
    let within = message.body.get("nsInfo").and_then(|infos| infos.as_array());
    let within = within.iter().flat_map(|infos| infos.iter()).filter_map(|info| info.as_document());
    let mut first: Option<(String, &Arc<Line>)> = None;
    for info in beside.chain(within) {
        let namespace = info.get("ns").and_then(|namespace| namespace.as_str()).unwrap_or_default();
        let database = namespace.split_once('.').map_or(namespace, |(database, _)| database);
        match &first {
            Some((other, line)) => table.check_same("bulkWrite", (other, line), database)?,
            None => first = Some((database.to_owned(), table.line_of(database)?)),
        }
    }
    first.map_or_else(|| table.line_of(ask.database), |(_, line)| Ok(line))
}
