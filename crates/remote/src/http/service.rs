//! The requests: each is checked, then done on a thread that may wait for the disk.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use frond_db::name::percent_decode;
use frond_db::{Error, ErrorKind, Frond};
use frond_doc::{Binary, DocumentBuilder, Value};
use frond_store::{Chunk, ChunkHash};
use frond_vcs::remote::{RefUpdate, Remote, decode_hashes, encode_hashes, frame};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode, header};
use tokio::sync::Semaphore;

use crate::http::guard::Guard;
use crate::http::intake::BodyBudget;
use crate::http::lease::{Held, Lease, Leases};
use crate::http::protocol::{
    BSON, BYTES, CHUNKS_BYTES_MAX, CHUNKS_BYTES_TARGET, LEASE_GONE, LEASE_HEADER,
    MESSAGE_BYTES_MAX, NAMES_MAX, ROOT, UPDATE_BYTES_MAX,
};
use crate::http::server::ServeOptions;
use crate::http::tokens::{Allowed, Tokens};

/// Requests that carry chunks, or make much work, at once.
const HEAVY_MAX: usize = 4;
/// Chunks that are read together for an answer.
const READ_BATCH: usize = 32;

type Answer = Response<Full<Bytes>>;

/// Answers requests.
pub(crate) struct Service {
    frond: Frond,
    tokens: Tokens,
    guard: Guard,
    leases: Leases,
    intake: BodyBudget,
    heavy: Semaphore,
    /// The number of bytes in packs from which on nothing more is taken.
    store_bytes_max: Option<u64>,
    refuses_pushes: bool,
}

/// The task that a request asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Task {
    State(String),
    Has(String),
    Get(String),
    Put(String),
    Update(String),
    End(String),
    Backup,
    BackupGet,
    BackupEnd,
}

/// The reason why a request isn't done.
pub(crate) struct Refusal {
    status: StatusCode,
    kind: ErrorKind,
    message: String,
}

impl Refusal {
    pub fn new(status: StatusCode, kind: ErrorKind, message: &str) -> Refusal {
        Refusal { status, kind, message: message.to_owned() }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        let status = match error.kind {
            ErrorKind::Invalid => StatusCode::BAD_REQUEST,
            ErrorKind::Conflict => StatusCode::CONFLICT,
            ErrorKind::Unavailable | ErrorKind::Closed | ErrorKind::Unknown => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            ErrorKind::Damaged => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Refusal { status, kind: error.kind, message: error.message }
    }
}

impl Task {
    fn parse(method: &Method, path: &str) -> Option<Task> {
        let mut parts = path.strip_prefix('/')?.split('/');
        if parts.next() != Some(ROOT) {
            return None;
        }
        let kind = parts.next()?;
        let rest: Vec<&str> = parts.collect();
        let is_get = method == Method::GET;
        match (kind, rest.as_slice()) {
            ("db", [name]) if is_get => Some(Task::State(percent_decoded(name)?)),
            ("db", [name, act]) if method == Method::POST => {
                let name = percent_decoded(name)?;
                match *act {
                    "has" => Some(Task::Has(name)),
                    "get" => Some(Task::Get(name)),
                    "put" => Some(Task::Put(name)),
                    "update" => Some(Task::Update(name)),
                    "end" => Some(Task::End(name)),
                    _ => None,
                }
            }
            ("backup", []) if method == Method::POST => Some(Task::Backup),
            ("backup", ["get"]) if method == Method::POST => Some(Task::BackupGet),
            ("backup", ["end"]) if method == Method::POST => Some(Task::BackupEnd),
            _ => None,
        }
    }

    fn needs(&self) -> Allowed {
        match self {
            Task::State(_) | Task::Has(_) | Task::Get(_) | Task::End(_) => Allowed::Read,
            Task::Put(_) | Task::Update(_) => Allowed::Write,
            Task::Backup | Task::BackupGet | Task::BackupEnd => Allowed::Backup,
        }
    }

    /// Returns the greatest number of bytes of its body.
    fn body_bytes_max(&self) -> usize {
        match self {
            Task::State(_) | Task::End(_) | Task::Backup | Task::BackupEnd => 0,
            Task::Has(_) | Task::Get(_) | Task::BackupGet => NAMES_MAX * size_of::<ChunkHash>(),
            Task::Put(_) => MESSAGE_BYTES_MAX,
            Task::Update(_) => UPDATE_BYTES_MAX,
        }
    }

    fn is_heavy(&self) -> bool {
        !matches!(self, Task::State(_) | Task::Has(_)) && !self.is_end()
    }

    /// Whether it only ends a lease.
    fn is_end(&self) -> bool {
        matches!(self, Task::End(_) | Task::BackupEnd)
    }
}

/// A part of a path without its escapes; `None` if it can't be a name.
fn percent_decoded(part: &str) -> Option<String> {
    percent_decode(part).filter(|name| !name.is_empty())
}

impl Service {
    pub fn new(frond: Frond, options: &ServeOptions) -> Service {
        let tokens = options.tokens.clone();
        Service {
            frond,
            guard: Guard { hosts: options.hosts.clone(), has_tokens: !tokens.is_empty() },
            tokens,
            leases: Leases::default(),
            intake: BodyBudget::default(),
            heavy: Semaphore::new(HEAVY_MAX),
            store_bytes_max: options.store_bytes_max,
            refuses_pushes: options.refuses_pushes,
        }
    }

