//! The server as clients see it: over a socket on this machine, with the small client or with
//! bytes that no client would send. The disk is simulated and in memory.

mod crud;
mod cursors;
mod errors;
mod hostile;
mod many;
mod memory;
mod monitor;
mod running;
mod startup;
mod transactions;
mod versions;
