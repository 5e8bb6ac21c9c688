//! From a message's bytes to its answer's bytes.
//!
//! 1. Decode the message. Where only a document in it is broken, answer with the error; where its
//!    frame is, answer and close the connection, since the server can't know where the next message
//!    begins.
//! 2. Find the command in the table, check its fields by their table, run the handler.
//! 3. A panic in a handler ends its request with `InternalError`; the server goes on.

mod faults;
mod profile;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use frond_db::memory_queue::MemoryShare;
use frond_db::{DatabaseName, Error, ErrorKind};
use frond_doc::{Binary, Document, DocumentBuf, DocumentBuilder, Value, document};
use frond_query::Code;
use frond_query::pipeline::NO_SEARCH_INDEXES;

use crate::audit;
use crate::authorization;
use crate::commands::{self, CONFIGURE_FAIL_POINT, Command, Run, handshake, suggestion};
use crate::common_fields::{Common, Level, Part};
use crate::concerns;
use crate::cursors::{Parked, Parking};
use crate::errors::{error_builder, error_document};
use crate::fields::refuse_duplicates;
use crate::limits::{COMMAND_BYTES_MARGIN, FREE_BYTES, REPLY_BYTES_MAX};
use crate::log::SlowOperation;
use crate::member::gate;
use crate::operations::Operation;
use crate::outgoing::Outgoing;
use crate::peer::Peer;
use crate::profiler;
use crate::request::{Answer, Request};
use crate::shared::{Counter, Shared};
use crate::tables;
use crate::transactions;
use crate::usage::{Class, Failed};
use crate::wire::message::{Flags, answer_head};
use crate::wire::{
    DocumentSequence, Header, LegacyQuery, LegacyReply, Message, OperationCode, WireError,
};

/// What to do after a message.
pub struct Outcome {
    /// What to send; `None` if the client wants no answer.
    pub reply: Option<Outgoing>,
    /// Whether the connection can't go on.
    pub close: bool,
    /// How long to wait before the message is answered by [`answer_hello`]; nothing was done yet.
    pub wait: Option<Wait>,
    /// What is answered next, without being asked again.
    pub repeat: Option<Repeat>,
    /// What is answered once there is something to tell, or its time is over.
    pub parked: Option<(Repeat, Parked)>,
}

/// A message that is answered later: a `getMore` that waits; or that is answered again, since the
/// client takes several answers and there are more: its header names the answer before as what the
/// next one answers.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// The header.
    pub header: Header,
    /// The message.
    pub message: Bytes,
}

/// A `hello` that is answered when there is news, or late.
#[derive(Clone, PartialEq, Debug)]
pub struct Wait {
    /// How long.
    pub time: Duration,
    /// The topology that the client knows.
    pub topology: i64,
    /// Whether the client takes one answer after the other, without asking again.
    pub repeats: bool,
    /// Whether it came with a checksum.
    pub has_checksum: bool,
    /// The command.
    pub hello: DocumentBuf,
}

impl Outcome {
    fn reply(reply: Option<Outgoing>, close: bool) -> Outcome {
        Outcome { reply, close, wait: None, repeat: None, parked: None }
    }

    /// Closes the connection.
    pub fn closing() -> Outcome {
        Outcome::reply(None, true)
    }
}

/// Answers one message, given whole. What has waited goes on as `resumed`.
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
    let share = RefCell::new(None);
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
            let (body, sequences) = (&message.body, &message.sequences);
            let work = || try_run(server, peer, (body, sequences), None, (&share, &parking));
            (guarded(server, work), false)
        }
        Err(error) => (error_document(&protocol_error(&error)), !error.is_content()),
    };
    // What failed before it went on goes no further.
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

/// Whether an answer tells of a cursor that has more.
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

/// Answers a `hello` that has waited; also tells the reply's id, which the next one refers to.
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

/// Runs a command and returns the whole answer, `ok` included. `database` is given where it doesn't
/// stand in the command.
pub(crate) fn run(
    server: &Shared,
    peer: &Arc<Peer>,
    body: Document<'_>,
    sequences: &[DocumentSequence],
    database: Option<&str>,
) -> DocumentBuf {
    let share = RefCell::new(None);
    let aside = (&share, &Parking::default());
    guarded(server, || try_run(server, peer, (&body.to_buf(), sequences), database, aside))
}

