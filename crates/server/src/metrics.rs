//! The second listener, for monitoring: `/metrics` in Prometheus' text format,
//! `/live` and `/ready`.
//!
//! - `/live`: 200 while the process answers at all.
//! - `/ready`: 200 where clients may be sent to; 503 and the reason while the server stops, once a
//!   fault has closed the databases for writing, and while the store is away and the disk full.
//! - `/metrics`: what is counted. It names no database, collection, user or client.
//!
//! It goes on until the server has stopped, so that a server that drains says so. *Bounds*:
//! [`CONNECTIONS_MAX`] connections, each of which sends a request's head within [`HEAD_TIME_MAX`];
//! bodies aren't read.

mod samples;
mod text;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use frond_store::SendFailure;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::health::Health;
use crate::shared::Shared;

/// Connections at one time: more wait.
const CONNECTIONS_MAX: usize = 64;
/// The time that the head of a request may take, and a connection be silent.
const HEAD_TIME_MAX: Duration = Duration::from_secs(15);
/// The time that an answer may take to be sent.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// The time after which it tries again to accept connections.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// The content type that Prometheus asks for.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const TEXT_TYPE: &str = "text/plain; charset=utf-8";

/// Checks whether clients may be sent to a server.
///
/// # Errors
/// Why not, in words.
pub fn readiness(server: &Shared) -> Result<(), String> {
    if server.drain.is_begun() {
        return Err("the server is shutting down".to_owned());
    }
    match Health::of(server) {
        Health::ClosedForWriting(fault) => Err(format!("closed for writing: {}", fault.message)),
        Health::StoreIsAway(failure) if failure.is_full => {
            Err(format!("refuses writes: {}", failure_text(&failure)))
        }
        Health::StoreIsAway(_) | Health::Well => Ok(()),
    }
}

/// Returns the answer of a server that is ready: with a warning of a state that will end this, if
/// it lasts.
fn ready(server: &Shared) -> String {
    match Health::of(server) {
        Health::StoreIsAway(failure) => format!("ready, but {}\n", failure_text(&failure)),
        _ => "ready\n".to_owned(),
    }
}

fn failure_text(failure: &SendFailure) -> String {
    let since = failure.since_micros.div_euclid(1_000_000);
    format!(
        "packs can't be sent to the store since {since} (seconds since 1970): {}",
        failure.message
    )
}

/// Answers on `listener` until it is dropped.
pub async fn serve(listener: TcpListener, server: Arc<Shared>) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // It is never closed.
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let server = Arc::clone(&server);
                tokio::spawn(async move {
                    connection(stream, server).await;
                    drop(permit);
                });
            }
            // Out of file descriptors, mostly: that passes.
            Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
        }
    }
}

/// One connection: a request, since a monitor asks seldom and keeps none open.
async fn connection(stream: TcpStream, server: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |request| {
        let server = Arc::clone(&server);
        async move { Ok::<_, Infallible>(answer(&server, &request)) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX).keep_alive(false);
    let served = http.serve_connection(TokioIo::new(stream), service);
    // An error on it concerns no other connection.
    let _ = tokio::time::timeout(ANSWER_TIME_MAX, served).await;
}

fn answer(server: &Shared, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return response(StatusCode::METHOD_NOT_ALLOWED, TEXT_TYPE, "GET or HEAD\n".to_owned());
    }
    match request.uri().path() {
        "/metrics" => response(StatusCode::OK, METRICS_TYPE, samples::write(server)),
        "/live" => response(StatusCode::OK, TEXT_TYPE, "live\n".to_owned()),
        "/ready" => match readiness(server) {
            Ok(()) => response(StatusCode::OK, TEXT_TYPE, ready(server)),
            Err(why) => {
                response(StatusCode::SERVICE_UNAVAILABLE, TEXT_TYPE, format!("not ready: {why}\n"))
            }
        },
        _ => {
            let there_is = "there is /metrics, /live and /ready\n".to_owned();
            response(StatusCode::NOT_FOUND, TEXT_TYPE, there_is)
        }
    }
}

fn response(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

/// Whether an address is reached from this machine alone.
pub fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}
