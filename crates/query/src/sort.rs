//! Sort patterns: `{a: 1, b: -1}`.

use bytes::Bytes;
use frond_doc::Document;

use crate::error::QueryError;

/// A parsed sort pattern.
#[derive(Clone, Debug)]
pub struct SortPattern {
    /// Paths and directions, in their order.
    pub fields: Vec<SortField>,
}

/// One field of a sort pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SortField {
    /// The dotted path.
    pub path: String,
    /// From the greatest to the least.
    pub descending: bool,
}

impl SortPattern {
    /// Parses `{field: 1 | -1, ...}`.
    pub fn parse(_pattern: Document<'_>) -> Result<SortPattern, QueryError> {
        todo!()
    }

    /// The key by which `document` is sorted: keys compare as bytes. Of an array the least element
    /// counts (the greatest where descending), an empty array sorts as undefined before null, an
    /// absent field as null.
    pub fn key(&self, _document: Document<'_>) -> Bytes {
        todo!()
    }
}
