//! Moves live chunks out of packs that are to be removed.
//!
//! 1. Chunks of the working state are moved as they come, one chunk a frame: they are read at
//!    random. A collection in the background copies such frames as they lie, with their checksums:
//!    what compressing them better would win is lost again at the next edit. A thorough one
//!    compresses them anew.
//! 2. Of what is history only, a *sketch* is made: chunks that have much in common have equal
//!    sketches, mostly ([`sketch`]). Sorted by sketch, versions of the same node lie side by side,
//!    in the order in which they were written.
//! 3. Neighbours are put together into frames of up to [`GROUP_BYTES`] and compressed as one: each
//!    version costs about what changed.
//!
//! Nothing here knows what a payload means: relation is seen in the bytes. Memory: 64 bytes a chunk
//! of at most [`SKETCHES_MAX`] chunks, then they are moved and the next begin.

use std::collections::HashMap;
use std::sync::Arc;

use super::LocalStore;
use super::mark::{Halt, Marks, ThrottleCheck, throttle};
use crate::chunk::{Chunk, ChunkHash};
use crate::error::StoreError;
use crate::hash::NameHasherBuilder;
use crate::location::{Location, PackedChunk};
use crate::location::{PackNumber, Purpose};
use crate::pack::Pack;
use crate::pack::codec::Effort;
use crate::pack::format::Frame;
use crate::pack::frames::{Frames, Lucks};
use crate::pack::reader::Naming;
use crate::pack::writer::Written;

/// The greatest number of uncompressed bytes of a group, but for a chunk that is larger: reading
/// one decompresses all.
const GROUP_BYTES: usize = 512 << 10;
/// The greatest number of chunks of a group.
const GROUP_COUNT: usize = 256;
/// Chunks that are read together.
const BATCH_COUNT: usize = 64;
/// Sketches that are held at once.
const SKETCHES_MAX: usize = 1 << 20;

/// A chunk of history. Ordered as the groups are made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Sketched {
    /// Chunks that refer to others lie apart: a caller that follows references reads these only.
    refers: bool,
    kind: u8,
    sketch: u64,
    at: Location,
    hash: ChunkHash,
    bytes: u32,
}

/// Moves chunks.
pub(super) struct Repack<'a, 'b> {
    store: &'a LocalStore,
    marks: &'a Marks<'b>,
    throttle: ThrottleCheck<'a>,
    /// Whether frames of the working state are compressed anew, instead of copied as they are.
    recodes: bool,
    history: Vec<Sketched>,
    /// The best compression for chunks of the working state, and for groups of history.
    lucks: [Lucks; 2],
    moved: u64,
}

impl<'a, 'b> Repack<'a, 'b> {
    pub(super) fn new(
        store: &'a LocalStore,
        marks: &'a Marks<'b>,
        recodes: bool,
        throttle: ThrottleCheck<'a>,
    ) -> Self {
        let lucks = Default::default();
        Repack { store, marks, throttle, recodes, history: Vec::new(), lucks, moved: 0 }
    }

    /// Takes all chunks of `pack`, whose index is `entries`, that are still there.
    pub(super) fn add(&mut self, pack: &Arc<Pack>, entries: &[PackedChunk]) -> Result<(), Halt> {
        let are_in_force = self.store.are_in_force(pack.number, entries)?;
        let mut here: Vec<(Location, ChunkHash)> = (0..)
            .zip(entries)
            .zip(are_in_force)
            .filter(|(_, is_in_force)| *is_in_force)
            .map(|((at, entry), _)| (entry.location(pack.number, Some(at)), entry.hash))
            .collect();
        here.sort_unstable();
        let is_current =
            |at: &Location| at.position.is_some_and(|at| self.marks.is_current(pack.number, at));
        let (current, history): (Vec<_>, Vec<_>) =
            here.into_iter().partition(|(at, _)| is_current(at));
        self.move_current(pack, &current)?;
        for batch in history.chunks(BATCH_COUNT) {
            let places: HashMap<ChunkHash, Location, NameHasherBuilder> =
                batch.iter().map(|(at, hash)| (*hash, *at)).collect();
            for chunk in self.read(batch.iter().map(|(_, hash)| *hash))? {
                let at = places[&chunk.hash()];
                self.history.push(Sketched {
                    refers: at.refers,
                    kind: chunk.kind() as u8,
                    sketch: sketch(chunk.encoded()),
                    at,
                    hash: chunk.hash(),
                    bytes: chunk.encoded().len() as u32,
                });
            }
            if SKETCHES_MAX <= self.history.len() {
                self.move_history()?;
            }
        }
        Ok(())
    }

