//! What gives back and what looks after the store: collecting chunks that nobody names, rereading
//! what lies there, and ending snapshots that keep too much.

pub(crate) mod expiry;
pub mod reclaim;
pub(crate) mod scrub;
