//! The engine-state chunk and the base chunks. The authority is docs/format/engine-state.md.
//!
//! The root `engine` names an engine-state chunk. It references the root node of a prolly map, the
//! *base map*, from a tree's id (8 bytes, big-endian) to a base chunk, which in turn references the
//! root node of that tree, and the root node and filter of each run above it: so a walk that
//! follows references finds everything, and publishing a change costs what changed.

use std::sync::Arc;

use bytes::Bytes;
use frond_store::{Chunk, ChunkHash, ChunkKind, StoreError};
use frond_tree::{Content, Tree, TreeFormat, Value};

use super::Base;
use crate::ids::{Sequence, TreeId};
use crate::log::format::SegmentNumber;
use crate::overlay::run::{Run, format_of_run};

/// The version that this build writes and the only one that it reads.
pub(crate) const VERSION: u16 = 0;

/// Stored: never renumber.
const TAG_STATE: u8 = 1;
const TAG_BASE: u8 = 2;
/// The log has the state's segment. Stored.
const FLAG_HAS_SEGMENT: u8 = 1;

const OFFSET_VERSION: usize = 0;
const OFFSET_TAG: usize = OFFSET_VERSION + size_of::<u16>();
const OFFSET_FLAGS: usize = OFFSET_TAG + size_of::<u8>();
const OFFSET_CHUNK_BYTES_TARGET: usize = OFFSET_FLAGS + size_of::<u8>();
const OFFSET_INLINE_BYTES_MAX: usize = OFFSET_CHUNK_BYTES_TARGET + size_of::<u32>();
const OFFSET_RUN_COUNT: usize = OFFSET_INLINE_BYTES_MAX + size_of::<u32>();
const OFFSET_SALT: usize = OFFSET_RUN_COUNT + size_of::<u32>();
const OFFSET_SEQUENCE: usize = OFFSET_SALT + size_of::<u64>();
const BASE_BYTES: usize = OFFSET_SEQUENCE + size_of::<u64>();
const OFFSET_SEGMENT: usize = BASE_BYTES;
const OFFSET_NEXT_TREE_ID: usize = OFFSET_SEGMENT + size_of::<u64>();
const STATE_BYTES: usize = OFFSET_NEXT_TREE_ID + size_of::<u64>();
const OFFSET_RUN_AFTER: usize = 0;
const OFFSET_RUN_UPTO: usize = OFFSET_RUN_AFTER + size_of::<u64>();
const OFFSET_RUN_ENTRIES: usize = OFFSET_RUN_UPTO + size_of::<u64>();
const OFFSET_RUN_TOTAL: usize = OFFSET_RUN_ENTRIES + size_of::<u64>();
const RUN_BYTES: usize = OFFSET_RUN_TOTAL + size_of::<u64>();
/// A run has two: its root node and its filter.
const RUN_REFERENCES: usize = 2;
const _: () = assert!(BASE_BYTES == 32); // Stored: change only with a new version.
const _: () = assert!(RUN_BYTES == 32); // Stored: change only with a new version.
const _: () = assert!(STATE_BYTES == 48); // Stored: change only with a new version.

/// The content of the root `engine`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EngineState {
    /// The base map. Its format is that of all local trees.
    pub bases: Tree,
    /// The Sequence up to which every entry is in the bases.
    pub horizon: Sequence,
    /// The first log segment whose records may not be in the bases.
    pub segment: SegmentNumber,
    /// Whether that segment was on the disk when this was published: it isn't given up before
    /// another state is.
    pub has_segment: bool,
    /// The id from which on no tree has one, unless a later log record says so.
    pub next_tree_id: TreeId,
}

impl EngineState {
    /// The chunk to be stored.
    pub fn encode(&self) -> Chunk {
        let mut payload = prefix(TAG_STATE, &self.bases.format, 0, self.horizon);
        payload[OFFSET_FLAGS] = if self.has_segment { FLAG_HAS_SEGMENT } else { 0 };
        payload.extend_from_slice(&self.segment.0.to_le_bytes());
        payload.extend_from_slice(&self.next_tree_id.0.to_le_bytes());
        assert!(payload.len() == STATE_BYTES);
        Chunk::new(ChunkKind::EngineState, &[self.bases.root], &payload)
    }

    /// Reads it back.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the chunk isn't the state of an engine; [`StoreError::Version`]
    /// if it is of a version that this build doesn't read.
    pub fn decode(chunk: &Chunk) -> Result<EngineState, StoreError> {
        let (bases, horizon, run_count) = decode_prefix(chunk, TAG_STATE)?;
        check_shape(chunk, run_count == 0, STATE_BYTES, 1)?;
        let payload = chunk.payload();
        Ok(EngineState {
            bases,
            horizon,
            segment: SegmentNumber(read_u64(payload, OFFSET_SEGMENT)),
            has_segment: payload[OFFSET_FLAGS] & FLAG_HAS_SEGMENT != 0,
            next_tree_id: TreeId(read_u64(payload, OFFSET_NEXT_TREE_ID)),
        })
    }
}