    /// Ends leases that were not used for `idle`.
    pub fn expire(&self, idle: Duration) {
        self.leases.expire(idle);
    }

    /// Lets go of everything.
    pub fn end(&self) {
        self.leases.clear();
    }

    /// Answers a request, whatever it is.
    pub async fn answer(
        self: Arc<Self>,
        peer: IpAddr,
        request: Request<Incoming>,
    ) -> Result<Answer, Infallible> {
        Ok(self.try_answer(peer, request).await.unwrap_or_else(|refusal| {
            let mut record = DocumentBuilder::new();
            record
                .append("kind", Value::String(refusal.kind.name()))
                .append("message", Value::String(&refusal.message));
            answer(refusal.status, BSON, record.build().into_bytes())
        }))
    }

    async fn try_answer(
        self: Arc<Self>,
        peer: IpAddr,
        request: Request<Incoming>,
    ) -> Result<Answer, Refusal> {
        self.guard
            .check(request.uri(), request.headers())
            .map_err(|(status, message)| Refusal { status, kind: ErrorKind::Invalid, message })?;
        let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        let allowed = self.tokens.allowed(header(header::AUTHORIZATION.as_str()));
        let Some(allowed) = allowed else {
            let message = "a token is needed (--token-file or FROND_REMOTE_TOKEN), or this one \
                           isn't accepted";
            return Err(Refusal::new(StatusCode::UNAUTHORIZED, ErrorKind::Invalid, message));
        };
        let Some(task) = Task::parse(request.method(), request.uri().path()) else {
            let message = "there is nothing of that name: http(s)://HOST:PORT/DATABASE is expected";
            return Err(Refusal::new(StatusCode::NOT_FOUND, ErrorKind::Invalid, message));
        };
        if allowed < task.needs() {
            let message = match self.tokens.is_empty() {
                true => {
                    "a backup needs a token: openssl rand -hex 32 > token, start the server with \
                          --remote-token-file token, and back up with --token-file token"
                }
                false => "the token doesn't allow that",
            };
            return Err(Refusal::new(StatusCode::FORBIDDEN, ErrorKind::Invalid, message));
        }
        if self.refuses_pushes && task.needs() == Allowed::Write {
            let message = "a member of a replica set takes no pushes: the others would lack them";
            return Err(Refusal::new(StatusCode::FORBIDDEN, ErrorKind::Invalid, message));
        }
        let lease = match &task {
            Task::State(_) | Task::Backup => None,
            task => Some(self.lease(task, header(LEASE_HEADER))?),
        };
        if task.is_end() {
            self.leases.end(header(LEASE_HEADER).unwrap_or_default());
            return Ok(answer(StatusCode::NO_CONTENT, BYTES, Bytes::new()));
        }
        let body = self.intake.read(peer, request.into_body(), task.body_bytes_max()).await?;
        // Only once the body is here: a client that is slow holds up no other.
        let permit = match task.is_heavy() {
            true => self.heavy.acquire().await.ok(),
            false => None,
        };
        let service = self.clone();
        let run = move || service.run(&task, lease.as_deref(), body.bytes.clone());
        let done = tokio::task::spawn_blocking(run);
        let done = done.await.map_err(|_| Refusal::from(Error::internal("the request failed")))?;
        drop(permit);
        done
    }

    fn lease(&self, task: &Task, name: Option<&str>) -> Result<Arc<Lease>, Refusal> {
        let lease = name.and_then(|name| self.leases.find(name));
        let fits = |lease: &Arc<Lease>| match (&lease.held, task) {
            (Held::Image(_), task) => matches!(task, Task::BackupGet | Task::BackupEnd),
            (
                Held::Database(held, _),
                Task::Has(name)
                | Task::Get(name)
                | Task::Put(name)
                | Task::Update(name)
                | Task::End(name),
            ) => held == name,
            _ => false,
        };
        lease.filter(fits).ok_or_else(|| {
            let message = "the server no longer knows this transfer: run it again, and it \
                           continues";
            Refusal::new(LEASE_GONE, ErrorKind::Unavailable, message)
        })
    }

