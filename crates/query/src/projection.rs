//! Projections of `find`: inclusion, exclusion, `$slice`, `$elemMatch`, positional, expressions.

use frond_doc::{Document, DocumentBuf};

use crate::error::QueryError;
use crate::filter::Filter;

/// A parsed projection.
#[derive(Clone, Debug)]
pub struct Projection {}

impl Projection {
    /// Parses a projection document; an empty one lets everything through.
    pub fn parse(_projection: Document<'_>) -> Result<Projection, QueryError> {
        todo!()
    }

    /// Projects a document that `filter` (for the positional `$`) let through.
    pub fn apply(
        &self,
        _document: Document<'_>,
        _filter: &Filter,
    ) -> Result<DocumentBuf, QueryError> {
        todo!()
    }

    /// Whether documents go through unchanged.
    pub fn is_identity(&self) -> bool {
        todo!()
    }
}
