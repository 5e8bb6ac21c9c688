//! Errors of the engine.

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
    /// The transaction read a commit ahead of the visible state that was refused, since the disk is
    /// full: nothing of it was written; run it again.
    #[error("what was read was refused: the disk is full")]
    Withdrawn,
    /// A transaction that waited for room in memory was interrupted: nothing was written.
    #[error("the wait for room was ended")]
    Interrupted,
    /// There is no such tree in this snapshot.
    #[error("no tree {}", .0.0)]
    NoTree(TreeId),
    /// The snapshot is older than [`EngineOptions::snapshot_seconds_max`](crate::EngineOptions),
    /// and what it showed was replaced since: take another.
    #[error("the snapshot is too old: what it showed has been given back")]
    SnapshotTooOld,
    /// The directory was to be restored, and that was cut short.
    #[error("it holds part of a restore that was interrupted: restore again, and it continues")]
    HalfRestored,
    /// A sync failed earlier, or the engine was closed: nothing of this was written.
    #[error("closed for writing: {0}")]
    Closed(String),
    /// A write or sync failed, or something panicked, when the transaction had its place in the
    /// log: only opening the directory again shows whether it was kept.
    #[error(
        "whether the transaction was kept is unknown until the data directory is opened again: {0}"
    )]
    Unknown(String),
    /// A transaction that waited for the log in a bucket was interrupted, when it had its place
    /// there: it may be kept yet, and a transaction that comes after it learns its fate.
    #[error("the wait for the log was ended: whether the transaction is kept is unknown")]
    Unawaited,
    /// A transaction exceeds a limit.
    #[error("transaction too large: {bytes} bytes, at most {max}")]
    TooLarge {
        /// The bytes it holds.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// A transaction is more than an entry of a replica set's log carries.
    #[error(
        "too large for a replica set: with the chunks that it refers to, large documents and whole \
         indexes among them, a transaction carries at most {max} bytes"
    )]
    TooLargeForSet {
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

impl EngineError {
    /// Whether stored bytes aren't what was written.
    pub(crate) fn is_damage(&self) -> bool {
        use StoreError::{Damaged, Missing};
        match self {
            EngineError::Store(error) | EngineError::Tree(TreeError::Store(error)) => {
                matches!(error, Damaged { .. } | Missing(_))
            }
            EngineError::Tree(TreeError::Damaged { .. }) => true,
            _ => false,
        }
    }

    /// Whether the disk is full, or as full as it may be, or the process may open no more files:
    /// the only failures of a write that leave everything as it was.
    pub fn is_full(&self) -> bool {
        match self {
            EngineError::Store(error) | EngineError::Tree(TreeError::Store(error)) => {
                error.is_full()
            }
            _ => false,
        }
    }
}
