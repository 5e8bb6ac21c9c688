//! Transactions over many trees: a log, an overlay of recent writes, and folding into prolly trees.
//!
//! Recent writes lie in one memtable (and sealed ones), keyed (tree, key, sequence); a full one is
//! flushed into runs, one for each tree; runs are folded into the trees by key range. A read sees
//! memtables over runs over the tree at its snapshot. Ordinary transactions never fold; a version
//! commit folds the trees it names.
//!
//! Reading order: [`ids`], `overlay` (memtables and runs), `state` (bases and memtables, what a
//! snapshot holds; `state::base` has the rules of background work), [`snapshot`] (and its cursors,
//! and when it may move), [`transaction`] (its writes, its key locks, and the differences that the
//! log gets of changed values), `write_memory` (the budget of large writes), `log` (segments,
//! writing, recovery), `queue` (the order of transactions: conflicts, groups) and `commit` (group
//! commit, and the delays of writers), `compaction` (flushing, folding by key range and for version
//! commits, merging, publishing), `background` (errors, backpressure, scheduling), `threads`,
//! `readable_states` and `recent_snapshots` (moments that are in memory), `gc` (collecting,
//! scrubbing, expiry of snapshots), `recovery`, `retained_states` and `rebuilt_snapshots` (any
//! moment that the retained log reaches), `image` (all of it as a chunk), [`engine`]. This crate
//! doesn't know what keys and values mean.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod background;
mod change_event;
mod changes;
mod check;
mod commit;
mod compaction;
mod cursor_progress;
mod disk_reserve;
mod durable_horizon;
pub mod engine;
mod entry;
pub mod error;
mod fault;
mod fingerprint;
mod follow;
mod gc;
pub mod ids;
mod image;
mod log;
mod options;
pub mod order;
mod overlay;
mod queue;
mod readable_states;
mod rebuilt_snapshots;
mod recent_snapshots;
mod recovery;
mod retained_states;
mod shared;
mod signals;
pub mod slow_commits;
pub mod snapshot;
mod state;
pub mod statistics;
mod threads;
pub mod transaction;
mod write_memory;

pub use background::errors::Failure;
pub use change_event::{ChangeEvent, EventContent, LoggedContent, LoggedEvent};
pub use changes::{Changes, ChangesError, LoggedEvents};
pub use disk_reserve::{DiskStatus, Reserve};
pub use engine::{Engine, EngineCounters};
pub use error::EngineError;
pub use fault::Fault;
pub use gc::reclaim::ReclaimOptions;
pub use ids::{Sequence, TreeId};
pub use image::Image;
pub use log::omit_record::omit_record;
pub use options::{ChangeRetention, EngineOptions, RetentionBegins};
pub use rebuilt_snapshots::RebuildError;
pub use slow_commits::{SlowCommit, Stage};
pub use snapshot::cursor::EntryCursor;
pub use snapshot::{KeepGoing, Snapshot};
pub use statistics::Histogram;
pub use transaction::held_locks::{LockMode, Wait};
pub use transaction::{Durability, PendingCommit, Savepoint, Statement, Transaction};
