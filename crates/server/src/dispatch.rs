//! From a message's bytes to its answer's bytes.
//!
//! 1. Decode the message. Where only a document in it is broken, answer with the error; where its
//!    frame is, answer and close the connection, since nobody knows where the next message begins.
//! 2. Find the command in the table, check the fields that all commands have, run the handler.
//! 3. A panic in a handler ends its request with `InternalError`; the server goes on.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use frond_db::Error;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;

use crate::commands::{self, Command, Run};
use crate::common::Common;
use crate::limits::{COMMAND_BYTES_MARGIN, DOCUMENT_BYTES_MAX, REPLY_BYTES_MAX};
use crate::request::Request;
use crate::shared::{Counter, Peer, Shared};
use crate::wire::message::encode_answer;
use crate::wire::{
    DocumentSequence, Header, LegacyQuery, LegacyReply, Message, OperationCode, WireError,
};

/// What to do after a message.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    /// What to send; `None` if the client wants no answer.
    pub reply: Option<Vec<u8>>,
    /// Whether the connection can't go on.
    pub close: bool,
}

/// Answers one message, given whole.
pub fn answer(server: &Shared, peer: Peer, header: Header, message: Bytes) -> Outcome {
    match header.operation {
        OperationCode::Message => answer_message(server, peer, header, message),
        OperationCode::Query => answer_query(server, peer, header, message),
        OperationCode::Compressed => {
            let body = error_document(&protocol_error(&WireError::Compressed));
            let reply = encode_answer(body.view(), server.next_reply_id(), header.request_id);
            Outcome { reply: Some(reply), close: true }
        }
        OperationCode::Reply => Outcome { reply: None, close: true },
    }
}

fn answer_message(server: &Shared, peer: Peer, header: Header, message: Bytes) -> Outcome {
    let mut flags = Message::peek_flags(&message);
    let (body, close) = match Message::decode(message) {
        Ok(message) => {
            flags = message.flags;
            (run(server, peer, message.body.view(), &message.sequences, None), false)
        }
        Err(error) => (error_document(&protocol_error(&error)), !error.is_content()),
    };
    if flags.more_to_come {
        return Outcome { reply: None, close };
    }
    let reply = encode_answer(body.view(), server.next_reply_id(), header.request_id);
    Outcome { reply: Some(reply), close }
}

fn answer_query(server: &Shared, peer: Peer, header: Header, message: Bytes) -> Outcome {
    let (body, close) = match LegacyQuery::decode(message) {
        Ok(query) => (run_legacy(server, peer, &query), false),
        Err(error) => (error_document(&protocol_error(&error)), !error.is_content()),
    };
    let reply = LegacyReply::encode_one(body.view(), server.next_reply_id(), header.request_id);
    Outcome { reply: Some(reply), close }
}

fn run_legacy(server: &Shared, peer: Peer, query: &LegacyQuery) -> DocumentBuf {
    let command = query.command();
    let name = command.iter().next().map_or("", |(name, _)| name);
    match query.command_database() {
        Some(database) if ["hello", "isMaster", "ismaster"].contains(&name) => {
            run(server, peer, command, &[], Some(database))
        }
        _ => {
            let message = format!(
                "Unsupported OP_QUERY command: {name}. The client driver may require an upgrade."
            );
            error_document(&Error::invalid(Code::Location(352), message))
        }
    }
}

/// Runs a command and returns the whole answer, `ok` included. `database` is given where it doesn't
/// stand in the command.
pub(crate) fn run(
    server: &Shared,
    peer: Peer,
    body: Document<'_>,
    sequences: &[DocumentSequence],
    database: Option<&str>,
) -> DocumentBuf {
    guarded(|| try_run(server, peer, body, sequences, database))
}

/// Runs a command's work and turns its errors, and a panic, into an answer.
fn guarded(work: impl FnOnce() -> Result<DocumentBuf, Error>) -> DocumentBuf {
    // Handlers own what they work on and the shared tables stay whole when a handler panics, so
    // nothing half done can be seen afterwards.
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Error::internal("the command met a defect of Frond: see the server's standard error"))
    });
    match result {
        Ok(document) => document,
        Err(error) => error_document(&error),
    }
}

