//! The entries of the log.

use bytes::Bytes;

use crate::configuration::Change;
use crate::ids::{EntryIndex, Term};

/// The greatest number of bytes of one entry. A larger one must be split by its proposer.
pub const ENTRY_BYTES_MAX: usize = 64 << 20;

/// An entry of the log. The first two say which one it is: no two entries have both in common.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its place.
    pub index: EntryIndex,
    /// The term in which a leader made it.
    pub term: Term,
    /// The content of the entry.
    pub content: Content,
}

/// The content of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// The proposed bytes; none for the entry with which a new leader begins.
    Data(Bytes),
    /// One member more, less, or with a vote.
    Change(Change),
}

impl Entry {
    /// Returns how many bytes it holds.
    pub fn bytes(&self) -> usize {
        match &self.content {
            Content::Data(bytes) => bytes.len(),
            Content::Change(_) => Change::BYTES,
        }
    }
}
