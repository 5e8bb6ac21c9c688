//! The engines, by name; one that isn't compiled in is "not run".

#[cfg(feature = "fjall")]
mod fjall;
mod frond;
#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "rocksdb")]
#[expect(unsafe_code, reason = "calls RocksDB's C interface")]
mod rocksdb;
#[cfg(feature = "wiredtiger")]
#[expect(unsafe_code, reason = "calls WiredTiger's C interface")]
mod wiredtiger;

use crate::target::{Failure, Settings, Target};

pub use frond::Frond;

/// All names, in the order of the tables' columns.
pub const NAMES: [&str; 6] = ["frond", "rocksdb", "fjall", "redb", "lmdb", "wiredtiger"];

/// Returns how many eighths of all memory the cache of the engine called `name` gets where that is
/// limited: of three to five what it reads fastest with. (With five, updates made the kernel end
/// RocksDB.)
pub fn limited_eighths(name: &str) -> u64 {
    match name {
        "frond" | "fjall" | "redb" => 5,
        "rocksdb" => 4,
        _ => 3,
    }
}

/// Opens the engine called `name`; `None` if it isn't compiled in.
pub fn open(name: &str, settings: &Settings<'_>) -> Result<Option<Box<dyn Target>>, Failure> {
    match name {
        "frond" => Ok(Some(Box::new(Frond::open(settings)?))),
        #[cfg(feature = "rocksdb")]
        "rocksdb" => Ok(Some(Box::new(rocksdb::RocksDb::open(settings)?))),
        #[cfg(feature = "fjall")]
        "fjall" => Ok(Some(Box::new(fjall::Fjall::open(settings)?))),
        #[cfg(feature = "redb")]
        "redb" => Ok(Some(Box::new(redb::Redb::open(settings)?))),
        #[cfg(feature = "lmdb")]
        "lmdb" => Ok(Some(Box::new(lmdb::Lmdb::open(settings)?))),
        #[cfg(feature = "wiredtiger")]
        "wiredtiger" => Ok(Some(Box::new(wiredtiger::WiredTiger::open(settings)?))),
        _ if NAMES.contains(&name) => Ok(None),
        _ => Err(format!("no target is called {name}").into()),
    }
}
