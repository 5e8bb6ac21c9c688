//! Large documents in collections: documents above a threshold are trees of pieces in the store
//! (`frond_doc::pieces`), and a collection's tree holds their heads.
//!
//! 1. A writer of a document asks [`value_of`] for its value, a reader asks [`read_document`] (or
//!    `Reader::document`): so equal documents are equal values, and versions share what they have
//!    in common.
//! 2. A transaction's chunks are caught by a [`recorder`] and travel in its log record: those that
//!    the new document refers to and the one before did not. The chunks of the old document are in
//!    the log before, or durable: it was visible when the transaction began. Other chunks that the
//!    store has already may not be durable: if they are many, the store is synced instead.
//! 3. An update by operators goes piece by piece where it can ([`update`]), and over the whole
//!    document otherwise; both give the same bytes and the same head. An update by stages, a
//!    pipeline, a projection are given the document with references ([`crate::collection`]), and
//!    what they make is stored with those ([`value_of_referring`]).
//! 4. A document that comes as a stream is put into the store before its transaction
//!    ([`gathered`]).

pub(crate) mod batching_store;
pub(crate) mod every;
mod ordered_array;
pub(crate) mod recorder;
pub(crate) mod update;

use std::sync::LazyLock;

use frond_doc::DocumentBuf;
use frond_doc::pieces::cache::{CACHE_BYTES, LargeDocuments};
use frond_doc::pieces::{
    LargeDocument, PiecesError, build, build_referring, has_references, whole,
};
use frond_store::ChunkStore;
use frond_tree::{Content, TreeError, TreeFormat, Value};

use crate::error::Error;

/// Documents up to this are kept in memory as they were put together.
pub(crate) const KEPT_BYTES_MAX: u64 = 1 << 20;

/// Put together from pieces, and named by their heads: one serves all that the process has open.
static DOCUMENTS: LazyLock<LargeDocuments> = LazyLock::new(|| LargeDocuments::new(CACHE_BYTES));

/// Has documents that were put together take no more than this.
pub(crate) fn set_cache_bytes(bytes: u64) {
    DOCUMENTS.set_bytes_max(bytes.min(CACHE_BYTES));
}

/// The value that stands for a document in its collection's tree. Pieces are put into `store`.
///
/// # Errors
/// [`TreeError::Store`] if the store takes no chunks.
pub fn value_of(
    store: &dyn ChunkStore,
    format: TreeFormat,
    document: &DocumentBuf,
) -> Result<Value, TreeError> {
    let large = build(store, format, document.view())?;
    Ok(large.map_or_else(|| Value::inline(document.clone().into_bytes()), |large| large.value()))
}

/// Reads a document from the value that a tree of documents has for it.
///
/// # Errors
/// [`TreeError::Store`] if a chunk can't be read; [`TreeError::Damaged`] if it isn't what was
/// written.
pub fn read_document(store: &dyn ChunkStore, value: &Value) -> Result<DocumentBuf, TreeError> {
    // Every chunk is compared with its name when it is read; the bytes were validated when they
    // came in.
    match head(value) {
        Some(large) => read(store, &large),
        None => Ok(DocumentBuf::from_validated(value.read(store)?)),
    }
}

/// The large document that a value is the head of: to be read. The parameters matter to a caller
/// that changes it.
pub fn head(value: &Value) -> Option<LargeDocument> {
    LargeDocument::open(TreeFormat::new(0), value)
}

/// Reads a whole large document, or finds it as it was read before.
pub(crate) fn read(
    store: &dyn ChunkStore,
    large: &LargeDocument,
) -> Result<DocumentBuf, TreeError> {
    DOCUMENTS.read(store, large).map_err(|error| damaged(&large.value(), error))
}

/// A whole large document, if it was read before and kept.
pub(crate) fn known(large: &LargeDocument) -> Option<DocumentBuf> {
    DOCUMENTS.known(large)
}

/// As [`value_of`], of a document that may have references to what the store has, made in the same
/// repository.
pub(crate) fn value_of_referring(
    store: &dyn ChunkStore,
    format: TreeFormat,
    document: &DocumentBuf,
) -> Result<Value, Error> {
    if !has_references(document.view()) {
        return Ok(value_of(store, format, document)?);
    }
    if let Some(large) = build_referring(store, format, document.view())? {
        return Ok(large.value());
    }
    let whole = whole(store, document.view()).map_err(unreadable)?;
    Ok(value_of(store, format, &whole)?)
}

/// Returns the error for pieces that can't be read.
pub(crate) fn unreadable(error: PiecesError) -> Error {
    match error {
        PiecesError::Tree(error) => error.into(),
        error => Error::damaged(error.to_string()),
    }
}

/// An error that names the head.
pub(crate) fn damaged(head: &Value, error: PiecesError) -> TreeError {
    match (error, &head.content) {
        (PiecesError::Tree(error), _) => error,
        (error, Content::Chunk { hash, .. }) => {
            TreeError::Damaged { hash: *hash, what: error.to_string() }
        }
        (error, _) => unreachable!("only a chunk is a head: {error}"),
    }
}
