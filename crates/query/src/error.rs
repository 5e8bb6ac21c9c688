//! An error that a client sees: MongoDB's code and a message that names the field.

use crate::code::Code;

/// A request that can't be done as it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct QueryError {
    /// MongoDB's code.
    pub code: Code,
    /// MongoDB's words where applications see them, ours where it has none.
    pub message: String,
}

impl QueryError {
    /// Makes an error.
    pub fn new(code: Code, message: impl Into<String>) -> QueryError {
        QueryError { code, message: message.into() }
    }

    /// The same error, with a message that says what was being done.
    pub(crate) fn within(self, doing: &str) -> QueryError {
        QueryError { message: format!("{doing} :: caused by :: {}", self.message), ..self }
    }
}

/// An error whose code has no name.
pub(crate) fn failure(code: i32, message: impl Into<String>) -> QueryError {
    QueryError::new(Code::Location(code), message)
}
