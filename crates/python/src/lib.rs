//! `fronddb._native`: a server in a Python process, for PyMongo on a private socket.
//!
//! 1. [`Server`] opens a data directory and serves it on a socket of the Unix domain, which only
//!    this user may connect to, and on no address.
//! 2. Its threads never take the interpreter's lock: clients in any thread, or in a child that was
//!    forked, talk to it as to any server.
//! 3. It ends with `stop`, or with the process: what was acknowledged is on the disk either way.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use frond_db::{ChangeRetention, Code, Error, FrondOptions, RetentionBegins};
use frond_remote::HttpOptions;
use frond_server::{
    LogOutput, MachineMemory, RemoteOpener, Server as Listening, ServerError, ServerOptions,
    Stopper, UnixSocketOptions,
};
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(fronddb, FrondError, PyException, "Frond can't do what was asked.");
create_exception!(fronddb, DirectoryInUse, FrondError, "Another process has the data directory.");

/// Only the user whose process it is may connect.
const SOCKET_PERMISSIONS: u32 = 0o600;

/// What is kept for change streams, once one is opened: as `frond serve` does.
const CHANGES: ChangeRetention =
    ChangeRetention { begins: RetentionBegins::WhenAsked, seconds: 24 * 3600, bytes: 2 << 30 };

/// A server of a data directory, which runs in threads of its own.
#[pyclass(frozen, module = "fronddb._native")]
struct Server {
    stopper: Stopper,
    running: Mutex<Option<JoinHandle<Result<(), ServerError>>>>,
}

#[pymethods]
impl Server {
    /// Opens `data`, making it where it is missing, and serves it on `socket`.
    ///
    /// `log_path` is the file that the server's log is appended to; without it, it goes nowhere.
    #[new]
    #[pyo3(signature = (data, socket, *, memory=None, cache=None, log_path=None))]
    fn start(
        py: Python<'_>,
        data: PathBuf,
        socket: PathBuf,
        memory: Option<u64>,
        cache: Option<u64>,
        log_path: Option<PathBuf>,
    ) -> PyResult<Server> {
        py.detach(|| {
            let mut options = match memory.or(MachineMemory::read().budget_bytes()) {
                Some(bytes) if memory.is_some() => FrondOptions::for_memory(bytes),
                Some(bytes) => FrondOptions::within_memory(bytes),
                None => FrondOptions::default(),
            };
            if let Some(bytes) = cache {
                options.engine.cache_bytes = bytes;
            }
            options.engine.changes = CHANGES;
            let frond = frond_vcs::open(&data, options).map_err(|error| failed_to_open(&error))?;
            let options = ServerOptions {
                listen: None,
                unix_socket: Some(UnixSocketOptions {
                    path: socket,
                    permissions: SOCKET_PERMISSIONS,
                }),
                data_directory: data.display().to_string(),
                places: RemoteOpener::new(|url, database, token| {
                    let token = token.map(str::to_owned);
                    frond_remote::open(
                        url,
                        database,
                        &HttpOptions { token, ..HttpOptions::default() },
                    )
                }),
                log: log_path.map_or(LogOutput::Memory, LogOutput::File),
                ..memory.map_or_else(ServerOptions::default, ServerOptions::for_memory)
            };
            let server = Listening::bind(frond, options).map_err(failed)?;
            let stopper = server.stopper();
            let running = thread::Builder::new()
                .name("frond".to_owned())
                .spawn(move || server.run())
                .map_err(failed)?;
            Ok(Server { stopper, running: Mutex::new(Some(running)) })
        })
    }

    /// Answers what runs, closes the data directory and ends the server's threads. Once is enough.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            self.stopper.stop();
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
            match running.map(JoinHandle::join) {
                None | Some(Ok(Ok(()))) => Ok(()),
                Some(Ok(Err(error))) => Err(failed(error)),
                Some(Err(_)) => Err(FrondError::new_err("the server's thread has panicked")),
            }
        })
    }
}

fn failed_to_open(error: &Error) -> PyErr {
    if error.code == Code::DBPathInUse {
        return DirectoryInUse::new_err(error.message.to_string());
    }
    FrondError::new_err(error.message.to_string())
}

fn failed(error: impl std::fmt::Display) -> PyErr {
    FrondError::new_err(error.to_string())
}

/// The native part of `fronddb`.
#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::Server;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("FrondError", module.py().get_type::<super::FrondError>())?;
        module.add("DirectoryInUse", module.py().get_type::<super::DirectoryInUse>())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
