//! A chunk: a kind, a list of referenced chunks, and a payload. Its name covers all three.
//!
//! The encoded form (docs/format/chunk.md) is what is hashed, stored and sent:
//!
//! ```text
//! OFFSET  SIZE  FIELD
//! 0       1     kind
//! 1       3     zero
//! 4       4     reference count, little-endian
//! 8       32*n  references
//! 8+32*n  ...   payload
//! ```
//!
//! Whoever follows references (collection, push, fsck) needs no knowledge of payloads.

use std::fmt;

use bytes::Bytes;

use crate::error::StoreError;

const OFFSET_REFERENCE_COUNT: usize = 4;
const OFFSET_REFERENCES: usize = OFFSET_REFERENCE_COUNT + size_of::<u32>();
/// Bytes of a chunk's name.
pub const HASH_BYTES: usize = 32;
/// Most bytes of an encoded chunk. Far above what trees make; bounds what a damaged length can make
/// us allocate.
pub const CHUNK_BYTES_MAX: usize = 256 << 20;
const _: () = assert!(OFFSET_REFERENCES == 8); // Stored: change only with a new version.

/// The BLAKE3 hash of a chunk's encoded bytes: its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkHash(pub [u8; HASH_BYTES]);

impl fmt::Display for ChunkHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ChunkHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..6].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What a chunk's payload is. Stored: never renumber.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum ChunkKind {
    /// Bytes of a value that lies out of line.
    Blob = 1,
    /// A node of an ordered map.
    MapNode = 2,
    /// A node of a sequence.
    SequenceNode = 3,
    /// A version in history.
    Commit = 4,
    /// A collection's entry in a versioned catalog; references the roots of its trees.
    CatalogEntry = 5,
    /// The state of an engine: base roots and log position.
    EngineState = 6,
}

impl ChunkKind {
    fn from_byte(byte: u8) -> Option<ChunkKind> {
        use ChunkKind::*;
        [Blob, MapNode, SequenceNode, Commit, CatalogEntry, EngineState]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// An immutable chunk. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chunk {
    hash: ChunkHash,
    encoded: Bytes,
    payload_offset: usize,
    kind: ChunkKind,
}

impl Chunk {
    /// Makes a chunk and names it.
    pub fn new(kind: ChunkKind, references: &[ChunkHash], payload: &[u8]) -> Chunk {
        let payload_offset = OFFSET_REFERENCES + references.len() * HASH_BYTES;
        let mut encoded = Vec::with_capacity(payload_offset + payload.len());
        encoded.extend_from_slice(&[kind as u8, 0, 0, 0]);
        let count = u32::try_from(references.len()).expect("a chunk holds far fewer references");
        encoded.extend_from_slice(&count.to_le_bytes());
        references.iter().for_each(|reference| encoded.extend_from_slice(&reference.0));
        encoded.extend_from_slice(payload);
        let hash = ChunkHash(*blake3::hash(&encoded).as_bytes());
        Chunk { hash, encoded: encoded.into(), payload_offset, kind }
    }

    /// Reads a chunk back from its encoded bytes and names it by what they hash to; the caller
    /// compares that with the name it expected. `place` (file, offset) is for the error.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the bytes are not a chunk.
    pub fn from_encoded(encoded: Bytes, place: (&str, u64)) -> Result<Chunk, StoreError> {
        let damaged = |what: &str| StoreError::damaged(place.0, place.1, what);
        let header = encoded.get(..OFFSET_REFERENCES).ok_or_else(|| damaged("chunk too short"))?;
        let kind = ChunkKind::from_byte(header[0]).ok_or_else(|| damaged("unknown chunk kind"))?;
        if header[1..OFFSET_REFERENCE_COUNT] != [0; 3] {
            return Err(damaged("reserved bytes of a chunk are not zero"));
        }
        let mut count = [0; size_of::<u32>()];
        count.copy_from_slice(&header[OFFSET_REFERENCE_COUNT..]);
        let payload_offset = usize::try_from(u32::from_le_bytes(count))
            .ok()
            .and_then(|count| count.checked_mul(HASH_BYTES))
            .and_then(|bytes| bytes.checked_add(OFFSET_REFERENCES))
            .filter(|offset| *offset <= encoded.len())
            .ok_or_else(|| damaged("a chunk's references exceed its bytes"))?;
        let hash = ChunkHash(*blake3::hash(&encoded).as_bytes());
        Ok(Chunk { hash, encoded, payload_offset, kind })
    }

    /// The chunk's name.
    pub fn hash(&self) -> ChunkHash {
        self.hash
    }

    /// What the payload is.
    pub fn kind(&self) -> ChunkKind {
        self.kind
    }

    /// How many chunks this one references.
    pub fn reference_count(&self) -> usize {
        (self.payload_offset - OFFSET_REFERENCES) / HASH_BYTES
    }

    /// The referenced chunk at `position`, which is less than `reference_count`.
    pub fn reference(&self, position: usize) -> ChunkHash {
        let start = OFFSET_REFERENCES + position * HASH_BYTES;
        assert!(start + HASH_BYTES <= self.payload_offset);
        let mut hash = [0; HASH_BYTES];
        hash.copy_from_slice(&self.encoded[start..start + HASH_BYTES]);
        ChunkHash(hash)
    }

    /// The referenced chunks, in their order.
    pub fn references(&self) -> impl Iterator<Item = ChunkHash> + '_ {
        (0..self.reference_count()).map(|position| self.reference(position))
    }

    /// The payload's bytes.
    pub fn payload(&self) -> &[u8] {
        &self.encoded[self.payload_offset..]
    }

    /// The payload's bytes, shared with the chunk.
    pub fn payload_bytes(&self) -> Bytes {
        self.encoded.slice(self.payload_offset..)
    }

    /// What is hashed and stored.
    pub fn encoded(&self) -> &Bytes {
        &self.encoded
    }
}
