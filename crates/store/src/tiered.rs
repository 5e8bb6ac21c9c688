//! A disk whose sealed packs live in a bucket: the disk itself keeps the log, the open packs, and a
//! bounded cache of what was read.
//!
//! 1. *The directory leads.* Its own manifest says what its store holds, as ever, and is published
//!    first. HEAD, an object of the bucket, follows: it lists the packs that lie there, and has a
//!    manifest for a server that begins without this directory.
//! 2. *Up, then down.* A sealed pack is put as an object that is never replaced; HEAD is swapped to
//!    list it; its index is written to a file of its own and synced; only then its file goes. So
//!    each pack of the manifest lies in the directory or is listed by HEAD, whatever is cut where.
//! 3. *Down, then gone.* What a collection drops leaves the manifest first, then HEAD, and its
//!    object goes [`DOOMED_MICROS`] later: readers that hold it read on. Where bytes must be gone
//!    ([`purge`]), it goes at once.
//! 4. *Fencing.* An opening takes the lead ([`lead`]): it swaps HEAD to a higher epoch. The
//!    previous leader finds its next swap refused, and stops writing. Writes that it acknowledged
//!    since its last one stay in its directory alone.
//! 5. *Orphans*, objects of an earlier epoch that HEAD doesn't list, can't be named by any writer
//!    any more: they count as dropped from the next opening on.
//! 6. *The log* lies on the disk, or as [`slots`] in the bucket; a server that takes over goes on
//!    from HEAD's manifest there, or from all that was acknowledged.
//! 7. *Clones* ([`pins`]) are lines that share their source's packs.
//! 8. *Readers* ([`reader`]) are directories that lead nothing, beside the one that does.
//!
//! Reads go by extents through a bounded file ([`extents`]). The index of a pack that this
//! directory made stays in it; one that takes over, or reads, begins with the outlines of indexes
//! ([`locations`]), and fetches what it searches.

mod errors;
mod extents;
mod file;
pub(crate) mod format;
mod head;
mod index_file;
mod lead;
mod locations;
mod pins;
mod purge;
mod read_ahead;
mod reader;
mod single_flight;
mod slots;
mod uploads;

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use self::extents::{EXTENTS_NAME, Extents};
use self::file::{Remote, TieredFile};
use self::format::{Head, PackObject};
pub(crate) use self::head::DEPOT_NAME;
use self::index_file::{INDEX_SUFFIX, PackIndex};
use self::locations::{LOCATIONS_SUFFIX, Outlines};
pub use self::pins::{Pin, PinState, pins, remove_pin};
use self::pins::{PinnedLines, Places, Watch};
use self::read_ahead::ReadAhead;
pub use self::slots::{PlacedSlots, Slots};
use crate::bucket::{Bucket, MeteredBucket, ObjectVersion};
use crate::error::StoreError;
use crate::io::{
    Chance, Clock, Disk, DiskFile, DiskSpace, Due, Machine, StoredBytes, Tier, TierState,
};
use crate::location::PackNumber;

const DEPOT_NEW_NAME: &str = "DEPOT.new";
/// The time after HEAD stops listing an object at which it is removed: snapshots live for an hour.
const DOOMED_MICROS: i64 = 75 * 60 * 1_000_000;

/// The options of a directory's bucket.
#[derive(Clone, Debug)]
pub struct TieredOptions {
    /// The bucket's name; the directory remembers it.
    pub place: String,
    /// Bytes of the file of extents.
    pub cache_bytes: u64,
    /// The number of bytes of new packs that stay on the disk before they are put into the bucket.
    pub local_bytes_max: u64,
    /// An empty directory may take the lead from another one: what that acknowledged and didn't
    /// put into the bucket is not in this one.
    pub take_over: bool,
    /// A line that isn't there yet begins as a clone of the one of this bucket's name.
    pub clone_of: Option<String>,
    /// The time after which a source lets go of a clone's pins that weren't renewed, a day at
    /// least. `None`: as they have it, and never for new ones.
    pub pin_lease: Option<Duration>,
    /// The place of the log.
    pub log: LogPlace,
    /// The time that what is to be acknowledged waits in the bucket for more of it, while some is
    /// on its way.
    pub linger: Duration,
    /// There, slots that HEAD needs no more stay so long at least, for readers that come to them.
    pub keep_slots: Duration,
}

impl TieredOptions {
    fn pin_lease_micros(&self) -> Option<i64> {
        let micros = |lease: Duration| i64::try_from(lease.as_micros()).unwrap_or(i64::MAX);
        self.pin_lease.map(micros)
    }
}

