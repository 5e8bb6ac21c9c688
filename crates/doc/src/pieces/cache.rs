//! Large documents that were put together, by their hashes, each with an index of its fields.

use std::sync::atomic::{AtomicU64, Ordering};

use frond_store::ChunkStore;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::{LargeDocument, PiecesError};
use crate::document::DocumentBuf;
use crate::field_index::cache::FieldIndexes;

/// Memory for documents, if their owner doesn't say.
pub const CACHE_BYTES: u64 = 32 << 20;
/// Memory for their indexes.
const INDEXES_BYTES: u64 = 4 << 20;
/// Documents that take more than this share of the cache are not kept.
const SHARE_MAX: u64 = 32;

/// Whole documents. *Thread safety*: any number of threads.
#[derive(Debug)]
pub struct LargeDocuments {
    bytes_max: AtomicU64,
    documents: Cache<[u8; 32], DocumentBuf, ByBytes>,
    indexes: FieldIndexes,
}

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<[u8; 32], DocumentBuf> for ByBytes {
    fn weight(&self, _: &[u8; 32], document: &DocumentBuf) -> u64 {
        document.as_bytes().len() as u64
    }
}

impl LargeDocuments {
    /// Makes an empty cache that will hold about so many bytes.
    pub fn new(bytes_max: u64) -> LargeDocuments {
        LargeDocuments {
            bytes_max: AtomicU64::new(bytes_max),
            documents: Cache::with_weighter(1024, bytes_max, ByBytes),
            indexes: FieldIndexes::new(INDEXES_BYTES),
        }
    }

    /// Holds about so many bytes from now on; what is above it goes.
    pub fn set_bytes_max(&self, bytes: u64) {
        if self.bytes_max.swap(bytes, Ordering::Relaxed) != bytes {
            self.documents.set_capacity(bytes);
            self.indexes.set_bytes_max(bytes.min(INDEXES_BYTES));
        }
    }

    /// A whole document, if it was read before.
    pub fn known(&self, large: &LargeDocument) -> Option<DocumentBuf> {
        self.documents.get(&large.hash().0)
    }

    /// Reads a whole document.
    ///
    /// # Errors
    /// As [`LargeDocument::read`].
    pub fn read(
        &self,
        store: &dyn ChunkStore,
        large: &LargeDocument,
    ) -> Result<DocumentBuf, PiecesError> {
        let hash = large.hash().0;
        if let Some(known) = self.documents.get(&hash) {
            return Ok(known);
        }
        let document = self.indexes.attach(hash, large.read(store)?);
        if large.bytes() <= self.bytes_max.load(Ordering::Relaxed) / SHARE_MAX {
            self.documents.insert(hash, document.clone());
        }
        Ok(document)
    }
}
