//! `frond serve`: MongoDB's wire protocol on a loopback address, and remotes over HTTP on another,
//! until SIGINT or SIGTERM.

pub mod configuration;
pub mod hidden_password;
pub mod mongod;
mod network;
mod options;
mod pid_file;
pub mod process;
mod store;
mod values;

use std::io;
use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use frond_db::{Frond, FrondOptions};
use frond_doc::DocumentBuf;
use frond_remote::{RemoteServer, ServeOptions, Tokens};
use frond_server::announced::{remove_left_over, socket_of};
use frond_server::limits::{DOCUMENT_BYTES_LIMIT, DOCUMENT_BYTES_MAX};
use frond_server::{
    Announced, BegunSet, MachineMemory, Replica, ReplicaOptions, Server, ServerError,
    ServerOptions, UnixSocketOptions, end_wait, waits,
};

use crate::allocator::give_back_soon;
use crate::backend::{open_failure, open_when_free, refuse_huge_pages};
use crate::commands::serve::network::NetworkArguments;
use crate::commands::serve::pid_file::PidFile;
use crate::commands::serve::process::{allow_open_files, own_program};
use crate::commands::serve::values::{
    LogRotate, Parameter, Profile, parse_filter, parse_memory, parse_parameter, parse_rate,
    parse_size,
};
use crate::commands::transfer::{failure, read_text};
use crate::directory::check_usable;
use crate::failure::{Failure, full_disk_advice};
use crate::notice::print;
use crate::output::bytes;
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond serve
  frond serve --data /var/lib/frond --listen 127.0.0.1:27018
  frond serve --config /etc/frond.conf             a file with mongod's names
  frond serve --auth --listen 0.0.0.0:27017        create the first user from this machine
  frond serve --remote-listen 127.0.0.1:4224       also serve clones and pushes:
                                                   frond clone http://127.0.0.1:4224/shop shop
  frond serve --remote-listen 0.0.0.0:4224 --remote-token-file tokens \\
      --remote-tls-cert cert.pem --remote-tls-key key.pem
  frond serve --store s3://bucket/prefix           packs live in the bucket, the disk keeps the log
                                                   and 10 GB of what is read
  frond serve --data reader --store s3://bucket/prefix --store-read-only      beside that server
  frond mongod --port 27017 --dbpath data          with mongod's options

Each option may also be set in the environment (FROND_LISTEN for --listen) or in the file that --config \
names; the command line takes precedence over the environment, and that over the file.

A file of tokens has one per line, of at least 16 characters, followed by what it allows: read (clone, \
fetch), write (also push) or nothing (everything, backups included).

Without --auth any client that reaches the server may do everything, so it listens on loopback addresses \
(127.0.0.1, [::1], localhost) only. SIGINT (Ctrl-C) and SIGTERM stop the server once it has answered the \
commands that are running. After a crash or a power cut, start it again: everything acknowledged is there.";

