//! Listening, and stopping.
//!
//! A [`Server`] is bound first (so that its address is known and every error is told at once) and
//! run then. It stops when its [`Stopper`] says so or, with [`Server::run_until_signal`], on SIGINT
//! or SIGTERM: no more connections are taken, open transactions end, commands that run are answered
//! (that they were interrupted, if they take too long), then the databases are closed.

mod bind;
mod error;
mod options;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use frond_db::Frond;
use frond_db::memory_queue::MemoryQueue;
use frond_doc::{DocumentBuf, Value};
use frond_query::Filter;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

pub use self::error::ServerError;
pub use self::options::ServerOptions;
use crate::access::Accounts;
use crate::audit_log::AuditLog;
use crate::cluster_time::ClusterTimeKey;
use crate::commands::FAULT_ADVICE;
use crate::connection;
use crate::connection::socket::IdleSocket;
use crate::console::{self, ConsoleOptions};
use crate::governor;
use crate::limits::{
    CURSOR_SWEEP_INTERVAL, DOCUMENT_BYTES_LIMIT, DRAIN_STEP, STALL_MAX, STOP_SWEEP_INTERVAL,
    STOP_WAIT_MAX, THREADS_EXTRA,
};
use crate::log::{self, LogOutput, Severity};
use crate::member;
use crate::message_memory::MessageMemory;
use crate::metrics;
use crate::replica::{Replica, channel, links};
use crate::shared::Shared;
use crate::supervisor::Supervisor;
use crate::sweep;
use crate::tls::Tls;
use crate::unix_socket::UnixSocket;
use crate::workers::{STALLED, Workers};

/// A server that is bound to its address.
pub struct Server {
    runtime: Runtime,
    serving: Serving,
}

/// What a server does on its runtime.
struct Serving {
    listener: Option<TcpListener>,
    unix_socket: Option<UnixSocket>,
    metrics: Option<TcpListener>,
    console: Option<(TcpListener, ConsoleOptions)>,
    supervisor: Option<Supervisor>,
    shared: Arc<Shared>,
    asked: watch::Receiver<Option<Duration>>,
    /// Told to connections when the drain is over.
    stop: watch::Sender<bool>,
    memory_bytes: Option<u64>,
}

/// Stops a server, from any thread.
#[derive(Clone)]
pub struct Stopper(watch::Sender<Option<Duration>>);

impl Stopper {
    /// Tells the server to stop; returns at once.
    pub fn stop(&self) {
        self.0.send_replace(Some(STOP_WAIT_MAX));
    }
}

impl Server {
    /// Binds a server for `frond` to the address of `options`.
    ///
    /// # Errors
    /// [`ServerError::NotLoopback`] if the address can be reached from outside this machine, and
    /// neither `auth` nor `insecure` is set; [`ServerError::Listen`] if it can't be resolved or is
    /// taken; [`ServerError::Users`] if the users can't be read.
    pub fn bind(frond: Frond, mut options: ServerOptions) -> Result<Server, ServerError> {
        let tls = options.tls.take().map(Tls::open).transpose()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_name("frond-server")
            .max_blocking_threads(THREADS_EXTRA)
            .build()
            .map_err(ServerError::Runtime)?;
        let entered = runtime.enter();
        let beyond_loopback = options.auth || options.insecure;
        let listen = options.listen.as_deref();
        let listener = listen.map(|listen| bind::to_any(listen, beyond_loopback)).transpose()?;
        let unix_socket = options.unix_socket.as_ref().map(bind::unix).transpose()?;
        let metrics = options.metrics_listen.as_deref();
        let metrics = metrics.map(|listen| bind::to_any(listen, true)).transpose()?;
        let is_guarded = options.auth && tls.is_some();
        let console = options.console.take();
        let console = console.map(|console| bind::console(console, is_guarded));
        let console = console.transpose()?;
        drop(entered);
        let address = match &listener {
            Some(listener) => listener.local_addr().map_err(|source| {
                let address = listen.unwrap_or_default().to_owned();
                ServerError::Listen { address, source }
            })?,
            None => UNIX_PEER,
        };
        let (supervisor, memory_bytes) = (options.supervisor.take(), options.memory_bytes);
        let shared = Arc::new(shared(frond, options, address, tls)?);
        log_events(&shared, metrics.as_ref().and_then(|listener| listener.local_addr().ok()));
        let (stop, _) = watch::channel(false);
        let asked = shared.drain.asker().subscribe();
        let serving = Serving {
            listener,
            unix_socket,
            metrics,
            console,
            supervisor,
            shared,
            asked,
            stop,
            memory_bytes,
        };
        Ok(Server { runtime, serving })
    }

