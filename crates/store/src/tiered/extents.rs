//! A cache of extents (parts of packs) that were read from the bucket, in one file of slots.
//!
//! 1. An *extent* is 64 KB of a pack. A slot of the file holds one; which, and the checksum of its
//!    bytes, is in memory, so the file is empty for the next opening, and never synced.
//! 2. When all slots are taken, a hand goes round (CLOCK, with counters up to 3): a slot that was
//!    read since is passed over, once for each time. What is read once goes at the next round, so a
//!    scan doesn't take what is read again and again.
//! 3. No lock is held while the file is read or written. Meanwhile the slot may go to another
//!    extent: then the checksum that was looked up with it is another, as after damage, and the
//!    extent is fetched again.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use super::EXTENTS_NAME;
use super::single_flight::SingleFlight;
use crate::io::{Disk, DiskFile};
use crate::location::PackNumber;

/// An extent's bytes, but for a pack's last.
pub(super) const EXTENT_BYTES: u64 = 64 << 10;
/// So many reads save a slot so many times.
const USES_MAX: u8 = 3;
/// There are so many slots at least.
const SLOTS_MIN: u64 = 16;
/// One read takes one in so many of them at most.
const SLOTS_A_READ: usize = 16;

/// Which part of which pack.
pub(super) type Extent = (PackNumber, u32);

/// See the module.
pub(super) struct Extents {
    file: Arc<dyn DiskFile>,
    state: Mutex<State>,
    pub(super) flights: SingleFlight,
}

#[derive(Default)]
struct State {
    places: HashMap<Extent, usize>,
    slots: Vec<Slot>,
    slots_max: usize,
    hand: usize,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    /// `None`: free, or being written.
    extent: Option<Extent>,
    checksum: u64,
    bytes: u32,
    uses: u8,
    is_being_written: bool,
}

impl Extents {
    /// An empty cache of at most so many bytes.
    ///
    /// # Errors
    /// An error of the disk.
    pub(super) fn open(disk: &dyn Disk, bytes_max: u64) -> io::Result<Extents> {
        let file = match disk.create(EXTENTS_NAME) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                disk.remove(EXTENTS_NAME)?;
                disk.create(EXTENTS_NAME)
            }
            created => created,
        }?;
        let slots_max = usize::try_from((bytes_max / EXTENT_BYTES).max(SLOTS_MIN));
        let slots_max = slots_max.unwrap_or(usize::MAX);
        let state = Mutex::new(State { slots_max, ..State::default() });
        Ok(Extents { file, state, flights: SingleFlight::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the lock is held")
    }

    /// An extent, if it is here whole.
    pub(super) fn get(&self, extent: Extent) -> Option<Bytes> {
        let (position, Slot { checksum, bytes, .. }) = {
            let mut state = self.state();
            let position = *state.places.get(&extent)?;
            let slot = &mut state.slots[position];
            slot.uses = (slot.uses + 1).min(USES_MAX);
            (position, *slot)
        };
        let mut read = vec![0; bytes as usize];
        let is_read = self.file.read_exact_at(position as u64 * EXTENT_BYTES, &mut read).is_ok();
        if is_read && xxh3_64(&read) == checksum {
            return Some(Bytes::from(read));
        }
        let mut state = self.state();
        if state.places.get(&extent) == Some(&position) {
            state.places.remove(&extent);
            state.slots[position].extent = None;
        }
        None
    }

    /// Whether an extent is here, as far as is known.
    pub(super) fn has(&self, extent: Extent) -> bool {
        self.state().places.contains_key(&extent)
    }

    /// So many extents may be read ahead without taking the place of much else.
    pub(super) fn read_at_once(&self) -> u32 {
        u32::try_from(self.state().slots_max / SLOTS_A_READ).unwrap_or(u32::MAX)
    }

    /// Lets go of an extent.
    pub(super) fn forget_one(&self, extent: Extent) {
        let mut state = self.state();
        if let Some(position) = state.places.remove(&extent) {
            state.slots[position].extent = None;
        }
    }

    /// Keeps an extent, if there is a slot for it and the disk takes it.
    pub(super) fn put(&self, extent: Extent, bytes: &[u8]) {
        let Some(position) = self.state().reserve(extent) else { return };
        let written = self.file.write_all_at(position as u64 * EXTENT_BYTES, bytes);
        let mut state = self.state();
        state.slots[position] = Slot::default();
        if written.is_ok() && !state.places.contains_key(&extent) {
            let (checksum, bytes) = (xxh3_64(bytes), bytes.len() as u32);
            let extent_here = Some(extent);
            state.slots[position] =
                Slot { extent: extent_here, checksum, bytes, uses: 0, is_being_written: false };
            state.places.insert(extent, position);
        }
    }

    /// Lets go of all extents of a pack.
    pub(super) fn forget(&self, pack: PackNumber) {
        let mut state = self.state();
        let State { places, slots, .. } = &mut *state;
        places.retain(|extent, position| {
            let stays = extent.0 != pack;
            if !stays {
                slots[*position].extent = None;
            }
            stays
        });
    }
}

impl State {
    /// A slot to be written for `extent`, which isn't here.
    fn reserve(&mut self, extent: Extent) -> Option<usize> {
        if self.places.contains_key(&extent) {
            return None;
        }
        if self.slots.len() < self.slots_max {
            self.slots.push(Slot { is_being_written: true, ..Slot::default() });
            return Some(self.slots.len() - 1);
        }
        // Each round takes a use from each slot.
        for _ in 0..self.slots.len() * (usize::from(USES_MAX) + 1) {
            let position = self.hand;
            self.hand = (self.hand + 1) % self.slots.len();
            let slot = &mut self.slots[position];
            if slot.is_being_written {
                continue;
            }
            if slot.extent.is_some() && slot.uses > 0 {
                slot.uses -= 1;
                continue;
            }
            if let Some(old) = slot.extent.take() {
                self.places.remove(&old);
            }
            self.slots[position] = Slot { is_being_written: true, ..Slot::default() };
            return Some(position);
        }
        None
    }
}
