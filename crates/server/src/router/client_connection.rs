//! A client's connection: its messages one after the other, each with its answer.
//!
//! *Invariants*
//! 1. With a router's key nothing reaches a line's server before a user has logged in, except
//!    logins and commands about the server itself. So a client is never taken for one on the
//!    server's own machine, which may make the first user.
//! 2. A message is forwarded once; again only where a line has refused it, since another has the
//!    database ([`stale_route`](super::stale_route)). When the client goes, so does the connection
//!    on which its message is worked on, and the server ends it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use frond_db::Error;
use frond_doc::{DocumentBuf, Value, document};
use frond_query::Code;
use tokio::io::AsyncBufReadExt;
use tokio::time::Instant;

use super::forward::{Refusal, forward};
use super::frames::{self, Socket};
use super::login::{self, Identity};
use super::route::{self, LocalCommand, Route, route_for};
use super::routed_request::{LEADER_WAIT_MAX, RoutedRequest};
use super::scatter_gather::scatter_gather;
use super::shared::Shared;
use super::stale_route::{Verdict, verdict};
use super::table::Table;
use super::upstream::{Upstream, decoded, is_ok};
use super::{local_answers, moves, sharding};
use crate::errors::error_builder;
use crate::wire::{LegacyQuery, LegacyReply, Message, OperationCode};

/// A client's connection to the router.
pub(super) struct ClientConnection {
    shared: Arc<Shared>,
    connection: i32,
    identity: Option<Identity>,
    /// A login that goes on: its connection, and that connection's server.
    login: Option<(Upstream, String)>,
}

/// The answer to a client: a whole message, or a document to be put into one.
enum Answer {
    Whole(Vec<u8>),
    Body(DocumentBuf),
    Nothing,
}

impl ClientConnection {
    /// Serves a client that has just come.
    pub fn new(shared: Arc<Shared>, connection: i32) -> ClientConnection {
        ClientConnection { shared, connection, identity: None, login: None }
    }

    /// Serves the client until it goes.
    ///
    /// # Errors
    /// An error of the socket; what is no message.
    pub async fn run(mut self, mut socket: Socket) -> io::Result<()> {
        while let Some((header, mut message)) = frames::read(&mut socket).await? {
            self.shared.counts.messages.fetch_add(1, Ordering::Relaxed);
            let answer = match header.operation {
                OperationCode::Message => {
                    frames::forbid_exhaust(&mut message);
                    tokio::select! {
                        answer = self.answer(&message, header.request_id) => answer?,
                        () = gone(&mut socket) => return Ok(()),
                    }
                }
                OperationCode::Query => Some(self.answer_legacy(message, header.request_id).await?),
                // None was agreed on.
                OperationCode::Compressed | OperationCode::Reply => return Ok(()),
            };
            if let Some(answer) = answer {
                frames::write(&mut socket, &answer).await?;
            }
        }
        Ok(())
    }

    /// A driver's first `hello`.
    async fn answer_legacy(&self, message: Vec<u8>, id: i32) -> io::Result<Vec<u8>> {
        let query = LegacyQuery::decode(Bytes::from(message));
        let query = query.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let ask = RoutedRequest::read(query.command());
        let hello = ask.filter(|ask| route::own(ask.name) == Some(LocalCommand::Hello));
        let Some(hello) = hello else {
            let what = "OP_QUERY is taken for hello only";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        };
        let answer = self.hello(&hello).await;
        Ok(LegacyReply::encode_one(answer.view(), 0, id))
    }

    async fn answer(&mut self, message: &[u8], id: i32) -> io::Result<Option<Vec<u8>>> {
        let ask = frames::body(message).and_then(RoutedRequest::read);
        let ask = ask.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        let answer = self.answer_ask(message, &ask).await.unwrap_or_else(|refusal| {
            self.shared.counts.refused.fetch_add(1, Ordering::Relaxed);
            Answer::Body(refusal_body(&refusal))
        });
        Ok(match answer {
            _ if frames::wants_no_answer(message) => None,
            Answer::Whole(answer) => Some(answer),
            Answer::Body(body) => Some(Message::new(body).encode(0, id)),
            Answer::Nothing => None,
        })
    }

