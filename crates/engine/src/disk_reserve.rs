//! Disk space that is kept in reserve, so that deleting always works.
//!
//! 1. *Growth*, which is any transaction that isn't known to give space back, is refused while less
//!    than the reserve is free. Operations that give space back (deletes, drops, expiry,
//!    collections), and the work on writes that were acknowledged before (flushes, folds), go on
//!    into the reserve.
//! 2. Acknowledged writes have to be written once more, from memtables into packs. Where that and
//!    the reserve are more than is free, growth waits for it first.
//! 3. A part of the reserve is *held*: a file that takes its space, so that it is there even if
//!    others fill the disk to the last byte. It is let go when something that gives space back, or
//!    an opening, finds less free than it holds, and made again when there is room
//!    ([`DiskReserve::hold`]).
//!
//! The free space is asked of the disk every [`LOOK_MICROS`], or [`LOOK_BYTES`] of growth, and
//! always where it was little: writes in between are a part of what the reserve is for. A disk that
//! can't say what is free has no reserve.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use frond_store::io::{Clock, Disk, DiskSpace, Machine};
use frond_store::last_part;

/// The file that holds space.
pub(crate) const NAME: &str = "RESERVE";
/// Others write, too: at 500 MB a second, 10 MB meanwhile.
const LOOK_MICROS: i64 = 20_000;
const LOOK_BYTES: u64 = 1 << 20;
/// Little is free where it is less than so many times what is held back.
const LITTLE_TIMES: u64 = 2;
/// The share of a disk that is held back by itself.
const SHARE: u64 = 50;
/// Recent writes are flushed with so much, and a delete of some hundred thousand documents logged.
const BYTES_MIN: u64 = 64 << 20;
/// A size above all that can wait to be written.
const BYTES_MAX: u64 = 1 << 30;
/// The divisor by which a small disk gives what is held back, where that is less than
/// [`BYTES_MIN`].
const SMALL_DISK_SHARE: u64 = 8;
/// The part of the reserve's last part that is held.
const HELD_SHARE: u64 = 4;
/// Memtables wait with this part of the reserve at most where it is near.
pub(crate) const WAITING_SHARE: u64 = 4;
/// This part of the reserve's last part the log leaves free (`frond_store::Headroom` has the other
/// parts).
const LOG_SHARE: u64 = 16;

/// The size of the reserve.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reserve {
    /// A fiftieth of the disk, but 64 MB at least and 1 GB at most; an eighth of a disk that is
    /// small.
    #[default]
    Share,
    /// So many bytes; none: what grows goes on until the disk is full.
    Bytes(u64),
}

impl Reserve {
    /// Returns how much that is of a disk of so many bytes.
    pub fn of(self, disk_bytes: u64) -> u64 {
        match self {
            Reserve::Bytes(bytes) => bytes,
            Reserve::Share => {
                (disk_bytes / SHARE).clamp(BYTES_MIN, BYTES_MAX).min(disk_bytes / SMALL_DISK_SHARE)
            }
        }
    }
}

/// The space of a disk: its size, what is free, and the reserve.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DiskStatus {
    /// Bytes of the disk.
    pub disk: u64,
    /// Bytes that are free, what is held not counted.
    pub free: u64,
    /// Bytes that are held back.
    pub reserve: u64,
    /// Bytes of these that a file holds.
    pub held: u64,
}

impl DiskStatus {
    /// Whether growth is refused.
    pub fn is_short(&self) -> bool {
        !self.has_beside_reserve(0)
    }

    /// Whether only what is left to what gives space back is free, so that growth may not even
    /// flush what waits.
    pub(crate) fn is_spent(&self) -> bool {
        self.free < held_part(self.reserve)
    }

    /// Whether the log has no room for a record of so many bytes that gives space back.
    pub(crate) fn is_full_for(&self, bytes: u64) -> bool {
        self.free < (last_part(self.reserve) / LOG_SHARE).saturating_add(bytes)
    }

    pub(crate) fn has_beside_reserve(&self, bytes: u64) -> bool {
        self.reserve.saturating_add(bytes) <= self.free.saturating_add(self.held)
    }
}

fn held_part(reserve_bytes: u64) -> u64 {
    last_part(reserve_bytes) / HELD_SHARE
}

/// The reserve of a data directory.
pub(crate) struct DiskReserve {
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    reserve: Reserve,
    /// The time when the disk was asked last, and its answer; nothing: it doesn't know.
    looked: AtomicI64,
    /// Bytes that have grown since.
    grown: AtomicU64,
    free: AtomicU64,
    size: AtomicU64,
    /// The bytes that the file holds. Changed with `changing` held.
    held: AtomicU64,
    changing: Mutex<()>,
    /// Held by the thread that flushes so that growth may go on.
    pub flushing: Mutex<()>,
}

impl DiskReserve {
    /// Looks at the disk of a data directory, which this process has locked. Lets go of what is
    /// held if nothing else is free: an opening writes.
    pub fn open(machine: &Machine, reserve: Reserve) -> DiskReserve {
        let held = machine.disk.open(NAME).and_then(|file| file.bytes()).unwrap_or(0);
        let space = DiskReserve {
            disk: Arc::clone(&machine.disk),
            clock: Arc::clone(&machine.clock),
            reserve,
            looked: AtomicI64::new(0),
            grown: AtomicU64::new(0),
            free: AtomicU64::new(0),
            size: AtomicU64::new(0),
            held: AtomicU64::new(held),
            changing: Mutex::default(),
            flushing: Mutex::default(),
        };
        space.look();
        space.release_reserve();
        space
    }

