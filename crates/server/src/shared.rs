//! The state that all connections of a server share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use frond_db::Frond;
use frond_db::memory_queue::MemoryQueue;
use frond_doc::{DocumentBuf, ObjectId, Timestamp};
use tokio::sync::watch;

use crate::access::Accounts;
use crate::audit_log::AuditLog;
use crate::client::ClientTls;
use crate::cluster_time::ClusterTimeKey;
use crate::cursors::Cursors;
use crate::default_concerns::Defaults;
use crate::drain::Drain;
use crate::fail_points::FailPoints;
use crate::hooks::Hooks;
use crate::lent_connections::LentConnections;
use crate::limits::{ANSWERS_BYTES_MAX, CURSORS_BYTES_MAX, EXPIRE_SECONDS, MESSAGES_BYTES_MAX};
use crate::log::Log;
use crate::message_memory::MessageMemory;
use crate::operations::Operations;
use crate::peer::Peer;
use crate::profiler::Profiler;
use crate::remote_opener::RemoteOpener;
use crate::replica::Replica;
use crate::replica::beginning::SetBeginning;
use crate::replica::key::ClusterKey;
use crate::scram::Credentials;
use crate::sessions::Sessions;
use crate::snapshot_window::SnapshotWindow;
use crate::stable_api::ApiRules;
use crate::stalled_bytes::StalledFiles;
use crate::time_limits::TimeLimits;
use crate::tls::Tls;
use crate::usage::Usage;
use crate::waiting::Waiting;
use crate::wire::Compressor;
use crate::workers::Workers;

/// The counter of `serverStatus` in which a command is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Counter {
    Insert,
    Query,
    Update,
    Delete,
    GetMore,
    Command,
}

/// Names of the counters in `opcounters`, in the order of [`Counter`].
pub const COUNTER_NAMES: [&str; 6] = ["insert", "query", "update", "delete", "getmore", "command"];

/// The state that all connections of a server share.
///
/// *Thread safety*: everything may be called from any number of threads at once.
pub struct Shared {
    /// The databases.
    pub frond: Frond,
    /// The address it listens on.
    pub address: SocketAddr,
    /// The command line: `getCmdLineOpts` shows it.
    pub arguments: Vec<String>,
    /// The directory of the data: `getCmdLineOpts` shows it.
    pub data_directory: String,
    /// The other options of the start, by mongod's names, for `getCmdLineOpts`.
    pub parsed: DocumentBuf,
    /// The time when it began to listen.
    pub started: Instant,
    /// Connections at one time.
    pub connections_max: usize,
    /// The open cursors.
    pub cursors: Cursors,
    /// The commands that run.
    pub operations: Operations,
    /// Wakes those operations that wait for a write.
    pub waiting: Waiting,
    /// The threads that talk to clients.
    pub workers: Workers,
    /// The connections that these have.
    pub lent_connections: LentConnections,
    /// What large messages hold until they are answered.
    pub messages: MessageMemory,
    /// The memory that large answers hold until the client has them.
    pub answers: MemoryQueue,
    /// The files for both, of clients that stall.
    pub stalled_files: StalledFiles,
    /// The memory of documents that cursors have read and not answered with.
    pub kept_documents: MemoryQueue,
    /// The files for those that have no memory there.
    pub kept_files: StalledFiles,
    /// The clients' sessions and transactions.
    pub sessions: Sessions,
    /// This server as a member of its replica set.
    pub member: Member,
    /// Its membership in a set, if the set has several members.
    pub replica: Option<Arc<Replica>>,
    /// How it becomes a member of a set of several, if it may.
    pub beginning: Option<SetBeginning>,
    /// Whether it waits for `replSetInitiate`.
    pub initiation: Initiation,
    /// Whether it shows what another server writes, and takes no writes.
    pub reads_only: bool,
    /// Counts changes of the topology: there is one when a fault closes the databases for writing,
    /// and one whenever another member of the set leads.
    pub topology: watch::Sender<i64>,
    /// The log for its operator.
    pub log: Arc<Log>,
    /// The audit log.
    pub audit_log: AuditLog,
    /// The users and roles.
    pub accounts: Accounts,
    /// The credentials of routers, which log in for users.
    pub router_credentials: Option<Credentials>,
    /// The same key, by which it logs in for users at other lines.
    pub router_key: Option<ClusterKey>,
    /// The TLS options for these.
    pub line_tls: ClientTls,
    /// Opens the remotes that it fetches from and pushes to.
    pub places: RemoteOpener,
    /// Signs the cluster's time, where there are users.
    pub cluster_time_key: Option<ClusterTimeKey>,
    /// The programs that run before and after commits, merges and pushes.
    pub hooks: Hooks,
    /// Begins when the server stops.
    pub drain: Drain,
    /// The compressors for messages.
    pub compressors: Vec<Compressor>,
    /// Faults that clients have asked for.
    pub fail_points: FailPoints,
    /// The counts of what clients have used.
    pub usage: Usage,
    /// The profilers of databases.
    pub profiler: Profiler,
    /// Says whether clients must name the version of the stable API.
    pub api_rules: ApiRules,
    /// The concerns of requests that carry none.
    pub default_concerns: Defaults,
    /// The time for which a moment at which a client read can be read again.
    pub snapshot_window: SnapshotWindow,
    /// For how long transactions may be open, and cursors unused.
    pub time_limits: TimeLimits,
    /// Whether a client on this machine may make the first user.
    pub has_localhost_exception: bool,
    /// The server's TLS, if it is spoken.
    pub tls: Option<Tls>,
    memory_pressure: AtomicU32,
    /// The interval at which documents expire.
    expire_seconds: AtomicU32,
    connection_counts: ConnectionCounts,
    reply_ids: AtomicI32,
    counters: [AtomicU64; COUNTER_NAMES.len()],
}

