//! Appends frames to the open packs, seals one when it is full, and begins the next.
//!
//! There is at most one open pack for each [`Purpose`].
//!
//! *Invariants*
//! 1. `position` is where the next frame goes: what lies beyond it was never acknowledged.
//! 2. A pack is in `unsynced` or `active` from its first byte until a sync covered its last.
//! 3. Nothing here syncs: putting never waits for the disk's cache to be flushed.
//! 4. `positions` says where the next chunk of each purpose goes, or a later place, whenever a
//!    chunk is written: see [`WritePositions`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Pack;
use super::format::{OFFSET_FIRST_FRAME, PACK_MAGIC};
use super::frames::{Frames, NewChunk, NewFrame};
use super::table::PackTable;
use super::table::format::encode_index;
use crate::chunk::ChunkHash;
use crate::error::StoreError;
use crate::field::prefix;
use crate::gc::session::Sessions;
use crate::io::Disk;
use crate::location::{FrameOffset, Location, PURPOSE_COUNT, PackNumber, PackedChunk, Purpose};

/// A pack is closed when it has grown to so many chunks: those of open packs are known by name, in
/// memory.
pub(crate) const PACK_CHUNKS_MAX: usize = 16 << 10;

/// An open pack.
pub(crate) struct ActivePack {
    pub(crate) pack: Arc<Pack>,
    pub(crate) position: u64,
    pub(crate) entries: Vec<PackedChunk>,
    /// A write failed: the file may go on after `position`.
    pub(crate) torn: bool,
}

/// A pack that has bytes which no sync covered yet.
#[derive(Clone)]
pub(crate) struct UnsyncedPack {
    pub(crate) pack: Arc<Pack>,
    pub(crate) bytes: u64,
    pub(crate) sealed: bool,
}

/// The chunks that one call wrote.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) packs: Vec<Arc<Pack>>,
    pub(crate) chunks: Vec<(ChunkHash, Location)>,
    /// Packs that were sealed, and their chunks by ascending name.
    pub(crate) sealed: Vec<(PackNumber, Vec<PackedChunk>)>,
    pub(crate) bytes: u64,
}

/// The ends of the open packs.
pub(crate) struct Writer {
    disk: Arc<dyn Disk>,
    sessions: Arc<Sessions>,
    active: [Option<ActivePack>; PURPOSE_COUNT],
    sealed: BTreeMap<PackNumber, UnsyncedPack>,
    next_number: u32,
    pack_bytes_target: u64,
    /// The number of calls that may have written anything.
    pub(crate) batches: u64,
}

