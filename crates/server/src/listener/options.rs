//! The options that a server is started with.

use std::path::PathBuf;
use std::sync::Arc;

use frond_doc::DocumentBuf;

use crate::client::ClientTls;
use crate::console::ConsoleOptions;
use crate::hooks::Hooks;
use crate::limits::{
    ANSWERS_BYTES_MAX, CONNECTIONS_MAX, CURSORS_BYTES_MAX, CURSORS_SHARE, DOCUMENT_BYTES_MAX,
    MESSAGES_BYTES_MAX, MESSAGES_BYTES_MIN, MESSAGES_SHARE,
};
use crate::log::LogOutput;
use crate::log_file::LogRotation;
use crate::profiler::Level;
use crate::remote_opener::RemoteOpener;
use crate::replica::Replica;
use crate::replica::beginning::SetBeginning;
use crate::replica::key::ClusterKey;
use crate::shared::MemberOptions;
use crate::supervisor::Supervisor;
use crate::tls::TlsOptions;
use crate::unix_socket::UnixSocketOptions;
use crate::wire::Compressor;
use crate::workers::Workers;

/// The options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// `HOST:PORT`; a port of 0 takes any free one. `None` where clients come by `unix_socket`
    /// only.
    pub listen: Option<String>,
    /// Further addresses to listen on; one that is listened on already is passed over.
    pub listen_also: Vec<String>,
    /// Connections at one time.
    pub connections_max: usize,
    /// The command line, for `getCmdLineOpts`.
    pub arguments: Vec<String>,
    /// The directory of the data, for `getCmdLineOpts`.
    pub data_directory: String,
    /// The other options of the command line, its file and the environment, by mongod's names.
    pub parsed: DocumentBuf,
    /// The server's description of itself as a member of a replica set.
    pub member: MemberOptions,
    /// The options of a member of a set of several.
    pub replica: Option<Arc<Replica>>,
    /// How a server by itself becomes one, at `replSetInitiate`, if it may.
    pub beginning: Option<SetBeginning>,
    /// Whether it waits for that, and takes no writes until then.
    pub awaits_set: bool,
    /// Whether the databases follow what another server writes: then it says that it is a
    /// secondary, and takes no writes.
    pub reads_only: bool,
    /// The largest document that a client may store, as `hello` announces it; never more than
    /// [`DOCUMENT_BYTES_LIMIT`](crate::limits::DOCUMENT_BYTES_LIMIT).
    pub document_bytes_max: usize,
    /// Whether clients have to log in, and may do what their roles allow.
    pub auth: bool,
    /// The key that routers prove to know, which log in for users; `None`: no router may.
    pub router_key: Option<ClusterKey>,
    /// The TLS options for servers of other lines, from which databases move here.
    pub line_tls: ClientTls,
    /// Whether it may listen where other machines reach it though clients don't have to log in.
    pub insecure: bool,
    /// Opens the remotes that it fetches from and pushes to.
    pub places: RemoteOpener,
    /// The programs that run before and after commits, merges and pushes.
    pub hooks: Hooks,
    /// Clients that have a thread at one time.
    pub threads_max: usize,
    /// The bytes that incoming messages may hold together, those up to
    /// [`FREE_BYTES`](crate::limits::FREE_BYTES) not counted.
    pub messages_bytes_max: usize,
    /// The bytes that outgoing answers may hold together, those up to
    /// [`FREE_BYTES`](crate::limits::FREE_BYTES) not counted.
    pub answers_bytes_max: usize,
    /// The bytes of all documents that cursors have read and not answered with.
    pub cursors_bytes_max: usize,
    /// The output of the log.
    pub log: LogOutput,
    /// The file of the audit log, if there is one: see [`crate::audit`].
    pub audit_path: Option<PathBuf>,
    /// The query that selects the events to report: all, unless there is one.
    pub audit_filter: Option<DocumentBuf>,
    /// The compressors for messages, if the client wants one: by default all, in MongoDB's order.
    pub compressors: Vec<Compressor>,
    /// The options of TLS; without them it isn't spoken.
    pub tls: Option<TlsOptions>,
    /// The Unix socket to listen on besides the address; TLS isn't spoken there.
    pub unix_socket: Option<UnixSocketOptions>,
    /// The supervisor to notify once clients are served, that the server goes on, and that it
    /// stops.
    pub supervisor: Option<Supervisor>,
    /// The address for `/metrics`, `/live` and `/ready`: `HOST:PORT`.
    pub metrics_listen: Option<String>,
    /// The options of the console, if it is served.
    pub console: Option<ConsoleOptions>,
    /// Whether clients may ask for faults (`configureFailPoint`): for tests only.
    pub test_commands: bool,
    /// The first values of parameters that can change while it runs.
    pub parameters: BeginningParameters,
    /// The bytes that the process may take, if that is bounded: see [`crate::governor`].
    pub memory_bytes: Option<u64>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        ServerOptions {
            listen: Some("127.0.0.1:27017".to_owned()),
            listen_also: Vec::new(),
            connections_max: CONNECTIONS_MAX,
            arguments: Vec::new(),
            data_directory: String::new(),
            parsed: DocumentBuf::empty(),
            member: MemberOptions::default(),
            replica: None,
            beginning: None,
            awaits_set: false,
            reads_only: false,
            document_bytes_max: DOCUMENT_BYTES_MAX,
            auth: false,
            router_key: None,
            line_tls: ClientTls::default(),
            insecure: false,
            places: RemoteOpener::default(),
            hooks: Hooks::default(),
            threads_max: CONNECTIONS_MAX,
            messages_bytes_max: MESSAGES_BYTES_MAX,
            answers_bytes_max: ANSWERS_BYTES_MAX,
            cursors_bytes_max: CURSORS_BYTES_MAX,
            log: LogOutput::default(),
            audit_path: None,
            audit_filter: None,
            compressors: Compressor::ALL.to_vec(),
            tls: None,
            unix_socket: None,
            supervisor: None,
            metrics_listen: None,
            console: None,
            test_commands: false,
            parameters: BeginningParameters::default(),
            memory_bytes: None,
        }
    }
}

