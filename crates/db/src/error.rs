//! The public error: coarse, and it shows the caller what to do.

use std::io;

use frond_doc::{DocError, DocumentBuf};
use frond_engine::EngineError;
use frond_query::{Code, QueryError};
use frond_store::StoreError;
use frond_tree::TreeError;

/// MongoDB's `KeyTooLong`.
pub(crate) const KEY_TOO_LONG: Code = Code::Location(17280);

/// The kinds of errors, by the caller's remedy.
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
    /// A sync failed before or the database was closed: nothing was written, open it again.
    Closed,
    /// A write or sync failed while this was written: whether it was kept shows when the database
    /// is opened again. An operation that must not be done twice must not be sent again before.
    Unknown,
    /// A defect of ours: please report it.
    Internal,
}

impl ErrorKind {
    /// All kinds.
    const ALL: [ErrorKind; 7] = [
        ErrorKind::Invalid,
        ErrorKind::Conflict,
        ErrorKind::Unavailable,
        ErrorKind::Damaged,
        ErrorKind::Closed,
        ErrorKind::Unknown,
        ErrorKind::Internal,
    ];

    /// Its name, for a peer.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Invalid => "invalid",
            ErrorKind::Conflict => "conflict",
            ErrorKind::Unavailable => "unavailable",
            ErrorKind::Damaged => "damaged",
            ErrorKind::Closed => "closed",
            ErrorKind::Unknown => "unknown",
            ErrorKind::Internal => "internal",
        }
    }
}

/// An error of the database, with MongoDB's code.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The kind, which says what the caller can do.
    pub kind: ErrorKind,
    /// MongoDB's code.
    pub code: Code,
    /// The message; names the field.
    pub message: String,
    /// Fields that go into the error's document beside code and message: `keyPattern` and
    /// `keyValue` of a duplicate key, conflicts of a merge.
    pub details: Option<DocumentBuf>,
}

impl Error {
    fn new(kind: ErrorKind, code: Code, message: impl Into<String>) -> Error {
        Error { kind, code, message: message.into(), details: None }
    }

    /// A request that is wrong.
    pub fn invalid(code: Code, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Invalid, code, message)
    }

    /// The error in the form in which code that evaluates a query gets it.
    pub(crate) fn as_query(&self) -> QueryError {
        QueryError::new(self.code, self.message.clone())
    }

    /// A write that may or may not have been kept: only opening the database again shows which.
    pub fn unknown_outcome(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unknown, Code::ShutdownInProgress, message)
    }

    /// As this one, of a write that may or may not be kept.
    pub(crate) fn with_unknown_outcome(self) -> Error {
        let message = format!("{}: whether it was written is unknown", self.message);
        Error { kind: ErrorKind::Unknown, message, ..self }
    }

    /// A database that takes no writes any more: nothing was written.
    fn closed(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Closed, Code::NotWritablePrimary, message)
    }

    /// A defect of ours.
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Internal, Code::InternalError, message)
    }

    /// Stored bytes that are not what was written.
    pub fn damaged(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Damaged, Code::InternalError, message)
    }

    /// A request that is wrong: a value that can't be what it should.
    pub fn bad_value(message: impl Into<String>) -> Error {
        Error::invalid(Code::BadValue, message)
    }

    /// Makes the error that a peer reports, by the name of its kind ([`ErrorKind::name`]).
    pub fn from_peer(kind: &str, message: impl Into<String>) -> Error {
        let found = ErrorKind::ALL.into_iter().find(|known| known.name() == kind);
        let kind = found.unwrap_or(ErrorKind::Unavailable);
        let code = match kind {
            ErrorKind::Invalid => Code::IllegalOperation,
            ErrorKind::Conflict => Code::WriteConflict,
            _ => Code::OperationFailed,
        };
        Error::new(kind, code, message)
    }

    /// Storage or a peer that does not answer now: a later try may work.
    pub fn unavailable(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unavailable, Code::OperationFailed, message)
    }

    /// Another transaction was first, again and again: the caller may try the request once more.
    pub fn write_conflict() -> Error {
        Error::new(
            ErrorKind::Conflict,
            Code::WriteConflict,
            "WriteConflict error: this operation conflicted with another operation. Please retry \
             your operation or multi-document transaction.",
        )
    }

    /// Whether it is about one document or statement of a request, so that the others may succeed:
    /// what is wrong, or a document that is damaged. A full disk, an interruption and a snapshot
    /// that expired end the request: a client that reads them among the errors of single statements
    /// would take the request for done.
    pub fn is_of_statement(&self) -> bool {
        const OF_ALL: [Code; 4] = [
            Code::Interrupted,
            Code::InterruptedAtShutdown,
            Code::MaxTimeMSExpired,
            Code::SnapshotTooOld,
        ];
        match self.kind {
            ErrorKind::Invalid => !OF_ALL.contains(&self.code),
            kind => kind == ErrorKind::Damaged,
        }
    }

    /// Adds the fields that go into the error's document beside code and message.
    pub fn with_details(self, details: DocumentBuf) -> Error {
        Error { details: Some(details), ..self }
    }
}

impl From<QueryError> for Error {
    fn from(error: QueryError) -> Error {
        Error::invalid(error.code, error.message)
    }
}

impl From<DocError> for Error {
    fn from(error: DocError) -> Error {
        let code = match error {
            DocError::TooDeep { .. } => Code::Overflow,
            _ => Code::InvalidBSON,
        };
        Error::invalid(code, error.to_string())
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Error {
        let message = error.to_string();
        match error {
            EngineError::Conflict { .. } | EngineError::Withdrawn => Error::write_conflict(),
            EngineError::Interrupted => Error::invalid(Code::Interrupted, message),
            EngineError::NoTree(_) => Error::internal(message),
            EngineError::HalfRestored => Error::invalid(Code::IllegalOperation, message),
            EngineError::SnapshotTooOld => Error::invalid(Code::SnapshotTooOld, message),
            EngineError::Closed(_) => Error::closed(message),
            EngineError::Unknown(_) | EngineError::Unawaited => Error::unknown_outcome(message),
            EngineError::TooLarge { .. } | EngineError::TooLargeForSet { .. } => {
                Error::invalid(Code::TransactionTooLarge, message)
            }
            EngineError::Tree(error) => error.into(),
            EngineError::Store(error) => error.into(),
        }
    }
}

impl From<TreeError> for Error {
    fn from(error: TreeError) -> Error {
        match error {
            TreeError::Store(error) => error.into(),
            TreeError::KeyTooLong { .. } => Error::invalid(KEY_TOO_LONG, error.to_string()),
            _ => Error::damaged(error.to_string()),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        let message = error.to_string();
        match error {
            StoreError::Missing(_) | StoreError::Damaged { .. } => Error::damaged(message),
            StoreError::Version { .. } => Error::invalid(Code::UnsupportedFormat, message),
            StoreError::RootChanged { .. } => {
                Error::new(ErrorKind::Conflict, Code::WriteConflict, message)
            }
            StoreError::Poisoned { .. } => Error::closed(message),
            StoreError::InUse => Error::new(ErrorKind::Unavailable, Code::DBPathInUse, message),
            StoreError::Io { source, .. } => {
                let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
                let code = if full.contains(&source.kind()) {
                    Code::OutOfDiskSpace
                } else {
                    Code::OperationFailed
                };
                Error::new(ErrorKind::Unavailable, code, message)
            }
        }
    }
}
