//! Data directories whose packs live in a bucket.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use frond_db::frond::open_machine;
pub use frond_db::set::EntryChanges;
use frond_db::{Error, Frond, FrondOptions};
use frond_store::io::{Disk, Machine, SystemChance, pause, steady_now};
pub use frond_store::tiered::{LogPlace, Pin, PinState};
use frond_store::tiered::{TieredDisk, TieredOptions, log_place_in, pins, place_of, remove_pin};
use frond_vcs::{ChunkSource, FsckReport, RepairReport, SalvageReport};

use crate::object_bucket::ObjectBucket;
use crate::remote_url::BucketUrl;

/// New packs of so many bytes stay on the disk before they are put into the bucket.
const LOCAL_BYTES_MAX: u64 = 64 << 20;

/// A reader that lags less behind than this reads on when the leader has flushed.
const KEEP_SLOTS: Duration = Duration::from_secs(120);

/// Bytes on the disk for what a command reads.
const COMMAND_CACHE_BYTES: u64 = 64 << 20;

/// The time within which everything that precedes the log in the bucket must be sent, or the
/// opening fails.
const BEGIN_WAIT_MAX: Duration = Duration::from_secs(600);
const BEGIN_STEP: Duration = Duration::from_millis(10);

/// The options for the packs of a directory that lie in a bucket.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The bucket: `s3://BUCKET/PREFIX` or another address of one.
    pub url: String,
    /// Bytes on the disk for what was read of it.
    pub cache_bytes: u64,
    /// An empty directory may begin with what another one put there, which writes no more then.
    pub take_over: bool,
    /// An empty directory and a place without data may begin as a clone of what lies at this one,
    /// whose packs aren't copied.
    pub clone_of: Option<String>,
    /// The time after which a source lets go of a clone's pins that weren't renewed. `None`: as
    /// they have it, and never for new ones.
    pub pin_lease: Option<Duration>,
    /// The place of the log.
    pub log: LogPlace,
    /// The time that what is to be acknowledged waits in the bucket for more of it, while some is
    /// on its way.
    pub linger: Duration,
}

/// Opens `directory`, whose packs live in a bucket, making it where it is missing.
///
/// # Errors
/// `BadValue` if no bucket is named; as [`frond_vcs::open`]; `Unavailable` if the bucket doesn't
/// answer, or another directory leads there.
pub fn open(
    directory: &Path,
    store: &StoreOptions,
    mut options: FrondOptions,
) -> Result<Frond, Error> {
    // A store reads its objects again by itself; from here each would be paid for.
    options.engine.scrub_bytes_a_second = None;
    let machine = open_machine(directory)?;
    let (bucket, place) = bucket_of(&store.url)?;
    open_on(&machine, tiered_disk(&machine, bucket, place, store)?, options)
}

/// As [`frond_vcs::open`], for commands: a directory whose packs live in a bucket leads there while
/// it is open, if it did before.
///
/// # Errors
/// As [`open`].
pub fn open_known(directory: &Path, options: FrondOptions) -> Result<Frond, Error> {
    match known_store(directory)? {
        Some(store) => open(directory, &store, options),
        None => frond_vcs::open(directory, options),
    }
}

/// As [`frond_vcs::fsck`], of a directory whose packs live in a bucket, too: all of it is fetched.
///
/// # Errors
/// As [`frond_vcs::fsck`]; as [`open`].
pub fn fsck(directory: &Path, progress: &mut dyn FnMut(u64)) -> Result<FsckReport, Error> {
    match KnownStore::of(directory)? {
        Some(known) => fsck_on(&known.machine, known.tiered()?, progress),
        None => frond_vcs::fsck(directory, progress),
    }
}

/// Checks what lies on `tiered`, which is `machine`'s disk with its bucket.
///
/// # Errors
/// As [`fsck`].
pub fn fsck_on(
    machine: &Machine,
    tiered: TieredDisk,
    progress: &mut dyn FnMut(u64),
) -> Result<FsckReport, Error> {
    frond_vcs::fsck_on(&with_bucket(machine, tiered).0, progress)
}

/// As [`frond_vcs::repair`], of a directory whose packs live in a bucket, too: all of it is
/// fetched, twice. What was brought lies on the disk until the next server sends it.
///
/// # Errors
/// As [`frond_vcs::repair`]; as [`open`].
pub fn repair(
    directory: &Path,
    sources: &[ChunkSource],
    progress: &mut dyn FnMut(u64),
) -> Result<RepairReport, Error> {
    match KnownStore::of(directory)? {
        Some(known) => repair_on(&known.machine, &|| known.tiered(), sources, progress),
        None => frond_vcs::repair(directory, sources, progress),
    }
}

