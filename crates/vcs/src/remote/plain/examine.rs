//! Reads whole packs: what of a pack's index is there, and what a pack holds whose index is
//! damaged.
//!
//! Frames describe themselves, so a pack without its index is read from its beginning, frame by
//! frame; behind what is no frame the next one is searched for, byte by byte.

use std::collections::{BTreeMap, HashSet};

use frond_db::inside::Error;
use frond_store::{Chunk, ChunkHash};

use super::format::{self, ChunkLocation};
use crate::remote::frame;

/// Damage that was found in a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StorageDamage {
    /// The file.
    pub file: String,
    /// The fault, and its place.
    pub what: String,
    /// Chunks that can't be read there.
    pub chunks: Vec<ChunkHash>,
    /// Whether it may have held others, whose names are gone with it.
    pub may_hold_more: bool,
}

/// A wrong entry of a pack's index: a frame that can't be read, or lacks chunks.
pub(super) struct BadFrame {
    pub place: ChunkLocation,
    pub what: String,
    pub chunks: Vec<ChunkHash>,
}

/// Compares a whole pack with the chunks that its index has. `seen` is called with every chunk that
/// is whole.
pub(super) fn check_frames(
    file: &str,
    pack: &[u8],
    places: &[(ChunkHash, ChunkLocation)],
    seen: &mut dyn FnMut(&Chunk),
) -> Vec<BadFrame> {
    let mut frames: BTreeMap<(u32, u32), Vec<ChunkHash>> = BTreeMap::new();
    for (hash, place) in places {
        frames.entry((place.offset, place.bytes)).or_default().push(*hash);
    }
    let mut bad = Vec::new();
    for ((offset, bytes), mut chunks) in frames {
        let name = format!("{file}, frame at {offset}");
        let start = offset as usize;
        let frame = pack.get(start..start.saturating_add(bytes as usize));
        let cut = || Error::damaged(format!("remote: {name}: is cut"));
        let what = match frame.ok_or_else(cut).and_then(|frame| frame::decode(&name, frame)) {
            Ok(found) => {
                found.iter().for_each(&mut *seen);
                let names: HashSet<ChunkHash> = found.iter().map(Chunk::hash).collect();
                chunks.retain(|hash| !names.contains(hash));
                format!("remote: {name}: a chunk isn't what its name says")
            }
            Err(error) => error.message,
        };
        if !chunks.is_empty() {
            bad.push(BadFrame { place: ChunkLocation { offset, bytes }, what, chunks });
        }
    }
    bad
}

/// The number of bits in which two names may differ if the one is what damage made of the other:
/// names of two chunks differ in half, 128 of 256, and never in so few.
const DAMAGED_BITS_MAX: u32 = 64;

/// The chunks found in a pack whose index is damaged.
pub(super) struct Scanned {
    pub places: Vec<(ChunkHash, ChunkLocation)>,
    /// Names that the index has, as it is, and the frames don't.
    pub lost: Vec<ChunkHash>,
    /// Whether it may have held others.
    pub may_hold_more: bool,
}

/// Reads a pack from its beginning; `seen` is called with every chunk. The rest of the index shows
/// whether something else was there.
pub(super) fn scan(file: &str, pack: &[u8], seen: &mut dyn FnMut(&Chunk)) -> Scanned {
    let (mut places, mut has_gaps, mut entries) = (Vec::new(), false, Vec::new());
    let mut offset = format::FRAMES_START;
    while let Some(rest) = pack.get(offset..) {
        let Some((chunks, bytes)) = frame::decode_here(file, rest) else {
            if rest.len() == format::end_bytes(places.len()) {
                entries = format::raw_entries(rest);
                break;
            }
            has_gaps = true;
            let next = (1..rest.len()).find(|at| frame::decode_here(file, &rest[*at..]).is_some());
            let Some(next) = next else { break };
            offset += next;
            continue;
        };
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let place = ChunkLocation { offset: number(offset), bytes: number(bytes) };
        chunks.iter().for_each(&mut *seen);
        places.extend(chunks.iter().map(|chunk| (chunk.hash(), place)));
        offset += bytes;
    }
    let found: HashSet<ChunkHash> = places.iter().map(|(hash, _)| *hash).collect();
    let named: HashSet<ChunkHash> = entries.iter().map(|(hash, _)| *hash).collect();
    let unnamed: Vec<&ChunkHash> = found.difference(&named).collect();
    let is_damaged_name = |name: &ChunkHash| unnamed.iter().any(|hash| is_near(name, hash));
    // The frames lie side by side: an entry of another place isn't what was written, and no name is
    // taken from it.
    let frames: HashSet<(u32, u32)> = places.iter().map(|(_, at)| (at.offset, at.bytes)).collect();
    let believed = entries.iter().filter(|(_, at)| frames.contains(&(at.offset, at.bytes)));
    let believed: HashSet<ChunkHash> = believed.map(|(hash, _)| *hash).collect();
    let mut lost: Vec<ChunkHash> =
        believed.difference(&found).filter(|name| !is_damaged_name(name)).copied().collect();
    lost.sort_unstable();
    let is_explained = |hash: &&ChunkHash| named.iter().any(|name| is_near(name, hash));
    let is_all_known = lost.is_empty() && unnamed.iter().all(is_explained);
    let may_hold_more = has_gaps || entries.is_empty() || !is_all_known;
    Scanned { places, lost, may_hold_more }
}

fn is_near(one: &ChunkHash, other: &ChunkHash) -> bool {
    let bits = one.0.iter().zip(other.0).map(|(one, other)| (one ^ other).count_ones());
    bits.sum::<u32>() <= DAMAGED_BITS_MAX
}
