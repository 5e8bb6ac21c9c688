//! Frond's server: MongoDB's wire protocol over the embedded database.
//!
//! Reading order: [`wire`] (bytes to messages and back), [`listener`] and [`connection`] (sockets),
//! [`dispatch`] (a message to its answer), [`tables`] (what each command takes), [`request`],
//! [`fields`] and [`common_fields`] (what a handler works with), [`commands`] (one file a command,
//! or a few relatives), [`cursors`] and [`operations`] (what outlives a message, and what runs),
//! [`sessions`] and [`transactions`], [`remote_opener`] (other repositories). [`client`] is the
//! other side, [`router`] stands between; [`in_process`] runs commands without a socket, and
//! [`private`] serves from within another program; [`metrics`] is for monitoring.
//!
//! Only this crate knows sockets and tokio. Everything below it blocks, so each client that is busy
//! has a thread; those that are idle have none. The memory that they may hold together is in
//! [`limits`] and [`frond_db::memory_queue`].

pub mod access;
pub mod announced;
pub mod answer_memory;
pub mod audit;
pub mod audit_log;
pub mod authorization;
pub mod automatic_commits;
pub mod chance;
pub mod client;
mod cluster_time;
pub mod commands;
pub mod common_fields;
pub mod concerns;
pub mod connection;
pub mod console;
pub mod cursors;
pub mod default_concerns;
pub mod dispatch;
pub mod drain;
pub mod errors;
pub mod fail_points;
pub mod fields;
pub mod governor;
pub mod health;
pub mod held_commits;
pub mod hooks;
pub mod in_process;
pub mod kept_documents;
mod lent_connections;
pub mod limits;
pub mod line_remote;
pub mod listener;
pub mod log;
pub mod log_file;
pub mod logins;
pub mod machine_memory;
pub mod member;
pub mod message_memory;
pub mod metrics;
pub mod operations;
pub mod outgoing;
pub mod peer;
pub mod private;
pub mod process_counts;
pub mod profiler;
pub mod reference;
pub mod remote_opener;
pub mod replica;
pub mod request;
pub mod router;
pub mod scram;
pub mod sessions;
pub mod shared;
pub mod snapshot_window;
pub mod stable_api;
pub mod stalled_bytes;
pub mod supervisor;
pub mod sweep;
pub mod tables;
pub mod time_limits;
pub mod tls;
pub mod transactions;
pub mod unix_socket;
pub mod usage;
pub mod waiting;
pub mod wire;
mod workers;

/// The script that gives mongosh methods for versions (`db.commit()`, `db.diff()`): `frond shell`
/// runs it.
pub const MONGOSH_SCRIPT: &str = include_str!("../data/frond.mongosh.js");

pub use announced::Announced;
pub use client::{Client, ClientError, ClientTls};
pub use console::ConsoleOptions;
pub use hooks::Hooks;
pub use in_process::InProcess;
pub use listener::{BeginningParameters, Server, ServerError, ServerOptions, Stopper};
pub use log::LogOutput;
pub use log_file::LogRotation;
pub use machine_memory::MachineMemory;
pub use private::{PrivateError, PrivateOptions, PrivateServer};
pub use profiler::Level as ProfileLevel;
pub use remote_opener::RemoteOpener;
pub use replica::beginning::{BegunSet, SetBeginning, end_wait, waits};
pub use replica::key::ClusterKey;
pub use replica::{Replica, ReplicaOptions};
pub use router::{Router, RouterError, RouterOptions};
pub use shared::MemberOptions;
pub use supervisor::Supervisor;
pub use tls::{KeyPassword, TlsError, TlsMode, TlsOptions};
pub use unix_socket::UnixSocketOptions;

pub use frond_store::io::close_inherited_locks;
