//! The databases that can be measured.

pub mod frond;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;

use std::path::Path;

use crate::target::{Failure, Target};

/// Names of all targets, as they are given on the command line.
pub const NAMES: [&str; 3] = ["frond", "sqlite", "postgres"];

/// Bytes of its own cache that each target gets.
pub const CACHE_BYTES: u64 = 128 << 20;

/// Starts the target called `name` in an empty directory.
pub fn start(name: &str, directory: &Path) -> Result<Box<dyn Target>, Failure> {
    match name {
        "frond" => Ok(Box::new(frond::Embedded::start(directory)?)),
        #[cfg(feature = "sqlite")]
        "sqlite" => Ok(Box::new(sqlite::Sqlite::start(directory)?)),
        #[cfg(feature = "postgres")]
        "postgres" => Ok(Box::new(postgres::Server::start(directory)?)),
        known if NAMES.contains(&known) => {
            Err(format!("{known} is left out of this build: use --features peers").into())
        }
        unknown => Err(format!("no target is called {unknown}").into()),
    }
}