fn try_run(
    server: &Shared,
    peer: Peer,
    body: Document<'_>,
    sequences: &[DocumentSequence],
    database: Option<&str>,
) -> Result<DocumentBuf, Error> {
    let Some((sent_name, _)) = body.iter().next() else {
        return Err(command_not_found(""));
    };
    let command = commands::find(sent_name).ok_or_else(|| command_not_found(sent_name))?;
    let database_name = match database {
        Some(database) => database,
        None => database_of(body)?,
    };
    check_size(body)?;
    let common = Common::read(body)?;
    check_allowed(command, database_name, &common)?;
    let sequence = the_sequence(command, sequences)?;
    let running = server.operations.begin(peer.id, command.name, database_name, common.time_max);
    let is_acknowledged = common.acknowledged;
    let request = Request {
        server,
        peer,
        name: command.name,
        sent_name,
        database_name,
        body,
        sequence,
        common,
        operation: std::sync::Arc::clone(&running.operation),
    };
    if command.counter == Counter::Command {
        server.count(Counter::Command, 1);
    }
    let handler = match command.run {
        Run::Handler(handler) => handler,
        Run::Refused(why) => {
            let message = format!("{} is not supported by Frond: {why}", command.name);
            return Err(Error::invalid(Code::CommandNotSupported, message));
        }
    };
    let mut answer = handler(&request)?;
    if !is_acknowledged {
        answer = DocumentBuilder::new();
    }
    answer.append("ok", Value::Double(1.0));
    let answer = answer.build();
    let bytes = answer.as_bytes().len();
    if bytes > REPLY_BYTES_MAX {
        let message =
            format!("the answer has {bytes} bytes, at most {REPLY_BYTES_MAX} can be sent");
        return Err(Error::invalid(Code::BSONObjectTooLarge, message));
    }
    Ok(answer)
}

fn database_of(body: Document<'_>) -> Result<&str, Error> {
    match body.get("$db") {
        Some(Value::String(name)) => Ok(name),
        Some(other) => {
            let found = other.element_type().alias();
            let message =
                format!("BSON field '$db' is the wrong type '{found}', expected type 'string'");
            Err(Error::invalid(Code::TypeMismatch, message))
        }
        None => {
            let message = "OP_MSG requests require a $db argument";
            Err(Error::invalid(Code::Location(40571), message))
        }
    }
}

fn check_size(body: Document<'_>) -> Result<(), Error> {
    let bytes = body.as_bytes().len();
    let max = DOCUMENT_BYTES_MAX + COMMAND_BYTES_MARGIN;
    if bytes > max {
        let message = format!("command of {bytes} bytes is too large, at most {max} are allowed");
        return Err(Error::invalid(Code::BSONObjectTooLarge, message));
    }
    Ok(())
}

fn check_allowed(command: &Command, database: &str, common: &Common) -> Result<(), Error> {
    if command.admin_only && database != "admin" {
        let message = format!("{} may only be run against the admin database.", command.name);
        return Err(Error::invalid(Code::Unauthorized, message));
    }
    if common.api_strict && !commands::is_in_stable_api(command) {
        let message = format!(
            "Provided apiStrict:true, but the command {} is not in API Version 1",
            command.name
        );
        return Err(Error::invalid(Code::Location(323), message));
    }
    Ok(())
}

fn the_sequence<'a>(
    command: &Command,
    sequences: &'a [DocumentSequence],
) -> Result<Option<&'a DocumentSequence>, Error> {
    for sequence in sequences {
        if command.sequence != Some(sequence.name.as_str()) {
            let message =
                format!("BSON field '{}.{}' is an unknown field.", command.name, sequence.name);
            return Err(Error::invalid(Code::Location(40415), message));
        }
    }
    Ok(sequences.first())
}

fn command_not_found(name: &str) -> Error {
    Error::invalid(Code::CommandNotFound, format!("no such command: '{name}'"))
}

fn protocol_error(error: &WireError) -> Error {
    let code = match error {
        WireError::Document(_) => Code::InvalidBSON,
        _ => Code::ProtocolError,
    };
    Error::invalid(code, error.to_string())
}

/// The answer that an error is.
pub fn error_document(error: &Error) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    builder.append("ok", Value::Double(0.0));
    append_error(&mut builder, error, "errmsg");
    builder.append("codeName", Value::String(&error.code.name()));
    append_details(&mut builder, error);
    builder.build()
}

/// Appends an error's message and code.
pub fn append_error(builder: &mut DocumentBuilder, error: &Error, message_name: &str) {
    builder.append(message_name, Value::String(&error.message));
    builder.append("code", Value::Int32(error.code.number()));
}

/// Appends what an error tells beside its message and code.
pub fn append_details(builder: &mut DocumentBuilder, error: &Error) {
    for (name, value) in error.details.iter().flat_map(DocumentBuf::iter) {
        builder.append(name, value);
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;

    #[test]
    fn a_panic_ends_its_request_only() {
        let answer = guarded(|| panic!("a defect"));
        assert_eq!(answer.get("ok"), Some(Value::Double(0.0)));
        assert_eq!(answer.get("code"), Some(Value::Int32(1)));
        assert_eq!(answer.get("codeName"), Some(Value::String("InternalError")));
    }

    #[test]
    fn an_error_tells_its_details() {
        let key = document! { "a": 1_i32 };
        let details = Some(document! { "keyPattern": &key });
        let error = Error { details, ..Error::invalid(Code::DuplicateKey, "twice") };
        let expected = document! {
            "ok": 0.0, "errmsg": "twice", "code": 11000_i32, "codeName": "DuplicateKey",
            "keyPattern": &key,
        };
        assert_eq!(error_document(&error), expected);
    }
}