/// The first values of parameters that `setParameter` changes; `None`: their defaults.
#[derive(Clone, Default, Debug)]
pub struct BeginningParameters {
    /// `ttlMonitorSleepSecs`, at least 1.
    pub expire_seconds: Option<u32>,
    /// `minSnapshotHistoryWindowInSeconds`, at most [`SNAPSHOT_WINDOW_MAX`].
    ///
    /// [`SNAPSHOT_WINDOW_MAX`]: crate::limits::SNAPSHOT_WINDOW_MAX
    pub snapshot_window_seconds: Option<u64>,
    /// `requireApiVersion`.
    pub requires_api_version: bool,
    /// `acceptApiVersion2`: for tests of drivers.
    pub accepts_second_api_version: bool,
    /// `logLevel`, from 0 to 5.
    pub log_level: Option<i32>,
    /// `quiet`: whether the log leaves out clients that come and go.
    pub is_quiet: bool,
    /// The milliseconds from which an operation is slow.
    pub slow_millis: Option<u32>,
    /// The share of slow operations, between none (0.0) and all (1.0), that is reported.
    pub slow_sample_rate: Option<f64>,
    /// The profiler's level for databases that have none of their own.
    pub profile_level: Level,
    /// What rotating the logs is.
    pub log_rotation: LogRotation,
    /// `transactionLifetimeLimitSeconds`, at least 1.
    pub transaction_seconds: Option<u64>,
    /// `cursorTimeoutMillis`.
    pub cursor_millis: Option<u64>,
    /// Whether a client on this machine may not make the first user: `enableLocalhostAuthBypass`
    /// is off.
    pub has_no_localhost_exception: bool,
}

impl ServerOptions {
    /// The default options of a server whose process may take `bytes`.
    pub fn for_memory(bytes: u64) -> ServerOptions {
        let share = |share: u64, most: usize| {
            let part = usize::try_from(bytes / share).unwrap_or(usize::MAX);
            part.clamp(MESSAGES_BYTES_MIN, most)
        };
        ServerOptions {
            threads_max: Workers::count_for(bytes),
            messages_bytes_max: share(MESSAGES_SHARE, MESSAGES_BYTES_MAX),
            answers_bytes_max: share(MESSAGES_SHARE, ANSWERS_BYTES_MAX),
            cursors_bytes_max: share(CURSORS_SHARE, CURSORS_BYTES_MAX),
            memory_bytes: Some(bytes),
            ..ServerOptions::default()
        }
    }
}
