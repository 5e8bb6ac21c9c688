//! The client's side: a database of a running server as a [`Remote`], and the whole of it as an
//! image.
//!
//! *A cut*: a request that isn't answered is sent again a few times, since all but one change
//! nothing that was done before. Whether the one that moves a branch was done is found out by
//! looking where the branch is. A lease that is gone is replaced; if what it kept is gone, too, a
//! push sends it again, and another transfer fails, and goes on when it is run again.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use frond_db::{Error, ErrorKind};
use frond_doc::{DocumentBuf, Value};
use frond_store::{Chunk, ChunkHash};
use frond_vcs::remote::{
    ImageSource, RefUpdate, Remote, RemoteState, decode_hashes, encode_hashes, frame,
};
use reqwest::{Certificate, Client, Method, Response, StatusCode, Url};

use crate::http::protocol::{
    BSON, BYTES, CHUNKS_BYTES_MAX, CHUNKS_BYTES_TARGET, LEASE_GONE, LEASE_HEADER,
    MESSAGE_BYTES_MAX, NAMES_MAX, PROTOCOL_HEADER, PROTOCOL_VERSION, ROOT,
};
use crate::runtime::{block_on, choose_cryptography};

/// Said where nothing listens.
const NO_SERVER: &str = "; does frond serve --remote-listen run there?";
/// Said where an answer is none of HTTP's.
const NO_HTTP: &str = " (if this is the port that drivers use, or the console's: a server serves \
                       remotes at the address of --remote-listen)";
const CONNECT_SECONDS_MAX: u64 = 10;
/// The longest time in which nothing may come. A server that checks a large push says nothing
/// meanwhile.
const SILENCE_SECONDS_MAX: u64 = 600;
/// The usual number of attempts at a request, and the wait before the second; then twice as long.
const ATTEMPTS_MAX: u32 = 5;
const WAIT_MILLIS: u64 = 100;
/// The time that the server may take to hear that a transfer is over.
const END_TIME_MAX: Duration = Duration::from_secs(2);
/// The greatest number of bytes of an answer with refs.
const REFS_BYTES_MAX: usize = 64 << 20;

/// The options of talking to a server. `Debug` shows no token.
#[derive(Clone)]
pub struct HttpOptions {
    /// Our credentials.
    pub token: Option<String>,
    /// Certificates (PEM) to trust beside the system's.
    pub authorities: Option<PathBuf>,
    /// The number of attempts at a request before it is given up.
    pub attempts: u32,
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpOptions")
            .field("has_token", &self.token.is_some())
            .field("authorities", &self.authorities)
            .field("attempts", &self.attempts)
            .finish()
    }
}

impl Default for HttpOptions {
    fn default() -> HttpOptions {
        HttpOptions { token: None, authorities: None, attempts: ATTEMPTS_MAX }
    }
}

/// Requests to one place of a server.
struct Requests {
    client: Client,
    /// The beginning of all paths.
    base: Url,
    token: Option<String>,
    /// All that the server gave; the last is the one in use.
    leases: Mutex<Vec<String>>,
    attempts: u32,
}

/// A request to a server.
struct HttpRequest<'a> {
    method: Method,
    /// The path below the base; empty for the base itself.
    act: &'a str,
    body: Bytes,
    bytes_max: usize,
    with_lease: bool,
}

/// The reason why there is no answer to use.
enum Failed {
    /// The server said so.
    Refused(Error),
    /// The lease is gone.
    NoLease(Error),
    /// The connection broke, or the server is too busy.
    Cut(Error),
}

/// A database of a running server.
pub struct HttpRemote(Requests);

/// A running server's data directory at one moment.
pub struct HttpImage {
    requests: Requests,
    root: ChunkHash,
    time_millis: i64,
    databases: Vec<String>,
    absent: Vec<ChunkHash>,
}