/// The chunk that the base map's value for a tree names.
pub(crate) fn encode_base(base: &Base) -> Chunk {
    let run_count = u32::try_from(base.runs.len()).expect("merging keeps the runs of a tree few");
    let mut payload = prefix(TAG_BASE, &base.tree.format, run_count, base.folded_to);
    let mut references = vec![base.tree.root];
    for run in &base.runs {
        assert!(run.tree.format == format_of_run(base.tree.format));
        references.extend([run.tree.root, run.filter]);
        for field in [run.after.0, run.up_to.0, run.count, run.bytes] {
            payload.extend_from_slice(&field.to_le_bytes());
        }
    }
    assert!(payload.len() == BASE_BYTES + base.runs.len() * RUN_BYTES);
    Chunk::new(ChunkKind::EngineState, &references, &payload)
}

/// Reads a base chunk.
pub(crate) fn decode_base(chunk: &Chunk) -> Result<Base, StoreError> {
    let (tree, folded_to, run_count) = decode_prefix(chunk, TAG_BASE)?;
    let payload = chunk.payload();
    // Far below any limit of integers: each run takes bytes of the payload.
    let fits = run_count <= payload.len() / RUN_BYTES;
    let bytes = BASE_BYTES + RUN_BYTES * if fits { run_count } else { 0 };
    check_shape(chunk, fits, bytes, 1 + RUN_REFERENCES * if fits { run_count } else { 0 })?;
    let mut runs = Vec::with_capacity(run_count);
    for (position, run) in payload[BASE_BYTES..].chunks_exact(RUN_BYTES).enumerate() {
        let reference = 1 + position * RUN_REFERENCES;
        let root = chunk.reference(reference);
        let times =
            (Sequence(read_u64(run, OFFSET_RUN_AFTER)), Sequence(read_u64(run, OFFSET_RUN_UPTO)));
        let count = read_u64(run, OFFSET_RUN_ENTRIES);
        let total = read_u64(run, OFFSET_RUN_TOTAL);
        let filter = chunk.reference(reference + 1);
        runs.push(Arc::new(Run::stored(root, tree.format, filter, times, count, total)));
    }
    let base = Base::new(tree, runs, folded_to);
    base.check().map_err(|what| damaged(&format!("chunk {}", chunk.hash()), &what))?;
    Ok(base)
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
    let content = Content::Chunk { hash: chunk.hash(), bytes: chunk.payload().len() as u64 };
    Value { flags: 0, content }
}

/// The name of the base chunk in a value of the base map.
pub(crate) fn decode_base_value(value: &Value) -> Result<ChunkHash, StoreError> {
    match &value.content {
        Content::Chunk { hash, .. } => Ok(*hash),
        _ => Err(damaged("the base map", "a value doesn't name a chunk")),
    }
}

/// Returns the beginning of both chunks: version, tag, a tree's format, a count of runs and a
/// Sequence.
fn prefix(tag: u8, format: &TreeFormat, run_count: u32, sequence: Sequence) -> Vec<u8> {
    let mut payload = Vec::with_capacity(STATE_BYTES);
    payload.extend_from_slice(&VERSION.to_le_bytes());
    payload.extend_from_slice(&[tag, 0]);
    payload.extend_from_slice(&format.chunk_bytes_target.to_le_bytes());
    payload.extend_from_slice(&format.inline_bytes_max.to_le_bytes());
    payload.extend_from_slice(&run_count.to_le_bytes());
    payload.extend_from_slice(&format.salt.to_le_bytes());
    payload.extend_from_slice(&sequence.0.to_le_bytes());
    payload
}

/// Reads what both chunks begin with; the tree is the first reference.
fn decode_prefix(chunk: &Chunk, tag: u8) -> Result<(Tree, Sequence, usize), StoreError> {
    let name = format!("chunk {}", chunk.hash());
    let payload = chunk.payload();
    if chunk.kind() != ChunkKind::EngineState || payload.len() < OFFSET_TAG {
        return Err(damaged(&name, "not an engine state"));
    }
    let version = u16::from_le_bytes([payload[OFFSET_VERSION], payload[OFFSET_VERSION + 1]]);
    if version != VERSION {
        return Err(StoreError::Version { file: name, found: version, readable: VERSION });
    }
    if payload.len() < BASE_BYTES || chunk.reference_count() == 0 {
        return Err(damaged(&name, "an engine state of the wrong length"));
    }
    let flags = if tag == TAG_STATE { FLAG_HAS_SEGMENT } else { 0 };
    if payload[OFFSET_TAG] != tag || payload[OFFSET_FLAGS] & !flags != 0 {
        return Err(damaged(&name, "an engine state of the wrong shape"));
    }
    let format = TreeFormat {
        chunk_bytes_target: read_u32(payload, OFFSET_CHUNK_BYTES_TARGET),
        inline_bytes_max: read_u32(payload, OFFSET_INLINE_BYTES_MAX),
        salt: read_u64(payload, OFFSET_SALT),
    };
    let tree = Tree { root: chunk.reference(0), format };
    let run_count = usize::try_from(read_u32(payload, OFFSET_RUN_COUNT)).unwrap_or(usize::MAX);
    Ok((tree, Sequence(read_u64(payload, OFFSET_SEQUENCE)), run_count))
}

