//! A cache of extents (parts of packs) that were read from the bucket, in one file of slots.
//!
//! 1. An *extent* is 64 KB of a pack. A slot of the file holds one; which, and the checksum of its
//!    bytes, is in memory. The file is never synced.
//! 2. When all slots are taken, a hand goes round (CLOCK, with counters up to 3): a slot that was
//!    read since is passed over, once for each time. An extent that is read once goes at the next
//!    round, so a scan doesn't take those that are read again and again.
//! 3. No lock is held while the file is read or written. Meanwhile the slot may go to another
//!    extent: then the checksum that was looked up with it is another, as after damage, and the
//!    extent is fetched again.
//! 4. *A restart* goes on with what is in the file: a table of the slots lies beside it
//!    ([`format`](mod@format)), written when the directory is closed, and now and then before. A
//!    table that is older than the file says of some slots what was in them: their checksums show
//!    it, as they show what a power cut made of them. A pack is named there by what distinguishes
//!    its object from all others, so no other pack's bytes are taken for its own.
//! 5. *What must be gone* ([`Extents::clear`]): the file is cut to nothing. What a reader fetched
//!    before and would keep after it isn't kept: its pack is gone ([`Extents::forget`]).

mod format;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use twox_hash::XxHash3_64;

pub(super) use self::format::{EXTENT_BYTES, Extent};
use self::format::{Slot, TABLE_NAME, Table};
use super::format::{Nonce, PackObject};
use super::single_flight::SingleFlight;
use crate::io::{Disk, DiskFile};
use crate::location::PackNumber;

/// The file of extents that were read; the names of what lies beside it begin so.
pub(super) const EXTENTS_NAME: &str = "EXTENTS";
/// The number of reads of a slot that count: each saves it once.
const USES_MAX: u8 = 3;
/// There are so many slots at least.
const SLOTS_MIN: u64 = 16;
/// One read takes one in so many of them at most.
const SLOTS_A_READ: usize = 16;
/// The table is written when one in so many slots has got other bytes since: it has a fortieth of
/// as many.
const SLOTS_A_TABLE: usize = 64;
/// And so many at least.
const CHANGES_A_TABLE_MIN: usize = 64;
const TABLE_NEW_NAME: &str = "EXTENTS.new";

/// See the module.
///
/// *Thread safety*: every method may be called from any number of threads at once. `saving` is held
/// while the table is written, and is taken before `state`.
pub(super) struct Extents {
    disk: Arc<dyn Disk>,
    file: Arc<dyn DiskFile>,
    state: Mutex<State>,
    saving: Mutex<()>,
    pub(super) flights: SingleFlight,
}

#[derive(Default)]
struct State {
    places: HashMap<Extent, usize>,
    slots: Vec<Slot>,
    slots_max: usize,
    hand: usize,
    /// What tells the objects' names from all others, of packs that have parts here.
    packs: BTreeMap<PackNumber, Nonce>,
    /// Packs of which nothing is kept any more.
    gone: HashSet<PackNumber>,
    /// Slots that got other bytes since the table was written.
    changes: usize,
    /// How often all was let go.
    clearings: u64,
    is_closed: bool,
}

