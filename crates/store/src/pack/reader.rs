//! Reads packs: one frame, the index of a sealed pack, or an open pack from its beginning.

use bytes::Bytes;

use super::Pack;
use super::format::{
    FRAME_HEADER_BYTES, Frame, OFFSET_FIRST_FRAME, PACK_MAGIC, frame_bytes, may_begin_frame,
};
use super::frames::NewChunk;
use super::table::PackTable;
use super::table::format::{INDEX_MAGIC, TRAILER_BYTES, parse_index, parse_trailer};
use crate::chunk::{Chunk, ChunkHash};
use crate::error::StoreError;
use crate::field::{PREFIX_BYTES, check_prefix};
use crate::location::{FrameOffset, PackedChunk};

/// A scan reads this much at once, or one frame if that is longer.
const SCAN_BYTES: usize = 1 << 20;

/// Checks that the file begins as a pack of our version.
pub(crate) fn check_header(pack: &Pack) -> Result<(), StoreError> {
    check_prefix(&pack.read(0, PREFIX_BYTES)?, PACK_MAGIC, &pack.name)
}

/// The proof that a chunk's name is that of its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// By the frame's checksum, which covers the name and the stored bytes: for reading what we
    /// wrote.
    ByChecksum,
    /// By hashing as well: for a search for damage, and before chunks are written again.
    ByHash,
}

/// Reads all chunks of the frame at `place`.
pub(crate) fn read_frame(
    pack: &Pack,
    place: FrameOffset,
    naming: Naming,
) -> Result<Vec<Chunk>, StoreError> {
    let offset = u64::from(place.offset);
    decode_frame(pack, offset, &pack.read(offset, place.bytes as usize)?, naming)
}

/// Takes all chunks out of the frame that `bytes` are and that lies at `offset`.
pub(crate) fn decode_frame(
    pack: &Pack,
    offset: u64,
    bytes: &[u8],
    naming: Naming,
) -> Result<Vec<Chunk>, StoreError> {
    decode(pack, offset, bytes, None, naming)
}

/// As `decode_frame`, for a caller that reads a chunk and lets it go: it keeps all of `bytes` in
/// memory, if it isn't compressed.
pub(crate) fn decode_frame_lent(
    pack: &Pack,
    offset: u64,
    bytes: &Bytes,
) -> Result<Vec<Chunk>, StoreError> {
    decode(pack, offset, bytes, Some(bytes), Naming::ByChecksum)
}

fn decode(
    pack: &Pack,
    offset: u64,
    bytes: &[u8],
    whole: Option<&Bytes>,
    naming: Naming,
) -> Result<Vec<Chunk>, StoreError> {
    let frame = Frame::parse(bytes).map_err(|what| pack.damaged(offset, what))?;
    let decoded = frame.decode(whole).map_err(|what| pack.damaged(offset, what))?;
    decoded.map(|(expected, encoded)| named(pack, offset, expected, encoded, naming)).collect()
}

/// The chunk that `encoded` is, if it is the one that its frame, at `offset`, says.
fn named(
    pack: &Pack,
    offset: u64,
    expected: NewChunk,
    encoded: Bytes,
    naming: Naming,
) -> Result<Chunk, StoreError> {
    let damaged = |what: &str| pack.damaged(offset, what);
    let place = (&pack.name[..], offset);
    let chunk = match naming {
        Naming::ByChecksum => Chunk::from_checked(expected.hash, encoded, place)?,
        Naming::ByHash => Chunk::from_encoded(encoded, place)?,
    };
    if chunk.hash() != expected.hash {
        let found = chunk.hash();
        return Err(damaged(&format!("expected chunk {}, found {found}", expected.hash)));
    }
    if (chunk.reference_count() > 0) != expected.refers {
        return Err(damaged(&format!("wrong about the references of chunk {}", expected.hash)));
    }
    Ok(chunk)
}

