//! Transactions over many trees: a log, an overlay of recent writes, and folding into prolly trees.
//!
//! The committed trees are the base; recent writes lie in one memtable (and sealed ones), keyed
//! (tree, key, sequence); a read sees overlay over base at its snapshot. Ordinary transactions
//! never fold; a version commit folds the trees it names.

pub mod engine;
pub mod error;
pub mod ids;
pub mod transaction;

pub use engine::{Engine, EngineCounters, EngineOptions};
pub use error::EngineError;
pub use ids::{Sequence, TreeId};
pub use transaction::{Durability, EntryCursor, Snapshot, Transaction};
