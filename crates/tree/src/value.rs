//! A tree's value: flags, and bytes that lie inline or out of line.
//!
//! The authority for what lies where is docs/format/value.md.

mod outline;

pub(crate) use outline::move_out;

use bytes::Bytes;
use frond_store::{ChunkHash, ChunkStore};

use crate::error::TreeError;
use crate::sequence;

/// A value, and flags that interior nodes carry ORed upward (an index marks multikey entries).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value {
    /// Meaning is the caller's.
    pub flags: u8,
    /// The bytes, or where they lie.
    pub content: Content,
}

/// Says of a value in a chunk that its length is what its owner says: of what the chunk leads to,
/// so that a tree's sums count that. Stored: never another.
pub const OWN_LENGTH_FLAG: u8 = 1 << 1;

/// The place of a value's bytes. Which one it is, is a function of the bytes and the format alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// Here. Any length is accepted on writing: the tree moves what exceeds `inline_bytes_max` out
    /// of line, into one chunk or, above the chunk's hard maximum, a sequence of blobs.
    Inline(Bytes),
    /// The payload of one chunk, of whatever kind.
    Chunk {
        /// Its name.
        hash: ChunkHash,
        /// Bytes of the payload.
        bytes: u64,
    },
    /// A sequence whose items, one after the other, are the bytes.
    Sequence {
        /// The root of the sequence.
        root: ChunkHash,
        /// Bytes of all items.
        bytes: u64,
    },
}

/// The place of a borrowed entry's content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContentRef<'a> {
    /// Here.
    Inline(&'a [u8]),
    /// As [`Content::Chunk`].
    Chunk {
        /// Its name.
        hash: ChunkHash,
        /// Bytes of the payload.
        bytes: u64,
    },
    /// As [`Content::Sequence`].
    Sequence {
        /// The root of the sequence.
        root: ChunkHash,
        /// Bytes of all items.
        bytes: u64,
    },
}

impl ContentRef<'_> {
    /// The content, copied.
    pub fn owned(self) -> Content {
        match self {
            ContentRef::Inline(bytes) => Content::Inline(Bytes::copy_from_slice(bytes)),
            ContentRef::Chunk { hash, bytes } => Content::Chunk { hash, bytes },
            ContentRef::Sequence { root, bytes } => Content::Sequence { root, bytes },
        }
    }
}

impl Content {
    /// The content, borrowed.
    pub fn borrowed(&self) -> ContentRef<'_> {
        match self {
            Content::Inline(bytes) => ContentRef::Inline(bytes),
            Content::Chunk { hash, bytes } => ContentRef::Chunk { hash: *hash, bytes: *bytes },
            Content::Sequence { root, bytes } => {
                ContentRef::Sequence { root: *root, bytes: *bytes }
            }
        }
    }
}

impl Value {
    /// A value without flags.
    pub fn inline(bytes: impl Into<Bytes>) -> Value {
        Value { flags: 0, content: Content::Inline(bytes.into()) }
    }

    /// Returns how long the value is, without reading it.
    pub fn bytes(&self) -> u64 {
        match &self.content {
            Content::Inline(bytes) => bytes.len() as u64,
            Content::Chunk { bytes, .. } | Content::Sequence { bytes, .. } => *bytes,
        }
    }

    /// Reads the value's bytes; inline ones are shared, not copied.
    ///
    /// # Errors
    /// As the store; [`TreeError::Damaged`] if what lies out of line is not what the value says.
    pub fn read(&self, store: &dyn ChunkStore) -> Result<Bytes, TreeError> {
        match &self.content {
            Content::Inline(bytes) => Ok(bytes.clone()),
            Content::Chunk { hash, bytes } => {
                let payload = store.get(*hash)?.payload_bytes();
                let is_own = self.flags & OWN_LENGTH_FLAG != 0;
                if payload.len() as u64 != *bytes && !is_own {
                    let found = payload.len();
                    return Err(TreeError::damaged(
                        *hash,
                        format!("a value of {found} bytes, expected {bytes}"),
                    ));
                }
                Ok(payload)
            }
            Content::Sequence { root, bytes } => sequence::read_all(store, *root, *bytes),
        }
    }
}
