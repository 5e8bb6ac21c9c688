//! Transactions over many trees: a log, an overlay of recent writes, and folding into prolly trees.
//!
//! The committed trees are the base; recent writes lie in one memtable (and sealed ones), keyed
//! (tree, key, sequence); a read sees overlay over base at its snapshot. Ordinary transactions
//! never fold; a version commit folds the trees it names.
//!
//! Reading order: [`ids`], `overlay` (recent writes in memory), `state` (bases and memtables, what
//! a snapshot holds), [`snapshot`], [`cursor`], [`transaction`], `conflict`, `log` (segments,
//! writing, recovery), `queue` and `commit` (the order of transactions, group commit), `fold`,
//! `opening`, [`engine`]. This crate doesn't know what keys and values mean.

mod background;
mod check;
mod commit;
mod conflict;
pub mod cursor;
pub mod engine;
pub mod error;
mod fold;
pub mod ids;
mod log;
mod opening;
mod overlay;
mod own_writes;
mod queue;
mod reclaim;
mod shared;
pub mod snapshot;
mod state;
pub mod transaction;

pub use cursor::EntryCursor;
pub use engine::{Engine, EngineCounters, EngineOptions};
pub use error::EngineError;
pub use ids::{Sequence, TreeId};
pub use reclaim::ReclaimOptions;
pub use snapshot::Snapshot;
pub use transaction::{Durability, Savepoint, Transaction};