/// The place of the log, and so of acknowledged writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LogPlace {
    /// On the directory's disk, with which it is lost.
    #[default]
    Local,
    /// In the bucket.
    Bucket,
}

/// What a directory does with its bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Leads,
    Reads,
}

/// See the module.
///
/// *Thread safety*: every method may be called from any number of threads at once. `line` is held
/// across requests that put; `packs` and `files` never are, and are taken in this order.
pub struct TieredDisk {
    role: Role,
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    chance: Arc<dyn Chance>,
    bucket: Arc<MeteredBucket<Arc<dyn Bucket>>>,
    places: Places,
    options: TieredOptions,
    /// The log, where it lies in the bucket.
    slots: Option<Arc<Slots>>,
    extents: Arc<Extents>,
    line: Mutex<Line>,
    /// The packs that lie in the bucket and weren't dropped.
    packs: Mutex<BTreeMap<PackNumber, PackObject>>,
    files: Mutex<BTreeMap<PackNumber, Weak<TieredFile>>>,
    /// Outlines of packs that nothing asked for yet: an opening does.
    outlines: Mutex<Outlines>,
    /// Bytes written to packs since they were last put there.
    written: Arc<AtomicU64>,
    /// Packs that the bucket had lost when this was opened.
    lost: Vec<PackNumber>,
    /// What the operator hasn't been shown yet.
    notices: Mutex<Vec<String>>,
    is_locked: AtomicBool,
}

/// This directory's last knowledge of HEAD.
struct Line {
    head: Head,
    version: ObjectVersion,
    /// Another directory leads.
    is_deposed: bool,
    /// Packs that were put, and that HEAD doesn't list yet.
    put: BTreeMap<PackNumber, PackObject>,
    /// Objects that HEAD doesn't list any more, and since when.
    doomed: Vec<(i64, String)>,
    /// What is known of what pins keep.
    kept: PinnedLines,
    /// Sources of which HEAD lists nothing any more, by their positions, and since when.
    unneeded: BTreeMap<usize, i64>,
    /// What was seen of its pins.
    watch: Watch,
    /// When its pins at its sources are to be renewed, by the steady clock.
    renew_at: i64,
}

impl TieredDisk {
    /// Takes the lead of the bucket's line for the directory that is `machine`'s disk, which stays
    /// locked as long as this lives.
    ///
    /// # Errors
    /// [`StoreError::InUse`]; [`StoreError::Io`] if disk or bucket don't answer, or if this
    /// directory can't have the line; [`StoreError::Damaged`] or [`StoreError::Version`] of HEAD or
    /// of the directory's file.
    pub fn open(
        machine: &Machine,
        bucket: Arc<dyn Bucket>,
        options: TieredOptions,
    ) -> Result<TieredDisk, StoreError> {
        TieredDisk::open_as(Role::Leads, machine, bucket, options)
    }

    /// Opens a directory that reads what another one leads, and changes nothing there.
    ///
    /// # Errors
    /// As [`TieredDisk::open`]; [`StoreError::Io`] if there is nothing to read yet, or the
    /// directory has data of its own.
    pub fn open_reader(
        machine: &Machine,
        bucket: Arc<dyn Bucket>,
        options: TieredOptions,
    ) -> Result<TieredDisk, StoreError> {
        TieredDisk::open_as(Role::Reads, machine, bucket, options)
    }

    fn open_as(
        role: Role,
        machine: &Machine,
        bucket: Arc<dyn Bucket>,
        options: TieredOptions,
    ) -> Result<TieredDisk, StoreError> {
        machine.disk.lock().map_err(StoreError::of_lock)?;
        let bucket = Arc::new(MeteredBucket::new(bucket));
        let own = Arc::clone(&bucket) as Arc<dyn Bucket>;
        let taken = match role {
            Role::Leads => lead::take(machine, &own, &options),
            Role::Reads => reader::begin(machine, &own, &options),
        };
        let taken = taken.inspect_err(|_| machine.disk.unlock())?;
        let places = Places::of(&own, &taken.head).inspect_err(|_| machine.disk.unlock())?;
        let packs = taken.head.packs.clone();
        let extents = Extents::open(&machine.disk, options.cache_bytes, &packs)
            .inspect_err(|_| machine.disk.unlock());
        let slots = (role == Role::Reads || options.log == LogPlace::Bucket).then(|| {
            let (bucket, head) = (Arc::clone(&bucket), &taken.head);
            Arc::new(Slots::new(bucket, head.epoch, head.slot, options.linger))
        });
        let now = machine.clock.steady_micros();
        let doomed = taken.left.into_iter().map(|name| (now, name)).collect();
        let line = Line {
            head: taken.head,
            version: taken.version,
            is_deposed: false,
            put: BTreeMap::new(),
            doomed,
            kept: PinnedLines::default(),
            unneeded: BTreeMap::new(),
            watch: Watch::default(),
            renew_at: pins::first_renewal(role == Role::Reads, now),
        };
        Ok(TieredDisk {
            role,
            disk: Arc::clone(&machine.disk),
            clock: Arc::clone(&machine.clock),
            chance: Arc::clone(&machine.chance),
            bucket,
            places,
            options,
            slots,
            extents: Arc::new(extents.map_err(|error| StoreError::io(EXTENTS_NAME, error))?),
            line: Mutex::new(line),
            packs: Mutex::new(packs),
            files: Mutex::default(),
            outlines: Mutex::new(taken.outlines),
            written: Arc::default(),
            lost: taken.lost,
            notices: Mutex::new(taken.notices),
            is_locked: AtomicBool::new(false),
        })
    }

