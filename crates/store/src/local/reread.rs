//! Reads moved chunks once more, from the disk, before the old frames are removed.
//!
//! A write that was synced may still have become something else: on the way, or on the disk. As
//! long as the old frames lie there, that costs nothing: the new frame is set aside, and the chunk
//! written again from the old one ([`super::heal`]). Frames that are written so are read again in
//! turn.

use super::LocalStore;
use super::find::PackLocation;
use super::mark::{Halt, ThrottleCheck, throttle};
use crate::ChunkStore;
use crate::chunk::ChunkHash;
use crate::damage::FrameDamage;
use crate::error::StoreError;
use crate::pack::format::Frame;

/// Chunks that are looked for together.
const BATCH_COUNT: usize = 4096;
/// A chunk is written again so often: what fails each time isn't an accident.
const ROUNDS_MAX: usize = 4;

impl LocalStore {
    /// Reads the frames in which `hashes` lie now, past the system's cache. Chunks that aren't
    /// whole are set aside, and written again from where they lay before.
    ///
    /// # Errors
    /// `Damaged` if what is written isn't what is read, again and again; as reads and writes.
    pub(super) fn reread(
        &self,
        hashes: &[ChunkHash],
        throttle: ThrottleCheck<'_>,
    ) -> Result<(), Halt> {
        for batch in hashes.chunks(BATCH_COUNT) {
            let mut left = batch.to_vec();
            let mut last = None;
            for _ in 0..ROUNDS_MAX {
                self.sync()?;
                let damaged = self.reread_once(&left, throttle)?;
                left = damaged.iter().map(|(hash, _)| *hash).collect();
                last = damaged.into_iter().next_back().map(|(_, error)| error);
                if left.is_empty() {
                    break;
                }
            }
            if let Some(error) = last {
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Returns those of `hashes` that weren't whole, and why.
    fn reread_once(
        &self,
        hashes: &[ChunkHash],
        limiter: ThrottleCheck<'_>,
    ) -> Result<Vec<(ChunkHash, StoreError)>, Halt> {
        let found = self.find_many(hashes)?;
        let named = hashes.iter().zip(found).filter_map(|(hash, found)| Some((*hash, found?)));
        let mut found: Vec<(ChunkHash, PackLocation)> = named.collect();
        found.sort_unstable_by_key(|(_, (_, at))| *at);
        let frame_of = |(_, (_, at)): &(ChunkHash, PackLocation)| (at.pack, at.place);
        let is_same_frame = |left: &_, right: &_| frame_of(left) == frame_of(right);
        let mut damaged = Vec::new();
        let mut buffer = Vec::new();
        for frame in found.chunk_by(is_same_frame) {
            let Some((_, (pack, at))) = frame.first() else { continue };
            let (offset, bytes) = (u64::from(at.place.offset), at.place.bytes as usize);
            let read = pack.read_past_cache(offset, bytes, &mut buffer);
            let checked = read.and_then(|part| {
                let parsed = Frame::parse(&buffer[part]);
                parsed.map(drop).map_err(|what| pack.damaged(offset, what))
            });
            match checked {
                Ok(()) => {}
                Err(StoreError::Damaged { file, offset, what }) => {
                    for (hash, (pack, at)) in frame {
                        let damage = FrameDamage { at: *at, what: what.clone() };
                        self.set_aside(*hash, pack, damage)?;
                        let (file, what) = (file.clone(), what.clone());
                        damaged.push((*hash, StoreError::Damaged { file, offset, what }));
                    }
                }
                Err(other) => return Err(other.into()),
            }
            throttle(limiter, bytes as u64)?;
        }
        Ok(damaged)
    }
}
