//! The destination of commands: a database in this process, or a running server.
//!
//! Both take the command documents that a driver would send and give the answers that it would
//! get, so that the commands of the command line exist once and can't differ from a driver's view.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use frond_db::{Code, Error, ErrorKind, Frond, FrondOptions};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document};
use frond_remote::tiered;
use frond_server::scram::Mechanism;
use frond_server::wire::DocumentSequence;
use frond_server::{Client, ClientError, ClientTls, Hooks, InProcess};

use crate::directory::check_usable;
use crate::failure::{Failure, full_disk_advice};
use crate::notice::print;
use crate::output::plain;

/// The time that a command waits for a data directory that another process has.
const COMMAND_WAIT: Duration = Duration::from_secs(1);
const WAIT_STEP: Duration = Duration::from_millis(20);

/// A database in this process or a running server.
pub trait Backend {
    /// Runs a command on a database; `sequences` are documents that stand beside it, the fast way
    /// to send many. Errors of single documents (`writeErrors`) stand in the answer.
    ///
    /// # Errors
    /// `Failure::Refused` with the database's answer; `Failure::Failed` if it can't be reached any
    /// more.
    fn execute_with(
        &mut self,
        database: &str,
        command: Document<'_>,
        sequences: Vec<DocumentSequence>,
    ) -> Result<DocumentBuf, Failure>;

    /// The databases themselves, if this process has them open: for documents that no command can
    /// hold.
    fn embedded(&self) -> Option<&Frond> {
        None
    }

    /// Writes what is in memory, and lets go.
    ///
    /// # Errors
    /// `Failure::Failed` if not everything could be made durable.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

impl dyn Backend + '_ {
    /// Runs a command on a database.
    ///
    /// # Errors
    /// [`Failure::Refused`] with the database's answer; [`Failure::Failed`] if the server can't be
    /// reached any more.
    pub fn execute(
        &mut self,
        database: &str,
        command: &DocumentBuf,
    ) -> Result<DocumentBuf, Failure> {
        self.execute_with(database, command.view(), Vec::new())
    }

    /// Runs a command that answers with a cursor and shows each document of all its batches to
    /// `visit`, in their order. Holds one batch at a time.
    ///
    /// # Errors
    /// As `execute`, of the first batch that fails; what `visit` fails with.
    pub fn for_each_document(
        &mut self,
        database: &str,
        command: &DocumentBuf,
        visit: &mut dyn FnMut(Document<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut answer = self.execute(database, command)?;
        while let Some(more) = visit_batch(&answer, visit)? {
            answer = self.execute(database, &more)?;
        }
        Ok(())
    }
}

/// Shows a batch; returns the command that gets the next one, if there is more.
///
/// # Errors
/// [`Failure::Failed`] if the answer has no cursor; what `visit` fails with.
pub fn visit_batch(
    answer: &DocumentBuf,
    visit: &mut dyn FnMut(Document<'_>) -> Result<(), Failure>,
) -> Result<Option<DocumentBuf>, Failure> {
    let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document());
    let cursor = cursor.ok_or_else(|| Failure::failed("the answer holds no cursor"))?;
    let batch = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"));
    for value in batch.and_then(|batch| batch.as_array()).iter().flat_map(|array| array.iter()) {
        if let Some(document) = value.as_document() {
            visit(document)?;
        }
    }
    let id = cursor.get("id").and_then(|id| id.as_integer()).unwrap_or(0);
    let namespace = cursor.get("ns").and_then(|namespace| namespace.as_str()).unwrap_or("");
    let collection = namespace.split_once('.').map_or("", |(_, collection)| collection);
    Ok((id != 0).then(|| document! { "getMore": id, "collection": collection }))
}

/// Caches for commands that read each chunk once: a document of a gigabyte goes in and out in 64 MB
/// of memory.
const STREAMING_CACHE_BYTES: u64 = 4 << 20;
const STREAMING_INDEX_CACHE_BYTES: u64 = 2 << 20;

/// The advice where a server runs on a data directory, for commands that have `--uri`.
pub const USE_URI: &str = "connect to it with --uri HOST:PORT instead of --data";
/// For those that need the directory for themselves.
pub const STOP_IT: &str = "stop it first";

/// A data directory that this process has opened.
pub struct Embedded {
    frond: Frond,
    hooks: Hooks,
    commands: InProcess,
}

impl Embedded {
    /// Opens a data directory, making it where it is missing; `in_use` is what to do where a server
    /// runs on it.
    ///
    /// # Errors
    /// [`Failure::Failed`] if it can't be made or read, or another process has it (`in_use` is in
    /// the message then).
    pub fn open(directory: &Path, in_use: &str) -> Result<Embedded, Failure> {
        Embedded::open_with(directory, FrondOptions::default(), in_use)
    }

