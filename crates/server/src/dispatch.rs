//! From a message's bytes to its answer's bytes.
//!
//! 1. Decode the message. Where only a document in it is broken, answer with the error; where its
//!    frame is, answer and close the connection, since the server can't know where the next message
//!    begins.
//! 2. Find the command in the table and check its fields by their table ([`sent`]), run the handler
//!    ([`run`](mod@run)).
//! 3. A panic in a handler ends its request with `InternalError`; the server goes on.

mod checks;
mod failure;
mod faults;
mod held;
mod outcome;
mod profile;
mod run;
mod sent;

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use frond_db::Error;
use frond_db::memory_queue::MemoryShare;
use frond_doc::{DocError, Document, DocumentBuf};
use frond_query::Code;

use crate::commands::handshake;
use crate::cursors::{Parked, Parking};
use crate::errors::error_document;
use crate::limits::FREE_BYTES;
use crate::outgoing::Outgoing;
use crate::peer::Peer;
use crate::shared::Shared;
use crate::wire::message::{Flags, answer_head};
use crate::wire::{Header, LegacyQuery, LegacyReply, Message, OperationCode, WireError};
use failure::guarded;
pub use held::HeldAnswer;
pub use outcome::{Outcome, Repeat, Wait};
use run::{Aside, try_run};
pub(crate) use run::{run, run_kept};

/// Answers one message, given whole. A command that has waited goes on as `resumed`.
pub fn answer(
    server: &Shared,
    peer: &Arc<Peer>,
    (header, message): (Header, Bytes),
    resumed: Option<Parked>,
) -> Outcome {
    match header.operation {
        OperationCode::Message => answer_message(server, peer, (header, message), resumed),
        OperationCode::Query => answer_query(server, peer, header, message),
        // The connection has taken out what was inside.
        OperationCode::Compressed | OperationCode::Reply => Outcome::closing(),
    }
}

/// Answers a message that can't be taken for what it says it is.
pub fn refuse(server: &Shared, header: Header, error: &WireError) -> Outcome {
    let body = error_document(&protocol_error(error));
    let reply = reply_of(server, body, header.request_id, None);
    Outcome::reply(Some(reply), !error.is_content())
}

fn answer_message(
    server: &Shared,
    peer: &Arc<Peer>,
    (header, message): (Header, Bytes),
    resumed: Option<Parked>,
) -> Outcome {
    let mut flags = Message::peek_flags(&message);
    let has_checksum = Message::has_checksum(&message);
    let later = answered_later(flags, &message);
    let parking = match later {
        Some(_) => Parking::new(resumed),
        None => Parking::default(),
    };
    let (share, held) = (RefCell::new(None), RefCell::new(None));
    let aside =
        Aside { share: &share, parking: &parking, held: (!flags.more_to_come).then_some(&held) };
    let (body, close) = match Message::decode(message) {
        Ok(message) => {
            flags = message.flags;
            if let Some((time, topology)) =
                handshake::wait(server, message.body.view(), flags.exhaust_allowed)
            {
                let repeats = flags.exhaust_allowed;
                let wait = Wait { time, topology, repeats, has_checksum, hello: message.body };
                return Outcome { wait: Some(wait), ..Outcome::reply(None, false) };
            }
            let sent = (&message.body, &message.sequences[..]);
            let body = guarded(server, || try_run(server, peer, sent, None, aside));
            if let Some(run) = held.take() {
                let answer = HeldAnswer::new(run, message.sequences, header.request_id);
                return Outcome { held: Some(answer), ..Outcome::reply(None, false) };
            }
            (body, false)
        }
        Err(error) => (error_document(&protocol_error(&error)), !error.is_content()),
    };
    // A parked command that failed before it went on is abandoned.
    parking.take_resumed().into_iter().for_each(|left| abandon(server, left));
    let parked = parking.take_parked();
    if peer.is_hung_up() {
        parked.into_iter().for_each(|left| abandon(server, left));
        return Outcome::closing();
    }
    if let (Some(parked), Some(message)) = (parked, &later) {
        let repeat = Repeat { header, message: message.clone() };
        return Outcome { parked: Some((repeat, parked)), ..Outcome::reply(None, false) };
    }
    if flags.more_to_come {
        return Outcome::reply(None, close);
    }
    let may_repeat = flags.exhaust_allowed && has_open_cursor(body.view());
    let message = later.filter(|_| may_repeat);
    let flags = Flags { more_to_come: message.is_some(), ..Flags::default() };
    let (id, bytes) = (server.next_reply_id(), body.as_bytes().len());
    let head = answer_head(flags, bytes, id, header.request_id);
    let reply = Outgoing::new(head, body.into_bytes(), share.take());
    let repeat =
        message.map(|message| Repeat { header: Header { request_id: id, ..header }, message });
    Outcome { repeat, ..Outcome::reply(Some(reply), close) }
}

