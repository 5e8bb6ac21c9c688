//! Garbage collection and care for the store: removes chunks that nothing refers to, repacks
//! history when the engine is idle, scrubs, and expires snapshots that keep too much memory.

pub(crate) mod expiry;
pub(crate) mod idle;
pub mod reclaim;
pub(crate) mod scrub;
