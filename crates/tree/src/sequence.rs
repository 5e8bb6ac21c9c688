//! The sequence: items by position, boundaries by their content.
//!
//! Reading order: `entry` and `node` (the bytes of a node), `read` (get, items, seek_byte),
//! `writer` and build, `splice` (and `exchange`, its short way), `check`.
//!
//! *Invariants*: 1. Each node but the last of its level ends where the boundary rule says, given
//! its size and the hash of its last item: its own, or that of the window, the last items of the
//! level. 2. A level has one node only if it is the root's. 3. An interior entry has the count and
//! the bytes of its subtree. So the items alone decide every byte ([`Sequence::check`] verifies
//! this).
//!
//! A surprise: a map's boundary depends on one key, since keys differ. Items may all be alike, and
//! then one item's hash would either end every node or none; so an item that was there shortly
//! before has the hash of its window, which distinguishes places in data of low entropy. Where even
//! windows are alike (constant data) nodes are alike too, and the store keeps one of them.

mod check;
mod differing;
mod entry;
mod exchange;
mod neighbours;
mod node;
mod read;
mod splice;
mod window;
mod writer;

use bytes::Bytes;
use frond_store::{ChunkHash, ChunkStore};

use crate::error::TreeError;
use crate::format::TreeFormat;
use writer::SequenceBuilder;

pub use differing::Hunk;
pub use read::Items;
pub(crate) use read::read_all;
pub use splice::Replacement;

/// Decides by an item's bytes whether they end with the hash of a chunk that the item refers to.
pub type Refers = fn(&[u8]) -> bool;

/// A list of byte strings: a root hash and the format it was made with. Items are at most
/// [`item_bytes_max`](TreeFormat::item_bytes_max) long; the caller cuts longer ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Sequence {
    /// The top node. An empty sequence has one too: the empty leaf.
    pub root: ChunkHash,
    /// Fixed for the sequence's life.
    pub format: TreeFormat,
}

/// A sequence that is made item by item, by a caller that can't give an iterator. Chunks are put as
/// they are full, not synced.
pub struct GrowingSequence<'a> {
    builder: SequenceBuilder<'a>,
    format: TreeFormat,
}

impl<'a> GrowingSequence<'a> {
    /// An empty one; `refers` as in [`Sequence::build_referring`].
    pub fn new(
        store: &'a dyn ChunkStore,
        format: TreeFormat,
        refers: Refers,
    ) -> GrowingSequence<'a> {
        GrowingSequence { builder: SequenceBuilder::new(store, format, refers), format }
    }

    /// Adds an item at the end.
    ///
    /// # Errors
    /// As the store; [`TreeError::ItemTooLong`].
    pub fn push(&mut self, item: &[u8]) -> Result<(), TreeError> {
        self.builder.push(item)
    }

    /// Ends it.
    ///
    /// # Errors
    /// As the store.
    pub fn finish(self) -> Result<Sequence, TreeError> {
        Ok(Sequence { root: self.builder.finish()?, format: self.format })
    }
}

impl Sequence {
    /// Builds a sequence of `items`: each node is written once. Chunks are put, not synced.
    ///
    /// # Errors
    /// As the store and `items`; [`TreeError::ItemTooLong`].
    pub fn build(
        store: &dyn ChunkStore,
        format: TreeFormat,
        items: &mut dyn Iterator<Item = Result<Bytes, TreeError>>,
    ) -> Result<Sequence, TreeError> {
        Sequence::build_referring(store, format, items, |_| false)
    }

    /// As [`Sequence::build`], of items some of which refer to chunks: those of which `refers` says
    /// so end with a chunk's hash, which their leaf has among its references and nowhere else.
    /// A caller that changes the sequence says the same of each item.
    ///
    /// # Errors
    /// As [`Sequence::build`].
    pub fn build_referring(
        store: &dyn ChunkStore,
        format: TreeFormat,
        items: &mut dyn Iterator<Item = Result<Bytes, TreeError>>,
        refers: Refers,
    ) -> Result<Sequence, TreeError> {
        let mut growing = GrowingSequence::new(store, format, refers);
        for item in items {
            growing.push(&item?)?;
        }
        growing.finish()
    }
}