    /// As [`Embedded::open`], for a command that passes over a collection once: with a small cache.
    ///
    /// # Errors
    /// As [`Embedded::open`].
    pub fn open_to_stream(directory: &Path, in_use: &str) -> Result<Embedded, Failure> {
        refuse_huge_pages();
        let mut options = FrondOptions::default();
        options.engine.cache_bytes = STREAMING_CACHE_BYTES;
        options.engine.index_cache_bytes = STREAMING_INDEX_CACHE_BYTES;
        Embedded::open_with(directory, options, in_use)
    }

    fn open_with(
        directory: &Path,
        options: FrondOptions,
        in_use: &str,
    ) -> Result<Embedded, Failure> {
        check_usable(directory)?;
        let frond = open_when_free(|| tiered::open_known(directory, options), COMMAND_WAIT)
            .map_err(|error| open_failure(directory, &error, in_use))?;
        let hooks = Hooks::of(directory);
        let commands = InProcess::new(frond.clone()).with_hooks(hooks.clone());
        Ok(Embedded { frond, hooks, commands })
    }

    /// Returns the hooks, for operations that no command does.
    pub fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// The databases themselves, for what no command answers.
    pub fn frond(&self) -> &Frond {
        &self.frond
    }
}

/// Has the process take memory in small pages from now on. Of a huge one that was touched once all
/// is taken, so that what the allocator spreads out costs up to twice what it holds; hot reads lose
/// some percent.
pub fn refuse_huge_pages() {
    // A kernel that knows none refuses, and that is as well.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Opens a data directory, waiting for another process to let go of it: one that reads takes some
/// milliseconds, one that ends has to write what is in memory.
///
/// # Errors
/// As `open`; `DBPathInUse` after `most`.
pub fn open_when_free<T>(open: impl Fn() -> Result<T, Error>, most: Duration) -> Result<T, Error> {
    let end = Instant::now() + most;
    loop {
        match open() {
            Err(error) if is_in_use(&error) && Instant::now() < end => thread::sleep(WAIT_STEP),
            done => return done,
        }
    }
}

/// Whether another process has the data directory open.
pub fn is_in_use(error: &Error) -> bool {
    error.code == Code::DBPathInUse
}

/// Says why a data directory can't be opened and what to do about it; `in_use` is what to do where
/// a server runs on it.
pub fn open_failure(directory: &Path, error: &Error, in_use: &str) -> Failure {
    let directory = directory.display();
    let message = &error.message;
    if is_in_use(error) {
        return Failure::failed(format!(
            "data directory {directory} is in use by another process: if a server runs on it, \
             {in_use}"
        ));
    }
    // It names the directory, and what is wrong with it, itself.
    if error.kind == ErrorKind::Invalid {
        return Failure::failed(message.as_str());
    }
    let advice = match error.kind {
        ErrorKind::Damaged => format!("; frond fsck --data {directory} lists all damage"),
        _ if message.contains("Permission denied") => {
            "; run this as the user it belongs to".to_owned()
        }
        _ => String::new(),
    };
    Failure::failed(format!("data directory {directory}: {message}{advice}"))
}

impl Backend for Embedded {
    fn execute_with(
        &mut self,
        database: &str,
        command: Document<'_>,
        sequences: Vec<DocumentSequence>,
    ) -> Result<DocumentBuf, Failure> {
        let answer = self.commands.execute(database, command, &sequences);
        if answer.get("ok").is_some_and(|ok| ok.is_truthy()) {
            print_hook_message(&answer);
            return Ok(answer);
        }
        let code = answer.get("code").and_then(|code| code.as_integer()).unwrap_or(1);
        let message = answer.get("errmsg").and_then(|message| message.as_str()).unwrap_or("");
        Err(Failure::Refused { code, message: message.to_owned(), answer })
    }

    fn embedded(&self) -> Option<&Frond> {
        Some(&self.frond)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.frond.close().map_err(|error| {
            let full = full_disk_advice(&error);
            Failure::failed(format!("the data directory can't be closed: {error}{full}"))
        })
    }
}

/// Says that a hook failed behind what was done.
pub fn print_hook_message(answer: &DocumentBuf) {
    if let Some(what) = answer.get("hookFailed").and_then(|what| what.as_str()) {
        print(format_args!("frond: the hook {}", plain(what)));
    }
}

/// A running server.
pub struct Remote {
    client: Client,
    /// Whether it is asked whichever member of a set it is.
    is_any_member: bool,
}

/// The address of a server, and the user who logs in there.
pub struct ServerUri {
    /// `HOST:PORT`, or the path of a socket.
    pub address: String,
    /// Those of the other members of its set that were named.
    pub others: Vec<String>,
    /// The user who logs in.
    pub login: Option<UserLogin>,
    /// The TLS options, if TLS is spoken.
    pub tls: Option<ClientTls>,
    /// The database behind the address; empty where there is none.
    pub database: String,
    /// The name that the set must have.
    pub set: Option<String>,
}

/// A user and a password.
pub struct UserLogin {
    /// The user's name.
    pub user: String,
    /// The password.
    pub password: String,
    /// The database that the user belongs to.
    pub database: String,
    /// The mechanism by which the password is proved.
    pub mechanism: Mechanism,
}

impl Remote {
    /// Connects to a server, the first that answers, and logs in if there is a user.
    ///
    /// # Errors
    /// [`Failure::Lost`] if nothing answers there; [`Failure::Failed`] if the login is refused.
    pub fn connect(server: &ServerUri) -> Result<Remote, Failure> {
        let mut connected = Remote::connect_to(&server.address, server);
        for address in &server.others {
            if !matches!(connected, Err(Failure::Lost(_))) {
                break;
            }
            connected = Remote::connect_to(address, server);
        }
        connected.map(|remote| Remote { is_any_member: true, ..remote })
    }

    /// Takes a server that doesn't answer for so long for one that is lost.
    ///
    /// # Errors
    /// [`Failure::Failed`] with what the system says.
    pub fn set_read_timeout(&self, time: Duration) -> Result<(), Failure> {
        let set = self.client.set_read_timeout(Some(time));
        set.map_err(|error| Failure::failed(error.to_string()))
    }

    /// As [`Remote::connect`], at one address, which is sent commands as they are: a MongoDB,
    /// perhaps.
    ///
    /// # Errors
    /// As [`Remote::connect`].
    pub fn connect_to(address: &str, server: &ServerUri) -> Result<Remote, Failure> {
        let mut client = Client::connect_by(address, server.tls.as_ref()).map_err(|error| {
            Failure::Lost(format!("{error}{}", connection_advice(address, &error)))
        })?;
        if let Some(login) = &server.login {
            let UserLogin { user, password, database, mechanism } = login;
            client.log_in_by(*mechanism, database, user, password).map_err(|error| {
                Failure::failed(format!("login of {user} at {address}: {error}"))
            })?;
        }
        Ok(Remote { client, is_any_member: false })
    }

    /// As [`Remote::connect`], to this member of the set and no other.
    ///
    /// # Errors
    /// As [`Remote::connect`].
    pub fn connect_to_member(address: &str, server: &ServerUri) -> Result<Remote, Failure> {
        let connected = Remote::connect_to(address, server)?;
        Ok(Remote { is_any_member: true, ..connected })
    }
}

/// What to do where nothing answers: on this machine a server can be started.
fn connection_advice(address: &str, error: &ClientError) -> String {
    const OWN: [&str; 4] = ["127.", "localhost:", "[::1]:", "/"];
    let ClientError::Connection { source, .. } = error else { return String::new() };
    if source.kind() == io::ErrorKind::InvalidData {
        return String::new();
    }
    if OWN.iter().any(|own| address.starts_with(own)) {
        format!(": is a server running there? frond serve --listen {address} starts one")
    } else {
        ": is a server running there, and does it listen beyond its own machine?".to_owned()
    }
}

impl Backend for Remote {
    fn execute_with(
        &mut self,
        database: &str,
        command: Document<'_>,
        sequences: Vec<DocumentSequence>,
    ) -> Result<DocumentBuf, Failure> {
        let mut request = DocumentBuilder::new();
        for (name, value) in command.iter() {
            request.append(name, value);
        }
        if self.is_any_member {
            let any = document! { "mode": "primaryPreferred" };
            request.append("$readPreference", Value::Document(any.view()));
        }
        let answer = self.client.command_with(database, request.build().view(), sequences);
        answer.inspect(print_hook_message).map_err(|error| match error {
            ClientError::Command { code, message, answer } => {
                Failure::Refused { code: i64::from(code), message, answer }
            }
            lost @ ClientError::Connection { .. } => Failure::Lost(lost.to_string()),
            other => Failure::failed(other.to_string()),
        })
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}
