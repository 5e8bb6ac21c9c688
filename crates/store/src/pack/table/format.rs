//! The bytes of the index that seals a pack. The authority is docs/format/pack.md.
//!
//! ```text
//! index = magic page+ trailer
//! page  = entry{1..=102} checksum
//! ```
//!
//! Entries ascend by name, and every page but the last is full: so one page is found, read and
//! checked by itself.

use std::cmp::Ordering;

use twox_hash::XxHash3_64;

use crate::chunk::{CHUNK_BYTES_MAX, ChunkHash, HASH_BYTES};
use crate::field::{Magic, array_at, checksum_holds, u32_at, u64_at};
use crate::interpolation::count_before;
use crate::location::{FrameOffset, PackedChunk};
use crate::pack::format::OFFSET_FIRST_FRAME;

/// No frame begins like this: there is no such codec.
pub(crate) const INDEX_MAGIC: Magic = *b"\xF5FRNDIX\n";
const OFFSET_PAGES: usize = size_of::<Magic>();

const OFFSET_ENTRY_FRAME_OFFSET: usize = HASH_BYTES;
const OFFSET_ENTRY_FRAME_BYTES: usize = OFFSET_ENTRY_FRAME_OFFSET + size_of::<u32>();
const ENTRY_BYTES: usize = OFFSET_ENTRY_FRAME_BYTES + size_of::<u32>();
const _: () = assert!(ENTRY_BYTES == 40); // Stored: change only with a new version.

/// Entries of a page, but for the last page: as many as fit into 4 KiB.
pub(crate) const PAGE_ENTRY_COUNT: usize = 102;
const CHECKSUM_BYTES: usize = size_of::<u64>();
const PAGE_BYTES: usize = PAGE_ENTRY_COUNT * ENTRY_BYTES + CHECKSUM_BYTES;
const _: () = assert!(PAGE_BYTES == 4088); // Stored: change only with a new version.

const OFFSET_TRAILER_INDEX: usize = 0;
const OFFSET_TRAILER_ENTRY_COUNT: usize = OFFSET_TRAILER_INDEX + size_of::<u32>();
const OFFSET_TRAILER_CHECKSUM: usize = OFFSET_TRAILER_ENTRY_COUNT + size_of::<u32>();
/// Bytes at the end of a sealed pack that hold where its index is.
pub(crate) const TRAILER_BYTES: usize = OFFSET_TRAILER_CHECKSUM + CHECKSUM_BYTES;
const _: () = assert!(TRAILER_BYTES == 16); // Stored: change only with a new version.

/// Marks, in the length of a frame, a chunk that refers to others. Lengths stay far below it.
const REFERS: u32 = 1 << 31;
const _: () = assert!(CHUNK_BYTES_MAX < REFERS as usize / 2);

/// Returns where page `page` lies in a pack whose index begins at `index_offset` and has
/// `entry_count` entries, and its bytes.
pub(crate) fn page_place(index_offset: u32, entry_count: u32, page: u32) -> (u64, usize) {
    let before = page as usize * PAGE_ENTRY_COUNT;
    let entries = (entry_count as usize - before).min(PAGE_ENTRY_COUNT);
    let offset = u64::from(index_offset) + (OFFSET_PAGES + page as usize * PAGE_BYTES) as u64;
    (offset, entries * ENTRY_BYTES + CHECKSUM_BYTES)
}

/// Returns the index that seals a pack whose frames end at `offset`.
pub(crate) fn encode_index(offset: u32, entries: &mut [PackedChunk]) -> Vec<u8> {
    entries.sort_unstable();
    let count = u32::try_from(entries.len()).expect("a pack below 4 GiB holds fewer chunks");
    let mut index = Vec::with_capacity(index_bytes(entries.len()));
    index.extend_from_slice(&INDEX_MAGIC);
    for page in entries.chunks(PAGE_ENTRY_COUNT) {
        let start = index.len();
        for entry in page {
            let refers = if entry.refers { REFERS } else { 0 };
            index.extend_from_slice(&entry.hash.0);
            index.extend_from_slice(&entry.place.offset.to_le_bytes());
            index.extend_from_slice(&(entry.place.bytes | refers).to_le_bytes());
        }
        let checksum = page_checksum(u64::from(offset) + start as u64, &index[start..]);
        index.extend_from_slice(&checksum.to_le_bytes());
    }
    let trailer_start = index.len();
    index.extend_from_slice(&offset.to_le_bytes());
    index.extend_from_slice(&count.to_le_bytes());
    let checksum = trailer_checksum(&index[trailer_start..]);
    index.extend_from_slice(&checksum.to_le_bytes());
    assert_eq!(index.len(), index_bytes(entries.len()));
    index
}

/// Bytes of an index of so many entries.
pub(crate) fn index_bytes(entry_count: usize) -> usize {
    let pages = entry_count.div_ceil(PAGE_ENTRY_COUNT);
    OFFSET_PAGES + entry_count * ENTRY_BYTES + pages * CHECKSUM_BYTES + TRAILER_BYTES
}

