//! The server as clients see it: over a socket on this machine, with the small client or with
//! bytes that no client would send. The disk is simulated and in memory.

mod audit;
mod auth;
mod auth_branches;
mod auth_fields;
mod auth_matrix;
mod bulk_write;
mod capped;
mod change_streams;
mod coll_mod;
mod compression;
mod console;
mod crud;
mod cursors;
mod errors;
mod exhaust;
mod fail_points;
mod hostile;
mod maintenance;
mod many;
mod memory;
mod metrics;
mod monitor;
mod outcomes;
mod remotes;
mod running;
mod shutdown;
mod snapshot_reads;
mod sources;
mod stable_api;
mod startup;
mod tls;
mod transactions;
mod unix_socket;
mod usage;
mod versions;
