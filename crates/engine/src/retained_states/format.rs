//! The list of kept states, and the chunks that name what records need. The authority is
//! docs/format/retained-states.md, which records this file's hash; tidy compares.

use frond_store::{Chunk, ChunkHash, ChunkKind, StoreError};

use super::RetainedState;
use crate::ids::Sequence;
use crate::log::format::SegmentNumber;

/// The version that this build writes and the only one that it reads.
const VERSION: u16 = 0;
/// Stored: never renumber. 1 and 2 are those of an engine's state and its bases.
const TAG_LIST: u8 = 3;
const TAG_NEEDS: u8 = 4;

const OFFSET_VERSION: usize = 0;
const OFFSET_TAG: usize = OFFSET_VERSION + size_of::<u16>();
const OFFSET_RESERVED: usize = OFFSET_TAG + size_of::<u8>();
const OFFSET_STATES: usize = 8;
const OFFSET_FROM: usize = 0;
const OFFSET_HORIZON: usize = OFFSET_FROM + size_of::<u64>();
const OFFSET_SEGMENT: usize = OFFSET_HORIZON + size_of::<u64>();
const OFFSET_NEEDS_COUNT: usize = OFFSET_SEGMENT + size_of::<u64>();
const STATE_BYTES: usize = OFFSET_NEEDS_COUNT + size_of::<u64>();
const _: () = assert!(OFFSET_RESERVED < OFFSET_STATES);
const _: () = assert!(STATE_BYTES == 32); // Stored: change only with a new version.

fn prefix(tag: u8) -> Vec<u8> {
    let mut payload = vec![0; OFFSET_STATES];
    payload[OFFSET_VERSION..OFFSET_TAG].copy_from_slice(&VERSION.to_le_bytes());
    payload[OFFSET_TAG] = tag;
    payload
}

/// The chunk of a list.
pub(super) fn encode(states: &[RetainedState]) -> Chunk {
    let mut payload = prefix(TAG_LIST);
    let mut references = Vec::with_capacity(states.len());
    for state in states {
        for field in [state.from.0, state.horizon.0, state.segment.0, state.needs.len() as u64] {
            payload.extend_from_slice(&field.to_le_bytes());
        }
        references.push(state.root);
        references.extend(&state.needs);
    }
    Chunk::new(ChunkKind::EngineState, &references, &payload)
}

/// The chunk that names `needs`.
pub(super) fn encode_needs(needs: &[ChunkHash]) -> Chunk {
    Chunk::new(ChunkKind::EngineState, needs, &prefix(TAG_NEEDS))
}

/// Reads a list.
///
/// # Errors
/// [`StoreError::Damaged`] if the chunk is none; [`StoreError::Version`] if it is of a version that
/// this build doesn't read.
pub(super) fn decode(chunk: &Chunk) -> Result<Vec<RetainedState>, StoreError> {
    let file = format!("chunk {}", chunk.hash());
    let damaged =
        |what: &str| StoreError::Damaged { file: file.clone(), offset: 0, what: what.to_owned() };
    let payload = chunk.payload();
    if chunk.kind() != ChunkKind::EngineState || payload.len() < OFFSET_STATES {
        return Err(damaged("not a list of kept states"));
    }
    let found = u16::from_le_bytes([payload[OFFSET_VERSION], payload[OFFSET_VERSION + 1]]);
    if found != VERSION {
        return Err(StoreError::Version { file, found, readable: VERSION });
    }
    let (states, rest) = payload[OFFSET_STATES..].as_chunks::<STATE_BYTES>();
    let reserved = &payload[OFFSET_RESERVED..OFFSET_STATES];
    if payload[OFFSET_TAG] != TAG_LIST || !rest.is_empty() || reserved != [0; 5] {
        return Err(damaged("a list of kept states of the wrong shape"));
    }
    let mut references = chunk.references();
    let mut list = Vec::with_capacity(states.len());
    for state in states {
        let field = |offset: usize| {
            let bytes = state[offset..offset + size_of::<u64>()].try_into();
            u64::from_le_bytes(bytes.expect("eight bytes were taken"))
        };
        let root = references.next().ok_or_else(|| damaged("a kept state without its chunk"))?;
        // Only as many are taken as there are, whatever the count says.
        let count = usize::try_from(field(OFFSET_NEEDS_COUNT)).unwrap_or(usize::MAX);
        let needs: Vec<ChunkHash> = references.by_ref().take(count).collect();
        if needs.len() != count {
            return Err(damaged("a kept state without what its records need"));
        }
        list.push(RetainedState {
            root,
            from: Sequence(field(OFFSET_FROM)),
            horizon: Sequence(field(OFFSET_HORIZON)),
            segment: SegmentNumber(field(OFFSET_SEGMENT)),
            needs,
        });
    }
    match references.next() {
        None => Ok(list),
        Some(_) => Err(damaged("a list of kept states with a chunk too many")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> Vec<RetainedState> {
        let state = |number: u8, needs: &[u8]| RetainedState {
            root: ChunkHash([number; 32]),
            from: Sequence(u64::from(number) << 32),
            horizon: Sequence((u64::from(number) << 32) - 1),
            segment: SegmentNumber(u64::from(number)),
            needs: needs.iter().map(|need| ChunkHash([*need; 32])).collect(),
        };
        vec![state(1, &[]), state(2, &[20, 21]), state(3, &[30])]
    }

    #[test]
    fn encoding_round_trips() {
        assert_eq!(decode(&encode(&list())).unwrap(), list());
        assert_eq!(decode(&encode(&[])).unwrap(), []);
        assert!(decode(&encode_needs(&[ChunkHash([1; 32])])).is_err());
    }

    #[test]
    fn the_example_in_the_document_is_right() {
        let chunk = encode(&list()[1..2]);
        let hex: String = chunk.payload().iter().map(|byte| format!("{byte:02x}")).collect();
        let document = include_str!("../../../../docs/format/retained-states.md");
        assert!(document.replace([' ', '\n'], "").contains(&hex), "{hex}");
    }

    #[test]
    fn any_other_length_or_count_is_damage_not_a_panic() {
        let chunk = encode(&list());
        let references: Vec<ChunkHash> = chunk.references().collect();
        for bytes in (0..chunk.payload().len() + 40).filter(|it| *it != chunk.payload().len()) {
            let mut payload = chunk.payload().to_vec();
            payload.resize(bytes, 0);
            let chunk = Chunk::new(ChunkKind::EngineState, &references, &payload);
            assert!(decode(&chunk).is_err(), "{bytes} bytes");
        }
        for count in [0, 1, 3, u64::MAX] {
            let mut payload = chunk.payload().to_vec();
            payload[OFFSET_STATES + STATE_BYTES + OFFSET_NEEDS_COUNT..][..size_of::<u64>()]
                .copy_from_slice(&count.to_le_bytes());
            let chunk = Chunk::new(ChunkKind::EngineState, &references, &payload);
            assert!(decode(&chunk).is_err(), "{count}");
        }
    }
}
