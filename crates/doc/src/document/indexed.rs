//! Documents that carry an index of their fields.

use super::DocumentBuf;
use crate::field_index::cache::FieldIndexes;
use crate::field_index::shape::ShapeRegistry;
use crate::field_index::{Attached, FieldIndex, INDEXED_BYTES_MIN};

impl DocumentBuf {
    /// Indexes the fields of a document that will be asked for many; `shapes` will learn its names.
    /// A document that can't have an index stays without.
    pub fn indexed(self, shapes: &ShapeRegistry) -> DocumentBuf {
        match FieldIndex::of(&self.bytes, shapes) {
            Some(index) => self.with_index(Attached::Ready(index)),
            None => self,
        }
    }

    /// Carries an index from now on, which must be one of these bytes.
    fn with_index(mut self, index: Attached) -> DocumentBuf {
        self.index = Some(index);
        self
    }
}

impl FieldIndexes {
    /// Takes over a document whose bytes have that hash; it will find its index here.
    pub fn attach(&self, hash: [u8; 32], document: DocumentBuf) -> DocumentBuf {
        if document.as_bytes().len() < INDEXED_BYTES_MIN {
            return document;
        }
        document.with_index(self.lazy(hash))
    }
}