/// The chunk `hash` among those of the frame at `offset`.
pub(crate) fn pick(
    pack: &Pack,
    offset: u64,
    chunks: &[Chunk],
    hash: ChunkHash,
) -> Result<Chunk, StoreError> {
    let found = chunks.iter().find(|chunk| chunk.hash() == hash).cloned();
    found.ok_or_else(|| pack.damaged(offset, &format!("the frame does not hold chunk {hash}")))
}

/// Reads the whole index of a sealed pack, which is `pack_bytes` long, and checks it and the
/// header. Afterwards the pack can be searched.
pub(crate) fn read_index(pack: &Pack, pack_bytes: u64) -> Result<Vec<PackedChunk>, StoreError> {
    check_header(pack)?;
    read_index_alone(pack, pack_bytes)
}

/// As `read_index`, whatever the header is.
pub(crate) fn read_index_alone(
    pack: &Pack,
    pack_bytes: u64,
) -> Result<Vec<PackedChunk>, StoreError> {
    let trailer_offset = pack_bytes.saturating_sub(TRAILER_BYTES as u64);
    let trailer = pack.read(trailer_offset, TRAILER_BYTES)?;
    let (offset, _) = parse_trailer(&trailer, pack_bytes)
        .ok_or_else(|| pack.damaged(trailer_offset, "the end of a sealed pack names no index"))?;
    let index_offset = u64::from(offset);
    let index = pack.read(index_offset, (pack_bytes - index_offset) as usize)?;
    let entries = parse_index(&index, index_offset).map_err(|(at, what)| pack.damaged(at, what))?;
    pack.table.get_or_init(|| PackTable::new(pack_bytes, offset, &entries));
    Ok(entries)
}

/// The result of scanning an open pack.
pub(crate) struct Scan {
    /// The chunks, in the order in which they lie.
    pub(crate) entries: Vec<PackedChunk>,
    /// The end of the last whole frame.
    pub(crate) end: u64,
    /// The reason why there is no frame at `end`, if the file goes on there.
    pub(crate) rest: Option<&'static str>,
}

/// Reads frames from `offset`, or from where the first one begins, until one isn't whole.
pub(crate) fn scan_frames(window: &mut Window<'_>, offset: u64) -> Result<Scan, StoreError> {
    let end = offset.max(u64::from(OFFSET_FIRST_FRAME));
    let mut scan = Scan { entries: Vec::new(), end, rest: None };
    while scan.end < window.pack_bytes {
        let frame = match window.frame(scan.end)? {
            FrameBytes::Whole(frame) => frame,
            FrameBytes::Absent(why) => {
                scan.rest = Some(why);
                break;
            }
        };
        let bytes = u32::try_from(frame.len()).expect("a frame lies inside its pack");
        let offset = u32::try_from(scan.end).expect("checked against the pack's bytes");
        match Frame::parse(frame) {
            Ok(frame) => {
                let place = FrameOffset { offset, bytes };
                scan.entries.extend(frame.chunks().map(|(chunk, _)| PackedChunk {
                    hash: chunk.hash,
                    place,
                    refers: chunk.refers,
                }));
            }
            Err(what) => {
                scan.rest = Some(what);
                break;
            }
        }
        scan.end += u64::from(bytes);
    }
    Ok(scan)
}

/// The bytes where a frame may begin.
enum FrameBytes<'a> {
    /// As many bytes as its header says.
    Whole(&'a [u8]),
    /// No frame: why not.
    Absent(&'static str),
}

/// A part of a pack in memory, which moves forward.
pub(crate) struct Window<'a> {
    pack: &'a Pack,
    offset: u64,
    bytes: Vec<u8>,
    pack_bytes: u64,
}

