//! `fronddb._native`: a server in a Python process, for PyMongo on a private socket.
//!
//! Its threads never take the interpreter's lock: clients in any thread, or in a child that was
//! forked, talk to it as to any server.

use std::path::PathBuf;

use frond_remote::HttpOptions;
use frond_server::{PrivateError, PrivateOptions, PrivateServer, RemoteOpener};
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(fronddb, FrondError, PyException, "Frond can't do what was asked.");
create_exception!(fronddb, DirectoryInUse, FrondError, "Another process has the data directory.");

/// A server of a data directory, which runs in threads of its own.
#[pyclass(frozen, module = "fronddb._native")]
struct Server(PrivateServer);

#[pymethods]
impl Server {
    /// Opens `data`, making it where it is missing, and serves it on a socket of its own.
    ///
    /// `log_path` is the file that the server's log is appended to; without it, it goes nowhere.
    #[new]
    #[pyo3(signature = (data, *, memory=None, cache=None, log_path=None))]
    fn start(
        py: Python<'_>,
        data: PathBuf,
        memory: Option<u64>,
        cache: Option<u64>,
        log_path: Option<PathBuf>,
    ) -> PyResult<Server> {
        let places = RemoteOpener::new(|url, database, token| {
            let token = token.map(str::to_owned);
            frond_remote::open(url, database, &HttpOptions { token, ..HttpOptions::default() })
        });
        let options =
            PrivateOptions { memory_bytes: memory, cache_bytes: cache, log: log_path, places };
        py.detach(|| PrivateServer::start(&data, options))
            .map(Server)
            .map_err(|error| failed(&error))
    }

    /// The socket that it listens on.
    #[getter]
    fn socket(&self) -> String {
        self.0.socket().to_string_lossy().into_owned()
    }

    /// Answers what runs, closes the data directory and ends the server's threads. Once is enough.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.stop()).map_err(|error| failed(&error))
    }
}

/// The socket of the process that has `data`, if it listens.
#[pyfunction]
fn socket_of(py: Python<'_>, data: PathBuf) -> Option<String> {
    let socket = py.detach(|| frond_server::announced::socket_of(&data))?;
    Some(socket.to_string_lossy().into_owned())
}

/// In a child that was just forked: closes the locks of its parent's servers, which are its
/// parent's.
#[pyfunction]
fn close_inherited_locks() {
    frond_server::close_inherited_locks();
}

fn failed(error: &PrivateError) -> PyErr {
    match error {
        PrivateError::InUse(message) => DirectoryInUse::new_err(message.clone()),
        other => FrondError::new_err(other.to_string()),
    }
}

/// The native part of `fronddb`.
#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::Server;

    #[pymodule_export]
    use super::socket_of;

    #[pymodule_export]
    use super::close_inherited_locks;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("FrondError", module.py().get_type::<super::FrondError>())?;
        module.add("DirectoryInUse", module.py().get_type::<super::DirectoryInUse>())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
