//! The server's side: connections, TLS, and how it begins and ends. The requests are `service`'s.
//!
//! *Bounds*: [`CONNECTIONS_MAX`] connections, each of which sends a request's head within
//! [`HEAD_SECONDS_MAX`]; more wait to be accepted. It listens beyond loopback only if tokens say who may do
//! what, and then tells if they travel without TLS.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use frond_db::Frond;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::http::protocol::LEASE_SECONDS;
use crate::http::service::Service;
use crate::http::tls;
use crate::http::tokens::Tokens;

/// Most connections at once.
const CONNECTIONS_MAX: usize = 256;
/// How long a handshake or the head of a request may take.
const HEAD_SECONDS_MAX: u64 = 15;
/// Threads for connections, and for what waits for the disk.
const THREADS: usize = 2;
const BLOCKING_THREADS_MAX: usize = 16;
/// How long what runs is waited for at the end.
const END_SECONDS_MAX: u64 = 5;

/// How to serve.
#[derive(Clone, Debug, Default)]
pub struct ServeOptions {
    /// `HOST:PORT`; port 0 takes any free one.
    pub listen: String,
    /// Who may do what; without any everybody may do everything.
    pub tokens: Tokens,
    /// Pushes are refused while the data directory's packs have so many bytes, so that who may write can't
    /// fill the disk. What a refused push sent before is garbage, for the next collection.
    pub store_bytes_max: Option<u64>,
    /// Files of certificates and of their key, in PEM; without them there is no TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
}

/// Why a server doesn't begin.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Not an address, or not one that can be listened on.
    #[error("{0}: {1}")]
    Listen(String, std::io::Error),
    /// Everybody could reach everything.
    #[error("{0} is no loopback address: to listen there, say with tokens who may do what")]
    Open(SocketAddr),
    /// Certificates or key are of no use.
    #[error("{0}")]
    Tls(String),
    /// There are no threads to be had.
    #[error("threads can't be started: {0}")]
    Threads(std::io::Error),
}

/// Serves the databases of a data directory as remotes, until it is dropped.
pub struct RemoteServer {
    /// `None` once it ends.
    runtime: Option<Runtime>,
    stop: watch::Sender<bool>,
    address: SocketAddr,
    service: Arc<Service>,
    is_tls: bool,
}

impl RemoteServer {
    /// Begins to serve.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub fn start(frond: Frond, options: &ServeOptions) -> Result<RemoteServer, ServeError> {
        let acceptor = match &options.tls {
            Some((certificates, key)) => {
                Some(TlsAcceptor::from(tls::server_config(certificates, key)?))
            }
            None => None,
        };
        let is_tls = acceptor.is_some();
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).max_blocking_threads(BLOCKING_THREADS_MAX);
        let runtime = builder.thread_name("frond-remote-serve").enable_all().build();
        let runtime = runtime.map_err(ServeError::Threads)?;
        let listen = |error| ServeError::Listen(options.listen.clone(), error);
        let listener = runtime.block_on(TcpListener::bind(&options.listen)).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        if options.tokens.is_empty() && !is_loopback(address.ip()) {
            return Err(ServeError::Open(address));
        }
        let service =
            Arc::new(Service::new(frond, options.tokens.clone(), options.store_bytes_max));
        let (stop, stopped) = watch::channel(false);
        runtime.spawn(accept(listener, acceptor, service.clone(), stopped.clone()));
        runtime.spawn(sweep(service.clone(), stopped));
        Ok(RemoteServer { runtime: Some(runtime), stop, address, service, is_tls })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What clients call a database here, without its name.
    pub fn url(&self) -> String {
        format!("{}://{}", if self.is_tls { "https" } else { "http" }, self.address)
    }

    /// Whether tokens travel where others can read them.
    pub fn is_overheard(&self) -> bool {
        !self.is_tls && !is_loopback(self.address.ip())
    }
}

impl Drop for RemoteServer {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(END_SECONDS_MAX));
        }
        // They keep the data directory open.
        self.service.end();
    }
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

async fn accept(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    service: Arc<Service>,
    mut stopped: watch::Receiver<bool>,
) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                tokio::spawn(connection(stream, acceptor.clone(), service.clone(), permit));
            }
            // Too many open files, for instance: that passes.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// One connection, to its end. What goes wrong on it concerns nobody else.
async fn connection(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    service: Arc<Service>,
    _permit: OwnedSemaphorePermit,
) {
    let _ = stream.set_nodelay(true);
    let handle = hyper::service::service_fn(move |request| service.clone().answer(request));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(HEAD_SECONDS_MAX));
    let Some(acceptor) = acceptor else {
        let _ = http.serve_connection(TokioIo::new(stream), handle).await;
        return;
    };
    let handshake =
        tokio::time::timeout(Duration::from_secs(HEAD_SECONDS_MAX), acceptor.accept(stream));
    if let Ok(Ok(stream)) = handshake.await {
        let _ = http.serve_connection(TokioIo::new(stream), handle).await;
    }
}

/// Ends leases that nobody uses.
async fn sweep(service: Arc<Service>, mut stopped: watch::Receiver<bool>) {
    let idle = Duration::from_secs(LEASE_SECONDS);
    loop {
        tokio::select! {
            () = tokio::time::sleep(idle / 8) => service.expire(idle),
            _ = stopped.changed() => return,
        }
    }
}
