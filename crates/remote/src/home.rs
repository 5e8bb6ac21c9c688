//! Data directories whose packs live in a bucket.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use frond_db::{Code, Error, Frond, FrondOptions};
pub use frond_store::home::LogPlace;
use frond_store::home::{HomeDisk, HomeOptions};
use frond_store::io::{Disk, Machine, pause, steady_now};

use crate::depot::BucketDepot;
use crate::remote_url::RemoteUrl;

/// New packs of so many bytes stay on the disk before they are put into the bucket: an object of
/// about as much, put from memory.
const LOCAL_BYTES_MAX: u64 = 64 << 20;

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
    let RemoteUrl::Bucket { bucket, prefix } = RemoteUrl::parse(&store.url)? else {
        return Err(Error::bad_value(format!("{}: s3://BUCKET/PREFIX is expected", store.url)));
    };
    let depot = Arc::new(BucketDepot::s3(&bucket, &prefix)?);
    let machine = Machine::system(directory).map_err(|error| {
        let message = format!("data directory {}: {error}", directory.display());
        Error::invalid(Code::BadValue, message)
    })?;
    let home = HomeOptions {
        place: format!("s3://{bucket}/{prefix}"),
        cache_bytes: store.cache_bytes,
        local_bytes_max: LOCAL_BYTES_MAX,
        take_over: store.take_over,
        log: store.log,
        linger: store.linger,
    };
    open_on(&machine, HomeDisk::open(&machine, depot, home)?, options)
}

/// Opens what lies on `home`, which is `machine`'s disk with its bucket.
///
/// # Errors
/// As [`open`].
pub fn open_on(machine: &Machine, home: HomeDisk, options: FrondOptions) -> Result<Frond, Error> {
    let home = Arc::new(home);
    let machine = Machine { disk: Arc::clone(&home) as Arc<dyn Disk>, ..machine.clone() };
    let Some(slots) = home.slots() else { return frond_vcs::open_on(&machine, options) };
    let frond = frond_vcs::open_with_slots(&machine, options, slots)?;
    begin_log(&frond, &home)?;
    Ok(frond)
}

/// Has the bucket say that the log is there: before that nothing may be acknowledged.
fn begin_log(frond: &Frond, home: &HomeDisk) -> Result<(), Error> {
    if home.is_log_begun() {
        return Ok(());
    }
    frond.engine().send_all()?;
    let since = steady_now();
    while !home.is_log_begun() {
        if BEGIN_WAIT_MAX < since.elapsed() {
            let what = "the bucket doesn't take what the log begins behind";
            return Err(Error::unavailable(what));
        }
        pause(BEGIN_STEP);
    }
    Ok(())
}
