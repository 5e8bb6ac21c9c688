//! The server's side: connections, TLS, and how it begins and ends. The requests are `service`'s.
//!
//! *Bounds*: [`CONNECTIONS_MAX`] connections, each of which sends a request's head within
//! [`HEAD_SECONDS_MAX`]; more wait to be accepted. One address has [`CONNECTIONS_OF_PEER_MAX`] at
//! most: for another the oldest is closed on which nothing was asked yet, or else the new one. It
//! listens beyond loopback only if there are tokens, and then warns if they travel without TLS.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use frond_db::Frond;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::http::protocol::LEASE_SECONDS;
use crate::http::service::Service;
use crate::http::tls;
use crate::http::tokens::Tokens;

/// The greatest number of connections at once.
const CONNECTIONS_MAX: usize = 256;
/// The greatest number of connections of one address.
const CONNECTIONS_OF_PEER_MAX: usize = CONNECTIONS_MAX / 2;
/// The time that a handshake or the head of a request may take.
const HEAD_SECONDS_MAX: u64 = 15;
/// Threads for connections, and for what waits for the disk.
const THREADS: usize = 2;
const BLOCKING_THREADS_MAX: usize = 16;
/// The time that what runs is waited for at the end.
const END_SECONDS_MAX: u64 = 5;

/// The options of serving.
#[derive(Clone, Debug, Default)]
pub struct ServeOptions {
    /// `HOST:PORT`; port 0 takes any free one.
    pub listen: String,
    /// The tokens and what each allows; without any, every client on this machine may clone and
    /// push, and none may take a backup.
    pub tokens: Tokens,
    /// Names by which clients reach the server, beside those of loopback. Where there are some, or
    /// no tokens, requests that name another are refused.
    pub hosts: Vec<String>,
    /// Pushes are refused while the data directory's packs have so many bytes, so that clients that
    /// may write can't fill the disk. Chunks that a refused push sent before are garbage, for the
    /// next collection.
    pub store_bytes_max: Option<u64>,
    /// Whether all pushes are refused: a member of a replica set can't take one alone.
    pub refuses_pushes: bool,
    /// Files of certificates and of their key, in PEM; without them there is no TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
}

/// The reason why a server doesn't begin.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Not an address, or not one that can be listened on.
    #[error("{0}: {1}")]
    Listen(String, std::io::Error),
    /// Any client could reach everything.
    #[error("{0} is not a loopback address: to listen there, name a file of tokens")]
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
        let service = Arc::new(Service::new(frond, options));
        let (stop, stopped) = watch::channel(false);
        runtime.spawn(accept(listener, acceptor, service.clone(), stopped.clone()));
        runtime.spawn(sweep(service.clone(), stopped));
        Ok(RemoteServer { runtime: Some(runtime), stop, address, service, is_tls })
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address that clients use for a database here, without its name.
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
    let peers = Peers::default();
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => return,
        };
        match accepted {
            Ok((stream, address)) => {
                let peer = address.ip().to_canonical();
                let Some(entry) = peers.enter(peer) else { continue };
                let open = Arc::clone(&entry.open);
                let connection = connection(stream, open, acceptor.clone(), service.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = connection => {}
                        () = entry.open.gives_way.notified() => {}
                    }
                    drop((entry, permit));
                });
            }
            // Too many open files, for instance: that passes.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// The connections, the oldest first.
#[derive(Clone, Default)]
struct Peers(Arc<Mutex<Vec<Arc<Open>>>>);

/// A connection.
struct Open {
    peer: IpAddr,
    /// Whether a request came on it.
    has_request: AtomicBool,
    /// Notified when it gives way to another.
    gives_way: Notify,
}

/// A connection among the others, until it ends.
struct Entry {
    peers: Peers,
    open: Arc<Open>,
}

impl Peers {
    /// Enters a connection. Where its address has too many, the oldest on which no request has come
    /// gives way; if there is none, the new one isn't let in.
    fn enter(&self, peer: IpAddr) -> Option<Entry> {
        let mut all = self.all();
        if CONNECTIONS_OF_PEER_MAX <= all.iter().filter(|open| open.peer == peer).count() {
            let is_silent =
                |open: &Arc<Open>| open.peer == peer && !open.has_request.load(Ordering::Relaxed);
            let oldest = all.iter().position(is_silent)?;
            all.remove(oldest).gives_way.notify_one();
        }
        let (has_request, gives_way) = (AtomicBool::new(false), Notify::new());
        let open = Arc::new(Open { peer, has_request, gives_way });
        all.push(Arc::clone(&open));
        Some(Entry { peers: self.clone(), open })
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Open>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.peers.all().retain(|open| !Arc::ptr_eq(open, &self.open));
    }
}

/// One connection, to its end. An error on it concerns no other connection.
async fn connection(
    stream: TcpStream,
    open: Arc<Open>,
    acceptor: Option<TlsAcceptor>,
    service: Arc<Service>,
) {
    let _ = stream.set_nodelay(true);
    let handle = hyper::service::service_fn(move |request| {
        open.has_request.store(true, Ordering::Relaxed);
        service.clone().answer(open.peer, request)
    });
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

/// Ends leases that no client uses.
async fn sweep(service: Arc<Service>, mut stopped: watch::Receiver<bool>) {
    let idle = Duration::from_secs(LEASE_SECONDS);
    loop {
        tokio::select! {
            () = tokio::time::sleep(idle / 8) => service.expire(idle),
            _ = stopped.changed() => return,
        }
    }
}
