//! A router: one address for several lines, each a server or a replica set, for unmodified drivers.
//!
//! It says that it is a mongos (`msg: "isdbgrid"`), and forwards each message, as it came, to the
//! leader of the line that has the message's database ([`table`]). It keeps no data: what it must
//! know stands in two collections on the default line, so that any number of routers may run side
//! by side and be started again. [Decision 23](../../../docs/decisions/0023-router.md).
//!
//! 1. [`client_connection`] reads a client's message, [`routed_request`] what it asks, and
//!    [`route`] says where it goes.
//! 2. [`forward`] sends it over a connection from the [`pool`], waits for a leader where [`line`]
//!    knows none, and shows the driver by labels what it may send again.
//! 3. [`frames`] cuts the line's own moment out of the answer. [`pins`] keeps transactions on the
//!    line where they began; [`scatter_gather`] makes one answer of several lines'.
//! 4. [`mover`] takes a database from one line to another while it is used; a router that still
//!    thinks that it is at the old one gets an error there ([`stale_route`]).
//! 5. [`sharding`]: the collections that mongosh's `sh.status()` reads, made up from the lines.
//! 6. The servers decide what a user may do ([`login`]): at each line the connection is the user's.

mod client_connection;
mod database_entry;
mod forward;
mod frames;
mod line;
mod local_answers;
pub mod login;
mod mover;
mod moves;
mod named_databases;
mod pins;
mod pool;
mod route;
mod routed_request;
mod scatter_gather;
mod sharding;
mod shared;
mod stale_route;
mod table;
mod upstream;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use frond_store::io::{Clock, SystemClock};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use self::client_connection::ClientConnection;
use self::line::Line;
use self::login::Identity;
use self::moves::Moves;
use self::pins::Pins;
use self::pool::Pool;
use self::shared::{Counts, Shared};
use self::table::DEFAULT;
use crate::client::ClientTls;
use crate::connection::handshake::begins_with_tls;
use crate::connection::socket::IdleSocket;
use crate::limits::{CONNECTIONS_MAX, HANDSHAKE_MAX};
use crate::listener::{ServerError, bind};
use crate::log::{Log, LogOutput};
use crate::replica::key::ClusterKey;
use crate::tls::{Tls, TlsError, TlsMode, TlsOptions};

const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// The options of a router: its address, and those of its lines.
#[derive(Clone, Debug)]
pub struct RouterOptions {
    /// `HOST:PORT`; a port of 0 takes any free one.
    pub listen: String,
    /// The default line: `mongodb://HOST:PORT,.../?replicaSet=NAME&tls=true`.
    pub default: String,
    /// The key that proves to the lines' servers that users are who the router says. Clients have
    /// to log in then.
    pub key: Option<ClusterKey>,
    /// The user as which the router reads the table, where it has a key.
    pub user: Identity,
    /// Whether it may listen where other machines reach it though clients don't have to log in.
    pub insecure: bool,
    /// The TLS options for clients, if TLS is spoken.
    pub tls: Option<TlsOptions>,
    /// The TLS options for lines that want it.
    pub line_tls: ClientTls,
    /// Connections at one time.
    pub connections_max: usize,
}

impl RouterOptions {
    /// The options with a default line, on any free port of this machine, without logins.
    pub fn of(default: &str) -> RouterOptions {
        RouterOptions {
            listen: "127.0.0.1:0".to_owned(),
            default: default.to_owned(),
            key: None,
            user: Identity { database: "admin".to_owned(), user: "router".to_owned() },
            insecure: false,
            tls: None,
            line_tls: ClientTls::default(),
            connections_max: CONNECTIONS_MAX,
        }
    }
}

/// The reason why a router can't run.
#[derive(Debug, thiserror::Error)]
pub enum RouterError {
    /// It would be reached by other machines, and asks for no login.
    #[error(
        "refused to listen on {address}: {resolved} is not a loopback address, and without \
         --router-key any client that reaches it could read and change everything"
    )]
    NotLoopback {
        /// As given.
        address: String,
        /// The address that it resolves to.
        resolved: SocketAddr,
    },
    /// The address can't be listened on.
    #[error(transparent)]
    Listen(ServerError),
    /// The URI of the default line isn't one.
    #[error("--default: {0}")]
    Default(String),
    /// Certificates can't be used.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// The runtime can't be started, or signals can't be waited for.
    #[error("can't start the router's threads: {0}")]
    Runtime(io::Error),
}

/// A router that listens.
pub struct Router {
    runtime: tokio::runtime::Runtime,
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    connections_max: u64,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
}