/// Serve a data directory to MongoDB's drivers, mongosh and Compass
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Serve {
    /// Settings file in YAML with mongod's names (net.port, storage.dbPath, ...), and frond.NAME
    /// for options that mongod lacks. Unknown keys are refused
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// What all sources together say, for getCmdLineOpts.
    #[arg(skip)]
    pub parsed: DocumentBuf,

    /// Whether it was started as mongod is ([`mongod`]).
    #[arg(skip)]
    pub as_mongod: bool,

    /// Data directory; made if it is missing
    #[arg(long, value_name = "DIR", default_value = "./frond-data")]
    data: PathBuf,

    #[command(flatten)]
    network: NetworkArguments,

    /// Have clients log in, and let each do what its roles allow. While there are no users, a
    /// client on this machine may create the first one, on the database admin, and nothing else
    #[arg(long)]
    auth: bool,

    /// File with a key that routers have (frond router --router-key): at least 32 characters,
    /// readable by its owner only. Whatever has the key may log in as any user of this server
    #[arg(long, value_name = "FILE", requires = "auth")]
    router_key: Option<PathBuf>,

    /// Listen beyond loopback without --auth: any client that reaches the address can read, change
    /// and drop everything
    #[arg(long, conflicts_with = "auth")]
    insecure_no_auth: bool,

    /// Refuse clients' JavaScript ($where, $function, $accumulator, mapReduce), which otherwise
    /// runs in processes of its own
    #[arg(long)]
    noscripting: bool,

    /// Address that drivers are told to connect to, if it isn't the one that the server listens on
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Option<String>,

    /// Name of the replica set, which is `replicaSet` in clients' URIs. The server is its only
    /// member unless --members names others [default: rs0]
    #[arg(long, value_name = "NAME")]
    replica_set: Option<String>,

    /// All members of the replica set, three to seven, separated by commas: the addresses at which
    /// clients and other members reach them. Each member gets the same list, and finds itself in it
    /// by --advertise or --listen. All begin with empty data directories
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',', requires = "cluster_key")]
    members: Vec<String>,

    /// File with the secret key that the members share, with which their traffic is encrypted: at
    /// least 32 characters, readable by its owner only
    #[arg(long, value_name = "FILE", requires = "members")]
    cluster_key: Option<PathBuf>,

    /// mongod's key file: what servers prove to one another that become a set at replSetInitiate
    #[arg(long, value_name = "FILE", hide = true)]
    key_file: Option<PathBuf>,

    /// The set that this directory became part of so.
    #[arg(skip)]
    begun: Option<BegunSet>,

    /// How much of the set's log to keep for a member that is away: bytes, or a number with KB, MB
    /// or GB. A member that lacks more gets a copy of the leader's data
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = parse_size,
        default_value = "4GB",
        requires = "members"
    )]
    set_log_max: u64,

    #[command(flatten)]
    store: store::StoreArguments,

    /// Size in bytes of the largest document that clients may store, from 16 MiB (MongoDB's limit,
    /// which all drivers know) to what fits in a message
    #[arg(long, value_name = "BYTES", default_value_t = DOCUMENT_BYTES_MAX as u64,
          value_parser = clap::value_parser!(u64).range(
              DOCUMENT_BYTES_MAX as u64..=DOCUMENT_BYTES_LIMIT as u64))]
    max_document_bytes: u64,

    /// Address at which databases can be cloned, fetched, pushed to and, with a token, backed up
    /// over HTTP; beyond loopback only with tokens
    #[arg(long, value_name = "HOST:PORT")]
    remote_listen: Option<String>,

    /// File of tokens, one per line, each followed by what it allows: read, write, or nothing for
    /// everything
    #[arg(long, value_name = "FILE", requires = "remote_listen")]
    remote_token_file: Option<PathBuf>,

    /// Name by which clients reach that address, besides loopback names; may be repeated. Without
    /// tokens, or with such names, requests that name another host are refused
    #[arg(long, value_name = "HOST", requires = "remote_listen")]
    remote_host: Vec<String>,

    /// Refuse pushes while the data directory has this many megabytes or more, so that clients that
    /// may push can't fill the disk
    #[arg(long, value_name = "MB", requires = "remote_listen")]
    remote_disk_max: Option<u64>,

    /// File of certificates (PEM), with which remotes are served over HTTPS
    #[arg(long, value_name = "FILE", requires = "remote_listen", requires = "remote_tls_key")]
    remote_tls_cert: Option<PathBuf>,

    /// File of the certificate's key (PEM)
    #[arg(long, value_name = "FILE", requires = "remote_tls_cert")]
    remote_tls_key: Option<PathBuf>,

    /// File of places and tokens, one pair per line (https://HOST/DATABASE TOKEN), for where this
    /// server fetches from and pushes to (frondFetch, frondPull, frondPush, frondClone)
    #[arg(long, value_name = "FILE")]
    place_token_file: Option<PathBuf>,

    /// File of certificates (PEM) to trust there, besides the system's; for servers of other lines,
    /// from which databases move here, in place of them
    #[arg(long, value_name = "FILE")]
    place_ca_file: Option<PathBuf>,

    /// Run none of the hooks in the data directory (hooks/pre-commit and others)
    #[arg(long)]
    no_hooks: bool,

    /// Let clients inject faults with configureFailPoint: only for tests of applications and
    /// drivers
    #[arg(long)]
    enable_test_commands: bool,

    /// Parameter of mongod, as NAME=VALUE: enableTestCommands, as above, or one that the command
    /// setParameter changes: ttlMonitorSleepSecs, minSnapshotHistoryWindowInSeconds,
    /// requireApiVersion, transactionLifetimeLimitSeconds, cursorTimeoutMillis, logLevel (from 1 on
    /// the log has every operation); or enableLocalhostAuthBypass, and for tests of drivers
    /// acceptApiVersion2
    #[arg(long = "setParameter", value_name = "NAME=VALUE", value_parser = parse_parameter)]
    set_parameter: Vec<Parameter>,

    /// Milliseconds from which on an operation is slow, and is logged; 100 by default
    #[arg(long, value_name = "MILLISECONDS")]
    slow_ms: Option<u32>,

    /// Part of the slow operations that is logged, from 0 to 1; all by default
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    slow_sample_rate: Option<f64>,

    /// File to append the log to, one line of JSON per event; by default standard error. SIGUSR1,
    /// or the command logRotate, renames it and begins another
    #[arg(long, value_name = "FILE")]
    log_path: Option<PathBuf>,

    /// What rotating the log, and the audit log, is: rename the file and begin another, or only
    /// open it again by its name, where logrotate or the like has renamed it
    #[arg(long, value_name = "HOW", value_enum, default_value_t = LogRotate::Rename)]
    log_rotate: LogRotate,

    /// Which operations the profiler records of databases whose level profile hasn't set
    #[arg(long, value_name = "MODE", value_enum, default_value_t = Profile::Off)]
    profile: Profile,

    /// Leave clients that come and go out of the log
    #[arg(long)]
    quiet: bool,

    /// File to write the number of the process to; it is removed when the server has stopped
    #[arg(long, value_name = "FILE")]
    pid_file: Option<PathBuf>,

    /// File to append the audit log to: a line of JSON for each login, refusal, and change of
    /// users, roles, collections, indexes, branches or the server
    #[arg(long, value_name = "FILE")]
    audit_path: Option<PathBuf>,

    /// Which events the audit log records, as a query on them: '{"atype": "authenticate"}'
    #[arg(long, value_name = "JSON", requires = "audit_path", value_parser = parse_filter)]
    audit_filter: Option<DocumentBuf>,

    /// Memory budget of the server: bytes, or a number with KB, MB or GB; at least 16MB. By default
    /// five eighths of the machine's memory, or of what the control group allows if that is less,
    /// of which caches take 136 MB, recent writes up to 256 MB, one stage 100 MB and all stages 1
    /// GB at most
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    memory: Option<u64>,

    /// Megabytes of decompressed data to keep in memory, instead of 128 or a share of --memory
    #[arg(long, value_name = "MB")]
    cache: Option<u64>,

    /// How many cores a query that reads a lot (a group, a sort, a count by a filter) may use while
    /// nothing else needs them [default: all]
    #[arg(long, value_name = "COUNT", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    query_cores: Option<usize>,

    /// Megabytes of disk that the temporary files of all sorts and groups may take together
    /// [default: 10240]
    #[arg(long, value_name = "MB")]
    temporary_disk_max: Option<u64>,

    /// Disk space to hold in reserve: with less free, only what frees space goes on (deletes,
    /// drops, frond gc). Bytes, or a number with KB, MB or GB; 0 for none [default: a fiftieth of
    /// the disk, at least 64MB (an eighth of a small disk), at most 1GB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    reserve: Option<u64>,

    /// When to keep the log, so that change streams can resume and any moment can be read
    /// (shop@{TIME}): from when a stream is first opened, which costs nothing until then; always,
    /// so that a stream can also begin before that; or never, and streams are refused
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Changes::WhenWatched)]
    changes: Changes,

    /// How much of the log to keep for that at most: bytes, or a number with KB, MB or GB, and
    /// never more than a tenth of the disk
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "2GB")]
    changes_bytes: u64,

    /// For how many hours to keep it, and to go on keeping it after it was last read
    #[arg(long, value_name = "HOURS", default_value_t = 24)]
    changes_hours: u64,
}