impl Requests {
    fn new(url: &str, path: &[&str], options: &HttpOptions) -> Result<Requests, Error> {
        choose_cryptography();
        let wrong = |what: String| Error::bad_value(format!("{url}: {what}"));
        let mut base = Url::parse(url).map_err(|error| wrong(error.to_string()))?;
        if base.host_str().is_none() {
            return Err(wrong("http(s)://HOST:PORT/DATABASE is expected".to_owned()));
        }
        base.path_segments_mut()
            .map_err(|()| wrong("an address is expected".to_owned()))?
            .pop_if_empty()
            .extend(path);
        let mut builder = Client::builder()
            .connect_timeout(Duration::from_secs(CONNECT_SECONDS_MAX))
            .read_timeout(Duration::from_secs(SILENCE_SECONDS_MAX))
            .redirect(reqwest::redirect::Policy::none());
        if let Some(file) = &options.authorities {
            let name = file.display();
            let pem = std::fs::read(file).map_err(|error| wrong(format!("{name}: {error}")))?;
            let found = Certificate::from_pem_bundle(&pem);
            let found = found.map_err(|error| wrong(format!("{name}: {error}")))?;
            builder = builder.tls_certs_merge(found);
        }
        let client = builder.build().map_err(|error| wrong(error_text(&error)))?;
        let (token, attempts) = (options.token.clone(), options.attempts);
        Ok(Requests { client, base, token, leases: Mutex::new(Vec::new()), attempts })
    }

    fn leases(&self) -> MutexGuard<'_, Vec<String>> {
        self.leases.lock().expect("no panic while the lock is held")
    }

    /// Sends a request until it is answered.
    fn send(&self, outgoing: &HttpRequest<'_>) -> Result<Bytes, Failed> {
        let mut wait = Duration::from_millis(WAIT_MILLIS);
        let mut attempt = 1;
        loop {
            match block_on(self.send_once(outgoing)) {
                Err(Failed::Cut(_)) if attempt < self.attempts => {
                    std::thread::sleep(wait);
                    (attempt, wait) = (attempt + 1, wait * 2);
                }
                done => return done,
            }
        }
    }

    async fn send_once(&self, outgoing: &HttpRequest<'_>) -> Result<Bytes, Failed> {
        let mut url = self.base.clone();
        if !outgoing.act.is_empty()
            && let Ok(mut path) = url.path_segments_mut()
        {
            path.push(outgoing.act);
        }
        let mut request =
            self.client.request(outgoing.method.clone(), url).body(outgoing.body.clone());
        request = request.header("content-type", BYTES);
        request = request.header(PROTOCOL_HEADER, PROTOCOL_VERSION);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let lease = if outgoing.with_lease { self.leases().last().cloned() } else { None };
        if let Some(lease) = lease {
            request = request.header(LEASE_HEADER, lease);
        }
        let cut = |error: reqwest::Error| {
            let host = self.base.host_str().unwrap_or_default();
            let port = self.base.port_or_known_default().unwrap_or_default();
            // Others than HTTP servers answer with other bytes, or hang up.
            let is_no_http = error.is_request() && !error.is_connect() && !error.is_timeout();
            let hint = match is_no_http {
                true => NO_HTTP,
                false if error.is_connect() => NO_SERVER,
                false => "",
            };
            let message = format!("{host}:{port}: {}{hint}", error_text(&error));
            Failed::Cut(Error::unavailable(message))
        };
        let response = request.send().await.map_err(cut)?;
        let (status, is_bson) = (response.status(), is_bson(&response));
        let body = read(response, outgoing.bytes_max).await.map_err(|error| match error {
            ReadError::Cut(error) => cut(error),
            ReadError::TooLong => Failed::Refused(Error::damaged("the answer is too long")),
        })?;
        if status.is_success() {
            return Ok(body);
        }
        let error = refusal(status, is_bson, body);
        Err(match status {
            LEASE_GONE => Failed::NoLease(error),
            StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::BAD_GATEWAY
            | StatusCode::GATEWAY_TIMEOUT
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS => Failed::Cut(error),
            _ => Failed::Refused(error),
        })
    }

    /// Gets chunks: asks again for what doesn't fit into an answer.
    fn get_many(
        &self,
        hashes: &[ChunkHash],
        send: &dyn Fn(HttpRequest<'_>) -> Result<Bytes, Error>,
    ) -> Result<Vec<Chunk>, Error> {
        let mut chunks: Vec<Chunk> = Vec::with_capacity(hashes.len());
        while let Some(wanted) = hashes.get(chunks.len()..).filter(|rest| !rest.is_empty()) {
            let wanted = &wanted[..wanted.len().min(NAMES_MAX)];
            let body = send(HttpRequest {
                method: Method::POST,
                act: "get",
                body: encode_hashes(wanted).into(),
                bytes_max: MESSAGE_BYTES_MAX,
                with_lease: true,
            })?;
            let found = frame::decode_all("an answer", &body, CHUNKS_BYTES_MAX)?;
            let is_wanted = found.len() <= wanted.len()
                && !found.is_empty()
                && found.iter().map(Chunk::hash).eq(wanted[..found.len()].iter().copied());
            if !is_wanted {
                return Err(Error::damaged("the server sent other chunks than were asked for"));
            }
            chunks.extend(found);
        }
        Ok(chunks)
    }
}

