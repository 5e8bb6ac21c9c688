//! What the log and the profiler tell of an operation that took long: the profiler a document with
//! MongoDB's fields.

use frond_db::Durability;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document};

use crate::authorization;
use crate::log::{SlowOperation, shortened};
use crate::operations::Operation;
use crate::profiler::{self, COLLECTION, make_collection};
use crate::request::Answer;
use crate::shared::Shared;
use crate::wire::DocumentSequence;

/// Tells the log of an operation that took long, and the profiler, where that is asked for.
pub(super) fn tell_if_slow(
    server: &Shared,
    (operation, sequences): (&Operation, &[DocumentSequence]),
    done: &Answer,
) {
    let time = operation.worked();
    let (mut is_slow, level) =
        (server.log.tells_of(time), server.profiler.level(&operation.database));
    let filter = server.profiler.filter(&operation.database);
    let is_told_whole = level == profiler::Level::All && operation.is_profiled();
    if !is_slow && !is_told_whole && filter.is_none() {
        return;
    }
    let told = told(operation, sequences);
    let command = authorization::without_secrets(told.view());
    let slow = SlowOperation {
        connection: operation.peer.id,
        client: &operation.peer.address.to_string(),
        namespace: &operation.namespace(),
        command: command.view(),
        time,
        error_code: done.as_ref().err().map(|error| error.code.number()),
    };
    if let Some(filter) = filter {
        is_slow = filter.matches(entry(server, operation, &slow, done).view());
    }
    if is_slow {
        server.log.write_slow(&slow);
    }
    let is_told_slow = is_slow && level == profiler::Level::Slow && operation.is_profiled();
    if is_told_whole || is_told_slow {
        tell(server, operation, &slow, done);
    }
}

/// The command as the log and the profiler tell it: of a write of one statement, which drivers send
/// beside the command, that statement, with the command's comment.
fn told(operation: &Operation, sequences: &[DocumentSequence]) -> DocumentBuf {
    let sent = operation.sent.view();
    let Some(statement) = only_statement(operation, sequences) else {
        return operation.sent.clone();
    };
    let mut told = DocumentBuilder::new();
    for (name, value) in statement.iter() {
        match (name, value) {
            ("hint", Value::String(index)) => {
                told.append(name, Value::from(&document! { "$hint": index }));
            }
            _ => {
                told.append(name, value);
            }
        }
    }
    if operation.command == "update" {
        for option in ["multi", "upsert"].into_iter().filter(|name| statement.get(name).is_none()) {
            told.append(option, Value::Boolean(false));
        }
    }
    if let Some(comment) = sent.get("comment") {
        told.append("comment", comment);
    }
    told.build()
}

/// What an update or delete has to do, if that is one thing.
fn only_statement<'a>(
    operation: &'a Operation,
    sequences: &'a [DocumentSequence],
) -> Option<Document<'a>> {
    let list = match operation.command {
        "update" => "updates",
        "delete" => "deletes",
        _ => return None,
    };
    if let Some(sequence) = sequences.iter().find(|sequence| sequence.name == list) {
        let [only] = &sequence.documents[..] else { return None };
        return Some(only.view());
    }
    let mut statements = operation.sent.get(list)?.as_array()?.iter();
    let only = statements.next()?.as_document()?;
    statements.next().is_none().then_some(only)
}

/// Tells of an operation in its database. What can't be told there (the disk is full, the branch is
/// closed) is told nowhere: the operation is over. Those after it aren't told for a while, either.
fn tell(server: &Shared, operation: &Operation, slow: &SlowOperation<'_>, done: &Answer) {
    if server.profiler.is_paused() {
        return;
    }
    let Ok(database) = server.frond.database(&operation.database) else { return };
    // A client's drop of the database may have taken it away.
    if database.list_indexes(COLLECTION).is_err() && make_collection(&database).is_err() {
        return server.profiler.pause();
    }
    let entry = entry(server, operation, slow, done);
    let told = database.insert(COLLECTION, &[entry], true, Durability::Relaxed);
    if !told.is_ok_and(|report| report.errors.is_empty()) {
        server.profiler.pause();
    }
}

/// What is told of an operation.
pub(super) fn entry(
    server: &Shared,
    operation: &Operation,
    slow: &SlowOperation<'_>,
    done: &Answer,
) -> DocumentBuf {
    let mut entry = DocumentBuilder::new();
    entry
        .append("op", Value::String(operation.kind()))
        .append("ns", Value::String(slow.namespace))
        .append("command", Value::Document(shortened(slow.command).view()));
    match done {
        Ok(answer) => append_counts(&mut entry, operation.command, answer.clone().build().view()),
        Err(error) => {
            entry
                .append("ok", Value::Int32(0))
                .append("errMsg", Value::String(&error.message))
                .append("errName", Value::String(&error.code.name()))
                .append("errCode", Value::Int32(error.code.number()));
        }
    }
    let client = operation.peer.address.ip().to_string();
    let millis = i32::try_from(slow.time.as_millis()).unwrap_or(i32::MAX);
    let bytes = done.as_ref().map_or(0, DocumentBuilder::bytes);
    entry
        .append("responseLength", Value::Int32(i32::try_from(bytes).unwrap_or(i32::MAX)))
        .append("protocol", Value::String("op_msg"))
        .append("millis", Value::Int32(millis))
        .append("ts", Value::DateTime(server.frond.engine().now_millis()))
        .append("client", Value::String(&client));
    if let Some(name) = operation.peer.app_name() {
        entry.append("appName", Value::String(&name));
    }
    let login = operation.peer.login();
    entry.begin_array("allUsers");
    if let Some(login) = &login {
        entry
            .push_begin_document()
            .append("user", Value::String(&login.user.user))
            .append("db", Value::String(&login.user.database))
            .end();
    }
    let user = login.map_or_else(String::new, |login| login.user.to_string());
    entry.end().append("user", Value::String(&user));
    entry.build()
}

/// How many documents an operation was about, as its answer has it.
fn append_counts(entry: &mut DocumentBuilder, command: &str, answer: Document<'_>) {
    let count = |name: &str| answer.get(name).and_then(|value| value.as_integer());
    let mut append = |name: &str, count: Option<i64>| {
        if let Some(count) = count {
            entry.append(name, Value::Int32(i32::try_from(count).unwrap_or(i32::MAX)));
        }
    };
    match command {
        "insert" => append("ninserted", count("n")),
        "delete" => append("ndeleted", count("n")),
        "update" => {
            let upserted = answer.get("upserted").and_then(|upserted| upserted.as_array());
            let upserted = upserted.map_or(0, |upserted| upserted.iter().count() as i64);
            append("nMatched", count("n").map(|matched| matched - upserted));
            append("nModified", count("nModified"));
            append("nUpserted", Some(upserted));
        }
        _ => {
            let Some(cursor) = answer.get("cursor").and_then(|cursor| cursor.as_document()) else {
                return;
            };
            let batch = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"));
            let batch = batch.and_then(|batch| batch.as_array());
            append("nreturned", batch.map(|batch| batch.iter().count() as i64));
            if let Some(id @ 1..) = cursor.get("id").and_then(|id| id.as_integer()) {
                entry.append("cursorid", Value::Int64(id));
            }
        }
    }
}
