//! What gives space back and looks after the store: collecting chunks that nothing refers to,
//! packing all while nothing else happens, rereading what lies there, and ending snapshots that
//! keep too much.

pub(crate) mod expiry;
pub(crate) mod idle;
pub mod reclaim;
pub(crate) mod scrub;
