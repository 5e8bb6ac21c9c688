//! The reasons why a server doesn't start, or doesn't end well.

use std::io;
use std::net::SocketAddr;

use frond_db::Error;

use crate::log::LogOutput;
use crate::tls::TlsError;

/// The reason why a server can't run.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address can't be resolved or listened on.
    #[error("can't listen on {address}: {source}")]
    Listen {
        /// As given.
        address: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The address can be reached from other machines.
    #[error(
        "refused to listen on {address}: {resolved} is not a loopback address, and without --auth \
         any client that reaches it could read and change everything; start it with --auth, or \
         listen on 127.0.0.1 or [::1]"
    )]
    NotLoopback {
        /// As given.
        address: String,
        /// The address that it resolves to.
        resolved: SocketAddr,
    },
    /// The console could be reached from other machines.
    #[error(
        "refused to serve the console on {address}: {resolved} is not a loopback address, which \
         needs --auth and --tls-mode: otherwise passwords and data would travel unencrypted"
    )]
    OpenConsole {
        /// As given.
        address: String,
        /// The address that it resolves to.
        resolved: SocketAddr,
    },
    /// The log's file can't be opened.
    #[error("can't write the log to {output}: {source}")]
    Log {
        /// As given.
        output: LogOutput,
        /// The system's reason.
        source: io::Error,
    },
    /// The filter of the audit log is no query.
    #[error("the audit log's filter: {0}")]
    AuditFilter(Error),
    /// Certificates can't be used.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// The users can't be read.
    #[error("can't read the users and roles: {0}")]
    Users(Error),
    /// The runtime can't be started.
    #[error("can't start the server's threads: {0}")]
    Runtime(io::Error),
    /// The databases could not be closed.
    #[error("can't close the data directory: {0}")]
    Close(Error),
}