/// A server has room for so many leases, and each keeps chunks there from being collected.
impl Drop for Requests {
    fn drop(&mut self) {
        // Tried once, the newest first: where that fails, leases end by themselves.
        while !self.leases().is_empty() {
            let end = HttpRequest {
                method: Method::POST,
                act: "end",
                body: Bytes::new(),
                bytes_max: NAMES_MAX,
                with_lease: true,
            };
            let ended =
                async { tokio::time::timeout(END_TIME_MAX, self.send_once(&end)).await.ok() };
            match block_on(ended) {
                Some(Ok(_) | Err(Failed::NoLease(_))) => drop(self.leases().pop()),
                _ => return,
            }
        }
    }
}

fn is_bson(response: &Response) -> bool {
    response.headers().get("content-type").is_some_and(|kind| kind.as_bytes() == BSON.as_bytes())
}

enum ReadError {
    Cut(reqwest::Error),
    TooLong,
}

/// Reads an answer that is not longer than it may be.
async fn read(mut response: Response, bytes_max: usize) -> Result<Bytes, ReadError> {
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(ReadError::Cut)? {
        if bytes_max < body.len() + part.len() {
            return Err(ReadError::TooLong);
        }
        body.extend_from_slice(&part);
    }
    Ok(body.into())
}

/// Returns the error that the server reports.
fn refusal(status: StatusCode, is_bson: bool, body: Bytes) -> Error {
    let record = if is_bson { DocumentBuf::validated(body).ok() } else { None };
    let text = |name: &str| {
        let value = record.as_ref().and_then(|record| record.get(name));
        value.and_then(|value| value.as_str().map(str::to_owned))
    };
    match (text("kind"), text("message")) {
        (Some(kind), Some(message)) => Error::from_peer(&kind, message),
        _ => Error::from_peer(
            "invalid",
            format!("the server there serves no remotes: it answers {status}{NO_HTTP}"),
        ),
    }
}

/// Returns the error's text, with the causes, without the address.
fn error_text(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        let part = error.to_string();
        let part = part.split(" for url (").next().unwrap_or_default();
        if !text.ends_with(part) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(part);
        }
        cause = error.source();
    }
    text
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Error {
        match failed {
            Failed::Refused(error) | Failed::NoLease(error) | Failed::Cut(error) => error,
        }
    }
}

impl HttpRemote {
    /// The database that `url` names (`https://host:4224/shop`). Nothing is asked yet.
    ///
    /// # Errors
    /// `BadValue` if it is no address, or the certificates are none.
    pub fn open(url: &str, options: &HttpOptions) -> Result<HttpRemote, Error> {
        let (server, database) = url.trim_end_matches('/').rsplit_once('/').unwrap_or((url, ""));
        if database.is_empty() || server.ends_with('/') || server.ends_with(':') {
            let message = format!("{url}: a database is missing: http(s)://HOST:PORT/DATABASE");
            return Err(Error::bad_value(message));
        }
        Ok(HttpRemote(Requests::new(server, &[ROOT, "db", database], options)?))
    }

    /// Asks with a lease, and with another one if it is gone.
    fn send(&self, outgoing: HttpRequest<'_>) -> Result<Bytes, Error> {
        if self.0.leases().is_empty() {
            self.state()?;
        }
        match self.0.send(&outgoing) {
            Err(Failed::NoLease(_)) => {
                self.state()?;
                Ok(self.0.send(&outgoing)?)
            }
            done => Ok(done?),
        }
    }

    /// Chunks that the server misses after it gave a second lease may be those it was sent under
    /// the first one, and lost when it was killed: that is no damage.
    fn of_update(&self, error: Error) -> Error {
        if error.kind != ErrorKind::Damaged || self.0.leases().len() < 2 {
            return error;
        }
        let message = &error.message;
        Error::unavailable(format!(
            "the server was started again, and lacks what it had: {message}"
        ))
    }

    fn post<'a>(act: &'a str, body: Bytes, bytes_max: usize) -> HttpRequest<'a> {
        HttpRequest { method: Method::POST, act, body, bytes_max, with_lease: true }
    }
}

/// The lease in an answer.
fn lease_of(record: &DocumentBuf) -> Result<String, Error> {
    let lease = record.get("lease").and_then(|lease| lease.as_str().map(str::to_owned));
    lease.ok_or_else(|| Error::damaged("the server gave no lease"))
}

