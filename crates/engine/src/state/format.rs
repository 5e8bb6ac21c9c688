//! The engine-state chunk and the base chunks. The authority is docs/format/engine-state.md.
//!
//! The root `engine` names an engine-state chunk. It references the root node of a prolly map, the
//! *base map*, from a tree's id (8 bytes, big-endian) to a base chunk, which in turn references the
//! root node of that tree: so whoever follows references finds everything, and publishing a change
//! costs what changed.

use bytes::Bytes;
use frond_store::{Chunk, ChunkHash, ChunkKind, StoreError};
use frond_tree::{Content, Tree, TreeFormat, Value};

use super::Base;
use crate::ids::{Sequence, TreeId};
use crate::log::format::SegmentNumber;

/// The version that this build writes and the only one that it reads.
pub(crate) const VERSION: u16 = 0;

/// Stored: never renumber.
const TAG_STATE: u8 = 1;
const TAG_BASE: u8 = 2;

const OFFSET_VERSION: usize = 0;
const OFFSET_TAG: usize = OFFSET_VERSION + size_of::<u16>();
const OFFSET_ZERO: usize = OFFSET_TAG + size_of::<u8>();
const OFFSET_CHUNK_BYTES_TARGET: usize = OFFSET_ZERO + size_of::<u8>();
const OFFSET_INLINE_BYTES_MAX: usize = OFFSET_CHUNK_BYTES_TARGET + size_of::<u32>();
const OFFSET_FOUR_ZEROS: usize = OFFSET_INLINE_BYTES_MAX + size_of::<u32>();
const OFFSET_SALT: usize = OFFSET_FOUR_ZEROS + size_of::<u32>();
const OFFSET_SEQUENCE: usize = OFFSET_SALT + size_of::<u64>();
const BASE_BYTES: usize = OFFSET_SEQUENCE + size_of::<u64>();
const OFFSET_SEGMENT: usize = BASE_BYTES;
const OFFSET_NEXT_TREE_ID: usize = OFFSET_SEGMENT + size_of::<u64>();
const STATE_BYTES: usize = OFFSET_NEXT_TREE_ID + size_of::<u64>();
const _: () = assert!(BASE_BYTES == 32); // Stored: change only with a new version.
const _: () = assert!(STATE_BYTES == 48); // Stored: change only with a new version.

/// What the root `engine` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EngineState {
    /// The base map. Its format is that of all local trees.
    pub bases: Tree,
    /// Every entry up to this Sequence is in the bases.
    pub horizon: Sequence,
    /// The first log segment whose records may not be in the bases.
    pub segment: SegmentNumber,
    /// No tree has this id or a greater one, unless a later log record says so.
    pub next_tree_id: TreeId,
}

impl EngineState {
    /// The chunk to be stored.
    pub fn encode(&self) -> Chunk {
        let mut payload = prefix(TAG_STATE, &self.bases.format, self.horizon);
        payload.extend_from_slice(&self.segment.0.to_le_bytes());
        payload.extend_from_slice(&self.next_tree_id.0.to_le_bytes());
        assert!(payload.len() == STATE_BYTES);
        Chunk::new(ChunkKind::EngineState, &[self.bases.root], &payload)
    }

    /// Reads it back.
    pub fn decode(chunk: &Chunk) -> Result<EngineState, StoreError> {
        let (bases, horizon) = decode_prefix(chunk, TAG_STATE, STATE_BYTES)?;
        let payload = chunk.payload();
        Ok(EngineState {
            bases,
            horizon,
            segment: SegmentNumber(read_u64(payload, OFFSET_SEGMENT)),
            next_tree_id: TreeId(read_u64(payload, OFFSET_NEXT_TREE_ID)),
        })
    }
}

/// The chunk that the base map's value for a tree names.
pub(crate) fn encode_base(base: &Base) -> Chunk {
    let payload = prefix(TAG_BASE, &base.tree.format, base.folded_to);
    assert!(payload.len() == BASE_BYTES);
    Chunk::new(ChunkKind::EngineState, &[base.tree.root], &payload)
}

/// Reads a base chunk.
pub(crate) fn decode_base(chunk: &Chunk) -> Result<Base, StoreError> {
    let (tree, folded_to) = decode_prefix(chunk, TAG_BASE, BASE_BYTES)?;
    Ok(Base { tree, folded_to })
}

/// The base map's key of a tree.
pub(crate) fn base_key(tree: TreeId) -> Bytes {
    Bytes::copy_from_slice(&tree.0.to_be_bytes())
}

/// Reads a key of the base map.
pub(crate) fn decode_base_key(key: &[u8]) -> Result<TreeId, StoreError> {
    let bytes = key.try_into().map_err(|_| damaged("the base map", "a key is not a tree's id"))?;
    Ok(TreeId(u64::from_be_bytes(bytes)))
}

/// The base map's value for a base chunk.
pub(crate) fn base_value(chunk: &Chunk) -> Value {
    let content = Content::Chunk { hash: chunk.hash(), bytes: BASE_BYTES as u64 };
    Value { flags: 0, content }
}

/// The name of the base chunk in a value of the base map.
pub(crate) fn decode_base_value(value: &Value) -> Result<ChunkHash, StoreError> {
    match &value.content {
        Content::Chunk { hash, .. } => Ok(*hash),
        _ => Err(damaged("the base map", "a value doesn't name a chunk")),
    }
}