/// The message, if it is one that may be answered late, or several times. A large one isn't kept
/// for that.
fn answered_later(flags: Flags, message: &Bytes) -> Option<Bytes> {
    let may_be_kept = !flags.more_to_come
        && message.len() <= FREE_BYTES
        && Message::peek_command(message) == Some("getMore");
    may_be_kept.then(|| message.clone())
}

/// Ends what waits for something to be written.
pub fn abandon(server: &Shared, parked: Parked) {
    parked.abandon(&server.waiting, &server.operations, &server.cursors);
}

/// Closes the cursor of a client that took several answers and is gone: it couldn't have closed it
/// but by hanging up.
pub fn end_repeating(server: &Shared, repeat: Repeat) {
    let Ok(message) = Message::decode(repeat.message) else { return };
    let field = |name| message.body.view().get(name);
    let text = |name| field(name).and_then(|value| value.as_str());
    let id = field("getMore").and_then(|id| id.as_integer());
    if let (Some(id), Some(database), Some(collection)) = (id, text("$db"), text("collection")) {
        server.cursors.kill(id, &format!("{database}.{collection}"));
    }
}

/// Whether an answer has a cursor that has more.
fn has_open_cursor(answer: Document<'_>) -> bool {
    let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document());
    let id = cursor.and_then(|cursor| cursor.get("id")).and_then(|id| id.as_integer());
    id.is_some_and(|id| id != 0)
}

fn reply_of(
    server: &Shared,
    body: DocumentBuf,
    response_to: i32,
    share: Option<MemoryShare>,
) -> Outgoing {
    let (id, bytes) = (server.next_reply_id(), body.as_bytes().len());
    Outgoing::new(answer_head(Flags::default(), bytes, id, response_to), body.into_bytes(), share)
}

/// Answers a `hello` that has waited; also returns the reply's id, which the next one refers to.
/// `None` if the connection is to be closed instead.
pub fn answer_hello(
    server: &Shared,
    peer: &Arc<Peer>,
    wait: &Wait,
    response_to: i32,
) -> Option<(Vec<u8>, i32)> {
    let hello = || run(server, peer, wait.hello.view(), &[], None);
    // A fail point may have it wait.
    let body = match server.fail_points.are_on() {
        true => tokio::task::block_in_place(hello),
        false => hello(),
    };
    if peer.is_hung_up() {
        return None;
    }
    let id = server.next_reply_id();
    // There is no more news than that it stops.
    let more_to_come = wait.repeats && !server.drain.is_begun();
    let flags = Flags { more_to_come, ..Flags::default() };
    let head = answer_head(flags, body.as_bytes().len(), id, response_to);
    let reply = Outgoing::new(head, body.into_bytes(), None);
    let reply = if wait.has_checksum { reply.with_checksum() } else { reply };
    Some((reply.into_bytes(), id))
}

fn answer_query(server: &Shared, peer: &Arc<Peer>, header: Header, message: Bytes) -> Outcome {
    let (body, close) = match LegacyQuery::decode(message) {
        Ok(query) => (run_legacy(server, peer, &query), false),
        Err(error) => (error_document(&protocol_error(&error)), !error.is_content()),
    };
    if peer.is_hung_up() {
        return Outcome::closing();
    }
    let reply = LegacyReply::encode_one(body.view(), server.next_reply_id(), header.request_id);
    Outcome::reply(Some(Outgoing::new(reply, Bytes::new(), None)), close)
}

fn run_legacy(server: &Shared, peer: &Arc<Peer>, query: &LegacyQuery) -> DocumentBuf {
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

fn protocol_error(error: &WireError) -> Error {
    let code = match error {
        WireError::Document(DocError::TooDeep { .. }) => Code::Overflow,
        WireError::Document(_) => Code::InvalidBSON,
        _ => Code::ProtocolError,
    };
    Error::invalid(code, error.to_string())
}
