//! Files for what queries can't keep in memory: sorts, groups and windows over many documents.
//!
//! They lie in the data directory under names of their own (`spill-` and a number), are never
//! synced, and are removed when the query is done with them; what a crash left is removed when the
//! directory is opened. Nothing else reads them.
//!
//! All of them together take no more than a limit: a cursor that its client forgot keeps its files
//! for minutes, and thousands of them would fill the disk that the data need. Nor do they take what
//! the engine holds back for giving space back.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use frond_engine::{DiskStatus, Engine};
use frond_query::pipeline::{Spill, SpillFile};
use frond_query::{Code, QueryError};
use frond_store::io::{Disk, DiskFile};

/// The beginning of the names of all these files.
const NAME_PREFIX: &str = "spill-";

/// Makes the files of one data directory.
pub(crate) struct SpillSpace {
    disk: Arc<dyn Disk>,
    next: AtomicU64,
    room: Arc<Room>,
}

/// The disk is asked how full it is when so much was written since.
const LOOK_BYTES: u64 = 1 << 20;

/// The space that all files may take together.
struct Room {
    bytes_max: u64,
    bytes: AtomicU64,
    engine: Engine,
    /// Bytes written since the disk was asked; [`LOOK_BYTES`] at once where it was full.
    unseen: AtomicU64,
}

impl Room {
    fn take(&self, bytes: u64) -> Result<(), QueryError> {
        self.check_disk(bytes)?;
        let after = |taken: u64| taken.checked_add(bytes).filter(|after| *after <= self.bytes_max);
        let taken = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after);
        taken.map(drop).map_err(|taken| {
            let max = self.bytes_max;
            let message = format!(
                "temporary files of sorts and groups take {taken} bytes, and {bytes} more exceed \
                 what they may take together, {max} bytes"
            );
            QueryError::new(Code::OutOfDiskSpace, message)
        })
    }

    /// Fails if less is free than is held back.
    fn check_disk(&self, bytes: u64) -> Result<(), QueryError> {
        let unseen = self.unseen.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if unseen < LOOK_BYTES {
            return Ok(());
        }
        let Some(room) = self.engine.disk_status().filter(DiskStatus::is_short) else {
            self.unseen.store(0, Ordering::Relaxed);
            return Ok(());
        };
        self.unseen.store(LOOK_BYTES, Ordering::Relaxed);
        let DiskStatus { free, reserve, .. } = room;
        let message = format!(
            "no temporary file of a sort or group may grow: {free} bytes are free on the disk, and \
             {reserve} bytes are reserved for deletes and garbage collection"
        );
        Err(QueryError::new(Code::OutOfDiskSpace, message))
    }

    fn give_back(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl SpillSpace {
    /// Removes what was left over; all files together may take `bytes_max`. The directory is this
    /// process's alone: `engine` has locked it.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn open(disk: &Arc<dyn Disk>, engine: &Engine, bytes_max: u64) -> io::Result<SpillSpace> {
        for name in disk.list()?.iter().filter(|name| name.starts_with(NAME_PREFIX)) {
            disk.remove(name)?;
        }
        let room = Room {
            bytes_max,
            bytes: AtomicU64::new(0),
            engine: engine.clone(),
            unseen: AtomicU64::new(LOOK_BYTES),
        };
        let room = Arc::new(room);
        Ok(SpillSpace { disk: disk.clone(), next: AtomicU64::new(0), room })
    }

    /// Returns how many bytes the files have.
    pub fn bytes(&self) -> u64 {
        self.room.bytes.load(Ordering::Relaxed)
    }
}

impl Spill for SpillSpace {
    fn create(&self) -> Result<Box<dyn SpillFile>, QueryError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let name = format!("{NAME_PREFIX}{number:016x}");
        let file = self.disk.create(&name).map_err(|error| failed(&name, &error))?;
        let room = Arc::clone(&self.room);
        Ok(Box::new(OpenFile { disk: self.disk.clone(), file, name, bytes: 0, room }))
    }
}

/// One file; it is removed when it is dropped.
struct OpenFile {
    disk: Arc<dyn Disk>,
    file: Arc<dyn DiskFile>,
    name: String,
    bytes: u64,
    room: Arc<Room>,
}

impl SpillFile for OpenFile {
    fn append(&mut self, bytes: &[u8]) -> Result<(), QueryError> {
        let more = bytes.len() as u64;
        self.room.take(more)?;
        self.file.write_all_at(self.bytes, bytes).map_err(|error| {
            self.room.give_back(more);
            failed(&self.name, &error)
        })?;
        self.bytes += more;
        Ok(())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), QueryError> {
        self.file.read_exact_at(offset, buffer).map_err(|error| failed(&self.name, &error))
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // A file that can't be removed now is removed when the directory is opened again.
        let _ = self.disk.remove(&self.name);
        self.room.give_back(self.bytes);
    }
}

fn failed(name: &str, error: &io::Error) -> QueryError {
    let code = match error.kind() {
        io::ErrorKind::StorageFull => Code::OutOfDiskSpace,
        _ => Code::InternalError,
    };
    QueryError::new(code, format!("temporary file {name}: {error}"))
}