/// As [`run`], on a database; also what the answer holds of the memory for answers, until it is
/// dropped.
pub(crate) fn run_kept(
    server: &Shared,
    peer: &Arc<Peer>,
    body: Document<'_>,
    database: &str,
) -> (DocumentBuf, Option<MemoryShare>) {
    let share = RefCell::new(None);
    let aside = (&share, &Parking::default());
    let asked = (&body.to_buf(), &[][..]);
    let answer = guarded(server, || try_run(server, peer, asked, Some(database), aside));
    (answer, share.into_inner())
}

/// An error, and the labels by which drivers decide what to send again.
struct Failure {
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
    fn new(error: Error, labels: &[&str]) -> Failure {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        Failure { error, marks: Box::new(Marks { labels, is_injected: false }) }
    }

    /// One that a fail point made.
    fn injected(error: Error, labels: Vec<String>) -> Failure {
        Failure { error, marks: Box::new(Marks { labels, is_injected: true }) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::new(error, &[])
    }
}

/// Runs a command's work and turns its errors, and a panic, into an answer.
fn guarded(
    server: &Shared,
    work: impl FnOnce() -> Result<DocumentBuilder, Failure>,
) -> DocumentBuf {
    // Handlers own what they work on and the shared tables stay whole when a handler panics, so
    // nothing half done can be seen afterwards.
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        server.usage.count_failure(Failed::Panic);
        let message = "the command met a defect of Frond: see the server's standard error";
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
    append_time(&mut answer, server);
    answer.build()
}

fn append_labels(answer: &mut DocumentBuilder, labels: &[String]) {
    if labels.is_empty() {
        return;
    }
    answer.begin_array("errorLabels");
    for label in labels {
        answer.push(Value::String(label));
    }
    answer.end();
}

/// Appends what time it is in the cluster: drivers pass it on, and ask for nothing older. There is
/// no other member whose clock a signature could protect.
fn append_time(answer: &mut DocumentBuilder, server: &Shared) {
    let now = Value::Timestamp(server.operation_time());
    answer
        .begin_document("$clusterTime")
        .append("clusterTime", now)
        .begin_document("signature")
        .append("hash", Value::Binary(Binary { subtype: 0, bytes: &[0; 20] }))
        .append("keyId", Value::Int64(0))
        .end()
        .end()
        .append("operationTime", now);
}

fn try_run(
    server: &Shared,
    peer: &Arc<Peer>,
    (sent, sequences): (&DocumentBuf, &[DocumentSequence]),
    database: Option<&str>,
    (share, parking): (&RefCell<Option<MemoryShare>>, &Parking),
) -> Result<DocumentBuilder, Failure> {
    let resumed = parking.resumed();
    let body = sent.view();
    let Some((sent_name, _)) = body.iter().next() else {
        return Err(command_not_found("").into());
    };
    let command = command_of(server, sent_name)?;
    refuse_duplicates(command.name, body)?;
    let database_name = match database {
        Some(database) => database,
        None => database_of(body)?,
    };
    check_size(server, body)?;
    let part = || Common::read(body).ok().and_then(|common| common.part);
    if resumed.is_none() {
        server.drain.check().map_err(|error| {
            let labels = labels(command, part(), &error);
            Failure::new(error, &labels)
        })?;
    }
    check_sequences(command, sequences)?;
    let table = tables::find(command.name).unwrap_or(&tables::UNSUPPORTED);
    tables::check(table, body, sequences)?;
    let mut common = Common::read(body)?;
    common.own(peer.digest())?;
    DatabaseName::check_sent(database_name)?;
    check_allowed(command, database_name)?;
    common.api.check(command.name, body, server.require_api_version.get())?;
    concerns::check(command, body, &common)?;
    concerns::apply_defaults(server, command.name, &mut common)?;
    if resumed.is_none() {
        gate::check(server, command, body, &common).map_err(|error| {
            let labels = labels(command, common.part, &error);
            Failure::new(error, &labels)
        })?;
    }
    let asked = (database_name, body, sequences);
    let watched = audit::watch(server, peer, command.name, (database_name, body))?;
    let rights = match authorization::check(server, peer, (command.name, command.needs), asked) {
        Ok(rights) => rights,
        Err(error) => {
            if let Some(watched) = watched {
                watched.end(Some(&error));
            }
            return Err(error.into());
        }
    };
    let _core = server.frond.cores().enter();
    let running = match &resumed {
        None => server.operations.begin(peer, command.name, (database_name, sent), &common),
        Some((operation, since)) => server.operations.resume(operation, *since),
    };
    if let Some(session) = common.session {
        server.sessions.touch(session, running.operation.started())?;
    }
    let part = common.part;
    let concern_error = common.concern_failure.as_ref().map(concern_error);
    let fault_asked = faults::Asked { server, peer, command, body, part };
    let fault = match resumed {
        None => faults::before(&fault_asked, &running.operation)?,
        Some(_) => Default::default(),
    };
    let request = Request {
        server,
        peer,
        name: command.name,
        needs: command.needs,
        sent_name,
        database_name,
        body,
        sequences,
        common,
        operation: Arc::clone(&running.operation),
        rights,
        current: None,
        moment: None,
        has_write_errors: std::cell::Cell::new(false),
        share,
        parking,
    };
    if command.counter == Counter::Command {
        server.count(Counter::Command, 1);
    }
    let done = run_part(command, request);
    if parking.is_parked() {
        running.keep();
        return Ok(DocumentBuilder::new());
    }
    if let Some(watched) = watched {
        watched.end(done.as_ref().err());
    }
    count_use(server, &running.operation);
    tell_if_slow(server, (&running.operation, sequences), &done);
    let answer = done.map_err(|error| {
        let labels = labels(command, part, &error);
        Failure::new(with_concern_error(error, concern_error.as_ref()), &labels)
    })?;
    faults::after(&fault_asked, fault, answer, concern_error.is_some())
}

/// What an answer says of a write concern that can't be had.
fn concern_error(failure: &Error) -> DocumentBuf {
    document! {
        "code": failure.code.number(), "codeName": &*failure.code.name(),
        "errmsg": &*failure.message,
    }
}

/// The command of that name; the one of fail points only where they are enabled.
fn command_of(server: &Shared, name: &str) -> Result<&'static Command, Error> {
    let is_there = |command: &&Command| {
        command.name != CONFIGURE_FAIL_POINT || server.fail_points.is_enabled()
    };
    commands::find(name).filter(is_there).ok_or_else(|| command_not_found(name))
}