impl Router {
    /// Binds the address.
    ///
    /// # Errors
    /// See [`RouterError`].
    pub fn bind(options: RouterOptions) -> Result<Router, RouterError> {
        let tls = options.tls.map(Tls::open).transpose()?.map(Arc::new);
        let line_tls = options.line_tls.config()?;
        let default =
            Line::parse(DEFAULT, &options.default, &line_tls).map_err(RouterError::Default)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_name("frond-router")
            .build()
            .map_err(RouterError::Runtime)?;
        let entered = runtime.enter();
        let beyond_loopback = options.key.is_some() || options.insecure;
        let listener = bind::to_any(&options.listen, beyond_loopback);
        let listener = listener.map_err(|error| match error {
            ServerError::NotLoopback { address, resolved } => {
                RouterError::NotLoopback { address, resolved }
            }
            error => RouterError::Listen(error),
        })?;
        drop(entered);
        let address = listener.local_addr().map_err(RouterError::Runtime)?;
        let log = Log::new(|| SystemClock.now_micros().div_euclid(1_000));
        log.write_to(&LogOutput::StandardError).map_err(RouterError::Runtime)?;
        let shared = Shared {
            address,
            started: std::time::Instant::now(),
            default: Arc::new(default),
            line_tls,
            key: options.key,
            user: options.user,
            table: watch::Sender::new(None),
            refresh: Notify::new(),
            pool: Pool::default(),
            moves: Moves::default(),
            pins: Pins::default(),
            counts: Counts::default(),
            log,
        };
        let (shared, connections_max) = (Arc::new(shared), options.connections_max as u64);
        let stop = watch::Sender::new(false);
        Ok(Router { runtime, listener, tls, connections_max, shared, stop })
    }

    /// The address on which it listens, with the port that it got.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// Stops it when `true` is sent, from any thread.
    pub fn stopper(&self) -> watch::Sender<bool> {
        self.stop.clone()
    }

    /// Serves until its stopper stops it: what runs is cut off, and drivers send again what they
    /// may.
    ///
    /// # Errors
    /// [`RouterError::Runtime`].
    pub fn run(self) -> Result<(), RouterError> {
        self.run_on_runtime(false)
    }

    /// As [`Router::run`], and stops on SIGINT and SIGTERM too.
    ///
    /// # Errors
    /// As [`Router::run`].
    pub fn run_until_signal(self) -> Result<(), RouterError> {
        self.run_on_runtime(true)
    }

    fn run_on_runtime(self, on_signals: bool) -> Result<(), RouterError> {
        let Router { runtime, listener, tls, connections_max, shared, stop } = self;
        runtime.block_on(async {
            if on_signals {
                stop_on_signals(stop.clone()).map_err(RouterError::Runtime)?;
            }
            let watching = tokio::spawn(Arc::clone(&shared.default).watch());
            let keeping = tokio::spawn(Arc::clone(&shared).keep_table());
            let mut stopped = stop.subscribe();
            tokio::select! {
                () = accept(&listener, tls, connections_max, &shared) => {}
                _ = stopped.wait_for(|stop| *stop) => {}
            }
            watching.abort();
            keeping.abort();
            Ok(())
        })
    }
}

#[cfg(unix)]
fn stop_on_signals(stop: watch::Sender<bool>) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stop.send_replace(true);
    });
    Ok(())
}

#[cfg(not(unix))]
fn stop_on_signals(stop: watch::Sender<bool>) -> io::Result<()> {
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.send_replace(true);
        }
    });
    Ok(())
}

/// Takes clients, for ever.
async fn accept(
    listener: &TcpListener,
    tls: Option<Arc<Tls>>,
    connections_max: u64,
    shared: &Arc<Shared>,
) {
    let last = AtomicI32::new(0);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    if shared.counts.connections.load(Ordering::Relaxed) >= connections_max {
                        continue;
                    }
                    let number = last.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
                    let entry = DatabaseEntry::of(shared);
                    let (shared, tls) = (Arc::clone(shared), tls.clone());
                    connections.spawn(async move {
                        // How a connection ends is its client's matter.
                        let _ = serve(stream, tls, shared, number).await;
                        drop(entry);
                    });
                }
                // Out of file descriptors, mostly: others will be closed, try again.
                Err(_) => sleep(ACCEPT_RETRY).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// A connection among those counted, until it is dropped.
struct DatabaseEntry(Arc<Shared>);

impl DatabaseEntry {
    fn of(shared: &Arc<Shared>) -> DatabaseEntry {
        shared.counts.connections.fetch_add(1, Ordering::Relaxed);
        shared.counts.connections_ever.fetch_add(1, Ordering::Relaxed);
        DatabaseEntry(Arc::clone(shared))
    }
}

impl Drop for DatabaseEntry {
    fn drop(&mut self) {
        self.0.counts.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn serve(
    stream: TcpStream,
    tls: Option<Arc<Tls>>,
    shared: Arc<Shared>,
    number: i32,
) -> io::Result<()> {
    // An answer goes out in one piece; waiting to fill a packet would only delay it.
    stream.set_nodelay(true)?;
    let talk = ClientConnection::new(shared, number);
    let Some(tls) = tls else { return talk.run(frames::socket(stream)).await };
    let idle = IdleSocket::Tcp(stream);
    let speaks_tls = match tls.mode() {
        TlsMode::Required => true,
        TlsMode::Allowed => match begins_with_tls(&idle).await {
            Some(speaks_tls) => speaks_tls,
            None => return Ok(()),
        },
    };
    let IdleSocket::Tcp(stream) = idle else { return Ok(()) };
    if !speaks_tls {
        return talk.run(frames::socket(stream)).await;
    }
    let accepted = TlsAcceptor::from(tls.config()).accept(stream);
    let stream = timeout(HANDSHAKE_MAX, accepted).await.map_err(io::Error::from)??;
    talk.run(frames::socket(stream)).await
}
