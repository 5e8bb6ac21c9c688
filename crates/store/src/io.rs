//! Disk, clock and chance: everything that Frond uses of an operating system.
//!
//! Nothing outside this module opens a file, asks the time or rolls dice, so that a simulated disk,
//! a set clock and a seed replay a whole run. Handed in at construction, never global.

// Here, and nowhere else below the server.
#![allow(clippy::disallowed_methods)]

mod direct;
mod directory_lock;
mod scratch;
mod system;
mod waiting;

pub use directory_lock::close_inherited_locks;
pub use scratch::ScratchDisk;
pub use system::{SystemChance, SystemClock, SystemDisk};
pub use waiting::{pause, steady_now};

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::StoreError;

/// Stored files are their owner's alone, whatever the process's umask: a user who may read the
/// files bypasses all users and roles.
const OF_DIRECTORIES: u32 = 0o700;
const OF_FILES: u32 = 0o600;

/// One flat directory of files.
///
/// *Durability*: what is written is durable after [`DiskFile::sync`]; a created, renamed or removed
/// name is durable after [`Disk::sync_directory`]. Anything else may be lost, torn or reordered by
/// a crash.
pub trait Disk: Send + Sync {
    /// Creates an empty file.
    ///
    /// # Errors
    /// `AlreadyExists` if the name is taken; what the system says.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// `NotFound`; what the system says.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// The names of all files, sorted.
    ///
    /// # Errors
    /// An error of the system.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Renames a file, replacing `to` if it exists.
    ///
    /// # Errors
    /// `NotFound`; what the system says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// `NotFound`; what the system says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns how much room there is; `None` if the disk doesn't say.
    ///
    /// # Errors
    /// An error of the system.
    fn space(&self) -> io::Result<Option<DiskSpace>> {
        Ok(None)
    }

    /// Makes names durable.
    ///
    /// # Errors
    /// An error of the system: which names are durable is unknown then.
    fn sync_directory(&self) -> io::Result<()>;

    /// Takes the directory until `unlock` or until the disk is dropped.
    ///
    /// # Errors
    /// `WouldBlock` if it is taken, by this process or another; what the system says.
    fn lock(&self) -> io::Result<()>;

    /// Lets go of what `lock` took.
    fn unlock(&self);

    /// Returns where packs go that don't stay here, if there is such a place.
    fn tier(&self) -> Option<&dyn Tier> {
        None
    }
}

/// Says whether packs are due to be sent to a disk's tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// There is room for more.
    No,
    /// One thread should send them, if none does.
    Soon,
    /// Before more is written.
    Now,
}

/// Bytes that are there to be read, some at a time.
#[derive(Clone)]
pub enum StoredBytes {
    /// In memory.
    Held(Bytes),
    /// So many bytes of a file, from an offset on.
    InFile(Arc<dyn DiskFile>, u64, usize),
}

