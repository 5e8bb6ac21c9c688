//! Listening, and stopping.
//!
//! A [`Server`] is bound first (so that its address is known and every error is reported at once)
//! and run then. It stops when its [`Stopper`] says so or, with [`Server::run_until_signal`], on
//! SIGINT or SIGTERM: no more connections are taken, open transactions end, commands that run are
//! answered (that they were interrupted, if they take too long), then the databases are closed.

mod accept;
pub(crate) mod bind;
mod error;
mod options;
mod serving;
mod signals;
mod stopper;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use frond_db::memory_queue::MemoryQueue;
use frond_db::{Error, Frond};
use frond_doc::{DocumentBuf, Value};
use frond_query::Filter;
use tokio::runtime::Runtime;
use tokio::sync::watch;

pub use self::error::ServerError;
pub use self::options::{BeginningParameters, ServerOptions};
use self::serving::{Serving, UNIX_PEER};
use self::signals::stop_on_signals;
pub use self::stopper::Stopper;
use crate::access::Accounts;
use crate::audit_log::AuditLog;
use crate::cluster_time::ClusterTimeKey;
use crate::commands::{COMMANDS, FAULT_ADVICE};
use crate::governor;
use crate::limits::{AUTOMATIC_COMMITS_MAX, DOCUMENT_BYTES_LIMIT, STOP_WAIT_MAX, THREADS_EXTRA};
use crate::log::{self, LogOutput, Severity};
use crate::log_file::LogRotation;
use crate::member;
use crate::message_memory::MessageMemory;
use crate::metrics;
use crate::replica::key::ClusterKey;
use crate::scram::{Credentials, Mechanism};
use crate::shared::Shared;
use crate::tls::Tls;
use crate::usage::Usage;
use crate::workers::Workers;

/// A server that is bound to its address.
pub struct Server {
    runtime: Runtime,
    serving: Serving,
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
            .max_blocking_threads(THREADS_EXTRA + AUTOMATIC_COMMITS_MAX)
            .build()
            .map_err(ServerError::Runtime)?;
        let entered = runtime.enter();
        let beyond_loopback = options.auth || options.insecure;
        let listen = options.listen.as_deref();
        let each = listen.into_iter().chain(options.listen_also.iter().map(String::as_str));
        let listeners = bind::to_each(each, beyond_loopback)?;
        let unix_socket = options.unix_socket.as_ref().map(bind::unix).transpose()?;
        let metrics = options.metrics_listen.as_deref();
        let metrics = metrics.map(|listen| bind::to_any(listen, true)).transpose()?;
        let is_guarded = options.auth && tls.is_some();
        let console = options.console.take();
        let console = console.map(|console| bind::console(console, is_guarded));
        let console = console.transpose()?;
        drop(entered);
        let address = match listeners.first() {
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
        let drain_requested = shared.drain.asker().subscribe();
        let serving = Serving {
            listeners,
            unix_socket,
            metrics,
            console,
            supervisor,
            shared,
            drain_requested,
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

    /// The address on which it answers monitors, if it does.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.serving.metrics.as_ref()?.local_addr().ok()
    }

    /// The address on which it serves the console, if it does.
    pub fn console_address(&self) -> Option<SocketAddr> {
        self.serving.console.as_ref()?.0.local_addr().ok()
    }

    /// Returns a handle that stops this server.
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
            // It only measures: how it ended matters to no client.
            let _ = governor.join();
        }
        if let (Some(replica), Some(turn)) = (&shared.replica, turn) {
            replica.stop();
            // A panic in it was reported.
            let _ = turn.join();
        }
        shared.waiting.close(&shared.frond);
        // A panic in it was reported; nothing waits any more.
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

/// Makes the state that all requests share, by `options`. Opens the logs.
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
    shared.usage = Usage::default().counting(COMMANDS.iter().map(|command| command.name));
    shared.replica = options.replica;
    shared.beginning = options.beginning;
    shared.initiation.is_awaited = options.awaits_set.into();
    shared.reads_only = options.reads_only;
    shared.parsed = options.parsed;
    shared.accounts = accounts;
    if let Some(key) = &options.router_key {
        shared.router_credentials = Some(router_credentials(key).map_err(ServerError::Users)?);
    }
    shared.router_key = options.router_key;
    shared.line_tls = options.line_tls;
    if options.auth {
        shared.cluster_time_key = Some(ClusterTimeKey::new().map_err(ServerError::Users)?);
    }
    shared.places = options.places;
    shared.hooks = options.hooks;
    let failed = |source| ServerError::Log { output: options.log.clone(), source };
    shared.log.write_to(&options.log).map_err(failed)?;
    let rotation = options.parameters.log_rotation;
    shared.log.set_rotation(rotation);
    if let Some(path) = options.audit_path {
        shared.audit_log = open_audit_log((path, rotation), options.audit_filter.as_ref())?;
    }
    shared.compressors = options.compressors;
    shared.tls = tls;
    if options.test_commands {
        shared.fail_points.enable();
    }
    set_parameters(&mut shared, &options.parameters);
    shared.workers = Workers::new(options.threads_max);
    shared.messages = MessageMemory::new(options.messages_bytes_max);
    shared.answers = MemoryQueue::new(options.answers_bytes_max);
    shared.kept_documents = MemoryQueue::new(options.cursors_bytes_max);
    Ok(shared)
}

/// Returns the credentials by which the proof of a router that it knows the key is checked.
fn router_credentials(key: &ClusterKey) -> Result<Credentials, Error> {
    let prepared = Mechanism::Sha256.prepare("", &key.text())?;
    Credentials::new(Mechanism::Sha256, &prepared)
}

fn set_parameters(shared: &mut Shared, parameters: &BeginningParameters) {
    if let Some(seconds) = parameters.expire_seconds {
        shared.set_expire_seconds(seconds);
    }
    if let Some(seconds) = parameters.snapshot_window_seconds {
        shared.snapshot_window.set_seconds(seconds);
    }
    shared.api_rules.require_version(parameters.requires_api_version);
    if parameters.accepts_second_api_version {
        shared.api_rules.accept_second();
    }
    let log = &shared.log;
    log.set_quiet(parameters.is_quiet);
    if let Some(level) = parameters.log_level {
        log.verbosity.begin_at(level);
    }
    if let Some(millis) = parameters.slow_millis {
        log.set_slow_millis(millis.into());
    }
    if let Some(rate) = parameters.slow_sample_rate {
        log.set_sample_rate(rate);
    }
    shared.profiler.begin_at(parameters.profile_level);
    if let Some(seconds) = parameters.transaction_seconds {
        shared.time_limits.set_transaction_seconds(seconds);
    }
    if let Some(millis) = parameters.cursor_millis {
        shared.time_limits.set_cursor_millis(millis);
    }
    if parameters.has_no_localhost_exception {
        shared.has_localhost_exception = false;
    }
}

fn open_audit_log(
    (path, rotation): (PathBuf, LogRotation),
    filter: Option<&DocumentBuf>,
) -> Result<AuditLog, ServerError> {
    let filter = filter.map(|filter| Filter::parse_test(filter.view())).transpose();
    let filter = filter.map_err(|error| ServerError::AuditFilter(error.into()))?;
    let failed = |source| ServerError::Log { output: LogOutput::File(path.clone()), source };
    AuditLog::to_file(&path, filter, rotation).map_err(failed)
}

/// Logs events in the data directory, and lets clients that wait for news know that the databases
/// were closed for writing.
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