impl<'a> Window<'a> {
    /// A window onto the first `pack_bytes` of a pack.
    pub(crate) fn new(pack: &'a Pack, pack_bytes: u64) -> Window<'a> {
        // Positions are 32 bits: what lies beyond them was never written by us.
        let pack_bytes = pack_bytes.min(u64::from(u32::MAX));
        Window { pack, offset: 0, bytes: Vec::new(), pack_bytes }
    }

    /// Returns how much of the pack there is to see.
    pub(crate) fn pack_bytes(&self) -> u64 {
        self.pack_bytes
    }

    /// Returns where to go on behind the damaged frame at `offset`: where it says that it ends, if
    /// a frame may begin there, or else where the next whole frame begins.
    pub(crate) fn next_frame(&mut self, offset: u64) -> Result<Option<u64>, StoreError> {
        let claimed = self.bytes(offset, FRAME_HEADER_BYTES)?.and_then(frame_bytes);
        if let Some(claimed) = claimed {
            let end = offset + claimed as u64;
            if self.bytes(end, FRAME_HEADER_BYTES)?.is_some_and(may_begin_frame) {
                return Ok(Some(end));
            }
        }
        self.next_whole_frame(offset + 1)
    }

    /// Returns where the first whole frame begins at `offset` or behind it, whatever lies before.
    pub(crate) fn next_whole_frame(&mut self, mut offset: u64) -> Result<Option<u64>, StoreError> {
        while offset + (FRAME_HEADER_BYTES as u64) < self.pack_bytes {
            if self.bytes(offset, FRAME_HEADER_BYTES)?.is_some_and(may_begin_frame)
                && let FrameBytes::Whole(frame) = self.frame(offset)?
                && Frame::parse(frame).is_ok()
            {
                return Ok(Some(offset));
            }
            offset += 1;
        }
        Ok(None)
    }

    /// Whether an index begins at `offset`, whole or not.
    pub(crate) fn is_index(&mut self, offset: u64) -> Result<bool, StoreError> {
        Ok(self.bytes(offset, INDEX_MAGIC.len())?.is_some_and(|bytes| *bytes == INDEX_MAGIC))
    }

    /// The bytes of the frame at `offset`, as long as its header says; unchecked otherwise.
    fn frame(&mut self, offset: u64) -> Result<FrameBytes<'_>, StoreError> {
        let Some(header) = self.bytes(offset, FRAME_HEADER_BYTES)? else {
            return Ok(FrameBytes::Absent("a frame's header is cut short"));
        };
        let Some(bytes) = frame_bytes(header) else {
            return Ok(FrameBytes::Absent("no frame begins here"));
        };
        let frame = self.bytes(offset, bytes)?;
        Ok(frame.map_or(FrameBytes::Absent("a frame is cut short"), FrameBytes::Whole))
    }

    fn bytes(&mut self, offset: u64, bytes: usize) -> Result<Option<&[u8]>, StoreError> {
        if self.pack_bytes < offset + bytes as u64 {
            return Ok(None);
        }
        let end = self.offset + self.bytes.len() as u64;
        if offset < self.offset || end < offset + bytes as u64 {
            let left = usize::try_from(self.pack_bytes - offset).unwrap_or(usize::MAX);
            self.bytes = self.pack.read(offset, left.min(bytes.max(SCAN_BYTES)))?;
            self.offset = offset;
        }
        let start = (offset - self.offset) as usize;
        Ok(Some(&self.bytes[start..start + bytes]))
    }
}

/// Writes the bytes from `start` to `end` once more, as they are.
///
/// After a sync failed, the page cache may hold what the disk doesn't and call it clean, so that
/// later syncs, also of a process started later, would not write it. This makes it dirty again.
pub(crate) fn rewrite(pack: &Pack, start: u64, end: u64) -> Result<(), StoreError> {
    let mut offset = start;
    while offset < end {
        let bytes = (end - offset).min(SCAN_BYTES as u64);
        match pack.read(offset, bytes as usize) {
            Ok(content) => {
                pack.file.write_all_at(offset, &content).map_err(|error| pack.io(error))?;
            }
            // A part that the disk can't read isn't clean.
            Err(StoreError::Damaged { .. }) => {}
            Err(other) => return Err(other),
        }
        offset += bytes;
    }
    Ok(())
}
