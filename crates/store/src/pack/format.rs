//! The bytes of packs. The authority is docs/format/pack.md.
//!
//! ```text
//! pack  = prefix frame* [index]
//! frame = header table stored
//! ```
//!
//! The index is [`crate::pack::table::format`]'s.

use bytes::Bytes;
use twox_hash::XxHash3_64;

use crate::chunk::{CHUNK_BYTES_MAX, Chunk, ChunkHash, HASH_BYTES};
use crate::field::{Magic, PREFIX_BYTES, array_at, checksum_holds, u8_at, u16_at, u32_at, u64_at};
use crate::pack::codec::{Codec, decompress};
use crate::pack::frames::NewChunk;

/// The first bytes of a pack's file.
pub(crate) const PACK_MAGIC: Magic = *b"FRNDPK\x1A\n";
/// The offset of a pack's first frame.
pub(crate) const OFFSET_FIRST_FRAME: u32 = PREFIX_BYTES as u32;

const OFFSET_CODEC: usize = 0;
const OFFSET_FRAME_ZERO: usize = OFFSET_CODEC + size_of::<u8>();
const OFFSET_CHUNK_COUNT: usize = OFFSET_FRAME_ZERO + size_of::<u8>();
const OFFSET_STORED_BYTES: usize = OFFSET_CHUNK_COUNT + size_of::<u16>();
const OFFSET_UNCOMPRESSED_BYTES: usize = OFFSET_STORED_BYTES + size_of::<u32>();
const OFFSET_DICTIONARY: usize = OFFSET_UNCOMPRESSED_BYTES + size_of::<u32>();
const OFFSET_FRAME_CHECKSUM: usize = OFFSET_DICTIONARY + size_of::<u32>();
/// Bytes of a frame before its table.
pub(crate) const FRAME_HEADER_BYTES: usize = OFFSET_FRAME_CHECKSUM + size_of::<u64>();
const _: () = assert!(FRAME_HEADER_BYTES == 24); // Stored: change only with a new version.

const OFFSET_ENTRY_CHUNK_BYTES: usize = HASH_BYTES;
pub(crate) const TABLE_ENTRY_BYTES: usize = OFFSET_ENTRY_CHUNK_BYTES + size_of::<u32>();
const _: () = assert!(TABLE_ENTRY_BYTES == 36); // Stored: change only with a new version.

/// Marks, in a length, a chunk that refers to others. Lengths stay far below it.
const REFERS: u32 = 1 << 31;
const _: () = assert!(CHUNK_BYTES_MAX + FRAME_HEADER_BYTES + MAX_TABLE_BYTES < REFERS as usize);
/// The greatest number of chunks of a frame.
pub(crate) const MAX_FRAME_CHUNKS: usize = u16::MAX as usize;
const MAX_TABLE_BYTES: usize = MAX_FRAME_CHUNKS * TABLE_ENTRY_BYTES;

/// The header of a frame.
pub(crate) struct FrameHead<'a> {
    pub(crate) codec: Codec,
    pub(crate) uncompressed: usize,
    pub(crate) chunks: &'a [&'a Chunk],
}

impl FrameHead<'_> {
    /// Writes header, table and checksum into `frame`, whose stored bytes are in their place.
    pub(crate) fn write(&self, frame: &mut [u8]) {
        let (head, stored) =
            frame.split_at_mut(FRAME_HEADER_BYTES + self.chunks.len() * TABLE_ENTRY_BYTES);
        let count = u16::try_from(self.chunks.len()).expect("a group has fewer chunks");
        let (header, table) = head.split_at_mut(FRAME_HEADER_BYTES);
        header.fill(0);
        header[OFFSET_CODEC] = self.codec as u8;
        put(header, OFFSET_CHUNK_COUNT, &count.to_le_bytes());
        put(header, OFFSET_STORED_BYTES, &(stored.len() as u32).to_le_bytes());
        put(header, OFFSET_UNCOMPRESSED_BYTES, &(self.uncompressed as u32).to_le_bytes());
        for (entry, chunk) in table.chunks_exact_mut(TABLE_ENTRY_BYTES).zip(self.chunks) {
            let bytes = flagged(chunk.encoded().len() as u32, chunk.reference_count() > 0);
            put(entry, 0, &chunk.hash().0);
            put(entry, OFFSET_ENTRY_CHUNK_BYTES, &bytes.to_le_bytes());
        }
        let checksum = frame_checksum(frame);
        put(frame, OFFSET_FRAME_CHECKSUM, &checksum.to_le_bytes());
    }
}

fn put(bytes: &mut [u8], offset: usize, field: &[u8]) {
    bytes[offset..offset + field.len()].copy_from_slice(field);
}

/// `bytes` with the mark of a chunk that refers to others.
fn flagged(bytes: u32, refers: bool) -> u32 {
    assert!(bytes & REFERS == 0);
    if refers { bytes | REFERS } else { bytes }
}

/// Covers the whole frame but the checksum itself. `frame` holds at least a header.
fn frame_checksum(frame: &[u8]) -> u64 {
    let seed = XxHash3_64::oneshot(&frame[..OFFSET_FRAME_CHECKSUM]);
    XxHash3_64::oneshot_with_seed(seed, &frame[FRAME_HEADER_BYTES..])
}

/// Returns how long the frame is that begins with `header`, by its own word.
pub(crate) fn frame_bytes(header: &[u8]) -> Option<usize> {
    Codec::from_byte(u8_at(header, OFFSET_CODEC)?)?;
    let chunk_count = usize::from(u16_at(header, OFFSET_CHUNK_COUNT)?);
    let stored = usize::try_from(u32_at(header, OFFSET_STORED_BYTES)?).ok()?;
    if chunk_count == 0 || CHUNK_BYTES_MAX < stored {
        return None;
    }
    Some(FRAME_HEADER_BYTES + chunk_count * TABLE_ENTRY_BYTES + stored)
}