    /// The log, where it lies in the bucket; a reader's, which may not.
    pub fn slots(&self) -> Option<&Arc<Slots>> {
        self.slots.as_ref()
    }

    /// Has the operator read this.
    fn notice(&self, notice: String) {
        self.notices.lock().expect("no panic while the lock is held").push(notice);
    }

    /// Whether HEAD says where the log begins that lies in the bucket: without that, a directory
    /// that takes over doesn't look for it.
    pub fn is_log_begun(&self) -> bool {
        self.line().head.slot.is_some()
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().expect("no panic while the lock is held")
    }

    fn packs(&self) -> MutexGuard<'_, BTreeMap<PackNumber, PackObject>> {
        self.packs.lock().expect("no panic while the lock is held")
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<PackNumber, Weak<TieredFile>>> {
        self.files.lock().expect("no panic while the lock is held")
    }

    /// The pack's file, which all share that have it open.
    fn register(&self, number: PackNumber, file: TieredFile) -> Arc<TieredFile> {
        let file = Arc::new(file);
        self.files().insert(number, Arc::downgrade(&file));
        file
    }

    fn open_pack(&self, number: PackNumber, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = self.files().get(&number).and_then(Weak::upgrade) {
            return Ok(file);
        }
        match self.disk.open(name) {
            Ok(file) => Ok(self.register(number, TieredFile::local(file, &self.written))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let pack = self.packs().get(&number).copied();
                let remote = self.remote(number, pack.ok_or(error)?)?;
                Ok(self.register(number, TieredFile::remote(remote, &self.written)))
            }
            Err(error) => Err(error),
        }
    }

    fn outlines(&self) -> MutexGuard<'_, Outlines> {
        self.outlines.lock().expect("no panic while the lock is held")
    }

    /// A pack in the bucket; its index is on the disk, unless its outline is there.
    fn remote(&self, number: PackNumber, pack: PackObject) -> io::Result<Remote> {
        let index = match self.outlines().contains_key(&number) {
            true => PackIndex::unread(&self.disk, (number, pack)),
            false => {
                let file = self.index_file(number, &pack)?;
                PackIndex::here(&self.disk, (number, pack), file)
            }
        };
        let bucket = Arc::clone(self.places.bucket(pack.owner));
        let extents = Arc::clone(&self.extents);
        Ok(Remote { number, pack, index, bucket, extents, read_ahead: ReadAhead::default() })
    }
}

impl TieredDisk {
    /// The file of a pack's index, fetched where it is missing.
    fn index_file(&self, number: PackNumber, pack: &PackObject) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = index_file::open_index(&*self.disk, number, pack)? {
            return Ok(file);
        }
        let bucket = &**self.places.bucket(pack.owner);
        index_file::fetch_index(&*self.disk, bucket, number, pack)?;
        let lost = || io::Error::other(format!("{number}: its index can't be kept"));
        index_file::open_index(&*self.disk, number, pack)?.ok_or_else(lost)
    }
}

impl Drop for TieredDisk {
    fn drop(&mut self) {
        self.extents.close();
        self.disk.unlock();
    }
}

/// The bucket that the packs of a directory lie in, if they do.
///
/// # Errors
/// [`StoreError::Io`]; [`StoreError::Damaged`] or [`StoreError::Version`] of the file that says so.
pub fn place_of(disk: &dyn Disk) -> Result<Option<String>, StoreError> {
    Ok(lead::read_membership(disk)?.map(|member| member.place))
}

/// Returns where the log of a bucket's line lies.
///
/// # Errors
/// [`StoreError::Io`] if the bucket doesn't answer; [`StoreError::Damaged`] or
/// [`StoreError::Version`] of HEAD.
pub fn log_place_in(bucket: &dyn Bucket) -> Result<LogPlace, StoreError> {
    let head = match bucket.load(format::HEAD_NAME).map_err(errors::store_error)? {
        Some((bytes, _)) => Head::parse(&bytes)?,
        None => Head::default(),
    };
    Ok(if head.slot.is_some() { LogPlace::Bucket } else { LogPlace::Local })
}

