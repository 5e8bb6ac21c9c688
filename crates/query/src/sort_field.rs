//! A field by which documents are ordered, in a sort and in an index.

/// The names in a DBRef, the only ones with a dollar that a path may have.
pub(crate) const REFERENCE_NAMES: [&str; 3] = ["$id", "$ref", "$db"];

/// One field of a sort pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SortField {
    /// The dotted path.
    pub path: String,
    /// Whether it goes from the greatest to the least.
    pub descending: bool,
}