impl Writer {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        sessions: Arc<Sessions>,
        open: Vec<ActivePack>,
        next_number: u32,
        pack_bytes_target: u64,
    ) -> Writer {
        for purpose in Purpose::ALL {
            sessions.positions.set(purpose, PackNumber(next_number), 0);
        }
        let mut active: [Option<ActivePack>; PURPOSE_COUNT] = Default::default();
        for pack in open {
            sessions.positions.set(pack.pack.purpose, pack.pack.number, pack.offset());
            let purpose = pack.pack.purpose as usize;
            active[purpose] = Some(pack);
        }
        let sealed = BTreeMap::new();
        Writer { disk, sessions, active, sealed, next_number, pack_bytes_target, batches: 0 }
    }

    /// Appends `frames`, in one write unless the pack fills up in between or frames were taken
    /// away. `written` holds what was written, also when this fails.
    pub(crate) fn append(
        &mut self,
        purpose: Purpose,
        frames: &Frames,
        written: &mut Written,
    ) -> Result<(), StoreError> {
        // Counted first: a call that fails may have written some chunks, which others then find.
        self.batches += 1;
        let mut left = frames.frames();
        while !left.is_empty() {
            let target = self.pack_bytes_target;
            let active = self.active[purpose as usize].as_ref();
            if active.is_some_and(|active| active.is_full(target)) {
                self.seal(purpose, written)?;
            }
            if self.active[purpose as usize].is_none() {
                let begun = self.begin_pack(purpose, written)?;
                self.active[purpose as usize] = Some(begun);
            }
            let active =
                self.active[purpose as usize].as_mut().expect("begun where there was none");
            let (mut end, mut chunk_count) = (active.position, active.entries.len());
            // One that holds nothing but damage isn't sealed: it takes one frame at least.
            let mut is_empty = chunk_count == 0;
            let fitting = left.iter().take_while(|frame| {
                let fits = is_empty || end < target && chunk_count < PACK_CHUNKS_MAX;
                is_empty = false;
                end += frame.len() as u64;
                chunk_count += frames.chunks_of(frame).len();
                fits
            });
            let count = fitting.count();
            active.write(frames, &left[..count], written)?;
            self.sessions.positions.set(purpose, active.pack.number, active.offset());
            left = &left[count..];
        }
        Ok(())
    }

    /// Seals every open pack that has chunks.
    pub(crate) fn seal_all(&mut self, written: &mut Written) -> Result<(), StoreError> {
        self.batches += 1;
        for purpose in Purpose::ALL {
            self.seal(purpose, written)?;
        }
        Ok(())
    }

    fn seal(&mut self, purpose: Purpose, written: &mut Written) -> Result<(), StoreError> {
        let Some(active) = &mut self.active[purpose as usize] else {
            return Ok(());
        };
        if active.entries.is_empty() {
            return Ok(());
        }
        active.cut()?;
        let offset = active.offset();
        let index = encode_index(offset, &mut active.entries);
        active.append(&index)?;
        written.bytes += index.len() as u64;
        let (pack, bytes) = (Arc::clone(&active.pack), active.position);
        pack.table.get_or_init(|| PackTable::new(bytes, offset, &active.entries));
        written.sealed.push((pack.number, std::mem::take(&mut active.entries)));
        self.sealed.insert(pack.number, UnsyncedPack { pack, bytes, sealed: true });
        self.active[purpose as usize] = None;
        Ok(())
    }

    fn begin_pack(
        &mut self,
        purpose: Purpose,
        written: &mut Written,
    ) -> Result<ActivePack, StoreError> {
        // The number is used up even if this fails: a left-over file is removed at the next
        // opening.
        let number = PackNumber(self.next_number);
        self.next_number += 1;
        let name = number.to_string();
        let file = self.disk.create(&name).map_err(|error| StoreError::io(&name, error))?;
        let pack = Arc::new(Pack::new(number, purpose, file));
        let header = prefix(PACK_MAGIC);
        if let Err(error) = pack.file.write_all_at(0, &header) {
            // Without room for a header, the name is better gone; if it stays it does no harm.
            let _ = self.disk.remove(&name);
            return Err(pack.io(error));
        }
        written.bytes += header.len() as u64;
        written.packs.push(Arc::clone(&pack));
        let position = u64::from(OFFSET_FIRST_FRAME);
        Ok(ActivePack { pack, position, entries: Vec::new(), torn: false })
    }

    /// The packs that may have bytes which no sync covered: sealed ones, then the open ones.
    pub(crate) fn unsynced(&self) -> Vec<UnsyncedPack> {
        let open = self.active.iter().flatten().map(|active| UnsyncedPack {
            pack: Arc::clone(&active.pack),
            bytes: active.position,
            sealed: false,
        });
        self.sealed.values().cloned().chain(open).collect()
    }

    /// Forgets what the open pack `number` has in the frame at `place`: the pack's index won't name
    /// it.
    pub(crate) fn forget(&mut self, number: PackNumber, place: FrameOffset) {
        for active in self.active.iter_mut().flatten().filter(|it| it.pack.number == number) {
            active.entries.retain(|entry| entry.place != place);
        }
    }

    /// Returns where open packs hold a chunk, in force or not.
    pub(crate) fn copies(&self, hash: ChunkHash) -> Vec<(Arc<Pack>, FrameOffset)> {
        let open = self.active.iter().flatten();
        let copies = open.flat_map(|active| {
            let entries = active.entries.iter().filter(move |entry| entry.hash == hash);
            entries.map(|entry| (Arc::clone(&active.pack), entry.place))
        });
        copies.collect()
    }

    /// Forgets the sealed packs among `packs`, which are durable now.
    pub(crate) fn synced(&mut self, packs: &[UnsyncedPack]) {
        for pack in packs.iter().filter(|pack| pack.sealed) {
            self.sealed.remove(&pack.pack.number);
        }
    }
}

impl ActivePack {
    /// Returns where the next frame goes.
    fn offset(&self) -> u32 {
        u32::try_from(self.position).expect("a pack's target is below 4 GiB")
    }

    fn is_full(&self, bytes_target: u64) -> bool {
        bytes_target <= self.position || PACK_CHUNKS_MAX <= self.entries.len()
    }

    fn write(
        &mut self,
        frames: &Frames,
        some: &[NewFrame],
        written: &mut Written,
    ) -> Result<(), StoreError> {
        self.cut()?;
        let mut left = some;
        while !left.is_empty() {
            let (count, bytes) = frames.first_run(left);
            let (run, rest) = left.split_at(count);
            let mut offset = self.position;
            self.append(bytes)?;
            written.bytes += bytes.len() as u64;
            let pack = self.pack.number;
            for frame in run {
                let place = FrameOffset {
                    offset: u32::try_from(offset).expect("a pack's target is below 4 GiB"),
                    bytes: u32::try_from(frame.len()).expect("a frame is below 4 GiB"),
                };
                for NewChunk { hash, refers } in frames.chunks_of(frame).iter().copied() {
                    let chunk = PackedChunk { hash, place, refers };
                    self.entries.push(chunk);
                    written.chunks.push((hash, chunk.location(pack, None)));
                }
                offset += frame.len() as u64;
            }
            left = rest;
        }
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let result = self.pack.file.write_all_at(self.position, bytes);
        self.torn = result.is_err();
        result.map_err(|error| self.pack.io(error))?;
        self.position += bytes.len() as u64;
        self.pack.note_written(self.position);
        Ok(())
    }

    /// Takes away what a failed write left behind, so that no old frame follows a new one.
    fn cut(&mut self) -> Result<(), StoreError> {
        if self.torn {
            let result = self.pack.file.set_bytes(self.position);
            result.map_err(|error| self.pack.io(error))?;
            self.torn = false;
        }
        Ok(())
    }
}