/// The chunks of the frame that begins with `header`, by its own word; `read` reads so many bytes
/// of it.
pub(crate) fn claimed_chunks(
    header: &[u8],
    read: impl FnOnce(usize) -> Option<Vec<u8>>,
) -> Option<Vec<NewChunk>> {
    let chunk_count = usize::from(u16_at(header, OFFSET_CHUNK_COUNT)?);
    let head = read(FRAME_HEADER_BYTES + chunk_count * TABLE_ENTRY_BYTES)?;
    let table = head.get(FRAME_HEADER_BYTES..)?;
    table.chunks_exact(TABLE_ENTRY_BYTES).map(|entry| table_chunk(entry).map(|it| it.0)).collect()
}

/// The chunk of an entry of a frame's table, and how long it is.
fn table_chunk(entry: &[u8]) -> Option<(NewChunk, usize)> {
    let bytes = u32_at(entry, OFFSET_ENTRY_CHUNK_BYTES)?;
    let chunk = NewChunk { hash: ChunkHash(array_at(entry, 0)?), refers: bytes & REFERS != 0 };
    Some((chunk, usize::try_from(bytes & !REFERS).ok()?))
}

/// The first chunk of the frame that `bytes` begin with, by its own word.
pub(crate) fn frame_name(bytes: &[u8]) -> Option<ChunkHash> {
    array_at(bytes, FRAME_HEADER_BYTES).map(ChunkHash)
}

/// Whether the frame that `bytes` begin with holds several chunks, by its own word.
pub(crate) fn is_group(bytes: &[u8]) -> bool {
    u16_at(bytes, OFFSET_CHUNK_COUNT).is_some_and(|count| count > 1)
}

/// Whether a frame may begin with `header`: cheap, and true of few other bytes.
pub(crate) fn may_begin_frame(header: &[u8]) -> bool {
    u8_at(header, OFFSET_FRAME_ZERO) == Some(0)
        && u32_at(header, OFFSET_DICTIONARY) == Some(0)
        && frame_bytes(header).is_some()
}

/// A frame whose checksum is right.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    codec: Codec,
    uncompressed_bytes: usize,
    table: &'a [u8],
    stored: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads the frame that `bytes` are, exactly.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Frame<'a>, &'static str> {
        let whole = frame_bytes(bytes).ok_or("no frame begins here")?;
        if bytes.len() != whole {
            return Err("a frame is not as long as its header says");
        }
        let holds = |checksum| checksum_holds(checksum, frame_checksum(bytes));
        if !u64_at(bytes, OFFSET_FRAME_CHECKSUM).is_some_and(holds) {
            return Err("checksum of a frame is wrong");
        }
        Frame::parse_checked(bytes).ok_or("a frame contradicts itself")
    }

    fn parse_checked(bytes: &'a [u8]) -> Option<Frame<'a>> {
        let codec = Codec::from_byte(u8_at(bytes, OFFSET_CODEC)?)?;
        let chunk_count = usize::from(u16_at(bytes, OFFSET_CHUNK_COUNT)?);
        let uncompressed = usize::try_from(u32_at(bytes, OFFSET_UNCOMPRESSED_BYTES)?).ok()?;
        let body = bytes.get(FRAME_HEADER_BYTES..)?;
        let (table, stored) = body.split_at_checked(chunk_count * TABLE_ENTRY_BYTES)?;
        let reserved = u8_at(bytes, OFFSET_FRAME_ZERO)? == 0;
        let no_dictionary = u32_at(bytes, OFFSET_DICTIONARY)? == 0;
        let raw_fits = codec != Codec::Raw || stored.len() == uncompressed;
        let frame = Frame { codec, uncompressed_bytes: uncompressed, table, stored };
        let sum: usize = frame.chunks().map(|(_, bytes)| bytes).sum();
        let sound = reserved && no_dictionary && raw_fits && sum == uncompressed;
        (sound && uncompressed <= CHUNK_BYTES_MAX).then_some(frame)
    }

    /// The frame's chunks and how long each is, in the order in which they lie.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (NewChunk, usize)> {
        self.table.chunks_exact(TABLE_ENTRY_BYTES).filter_map(table_chunk)
    }

    /// Returns the encoded bytes of all the frame's chunks, in the order in which they lie. Of
    /// bytes that aren't compressed there is a copy, unless the frame was parsed from `whole`: then
    /// they are shared with it.
    pub(crate) fn decode(
        &self,
        whole: Option<&Bytes>,
    ) -> Result<impl Iterator<Item = (NewChunk, Bytes)>, &'static str> {
        let mut rest = match whole {
            Some(whole) if self.codec == Codec::Raw => whole.slice_ref(self.stored),
            _ => decompress(self.codec, self.stored, self.uncompressed_bytes)
                .ok_or("a frame can't be decompressed")?
                .into(),
        };
        // Their lengths add up to all of it: that was checked when the frame was parsed. Chunks of
        // a group are copied apart, since one that stays in a cache must not keep all of them in
        // memory.
        let is_group = self.table.len() > TABLE_ENTRY_BYTES;
        let split = move |(chunk, bytes): (NewChunk, usize)| {
            let part = rest.split_to(bytes);
            (chunk, if is_group { Bytes::copy_from_slice(&part) } else { part })
        };
        Ok(self.chunks().map(split))
    }
}

#[cfg(test)]
mod tests;
