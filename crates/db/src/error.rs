//! The public error: coarse, and it tells the caller what to do.

use frond_doc::{DocError, DocumentBuf};
use frond_engine::EngineError;
use frond_query::{Code, QueryError};

/// What the caller can do about an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// The request is wrong: change it, a retry cannot help.
    Invalid,
    /// Another transaction changed the same data first: run the whole transaction again.
    Conflict,
    /// Storage or peer does not answer: retry later, nothing was written by half.
    Unavailable,
    /// Stored bytes are not what was written: stop and run `frond fsck`.
    Damaged,
    /// A sync failed or the database was closed: open it again.
    Closed,
    /// A defect of ours: please report it.
    Internal,
}

/// An error of the database, with MongoDB's code.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What the caller can do.
    pub kind: ErrorKind,
    /// MongoDB's code.
    pub code: Code,
    /// What happened; names the field.
    pub message: String,
    /// Fields that go into the error's document beside code and message: `keyPattern` and
    /// `keyValue` of a duplicate key, conflicts of a merge.
    pub details: Option<DocumentBuf>,
}

impl Error {
    /// A request that is wrong.
    pub fn invalid(code: Code, message: impl Into<String>) -> Error {
        Error { kind: ErrorKind::Invalid, code, message: message.into(), details: None }
    }

    /// A defect of ours.
    pub fn internal(message: impl Into<String>) -> Error {
        Error {
            kind: ErrorKind::Internal,
            code: Code::InternalError,
            message: message.into(),
            details: None,
        }
    }
}

impl From<QueryError> for Error {
    fn from(error: QueryError) -> Error {
        Error::invalid(error.code, error.message)
    }
}

impl From<DocError> for Error {
    fn from(error: DocError) -> Error {
        Error::invalid(Code::InvalidBSON, error.to_string())
    }
}

impl From<EngineError> for Error {
    fn from(_error: EngineError) -> Error {
        todo!("the kind and code of each variant, TreeError and StoreError inside it included")
    }
}
