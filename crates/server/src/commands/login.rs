//! Logging in and out: saslStart, saslContinue, logout, connectionStatus, and
//! `speculativeAuthenticate` and `saslSupportedMechs` of `hello`. The protocol is in
//! [`crate::scram`].
//!
//! Every failure is reported in one way, whatever it is (no such user, a wrong password, a broken
//! message), after the same number of messages: a user that doesn't exist has a salt too, always
//! the same.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use frond_db::{DatabaseName, Error};
use frond_doc::extended_json::base64;
use frond_doc::{Binary, Document, DocumentBuilder, Value};
use frond_query::Code;

use crate::access::{Directory, EXTERNAL, Privilege, User, UserName, append_roles};
use crate::fields::Fields;
use crate::logins::EndedLogin;
use crate::peer::{Conversation, Stage};
use crate::request::{Answer, Request};
use crate::scram::{ClientFirst, Credentials, Exchange, Mechanism, OF_ROUTERS};

/// `AuthenticationRestrictionUnmet`
const RESTRICTION_UNMET: Code = Code::Location(214);

/// The answer to a step of a login.
struct Step {
    conversation: i32,
    is_done: bool,
    payload: String,
    /// Whether it is sent as base64, as the client's was.
    is_base64: bool,
}

/// What a client says in a step of a login: bytes, or base64 of them.
struct Payload<'a> {
    bytes: Cow<'a, [u8]>,
    is_base64: bool,
}

/// `saslStart`
///
/// # Errors
/// Wrong fields; `AuthenticationFailed` (18); `MechanismUnavailable` (334).
pub fn start(request: &Request<'_>) -> Answer {
    let is_speculative = false;
    let begun = begin(request, request.fields()?, request.database_name, is_speculative);
    let begun = begun.inspect_err(|error| {
        let mechanism = request.body.get("mechanism").and_then(|name| name.as_str());
        let mechanism = mechanism.unwrap_or_default();
        let login = EndedLogin { user: None, mechanism, is_speculative, time: Duration::ZERO };
        login.report_failure(request.server, request.peer, error, error);
    })?;
    Ok(answer(&begun.step))
}

/// A login that has begun.
struct Begun {
    step: Step,
    /// Whether there is such a user who doesn't log in by this mechanism.
    is_elsewise: bool,
}

/// Reads the fields of a `saslStart` and answers the client's first message.
fn begin(
    request: &Request<'_>,
    mut fields: Fields<'_>,
    database: &str,
    is_speculative: bool,
) -> Result<Begun, Error> {
    let begun = Instant::now();
    let name = fields.required_string("mechanism")?;
    let payload = Payload::read(&mut fields)?;
    fields.ignore(&["autoAuthorize", "db", "saslStart"]);
    let mut skips_empty = false;
    if let Some(options) = fields.document("options")? {
        let mut options = Fields::of_part("saslStart.options", options)?;
        skips_empty = options.boolean("skipEmptyExchange")?;
        options.finish()?;
    }
    fields.finish()?;
    let server = request.server;
    let of_router = server.router_credentials.as_ref().filter(|_| name == OF_ROUTERS);
    let mechanism = match of_router {
        Some(_) => Some((Mechanism::Sha256, OF_ROUTERS)),
        None => Mechanism::named(name).map(|mechanism| (mechanism, mechanism.name())),
    };
    let Some((mechanism, name)) = mechanism else {
        let message = format!("Received authentication for mechanism {name} which is not enabled");
        return Err(Error::invalid(Code::MechanismUnavailable, message));
    };
    server.usage.logins().count_received(name, is_speculative);
    let first = ClientFirst::parse(&payload.bytes).map_err(|_| failed())?;
    let user = UserName { database: home(database)?, user: first.user.clone() };
    let directory = server.accounts.directory(&server.frond)?;
    let (credentials, id) = match of_router {
        Some(key) => (key.clone(), directory.users.get(&user).map(|known| known.id)),
        None => credentials(&directory, &user, mechanism),
    };
    let is_elsewise = id.is_none() && directory.users.contains_key(&user);
    let (exchange, message) = Exchange::begin(&first, mechanism, credentials)?;
    let id = request.peer.begin_login(|number| Conversation {
        id: number,
        user,
        mechanism: name,
        is_speculative,
        begun,
        skips_empty,
        stage: Stage::Proof(Box::new(exchange), id),
    });
    let is_base64 = payload.is_base64;
    let step = Step { conversation: id, is_done: false, payload: message, is_base64 };
    Ok(Begun { step, is_elsewise })
}

/// Returns the credentials by which a login is checked, and the user's id, if there is such a user
/// that logs in so.
fn credentials(
    directory: &Directory,
    user: &UserName,
    mechanism: Mechanism,
) -> (Credentials, Option<[u8; 16]>) {
    // Worked out in any case, so that it takes the same time.
    let unknown = Credentials::of_unknown_user(mechanism, &directory.secret, &user.to_string());
    let known = directory.users.get(user);
    let own = known.and_then(|known| Some((known.credentials_of(mechanism)?.clone(), known.id)));
    own.map_or((unknown, None), |(credentials, id)| (credentials, Some(id)))
}

