//! Reports operations that took long to the log and to the profiler, which gets a document with
//! MongoDB's fields.
//!
//! Each statement of an update or delete, and each operation of a `bulkWrite`, is reported by
//! itself, as MongoDB does: its plan, and the counts of what it examined and changed. The time of a
//! statement that came alone is that of its command; the others' commands are logged besides, as
//! `$cmd`.

mod execution;
mod operation;
mod shape;

use std::time::Duration;

use frond_db::Durability;
use frond_db::request_profile::{RequestProfile, StatementProfile};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document};

use crate::operations::Operation;
use crate::profiler::{COLLECTION, Level, make_collection};
use crate::request::{Answer, split_namespace};
use crate::shared::Shared;
use crate::wire::DocumentSequence;
use operation::{Counts, ProfiledOperation};

/// The command whose statements name their collections.
const BULK_WRITE: &str = "bulkWrite";

/// Returns how long one statement of a write must take to be reported; `None` for other commands.
pub(super) fn statements_from(
    server: &Shared,
    (operation, sequences): (&Operation, &[DocumentSequence]),
) -> Option<Duration> {
    list_of(operation.command)?;
    let profiles_all = |database: &str| {
        server.profiler.level(database) == Level::All || server.profiler.filter(database).is_some()
    };
    let is_profiled = match operation.command {
        BULK_WRITE => namespaces(operation, sequences)
            .into_iter()
            .filter_map(|namespace| split_namespace(namespace).ok())
            .any(|(database, _)| profiles_all(database)),
        _ => profiles_all(&operation.database),
    };
    let millis = if is_profiled { 0 } else { server.log.report_millis_min() };
    Some(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
}

/// Whether [`report`] may have anything to report of it. The profiler's records are writes: where
/// it is on at all the answer is yes.
pub(super) fn may_report(server: &Shared, operation: &Operation, work: &RequestProfile) -> bool {
    server.log.is_slow(operation.worked())
        || server.profiler.level(&operation.database) != Level::Off
        || server.profiler.filter(&operation.database).is_some()
        || !work.statements.is_empty()
}

/// Reports an operation that took long to the log, and to the profiler where that is on.
pub(super) fn report(
    server: &Shared,
    (operation, sequences): (&Operation, &[DocumentSequence]),
    done: &Answer,
    work: &RequestProfile,
) {
    let time = operation.worked();
    let is_slow = server.log.reports(time);
    let level = server.profiler.level(&operation.database);
    let has_filter = server.profiler.filter(&operation.database).is_some();
    let is_reported = is_slow || level == Level::All || has_filter;
    if !is_reported && work.statements.is_empty() {
        return;
    }
    let statements = statements(operation, sequences);
    let is_bulk = operation.command == BULK_WRITE;
    let error = done.as_ref().err();
    let answer_bytes = done.as_ref().ok().map(DocumentBuilder::bytes);
    let whole = |command: DocumentBuf, is_statement: bool| ProfiledOperation {
        operation,
        name: operation.command,
        is_statement,
        command,
        namespace: operation.namespace(),
        time,
        plan: &work.plan,
        examined: work.examined,
        counts: Counts::of_answer(operation.command, done),
        error,
        answer_bytes,
    };
    match &statements[..] {
        [] if is_reported => consider(server, &whole(operation.sent.clone(), false), is_slow, true),
        [only] if is_reported && !is_bulk => {
            consider(server, &whole(statement_command(operation, only), true), is_slow, true);
        }
        [] | [_] if !is_bulk => {}
        several => {
            for noted in &work.statements {
                let Some(statement) = several.get(noted.position) else { continue };
                let deed = of_statement(operation, noted, statement);
                consider(server, &deed, server.log.reports(noted.time), true);
            }
            if is_slow {
                let namespace = format!("{}.$cmd", operation.database);
                let deed = ProfiledOperation { namespace, ..whole(operation.sent.clone(), false) };
                consider(server, &deed, true, work.statements.is_empty());
            }
        }
    }
}

/// Returns the report of a statement that isn't alone.
fn of_statement<'a>(
    operation: &'a Operation,
    noted: &'a StatementProfile,
    statement: &Statement<'_>,
) -> ProfiledOperation<'a> {
    ProfiledOperation {
        operation,
        name: statement.name,
        is_statement: true,
        command: statement_command(operation, statement),
        namespace: statement.namespace.clone(),
        time: noted.time,
        plan: &noted.plan,
        examined: noted.examined,
        counts: Counts::of_statement(statement.name, &noted.outcome),
        error: noted.outcome.as_ref().err(),
        answer_bytes: None,
    }
}