/// A server's own options as a member of its replica set.
#[derive(Clone, Debug)]
pub struct MemberOptions {
    /// The set's name.
    pub replica_set: String,
    /// `HOST:PORT` by which clients reach the server; `None`: where it listens.
    pub advertise: Option<String>,
}

impl Default for MemberOptions {
    fn default() -> MemberOptions {
        MemberOptions { replica_set: "rs0".to_owned(), advertise: None }
    }
}

/// This server as a member: the only one of a replica set, and its primary until a fault closes its
/// databases for writing; then it is a secondary.
#[derive(Clone, Debug)]
pub struct Member {
    /// The set's name.
    pub set: String,
    /// `HOST:PORT` by which clients reach it.
    pub host: String,
    /// Names this process: clients notice by it that the server was started again.
    pub process: ObjectId,
}

impl Member {
    fn new(options: MemberOptions, address: SocketAddr, process: ObjectId) -> Member {
        let host = options.advertise.unwrap_or_else(|| address.to_string());
        Member { set: options.replica_set, host, process }
    }
}

/// How far a server is that is started as a member of a set which nothing has made yet.
#[derive(Default)]
pub struct Initiation {
    /// Whether it waits for `replSetInitiate`, and takes no writes until then.
    pub is_awaited: AtomicBool,
    /// Held while a set is noted in the data directory, or forgotten.
    pub noting: Mutex<()>,
}

#[derive(Default)]
struct ConnectionCounts {
    open: AtomicUsize,
    made: AtomicI32,
    refused: AtomicU64,
}

impl Shared {
    /// A server on `frond` that listens on `address`.
    pub fn new(
        frond: Frond,
        address: SocketAddr,
        connections_max: usize,
        arguments: Vec<String>,
        data_directory: String,
        member: MemberOptions,
    ) -> Shared {
        Shared {
            member: Member::new(member, address, frond.new_object_id()),
            log: Arc::new(Log::new(frond.wall_clock())),
            stalled_files: StalledFiles::new(frond.clone()),
            kept_files: StalledFiles::new(frond.clone()),
            frond,
            address,
            arguments,
            data_directory,
            parsed: DocumentBuf::empty(),
            started: Instant::now(),
            connections_max,
            cursors: Cursors::default(),
            operations: Operations::default(),
            waiting: Waiting::default(),
            workers: Workers::new(connections_max),
            lent_connections: LentConnections::default(),
            messages: MessageMemory::new(MESSAGES_BYTES_MAX),
            answers: MemoryQueue::new(ANSWERS_BYTES_MAX),
            kept_documents: MemoryQueue::new(CURSORS_BYTES_MAX),
            sessions: Sessions::default(),
            replica: None,
            beginning: None,
            initiation: Initiation::default(),
            reads_only: false,
            topology: watch::Sender::new(0),
            audit_log: AuditLog::default(),
            accounts: Accounts::default(),
            router_credentials: None,
            router_key: None,
            line_tls: ClientTls::default(),
            places: RemoteOpener::default(),
            cluster_time_key: None,
            hooks: Hooks::default(),
            drain: Drain::default(),
            compressors: Compressor::ALL.to_vec(),
            fail_points: FailPoints::default(),
            usage: Usage::default(),
            profiler: Profiler::default(),
            api_rules: ApiRules::default(),
            default_concerns: Defaults::default(),
            snapshot_window: SnapshotWindow::default(),
            time_limits: TimeLimits::default(),
            has_localhost_exception: true,
            tls: None,
            memory_pressure: AtomicU32::new(0),
            expire_seconds: AtomicU32::new(EXPIRE_SECONDS),
            connection_counts: ConnectionCounts::default(),
            reply_ids: AtomicI32::new(0),
            counters: Default::default(),
        }
    }

