//! What gives space back and looks after the store: collecting chunks that nothing refers to,
//! rereading what lies there, and ending snapshots that keep too much.

pub(crate) mod expiry;
pub mod reclaim;
pub(crate) mod scrub;
