//! The storage of the files of a plain remote: a directory, or (in another crate) a bucket.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use frond_db::inside::{Error, ErrorKind};
use frond_query::Code;
use frond_store::io::{Chance, Disk, DiskFile, Machine, pause};
use frond_store::{ChunkHash, StoreError};

use super::format::hash_of;

/// MongoDB's `LockBusy`.
const LOCK_BUSY: Code = Code::Location(46);
/// The prefix of a file's name before it is renamed.
const NEW_PREFIX: &str = "new-";
/// The number of attempts to lock, and the wait after each.
const LOCK_ATTEMPTS_MAX: u32 = 500;
const LOCK_WAIT_MILLIS: u64 = 10;
/// The number of attempts to write a file that another client took for a leftover.
const WRITE_ATTEMPTS_MAX: u32 = 100;

/// The version of a file when it was read, so that it is replaced only if it is still the same:
/// compared, never interpreted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileVersion(pub String);

/// A part of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilePart {
    /// The file.
    pub name: String,
    /// Its bytes.
    pub range: Range<u64>,
}

/// Files by name, without directories: immutable ones, and one that is swapped.
///
/// *Durability*: what `create` or `swap` returned for is there whatever happens.
/// *Thread safety*: every method may be called from any number of threads at once.
pub trait PlainStorage: Send + Sync {
    /// The files whose names begin with `prefix`, and their lengths.
    ///
    /// # Errors
    /// `Unavailable` if the place doesn't answer.
    fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>, Error>;

    /// Reads parts of files that `create` made, in their order; `None` if one of the files is gone.
    ///
    /// # Errors
    /// `Unavailable` if the place doesn't answer.
    fn read_many(&self, parts: &[FilePart]) -> Result<Option<Vec<Bytes>>, Error>;

    /// Makes a file of a name that was never used, as a whole or not at all.
    ///
    /// # Errors
    /// `Unavailable` if the place doesn't answer or takes no more.
    fn create(&self, name: &str, bytes: Bytes) -> Result<(), Error>;

    /// Removes a file; it may be gone already.
    ///
    /// # Errors
    /// `Unavailable` if the place doesn't answer.
    fn remove(&self, name: &str) -> Result<(), Error>;

    /// Reads a whole file of at most `bytes_max`, if it is there, and what it is now.
    ///
    /// # Errors
    /// `Unavailable` if the place doesn't answer; `Damaged` if the file is longer.
    fn load(&self, name: &str, bytes_max: usize) -> Result<Option<(Bytes, FileVersion)>, Error>;

    /// Replaces a file if it is `expected` now (`None`: if there is none). Returns whether it was.
    /// Of any number that try this at once with the same expectation, one wins.
    ///
    /// # Errors
    /// `Unavailable` if the place doesn't answer, or another process holds its lock for long.
    fn swap(&self, name: &str, expected: Option<&FileVersion>, bytes: Bytes)
    -> Result<bool, Error>;

    /// Removes what interrupted writers left, where that is possible.
    ///
    /// # Errors
    /// `Unavailable` if the place doesn't answer.
    fn sweep(&self) -> Result<(), Error>;
}

/// A directory of a disk. Files are written under names of their own, synced and renamed; the one
/// that is swapped is changed under the directory's lock.
///
/// *Leftovers*: a write that fails removes its file. Files that a killed client left are removed
/// before the first file is written, so that a full disk has that room again. It can't be
/// distinguished from a file that another client is just writing: that client finds it gone when it
/// renames it, and writes it again.
pub(crate) struct DirectoryStorage {
    disk: Arc<dyn Disk>,
    chance: Arc<dyn Chance>,
    opened: Mutex<HashMap<String, Arc<dyn DiskFile>>>,
    /// Set once leftovers were looked for: none of our own files is written before.
    is_swept: OnceLock<()>,
}

/// Lets go of the directory when dropped.
struct Locked<'a>(&'a dyn Disk);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

fn failed(file: &str, error: io::Error) -> Error {
    Error::from(StoreError::Io { file: file.to_owned(), source: error })
}

fn version_of(hash: ChunkHash) -> FileVersion {
    FileVersion(hash.to_string())
}

impl DirectoryStorage {
    pub fn new(machine: &Machine) -> DirectoryStorage {
        let (disk, chance) = (machine.disk.clone(), machine.chance.clone());
        let (opened, is_swept) = (Mutex::new(HashMap::new()), OnceLock::new());
        DirectoryStorage { disk, chance, opened, is_swept }
    }

    fn open(&self, name: &str) -> Result<Option<Arc<dyn DiskFile>>, Error> {
        let mut opened = self.opened.lock().expect("no panic while the lock is held");
        if let Some(file) = opened.get(name) {
            return Ok(Some(file.clone()));
        }
        match self.disk.open(name) {
            Ok(file) => {
                opened.insert(name.to_owned(), file.clone());
                Ok(Some(file))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(name, error)),
        }
    }

