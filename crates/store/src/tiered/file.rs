//! A pack's file, wherever its bytes are: on the disk, or in the bucket with its index on the disk.
//!
//! The index file is `prefix index checksum`: all of the pack from where its index begins. One that
//! is damaged or missing is fetched again.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use bytes::Bytes;
use twox_hash::XxHash3_64;

use super::INDEX_SUFFIX;
use super::errors::ATTEMPTS_MAX;
use super::extents::{EXTENT_BYTES, Extent, Extents};
use super::format::PackObject;
use super::read_ahead::ReadAhead;
use super::single_flight::FlightGuard;
use crate::bucket::{Bucket, ObjectPart};
use crate::field::{Magic, PREFIX_BYTES, check_prefix, prefix, u64_at};
use crate::io::{Disk, DiskFile};
use crate::location::PackNumber;
use crate::pack::format::PACK_MAGIC;

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

/// Parts of objects that are there; one that isn't ends too early, as a file that is cut.
fn read_parts(bucket: &dyn Bucket, parts: &[ObjectPart]) -> io::Result<Vec<Bytes>> {
    let there = |part: Option<Bytes>| part.ok_or_else(|| ErrorKind::UnexpectedEof.into());
    find_parts(bucket, parts)?.into_iter().map(there).collect()
}

/// Parts of objects; `None` for one that isn't there, however often it is asked for.
fn find_parts(bucket: &dyn Bucket, parts: &[ObjectPart]) -> io::Result<Vec<Option<Bytes>>> {
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

/// A pack that lies in the bucket.
pub(super) struct Remote {
    pub(super) number: PackNumber,
    pub(super) pack: PackObject,
    pub(super) index: Arc<dyn DiskFile>,
    pub(super) bucket: Arc<dyn Bucket>,
    pub(super) extents: Arc<Extents>,
    pub(super) read_ahead: ReadAhead,
}

impl Remote {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64).filter(|end| *end <= self.pack.bytes);
        let end = end.ok_or(ErrorKind::UnexpectedEof)?;
        let index = u64::from(self.pack.index);
        let header = prefix(PACK_MAGIC);
        let (in_header, rest) = split(buffer, offset, PREFIX_BYTES as u64);
        if let Some(part) = header.get(offset as usize..offset as usize + in_header.len()) {
            in_header.copy_from_slice(part);
        }
        let offset = end - rest.len() as u64;
        let (in_frames, in_index) = split(rest, offset, index);
        self.read_frames(offset, in_frames)?;
        if in_index.is_empty() {
            return Ok(());
        }
        let offset = end - in_index.len() as u64 - index;
        self.index.read_exact_at(PREFIX_BYTES as u64 + offset, in_index)
    }

    fn read_frames(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if buffer.is_empty() {
            return Ok(());
        }
        let end = offset + buffer.len() as u64;
        let numbers = (offset / EXTENT_BYTES) as u32..end.div_ceil(EXTENT_BYTES) as u32;
        let mut absent: Vec<u32> = Vec::new();
        for number in numbers {
            match self.extents.get((self.number, number)) {
                Some(bytes) => copy_part(offset, buffer, u64::from(number) * EXTENT_BYTES, &bytes),
                None => absent.push(number),
            }
        }
        for run in absent.chunk_by(|left, right| left + 1 == *right) {
            self.fetch(offset, buffer, run[0]..run[run.len() - 1] + 1)?;
        }
        Ok(())
    }

    /// Fetches a run of extents, and what lies behind it where a reader goes on in order, and
    /// copies what belongs into `buffer`.
    fn fetch(&self, offset: u64, buffer: &mut [u8], run: Range<u32>) -> io::Result<()> {
        let mut next = run.start;
        while next < run.end {
            // Extents that another reader has fetched are taken from it, once: if it failed, or its
            // extents had to go at once, this one doesn't wait for a third.
            let flight = self.begin(next, run.end);
            let waited = flight.is_none().then(|| self.extents.get((self.number, next))).flatten();
            if let Some(bytes) = waited {
                copy_part(offset, buffer, u64::from(next) * EXTENT_BYTES, &bytes);
                next += 1;
                continue;
            }
            let count = flight.as_ref().map_or(1, FlightGuard::count);
            let range = self.range(next).start..self.range(next + count - 1).end;
            let part = ObjectPart { name: self.pack.name(), range: range.clone() };
            let bytes = read_parts(&*self.bucket, &[part])?.remove(0);
            copy_part(offset, buffer, range.start, &bytes);
            for (number, extent) in (next..).zip(bytes.chunks(EXTENT_BYTES as usize)) {
                self.extents.put((self.number, number), &self.pack.own, extent);
            }
            next += count;
        }
        Ok(())
    }

    /// Begins to fetch extents from `first` on, up to `end` or beyond; `None` if another reader
    /// fetched the first one meanwhile, or tried to.
    fn begin(&self, first: u32, end: u32) -> Option<FlightGuard<'_>> {
        let extents = self.pack.index.div_ceil(EXTENT_BYTES as u32);
        let ahead =
            self.read_ahead.end(first, end, self.extents.read_at_once()).min(extents).max(end);
        // Extents that arrived since this reader missed them are taken from the cache.
        let is_absent = |extent: &Extent| !self.extents.has(*extent);
        let absent = (first..ahead).map(|number| (self.number, number)).take_while(is_absent);
        let flight = self.extents.flights.begin(absent, (end - first) as usize)?;
        self.read_ahead.note(first, flight.count());
        Some(flight)
    }

    /// Lets go of what lies in the cache of a part.
    fn forget(&self, offset: u64, bytes: u64) {
        let numbers = offset / EXTENT_BYTES..(offset + bytes).div_ceil(EXTENT_BYTES);
        numbers.for_each(|number| self.extents.forget_one((self.number, number as u32)));
    }

    /// Returns where an extent lies in the pack: the last one ends where the index begins.
    fn range(&self, number: u32) -> Range<u64> {
        let start = u64::from(number) * EXTENT_BYTES;
        start..(start + EXTENT_BYTES).min(u64::from(self.pack.index))
    }
}

