//! The requests of the console's page to the server, by `POST` and JSON.
//!
//! | path | takes | answers |
//! |---|---|---|
//! | `/api/session` | nothing | `{auth, readOnly, version, user, database}`: `user` is null where no user has logged in |
//! | `/api/login` | `{user, password, database}` | as `/api/session`, and a cookie; or 401 |
//! | `/api/logout` | nothing | as `/api/session` |
//! | `/api/command` | `{db, command}` | the command's answer, `ok` included |
//!
//! Commands and answers are canonical extended JSON (v2), so that each value keeps its type. A
//! command that fails is answered as over the wire, by 200 and `ok: 0`; 401 asks for a login.
//!
//! A password is checked by the conversation that drivers have with the server, SCRAM-SHA-256 or
//! else SCRAM-SHA-1, of which both sides are here.

mod read_only;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use frond_doc::extended_json::{self, Form};
use frond_doc::{Binary, DocumentBuf, Value, document};
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::{HeaderMap, Request, Response, StatusCode};
use tokio::sync::oneshot;

use super::logins::VerifiedLogin;
use super::text_memory::{BodyError, TextShare};
use super::{Answer, Console, text};
use crate::access::UserName;
use crate::dispatch;
use crate::peer::{Login, Peer};
use crate::scram::{self, Credentials, Mechanism};

/// The largest body of a command: text has more bytes than the message that it stands for.
const COMMAND_BYTES_MAX: usize = 96 << 20;
/// The largest body without a login.
const LOGIN_BYTES_MAX: usize = 8 << 10;
/// An answer as text has at most so many times its bytes, near enough.
const TEXT_FACTOR: usize = 4;
/// Commands that are about a connection's own login, which here is the cookie's.
const LOGIN_COMMANDS: &[&str] = &["authenticate", "logout", "saslContinue", "saslStart"];

/// Answers a request of the console's page.
pub(super) async fn answer(
    console: &Arc<Console>,
    peer: &Arc<Peer>,
    request: Request<Incoming>,
) -> Answer {
    let path = request.uri().path().to_owned();
    if !["/api/session", "/api/login", "/api/logout", "/api/command"].contains(&path.as_str()) {
        return text(StatusCode::NOT_FOUND, "there is no such request");
    }
    let (parts, body) = request.into_parts();
    let is_command = path == "/api/command";
    let needs_login = is_command && console.server.accounts.is_enforced();
    if needs_login && find(console, &parts.headers).is_none() {
        return text(StatusCode::UNAUTHORIZED, "log in first");
    }
    let bytes_max = if is_command { COMMAND_BYTES_MAX } else { LOGIN_BYTES_MAX };
    let (body, held) = match read(console, body, bytes_max).await {
        Ok(read) => read,
        Err((status, why)) => return text(status, why),
    };
    // A body may take its time, and the login be over by now.
    let found = find(console, &parts.headers);
    if needs_login && found.is_none() {
        return text(StatusCode::UNAUTHORIZED, "log in again");
    }
    match path.as_str() {
        "/api/login" => log_in(console, peer, &parts.headers, &body).await,
        "/api/logout" => {
            peer.log_out();
            let forgotten = console.logins.leave(&parts.headers);
            with_cookie(session(console, None), &forgotten)
        }
        "/api/command" => command(console, peer, found, (body, held), &parts.headers).await,
        _ => session(console, found.as_deref()),
    }
}

/// The user who has logged in, if that still holds: the user is there, with the password that was
/// proved.
fn find(console: &Console, headers: &HeaderMap) -> Option<Arc<Login>> {
    let is_valid = |proved: &VerifiedLogin| {
        let directory = console.server.accounts.directory(&console.server.frond);
        let users = directory.as_ref().map(|directory| &directory.users);
        users.ok().and_then(|users| users.get(&proved.login.user)).is_some_and(|user| {
            user.id == proved.login.id && user.credentials == proved.credentials
        })
    };
    console.logins.find(headers, Instant::now(), is_valid)
}

/// Text, and what it holds of what there may be of it.
type Held = (DocumentBuf, TextShare);