/// Reports an operation, where that is asked for; to the profiler only if it may be.
fn consider(server: &Shared, deed: &ProfiledOperation<'_>, is_slow: bool, may_be_profiled: bool) {
    let database = deed.database();
    let (level, filter) = (server.profiler.level(database), server.profiler.filter(database));
    let is_reported = match &filter {
        Some(filter) => {
            let hashes = if filter.needs_hashes { shape::hashes(server, deed) } else { None };
            filter.matches(deed.entry(server, hashes.as_ref()).view())
        }
        None => is_slow,
    };
    let is_profiled = match level {
        Level::Off => false,
        Level::Slow => is_reported,
        Level::All => true,
    };
    let is_of_collection = deed.is_statement || deed.operation.is_profiled();
    let is_profiled = is_profiled && may_be_profiled && is_of_collection;
    if !is_reported && !is_profiled {
        return;
    }
    let hashes = shape::hashes(server, deed);
    if is_reported {
        deed.log(server, hashes.as_ref());
    }
    if is_profiled {
        insert_entry(server, deed, hashes.as_ref());
    }
}

/// The field that holds a write's statements.
fn list_of(command: &str) -> Option<&'static str> {
    match command {
        "update" => Some("updates"),
        "delete" => Some("deletes"),
        BULK_WRITE => Some("ops"),
        _ => None,
    }
}

/// One of the things that a write has to do.
struct Statement<'a> {
    sent: Document<'a>,
    /// The command that does such a thing alone.
    name: &'static str,
    namespace: String,
}

/// Returns the statements of a write.
fn statements<'a>(
    operation: &'a Operation,
    sequences: &'a [DocumentSequence],
) -> Vec<Statement<'a>> {
    let Some(list) = list_of(operation.command) else { return Vec::new() };
    let sent = listed(operation, sequences, list).into_iter();
    if operation.command != BULK_WRITE {
        let (name, namespace) = (operation.command, operation.namespace());
        return sent.map(|sent| Statement { sent, name, namespace: namespace.clone() }).collect();
    }
    let namespaces = namespaces(operation, sequences);
    let statement = |sent: Document<'a>| {
        let (kind, place) = sent.iter().next().unwrap_or(("", Value::Null));
        let place = place.as_integer().and_then(|place| usize::try_from(place).ok());
        let namespace = place.and_then(|place| namespaces.get(place)).copied();
        let names = ["insert", "update", "delete"];
        let name = names.into_iter().find(|name| *name == kind).unwrap_or(operation.command);
        Statement { sent, name, namespace: namespace.unwrap_or_default().to_owned() }
    };
    sent.map(statement).collect()
}

/// The collections of a `bulkWrite`.
fn namespaces<'a>(operation: &'a Operation, sequences: &'a [DocumentSequence]) -> Vec<&'a str> {
    let listed = listed(operation, sequences, "nsInfo").into_iter();
    let namespace = |it: Document<'a>| it.get("ns").and_then(|it| it.as_str()).unwrap_or_default();
    listed.map(namespace).collect()
}

/// The documents of a list that a command has, wherever it was sent.
fn listed<'a>(
    operation: &'a Operation,
    sequences: &'a [DocumentSequence],
    list: &str,
) -> Vec<Document<'a>> {
    if let Some(sequence) = sequences.iter().find(|sequence| sequence.name == list) {
        return sequence.documents.iter().map(DocumentBuf::view).collect();
    }
    let listed = operation.sent.get(list).and_then(|list| list.as_array());
    listed.iter().flat_map(|list| list.iter()).filter_map(|it| it.as_document()).collect()
}

/// A statement as the log and the profiler show it, with its command's comment.
fn statement_command(operation: &Operation, statement: &Statement<'_>) -> DocumentBuf {
    let Statement { sent: statement, name, .. } = statement;
    let mut command = DocumentBuilder::new();
    for (name, value) in statement.iter() {
        match (name, value) {
            ("hint", Value::String(index)) => {
                command.append(name, Value::from(&document! { "$hint": index }));
            }
            _ => {
                command.append(name, value);
            }
        }
    }
    if *name == "update" {
        for option in ["multi", "upsert"].into_iter().filter(|name| statement.get(name).is_none()) {
            command.append(option, Value::Boolean(false));
        }
    }
    if let Some(comment) = operation.sent.get("comment") {
        command.append("comment", comment);
    }
    command.build()
}

/// The command that erases.
const ERASE: &str = "frondErase";

/// Records something in its database. What can't be recorded there (the disk is full, the branch is
/// closed) is recorded nowhere: the operation is over. Nor are those after it, for a while.
fn insert_entry(server: &Shared, deed: &ProfiledOperation<'_>, hashes: Option<&[String; 2]>) {
    if server.profiler.is_paused() {
        return;
    }
    // What an erase emptied would get what its other commands carried; it is itself recorded.
    let operation = deed.operation;
    let is_erase = operation.command == ERASE;
    if !is_erase && server.profiler.has_erased_since(operation.started()) {
        return;
    }
    let Ok(database) = server.frond.database(deed.database()) else { return };
    if database.list_indexes(COLLECTION).is_err() {
        // A database that isn't there isn't made for that.
        if database.list_collections().is_ok_and(|found| found.is_empty()) {
            return;
        }
        if make_collection(&database).is_err() {
            return server.profiler.pause();
        }
    }
    let entry = deed.entry(server, hashes);
    let inserted = database.insert(COLLECTION, &[entry], true, Durability::Relaxed);
    if !inserted.is_ok_and(|report| report.errors.is_empty()) {
        server.profiler.pause();
    }
}
