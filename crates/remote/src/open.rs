//! Opens the remote at a place.

use std::path::Path;
use std::sync::Arc;

use frond_db::Error;
use frond_store::io::{Machine, SystemChance};
use frond_vcs::remote::{self, PlainRemote, Remote};

use crate::bucket_storage::BucketStorage;
use crate::http::client::{HttpOptions, HttpRemote};
use crate::remote_url::{BucketUrl, RemoteUrl};

/// Opens the repository that `url` names; `database` is its name where that says none.
///
/// # Errors
/// `BadValue` if the place is none; `Unavailable` if no server answers there.
pub fn open(url: &str, database: &str, options: &HttpOptions) -> Result<Box<dyn Remote>, Error> {
    match RemoteUrl::parse(url)? {
        RemoteUrl::Directory(directory) => remote::open(&directory, database),
        RemoteUrl::Http(url) => Ok(Box::new(HttpRemote::open(&url, options)?)),
        RemoteUrl::Bucket(url) => Ok(Box::new(open_bucket(&url)?)),
    }
}

/// Opens a plain remote, where no process runs: for backups and for maintenance.
///
/// # Errors
/// As `open`; `BadValue` if a server would be asked.
pub fn open_plain(url: &str) -> Result<PlainRemote, Error> {
    match RemoteUrl::parse(url)? {
        RemoteUrl::Directory(directory) => {
            if directory.contains('#') || remote::is_data_directory(Path::new(&directory)) {
                let message = format!("{directory} is a data directory, no plain one");
                return Err(Error::bad_value(message));
            }
            let machine = Machine::system(Path::new(&directory))
                .map_err(|error| Error::bad_value(format!("{directory}: {error}")))?;
            PlainRemote::open(&machine)
        }
        RemoteUrl::Http(url) => {
            Err(Error::bad_value(format!("{url}: a directory or a bucket is expected, no server")))
        }
        RemoteUrl::Bucket(url) => open_bucket(&url),
    }
}

fn open_bucket(url: &BucketUrl) -> Result<PlainRemote, Error> {
    PlainRemote::open_in(Arc::new(BucketStorage::open(url)?), Arc::new(SystemChance))
}
