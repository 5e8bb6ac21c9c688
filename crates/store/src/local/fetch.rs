//! Reads chunks from packs: through the cache one by one or many at once, or past it.
//!
//! Frames that lie near each other are fetched by one read. A frame that holds several chunks is
//! decompressed once for all that are wanted of it; the others in it go to the cache too, since
//! they are versions of one another, and a reader of one soon reads the next.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::LocalStore;
use super::find::PackLocation;
use crate::chunk::{Chunk, ChunkHash};
use crate::error::StoreError;
use crate::location::Location;
use crate::pack::Pack;
use crate::pack::reader::{Naming, decode_frame, decode_frame_lent, pick};
use crate::read::buffers::BufferPool;
use crate::read::prefetch::PooledBuffer;
use crate::{Admission, EntryLookup};

/// Frames that lie this near are fetched by one read: cheaper than a second call.
const READ_GAP_BYTES: u64 = 4 << 10;
/// The greatest number of bytes of such a read.
const READ_BYTES_MAX: u64 = 1 << 20;

/// A chunk that is wanted, and where it lies.
pub(super) type Located = (Arc<Pack>, Location, ChunkHash);

impl LocalStore {
    pub(super) fn fetch(&self, hash: ChunkHash) -> Result<Chunk, StoreError> {
        let (chunk, all) = self.fetch_frame(hash)?;
        all.into_iter().for_each(|chunk| self.cache.insert(chunk));
        Ok(chunk)
    }

    /// Fetches a chunk that is wanted for a small part. Chunks that are decompressed with others
    /// are kept, as they are.
    pub(super) fn fetch_for_lookup(&self, hash: ChunkHash) -> Result<EntryLookup, StoreError> {
        self.read_intact(hash, |pack, at| self.read_for_lookup(hash, pack, at))
    }

    fn read_for_lookup(
        &self,
        hash: ChunkHash,
        pack: &Pack,
        at: &Location,
    ) -> Result<EntryLookup, StoreError> {
        let begin = self.clock.steady_micros();
        // The system would first write what it has of an open pack and the disk hasn't.
        let is_past_cache = at.position.is_some() && self.direct_policy.is_taken();
        let mut chunks = match is_past_cache {
            true => self.read_past_cache(pack, at)?,
            false => self.read_frame(pack, at)?,
        };
        let is_slow = self.slow_read_micros <= self.clock.steady_micros() - begin;
        if !is_past_cache {
            self.direct_policy.note(is_slow);
        }
        let worth = self.cache.worth(hash, is_slow);
        let kept = if chunks.len() > 1 { Admission::InMemory } else { worth };
        if kept == Admission::InMemory {
            if is_past_cache {
                chunks.iter_mut().for_each(|chunk| *chunk = chunk.apart());
            }
            chunks.iter().for_each(|chunk| self.cache.insert(chunk.clone()));
        }
        let chunk = pick(pack, u64::from(at.place.offset), &chunks, hash)?;
        Ok(EntryLookup::Chunk(chunk, kept))
    }

    pub(super) fn fetch_past_cache(&self, hash: ChunkHash) -> Result<Chunk, StoreError> {
        Ok(self.fetch_frame(hash)?.0)
    }

    /// The chunk, and all that are in its frame.
    fn fetch_frame(&self, hash: ChunkHash) -> Result<(Chunk, Vec<Chunk>), StoreError> {
        self.read_intact(hash, |pack, at| {
            let chunks = self.read_frame(pack, at)?;
            let chunk = pick(pack, u64::from(at.place.offset), &chunks, hash)?;
            Ok((chunk, chunks))
        })
    }

    /// The chunks of the frame that lies there.
    fn read_frame(&self, pack: &Pack, at: &Location) -> Result<Vec<Chunk>, StoreError> {
        self.read_frame_named(pack, at, Naming::ByChecksum)
    }

    fn read_frame_named(
        &self,
        pack: &Pack,
        at: &Location,
        naming: Naming,
    ) -> Result<Vec<Chunk>, StoreError> {
        let offset = u64::from(at.place.offset);
        self.buffers.with(at.place.bytes as usize, |stored| {
            pack.read_to(offset, stored)?;
            decode_frame(pack, offset, stored, naming)
        })
    }

    /// As `read_frame`, past the system's cache. They may share the buffer that was read to: they
    /// are to be let go soon.
    fn read_past_cache(&self, pack: &Pack, at: &Location) -> Result<Vec<Chunk>, StoreError> {
        let (offset, bytes) = (u64::from(at.place.offset), at.place.bytes as usize);
        let read = |buffer: &mut Vec<u8>| pack.read_past_cache(offset, bytes, buffer);
        let frame = Bytes::from_owner(PooledBuffer::read(&self.frames, read)?);
        decode_frame_lent(pack, offset, &frame)
    }

    /// Fetches `hashes` from the disk, in any order, and calls `take` with every chunk that was
    /// read on the way. `take` may hear of a chunk more than once. Damaged frames are set aside.
    pub(super) fn fetch_many(
        &self,
        hashes: &[ChunkHash],
        naming: Naming,
        take: &mut dyn FnMut(Chunk),
    ) -> Result<(), StoreError> {
        let mut wanted = self.locate(hashes)?;
        wanted.sort_unstable_by_key(|(_, at, _)| *at);
        runs(&wanted, READ_BYTES_MAX, |(_, at, _)| at).into_iter().try_for_each(|run| {
            match fetch_run(&self.buffers, run, naming, take) {
                // One of them; and perhaps it is healed by then.
                Err(StoreError::Damaged { .. }) => run.iter().try_for_each(|(_, _, hash)| {
                    self.read_intact(*hash, |pack, at| {
                        let chunks = self.read_frame_named(pack, at, naming)?;
                        pick(pack, u64::from(at.place.offset), &chunks, *hash)?;
                        Ok(chunks)
                    })
                    .map(|chunks| chunks.into_iter().for_each(&mut *take))
                }),
                other => other,
            }
        })
    }