    /// Moves chunks of the working state, which lie in `pack` in this order.
    fn move_current(&mut self, pack: &Pack, current: &[(Location, ChunkHash)]) -> Result<(), Halt> {
        let mut recoded = Vec::new();
        for batch in current.chunks(BATCH_COUNT) {
            let copied = if self.recodes {
                recoded.extend(batch.iter().map(|(_, hash)| *hash));
                Frames::default()
            } else {
                self.copy(pack, batch, &mut recoded)?
            };
            let from = |_| Some(pack.number);
            self.write_frames(Purpose::Lasting, copied, from)?;
            let chunks = self.read(recoded.drain(..))?;
            let groups: Vec<&[Chunk]> = chunks.chunks(1).collect();
            self.write(Purpose::Lasting, Effort::Firm, &groups, from)?;
        }
        Ok(())
    }

    /// Reads the frames of `batch` as they lie. Those that hold other chunks too go to `others`; so
    /// do those that are damaged, which may be healed by then.
    fn copy(
        &mut self,
        pack: &Pack,
        batch: &[(Location, ChunkHash)],
        others: &mut Vec<ChunkHash>,
    ) -> Result<Frames, Halt> {
        let mut frames = Frames::new(self.store.buffers.take());
        let mut bytes = 0;
        for (at, hash) in batch {
            let (offset, stored_bytes) = (u64::from(at.place.offset), at.place.bytes as usize);
            bytes += stored_bytes as u64;
            let copied = self.store.buffers.with(stored_bytes, |stored| {
                pack.read_to(offset, stored)?;
                let frame = Frame::parse(stored).map_err(|what| pack.damaged(offset, what))?;
                let mut chunks = frame.chunks().map(|(chunk, _)| chunk);
                match (chunks.next(), chunks.next()) {
                    (Some(chunk), None) if chunk.hash == *hash => frames.push_stored(stored, chunk),
                    _ => others.push(*hash),
                }
                Ok::<(), StoreError>(())
            });
            match copied {
                Err(StoreError::Damaged { .. }) => others.push(*hash),
                copied => copied?,
            }
        }
        throttle(self.throttle, bytes)?;
        Ok(frames)
    }

    /// Moves what is left. Returns how many chunks moved.
    pub(super) fn finish(mut self) -> Result<u64, Halt> {
        self.move_history()?;
        Ok(self.moved)
    }

    fn move_history(&mut self) -> Result<(), Halt> {
        let mut history = std::mem::take(&mut self.history);
        history.sort_unstable();
        let mut left = &history[..];
        while !left.is_empty() {
            let (group, rest) = left.split_at(group_count(left));
            let chunks = self.read(group.iter().map(|sketched| sketched.hash))?;
            left = rest;
            if chunks.is_empty() {
                continue;
            }
            let from: HashMap<ChunkHash, PackNumber, NameHasherBuilder> =
                group.iter().map(|sketched| (sketched.hash, sketched.at.pack)).collect();
            let from = |hash| from.get(&hash).copied();
            self.write(Purpose::Packed, Effort::Strong, &[&chunks], from)?;
        }
        Ok(())
    }

    /// Reads chunks past the cache, in the order of `hashes`; without those that are damaged, which
    /// are set aside.
    fn read(&mut self, hashes: impl Iterator<Item = ChunkHash>) -> Result<Vec<Chunk>, Halt> {
        let hashes: Vec<ChunkHash> = hashes.collect();
        let mut found: HashMap<ChunkHash, Chunk, NameHasherBuilder> = HashMap::default();
        let mut take = |chunk: Chunk| drop(found.insert(chunk.hash(), chunk));
        // They get another checksum, so this is the last moment to find that one was wrong.
        match self.store.fetch_many(&hashes, Naming::ByHash, &mut take) {
            Err(StoreError::Damaged { .. }) => {
                for hash in &hashes {
                    match self.store.fetch_many(&[*hash], Naming::ByHash, &mut take) {
                        Err(StoreError::Damaged { .. }) => {}
                        fetched => fetched?,
                    }
                }
            }
            fetched => fetched?,
        }
        let chunks: Vec<Chunk> = hashes.iter().filter_map(|hash| found.remove(hash)).collect();
        throttle(self.throttle, chunks.iter().map(|chunk| chunk.encoded().len() as u64).sum())?;
        Ok(chunks)
    }

