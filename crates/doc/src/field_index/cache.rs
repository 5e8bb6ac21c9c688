//! Indexes of documents that lie in the store by themselves, made on first use.
//!
//! A document above the tree's inline limit is named by the hash of its bytes. The first time that
//! a field of it is asked for, it is indexed, which costs about what the scan would have cost; the
//! index is kept under the hash for later reads of the document, and dropped when memory is wanted
//! for others. Documents below the limit are read faster by one scan than by way of a cache.

use std::sync::{Arc, OnceLock};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::shape::{SHAPES_BYTES_MAX, ShapeRegistry};
use super::{Attached, FieldIndex};

/// Memory for indexes, if their owner doesn't say: of 16,000 documents of 1,000 fields.
pub const CACHE_BYTES: u64 = 32 << 20;

/// Indexes by the hash of their documents' bytes. Cloning shares them.
///
/// *Thread safety*: any number of threads.
#[derive(Clone, Debug)]
pub struct FieldIndexes {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    shapes: ShapeRegistry,
    cache: Cache<[u8; 32], FieldIndex, ByBytes>,
}

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<[u8; 32], FieldIndex> for ByBytes {
    fn weight(&self, _: &[u8; 32], index: &FieldIndex) -> u64 {
        index.bytes() as u64 + 64
    }
}

/// The index of one document, made when it is asked first.
#[derive(Debug)]
pub struct LazyIndex {
    indexes: FieldIndexes,
    hash: [u8; 32],
    /// Ready, or none.
    index: OnceLock<Option<Attached>>,
}

impl FieldIndexes {
    /// Makes an empty cache that will hold about so many bytes.
    pub fn new(bytes_max: u64) -> FieldIndexes {
        let expected = (bytes_max / 1024).max(16) as usize;
        FieldIndexes {
            shared: Arc::new(Shared {
                shapes: ShapeRegistry::new(SHAPES_BYTES_MAX),
                cache: Cache::with_weighter(expected, bytes_max, ByBytes),
            }),
        }
    }

    /// Holds about so many bytes from now on; what is above it goes.
    pub fn set_bytes_max(&self, bytes: u64) {
        if self.shared.cache.capacity() != bytes {
            self.shared.cache.set_capacity(bytes);
        }
    }

    /// The shapes of the documents.
    pub fn shapes(&self) -> &ShapeRegistry {
        &self.shared.shapes
    }

    /// The index of the document whose bytes have that hash, to be made when it is asked first.
    pub(crate) fn lazy(&self, hash: [u8; 32]) -> Attached {
        let index = LazyIndex { indexes: self.clone(), hash, index: OnceLock::new() };
        Attached::Lazy(Arc::new(index))
    }
}

impl LazyIndex {
    /// The index; `None` if the document can't have one.
    #[inline]
    pub(crate) fn get(&self, document: &[u8]) -> Option<&Attached> {
        match self.index.get() {
            Some(known) => known.as_ref(),
            None => self.made(document),
        }
    }

    /// As `get`, if it was made before.
    #[inline]
    pub(crate) fn known(&self) -> Option<&Attached> {
        self.index.get()?.as_ref()
    }

    #[cold]
    fn made(&self, document: &[u8]) -> Option<&Attached> {
        let ready = || self.find_or_make(document).map(Attached::Ready);
        self.index.get_or_init(ready).as_ref()
    }

    fn find_or_make(&self, document: &[u8]) -> Option<FieldIndex> {
        let shared = &*self.indexes.shared;
        if let Some(known) = shared.cache.get(&self.hash) {
            return Some(known);
        }
        let index = FieldIndex::of(document, &shared.shapes)?;
        shared.cache.insert(self.hash, index.clone());
        Some(index)
    }
}
