//! Transactions over many trees: a log, an overlay of recent writes, and folding into prolly trees.
//!
//! Recent writes lie in one memtable (and sealed ones), keyed (tree, key, sequence); a full one is
//! flushed into runs, one for each tree; runs are folded into the trees by key range. A read sees
//! memtables over runs over the tree at its snapshot. Ordinary transactions never fold; a version
//! commit folds the trees it names.
//!
//! Reading order: [`ids`], `overlay` (memtables and runs), `state` (bases and memtables, what a
//! snapshot holds; `state::base` has the rules of background work), [`snapshot`], [`cursor`],
//! [`transaction`], `difference` (what the log gets of a changed value), `conflicts`, `key_locks`
//! and `held_locks` (who waits for whom), `write_memory` (who waits for memory), `read_set` (when a
//! snapshot may move), `log` (segments, writing, recovery), `queue`, `group` and `commit` (the
//! order of transactions, group commit), `flush`, `backpressure`, `throttle`, `compaction` (folding
//! by key range, merging), `compaction_progress` (what of it is done), `background_errors` (what
//! fails in the background), `fold` (for version commits), `publish`, `held_states` and `moments`
//! (reading what was visible once), `expiry` (of snapshots), `recovery`, `image` (all of it as a
//! chunk), [`engine`]. This crate doesn't know what keys and values mean.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod background;
mod background_errors;
mod backpressure;
mod check;
mod commit;
mod compaction;
mod compaction_progress;
mod compaction_scheduler;
mod conflicts;
mod current;
pub mod cursor;
mod difference;
pub mod engine;
mod entry;
pub mod error;
mod expiry;
mod fault;
mod fingerprint;
mod flush;
mod fold;
mod group;
mod growth;
mod held_locks;
mod held_states;
pub mod ids;
mod image;
mod key_locks;
mod log;
mod moments;
mod open_transactions;
mod options;
mod overlay;
mod publish;
mod queue;
mod reach;
mod read_set;
mod reclaim;
mod recovery;
mod scrub;
mod shared;
pub mod slow;
pub mod snapshot;
mod space;
mod stall;
mod state;
pub mod statistics;
mod throttle;
mod throttled_store;
pub mod transaction;
mod write_memory;
mod write_set;

pub use background_errors::Failure;
pub use cursor::EntryCursor;
pub use engine::{Engine, EngineCounters};
pub use error::EngineError;
pub use fault::Fault;
pub use held_locks::{LockMode, Wait};
pub use ids::{Sequence, TreeId};
pub use image::{GetSome, Image};
pub use options::EngineOptions;
pub use reclaim::ReclaimOptions;
pub use slow::{SlowCommit, Stage};
pub use snapshot::Snapshot;
pub use space::{DiskRoom, Reserve};
pub use statistics::Histogram;
pub use transaction::{Durability, Savepoint, Statement, Transaction};