/// Repairs what lies on the disk that `tiered` opens, which is `machine`'s with its bucket.
///
/// # Errors
/// As [`repair`].
pub fn repair_on(
    machine: &Machine,
    tiered: &dyn Fn() -> Result<TieredDisk, Error>,
    sources: &[ChunkSource],
    progress: &mut dyn FnMut(u64),
) -> Result<RepairReport, Error> {
    let mut report = {
        let (machine, tiered) = with_bucket(machine, tiered()?);
        frond_vcs::mend_on(&machine, tiered.slots(), sources, progress)?
    };
    // An engine that is closed hangs up on its bucket.
    report.left = fsck_on(machine, tiered()?, progress)?;
    Ok(report)
}

/// As [`frond_vcs::salvage`], of a directory whose packs live in a bucket, too.
///
/// # Errors
/// As [`frond_vcs::salvage`]; as [`open`].
pub fn salvage(
    from: &Path,
    to: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<SalvageReport, Error> {
    match KnownStore::of(from)? {
        Some(known) => salvage_on(&known.machine, known.tiered()?, to, progress),
        None => frond_vcs::salvage(from, to, progress),
    }
}

/// Salvages what lies on `tiered`, which is `machine`'s disk with its bucket.
///
/// # Errors
/// As [`salvage`].
pub fn salvage_on(
    machine: &Machine,
    tiered: TieredDisk,
    to: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<SalvageReport, Error> {
    let (machine, tiered) = with_bucket(machine, tiered);
    frond_vcs::salvage_from(&machine, tiered.slots(), to, progress)
}

/// A machine whose disk is `tiered`.
fn with_bucket(machine: &Machine, tiered: TieredDisk) -> (Machine, Arc<TieredDisk>) {
    let tiered = Arc::new(tiered);
    let disk = Arc::clone(&tiered) as Arc<dyn Disk>;
    (Machine { disk, ..machine.clone() }, tiered)
}

/// A directory that says which store its packs live in.
struct KnownStore {
    machine: Machine,
    store: StoreOptions,
}

impl KnownStore {
    /// `None`: they live on its disk.
    fn of(directory: &Path) -> Result<Option<KnownStore>, Error> {
        let Some(store) = known_store(directory)? else { return Ok(None) };
        Ok(Some(KnownStore { machine: open_machine(directory)?, store }))
    }

    /// Its disk with its bucket.
    fn tiered(&self) -> Result<TieredDisk, Error> {
        let (bucket, place) = bucket_of(&self.store.url)?;
        tiered_disk(&self.machine, bucket, place, &self.store)
    }
}

/// A directory that reads what another one leads.
pub struct Reading {
    frond: Frond,
    tiered: Arc<TieredDisk>,
}

impl Reading {
    /// Opens `directory`, which is empty or was a reader's before, with what lies in the bucket.
    ///
    /// # Errors
    /// As [`open`]; `Unavailable` if there is nothing to read yet, or the directory has data of its
    /// own.
    pub fn open(
        directory: &Path,
        store: &StoreOptions,
        options: FrondOptions,
    ) -> Result<Reading, Error> {
        let machine = open_machine(directory)?;
        let (bucket, place) = bucket_of(&store.url)?;
        let options_there = tiered_options(place, store)?;
        let tiered = TieredDisk::open_reader(&machine, bucket, options_there)?;
        Reading::open_on(&machine, tiered, options)
    }

    /// Opens what lies on `tiered`, which is `machine`'s disk with its bucket.
    ///
    /// # Errors
    /// As [`Reading::open`].
    pub fn open_on(
        machine: &Machine,
        tiered: TieredDisk,
        mut options: FrondOptions,
    ) -> Result<Reading, Error> {
        // What a collection would move here goes with the next opening.
        options.engine.reclaim_bytes_a_second = None;
        options.engine.scrub_bytes_a_second = None;
        let (machine, tiered) = with_bucket(machine, tiered);
        let slots = tiered.slots().expect("a reader has them");
        let frond = frond_vcs::open_reader(&machine, options, slots)?;
        let reading = Reading { frond, tiered };
        reading.read_on()?;
        Ok(reading)
    }

    /// The databases, which take no writes.
    pub fn frond(&self) -> &Frond {
        &self.frond
    }

    /// Whether the log lies in the bucket, so that it can be read on.
    pub fn follows(&self) -> bool {
        self.tiered.is_log_begun()
    }

    /// Shows what was acknowledged since, as far as it lies in the bucket; costs a request.
    ///
    /// # Errors
    /// `Unavailable` if the bucket doesn't answer; another error if the directory is to be opened
    /// again.
    pub fn read_on(&self) -> Result<EntryChanges, Error> {
        self.frond.read_on(self.tiered.slots().expect("a reader has them"))
    }

    /// Whether it is to be opened again: what it shows isn't read on, or goes; costs a request.
    ///
    /// # Errors
    /// `Unavailable` if the bucket doesn't answer.
    pub fn is_outdated(&self) -> Result<bool, Error> {
        Ok(self.tiered.is_outdated()?)
    }
}

/// The store that a directory says its packs live in.
fn known_store(directory: &Path) -> Result<Option<StoreOptions>, Error> {
    if !directory.exists() {
        return Ok(None);
    }
    let Some(url) = place_of(&*open_machine(directory)?.disk)? else { return Ok(None) };
    let log = log_place_in(&*bucket_of(&url)?.0)?;
    let (cache_bytes, linger) = (COMMAND_CACHE_BYTES, Duration::ZERO);
    Ok(Some(StoreOptions {
        url,
        cache_bytes,
        take_over: false,
        clone_of: None,
        pin_lease: None,
        log,
        linger,
    }))
}

/// The bucket at a URL, and what it is called.
fn bucket_of(url: &str) -> Result<(Arc<ObjectBucket>, String), Error> {
    let url = BucketUrl::parse(url)?;
    Ok((Arc::new(ObjectBucket::open(&url)?), url.to_string()))
}

/// What the bucket at a URL is called.
fn place_named(url: &str) -> Result<String, Error> {
    Ok(BucketUrl::parse(url)?.to_string())
}

/// The pins of clones that rely on what lies at `url`.
///
/// # Errors
/// `BadValue` if it is no bucket; `Unavailable` if that doesn't answer; `Damaged` of its HEAD.
pub fn pins_at(url: &str) -> Result<Vec<Pin>, Error> {
    Ok(pins(&*bucket_of(url)?.0)?)
}

/// Removes a pin: a clone that relies on it loses data. Returns whether there was one of this id.
///
/// # Errors
/// As [`pins_at`].
pub fn remove_pin_at(url: &str, id: &str) -> Result<bool, Error> {
    Ok(remove_pin(&SystemChance, &*bucket_of(url)?.0, id)?)
}

fn tiered_disk(
    machine: &Machine,
    bucket: Arc<ObjectBucket>,
    place: String,
    store: &StoreOptions,
) -> Result<TieredDisk, Error> {
    Ok(TieredDisk::open(machine, bucket, tiered_options(place, store)?)?)
}

fn tiered_options(place: String, store: &StoreOptions) -> Result<TieredOptions, Error> {
    Ok(TieredOptions {
        place,
        cache_bytes: store.cache_bytes,
        local_bytes_max: LOCAL_BYTES_MAX,
        take_over: store.take_over,
        clone_of: store.clone_of.as_deref().map(place_named).transpose()?,
        pin_lease: store.pin_lease,
        log: store.log,
        linger: store.linger,
        keep_slots: KEEP_SLOTS,
    })
}

/// Opens what lies on `tiered`, which is `machine`'s disk with its bucket.
///
/// # Errors
/// As [`open`].
pub fn open_on(
    machine: &Machine,
    tiered: TieredDisk,
    options: FrondOptions,
) -> Result<Frond, Error> {
    let (machine, tiered) = with_bucket(machine, tiered);
    let Some(slots) = tiered.slots() else { return frond_vcs::open_on(&machine, options) };
    let frond = frond_vcs::open_with_slots(&machine, options, slots)?;
    begin_log(&frond, &tiered)?;
    Ok(frond)
}

/// Has the bucket say that the log is there: before that nothing may be acknowledged.
fn begin_log(frond: &Frond, tiered: &TieredDisk) -> Result<(), Error> {
    if tiered.is_log_begun() {
        return Ok(());
    }
    frond.engine().send_all()?;
    let since = steady_now();
    while !tiered.is_log_begun() {
        if BEGIN_WAIT_MAX < since.elapsed() {
            let what = "the bucket doesn't take what the log begins behind";
            return Err(Error::unavailable(what));
        }
        pause(BEGIN_STEP);
    }
    Ok(())
}