/// Cuts what is read from `offset` on in two, where the pack's byte `at` goes.
fn split(buffer: &mut [u8], offset: u64, at: u64) -> (&mut [u8], &mut [u8]) {
    let position = at.saturating_sub(offset).min(buffer.len() as u64) as usize;
    buffer.split_at_mut(position)
}

/// Copies what of `bytes`, which lie at `start`, belongs into `buffer`, read from `offset`.
fn copy_part(offset: u64, buffer: &mut [u8], start: u64, bytes: &[u8]) {
    let end = offset + buffer.len() as u64;
    let (first, last) = (start.max(offset), (start + bytes.len() as u64).min(end));
    if first < last {
        let from = &bytes[(first - start) as usize..(last - start) as usize];
        buffer[(first - offset) as usize..(last - offset) as usize].copy_from_slice(from);
    }
}

#[derive(Clone)]
enum Storage {
    Here(Arc<dyn DiskFile>),
    There(Arc<Remote>),
}

/// See the module.
pub(super) struct TieredFile {
    place: RwLock<Storage>,
    written: Arc<AtomicU64>,
}

impl TieredFile {
    /// A pack on the disk; `written` counts what is written to it.
    pub(super) fn local(file: Arc<dyn DiskFile>, written: &Arc<AtomicU64>) -> TieredFile {
        TieredFile { place: RwLock::new(Storage::Here(file)), written: Arc::clone(written) }
    }

    /// A pack in the bucket.
    pub(super) fn remote(remote: Remote, written: &Arc<AtomicU64>) -> TieredFile {
        let place = RwLock::new(Storage::There(Arc::new(remote)));
        TieredFile { place, written: Arc::clone(written) }
    }

    /// Has its bytes read in the bucket from now on, which are the same.
    pub(super) fn move_to(&self, remote: Remote) {
        let mut place = self.place.write().expect("no panic while the lock is held");
        *place = Storage::There(Arc::new(remote));
    }

    fn place(&self) -> Storage {
        self.place.read().expect("no panic while the lock is held").clone()
    }
}

/// Returns the error for a caller that would change a pack in the bucket.
fn immutable() -> io::Error {
    io::Error::new(ErrorKind::Unsupported, "a pack in the bucket is never changed")
}

impl DiskFile for TieredFile {
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match self.place() {
            Storage::Here(file) => file.read_exact_at(offset, buffer),
            Storage::There(remote) => remote.read(offset, buffer),
        }
    }

    fn read_past_cache(
        &self,
        offset: u64,
        bytes: usize,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Range<usize>> {
        match self.place() {
            Storage::Here(file) => file.read_past_cache(offset, bytes, buffer),
            Storage::There(_) => self.read_into(offset, bytes, buffer),
        }
    }

    fn forget_cached(&self, offset: u64, bytes: u64) -> bool {
        match self.place() {
            Storage::Here(_) => false,
            Storage::There(remote) => {
                remote.forget(offset, bytes);
                true
            }
        }
    }

    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let Storage::Here(file) = self.place() else { return Err(immutable()) };
        file.write_all_at(offset, bytes)?;
        self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        match self.place() {
            Storage::Here(file) => file.sync(),
            Storage::There(_) => Ok(()),
        }
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        match self.place() {
            Storage::Here(file) => file.set_bytes(bytes),
            Storage::There(_) => Err(immutable()),
        }
    }

    fn bytes(&self) -> io::Result<u64> {
        match self.place() {
            Storage::Here(file) => file.bytes(),
            Storage::There(remote) => Ok(remote.pack.bytes),
        }
    }
}