    /// Closes the cursors that were idle for too long.
    pub fn expire_cursors(&self) {
        self.cursors.expire(Instant::now(), self.time_limits.cursor());
    }

    /// Whether it takes writes: the primary of its set.
    pub fn is_primary(&self) -> bool {
        !self.reads_only
            && !self.awaits_set()
            && self.frond.fault().is_none()
            && self.replica.as_ref().is_none_or(|replica| replica.is_primary())
    }

    /// Whether it waits for `replSetInitiate`.
    pub fn awaits_set(&self) -> bool {
        self.initiation.is_awaited.load(Ordering::Relaxed)
    }

    /// Enters a connection, unless there are too many.
    pub fn connect(&self, address: SocketAddr) -> Option<Arc<Peer>> {
        let open = self.connection_counts.open.fetch_add(1, Ordering::Relaxed);
        if open >= self.connections_max {
            self.connection_counts.open.fetch_sub(1, Ordering::Relaxed);
            self.connection_counts.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let id = self.connection_counts.made.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        Some(Arc::new(Peer::new(id, address)))
    }

    /// Whether there are more connections than threads.
    pub fn is_crowded(&self) -> bool {
        self.workers.count() < self.connection_counts.open.load(Ordering::Relaxed)
    }

    /// Removes a connection that [`Shared::connect`] entered.
    pub fn disconnect(&self) {
        self.connection_counts.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Connections now, and since the server began.
    pub fn connection_counts(&self) -> (usize, i32) {
        let open = self.connection_counts.open.load(Ordering::Relaxed);
        (open, self.connection_counts.made.load(Ordering::Relaxed))
    }

    /// Connections that were closed as they came, since there were too many.
    pub fn connections_refused(&self) -> u64 {
        self.connection_counts.refused.load(Ordering::Relaxed)
    }

    /// Returns how often documents that have expired are looked for.
    pub fn expire_interval(&self) -> Duration {
        Duration::from_secs(self.expire_seconds().into())
    }

    /// The same in seconds.
    pub fn expire_seconds(&self) -> u32 {
        self.expire_seconds.load(Ordering::Relaxed)
    }

    /// Has documents that have expired looked for every so many seconds.
    pub fn set_expire_seconds(&self, seconds: u32) {
        self.expire_seconds.store(seconds, Ordering::Relaxed);
    }

    /// Notes how short of memory the process is, in thousandths.
    pub fn note_memory_pressure(&self, thousandths: u32) {
        self.memory_pressure.store(thousandths, Ordering::Relaxed);
    }

    /// Returns how short of memory the process is, in thousandths.
    pub fn memory_pressure(&self) -> u32 {
        self.memory_pressure.load(Ordering::Relaxed)
    }

    /// The id of the next reply.
    pub fn next_reply_id(&self) -> i32 {
        self.reply_ids.fetch_add(1, Ordering::Relaxed)
    }

    /// The cluster's time: that of the last transaction that is visible.
    pub fn operation_time(&self) -> Timestamp {
        self.frond.operation_time()
    }

    /// Counts an operation; an insert of many documents counts as many.
    pub fn count(&self, counter: Counter, times: u64) {
        self.counters[counter as usize].fetch_add(times, Ordering::Relaxed);
    }

    /// Returns the counters, in the order of [`COUNTER_NAMES`].
    pub fn counts(&self) -> [u64; COUNTER_NAMES.len()] {
        std::array::from_fn(|position| self.counters[position].load(Ordering::Relaxed))
    }
}
