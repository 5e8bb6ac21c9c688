//! The bytes of an outline. The authority is docs/format/bucket.md.
//!
//! ```text
//! outline = index-offset entry-count fence-count start-count fence* start*
//! ```
//!
//! What it lies in has a checksum.

use bytes::Bytes;

use crate::field::{u32_at, u64_at};

const OFFSET_INDEX: usize = 0;
const OFFSET_ENTRY_COUNT: usize = OFFSET_INDEX + size_of::<u32>();
const OFFSET_FENCE_COUNT: usize = OFFSET_ENTRY_COUNT + size_of::<u32>();
const OFFSET_START_COUNT: usize = OFFSET_FENCE_COUNT + size_of::<u32>();
const OFFSET_FENCES: usize = OFFSET_START_COUNT + size_of::<u32>();
const _: () = assert!(OFFSET_FENCES == 16); // Stored: change only with a new version.

const FENCE_BYTES: usize = size_of::<u64>();
/// Bytes of a name in an outline.
pub(super) const START_BYTES: usize = 6; // Stored: change only with a new version.

/// Returns the outline of these fields.
pub(super) fn encode_outline(
    index_offset: u32,
    entry_count: u32,
    fences: &[u64],
    starts: &[u8],
) -> Vec<u8> {
    let count = |count: usize| u32::try_from(count).expect("fewer than entries").to_le_bytes();
    let mut bytes = Vec::with_capacity(OFFSET_FENCES + fences.len() * FENCE_BYTES + starts.len());
    bytes.extend_from_slice(&index_offset.to_le_bytes());
    bytes.extend_from_slice(&entry_count.to_le_bytes());
    bytes.extend_from_slice(&count(fences.len()));
    bytes.extend_from_slice(&count(starts.len() / START_BYTES));
    fences.iter().for_each(|fence| bytes.extend_from_slice(&fence.to_le_bytes()));
    bytes.extend_from_slice(starts);
    bytes
}

/// Returns where the index begins, its entries' count, the fences and the starts.
pub(super) fn parse_outline(bytes: &Bytes) -> Option<(u32, u32, Vec<u64>, Bytes)> {
    let count = |offset| usize::try_from(u32_at(bytes, offset)?).ok();
    let fences_end = count(OFFSET_FENCE_COUNT)?.checked_mul(FENCE_BYTES)?;
    let fences_end = fences_end.checked_add(OFFSET_FENCES)?;
    let end = count(OFFSET_START_COUNT)?.checked_mul(START_BYTES)?.checked_add(fences_end)?;
    let fences = bytes.get(OFFSET_FENCES..fences_end)?.chunks_exact(FENCE_BYTES);
    let fences: Option<Vec<u64>> = fences.map(|fence| u64_at(fence, 0)).collect();
    (end == bytes.len()).then_some(())?;
    let (index, entries) = (u32_at(bytes, OFFSET_INDEX)?, u32_at(bytes, OFFSET_ENTRY_COUNT)?);
    Some((index, entries, fences?, bytes.slice(fences_end..)))
}
