//! A server in the process of another program (Python, Node), for programs of the same user.
//!
//! 1. It opens a data directory and serves it on a socket that only this user reaches
//!    ([`announced`](crate::announced)), and on no address.
//! 2. It ends with [`PrivateServer::stop`], or with the process: what was acknowledged is on the
//!    disk either way.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use frond_db::{ChangeRetention, Code, FrondOptions};

use crate::announced::Announced;
use crate::listener::{Server, ServerError, ServerOptions, Stopper};
use crate::log::LogOutput;
use crate::machine_memory::MachineMemory;
use crate::remote_opener::RemoteOpener;

/// The options of serving a directory.
#[derive(Default)]
pub struct PrivateOptions {
    /// What the database may take, in bytes; by default a part of what the machine has.
    pub memory_bytes: Option<u64>,
    /// What it keeps decompressed of that, in bytes.
    pub cache_bytes: Option<u64>,
    /// The file that the log is appended to; without it, it goes nowhere.
    pub log: Option<PathBuf>,
    /// Opens other repositories.
    pub places: RemoteOpener,
}

/// The reason why there is no private server.
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
    /// The socket's directory can't be made, or its address can't be noted in the data directory.
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
    announced: Announced,
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
        let announced = Announced::new(data)?;
        let server = Server::bind(frond, serving(data, &announced, options))
            .inspect_err(|_| announced.remove())?;
        let stopper = server.stopper();
        announced.announce().inspect_err(|_| announced.remove())?;
        let running =
            thread::Builder::new().name("frond".to_owned()).spawn(move || server.run())?;
        Ok(PrivateServer { stopper, running: Mutex::new(Some(running)), announced })
    }

    /// The socket that it listens on.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.announced.path()
    }

    /// Answers what runs, closes the data directory and ends the threads. Once is enough.
    ///
    /// # Errors
    /// [`PrivateError::Serve`], [`PrivateError::Panicked`].
    pub fn stop(&self) -> Result<(), PrivateError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = running.take() else { return Ok(()) };
        self.announced.withdraw();
        self.stopper.stop();
        let ended = thread.join();
        self.announced.remove();
        match ended {
            Ok(ended) => Ok(ended?),
            Err(_) => Err(PrivateError::Panicked),
        }
    }
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
    storage.engine.changes = ChangeRetention::OF_A_DAY;
    storage
}

fn serving(data: &Path, announced: &Announced, options: PrivateOptions) -> ServerOptions {
    let memory = options.memory_bytes;
    ServerOptions {
        listen: None,
        unix_socket: Some(announced.socket()),
        data_directory: data.display().to_string(),
        places: options.places,
        log: options.log.map_or(LogOutput::Memory, LogOutput::File),
        ..memory.map_or_else(ServerOptions::default, ServerOptions::for_memory)
    }
}
