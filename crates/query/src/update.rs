//! Updates: operators, replacements, upserts.

use frond_doc::{Array, Document, DocumentBuf, ObjectId, Value};

use crate::error::QueryError;
use crate::filter::Filter;

/// A parsed update: operators, or a replacement document.
#[derive(Clone, Debug)]
pub struct Update {}

/// What an update needs to know besides the document.
#[derive(Clone, Copy, Debug)]
pub struct UpdateContext {
    /// For `$currentDate`: milliseconds since 1970.
    pub now_millis: i64,
    /// For `$currentDate` with `timestamp`.
    pub timestamp: u64,
    /// What a positional `$` stands for.
    pub position: Option<usize>,
}

impl Update {
    /// Parses the `u` of an update statement. `array_filters` must be used up by `$[name]`.
    pub fn parse(
        _update: Value<'_>,
        _array_filters: Option<Array<'_>>,
    ) -> Result<Update, QueryError> {
        todo!()
    }

    /// Whether this is a replacement document (which `multi` forbids).
    pub fn is_replacement(&self) -> bool {
        todo!()
    }

    /// Returns the changed document, or `None` if nothing changes. `_id` stays as it is.
    pub fn apply(
        &self,
        _document: Document<'_>,
        _context: &UpdateContext,
    ) -> Result<Option<DocumentBuf>, QueryError> {
        todo!()
    }

    /// Returns the document that an upsert inserts: the equalities of `filter`, then this update
    /// (with `$setOnInsert`), `_id` first and made by `new_id` where nobody gave one.
    pub fn upsert(
        &self,
        _filter: &Filter,
        _context: &UpdateContext,
        _new_id: &mut dyn FnMut() -> ObjectId,
    ) -> Result<DocumentBuf, QueryError> {
        todo!()
    }
}
