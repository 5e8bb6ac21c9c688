//! A field by which documents are ordered, in a sort and in an index.

/// One field of a sort pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SortField {
    /// The dotted path.
    pub path: String,
    /// From the greatest to the least.
    pub descending: bool,
}