/// When the log is kept for change streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Changes {
    WhenWatched,
    Always,
    Off,
}

/// The memory below which what is freed goes back to the system soon, which costs some percent.
const MEMORY_BYTES_LITTLE: u64 = 2 << 30;

/// The time that a server waits for a data directory that a command, or one that ends, still has.
const SERVER_WAIT: Duration = Duration::from_secs(3);
/// The advice where another server runs on the data directory.
const SERVED: &str = "it is served already; another server needs another --data";

/// Why a server ended, with what to do about it.
fn end_failure(error: &ServerError) -> Failure {
    match error {
        ServerError::Close(cause) => Failure::failed(format!("{error}{}", full_disk_advice(cause))),
        _ => Failure::failed(error.to_string()),
    }
}

/// Refuses an address that another process listens on, before anything is made on the disk.
fn check_free(listen: &str) -> Result<(), Failure> {
    match TcpListener::bind(listen) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(Failure::failed(format!(
            "can't listen on {listen}: address already in use by another process (a mongod, or \
             another frond serve?): name another port, or 0 for any free one"
        ))),
        // Anything else is reported by the listener.
        _ => Ok(()),
    }
}

/// The number of members a set has.
const MEMBERS: std::ops::RangeInclusive<usize> = 3..=7;

impl Serve {
    /// Runs until a signal.
    ///
    /// # Errors
    /// [`Failure::Usage`]; [`Failure::Failed`] if the directory, an address or a certificate can't
    /// be used.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let (listen, unix_socket) = (self.network.address(), self.network.unix_socket()?);
        let tls = self.network.tls()?;
        self.check_remotes()?;
        let budget = self.memory_budget()?;
        let options = self.database_options(budget);
        if let Some(program) = own_program() {
            frond_script::run_in(program);
        }
        check_usable(&self.data)?;
        self.check_free(&listen)?;
        let connections_max = allow_open_files(self.network.connections_max());
        let (replica, awaits_set) = (self.replica(&listen)?, self.awaits_set()?);
        let (frond, replica) = self.open(options, replica)?;
        if !self.members.is_empty() {
            // What it announced before it was a member of several.
            remove_left_over(&self.data);
        }
        let announced = self.announced(&unix_socket);
        let options = ServerOptions {
            listen: Some(listen),
            listen_also: self.network.addresses_beside(),
            unix_socket: unix_socket.or_else(|| announced.as_ref().map(Announced::socket)),
            tls,
            awaits_set,
            connections_max,
            ..self.server_options(budget, replica)?
        };
        let remote = self.serve_remotes(&frond)?;
        let sending = self.store.work_beside(&frond);
        let server = Server::bind(frond, options).map_err(|error| {
            announced.iter().for_each(Announced::remove);
            Failure::failed(error.to_string())
        })?;
        let pid_file = self.pid_file.as_deref().map(PidFile::write).transpose()?;
        if let Some(announced) = &announced {
            // Without it the directory is only in use.
            let _ = announced.announce();
        }
        if !self.as_mongod {
            // Served all the same where its output has no reader, or no room.
            let _ = self.print(terminal, &server, remote.as_ref());
            terminal.finish_or_forget();
        }
        server.run_until_signal().map_err(|error| end_failure(&error))?;
        drop((remote, sending, pid_file));
        announced.iter().for_each(Announced::remove);
        if !self.as_mongod {
            let _ = writeln!(terminal, "stopped: all that was acknowledged is on the disk");
            terminal.finish_or_forget();
        }
        Ok(())
    }

    /// Returns the memory that is taken at most, and has the process keep to it.
    fn memory_budget(&self) -> Result<Option<u64>, Failure> {
        let machine = MachineMemory::read();
        self.check_memory(machine)?;
        let budget = self.memory.or(machine.budget_bytes());
        let is_little = budget.is_some_and(|bytes| bytes < MEMORY_BYTES_LITTLE);
        if self.memory.is_some() || is_little {
            give_back_soon();
            refuse_huge_pages();
        }
        self.warn_of_memory(machine);
        Ok(budget)
    }

    /// Takes the set of several that the data directory became part of at `replSetInitiate`, if it
    /// did.
    ///
    /// # Errors
    /// [`Failure::Failed`] if the directory doesn't say it as it should.
    pub fn take_begun_set(&mut self) -> Result<(), Failure> {
        if !self.as_mongod || !self.members.is_empty() {
            return Ok(());
        }
        self.begun = BegunSet::read(&self.data).map_err(Failure::failed)?;
        let Some(begun) = &self.begun else { return Ok(()) };
        if begun.set != self.set_name() {
            let data = self.data.display();
            let what =
                format!("{data} is of the replica set {0}: start it with --replSet {0}", begun.set);
            return Err(Failure::Failed(what));
        }
        self.members.clone_from(&begun.members);
        end_wait(&self.data).map_err(|error| Failure::failed(error.to_string()))
    }

    /// The name of the replica set.
    fn set_name(&self) -> &str {
        self.replica_set.as_deref().unwrap_or("rs0")
    }

    /// Whether it waits for `replSetInitiate`, as mongod does that is started with a set's name.
    fn awaits_set(&self) -> Result<bool, Failure> {
        let may_wait = self.as_mongod && self.replica_set.is_some() && self.members.is_empty();
        if !may_wait || self.store.is_bucket() {
            return Ok(false);
        }
        waits(&self.data)
            .map_err(|error| Failure::failed(format!("{}: {error}", self.data.display())))
    }

    /// Opens the directory, as a member of a replica set or by itself.
    fn open(
        &self,
        options: FrondOptions,
        replica: Option<ReplicaOptions>,
    ) -> Result<(Frond, Option<Arc<Replica>>), Failure> {
        let open = || match replica.clone() {
            Some(replica) => Replica::open(&self.data, options, replica)
                .map(|(frond, replica)| (frond, Some(replica))),
            None => self.store.open(&self.data, options).map(|frond| (frond, None)),
        };
        let is_served = socket_of(&self.data).is_some();
        let wait = if is_served { Duration::ZERO } else { SERVER_WAIT };
        open_when_free(open, wait).map_err(|error| open_failure(&self.data, &error, SERVED))
    }

    /// Refuses remotes without tokens where clients have to log in: any program of this machine
    /// could clone and push without.
    fn check_remotes(&self) -> Result<(), Failure> {
        if self.auth && self.remote_listen.is_some() && self.remote_token_file.is_none() {
            let message = "--remote-listen with --auth needs --remote-token-file FILE: clients of remotes \
                           have tokens, not users (docs/remotes.md)";
            return Err(Failure::Usage(message.to_owned()));
        }
        Ok(())
    }

    /// Refuses addresses that are in use, before the directory is opened.
    fn check_free(&self, listen: &str) -> Result<(), Failure> {
        check_free(listen)?;
        let beside = self.network.addresses_beside();
        let others = beside.iter().chain(&self.remote_listen).chain(&self.network.metrics_listen);
        others.chain(&self.network.console).try_for_each(|listen| check_free(listen))
    }

    /// A socket by which other processes of this user reach the data, where that is all they need:
    /// no login, no TLS, no primary elsewhere.
    fn announced(&self, given: &Option<UnixSocketOptions>) -> Option<Announced> {
        let is_open = !self.auth && !self.network.has_tls() && self.members.is_empty();
        if !is_open || given.is_some() {
            return None;
        }
        Announced::new(&self.data).ok()
    }

    /// Refuses more memory than the machine has: some is taken at the start, as one piece.
    fn check_memory(&self, machine: MachineMemory) -> Result<(), Failure> {
        let most = machine.bytes().unwrap_or(u64::MAX / 2);
        for (flag, requested) in [
            ("--memory", self.memory),
            ("--cache", self.cache.map(|megabytes| megabytes.saturating_mul(1 << 20))),
        ] {
            if let Some(requested) = requested.filter(|requested| most < *requested) {
                let (requested, most) = (bytes(requested), bytes(most));
                let what = format!("{flag} of {requested} is more than this machine has: {most}");
                return Err(Failure::Usage(what));
            }
        }
        Ok(())
    }

    /// Says so where the server is given more than it can have.
    fn warn_of_memory(&self, machine: MachineMemory) {
        let (Some(memory), Some(most)) = (self.memory, machine.bytes()) else { return };
        // The program itself, and what connections take, need some beside it.
        if most / 8 * 7 < memory {
            print(format_args!(
                "frond: --memory {} of the {} that there are leaves too little for connections and the system's cache: \
                 five eighths are a good part",
                bytes(memory),
                bytes(most)
            ));
        }
    }

    fn serve_remotes(&self, frond: &Frond) -> Result<Option<RemoteServer>, Failure> {
        let Some(listen) = &self.remote_listen else { return Ok(None) };
        let tokens = match &self.remote_token_file {
            Some(file) => Tokens::parse(&read_text(file)?).map_err(failure)?,
            None => Tokens::default(),
        };
        let tls = self.remote_tls_cert.clone().zip(self.remote_tls_key.clone());
        let store_bytes_max =
            self.remote_disk_max.map(|megabytes| megabytes.saturating_mul(1 << 20));
        let (listen, hosts) = (listen.clone(), self.remote_host.clone());
        let refuses_pushes = !self.members.is_empty() || self.store.reads_only();
        let options = ServeOptions { listen, tokens, hosts, store_bytes_max, refuses_pushes, tls };
        let started = RemoteServer::start(frond.clone(), &options);
        started.map(Some).map_err(|error| Failure::failed(format!("remotes: {error}")))
    }

    fn print(
        &self,
        terminal: &mut Terminal,
        server: &Server,
        remote: Option<&RemoteServer>,
    ) -> Result<(), Failure> {
        let address = server.address();
        let shell = format!("mongosh {}mongodb://{address}/", self.network.shell_options());
        writeln!(terminal, "frond {} serves {}", env!("CARGO_PKG_VERSION"), self.data.display())?;
        writeln!(terminal, "  listening on  {}", terminal.paint(Style::Strong, address))?;
        for beside in self.network.addresses_beside() {
            writeln!(terminal, "                {beside}")?;
        }
        if let Some(socket) = self.network.unix_socket()? {
            writeln!(terminal, "                unix:{}", socket.path.display())?;
        }
        writeln!(terminal, "  connect with  {}", terminal.paint(Style::Accent, shell))?;
        if let Some(remote) = remote {
            let url = format!("{}/DATABASE", remote.url());
            writeln!(terminal, "  clone from    {}", terminal.paint(Style::Accent, url))?;
            if remote.is_overheard() {
                writeln!(terminal, "                tokens and data travel unencrypted: use TLS")?;
            }
        }
        if let Some(metrics) = server.metrics_address() {
            let url = format!("http://{metrics}/metrics");
            writeln!(terminal, "  watch at      {}", terminal.paint(Style::Accent, url))?;
            if !metrics.ip().to_canonical().is_loopback() {
                writeln!(terminal, "                any client that reaches it can read it")?;
            }
        }
        if let Some(console) = server.console_address() {
            let scheme = if self.network.has_tls() { "https" } else { "http" };
            let url = format!("{scheme}://{console}/");
            writeln!(terminal, "  console       {}", terminal.paint(Style::Accent, url))?;
        }
        Ok(writeln!(terminal, "  stop with     Ctrl-C")?)
    }
}