    /// The address on which it listens, with the port that it got; port 0 where it listens on a
    /// socket of the Unix domain only.
    pub fn address(&self) -> SocketAddr {
        self.serving.shared.address
    }

    /// The address on which it answers who looks after it, if it does.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.serving.metrics.as_ref()?.local_addr().ok()
    }

    /// The address on which it serves the console, if it does.
    pub fn console_address(&self) -> Option<SocketAddr> {
        self.serving.console.as_ref()?.0.local_addr().ok()
    }

    /// What stops this server.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.serving.shared.drain.asker())
    }

    /// Serves until its [`Stopper`] stops it, then closes the databases.
    ///
    /// # Errors
    /// `ServerError` if the runtime can't be made, or the databases can't be closed.
    pub fn run(self) -> Result<(), ServerError> {
        self.run_on_runtime(false)
    }

    /// As [`Server::run`], and stops on SIGINT and SIGTERM too.
    ///
    /// # Errors
    /// As [`Server::run`]; if the signals can't be waited for.
    pub fn run_until_signal(self) -> Result<(), ServerError> {
        self.run_on_runtime(true)
    }

    fn run_on_runtime(self, on_signals: bool) -> Result<(), ServerError> {
        let stopper = self.stopper();
        let Server { runtime, serving } = self;
        let shared = Arc::clone(&serving.shared);
        let mut governor = None;
        let followed = Arc::clone(&shared);
        let follow = move || followed.waiting.run();
        let follower = std::thread::Builder::new().name("frond-follow".to_owned()).spawn(follow);
        let follower = follower.map_err(ServerError::Runtime)?;
        let turn = shared.replica.as_ref().map(|replica| member::start(replica, &shared));
        let turn = turn.transpose().map_err(ServerError::Runtime)?;
        let result = runtime.block_on(async {
            if on_signals {
                stop_on_signals(stopper, Arc::clone(&shared)).map_err(ServerError::Runtime)?;
            }
            if let Some(bytes) = serving.memory_bytes {
                let started = governor::start(&serving.shared, bytes, serving.stop.subscribe());
                governor = Some(started.map_err(ServerError::Runtime)?);
            }
            serving.serve().await;
            Ok::<(), ServerError>(())
        });
        if let Some(governor) = governor {
            governor.thread().unpark();
            // It only measures: how it ended is nothing to anybody.
            let _ = governor.join();
        }
        if let (Some(replica), Some(turn)) = (&shared.replica, turn) {
            replica.stop();
            // A panic in it was told.
            let _ = turn.join();
        }
        shared.waiting.close(&shared.frond);
        // A panic in it was told; nothing waits any more.
        let _ = follower.join();
        shared.workers.stop(STOP_WAIT_MAX);
        // A command that hangs must not keep the process from ending: the log is what keeps
        // writes, and a close that cuts such a command off loses nothing acknowledged.
        runtime.shutdown_timeout(STOP_WAIT_MAX);
        shared.cursors.close();
        result?;
        match shared.frond.close() {
            // It may have ceased to lead just now; what the set has agreed on it has.
            Err(_) if shared.replica.is_some() => Ok(()),
            closed => closed.map_err(ServerError::Close),
        }
    }
}

