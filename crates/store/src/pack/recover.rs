//! Recovers all whole frames of a pack without a usable index: an open one, or one whose index is
//! damaged.
//!
//! 1. Frames are read one after the other by their own lengths; a frame is whole if its checksum is
//!    right.
//! 2. Behind one that isn't, the next whole one is searched for byte by byte: what a damaged frame
//!    says of its length isn't believed. The frame found may be a part of data that a client
//!    stored, so its chunks are hashed: it is right for its name.
//! 3. The bytes between whole frames are a *gap*. A gap is never cut off: nothing shows for sure
//!    whether a crash left it of a write that was never acknowledged, or whether it is damage to
//!    one that was.
//!
//! A gap says by its own word which chunks lie in it. That may be wrong, and is used for nothing
//! but to answer readers that ask for one of these.

use std::ops::Range;

use super::Pack;
use super::format::{
    FRAME_HEADER_BYTES, Frame, OFFSET_FIRST_FRAME, claimed_chunks, frame_bytes, may_begin_frame,
};
use super::frames::NewChunk;
use super::reader::{Naming, Window, read_frame, scan_frames};
use crate::error::StoreError;
use crate::location::{FrameOffset, PackedChunk};

/// Zeros aren't written, and a crash leaves many: so much is looked at together.
const ZEROS_BYTES: usize = 64 << 10;
/// The multiple at which reading goes on behind a place that a disk can't read.
const UNREADABLE_BYTES: u64 = 4 << 10;

/// Bytes of a pack that are no whole frame.
#[derive(Debug)]
pub(crate) struct Gap {
    pub(crate) bytes: Range<u64>,
    pub(crate) what: String,
    /// The chunks of the frame that begins there, by its own word.
    pub(crate) chunks: Vec<PackedChunk>,
}

/// The frames and gaps of a pack.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// The entries in the order in which they lie.
    pub(crate) entries: Vec<PackedChunk>,
    pub(crate) gaps: Vec<Gap>,
    /// The end of the last whole frame, or of the last gap that isn't all zeros.
    pub(crate) end: u64,
    /// Whether an index begins there.
    pub(crate) before_index: bool,
}

/// Looks for whole frames in the first `pack_bytes` bytes of `pack`.
///
/// An index is the end only if no frame lies behind it: a crash may have left one in an open pack,
/// behind damage that hid it, and what was written since lies behind both.
///
/// # Errors
/// [`StoreError::Io`]. Damage is none.
pub(crate) fn recover(pack: &Pack, pack_bytes: u64) -> Result<Recovered, StoreError> {
    let mut found = Recovered { end: u64::from(OFFSET_FIRST_FRAME), ..Recovered::default() };
    for end in pack.part_ends(pack_bytes) {
        recover_part(pack, end, end == pack_bytes, &mut found)?;
    }
    // The parts that are gaps at each opening.
    found.gaps.iter().for_each(|gap| pack.note_gap_end(gap.bytes.end));
    Ok(found)
}

/// Goes on from where `found` ends up to `part_end`.
fn recover_part(
    pack: &Pack,
    part_end: u64,
    is_last: bool,
    found: &mut Recovered,
) -> Result<(), StoreError> {
    let mut window = Window::new(pack, part_end);
    while found.end < part_end {
        let start = found.end;
        let what = match scan_frames(&mut window, start) {
            Ok(scan) => {
                let entries = &scan.entries[..];
                let frames = entries.chunk_by(|left, right| left.place == right.place);
                let is_searched = !found.gaps.is_empty();
                for frame in frames {
                    if !is_searched || read_frame(pack, frame[0].place, Naming::ByHash).is_ok() {
                        found.entries.extend(frame);
                    }
                }
                found.end = scan.end;
                let Some(what) = scan.rest else { break };
                what.to_owned()
            }
            // Some of what the scan would read can't be: frame by frame it is found which.
            Err(StoreError::Damaged { what, .. }) => match one_frame(pack, &mut window, start) {
                Some(entries) => {
                    found.end = entries.first().map_or(start, |entry| entry.place.end());
                    found.entries.extend(entries);
                    continue;
                }
                None => what,
            },
            Err(other) => return Err(other),
        };
        let gap = found.end;
        if is_last && only_zeros(pack, gap, part_end) {
            break;
        }
        let next = next_frame(&mut window, gap, part_end)?;
        if is_last && next.is_none() {
            found.before_index = window.is_index(gap).unwrap_or(false);
            if found.before_index {
                break;
            }
        }
        found.end = next.unwrap_or(part_end);
        let chunks = claimed(pack, gap..found.end);
        found.gaps.push(Gap { bytes: gap..found.end, what, chunks });
    }
    Ok(())
}

