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
//! Code that follows references (collection, push, fsck) needs no knowledge of payloads.

mod change;

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;

use crate::error::StoreError;

pub use crate::hash::{ChunkHash, HASH_BYTES};
pub use change::{ChunkChange, Origin};

const OFFSET_REFERENCE_COUNT: usize = 4;
const OFFSET_REFERENCES: usize = OFFSET_REFERENCE_COUNT + size_of::<u32>();
/// The greatest number of bytes of an encoded chunk. Far above what trees make; bounds what a
/// damaged length can make us allocate.
pub const CHUNK_BYTES_MAX: usize = 256 << 20;
const _: () = assert!(OFFSET_REFERENCES == 8); // Stored: change only with a new version.
/// The data derived from most chunks take less than such a part of their bytes.
pub const DERIVED_SHARE: usize = 32;

/// The kind of a chunk's payload. Stored: never renumber.
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

/// An immutable chunk. Cloning shares it: one count goes up.
#[derive(Clone)]
pub struct Chunk(Arc<Inner>);

/// The fields in the order of use: with the counts before them, the fields up to `mark` are a line
/// of the processor's cache, and `derived` with little in it is the next one or two.
#[repr(C)]
struct Inner {
    encoded: Bytes,
    payload_offset: u32,
    kind: ChunkKind,
    /// See [`Chunk::note_use`].
    is_used: AtomicBool,
    /// See [`Chunk::is_busy`].
    uses: AtomicU8,
    /// See [`Chunk::pin`].
    pins: AtomicU8,
    /// See [`Chunk::mark`].
    mark: AtomicU64,
    /// See [`Chunk::derived`].
    derived: OnceLock<Derived>,
    hash: ChunkHash,
}

const _: () = assert!(OFFSET_REFERENCES + CHUNK_BYTES_MAX <= u32::MAX as usize);

/// Memory of a chunk besides its bytes: its fields, and what the allocator adds.
pub const CHUNK_FIELDS_BYTES: u64 = 192;
const _: () = assert!(size_of::<Inner>() + 2 * size_of::<usize>() <= CHUNK_FIELDS_BYTES as usize);

/// Data derived from a chunk: with the chunk's fields, if it is small.
#[derive(Clone)]
enum Derived {
    Near {
        count: u8,
        bytes: [u8; DERIVED_NEAR_BYTES],
    },
    Far(Arc<[u8]>),
    /// Nothing, of a chunk that knows what it was made of ([`Chunk::origin`]).
    Nothing(Arc<Origin>),
}

const DERIVED_NEAR_BYTES: usize = 78;
/// The number of uses of a chunk after which others will want it, too.
const BUSY_USES: u8 = 16;

/// A chunk that is in memory as long as others keep it there.
#[derive(Default)]
pub struct WeakChunk(Weak<Inner>);

impl WeakChunk {
    /// Whether it never led to a chunk.
    pub fn is_empty(&self) -> bool {
        self.0.ptr_eq(&Weak::new())
    }

    /// The chunk, if it is in memory yet.
    pub fn upgrade(&self) -> Option<Chunk> {
        self.0.upgrade().map(Chunk)
    }
}

impl PartialEq for Chunk {
    fn eq(&self, other: &Chunk) -> bool {
        self.hash() == other.hash() && self.encoded() == other.encoded()
    }
}

impl Eq for Chunk {}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, bytes) = (self.kind(), self.encoded().len());
        write!(f, "{kind:?} {:?}, {bytes} bytes", self.hash())
    }
}

impl Chunk {
    /// Makes a chunk and names it.
    pub fn new(kind: ChunkKind, references: &[ChunkHash], payload: &[u8]) -> Chunk {
        Chunk::from_parts(kind, references, &[payload])
    }

    /// As `new`; the payload is all `cache::entries`, one after the other.
    pub fn from_parts(kind: ChunkKind, references: &[ChunkHash], parts: &[&[u8]]) -> Chunk {
        let payload_offset = OFFSET_REFERENCES + references.len() * HASH_BYTES;
        Chunk::named(Chunk::encode(kind, references, parts).into(), payload_offset, kind)
    }