/// An error that also says that what was written before isn't where the client wanted it.
fn with_concern_error(mut error: Error, concern_error: Option<&DocumentBuf>) -> Error {
    let Some(concern_error) = concern_error else { return error };
    let mut details = DocumentBuilder::new();
    for (name, value) in error.details.iter().flat_map(DocumentBuf::iter) {
        details.append(name, value);
    }
    details.append("writeConcernError", Value::from(concern_error));
    error.details = Some(details.build());
    error
}

/// The labels of a command's error. A change stream whose server goes is opened again by its driver
/// only if it is told so; who reads another cursor doesn't look at that.
fn labels(command: &Command, part: Option<Part>, error: &Error) -> Vec<&'static str> {
    let mut labels = transactions::labels(part, command.ends_transaction, error).to_vec();
    if command.name == "getMore" && transactions::is_of_topology(error.code) {
        labels.push("ResumableChangeStreamError");
    }
    labels
}

/// Counts what a command took.
fn count_use(server: &Shared, operation: &Operation) {
    let class = Class::of(operation.command);
    let collection = operation.collection().filter(|_| class.is_of_collection);
    server.usage.count_command(class, &operation.database, collection, operation.worked());
}

/// Tells the log of an operation that took long, and the profiler, where that is asked for.
fn tell_if_slow(
    server: &Shared,
    (operation, sequences): (&Operation, &[DocumentSequence]),
    done: &Answer,
) {
    let time = operation.worked();
    let is_slow = server.log.tells_of(time);
    let is_profiled = match server.profiler.level(&operation.database) {
        profiler::Level::Off => false,
        profiler::Level::Slow => is_slow && operation.is_profiled(),
        profiler::Level::All => operation.is_profiled(),
    };
    if !is_slow && !is_profiled {
        return;
    }
    let told = profile::told(operation, sequences);
    let command = authorization::without_secrets(told.view());
    let slow = SlowOperation {
        connection: operation.peer.id,
        client: &operation.peer.address.to_string(),
        namespace: &operation.namespace(),
        command: command.view(),
        time,
        error_code: done.as_ref().err().map(|error| error.code.number()),
    };
    if is_slow {
        server.log.write_slow(&slow);
    }
    if is_profiled {
        profile::tell(server, operation, &slow, done);
    }
}

