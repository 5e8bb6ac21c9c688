//! The error of this crate: what the caller can do about it, and MongoDB's code.

use std::error::Error as StdError;
use std::fmt;

use frond_db::{Code, ErrorKind};

use crate::Document;
use crate::convert;

/// A result whose error is mostly an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why something failed.
///
/// [`Error::kind`] says what the caller can do about it, [`Error::code`] what a MongoDB server
/// would call it.
///
/// ```
/// use fronddb::{Code, Document, ErrorKind, doc};
/// # let data = tempfile::tempdir()?;
///
/// let people = fronddb::open(&data)?.database("town")?.collection::<Document>("people");
/// people.insert_one(doc! { "_id": "ada" })?;
///
/// let error = people.insert_one(doc! { "_id": "ada" }).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Invalid);
/// assert_eq!(error.code(), Code::DuplicateKey);
/// assert_eq!(error.code().number(), 11000);
/// # Ok::<(), fronddb::Error>(())
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    error: frond_db::Error,
    /// The position of the one that failed, counted from 0, where there were several documents or
    /// statements.
    position: Option<usize>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Wraps an application's own error: returned from a transaction's closure, it aborts the
    /// transaction and comes out of [`Frond::transaction`](crate::Frond::transaction), as this
    /// error's [`source`](StdError::source). Its kind is [`ErrorKind::Invalid`].
    pub fn other(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        let source = error.into();
        let error = frond_db::Error::invalid(Code::OperationFailed, source.to_string());
        Error(Box::new(Inner { error, position: None, source: Some(source) }))
    }

    /// The kind of the error, which says what the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.0.error.kind
    }

    /// MongoDB's code; [`Code::number`] and [`Code::name`] give its two forms.
    pub fn code(&self) -> Code {
        self.0.error.code
    }

    /// Details of some codes: of a duplicate key `keyPattern` and `keyValue`, of a document
    /// that fails validation the rule that it fails.
    pub fn details(&self) -> Option<Document> {
        self.0.error.details.as_ref().and_then(|details| convert::decode(details).ok())
    }

    /// Returns the position of the document that failed in an insert of many, counted from 0. Those
    /// before it were inserted.
    pub fn position(&self) -> Option<usize> {
        self.0.position
    }

    pub(crate) fn at(position: usize, error: frond_db::Error) -> Error {
        Error(Box::new(Inner { error, position: Some(position), source: None }))
    }

    pub(crate) fn with_position(mut self, position: usize) -> Error {
        self.0.position = Some(position);
        self
    }

    /// A value of the application that isn't BSON, or the other way round.
    pub(crate) fn of_bson(what: &str, error: bson::error::Error) -> Error {
        let message = format!("{what}: {error}");
        let refused = frond_db::Error::invalid(Code::FailedToParse, message);
        Error(Box::new(Inner { error: refused, position: None, source: Some(Box::new(error)) }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.error.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.kind())
            .field("code", &self.code())
            .field("message", &self.0.error.message)
            .field("details", &self.details())
            .finish_non_exhaustive()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<frond_db::Error> for Error {
    fn from(error: frond_db::Error) -> Error {
        Error(Box::new(Inner { error, position: None, source: None }))
    }
}

impl From<frond_doc::DocError> for Error {
    fn from(error: frond_doc::DocError) -> Error {
        frond_db::Error::from(error).into()
    }
}

impl From<std::io::Error> for Error {
    /// Reading a document from its source, or writing it, failed.
    fn from(error: std::io::Error) -> Error {
        let inner = frond_db::Error::unavailable(error.to_string());
        Error(Box::new(Inner { error: inner, position: None, source: Some(Box::new(error)) }))
    }
}
