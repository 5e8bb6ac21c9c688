//! What an insert does to a document: `_id` first.

use crate::document::{Document, DocumentBuf};
use crate::error::DocError;
use crate::value::ObjectId;

/// Returns the document with `_id` as its first field, made by `new_id` where it is absent; the
/// other bytes stay as the client sent them, in its order. Top-level timestamps of 0 are the
/// caller's business. Returns a shared copy if nothing changes.
pub fn for_insert(
    _document: &DocumentBuf,
    _new_id: impl FnOnce() -> ObjectId,
) -> Result<DocumentBuf, DocError> {
    todo!()
}

/// Checks what MongoDB demands of an `_id`: no array, no regex, no undefined; no field in it begins
/// with a dollar. Returns the reason in MongoDB's words otherwise.
pub fn check_id(_document: Document<'_>) -> Result<(), String> {
    todo!()
}