/// Reads a request's body.
async fn read(
    console: &Console,
    body: Incoming,
    bytes_max: usize,
) -> Result<Held, (StatusCode, &'static str)> {
    // Browsers announce it.
    let bytes = body.size_hint().exact();
    let bytes = bytes.ok_or((StatusCode::LENGTH_REQUIRED, "content-length is needed"))?;
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    if bytes > bytes_max {
        return Err((StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"));
    }
    let (body, held) = match console.text.read(body, bytes).await {
        Ok(read) => read,
        Err(BodyError::Stopped) => {
            return Err((StatusCode::REQUEST_TIMEOUT, "the body didn't come"));
        }
        Err(BodyError::TooLarge) => {
            return Err((StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"));
        }
    };
    let no_text = (StatusCode::BAD_REQUEST, "the body isn't a JSON object");
    let body = std::str::from_utf8(&body).map_err(|_| no_text)?;
    match extended_json::parse(body) {
        Ok(document) => Ok((document, held)),
        Err(_) => Err(no_text),
    }
}

/// Answers with the facts that the page needs before a command: also whether to ask for a login.
fn session(console: &Console, login: Option<&Login>) -> Answer {
    let null = Value::Null;
    let body = document! {
        "auth": console.server.accounts.is_enforced(),
        "readOnly": console.read_only,
        "version": env!("CARGO_PKG_VERSION"),
        "user": login.map_or(null, |login| Value::String(&login.user.user)),
        "database": login.map_or(null, |login| Value::String(&login.user.database)),
    };
    let mut text = String::new();
    extended_json::write(body.view(), Form::Relaxed, &mut text);
    json(Bytes::from(text))
}

/// Checks a password.
async fn log_in(
    console: &Arc<Console>,
    peer: &Arc<Peer>,
    headers: &HeaderMap,
    body: &DocumentBuf,
) -> Answer {
    let field = |name: &str| {
        let value = body.get(name).and_then(|value| value.as_str().map(str::to_owned));
        value.unwrap_or_default()
    };
    let (user, password, database) = (field("user"), field("password"), field("database"));
    // A client that logs in anew gives up the login that it had.
    console.logins.leave(headers);
    peer.log_out();
    let (shared, own) = (Arc::clone(console), Arc::clone(peer));
    let proved = on_worker(console, peer, move || {
        let database = if database.is_empty() { "admin" } else { &database };
        // Before the proof: a password that changes meanwhile ends the login at once.
        let credentials = credentials_of(&shared, database, &user);
        // As a driver that knows which mechanisms the user has.
        let is_known = |mechanism| credentials.iter().any(|(known, _)| *known == mechanism);
        let mechanism = match credentials.is_empty() || is_known(Mechanism::Sha256) {
            true => Mechanism::Sha256,
            false => Mechanism::Sha1,
        };
        let is_proved = prove(&shared, &own, mechanism, (database, &user, &password)).is_some();
        (is_proved.then_some(credentials), own.take_delay())
    });
    let Some((credentials, delay)) = proved.await else {
        return text(StatusCode::SERVICE_UNAVAILABLE, "the server has no thread for it");
    };
    tokio::time::sleep(delay).await;
    let (Some(login), Some(credentials)) = (peer.login(), credentials) else {
        return text(StatusCode::UNAUTHORIZED, "Authentication failed.");
    };
    let proved = VerifiedLogin { login: Arc::clone(&login), credentials };
    match console.logins.enter(proved, Instant::now()) {
        Ok(cookie) => with_cookie(session(console, Some(&login)), &cookie),
        Err(error) => text(StatusCode::SERVICE_UNAVAILABLE, &error.message),
    }
}

/// Has the connection log in by the messages that a driver would send; `None` if that fails.
fn prove(
    console: &Console,
    peer: &Arc<Peer>,
    mechanism: Mechanism,
    (database, user, password): (&str, &str, &str),
) -> Option<()> {
    let run = |command: DocumentBuf| {
        let answer = dispatch::run(&console.server, peer, command.view(), &[], Some(database));
        let payload = match answer.get("payload") {
            Some(Value::Binary(payload)) => Some(payload.bytes.to_vec()),
            _ => None,
        };
        let id = answer.get("conversationId").and_then(|id| id.as_integer());
        Some((id?, payload?))
    };
    let (login, first) = scram::Login::begin(mechanism, user, password).ok()?;
    let payload = Value::Binary(Binary { subtype: 0, bytes: first.as_bytes() });
    let (id, payload) = run(document! {
        "saslStart": 1_i32, "mechanism": mechanism.name(), "payload": payload,
        "options": &document! { "skipEmptyExchange": true },
    })?;
    let proof = login.prove(&payload).ok()?;
    let payload = Value::Binary(Binary { subtype: 0, bytes: proof.message.as_bytes() });
    let (_, payload) =
        run(document! { "saslContinue": 1_i32, "conversationId": id, "payload": payload })?;
    (payload == proof.expected.as_bytes()).then_some(())
}

/// Returns the stored credentials of a user; none of a user that doesn't exist.
fn credentials_of(console: &Console, database: &str, user: &str) -> Vec<(Mechanism, Credentials)> {
    let name = UserName { database: database.to_owned(), user: user.to_owned() };
    let directory = console.server.accounts.directory(&console.server.frond);
    let known = directory.ok().and_then(|it| it.users.get(&name).map(|it| it.credentials.clone()));
    known.unwrap_or_default()
}

/// Runs a command for the user who has logged in.
async fn command(
    console: &Arc<Console>,
    peer: &Arc<Peer>,
    login: Option<Arc<Login>>,
    (body, held): Held,
    headers: &HeaderMap,
) -> Answer {
    let (Some(database), Some(command)) = (
        body.get("db").and_then(|name| name.as_str().map(str::to_owned)),
        body.get("command").and_then(|command| command.as_document()).map(|it| it.to_buf()),
    ) else {
        return text(StatusCode::BAD_REQUEST, "{db, command} is expected");
    };
    drop((body, held));
    let name = command.iter().next().map_or("", |(name, _)| name).to_owned();
    if LOGIN_COMMANDS.contains(&name.as_str()) || command.get("$db").is_some() {
        return text(
            StatusCode::BAD_REQUEST,
            "logins are made by /api/login, and db stands outside",
        );
    }
    if console.read_only && !read_only::allows(command.view()) {
        return json(Bytes::from(read_only::refusal(&name)));
    }
    be(peer, login.as_deref());
    let (shared, own) = (Arc::clone(console), Arc::clone(peer));
    let answer = on_worker(console, peer, move || {
        dispatch::run_kept(&shared.server, &own, command.view(), &database)
    });
    let Some((answer, share)) = answer.await else {
        return text(StatusCode::SERVICE_UNAVAILABLE, "the server has no thread for it");
    };
    tokio::time::sleep(peer.take_delay()).await;
    if login.is_some() && peer.login().is_none() {
        // The user was dropped.
        let forgotten = console.logins.leave(headers);
        return with_cookie(text(StatusCode::UNAUTHORIZED, "log in again"), &forgotten);
    }
    let bytes = answer.as_bytes().len();
    let held = console.text.hold(bytes * TEXT_FACTOR).await;
    let mut text = String::with_capacity(bytes * 2);
    extended_json::write(answer.view(), Form::Canonical, &mut text);
    drop((answer, share));
    json(Bytes::from_owner(HeldText { text, _held: held }))
}

/// An answer as text, until it is sent.
struct HeldText {
    text: String,
    _held: TextShare,
}

impl AsRef<[u8]> for HeldText {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// Makes the connection that of the user who has logged in.
fn be(peer: &Peer, login: Option<&Login>) {
    let before = peer.login();
    if before.as_deref() == login {
        return;
    }
    peer.log_out();
    if let Some(login) = login {
        // The connection was logged out, so no other user is logged in.
        let _ = peer.log_in(login.user.clone(), login.id);
    }
}

/// Has a thread of those for clients do this; `None` if there is none, or if it panicked. If the
/// browser goes meanwhile, its command is interrupted.
async fn on_worker<T: Send + 'static>(
    console: &Console,
    peer: &Arc<Peer>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    struct Abandon<'a>(&'a Console, i32);
    impl Drop for Abandon<'_> {
        fn drop(&mut self) {
            self.0.server.operations.abandon(self.1);
        }
    }
    let (ends, ended) = oneshot::channel();
    let work = move || {
        // A caller that waits for it may be gone.
        let _ = ends.send(work());
    };
    console.server.workers.run(work, console.server.sessions.has_open()).ok()?;
    let abandon = Abandon(console, peer.id);
    let done = ended.await.ok();
    std::mem::forget(abandon);
    done
}

fn json(body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    let fields = answer.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

fn with_cookie(mut answer: Answer, cookie: &str) -> Answer {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        answer.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    answer
}