fn check_shape(
    chunk: &Chunk,
    is_right: bool,
    bytes: usize,
    reference_count: usize,
) -> Result<(), StoreError> {
    if is_right && chunk.payload().len() == bytes && chunk.reference_count() == reference_count {
        return Ok(());
    }
    Err(damaged(&format!("chunk {}", chunk.hash()), "an engine state of the wrong length"))
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

    /// A base with two runs.
    fn with_runs() -> Base {
        let run = |number: u8, (after, up_to)| {
            let (root, filter) = (ChunkHash([number; 32]), ChunkHash([number + 1; 32]));
            let times = (Sequence(after), Sequence(up_to));
            let count = u64::from(number);
            Arc::new(Run::stored(root, tree().format, filter, times, count, count * 100))
        };
        let runs = vec![run(8, (2, 5)), run(4, (0, 2))];
        Base::new(tree(), runs, Sequence(5))
    }

    #[test]
    fn encoding_round_trips() {
        let state = EngineState {
            bases: tree(),
            horizon: Sequence(99 << 32),
            segment: SegmentNumber(5),
            has_segment: true,
            next_tree_id: TreeId(12),
        };
        assert_eq!(EngineState::decode(&state.encode()).unwrap(), state);
        for base in [Base::whole(tree(), Sequence(3)), with_runs()] {
            assert_eq!(decode_base(&encode_base(&base)).unwrap(), base);
        }
        let base = Base::whole(tree(), Sequence(3));
        assert_eq!(decode_base_key(&base_key(TreeId(258))).unwrap(), TreeId(258));
        assert!(decode_base(&state.encode()).is_err());
        assert!(EngineState::decode(&encode_base(&base)).is_err());
    }

    #[test]
    fn the_example_in_the_document_is_right() {
        let chunk = encode_base(&with_runs());
        let hex: String = chunk.payload().iter().map(|byte| format!("{byte:02x}")).collect();
        let document = include_str!("../../../../docs/format/engine-state.md");
        assert!(document.replace([' ', '\n'], "").contains(&hex), "{hex}");
    }

    #[test]
    fn another_version_is_refused_with_both_numbers() {
        let chunk = encode_base(&with_runs());
        let mut payload = chunk.payload().to_vec();
        payload[OFFSET_VERSION] = 3;
        let references: Vec<ChunkHash> = chunk.references().collect();
        let chunk = Chunk::new(ChunkKind::EngineState, &references, &payload);
        let error = decode_base(&chunk).unwrap_err();
        assert!(matches!(error, StoreError::Version { found: 3, readable: VERSION, .. }));
    }

    #[test]
    fn any_shortened_or_lengthened_payload_is_damage_not_a_panic() {
        let chunk = encode_base(&with_runs());
        let all: Vec<ChunkHash> = chunk.references().collect();
        let right = chunk.payload().len();
        for bytes in (0..right + RUN_BYTES + 2).filter(|bytes| *bytes != right) {
            let mut payload = chunk.payload().to_vec();
            payload.resize(bytes, 0);
            for references in [&[][..], &all[..1], &all[..3], &all] {
                let chunk = Chunk::new(ChunkKind::EngineState, references, &payload);
                assert!(decode_base(&chunk).is_err(), "{bytes} bytes");
                assert!(EngineState::decode(&chunk).is_err(), "{bytes} bytes");
            }
        }
    }

    #[test]
    fn runs_that_leave_a_gap_and_counts_that_lie_are_damage() {
        let chunk = encode_base(&with_runs());
        let references: Vec<ChunkHash> = chunk.references().collect();
        let changed = |offset: usize, byte: u8| {
            let mut payload = chunk.payload().to_vec();
            payload[offset] = byte;
            decode_base(&Chunk::new(ChunkKind::EngineState, &references, &payload))
        };
        assert!(changed(OFFSET_SEQUENCE, 5).is_ok());
        for (offset, byte) in [
            (OFFSET_SEQUENCE, 6),
            (BASE_BYTES + OFFSET_RUN_AFTER, 3),
            (BASE_BYTES + OFFSET_RUN_UPTO, 1),
            (OFFSET_RUN_COUNT, 1),
            (OFFSET_RUN_COUNT, 255),
            (OFFSET_RUN_COUNT + 3, 255),
        ] {
            assert!(changed(offset, byte).is_err(), "{offset}");
        }
    }
}
