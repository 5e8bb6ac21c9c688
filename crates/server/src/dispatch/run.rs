//! Running one command, from the document that was sent to the answer.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use frond_db::memory_queue::MemoryShare;
use frond_db::request_profile::RequestProfile;
use frond_db::{Error, FindRequest, request_profile};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;
use frond_query::pipeline::NO_SEARCH_INDEXES;

use super::failure::{Failure, concern_error, guarded, with_concern_error};
use super::held::HeldRun;
use super::sent::{Admitted, ReceivedCommand};
use super::{faults, profile};
use crate::commands::{Command, Run};
use crate::common_fields::{Common, Level, Part};
use crate::concerns;
use crate::cursors::Parking;
use crate::held_commits::{HeldCommit, HeldCommits};
use crate::limits::REPLY_BYTES_MAX;
use crate::member::gate;
use crate::operations::Operation;
use crate::peer::Peer;
use crate::request::{Answer, Request};
use crate::shared::{Counter, Shared};
use crate::stable_api;
use crate::transactions::{self, StatementFields};
use crate::usage::Class;
use crate::wire::DocumentSequence;

/// Runs a command and returns the whole answer, `ok` included. `database` is given where it doesn't
/// stand in the command.
pub(crate) fn run(
    server: &Shared,
    peer: &Arc<Peer>,
    body: Document<'_>,
    sequences: &[DocumentSequence],
    database: Option<&str>,
) -> DocumentBuf {
    let (share, parking) = (RefCell::new(None), Parking::default());
    let aside = Aside { share: &share, parking: &parking, held: None };
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
    let (share, parking) = (RefCell::new(None), Parking::default());
    let aside = Aside { share: &share, parking: &parking, held: None };
    let sent = (&body.to_buf(), &[][..]);
    let answer = guarded(server, || try_run(server, peer, sent, Some(database), aside));
    (answer, share.into_inner())
}

/// What a command has besides its answer.
#[derive(Clone, Copy)]
pub(super) struct Aside<'a> {
    /// The memory that a large answer holds.
    pub share: &'a RefCell<Option<MemoryShare>>,
    /// Lets it wait without a thread.
    pub parking: &'a Parking,
    /// Takes the answer where it may be held until its commit is durable.
    pub held: Option<&'a RefCell<Option<HeldRun>>>,
}

/// Runs a command: finds what it is and whether it may run, runs it, and reports it.
pub(super) fn try_run(
    server: &Shared,
    peer: &Arc<Peer>,
    (document, sequences): (&DocumentBuf, &[DocumentSequence]),
    database: Option<&str>,
    Aside { share, parking, held }: Aside<'_>,
) -> Result<DocumentBuilder, Failure> {
    let resumed = parking.resumed();
    let sent = ReceivedCommand::read(server, (document, sequences), database)?;
    let ReceivedCommand { command, body, .. } = sent;
    let Admitted { common, rights, watched } =
        Admitted::read(server, peer, sent, resumed.is_some())?;
    let part = common.part;
    let _core = server.frond.cores().enter();
    let begin = || server.operations.begin(peer, command.name, (sent.database, document), &common);
    let resume = |(operation, since): &_| server.operations.resume(operation, *since);
    let running = resumed.as_ref().map_or_else(begin, resume);
    touch_session(server, &common, &running.operation)?;
    let concern_error = common.concern_failure.as_ref().map(concern_error);
    let fault_asked = faults::FaultCheck { server, peer, command, body, sequences, part };
    let fault = match resumed {
        None => faults::before(&fault_asked, &running.operation)?,
        Some(_) => Default::default(),
    };
    let held = held.filter(|_| may_be_held(server, &common, watched.is_some()));
    let commits = HeldCommits::new(held.is_some());
    let request = Request {
        server,
        peer,
        name: command.name,
        needs: command.needs,
        sent_name: sent.name,
        database_name: sent.database,
        body,
        sequences,
        common,
        operation: Arc::clone(&running.operation),
        rights,
        current: None,
        moment: None,
        has_write_errors: Cell::new(false),
        share,
        parking,
        commits: &commits,
    };
    let (done, commit, work) = run_profiled(command, request);
    let run = (command, part, Arc::clone(&running.operation));
    let ended = end_or_hold(server, (held, commit), run, (done, work));
    let Some((done, work)) = ended.filter(|_| !parking.is_parked()) else {
        running.keep();
        return Ok(DocumentBuilder::new());
    };
    watched.into_iter().for_each(|watched| watched.end(done.as_ref().err()));
    record_run(server, (&running.operation, sequences), &done, &work);
    let failed = |error| sent.failure(part, with_concern_error(error, concern_error.as_ref()));
    let answer = done.map_err(failed)?;
    faults::after(&fault_asked, fault, answer, concern_error.is_some())
}

