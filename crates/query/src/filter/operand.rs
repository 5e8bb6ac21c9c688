//! The operand of an operator, as the families parse it.

use frond_doc::{Document, Value};

use crate::code::Code;
use crate::error::QueryError;

/// An operator's operand, and the context that parsing it needs.
#[derive(Clone, Copy)]
pub(super) struct Operand<'a> {
    /// The operator.
    pub(super) name: &'a str,
    /// The operand's value.
    pub(super) value: Value<'a>,
    /// The path whose condition this is.
    pub(super) path: &'a str,
    /// All operators at the path: `$regex` looks for its `$options`.
    pub(super) siblings: Document<'a>,
    /// The depth in the filter.
    pub(super) depth: usize,
}

/// An operand that MongoDB refuses with `BadValue`.
pub(super) fn bad_value(message: impl Into<String>) -> QueryError {
    QueryError::new(Code::BadValue, message)
}

/// The error for `$near` where nothing is ordered by it.
pub(crate) fn near_not_allowed() -> QueryError {
    let message = "$geoNear, $near, and $nearSphere are not allowed in this context, as these \
                   operators require sorting geospatial data. If you do not need sort, consider \
                   using $geoWithin instead.";
    QueryError::new(Code::Location(5_626_500), message)
}

/// Whether a document is operators, not a value: its first name begins with a dollar. A whole
/// reference is a value.
pub(super) fn is_operators(document: Document<'_>) -> bool {
    let has = |name| document.get(name).is_some();
    first_name(document).is_some_and(|name| name.starts_with('$')) && !(has("$ref") && has("$id"))
}

/// The name of a document's first field.
pub(super) fn first_name(document: Document<'_>) -> Option<&str> {
    document.iter().next().map(|(name, _)| name)
}
