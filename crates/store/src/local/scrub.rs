//! Scrubs: reads everything again from the disk while the store serves, so that damage is found
//! while there still is a good copy: in the cache of decompressed chunks, in the log, at a remote,
//! in a backup.
//!
//! 1. Pack by pack, beginning at one that the caller chooses: so a process that is often restarted
//!    still covers all packs.
//! 2. Each frame is read past the system's cache, which may have what the disk lost, and its
//!    checksum compared. That of an open pack is read through the cache: the disk may not have it
//!    yet.
//! 3. The copies of the manifest are read, and written again where one of them is damaged.
//!    So are the second copies of chunks; the next writer of the file rewrites them.
//! 4. Damaged frames are set aside ([`super::heal`]), and reported through `take_findings`.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::LocalStore;
use super::mark::ThrottleCheck;
use super::verify::check_manifest;
use crate::ScrubReport;
use crate::chunk::ChunkHash;
use crate::damage::FrameDamage;
use crate::error::StoreError;
use crate::location::{PackNumber, PackedChunk};
use crate::pack::Pack;
use crate::pack::format::Frame;
use crate::pack::reader::{check_header, read_index};

/// The caller's pace is asked after so many bytes.
const BYTES_A_PACE: u64 = 256 << 10;

impl LocalStore {
    pub(super) fn scrub_all(
        &self,
        first: u64,
        throttle: ThrottleCheck<'_>,
    ) -> Result<ScrubReport, StoreError> {
        let mut scrubbed = ScrubReport::default();
        let mut packs: Vec<_> = self.index(|index| index.packs().keys().copied().collect());
        if !packs.is_empty() {
            let first = (first % packs.len() as u64) as usize;
            packs.rotate_left(first);
        }
        let before = self.counters.now().damages_found;
        self.scrub_manifest()?;
        self.copies.check().into_iter().for_each(|damage| self.note_file_finding(damage));
        for number in packs {
            if self.scrub_pack(number, &mut scrubbed, throttle)?.is_break() {
                scrubbed.stopped = true;
                break;
            }
        }
        scrubbed.damaged = self.counters.now().damages_found.saturating_sub(before);
        Ok(scrubbed)
    }

    /// Writes the manifest again where a copy of it is damaged.
    fn scrub_manifest(&self) -> Result<(), StoreError> {
        let mut publisher = self.publisher();
        self.check_poison()?;
        let damages = check_manifest(self)?;
        if damages.is_empty() {
            return Ok(());
        }
        damages.into_iter().for_each(|damage| self.note_file_finding(damage));
        let roots = publisher.manifest.roots.clone();
        self.publish(&mut publisher, roots)
    }

    /// The pack is let go whenever there is a pause: what was collected meanwhile gives its space
    /// back, and needs no scrub.
    fn scrub_pack(
        &self,
        number: PackNumber,
        scrubbed: &mut ScrubReport,
        throttle: ThrottleCheck<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let Some(mut pack) = self.pack_still_there(number) else {
            return Ok(ControlFlow::Continue(()));
        };
        let mut chunks = self.chunks_in_force(&pack)?;
        chunks.sort_unstable_by_key(|chunk| chunk.place);
        let mut buffer = Vec::new();
        let mut unthrottled = 0;
        for frame in chunks.chunk_by(|left, right| left.place == right.place) {
            let place = frame[0].place;
            let (offset, bytes) = (u64::from(place.offset), place.bytes as usize);
            let is_sealed = pack.table.get().is_some();
            let read = match is_sealed {
                true => pack.read_past_cache(offset, bytes, &mut buffer),
                false => pack.read(offset, bytes).map(|read| {
                    buffer = read;
                    0..bytes
                }),
            };
            let checked = read.and_then(|part| {
                let frame = Frame::parse(&buffer[part]);
                frame.map(drop).map_err(|what| pack.damaged(offset, what))
            });
            match checked {
                Ok(()) => {}
                Err(StoreError::Damaged { what, .. }) => {
                    self.set_frame_aside(&pack, frame, &what)?
                }
                Err(other) => return Err(other),
            }
            scrubbed.chunks += frame.len() as u64;
            scrubbed.bytes += bytes as u64;
            unthrottled += bytes as u64;
            if BYTES_A_PACE <= unthrottled {
                drop(pack);
                if throttle(unthrottled).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                let Some(there) = self.pack_still_there(number) else {
                    return Ok(ControlFlow::Continue(()));
                };
                (pack, unthrottled) = (there, 0);
            }
        }
        drop(pack);
        Ok(throttle(unthrottled))
    }

    fn pack_still_there(&self, number: PackNumber) -> Option<Arc<Pack>> {
        self.index(|index| index.packs().get(&number).cloned())
    }

    /// Returns the chunks in `pack` that are in force. A damaged index or header is reported.
    fn chunks_in_force(&self, pack: &Pack) -> Result<Vec<PackedChunk>, StoreError> {
        let Some(table) = pack.table.get() else {
            if let Err(error @ StoreError::Damaged { .. }) = check_header(pack) {
                self.note_file_finding(error);
            }
            return Ok(self.index(|index| {
                let here = index.open_chunks().filter(|(_, at)| at.pack == pack.number);
                let chunk =
                    |hash: &ChunkHash, refers, place| PackedChunk { hash: *hash, place, refers };
                here.map(|(hash, at)| chunk(hash, at.refers, at.place)).collect()
            }));
        };
        let mut chunks = match read_index(pack, table.pack_bytes) {
            Err(error @ StoreError::Damaged { .. }) => {
                self.note_file_finding(error);
                pack.rescued()?.to_vec()
            }
            chunks => chunks?,
        };
        let mut are_in_force = self.are_in_force(pack.number, &chunks)?.into_iter();
        chunks.retain(|_| are_in_force.next() == Some(true));
        Ok(chunks)
    }

    /// Sets aside all of a frame, which holds `chunks`, as far as they still lie there.
    pub(super) fn set_frame_aside(
        &self,
        pack: &Pack,
        chunks: &[PackedChunk],
        what: &str,
    ) -> Result<(), StoreError> {
        for hash in chunks.iter().map(|chunk| chunk.hash) {
            if let Some((found, at)) = self.find(hash)?
                && found.number == pack.number
            {
                self.set_aside(hash, pack, FrameDamage { at, what: what.to_owned() })?;
            }
        }
        Ok(())
    }
}