fn validated(body: Bytes) -> Result<DocumentBuf, Error> {
    DocumentBuf::validated(body).map_err(|error| {
        Error::damaged(format!("the server's answer isn't BSON: {error}{NO_HTTP}"))
    })
}

impl Remote for HttpRemote {
    fn state(&self) -> Result<Option<RemoteState>, Error> {
        let body = self.0.send(&HttpRequest {
            method: Method::GET,
            act: "",
            body: Bytes::new(),
            bytes_max: REFS_BYTES_MAX,
            with_lease: false,
        })?;
        let record = validated(body)?;
        self.0.leases().push(lease_of(&record)?);
        RemoteState::decode(&record)
    }

    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
        let mut there = Vec::with_capacity(hashes.len());
        for part in hashes.chunks(NAMES_MAX) {
            let body = self.send(HttpRemote::post("has", encode_hashes(part).into(), NAMES_MAX))?;
            if body.len() != part.len() {
                return Err(Error::damaged("the server answered for another number of chunks"));
            }
            there.extend(body.iter().map(|byte| *byte != 0));
        }
        Ok(there)
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        self.0.get_many(hashes, &|outgoing| self.send(outgoing))
    }

    fn put_many(&self, chunks: &[Chunk]) -> Result<(), Error> {
        let mut rest = chunks;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |chunk: &&Chunk| {
                bytes += chunk.encoded().len();
                bytes <= CHUNKS_BYTES_TARGET
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let (part, after) = rest.split_at(count);
            let body = frame::encode(part, frame::FrameEffort::Quick);
            self.send(HttpRemote::post("put", body.into(), NAMES_MAX))?;
            rest = after;
        }
        Ok(())
    }

    fn update(&self, update: &RefUpdate) -> Result<(), Error> {
        let outgoing = HttpRemote::post("update", update.encode(), NAMES_MAX);
        let mut wait = Duration::from_millis(WAIT_MILLIS);
        for attempt in 1.. {
            match block_on(self.0.send_once(&outgoing)) {
                Ok(_) => return Ok(()),
                Err(Failed::Refused(error)) => return Err(self.of_update(error)),
                Err(Failed::NoLease(error) | Failed::Cut(error)) => {
                    // It may have been done, and only the answer was lost.
                    let state = self.state()?;
                    let there = state.as_ref().and_then(|state| state.branches.get(&update.branch));
                    if there == Some(&update.new) {
                        return Ok(());
                    }
                    if attempt >= self.0.attempts {
                        return Err(error);
                    }
                }
            }
            std::thread::sleep(wait);
            wait *= 2;
        }
        Ok(())
    }
}

impl HttpImage {
    /// Has the server that `url` names (`https://host:4224`) take an image of its data directory.
    ///
    /// # Errors
    /// `Unavailable` if it doesn't answer; what it says.
    pub fn take(url: &str, options: &HttpOptions) -> Result<HttpImage, Error> {
        let requests = Requests::new(url.trim_end_matches('/'), &[ROOT, "backup"], options)?;
        let record = validated(requests.send(&HttpRequest {
            method: Method::POST,
            act: "",
            body: Bytes::new(),
            bytes_max: REFS_BYTES_MAX,
            with_lease: false,
        })?)?;
        requests.leases().push(lease_of(&record)?);
        let hashes = |name: &str| match record.get(name) {
            Some(Value::Binary(binary)) => decode_hashes(binary.bytes),
            _ => Vec::new(),
        };
        let (root, absent) = (hashes("root").first().copied(), hashes("absent"));
        let (Some(root), Some(Value::DateTime(time_millis))) = (root, record.get("time")) else {
            return Err(Error::damaged("the server gave no root or time of a backup"));
        };
        let names = record.get("databases").and_then(|names| names.as_array());
        let names = names.iter().flat_map(|names| names.iter());
        let databases = names.filter_map(|name| name.as_str().map(str::to_owned)).collect();
        Ok(HttpImage { requests, root, time_millis, databases, absent })
    }
}

impl ImageSource for HttpImage {
    fn root(&self) -> ChunkHash {
        self.root
    }

    fn time_millis(&self) -> i64 {
        self.time_millis
    }

    fn databases(&self) -> &[String] {
        &self.databases
    }

    fn absent(&self) -> &[ChunkHash] {
        &self.absent
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        self.requests.get_many(hashes, &|outgoing| Ok(self.requests.send(&outgoing)?))
    }
}
