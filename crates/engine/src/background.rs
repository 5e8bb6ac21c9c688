//! What background work shares: what becomes of its errors, whose turn it is, and how it yields to
//! clients. Who does it stands in `threads`, what it does in `compaction` and `gc`.

pub(crate) mod backpressure;
pub(crate) mod compaction_scheduler;
pub(crate) mod errors;
pub(crate) mod throttle;
pub(crate) mod throttled_store;
pub(crate) mod workers;
