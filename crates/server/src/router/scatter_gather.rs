//! Sends a command to every line and combines their answers.
//!
//! The lines are asked at once, but where users are changed: there one after the other, and the
//! first that refuses is the last, so that nothing is done elsewhere that the default line refuses.

use std::sync::Arc;
use std::time::Duration;

use frond_db::Error;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

use super::forward::{Refusal, forward_within};
use super::frames::without_moment;
use super::line::Line;
use super::local_answers::ok_reply;
use super::login::Identity;
use super::moves::is_on_its_shard;
use super::route::Broadcast;
use super::routed_request::{LEADER_WAIT_MAX, RoutedRequest};
use super::shared::Shared;
use super::table::Table;
use super::upstream::{decoded, is_ok};

/// The time for lines to hear of ended sessions: they hear soon, or not at all, since sessions end
/// by themselves.
const SESSIONS_WAIT_MAX: Duration = Duration::from_secs(1);

/// A line, and what it has answered.
type LineAnswer = (Arc<Line>, DocumentBuf);

/// Asks every line, and returns one answer.
///
/// # Errors
/// That of a line that can't be reached, but where it is of sessions. A refusal by a line is the
/// answer.
pub(super) async fn scatter_gather(
    shared: &Arc<Shared>,
    each: Broadcast,
    identity: Option<&Identity>,
    message: &[u8],
    ask: &RoutedRequest<'_>,
    table: &Table,
) -> Result<DocumentBuf, Refusal> {
    if each == Broadcast::Users {
        return one_by_one(shared, identity, message, ask, table).await;
    }
    let wait = if each == Broadcast::Sessions { SESSIONS_WAIT_MAX } else { LEADER_WAIT_MAX };
    let mut collected: Vec<LineAnswer> = Vec::new();
    let lines: Vec<Arc<Line>> = table.lines().cloned().collect();
    for line in lines {
        let answer = forward_within(shared, &line, identity, message, ask, wait).await;
        match answer.and_then(read) {
            Err(_) if each == Broadcast::Sessions => {}
            Err(refusal) => return Err(refusal),
            Ok(answer) if !is_ok(answer.view()) && each != Broadcast::Sessions => {
                return Ok(answer);
            }
            Ok(answer) => collected.push((line, answer)),
        }
    }
    Ok(match each {
        Broadcast::Sessions | Broadcast::Users => ok_reply(),
        Broadcast::Databases => databases(&collected, table),
        Broadcast::Operations => operations(&collected, shared, ask),
        Broadcast::Rows => rows(&collected, ask),
    })
}

async fn one_by_one(
    shared: &Arc<Shared>,
    identity: Option<&Identity>,
    message: &[u8],
    ask: &RoutedRequest<'_>,
    table: &Table,
) -> Result<DocumentBuf, Refusal> {
    let mut first = None;
    let lines: Vec<Arc<Line>> = table.lines().cloned().collect();
    for line in lines {
        let sent = forward_within(shared, &line, identity, message, ask, LEADER_WAIT_MAX).await;
        let answer = sent.and_then(read)?;
        if !is_ok(answer.view()) {
            return Ok(match first {
                None => answer,
                Some(_) => on_line(answer.view(), &line),
            });
        }
        first.get_or_insert(answer);
    }
    Ok(first.unwrap_or_else(ok_reply))
}

fn read(answer: Option<Vec<u8>>) -> Result<DocumentBuf, Refusal> {
    match decoded(answer.unwrap_or_default()) {
        Ok(answer) => Ok(without_moment(answer.view())),
        Err(error) => Err(Error::internal(error.to_string()).into()),
    }
}

/// A refusal that says on which line it was.
fn on_line(answer: Document<'_>, line: &Line) -> DocumentBuf {
    let mut collected = DocumentBuilder::new();
    for (name, value) in answer.iter() {
        match value.as_str().filter(|_| name == "errmsg") {
            Some(message) => {
                let message = format!("on the line {}, after others did it: {message}", line.name);
                collected.append(name, Value::String(&message));
            }
            None => {
                collected.append(name, value);
            }
        }
    }
    collected.build()
}

fn documents<'a>(answer: Document<'a>, name: &str) -> impl Iterator<Item = Document<'a>> + use<'a> {
    let array = answer.get(name).and_then(|array| array.as_array());
    let values: Vec<Document<'a>> = array
        .iter()
        .flat_map(|array| array.iter())
        .filter_map(|value| value.as_document())
        .collect();
    values.into_iter()
}

/// Returns each line's databases, where it leads them: the rest of one that has moved isn't shown
/// elsewhere.
fn databases(collected: &[LineAnswer], table: &Table) -> DocumentBuf {
    let mut answer = DocumentBuilder::new();
    let mut bytes = None;
    answer.begin_array("databases");
    for (line, databases) in collected {
        for database in documents(databases.view(), "databases") {
            let name = database.get("name").and_then(|name| name.as_str()).unwrap_or_default();
            if table.line_of(name).is_ok_and(|leader| leader.name == line.name) {
                answer.push(Value::Document(database));
                let size = database.get("sizeOnDisk").and_then(|size| size.as_integer());
                bytes = size.map(|size| size + bytes.unwrap_or_default()).or(bytes);
            }
        }
    }
    answer.end();
    if let Some(bytes) = bytes {
        answer.append("totalSize", Value::Int64(bytes));
        answer.append("totalSizeMb", Value::Int64(bytes >> 20));
    }
    answer.append("ok", Value::Double(1.0));
    answer.build()
}

fn operations(collected: &[LineAnswer], shared: &Shared, ask: &RoutedRequest<'_>) -> DocumentBuf {
    let mut answer = DocumentBuilder::new();
    answer.begin_array("inprog");
    for (line, operations) in collected {
        for operation in documents(operations.view(), "inprog") {
            answer.push(Value::Document(of_line(operation, line).view()));
        }
    }
    for operation in shared.moves.operations() {
        if is_on_its_shard(operation.view(), ask) {
            answer.push(Value::Document(operation.view()));
        }
    }
    answer.end().append("ok", Value::Double(1.0));
    answer.build()
}

fn rows(collected: &[LineAnswer], ask: &RoutedRequest<'_>) -> DocumentBuf {
    let mut answer = DocumentBuilder::new();
    answer.begin_document("cursor").begin_array("firstBatch");
    for (line, rows) in collected {
        let cursor = rows.get("cursor").and_then(|cursor| cursor.as_document());
        for row in documents(cursor.unwrap_or(Document::empty()), "firstBatch") {
            answer.push(Value::Document(of_line(row, line).view()));
        }
    }
    let namespace = format!("{}.$cmd.aggregate", ask.database);
    answer.end().append("id", Value::Int64(0)).append("ns", Value::String(&namespace)).end();
    answer.append("ok", Value::Double(1.0));
    answer.build()
}

/// An operation as a router shows it: its number alone isn't unique any more.
fn of_line(operation: Document<'_>, line: &Line) -> DocumentBuf {
    let mut collected = DocumentBuilder::new();
    collected.append("shard", Value::String(&line.name));
    for (name, value) in operation.iter() {
        match value.as_integer().filter(|_| name == "opid") {
            Some(number) => {
                collected.append(name, Value::String(&format!("{}:{number}", line.name)));
            }
            None => {
                collected.append(name, value);
            }
        }
    }
    collected.build()
}
