//! The console: pages for people, and the interface by which they run commands, on a listener of
//! its own.
//!
//! 1. A connection is a client like others: it takes a place among `connections_max`, and its
//!    commands run on the [`Workers`](crate::workers), by `dispatch::run_kept`: the same table,
//!    rights, limits and audit log as over the wire. One that hangs up has its command stopped.
//! 2. [`guard`] refuses requests that don't come from the console's own page.
//! 3. With `--auth`, [`logins`] holds who has logged in from where, by a cookie; [`api`] checks
//!    passwords by the same conversation as drivers do, so that failures count together.
//! 4. [`pages`] has the files, which are built into the program.
//!
//! *Bounds*: bodies, and answers while they are written as text, share a [`TextMemory`]. A client
//! that takes nothing of an answer for [`TAKE_TIME_MAX`], or sends nothing of its body, is hung up
//! on, so that none keeps that for itself.

mod api;
mod guard;
mod logins;
mod pages;
mod stall_timeout;
mod text_memory;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use frond_doc::document;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::limits::HANDSHAKE_MAX;
use crate::peer::Peer;
use crate::shared::Shared;

use self::guard::Guard;
use self::logins::Logins;
use self::pages::Pages;
use self::stall_timeout::StallTimeout;
use self::text_memory::TextMemory;

/// The time that the head of a request may take, and a connection be silent.
const HEAD_TIME_MAX: Duration = Duration::from_secs(75);
/// The time that a client may take nothing of its answer, or send nothing of its body.
const TAKE_TIME_MAX: Duration = Duration::from_secs(20);
/// The time after which it tries again to accept connections.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// The headers of every answer: nothing comes from elsewhere or is shown elsewhere, nothing is a
/// script or a style but the console's own files.
static HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// The options of the console.
#[derive(Clone, Debug)]
pub struct ConsoleOptions {
    /// `HOST:PORT`; a port of 0 takes any free one.
    pub listen: String,
    /// Names by which browsers reach it, beside those of loopback.
    pub hosts: Vec<String>,
    /// Whether it only reads, whichever user has logged in.
    pub read_only: bool,
}

/// The state that all connections of the console share.
struct Console {
    server: Arc<Shared>,
    guard: Guard,
    logins: Logins,
    pages: Pages,
    read_only: bool,
    /// The memory of bodies and answers.
    text: TextMemory,
}

/// An answer.
type Answer = Response<Full<Bytes>>;

/// Serves the console on `listener` until it is dropped.
pub async fn serve(listener: TcpListener, server: Arc<Shared>, options: ConsoleOptions) {
    let Ok(address) = listener.local_addr() else { return };
    let console = Arc::new(Console {
        guard: Guard { hosts: options.hosts, is_tls: server.tls.is_some() },
        logins: Logins::new(address.port(), server.tls.is_some()),
        pages: Pages::default(),
        read_only: options.read_only,
        text: TextMemory::beside(server.messages.bytes_max()),
        server,
    });
    loop {
        match listener.accept().await {
            Ok((stream, address)) => accept(&console, stream, address),
            // Out of file descriptors, mostly: that passes.
            Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
        }
    }
}

/// Serves one more connection, or closes it if there are too many.
fn accept(console: &Arc<Console>, stream: TcpStream, address: SocketAddr) {
    let Some(peer) = console.server.connect(address) else { return };
    let client = document! { "application": &document! { "name": "Frond console" } };
    peer.note_client(client.view());
    let _ = stream.set_nodelay(true);
    let place = Place { console: Arc::clone(console), peer };
    tokio::spawn(async move {
        let Some(tls) = place.console.server.tls.as_ref().map(|tls| tls.config()) else {
            return connection(stream, place).await;
        };
        let accepted = TlsAcceptor::from(tls).accept(stream);
        if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_MAX, accepted).await {
            connection(stream, place).await;
        }
    });
}

/// A connection's place among those counted, given back however the connection ends.
struct Place {
    console: Arc<Console>,
    peer: Arc<Peer>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.console.server.disconnect();
    }
}

async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin, place: Place) {
    let place = &place;
    let service = hyper::service::service_fn(move |request| async move {
        Ok::<_, Infallible>(with_headers(answer(&place.console, &place.peer, request).await))
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX);
    // An error on it concerns no other connection.
    let _ = http
        .serve_connection(TokioIo::new(StallTimeout::new(stream, TAKE_TIME_MAX)), service)
        .await;
}

async fn answer(console: &Arc<Console>, peer: &Arc<Peer>, request: Request<Incoming>) -> Answer {
    let (uri, headers) = (request.uri(), request.headers());
    if let Err((status, why)) = console.guard.check_host(uri, headers) {
        return text(status, &why);
    }
    match *request.method() {
        Method::GET | Method::HEAD => console.pages.answer(uri.path(), headers),
        Method::POST => match console.guard.check_origin(headers) {
            Ok(()) => api::answer(console, peer, request).await,
            Err((status, why)) => text(status, &why),
        },
        _ => text(StatusCode::METHOD_NOT_ALLOWED, "GET, HEAD or POST"),
    }
}

fn with_headers(mut answer: Answer) -> Answer {
    for (name, value) in &HEADERS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// An answer of one line.
fn text(status: StatusCode, line: &str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(format!("{line}\n"))));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