    async fn answer_ask(
        &mut self,
        message: &[u8],
        ask: &RoutedRequest<'_>,
    ) -> Result<Answer, Refusal> {
        if let Some(own) = route::own(ask.name) {
            return self.answer_own(own, message, ask).await;
        }
        if ask.name == "authenticate" {
            let message = "a router ends TLS: certificates log in at a line's own servers";
            return Err(Error::invalid(Code::MechanismUnavailable, message).into());
        }
        if self.shared.key.is_some() && self.identity.is_none() && !route::is_open_to_all(ask.name)
        {
            return Err(unauthorized(ask).into());
        }
        let answer = self.answer_by_table(message, ask).await;
        // A statement that fails aborts its transaction; this one no server has seen.
        if let Err(refusal) = &answer
            && ask.in_transaction()
            && !ask.begins_transaction()
            && refusal.error.code != Code::HostUnreachable
        {
            self.abort_transaction(ask).await;
        }
        answer
    }

    /// Aborts the transaction of a statement that was refused. If that fails, it is left to its
    /// server's limit of time.
    async fn abort_transaction(&self, refused: &RoutedRequest<'_>) {
        let (Some(session), Some(number)) = (refused.body.get("lsid"), refused.number()) else {
            return;
        };
        let abort = document! {
            "abortTransaction": 1_i32, "lsid": session, "txnNumber": number, "autocommit": false,
            "$db": "admin",
        };
        let Some(ask) = RoutedRequest::read(abort.view()) else { return };
        let message = Message::new(abort.clone()).encode(1, 0);
        drop(self.end_transaction(&message, &ask).await);
    }

    /// Sends a request to a line and returns the answer; sends it again where the table was wrong
    /// and nothing was done.
    async fn answer_by_table(
        &mut self,
        message: &[u8],
        ask: &RoutedRequest<'_>,
    ) -> Result<Answer, Refusal> {
        let end = Instant::now() + LEADER_WAIT_MAX;
        let mut table = self.table(ask).await?;
        loop {
            let line = match route_for(ask, message, &table)? {
                Route::LocalCommand(own) => return self.answer_own(own, message, ask).await,
                Route::Broadcast(each) => {
                    let (shared, identity) = (&self.shared, self.identity.as_ref());
                    let answer = scatter_gather(shared, each, identity, message, ask, &table).await;
                    return answer.map(Answer::Body);
                }
                Route::Line(line) => line,
            };
            // Statements of a transaction that has begun go where it began, and end there.
            let begins = !ask.in_transaction() || ask.begins_transaction();
            if begins && table.is_held(ask.database) {
                table = self.later_table(&table, end, ask).await?;
                continue;
            }
            let token = self.pin(ask, &line.name)?;
            let identity = self.identity.as_ref();
            let query = sharding::query(&self.shared, &table, (message, ask));
            let message = query.as_deref().unwrap_or(message);
            let answer = forward(&self.shared, &line, identity, message, ask).await?;
            let outcome = answer.as_deref().map_or(Verdict::Answer, |answer| verdict(answer, ask));
            if outcome == Verdict::Answer {
                return whole(answer, token.then_some(&*line.name));
            }
            // The next that is read may be on its way already.
            let now = self.shared.table_now().unwrap_or(table);
            let next = self.later_table(&now, end, ask).await?;
            let later = self.later_table(&next, end, ask).await?;
            let holds = |table: &Arc<Table>| match ask.database {
                // It names its databases within.
                "admin" => table.any_held(),
                database => table.is_held(database),
            };
            // A move that was taken back has stopped it, too.
            let has_moved = [&now, &next, &later].into_iter().any(holds)
                || route_for(ask, message, &later).is_ok_and(|route_for| !route_for.is_line(&line));
            match (outcome, has_moved) {
                // A branch that its users have closed.
                (Verdict::PerhapsMoved, false) => {
                    return whole(answer, token.then_some(&*line.name));
                }
                _ if !begins => return Err(moved_within_transaction(ask)),
                _ => table = later,
            }
        }
    }

    /// A table that was read later; if none is by `end`, why there is no answer.
    async fn later_table(
        &self,
        known: &Arc<Table>,
        end: Instant,
        ask: &RoutedRequest<'_>,
    ) -> Result<Arc<Table>, Refusal> {
        let later = match Instant::now() < end {
            true => self.shared.later_table(known, end).await,
            false => None,
        };
        later.ok_or_else(|| {
            let message = format!(
                "database {} is being moved to another line, and not yet there: movePrimary goes \
                 on with a move that has stopped, frondAbortMove takes it back",
                ask.database
            );
            let error = Error::invalid(Code::HostUnreachable, message);
            Refusal { error, labels: ask.labels_when_lost() }
        })
    }