impl Extents {
    /// A cache of at most so many bytes, with what an earlier opening of the directory left of
    /// `packs` there.
    ///
    /// # Errors
    /// An error of the disk.
    pub(super) fn open(
        disk: &Arc<dyn Disk>,
        bytes_max: u64,
        packs: &BTreeMap<PackNumber, PackObject>,
    ) -> io::Result<Extents> {
        let slots_max = usize::try_from((bytes_max / EXTENT_BYTES).max(SLOTS_MIN));
        let slots_max = slots_max.unwrap_or(usize::MAX);
        // What was kept only saves requests: whatever is wrong with it, it begins empty then.
        let (file, state) = match go_on(&**disk, slots_max, packs) {
            Some(kept) => kept,
            None => {
                remove_if_there(&**disk, TABLE_NAME)?;
                (create(&**disk, EXTENTS_NAME)?, State { slots_max, ..State::default() })
            }
        };
        let (state, disk) = (Mutex::new(state), Arc::clone(disk));
        Ok(Extents {
            disk,
            file,
            state,
            saving: Mutex::default(),
            flights: SingleFlight::default(),
        })
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
        if is_read && XxHash3_64::oneshot(&read) == checksum {
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

    /// Returns how many extents may be read ahead without taking the place of much else.
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

    /// Keeps an extent of the pack whose object is named by `own`, if there is a slot for it and
    /// the disk takes it.
    pub(super) fn put(&self, extent: Extent, own: &Nonce, bytes: &[u8]) {
        let (position, clearings) = {
            let mut state = self.state();
            if !state.takes(extent.0, own) {
                return;
            }
            let Some(position) = state.reserve(extent) else { return };
            (position, state.clearings)
        };
        let offset = position as u64 * EXTENT_BYTES;
        let written = self.file.write_all_at(offset, bytes);
        let is_due = {
            let mut state = self.state();
            if state.clearings != clearings {
                drop(state);
                // It came too late, and may be what must be gone.
                let _ = self.file.write_all_at(offset, &vec![0; bytes.len()]);
                return;
            }
            state.slots[position] = Slot::default();
            if written.is_ok() && !state.places.contains_key(&extent) {
                let (checksum, bytes) = (XxHash3_64::oneshot(bytes), bytes.len() as u32);
                let extent_here = Some(extent);
                state.slots[position] =
                    Slot { extent: extent_here, checksum, bytes, uses: 0, is_being_written: false };
                state.places.insert(extent, position);
                state.changes += 1;
            }
            (state.slots_max / SLOTS_A_TABLE).max(CHANGES_A_TABLE_MIN) <= state.changes
        };
        if is_due && let Ok(saving) = self.saving.try_lock() {
            self.save(&saving);
        }
    }

    /// Lets go of all extents of a pack that is dropped, for good.
    pub(super) fn forget(&self, pack: PackNumber) {
        let mut state = self.state();
        state.forget(pack);
        state.gone.insert(pack);
    }

    /// Lets go of all, and of all bytes in the file.
    ///
    /// # Errors
    /// What the disk says: some of it may still be there.
    pub(super) fn clear(&self) -> io::Result<()> {
        let _saving = self.saving.lock().expect("no panic while the lock is held");
        {
            let mut state = self.state();
            let State { slots_max, clearings, .. } = *state;
            let gone = std::mem::take(&mut state.gone);
            let clearings = clearings + 1;
            *state = State { slots_max, gone, clearings, ..State::default() };
        }
        self.file.set_bytes(0)?;
        remove_if_there(&*self.disk, TABLE_NAME)?;
        self.file.sync()?;
        self.disk.sync_directory()
    }

    /// Writes the table, for the next opening, and keeps nothing more.
    pub(super) fn close(&self) {
        let saving = self.saving.lock().expect("no panic while the lock is held");
        self.save(&saving);
        self.state().is_closed = true;
    }

    /// Writes the table, if it isn't as the last one; the caller is the only one.
    fn save(&self, _only: &MutexGuard<'_, ()>) {
        let table = {
            let mut state = self.state();
            if state.is_closed || state.changes == 0 {
                return;
            }
            state.changes = 0;
            Table { packs: state.packs.clone(), slots: state.slots.clone() }
        };
        // Where it fails, the one before counts, or none.
        let _ = create(&*self.disk, TABLE_NEW_NAME)
            .and_then(|file| file.write_all_at(0, &table.encode()))
            .and_then(|()| self.disk.rename(TABLE_NEW_NAME, TABLE_NAME));
    }
}

/// What an earlier opening left of `packs`; `None`: nothing that can be relied on.
fn go_on(
    disk: &dyn Disk,
    slots_max: usize,
    packs: &BTreeMap<PackNumber, PackObject>,
) -> Option<(Arc<dyn DiskFile>, State)> {
    let table = disk.open(TABLE_NAME).ok()?;
    let mut bytes = vec![0; usize::try_from(table.bytes().ok()?).ok()?];
    table.read_exact_at(0, &mut bytes).ok()?;
    let mut table = Table::parse(&bytes).ok()?;
    let file = disk.open(EXTENTS_NAME).ok()?;
    table.slots.truncate(slots_max);
    let bytes_max = slots_max as u64 * EXTENT_BYTES;
    if bytes_max < file.bytes().ok()? {
        file.set_bytes(bytes_max).ok()?;
    }
    table.packs.retain(|number, own| packs.get(number).is_some_and(|pack| pack.own == *own));
    let mut places = HashMap::with_capacity(table.slots.len());
    for (position, slot) in table.slots.iter_mut().enumerate() {
        let known = slot.extent.filter(|(pack, _)| table.packs.contains_key(pack));
        match known.map(|extent| places.entry(extent)) {
            Some(Entry::Vacant(place)) => drop(place.insert(position)),
            _ => *slot = Slot::default(),
        }
    }
    let Table { packs, slots } = table;
    Some((file, State { places, slots, slots_max, packs, ..State::default() }))
}

/// An empty file, where there may be one of the name.
fn create(disk: &dyn Disk, name: &str) -> io::Result<Arc<dyn DiskFile>> {
    match disk.create(name) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            disk.remove(name)?;
            disk.create(name)
        }
        created => created,
    }
}

fn remove_if_there(disk: &dyn Disk, name: &str) -> io::Result<()> {
    match disk.remove(name) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl State {
    /// Whether extents of this pack are kept; what is here of another of its number goes.
    fn takes(&mut self, pack: PackNumber, own: &Nonce) -> bool {
        if self.is_closed || self.gone.contains(&pack) {
            return false;
        }
        if self.packs.get(&pack).is_some_and(|other| other != own) {
            self.forget(pack);
        }
        self.packs.insert(pack, *own);
        true
    }

    fn forget(&mut self, pack: PackNumber) {
        let State { places, slots, packs, .. } = self;
        packs.remove(&pack);
        places.retain(|extent, position| {
            let stays = extent.0 != pack;
            if !stays {
                slots[*position].extent = None;
            }
            stays
        });
    }

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
