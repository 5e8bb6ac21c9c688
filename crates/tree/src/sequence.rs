//! The sequence: items by position, boundaries by their content.

use std::sync::Arc;

use bytes::Bytes;
use frond_store::{ChunkHash, ChunkStore};

use crate::error::TreeError;
use crate::format::TreeFormat;

/// A list of byte strings: a root hash and the format it was made with. Items are at most
/// `inline_bytes_max` long; the caller cuts longer ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Sequence {
    /// The top node.
    pub root: ChunkHash,
    /// Fixed for the sequence's life.
    pub format: TreeFormat,
}

impl Sequence {
    /// Builds a sequence of `items`.
    pub fn build(
        _store: &dyn ChunkStore,
        _format: TreeFormat,
        _items: &mut dyn Iterator<Item = Result<Bytes, TreeError>>,
    ) -> Result<Sequence, TreeError> {
        todo!()
    }

    /// How many items. One chunk read.
    pub fn count(&self, _store: &dyn ChunkStore) -> Result<u64, TreeError> {
        todo!()
    }

    /// Bytes of all items. One chunk read.
    pub fn bytes(&self, _store: &dyn ChunkStore) -> Result<u64, TreeError> {
        todo!()
    }

    /// The item at `position`.
    pub fn get(&self, _store: &dyn ChunkStore, _position: u64) -> Result<Option<Bytes>, TreeError> {
        todo!()
    }

    /// The items from `position` on.
    pub fn items(&self, _store: &Arc<dyn ChunkStore>, _position: u64) -> Items {
        todo!()
    }

    /// Removes `removed` items at `position` and puts `items` in their place. The same root as
    /// `build` gives for the same items.
    pub fn splice(
        &self,
        _store: &dyn ChunkStore,
        _position: u64,
        _removed: u64,
        _items: &[Bytes],
    ) -> Result<Sequence, TreeError> {
        todo!()
    }

    /// Walks the whole sequence and checks every invariant.
    pub fn check(&self, _store: &dyn ChunkStore) -> Result<(), TreeError> {
        todo!()
    }
}

/// An iterator over a sequence's items.
pub struct Items {}

impl Iterator for Items {
    type Item = Result<Bytes, TreeError>;

    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}

pub(crate) fn read_all(
    _store: &dyn ChunkStore,
    _root: ChunkHash,
    _bytes: u64,
) -> Result<Bytes, TreeError> {
    todo!()
}
