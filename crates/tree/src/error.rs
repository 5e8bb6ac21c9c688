//! The errors of trees.

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
        /// A description of the fault.
        what: String,
    },
    /// Keys of what is to be written don't ascend: a node that was read is damaged, or the input is
    /// out of order.
    #[error("keys don't ascend: a node of the tree is damaged, or the input is not in order")]
    OutOfOrder,
    /// A key is longer than [`KEY_BYTES_MAX`](crate::format::KEY_BYTES_MAX).
    #[error("a key of {bytes} bytes: at most {max} are allowed")]
    KeyTooLong {
        /// Bytes of the key.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// An item of a sequence is longer than
    /// [`item_bytes_max`](crate::format::TreeFormat::item_bytes_max).
    #[error("an item of {bytes} bytes: at most {max} are allowed")]
    ItemTooLong {
        /// Bytes of the item.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// A place beyond the end of a sequence.
    #[error("position {position}: the sequence has {count} items")]
    OutOfRange {
        /// The position that the caller wanted to reach.
        position: u64,
        /// The number of items there are.
        count: u64,
    },
}

impl TreeError {
    pub(crate) fn damaged(hash: ChunkHash, what: impl Into<String>) -> TreeError {
        TreeError::Damaged { hash, what: what.into() }
    }
}