    /// The encoded bytes of such a chunk, for callers that name it later ([`Chunk::from_encoded`]).
    pub fn encode(kind: ChunkKind, references: &[ChunkHash], parts: &[&[u8]]) -> Vec<u8> {
        let payload_offset = OFFSET_REFERENCES + references.len() * HASH_BYTES;
        let payload_bytes: usize = parts.iter().map(|part| part.len()).sum();
        let mut encoded = Vec::with_capacity(payload_offset + payload_bytes);
        encoded.extend_from_slice(&[kind as u8, 0, 0, 0]);
        let count = u32::try_from(references.len()).expect("a chunk holds far fewer references");
        encoded.extend_from_slice(&count.to_le_bytes());
        references.iter().for_each(|reference| encoded.extend_from_slice(&reference.0));
        parts.iter().for_each(|part| encoded.extend_from_slice(part));
        encoded
    }

    fn named(encoded: Bytes, payload_offset: usize, kind: ChunkKind) -> Chunk {
        let hash = ChunkHash(*blake3::hash(&encoded).as_bytes());
        Chunk::with_name(hash, encoded, payload_offset, kind)
    }

    fn with_name(hash: ChunkHash, encoded: Bytes, payload_offset: usize, kind: ChunkKind) -> Chunk {
        Chunk(Arc::new(Inner {
            encoded,
            payload_offset: u32::try_from(payload_offset).expect("a chunk is smaller than 4 GB"),
            kind,
            is_used: AtomicBool::new(false),
            uses: AtomicU8::new(0),
            pins: AtomicU8::new(0),
            mark: AtomicU64::new(0),
            derived: OnceLock::new(),
            hash,
        }))
    }

    /// The same chunk with a count of its own: clones of it don't touch that of `self`, so that
    /// processors that both read it don't wait for each other.
    pub(crate) fn detached(&self) -> Chunk {
        let Inner { encoded, payload_offset, kind, mark, derived, hash, .. } = &*self.0;
        Chunk(Arc::new(Inner {
            encoded: encoded.clone(),
            payload_offset: *payload_offset,
            kind: *kind,
            is_used: AtomicBool::new(false),
            uses: AtomicU8::new(0),
            pins: AtomicU8::new(0),
            mark: AtomicU64::new(mark.load(Ordering::Relaxed)),
            derived: derived.clone(),
            hash: *hash,
        }))
    }

    /// The same chunk with bytes of its own, where it may share them with more that is in memory.
    pub fn apart(&self) -> Chunk {
        let encoded = Bytes::copy_from_slice(self.encoded());
        Chunk::with_name(self.hash(), encoded, self.payload_offset(), self.kind())
    }

    /// Reads a chunk back from its encoded bytes and names it by what they hash to; the caller
    /// compares that with the name it expected. `place` (file, offset) is for the error.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the bytes are not a chunk.
    pub fn from_encoded(encoded: Bytes, place: (&str, u64)) -> Result<Chunk, StoreError> {
        let (kind, payload_offset) = Chunk::parse(&encoded, place)?;
        Ok(Chunk::named(encoded, payload_offset, kind))
    }

    /// As `from_encoded`, with the name that a checksum binds to these bytes: hashing them costs a
    /// third of a read from a disk.
    pub(crate) fn from_checked(
        hash: ChunkHash,
        encoded: Bytes,
        place: (&str, u64),
    ) -> Result<Chunk, StoreError> {
        let (kind, payload_offset) = Chunk::parse(&encoded, place)?;
        Ok(Chunk::with_name(hash, encoded, payload_offset, kind))
    }

    /// Returns the kind, and where the payload begins.
    fn parse(encoded: &[u8], place: (&str, u64)) -> Result<(ChunkKind, usize), StoreError> {
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
        Ok((kind, payload_offset))
    }

    /// The chunk's name.
    pub fn hash(&self) -> ChunkHash {
        self.0.hash
    }

    /// Returns the kind of the payload.
    pub fn kind(&self) -> ChunkKind {
        self.0.kind
    }

    fn payload_offset(&self) -> usize {
        self.0.payload_offset as usize
    }

    /// Returns how many chunks this one references.
    pub fn reference_count(&self) -> usize {
        (self.payload_offset() - OFFSET_REFERENCES) / HASH_BYTES
    }

    /// The referenced chunk at `position`, which is less than `reference_count`.
    pub fn reference(&self, position: usize) -> ChunkHash {
        let start = OFFSET_REFERENCES + position * HASH_BYTES;
        assert!(start + HASH_BYTES <= self.payload_offset());
        let mut hash = [0; HASH_BYTES];
        hash.copy_from_slice(&self.0.encoded[start..start + HASH_BYTES]);
        ChunkHash(hash)
    }

    /// The names of the referenced chunks, one after the other.
    pub fn references_bytes(&self) -> &[u8] {
        &self.0.encoded[OFFSET_REFERENCES..self.payload_offset()]
    }

