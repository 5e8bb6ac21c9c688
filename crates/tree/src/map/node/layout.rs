//! The layout of a map's node: where its parts lie, how they are checked and written.
//!
//! The authority is docs/format/map-node.md.

use std::ops::Range;

use frond_store::{Chunk, ChunkHash, ChunkKind};

use super::{EntryRef, MapChild};
use crate::format::KEY_BYTES_MAX;
use crate::map::Summary;
use crate::value::ContentRef;

pub(super) const OFFSET_LEVEL: usize = 0;
pub(super) const OFFSET_FLAGS: usize = OFFSET_LEVEL + size_of::<u8>();
const OFFSET_RESERVED: usize = OFFSET_FLAGS + size_of::<u8>();
pub(super) const OFFSET_ENTRY_COUNT: usize = OFFSET_RESERVED + size_of::<u16>();
pub(super) const OFFSET_COUNT: usize = OFFSET_ENTRY_COUNT + size_of::<u32>();
pub(super) const OFFSET_KEY_BYTES: usize = OFFSET_COUNT + size_of::<u64>();
pub(super) const OFFSET_VALUE_BYTES: usize = OFFSET_KEY_BYTES + size_of::<u64>();
/// The offset table follows: a `u32` an entry.
pub(in crate::map) const HEADER_BYTES: usize = OFFSET_VALUE_BYTES + size_of::<u64>();
const _: () = assert!(HEADER_BYTES == 32); // Stored: change only with a new version.
pub(in crate::map) const OFFSET_TABLE_ENTRY_BYTES: usize = size_of::<u32>();

// An entry begins alike on all levels.
pub(super) const ENTRY_KEY_BYTES: usize = 0;
pub(super) const ENTRY_FLAGS: usize = ENTRY_KEY_BYTES + size_of::<u16>();
pub(super) const ENTRY_TAG: usize = ENTRY_FLAGS + size_of::<u8>();
const ENTRY_HEADER_BYTES: usize = ENTRY_TAG + size_of::<u8>();
// In a leaf the key and the content follow; content out of line is:
pub(in crate::map) const LEAF_KEY: usize = ENTRY_HEADER_BYTES;
const OUTLINE_REFERENCE: usize = 0;
const OUTLINE_BYTES: usize = OUTLINE_REFERENCE + size_of::<u32>();
const OUTLINE_CONTENT_BYTES: usize = OUTLINE_BYTES + size_of::<u64>();
// In an interior node the sums of the subtree, then the key.
pub(super) const CHILD_COUNT: usize = ENTRY_HEADER_BYTES;
pub(super) const CHILD_KEY_BYTES: usize = CHILD_COUNT + size_of::<u64>();
pub(super) const CHILD_VALUE_BYTES: usize = CHILD_KEY_BYTES + size_of::<u64>();
pub(in crate::map) const CHILD_KEY: usize = CHILD_VALUE_BYTES + size_of::<u64>();
const _: () = assert!(LEAF_KEY == 4 && CHILD_KEY == 28 && OUTLINE_CONTENT_BYTES == 12);
const _: () = assert!(KEY_BYTES_MAX <= u16::MAX as usize);

// The place of a leaf's content. Stored: never renumber. Interior entries have zero.
pub(super) const TAG_INLINE: u8 = 0;
const TAG_CHUNK: u8 = 1;
const TAG_SEQUENCE: u8 = 2;

/// Checks that the header is a map node's, that the entries lie inside the chunk without gaps, and
/// that each has room for its fixed part.
pub(super) fn check_table(chunk: &Chunk) -> Result<(), String> {
    let payload = chunk.payload();
    if chunk.kind() != ChunkKind::MapNode {
        return Err(format!("a {:?}, not a node of a map", chunk.kind()));
    }
    if payload.len() < HEADER_BYTES {
        return Err(format!("a map's node of {} bytes", payload.len()));
    }
    if u16_at(payload, OFFSET_RESERVED) != 0 {
        return Err("reserved bytes of a map's node are not zero".to_owned());
    }
    let level = payload[OFFSET_LEVEL];
    let entry_count = u32_at(payload, OFFSET_ENTRY_COUNT) as usize;
    let entries_start = entry_count
        .checked_mul(OFFSET_TABLE_ENTRY_BYTES)
        .and_then(|bytes| bytes.checked_add(HEADER_BYTES))
        .filter(|start| *start <= payload.len())
        .ok_or_else(|| format!("{entry_count} entries exceed the node"))?;
    if level > 0 && (entry_count == 0 || entry_count != chunk.reference_count()) {
        let references = chunk.reference_count();
        return Err(format!("{entry_count} children, but {references} references"));
    }
    let entry_bytes_min = if level == 0 { LEAF_KEY } else { CHILD_KEY };
    if offsets_fit(&payload[HEADER_BYTES..entries_start], payload.len(), entry_bytes_min) {
        return Ok(());
    }
    Err("entries that overlap, leave gaps or lie outside of the node".to_owned())
}