impl StoredBytes {
    /// The number of bytes.
    pub fn len(&self) -> usize {
        match self {
            StoredBytes::Held(bytes) => bytes.len(),
            StoredBytes::InFile(_, _, bytes) => *bytes,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads `range` of them.
    ///
    /// # Errors
    /// `UnexpectedEof` beyond the end; an error of the disk.
    pub fn read(&self, range: Range<usize>) -> io::Result<Bytes> {
        if range.end < range.start || self.len() < range.end {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match self {
            StoredBytes::Held(bytes) => Ok(bytes.slice(range)),
            StoredBytes::InFile(file, offset, _) => {
                let mut read = vec![0; range.len()];
                file.read_exact_at(offset + range.start as u64, &mut read)?;
                Ok(Bytes::from(read))
            }
        }
    }
}

/// A place beyond the disk where packs live once nothing is added to them.
pub trait Tier: Send + Sync {
    /// Says whether so much was written that packs are to go there.
    fn due(&self) -> Due;

    /// Has `files` there, each of so many bytes: all packs that are sealed, which are durable on
    /// the disk or went there before. They may leave the disk, and what isn't among them may leave
    /// the tier. `manifest` lists them for a directory that begins with what is there; it is empty
    /// where they are no state to begin with.
    ///
    /// # Errors
    /// [`StoreError`]: what was there before is there, and the disk has what isn't.
    fn take(&self, files: &[(String, u64)], manifest: &[u8]) -> Result<(), StoreError>;

    /// Returns where the outline of the index of the pack `name` lies, if the tier has one: so that
    /// an opening needn't read the index. Handed out once.
    fn outline(&self, _name: &str) -> Option<StoredBytes> {
        None
    }

    /// Keeps `index` on the disk for the pack `name`, whose own there is damaged: the pack is read
    /// by this one from now on. Returns whether that is so: the tier may have none to keep it for.
    ///
    /// # Errors
    /// An error of the disk.
    fn keep_index(&self, _name: &str, _index: &[u8]) -> io::Result<bool> {
        Ok(false)
    }

    /// Removes at once what left the tier and is kept for readers that hold it: they find it
    /// elsewhere, if it is needed still. So does what the tier keeps of it on the disk.
    ///
    /// # Errors
    /// [`StoreError`]: some of it may still be there.
    fn purge(&self) -> Result<(), StoreError>;

    /// Files that went there and were lost there, as far as the opening has seen.
    fn lost(&self) -> Vec<String>;

    /// Does there what is to be done now and then, if it is due. Returns what an operator is to
    /// read, each line once.
    fn tend(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether another directory has the place now: nothing may be written here any more.
    fn is_deposed(&self) -> bool;

    /// Waits for no answer any more: what is being sent ends as if none came.
    fn hang_up(&self);

    /// Returns the packs that wait for it, and the counts of requests to it.
    fn state(&self) -> TierState;
}

/// Counts of requests to a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Objects put, or tried to.
    pub puts: u64,
    /// Objects and parts of objects read.
    pub gets: u64,
    /// Lists.
    pub lists: u64,
    /// Objects removed.
    pub deletes: u64,
    /// Bytes put.
    pub bytes_put: u64,
    /// Bytes read.
    pub bytes_got: u64,
}

/// The state of a disk's tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TierState {
    /// Bytes of new packs on the disk that it hasn't taken yet.
    pub bytes_waiting: u64,
    /// The requests to it since the disk was opened.
    pub requests: Requests,
}

/// The size and the free space of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskSpace {
    /// Bytes that it can hold.
    pub bytes: u64,
    /// Bytes that this process may still write.
    pub free: u64,
}

/// Files get space of their own in pieces of this where the system has no other way.
const ALLOCATED_BYTES: usize = 1 << 20;

/// An open file. Offsets and lengths are in bytes. Methods may be called from many threads at once.
pub trait DiskFile: Send + Sync {
    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file is shorter; what the system says.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// As `read_exact_at`, of `bytes` bytes. Returns where in `buffer`, which grows where it is too
    /// short, they are.
    ///
    /// # Errors
    /// As `read_exact_at`.
    fn read_into(
        &self,
        offset: u64,
        bytes: usize,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Range<usize>> {
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        self.read_exact_at(offset, &mut buffer[..bytes])?;
        Ok(0..bytes)
    }

    /// As `read_into`, past the system's cache if the disk can do that: for a caller that keeps
    /// what it reads.
    ///
    /// # Errors
    /// As `read_exact_at`.
    fn read_past_cache(
        &self,
        offset: u64,
        bytes: usize,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Range<usize>> {
        self.read_into(offset, bytes, buffer)
    }

    /// Lets go of what is kept of a part that lies beyond the disk: the next read of it asks there
    /// again. False if nothing lies there.
    fn forget_cached(&self, _offset: u64, _bytes: u64) -> bool {
        false
    }

    /// Writes all of `bytes` at `offset`, extending the file.
    ///
    /// # Errors
    /// An error of the system: part of it may be written.
    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes everything written to this file durable.
    ///
    /// # Errors
    /// An error of the system: what of it is durable is unknown then.
    fn sync(&self) -> io::Result<()>;

    /// Cuts or extends the file.
    ///
    /// # Errors
    /// An error of the system.
    fn set_bytes(&self, bytes: u64) -> io::Result<()>;

    /// Makes the file so long, of zeros that really take their space, durably.
    ///
    /// # Errors
    /// As `write_all_at` and `sync`.
    fn allocate(&self, bytes: u64) -> io::Result<()> {
        let zeros = vec![0; ALLOCATED_BYTES];
        let mut offset = 0;
        while offset < bytes {
            let piece = usize::try_from(bytes - offset).map_or(zeros.len(), |n| n.min(zeros.len()));
            self.write_all_at(offset, &zeros[..piece])?;
            offset += piece as u64;
        }
        self.sync()
    }

    /// The file's length.
    ///
    /// # Errors
    /// An error of the system.
    fn bytes(&self) -> io::Result<u64>;
}

/// The time of day, and how time goes by.
pub trait Clock: Send + Sync {
    /// Microseconds since 1970, UTC. May go backwards, and may be wrong by centuries: any number.
    fn now_micros(&self) -> i64;

    /// Microseconds since a moment that only this process knows. Never goes back or leaps, and goes
    /// on while the machine sleeps where the system can tell.
    fn steady_micros(&self) -> i64;
}

/// A source of random bytes.
pub trait Chance: Send + Sync {
    /// Fills `buffer` with unpredictable bytes.
    fn fill(&self, buffer: &mut [u8]);
}

/// Disk, clock and chance together: how they are handed in.
#[derive(Clone)]
pub struct Machine {
    /// The data directory.
    pub disk: Arc<dyn Disk>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub chance: Arc<dyn Chance>,
}

impl Machine {
    /// The real machine, with `directory` (created where missing) as its disk.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn system(directory: &std::path::Path) -> io::Result<Machine> {
        Ok(Machine {
            disk: Arc::new(SystemDisk::open(directory)?),
            clock: Arc::new(SystemClock),
            chance: Arc::new(SystemChance),
        })
    }
}