    /// Notes or checks the line of a statement of a transaction; returns whether it is one.
    fn pin(&self, ask: &RoutedRequest<'_>, line: &str) -> Result<bool, Refusal> {
        let (true, Some(session), Some(number)) =
            (ask.in_transaction(), ask.session(), ask.number())
        else {
            return Ok(false);
        };
        let was_there = self.shared.pins.note(session, number, ask.database);
        match self.shared.pins.line(session, number) {
            Some(began) if began != line && was_there => Err(moved_within_transaction(ask)),
            Some(began) if began != line => {
                let message = format!(
                    "a transaction works within one line: this one began on the line {began}, and {} is \
                     led by {line}",
                    ask.database
                );
                Err(Error::invalid(Code::OperationNotSupportedInTransaction, message).into())
            }
            _ => {
                if ask.begins_transaction() {
                    self.shared.pins.begin(session, number, line, ask.database);
                }
                Ok(true)
            }
        }
    }

    /// The table, once it is known.
    async fn table(&self, ask: &RoutedRequest<'_>) -> Result<Arc<Table>, Refusal> {
        let end = Instant::now() + LEADER_WAIT_MAX;
        self.shared.table(end).await.ok_or_else(|| {
            let message = "the table of lines can't be read from the default line".to_owned();
            let error = Error::invalid(Code::HostUnreachable, message);
            Refusal { error, labels: ask.labels_when_lost() }
        })
    }

    async fn answer_own(
        &mut self,
        own: LocalCommand,
        message: &[u8],
        ask: &RoutedRequest<'_>,
    ) -> Result<Answer, Refusal> {
        let is_unknown = self.shared.key.is_some() && self.identity.is_none();
        if is_unknown
            && matches!(
                own,
                LocalCommand::BalancerStatus
                    | LocalCommand::ServerStatus
                    | LocalCommand::KillOp
                    | LocalCommand::EndTransaction
                    | LocalCommand::Move
            )
        {
            return Err(unauthorized(ask).into());
        }
        Ok(match own {
            LocalCommand::Hello => Answer::Body(self.hello(ask).await),
            LocalCommand::Ping => Answer::Body(local_answers::ok_reply()),
            LocalCommand::IsDbGrid => Answer::Body(local_answers::is_db_grid(&self.shared)),
            LocalCommand::BalancerStatus => Answer::Body(sharding::balancer()),
            LocalCommand::ServerStatus => Answer::Body(local_answers::status(&self.shared)),
            LocalCommand::SaslStart => self.begin_login(message, ask).await?,
            LocalCommand::SaslContinue => self.go_on_with_login(message).await?,
            LocalCommand::LogOut => {
                (self.identity, self.login) = (None, None);
                Answer::Body(local_answers::ok_reply())
            }
            LocalCommand::KillOp => self.kill(ask).await?,
            LocalCommand::EndTransaction => self.end_transaction(message, ask).await?,
            LocalCommand::Move => {
                Answer::Body(moves::run(&self.shared, self.identity.as_ref(), ask).await?)
            }
        })
    }

    async fn hello(&self, ask: &RoutedRequest<'_>) -> DocumentBuf {
        let Some(user) = ask.body.get("saslSupportedMechs") else {
            return local_answers::hello(ask, self.connection, None);
        };
        let command = document! { "hello": 1_i32, "saslSupportedMechs": user };
        let answer = self.shared.ask_default(command.view()).await;
        let outcome = answer.ok().filter(|answer| answer.get("saslSupportedMechs").is_some());
        let all = local_answers::all_mechanisms();
        let mechanisms = match &outcome {
            Some(outcome) => outcome.get("saslSupportedMechs"),
            None => all.get("all"),
        };
        local_answers::hello(ask, self.connection, mechanisms.and_then(|names| names.as_array()))
    }

    /// `saslStart`, on a connection to the default line that is this login's alone.
    async fn begin_login(
        &mut self,
        message: &[u8],
        ask: &RoutedRequest<'_>,
    ) -> Result<Answer, Refusal> {
        (self.identity, self.login) = (None, None);
        if self.shared.key.is_none() {
            let message = "this router has no --router-key, so it can't act for users";
            return Err(Error::invalid(Code::AuthenticationFailed, message).into());
        }
        let mechanism = ask.body.get("mechanism").and_then(|name| name.as_str());
        if mechanism == Some(login::MECHANISM) {
            let message = "routers log in at servers, not at routers";
            return Err(Error::invalid(Code::MechanismUnavailable, message).into());
        }
        let opened = self.shared.connect_default().await.map_err(lost)?;
        self.login = Some(opened);
        self.go_on_with_login(message).await
    }