/// Covers a page's entries, and where it lies in its pack.
fn page_checksum(offset: u64, entries: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(offset, entries)
}

/// Covers `fields`, the trailer without its checksum, and the magic, which is read with it.
fn trailer_checksum(fields: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(XxHash3_64::oneshot(&INDEX_MAGIC), fields)
}

/// Returns where the index begins that ends with `trailer`, in a pack of `pack_bytes`, and how many
/// entries it has.
pub(crate) fn parse_trailer(trailer: &[u8], pack_bytes: u64) -> Option<(u32, u32)> {
    let offset = u32_at(trailer, OFFSET_TRAILER_INDEX)?;
    let count = u32_at(trailer, OFFSET_TRAILER_ENTRY_COUNT)?;
    let bytes = index_bytes(usize::try_from(count).ok()?) as u64;
    let checksum = u64_at(trailer, OFFSET_TRAILER_CHECKSUM)?;
    let sound = checksum_holds(checksum, trailer_checksum(&trailer[..OFFSET_TRAILER_CHECKSUM]))
        && 0 < count
        && OFFSET_FIRST_FRAME <= offset
        && u64::from(offset) + bytes == pack_bytes;
    sound.then_some((offset, count))
}

/// Returns the entries of the page that `page` is, with its checksum, and that lies at `offset`.
pub(crate) fn check_page(page: &[u8], offset: u64) -> Result<&[u8], &'static str> {
    let (entries, checksum) = page.split_last_chunk().ok_or("a page of an index is too short")?;
    if !checksum_holds(u64::from_le_bytes(*checksum), page_checksum(offset, entries)) {
        return Err("checksum of a page of an index is wrong");
    }
    Ok(entries)
}

/// The chunks that `entries`, which are a page's, name.
pub(crate) fn page_chunks(entries: &[u8]) -> impl Iterator<Item = PackedChunk> {
    entries.chunks_exact(ENTRY_BYTES).filter_map(parse_entry)
}

/// Finds `hash` among `entries`, which are a page's; `guess` returns about where among so many.
/// Returns its position in the page, too.
pub(crate) fn search_page(
    entries: &[u8],
    hash: ChunkHash,
    guess: impl FnOnce(usize) -> usize,
) -> Option<(usize, PackedChunk)> {
    let (entries, _) = entries.as_chunks::<ENTRY_BYTES>();
    let head = |name: &[u8]| name.first_chunk().map_or(0, |head| u64::from_be_bytes(*head));
    let wanted = head(&hash.0);
    let is_before = |position: usize| {
        entries.get(position).is_some_and(|entry| match head(entry).cmp(&wanted) {
            Ordering::Equal => entry[..HASH_BYTES] < hash.0[..],
            order => order.is_lt(),
        })
    };
    let position = count_before(entries.len(), guess(entries.len()), is_before);
    let found = parse_entry(entries.get(position)?).filter(|found| found.hash == hash)?;
    Some((position, found))
}

fn parse_entry(entry: &[u8]) -> Option<PackedChunk> {
    let bytes = u32_at(entry, OFFSET_ENTRY_FRAME_BYTES)?;
    let place =
        FrameOffset { offset: u32_at(entry, OFFSET_ENTRY_FRAME_OFFSET)?, bytes: bytes & !REFERS };
    Some(PackedChunk { hash: ChunkHash(array_at(entry, 0)?), place, refers: bytes & REFERS != 0 })
}

/// Reads the index that begins at `offset` of its pack and is `index`, exactly. A fault is reported
/// with its place in the pack.
pub(crate) fn parse_index(
    index: &[u8],
    offset: u64,
) -> Result<Vec<PackedChunk>, (u64, &'static str)> {
    let end = index.len().checked_sub(TRAILER_BYTES).ok_or((offset, "an index is too short"))?;
    if !index.starts_with(&INDEX_MAGIC) {
        return Err((offset, "an index does not begin as one does"));
    }
    let pages = index.get(OFFSET_PAGES..end).ok_or((offset, "an index is too short"))?;
    let mut found: Vec<PackedChunk> = Vec::with_capacity(pages.len() / ENTRY_BYTES);
    let mut page_offset = offset + OFFSET_PAGES as u64;
    for page in pages.chunks(PAGE_BYTES) {
        let at = page_offset;
        let entries = check_page(page, at).map_err(|what| (at, what))?;
        for entry in entries.chunks_exact(ENTRY_BYTES) {
            let entry = parse_entry(entry).ok_or((at, "an index entry is too short"))?;
            if entry.place.offset < OFFSET_FIRST_FRAME || offset < entry.place.end() {
                return Err((at, "an index names a frame outside its pack"));
            }
            if found.last().is_some_and(|last| entry.hash < last.hash) {
                return Err((at, "an index is not in order"));
            }
            found.push(entry);
        }
        page_offset += page.len() as u64;
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
