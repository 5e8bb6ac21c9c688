//! The errors of messages.

use frond_doc::DocError;

/// A message that can't be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The length in the header is not one that a message can have.
    #[error("message length {found} is not between {min} and {max}")]
    Length {
        /// The length in the header.
        found: i32,
        /// The least: a header alone.
        min: usize,
        /// The most.
        max: usize,
    },
    /// The operation code is unknown, or one that isn't spoken any more.
    #[error("operation code {0} is not supported")]
    OperationCode(i32),
    /// The message is compressed in a way that the server doesn't offer.
    #[error("messages compressed by {0} were not negotiated")]
    NotNegotiated(&'static str),
    /// The message is compressed, and what is inside can't be had.
    #[error("compressed message: {0}")]
    Compression(String),
    /// The message is compressed, and its command may not be.
    #[error("command {0} can't be sent compressed")]
    NeverCompressed(String),
    /// The message ends inside a field.
    #[error("message ends at byte {end}, inside {field}")]
    Truncated {
        /// The number of bytes there are.
        end: usize,
        /// The field that was being read.
        field: &'static str,
    },
    /// A required flag bit that this version doesn't know.
    #[error("unknown required flag bits {0:#x}")]
    Flags(u32),
    /// A section kind that this version doesn't know.
    #[error("unknown section kind {0}")]
    SectionKind(u8),
    /// Not exactly one body.
    #[error("a message has exactly one section of kind 0, found {0}")]
    Bodies(usize),
    /// Two sequences, or a sequence and a field of the body, have the same name.
    #[error("document sequence {0} is given twice")]
    DuplicateSequence(String),
    /// There are more sections or documents than allowed.
    #[error("more than {max} {what} in one message")]
    TooMany {
        /// The things that are too many.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// The checksum is not the bytes'.
    #[error("message checksum {found:08x}, expected {expected:08x}")]
    Checksum {
        /// As computed.
        expected: u32,
        /// As sent.
        found: u32,
    },
    /// A name is not UTF-8.
    #[error("{0} is not UTF-8")]
    Utf8(&'static str),
    /// A document is not BSON.
    #[error(transparent)]
    Document(#[from] DocError),
}

impl WireError {
    /// Whether only the content of a document is wrong: the bytes of the message were all there and
    /// the next message begins where this one ends, so an answer makes sense.
    pub fn is_content(&self) -> bool {
        matches!(self, WireError::Document(_) | WireError::DuplicateSequence(_))
            || matches!(self, WireError::TooMany { .. } | WireError::Utf8(_))
            || matches!(self, WireError::NeverCompressed(_))
    }
}
