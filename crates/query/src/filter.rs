//! Filters: `{qty: {$gt: 5}, tags: "red"}`.

use frond_doc::Document;

use crate::error::QueryError;

/// A parsed filter.
#[derive(Clone, Debug)]
pub struct Filter {}

impl Filter {
    /// Parses a filter document.
    pub fn parse(_filter: Document<'_>) -> Result<Filter, QueryError> {
        todo!()
    }

    /// The filter that everything passes.
    pub fn all() -> Filter {
        todo!()
    }

    /// Whether `document` passes.
    pub fn matches(&self, _document: Document<'_>) -> bool {
        todo!()
    }

    /// As `matches`, and tells the position of the first array element that matched on a path
    /// through an array: what `$` in an update stands for.
    pub fn matches_position(&self, _document: Document<'_>) -> (bool, Option<usize>) {
        todo!()
    }

    /// Whether every document passes.
    pub fn is_all(&self) -> bool {
        todo!()
    }
}