    /// Writes a frame for each of `groups`; `from` returns the pack that a chunk lies in.
    fn write(
        &mut self,
        purpose: Purpose,
        effort: Effort,
        groups: &[&[Chunk]],
        from: impl Fn(ChunkHash) -> Option<PackNumber>,
    ) -> Result<(), Halt> {
        let lucks = &mut self.lucks[usize::from(purpose == Purpose::Packed)];
        let mut frames = Frames::after(*lucks, self.store.buffers.take());
        groups.iter().for_each(|group| frames.push(effort, &group.iter().collect::<Vec<_>>()));
        *lucks = frames.lucks();
        self.write_frames(purpose, frames, from)
    }

    /// Writes frames; from then on their chunks lie there.
    fn write_frames(
        &mut self,
        purpose: Purpose,
        frames: Frames,
        from: impl Fn(ChunkHash) -> Option<PackNumber>,
    ) -> Result<(), Halt> {
        if frames.frames().is_empty() {
            return Ok(());
        }
        // The moved chunks may be much more than the disk takes before they go to the tier.
        self.store.await_room()?;
        let bytes = {
            let mut writer = self.store.writer();
            self.store.check_poison()?;
            self.store.check_room(&frames)?;
            let mut written = Written::default();
            let result = writer.append(purpose, &frames, &mut written);
            let bytes = written.bytes;
            self.moved += written.chunks.len() as u64;
            let noted = self.store.note_moved(written, from);
            result?;
            noted?;
            bytes
        };
        self.store.counters.bytes_moved.add(bytes);
        self.store.buffers.give_back(frames.into_buffer());
        self.store.send_when_due()?;
        throttle(self.throttle, bytes)
    }
}

/// Returns how many of the first of `sorted` make a group: related ones, or others where a group
/// would be small.
fn group_count(sorted: &[Sketched]) -> usize {
    let mut bytes = 0;
    let mut count = 0;
    for (position, next) in sorted.iter().enumerate().take(GROUP_COUNT) {
        let same_kind = next.refers == sorted[0].refers && next.kind == sorted[0].kind;
        let related = position == 0 || sorted[position - 1].sketch == next.sketch;
        let full = GROUP_BYTES < bytes + next.bytes as usize;
        if position > 0 && (full || !same_kind || (!related && GROUP_BYTES / 2 <= bytes)) {
            break;
        }
        bytes += next.bytes as usize;
        count += 1;
    }
    count
}

/// Bytes of a window: a shift of two bits forgets a byte after 32.
const WINDOW_BYTES: usize = 32;

/// The least of the hashes of all windows of `bytes`: two contents have the same one with the
/// probability that is the share of windows they have in common (Broder 1997, "On the resemblance
/// and containment of documents"); the rolling hash is that of FastCDC's gear table.
fn sketch(bytes: &[u8]) -> u64 {
    let (mut hash, mut least) = (0u64, u64::MAX);
    for (position, byte) in bytes.iter().enumerate() {
        hash = (hash << 2).wrapping_add(GEAR[usize::from(*byte)]);
        if WINDOW_BYTES <= position + 1 {
            least = least.min(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        }
    }
    if bytes.len() < WINDOW_BYTES { hash } else { least }
}

/// A number of its own for each byte. Never stored: may change at any time.
const GEAR: [u64; 256] = gear();

const fn gear() -> [u64; 256] {
    let mut table = [0; 256];
    let mut position = 0;
    while position < table.len() {
        // SplitMix64 (Steele, Lea, Flood 2014).
        let mut number = (position as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table[position] = number ^ (number >> 31);
        position += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u32, count: u32) -> Vec<u8> {
        let word = |n: u32| (seed ^ n).wrapping_mul(0x9e37_79b9).rotate_left(n % 32);
        (0..count).flat_map(|n| word(n).to_le_bytes()).collect()
    }

    #[test]
    fn most_small_changes_keep_the_sketch() {
        let content = noise(7, 2000);
        let kept = (0..content.len()).step_by(97).filter(|position| {
            let mut changed = content.clone();
            changed[*position] ^= 1;
            sketch(&changed) == sketch(&content)
        });
        assert!(kept.count() > 75, "of 83");
        let mut longer = content.clone();
        longer.splice(100..100, *b"a field more");
        assert_eq!(sketch(&longer), sketch(&content));
        assert_ne!(sketch(&noise(8, 2000)), sketch(&content));
        assert_ne!(sketch(b"a"), sketch(b"b"));
    }
}