/// What all requests share, as `options` say. Opens the logs.
fn shared(
    frond: Frond,
    options: ServerOptions,
    address: SocketAddr,
    tls: Option<Tls>,
) -> Result<Shared, ServerError> {
    let accounts = Accounts::new(options.auth);
    if options.auth {
        accounts.directory(&frond).map_err(ServerError::Users)?;
    }
    let bytes_max = options.document_bytes_max.min(DOCUMENT_BYTES_LIMIT);
    let mut shared = Shared::new(
        frond.with_document_bytes_max(bytes_max as u64),
        address,
        options.connections_max,
        options.arguments,
        options.data_directory,
        options.member,
    );
    shared.replica = options.replica;
    shared.parsed = options.parsed;
    shared.accounts = accounts;
    if options.auth {
        shared.cluster_time_key = Some(ClusterTimeKey::new().map_err(ServerError::Users)?);
    }
    shared.places = options.places;
    shared.hooks = options.hooks;
    let failed = |source| ServerError::Log { output: options.log.clone(), source };
    shared.log.write_to(&options.log).map_err(failed)?;
    if let Some(path) = options.audit_path {
        shared.audit_log = open_audit_log(path, options.audit_filter.as_ref())?;
    }
    shared.compressors = options.compressors;
    shared.tls = tls;
    if options.test_commands {
        shared.fail_points.enable();
    }
    shared.workers = Workers::new(options.threads_max);
    shared.messages = MessageMemory::new(options.messages_bytes_max);
    shared.answers = MemoryQueue::new(options.answers_bytes_max);
    shared.kept_documents = MemoryQueue::new(options.cursors_bytes_max);
    Ok(shared)
}

fn open_audit_log(path: PathBuf, filter: Option<&DocumentBuf>) -> Result<AuditLog, ServerError> {
    let filter = filter.map(|filter| Filter::parse_test(filter.view())).transpose();
    let filter = filter.map_err(|error| ServerError::AuditFilter(error.into()))?;
    let failed = |source| ServerError::Log { output: LogOutput::File(path.clone()), source };
    AuditLog::to_file(&path, filter).map_err(failed)
}

/// Has the log told of what happens in the data directory, and clients that wait for news that the
/// databases were closed for writing.
fn log_events(shared: &Shared, metrics: Option<SocketAddr>) {
    if let Some(address) = metrics.filter(|address| !metrics::is_loopback(*address)) {
        log::warn_of_open_metrics(&shared.log, address);
    }
    if !shared.accounts.is_enforced() {
        log::warn_of_open_access(&shared.log);
    }
    let log = Arc::clone(&shared.log);
    shared.frond.on_notice(move |notice, line| log.write(&log::notice(notice, line), |_| {}));
    let (topology, directory) = (shared.topology.clone(), shared.data_directory.clone());
    let log = Arc::clone(&shared.log);
    shared.frond.on_fault(move |fault| {
        log.write_shown(&log::storage(Severity::Error, "CLOSED FOR WRITING"), |attributes| {
            attributes
                .append("dbPath", Value::String(&directory))
                .append("error", Value::String(&fault.message))
                .append("advice", Value::String(FAULT_ADVICE));
        });
        topology.send_modify(|counter| *counter += 1);
    });
}

