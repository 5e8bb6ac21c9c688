//! What can go wrong in a tree.

use frond_store::{ChunkHash, StoreError};

/// An error of a tree.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A chunk's payload is not a node of the expected shape.
    #[error("chunk {hash}: {what}")]
    Damaged {
        /// The chunk.
        hash: ChunkHash,
        /// What is wrong with it.
        what: String,
    },
    /// A key is longer than [`KEY_BYTES_MAX`](crate::format::KEY_BYTES_MAX).
    #[error("a key of {bytes} bytes: at most {max} are allowed")]
    KeyTooLong {
        /// Bytes of the key.
        bytes: usize,
        /// The limit.
        max: usize,
    },
}