    /// Does what was asked for.
    fn run(&self, task: &Task, lease: Option<&Lease>, body: Bytes) -> Result<Answer, Refusal> {
        match (task, lease.map(|lease| &lease.held)) {
            (Task::State(name), _) => self.state(name),
            (Task::Backup, _) => self.backup(),
            (Task::Has(_), Some(Held::Database(_, remote))) => {
                let there = remote.has_many(&names(&body)?)?;
                let there: Vec<u8> = there.into_iter().map(u8::from).collect();
                Ok(answer(StatusCode::OK, BYTES, there.into()))
            }
            (Task::Get(_), Some(Held::Database(_, remote))) => {
                get(&names(&body)?, &|names| remote.get_many(names))
            }
            (Task::BackupGet, Some(Held::Image(image))) => {
                get(&names(&body)?, &|names| image.get_many(names))
            }
            (Task::Put(_), Some(Held::Database(_, remote))) => {
                self.check_room()?;
                remote.put_many(&frame::decode_all("a request", &body, CHUNKS_BYTES_MAX)?)?;
                Ok(answer(StatusCode::NO_CONTENT, BYTES, Bytes::new()))
            }
            (Task::Update(_), Some(Held::Database(_, remote))) => {
                let update = RefUpdate::decode(body)?;
                remote.check_update(&update)?;
                remote.update(&update)?;
                Ok(answer(StatusCode::NO_CONTENT, BYTES, Bytes::new()))
            }
            _ => Err(Error::internal("a lease of another kind").into()),
        }
    }

    /// Refuses chunks where there is no room for more.
    fn check_room(&self) -> Result<(), Refusal> {
        let stored = self.frond.counters().1.bytes_stored;
        let Some(most) = self.store_bytes_max.filter(|most| *most <= stored) else { return Ok(()) };
        let message = format!(
            "the server accepts no more data: it stores {stored} bytes, and {most} are \
                     allowed"
        );
        Err(Refusal::new(StatusCode::INSUFFICIENT_STORAGE, ErrorKind::Invalid, &message))
    }

    fn state(&self, name: &str) -> Result<Answer, Refusal> {
        let (lease_name, lease) = self.leases.of_database(&self.frond, name)?;
        let Held::Database(_, remote) = &lease.held else {
            return Err(Error::internal("a lease of another kind").into());
        };
        let mut record = DocumentBuilder::new();
        record.append("lease", Value::String(&lease_name));
        if let Some(state) = remote.state()? {
            state.append_to(&mut record);
        }
        Ok(answer(StatusCode::OK, BSON, record.build().into_bytes()))
    }

    fn backup(&self) -> Result<Answer, Refusal> {
        let (lease_name, lease) = self.leases.of_image(&self.frond)?;
        let Held::Image(image) = &lease.held else {
            return Err(Error::internal("a lease of another kind").into());
        };
        let mut record = DocumentBuilder::new();
        let root = encode_hashes(&[image.root()]);
        record
            .append("lease", Value::String(&lease_name))
            .append("root", Value::Binary(Binary { subtype: 0, bytes: &root }))
            .append("time", Value::DateTime(image.time_millis()))
            .begin_array("databases");
        for name in image.databases() {
            record.push(Value::String(name));
        }
        let absent = encode_hashes(image.absent());
        record.end().append("absent", Value::Binary(Binary { subtype: 0, bytes: &absent }));
        Ok(answer(StatusCode::OK, BSON, record.build().into_bytes()))
    }
}

fn names(body: &[u8]) -> Result<Vec<ChunkHash>, Refusal> {
    if body.len().is_multiple_of(size_of::<ChunkHash>()) {
        return Ok(decode_hashes(body));
    }
    Err(Error::bad_value("names of chunks are expected").into())
}

/// Reads chunks by their names.
type ReadChunks<'a> = dyn Fn(&[ChunkHash]) -> Result<Vec<Chunk>, Error> + 'a;

/// Answers with as many of the chunks as fit, one at least.
fn get(names: &[ChunkHash], read: &ReadChunks<'_>) -> Result<Answer, Refusal> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    'all: for batch in names.chunks(READ_BATCH) {
        for chunk in read(batch)? {
            bytes += chunk.encoded().len();
            if CHUNKS_BYTES_TARGET < bytes && !found.is_empty() {
                break 'all;
            }
            found.push(chunk);
        }
    }
    let frames = frame::encode(&found, frame::FrameEffort::Quick);
    Ok(answer(StatusCode::OK, BYTES, frames.into()))
}

fn answer(status: StatusCode, kind: &'static str, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_tasks() {
        let task = |method, path| Task::parse(&method, path);
        let shop = || "shop".to_owned();
        assert_eq!(task(Method::GET, "/v0/db/shop"), Some(Task::State(shop())));
        assert_eq!(task(Method::POST, "/v0/db/shop/get"), Some(Task::Get(shop())));
        let name = Some(Task::State("a b/ü".to_owned()));
        assert_eq!(task(Method::GET, "/v0/db/a%20b%2F%C3%BC"), name);
        assert_eq!(task(Method::POST, "/v0/backup"), Some(Task::Backup));
        assert_eq!(task(Method::POST, "/v0/db/shop/end"), Some(Task::End(shop())));
        for wrong in ["", "/", "/v0", "/v0/db", "/v0/db/", "/v0/db/%", "/v0/db/%f", "/v0/db/%ff"] {
            assert_eq!(task(Method::GET, wrong), None, "{wrong}");
        }
        assert_eq!(task(Method::GET, "/v0/db/shop/get"), None);
        assert_eq!(task(Method::POST, "/v0/db/shop/drop"), None);
    }
}