/// The chunks of the frame at `offset`, read alone.
fn one_frame(pack: &Pack, window: &mut Window<'_>, offset: u64) -> Option<Vec<PackedChunk>> {
    let header = pack.read(offset, FRAME_HEADER_BYTES).ok()?;
    let bytes = frame_bytes(&header)?;
    if window.pack_bytes() < offset + bytes as u64 {
        return None;
    }
    let stored = pack.read(offset, bytes).ok()?;
    let frame = Frame::parse(&stored).ok()?;
    let place = FrameOffset { offset: u32::try_from(offset).ok()?, bytes: bytes as u32 };
    read_frame(pack, place, Naming::ByHash).ok()?;
    Some(frame.chunks().map(|(chunk, _)| entry(chunk, place)).collect())
}

/// Returns where the next whole frame begins behind `offset`, past what can't be read.
fn next_frame(
    window: &mut Window<'_>,
    offset: u64,
    pack_bytes: u64,
) -> Result<Option<u64>, StoreError> {
    let mut from = offset + 1;
    while from < pack_bytes {
        match window.next_whole_frame(from) {
            Err(StoreError::Damaged { .. }) => {
                from = (from / UNREADABLE_BYTES + 1) * UNREADABLE_BYTES;
            }
            other => return other,
        }
    }
    Ok(None)
}

/// Returns the chunks that the frames in `gap` claim to hold.
pub(crate) fn claimed(pack: &Pack, gap: Range<u64>) -> Vec<PackedChunk> {
    let mut all = Vec::new();
    let mut offset = gap.start;
    while offset < gap.end
        && let Some(claimed) = claimed_by_frame(pack, offset)
        && let Some(first) = claimed.first()
        && first.place.end() <= gap.end
    {
        offset = first.place.end();
        all.extend(claimed);
    }
    all
}

/// Returns the chunks that the frame at `offset` claims to hold.
pub(crate) fn claimed_by_frame(pack: &Pack, offset: u64) -> Option<Vec<PackedChunk>> {
    let header = pack.read(offset, FRAME_HEADER_BYTES).ok().filter(|it| may_begin_frame(it))?;
    let bytes = u32::try_from(frame_bytes(&header)?).ok()?;
    let place = FrameOffset { offset: u32::try_from(offset).ok()?, bytes };
    let table = claimed_chunks(&header, |bytes| pack.read(offset, bytes).ok())?;
    Some(table.into_iter().map(|chunk| entry(chunk, place)).collect())
}

fn entry(NewChunk { hash, refers }: NewChunk, place: FrameOffset) -> PackedChunk {
    PackedChunk { hash, place, refers }
}

/// Whether there are only zeros from `start` to `end`.
fn only_zeros(pack: &Pack, start: u64, end: u64) -> bool {
    let mut offset = start;
    while offset < end {
        let bytes = (end - offset).min(ZEROS_BYTES as u64);
        match pack.read(offset, bytes as usize) {
            Ok(read) if read.iter().all(|byte| *byte == 0) => offset += bytes,
            _ => return false,
        }
    }
    true
}
