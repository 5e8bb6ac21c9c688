//! Data directories whose packs live in a bucket.

use std::path::Path;
use std::sync::Arc;

use frond_db::{Code, Error, Frond, FrondOptions};
use frond_store::home::{HomeDisk, HomeOptions};
use frond_store::io::Machine;

use crate::depot::BucketDepot;
use crate::remote_url::RemoteUrl;

/// New packs of so many bytes stay on the disk before they are put into the bucket: an object of
/// about as much, put from memory.
const LOCAL_BYTES_MAX: u64 = 64 << 20;

/// Where the packs of a directory live.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The bucket: `s3://BUCKET/PREFIX`.
    pub url: String,
    /// Bytes on the disk for what was read of it.
    pub cache_bytes: u64,
    /// An empty directory may begin with what another one put there, which writes no more then.
    pub take_over: bool,
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
    };
    let disk = Arc::new(HomeDisk::open(&machine, depot, home)?);
    frond_vcs::open_on(&Machine { disk, ..machine }, options)
}