/// Checks that the first entry begins behind `table`, that each has room for its fixed part before
/// the next one, and the last one before the node's end.
///
/// Without a branch an entry, so that the compiler takes many at once: each node on the way of each
/// point read passes here (a quarter of a read by index before).
fn offsets_fit(table: &[u8], payload_bytes: usize, entry_bytes_min: usize) -> bool {
    let (offsets, _) = table.as_chunks::<OFFSET_TABLE_ENTRY_BYTES>();
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
        return payload_bytes == HEADER_BYTES;
    };
    let offset = |bytes: &[u8; OFFSET_TABLE_ENTRY_BYTES]| u64::from(u32::from_le_bytes(*bytes));
    let mut ordered = true;
    for (this, next) in offsets.iter().zip(&offsets[1..]) {
        ordered &= offset(this) + entry_bytes_min as u64 <= offset(next);
    }
    ordered
        && offset(first) == (HEADER_BYTES + table.len()) as u64
        && offset(last) + entry_bytes_min as u64 <= payload_bytes as u64
}

/// Checks an entry that has room for its fixed part; returns its place in the references if its
/// value lies out of line.
pub(super) fn check_entry(entry: &[u8], level: u8) -> Result<Option<usize>, &'static str> {
    let key_bytes = u16_at(entry, ENTRY_KEY_BYTES) as usize;
    if key_bytes > KEY_BYTES_MAX {
        return Err("key too long");
    }
    let tag = entry[ENTRY_TAG];
    if level > 0 {
        let exact = entry.len() == CHILD_KEY + key_bytes;
        return if exact && tag == 0 { Ok(None) } else { Err("not a child's shape") };
    }
    let content = entry.get(LEAF_KEY + key_bytes..).ok_or("key exceeds the entry")?;
    match tag {
        TAG_INLINE => Ok(None),
        TAG_CHUNK | TAG_SEQUENCE if content.len() == OUTLINE_CONTENT_BYTES => {
            Ok(Some(u32_at(content, OUTLINE_REFERENCE) as usize))
        }
        TAG_CHUNK | TAG_SEQUENCE => Err("not a reference's length"),
        _ => Err("unknown place of a value"),
    }
}

pub(super) fn entry_range(payload: &[u8], entry_count: usize, position: usize) -> Range<usize> {
    let place = HEADER_BYTES + position * OFFSET_TABLE_ENTRY_BYTES;
    let start = u32_at(payload, place) as usize;
    let end = if position + 1 < entry_count {
        u32_at(payload, place + OFFSET_TABLE_ENTRY_BYTES) as usize
    } else {
        payload.len()
    };
    start..end
}

/// Reads an entry of a leaf, which is checked; `reference` gives the references of what has it.
#[inline]
pub(in crate::map) fn read_entry(
    entry: &[u8],
    reference: impl FnOnce(usize) -> ChunkHash,
) -> EntryRef<'_> {
    let (key, content) = entry[LEAF_KEY..].split_at(u16_at(entry, ENTRY_KEY_BYTES) as usize);
    let reference = || reference(u32_at(content, OUTLINE_REFERENCE) as usize);
    let content = match entry[ENTRY_TAG] {
        TAG_INLINE => ContentRef::Inline(content),
        TAG_CHUNK => ContentRef::Chunk { hash: reference(), bytes: u64_at(content, OUTLINE_BYTES) },
        _ => ContentRef::Sequence { root: reference(), bytes: u64_at(content, OUTLINE_BYTES) },
    };
    EntryRef { key, flags: entry[ENTRY_FLAGS], content }
}

