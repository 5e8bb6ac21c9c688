//! The entries of the log.

use bytes::Bytes;

use crate::configuration::Change;
use crate::ids::{EntryIndex, Term};

/// Most bytes of one entry. What is larger must be split by its proposer.
pub const ENTRY_BYTES_MAX: usize = 64 << 20;

/// An entry of the log. The first two say which one it is: no two entries have both in common.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its place.
    pub index: EntryIndex,
    /// The term in which a leader made it.
    pub term: Term,
    /// What it says.
    pub content: Content,
}

/// What an entry says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// What was proposed; no bytes for the entry with which a new leader begins.
    Data(Bytes),
    /// One member more, less, or with a vote.
    Change(Change),
}

impl Entry {
    /// How many bytes it holds.
    pub fn bytes(&self) -> usize {
        match &self.content {
            Content::Data(bytes) => bytes.len(),
            Content::Change(_) => Change::BYTES,
        }
    }
}