    /// Writes a file under a name of its own, syncs it and renames it.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.is_swept.get_or_init(|| {
            // A file that can't be removed is only in the way where the disk is full, which the
            // write reports.
            let _ = self.sweep();
        });
        for _ in 1..WRITE_ATTEMPTS_MAX {
            if self.write_once(name, bytes)? {
                return Ok(());
            }
        }
        match self.write_once(name, bytes)? {
            true => Ok(()),
            false => Err(failed(name, io::ErrorKind::NotFound.into())),
        }
    }

    /// As `write`. False: another client removed the file before it had its name.
    fn write_once(&self, name: &str, bytes: &[u8]) -> Result<bool, Error> {
        let mut own = [0; 8];
        self.chance.fill(&mut own);
        let temporary = format!("{NEW_PREFIX}{:016x}", u64::from_le_bytes(own));
        let written = || -> io::Result<bool> {
            let file = self.disk.create(&temporary)?;
            file.write_all_at(0, bytes)?;
            file.sync()?;
            match self.disk.rename(&temporary, name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                renamed => renamed?,
            }
            self.disk.sync_directory()?;
            Ok(true)
        };
        written().map_err(|error| {
            // If that fails, too, the next client removes it.
            let _ = self.disk.remove(&temporary);
            failed(name, error)
        })
    }

    fn lock(&self) -> Result<Locked<'_>, Error> {
        for _ in 0..LOCK_ATTEMPTS_MAX {
            match self.disk.lock() {
                Ok(()) => return Ok(Locked(&*self.disk)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    pause(Duration::from_millis(LOCK_WAIT_MILLIS));
                }
                Err(error) => return Err(failed("LOCK", error)),
            }
        }
        let message = "another client is changing the remote's refs: try again";
        Err(Error { kind: ErrorKind::Unavailable, ..Error::invalid(LOCK_BUSY, message) })
    }
}

impl PlainStorage for DirectoryStorage {
    fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>, Error> {
        let names = self.disk.list().map_err(|error| failed("the directory", error))?;
        let mut found = Vec::new();
        for name in names.into_iter().filter(|name| name.starts_with(prefix)) {
            // It may be gone since.
            if let Some(file) = self.open(&name)? {
                let bytes = file.bytes().map_err(|error| failed(&name, error))?;
                found.push((name, bytes));
            }
        }
        Ok(found)
    }

    fn read_many(&self, parts: &[FilePart]) -> Result<Option<Vec<Bytes>>, Error> {
        let mut found = Vec::with_capacity(parts.len());
        for FilePart { name, range } in parts {
            let Some(file) = self.open(name)? else { return Ok(None) };
            let bytes = usize::try_from(range.end.saturating_sub(range.start))
                .map_err(|_| Error::damaged(format!("remote: {name}: is too large")))?;
            let mut buffer = vec![0; bytes];
            file.read_exact_at(range.start, &mut buffer).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => Error::damaged(format!("remote: {name}: is cut")),
                _ => failed(name, error),
            })?;
            found.push(buffer.into());
        }
        Ok(Some(found))
    }

    fn create(&self, name: &str, bytes: Bytes) -> Result<(), Error> {
        self.write(name, &bytes)
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        self.opened.lock().expect("no panic while the lock is held").remove(name);
        match self.disk.remove(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(name, error)),
            _ => Ok(()),
        }
    }

    fn load(&self, name: &str, bytes_max: usize) -> Result<Option<(Bytes, FileVersion)>, Error> {
        let file = match self.disk.open(name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(name, error)),
        };
        let bytes = file.bytes().map_err(|error| failed(name, error))?;
        let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= bytes_max);
        let bytes = bytes.ok_or_else(|| Error::damaged(format!("{name} is too large")))?;
        let mut buffer = vec![0; bytes];
        file.read_exact_at(0, &mut buffer).map_err(|error| failed(name, error))?;
        let version = version_of(hash_of(&buffer));
        Ok(Some((buffer.into(), version)))
    }

    fn swap(
        &self,
        name: &str,
        expected: Option<&FileVersion>,
        bytes: Bytes,
    ) -> Result<bool, Error> {
        let _locked = self.lock()?;
        let now = self.load(name, usize::MAX)?.map(|(_, version)| version);
        if now.as_ref() != expected {
            return Ok(false);
        }
        self.write(name, &bytes)?;
        Ok(true)
    }

    fn sweep(&self) -> Result<(), Error> {
        let names = self.disk.list().map_err(|error| failed("the directory", error))?;
        names.iter().filter(|name| name.starts_with(NEW_PREFIX)).try_for_each(|n| self.remove(n))
    }
}

#[cfg(test)]
mod tests;
