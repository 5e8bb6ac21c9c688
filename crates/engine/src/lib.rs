//! Transactions over many trees: a log, an overlay of recent writes, and folding into prolly trees.
//!
//! Recent writes lie in one memtable (and sealed ones), keyed (tree, key, sequence); a full one is
//! flushed into runs, one for each tree; runs are folded into the trees by key range. A read sees
//! memtables over runs over the tree at its snapshot. Ordinary transactions never fold; a version
//! commit folds the trees it names.
//!
//! Reading order: [`ids`], `overlay` (memtables and runs), `state` (bases and memtables, what a
//! snapshot holds; `state::base` has the rules of background work), [`snapshot`], [`cursor`],
//! [`transaction`], `difference` (what the log gets of a changed value), `conflict`, `intents` and `claims` (who waits for whom), `reads` (when a snapshot may move), `log` (segments, writing, recovery), `queue`, `group` and `commit` (the
//! order of transactions, group commit), `flush`, `pace`, `courtesy`, `work` (folding by key range, merging), `rounds` (what of it is done), `trouble` (what fails in the background), `fold` (for
//! version commits), `publish`, `age` (of snapshots), `opening`, `image` (all of it as
//! a chunk), [`engine`]. This crate doesn't know what keys and values
//! mean.

mod age;
mod background;
mod check;
mod claims;
mod commit;
mod conflict;
mod courtesy;
mod current;
pub mod cursor;
mod difference;
pub mod engine;
pub mod error;
mod flush;
mod fold;
mod group;
pub mod ids;
mod image;
mod intents;
mod log;
mod open_transactions;
mod opening;
mod overlay;
mod own_writes;
mod pace;
mod publish;
mod queue;
mod reads;
mod reclaim;
mod rounds;
mod shared;
pub mod slow;
pub mod snapshot;
mod state;
pub mod statistics;
mod steady;
pub mod transaction;
mod trouble;
mod work;

pub use claims::{Manner, Wait};
pub use cursor::EntryCursor;
pub use engine::{Engine, EngineCounters, EngineOptions};
pub use error::EngineError;
pub use ids::{Sequence, TreeId};
pub use image::Image;
pub use reclaim::ReclaimOptions;
pub use slow::{SlowCommit, Stage};
pub use snapshot::Snapshot;
pub use statistics::Histogram;
pub use transaction::{Durability, Savepoint, Statement, Transaction};
pub use trouble::Failure;