    async fn go_on_with_login(&mut self, message: &[u8]) -> Result<Answer, Refusal> {
        let Some((mut upstream, leader)) = self.login.take() else {
            let message = "No SASL session state found";
            return Err(Error::invalid(Code::ProtocolError, message).into());
        };
        let answer = upstream.exchange(message).await.map_err(lost)?;
        let body = frames::answer_body(&answer).map_err(lost)?;
        if !is_ok(body) {
            return whole(Some(answer), None);
        }
        if !body.get("done").is_some_and(|done| done.is_truthy()) {
            self.login = Some((upstream, leader));
            return whole(Some(answer), None);
        }
        // The server says who has logged in, not the client.
        let status = document! { "connectionStatus": 1_i32 };
        let status = upstream.command("admin", status.view()).await.map_err(lost)?;
        self.identity = login::identity_of(status.view());
        if let Some(identity) = &self.identity {
            self.shared.pool.put(&leader, Some(identity), upstream);
        }
        whole(Some(answer), None)
    }

    /// `killOp` of an operation as `currentOp` names it: `LINE:NUMBER`.
    async fn kill(&self, ask: &RoutedRequest<'_>) -> Result<Answer, Refusal> {
        let named = ask.body.get("op").and_then(|op| op.as_str());
        let named = named.and_then(|op| op.rsplit_once(':'));
        let number = named.and_then(|(line, number)| Some((line, number.parse::<i64>().ok()?)));
        let Some((line, number)) = number else {
            let message = "a router's operations are named LINE:NUMBER";
            return Err(Error::bad_value(message).into());
        };
        let table = self.table(ask).await?;
        let line = table.lines().find(|known| known.name == line);
        let line = line.ok_or_else(|| Error::bad_value("there is no such line"))?;
        let command = document! { "killOp": 1_i32, "op": number, "$db": "admin" };
        let message = Message::new(command).encode(1, 0);
        let identity = self.identity.as_ref();
        let answer = forward(&self.shared, line, identity, &message, ask).await?;
        let answer = decoded(answer.unwrap_or_default()).map_err(lost)?;
        Ok(Answer::Body(frames::without_moment(answer.view())))
    }

    /// `commitTransaction` or `abortTransaction`, on the line where it began.
    async fn end_transaction(
        &self,
        message: &[u8],
        ask: &RoutedRequest<'_>,
    ) -> Result<Answer, Refusal> {
        let noted = ask.session().zip(ask.number());
        let noted = noted.and_then(|(session, number)| self.shared.pins.line(session, number));
        let token = ask.body.get("recoveryToken").and_then(|token| token.as_document());
        let outcome = token.and_then(|token| Some(token.get("line")?.as_str()?.to_owned()));
        let Some(name) = noted.or(outcome) else {
            let message = "no statement of this transaction came through this router";
            return Err(Error::invalid(Code::NoSuchTransaction, message).into());
        };
        let table = self.table(ask).await?;
        let line = table.lines().find(|line| line.name == name);
        let line = line.ok_or_else(|| {
            let message = format!("the line {name}, where the transaction began, is gone");
            Error::invalid(Code::NoSuchTransaction, message)
        })?;
        let identity = self.identity.as_ref();
        let answer = forward(&self.shared, line, identity, message, ask).await?;
        whole(answer, Some(&line.name))
    }
}

/// An answer of a line, as the client gets it.
fn whole(answer: Option<Vec<u8>>, transaction_on: Option<&str>) -> Result<Answer, Refusal> {
    let Some(answer) = answer else { return Ok(Answer::Nothing) };
    Ok(Answer::Whole(frames::rewrite(answer, transaction_on).map_err(lost)?))
}

fn lost(error: io::Error) -> Refusal {
    Error::invalid(Code::HostUnreachable, error.to_string()).into()
}

/// Returns the refusal that a database has moved since a transaction began: drivers run it again,
/// where it is now.
fn moved_within_transaction(ask: &RoutedRequest<'_>) -> Refusal {
    let message =
        format!("database {} has moved to another line since the transaction began", ask.database);
    let error = Error::invalid(Code::WriteConflict, message);
    Refusal { error, labels: &["TransientTransactionError"] }
}

fn unauthorized(ask: &RoutedRequest<'_>) -> Error {
    let message = format!("Command {} requires authentication", ask.name);
    Error::invalid(Code::Unauthorized, message)
}

fn refusal_body(refusal: &Refusal) -> DocumentBuf {
    let mut answer = error_builder(&refusal.error);
    if !refusal.labels.is_empty() {
        answer.begin_array("errorLabels");
        for label in refusal.labels {
            answer.push(Value::String(label));
        }
        answer.end();
    }
    answer.build()
}

/// Ends when the client has gone; not if it sends more meanwhile.
async fn gone(socket: &mut Socket) {
    if socket.fill_buf().await.is_ok_and(|more| !more.is_empty()) {
        std::future::pending::<()>().await;
    }
}