/// Runs a command by itself, or in its transaction.
fn run_part(command: &Command, mut request: Request<'_>) -> Answer {
    let server = request.server;
    concerns::transactions::check(command, request.database_name, &request.common)?;
    let interrupt = || request.operation.interrupt();
    if let Some(after) = request.common.after_time {
        concerns::wait_for(server, after, &interrupt())?;
    }
    if request.common.level == Level::Snapshot {
        request.moment = concerns::moment(server, (command.name, &request.common), &interrupt())?;
    }
    if let Some(Part::Statement { session, number, starts: false }) = request.common.part {
        transactions::check_api(server, (session, number), command.name, request.common.api)?;
    }
    match request.common.part {
        Some(Part::Statement { session, number, starts }) if !command.ends_transaction => {
            let starts = starts.then_some(request.common.api);
            transactions::run_statement(server, (session, number), starts, |current| {
                request.current = Some(current);
                let answer = run_handler(command, &request)?;
                Ok((answer, request.has_write_errors.get()))
            })
        }
        Some(Part::Write { session, number }) => {
            transactions::note_write(server, session, number)?;
            run_handler(command, &request)
        }
        _ => run_handler(command, &request),
    }
}

fn run_handler(command: &Command, request: &Request<'_>) -> Answer {
    let handler = match command.run {
        Run::Handler(handler) => handler,
        Run::Refused(why) => {
            let message = format!("{} is not supported by Frond: {why}", command.name);
            return Err(Error::invalid(Code::CommandNotSupported, message));
        }
        Run::NoSearch => return Err(Error::invalid(Code::SearchNotEnabled, NO_SEARCH_INDEXES)),
    };
    let mut answer = handler(request)?;
    if !request.common.acknowledged {
        answer = DocumentBuilder::new();
    }
    if let Some(failure) = &request.common.concern_failure {
        answer.append("writeConcernError", Value::from(&concern_error(failure)));
    }
    answer.append("ok", Value::Double(1.0));
    let bytes = answer.bytes();
    if bytes > REPLY_BYTES_MAX {
        let message =
            format!("the answer has {bytes} bytes, at most {REPLY_BYTES_MAX} can be sent");
        return Err(Error::invalid(Code::BSONObjectTooLarge, message));
    }
    // Most have it already: what was made without asking is counted from here on.
    request.room().wait_for(bytes)?;
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

fn check_size(server: &Shared, body: Document<'_>) -> Result<(), Error> {
    let bytes = body.as_bytes().len() as u64;
    let max = server.frond.document_bytes_max() + COMMAND_BYTES_MARGIN;
    if bytes > max {
        let message = format!("command of {bytes} bytes is too large, at most {max} are allowed");
        return Err(Error::invalid(Code::BSONObjectTooLarge, message));
    }
    Ok(())
}

fn check_allowed(command: &Command, database: &str) -> Result<(), Error> {
    if command.admin_only && database != "admin" {
        let message = format!("{} may only be run against the admin database.", command.name);
        return Err(Error::invalid(Code::Unauthorized, message));
    }
    Ok(())
}

fn check_sequences(command: &Command, sequences: &[DocumentSequence]) -> Result<(), Error> {
    for sequence in sequences {
        if !command.sequences.contains(&sequence.name.as_str()) {
            let message =
                format!("BSON field '{}.{}' is an unknown field.", command.name, sequence.name);
            return Err(Error::invalid(Code::Location(40415), message));
        }
    }
    Ok(())
}

fn command_not_found(name: &str) -> Error {
    let hint = suggestion::did_you_mean(name, commands::names());
    Error::invalid(Code::CommandNotFound, format!("no such command: '{name}'{hint}"))
}

fn protocol_error(error: &WireError) -> Error {
    let code = match error {
        WireError::Document(_) => Code::InvalidBSON,
        _ => Code::ProtocolError,
    };
    Error::invalid(code, error.to_string())
}