    /// The referenced chunks, in their order.
    pub fn references(&self) -> impl Iterator<Item = ChunkHash> + '_ {
        (0..self.reference_count()).map(|position| self.reference(position))
    }

    /// The payload's bytes.
    pub fn payload(&self) -> &[u8] {
        &self.0.encoded[self.payload_offset()..]
    }

    /// The payload's bytes, shared with the chunk.
    pub fn payload_bytes(&self) -> Bytes {
        self.0.encoded.slice(self.payload_offset()..)
    }

    /// A part of the payload's bytes, shared with the chunk. Panics if it isn't one.
    pub fn payload_slice(&self, part: Range<usize>) -> Bytes {
        let offset = self.payload_offset();
        self.0.encoded.slice(offset + part.start..offset + part.end)
    }

    /// Returns the bytes that are hashed and stored.
    pub fn encoded(&self) -> &Bytes {
        &self.0.encoded
    }

    /// All bits that `set_mark` was given, on any clone; 0 before. With them readers of payloads of
    /// this kind remember what of this one was checked and found, without going to the payload's
    /// memory.
    pub fn mark(&self) -> u64 {
        self.0.mark.load(Ordering::Relaxed)
    }

    /// Adds bits to the mark. It is not part of the chunk: neither stored nor compared.
    pub fn set_mark(&self, bits: u64) {
        self.0.mark.fetch_or(bits, Ordering::Relaxed);
    }

    /// A reference that doesn't keep the chunk in memory.
    pub fn downgrade(&self) -> WeakChunk {
        WeakChunk(Arc::downgrade(&self.0))
    }

    /// Notes that the chunk is used without asking the cache that has it. False if that is the
    /// first time since the cache looked: then it wants to be asked.
    pub fn note_use(&self) -> bool {
        // Looked at first: processors that use one chunk needn't all write to it.
        self.0.is_used.load(Ordering::Relaxed) || self.0.is_used.swap(true, Ordering::Relaxed)
    }

    /// Counts a use, and returns whether there were many. Uses that come at once may be counted as
    /// one.
    pub fn is_busy(&self) -> bool {
        let uses = self.0.uses.load(Ordering::Relaxed);
        if uses < BUSY_USES {
            self.0.uses.store(uses + 1, Ordering::Relaxed);
        }
        BUSY_USES <= uses
    }

    /// Keeps a cache from dropping the chunk, until `unpin` has been called as often. False if too
    /// many do so already.
    pub fn pin(&self) -> bool {
        let add = |pins: u8| pins.checked_add(1);
        self.0.pins.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    /// Takes one `pin` back; the cache spares the chunk once more.
    pub fn unpin(&self) {
        self.0.is_used.store(true, Ordering::Relaxed);
        let before = self.0.pins.fetch_sub(1, Ordering::Relaxed);
        debug_assert_ne!(before, 0);
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.0.pins.load(Ordering::Relaxed) != 0
    }

    /// Whether the chunk's bytes would stay in memory if this one, which is in a cache, were
    /// dropped.
    pub(crate) fn is_held_by_others(&self) -> bool {
        Arc::strong_count(&self.0) > 1 || !self.0.encoded.is_unique()
    }

    /// Whether a use was noted since this was asked last.
    pub(crate) fn take_used(&self) -> bool {
        self.0.is_used.load(Ordering::Relaxed) && self.0.is_used.swap(false, Ordering::Relaxed)
    }

    /// Returns the data that readers of payloads of this kind have derived from this one, on any
    /// clone.
    pub fn derived(&self) -> Option<&[u8]> {
        match self.0.derived.get()? {
            Derived::Near { count, bytes } => Some(&bytes[..usize::from(*count)]),
            Derived::Far(bytes) => Some(&bytes[..]),
            Derived::Nothing(_) => None,
        }
    }

    /// Keeps what is derived from this chunk, unless something was kept already, or it knows its
    /// [origin](Chunk::origin). Like the mark it is no part of the
    /// chunk. A cache allows for one byte in [`DERIVED_SHARE`] of the chunk's.
    pub fn derive(&self, derived: &[u8]) {
        self.0.derived.get_or_init(|| {
            let mut bytes = [0; DERIVED_NEAR_BYTES];
            match bytes.get_mut(..derived.len()) {
                Some(near) => near.copy_from_slice(derived),
                None => return Derived::Far(derived.into()),
            }
            Derived::Near { count: derived.len() as u8, bytes }
        });
    }
}

#[cfg(test)]
mod tests;
