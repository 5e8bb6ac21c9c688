//! What can go wrong in the engine.

use frond_store::StoreError;
use frond_tree::TreeError;

use crate::ids::TreeId;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Another transaction committed a change to `key` first: run this one again.
    #[error("write conflict in tree {}", tree.0)]
    Conflict {
        /// The tree.
        tree: TreeId,
        /// The key.
        key: Vec<u8>,
    },
    /// There is no such tree in this snapshot.
    #[error("no tree {}", .0.0)]
    NoTree(TreeId),
    /// The snapshot is older than [`EngineOptions::snapshot_seconds_max`](crate::EngineOptions), and what
    /// it showed was replaced since: take another.
    #[error("the snapshot is too old: what it showed has been given back")]
    SnapshotTooOld,
    /// A sync failed earlier, or the engine was closed.
    #[error("closed: {0}")]
    Closed(String),
    /// A transaction exceeds a limit.
    #[error("transaction too large: {bytes} bytes, at most {max}")]
    TooLarge {
        /// What it holds.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// A tree failed.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
