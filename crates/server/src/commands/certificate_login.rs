//! `authenticate`: logging in by the certificate that the connection came with (MONGODB-X509).
//!
//! TLS has verified it: that its subject is a user of `$external` is all that is asked.

use std::time::Instant;

use frond_db::Error;
use frond_doc::{Document, DocumentBuilder, Value};
use frond_query::Code;

use crate::access::{EXTERNAL, UserName};
use crate::commands::login::check_restrictions;
use crate::fields::Fields;
use crate::logins::EndedLogin;
use crate::request::{Answer, Request};

/// The mechanism's name for clients.
const MECHANISM: &str = "MONGODB-X509";

/// `authenticate`
///
/// # Errors
/// Wrong fields; `MechanismUnavailable` (334); `ProtocolError` (17) on another database;
/// `AuthenticationFailed` (18).
pub fn run(request: &Request<'_>) -> Answer {
    let user = log_in(request, request.fields()?, request.database_name, false)?;
    let mut answer = DocumentBuilder::new();
    append(&mut answer, &user);
    Ok(answer)
}

/// Logs in within a `hello`, if it asks for that: what is wrong with it is reported when it is
/// asked for by itself.
pub fn speculate(request: &Request<'_>, login: Document<'_>, answer: &mut DocumentBuilder) {
    let database = login.get("db").and_then(|database| database.as_str()).unwrap_or(EXTERNAL);
    let fields = Fields::of_part("speculativeAuthenticate", login);
    if let Ok(user) = fields.and_then(|fields| log_in(request, fields, database, true)) {
        answer.begin_document("speculativeAuthenticate");
        append(answer, &user);
        answer.end();
    }
}

fn append(answer: &mut DocumentBuilder, user: &UserName) {
    answer
        .append("dbname", Value::String(&user.database))
        .append("user", Value::String(&user.user));
}

fn log_in(
    request: &Request<'_>,
    mut fields: Fields<'_>,
    database: &str,
    is_speculative: bool,
) -> Result<UserName, Error> {
    let mechanism = fields.required_string("mechanism")?;
    let named = fields.string("user")?;
    fields.ignore(&["authenticate", "db"]);
    fields.finish()?;
    if mechanism != MECHANISM {
        let message =
            format!("Received authentication for mechanism {mechanism} which is not enabled");
        return Err(Error::invalid(Code::MechanismUnavailable, message));
    }
    if database != EXTERNAL {
        let message = "X.509 authentication must always use the $external database.";
        return Err(Error::invalid(Code::ProtocolError, message));
    }
    let (server, peer, begun) = (request.server, request.peer, Instant::now());
    server.usage.logins().count_received(MECHANISM, is_speculative);
    let subject = peer.subject().map(str::to_owned);
    let user = subject.map(|user| UserName { database: EXTERNAL.to_owned(), user });
    let done = prove(request, user.as_ref(), named);
    let (mechanism, time) = (MECHANISM, begun.elapsed());
    let ended = EndedLogin { user: user.as_ref(), mechanism, is_speculative, time };
    match &done {
        Ok(()) => ended.report_success(server, peer),
        Err(error) => ended.report_failure(server, peer, error, error),
    }
    done?;
    user.ok_or_else(|| failed("No verified subject name available from client"))
}

/// Logs in the user whose the certificate is.
fn prove(request: &Request<'_>, user: Option<&UserName>, named: Option<&str>) -> Result<(), Error> {
    let user = user.ok_or_else(|| failed("No verified subject name available from client"))?;
    if named.is_some_and(|named| named != user.user) {
        return Err(failed("There is no x.509 client certificate matching the user."));
    }
    let server = request.server;
    let directory = server.accounts.directory(&server.frond)?;
    let known = directory.users.get(user).ok_or_else(|| failed("Authentication failed."))?;
    check_restrictions(request, user).map_err(|_| failed("Authentication failed."))?;
    request.peer.log_in(user.clone(), known.id)
}

fn failed(message: &str) -> Error {
    Error::invalid(Code::AuthenticationFailed, message)
}
