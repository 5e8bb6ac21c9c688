//! A server in the process of another program (Python, Node), for programs of the same user.
//!
//! 1. It opens a data directory and serves it on a socket of the Unix domain, in a directory of its
//!    own that only this user may enter, and on no address.
//! 2. Where the socket is stands in the file [`SOCKET_FILE`] of the data directory, so that other
//!    processes that want the directory reach the data through the one that has it.
//! 3. It ends with [`PrivateServer::stop`], or with the process: what was acknowledged is on the
//!    disk either way. What a killed process leaves is removed by the next that opens the directory.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use frond_db::{ChangeRetention, Code, FrondOptions, RetentionBegins};

use crate::listener::{Server, ServerError, ServerOptions, Stopper};
use crate::log::LogOutput;
use crate::machine_memory::MachineMemory;
use crate::remote_opener::RemoteOpener;
use crate::unix_socket::UnixSocketOptions;

/// The file in a data directory that names the socket. Stored, and read by other versions of us.
pub const SOCKET_FILE: &str = "SOCKET";

/// What the directory of a socket is called, before its numbers. Paths of sockets are short by the
/// system's rule (107 bytes), those of data directories aren't.
const SCRATCH_PREFIX: &str = "fronddb-";
const SOCKET_NAME: &str = "mongodb.sock";

/// Only the user whose process it is may connect.
const SOCKET_PERMISSIONS: u32 = 0o600;
const SCRATCH_PERMISSIONS: u32 = 0o700;

/// What is kept for change streams, once one is opened: as `frond serve` does.
const CHANGES: ChangeRetention =
    ChangeRetention { begins: RetentionBegins::WhenAsked, seconds: 24 * 3600, bytes: 2 << 30 };

/// How a directory is served.
#[derive(Default)]
pub struct PrivateOptions {
    /// What the database may take, in bytes; by default a part of what the machine has.
    pub memory_bytes: Option<u64>,
    /// What it keeps decompressed of that, in bytes.
    pub cache_bytes: Option<u64>,
    /// The file that the log is appended to; without it, it goes nowhere.
    pub log: Option<PathBuf>,
    /// How other repositories are opened.
    pub places: RemoteOpener,
}

/// Why there is no private server.
#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    /// Another process has the data directory.
    #[error("{0}")]
    InUse(String),
    /// The directory can't be opened.
    #[error("{0}")]
    Open(String),
    /// It can't be served.
    #[error(transparent)]
    Serve(#[from] ServerError),
    /// The socket's directory can't be made, or the data directory can't be told where it is.
    #[error("can't make the socket: {0}")]
    Socket(#[from] io::Error),
    /// A defect of ours.
    #[error("the server's thread has panicked")]
    Panicked,
}

/// A server of a data directory, which runs in threads of its own. Any thread may use it.
pub struct PrivateServer {
    stopper: Stopper,
    running: Mutex<Option<JoinHandle<Result<(), ServerError>>>>,
    scratch: Scratch,
    note: PathBuf,
}

impl PrivateServer {
    /// Opens `data`, making it where it is missing, and serves it.
    ///
    /// # Errors
    /// [`PrivateError`].
    pub fn start(data: &Path, options: PrivateOptions) -> Result<PrivateServer, PrivateError> {
        let frond = frond_vcs::open(data, storage(&options)).map_err(|error| {
            let message = error.message.to_string();
            match error.code {
                Code::DBPathInUse => PrivateError::InUse(message),
                _ => PrivateError::Open(message),
            }
        })?;
        // The directory is ours now: nothing listens where it says.
        let note = data.join(SOCKET_FILE);
        remove_left_over(&note);
        let scratch = Scratch::create()?;
        let server = Server::bind(frond, serving(data, &scratch, options))?;
        let stopper = server.stopper();
        let beside = data.join(format!("{SOCKET_FILE}.new"));
        fs::write(&beside, format!("{}\n", scratch.socket().display()))?;
        fs::rename(&beside, &note)?;
        let running =
            thread::Builder::new().name("frond".to_owned()).spawn(move || server.run())?;
        Ok(PrivateServer { stopper, running: Mutex::new(Some(running)), scratch, note })
    }

    /// The socket that it listens on.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.scratch.socket()
    }

    /// Answers what runs, closes the data directory and ends the threads. Once is enough.
    ///
    /// # Errors
    /// [`PrivateError::Serve`], [`PrivateError::Panicked`].
    pub fn stop(&self) -> Result<(), PrivateError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = running.take() else { return Ok(()) };
        // Who reads it from now on waits until the directory is free.
        let _ = fs::remove_file(&self.note);
        self.stopper.stop();
        let ended = thread.join();
        self.scratch.remove();
        match ended {
            Ok(ended) => Ok(ended?),
            Err(_) => Err(PrivateError::Panicked),
        }
    }
}

/// The socket of the process that has `data`, if it listens.
#[must_use]
pub fn socket_of(data: &Path) -> Option<PathBuf> {
    let socket = named_by(&data.join(SOCKET_FILE))?;
    UnixStream::connect(&socket).is_ok().then_some(socket)
}

fn named_by(note: &Path) -> Option<PathBuf> {
    Some(PathBuf::from(fs::read_to_string(note).ok()?.trim_end()))
}

fn storage(options: &PrivateOptions) -> FrondOptions {
    let mut storage = match (options.memory_bytes, MachineMemory::read().budget_bytes()) {
        (Some(bytes), _) => FrondOptions::for_memory(bytes),
        (None, Some(bytes)) => FrondOptions::within_memory(bytes),
        (None, None) => FrondOptions::default(),
    };
    if let Some(bytes) = options.cache_bytes {
        storage.engine.cache_bytes = bytes;
    }
    storage.engine.changes = CHANGES;
    storage
}

fn serving(data: &Path, scratch: &Scratch, options: PrivateOptions) -> ServerOptions {
    let memory = options.memory_bytes;
    let permissions = SOCKET_PERMISSIONS;
    ServerOptions {
        listen: None,
        unix_socket: Some(UnixSocketOptions { path: scratch.socket(), permissions }),
        data_directory: data.display().to_string(),
        places: options.places,
        log: options.log.map_or(LogOutput::Memory, LogOutput::File),
        ..memory.map_or_else(ServerOptions::default, ServerOptions::for_memory)
    }
}

/// Removes the socket of a process that was killed, and its directory.
fn remove_left_over(note: &Path) {
    let Some(socket) = named_by(note) else { return };
    let Some(scratch) = socket.parent() else { return };
    let name = scratch.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with(SCRATCH_PREFIX) {
        Scratch(scratch.to_owned()).remove();
    }
    let _ = fs::remove_file(note);
}

/// The directory of a socket.
struct Scratch(PathBuf);

impl Scratch {
    /// Makes a new one, which is of no other process.
    fn create() -> io::Result<Scratch> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("{SCRATCH_PREFIX}{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match DirBuilder::new().mode(SCRATCH_PERMISSIONS).create(&path) {
                Ok(()) => return Ok(Scratch(path)),
                // Of an earlier process with this number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn socket(&self) -> PathBuf {
        self.0.join(SOCKET_NAME)
    }

    fn remove(&self) {
        let _ = fs::remove_file(self.socket());
        let _ = fs::remove_dir(&self.0);
    }
}