/// `saslContinue`
///
/// # Errors
/// Wrong fields; `AuthenticationFailed` (18).
pub fn go_on(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let id = fields.integer("conversationId")?;
    let id = id.ok_or_else(|| fields.missing("conversationId"))?;
    let Payload { bytes: payload, is_base64 } = Payload::read(&mut fields)?;
    fields.finish()?;
    let Some(conversation) = request.peer.take_conversation() else {
        return Err(Error::invalid(Code::ProtocolError, "No SASL session state found"));
    };
    if i64::from(conversation.id) != id {
        let message = "sasl: Mismatched conversation id";
        return Err(Error::invalid(Code::ProtocolError, message));
    }
    match &conversation.stage {
        Stage::Proof(exchange, user) => {
            let (address, now) = (request.peer.address.ip(), Instant::now());
            let failures = &request.server.accounts.failures;
            // Late however it turns out, if too many went wrong before.
            request.peer.delay_answer(failures.delay(address, &conversation.user, now));
            let (Ok(message), Some(user)) = (exchange.finish(&payload), *user) else {
                failures.failed(address, &conversation.user, now);
                let reason = reason(request, &conversation);
                return Err(reported_failure(request, &conversation, &reason));
            };
            failures.succeeded(address, &conversation.user);
            let is_done = conversation.skips_empty;
            let step = Step { conversation: conversation.id, is_done, payload: message, is_base64 };
            if is_done {
                log_in(request, conversation, user)?;
            } else {
                let stage = Stage::VerifiedLogin(user);
                request.peer.put_conversation(Conversation { stage, ..conversation });
            }
            Ok(answer(&step))
        }
        Stage::VerifiedLogin(user) if payload.is_empty() => {
            let (number, user) = (conversation.id, *user);
            log_in(request, conversation, user)?;
            let payload = String::new();
            Ok(answer(&Step { conversation: number, is_done: true, payload, is_base64 }))
        }
        Stage::VerifiedLogin(_) => Err(reported_failure(request, &conversation, &failed())),
    }
}

/// Logs in a user who has proved their identity, and records it.
fn log_in(request: &Request<'_>, login: Conversation, id: [u8; 16]) -> Result<(), Error> {
    if let Err(reason) = check_restrictions(request, &login.user) {
        return Err(reported_failure(request, &login, &reason));
    }
    let done = request.peer.log_in(login.user.clone(), id);
    let ended = EndedLogin::of(&login);
    match &done {
        Ok(()) => ended.report_success(request.server, request.peer),
        Err(error) => ended.report_failure(request.server, request.peer, error, error),
    }
    done
}

/// Checks that a user may log in over the request's connection.
///
/// # Errors
/// `AuthenticationRestrictionUnmet` (214), for the operator; what reading the users may meet.
pub fn check_restrictions(request: &Request<'_>, name: &UserName) -> Result<(), Error> {
    let (server, ends) = (request.server, request.peer.ends());
    let directory = server.accounts.directory(&server.frond)?;
    if directory.users.get(name).is_none_or(|user| directory.may_log_in(user, ends)) {
        return Ok(());
    }
    let shown = |address: Option<std::net::IpAddr>| {
        address.map_or_else(|| "no address".to_owned(), |address| address.to_string())
    };
    let (client, local) = (shown(ends.client), shown(ends.server));
    let message = format!("No restriction allows a login from {client} at {local}");
    Err(Error::invalid(RESTRICTION_UNMET, message))
}

/// Reports that a login has failed: to the operator why, to the client only that.
fn reported_failure(request: &Request<'_>, login: &Conversation, reason: &Error) -> Error {
    let error = failed();
    EndedLogin::of(login).report_failure(request.server, request.peer, &error, reason);
    error
}

/// Returns why a proof wasn't taken, in mongod's words.
fn reason(request: &Request<'_>, login: &Conversation) -> Error {
    let (user, server) = (&login.user, request.server);
    let is_known = |directory: Arc<Directory>| directory.users.get(user).map(|known| known.id);
    let known = server.accounts.directory(&server.frond).ok().and_then(is_known);
    match (known, &login.stage) {
        (None, _) => {
            let (name, database) = (&user.user, &user.database);
            let message = format!("Could not find user \"{name}\" for db \"{database}\"");
            Error::invalid(Code::UserNotFound, message)
        }
        (Some(_), Stage::Proof(_, None)) => {
            let name = login.mechanism;
            let message = format!("the user has no credentials for {name}");
            Error::invalid(Code::MechanismUnavailable, message)
        }
        (Some(_), _) => {
            let message = "SCRAM authentication failed, storedKey mismatch";
            Error::invalid(Code::AuthenticationFailed, message)
        }
    }
}

fn answer(step: &Step) -> DocumentBuilder {
    let mut answer = DocumentBuilder::new();
    append(&mut answer, step);
    answer
}

fn append(answer: &mut DocumentBuilder, step: &Step) {
    let bytes = step.payload.as_bytes();
    answer
        .append("conversationId", Value::Int32(step.conversation))
        .append("done", Value::Boolean(step.is_done));
    match step.is_base64 {
        true => answer.append("payload", Value::String(&base64::encode(bytes))),
        false => answer.append("payload", Value::Binary(Binary { subtype: 0, bytes })),
    };
}

