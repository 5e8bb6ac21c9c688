//! Data directories whose packs live in a bucket.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use frond_db::frond::open_machine;
use frond_db::{Error, Frond, FrondOptions};
use frond_store::io::{Disk, Machine, pause, steady_now};
pub use frond_store::tiered::LogPlace;
use frond_store::tiered::{TieredDisk, TieredOptions, log_place_in, place_of};
use frond_vcs::FsckReport;

use crate::remote_url::RemoteUrl;
use crate::s3_bucket::S3Bucket;

/// New packs of so many bytes stay on the disk before they are put into the bucket: an object of
/// about as much, put from memory.
const LOCAL_BYTES_MAX: u64 = 64 << 20;

/// Bytes on the disk for what a command reads.
const COMMAND_CACHE_BYTES: u64 = 64 << 20;

/// What a log in the bucket begins behind is sent within this time, or the opening fails.
const BEGIN_WAIT_MAX: Duration = Duration::from_secs(600);
const BEGIN_STEP: Duration = Duration::from_millis(10);

/// Where the packs of a directory live.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The bucket: `s3://BUCKET/PREFIX`.
    pub url: String,
    /// Bytes on the disk for what was read of it.
    pub cache_bytes: u64,
    /// An empty directory may begin with what another one put there, which writes no more then.
    pub take_over: bool,
    /// Where what is acknowledged lies.
    pub log: LogPlace,
    /// In the bucket, what is to be acknowledged waits so long for more of it, while some is on its
    /// way.
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
    let Some(store) = known_store(directory)? else {
        return frond_vcs::fsck(directory, progress);
    };
    let machine = open_machine(directory)?;
    let (bucket, place) = bucket_of(&store.url)?;
    fsck_on(&machine, tiered_disk(&machine, bucket, place, &store)?, progress)
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
    let machine = Machine { disk: Arc::new(tiered) as Arc<dyn Disk>, ..machine.clone() };
    frond_vcs::fsck_on(&machine, progress)
}

/// The store that a directory says its packs live in.
fn known_store(directory: &Path) -> Result<Option<StoreOptions>, Error> {
    if !directory.exists() {
        return Ok(None);
    }
    let Some(url) = place_of(&*open_machine(directory)?.disk)? else { return Ok(None) };
    let log = log_place_in(&*bucket_of(&url)?.0)?;
    let (cache_bytes, linger) = (COMMAND_CACHE_BYTES, Duration::ZERO);
    Ok(Some(StoreOptions { url, cache_bytes, take_over: false, log, linger }))
}

/// The bucket at a URL, and what it is called.
fn bucket_of(url: &str) -> Result<(Arc<S3Bucket>, String), Error> {
    let RemoteUrl::Bucket { bucket, prefix } = RemoteUrl::parse(url)? else {
        return Err(Error::bad_value(format!("{url}: s3://BUCKET/PREFIX is expected")));
    };
    let place = format!("s3://{bucket}/{prefix}");
    Ok((Arc::new(S3Bucket::s3(&bucket, &prefix)?), place))
}

fn tiered_disk(
    machine: &Machine,
    bucket: Arc<S3Bucket>,
    place: String,
    store: &StoreOptions,
) -> Result<TieredDisk, Error> {
    let options = TieredOptions {
        place,
        cache_bytes: store.cache_bytes,
        local_bytes_max: LOCAL_BYTES_MAX,
        take_over: store.take_over,
        log: store.log,
        linger: store.linger,
    };
    Ok(TieredDisk::open(machine, bucket, options)?)
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
    let tiered = Arc::new(tiered);
    let machine = Machine { disk: Arc::clone(&tiered) as Arc<dyn Disk>, ..machine.clone() };
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