/// Runs a command; returns what it came to, the commit on which that rests, and what it did.
fn run_profiled(
    command: &Command,
    request: Request<'_>,
) -> (Answer, Option<HeldCommit>, RequestProfile) {
    if command.counter == Counter::Command {
        request.server.count(Counter::Command, 1);
    }
    let (operation, commits) = (Arc::clone(&request.operation), request.commits);
    let command_sent: (&Operation, _) = (&operation, request.sequences);
    let statements_from = profile::statements_from(request.server, command_sent);
    request_profile::begin(statements_from, &operation.live);
    let done = run_part(command, request);
    let (done, commit) = commits.end(done, || operation.interrupt());
    (done, commit, request_profile::end())
}

/// Has the answer of a command that has run held, if it may be and rests on a commit; or else waits
/// for that, and returns what the command has come to.
fn end_or_hold(
    server: &Shared,
    (held, commit): (Option<&RefCell<Option<HeldRun>>>, Option<HeldCommit>),
    (command, part, operation): (&'static Command, Option<Part>, Arc<Operation>),
    (done, work): (Answer, RequestProfile),
) -> Option<(Answer, RequestProfile)> {
    match (held, commit, done) {
        (Some(held), Some(commit), Ok(answer)) => {
            held.replace(Some(HeldRun { commit, command, part, operation, answer, work }));
            None
        }
        (_, Some(commit), done) => Some((commit.wait(server).and(done), work)),
        (_, None, done) => Some((done, work)),
    }
}

/// Whether a command's answer may be held until its commit is durable: where nothing comes behind
/// the handler that would need the outcome.
fn may_be_held(server: &Shared, common: &Common, is_watched: bool) -> bool {
    common.acknowledged
        && common.concern_failure.is_none()
        && !is_watched
        && !server.fail_points.are_on()
}

/// Counts a command that has run, and has the profiler report it.
pub(super) fn record_run(
    server: &Shared,
    (operation, sequences): (&Arc<Operation>, &[DocumentSequence]),
    done: &Answer,
    work: &RequestProfile,
) {
    count_use(server, operation, done.as_ref().err());
    count_work(server, operation, work);
    profile::report(server, (operation, sequences), done, work);
}

/// Notes that a session is in use.
fn touch_session(server: &Shared, common: &Common, operation: &Operation) -> Result<(), Error> {
    common.session.map_or(Ok(()), |session| server.sessions.touch(session, operation.started()))
}

/// Runs a command by itself, or in its transaction.
fn run_part(command: &Command, mut request: Request<'_>) -> Answer {
    let server = request.server;
    concerns::transactions::check(command, request.database_name, &request.common)?;
    let interrupt = || request.operation.interrupt();
    if let Some(after) = request.common.after_time {
        concerns::wait_for(server, after, &interrupt())?;
    }
    if request.common.level == Level::Linearizable && command.name != concerns::GET_MORE {
        gate::confirm_leads(server, &interrupt())?;
    }
    if request.common.level == Level::Snapshot {
        request.moment = concerns::moment(server, (command.name, &request.common), &interrupt())?;
    }
    let api = request.common.api;
    match request.common.part {
        Some(Part::Statement { session, number, starts }) if !command.ends_transaction => {
            let peer = request.peer;
            let client = &peer.presence;
            let statement_fields = StatementFields { command: command.name, api, client, starts };
            transactions::run_statement(server, (session, number), statement_fields, |current| {
                request.current = Some(current);
                let answer = run_handler(command, &request)?;
                Ok((answer, request.has_write_errors.get()))
            })
        }
        Some(Part::Statement { session, number, .. }) => {
            transactions::check_api(server, (session, number), command.name, api)?;
            run_handler(command, &request)
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
    check_view(request)?;
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

/// Checks that the view that a command reads with `apiStrict` has no other stages than the command
/// itself may have: a client that isn't strict may have made it.
fn check_view(request: &Request<'_>) -> Result<(), Error> {
    if !request.common.api.is_strict() || !["aggregate", "count", "find"].contains(&request.name) {
        return Ok(());
    }
    let Value::String(name) = request.argument() else { return Ok(()) };
    match request.database()?.pipeline_of_view(name, &FindRequest::default())? {
        Some((_, stages)) => stages.as_value().as_array().map_or(Ok(()), stable_api::check_stages),
        None => Ok(()),
    }
}

/// Counts what a command did.
fn count_work(server: &Shared, operation: &Operation, work: &RequestProfile) {
    let goes_on = operation.command == "getMore";
    let is_tailable = || operation.sent.get("tailable").is_some_and(|value| value.is_truthy());
    let is_find = operation.command == "find";
    server.usage.work().count_command(work, goes_on, is_find && is_tailable());
}

/// Counts what a command took.
fn count_use(server: &Shared, operation: &Operation, error: Option<&Error>) {
    server.usage.commands().count(operation.command, error.is_some());
    if error.is_some_and(|error| error.code == Code::MaxTimeMSExpired) {
        server.usage.work().count_out_of_time();
    }
    let class = Class::of(operation.command);
    let collection = operation.collection().filter(|_| class.is_of_collection);
    server.usage.count_command(class, &operation.database, collection, operation.worked());
}