/// Appends an entry of a leaf; `reference` is the place in the chunk's references of what lies out
/// of line.
pub(in crate::map) fn write_entry(body: &mut Vec<u8>, entry: &EntryRef<'_>, reference: usize) {
    let (tag, outline_bytes) = match entry.content {
        ContentRef::Inline(_) => (TAG_INLINE, 0),
        ContentRef::Chunk { bytes, .. } => (TAG_CHUNK, bytes),
        ContentRef::Sequence { bytes, .. } => (TAG_SEQUENCE, bytes),
    };
    write_entry_header(body, entry.key, entry.flags, tag);
    body.extend_from_slice(entry.key);
    if let ContentRef::Inline(bytes) = entry.content {
        body.extend_from_slice(bytes);
    } else {
        let reference = u32::try_from(reference).expect("a chunk holds far fewer references");
        body.extend_from_slice(&reference.to_le_bytes());
        body.extend_from_slice(&outline_bytes.to_le_bytes());
    }
}

/// Appends an entry of an interior node.
pub(in crate::map) fn write_child(body: &mut Vec<u8>, child: &MapChild) {
    write_entry_header(body, &child.key, child.summary.flags, 0);
    body.extend_from_slice(&child.summary.count.to_le_bytes());
    body.extend_from_slice(&child.summary.key_bytes.to_le_bytes());
    body.extend_from_slice(&child.summary.value_bytes.to_le_bytes());
    body.extend_from_slice(&child.key);
}

fn write_entry_header(body: &mut Vec<u8>, key: &[u8], flags: u8, tag: u8) {
    let key_bytes = u16::try_from(key.len()).expect("keys are at most 8 KB");
    let [low, high] = key_bytes.to_le_bytes();
    body.extend_from_slice(&[low, high, flags, tag]);
}

/// Lays out what stands before the entries: header and offset table (`starts` count from the
/// first entry's beginning).
pub(in crate::map) fn encode_head(
    level: u8,
    summary: &Summary,
    starts: &[u32],
    head: &mut Vec<u8>,
) {
    let entries_start = HEADER_BYTES + starts.len() * OFFSET_TABLE_ENTRY_BYTES;
    let shift = u32::try_from(entries_start).expect("a node is far smaller than 4 GB");
    let entry_count = u32::try_from(starts.len()).expect("a node is far smaller than 4 GB");
    head.clear();
    head.extend_from_slice(&[level, summary.flags, 0, 0]);
    head.extend_from_slice(&entry_count.to_le_bytes());
    head.extend_from_slice(&summary.count.to_le_bytes());
    head.extend_from_slice(&summary.key_bytes.to_le_bytes());
    head.extend_from_slice(&summary.value_bytes.to_le_bytes());
    head.resize(entries_start, 0);
    let (places, _) = head[HEADER_BYTES..].as_chunks_mut::<OFFSET_TABLE_ENTRY_BYTES>();
    for (place, start) in places.iter_mut().zip(starts) {
        *place = (start + shift).to_le_bytes();
    }
}

pub(super) fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, offset))
}

pub(super) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, offset))
}

pub(super) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, offset))
}

fn array_at<const BYTES: usize>(bytes: &[u8], offset: usize) -> [u8; BYTES] {
    bytes[offset..offset + BYTES].try_into().expect("the slice has this length")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of these offsets before a payload that ends at `payload_bytes`.
    fn check(offsets: &[u32], payload_bytes: usize, expected: bool) {
        let table: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
        assert_eq!(offsets_fit(&table, payload_bytes, LEAF_KEY), expected, "{offsets:?}");
    }

    #[test]
    fn offsets_leave_no_gap_and_have_room() {
        let first = (HEADER_BYTES + 3 * OFFSET_TABLE_ENTRY_BYTES) as u32;
        check(&[first, first + 4, first + 9], first as usize + 13, true);
        check(&[first, first + 4, first + 9], first as usize + 12, false);
        check(&[first + 1, first + 5, first + 9], first as usize + 20, false);
        check(&[first, first + 3, first + 9], first as usize + 20, false);
        check(&[first, first + 9, first + 4], first as usize + 20, false);
        check(&[first, first + 4, u32::MAX], first as usize + 20, false);
        check(&[first, u32::MAX, 3], first as usize + 20, false);
        check(&[], HEADER_BYTES, true);
        check(&[], HEADER_BYTES + 1, false);
    }
}