/// What both chunks begin with: version, tag, a tree's format and a Sequence.
fn prefix(tag: u8, format: &TreeFormat, sequence: Sequence) -> Vec<u8> {
    let mut payload = Vec::with_capacity(STATE_BYTES);
    payload.extend_from_slice(&VERSION.to_le_bytes());
    payload.extend_from_slice(&[tag, 0]);
    payload.extend_from_slice(&format.chunk_bytes_target.to_le_bytes());
    payload.extend_from_slice(&format.inline_bytes_max.to_le_bytes());
    payload.extend_from_slice(&[0; 4]);
    payload.extend_from_slice(&format.salt.to_le_bytes());
    payload.extend_from_slice(&sequence.0.to_le_bytes());
    payload
}

fn decode_prefix(chunk: &Chunk, tag: u8, bytes: usize) -> Result<(Tree, Sequence), StoreError> {
    let name = format!("chunk {}", chunk.hash());
    let payload = chunk.payload();
    if chunk.kind() != ChunkKind::EngineState || payload.len() < OFFSET_TAG {
        return Err(damaged(&name, "not an engine state"));
    }
    let version = u16::from_le_bytes([payload[OFFSET_VERSION], payload[OFFSET_VERSION + 1]]);
    if version != VERSION {
        return Err(StoreError::Version { file: name, found: version, readable: VERSION });
    }
    if payload.len() != bytes || chunk.reference_count() != 1 {
        return Err(damaged(&name, "an engine state of the wrong length"));
    }
    if payload[OFFSET_TAG] != tag
        || payload[OFFSET_ZERO] != 0
        || read_u32(payload, OFFSET_FOUR_ZEROS) != 0
    {
        return Err(damaged(&name, "an engine state of the wrong shape"));
    }
    let format = TreeFormat {
        chunk_bytes_target: read_u32(payload, OFFSET_CHUNK_BYTES_TARGET),
        inline_bytes_max: read_u32(payload, OFFSET_INLINE_BYTES_MAX),
        salt: read_u64(payload, OFFSET_SALT),
    };
    let tree = Tree { root: chunk.reference(0), format };
    Ok((tree, Sequence(read_u64(payload, OFFSET_SEQUENCE))))
}

/// The caller has checked that the payload is long enough.
fn read_u32(payload: &[u8], offset: usize) -> u32 {
    let bytes = payload[offset..offset + size_of::<u32>()].try_into();
    u32::from_le_bytes(bytes.expect("four bytes were taken"))
}

/// The caller has checked that the payload is long enough.
fn read_u64(payload: &[u8], offset: usize) -> u64 {
    let bytes = payload[offset..offset + size_of::<u64>()].try_into();
    u64::from_le_bytes(bytes.expect("eight bytes were taken"))
}

fn damaged(file: &str, what: &str) -> StoreError {
    StoreError::Damaged { file: file.to_owned(), offset: 0, what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        let format =
            TreeFormat { chunk_bytes_target: 4096, inline_bytes_max: 1024, salt: 0x0123_4567 };
        Tree { root: ChunkHash([7; 32]), format }
    }

    #[test]
    fn what_is_encoded_is_read_back() {
        let state = EngineState {
            bases: tree(),
            horizon: Sequence(99 << 32),
            segment: SegmentNumber(5),
            next_tree_id: TreeId(12),
        };
        assert_eq!(EngineState::decode(&state.encode()).unwrap(), state);
        let base = Base { tree: tree(), folded_to: Sequence(3) };
        assert_eq!(decode_base(&encode_base(&base)).unwrap(), base);
        assert_eq!(decode_base_key(&base_key(TreeId(258))).unwrap(), TreeId(258));
        assert!(decode_base(&state.encode()).is_err());
        assert!(EngineState::decode(&encode_base(&base)).is_err());
    }

    #[test]
    fn the_example_in_the_document_is_right() {
        let chunk = encode_base(&Base { tree: tree(), folded_to: Sequence(3) });
        let hex: String = chunk.payload().iter().map(|byte| format!("{byte:02x}")).collect();
        let document = include_str!("../../../../docs/format/engine-state.md");
        assert!(document.replace([' ', '\n'], "").contains(&hex), "{hex}");
    }

    #[test]
    fn another_version_is_refused_with_both_numbers() {
        let chunk = encode_base(&Base { tree: tree(), folded_to: Sequence(3) });
        let mut payload = chunk.payload().to_vec();
        payload[OFFSET_VERSION] = 3;
        let chunk = Chunk::new(ChunkKind::EngineState, &[chunk.reference(0)], &payload);
        let error = decode_base(&chunk).unwrap_err();
        assert!(matches!(error, StoreError::Version { found: 3, readable: VERSION, .. }));
    }

    #[test]
    fn any_shortened_or_lengthened_payload_is_damage_not_a_panic() {
        let chunk = encode_base(&Base { tree: tree(), folded_to: Sequence(3) });
        for bytes in (0..BASE_BYTES).chain([BASE_BYTES + 1]) {
            let mut payload = chunk.payload().to_vec();
            payload.resize(bytes, 0);
            for references in [&[][..], &[chunk.reference(0)]] {
                let chunk = Chunk::new(ChunkKind::EngineState, references, &payload);
                assert!(decode_base(&chunk).is_err(), "{bytes} bytes");
                assert!(EngineState::decode(&chunk).is_err(), "{bytes} bytes");
            }
        }
    }
}