impl Serving {
    async fn serve(self) {
        let mut asked = self.asked;
        let mut cursors = tokio::time::interval(CURSOR_SWEEP_INTERVAL);
        let sweeper = sweep::start(&self.shared, &self.stop);
        let threads = tokio::spawn(look_after_threads(Arc::clone(&self.shared)));
        let metrics = self
            .metrics
            .map(|listener| tokio::spawn(metrics::serve(listener, Arc::clone(&self.shared))));
        let console = self.console.map(|(listener, options)| {
            tokio::spawn(console::serve(listener, Arc::clone(&self.shared), options))
        });
        let watchdog = self.supervisor.as_ref().map(|supervisor| {
            // Who doesn't listen isn't told.
            let _ = supervisor.tell("READY=1\nSTATUS=serves clients");
            tokio::spawn(keep_awake(supervisor.clone(), Arc::clone(&self.shared)))
        });
        log::serves(&self.shared.log, self.shared.address);
        if self.shared.replica.is_none() {
            log::leads(&self.shared.log);
        }
        let mut connections = JoinSet::new();
        let time_max = loop {
            tokio::select! {
                // The sender is in what is shared.
                asked = asked.wait_for(Option::is_some) => {
                    break asked.ok().and_then(|asked| *asked).unwrap_or_default();
                }
                accepted = accept_tcp(self.listener.as_ref()) => match accepted {
                    Ok((stream, address)) => {
                        // An answer goes out in one piece; waiting to fill a packet would only
                        // delay it.
                        let _ = stream.set_nodelay(true);
                        let socket = IdleSocket::Tcp(stream);
                        accept(&mut connections, &self.shared, &self.stop, socket, address);
                    }
                    // Out of file descriptors, mostly: others will be closed, try again.
                    Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
                },
                accepted = accept_unix(self.unix_socket.as_ref()) => match accepted {
                    Ok(stream) => {
                        let socket = IdleSocket::Unix(stream);
                        accept(&mut connections, &self.shared, &self.stop, socket, UNIX_PEER);
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
                },
                _ = cursors.tick() => self.shared.cursors.expire(Instant::now()),
                Some(_) = connections.join_next() => {}
            }
        };
        if let Some(supervisor) = &self.supervisor {
            let _ = supervisor.tell("STOPPING=1\nSTATUS=answers what runs");
        }
        drop((self.listener, self.unix_socket));
        if !drain(&mut connections, &self.shared, time_max).await {
            self.shared.operations.stop_all();
        }
        self.stop.send_replace(true);
        drop(sweeper.await);
        if !finish(&mut connections, &self.shared).await {
            // A client would rather hear that than be cut off.
            self.shared.operations.stop_all();
            finish(&mut connections, &self.shared).await;
        }
        // Connections that have not finished by then are cut off when the set is dropped.
        for task in std::iter::once(threads).chain(metrics).chain(console).chain(watchdog) {
            task.abort();
            drop(task.await);
        }
    }
}

/// Tells a supervisor, where it wants to hear it, that the server goes on.
async fn keep_awake(supervisor: Supervisor, shared: Arc<Shared>) {
    let Some(watchdog) = supervisor.watchdog else { return };
    let mut look = tokio::time::interval(watchdog / 2);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let (supervisor, shared) = (supervisor.clone(), Arc::clone(&shared));
        // On a thread that may wait: where none is to be had, or it can't get at the engine, the
        // server hangs.
        let told = tokio::task::spawn_blocking(move || {
            let _ = shared.frond.counters();
            supervisor.tell("WATCHDOG=1")
        });
        drop(told.await);
    }
}

/// Begins more threads where no client gets on, also while the server stops.
async fn look_after_threads(shared: Arc<Shared>) {
    let mut look = tokio::time::interval(STALLED);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        shared.workers.look(shared.sessions.has_open());
    }
}

/// Lets what runs go on, and answers all else that the server stops; tells whether it was in time.
async fn drain(connections: &mut JoinSet<()>, shared: &Arc<Shared>, time_max: Duration) -> bool {
    let end = shared.drain.begin(time_max).into();
    shared.topology.send_modify(|counter| *counter += 1);
    let mut transactions = tokio::time::interval(STOP_SWEEP_INTERVAL);
    let mut step = tokio::time::interval(DRAIN_STEP);
    while !shared.operations.is_empty() {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            _ = transactions.tick() => abort_idle(shared).await,
            _ = step.tick() => {}
            () = tokio::time::sleep_until(end) => return false,
        }
    }
    true
}

/// Ends transactions whose clients can't go on with them.
async fn abort_idle(shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    drop(tokio::task::spawn_blocking(move || sweep::abort_all_idle(&shared)).await);
}

