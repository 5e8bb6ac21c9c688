//! The file with the index of a pack that lies in the bucket: `prefix index checksum`, all of the
//! pack from where its index begins.
//!
//! 1. A leader has one of each pack that it made. One that is damaged or missing is fetched again.
//! 2. Where the pack's outline is known ([`locations`](super::locations)), a directory may begin
//!    without one: then pages of the index are read as parts of the pack are, and one that reads
//!    the index as a whole (a collection does) keeps it in such a file ([`PackIndex`]).

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use twox_hash::XxHash3_64;

use super::errors::ATTEMPTS_MAX;
use super::format::PackObject;
use crate::bucket::{Bucket, ObjectPart};
use crate::field::{Magic, PREFIX_BYTES, check_prefix, prefix, u64_at};
use crate::io::{Disk, DiskFile};
use crate::location::PackNumber;

/// The suffix of the files' names.
pub(super) const INDEX_SUFFIX: &str = ".index";
const INDEX_FILE_MAGIC: Magic = *b"FRNDPX\x1A\n";
/// The number of bytes of indexes that are fetched together.
const INDEXES_BYTES_MAX: u64 = 32 << 20;
const CHECKSUM_BYTES: usize = size_of::<u64>();

/// The name of the file that has a pack's index.
pub(super) fn index_name(number: PackNumber) -> String {
    format!("{:08x}{INDEX_SUFFIX}", number.0)
}

/// Writes a pack's index to a file of its own, and syncs it.
///
/// # Errors
/// An error of the disk.
pub(super) fn write_index(disk: &dyn Disk, number: PackNumber, index: &[u8]) -> io::Result<()> {
    let name = index_name(number);
    let file = match disk.create(&name) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            disk.remove(&name)?;
            disk.create(&name)
        }
        created => created,
    }?;
    let mut bytes = prefix(INDEX_FILE_MAGIC).to_vec();
    bytes.extend_from_slice(index);
    bytes.extend_from_slice(&XxHash3_64::oneshot(index).to_le_bytes());
    file.write_all_at(0, &bytes)?;
    file.sync()
}

/// The file of a pack's index, if it is there whole.
///
/// # Errors
/// An error of the disk.
pub(super) fn open_index(
    disk: &dyn Disk,
    number: PackNumber,
    pack: &PackObject,
) -> io::Result<Option<Arc<dyn DiskFile>>> {
    let name = index_name(number);
    let file = match disk.open(&name) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let index_bytes = (pack.bytes - u64::from(pack.index)) as usize;
    let mut bytes = vec![0; PREFIX_BYTES + index_bytes + CHECKSUM_BYTES];
    if file.bytes()? != bytes.len() as u64 || file.read_exact_at(0, &mut bytes).is_err() {
        return Ok(None);
    }
    let end = PREFIX_BYTES + index_bytes;
    let is_whole = check_prefix(&bytes, INDEX_FILE_MAGIC, &name).is_ok()
        && u64_at(&bytes, end) == Some(XxHash3_64::oneshot(&bytes[PREFIX_BYTES..end]));
    Ok(is_whole.then_some(file))
}

/// Fetches a pack's index from the bucket and writes its file.
///
/// # Errors
/// Errors of disk or bucket: `NotFound` if the bucket has lost the pack.
pub(super) fn fetch_index(
    disk: &dyn Disk,
    bucket: &dyn Bucket,
    number: PackNumber,
    pack: &PackObject,
) -> io::Result<()> {
    let part = ObjectPart { name: pack.name(), range: u64::from(pack.index)..pack.bytes };
    let index = find_parts(bucket, &[part])?.remove(0);
    write_index(disk, number, &index.ok_or(ErrorKind::NotFound)?)
}