impl<'a> Payload<'a> {
    /// Reads the field of a command.
    ///
    /// # Errors
    /// Missing; `BadValue` (2) for another type; 10270 for what isn't base64.
    fn read(fields: &mut Fields<'a>) -> Result<Payload<'a>, Error> {
        match fields.value("payload") {
            Some(Value::Binary(Binary { subtype: 0, bytes })) => {
                Ok(Payload { bytes: Cow::Borrowed(bytes), is_base64: false })
            }
            Some(Value::String(text)) => {
                let bytes = base64::decode(text).ok_or_else(|| {
                    let message = "Failed decoding SASL payload: invalid base64";
                    Error::invalid(Code::Location(10270), message)
                })?;
                Ok(Payload { bytes: Cow::Owned(bytes), is_base64: true })
            }
            Some(Value::Binary(binary)) => {
                let message = format!(
                    "Invalid SASLPayload subtype. Expected BinDataGeneral, got: {}",
                    binary.subtype
                );
                Err(Error::bad_value(message))
            }
            Some(other) => {
                let found = other.element_type().alias();
                let message =
                    format!("Invalid SASLPayload type. Expected Base64 or BinData, got: {found}");
                Err(Error::bad_value(message))
            }
            None => Err(fields.missing("payload")),
        }
    }
}

fn failed() -> Error {
    Error::invalid(Code::AuthenticationFailed, "Authentication failed.")
}

/// The database that a user belongs to who logs in at any of its versions.
///
/// # Errors
/// `InvalidNamespace` if there can be no such database.
pub fn home(database: &str) -> Result<String, Error> {
    if database == EXTERNAL {
        return Ok(database.to_owned());
    }
    Ok(DatabaseName::parse(database)?.name)
}

/// Begins a login within a `hello`, if it asks for one: an error is reported when the login is
/// asked for by itself.
pub fn speculate(request: &Request<'_>, login: Document<'_>, answer: &mut DocumentBuilder) {
    if login.iter().next().is_none_or(|(name, _)| name != "saslStart") {
        return;
    }
    let database = login.get("db").and_then(|database| database.as_str()).unwrap_or("admin");
    let fields = Fields::of_part("speculativeAuthenticate", login);
    match fields.and_then(|fields| begin(request, fields, database, true)) {
        // The client guessed the mechanism: it gets the right one beside this, and begins again.
        Ok(Begun { is_elsewise: true, .. }) => drop(request.peer.take_conversation()),
        Ok(Begun { step, .. }) => {
            answer.begin_document("speculativeAuthenticate");
            append(answer, &step);
            answer.end();
        }
        Err(_) => {}
    }
}

/// Answers by which mechanisms a user, `database.user`, can log in: one that doesn't exist by all.
///
/// # Errors
/// `BadValue` if the name has no database; what reading the users may meet.
pub fn append_mechanisms(
    request: &Request<'_>,
    full_name: &str,
    answer: &mut DocumentBuilder,
) -> Result<(), Error> {
    let Some((database, user)) = full_name.split_once('.') else {
        let message = "UserName must contain a '.' separated database.user pair";
        return Err(Error::invalid(Code::BadValue, message));
    };
    let name = UserName { database: home(database)?, user: user.to_owned() };
    let server = request.server;
    server.usage.logins().count_mechanism_queries();
    let directory = server.accounts.directory(&server.frond)?;
    let known: Option<&User> = directory.users.get(&name);
    answer.begin_array("saslSupportedMechs");
    for mechanism in Mechanism::ALL {
        if known.is_none_or(|user| user.credentials_of(mechanism).is_some()) {
            answer.push(Value::String(mechanism.name()));
        }
    }
    answer.end();
    Ok(())
}

/// `logout`
///
/// # Errors
/// 40415 for any field.
pub fn log_out(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    request.peer.log_out();
    Ok(DocumentBuilder::new())
}

/// `connectionStatus`: who has logged in, and what they may do.
///
/// # Errors
/// 40415 for any other field; `TypeMismatch` (14).
pub fn connection_status(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let shows_privileges = fields.boolean("showPrivileges")?;
    fields.finish()?;
    let rights = request.peer.rights(&request.server.accounts, &request.server.frond)?;
    let mut answer = DocumentBuilder::new();
    answer.begin_document("authInfo");
    answer.begin_array("authenticatedUsers");
    if let Some(rights) = &rights {
        answer.push_begin_document();
        rights.login.user.append(&mut answer);
        answer.end();
    }
    answer.end();
    let roles = rights.as_ref().map_or(&[][..], |rights| &rights.roles);
    append_roles(&mut answer, "authenticatedUserRoles", roles);
    if shows_privileges {
        let privileges = rights.as_ref().map_or(&[][..], |rights| rights.grants.privileges());
        Privilege::append_all(&mut answer, "authenticatedUserPrivileges", privileges);
    }
    answer.end();
    Ok(answer)
}
