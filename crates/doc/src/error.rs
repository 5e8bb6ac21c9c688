//! The errors of reading and checking a document.

/// An error of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocError {
    /// The bytes are not BSON.
    #[error("invalid BSON at offset {offset}: {what}")]
    Invalid {
        /// The offset in the document.
        offset: usize,
        /// Expected and found.
        what: String,
    },
    /// Documents and arrays are nested deeper than [`crate::document::DEPTH_MAX`].
    #[error("documents are nested deeper than {max}")]
    TooDeep {
        /// The limit.
        max: usize,
    },
    /// The document is larger than allowed.
    #[error("document of {bytes} bytes, at most {max} are allowed")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The text is not extended JSON.
    #[error("{0}")]
    Json(String),
    /// The encoded key is damaged.
    #[error("damaged key: {0}")]
    Key(String),
}
