//! A part of a tree that can't be read, as reported by a walk over the tree.

use bytes::Bytes;

use crate::chunk::ChunkHash;

/// A part of a tree that can't be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnreadableRange {
    /// The chunk that leads to it.
    pub chunk: Option<ChunkHash>,
    /// Its keys are greater than this one; `None`: it has the tree's first.
    pub after: Option<Bytes>,
    /// Its last key; `None`: it has the tree's last.
    pub up_to: Option<Bytes>,
    /// The number of its entries, if that is known from elsewhere.
    pub count: Option<u64>,
    /// A description of the fault.
    pub why: String,
}