    /// Returns the disk's status; `None` if it doesn't report one.
    pub fn disk_status(&self) -> Option<DiskStatus> {
        self.look();
        self.known()
    }

    /// Returns how much is held back; `None`: nothing.
    pub fn reserve_bytes(&self) -> Option<u64> {
        self.known().map(|room| room.reserve).filter(|bytes| *bytes > 0)
    }

    /// Returns the disk's last known status, which isn't old.
    fn recent(&self) -> Option<DiskStatus> {
        let passed = self.clock.steady_micros().saturating_sub(self.looked.load(Ordering::Relaxed));
        let known = self.known()?;
        let is_recent = passed < LOOK_MICROS
            && self.grown.load(Ordering::Relaxed) < LOOK_BYTES
            && known.reserve.saturating_mul(LITTLE_TIMES) <= known.free;
        if is_recent { Some(known) } else { self.disk_status() }
    }

    fn known(&self) -> Option<DiskStatus> {
        let disk = self.size.load(Ordering::Relaxed);
        let room = DiskStatus {
            disk,
            free: self.free.load(Ordering::Relaxed),
            reserve: self.reserve.of(disk),
            held: self.held.load(Ordering::Relaxed),
        };
        (disk > 0).then_some(room)
    }

    fn look(&self) {
        self.grown.store(0, Ordering::Relaxed);
        self.looked.store(self.clock.steady_micros(), Ordering::Relaxed);
        let measured = self.disk.space().ok().flatten().unwrap_or(DiskSpace { bytes: 0, free: 0 });
        self.free.store(measured.free, Ordering::Relaxed);
        self.size.store(measured.bytes, Ordering::Relaxed);
    }

    /// Returns how the disk is for growth by about so many bytes.
    pub fn status_for_growth(&self, bytes: u64) -> Option<DiskStatus> {
        self.grown.fetch_add(bytes, Ordering::Relaxed);
        self.recent().filter(|room| room.reserve > 0)
    }

    /// Sees to it that there is room for what gives space back, or for what was acknowledged.
    pub fn release_reserve(&self) {
        let is_low = |room: DiskStatus| room.free < room.held;
        if self.held.load(Ordering::Relaxed) == 0 || !self.recent().is_some_and(is_low) {
            return;
        }
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        // A reserve that can't be released now is tried again by the next caller that needs it.
        if self.disk.remove(NAME).is_ok() {
            self.held.store(0, Ordering::Relaxed);
            let _ = self.disk.sync_directory();
        }
        self.look();
    }

    /// Holds a part of the reserve again, if it isn't held and there is room enough beside the
    /// reserve.
    pub fn hold(&self) {
        let Some(room) = self.disk_status() else { return };
        let wanted = held_part(room.reserve);
        let has_room = room.reserve.saturating_add(wanted) <= room.free;
        if wanted == 0 || room.held > 0 || !has_room {
            return;
        }
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.held.load(Ordering::Relaxed) > 0 {
            return;
        }
        let made = self.disk.create(NAME).and_then(|file| file.allocate(wanted));
        match made.and_then(|()| self.disk.sync_directory()) {
            Ok(()) => self.held.store(wanted, Ordering::Relaxed),
            Err(_) => drop(self.disk.remove(NAME)),
        }
        self.look();
    }
}

#[cfg(test)]
mod tests {
    use frond_testkit::SimDisk;

    use super::*;

    #[test]
    fn a_part_of_the_reserve_is_held_while_there_is_room_beside_it() {
        let disk = SimDisk::new(0);
        disk.limit_to(Some(1000));
        let space = DiskReserve::open(&disk.machine(), Reserve::Bytes(480));
        let held = || disk.contents(NAME).map_or(0, |contents| contents.len());
        assert_eq!(held(), 0);
        for _ in 0..2 {
            space.hold();
            assert_eq!(held(), 480 / HELD_SHARE as usize);
        }
        space.release_reserve();
        assert_ne!(held(), 0, "there is room");
        let file = disk.create("a").unwrap();
        file.write_all_at(0, &[7; 800]).unwrap();
        space.release_reserve();
        space.hold();
        assert_eq!(held(), 0, "there is none beside the reserve");
        disk.remove("a").unwrap();
        space.hold();
        assert_ne!(held(), 0);
    }

    #[test]
    fn opening_a_full_disk_releases_the_reserve() {
        let disk = SimDisk::new(0);
        disk.limit_to(Some(1000));
        DiskReserve::open(&disk.machine(), Reserve::Bytes(480)).hold();
        let held = || disk.contents(NAME).map_or(0, |contents| contents.len());
        assert_ne!(held(), 0);
        DiskReserve::open(&disk.machine(), Reserve::Bytes(480));
        assert_ne!(held(), 0, "there is room");
        let free = 1000 - held();
        disk.create("a").unwrap().write_all_at(0, &vec![7; free]).unwrap();
        DiskReserve::open(&disk.machine(), Reserve::Bytes(480));
        assert_eq!(held(), 0);
    }

    #[test]
    fn the_share_of_a_disk_has_a_floor_and_a_ceiling() {
        const MB: u64 = 1 << 20;
        for (disk, expected) in [
            (0, 0),
            (80 * MB, 10 * MB),
            (300 * MB, 300 * MB / 8),
            (1 << 30, 64 * MB),
            (10 << 30, (10 << 30) / 50),
            (100 << 30, 1 << 30),
            (u64::MAX, 1 << 30),
        ] {
            assert_eq!(Reserve::Share.of(disk), expected, "{disk}");
        }
        assert_eq!(Reserve::Bytes(7).of(3), 7);
    }
}