/// Waits until the commands that run are answered; tells whether they are in time.
async fn finish(connections: &mut JoinSet<()>, shared: &Arc<Shared>) -> bool {
    let mut transactions = tokio::time::interval(STOP_SWEEP_INTERVAL);
    let end = tokio::time::Instant::now() + STOP_WAIT_MAX;
    loop {
        tokio::select! {
            biased;
            ended = connections.join_next() => if ended.is_none() { return true },
            _ = transactions.tick() => abort_idle(shared).await,
            () = tokio::time::sleep_until(end) => return false,
        }
    }
}

const _: () = assert!(STOP_WAIT_MAX.as_secs() < STALL_MAX.as_secs());

/// How soon it is tried again to accept connections.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// What a client of the Unix socket has for an address: it is on this machine.
const UNIX_PEER: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

/// The next client of the address, if there is one.
async fn accept_tcp(listener: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// The next client of the Unix socket, if there is one.
async fn accept_unix(socket: Option<&UnixSocket>) -> io::Result<UnixStream> {
    match socket {
        Some(socket) => socket.listener.accept().await.map(|(stream, _)| stream),
        None => std::future::pending().await,
    }
}

/// Serves one more connection, or closes it if there are too many.
fn accept(
    connections: &mut JoinSet<()>,
    shared: &Arc<Shared>,
    stop: &watch::Sender<bool>,
    socket: IdleSocket,
    address: SocketAddr,
) {
    let Some(peer) = shared.connect(address) else { return };
    let (shared, stop) = (Arc::clone(shared), stop.subscribe());
    connections.spawn(async move {
        let socket = match (socket, &shared.replica) {
            (IdleSocket::Tcp(stream), Some(replica)) => {
                match keep_client(stream, replica, stop.clone()).await {
                    Some(stream) => IdleSocket::Tcp(stream),
                    None => return shared.disconnect(),
                }
            }
            (socket, _) => socket,
        };
        let entry = Entry(Arc::clone(&shared));
        connection::serve(socket, shared, peer, stop).await;
        drop(entry);
    });
}

/// Gives the stream back if it is a client's; another member's is taken by a thread of its own.
async fn keep_client(
    stream: TcpStream,
    replica: &Arc<Replica>,
    mut stop: watch::Receiver<bool>,
) -> Option<TcpStream> {
    let mut first = [0; channel::MAGIC.len()];
    loop {
        let peeked = tokio::select! {
            peeked = stream.peek(&mut first) => peeked.ok()?,
            _ = stop.wait_for(|stop| *stop) => return None,
        };
        if !channel::MAGIC.starts_with(&first[..peeked]) || peeked == 0 {
            return Some(stream);
        }
        if peeked == first.len() {
            break;
        }
        tokio::time::sleep(ACCEPT_RETRY).await;
    }
    let stream = stream.into_std().ok()?;
    stream.set_nonblocking(false).ok()?;
    let replica = Arc::clone(replica);
    let answer = move || {
        // The caller is told by the end of the stream, and calls again.
        let _ = links::answer(&replica, stream);
    };
    let _ = std::thread::Builder::new().name("frond-member".to_owned()).spawn(answer);
    None
}

/// A connection's place among those counted, given back however the connection ends.
struct Entry(Arc<Shared>);

impl Drop for Entry {
    fn drop(&mut self) {
        self.0.disconnect();
    }
}

#[cfg(unix)]
fn stop_on_signals(stopper: Stopper, shared: Arc<Shared>) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // As mongod: begins other files of the logs.
    let mut rotate = signal(SignalKind::user_defined1())?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => break,
                _ = terminate.recv() => break,
                _ = rotate.recv() => rotate_logs(&shared),
            }
        }
        stopper.stop();
    });
    Ok(())
}

#[cfg(unix)]
fn rotate_logs(shared: &Shared) {
    // What goes wrong stands in the log.
    let _ = log::rotate(&shared.log, || shared.log.rotate());
    if shared.audit_log.is_on() {
        let _ = log::rotate(&shared.log, || shared.audit_log.rotate(shared.frond.wall_clock()()));
    }
}

#[cfg(not(unix))]
fn stop_on_signals(stopper: Stopper, _: Arc<Shared>) -> io::Result<()> {
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stopper.stop();
        }
    });
    Ok(())
}