    /// Returns chunks in the order of `hashes`, those in the cache from there.
    pub(super) fn fetch_through_cache(
        &self,
        hashes: &[ChunkHash],
    ) -> Result<Vec<Chunk>, StoreError> {
        let mut chunks: BTreeMap<ChunkHash, Chunk> = BTreeMap::new();
        let mut ghosts: Vec<ChunkHash> = Vec::new();
        for hash in hashes {
            match self.cache.get(*hash) {
                Some(chunk) => drop(chunks.insert(*hash, chunk)),
                None => ghosts.push(*hash),
            }
        }
        ghosts.sort_unstable();
        ghosts.dedup();
        self.counters.chunks_fetched.add(ghosts.len() as u64);
        self.fetch_many(&ghosts, Naming::ByChecksum, &mut |chunk| {
            self.cache.insert(chunk.clone());
            chunks.insert(chunk.hash(), chunk);
        })?;
        let take = |hash| chunks.get(hash).cloned().ok_or(StoreError::Missing(*hash));
        hashes.iter().map(take).collect()
    }

    /// Finds where chunks lie; each with its pack.
    pub(super) fn locate(&self, hashes: &[ChunkHash]) -> Result<Vec<Located>, StoreError> {
        let found = self.find_many(hashes)?;
        let locate = |(found, hash): (Option<PackLocation>, &ChunkHash)| {
            let (pack, at) = found.map_or_else(|| self.find_healed(*hash), Ok)?;
            Ok((pack, at, *hash))
        };
        found.into_iter().zip(hashes).map(locate).collect()
    }
}

/// Cuts what is wanted, which is sorted by place, into runs that are fetched by one read each, of
/// `bytes_max` at most, unless a frame is longer.
pub(super) fn runs<T>(wanted: &[T], bytes_max: u64, place: impl Fn(&T) -> &Location) -> Vec<&[T]> {
    let mut run_start = u64::MAX;
    let runs = wanted.chunk_by(|left, right| {
        let (left, right) = (place(left), place(right));
        run_start = run_start.min(u64::from(left.place.offset));
        let near = left.pack == right.pack
            && u64::from(right.place.offset) <= left.place.end() + READ_GAP_BYTES
            && right.place.end() <= run_start + bytes_max;
        if !near {
            run_start = u64::MAX;
        }
        near
    });
    runs.collect()
}

/// Fetches the chunks of `run`, which lie in its order in one pack, near each other.
fn fetch_run(
    buffers: &BufferPool,
    run: &[Located],
    naming: Naming,
    take: &mut dyn FnMut(Chunk),
) -> Result<(), StoreError> {
    let [(pack, first, _), ..] = run else { return Ok(()) };
    let start = u64::from(first.place.offset);
    let end = run.last().map_or(start, |(_, last, _)| last.place.end());
    buffers.with((end - start) as usize, |bytes| {
        pack.read_to(start, bytes)?;
        for frame in run.chunk_by(|(_, left, _), (_, right, _)| left.place == right.place) {
            let place = frame[0].1.place;
            let offset = u64::from(place.offset);
            let stored = &bytes[(offset - start) as usize..(place.end() - start) as usize];
            let chunks = decode_frame(pack, offset, stored, naming)?;
            for (_, _, hash) in frame {
                pick(pack, offset, &chunks, *hash)?;
            }
            chunks.into_iter().for_each(&mut *take);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::{FrameOffset, PackNumber};

    fn at(pack: u32, offset: u64, bytes: u64) -> Location {
        let place = FrameOffset { offset: offset as u32, bytes: bytes as u32 };
        Location { pack: PackNumber(pack), place, refers: false, position: None }
    }

    #[test]
    fn neighbouring_frames_are_read_at_once() {
        let check = |wanted: &[Location], expected: &[usize]| {
            let found: Vec<_> =
                runs(wanted, READ_BYTES_MAX, |at| at).into_iter().map(<[_]>::len).collect();
            assert_eq!(found, expected, "{wanted:?}");
        };
        let half = READ_BYTES_MAX / 2;
        check(&[], &[]);
        check(&[at(1, 0, 10), at(1, 10 + READ_GAP_BYTES, 10)], &[2]);
        check(&[at(1, 0, 10), at(1, 11 + READ_GAP_BYTES, 10)], &[1, 1]);
        check(&[at(1, 0, 10), at(2, 10, 10)], &[1, 1]);
        check(&[at(1, 0, half), at(1, half, half)], &[2]);
        check(&[at(1, 0, half), at(1, half, half + 1)], &[1, 1]);
        // A run begins anew behind the one before, in another pack also at a lower place.
        let four = [0, 1, 2, 3].map(|position| at(1, position * half, half));
        check(&four, &[2, 2]);
        check(&[at(1, 9 * half, 10), at(2, 0, half), at(2, half, half)], &[1, 2]);
        check(&[at(1, 0, 10), at(2, 9 * half, 10), at(2, 9 * half + 10, 10)], &[1, 2]);
    }
}