/// Fetches the indexes of packs that have none on the disk, several at once. A pack that the bucket
/// has lost gets none: an opening takes it for one whose file is gone.
///
/// # Errors
/// Errors of disk or bucket.
pub(super) fn fetch_indexes(
    disk: &dyn Disk,
    bucket: &dyn Bucket,
    packs: &BTreeMap<PackNumber, PackObject>,
) -> io::Result<()> {
    let mut absent = Vec::new();
    for (number, pack) in packs {
        if open_index(disk, *number, pack)?.is_none() {
            absent.push((*number, *pack));
        }
    }
    let bytes = |pack: &PackObject| pack.bytes - u64::from(pack.index);
    let mut held = 0;
    let together = absent.chunk_by(|(_, left), (_, right)| {
        held += bytes(left);
        let fits = held + bytes(right) <= INDEXES_BYTES_MAX;
        if !fits {
            held = 0;
        }
        fits
    });
    for batch in together {
        let part = |(_, pack): &(PackNumber, PackObject)| ObjectPart {
            name: pack.name(),
            range: u64::from(pack.index)..pack.bytes,
        };
        let parts: Vec<ObjectPart> = batch.iter().map(part).collect();
        for ((number, _), index) in batch.iter().zip(find_parts(bucket, &parts)?) {
            if let Some(index) = index {
                write_index(disk, *number, &index)?;
            }
        }
    }
    Ok(())
}

/// Parts of objects; `None` for one that isn't there, however often it is asked for.
pub(super) fn find_parts(
    bucket: &dyn Bucket,
    parts: &[ObjectPart],
) -> io::Result<Vec<Option<Bytes>>> {
    let mut read = bucket.read_many(parts).map_err(io::Error::other)?;
    for _ in 1..ATTEMPTS_MAX {
        let is_absent = |at: &usize| read[*at].is_none();
        let absent: Vec<usize> = (0..read.len()).filter(is_absent).collect();
        if absent.is_empty() {
            break;
        }
        let again: Vec<ObjectPart> = absent.iter().map(|at| parts[*at].clone()).collect();
        let found = bucket.read_many(&again).map_err(io::Error::other)?;
        for (at, part) in absent.into_iter().zip(found) {
            read[at] = part;
        }
    }
    Ok(read)
}

/// The index of a pack that lies in the bucket, wherever that is.
///
/// *Thread safety*: every method may be called from any number of threads at once.
pub(super) struct PackIndex {
    disk: Arc<dyn Disk>,
    number: PackNumber,
    pack: PackObject,
    file: OnceLock<Arc<dyn DiskFile>>,
    /// Whether its file was looked for; held while it is.
    was_sought: Mutex<bool>,
}

impl PackIndex {
    /// One that has its file.
    pub(super) fn here(
        disk: &Arc<dyn Disk>,
        (number, pack): (PackNumber, PackObject),
        file: Arc<dyn DiskFile>,
    ) -> PackIndex {
        PackIndex { file: OnceLock::from(file), ..PackIndex::unread(disk, (number, pack)) }
    }

    /// One whose file is looked for when it is first read.
    pub(super) fn unread(
        disk: &Arc<dyn Disk>,
        (number, pack): (PackNumber, PackObject),
    ) -> PackIndex {
        let (disk, file) = (Arc::clone(disk), OnceLock::new());
        PackIndex { disk, number, pack, file, was_sought: Mutex::default() }
    }

    /// Its file, if there is one.
    ///
    /// # Errors
    /// An error of the disk.
    pub(super) fn file(&self) -> io::Result<Option<&Arc<dyn DiskFile>>> {
        if self.file.get().is_none() {
            let mut was_sought = self.was_sought.lock().expect("no panic while the lock is held");
            if !*was_sought {
                self.open()?;
                *was_sought = true;
            }
        }
        Ok(self.file.get())
    }

    fn open(&self) -> io::Result<()> {
        if let Some(found) = open_index(&*self.disk, self.number, &self.pack)? {
            self.file.get_or_init(|| found);
        }
        Ok(())
    }

    /// Has it fetched and kept in its file, unless it is there. None is left by a disk that is
    /// full.
    ///
    /// # Errors
    /// Errors of disk or bucket: `NotFound` if the bucket has lost the pack.
    pub(super) fn keep(&self, bucket: &dyn Bucket) -> io::Result<()> {
        let mut was_sought = self.was_sought.lock().expect("no panic while the lock is held");
        *was_sought = true;
        if self.file.get().is_some() {
            return Ok(());
        }
        match fetch_index(&*self.disk, bucket, self.number, &self.pack) {
            Err(error) if error.kind() == ErrorKind::StorageFull => {
                self.disk.remove(&index_name(self.number))
            }
            fetched => fetched.and_then(|()| self.open()),
        }
    }
}
