//! The native part of `fronddb` for Node: a server in the process, for MongoDB's driver on a
//! private socket.
//!
//! What waits for a disk runs in Node's threads for that, not in the one that runs JavaScript.

use std::path::PathBuf;
use std::sync::Arc;

use frond_remote::HttpOptions;
use frond_server::{PrivateError, PrivateOptions, PrivateServer, RemoteOpener, announced};
use napi::bindgen_prelude::AsyncTask;
use napi::{Env, Error, Result, Task};
use napi_derive::napi;

/// How a directory is served: sizes in bytes, and the log's file.
#[napi(object)]
pub struct Options {
    /// What the database may take.
    pub memory: Option<f64>,
    /// What it keeps decompressed of that.
    pub cache: Option<f64>,
    /// The file that the server's log is appended to; without it, it goes nowhere.
    pub log_path: Option<String>,
}

/// A server of a data directory, which runs in threads of its own.
#[napi]
pub struct Server(Arc<PrivateServer>);

#[napi]
impl Server {
    /// The socket that it listens on.
    #[napi(getter)]
    pub fn socket(&self) -> String {
        self.0.socket().to_string_lossy().into_owned()
    }

    /// Answers what runs, closes the data directory and ends the server's threads. Once is enough.
    #[napi]
    pub fn stop(&self) -> AsyncTask<Stop> {
        AsyncTask::new(Stop(self.0.clone()))
    }

    /// As `stop`, before it returns: for a process that ends.
    ///
    /// # Errors
    /// As the server says.
    #[napi]
    pub fn stop_now(&self) -> Result<()> {
        self.0.stop().map_err(failed)
    }
}

/// Opens `data`, making it where it is missing, and serves it; null where another process has it.
#[napi]
pub fn start(data: String, options: Options) -> AsyncTask<Start> {
    let places = RemoteOpener::new(|url, database, token| {
        let token = token.map(str::to_owned);
        frond_remote::open(url, database, &HttpOptions { token, ..HttpOptions::default() })
    });
    let options = PrivateOptions {
        memory_bytes: options.memory.map(bytes),
        cache_bytes: options.cache.map(bytes),
        log: options.log_path.map(PathBuf::from),
        places,
    };
    AsyncTask::new(Start { data: PathBuf::from(data), options: Some(options) })
}

/// The socket of the process that has `data`, if it listens.
#[napi]
pub fn socket_of(data: String) -> Option<String> {
    Some(announced::socket_of(&PathBuf::from(data))?.to_string_lossy().into_owned())
}

/// Starting a server, in a thread that may wait.
pub struct Start {
    data: PathBuf,
    options: Option<PrivateOptions>,
}

impl Task for Start {
    type Output = Option<PrivateServer>;
    type JsValue = Option<Server>;

    fn compute(&mut self) -> Result<Option<PrivateServer>> {
        match PrivateServer::start(&self.data, self.options.take().unwrap_or_default()) {
            Ok(server) => Ok(Some(server)),
            Err(PrivateError::InUse(_)) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    fn resolve(&mut self, _: Env, started: Option<PrivateServer>) -> Result<Option<Server>> {
        Ok(started.map(|server| Server(Arc::new(server))))
    }
}

/// Stopping one.
pub struct Stop(Arc<PrivateServer>);

impl Task for Stop {
    type Output = ();
    type JsValue = ();

    fn compute(&mut self) -> Result<()> {
        self.0.stop().map_err(failed)
    }

    fn resolve(&mut self, _: Env, (): ()) -> Result<()> {
        Ok(())
    }
}

/// Numbers of JavaScript are exact up to 2^53; what is below zero or no number is 0.
fn bytes(number: f64) -> u64 {
    number as u64
}

fn failed(error: PrivateError) -> Error {
    Error::from_reason(error.to_string())
}