/// Refuses a directory whose packs lie in a bucket, but for a disk that reaches them.
///
/// # Errors
/// [`StoreError::Io`] that says so.
pub(crate) fn check_tier_is_known(disk: &dyn Disk) -> Result<(), StoreError> {
    if disk.tier().is_some() || disk.open(DEPOT_NAME).is_err() {
        return Ok(());
    }
    let what = "the packs of this directory lie in a store: frond serve --store opens it, and commands \
                reach it by that server's address";
    Err(StoreError::io(DEPOT_NAME, io::Error::other(what)))
}

/// Whether a file is one of those that this module keeps beside others.
fn is_own(name: &str) -> bool {
    name == DEPOT_NAME
        || name == DEPOT_NEW_NAME
        || name.starts_with(EXTENTS_NAME)
        || name.ends_with(INDEX_SUFFIX)
        || name.ends_with(LOCATIONS_SUFFIX)
}

impl Disk for TieredDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.create(name)?;
        match PackNumber::from_file_name(name) {
            Some(number) => Ok(self.register(number, TieredFile::local(file, &self.written))),
            None => Ok(file),
        }
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        match PackNumber::from_file_name(name) {
            Some(number) => self.open_pack(number, name),
            None => self.disk.open(name),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = self.disk.list()?;
        names.retain(|name| !is_own(name));
        names.extend(self.packs().keys().map(PackNumber::to_string));
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let Some(number) = PackNumber::from_file_name(name) else {
            return self.disk.remove(name);
        };
        self.files().remove(&number);
        let was_there = self.packs().remove(&number).is_some();
        if was_there {
            self.extents.forget(number);
            // Its file stays readable for a caller that holds it.
            let _ = self.disk.remove(&index_file::index_name(number));
        }
        match self.disk.remove(name) {
            Err(error) if was_there && error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn space(&self) -> io::Result<Option<DiskSpace>> {
        self.disk.space()
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.disk.sync_directory()
    }

    fn lock(&self) -> io::Result<()> {
        match self.is_locked.swap(true, Ordering::SeqCst) {
            true => Err(ErrorKind::WouldBlock.into()),
            false => Ok(()),
        }
    }

    fn unlock(&self) {
        self.is_locked.store(false, Ordering::SeqCst);
    }

    fn tier(&self) -> Option<&dyn Tier> {
        Some(self)
    }
}

impl Tier for TieredDisk {
    fn due(&self) -> Due {
        let (written, most) = (self.written.load(Ordering::Relaxed), self.options.local_bytes_max);
        match written {
            _ if written < most || self.role == Role::Reads => Due::No,
            _ if written < most.saturating_mul(2) => Due::Soon,
            _ => Due::Now,
        }
    }

    fn take(&self, files: &[(String, u64)], manifest: &[u8]) -> Result<(), StoreError> {
        match self.role {
            Role::Leads => self.put_all(files, manifest),
            Role::Reads => Ok(()),
        }
    }

    fn outline(&self, name: &str) -> Option<StoredBytes> {
        self.outlines().remove(&PackNumber::from_file_name(name)?)
    }

    fn keep_index(&self, name: &str, index: &[u8]) -> io::Result<bool> {
        let number = PackNumber::from_file_name(name);
        let Some((number, pack)) =
            number.and_then(|number| Some((number, *self.packs().get(&number)?)))
        else {
            return Ok(false);
        };
        index_file::write_index(&*self.disk, number, index)?;
        let remote = self.remote(number, pack)?;
        if let Some(file) = self.files().get(&number).and_then(Weak::upgrade) {
            file.move_to(remote);
        }
        Ok(true)
    }

    fn purge(&self) -> Result<(), StoreError> {
        match self.role {
            Role::Leads => self.remove_all_dropped(),
            Role::Reads => Ok(()),
        }
    }

    fn lost(&self) -> Vec<String> {
        self.lost.iter().map(PackNumber::to_string).collect()
    }

    fn tend(&self) -> Vec<String> {
        self.renew_pins();
        std::mem::take(&mut *self.notices.lock().expect("no panic while the lock is held"))
    }

    fn is_deposed(&self) -> bool {
        self.line().is_deposed
    }

    fn hang_up(&self) {
        self.places.hang_up();
    }

    fn state(&self) -> TierState {
        TierState {
            bytes_waiting: self.written.load(Ordering::Relaxed),
            requests: self.bucket.requests(),
        }
    }
}
